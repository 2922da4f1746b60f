/* dlopen.c: see dlopen.h. Never instrumented (preload.mk), and glibc's caller is the program, as in dlsym.c. */
#include "preload/dlopen.h"

#include "preload/door.h"
#include "preload/libc_dlsym.h"

_Thread_local bool dlopen_under_way;
atomic_int dlopen_threads;
atomic_ullong dlopen_begun;
/* glibc's dlopen. */
static _Atomic(void *) dlopen_real __attribute__((used));

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlopen\n"
        ".type dlopen, @function\n"
        "dlopen:\n"
        ".cfi_startproc\n"
        "  endbr64\n"
        "  pushq %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "  pushq %rsi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "  subq $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "  call dlopen_begins\n"
        "  addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  popq %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  jmpq *dlopen_real(%rip)\n"
        ".cfi_endproc\n"
        ".size dlopen, .-dlopen\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlopen\n"
        ".type dlopen, %function\n"
        "dlopen:\n"
        ".cfi_startproc\n"
        "  hint #34\n" /* bti c */
        "  stp x29, x30, [sp, #-32]!\n"
        ".cfi_adjust_cfa_offset 32\n"
        ".cfi_offset x29, -32\n"
        ".cfi_offset x30, -24\n"
        "  stp x0, x1, [sp, #16]\n"
        "  bl dlopen_begins\n"
        "  ldp x0, x1, [sp, #16]\n"
        "  ldp x29, x30, [sp], #32\n"
        ".cfi_adjust_cfa_offset -32\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        "  adrp x10, dlopen_real\n"
        "  ldr x16, [x10, :lo12:dlopen_real]\n"
        "  br x16\n"
        ".cfi_endproc\n"
        ".size dlopen, .-dlopen\n");
#else
#error "dlopen.c needs its few instructions for this processor"
#endif

static void *no_loader(const char *file, int mode)
{
    (void)file, (void)mode;
    return NULL;
}

/* Called by the assembly. */
__attribute__((used)) static void dlopen_begins(void)
{
    if (!atomic_load_explicit(&dlopen_real, memory_order_acquire)) {
        void *real = libc_dlsym(RTLD_NEXT, "dlopen");
        atomic_store_explicit(&dlopen_real, real ? real : (void *)no_loader, memory_order_release);
    }
    if (door_depth != DOOR_OPEN)
        return; /* the driver or remat loads parts of its own */
    if (!dlopen_under_way) {
        dlopen_under_way = true;
        atomic_fetch_add_explicit(&dlopen_threads, 1, memory_order_acquire);
    }
    atomic_fetch_add_explicit(&dlopen_begun, 1, memory_order_acq_rel);
    atomic_fetch_or_explicit(&door_watch, WATCH_LOADED, memory_order_release);
}
