/* current.h: the context that is current to the calling thread, and its device. Every launch and allocation needs both; the driver is not asked each time.
 *
 * The doors tell of each call that makes another context current (preload/hook_context.c). A thread relies on the doors once the driver's own
 * answers have agreed with them CURRENT_PROVEN times in this thread, and until doors and driver differ for the first time: a runtime library may know a way
 * that has no door. From then on the driver is asked each time, in every thread. At each audit of memory one answer is compared again (current_compare).
 *
 * Where the doors cannot tell (which context lies below a popped one; a call that failed) the context is unknown, and asked for once. When a context
 * ends, a new era begins: the contexts that threads know are of the era before, so every thread asks once.
 *
 * Threads: any; no lock. The known context is the thread's own, the era the process's. Errors: false, or the driver's code.
 */
#ifndef REMAT_POLICY_CURRENT_H
#define REMAT_POLICY_CURRENT_H

#include "policy/driver.h"

#include <stdatomic.h>

enum { CURRENT_PROVEN = 4096 };

struct current {
    uint64_t era;    /* era in which ctx was current; CURRENT_UNKNOWN: nothing is known */
    CUcontext ctx;
    CUdevice dev;    /* ctx's device; -1: not asked for yet */
    uint32_t agreed; /* answers of the driver that were the known context; CURRENT_PROVEN at most */
};
#define CURRENT_UNKNOWN 0
extern _Thread_local struct current current __attribute__((visibility("hidden"), tls_model("initial-exec")));
/* CURRENT_ASKED: the driver is asked each time, whatever is known. */
#define CURRENT_ASKED UINT64_MAX
extern _Atomic uint64_t current_era __attribute__((visibility("hidden")));

static inline bool current_is_known(void)
{
    return current.agreed == CURRENT_PROVEN && current.era == atomic_load_explicit(&current_era, memory_order_acquire);
}

/* The context that is current, NULL where none is. False: the driver does not say. */
bool current_ask(const struct drv *drv, CUcontext *ctx);
static inline bool current_context(const struct drv *drv, CUcontext *ctx)
{
    if (!__builtin_expect(current_is_known(), true))
        return current_ask(drv, ctx);
    *ctx = current.ctx;
    return true;
}
/* The current context's device. The driver's code; without a context the driver refuses. */
int current_device_drv(const struct drv *drv, CUdevice *dev);
/* Makes ctx current, as a call of remat's own. False: the driver refuses, and the current context stays. */
bool current_set(const struct drv *drv, CUcontext ctx);
/* The driver's next answer is compared, though enough answers have agreed. */
void current_compare(void);

/* ---- the doors tell ---------------------------------------------------------------------------------------------- */

/* A call of the program's has made this context current; NULL: one that only the driver knows, or none. */
void current_is(CUcontext ctx);
/* A context has ended. */
void current_era_ends(void);
/* A call of the program's may have made another context current, unknown to the doors: the driver is asked each time from now on. */
void current_asks_always(void);

#endif
