/* door.h: what every hook shares: the open/shut state, and the macro that turns a row of hooks.def into an exported function.
 *
 * Threads: any. The state is per thread (door_depth) or write-once. Errors: CUresult codes of the driver or the engine;
 * the doors add none, but for two cases: a cu* entry called although the process has no driver answers
 * CUDA_ERROR_NOT_INITIALIZED, and one that this driver lacks CUDA_ERROR_NOT_SUPPORTED; a forked child's cuMemFreeAsync
 * answers CUDA_SUCCESS (life.c).
 */
#ifndef REMAT_PRELOAD_DOOR_H
#define REMAT_PRELOAD_DOOR_H

#include "policy/active.h"
#include "policy/engine.h"
#include "preload/life.h"
#include "preload/provider.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define DOOR_PUBLIC __attribute__((visibility("default")))
#define DOOR_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- state ---------------------------------------------------------------------------------------------------------- */

/* How far this thread is inside remat or inside a call the doors made. */
enum door_depth {
    DOOR_OPEN,  /* the program's own calls */
    DOOR_QUIET, /* inside a collective: its launches and copies pass, its allocations are counted */
    DOOR_SHUT   /* inside the engine or the driver: everything passes */
};
extern _Thread_local int door_depth __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Bits set while hooks must take the slow path first. */
enum { WATCH_UNRESOLVED = 1, WATCH_UNSTARTED = 2, WATCH_COUNT = 4, WATCH_LOADED = 8 /* libraries may have come (bypass.h) */ };
extern atomic_uint door_watch;

/* Returns the depth for door_leave(), or -1: pass the call through. In steady state five loads, no store to shared memory. */
static inline int door_enter(enum hook_id id, int max_depth)
{
    int depth = door_depth;
    if (DOOR_UNLIKELY(atomic_load_explicit(&door_watch, memory_order_acquire)))
        life_slow(id);
    if (depth > max_depth || !eng_active())
        return -1;
    door_depth = DOOR_SHUT;
    return depth;
}

/* For hooks that work whether or not the engine is active: counts the call, and finds the real entry points. */
static inline void door_enter_any(enum hook_id id)
{
    if (DOOR_UNLIKELY(atomic_load_explicit(&door_watch, memory_order_acquire)))
        life_slow(id);
}

/* Clears up to `most` bytes of the stack below the caller, where the engine and the driver have left data. A program may hand over a struct that it has not filled (PyTorch's
 * lists of tensors lie on the stack, 4 to 32 KiB, and are copied whole): the unfilled bytes are leftovers of earlier calls. Remat's leftovers are addresses of tensors,
 * different ones each time, which no reader of arguments can tell from operands. A launch under a plan, without replays or copies, leaves little. */
void door_sweep_stack(size_t most);
enum { SWEEP_ALL = 64 << 10, SWEEP_OWN = 8 << 10 };

static inline void door_leave(int depth, size_t sweep)
{
    door_depth = depth;
    if (depth == DOOR_OPEN && atomic_load_explicit(&eng_stack_matters, memory_order_relaxed)) {
        door_sweep_stack(eng_stack_used == ENG_STACK_LITTLE ? SWEEP_OWN : sweep);
        eng_stack_used = ENG_STACK_LITTLE;
    }
}

/* True with REMAT_DISABLE=1; where the system may set maxima, the engine decides instead. No lock, no allocation: dlsym calls it. */
bool door_disabled(void);
/* Counters of REMAT_LOG=doors: hook `id` was called; hook `id` was handed out by `route`; `route` was asked for a name. */
void door_note_called(enum hook_id id);
enum door_route { ROUTE_DLSYM, ROUTE_PROC_ADDRESS, DOOR_ROUTES };
void door_note_given(enum hook_id id, enum door_route route);
void door_note_asked(enum door_route route);
void door_print_counters(void);

/* In a hook: a result of `call` that is not 0, the engine's refusal, is the hook's answer. */
#define DOOR_TRY(call)                                                                                                 \
    do {                                                                                                               \
        int refused_ = (call);                                                                                         \
        if (refused_)                                                                                                  \
            return refused_;                                                                                           \
    } while (0)

/* ---- a row becomes a function ------------------------------------------------------------------------------------------ */

#define DOOR_UNWRAP(...) __VA_ARGS__
#define DOOR_CALL_PLAIN(body, sym, ...) body(door_real.sym, __VA_ARGS__)
#define DOOR_CALL_LEGACY(body, sym, ...) body(door_real.sym, CU_STREAM_LEGACY, __VA_ARGS__)
#define DOOR_CALL_THREAD(body, sym, ...) body(door_real.sym, CU_STREAM_PER_THREAD, __VA_ARGS__)

#define DOOR_ALIAS(sym)                                                                                                \
    extern __typeof__(sym) hook_##sym __attribute__((alias(#sym), visibility("hidden")));

