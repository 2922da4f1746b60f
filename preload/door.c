/* door.c: the state behind door.h: how deep a thread is, whether there is anything to do, counters. */
#include "preload/door.h"

#include "policy/life.h"
#include "policy/process/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Thread_local int door_depth;

/* ---- the program's stack ------------------------------------------------------------------------------------------------ */

/* SPARED: bytes at a stack's end that are never cleared, since a signal handler needs room too. */
enum { SPARED = 8 << 10, LINE = 64 };

static _Thread_local uintptr_t stack_low, stack_high; /* the bounds of this thread's stack; stack_high 0: not asked yet */

static void find_stack(void)
{
    pthread_attr_t a;
    void *low = NULL;
    size_t bytes = 0;
    stack_low = stack_high = 1; /* unknown: no address lies between the two */
    if (pthread_getattr_np(pthread_self(), &a))
        return;
    if (!pthread_attr_getstack(&a, &low, &bytes)) {
        stack_low = (uintptr_t)low;
        stack_high = stack_low + bytes;
    }
    pthread_attr_destroy(&a);
}

/* No library function clears here: a sanitizer would note every byte of this stack, which holds nothing alive. */
__attribute__((no_sanitize("address", "thread"))) static inline void clear(char *p, size_t n)
{
#ifdef __x86_64__
    __asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(0) : "memory");
#else
    for (size_t i = 0; i < n; i += LINE) {
        __builtin_memset(p + i, 0, LINE);
        __asm__ volatile("" : : "r"(p) : "memory"); /* makes the compiler keep the stores, which no code here reads */
    }
#endif
}

__attribute__((noinline, no_sanitize("address", "thread"))) void door_sweep_stack(size_t most)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!stack_high)
        find_stack();
    if (here < stack_low + SPARED || here >= stack_high)
        return; /* no room, or a coroutine's stack, whose end is unknown */
    const size_t room = here - stack_low - SPARED, n = (room < most ? room : most) & ~(size_t)(LINE - 1);
    clear(__builtin_alloca(n + LINE), n);
}

/* ---- is there anything to do? ------------------------------------------------------------------------------------------- */

atomic_uint door_watch = WATCH_UNRESOLVED | WATCH_UNSTARTED;

bool door_disabled(void)
{
    static atomic_int known; /* 0: not read yet, 1: open, 2: disabled */
    int k = atomic_load_explicit(&known, memory_order_relaxed);
    if (k == 0) {
        const char *v = getenv("REMAT_DISABLE");
        /* where the system sets maxima, the engine decides whether a process may be left alone */
        k = v && *v && strcmp(v, "0") != 0 && !eng_may_hold() ? 2 : 1;
        atomic_store_explicit(&known, k, memory_order_relaxed);
    }
    return k == 2;
}

/* ---- counters (REMAT_LOG=doors) -------------------------------------------------------------------------------------------- */

static atomic_ullong called[HOOK_COUNT], given[DOOR_ROUTES][HOOK_COUNT], asked[DOOR_ROUTES];

static bool counting(void)
{
    return atomic_load_explicit(&door_watch, memory_order_relaxed) & WATCH_COUNT;
}

void door_note_called(enum hook_id id)
{
    if (counting())
        atomic_fetch_add_explicit(&called[id], 1, memory_order_relaxed);
}

void door_note_given(enum hook_id id, enum door_route route)
{
    if (counting())
        atomic_fetch_add_explicit(&given[route][id], 1, memory_order_relaxed);
}

void door_note_asked(enum door_route route)
{
    if (counting())
        atomic_fetch_add_explicit(&asked[route], 1, memory_order_relaxed);
}

void door_print_counters(void)
{
    if (!counting())
        return;
    for (int i = 0; i < HOOK_COUNT; i++) {
        unsigned long long n = called[i], d = given[ROUTE_DLSYM][i], g = given[ROUTE_PROC_ADDRESS][i];
        if (n || d || g)
            log_line(0, 1, "door %s: %llu calls, given %llu times by dlsym, %llu by cuGetProcAddress",
                     door_rows[i].symbol, n, d, g);
    }
    log_line(0, 1, "doors: dlsym was asked %llu times for a name of ours, cuGetProcAddress %llu times for any name",
             (unsigned long long)asked[ROUTE_DLSYM], (unsigned long long)asked[ROUTE_PROC_ADDRESS]);
}
