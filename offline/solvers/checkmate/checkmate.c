#include "offline/solvers/checkmate/checkmate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 2000 };

#define NUMBER_SUM_MAX (INT64_C(1) << 51)

#define AT(c, t, i) ((size_t)(t) * (size_t)(c)->n + (size_t)(i))

void checkmate_free(struct checkmate *c)
{
    free(c->cost);
    free(c->mem);
    free(c->dep_at);
    free(c->dep);
    free(c->user_at);
    free(c->user);
    memset(c, 0, sizeof *c);
}

/* Read n whole numbers; their sum is at most NUMBER_SUM_MAX, which a double holds exactly; n such sums fit int64_t. */
static int read_numbers(const struct json_doc *doc, const char *key, int n, int64_t *out, char *err, size_t err_len)
{
    int64_t sum = 0;
    json_t *a = NULL;
    struct json_step at[2] = { { key, 0 }, { NULL, 0 } };
    int r = json_get_array(doc, doc->root, NULL, 0, key, 1, &a, err, err_len);
    if (r)
        return r;
    if (json_array_size(a) != (size_t)n)
        return json_fault(doc, at, 1, err, err_len, "has %zu entries, \"n\" says %d", json_array_size(a), n);
    for (int i = 0; i < n; i++) {
        at[1].index = (size_t)i;
        if (json_as_int(json_array_get(a, (size_t)i), 0, NUMBER_SUM_MAX, &out[i]))
            return json_fault(doc, at, 2, err, err_len, "must be an integer, 0 or more and at most 2^51");
        if (out[i] > NUMBER_SUM_MAX - sum)
            return json_fault(doc, at, 2, err, err_len, "takes the sum of all past 2^51: divide them by a common factor");
        sum += out[i];
    }
    return 0;
}

static int read_edges(const struct json_doc *doc, struct checkmate *c, char *err, size_t err_len)
{
    json_t *a = NULL;
    struct json_step at[2] = { { "edges", 0 }, { NULL, 0 } };
    int r = json_get_array(doc, doc->root, NULL, 0, "edges", 1, &a, err, err_len);
    if (r)
        return r;
    size_t n = (size_t)c->n, m = json_array_size(a);
    if (m > n * n)
        return json_fault(doc, at, 1, err, err_len, "has %zu entries, more than n * n", m);
    unsigned char *has = calloc(n * n + 1, 1);
    if (!has)
        return -ENOMEM;
    for (size_t k = 0; !r && k < m; k++) {
        const json_t *e = json_array_get(a, k);
        int64_t u, v;
        at[1].index = k;
        if (json_array_size(e) != 2 || json_as_int(json_array_get(e, 0), 0, c->n - 1, &u) ||
            json_as_int(json_array_get(e, 1), 0, c->n - 1, &v) || u >= v)
            r = json_fault(doc, at, 2, err, err_len, "must be [dependency, user], dependency < user < n");
        else
            has[(size_t)u * n + (size_t)v] = 1;
    }
    int nd = 0, nu = 0;
    for (size_t i = 0; !r && i < n; i++) {
        c->dep_at[i] = nd;
        c->user_at[i] = nu;
        for (size_t j = 0; j < n; j++) {
            if (has[j * n + i])
                c->dep[nd++] = (int)j;
            if (has[i * n + j])
                c->user[nu++] = (int)j;
        }
    }
    c->dep_at[n] = nd;
    c->user_at[n] = nu;
    free(has);
    return r;
}

