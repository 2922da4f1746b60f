#include "tracer/site.h"
#include "tracer/pyframe.h"

#include <dlfcn.h>
#include <stdbool.h>
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

static int (*walk_libunwind)(void **ips, int n); /* unw_backtrace(); NULL: not there */

const char *site_unwinder(const char **why)
{
    static bool tried;
    static char reason[200];
    if (!tried) {
        /* not RTLD_GLOBAL: its _Unwind_* must not be found by anybody else */
        void *h = THREAD_ENDS_TWICE ? NULL : dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
        if (h)
            *(void **)&walk_libunwind = dlsym(h, "unw_backtrace");
        if (!walk_libunwind) {
            const char *e = dlerror();
            snprintf(reason, sizeof reason, "%s", e ? e : "libunwind.so.8 has no unw_backtrace");
        }
        tried = true;
    }
    *why = walk_libunwind || THREAD_ENDS_TWICE ? NULL : reason;
    return walk_libunwind ? "libunwind" : "the compiler's unwinder";
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
    if (walk_libunwind)
        w->n = walk_libunwind(w->ip, MAX_FRAMES);
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

/* The frames outside this library, down to the interpreter. */
static size_t put_c(char *out, size_t room)
{
    struct walk w;
    Dl_info me, here;
    size_t n = 0;
    int shown = 0;
    if (!dladdr((void *)site_here, &me))
        return 0;
    walk(&w);
    for (int i = 0; i < w.n && shown < SHOWN; i++) {
        /* a return address may be the first byte of the next function */
        char *ip = (char *)w.ip[i] - 1;
        if (!w.ip[i] || !dladdr(ip, &here) || here.dli_fbase == me.dli_fbase)
            continue;
        if (pyframe_is_interpreter(ip))
            break;
        const char *sep = shown ? " < " : "";
        int k = here.dli_sname ? snprintf(out + n, room - n, "%s%s", sep, here.dli_sname)
                               : snprintf(out + n, room - n, "%s%s+0x%zx", sep, last_part(here.dli_fname), (size_t)(ip + 1 - (char *)here.dli_fbase));
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
