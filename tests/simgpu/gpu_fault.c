/*
 * Memory faults of device work.
 *
 * A worker that touches memory which is not mapped, or not accessible, gets SIGSEGV or SIGBUS. The handler
 * jumps back to gpu_fault_run, the operation ends there, and the context's error sticks. Faults of other
 * threads go on to whatever handler the program had: a host thread that dereferences a device address dies
 * as it would with a real GPU.
 *
 * Threads that a kernel starts inherit the worker's name, and are known by it. One that faults inside the
 * device window cannot be unwound from here: it gets a page of zeroes under its feet, the kernel runs to its
 * end, and the operation then counts as faulted. Outside the window the fault is the program's own.
 *
 * A kernel that finds out itself that it cannot go on (PTX outside of its shared memory) leaves the same way, with an error of its own.
 *
 * The handler is installed by cuInit, and again before an operation if the program has set one since.
 *
 * Be careful: the handler runs on the faulting thread at any instruction; it takes no lock.
 */
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/simgpu/gpu.h"

static const char thread_name[] = "simgpu-worker";

static struct sigaction before_segv, before_bus;
/* set while this worker is inside device work; the handler must be able to read it without allocating */
static __thread sigjmp_buf *landing __attribute__((tls_model("initial-exec")));
static __thread CUresult left_with;

/* Pages lent to kernel threads that faulted; taken back when no operation that might use them runs. */
enum { LENT = 1024 };
static _Atomic uintptr_t lent[LENT];
static _Atomic unsigned n_lent;
static _Atomic unsigned n_inside;

void gpu_fault_name_thread(void)
{
    prctl(PR_SET_NAME, thread_name, 0, 0, 0);
}

static bool belongs_to_kernel(void)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name, 0, 0, 0);
    return !strcmp(name, thread_name);
}

static bool lend_page(uintptr_t address)
{
    if (address - gpu_window_base >= gpu_window_bytes)
        return false;
    unsigned i = atomic_fetch_add(&n_lent, 1);
    if (i >= LENT)
        return false;
    uintptr_t page = address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    /* the bare call: ThreadSanitizer would take mmap's for a write to the page */
    if (syscall(SYS_mmap, page, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L) == -1)
        return false;
    lent[i] = page;
    return true;
}

static void pass_on(int sig, siginfo_t *info, void *context)
{
    const struct sigaction *old = sig == SIGSEGV ? &before_segv : &before_bus;
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(sig, info, context);
    } else if (old->sa_handler == SIG_IGN || old->sa_handler == SIG_DFL) {
        /* the faulting instruction runs again and meets the default action */
        sigaction(sig, old, NULL);
    } else {
        old->sa_handler(sig);
    }
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    if (landing && info->si_code > 0)
        siglongjmp(*landing, 1);
    if (info->si_code > 0 && n_inside && belongs_to_kernel() && lend_page((uintptr_t)info->si_addr))
        return;
    pass_on(sig, info, context);
}

void gpu_fault_install(void)
{
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_fault;
    sa.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&sa.sa_mask);
    sigaction(SIGSEGV, &sa, &before_segv);
    sigaction(SIGBUS, &sa, &before_bus);
}

/* A program may set a handler of its own after cuInit: ours goes in front of it again. */
static void stay_in_front(void)
{
    struct sigaction now;
    if (sigaction(SIGSEGV, NULL, &now) || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault))
        return;
    gpu_lock();
    gpu_fault_install();
    gpu_unlock();
}

void gpu_fault_leave(CUresult why)
{
    left_with = why;
    siglongjmp(*landing, 1);
}

CUresult gpu_fault_run(gpu_op *op)
{
    stay_in_front();
    sigjmp_buf here;
    left_with = CUDA_ERROR_ILLEGAL_ADDRESS;
    unsigned lent_before = n_lent;
    atomic_fetch_add(&n_inside, 1);
    bool ok = sigsetjmp(here, 0) == 0;
    if (ok) {
        landing = &here;
        op->exec(op);
    }
    landing = NULL;
    if (n_lent != lent_before)
        ok = false;
    if (atomic_fetch_sub(&n_inside, 1) == 1 && n_lent) {
        for (unsigned i = 0; i < LENT && lent[i]; i++)
            gpu_phys_unmap(atomic_exchange(&lent[i], 0), (uint64_t)sysconf(_SC_PAGESIZE));
        n_lent = 0;
    }
    return ok ? CUDA_SUCCESS : left_with;
}
