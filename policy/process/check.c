/* check.c: see check.h. */
#include "policy/process/check.h"

#include "policy/device.h"

bool check_failed(struct device *d, enum rt_doubt what, const char *condition, const char *file, int line)
{
    if (d->doubt >= what)
        return false;
    log_say(SAY_ERROR, "%s:%d: a check of remat's own failed: %s; please report this; %s", file, line, condition,
            what == DOUBT_PLAN ? "the plan is left for good, and memory is held by swapping"
                               : "nothing moves any more on this device, and new memory is the driver's");
    d->doubt = (uint8_t)what;
    d->mem.address_changes++; /* no launch counts as known by its bytes (plan/steady.c): the next launch goes the long way, to engine_turn() */
    return false;
}