#define DOOR_EXPORT_AT(max_depth, sweep, sym, mode, body, params, args)                                                \
    DOOR_PUBLIC CUresult sym params                                                                                    \
    {                                                                                                                  \
        int depth_ = door_enter(HOOK_##sym, max_depth);                                                                \
        if (depth_ < 0)                                                                                                \
            return door_real.sym args;                                                                                 \
        int result_ = DOOR_CALL_##mode(body, sym, DOOR_UNWRAP args);                                                   \
        door_leave(depth_, sweep);                                                                                     \
        return (CUresult)result_;                                                                                      \
    }                                                                                                                  \
    DOOR_ALIAS(sym)

/* For HOOKS_*(DOOR_EXPORT): open for the program's own calls only. */
#define DOOR_EXPORT(sym, base, since, mode, body, params, args)                                                        \
    DOOR_EXPORT_AT(DOOR_OPEN, SWEEP_ALL, sym, mode, body, params, args)
/* DOOR_EXPORT for calls that come twice a launch and mostly do without the driver: less of the stack is swept. */
#define DOOR_EXPORT_LIGHT(sym, base, since, mode, body, params, args)                                                  \
    DOOR_EXPORT_AT(DOOR_OPEN, SWEEP_OWN, sym, mode, body, params, args)
/* For calls whose memory counts, open inside collectives too. */
#define DOOR_EXPORT_COUNTED(sym, base, since, mode, body, params, args)                                                \
    DOOR_EXPORT_AT(DOOR_QUIET, SWEEP_ALL, sym, mode, body, params, args)

/* The stream the engine is told: an explicit handle for stream 0. */
static inline CUstream door_stream(CUstream s, CUstream null_stream)
{
    return s ? s : null_stream;
}

/* The touch of an op at which the stream may stand still until the host does something in a later call: a host function, say. */
static const struct eng_touch door_may_wait = {.mode = ENG_WAITS};

/* ---- issuing a call from eng_other() ----------------------------------------------------------------------------------- */

/* ISSUE<n>(name, sym, types...): struct call_NAME holds the real pointer `fn` and the arguments a, b, c, ...; issue_NAME(&call) makes the call. `sym`: any variant of the call
 * with this type. */
#define ISSUE1(name, sym, A)                                                                                           \
    struct call_##name { __typeof__(&sym) fn; A a; };                                                                  \
    static int issue_##name(void *p) { struct call_##name *c = p; return (int)c->fn(c->a); }
#define ISSUE2(name, sym, A, B)                                                                                        \
    struct call_##name { __typeof__(&sym) fn; A a; B b; };                                                             \
    static int issue_##name(void *p) { struct call_##name *c = p; return (int)c->fn(c->a, c->b); }
#define ISSUE3(name, sym, A, B, C)                                                                                     \
    struct call_##name { __typeof__(&sym) fn; A a; B b; C c; };                                                        \
    static int issue_##name(void *p) { struct call_##name *c = p; return (int)c->fn(c->a, c->b, c->c); }
#define ISSUE4(name, sym, A, B, C, D)                                                                                  \
    struct call_##name { __typeof__(&sym) fn; A a; B b; C c; D d; };                                                   \
    static int issue_##name(void *p) { struct call_##name *c = p; return (int)c->fn(c->a, c->b, c->c, c->d); }
#define ISSUE5(name, sym, A, B, C, D, E)                                                                               \
    struct call_##name { __typeof__(&sym) fn; A a; B b; C c; D d; E e; };                                              \
    static int issue_##name(void *p) { struct call_##name *c = p; return (int)c->fn(c->a, c->b, c->c, c->d, c->e); }
#define ISSUE6(name, sym, A, B, C, D, E, F)                                                                            \
    struct call_##name { __typeof__(&sym) fn; A a; B b; C c; D d; E e; F f; };                                         \
    static int issue_##name(void *p)                                                                                   \
    { struct call_##name *c = p; return (int)c->fn(c->a, c->b, c->c, c->d, c->e, c->f); }
#define ISSUE8(name, sym, A, B, C, D, E, F, G, I)                                                                      \
    struct call_##name { __typeof__(&sym) fn; A a; B b; C c; D d; E e; F f; G g; I i; };                               \
    static int issue_##name(void *p)                                                                                   \
    { struct call_##name *c = p; return (int)c->fn(c->a, c->b, c->c, c->d, c->e, c->f, c->g, c->i); }
#define ISSUE9(name, sym, A, B, C, D, E, F, G, I, J)                                                                   \
    struct call_##name { __typeof__(&sym) fn; A a; B b; C c; D d; E e; F f; G g; I i; J j; };                          \
    static int issue_##name(void *p)                                                                                   \
    { struct call_##name *c = p; return (int)c->fn(c->a, c->b, c->c, c->d, c->e, c->f, c->g, c->i, c->j); }

#endif
