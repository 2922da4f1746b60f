/*
 * Launches. Blocks run one after the other, a block's warps in turn, each until it waits. A block that is not over after a while stays, and
 * another one begins beside it: blocks may wait for each other, as long as each of those that wait can be there at once on a device. Under
 * SIMGPU_CHAOS blocks and warps come in an order that follows from the number.
 *
 * What blocks need is the thread's: kept for its next launch, freed when it ends.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_exec.h"

enum { WARP_TURN = 1 << 16, BLOCK_TURN = 1 << 21, TOGETHER_TURN = 1 << 13, MOST_BESIDE = 256, MOST_TOGETHER = 4096 };

struct place { struct block block; struct warp warp[PTX_MAX_THREADS / LANES]; size_t shared_room; bool fresh; };
struct own {
    struct place **place;
    unsigned n_places, room;
    unsigned char *pool;
    size_t pool_bytes;
    struct run run;
    uint64_t executed;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_own(void *own)
{
    struct own *o = own;
    for (unsigned i = 0; i < o->n_places; i++) {
        for (unsigned k = 0; k < PTX_MAX_THREADS / LANES; k++) {
            free(o->place[i]->warp[k].stack);
            free(o->place[i]->warp[k].special);
            free(o->place[i]->warp[k].local);
        }
        free(o->place[i]->block.shared);
        free(o->place[i]);
    }
    free(o->place);
    free(o->pool);
    free(o);
}

static void make_key(void) { pthread_key_create(&key, free_own); }

static struct own *get_own(void)
{
    pthread_once(&once, make_key);
    struct own *o = pthread_getspecific(key);
    if (!o) {
        o = calloc(1, sizeof *o);
        pthread_setspecific(key, o);
    }
    return o;
}

uint64_t ptx_executed(void) { return get_own()->executed; }

void warp_fail(const struct warp *w, const struct ptx_insn *in, enum ptx_fault what, const char *format, ...)
{
    char reason[256], text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    snprintf(text, sizeof text, "kernel %s, line %u, %s, block %u,%u,%u, warp %u: %s", w->run->kernel->name, in ? in->line : 0,
             in && in->name ? in->name : "?", w->block->at[0], w->block->at[1], w->block->at[2], w->index, reason);
    w->run->launch->fail(w->run->launch->who, what, text);
    abort(); /* it does not return */
}

static void no_memory(const struct ptx_launch *l)
{
    l->fail(l->who, PTX_NO_MEMORY, "no memory");
    abort();
}

/* ---- what a block needs ---------------------------------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void garbage(unsigned char *at, size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t v = next_random(state);
        memcpy(at + i, &v, n - i < 8 ? n - i : 8);
    }
}

static unsigned char *grown(unsigned char *had, size_t *room, size_t want)
{
    if (had && *room >= want)
        return had;
    free(had);
    *room = (want + 63) / 64 * 64;
    return aligned_alloc(64, *room ? *room : 64);
}

static void fill_row(struct warp *w, unsigned special, uint32_t value)
{
    uint32_t *r = (uint32_t *)(w->special + special * 128);
    for (int i = 0; i < LANES; i++)
        r[i] = value;
}

/* Rows that all blocks of the launch have alike. */
static void fill_specials(struct warp *w)
{
    const struct ptx_launch *l = w->run->launch;
    uint32_t *lane = (uint32_t *)w->special;
    memset(w->special, 0, SPECIAL_BYTES);
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t t = w->index * LANES + i;
        lane[SR_TID_X * LANES + i] = t % l->block[0];
        lane[SR_TID_Y * LANES + i] = t / l->block[0] % l->block[1];
        lane[SR_TID_Z * LANES + i] = t / l->block[0] / l->block[1];
        lane[SR_LANEID * LANES + i] = i;
        lane[SR_LANEMASK_EQ * LANES + i] = 1u << i;
        lane[SR_LANEMASK_LT * LANES + i] = (1u << i) - 1;
        lane[SR_LANEMASK_LE * LANES + i] = ((1u << i) - 1) | 1u << i;
        lane[SR_LANEMASK_GE * LANES + i] = ~((1u << i) - 1);
        lane[SR_LANEMASK_GT * LANES + i] = ~(((1u << i) - 1) | 1u << i);
    }
    for (unsigned k = 0; k < 3; k++) {
        fill_row(w, SR_NTID_X + k, l->block[k]);
        fill_row(w, SR_NCTAID_X + k, l->grid[k]);
    }
    fill_row(w, SR_WARPID, w->index);
    fill_row(w, SR_NWARPID, 64);
    fill_row(w, SR_NSMID, l->sm_count);
    fill_row(w, SR_DYNAMIC_SMEM, l->dynamic_shared_bytes);
    fill_row(w, SR_TOTAL_SMEM, w->block->shared_bytes);
    fill_row(w, SR_ONE32, 1);
}

