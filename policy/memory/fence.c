/* fence.c: see fence.h. Each order is one event, recorded on one stream and awaited by the other. */
#include "policy/device.h"
#include "policy/process/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets of points ------------------------------------------------------------------------------------------------ */

/* Points that a fence has no room for. A set never changes, since fences that name it are copied freely: equal sets are one set. Once all points of a set have
 * been seen to end its place is given to another set; a fence that still names the old set (by place and tenant) then names no set. */
struct set {
    uint64_t tenant; /* counts the sets that have had this place */
    uint64_t *point; /* [n] by stream, one point each; NULL: the place is free */
    uint32_t n, next; /* next: place of the next set with the same hash, or of the next free place, plus one; 0: none */
};

enum { SET_BITS = 24, SET_BUCKETS = 256 };

struct fence_sets {
    struct set *at;
    uint32_t n, cap, live, look_at; /* look_at: sets_look() runs when so many sets are live */
    uint32_t free, bucket[SET_BUCKETS]; /* places, plus one; 0: none */
    uint64_t *scratch; /* points of the union being made */
    uint32_t cap_scratch;
    bool puts_off;          /* waits of the host are noted, not made (fence_put_off) */
    struct host_wait noted; /* the first such wait; event NULL: none */
};

static struct fence_sets *sets_of(struct device *d)
{
    if (!d->streams->sets)
        d->streams->sets = calloc(1, sizeof *d->streams->sets);
    return d->streams->sets;
}

static const struct set *set_named(const struct device *d, uint64_t name)
{
    const struct fence_sets *s = d->streams->sets;
    if (!name || !s)
        return NULL;
    const struct set *t = &s->at[(name & ((1u << SET_BITS) - 1)) - 1];
    return t->point && t->tenant == name >> SET_BITS ? t : NULL;
}

static uint64_t name_of(const struct fence_sets *s, const struct set *t) { return t->tenant << SET_BITS | (uint64_t)(t - s->at + 1); }

static uint32_t hash_of(const uint64_t *p, uint32_t n)
{
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32) % SET_BUCKETS;
}

static bool has_ended(const struct device *d, const struct set *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (d->streams->row[fence_point_stream(t->point[i])].done < fence_point_seq(t->point[i]))
            return false;
    return true;
}

/* Frees the places of sets whose points have all ended. */
static void sets_look(struct device *d, struct fence_sets *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct set *t = &s->at[i];
        if (!t->point)
            continue;
        for (uint32_t k = 0; k < t->n && !d->capturing; k++)
            if (!stream_has_passed(d, fence_point_stream(t->point[k]), fence_point_seq(t->point[k])))
                break;
        if (!has_ended(d, t))
            continue;
        uint32_t *at = &s->bucket[hash_of(t->point, t->n)];
        while (*at != i + 1)
            at = &s->at[*at - 1].next;
        *at = t->next;
        free(t->point);
        t->point = NULL;
        t->tenant++;
        t->next = s->free;
        s->free = i + 1;
        s->live--;
    }
    s->look_at = 2 * s->live + 64;
}

/* Name of the set of the n points in scratch, which are in order; 0: no memory. */
static uint64_t set_of_scratch(struct device *d, struct fence_sets *s, uint32_t n)
{
    uint32_t *bucket = &s->bucket[hash_of(s->scratch, n)];
    for (uint32_t i = *bucket; i; i = s->at[i - 1].next)
        if (s->at[i - 1].n == n && !memcmp(s->at[i - 1].point, s->scratch, n * sizeof *s->scratch))
            return name_of(s, &s->at[i - 1]);
    if (s->live >= s->look_at)
        sets_look(d, s);
    if (!s->free && s->n == s->cap) {
        const uint32_t cap = s->cap ? 2 * s->cap : 64;
        struct set *p = cap < 1u << SET_BITS ? realloc(s->at, cap * sizeof *p) : NULL;
        if (!p)
            return 0;
        memset(p + s->cap, 0, (cap - s->cap) * sizeof *p);
        s->at = p;
        s->cap = cap;
    }
    uint64_t *point = malloc(n * sizeof *point);
    if (!point)
        return 0;
    memcpy(point, s->scratch, n * sizeof *point);
    const uint32_t i = s->free ? s->free - 1 : s->n++;
    struct set *t = &s->at[i];
    if (s->free)
        s->free = t->next;
    bucket = &s->bucket[hash_of(point, n)];
    *t = (struct set){.tenant = t->tenant + 1, .point = point, .n = n, .next = *bucket};
    *bucket = i + 1;
    s->live++;
    return name_of(s, t);
}

