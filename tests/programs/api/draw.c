/* Drawing a program from a seed: legal by construction. Before a step that needs an order the program does not have yet, the
 * steps that make it are drawn: an event that was recorded already, a fresh one, or a wait of the host. */
#include "tests/programs/api/draw.h"
#include "tests/programs/api/kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__thread struct drawing d;

uint32_t draw(uint32_t n)
{
    d.rng = d.rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((d.rng >> 33) % n);
}

bool chance(unsigned percent) { return draw(100) < percent; }

/* The context that is current: the stream's, where it must be that one; of a device's contexts any other time. */
static void set_context(struct step *s)
{
    const struct verb_row *v = &verb_row[s->verb];
    const bool named = v->on_stream || s->verb == V_SYNC || s->verb == V_POLL || s->verb == V_DESTROY;
    if (named && !v->on_legacy && (d.o.kind[s->stream] == STREAM_LEGACY || d.o.context[s->stream] == CONTEXT_PEER))
        s->context = d.o.context[s->stream];
    else if (s->verb == V_ALLOC_SYNC && s->how == MEM_REMOTE)
        s->context = CONTEXT_PEER;
    else if (d.kinds & KIND_CONTEXT && s->verb != V_SYNC_ALL && s->verb != V_CREATE && !(named && d.o.kind[s->stream] == STREAM_THREAD) && !v->on_legacy)
        s->context = chance(30) ? CONTEXT_GREEN : CONTEXT_PRIMARY;
}

void emit(struct step s)
{
    struct program *p = d.p;
    set_context(&s);
    if (verb_row[s.verb].on_stream || s.verb == V_SYNC || s.verb == V_POLL) {
        if (d.o.kind[s.stream] == STREAM_THREAD)
            s.thread = d.o.thread[s.stream];
    }
    if (p->n_steps == MAX_STEPS || !order_step(&d.o, &s)) {
        fprintf(stderr, "seed %llu: step %d (%s) is not legal\n", (unsigned long long)p->seed, p->n_steps, verb_row[s.verb].name);
        abort();
    }
    p->step[p->n_steps++] = s;
}

/* In a training loop of some kind the arguments of launches are the same in every round: the host's numbers alone are others. And where it is
 * steady at first, whatever writes a table writes the same until then. */
static uint32_t number(enum verb v, uint32_t lot)
{
    const bool data = v == V_UP_PAGED || v == V_HOST_WRITE || v == V_CALL_WRITE || v == V_POKE || v == V_ARRAY_UP || v == V_BATCH_UP;
    if (d.steady && d.writes_table && (!data || d.round < d.steady))
        return 7;
    return lot + 7919u * (!d.trains || (data && d.round >= d.steady) ? d.round : 0);
}

struct step step(enum verb v, int stream, int a, int b, int c)
{
    return (struct step){.verb = (uint8_t)v,
                         .stream = (uint8_t)stream,
                         .thread = d.p->helper && !d.in_round ? (uint8_t)draw(2) : 0,
                         .t = {(int16_t)a, (int16_t)b, (int16_t)c, -1},
                         .value = number(v, draw(1u << 30))};
}

int any_stream(void)
{
    if (d.kinds & KIND_CONTEXT && chance(40)) /* default streams are told apart by the context alone */
        return order_legacy(&d.o, (int)draw(2));
    for (;;) {
        int s = (int)draw((uint32_t)d.n_streams);
        if (d.o.open[s] && d.o.context[s] != CONTEXT_PEER && (s != 0 || chance(40)))
            return s;
    }
}

void emit_event(enum verb v, int stream, int e)
{
    struct step s = step(v, stream, -1, -1, -1);
    s.event = (uint8_t)e;
    emit(s);
}

/* ---- making orders ------------------------------------------------------------------------------------------------- */

/* Stream s comes after the first `at` steps of stream u from here on. */
static void order_after(int s, int u, uint32_t at)
{
    if (d.o.clock[s][u] >= at || d.o.host[u] >= at)
        return;
    unsigned from = draw(MAX_EVENTS);
    for (unsigned k = 0; k < MAX_EVENTS && chance(80); k++) {
        unsigned e = (from + k) % MAX_EVENTS;
        if (d.o.event[e].recorded && d.o.event[e].clock[u] >= at) {
            emit_event(V_WAIT, s, (int)e);
            return;
        }
    }
    if (!d.o.open[u]) {
        emit(step(V_SYNC_ALL, 0, -1, -1, -1));
        return;
    }
    emit_event(V_RECORD, u, (int)from);
    emit_event(V_WAIT, s, (int)from);
    if (chance(30))
        emit_event(V_DROP_EVENT, 0, (int)from);
}

