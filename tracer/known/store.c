/* store.c: see store.h. Numbers have this machine's byte order (cache.h checks which version of remat wrote them). */
#include "tracer/known/store.h"
#include "tracer/known/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_MOST = 32768, NAME_MOST = 1 << 16 };
enum { SETTLED = 1, WILD = 2 };

/* ---- writing --------------------------------------------------------------------------------------------------------- */

struct sink {
    unsigned char *p;
    size_t n, cap, most;
    int err;
};

static void put(struct sink *s, const void *from, size_t n)
{
    if (!s->err && s->n + n > s->most)
        s->err = -EFBIG;
    if (s->err)
        return;
    if (s->n + n > s->cap) {
        const size_t cap = 2 * (s->n + n) + 1024;
        unsigned char *p = realloc(s->p, cap);
        if (!p) {
            s->err = -ENOMEM;
            return;
        }
        s->p = p;
        s->cap = cap;
    }
    if (n)
        memcpy(s->p + s->n, from, n);
    s->n += n;
}

static void put_number(struct sink *s, uint64_t v) { put(s, &v, sizeof v); }

static bool is_written(const struct pattern *p) { return p->wild || p->settled || p->earlier || p->measured >= KNOWN_AGREE; }

static uint64_t place_of(struct known_whys whys, const char *why)
{
    for (uint32_t i = 0; i < whys.n; i++)
        if (whys.text[i] == why)
            return i + 1;
    return 0;
}

static void put_pattern(struct sink *s, const struct pattern *p, struct known_whys whys)
{
    const uint64_t head[] = {p->grid[0], p->grid[1], p->grid[2], p->block[0], p->block[1], p->block[2], p->arg_bytes, p->n_words, p->n_left, p->also, p->ns,
                             place_of(whys, p->why), p->wild ? WILD : SETTLED};
    put(s, head, sizeof head);
    for (uint32_t i = 0; i < p->arg_bytes; i++) {
        const unsigned char shown = p->args[i] & p->care[i];
        put(s, &shown, 1);
    }
    put(s, p->care, p->arg_bytes);
    put(s, p->use, p->n_words);
    for (uint32_t i = 0; i < p->n_words; i++) {
        const struct known_word *w = &p->words[i];
        const uint64_t all[] = {w->offset, w->same_as, w->delta, w->bytes, w->map, w->before, w->blank};
        put(s, all, sizeof all);
    }
    for (uint32_t i = 0; i < p->n_left; i++) {
        const uint64_t all[] = {p->left[i].offset, p->left[i].from, p->left[i].to};
        put(s, all, sizeof all);
    }
}

static void put_kernel(struct sink *s, const struct known_kernel *f, struct known_whys whys)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        n += is_written(f->p[i]);
    if (!n)
        return;
    put_number(s, strlen(f->name));
    put(s, f->name, strlen(f->name));
    put_number(s, f->wild);
    put_number(s, f->plane_bytes);
    for (int i = 0; i < PLANES && f->plane_bytes; i++)
        put(s, f->plane[i], f->plane_bytes);
    put_number(s, n);
    for (uint32_t i = 0; i < f->n; i++)
        if (is_written(f->p[i]))
            put_pattern(s, f->p[i], whys);
}

