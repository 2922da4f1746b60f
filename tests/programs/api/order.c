#include "tests/programs/api/order.h"

#include <string.h>

#define LEGACY_INDEX 0

const struct verb_row verb_row[N_VERBS] = {
    [V_ALLOC] = {"alloc", 0, 1, true, 0, 0, true, false, false},
    [V_FREE] = {"free", 0, 1, true, 0, 0, true, false, false},
    [V_ALLOC_SYNC] = {"alloc_sync", 0, 0, true, 0, 0, false, false, false},
    [V_FREE_SYNC] = {"free_sync", 0, 0, true, 0, 0, false, false, false},
    [V_MAP] = {"map", 2, 1, false, 0, 0, true, false, false},
    [V_JOIN] = {"join", 6, 1, false, 0, 0, true, false, false},
    [V_ADD] = {"add", 3, 1, false, 0, 0, true, false, false},
    [V_RELU] = {"relu", 1, 1, false, 0, 0, true, false, false},
    [V_HALVES] = {"halves", 2, 1, false, 0, 0, true, false, false},
    [V_STATS] = {"stats", 6, 5, false, 0, 0, true, false, false},
    [V_RANDOM] = {"random", 0, 1, false, 0, 0, true, false, false},
    [V_FILL] = {"fill", 0, 1, false, 0, 0, true, false, false},
    [V_FILL_PART] = {"fill_part", 0, 1, true, 0, 0, true, false, false},
    [V_FILL_SYNC] = {"fill_sync", 0, 1, false, 0, 0, true, true, false},
    [V_COPY] = {"copy", 2, 1, true, 0, 0, true, false, false},
    [V_COPY_SYNC] = {"copy_sync", 2, 1, true, 0, 0, true, true, false},
    [V_UP] = {"up", 0, 1, false, 1, 0, true, false, false},
    [V_UP_PAGED] = {"up_paged", 0, 1, false, 0, 0, true, false, false},
    [V_UP_SYNC] = {"up_sync", 0, 1, false, 1, 0, true, true, true},
    [V_DOWN] = {"down", 2, 0, false, 0, 1, true, false, false},
    [V_DOWN_PAGED] = {"down_paged", 2, 0, false, 0, 0, true, false, true},
    [V_DOWN_SYNC] = {"down_sync", 2, 0, false, 0, 0, true, true, true},
    [V_HOST_WRITE] = {"host_write", 0, 0, false, 0, 0, false, false, false},
    [V_HOST_READ] = {"host_read", 0, 0, false, 0, 0, false, false, false},
    [V_CALL_READ] = {"call_read", 0, 0, false, 1, 0, true, false, false},
    [V_CALL_WRITE] = {"call_write", 0, 0, false, 0, 1, true, false, false},
    [V_RECORD] = {"record", 0, 0, false, 0, 0, true, false, false},
    [V_WAIT] = {"wait", 0, 0, false, 0, 0, true, false, false},
    [V_DROP_EVENT] = {"drop_event", 0, 0, false, 0, 0, false, false, false},
    [V_SYNC_EVENT] = {"sync_event", 0, 0, false, 0, 0, false, false, false},
    [V_POLL_EVENT] = {"poll_event", 0, 0, false, 0, 0, false, false, false},
    [V_SYNC] = {"sync", 0, 0, false, 0, 0, false, false, false},
    [V_POLL] = {"poll", 0, 0, false, 0, 0, false, false, false},
    [V_SYNC_ALL] = {"sync_all", 0, 0, false, 0, 0, false, false, false},
    [V_CREATE] = {"create", 0, 0, false, 0, 0, false, false, false},
    [V_DESTROY] = {"destroy", 0, 0, false, 0, 0, false, false, false},
};

static void merge(uint32_t *into, const uint32_t *from)
{
    for (int i = 0; i < MAX_STREAMS; i++)
        if (into[i] < from[i])
            into[i] = from[i];
}

static bool is_blocking(const struct order *o, int s) { return o->kind[s] == STREAM_BLOCKING || o->kind[s] == STREAM_THREAD; }

/* What a step that comes next on s comes after: what the host knows and the legacy stream's rules included. Only a step makes
 * this the stream's own clock: waiting for a stream says nothing of what its next step would have waited for. */
static void next_clock(const struct order *o, int s, uint32_t *clock)
{
    memcpy(clock, o->clock[s], sizeof o->clock[s]);
    merge(clock, o->host);
    if (o->kind[s] == STREAM_LEGACY) {
        for (int u = 0; u < MAX_STREAMS; u++)
            if (is_blocking(o, u))
                merge(clock, o->clock[u]);
    } else if (is_blocking(o, s))
        merge(clock, o->clock[LEGACY_INDEX]);
}

static bool covers(const uint32_t *clock, const struct touched *x, bool for_write)
{
    if (x->writer >= 0 && clock[x->writer] < x->at)
        return false;
    for (int u = 0; for_write && u < MAX_STREAMS; u++)
        if (clock[u] < x->read[u])
            return false;
    return true;
}

bool order_covers(const struct order *o, int s, const struct touched *x, bool for_write)
{
    uint32_t clock[MAX_STREAMS];
    next_clock(o, s, clock);
    return covers(clock, x, for_write);
}

bool order_host_covers(const struct order *o, const struct touched *x, bool for_write)
{
    return covers(o->host, x, for_write);
}

static void note(struct order *o, int s, struct touched *x, bool write)
{
    if (!write)
        x->read[s] = o->at[s];
    else {
        memset(x->read, 0, sizeof x->read);
        x->writer = s;
        x->at = o->at[s];
    }
}

static void host_wrote(struct touched *x)
{
    memset(x->read, 0, sizeof x->read);
    x->writer = -1;
    x->at = 0;
}