static void host_after(int u)
{
    if (!d.o.open[u] || chance(15)) {
        emit(step(V_SYNC_ALL, 0, -1, -1, -1));
    } else if (chance(40)) {
        int e = (int)draw(MAX_EVENTS);
        emit_event(V_RECORD, u, e);
        emit_event(chance(30) ? V_POLL_EVENT : V_SYNC_EVENT, 0, e);
    } else {
        emit(step(chance(20) ? V_POLL : V_SYNC, u, -1, -1, -1));
    }
}

void host_needs(const struct touched *x, bool for_write)
{
    for (int u = 0; u < MAX_STREAMS && !order_host_covers(&d.o, x, for_write); u++)
        if ((x->writer == u && d.o.host[u] < x->at) || (for_write && d.o.host[u] < x->read[u]))
            host_after(u);
}

static void stream_needs(int s, const struct touched *x, bool for_write)
{
    if (order_covers(&d.o, s, x, for_write))
        return;
    if (chance(d.host_percent)) {
        host_needs(x, for_write);
        return;
    }
    for (int u = 0; u < MAX_STREAMS && !order_covers(&d.o, s, x, for_write); u++) {
        if (x->writer == u)
            order_after(s, u, x->at);
        if (for_write)
            order_after(s, u, x->read[u]);
    }
}

/* A step with what it needs before it. */
void emit_ready(struct step s)
{
    const struct verb_row *v = &verb_row[s.verb];
    int stream = v->on_legacy ? order_legacy(&d.o, s.context) : s.stream;
    for (int k = 0; k < OPERANDS; k++)
        if ((v->reads | v->writes) & 1u << k && s.verb != V_ALLOC && s.verb != V_BESIDE_CAPTURE)
            stream_needs(stream, &d.o.tensor[s.t[k]].touched, (v->writes & 1u << k) != 0);
    if (v->host_reads | v->host_writes)
        stream_needs(stream, &d.o.buffer[s.host].touched, v->host_writes != 0);
    emit(s);
}

/* ---- tensors --------------------------------------------------------------------------------------------------------- */

uint32_t live_words(void)
{
    uint32_t n = 0;
    for (int i = 0; i < d.p->n_tensors; i++)
        if (d.o.tensor[i].live)
            n += d.o.tensor[i].words;
    return n;
}

/* A live tensor, filled if asked, with at least so many words; -1: none. */
int any_tensor(bool filled, uint32_t least)
{
    int found = -1;
    uint32_t n = 0;
    for (int i = 0; i < d.p->n_tensors; i++)
        if (d.o.tensor[i].live && (d.o.tensor[i].filled || !filled) && d.o.tensor[i].words >= least && d.o.tensor[i].memory < MEM_REMOTE &&
            !(d.hold[i] & (filled ? HOLD_FILLED : HOLD_ANY)) && draw(++n) == 0)
            found = i;
    return found;
}

void free_tensor(int t)
{
    struct tensor *x = &d.o.tensor[t];
    d.hold[t] = 0;
    if (x->memory != MEM_POOL) {
        if (x->memory != MEM_PLAIN || d.kinds & (KIND_CONTEXT | KIND_PEER))
            host_needs(&x->touched, true);
        emit(step(V_FREE_SYNC, 0, t, -1, -1));
        return;
    }
    if (chance(6)) {
        host_needs(&x->touched, true);
        emit(step(V_FREE_SYNC, 0, t, -1, -1));
        return;
    }
    int s = x->touched.writer >= 0 && d.o.open[x->touched.writer] && !chance(d.foreign_percent) ? x->touched.writer : any_stream();
    emit_ready(step(V_FREE, s, t, -1, -1));
}