int store_write(const struct known *k, struct known_code code, struct known_whys whys, size_t most, unsigned char **bytes, size_t *n)
{
    struct sink s = {.most = most};
    struct known_kernel *first, *after;
    HASH_ITER(hh, k->kernels, first, after)
    for (const struct known_kernel *f = first; f; f = f->next)
        if (!memcmp(&f->key.code, &code, sizeof code))
            put_kernel(&s, f, whys);
    if (s.err) {
        free(s.p);
        return s.err;
    }
    *bytes = s.p;
    *n = s.n;
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

struct source {
    const unsigned char *p, *end;
    bool bad;
};

/* The next n bytes; NULL: fewer are left. */
static const unsigned char *take(struct source *s, uint64_t n)
{
    const unsigned char *at = s->p;
    if (s->bad || n > (uint64_t)(s->end - s->p)) {
        s->bad = true;
        return NULL;
    }
    s->p += n;
    return at;
}

static uint64_t take_number(struct source *s, uint64_t most)
{
    const unsigned char *at = take(s, 8);
    uint64_t v = 0;
    if (at)
        memcpy(&v, at, sizeof v);
    s->bad |= v > most;
    return s->bad ? 0 : v;
}

static void take_bytes(struct source *s, void *to, uint32_t n)
{
    const unsigned char *at = take(s, n);
    if (at && n)
        memcpy(to, at, n);
}

static void take_words(struct source *s, struct pattern *p)
{
    for (uint32_t i = 0; i < p->n_words && !s->bad; i++) {
        struct known_word *w = &p->words[i];
        w->offset = (uint32_t)take_number(s, UINT32_MAX);
        w->same_as = (uint32_t)take_number(s, i);
        w->delta = take_number(s, UINT64_MAX);
        w->bytes = take_number(s, UINT64_MAX);
        w->map = take_number(s, UINT64_MAX);
        w->before = (uint8_t)take_number(s, KNOWN_OLD);
        w->blank = take_number(s, UINT64_MAX);
        s->bad |= w->offset >= p->arg_bytes || (i && w->offset <= p->words[i - 1].offset) || p->words[w->same_as].same_as != w->same_as ||
                  p->use[i] >= KNOWN_NO_USE;
    }
}

static struct pattern *take_pattern(struct source *s, struct known_whys whys)
{
    uint64_t head[13];
    const unsigned char *at = take(s, sizeof head);
    if (!at)
        return NULL;
    memcpy(head, at, sizeof head);
    for (int i = 0; i < 6; i++)
        s->bad |= head[i] > UINT32_MAX;
    s->bad |= head[6] > ARGS_MOST || head[7] > ARGS_MOST || head[8] > KNOWN_LEFT_MOST || head[11] > whys.n || (head[12] != SETTLED && head[12] != WILD);
    struct pattern *p = s->bad ? NULL : table_make_pattern((uint32_t)head[6], (uint32_t)head[7], (uint32_t)head[8]);
    if (!p) {
        s->bad = true;
        return NULL;
    }
    for (int i = 0; i < 3; i++) {
        p->grid[i] = (uint32_t)head[i];
        p->block[i] = (uint32_t)head[3 + i];
    }
    p->also = head[9];
    p->ns = head[10];
    p->why = head[11] ? whys.text[head[11] - 1] : NULL;
    p->wild = head[12] == WILD;
    take_bytes(s, p->args, p->arg_bytes);
    take_bytes(s, p->care, p->arg_bytes);
    take_bytes(s, p->use, p->n_words);
    take_words(s, p);
    for (uint32_t i = 0; i < p->n_left && !s->bad; i++) {
        p->left[i].offset = (uint32_t)take_number(s, UINT32_MAX);
        p->left[i].from = take_number(s, UINT64_MAX);
        p->left[i].to = take_number(s, UINT64_MAX);
        s->bad |= p->left[i].from >= p->left[i].to;
    }
    if (!s->bad)
        return p;
    table_drop_pattern(p);
    return NULL;
}

/* Whether the pattern has idle words. If one mattered after all, nothing in a run that relies on the pattern would show it. */
static bool relies_on_idle(const struct pattern *p)
{
    bool idle = false;
    for (uint32_t i = 0; i < p->n_words; i++)
        idle |= p->use[i] == KNOWN_IDLE;
    for (uint32_t i = 0, w = 0; i < p->arg_bytes && !idle; i++) { /* a byte that is not compared, and is not an address's */
        while (w < p->n_words && p->words[w].offset + (p->words[w].map ? 128u : 8u) <= i)
            w++;
        idle = p->care[i] != 0xff && (w == p->n_words || i < p->words[w].offset);
    }
    return idle;
}

static bool is_same_launch(const struct pattern *a, const struct pattern *b)
{
    bool same = !memcmp(a->grid, b->grid, sizeof a->grid) && !memcmp(a->block, b->block, sizeof a->block) && a->also == b->also && a->arg_bytes == b->arg_bytes &&
                a->n_words == b->n_words && !memcmp(a->care, b->care, a->arg_bytes);
    for (uint32_t i = 0; same && i < a->arg_bytes; i++)
        same = !((a->args[i] ^ b->args[i]) & a->care[i]);
    for (uint32_t i = 0; same && i < a->n_words; i++) {
        const struct known_word *x = &a->words[i], *y = &b->words[i];
        same = x->offset == y->offset && x->same_as == y->same_as && x->delta == y->delta && x->bytes == y->bytes && x->map == y->map && x->before == y->before &&
               x->blank == y->blank;
    }
    return same;
}

/* Adds p to the table, which owns it from now on. True: the pattern is new. */
static bool join(struct known *k, struct known_kernel *f, struct pattern *p)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (is_same_launch(f->p[i], p)) {
            f->p[i]->wild |= p->wild;
            f->p[i]->earlier = true;
            table_drop_pattern(p);
            return false;
        }
    p->earlier = true;
    p->measured = relies_on_idle(p) ? KNOWN_AGREE - 1 : KNOWN_AGREE;
    return f->n < KNOWN_PATTERNS_MOST ? table_add_pattern(k, f, p) : (table_drop_pattern(p), false);
}

static void take_planes(struct source *s, struct known *k, struct known_kernel *f)
{
    const uint32_t n = (uint32_t)take_number(s, ARGS_MOST);
    const bool have = n && !s->bad && table_have_planes(k, f, n);
    for (int i = 0; i < PLANES && n; i++) {
        const unsigned char *at = take(s, n);
        for (uint32_t b = 0; at && have && b < n; b++)
            f->plane[i][b] |= at[b];
    }
}

int store_read(struct known *k, struct known_code code, struct known_whys whys, const unsigned char *bytes, size_t n, uint32_t *patterns)
{
    struct source s = {bytes, bytes + n, false};
    uint32_t added = 0;
    while (!s.bad && s.p < s.end) {
        const uint64_t name_bytes = take_number(&s, NAME_MOST);
        const unsigned char *at = take(&s, name_bytes);
        char *name = at ? strndup((const char *)at, name_bytes) : NULL;
        struct known_kernel *f = name ? known_kernel(k, code, name) : NULL;
        s.bad |= !name || strlen(name) != name_bytes;
        free(name);
        if (!f || s.bad)
            return s.bad ? -EBADMSG : -ENOSPC;
        f->wild |= take_number(&s, 1) != 0;
        take_planes(&s, k, f);
        const uint64_t all = take_number(&s, KNOWN_PATTERNS_MOST);
        for (uint64_t i = 0; i < all && !s.bad; i++) {
            struct pattern *p = take_pattern(&s, whys);
            added += p && join(k, f, p);
        }
    }
    if (patterns)
        *patterns = added;
    return s.bad ? -EBADMSG : 0;
}
