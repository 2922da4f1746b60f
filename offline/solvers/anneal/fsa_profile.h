/* fsa_profile: vector steps on a memory profile, an array of doubles that hold integers.
 * Threads: any. Errors: none. Both are exact whichever way the processor allows. */
#ifndef REMAT_OFFLINE_FSA_PROFILE_H
#define REMAT_OFFLINE_FSA_PROFILE_H

#include <stdint.h>

/* Adds bytes to use[0 .. n); returns the growth of sum(max(0, use - budget)). */
double fsa_profile_add(double *use, int32_t n, double bytes, double budget);
double fsa_profile_max(const double *use, int32_t n); /* 0 for n = 0 */

#endif
