/* drawn.h: which seeds of a long loop a unit test runs: all of them in `make test-all` and by hand, in `make test` and `make check` as many as
 * are drawn from the commit's hash (tests/runner/run.py sets TEST_TIER and TEST_DRAW), so that all are met in time.
 */
#ifndef TESTS_UNIT_DRAWN_H
#define TESTS_UNIT_DRAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline bool drawn_all(void)
{
    const char *tier = getenv("TEST_TIER");
    return !tier || !strcmp(tier, "all");
}

/* Whether seed `item` is run, where about `most` of `of` are (a hash decides for each by itself). */
static inline bool drawn(uint64_t item, unsigned most, unsigned of)
{
    const char *draw = getenv("TEST_DRAW");
    uint64_t h = 0xcbf29ce484222325u ^ item * 0x9e3779b97f4a7c15u;
    for (; draw && *draw; draw++)
        h = (h ^ (unsigned char)*draw) * 0x100000001b3u;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return drawn_all() || (h >> 32) % of < most;
}

#endif