int checkmate_read(const struct json_doc *doc, struct checkmate *c, char *err, size_t err_len)
{
    memset(c, 0, sizeof *c);
    int64_t n = 0;
    json_t *edges = NULL;
    int r = json_get_int(doc, doc->root, NULL, 0, "n", 1, 1, NODES_MAX, &n, err, err_len);
    if (!r)
        r = json_get_int(doc, doc->root, NULL, 0, "budget", 1, 0, INT64_C(1) << 60, &c->budget, err, err_len);
    if (!r)
        r = json_get_int(doc, doc->root, NULL, 0, "constant_overhead", 0, 0, INT64_C(1) << 60, &c->fixed, err, err_len);
    if (!r)
        r = json_get_array(doc, doc->root, NULL, 0, "edges", 1, &edges, err, err_len);
    if (r)
        return r;
    size_t m = json_array_size(edges);
    c->n = (int)n;
    c->cost = malloc((size_t)n * sizeof *c->cost);
    c->mem = malloc((size_t)n * sizeof *c->mem);
    c->dep_at = calloc((size_t)n + 1, sizeof *c->dep_at);
    c->user_at = calloc((size_t)n + 1, sizeof *c->user_at);
    c->dep = malloc((m + 1) * sizeof *c->dep);
    c->user = malloc((m + 1) * sizeof *c->user);
    if (!c->cost || !c->mem || !c->dep_at || !c->user_at || !c->dep || !c->user)
        r = -ENOMEM;
    if (!r)
        r = read_numbers(doc, "cost", c->n, c->cost, err, err_len);
    if (!r)
        r = read_numbers(doc, "mem", c->n, c->mem, err, err_len);
    if (!r)
        r = read_edges(doc, c, err, err_len);
    if (r)
        checkmate_free(c);
    return r;
}

int checkmate_plan_new(const struct checkmate *c, struct checkmate_plan *p)
{
    p->R = calloc(2 * (size_t)c->n, (size_t)c->n);
    p->S = p->R ? p->R + AT(c, c->n, 0) : NULL;
    return p->R ? 0 : -ENOMEM;
}

void checkmate_plan_free(struct checkmate_plan *p)
{
    free(p->R);
    p->R = p->S = NULL;
}

/* 1: no slot after k of stage t reads i, and stage t+1 does not hold it. */
static int leaves(const struct checkmate *c, const struct checkmate_plan *p, int t, int i, int k)
{
    if (t + 1 < c->n && p->S[AT(c, t + 1, i)])
        return 0;
    for (int q = c->user_at[i]; q < c->user_at[i + 1]; q++)
        if (c->user[q] > k && c->user[q] <= t && p->R[AT(c, t, c->user[q])])
            return 0;
    return 1;
}

int checkmate_replay(const struct checkmate *c, const struct checkmate_plan *p, int64_t *cost, int64_t *peak)
{
    *cost = *peak = 0;
    for (int t = 0; t < c->n; t++) {
        int64_t use = c->fixed;
        if (!p->R[AT(c, t, t)])
            return -EINVAL;
        for (int i = 0; i < c->n; i++) {
            int held = p->S[AT(c, t, i)], made = p->R[AT(c, t, i)];
            if ((held && (i >= t || (!p->S[AT(c, t - 1, i)] && !p->R[AT(c, t - 1, i)]))) || (made && i > t))
                return -EINVAL;
            if (held)
                use += c->mem[i];
        }
        *peak = use > *peak ? use : *peak;
        for (int k = 0; k <= t; k++) {
            if (!p->R[AT(c, t, k)])
                continue;
            *cost += c->cost[k];
            for (int q = c->dep_at[k]; q < c->dep_at[k + 1]; q++)
                if (!p->R[AT(c, t, c->dep[q])] && !p->S[AT(c, t, c->dep[q])])
                    return -EINVAL;
            if (!p->S[AT(c, t, k)])
                use += c->mem[k];
            *peak = use > *peak ? use : *peak;
            for (int q = c->dep_at[k]; q < c->dep_at[k + 1]; q++)
                if (leaves(c, p, t, c->dep[q], k))
                    use -= c->mem[c->dep[q]];
            if (leaves(c, p, t, k, k))
                use -= c->mem[k];
        }
    }
    return 0;
}

