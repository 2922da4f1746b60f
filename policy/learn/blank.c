#include "policy/learn/blank.h"

#include <errno.h>
#include <string.h>

void blank_all(struct blank *b, uint64_t bytes)
{
    b->n = bytes > 0;
    b->r[0] = (struct rec_range){0, bytes};
}

bool blank_is_all(const struct blank *b, uint64_t bytes) { return b->n == 1 && b->r[0].from == 0 && b->r[0].to == bytes; }

int blank_remove(struct blank *b, uint64_t from, uint64_t to)
{
    struct blank out = {0};
    for (uint32_t i = 0; i < b->n; i++) {
        struct rec_range left = b->r[i], right = b->r[i];
        if (left.to > from)
            left.to = from;
        if (right.from < to)
            right.from = to;
        for (int half = 0; half < 2; half++) {
            const struct rec_range *x = half ? &right : &left;
            if (x->from >= x->to)
                continue;
            if (out.n == BLANK_MAX)
                return -E2BIG;
            out.r[out.n++] = *x;
        }
    }
    *b = out;
    return 0;
}

int blank_add(struct blank *b, uint64_t from, uint64_t to)
{
    struct blank out = {0};
    bool in = from >= to;
    for (uint32_t i = 0; i <= b->n; i++) {
        if (!in && (i == b->n || b->r[i].from > to)) {
            if (out.n == BLANK_MAX)
                return -E2BIG;
            out.r[out.n++] = (struct rec_range){from, to};
            in = true;
        }
        if (i == b->n)
            break;
        if (!in && b->r[i].to >= from) { /* the two ranges touch, and become one */
            from = b->r[i].from < from ? b->r[i].from : from;
            to = b->r[i].to > to ? b->r[i].to : to;
            continue;
        }
        if (out.n == BLANK_MAX)
            return -E2BIG;
        out.r[out.n++] = b->r[i];
    }
    *b = out;
    return 0;
}

static uint64_t xor_at(const unsigned char *x, const unsigned char *y)
{
    uint64_t a, b;
    memcpy(&a, x, 8);
    memcpy(&b, y, 8);
    return a ^ b;
}

/* None of the eight bytes is zero. */
static bool all_bytes_set(uint64_t v) { return !((v - 0x0101010101010101u) & ~v & 0x8080808080808080u); }

int blank_of_difference(struct blank *b, const unsigned char *x, const unsigned char *y, uint64_t bytes)
{
    struct blank out = {0};
    for (uint64_t i = 0; i < bytes;) {
        while (i + 64 <= bytes && !memcmp(x + i, y + i, 64))
            i += 64;
        while (i < bytes && x[i] == y[i])
            i++;
        if (i == bytes)
            break;
        uint64_t from = i;
        while (i + 8 <= bytes && all_bytes_set(xor_at(x + i, y + i)))
            i += 8;
        while (i < bytes && x[i] != y[i])
            i++;
        if (out.n == BLANK_MAX)
            return -E2BIG;
        out.r[out.n++] = (struct rec_range){from, i};
    }
    *b = out;
    return 0;
}

uint32_t blank_defined(const struct blank *b, uint64_t bytes, struct rec_range *out)
{
    uint32_t n = 0;
    uint64_t at = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->r[i].from > at)
            out[n++] = (struct rec_range){at, b->r[i].from};
        at = b->r[i].to;
    }
    if (at < bytes)
        out[n++] = (struct rec_range){at, bytes};
    return n;
}