/* Adds a point to scratch, which stays in order of streams, unless the host has seen the point's end. False: no memory. */
static bool scratch_add(struct device *d, struct fence_sets *s, uint32_t *n, uint64_t p)
{
    const unsigned u = fence_point_stream(p);
    if (!p || fence_point_seq(p) <= d->streams->row[u].done)
        return true;
    uint32_t i = *n;
    while (i && fence_point_stream(s->scratch[i - 1]) > u)
        i--;
    if (i && fence_point_stream(s->scratch[i - 1]) == u) {
        s->scratch[i - 1] = s->scratch[i - 1] > p ? s->scratch[i - 1] : p;
        return true;
    }
    if (*n == s->cap_scratch) {
        const uint32_t cap = s->cap_scratch ? 2 * s->cap_scratch : 64;
        uint64_t *q = realloc(s->scratch, cap * sizeof *q);
        if (!q)
            return false;
        s->scratch = q;
        s->cap_scratch = cap;
    }
    memmove(s->scratch + i + 1, s->scratch + i, (*n - i) * sizeof *s->scratch);
    s->scratch[i] = p;
    ++*n;
    return true;
}

/* Makes f->set the union of f's set and the set `other`, and where `spills` of f's own points too, which leaves their places free. False: no memory, f is unchanged. */
static bool unite(struct device *d, struct fence *f, uint64_t other, bool spills)
{
    struct fence_sets *s = sets_of(d);
    uint32_t n = 0;
    bool ok = s != NULL;
    const uint64_t names[] = {f->set, other};
    for (int k = 0; k < 2 && ok; k++) {
        const struct set *t = set_named(d, names[k]);
        for (uint32_t i = 0; t && i < t->n && ok; i++)
            ok = scratch_add(d, s, &n, t->point[i]);
    }
    for (int i = 0; i < FENCE_POINTS && spills && ok; i++)
        ok = scratch_add(d, s, &n, f->point[i]);
    const uint64_t name = ok && n ? set_of_scratch(d, s, n) : 0;
    if (!ok || (n && !name))
        return false;
    f->set = name;
    if (spills)
        memset(f->point, 0, sizeof f->point);
    return true;
}

/* ---- publish, merge -------------------------------------------------------------------------------------------------- */

static int sync_up_to(struct device *d, unsigned u, uint64_t q);

/* Without memory for a set the host waits for the points of f: at once, even where waits are put off. */
static void wait_instead(struct device *d, const struct fence *f)
{
    struct fence_sets *s = d->streams->sets;
    const bool puts_off = s && s->puts_off;
    if (puts_off)
        s->puts_off = false;
    (void)!fence_sync(d, f); /* an error leaves the device broken */
    if (puts_off)
        s->puts_off = true;
}

static void add_point(struct device *d, struct fence *f, uint64_t p)
{
    const unsigned u = fence_point_stream(p);
    const struct streams *st = d->streams;
    if (!p || fence_point_seq(p) <= st->row[u].done)
        return;
    if (!rt_check(d, fence_point_seq(p) <= d->seq[u]))
        p = fence_point(u, d->seq[u]);
    int at = -1;
    for (int i = 0; i < FENCE_POINTS; i++) {
        if (f->point[i] && fence_point_stream(f->point[i]) == u) {
            f->point[i] = f->point[i] < p ? p : f->point[i];
            return;
        }
        if (at < 0 && (!f->point[i] || fence_point_seq(f->point[i]) <= st->row[fence_point_stream(f->point[i])].done))
            at = i;
    }
    for (int i = 0; i < FENCE_POINTS && at < 0 && !d->capturing; i++) /* the driver is asked whether a point has passed before a set is made */
        if (stream_has_passed(d, fence_point_stream(f->point[i]), fence_point_seq(f->point[i])))
            at = i;
    if (at < 0 && !unite(d, f, 0, true)) {
        wait_instead(d, f);
        *f = (struct fence){0};
    }
    f->point[at < 0 ? 0 : at] = p;
}

void fence_trim(struct device *d, struct fence *f)
{
    int n = 0;
    for (int i = 0; i < FENCE_POINTS; i++) {
        uint64_t p = f->point[i];
        f->point[i] = 0;
        if (p && fence_point_seq(p) > d->streams->row[fence_point_stream(p)].done)
            f->point[n++] = p;
    }
    const struct set *t = set_named(d, f->set);
    if (!t || has_ended(d, t))
        f->set = 0;
}

