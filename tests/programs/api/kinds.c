/* Drawing what a program has of enum kind. Tables are written in ways that no operand shows and read by plain launches, or the other way about; lists
 * hold addresses of them. They live as long as the program, and few steps take them by chance. */
#include "tests/programs/api/kinds.h"
#include "tests/programs/api/draw.h"

#include <string.h>

enum { ORDER_MIXED, ORDER_STREAM, ORDER_DURING, ORDER_ANY, N_ORDERS }; /* CUmemcpySrcAccessOrder, and one of each */
enum { GRAPH_JOIN, GRAPH_ADD, GRAPH_RELU, GRAPH_SCRATCH, GRAPH_UP, N_GRAPHS };
enum { MOST_LISTS = 3, STUCK_MOST = 3, TABLE_MOST = 2 * PAGE_WORDS };

static __thread struct {
    int table[MEM_ARRAY + 1]; /* of each sort of memory one at most; -1: none */
    int source;               /* a table that graphs, and kernels which find an address, read */
    bool by_source;           /* tables are written by kernels that read it: a copy to memory that nobody knows is seen */
    bool poked;               /* lists lie in host memory, and the host alone writes them */
    int list[MOST_LISTS], n_lists;
    int peer, peer_list; /* the second device's stream; in its memory */
    unsigned n_stuck; /* tensors that had to stay in memory for a step's sake */
} k;

unsigned draw_kinds_of(uint64_t seed, bool *trains)
{
    enum { STRETCH = 40, BLOCK = 8 };
    if (seed / STRETCH % 2 == 0 || seed >> 32)
        return 0;
    const uint64_t block = seed / (2 * STRETCH) * (STRETCH / BLOCK) + seed % STRETCH / BLOCK;
    const uint64_t lot = (block + 1) * 0x9e3779b97f4a7c15ull;
    unsigned kinds = 1u << block % KINDS;
    *trains = block / KINDS % 3 != 2 && kinds != KIND_CONTEXT; /* of which remat makes no plan beside another context's work */
    if (lot >> 40 & 1 && !*trains)
        kinds |= 1u << (lot >> 48) % KINDS;
    return kinds;
}

static bool has(enum kind kind) { return (d.kinds & kind) != 0; }
static struct tensor *tensor(int t) { return &d.o.tensor[t]; }

static struct step step4(enum verb v, int stream, int a, int b, int c, int e)
{
    struct step s = step(v, stream, a, b, c);
    s.t[3] = (int16_t)e;
    return s;
}

static int of_context(enum context c)
{
    int found = -1;
    uint32_t n = 0;
    for (int s = 0; s < d.n_streams; s++)
        if (d.o.kind[s] && d.o.open[s] && d.o.context[s] == c && draw(++n) == 0)
            found = s;
    return found;
}

static int any_table(void)
{
    int found = -1;
    uint32_t n = 0;
    for (int m = 0; m < MEM_NAMED; m++)
        if (k.table[m] >= 0 && tensor(k.table[m])->filled && draw(++n) == 0)
            found = k.table[m];
    return found;
}

/* ---- tables and lists ---------------------------------------------------------------------------------------------------------- */

/* In a way that every operand shows, and by no kernel where the variable is meant: a kernel that fills one is not seen to. */
static void write_seen_now(int t)
{
    const int s = any_stream(), from = any_tensor(true, tensor(t)->words);
    const unsigned way = draw(tensor(t)->memory == MEM_NAMED ? 3 : 5);
    if (tensor(t)->memory == MEM_ARRAY)
        emit_ready(step(V_ARRAY_UP, s, t, -1, -1));
    else if (d.steady && t != k.source && k.source >= 0 && tensor(t)->memory != MEM_NAMED && k.by_source) {
        emit_ready(step(V_UP_PAGED, s, k.source, -1, -1));
        emit_ready(step(V_MAP, s, t, k.source, -1));
    } else if (d.steady)
        emit_ready(step(V_UP_PAGED, s, t, -1, -1));
    else if (way == 0)
        emit_ready(step(V_FILL, s, t, -1, -1));
    else if (way == 1 && from >= 0 && from != t)
        emit_ready(step(V_COPY, s, t, from, -1));
    else if (way <= 2)
        emit_ready(step(V_UP_PAGED, s, t, -1, -1));
    else if (way == 3 && from >= 0 && from != t)
        emit_ready(step(V_MAP, s, t, from, -1));
    else
        emit_ready(step(V_RANDOM, s, t, -1, -1));
}