static void host_knows_all(struct order *o)
{
    for (int s = 0; s < MAX_STREAMS; s++)
        o->host[s] = o->at[s];
}

/* The operands' rules; true if the step may be taken. */
static bool operands_legal(const struct order *o, const struct step *s, int stream)
{
    const struct verb_row *v = &verb_row[s->verb];
    for (int k = 0; k < 3; k++) {
        unsigned bit = 1u << k;
        if (!((v->reads | v->writes) & bit))
            continue;
        if (s->t[k] < 0 || s->t[k] >= MAX_TENSORS)
            return false;
        const struct tensor *t = &o->tensor[s->t[k]];
        if (s->verb != V_ALLOC && (!t->live || !order_covers(o, stream, &t->touched, (v->writes & bit) != 0)))
            return false;
        if (v->reads & bit && !t->filled)
            return false;
    }
    if (v->host_reads && (!o->buffer[s->host].filled || !order_covers(o, stream, &o->buffer[s->host].touched, false)))
        return false;
    return !v->host_writes || order_covers(o, stream, &o->buffer[s->host].touched, true);
}

static void take_operands(struct order *o, const struct step *s, int stream)
{
    const struct verb_row *v = &verb_row[s->verb];
    for (int k = 0; k < 3; k++)
        if ((v->reads | v->writes) & 1u << k) {
            struct tensor *t = &o->tensor[s->t[k]];
            bool write = (v->writes & 1u << k) != 0;
            note(o, stream, &t->touched, write);
            if (write && !v->part)
                t->filled = true;
        }
    if (v->host_reads)
        note(o, stream, &o->buffer[s->host].touched, false);
    if (v->host_writes) {
        note(o, stream, &o->buffer[s->host].touched, true);
        o->buffer[s->host].filled = true;
    }
}

static bool step_on_stream(struct order *o, const struct step *s)
{
    int stream = verb_row[s->verb].on_legacy ? LEGACY_INDEX : s->stream;
    if (!o->open[stream] || (o->kind[stream] == STREAM_THREAD && o->thread[stream] != s->thread))
        return false;
    struct tensor *t = s->t[0] >= 0 ? &o->tensor[s->t[0]] : NULL;
    if (s->verb == V_ALLOC && (!t || t->live))
        return false;
    if (s->verb == V_FREE && t && t->sync)
        return false;
    if (s->verb == V_WAIT && !o->event[s->event].recorded)
        return false;
    if (!operands_legal(o, s, stream))
        return false;
    uint32_t clock[MAX_STREAMS];
    next_clock(o, stream, clock);
    memcpy(o->clock[stream], clock, sizeof clock);
    if (s->verb == V_WAIT)
        merge(o->clock[stream], o->event[s->event].clock);
    o->clock[stream][stream] = ++o->at[stream];
    take_operands(o, s, stream);
    switch (s->verb) {
    case V_ALLOC:
        t->words = s->value;
        t->live = true;
        t->filled = t->sync = false;
        break;
    case V_FREE:
        t->live = t->filled = false;
        break;
    case V_COPY:
    case V_COPY_SYNC:
        if (o->tensor[s->t[1]].words >= t->words)
            t->filled = true;
        break;
    case V_RECORD:
        o->event[s->event].recorded = true;
        o->event[s->event].stream = stream;
        memcpy(o->event[s->event].clock, o->clock[stream], sizeof o->clock[stream]);
        break;
    default:
        break;
    }
    if (verb_row[s->verb].host_waits)
        merge(o->host, o->clock[stream]);
    return true;
}

bool order_step(struct order *o, const struct step *s)
{
    if (verb_row[s->verb].on_stream)
        return step_on_stream(o, s);
    struct tensor *t = s->t[0] >= 0 ? &o->tensor[s->t[0]] : NULL;
    switch (s->verb) {
    case V_ALLOC_SYNC:
        if (!t || t->live)
            return false;
        t->words = s->value;
        t->live = t->sync = true;
        t->filled = false;
        host_wrote(&t->touched);
        return true;
    case V_FREE_SYNC:
        /* memory of cuMemAlloc waits for its users; the program does not rely on more than that */
        if (!t || !t->live || (!t->sync && !order_host_covers(o, &t->touched, true)))
            return false;
        t->live = t->filled = false;
        return true;
    case V_HOST_WRITE:
        if (!order_host_covers(o, &o->buffer[s->host].touched, true))
            return false;
        host_wrote(&o->buffer[s->host].touched);
        o->buffer[s->host].filled = true;
        return true;
    case V_HOST_READ:
        return o->buffer[s->host].filled && order_host_covers(o, &o->buffer[s->host].touched, false);
    case V_DROP_EVENT:
        o->event[s->event].recorded = false;
        return true;
    case V_SYNC_EVENT:
    case V_POLL_EVENT:
        if (!o->event[s->event].recorded)
            return false;
        merge(o->host, o->event[s->event].clock);
        return true;
    case V_SYNC:
    case V_POLL:
        if (!o->open[s->stream] || (o->kind[s->stream] == STREAM_THREAD && o->thread[s->stream] != s->thread))
            return false;
        merge(o->host, o->clock[s->stream]);
        return true;
    case V_SYNC_ALL:
        host_knows_all(o);
        return true;
    case V_CREATE:
        if (o->kind[s->stream] != STREAM_SHORT || o->open[s->stream] || o->at[s->stream])
            return false;
        o->open[s->stream] = true;
        return true;
    case V_DESTROY:
        if (o->kind[s->stream] != STREAM_SHORT || !o->open[s->stream])
            return false;
        o->open[s->stream] = false;
        return true;
    default:
        return false;
    }
}
