/* call_site.h: who made an op that was learnt. The stack is walked, and its frames are named, by the loader's word, which nobody asks with the mutex held
 * (tracer/loader.h): the op is recorded without, and named when its call gives the mutex back (engine_unlock), which is in the same thread and
 * still below the program's frames.
 *
 * Threads: call_site_owe() and call_site_name() under the engine's mutex, call_site_ask() without it. Errors: an op without a call site.
 */
#ifndef REMAT_POLICY_CALL_SITE_H
#define REMAT_POLICY_CALL_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;

struct call_site_owed {
    struct device *d; /* NULL: none */
    uint64_t learning; /* d->learnings then */
    uint32_t op;       /* of the record */
};
extern _Thread_local struct call_site_owed call_site_owed __attribute__((visibility("hidden"), tls_model("initial-exec")));
static inline bool call_site_is_owed(void) { return call_site_owed.d != NULL; }

/* Op i of the record is the call at hand. */
void call_site_owe(struct device *d, uint32_t i);
/* Walks the stack for it; the caller hands the string on. */
char *call_site_ask(void);
/* Takes the string over. Where learning has ended meanwhile the op stays without. */
void call_site_name(char *site);

#endif
