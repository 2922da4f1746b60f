#include "tests/programs/api/order.h"

#include <string.h>

enum { ORDER_STREAM = 1, ORDER_DURING = 2 }; /* CUmemcpySrcAccessOrder */

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
    [V_LIST_UP] = {"list_up", 0, 1, false, 0, 0, true, false, false},
    [V_LIST_POKE] = {"list_poke", 0, 0, false, 0, 0, false, false, false},
    [V_LIST_LAY] = {"list_lay", 0, 1, false, 0, 0, true, false, false},
    [V_LIST_COPY] = {"list_copy", 2, 1, false, 0, 0, true, false, false},
    [V_FROM_LIST] = {"from_list", 14, 1, false, 0, 0, true, false, false},
    [V_TO_LIST] = {"to_list", 10, 4, false, 0, 0, true, false, false},
    [V_FROM_NAMED] = {"from_named", 10, 1, false, 0, 0, true, false, false},
    [V_POKE] = {"poke", 0, 0, false, 0, 0, false, false, false},
    [V_PEEK] = {"peek", 0, 0, false, 0, 0, false, false, false},
    [V_GRAPH_MAKE] = {"graph_make", 0, 0, false, 0, 0, false, false, false},
    [V_GRAPH_RUN] = {"graph_run", 6, 1, false, 0, 0, true, false, false},
    [V_GRAPH_UP] = {"graph_up", 0, 1, false, 1, 0, true, false, false},
    [V_SHOW] = {"show", 0, 0, false, 0, 0, false, false, false},
    [V_TEXTURED] = {"textured", 6, 1, false, 0, 0, true, false, false},
    [V_SURFACE] = {"surface", 6, 5, false, 0, 0, true, false, false},
    [V_ARRAY_UP] = {"array_up", 0, 1, false, 0, 0, true, false, false},
    [V_TENSOR_MAP] = {"tensor_map", 2, 1, false, 0, 0, true, false, false},
    [V_BATCH] = {"batch", 2, 1, false, 0, 0, true, false, false},
    [V_BATCH_UP] = {"batch_up", 0, 1, false, 0, 0, true, false, false},
    [V_PEER_COPY] = {"peer_copy", 2, 1, true, 0, 0, true, false, false},
    [V_BESIDE_CAPTURE] = {"beside_capture", 0, 1, true, 0, 0, true, false, false},
    [V_TRIM] = {"trim", 0, 0, false, 0, 0, false, false, false},
};

static void merge(uint32_t *into, const uint32_t *from)
{
    for (int i = 0; i < MAX_STREAMS; i++)
        if (into[i] < from[i])
            into[i] = from[i];
}

int order_legacy(const struct order *o, int context)
{
    for (int s = 0; s < MAX_STREAMS; s++)
        if (o->kind[s] == STREAM_LEGACY && o->context[s] == context)
            return s;
    return 0;
}

bool order_reaches(enum context c, enum memory m, enum verb v)
{
    if (m == MEM_ARRAY)
        return v == V_ARRAY_UP || v == V_TEXTURED || v == V_SURFACE;
    return v == V_PEER_COPY || c != CONTEXT_PEER || m != MEM_POOL;
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
            if (is_blocking(o, u) && o->context[u] == o->context[s])
                merge(clock, o->clock[u]);
    } else if (is_blocking(o, s))
        merge(clock, o->clock[order_legacy(o, o->context[s])]);
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

static bool is_alloc(int verb) { return verb == V_ALLOC || verb == V_BESIDE_CAPTURE; }

/* The source of a copy may be read before what the stream has queued: the host must have seen the end of whoever writes it. */
static bool early_sources_legal(const struct order *o, const struct step *s)
{
    return s->verb != V_BATCH || s->how == ORDER_STREAM ||
           (o->tensor[s->t[1]].words >= o->tensor[s->t[0]].words && order_host_covers(o, &o->tensor[s->t[1]].touched, false));
}

/* What a graph or a texture stands for is what the step says. */
static bool shown_legal(const struct order *o, const struct step *s)
{
    const bool graph = s->verb == V_GRAPH_RUN || s->verb == V_GRAPH_UP, texture = s->verb == V_TEXTURED || s->verb == V_SURFACE;
    const struct shown *x = graph ? &o->graph[s->event] : &o->texture[s->event];
    if (!graph && !texture)
        return true;
    if (!x->made || x->how != s->how || (graph && x->host != s->host))
        return false;
    return texture ? x->t[2] == s->t[2] : !memcmp(x->t, s->t, sizeof x->t);
}

/* A list is made of the address of memory that is there, and holds it. */
static bool target_legal(const struct order *o, const struct step *s)
{
    if (!order_lays(s->verb))
        return true;
    const struct tensor *list = &o->tensor[s->t[0]], *to = &o->tensor[s->t[1]];
    if (s->verb == V_LIST_COPY)
        return list->words >= LIST_WORDS && s->t[0] != s->t[1] && to->points != s->t[0];
    return to->live && list->words >= LIST_WORDS && s->t[0] != s->t[1] && (s->verb != V_LIST_LAY || to->memory != MEM_POOL);
}