static void make_warp(struct place *at, unsigned index, struct run *run)
{
    struct warp *w = &at->warp[index];
    const struct ptx_launch *l = run->launch;
    size_t stack = run->kernel->frame_bytes + 256u, local = (size_t)run->kernel->stack_bytes * LANES;
    w->stack = grown(w->stack, &w->stack_bytes, stack);
    w->local = grown(w->local, &w->local_bytes, local);
    if (!w->special)
        w->special = aligned_alloc(64, SPECIAL_BYTES + 256); /* and where results go that nobody wants */
    if (!w->stack || !w->local || !w->special)
        no_memory(l);
    w->run = run;
    w->block = &at->block;
    w->index = index;
    w->local_stride = run->kernel->stack_bytes;
    w->base[B_POOL] = run->pool;
    w->base[B_SPECIAL] = w->special;
    w->base[B_SINK] = w->special + SPECIAL_BYTES;
    unsigned threads = at->block.threads, first = index * LANES;
    w->exists = threads - first >= LANES ? ALL_LANES : (1u << (threads - first)) - 1;
    if (l->chaos)
        garbage(w->stack, stack, &run->random);
    else
        memset(w->stack, 0, stack);
    fill_specials(w);
}

/* A place for a block of this launch that no other one has. */
static struct place *get_place(struct own *o)
{
    struct run *run = &o->run;
    const struct ptx_launch *l = run->launch;
    struct place *at = NULL;
    for (unsigned i = 0; i < o->n_places && !at; i++)
        if (!o->place[i]->block.used)
            at = o->place[i];
    if (!at) {
        if (o->n_places == o->room) {
            unsigned room = o->room ? 2 * o->room : 16;
            struct place **more = realloc(o->place, room * sizeof(struct place *));
            if (!more)
                no_memory(l);
            o->place = more;
            o->room = room;
        }
        if (!(at = calloc(1, sizeof *at)))
            no_memory(l);
        at->fresh = true;
        o->place[o->n_places++] = at;
    }
    struct block *b = &at->block;
    b->used = true;
    if (!at->fresh)
        return at;
    at->fresh = false;
    b->warp = at->warp;
    b->threads = l->block[0] * l->block[1] * l->block[2];
    b->n_warps = (b->threads + LANES - 1) / LANES;
    uint32_t fixed = run->p->kernels[run->kernel->kernel].static_shared_bytes;
    uint32_t dynamic_at = run->p->dynamic_at != UINT32_MAX ? run->p->dynamic_at : (fixed + 15) / 16 * 16;
    b->shared_bytes = l->dynamic_shared_bytes ? dynamic_at + l->dynamic_shared_bytes : fixed;
    b->shared = grown(b->shared, &at->shared_room, b->shared_bytes);
    if (!b->shared)
        no_memory(l);
    memset(b->shared, 0, b->shared_bytes);
    for (unsigned i = 0; i < b->n_warps; i++)
        make_warp(at, i, run);
    return at;
}

static void begin_block(struct place *at, struct run *run, uint64_t index)
{
    const struct ptx_launch *l = run->launch;
    struct block *b = &at->block;
    b->at[0] = (uint32_t)(index % l->grid[0]);
    b->at[1] = (uint32_t)(index / l->grid[0] % l->grid[1]);
    b->at[2] = (uint32_t)(index / l->grid[0] / l->grid[1]);
    b->ended = 0;
    b->executed = 0;
    b->over = false;
    memset(b->barrier, 0, sizeof b->barrier);
    if (l->chaos)
        garbage(b->shared, b->shared_bytes, &run->random);
    for (unsigned i = 0; i < b->n_warps; i++) {
        struct warp *w = &b->warp[i];
        for (unsigned k = 0; k < 3; k++)
            fill_row(w, SR_CTAID_X + k, b->at[k]);
        fill_row(w, SR_SMID, (uint32_t)(index % l->sm_count));
        w->in_turn = false;
        exec_begin(w);
    }
}

/* ---- running ------------------------------------------------------------------------------------------------------------------------------ */

/* Nobody in the block can go on: who waits where. */
static void tell_deadlock(const struct block *b)
{
    for (unsigned i = 0; i < b->n_warps; i++) {
        const struct warp *w = &b->warp[i];
        for (unsigned g = 0; g < w->n_groups; g++) {
            const struct ptx_insn *in = &w->run->p->code[w->group[g].pc];
            if (w->group[g].state == G_BAR) {
                const struct barrier *bar = &b->barrier[w->group[g].barrier];
                warp_fail(w, in, PTX_FAILED, "%u threads wait at barrier %u, which is for %u; the others never come", bar->arrived,
                          w->group[g].barrier, bar->wanted ? bar->wanted : b->threads - b->ended);
            }
        }
    }
    for (unsigned i = 0; i < b->n_warps; i++)
        if (b->warp[i].n_groups) {
            const struct warp *w = &b->warp[i];
            warp_fail(w, &w->run->p->code[w->group[0].pc], PTX_FAILED, "lanes %#x wait for others of their warp, which never come",
                      w->group[0].mask);
        }
}

