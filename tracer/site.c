#include "tracer/site.h"
#include "tracer/loader.h"
#include "tracer/pyframe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

/* Both libunwind and ThreadSanitizer put off their work at a thread's end until all other libraries have done theirs. libunwind's work then
 * comes last, and takes a mutex after ThreadSanitizer has left the thread: the thread crashes. */
#ifdef __SANITIZE_THREAD__
enum { THREAD_ENDS_TWICE = 1 };
#else
enum { THREAD_ENDS_TWICE = 0 };
#endif

enum { MAX_FRAMES = 64, SHOWN = 4, C_BYTES = 2048, PYTHON_BYTES = 4096 };

/* ---- walking -------------------------------------------------------------------------------------------------------------- */

/* The unwinder, found once, or by two threads at once with the same result: neither thread may wait for the other, which asks the loader. */
struct unwinder {
    int (*walk)(void **ips, int n); /* libunwind's unw_backtrace(); NULL: not found */
    char reason[200];               /* why `walk` is NULL */
};
static _Atomic(const struct unwinder *) unwinder;

static const struct unwinder *find_unwinder(void)
{
    static const struct unwinder nothing = {NULL, "no memory"};
    const struct unwinder *known = atomic_load(&unwinder);
    struct unwinder *u = known ? NULL : calloc(1, sizeof *u);
    if (!u)
        return known ? known : &nothing;
    /* not RTLD_GLOBAL: no other library may find libunwind's _Unwind_* */
    void *h = THREAD_ENDS_TWICE ? NULL : loader_open("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
    if (h)
        *(void **)&u->walk = loader_symbol(h, "unw_backtrace");
    if (!u->walk) {
        const char *e = loader_error();
        snprintf(u->reason, sizeof u->reason, "%s", e ? e : "libunwind.so.8 has no unw_backtrace");
    }
    if (atomic_compare_exchange_strong(&unwinder, &known, u))
        return u;
    free(u);
    return known;
}

const char *site_unwinder(const char **why)
{
    const struct unwinder *u = find_unwinder();
    *why = u->walk || THREAD_ENDS_TWICE ? NULL : u->reason;
    return u->walk ? "libunwind" : "the compiler's unwinder";
}

struct walk {
    void *ip[MAX_FRAMES];
    int n;
};

static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *arg)
{
    struct walk *w = arg;
    if (w->n == MAX_FRAMES)
        return _URC_END_OF_STACK;
    w->ip[w->n++] = (void *)_Unwind_GetIP(c);
    return _URC_NO_REASON;
}

static void walk(struct walk *w)
{
    const struct unwinder *u = find_unwinder();
    w->n = 0;
    (void)loader_asks("a walk up the stack");
    if (u->walk)
        w->n = u->walk(w->ip, MAX_FRAMES);
    if (w->n <= 0) {
        w->n = 0;
        _Unwind_Backtrace(frame, w);
    }
}

/* ---- naming --------------------------------------------------------------------------------------------------------------- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Names of frames. For an answer the loader walks through all symbols of a library, which would take a seventh of the time in which an iteration of
 * PyTorch is learnt, and the same few frames come again and again: the answers are kept by address, until a library is unloaded. */
enum frame_kind { FRAME_PASSED_OVER, FRAME_NAMED, FRAME_OF_INTERPRETER };

struct frame_name {
    const char *ip; /* NULL: an empty entry */
    char *name;     /* owned, with FRAME_NAMED; else NULL */
    enum frame_kind kind;
};

enum { MEMO_PLACES = 1024 };
static struct {
    pthread_mutex_t lock; /* never held while the loader is asked */
    struct frame_name at[MEMO_PLACES];
    unsigned long long gone; /* how many libraries had been unloaded when the names were asked for */
} memo = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int count_gone(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    *(unsigned long long *)arg = info->dlpi_subs;
    return 1;
}

static struct frame_name ask_loader(const char *ip)
{
    struct frame_name f = {ip, NULL, FRAME_PASSED_OVER};
    char text[C_BYTES];
    Dl_info me, here;
    if (!loader_address((void *)site_here, &me) || !loader_address(ip, &here) || here.dli_fbase == me.dli_fbase)
        return f;
    f.kind = pyframe_is_interpreter(ip) ? FRAME_OF_INTERPRETER : FRAME_NAMED;
    if (f.kind == FRAME_OF_INTERPRETER)
        return f;
    if (here.dli_sname)
        snprintf(text, sizeof text, "%s", here.dli_sname);
    else
        snprintf(text, sizeof text, "%s+0x%zx", last_part(here.dli_fname), (size_t)(ip + 1 - (char *)here.dli_fbase));
    f.name = strdup(text);
    return f;
}

static struct frame_name *place_of(const char *ip) { return &memo.at[((uintptr_t)ip * 0x9e3779b97f4a7c15u >> 32) % MEMO_PLACES]; }

/* The name of the frame at `ip`, while `gone` libraries have been unloaded. The caller frees .name. */
static struct frame_name name_of(const char *ip, unsigned long long gone)
{
    loader_lock(&memo.lock);
    struct frame_name *f = place_of(ip), named = *f;
    const bool known = memo.gone == gone && f->ip == ip;
    named.name = known && f->name ? strdup(f->name) : NULL;
    loader_unlock(&memo.lock);
    if (known)
        return named;
    named = ask_loader(ip);
    char *copy = named.name ? strdup(named.name) : NULL;
    loader_lock(&memo.lock);
    f = place_of(ip);
    if (memo.gone == gone) {
        free(f->name);
        *f = (struct frame_name){ip, copy, named.kind};
        copy = NULL;
    }
    loader_unlock(&memo.lock);
    free(copy);
    return named;
}

/* Returns how many libraries have been unloaded; forgets names that were asked for before the latest one was. */
static unsigned long long memo_check(void)
{
    unsigned long long gone = 0;
    loader_walk(count_gone, &gone);
    loader_lock(&memo.lock);
    for (int i = 0; i < MEMO_PLACES && gone > memo.gone; i++) {
        free(memo.at[i].name);
        memo.at[i] = (struct frame_name){0};
    }
    memo.gone = gone > memo.gone ? gone : memo.gone;
    loader_unlock(&memo.lock);
    return gone;
}

/* Writes the frames outside this library, down to the interpreter. Returns the bytes written. */
static size_t put_c(char *out, size_t room)
{
    struct walk w;
    size_t n = 0;
    int shown = 0;
    walk(&w);
    const unsigned long long gone = memo_check();
    for (int i = 0; i < w.n && shown < SHOWN; i++) {
        if (!w.ip[i])
            continue;
        /* a return address may be the first byte of the next function */
        const struct frame_name f = name_of((char *)w.ip[i] - 1, gone);
        if (f.kind == FRAME_PASSED_OVER)
            continue;
        int k = f.kind == FRAME_NAMED && f.name ? snprintf(out + n, room - n, "%s%s", shown ? " < " : "", f.name) : -1;
        free(f.name);
        if (k < 0 || (size_t)k >= room - n)
            break;
        n += (size_t)k;
        shown++;
    }
    out[n] = 0;
    return n;
}

char *site_here(void)
{
    char text[C_BYTES + 8 + PYTHON_BYTES];
    size_t n = put_c(text, C_BYTES);
    size_t python = pyframe_lines(text + n + (n ? 3 : 0), PYTHON_BYTES);
    if (n && python) {
        memcpy(text + n, " < ", 3);
        python += 3;
    }
    text[n + python] = 0;
    return n + python ? strdup(text) : NULL;
}
