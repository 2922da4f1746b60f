#include "policy/memory/in_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct range {
    uint64_t at, bytes;
};

struct in_place_span in_place_span;

static struct range *ranges; /* by address; none reaches into the next */
static uint32_t n_ranges, cap_ranges;

/* The first range that ends after p. */
static uint32_t find(uint64_t p)
{
    uint32_t a = 0, b = n_ranges;
    while (a < b) {
        const uint32_t m = (a + b) / 2;
        if (ranges[m].at + ranges[m].bytes <= p)
            a = m + 1;
        else
            b = m;
    }
    return a;
}

static void take_out(uint32_t from, uint32_t to)
{
    memmove(ranges + from, ranges + to, (n_ranges - to) * sizeof *ranges);
    n_ranges -= to - from;
}

static void note_span(void)
{
    const struct range *last = ranges + n_ranges - 1;
    in_place_span = n_ranges ? (struct in_place_span){ranges->at, last->at + last->bytes - ranges->at} : (struct in_place_span){0, 0};
}

int in_place_add(uint64_t at, uint64_t bytes)
{
    if (!bytes || bytes > UINT64_MAX - at)
        return 0;
    if (n_ranges == cap_ranges) {
        const uint32_t cap = cap_ranges ? 2 * cap_ranges : 64;
        struct range *p = realloc(ranges, cap * sizeof *p);
        if (!p)
            return -ENOMEM;
        ranges = p;
        cap_ranges = cap;
    }
    const uint32_t i = find(at);
    uint32_t end = i;
    while (end < n_ranges && ranges[end].at < at + bytes)
        end++;
    take_out(i, end);
    memmove(ranges + i + 1, ranges + i, (n_ranges - i) * sizeof *ranges);
    ranges[i] = (struct range){at, bytes};
    n_ranges++;
    note_span();
    return 0;
}

uint64_t in_place_remove(uint64_t at)
{
    const uint32_t i = find(at);
    if (i == n_ranges || ranges[i].at != at)
        return 0;
    const uint64_t bytes = ranges[i].bytes;
    take_out(i, i + 1);
    note_span();
    return bytes;
}

uint64_t in_place_left(uint64_t p)
{
    const uint32_t i = find(p);
    return i < n_ranges && ranges[i].at <= p ? ranges[i].at + ranges[i].bytes - p : 0;
}