void checkmate_complete(const struct checkmate *c, struct checkmate_plan *p)
{
    memset(p->R, 0, AT(c, c->n, 0));
    for (int t = 0; t < c->n; t++) {
        p->R[AT(c, t, t)] = 1;
        for (int i = t; i >= 0; i--) {
            p->S[AT(c, t, i)] = i < t && p->S[AT(c, t, i)];
            /* a result held into the next stage but not into this one is made here */
            if (t + 1 < c->n && p->S[AT(c, t + 1, i)] && !p->S[AT(c, t, i)])
                p->R[AT(c, t, i)] = 1;
            if (p->R[AT(c, t, i)])
                for (int q = c->dep_at[i]; q < c->dep_at[i + 1]; q++)
                    if (!p->S[AT(c, t, c->dep[q])])
                        p->R[AT(c, t, c->dep[q])] = 1;
        }
    }
}

void checkmate_prune(const struct checkmate *c, struct checkmate_plan *p)
{
    for (int t = c->n - 1; t >= 0; t--)
        for (int i = t; i >= 0; i--) {
            int used = i == t || (t + 1 < c->n && p->S[AT(c, t + 1, i)]);
            for (int q = c->user_at[i]; !used && q < c->user_at[i + 1]; q++)
                used = c->user[q] <= t && p->R[AT(c, t, c->user[q])];
            if (!used)
                p->R[AT(c, t, i)] = p->S[AT(c, t, i)] = 0;
            else if (p->S[AT(c, t, i)])
                p->R[AT(c, t, i)] = 0;
        }
}

int checkmate_sequence(const struct checkmate *c, const int32_t *order, int32_t n, int64_t *cost, int64_t *peak)
{
    /* Walk backwards; held[v]: a later entry reads the result of v before it is made again. */
    unsigned char *held = calloc((size_t)c->n + 1, 1), *made = calloc((size_t)c->n + 1, 1);
    int64_t use = c->fixed;
    int rc = held && made ? 0 : -ENOMEM;
    *cost = 0;
    *peak = use;
    for (int32_t k = n - 1; !rc && k >= 0; k--) {
        const int32_t v = order[k];
        if (v < 0 || v >= c->n) {
            rc = -EINVAL;
            break;
        }
        if (__builtin_add_overflow(*cost, c->cost[v], cost))
            rc = -EOVERFLOW;
        made[v] = 1;
        use += held[v] ? 0 : c->mem[v];
        for (int q = c->dep_at[v]; q < c->dep_at[v + 1]; q++) {
            const int d = c->dep[q];
            use += held[d] ? 0 : c->mem[d];
            held[d] = 1;
        }
        *peak = use > *peak ? use : *peak;
        use -= c->mem[v];
        held[v] = 0;
    }
    for (int v = 0; !rc && v < c->n; v++)
        if (held[v] || !made[v])
            rc = -EINVAL;
    free(held);
    free(made);
    return rc;
}

int checkmate_staged(const struct checkmate *c, const int32_t *order, int32_t n)
{
    int32_t stage = 0, last = -1;
    for (int32_t k = 0; k < n; k++) {
        if (order[k] > stage || order[k] <= last)
            return 0;
        last = order[k];
        if (order[k] == stage) {
            stage++;
            last = -1;
        }
    }
    return stage == c->n;
}

int32_t checkmate_order(const struct checkmate *c, const struct checkmate_plan *p, int32_t *order)
{
    int32_t n = 0;
    for (int t = 0; t < c->n; t++)
        for (int i = 0; i <= t; i++)
            if (p->R[AT(c, t, i)])
                order[n++] = i;
    return n;
}

json_t *checkmate_schedule_json(const struct checkmate *c, const int32_t *order, int32_t n, int64_t cost, int64_t peak)
{
    json_t *list = json_array();
    for (int32_t k = 0; list && k < n; k++)
        if (json_array_append_new(list, json_integer(order[k]))) {
            json_decref(list);
            list = NULL;
        }
    return list ? json_pack("{s:s, s:o, s:I, s:I, s:I}", "format", "checkmate-schedule-1", "order", list, "cost",
                            (json_int_t)cost, "peak", (json_int_t)peak, "budget", (json_int_t)c->budget)
                : NULL;
}
