/* net.c: see net.h. */
#include "preload/net.h"

#include "policy/current.h"
#include "policy/process/log.h"
#include "policy/reach.h"
#include "policy/stays.h"
#include "preload/door.h"
#include "preload/doors.h"

#include <stdio.h>
#include <string.h>

/* ---- stubs: the entry of a call arrives in a register that no call uses ------------------------------------------------- */

#define STUBS 1024
enum { STUB_BYTES = 16 };
static struct net_entry net_entries[STUBS] __attribute__((used));
extern const char net_stubs[] __attribute__((visibility("hidden")));

/* All stubs, and the label net_common, which they jump to. */
#define NET_STUBS                                      \
    ".balign 16\n"                                     \
    "net_stubs:\n"                                     \
    ".set net_at, 0\n"                                 \
    ".rept " NET_STRING(STUBS) "\n"                    \
    ".balign 16\n" NET_STUB("net_entries+net_at")      \
    ".set net_at, net_at + 128\n"                      \
    ".endr\n"                                          \
    ".hidden net_common\n"                             \
    ".globl net_common\n"

/* net_common saves the registers that may hold an argument, asks net_called() which function to run, and jumps there. */
#if defined(__x86_64__)
__asm__(".text\n" NET_STUBS
        ".type net_common, @function\n"
        "net_common:\n"
        ".cfi_startproc\n"
        "  subq $200, %rsp\n"
        ".cfi_adjust_cfa_offset 200\n"
        "  movq %rdi, 0(%rsp)\n"
        "  movq %rsi, 8(%rsp)\n"
        "  movq %rdx, 16(%rsp)\n"
        "  movq %rcx, 24(%rsp)\n"
        "  movq %r8, 32(%rsp)\n"
        "  movq %r9, 40(%rsp)\n"
        "  movq %rax, 48(%rsp)\n"
        "  movq %r10, 56(%rsp)\n"
        "  movups %xmm0, 64(%rsp)\n"
        "  movups %xmm1, 80(%rsp)\n"
        "  movups %xmm2, 96(%rsp)\n"
        "  movups %xmm3, 112(%rsp)\n"
        "  movups %xmm4, 128(%rsp)\n"
        "  movups %xmm5, 144(%rsp)\n"
        "  movups %xmm6, 160(%rsp)\n"
        "  movups %xmm7, 176(%rsp)\n"
        "  movq %r11, %rdi\n"
        "  movq %rsp, %rsi\n"
        "  call net_called\n"
        "  movq %rax, %r11\n"
        "  movq 0(%rsp), %rdi\n"
        "  movq 8(%rsp), %rsi\n"
        "  movq 16(%rsp), %rdx\n"
        "  movq 24(%rsp), %rcx\n"
        "  movq 32(%rsp), %r8\n"
        "  movq 40(%rsp), %r9\n"
        "  movq 48(%rsp), %rax\n"
        "  movq 56(%rsp), %r10\n"
        "  movups 64(%rsp), %xmm0\n"
        "  movups 80(%rsp), %xmm1\n"
        "  movups 96(%rsp), %xmm2\n"
        "  movups 112(%rsp), %xmm3\n"
        "  movups 128(%rsp), %xmm4\n"
        "  movups 144(%rsp), %xmm5\n"
        "  movups 160(%rsp), %xmm6\n"
        "  movups 176(%rsp), %xmm7\n"
        "  addq $200, %rsp\n"
        ".cfi_adjust_cfa_offset -200\n"
        "  jmpq *%r11\n"
        ".cfi_endproc\n"
        ".size net_common, .-net_common\n");
#else
__asm__(".text\n" NET_STUBS
        ".type net_common, %function\n"
        "net_common:\n"
        ".cfi_startproc\n"
        "  stp x29, x30, [sp, #-224]!\n"
        ".cfi_adjust_cfa_offset 224\n"
        ".cfi_offset x29, -224\n"
        ".cfi_offset x30, -216\n"
        "  stp x0, x1, [sp, #16]\n"
        "  stp x2, x3, [sp, #32]\n"
        "  stp x4, x5, [sp, #48]\n"
        "  stp x6, x7, [sp, #64]\n"
        "  str x8, [sp, #80]\n"
        "  stp q0, q1, [sp, #96]\n"
        "  stp q2, q3, [sp, #128]\n"
        "  stp q4, q5, [sp, #160]\n"
        "  stp q6, q7, [sp, #192]\n"
        "  mov x0, x16\n"
        "  add x1, sp, #16\n"
        "  bl net_called\n"
        "  mov x16, x0\n"
        "  ldp x0, x1, [sp, #16]\n"
        "  ldp x2, x3, [sp, #32]\n"
        "  ldp x4, x5, [sp, #48]\n"
        "  ldp x6, x7, [sp, #64]\n"
        "  ldr x8, [sp, #80]\n"
        "  ldp q0, q1, [sp, #96]\n"
        "  ldp q2, q3, [sp, #128]\n"
        "  ldp q4, q5, [sp, #160]\n"
        "  ldp q6, q7, [sp, #192]\n"
        "  ldp x29, x30, [sp], #224\n"
        ".cfi_adjust_cfa_offset -224\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        "  br x16\n"
        ".cfi_endproc\n"
        ".size net_common, .-net_common\n");
#endif

/* ---- a noted call ------------------------------------------------------------------------------------------------------------ */

static atomic_bool all_stays; /* eng_memory_stays() has succeeded; the engine tells devices that are set up later */
static _Atomic(struct net_entry *) waiting; /* entries called before the engine has started */

