#include "tracer/known/known.h"
#include "tracer/known/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct known *known_new(void) { return calloc(1, sizeof(struct known)); }

static void kernel_free(struct known *k, struct known_kernel *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        table_free_pattern(k, f->p[i]);
    for (int i = 0; i < PLANES; i++)
        free(f->plane[i]);
    free(f->name);
    free(f);
}

void known_free(struct known *k)
{
    struct known_kernel *f, *after;
    if (!k)
        return;
    HASH_ITER(hh, k->kernels, f, after)
    {
        HASH_DEL(k->kernels, f);
        while (f) {
            struct known_kernel *next = f->next;
            kernel_free(k, f);
            f = next;
        }
    }
    free(k->to_pattern);
    free(k->to_launch);
    free(k);
}

static uint64_t hash_text(const char *s)
{
    uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */
    while (*s)
        h = (h ^ (unsigned char)*s++) * 0x100000001b3ull;
    return h;
}

struct known_kernel *known_kernel(struct known *k, struct known_code code, const char *name)
{
    struct kernel_key key;
    struct known_kernel *first, *f;
    memset(&key, 0, sizeof key);
    key.code = code;
    key.name = hash_text(name);
    HASH_FIND(hh, k->kernels, &key, sizeof key, first);
    for (f = first; f; f = f->next)
        if (!strcmp(f->name, name))
            return f;
    if (k->n_kernels == KNOWN_KERNELS_MOST || k->bytes + sizeof *f > KNOWN_BYTES_MOST || !(f = calloc(1, sizeof *f)))
        return NULL;
    if (!(f->name = strdup(name))) {
        free(f);
        return NULL;
    }
    f->key = key;
    if (first) {
        f->next = first->next;
        first->next = f;
    } else
        HASH_ADD(hh, k->kernels, key, sizeof key, f);
    k->n_kernels++;
    k->bytes += sizeof *f;
    return f;
}

const char *known_name(const struct known_kernel *f) { return f->name; }
uint64_t known_bytes(const struct known *k) { return k->bytes; }
uint32_t known_patterns(const struct known *k) { return k->n_patterns; }
uint32_t known_kernels(const struct known *k) { return k->n_kernels; }

unsigned char known_free_bits(const struct known_kernel *f, uint32_t i)
{
    return i < f->plane_bytes ? (unsigned char)(f->plane[FREE][i] & ~f->plane[MATTERS][i]) : 0;
}

/* ---- does a launch have a pattern? ------------------------------------------------------------------------------------- */

static bool have_groups(struct known *k, uint32_t n)
{
    if (n <= k->cap_groups)
        return true;
    uint32_t *a = realloc(k->to_pattern, n * sizeof *a);
    if (a)
        k->to_pattern = a;
    uint32_t *b = realloc(k->to_launch, n * sizeof *b);
    if (b)
        k->to_launch = b;
    if (!a || !b)
        return false;
    k->cap_groups = n;
    return true;
}

static bool shape_matches(const struct pattern *p, const struct known_launch *l)
{
    return p->arg_bytes == l->arg_bytes && p->also == l->also && !memcmp(p->grid, l->grid, sizeof p->grid) && !memcmp(p->block, l->block, sizeof p->block);
}

static bool word_matches(const struct known_word *a, const struct known_word *b)
{
    return a->delta == b->delta && a->bytes == b->bytes && a->map == b->map && a->before == b->before && a->blank == b->blank;
}

/* Whether the launch has the pattern's addresses: each address that is not idle in the pattern has its counterpart, and two that lead to one buffer in the launch
 * do so in the pattern, and the other way round. Idle words may hold anything; an address of the launch where the pattern has none is a mismatch. */
static bool words_match(struct known *k, const struct pattern *p, const struct known_launch *l)
{
    const uint32_t most = p->n_words > l->n_words ? p->n_words : l->n_words;
    uint32_t i = 0, j = 0;
    if (!have_groups(k, most + 1))
        return false;
    memset(k->to_pattern, 0xff, (most + 1) * sizeof *k->to_pattern);
    memset(k->to_launch, 0xff, (most + 1) * sizeof *k->to_launch);
    while (i < l->n_words || j < p->n_words) {
        const bool here = i < l->n_words && (j == p->n_words || l->words[i].offset <= p->words[j].offset);
        const bool there = j < p->n_words && (i == l->n_words || p->words[j].offset <= l->words[i].offset);
        const bool idle = there && p->use[j] == KNOWN_IDLE;
        if (!idle) {
            if (!here || !there || !word_matches(&l->words[i], &p->words[j]))
                return false;
            uint32_t *to = &k->to_pattern[l->words[i].same_as], *from = &k->to_launch[p->words[j].same_as];
            if (*to == UINT32_MAX && *from == UINT32_MAX) {
                *to = p->words[j].same_as;
                *from = l->words[i].same_as;
            } else if (*to != p->words[j].same_as || *from != l->words[i].same_as)
                return false;
        }
        i += here;
        j += there;
    }
    return true;
}