int new_tensor(int stream, uint32_t words)
{
    int n = 0;
    for (int i = 0; i < d.p->n_tensors; i++)
        n += d.o.tensor[i].live;
    while (!d.training && (n > MOST_LIVE || (live_words() + words > d.cap_words && n > 2))) {
        int old = any_tensor(false, 0);
        if (old < 0 || (d.in_round && old < d.first_tensor)) /* it lives across rounds, which are to be alike */
            break;
        free_tensor(old);
        n--;
    }
    if (d.p->n_tensors == MAX_TENSORS)
        return any_tensor(false, 0);
    int t = d.p->n_tensors++;
    struct step s = step(chance(3) && !d.in_round && !d.kinds ? V_ALLOC_SYNC : V_ALLOC, stream, t, -1, -1);
    s.value = words;
    s.how = s.verb == V_ALLOC_SYNC ? MEM_PLAIN : 0;
    d.hold[t] = 0;
    if (s.verb == V_ALLOC && d.kinds & KIND_POOL && chance(40) && /* what is there stays where it is */
        live_words() + words <= 16 * PAGE_WORDS)
        s.verb = V_BESIDE_CAPTURE;
    emit(s);
    return t;
}

static uint32_t any_size(void) { return d.sizes[draw((uint32_t)d.n_sizes)]; }

/* Something to write into: often new, sometimes one that was there. */
static int target(int stream)
{
    int t = chance(60) ? -1 : any_tensor(false, 0);
    if (t < 0)
        t = new_tensor(stream, any_size());
    return t;
}

/* t[0] = f(in), or of it and itself where a map would be very many launches. */
static struct step map_step(int s, int out, int in)
{
    bool far = d.o.tensor[out].words > 8 * d.o.tensor[in].words;
    return far ? step(V_JOIN, s, out, in, in) : step(V_MAP, s, out, in, -1);
}

/* ---- actions ------------------------------------------------------------------------------------------------------------- */

static void act_kernel(void)
{
    int s = any_stream(), out = target(s), a = any_tensor(true, 0), b = any_tensor(true, 0);
    uint32_t n = d.o.tensor[out].words;
    if (a < 0 || chance(12)) {
        emit_ready(step(chance(50) ? V_RANDOM : V_FILL, s, out, -1, -1));
        return;
    }
    switch (draw(7)) {
    case 0:
        emit_ready(map_step(s, out, a));
        break;
    case 1:
    case 2:
        emit_ready(step(V_JOIN, s, out, a, b));
        break;
    case 3:
        emit_ready(step(V_ADD, s, b, a, -1));
        break;
    case 4:
        emit_ready(step(V_RELU, s, a, -1, -1));
        break;
    case 5:
        a = any_tensor(true, n);
        emit_ready(a < 0 ? step(V_RANDOM, s, out, -1, -1) : step(V_HALVES, s, out, a, -1));
        break;
    default:
        a = any_tensor(true, n);
        b = any_tensor(true, 64);
        emit_ready(a < 0 || b < 0 || a == b || b == out || a == out ? step(V_FILL, s, out, -1, -1) : step(V_STATS, s, out, a, b));
        break;
    }
}

static void act_copy(void)
{
    int s = any_stream(), out = target(s), a = any_tensor(true, 0); /* in this order: room for a new one is made by frees */
    if (chance(25)) {
        emit_ready(step(chance(40) ? V_FILL_SYNC : V_FILL, s, out, -1, -1));
    } else if (chance(15)) {
        emit_ready(step(V_FILL_PART, s, out, -1, -1));
    } else if (a >= 0) {
        if (out != a)
            emit_ready(step(chance(25) ? V_COPY_SYNC : V_COPY, s, out, a, -1));
    }
}

