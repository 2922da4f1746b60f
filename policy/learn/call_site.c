/* call_site.c: see call_site.h. */
#include "policy/learn/call_site.h"

#include "policy/iteration.h"
#include "tracer/site.h"

#include <stdlib.h>

_Thread_local struct call_site_owed call_site_owed;

void call_site_owe(struct device *d, uint32_t i) { call_site_owed = (struct call_site_owed){d, d->learnings, i}; }

char *call_site_ask(void)
{
    const char *why;
    char *site = site_here();
    if (site_unwinder(&why), why)
        log_once(SAY_INFO, "call sites are walked by the compiler's unwinder, which is part of remat: libunwind is not there (%s)", why);
    return site;
}

void call_site_name(char *site)
{
    const struct call_site_owed of = call_site_owed;
    call_site_owed.d = NULL;
    if (of.d && of.d->mode == MODE_PROBE && of.d->learnings == of.learning && of.op < of.d->ex->learnt.rec.n_ops)
        (void)record_site(&of.d->ex->learnt.rec, of.op, site); /* without memory the op has none */
    else
        free(site);
}
