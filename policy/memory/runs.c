/* runs.c: see runs.h. */
#include "policy/memory/runs.h"

#include <stdlib.h>

struct node {
    uint32_t first, last, most;
};
struct runs {
    uint32_t units, n_words; /* n_words: a power of two; bits past the last unit are never free */
    uint64_t *word;
    struct node node[]; /* [2 * n_words]: the root is 1, the children of i are 2 i and 2 i + 1, word w is n_words + w */
};

/* Bit i of the result is set where the n bits of w from i on are. */
static uint64_t starts_of(uint64_t w, uint32_t n)
{
    for (uint32_t have = 1; have < n && w;) {
        uint32_t by = have < n - have ? have : n - have;
        w &= w >> by;
        have += by;
    }
    return w;
}

/* The longest run of set bits; w has a clear bit. */
static uint32_t longest_in(uint64_t w)
{
    uint64_t begins[6]; /* [k]: where 2^k set bits begin; a run has 63 bits at most, so there is no [6] */
    uint32_t k = 0, n;
    if (!w)
        return 0;
    begins[0] = w;
    while (k < 5 && (begins[k + 1] = begins[k] & begins[k] >> (1u << k)))
        k++;
    uint64_t at = begins[k];
    for (n = 1u << k; k-- > 0;)
        if (at & begins[k] >> n) {
            at &= begins[k] >> n;
            n += 1u << k;
        }
    return n;
}

static void leaf(struct runs *r, uint32_t i)
{
    uint64_t w = r->word[i];
    struct node *x = &r->node[r->n_words + i];
    if (!~w) {
        *x = (struct node){64, 64, 64};
        return;
    }
    x->first = (uint32_t)__builtin_ctzll(~w);
    x->last = (uint32_t)__builtin_clzll(~w);
    x->most = longest_in(w);
}

static void join(struct runs *r, uint32_t i, uint32_t span)
{
    const struct node *a = &r->node[2 * i], *b = &r->node[2 * i + 1];
    struct node x = {a->first == span ? span + b->first : a->first, b->last == span ? span + a->last : b->last, a->last + b->first};
    if (x.most < a->most)
        x.most = a->most;
    if (x.most < b->most)
        x.most = b->most;
    r->node[i] = x;
}

/* Joins the nodes above the words from .. to anew. */
static void rejoin(struct runs *r, uint32_t from, uint32_t to)
{
    uint32_t span = 64;
    for (from = (from + r->n_words) / 2, to = (to + r->n_words) / 2; from; from /= 2, to /= 2, span *= 2)
        for (uint32_t i = from; i <= to; i++)
            join(r, i, span);
}

struct runs *runs_new(uint32_t units)
{
    uint32_t n_words = 1;
    while (n_words * 64ull < units)
        n_words *= 2;
    struct runs *r = calloc(1, sizeof *r + 2ull * n_words * sizeof *r->node + n_words * sizeof *r->word);
    if (!r)
        return NULL;
    r->units = units;
    r->n_words = n_words;
    r->word = (uint64_t *)(void *)(r->node + 2 * n_words);
    runs_set(r, 0, units, true);
    return r;
}

uint32_t runs_longest(const struct runs *r) { return r->node[1].most; }

uint32_t runs_find(const struct runs *r, uint32_t n)
{
    uint32_t i = 1, span = r->n_words * 64, begin = 0;
    while (i < r->n_words) { /* the run lies in the left half, across the middle, or in the right half */
        const struct node *a = &r->node[2 * i], *b = &r->node[2 * i + 1];
        span /= 2;
        if (a->most < n && a->last + b->first >= n)
            return begin + span - a->last;
        if (a->most >= n)
            i = 2 * i;
        else {
            i = 2 * i + 1;
            begin += span;
        }
    }
    return begin + (uint32_t)__builtin_ctzll(starts_of(r->word[i - r->n_words], n));
}

void runs_set(struct runs *r, uint32_t from, uint32_t n, bool is_free)
{
    uint32_t to = from + n, w = from / 64;
    for (uint32_t at = from; at < to; w++) {
        uint32_t end = (w + 1) * 64 < to ? (w + 1) * 64 : to;
        uint64_t bits = (end - at == 64 ? ~0ull : (1ull << (end - at)) - 1) << (at % 64);
        r->word[w] = is_free ? r->word[w] | bits : r->word[w] & ~bits;
        leaf(r, w);
        at = end;
    }
    rejoin(r, from / 64, w - 1);
}