static void act_host(void)
{
    struct step s = step(V_DOWN, any_stream(), -1, any_tensor(true, 0), -1);
    s.host = (uint8_t)draw(MAX_HOSTS);
    bool filled = d.o.buffer[s.host].filled;
    switch (draw(10)) {
    case 0:
    case 1:
        if (s.t[1] >= 0)
            emit_ready(s);
        break;
    case 2:
        s.verb = chance(60) ? V_DOWN_PAGED : V_DOWN_SYNC;
        if (s.t[1] >= 0)
            emit_ready(s);
        break;
    case 3:
    case 4:
        s.verb = chance(70) ? V_UP : V_UP_SYNC;
        s.t[1] = -1;
        s.t[0] = (int16_t)target(s.stream);
        if (filled)
            emit_ready(s);
        break;
    case 5:
        s.verb = V_UP_PAGED;
        s.t[1] = -1;
        s.t[0] = (int16_t)target(s.stream);
        emit_ready(s);
        break;
    case 6:
        s.verb = V_HOST_WRITE;
        host_needs(&d.o.buffer[s.host].touched, true);
        emit(s);
        break;
    case 7:
        s.verb = V_HOST_READ;
        if (filled) {
            host_needs(&d.o.buffer[s.host].touched, false);
            emit(s);
        }
        break;
    case 8:
        s.verb = V_CALL_READ;
        if (filled)
            emit_ready(s);
        break;
    default:
        s.verb = V_CALL_WRITE;
        emit_ready(s);
        break;
    }
}

static void act_order(void)
{
    int e = (int)draw(MAX_EVENTS), s = any_stream();
    switch (draw(12)) {
    case 0:
    case 1:
    case 2:
        emit_event(V_RECORD, s, e);
        break;
    case 3:
    case 4:
        if (d.o.event[e].recorded)
            emit_event(V_WAIT, s, e);
        break;
    case 5:
        emit_event(V_DROP_EVENT, 0, e);
        break;
    case 6:
        host_after(s);
        break;
    case 7:
        if (d.o.kind[s] == STREAM_SHORT && !d.in_round)
            emit(step(V_DESTROY, s, -1, -1, -1));
        break;
    case 8:
        for (int u = 0; u < MAX_STREAMS && !d.in_round; u++)
            if (d.o.kind[u] == STREAM_SHORT && !d.o.open[u] && !d.o.at[u]) {
                emit(step(V_CREATE, u, -1, -1, -1));
                break;
            }
        break;
    default:
        break;
    }
}

/* What allocators do with memory that another stream used: whoever frees it waits for events only, and the place is given
 * away at once. */
static void act_hand_on(void)
{
    int a = any_stream(), b = any_stream(), c = any_stream(), in = any_tensor(true, 0);
    uint32_t words = any_size();
    int t = new_tensor(a, words);
    emit_ready(step(V_RANDOM, a, t, -1, -1));
    int out = new_tensor(b, words);
    if (!d.o.tensor[t].live) /* it made room */
        return;
    emit_ready(map_step(b, out, t));
    if (in >= 0 && d.o.tensor[in].live && in != t && in != out)
        emit_ready(step(V_JOIN, a, in, t, out));
    if (d.o.tensor[t].memory != MEM_POOL)
        free_tensor(t);
    else
        emit_ready(step(V_FREE, c, t, -1, -1));
    int next = new_tensor(chance(50) ? c : any_stream(), words);
    emit_ready(step(chance(50) ? V_RANDOM : V_FILL, any_stream(), next, -1, -1));
}