/* The bits in which argument byte i differs from the pattern's, as far as the pattern cares. */
static unsigned char differs_at(const struct pattern *p, const struct known_launch *l, uint32_t i)
{
    return (unsigned char)((p->args[i] ^ l->args[i]) & p->care[i]);
}

/* Compares the argument bytes. f: the kernel, whose free bits are left out; NULL: all bits count. */
static bool bytes_match(const struct known_kernel *f, const struct pattern *p, const struct known_launch *l)
{
    unsigned char other = 0;
    for (uint32_t i = 0; i < p->arg_bytes && !f; i++)
        other |= differs_at(p, l, i);
    for (uint32_t i = 0; i < p->arg_bytes && f; i++)
        other |= (unsigned char)(differs_at(p, l, i) & ~known_free_bits(f, i));
    return !other;
}

static struct pattern *find(struct known *k, const struct known_kernel *f, const struct known_launch *l, bool freely)
{
    struct pattern *best = NULL; /* where two patterns match, a wild one is taken: it makes the launch unknown */
    for (uint32_t i = 0; i < f->n; i++)
        if (shape_matches(f->p[i], l) && bytes_match(freely ? f : NULL, f->p[i], l) && words_match(k, f->p[i], l) && (!best || f->p[i]->wild))
            best = f->p[i];
    return best;
}

/* Fills `facts` with the pattern's use of the launch's words; an address of the launch in an idle word of the pattern is idle. */
static void tell(const struct pattern *p, const struct known_launch *l, struct known_facts *facts)
{
    for (uint32_t i = 0, j = 0; i < l->n_words; i++) {
        while (j < p->n_words && p->words[j].offset < l->words[i].offset)
            j++;
        facts->use[i] = j < p->n_words && p->words[j].offset == l->words[i].offset ? p->use[j] : (uint8_t)KNOWN_UNTRIED;
    }
    facts->why = p->why;
    facts->ns = p->ns;
    facts->freely = facts->but_numbers = false;
    facts->left = p->left;
    facts->n_left = p->n_left;
}

/* Whether all of the kernel's patterns have the launch's addresses and agree on the use of each; `facts` is filled then. */
static bool agree(const struct known_kernel *f, const struct known_launch *l, struct known_facts *facts)
{
    const struct pattern *first = f->n ? f->p[0] : NULL;
    if (f->wild || f->n < KNOWN_LIKE_PATTERNS || first->n_words != l->n_words || first->arg_bytes != l->arg_bytes)
        return false;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct pattern *p = f->p[i];
        if (p->n_words != l->n_words || p->arg_bytes != l->arg_bytes || p->why != first->why || memcmp(p->use, first->use, p->n_words))
            return false;
        for (uint32_t w = 0; w < l->n_words; w++)
            if (p->words[w].offset != l->words[w].offset || p->words[w].before != l->words[w].before || p->words[w].same_as != l->words[w].same_as ||
                p->use[w] == KNOWN_IDLE || p->use[w] == KNOWN_IN_PART || p->words[w].before == KNOWN_PARTLY)
                return false;
    }
    tell(first, l, facts);
    facts->ns = 0; /* unknown for another grid */
    return true;
}

/* The pattern that matches the launch but for argument bytes that are no addresses; NULL: none, several with different uses, or a bit differs that was seen to
 * matter. */
static const struct pattern *but_numbers(struct known *k, const struct known_kernel *f, const struct known_launch *l)
{
    const struct pattern *one = NULL;
    for (uint32_t i = 0; i < f->n && !f->wild; i++) {
        const struct pattern *p = f->p[i];
        if (!shape_matches(p, l) || !words_match(k, p, l))
            continue;
        if (p->wild || !(p->settled || p->measured >= KNOWN_AGREE) || (one && (p->n_words != one->n_words || p->why != one->why || memcmp(p->use, one->use, p->n_words))))
            return NULL;
        for (uint32_t b = 0; b < p->arg_bytes && b < f->plane_bytes; b++)
            if (differs_at(p, l, b) & f->plane[MATTERS][b])
                return NULL;
        one = p;
    }
    return one;
}

