/* dlsym.c: the second way in: programs that look the driver's entry points up by name.
 *
 * Our dlsym is a few instructions of assembly, because glibc's takes its caller's address into account (RTLD_NEXT starts
 * behind the caller's library, RTLD_DEFAULT looks into the caller's own scope): whatever is not ours is reached by a jump
 * with the registers as they were, so glibc sees the program's return address. One unversioned definition serves
 * references to both of glibc's versions, GLIBC_2.34 and the older default.
 *
 * Nothing here allocates or takes a lock of ours: programs call dlsym from inside malloc, and before main.
 */
#include "preload/door.h"

#include <dlfcn.h>
#include <string.h>

/* Answer of door_dlsym_pick: the assembly jumps to the real one. Its address is what counts. */
const char door_dlsym_forward __attribute__((visibility("hidden"))) = 0;
/* glibc's dlsym; NULL until first needed. Read by the assembly after door_dlsym_pick has set it. */
_Atomic(void *) door_dlsym_real __attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "  endbr64\n"
        "  pushq %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "  pushq %rsi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "  subq $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "  call door_dlsym_pick\n"
        "  addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  popq %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  leaq door_dlsym_forward(%rip), %rcx\n"
        "  cmpq %rcx, %rax\n"
        "  je 1f\n"
        "  ret\n"
        "1: jmpq *door_dlsym_real(%rip)\n"
        ".cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "  hint #34\n" /* bti c */
        "  stp x29, x30, [sp, #-32]!\n"
        ".cfi_adjust_cfa_offset 32\n"
        ".cfi_offset x29, -32\n"
        ".cfi_offset x30, -24\n"
        "  stp x0, x1, [sp, #16]\n"
        "  bl door_dlsym_pick\n"
        "  mov x9, x0\n"
        "  ldp x0, x1, [sp, #16]\n"
        "  ldp x29, x30, [sp], #32\n"
        ".cfi_adjust_cfa_offset -32\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        "  adrp x10, door_dlsym_forward\n"
        "  add x10, x10, :lo12:door_dlsym_forward\n"
        "  cmp x9, x10\n"
        "  b.eq 1f\n"
        "  mov x0, x9\n"
        "  ret\n"
        "1: adrp x10, door_dlsym_real\n"
        "  ldr x16, [x10, :lo12:door_dlsym_real]\n"
        "  br x16\n"
        ".cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#else
#error "dlsym.c needs its few instructions for this processor"
#endif

static __typeof__(&dlsym) real_dlsym(void)
{
    void *f = atomic_load_explicit(&door_dlsym_real, memory_order_acquire);
    if (!f) {
        /* x86-64 has 2.2.5 as its oldest version, aarch64 2.17. */
        static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
        for (size_t i = 0; !f && i < sizeof versions / sizeof versions[0]; i++)
            f = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        atomic_store_explicit(&door_dlsym_real, f, memory_order_release);
    }
    return (__typeof__(&dlsym))f;
}

void *door_real_dlsym(void *handle, const char *name)
{
    __typeof__(&dlsym) f = real_dlsym();
    return f ? f(handle, name) : NULL;
}

/* Rejects nearly every name in a few instructions, without calling anything: a sanitizer's runtime asks for libc's own
 * functions here before it can bear being called. (For the same reason this file is never instrumented.) */
static bool may_be_ours(const char *n)
{
    return (n[0] == 'c' && n[1] == 'u') || (n[0] == 'n' && n[1] == 'v' && n[2] == 'm' && n[3] == 'l') ||
           (n[0] == 'n' && n[1] == 'c' && n[2] == 'c' && n[3] == 'l');
}

static const struct door_row *row_named(const char *name)
{
    if (!may_be_ours(name))
        return NULL;
    for (int i = 0; i < HOOK_COUNT; i++)
        if (strcmp(door_rows[i].symbol, name) == 0)
            return &door_rows[i];
    return NULL;
}

/* What dlsym(handle, name) answers, or &door_dlsym_forward: glibc's answer. Called by the assembly. */
__attribute__((visibility("hidden"), used)) void *door_dlsym_pick(void *handle, const char *name)
{
    void *forward = (void *)&door_dlsym_forward;
    if (!real_dlsym())
        return NULL;
    const struct door_row *row = name ? row_named(name) : NULL;
    /* RTLD_NEXT: the caller is an interposer itself and wants what lies behind it, never a hook again. */
    if (!row || handle == RTLD_NEXT || door_disabled())
        return forward;
    door_note_asked(ROUTE_DLSYM);
    if (!door_provider_loaded(row->provider)) {
        /* A search of the global scope would find our own export in a process that has no such library. Behind this
         * library there is nothing of that name, and dlerror() will say so. */
        return door_real_dlsym(handle, name) == row->hook ? door_real_dlsym(RTLD_NEXT, name) : forward;
    }
    if (handle == RTLD_DEFAULT) {
        door_note_given((enum hook_id)(row - door_rows), ROUTE_DLSYM);
        return forward; /* in the global scope this library comes first: glibc finds the hook */
    }
    void *found = door_real_dlsym(handle, name);
    if (!found)
        return forward; /* asked again in the program's name, so that dlerror() is the program's */
    if (found != row->hook && !door_is_provider_address(row->provider, found))
        return found; /* somebody else's function of that name */
    door_note_given((enum hook_id)(row - door_rows), ROUTE_DLSYM);
    return row->hook;
}