/* The operands' rules; true if the step may be taken. */
static bool operands_legal(const struct order *o, const struct step *s, int stream)
{
    const struct verb_row *v = &verb_row[s->verb];
    for (int k = 0; k < OPERANDS; k++) {
        unsigned bit = 1u << k;
        if (!((v->reads | v->writes) & bit))
            continue;
        if (s->t[k] < 0 || s->t[k] >= MAX_TENSORS)
            return false;
        const struct tensor *t = &o->tensor[s->t[k]];
        if (is_alloc(s->verb))
            continue;
        if (!t->live || !order_covers(o, stream, &t->touched, (v->writes & bit) != 0) || !order_reaches(o->context[stream], t->memory, s->verb))
            return false;
        const bool list = k == 1 && (order_follows(s->verb) || s->verb == V_LIST_COPY);
        if (list && (t->points < 0 || (order_follows(s->verb) && t->points != s->t[2])))
            return false;
        if (v->reads & bit && !list && !t->filled)
            return false;
    }
    if (!early_sources_legal(o, s) || !shown_legal(o, s) || !target_legal(o, s))
        return false;
    if (v->host_reads && (!o->buffer[s->host].filled || !order_covers(o, stream, &o->buffer[s->host].touched, false)))
        return false;
    return !v->host_writes || order_covers(o, stream, &o->buffer[s->host].touched, true);
}

static void becomes_list(struct order *o, const struct step *s)
{
    struct tensor *t = &o->tensor[s->t[0]];
    t->filled = false; /* whose words are other ones in every run */
    t->points = s->verb == V_LIST_COPY ? o->tensor[s->t[1]].points : s->t[1];
}

/* It is gone, and what rests on it may not be used. */
static void forget_tensor(struct order *o, int t)
{
    o->tensor[t].live = o->tensor[t].filled = false;
    o->tensor[t].points = -1;
    for (int i = 0; i < MAX_TENSORS; i++)
        if (o->tensor[i].points == t)
            o->tensor[i].points = -1;
    for (int k = 0; k < OPERANDS; k++) {
        for (int i = 0; i < MAX_GRAPHS; i++)
            o->graph[i].made &= o->graph[i].t[k] != t;
        for (int i = 0; i < MAX_TEXTURES; i++)
            o->texture[i].made &= o->texture[i].t[k] != t;
    }
}

static void new_tensor(struct order *o, const struct step *s, enum memory m)
{
    struct tensor *t = &o->tensor[s->t[0]];
    t->words = s->value;
    t->live = true;
    t->filled = false;
    t->memory = (uint8_t)m;
    t->points = -1;
}

static void take_operands(struct order *o, const struct step *s, int stream)
{
    const struct verb_row *v = &verb_row[s->verb];
    for (int k = 0; k < OPERANDS; k++)
        if ((v->reads | v->writes) & 1u << k) {
            struct tensor *t = &o->tensor[s->t[k]];
            bool write = (v->writes & 1u << k) != 0;
            if (s->verb == V_BATCH && !write && s->how == ORDER_DURING)
                continue; /* it has been read when the call is back */
            note(o, stream, &t->touched, write);
            if (write && order_lays(s->verb))
                becomes_list(o, s);
            else if (write)
                t->points = -1;
            if (write && !v->part && !order_lays(s->verb))
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
    int stream = verb_row[s->verb].on_legacy ? order_legacy(o, s->context) : s->stream;
    if (!o->open[stream] || (o->kind[stream] == STREAM_THREAD && o->thread[stream] != s->thread))
        return false;
    struct tensor *t = s->t[0] >= 0 ? &o->tensor[s->t[0]] : NULL;
    if (is_alloc(s->verb) && (!t || t->live || o->context[stream] == CONTEXT_PEER))
        return false;
    if (s->verb == V_FREE && t && (t->memory != MEM_POOL || o->context[stream] == CONTEXT_PEER))
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
    case V_BESIDE_CAPTURE:
        new_tensor(o, s, MEM_POOL);
        break;
    case V_FREE:
        forget_tensor(o, s->t[0]);
        break;
    case V_COPY:
    case V_COPY_SYNC:
    case V_PEER_COPY:
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

static bool has_contexts(const struct order *o)
{
    bool any = false;
    for (int s = 0; s < MAX_STREAMS; s++)
        any |= o->kind[s] != STREAM_NONE && o->context[s] != CONTEXT_PRIMARY;
    return any;
}

static bool is_the_hosts(const struct tensor *t) { return t->memory == MEM_MANAGED || t->memory == MEM_PINNED; }

/* A graph, or a texture: nothing runs yet, but what it names must be there. */
static bool make_shown(struct order *o, const struct step *s)
{
    struct shown *x = s->verb == V_GRAPH_MAKE ? &o->graph[s->event] : &o->texture[s->event];
    for (int k = 0; k < OPERANDS; k++)
        if (s->t[k] >= 0 && (!o->tensor[s->t[k]].live || (s->verb == V_GRAPH_MAKE && o->tensor[s->t[k]].memory == MEM_ARRAY)))
            return false;
    x->made = true;
    x->how = s->how;
    x->host = s->host;
    memcpy(x->t, s->t, sizeof x->t);
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
        new_tensor(o, s, s->how);
        host_wrote(&t->touched);
        return true;
    case V_FREE_SYNC:
        /* memory of cuMemAlloc waits for its users, in its own context; the program does not rely on more than that */
        if (!t || !t->live || ((t->memory != MEM_PLAIN || has_contexts(o)) && !order_host_covers(o, &t->touched, true)))
            return false;
        forget_tensor(o, s->t[0]);
        return true;
    case V_LIST_POKE:
    case V_POKE:
        if (!t || !t->live || !is_the_hosts(t) || !order_host_covers(o, &t->touched, true) || !target_legal(o, s))
            return false;
        host_wrote(&t->touched);
        t->filled = true;
        t->points = -1;
        if (s->verb == V_LIST_POKE)
            becomes_list(o, s);
        return true;
    case V_PEEK:
        return t && t->live && t->filled && is_the_hosts(t) && order_host_covers(o, &t->touched, false);
    case V_GRAPH_MAKE:
    case V_SHOW:
        return make_shown(o, s);
    case V_TRIM:
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