void fence_add(struct device *d, struct fence *f, unsigned u)
{
    uint64_t p = fence_point(u, d->seq[u]);
    if (!fence_only_on(f, u))
        fence_trim(d, f);
    if (fence_only_on(f, u) && d->seq[u] > d->streams->row[u].done)
        f->point[0] = p; /* nearly always */
    else
        add_point(d, f, p);
}

void fence_merge_all(struct device *d, struct fence *f, const struct fence *g)
{
    for (int i = 0; i < FENCE_POINTS; i++)
        if (g->point[i] && g->point[i] != f->point[i])
            add_point(d, f, g->point[i]);
    if (!g->set || g->set == f->set || !set_named(d, g->set))
        return;
    if (!f->set)
        f->set = g->set;
    else if (!unite(d, f, g->set, false))
        wait_instead(d, &(struct fence){.set = g->set});
}

/* ---- wait ------------------------------------------------------------------------------------------------------------ */

/* Notes that the host would have to wait for stream u, up to `gate` or (NULL) to the stream's tail; false: the host need not wait, or there is no event to wait
 * for. */
static bool put_off(struct device *d, unsigned u, struct gate *gate)
{
    struct streams *st = d->streams;
    struct host_wait w = {.event = gate ? gate->event : st->row[u].event, .stream = u, .seq = gate ? gate->seq : d->seq[u]};
    if (st->sets->noted.event)
        return true;
    if (d->drv->cuEventQuery(w.event) != CUDA_ERROR_NOT_READY)
        return false;
    if (gate)
        gate->users++; /* keeps the gate while its event is waited for */
    else if (!stream_stands_at_tail(st, u)) { /* the stream's own event may be recorded again meanwhile */
        if (!(w.event = stream_event_drv(d, u)))
            return false;
        w.ours = true;
    }
    st->sets->noted = w;
    return true;
}

void fence_put_off(struct device *d)
{
    struct fence_sets *s = sets_of(d);
    if (s)
        s->puts_off = true;
}

bool fence_is_put_off(const struct device *d) { return d->streams->sets && d->streams->sets->noted.event; }

bool fence_put_off_ends(struct device *d, struct host_wait *w)
{
    struct fence_sets *s = sets_of(d);
    *w = s ? s->noted : (struct host_wait){0};
    if (s) {
        s->noted = (struct host_wait){0};
        s->puts_off = false;
    }
    return w->event;
}

void fence_waited(struct device *d, struct host_wait *w, bool passed)
{
    struct stream_row *r = &d->streams->row[w->stream];
    if (passed && r->done < w->seq)
        r->done = w->seq;
    if (w->ours)
        d->drv->cuEventDestroy_v2(w->event);
    for (uint32_t i = 0; i < r->n_gates && !w->ours; i++)
        if (r->gates[i].event == w->event && r->gates[i].users) {
            r->gates[i].users--;
            break;
        }
}

/* The host waits for stream u up to the first gate behind q, or without one up to the stream's tail. The last point may be a free that the driver never
 * saw: on a blocking stream that free comes after the legacy stream's work, which only an event recorded there now can say. */
static int sync_up_to(struct device *d, unsigned u, uint64_t q)
{
    struct streams *st = d->streams;
    struct gate *gate = stream_gate_behind(st, u, q);
    CUevent e = gate ? gate->event : st->row[u].event;
    bool there = gate || (e && (stream_stands_at_tail(st, u) || stream_record_drv(d, u, e) == CUDA_SUCCESS));
    q = gate ? gate->seq : d->seq[u];
    if (st->sets && st->sets->puts_off && there && put_off(d, u, gate))
        return -EAGAIN;
    CUresult r = there ? d->drv->cuEventSynchronize(e) : stream_sync_drv(d, u);
    if (r != CUDA_SUCCESS)
        return stream_broken(d, r);
    if (st->row[u].done < q)
        st->row[u].done = q;
    return 0;
}