static void write_seen(int t)
{
    const bool was = d.writes_table;
    d.writes_table = true;
    write_seen_now(t);
    d.writes_table = was;
}

static int new_table(enum memory m, uint32_t words)
{
    int t;
    if (m == MEM_POOL)
        t = new_tensor(any_stream(), words);
    else {
        struct step s = step(V_ALLOC_SYNC, 0, t = d.p->n_tensors++, -1, -1);
        s.value = words;
        s.how = (uint8_t)m;
        emit(s);
    }
    d.hold[t] = HOLD_ANY;
    return t;
}

static void need_table(enum memory m)
{
    if (k.table[m] >= 0)
        return;
    k.table[m] = new_table(m, m == MEM_ARRAY ? ARRAY_WORDS : 64 + draw(TABLE_MOST - 64));
    write_seen(k.table[m]);
}

static void need_list(enum memory m)
{
    if (k.n_lists == MOST_LISTS)
        return;
    const int l = k.list[k.n_lists++] = new_table(m, LIST_WORDS + draw(64));
    d.hold[l] |= HOLD_FILLED;
}

/* Another list that points there. */
static int list_with(int t, int but)
{
    for (int i = 0; i < k.n_lists; i++)
        if (k.list[i] != but && tensor(k.list[i])->points == t)
            return k.list[i];
    return -1;
}

static void point(int list, int t)
{
    const bool hosts = tensor(list)->memory == MEM_MANAGED || tensor(list)->memory == MEM_PINNED;
    const int like = list_with(t, list), s = any_stream();
    const unsigned way = draw(5);
    if (hosts && (way <= 2 || k.poked)) {
        host_needs(&tensor(list)->touched, true);
        emit(step(V_LIST_POKE, 0, list, t, -1));
    } else if (way == 3 && like >= 0)
        emit_ready(step(V_LIST_COPY, s, list, like, -1));
    else if (way == 4 && tensor(t)->memory != MEM_POOL && tensor(list)->memory != MEM_NAMED)
        emit_ready(step(V_LIST_LAY, s, list, t, -1));
    else
        emit_ready(step(V_LIST_UP, s, list, t, -1));
}

/* A list that points at t; -1: there is none. */
static int pointed_by(int t)
{
    int list = has(KIND_NAMED) && k.table[MEM_NAMED] >= 0 && (!k.n_lists || chance(50)) ? k.table[MEM_NAMED] : k.n_lists ? k.list[draw((uint32_t)k.n_lists)] : -1;
    if (list >= 0 && (tensor(list)->points != t || chance(d.trains ? 2 : 10)))
        point(list, t);
    return list;
}

/* What may be pointed at: a table, or now and then some tensor, which stays in memory from then on. */
static int target_of_list(void)
{
    if (k.n_stuck < STUCK_MOST && !d.trains && chance(15)) {
        const int t = any_tensor(true, 1);
        if (t >= 0 && tensor(t)->words <= TABLE_MOST) {
            k.n_stuck++;
            return t;
        }
    }
    return has(KIND_MAPPED) && chance(70) ? k.table[MEM_MAPPED] : any_table();
}

static bool from_list(int s, int out, int in, bool writes)
{
    const int t = target_of_list();
    if (t < 0 || t == out || in == out || in < 0)
        return false;
    const int list = pointed_by(t);
    if (list < 0 || list == in || list == out)
        return false;
    if (writes || !tensor(t)->filled)
        write_seen(t);
    emit_ready(step4(V_FROM_LIST, s, out, list, t, in));
    return true;
}

static int to_list(int s)
{
    const int t = target_of_list(), in = k.source >= 0 ? k.source : any_tensor(true, 1);
    if (t < 0 || in < 0 || in == t)
        return -1;
    const int list = pointed_by(t);
    if (list < 0 || list == in || list == t)
        return -1;
    d.writes_table = true;
    if (d.trains && in == k.source)
        write_seen(in);
    emit_ready(step4(V_TO_LIST, s, -1, list, t, in));
    d.writes_table = false;
    return t;
}

