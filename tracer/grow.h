/* grow.h: an array that is filled element by element, and made twice as long when it is full.
 *
 *     if (!grow_room(&list, n, &cap, 8))
 *         return -ENOMEM;
 *     list[n++] = thing;
 *
 * Invariant: n <= cap, and list has room for cap elements. The list's owner frees it.
 */
#ifndef REMAT_TRACER_GROW_H
#define REMAT_TRACER_GROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* `list`: the address of a pointer to elements of `size` bytes. False: no memory, or *cap would overflow; list and *cap are unchanged then. */
static inline bool grow_twice(void *list, size_t size, uint32_t *cap, uint32_t least)
{
    const uint32_t more = *cap ? 2 * *cap : least;
    void *at;
    memcpy(&at, list, sizeof at);
    at = more > *cap ? realloc(at, more * size) : NULL;
    if (!at)
        return false;
    memcpy(list, &at, sizeof at);
    *cap = more;
    return true;
}

/* Makes room for one element beside the n in *list; room for `least` elements at first. False: no memory. */
#define grow_room(list, n, cap, least) ((n) < *(cap) || grow_twice((list), sizeof **(list), (cap), (least)))

#endif