/* Stream t is ordered behind stream u up to q. */
static int order(struct device *d, unsigned t, unsigned u, uint64_t q)
{
    struct streams *st = d->streams;
    if (!rt_check(d, q <= d->seq[u]))
        q = d->seq[u];
    if (!rt_check(d, st->row[u].done <= d->seq[u] && stream_waited(st, t, u) <= d->seq[u])) {
        st->row[u].done = 0; /* u is waited for once more from its beginning */
        stream_has_waited(st, t, u, 0);
    }
    if (t == u || st->row[u].done >= q)
        return 0;
    int r = stream_own(d, t);
    if (r || stream_waited(st, t, u) >= q)
        return r;
    CUevent e;
    struct gate *gate = NULL;
    uint64_t up_to = q;
    if (u < STREAM_FIRST_PROGRAM && q + STREAM_MARKS > d->seq[u] && st->marked[u][q % STREAM_MARKS] == q)
        e = st->mark[u][q % STREAM_MARKS];
    else if ((gate = stream_gate_behind(st, u, q))) {
        e = gate->event;
        up_to = gate->seq;
    } else {
        e = st->row[u].event;
        up_to = d->seq[u];
        if (!e || (!stream_stands_at_tail(st, u) && stream_record_drv(d, u, e) != CUDA_SUCCESS))
            return sync_up_to(d, u, q);
    }
    if (stream_await_drv(d, t, e) != CUDA_SUCCESS)
        return sync_up_to(d, u, q);
    stream_has_waited(st, t, u, up_to);
    return 0;
}

/* Calls `make` for each point of a fence; the first error is kept. */
static int each_point(struct device *d, const struct fence *f, int (*make)(struct device *d, unsigned t, unsigned u, uint64_t q), unsigned t)
{
    int first = 0;
    for (int i = 0; i < FENCE_POINTS; i++) {
        int r = f->point[i] ? make(d, t, fence_point_stream(f->point[i]), fence_point_seq(f->point[i])) : 0;
        first = first ? first : r;
    }
    const struct set *s = set_named(d, f->set);
    for (uint32_t i = 0; s && i < s->n; i++) {
        int r = make(d, t, fence_point_stream(s->point[i]), fence_point_seq(s->point[i]));
        first = first ? first : r;
    }
    return first;
}

int fence_wait_all(struct device *d, unsigned t, const struct fence *f) { return each_point(d, f, order, t); }

static int sync_one(struct device *d, unsigned t, unsigned u, uint64_t q)
{
    (void)t;
    return d->streams->row[u].done < q ? sync_up_to(d, u, q) : 0;
}

int fence_sync(struct device *d, const struct fence *f) { return each_point(d, f, sync_one, 0); }

int fence_sync_queued(struct device *d, bool refuses)
{
    const struct streams *st = d->streams;
    if (!stream_any_stands(d))
        return d->drv->cuCtxSynchronize() == CUDA_SUCCESS ? 0 : -EIO;
    for (int pass = refuses ? 0 : 1; pass < 2; pass++)
        for (unsigned u = 0; u < st->n; u++) {
            struct stream_row *s = &st->row[u];
            const bool stands = u >= STREAM_FIRST_PROGRAM && stream_stands(d, u, d->seq[u]), alone = stands && stream_only_stands(s, d->seq[u]);
            const uint64_t q = alone ? s->stands_from : d->seq[u];
            if (!pass && stands && !alone)
                return -EBUSY;
            const int r = pass && s->done < q ? sync_up_to(d, u, q) : 0;
            if (r)
                return r;
        }
    return 0;
}

static int has_yet_to_pass(struct device *d, unsigned t, unsigned u, uint64_t q) { return (void)t, !stream_has_passed(d, u, q); }

bool fence_has_passed(struct device *d, const struct fence *f) { return !each_point(d, f, has_yet_to_pass, 0); }

static int stands_beside(struct device *d, unsigned t, unsigned u, uint64_t q) { return u != t && stream_stands(d, u, q); }

bool fence_stands_beside(struct device *d, const struct fence *f, unsigned t) { return d->streams->gated && each_point(d, f, stands_beside, t); }

bool fence_stands(struct device *d, const struct fence *f) { return fence_stands_beside(d, f, STREAM_NONE); }

bool fence_is_sound(const struct device *d, const struct fence *f)
{
    bool sound = true;
    for (int i = 0; i < FENCE_POINTS; i++)
        sound &= !f->point[i] || fence_point_seq(f->point[i]) <= d->seq[fence_point_stream(f->point[i])];
    const struct set *s = set_named(d, f->set);
    for (uint32_t i = 0; s && i < s->n; i++)
        sound &= fence_point_seq(s->point[i]) <= d->seq[fence_point_stream(s->point[i])];
    return sound;
}
