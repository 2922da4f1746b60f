#include "offline/solvers/chain/chain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int chain_alloc(struct chain *c, int32_t n)
{
    size_t k = (size_t)n + 1;
    int64_t *all;

    memset(c, 0, sizeof(*c));
    all = calloc(8 * k, sizeof(*all));
    if (!all)
        return -ENOMEM;
    c->n = n;
    c->a = all;
    c->abar = all + k;
    c->delta = all + 2 * k;
    c->uf = all + 3 * k;
    c->ub = all + 4 * k;
    c->of = all + 5 * k;
    c->ob = all + 6 * k;
    c->on = all + 7 * k;
    return 0;
}

void chain_free(struct chain *c)
{
    free(c->a);
    memset(c, 0, sizeof(*c));
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static int chain_read_list(const struct json_doc *doc, const char *key, size_t want, int64_t *to, char *err, size_t err_len)
{
    struct json_step path[2] = {{key, 0}, {NULL, 0}};
    json_t *list = NULL;
    int rc = json_get_array(doc, doc->root, NULL, 0, key, 1, &list, err, err_len);
    size_t i;

    if (rc)
        return rc;
    if (json_array_size(list) != want)
        return json_fault(doc, path, 1, err, err_len, "has %zu entries, but a chain of this L needs %zu", json_array_size(list),
                          want);
    for (i = 0; i < want; i++) {
        path[1].index = i;
        if (json_as_int(json_array_get(list, i), 0, (int64_t)1 << 50, &to[i]))
            return json_fault(doc, path, 2, err, err_len, "must be a whole number from 0 to 2^50");
    }
    return 0;
}

int chain_read(const struct json_doc *doc, struct chain *out, int64_t *budget, int64_t *slots, int *unit_slots, char *err,
               size_t err_len)
{
    const char *unit = "bytes";
    int64_t L = 0;
    int rc;

    memset(out, 0, sizeof(*out));
    *slots = 0;
    if ((rc = json_get_int(doc, doc->root, NULL, 0, "L", 1, 1, 4000, &L, err, err_len)) ||
        (rc = json_get_int(doc, doc->root, NULL, 0, "budget", 1, 1, (int64_t)1 << 60, budget, err, err_len)) ||
        (rc = json_get_int(doc, doc->root, NULL, 0, "slots", 0, 1, (int64_t)1 << 31, slots, err, err_len)) ||
        (rc = json_get_string(doc, doc->root, NULL, 0, "unit", 0, &unit, err, err_len)))
        return rc;
    if (chain_alloc(out, (int32_t)L + 1)) {
        snprintf(err, err_len, "%s: not enough memory", doc->name);
        return -ENOMEM;
    }
    *unit_slots = !strcmp(unit, "slots");
    if ((rc = chain_read_list(doc, "w_a", (size_t)L + 1, out->a, err, err_len)) ||
        (rc = chain_read_list(doc, "w_abar", (size_t)L + 1, out->abar, err, err_len)) ||
        (rc = chain_read_list(doc, "w_delta", (size_t)L + 1, out->delta, err, err_len)) ||
        (rc = chain_read_list(doc, "u_f", (size_t)L, out->uf + 1, err, err_len)) ||
        (rc = chain_read_list(doc, "u_b", (size_t)L, out->ub + 1, err, err_len)) ||
        (rc = chain_read_list(doc, "o_f", (size_t)L, out->of + 1, err, err_len)) ||
        (rc = chain_read_list(doc, "o_b", (size_t)L, out->ob + 1, err, err_len)))
        chain_free(out);
    else
        memcpy(out->on, out->of, ((size_t)L + 2) * sizeof(*out->on));
    return rc;
}

/* ---- schedules ------------------------------------------------------------------------------------------------------- */

void chain_schedule_free(struct chain_schedule *s)
{
    free(s->steps);
    memset(s, 0, sizeof(*s));
}

int chain_push(struct chain_schedule *s, enum chain_kind kind, int32_t stage)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        struct chain_step *more = realloc(s->steps, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        s->steps = more;
        s->cap = cap;
    }
    s->steps[s->n].kind = kind;
    s->steps[s->n++].stage = stage;
    return 0;
}

