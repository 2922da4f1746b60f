/* stays.h: from some moment on memory stays where it is: something works on device memory that no call shows (a call newer than the table of doors,
 * a video engine). Nothing is evicted, recomputed or planned any more; what is allocated from then on is the driver's own, within the limit.
 *
 * Threads: eng_: any, without the engine's mutex; stays_begin(): under it. Errors: the driver's code for the program.
 */
#ifndef REMAT_POLICY_STAYS_H
#define REMAT_POLICY_STAYS_H

struct device;

/* Memory stays from now on, on devices that are set up later too; `why` is kept: a constant. Evicted memory comes back. CUDA_ERROR_OUT_OF_MEMORY: some of
 * it finds no room, one line says how much, and the call that works on memory unseen must not be made. A second call tries again. */
int eng_memory_stays(const char *why);
/* A device has just been set up: its memory stays too, if eng_memory_stays() has been called. */
void stays_begin(struct device *d);

#endif
