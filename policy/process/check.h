/* check.h: assertions that stay in release. A failed check does not end the program: one line names the condition, and the device stops relying on
 * the memory or the plan that the condition was about.
 *
 *   rt_check(d, cond)       about memory: who owns a chunk, what a fence says. Afterwards nothing moves any more on the device: live buffers
 *                           are brought into memory and stay there, new memory is the driver's, launches run as they come (engine.c).
 *   rt_check_plan(d, cond)  about the plan or the record: the plan is left for good, and swapping holds the limit (campaign_stop).
 *
 * Both return whether the condition holds. The caller can then refuse the call at hand: a chunk that belongs to another slot must not be given to
 * this one, whatever becomes of the device afterwards:
 *     if (!rt_check(d, k->owner == CHUNK_FREE))
 *         return -EIO;
 *
 * The line is "FILE:LINE: CONDITION". Later failed checks of the device are silent, for they may be about the same damage
 * (but the first one about memory speaks even after one about the plan).
 * The device reacts at its next allocation or op (engine_turn), never in the middle of one.
 *
 * A condition that holds costs one comparison. Threads: under the engine's mutex. Errors: none.
 */
#ifndef REMAT_POLICY_PROCESS_CHECK_H
#define REMAT_POLICY_PROCESS_CHECK_H

#include <stdbool.h>

struct device;

/* Things that a device may not rely on any more (device.doubt); each value includes the ones before it. */
enum rt_doubt { DOUBT_NONE, DOUBT_PLAN, DOUBT_MEMORY };

/* Returns false. For the macros alone. */
__attribute__((cold)) bool check_failed(struct device *d, enum rt_doubt what, const char *condition, const char *file, int line);

static inline bool check_that(struct device *d, bool holds, enum rt_doubt what, const char *condition, const char *file, int line)
{
    return __builtin_expect(holds, true) || check_failed(d, what, condition, file, line);
}
#define rt_check(d, cond) check_that((d), (cond), DOUBT_MEMORY, #cond, __FILE__, __LINE__)
#define rt_check_plan(d, cond) check_that((d), (cond), DOUBT_PLAN, #cond, __FILE__, __LINE__)

#endif
