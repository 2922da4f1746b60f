#include "policy/memory/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first range that ends after p. */
static uint32_t find(const struct ranges *r, uint64_t p)
{
    uint32_t a = 0, b = r->n;
    while (a < b) {
        const uint32_t m = (a + b) / 2;
        if (r->range[m].at + r->range[m].bytes <= p)
            a = m + 1;
        else
            b = m;
    }
    return a;
}

static void take_out(struct ranges *r, uint32_t from, uint32_t to)
{
    memmove(r->range + from, r->range + to, (r->n - to) * sizeof *r->range);
    r->n -= to - from;
}

static void note_span(struct ranges *r)
{
    const struct range *last = r->range + r->n - 1;
    r->low = r->n ? r->range->at : 0;
    r->span = r->n ? last->at + last->bytes - r->low : 0;
}

int ranges_add(struct ranges *r, uint64_t at, uint64_t bytes)
{
    if (!bytes || bytes > UINT64_MAX - at)
        return 0;
    if (r->n == r->cap) {
        const uint32_t cap = r->cap ? 2 * r->cap : 64;
        struct range *p = realloc(r->range, cap * sizeof *p);
        if (!p)
            return -ENOMEM;
        r->range = p;
        r->cap = cap;
    }
    const uint32_t i = find(r, at);
    uint32_t end = i;
    while (end < r->n && r->range[end].at < at + bytes)
        end++;
    take_out(r, i, end);
    memmove(r->range + i + 1, r->range + i, (r->n - i) * sizeof *r->range);
    r->range[i] = (struct range){at, bytes};
    r->n++;
    note_span(r);
    return 0;
}

uint64_t ranges_remove(struct ranges *r, uint64_t at)
{
    const uint32_t i = find(r, at);
    if (i == r->n || r->range[i].at != at)
        return 0;
    const uint64_t bytes = r->range[i].bytes;
    take_out(r, i, i + 1);
    note_span(r);
    return bytes;
}

uint64_t ranges_left(const struct ranges *r, uint64_t p)
{
    const uint32_t i = find(r, p);
    return i < r->n && r->range[i].at <= p ? r->range[i].at + r->range[i].bytes - p : 0;
}

void ranges_free(struct ranges *r)
{
    free(r->range);
    *r = (struct ranges){0};
}
