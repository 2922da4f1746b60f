/* net.h: the net under the table of doors. A call that has no row in hooks.def, and no row in doors.def that calls it harmless, may do anything to memory:
 * its first use is reported once, by name, and memory stays where it is from then on (policy/stays.h). A new runtime library asks for all names at its
 * start and calls few, so asking tells nothing: the answer is a stub, which notes the call and jumps to the real function with the arguments as they came.
 *
 *   cuMemAlloc_v3     a newer variant of a call that has a door
 *   cuMemFresh        a call of an unknown name
 *   cuGLMapBufferObject_v2   a call that makes memory stay by its row in doors.def
 *
 * Threads: any. No allocation and no lock of ours where names are asked for. Errors: a noted call answers in its own way; where memory that must stay finds no
 * room, the call is not made, and the answer is that there is no memory.
 */
#ifndef REMAT_PRELOAD_NET_H
#define REMAT_PRELOAD_NET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda_abi.h"

/* A function behind a stub. */
enum { NET_ENTRY_BYTES = 128 /* the step between two stubs' entries, in net.c */, NET_NAME_MOST = 72 };
struct net_entry {
    _Atomic(void *) target;          /* the real function; NULL: not looked for yet */
    void *(*find)(const char *name); /* finds `target`; NULL: a call without `target` fails */
    const char *why;                 /* what the call does to memory; NULL: unknown, the call is newer than the tables */
    void *refusal;                   /* called instead of `target` where memory that must stay finds no room */
    atomic_bool told, waits, taken;
    struct net_entry *next; /* in the list of entries with `waits` set */
    uint8_t address;                 /* number, from 1 on, of the argument that must be a device address for the call to matter; 0: the call always matters */
    char name[NET_NAME_MOST];
} __attribute__((aligned(NET_ENTRY_BYTES)));
_Static_assert(sizeof(struct net_entry) == NET_ENTRY_BYTES, "as the stubs take it");

/* The answer of dlsym for a function `real` of the driver's or of NCCL's that has no row: `real` itself, or its stub. */
void *net_symbol(const char *symbol, void *real);
/* The answer of cuGetProcAddress where the driver's own is `real`, which has no row. `symbol`: the exported name of `real`, or NULL. `newer`: as proc_address_is_newer() says. */
void *net_proc_address(const char *name, const char *symbol, void *real, int version, bool newer);
/* A stub that this library exports under the name of another library's function. */
struct net_export {
    const char *symbol;
    const void *stub;
};
/* The export of a driver call that makes memory stay (doors.def, `S`); NULL: none of that name. */
const struct net_export *net_export_of(const char *symbol);
/* The engine has started: counts the calls that were made before. */
void net_begins(void);
/* Makes all memory stay from here on; `why` is a constant, `line` begins the message (NULL: none). False: some memory finds no room. */
bool net_stay(const char *why, const char *line);

/* ---- exporting a function of another library's ---------------------------------------------------------------------- */

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
/* The code that stubs jump to; not called by name. */
extern const char net_common[] __attribute__((visibility("hidden")));
/* Defines the exported function `sym` and its entry; `find_` finds the real function, `refusal_` is called instead where there is no room. */
#define NET_EXPORT(sym, why_, find_, refusal_, address_)                                                               \
    static struct net_entry net_entry_##sym __attribute__((used)) = {                                                  \
        .name = #sym, .why = why_, .find = find_, .refusal = (void *)refusal_, .address = address_, .taken = true};    \
    extern const char net_stub_##sym[] __attribute__((visibility("hidden")));                                          \
    __asm__(".text\n.balign 16\n.globl " #sym "\n" NET_IS_FUNCTION(#sym) "net_stub_" #sym ":\n" #sym ":\n"             \
            NET_STUB("net_entry_" #sym)                                                                                \
            ".size " #sym ", .-" #sym "\n");

#endif
