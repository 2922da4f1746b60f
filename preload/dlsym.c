/* dlsym.c: the second way in: programs that look the driver's entry points up by name.
 *
 * Our dlsym is a few instructions of assembly, because glibc's takes its caller's address into account (RTLD_NEXT starts
 * behind the caller's library, RTLD_DEFAULT looks into the caller's own scope): any other name is answered by a jump to glibc's
 * dlsym with the registers as they were, so glibc sees the program's return address. One unversioned definition serves
 * references to both of glibc's versions, GLIBC_2.34 and the older default.
 *
 * Nothing here allocates or takes a lock of ours, but for the first call of a thread after it has loaded a library: programs call dlsym from inside malloc,
 * and before main.
 */
#include "preload/bypass.h"
#include "preload/dlopen.h"
#include "preload/hooks.h"
#include "preload/libc_dlsym.h"
#include "preload/net.h"

#include <string.h>

/* dlsym_pick() answers with this object's address where glibc is to answer: the assembly then jumps to glibc's dlsym. */
static const char dlsym_forward __attribute__((used)) = 0;

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
        "  call dlsym_pick\n"
        "  addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  popq %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "  leaq dlsym_forward(%rip), %rcx\n"
        "  cmpq %rcx, %rax\n"
        "  je 1f\n"
        "  ret\n"
        "1: jmpq *libc_dlsym_found(%rip)\n"
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
        "  bl dlsym_pick\n"
        "  mov x9, x0\n"
        "  ldp x0, x1, [sp, #16]\n"
        "  ldp x29, x30, [sp], #32\n"
        ".cfi_adjust_cfa_offset -32\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        "  adrp x10, dlsym_forward\n"
        "  add x10, x10, :lo12:dlsym_forward\n"
        "  cmp x9, x10\n"
        "  b.eq 1f\n"
        "  mov x0, x9\n"
        "  ret\n"
        "1: adrp x10, libc_dlsym_found\n"
        "  ldr x16, [x10, :lo12:libc_dlsym_found]\n"
        "  br x16\n"
        ".cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#else
#error "dlsym.c needs its few instructions for this processor"
#endif

/* Rejects nearly every name in a few instructions, without calling anything: a sanitizer's runtime asks for libc's own
 * functions here before it can bear being called. (For the same reason this file is never instrumented.) */
static bool may_be_ours(const char *n)
{
    return (n[0] == 'c' && n[1] == 'u') || (n[0] == 'n' && n[1] == 'v' && n[2] == 'm' && n[3] == 'l') ||
           (n[0] == 'n' && n[1] == 'c' && n[2] == 'c' && n[3] == 'l') ||
           (n[0] == 'p' && n[1] == 'n' && n[2] == 'c' && n[3] == 'c' && n[4] == 'l') || bypass_may_be(n);
}

/* The row named `name`; HOOK_COUNT: none. */
static enum hook_id row_named(const char *name)
{
    int i = may_be_ours(name) ? 0 : HOOK_COUNT;
    while (i < HOOK_COUNT && strcmp(door_rows[i].symbol, name) != 0)
        i++;
    return (enum hook_id)i;
}

/* The answer for a name that this library exports as the stub `x`: a function of the driver's, or of a library that works on memory past the driver. */
static void *pick_export(void *handle, const char *name, const struct net_export *x, bool loaded, bool (*is_theirs)(const char *, const void *))
{
    void *forward = (void *)&dlsym_forward;
    void *found = handle == RTLD_DEFAULT && loaded ? NULL : libc_dlsym(handle, name);
    if (!loaded) /* as for rows, in dlsym_pick() */
        return found == x->stub ? libc_dlsym(RTLD_NEXT, name) : forward;
    if (!found)
        return forward;
    return found == x->stub || is_theirs(name, found) ? (void *)(uintptr_t)x->stub : found;
}

static bool is_drivers(const char *name, const void *address)
{
    (void)name;
    return provider_has_address(DOOR_CUDA, address);
}

/* The answer for a name that has no row in hooks.def: a function newer than the tables is handed out behind a stub (net.h). */
static void *pick_other(void *handle, const char *name)
{
    void *forward = (void *)&dlsym_forward;
    const struct net_export *x = bypass_export_of(name);
    if (x)
        return pick_export(handle, name, x, bypass_loaded(name), bypass_has_address);
    if ((x = net_export_of(name)) != NULL)
        return pick_export(handle, name, x, provider_loaded(DOOR_CUDA), is_drivers);
    const enum door_provider p = name[0] == 'c' ? DOOR_CUDA : DOOR_NCCL;
    const char first = name[p == DOOR_CUDA ? 2 : name[0] == 'p' ? 5 : 4];
    if (first < 'A' || first > 'Z' || (name[0] == 'n' && name[1] == 'v') || !provider_loaded(p))
        return forward; /* cudaMalloc, cublasCreate: names of other libraries */
    void *found = libc_dlsym(handle, name);
    return found && provider_has_address(p, found) ? net_symbol(name, found) : forward;
}

/* The answer of dlsym(handle, name); &dlsym_forward: glibc answers. Called by the assembly. */
__attribute__((used)) static void *dlsym_pick(void *handle, const char *name)
{
    void *forward = (void *)&dlsym_forward;
    if (!libc_dlsym_find())
        return NULL;
    const enum hook_id id = name ? row_named(name) : HOOK_COUNT;
    if (dlopen_under_way && door_depth == DOOR_OPEN && eng_active())
        bypass_look(); /* the library that this thread has loaded may be used from here on without a call that has a door */
    dlopen_is_over();
    /* RTLD_NEXT: the caller is an interposer itself and wants the function behind its own, never a hook again. */
    if (!name || !may_be_ours(name) || handle == RTLD_NEXT || door_disabled())
        return forward;
    if (id == HOOK_COUNT)
        return pick_other(handle, name);
    const enum door_provider p = door_rows[id].provider;
    void *hook = hooks[id];
    door_note_asked(ROUTE_DLSYM);
    if (!provider_loaded(p)) {
        /* A search of the global scope would find this library's own export in a process that has no such library. No library behind this one has the name, and dlerror() will
         * say so. */
        return libc_dlsym(handle, name) == hook ? libc_dlsym(RTLD_NEXT, name) : forward;
    }
    if (handle == RTLD_DEFAULT) {
        door_note_given(id, ROUTE_DLSYM);
        return forward; /* in the global scope this library comes first: glibc finds the hook */
    }
    void *found = libc_dlsym(handle, name);
    if (!found)
        return forward; /* glibc asks again in the program's name, so that dlerror() is the program's */
    if (found != hook && !provider_has_address(p, found))
        return found; /* another library's function of that name */
    door_note_given(id, ROUTE_DLSYM);
    return hook;
}
