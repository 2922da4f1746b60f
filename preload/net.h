/* net.h: the net under the table of doors. What is called that no row of hooks.def has, and that no row of doors.def calls harmless, may do anything to
 * memory: it is told once, by name, when it is first called, and memory stays where it is from then on (policy/stays.h). A new runtime library asks for
 * all names at its start and calls few, so that the asking tells nothing: whoever asks gets a stub, which notes the call and jumps on with the
 * arguments as they came.
 *
 *   cuMemAlloc_v3     a newer variant of a call that has a door
 *   cuMemFresh        a call that nobody has heard of
 *   cuGLMapBufferObject_v2   a row of doors.def says so
 *
 * Threads: any. No allocation and no lock of ours where names are asked for. Errors: a call that is noted answers its own way, or, where memory that must stay
 * finds no room, that there is no memory: then it is not made.
 */
#ifndef REMAT_PRELOAD_NET_H
#define REMAT_PRELOAD_NET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda_abi.h"

/* A function behind a stub. */
enum { NET_ENTRY_BYTES = 128 /* a stub's step, in net.c */, NET_NAME_MOST = 72 };
struct net_entry {
    _Atomic(void *) target;          /* the real one; NULL: to be looked for */
    void *(*find)(const char *name); /* how; NULL: where there is none the call fails */
    const char *why;                 /* what it does to memory; NULL: nobody knows, it is newer than the tables */
    void *refusal;                   /* what is called in its place where there is no room */
    atomic_bool told, waits, taken;
    struct net_entry *next; /* that waits */
    uint8_t address;                 /* which argument, from 1 on, must be an address of device memory for the call to matter; 0: it does in any case */
    char name[NET_NAME_MOST];
} __attribute__((aligned(NET_ENTRY_BYTES)));
_Static_assert(sizeof(struct net_entry) == NET_ENTRY_BYTES, "as the stubs take it");

/* What dlsym answers for a function `real` of the driver's or of NCCL's that has no row: itself, or its stub. */
void *net_symbol(const char *symbol, void *real);
/* What cuGetProcAddress answers for one that the driver has answered with for (name, version, flags). `symbol`: its exported name, or NULL. */
void *net_proc_address(const char *name, const char *symbol, void *real, int version, bool newer);
/* A function that this library has under another one's name: a stub. */
struct net_export {
    const char *symbol;
    const void *stub;
};
/* The driver's: doors.def, `S`. NULL: there is none of that name. */
const struct net_export *net_export_of(const char *symbol);
/* The engine has started: what was called before counts now. */
void net_begins(void);
/* All memory stays from now on; `why` is a constant, `line` what is said. False: some of it finds no room. */
bool net_stay(const char *why, const char *line);

/* ---- a function of another library, exported by this one ------------------------------------------------------------- */

#define NET_STRING_(x) #x
#define NET_STRING(x) NET_STRING_(x)
#if defined(__x86_64__)
#define NET_STUB(entry) "  endbr64\n  leaq " entry "(%rip), %r11\n  jmp net_common\n"
#define NET_IS_FUNCTION(sym) ".type " sym ", @function\n"
#elif defined(__aarch64__)
#define NET_STUB(entry) "  hint #34\n  adrp x16, " entry "\n  add x16, x16, :lo12:" entry "\n  b net_common\n"
#define NET_IS_FUNCTION(sym) ".type " sym ", %function\n"
#else
#error "net.h needs its few instructions for this processor"
#endif
/* Where stubs jump to; not called by name. */
extern const char net_common[] __attribute__((visibility("hidden")));
/* The exported function `sym`, and its entry; found by `find_`, refused by `refusal_`. */
#define NET_EXPORT(sym, why_, find_, refusal_, address_)                                                               \
    static struct net_entry net_entry_##sym __attribute__((used)) = {                                                  \
        .name = #sym, .why = why_, .find = find_, .refusal = (void *)refusal_, .address = address_, .taken = true};    \
    extern const char net_stub_##sym[] __attribute__((visibility("hidden")));                                          \
    __asm__(".text\n.balign 16\n.globl " #sym "\n" NET_IS_FUNCTION(#sym) "net_stub_" #sym ":\n" #sym ":\n"             \
            NET_STUB("net_entry_" #sym)                                                                                \
            ".size " #sym ", .-" #sym "\n");

#endif
