/* event_list: the events of one result (made, used, fetched) as rising whole numbers: the slot and, in the lowest bits, the kind. Both
 * annealers keep one list a result (anneal.h, fsa_row.h). Lists are short, and mostly the last few entries are asked for, so a plain array
 * is searched from its end.
 *
 * Threads: a list belongs to one thread. Errors: event_list_reserve, -ENOMEM; the other functions cannot fail, and
 * event_list_insert must have its room reserved. */
#ifndef REMAT_OFFLINE_EVENT_LIST_H
#define REMAT_OFFLINE_EVENT_LIST_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct event_list {
    int32_t *at; /* owned */
    int32_t n, cap;
};

enum { EVENT_LIST_LONG = 20 }; /* longer lists are searched by halving */

/* Room for n events in all. */
static inline int event_list_reserve(struct event_list *e, int32_t n)
{
    if (n <= e->cap)
        return 0;
    int32_t *at = realloc(e->at, 2 * (size_t)n * sizeof *at);
    if (!at)
        return -ENOMEM;
    e->at = at;
    e->cap = 2 * n;
    return 0;
}

/* Index of the first event above `event`. */
static inline int32_t event_list_after(const struct event_list *e, int32_t event)
{
    int32_t i = e->n;
    if (i > EVENT_LIST_LONG) {
        int32_t lo = 0;
        while (lo < i) {
            const int32_t mid = lo + (i - lo) / 2;
            if (e->at[mid] > event)
                i = mid;
            else
                lo = mid + 1;
        }
        return lo;
    }
    while (i > 0 && e->at[i - 1] > event)
        i--;
    return i;
}

static inline void event_list_insert(struct event_list *e, int32_t i, int32_t event)
{
    memmove(e->at + i + 1, e->at + i, (size_t)(e->n - i) * sizeof *e->at);
    e->at[i] = event;
    e->n++;
}

static inline void event_list_erase(struct event_list *e, int32_t i)
{
    e->n--;
    memmove(e->at + i, e->at + i + 1, (size_t)(e->n - i) * sizeof *e->at);
}

#endif
