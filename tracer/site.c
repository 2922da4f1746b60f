#include "tracer/site.h"
#include "tracer/pyframe.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

/* Both libunwind and ThreadSanitizer put off what they do at the end of a thread until all others have done theirs; libunwind's comes
 * last then, and takes a mutex, whose watcher is gone: the thread crashes. */
#ifdef __SANITIZE_THREAD__
enum { THREAD_ENDS_TWICE = 1 };
#else
enum { THREAD_ENDS_TWICE = 0 };
#endif

enum { MAX_FRAMES = 64, SHOWN = 4, C_BYTES = 2048, PYTHON_BYTES = 4096 };

/* ---- walking -------------------------------------------------------------------------------------------------------------- */

/* Found once. */
static struct {
    pthread_once_t once;
    int (*walk)(void **ips, int n); /* libunwind's unw_backtrace(); NULL: not there */
    char reason[200];               /* why not */
} unwinder = {.once = PTHREAD_ONCE_INIT};

static void find_unwinder(void)
{
    /* not RTLD_GLOBAL: its _Unwind_* must not be found by anybody else */
    void *h = THREAD_ENDS_TWICE ? NULL : dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
    if (h)
        *(void **)&unwinder.walk = dlsym(h, "unw_backtrace");
    if (!unwinder.walk) {
        const char *e = dlerror();
        snprintf(unwinder.reason, sizeof unwinder.reason, "%s", e ? e : "libunwind.so.8 has no unw_backtrace");
    }
}

const char *site_unwinder(const char **why)
{
    pthread_once(&unwinder.once, find_unwinder);
    *why = unwinder.walk || THREAD_ENDS_TWICE ? NULL : unwinder.reason;
    return unwinder.walk ? "libunwind" : "the compiler's unwinder";
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
    const char *why;
    w->n = 0;
    site_unwinder(&why);
    if (unwinder.walk)
        w->n = unwinder.walk(w->ip, MAX_FRAMES);
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

/* What a frame is called. For an answer the loader walks through all symbols of a library, which was a seventh of the time in which PyTorch
 * is learnt, and the same few frames come again and again: so what it said is kept by address, until a library goes. */
enum frame_kind { FRAME_PASSED_OVER, FRAME_NAMED, FRAME_OF_INTERPRETER };

struct frame_name {
    const char *ip; /* NULL: an empty place */
    char *name;     /* FRAME_NAMED: owned */
    enum frame_kind kind;
};

enum { MEMO_PLACES = 1024 };
static struct {
    pthread_mutex_t lock;
    struct frame_name at[MEMO_PLACES];
    unsigned long long gone; /* libraries that had gone when the names were asked for */
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
    if (!dladdr((void *)site_here, &me) || !dladdr(ip, &here) || here.dli_fbase == me.dli_fbase)
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

/* With memo.lock held; the name is good as long. */
static const struct frame_name *name_of_locked(const char *ip)
{
    struct frame_name *f = &memo.at[((uintptr_t)ip * 0x9e3779b97f4a7c15u >> 32) % MEMO_PLACES];
    if (f->ip != ip) {
        free(f->name);
        *f = ask_loader(ip);
    }
    return f;
}

static void memo_check_locked(void)
{
    unsigned long long gone = 0;
    dl_iterate_phdr(count_gone, &gone);
    if (gone == memo.gone)
        return;
    for (int i = 0; i < MEMO_PLACES; i++) {
        free(memo.at[i].name);
        memo.at[i] = (struct frame_name){0};
    }
    memo.gone = gone;
}

/* The frames outside this library, down to the interpreter. */
static size_t put_c(char *out, size_t room)
{
    struct walk w;
    size_t n = 0;
    int shown = 0;
    walk(&w);
    pthread_mutex_lock(&memo.lock);
    memo_check_locked();
    for (int i = 0; i < w.n && shown < SHOWN; i++) {
        /* a return address may be the first byte of the next function */
        const struct frame_name *f = w.ip[i] ? name_of_locked((char *)w.ip[i] - 1) : NULL;
        if (!f || f->kind == FRAME_PASSED_OVER)
            continue;
        if (f->kind == FRAME_OF_INTERPRETER)
            break;
        int k = f->name ? snprintf(out + n, room - n, "%s%s", shown ? " < " : "", f->name) : -1;
        if (k < 0 || (size_t)k >= room - n)
            break;
        n += (size_t)k;
        shown++;
    }
    pthread_mutex_unlock(&memo.lock);
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
