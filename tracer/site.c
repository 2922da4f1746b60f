/* The compiler's own unwinder, linked static: Debian's libunwind.a cannot stand in a shared library. */
#include "tracer/site.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

enum { MAX_FRAMES = 40, SHOWN = 4 };

struct walk {
    const void *self; /* this library's base */
    char text[512];
    size_t n;
    int frames, shown;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *arg)
{
    struct walk *w = arg;
    Dl_info here;
    void *ip = (void *)_Unwind_GetIP(c);
    if (w->frames++ == MAX_FRAMES || w->shown == SHOWN)
        return _URC_END_OF_STACK;
    if (!ip || !dladdr(ip, &here) || here.dli_fbase == w->self)
        return _URC_NO_REASON;
    const char *sep = w->shown ? " < " : "";
    size_t room = sizeof w->text - w->n;
    int k = here.dli_sname ? snprintf(w->text + w->n, room, "%s%s", sep, here.dli_sname)
                           : snprintf(w->text + w->n, room, "%s%s+0x%zx", sep, last_part(here.dli_fname),
                                      (size_t)((char *)ip - (char *)here.dli_fbase));
    if (k < 0 || (size_t)k >= room) {
        w->text[w->n] = 0;
        return _URC_END_OF_STACK;
    }
    w->n += (size_t)k;
    w->shown++;
    return _URC_NO_REASON;
}

char *site_here(void)
{
    struct walk w = {0};
    Dl_info me;
    if (!dladdr((void *)site_here, &me))
        return NULL;
    w.self = me.dli_fbase;
    _Unwind_Backtrace(frame, &w);
    return w.n ? strdup(w.text) : NULL;
}