static int no_room(void) { return CUDA_ERROR_OUT_OF_MEMORY; }
static int no_room_nccl(void) { return 1; /* ncclUnhandledCudaError */ }
static int not_there(void) { return CUDA_ERROR_NOT_INITIALIZED; }

bool net_stay(const char *why, const char *line)
{
    if (line)
        log_say(SAY_WARN, "%s: memory stays where it is from now on, and nothing is evicted or recomputed", line);
    const int depth = door_depth;
    door_depth = DOOR_SHUT;
    const bool room = eng_memory_stays(why) == CUDA_SUCCESS;
    door_depth = depth;
    if (room)
        atomic_store_explicit(&all_stays, true, memory_order_release);
    return room;
}

/* Notes a call: one line the first time, and memory stays. False: memory that must stay finds no room. */
static bool count(struct net_entry *e)
{
    char line[NET_NAME_MOST + 160];
    if (e->why)
        snprintf(line, sizeof line, "%s is called (%s)", e->name, e->why);
    else
        snprintf(line, sizeof line, "%s is called, which is newer than this remat: it knows CUDA %d.%d and NCCL %d.%d", e->name, DOORS_CUDA_VERSION / 1000,
                 DOORS_CUDA_VERSION % 1000 / 10, DOORS_NCCL_VERSION / 10000, DOORS_NCCL_VERSION % 10000 / 100);
    const bool told = atomic_exchange(&e->told, true);
    return (told && atomic_load_explicit(&all_stays, memory_order_acquire)) ||
           net_stay(e->why ? e->why : "a call that is newer than remat", told ? NULL : line);
}

static void wait_for_engine(struct net_entry *e)
{
    if (atomic_exchange(&e->waits, true))
        return;
    e->next = atomic_load(&waiting);
    while (!atomic_compare_exchange_weak(&waiting, &e->next, e)) {
    }
}

void net_begins(void)
{
    for (struct net_entry *e = atomic_exchange(&waiting, NULL); e; e = e->next)
        count(e);
}

/* The function that the stub jumps to. `args`: the call's first six arguments, as they lie in registers. */
__attribute__((used)) static void *net_called(struct net_entry *e, const uint64_t *args)
{
    void *to = atomic_load_explicit(&e->target, memory_order_acquire);
    if (!to && e->find) {
        to = e->find(e->name);
        atomic_store_explicit(&e->target, to, memory_order_release);
    }
    if (!to)
        return e->refusal == (void *)no_room ? (void *)not_there : e->refusal;
    current_asks_always(); /* cuGLCtxCreate makes a context current */
    if (door_depth != DOOR_OPEN || door_disabled())
        return to;
    if (!eng_active()) {
        if (!e->address)
            wait_for_engine(e);
        return to;
    }
    if (e->address && !eng_is_device_pointer(args[e->address - 1]))
        return to;
    return count(e) ? to : e->refusal;
}

/* ---- handing stubs out ------------------------------------------------------------------------------------------------------- */

static struct net_entry *entry_of(const char *name, void *real, const char *why)
{
    struct net_entry *e = net_entries;
    for (; e < net_entries + STUBS; e++) {
        if (!atomic_load_explicit(&e->taken, memory_order_relaxed) && !atomic_exchange(&e->taken, true)) {
            snprintf(e->name, sizeof e->name, "%s", name);
            e->why = why;
            e->refusal = name[0] == 'c' ? (void *)no_room : (void *)no_room_nccl;
            atomic_store_explicit(&e->target, real, memory_order_release);
            return e;
        }
        if (atomic_load_explicit(&e->target, memory_order_acquire) == real && !strcmp(e->name, name))
            return e;
    }
    return NULL;
}

/* The stub of `real`. Where all stubs are taken, the first further name that is asked for counts as called. */
static void *stub_of(const char *name, void *real, const char *why)
{
    struct net_entry *e = entry_of(name, real, why);
    if (e)
        return (void *)(uintptr_t)(net_stubs + STUB_BYTES * (e - net_entries));
    static struct net_entry beyond = {.name = "another call"};
    if (eng_active() && door_depth == DOOR_OPEN)
        count(&beyond);
    else
        wait_for_engine(&beyond);
    return real;
}

void *net_symbol(const char *symbol, void *real)
{
    const char *why;
    const enum doors_kind kind = doors_kind_of(symbol, &why);
    return kind == DOORS_MAKE_STAY || kind == DOORS_ARE_UNKNOWN ? stub_of(symbol, real, why) : real;
}

void *net_proc_address(const char *name, const char *symbol, void *real, int version, bool newer)
{
    char of[NET_NAME_MOST];
    const char *why;
    if (symbol)
        return net_symbol(symbol, real);
    if (!newer && doors_kind_of_base(name, &why) == DOORS_ARE_HARMLESS)
        return real;
    why = NULL;
    if (newer)
        snprintf(of, sizeof of, "%.40s of CUDA %d.%d", name, version / 1000, version % 1000 / 10);
    else
        doors_kind_of_base(name, &why);
    return stub_of(newer ? of : name, real, why);
}

/* ---- calls of doors.def that make memory stay ------------------------------------------------------------------------------- */

#define S(symbol, why) NET_EXPORT(symbol, why, provider_driver_symbol, no_room, 0)
DOORS_STAYS(S)
#undef S

const struct net_export *net_export_of(const char *symbol)
{
    static const struct net_export exports[] = {
#define S(symbol, why) {#symbol, net_stub_##symbol},
        DOORS_STAYS(S)
#undef S
    };
    for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++)
        if (!strcmp(exports[i].symbol, symbol))
            return &exports[i];
    return NULL;
}
