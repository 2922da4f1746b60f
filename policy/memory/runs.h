/* runs.h: which units of a page are free, and the first place where n of them lie side by side.
 *
 * A word of 64 bits stands for 64 units (1: free). Above the words lies a complete binary tree; a node knows of its part
 *     first   free units at its begin,   last   free units at its end,   most   its longest run of free units,
 *     most(node) = max(most(left), most(right), last(left) + first(right)).
 * So both verbs look at one path through the tree: O(log units), and a run of n units costs n / 64 words besides.
 *
 * Threads: none of its own. Errors: NULL where memory is short.
 */
#ifndef REMAT_POLICY_MEMORY_RUNS_H
#define REMAT_POLICY_MEMORY_RUNS_H

#include <stdbool.h>
#include <stdint.h>

struct runs;

/* `units` units (>= 1), all free. The caller frees the result with free(). */
struct runs *runs_new(uint32_t units);
/* The length of the longest run of free units. */
uint32_t runs_longest(const struct runs *r);
/* Where the first run of n >= 1 free units begins. Such a run must exist: n <= runs_longest(r). */
uint32_t runs_find(const struct runs *r, uint32_t n);
/* Units from .. from + n - 1 are free from now on, or are not. */
void runs_set(struct runs *r, uint32_t from, uint32_t n, bool is_free);

#endif