/* ---- the other kinds --------------------------------------------------------------------------------------------------------- */

static void make_graph(int e)
{
    const int out = k.table[MEM_PLAIN];
    struct step s = step(V_GRAPH_MAKE, 0, out, k.source, chance(50) ? k.source : any_tensor(true, 1));
    s.how = (uint8_t)draw(N_GRAPHS);
    s.event = (uint8_t)e;
    if (s.how == GRAPH_UP) {
        s.t[1] = s.t[2] = -1;
        s.host = (uint8_t)draw(MAX_HOSTS);
    }
    if (s.t[2] == out)
        s.t[2] = (int16_t)k.source;
    emit(s);
}

/* The graph writes its table; false: there is no graph. */
static bool run_graph(int stream, bool writes)
{
    const int e = (int)draw(MAX_GRAPHS);
    const struct shown *g = &d.o.graph[e];
    if (!g->made && live_words() < 10 * PAGE_WORDS)
        make_graph(e);
    if (!g->made || (g->how != GRAPH_UP && (!tensor(g->t[1])->filled || !tensor(g->t[2])->filled)))
        return false;
    if (writes && g->how != GRAPH_UP)
        write_seen(k.source);
    struct step s = step(g->how == GRAPH_UP ? V_GRAPH_UP : V_GRAPH_RUN, stream, -1, -1, -1);
    memcpy(s.t, g->t, sizeof s.t);
    s.event = (uint8_t)e;
    s.how = g->how;
    s.host = g->host;
    if (g->how == GRAPH_UP && (writes || !d.o.buffer[s.host].filled)) {
        d.writes_table = true;
        struct step w = step(V_HOST_WRITE, 0, -1, -1, -1);
        d.writes_table = false;
        w.host = s.host;
        host_needs(&d.o.buffer[s.host].touched, true);
        emit(w);
    }
    emit_ready(s);
    return true;
}

static void poke(int t)
{
    if (chance(70)) {
        host_needs(&tensor(t)->touched, true);
        d.writes_table = true;
        emit(step(V_POKE, 0, t, -1, -1));
        d.writes_table = false;
    } else
        write_seen(t);
}

static void peek(int t)
{
    if (!tensor(t)->filled)
        return;
    host_needs(&tensor(t)->touched, false);
    emit(step(V_PEEK, 0, t, -1, -1));
}

static bool textured(int s, int out, int in, bool writes)
{
    const int e = (int)draw(MAX_TEXTURES), array = k.table[MEM_ARRAY], t = chance(50) && array >= 0 ? array : chance(50) ? k.table[MEM_POOL] : k.table[MEM_PLAIN];
    const struct shown *x = &d.o.texture[e];
    if (in < 0 || in == out || tensor(in)->words < tensor(out)->words)
        return false;
    if (!x->made && t >= 0) {
        struct step show = step(V_SHOW, 0, -1, -1, t);
        show.event = (uint8_t)e;
        show.how = t == array && chance(40); /* a surface */
        emit(show);
    }
    if (!x->made || x->t[2] == out || x->t[2] == in)
        return false;
    if (!tensor(x->t[2])->filled || writes)
        write_seen(x->t[2]);
    struct step r = step(x->how ? V_SURFACE : V_TEXTURED, s, out, in, x->t[2]);
    r.event = (uint8_t)e;
    r.how = x->how;
    emit_ready(r);
    return true;
}

static bool tensor_map(int s, int out, int in)
{
    if (in < 0 || in == out || tensor(in)->words < tensor(out)->words)
        return false;
    struct step m = step(V_TENSOR_MAP, s, out, in, -1);
    m.how = (uint8_t)draw(4);
    emit_ready(m);
    return true;
}

static bool batch(int s, int out, int in)
{
    while (d.o.kind[s] == STREAM_LEGACY) /* which takes none */
        s = any_stream();
    if (in < 0 || in == out || tensor(in)->words < tensor(out)->words)
        return false;
    struct step b = step(V_BATCH, s, out, in, -1);
    b.how = (uint8_t)draw(N_ORDERS);
    if (b.how != ORDER_STREAM)
        host_needs(&tensor(in)->touched, false);
    emit_ready(b);
    return true;
}