static unsigned gcd(unsigned a, unsigned b) { return b ? gcd(b, a % b) : a; }

/* Lets a block run for so many instructions; true: it is over. */
static bool run_block(struct block *b, uint64_t turn)
{
    struct run *run = b->warp[0].run;
    uint64_t until = b->executed + turn;
    const bool chaos = run->launch->chaos != 0;
    for (;;) {
        unsigned live = 0, moved = 0, step = 1, first = 0;
        if (chaos) {
            first = (unsigned)(next_random(&run->random) % b->n_warps);
            do
                step = 1 + (unsigned)(next_random(&run->random) % b->n_warps);
            while (gcd(step, b->n_warps) != 1);
        }
        for (unsigned i = 0; i < b->n_warps; i++) {
            struct warp *w = &b->warp[((uint64_t)i * step + first) % b->n_warps];
            if (!w->n_groups)
                continue;
            live++;
            if (!exec_ready(w))
                continue;
            moved++;
            uint64_t slice = turn < WARP_TURN ? turn : chaos ? 1 + next_random(&run->random) % 64 : WARP_TURN;
            if (exec_warp(w, slice) == WARP_ENDED)
                live--;
        }
        if (!live)
            return true;
        if (!moved)
            tell_deadlock(b);
        if (b->executed >= until)
            return false;
    }
}

/* Numbers from 0 to n - 1 in another order. */
struct order { uint64_t n, step, first; };
static uint64_t gcd64(uint64_t a, uint64_t b) { return b ? gcd64(b, a % b) : a; }
static struct order order_of(uint64_t n, uint64_t chaos)
{
    struct order o = { n, 1, 0 };
    if (chaos) {
        o.first = next_random(&chaos) % n;
        do
            o.step = 1 + next_random(&chaos) % n;
        while (gcd64(o.step, n) != 1);
    }
    return o;
}

static void run_blocks(struct own *o, uint64_t n)
{
    struct run *run = &o->run;
    struct order order = order_of(n, run->launch->chaos);
    bool together = run->launch->cooperative;
    unsigned beside = 0, most = together ? MOST_TOGETHER : MOST_BESIDE;
    for (uint64_t next = 0; next < n || beside;) {
        /* one more block, or a turn for each of those that are there */
        if (next < n && beside < most) {
            struct place *at = get_place(o);
            begin_block(at, run, (uint64_t)((unsigned __int128)next++ * order.step % n + order.first) % n);
            beside++;
            if (together && next < n && beside < most)
                continue;
            if (!together && run_block(&at->block, beside == 1 ? BLOCK_TURN : TOGETHER_TURN * 16)) {
                at->block.used = false;
                beside--;
                continue;
            }
        }
        for (unsigned i = 0; i < o->n_places; i++)
            if (o->place[i]->block.used && run_block(&o->place[i]->block, TOGETHER_TURN)) {
                o->place[i]->block.used = false;
                beside--;
            }
    }
}

static void patch_pool(struct own *o, const struct ptx_launch *l)
{
    const struct ptx_program *p = l->program;
    o->run.pool = p->pool;
    if (!p->n_relocs)
        return;
    if (o->pool_bytes < p->pool_bytes) {
        free(o->pool);
        o->pool_bytes = (p->pool_bytes + 4095) / 4096 * 4096;
        o->pool = aligned_alloc(64, o->pool_bytes);
        if (!o->pool) {
            o->pool_bytes = 0;
            no_memory(l);
        }
    }
    memcpy(o->pool, p->pool, p->pool_bytes);
    for (unsigned i = 0; i < p->n_relocs; i++) {
        const struct ptx_reloc *r = &p->relocs[i];
        uint64_t v = l->variables[r->variable] + (uint64_t)r->plus;
        for (unsigned lane = 0; lane < LANES; lane++)
            memcpy(o->pool + r->at + lane * r->bytes, &v, r->bytes);
    }
    o->run.pool = o->pool;
}

void ptx_run(const struct ptx_launch *l)
{
    struct own *o = get_own();
    if (!o)
        no_memory(l);
    const struct ptx_program *p = l->program;
    o->run = (struct run){ .launch = l, .p = p, .kernel = &p->functions[p->kernel_function[l->kernel]], .random = l->chaos };
    patch_pool(o, l);
    for (unsigned i = 0; i < o->n_places; i++) {
        o->place[i]->block.used = false; /* the last launch may have been left in its middle */
        o->place[i]->fresh = true;
    }
    run_blocks(o, (uint64_t)l->grid[0] * l->grid[1] * l->grid[2]);
    o->executed = o->run.executed;
}