static void act(void)
{
    if (d.kinds & KIND_CONTEXT && chance(25)) {
        act_hand_on();
        return;
    }
    if (d.kinds && chance(40)) {
        kinds_act();
        return;
    }
    unsigned k = draw(100);
    if (k < 46)
        act_kernel();
    else if (k < 56)
        act_copy();
    else if (k < 70)
        act_host();
    else if (k < 80)
        act_order();
    else if (k < 84)
        act_hand_on();
    else if (k < 89)
        new_tensor(any_stream(), any_size()); /* touched late, or never */
    else {
        int t = any_tensor(false, 0);
        if (t >= d.first_tensor)
            free_tensor(t);
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------------- */

static void add_stream(enum stream_kind kind, int thread, enum context context)
{
    if (d.n_streams == MAX_STREAMS)
        return;
    d.o.context[d.n_streams] = (uint8_t)context;
    d.o.kind[d.n_streams] = kind;
    d.o.thread[d.n_streams] = (uint8_t)thread;
    d.o.open[d.n_streams++] = kind != STREAM_SHORT;
}

/* All streams come after all that was given to any. */
static void join_all(bool host)
{
    if (host) {
        emit(step(V_SYNC_ALL, 0, -1, -1, -1));
        return;
    }
    int m = 1;
    for (int s = 0; s < d.n_streams; s++)
        if (s != m && d.o.open[s]) {
            emit_event(V_RECORD, s, 0);
            emit_event(V_WAIT, m, 0);
        }
    emit_event(V_RECORD, m, 1);
    for (int s = 0; s < d.n_streams; s++)
        if (s != m && d.o.open[s])
            emit_event(V_WAIT, s, 1);
}

/* What only steps that show it use, if there is such a one. */
static int any_weight(void)
{
    int t = any_tensor(true, 0);
    for (int i = 0; i < 64 && (d.o.tensor[t].memory != MEM_POOL || d.hold[t]); i++)
        t = any_tensor(true, 0);
    return t;
}

/* One step of training: values are saved on the way forward and used on the way back, the last one first. */
static void train(unsigned layers)
{
    int saved[16], w = d.trains ? any_weight() : any_tensor(true, 0), s = any_stream();
    saved[0] = new_tensor(s, any_size());
    emit_ready(step(chance(50) ? V_UP_PAGED : V_RANDOM, s, saved[0], -1, -1));
    for (unsigned i = 0; i < layers; i++) {
        s = chance(60) ? s : any_stream();
        int in = saved[i], out = saved[i + 1] = new_tensor(s, any_size());
        if (!d.kinds || chance(d.trains ? 45 : 30) || !kinds_layer(s, out, in))
            emit_ready(chance(70) && w >= 0 ? step(V_JOIN, s, out, in, w) : map_step(s, out, in));
        if (chance(20))
            emit_ready(step(V_RELU, s, out, -1, -1));
        if (chance(20))
            emit_ready(step(V_ADD, s, out, in, -1));
        if (chance(15)) { /* a workspace */
            int x = new_tensor(s, any_size());
            if (chance(70))
                emit_ready(map_step(s, x, out));
            free_tensor(x);
        }
    }
    int g = new_tensor(s, d.o.tensor[saved[layers]].words);
    emit_ready(map_step(s, g, saved[layers]));
    if (chance(60))
        emit_ready(step(V_DOWN_PAGED, s, -1, g, -1));
    for (unsigned i = layers + 1; i-- > 0;) {
        s = chance(60) ? s : any_stream();
        int next = new_tensor(s, d.o.tensor[saved[i]].words);
        emit_ready(step(V_JOIN, s, next, g, saved[i]));
        free_tensor(saved[i]);
        free_tensor(g);
        g = next;
    }
    if (w >= 0)
        emit_ready(step(V_ADD, s, w, g, -1));
    free_tensor(g);
}

/* A loop: the same steps again and again, now and then others. Tensors from before live on. */
static void rounds(void)
{
    uint64_t body, after;
    bool host = chance(50), many = chance(25);
    unsigned n = many ? 30 + draw(30) : 6 + draw(9), length = 8 + draw(many ? 8 : 16), odd = chance(30) ? 3 + draw(4) : 0;
    bool training = d.trains || chance(60);
    if (d.trains) {
        n = 14 + draw(6);
        odd = 0;
    }
    while (!d.trains && any_tensor(false, 0) >= 0 && live_words() > 12 * PAGE_WORDS) /* little lives on: room for a plan */
        free_tensor(any_tensor(false, 0));
    unsigned layers = 3 + draw(10);
    body = d.rng;
    d.in_round = true;
    for (d.round = 1; d.round <= n; d.round++) {
        d.rng = odd && d.round % odd == 0 ? body ^ 0x5bd1e995u : body;
        join_all(host);
        d.first_tensor = d.p->n_tensors;
        d.training = training;
        if (training)
            train(layers);
        d.training = false;
        for (unsigned k = 0; k < length && !training; k++)
            act();
        for (int i = d.first_tensor; i < d.p->n_tensors; i++)
            if (d.o.tensor[i].live)
                free_tensor(i);
        d.p->n_tensors = d.first_tensor; /* their numbers serve again */
    }
    after = d.rng;
    d.in_round = false;
    d.round = 0;
    d.first_tensor = 0;
    d.rng = after;
}

/* A loop with a few tensors that live on, large enough beside what the steps before it hold for a plan to be worth it. */
static void train_alone(void)
{
    enum { LARGE = 8 * PAGE_WORDS };
    d.n_sizes = 1;
    d.sizes[0] = LARGE;
    d.cap_words = 100 * LARGE;
    d.host_percent = 5;
    d.steady = chance(70) ? 10 : 0;
    kinds_begin();
    for (int i = 0; i < 2; i++) {
        int w = new_tensor(any_stream(), LARGE);
        emit_ready(step(V_RANDOM, any_stream(), w, -1, -1));
    }
    rounds();
}

static void any_program(void)
{
    static const uint32_t small[] = {3, 16, 64, 100, 255, 400};
    const uint32_t least = d.kinds ? 2 : 1, most = d.kinds ? 3 : 9;
    d.n_sizes = 2 + (int)draw(4);
    for (int i = 0; i < d.n_sizes; i++)
        d.sizes[i] = chance(25) && i ? small[draw(6)] : chance(60) ? PAGE_WORDS * (least + draw(d.kinds ? 3 : 4)) : 600 + draw(most * PAGE_WORDS);
    d.cap_words = PAGE_WORDS * (50 + draw(60));
    d.host_percent = chance(50) ? 5 : draw(60);
    d.foreign_percent = chance(50) ? 20 : 70;
    if (d.kinds)
        kinds_begin();
    for (uint32_t n = (d.kinds ? 50 : 10) + draw(50); n; n--)
        act();
    if (chance(25)) {
        rounds();
        for (uint32_t n = draw(20); n; n--)
            act();
    }
}

void draw_program(struct program *p, uint64_t seed, bool alone, unsigned kinds)
{
    memset(p, 0, sizeof *p);
    memset(&d, 0, sizeof d);
    p->seed = seed;
    d.p = p;
    d.rng = seed * 0x9e3779b97f4a7c15ull + 1;
    for (int i = 0; i < 8; i++)
        draw(2);
    if (kinds)
        draw_kinds_of(seed, &d.trains);
    d.kinds = p->kinds = kinds;
    p->helper = alone && chance(15) && !d.trains;
    add_stream(STREAM_LEGACY, 0, CONTEXT_PRIMARY);
    for (uint32_t n = 1 + draw(d.trains ? 2 : 3); n; n--)
        add_stream(STREAM_FREE, 0, CONTEXT_PRIMARY);
    for (uint32_t n = draw(3); n; n--)
        add_stream(STREAM_BLOCKING, 0, CONTEXT_PRIMARY);
    for (int i = 0; i <= p->helper; i++)
        if (chance(25))
            add_stream(STREAM_THREAD, i, CONTEXT_PRIMARY);
    add_stream(STREAM_SHORT, 0, CONTEXT_PRIMARY);
    add_stream(STREAM_SHORT, 0, CONTEXT_PRIMARY);
    if (kinds & KIND_CONTEXT) {
        add_stream(STREAM_LEGACY, 0, CONTEXT_GREEN);
        if (chance(60))
            add_stream(STREAM_FREE, 0, CONTEXT_GREEN);
        if (chance(40))
            add_stream(STREAM_BLOCKING, 0, CONTEXT_GREEN);
    }
    if (kinds & KIND_PEER)
        add_stream(STREAM_FREE, 0, CONTEXT_PEER);
    for (int i = 0; i < MAX_TENSORS; i++)
        d.o.tensor[i].points = -1;
    p->start = d.o;
    if (d.trains)
        train_alone();
    else
        any_program();
    emit(step(V_SYNC_ALL, 0, -1, -1, -1));
    for (int i = 0; i < p->n_tensors; i++)
        if (d.o.tensor[i].live) {
            if (d.o.tensor[i].filled && d.o.tensor[i].memory != MEM_ARRAY)
                emit(step(V_DOWN_PAGED, 1, -1, i, -1));
        }
    for (int i = 0; i < MAX_HOSTS; i++)
        if (d.o.buffer[i].filled) {
            struct step s = step(V_HOST_READ, 0, -1, -1, -1);
            s.host = (uint8_t)i;
            emit(s);
        }
    for (int i = 0; i < p->n_tensors; i++)
        if (d.o.tensor[i].live)
            free_tensor(i);
    for (int s = 0; s < d.n_streams; s++)
        if (d.o.kind[s] == STREAM_SHORT && d.o.open[s])
            emit(step(V_DESTROY, s, -1, -1, -1));
    for (int e = 0; e < MAX_EVENTS; e++)
        emit_event(V_DROP_EVENT, 0, e);
    emit(step(V_SYNC_ALL, 0, -1, -1, -1));
}