/* The second device writes a table of the first, or copies. */
static int peer(void)
{
    const int t = any_table(), from = any_table(), s = k.peer;
    if (t < 0 || s < 0 || tensor(t)->memory == MEM_POOL)
        return -1;
    const unsigned way = draw(4);
    if (d.trains) {
        const int to = k.peer_list >= 0 || chance(70) || k.table[MEM_MAPPED] < 0 ? k.table[MEM_PLAIN] : k.table[MEM_MAPPED], remote = k.table[MEM_REMOTE];
        if (k.peer_list >= 0 && tensor(k.peer_list)->points != to)
            emit_ready(step(V_LIST_UP, s, k.peer_list, to, -1));
        d.writes_table = true;
        emit_ready(step(V_UP_PAGED, s, remote, -1, -1));
        emit_ready(k.peer_list >= 0 ? step4(V_TO_LIST, s, -1, k.peer_list, to, remote) : step(V_JOIN, s, to, remote, remote));
        d.writes_table = false;
        return to;
    }
    if (way == 0 && from >= 0 && from != t && tensor(from)->memory != MEM_POOL)
        emit_ready(step(V_JOIN, s, t, from, from));
    else if (way == 1 && from >= 0 && from != t)
        emit_ready(step(V_PEER_COPY, chance(50) ? s : any_stream(), t, from, -1));
    else if (way == 2)
        emit_ready(step(V_FILL, s, t, -1, -1));
    else
        emit_ready(step(V_RANDOM, s, t, -1, -1));
    return t;
}

static void trim(void) { emit(step(V_TRIM, 0, -1, -1, -1)); }

/* ---- what draw.c asks for -------------------------------------------------------------------------------------------------------- */

void kinds_begin(void)
{
    static const enum memory lists[] = {MEM_POOL, MEM_PINNED, MEM_MANAGED, MEM_PLAIN};
    memset(&k, 0, sizeof k);
    for (int m = 0; m <= MEM_ARRAY; m++)
        k.table[m] = -1;
    k.source = -1;
    k.poked = d.trains && has(KIND_LIST) && chance(60);
    k.peer_list = -1;
    k.peer = of_context(CONTEXT_PEER);
    if (has(KIND_GRAPH | KIND_LIST | KIND_NAMED | KIND_PEER | KIND_HANDLE | KIND_CONTEXT))
        need_table(MEM_PLAIN);
    if (has(KIND_GRAPH | KIND_LIST | KIND_MAPPED | KIND_NAMED | KIND_HANDLE)) {
        k.by_source = chance(75);
        k.source = new_table(MEM_POOL, 64 + draw(PAGE_WORDS));
        write_seen(k.source);
    }
    if (has(KIND_MAPPED) || (has(KIND_PEER | KIND_LIST) && !k.poked && chance(50)))
        need_table(MEM_MAPPED);
    if (has(KIND_HOST) || (has(KIND_LIST) && !k.poked && chance(30))) {
        need_table(MEM_MANAGED);
        need_table(MEM_PINNED);
    }
    if (has(KIND_NAMED))
        need_table(MEM_NAMED);
    if (has(KIND_PEER)) {
        need_table(MEM_REMOTE);
        if (chance(50)) {
            k.peer_list = new_table(MEM_REMOTE, LIST_WORDS);
            d.hold[k.peer_list] |= HOLD_FILLED;
        }
    }
    if (has(KIND_HANDLE)) {
        need_table(MEM_ARRAY);
        need_table(MEM_POOL);
    } else if (has(KIND_LIST | KIND_NAMED) && !k.poked && chance(50))
        need_table(MEM_POOL);
    if (has(KIND_MAPPED))
        need_list(chance(70) ? MEM_POOL : MEM_PLAIN);
    for (uint32_t n = has(KIND_LIST) ? 1 + draw(2) : 0; n; n--)
        need_list(lists[k.poked ? 1 + draw(2) : draw(4)]);
    if (has(KIND_GRAPH))
        make_graph(0);
}