enum known_state known_ask(struct known *k, struct known_kernel *f, const struct known_launch *l, struct known_facts *facts)
{
    struct pattern *p = find(k, f, l, false);
    if (p && p->wild)
        return KNOWN_NOT;
    if (p && (p->settled || p->measured >= KNOWN_AGREE)) {
        p->met = ++k->clock;
        tell(p, l, facts);
        return KNOWN_FULLY;
    }
    const struct pattern *q = find(k, f, l, true);
    if (q && q->wild)
        return KNOWN_NOT;
    if (q && q != p && (q->settled || q->measured >= KNOWN_AGREE)) {
        tell(q, l, facts);
        facts->freely = true;
        return KNOWN_LIKE;
    }
    if (agree(f, l, facts))
        return KNOWN_LIKE;
    if ((q = but_numbers(k, f, l))) {
        tell(q, l, facts);
        facts->but_numbers = true;
    }
    return KNOWN_NOT;
}

/* ---- entering a measured launch ------------------------------------------------------------------------------------------- */

bool known_use_covers(enum known_use a, enum known_use b)
{
    switch (a) {
    case KNOWN_IDLE:
        return b == KNOWN_IDLE || b == KNOWN_UNTRIED;
    case KNOWN_UNTRIED:
    case KNOWN_READ:
        return b <= KNOWN_READ;
    case KNOWN_SIDE:
        return b <= KNOWN_SIDE;
    case KNOWN_WHOLE:
        return b <= KNOWN_READ || b == KNOWN_WHOLE;
    case KNOWN_IN_PART:
        return b <= KNOWN_READ || b == KNOWN_WHOLE || b == KNOWN_IN_PART;
    case KNOWN_IN_PLACE:
        return true;
    default:
        return false;
    }
}

/* The least use that includes the uses seen in two launches. */
static enum known_use join(enum known_use a, enum known_use b)
{
    if (a <= KNOWN_UNTRIED && b <= KNOWN_UNTRIED)
        return a < b ? a : b;
    return a > b ? a : b;
}

/* Notes the bits that differ between the launch's pattern `new` and a pattern p with the same shape and addresses. `same`: the bits made no difference; else at
 * least one of them mattered. */
static void note_bits(struct known_kernel *f, const struct pattern *p, const struct pattern *new, bool same)
{
    for (uint32_t i = 0; i < p->arg_bytes; i++) {
        const unsigned char d = (unsigned char)((p->args[i] ^ new->args[i]) & p->care[i] & new->care[i]);
        if (!same)
            f->plane[MATTERS][i] |= d;
        else {
            f->plane[FREE][i] |= d & f->plane[TWICE][i];
            f->plane[TWICE][i] |= d & f->plane[ONCE][i];
            f->plane[ONCE][i] |= d;
        }
    }
}

static void compare_with_latest(struct known *k, struct known_kernel *f, const struct pattern *new, const struct known_launch *l)
{
    const struct pattern *latest = NULL;
    for (uint32_t i = 0; i < f->n; i++)
        if (!f->p[i]->wild && shape_matches(f->p[i], l) && words_match(k, f->p[i], l) && (!latest || f->p[i]->met > latest->met))
            latest = f->p[i];
    if (!latest || !table_have_planes(k, f, l->arg_bytes))
        return;
    const bool same = latest->why == new->why && latest->n_words == new->n_words && !memcmp(latest->use, new->use, new->n_words) && latest->n_left == new->n_left;
    note_bits(f, latest, new, same);
}