int64_t chain_ideal_time(const struct chain *c)
{
    int64_t t = 0;
    int32_t l;

    for (l = 1; l <= c->n; l++)
        t += c->uf[l] + c->ub[l];
    return t;
}

int64_t chain_store_all_peak(const struct chain *c)
{
    int64_t held = c->a[0], peak = held, at;
    int32_t l;

    /* delta^n, the gradient the loss hands back, is counted throughout, as in the paper's equations. */
    for (l = 1; l <= c->n; l++) {
        held += c->abar[l];
        at = held + c->delta[c->n] + c->of[l];
        peak = at > peak ? at : peak;
    }
    for (l = c->n; l >= 1; l--) {
        at = held + c->delta[l] + c->delta[l - 1] + c->ob[l];
        peak = at > peak ? at : peak;
        held -= c->abar[l];
    }
    return peak;
}

int chain_replay(const struct chain *c, const struct chain_schedule *s, struct chain_result *r)
{
    uint8_t *has = calloc((size_t)c->n + 1, 1); /* bit 0: a^l on its own, bit 1: abar^l */
    int64_t held = c->a[0] + c->delta[c->n], use;
    int32_t back = c->n; /* backwards are done down to stage back + 1; delta^back is held */
    size_t i;

    memset(r, 0, sizeof(*r));
    if (!has)
        return -ENOMEM;
    has[0] = 1;
    r->peak = held;
    for (i = 0; i < s->n; i++) {
        int32_t l = s->steps[i].stage, kind = s->steps[i].kind;

        r->bad = i;
        if (l < (kind == CHAIN_DROP ? 0 : 1) || l > c->n)
            goto bad;
        if (kind == CHAIN_DROP) {
            if (!(has[l] & 1))
                goto bad;
            has[l] &= 2;
            held -= c->a[l];
            continue;
        }
        if (!has[l - 1])
            goto bad;
        if (kind == CHAIN_BWD) {
            if (l != back || !(has[l] & 2))
                goto bad;
            use = held + c->delta[l - 1] + c->ob[l];
            r->peak = use > r->peak ? use : r->peak;
            r->time += c->ub[l];
            held -= c->abar[l] + c->delta[l] + (has[l] & 1 ? c->a[l] : 0);
            has[l] = 0;
            back--;
            held += c->delta[back];
        } else {
            int bit = kind == CHAIN_FALL ? 2 : 1;

            if (has[l] & bit)
                goto bad; /* the result is in memory already */
            held += kind == CHAIN_FALL ? c->abar[l] : c->a[l];
            has[l] |= (uint8_t)bit;
            use = held + (kind == CHAIN_FALL ? c->of[l] : c->on[l]);
            r->peak = use > r->peak ? use : r->peak;
            r->time += c->uf[l];
            if (kind == CHAIN_FNONE && (has[l - 1] & 1)) {
                has[l - 1] &= 2;
                held -= c->a[l - 1];
            }
        }
        r->peak = held > r->peak ? held : r->peak;
    }
    r->bad = s->n;
    if (back == 0) {
        free(has);
        return 0;
    }
bad:
    free(has);
    return -EINVAL;
}

int chain_scale(const struct chain *c, int64_t unit, int nearest, struct chain *out)
{
    int64_t add = nearest ? unit / 2 : unit - 1;
    int32_t l;

    if (chain_alloc(out, c->n))
        return -ENOMEM;
    for (l = 0; l <= c->n; l++) {
        out->a[l] = (c->a[l] + add) / unit;
        out->abar[l] = (c->abar[l] + add) / unit;
        out->delta[l] = (c->delta[l] + add) / unit;
        out->of[l] = (c->of[l] + add) / unit;
        out->ob[l] = (c->ob[l] + add) / unit;
        out->on[l] = (c->on[l] + add) / unit;
        out->uf[l] = c->uf[l];
        out->ub[l] = c->ub[l];
    }
    return 0;
}