static void one_of(enum kind kind)
{
    const int s = any_stream(), in = any_tensor(true, 1), out = any_tensor(true, 1);
    switch (kind) {
    case KIND_GRAPH:
        run_graph(s, chance(80));
        break;
    case KIND_LIST:
    case KIND_MAPPED:
        if (chance(50) || out < 0)
            to_list(s);
        else
            from_list(s, out, in, chance(80));
        break;
    case KIND_NAMED:
        if (chance(30))
            write_seen(k.table[MEM_NAMED]);
        if (out >= 0 && in >= 0 && in != out && tensor(k.table[MEM_NAMED])->filled)
            emit_ready(step4(V_FROM_NAMED, s, out, k.table[MEM_NAMED], -1, in));
        else
            to_list(s);
        break;
    case KIND_HOST:
        if (chance(60))
            poke(k.table[chance(50) ? MEM_MANAGED : MEM_PINNED]);
        else
            peek(k.table[chance(50) ? MEM_MANAGED : MEM_PINNED]);
        break;
    case KIND_HANDLE:
        if (out >= 0 && !(chance(60) && textured(s, out, in, chance(80))))
            tensor_map(s, out, in);
        break;
    case KIND_PEER:
        peer();
        break;
    case KIND_BATCH:
        if (out >= 0 && chance(80))
            batch(s, out, in);
        else if (out >= 0 && d.o.kind[s] != STREAM_LEGACY)
            emit_ready(step(V_BATCH_UP, s, out, -1, -1));
        break;
    case KIND_POOL:
        if (chance(30))
            trim();
        else
            new_tensor(s, d.sizes[0]);
        break;
    default: {
        const int green = of_context(CONTEXT_GREEN);
        if (out >= 0 && green >= 0)
            emit_ready(step(chance(50) ? V_RANDOM : V_RELU, green, out, -1, -1));
        break;
    }
    }
}

static enum kind any_kind(void)
{
    for (;;) {
        const unsigned kind = 1u << draw(KINDS);
        if (d.kinds & kind)
            return (enum kind)kind;
    }
}

void kinds_act(void) { one_of(any_kind()); }

/* out = f(in, t) */
static bool joined(int s, int out, int in, int t)
{
    if (t < 0 || t == out)
        return false;
    if (!tensor(t)->filled)
        write_seen(t);
    emit_ready(step(V_JOIN, s, out, in, t));
    return true;
}

bool kinds_layer(int s, int out, int in)
{
    const enum kind kind = any_kind();
    const int named = k.table[MEM_NAMED];
    const bool writes = chance(kind == KIND_NAMED ? 15 : 35);
    switch (kind) {
    case KIND_GRAPH:
        return (!writes || run_graph(s, true)) && joined(s, out, in, k.table[MEM_PLAIN]);
    case KIND_LIST:
    case KIND_MAPPED:
        if (chance(kind == KIND_MAPPED ? 85 : k.poked ? 20 : 50))
            return from_list(s, out, in, writes);
        return joined(s, out, in, writes ? to_list(s) : any_table());
    case KIND_NAMED:
        if (chance(40))
            return from_list(s, out, in, writes);
        if (chance(40))
            return joined(s, out, in, writes ? to_list(s) : any_table());
        if (writes || !tensor(named)->filled)
            write_seen(named);
        emit_ready(step4(V_FROM_NAMED, s, out, named, -1, in));
        return true;
    case KIND_HOST: {
        const int t = k.table[chance(50) ? MEM_MANAGED : MEM_PINNED];
        if (writes)
            poke(t);
        return joined(s, out, in, t);
    }
    case KIND_HANDLE:
        return chance(70) ? textured(s, out, in, writes) : tensor_map(s, out, in);
    case KIND_PEER:
        return joined(s, out, in, writes ? peer() : k.table[MEM_PLAIN]);
    case KIND_BATCH: { /* of what was saved some layers ago, or by another loop */
        const int old = any_tensor(true, tensor(out)->words);
        if (!batch(s, out, old >= 0 && chance(70) ? old : in))
            return false;
        emit_ready(step(V_ADD, s, out, in, -1));
        return true;
    }
    case KIND_POOL:
        if (chance(20))
            trim();
        return false;
    default: {
        const int green = of_context(CONTEXT_GREEN);
        if (green >= 0 && writes)
            emit_ready(step(V_UP_PAGED, green, k.table[MEM_PLAIN], -1, -1));
        return joined(s, out, in, k.table[MEM_PLAIN]);
    }
    }
}