static struct pattern *pattern_new(const struct known_launch *l, const struct known_facts *facts)
{
    struct pattern *p = table_make_pattern(l->arg_bytes, l->n_words, facts->n_left);
    if (!p)
        return NULL;
    for (uint32_t i = 0; i < facts->n_left; i++)
        p->left[i] = facts->left[i];
    memcpy(p->grid, l->grid, sizeof p->grid);
    memcpy(p->block, l->block, sizeof p->block);
    p->also = l->also;
    memcpy(p->args, l->args, l->arg_bytes);
    memset(p->care, 0xff, l->arg_bytes);
    memcpy(p->words, l->words, l->n_words * sizeof *p->words);
    memcpy(p->use, facts->use, l->n_words);
    for (uint32_t i = 0; i < l->n_words; i++) {
        const uint32_t bytes = l->words[i].map ? 128 : 8, from = l->words[i].offset;
        if (p->use[i] != KNOWN_IDLE && from < l->arg_bytes)
            memset(p->care + from, 0, from + bytes <= l->arg_bytes ? bytes : l->arg_bytes - from);
    }
    for (uint32_t i = 0; i < facts->n_idle; i++)
        for (uint32_t at = facts->idle[i]; at < l->arg_bytes && at < (facts->idle[i] & ~7u) + 8; at++)
            p->care[at] = 0;
    p->why = facts->why;
    p->ns = facts->ns;
    return p;
}

static bool leaves_alike(const struct pattern *p, const struct known_facts *facts)
{
    bool alike = p->n_left == facts->n_left;
    for (uint32_t i = 0; i < p->n_left && alike; i++)
        alike = p->left[i].offset == facts->left[i].offset && p->left[i].from == facts->left[i].from && p->left[i].to == facts->left[i].to;
    return alike;
}

static enum known_news merge(struct known_kernel *f, struct pattern *p, const struct known_launch *l, const struct known_facts *facts)
{
    enum known_news news = KNOWN_NEWS_SAME;
    for (uint32_t i = 0, j = 0; i < l->n_words; i++) {
        while (j < p->n_words && p->words[j].offset < l->words[i].offset)
            j++;
        if (j == p->n_words || p->words[j].offset != l->words[i].offset)
            continue; /* cannot happen: a matching pattern has every word of the launch */
        if (!known_use_covers(p->use[j], facts->use[i]))
            news = KNOWN_NEWS_MORE;
        else if (p->use[j] != facts->use[i] && news == KNOWN_NEWS_SAME && !(p->use[j] <= KNOWN_READ && facts->use[i] <= KNOWN_READ))
            news = KNOWN_NEWS_LESS;
        /* an idle word stays idle: its bytes are not compared any more */
        if (p->use[j] != KNOWN_IDLE && facts->use[i] != KNOWN_IDLE)
            p->use[j] = (uint8_t)join(p->use[j], facts->use[i]);
    }
    if (p->why != facts->why && facts->why) {
        news = p->why ? news : KNOWN_NEWS_MORE;
        p->why = facts->why;
    } else if (p->why != facts->why && news == KNOWN_NEWS_SAME)
        news = KNOWN_NEWS_LESS;
    if (!leaves_alike(p, facts))
        news = KNOWN_NEWS_MORE;
    if (news == KNOWN_NEWS_MORE)
        p->wild = f->wild = true;
    return news;
}

int known_enter(struct known *k, struct known_kernel *f, const struct known_launch *l, const struct known_facts *facts, enum known_news *news)
{
    struct pattern *p = find(k, f, l, false);
    if (facts->n_left > KNOWN_LEFT_MOST)
        return -E2BIG;
    if (p) {
        *news = merge(f, p, l, facts);
        p->measured++;
        p->lesson = k->lesson;
        p->met = ++k->clock;
        p->ns = facts->ns ? facts->ns : p->ns;
        return 0;
    }
    *news = KNOWN_NEWS_FIRST;
    p = pattern_new(l, facts);
    if (!p)
        return -ENOMEM;
    compare_with_latest(k, f, p, l);
    p->measured = 1;
    p->lesson = k->lesson;
    p->met = ++k->clock;
    return table_add_pattern(k, f, p) ? 0 : -ENOSPC;
}

void known_surprise(struct known *k, struct known_kernel *f, const struct known_launch *l)
{
    f->wild = true;
    for (uint32_t i = 0; i < f->n; i++)
        if (shape_matches(f->p[i], l) && bytes_match(f, f->p[i], l) && words_match(k, f->p[i], l))
            f->p[i]->wild = true;
}

void known_distrust(struct known_kernel *f)
{
    f->wild = true;
    for (uint32_t i = 0; i < f->n; i++)
        f->p[i]->wild |= f->p[i]->earlier;
}

void known_lesson(struct known *k) { k->lesson++; }

void known_settle(struct known *k)
{
    struct known_kernel *first, *after;
    HASH_ITER(hh, k->kernels, first, after)
    for (struct known_kernel *f = first; f; f = f->next)
        for (uint32_t i = 0; i < f->n; i++)
            f->p[i]->settled |= f->p[i]->lesson == k->lesson;
}
