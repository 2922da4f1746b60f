/* reach.c: see reach.h. */
#include "policy/reach.h"

#include "policy/active.h"
#include "policy/campaign.h"
#include "policy/current.h"
#include "policy/engine_here.h"
#include "policy/engine_state.h"
#include "policy/engine_turn.h"
#include "policy/iteration.h"
#include "policy/memory/foreign.h"
#include "policy/memory/in_place.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/op/op.h"
#include "policy/op/ready.h"
#include "policy/op/tensor_map.h"
#include "policy/op/texture.h"
#include "policy/process/stats.h"
#include "tracer/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The call at hand can begin again from its start: where the host would have to wait, -EAGAIN goes up to the call itself, which waits with the mutex free
 * (engine_begins_again()). Under the mutex. */
static bool may_begin_again;

static int pin_or_again(struct device *d, struct slot *s)
{
    struct host_wait w;
    if (!may_begin_again || d->capturing)
        return ready_pin(d, s);
    fence_put_off(d);
    const int r = ready_pin(d, s);
    if (r && fence_is_put_off(d))
        return -EAGAIN;
    if (fence_put_off_ends(d, &w))
        fence_waited(d, &w, false); /* the slot was pinned without the wait */
    return r;
}

static int beginning_again_drv(struct device *d, int (*call)(struct device *d, void *arg), void *arg)
{
    int r;
    do {
        may_begin_again = true;
        r = call(d, arg);
        may_begin_again = false;
    } while (r == -EAGAIN && engine_begins_again(d, r));
    return r == -EAGAIN ? device_failure(d) : r;
}

/* The slot is reached unseen from now on. Where it cannot be brought into memory the call at hand must fail: a kernel that follows
 * the address would read another tensor's memory. */
static int pin_drv(struct device *d, struct slot *s, const char *why)
{
    if (campaign_follows_plan(d))
        campaign_leave(d, why);
    if (d->ex->now.code)
        return d->ex->now.code;
    const int r = pin_or_again(d, s);
    if (!r || r == -EAGAIN)
        return r;
    const int failed = stream_failure_drv(d);
    if (failed)
        return failed;
    log_say(SAY_ERROR, "out of memory: %s must stay in memory from now on (%s), and no room can be made; the limit is %s; --limit %lluK would do for it",
            rt_size(s->bytes).text, why, rt_size(d->mem.limit_bytes).text,
            (unsigned long long)ready_least_kib(room_fixed_bytes(d) + (mem_pages(d, s->bytes) << d->mem.shift)));
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Already pinned and resident. */
static bool is_pinned_here(const struct slot *s) { return s->pins && s->state == SLOT_RESIDENT; }

int reach_pin_all_drv(struct device *d)
{
    int r = CUDA_SUCCESS;
    struct engine_visit v = engine_visit(d);
    for (uint32_t i = 0; i < d->mem.n_slots && !r; i++)
        if (d->mem.slots[i].live && !is_pinned_here(&d->mem.slots[i]) && d->mem.slots[i].kind != SLOT_FOREIGN)
            r = pin_drv(d, &d->mem.slots[i], "work whose addresses cannot be seen");
    engine_return(v);
    return r;
}

static int leave_and_pin_all_drv(struct device *d, void *why)
{
    struct engine_visit v = engine_visit(d);
    campaign_leave(d, why);
    const int r = reach_pin_all_drv(d);
    engine_return(v);
    return r;
}

int reach_all_stays_drv(struct device *d, const char *why) { return beginning_again_drv(d, leave_and_pin_all_drv, (void *)(uintptr_t)why); }

/* Memory of the program's own is never evicted, but replays may read it. The memory at ptr changes unseen by devices other than `by`: their replays must not. */
static void unseen_drv(CUdeviceptr ptr, const struct device *by, const char *why)
{
    for (unsigned i = 0; i < process.n_dev; i++) {
        struct device *d = process.dev[i];
        struct slot *s = d != by && d->ready && !d->gone ? foreign_lookup(d, ptr) : NULL;
        if (!s || s->pins)
            continue;
        s->pins = 1;
        struct engine_visit v = engine_visit(d);
        campaign_distrusts(d, why);
        engine_return(v);
    }
}

/* Argument words of launches may mean something else from now on: no launch is known by its bytes (plan/steady.c). */
static void words_mean_others(void)
{
    for (unsigned i = 0; i < process.n_dev; i++)
        process.dev[i]->mem.address_changes++;
}

static void unconfined(struct device *d, const char *why)
{
    if (d->unconfined)
        return;
    d->unconfined = true;
    log_say(SAY_DEBUG, "memory of the program's own is no input of a replay from now on: %s", why);
    struct engine_visit v = engine_visit(d);
    campaign_distrusts(d, why);
    engine_return(v);
}

void eng_unconfined(const char *why)
{
    engine_lock();
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready && !process.dev[i]->gone)
            unconfined(process.dev[i], why);
    process.unconfined = true;
    engine_unlock();
}

static int pin_at_drv(CUdeviceptr ptr, const char *why)
{
    struct device *d = engine_holder(ptr);
    if (!d)
        unseen_drv(ptr, NULL, why);
    struct slot *s = d ? slot_lookup(d, ptr) : NULL;
    if (!s || is_pinned_here(s))
        return CUDA_SUCCESS;
    log_say(SAY_DEBUG, "a buffer of %llu bytes stays in memory: %s", (unsigned long long)s->bytes, why);
    struct engine_visit v = engine_visit(d);
    int r = pin_drv(d, s, why);
    engine_return(v);
    return r;
}

int reach_keep_others_drv(struct device *d, CUdeviceptr ptr, bool writes)
{
    static const char why[] = "it is used from another device's context";
    struct device *of = engine_holder(ptr);
    if (!of && writes)
        unseen_drv(ptr, d, why);
    if (!of || of == d)
        return CUDA_SUCCESS;
    struct slot *s = slot_lookup(of, ptr);
    const bool first = s && !s->pins;
    int r = pin_at_drv(ptr, why);
    if (!s || !writes || r)
        return r;
    s->written = true;
    s->watched = false;
    if (first) {
        struct engine_visit v = engine_visit(of);
        campaign_distrusts(of, why);
        engine_return(v);
    }
    return r;
}

static struct slot *slot_at(struct device *d, CUdeviceptr p) { return mem_in_reservation(d, p) ? slot_lookup(d, p) : foreign_lookup(d, p); }

/* A copy takes the slot's address along: the slot stays in memory. A plan that was made for that goes on. Small slots stay where they are under any plan, but
 * may change unseen from now on: a plan that knows the slot, and not that it is pinned, must be left. */
static int pin_reached_drv(struct device *d, struct slot *s, const char *why)
{
    if (is_pinned_here(s))
        return CUDA_SUCCESS;
    bool planned = !campaign_follows_plan(d) || (s->plan_buf >= 0 ? d->ex->learnt.rec.bufs[s->plan_buf].pinned : s->kind != SLOT_LARGE);
    struct engine_visit v = engine_visit(d);
    int r = planned ? pin_or_again(d, s) : pin_drv(d, s, "an address in a copy");
    engine_return(v);
    r = r && r != -EAGAIN && planned ? CUDA_ERROR_OUT_OF_MEMORY : r;
    if (!r)
        log_say(SAY_DEBUG, "a buffer of %llu bytes is reached through %s: it stays in memory", (unsigned long long)s->bytes, why);
    return r;
}

/* Addresses come to lie in the buffer `list`. A plan whose record has none there takes the buffer's readers for launches that follow no address, and is left. */
static int holds_addresses_drv(struct device *d, struct slot *list)
{
    const bool known = list->points || list->plan_buf < 0 || d->ex->learnt.rec.bufs[list->plan_buf].points;
    list->points = true;
    if (!known && campaign_follows_plan(d)) {
        struct engine_visit v = engine_visit(d);
        campaign_leave(d, "an address in memory that held none");
        engine_return(v);
    }
    return known ? CUDA_SUCCESS : d->ex->now.code;
}

/* The slot's address comes to lie in memory that remat cannot see (a `__device__` variable). A record without that fact takes changes of the slot for harmless. */
static int is_named_drv(struct device *d, struct slot *s)
{
    const bool known = s->named || (campaign_follows_plan(d) && s->plan_buf >= 0 && d->ex->learnt.rec.bufs[s->plan_buf].named);
    s->named = true;
    if (known)
        return CUDA_SUCCESS;
    struct engine_visit v = engine_visit(d);
    campaign_distrusts(d, "an address of a buffer comes to lie where any kernel may know it");
    engine_return(v);
    return d->ex->now.code;
}

/* The index of the first word from `i` on that lies in the reservation, and the word in *word; `words`: none does. Most words are told apart from addresses by
 * their upper halves, eight at a time, with prefetching: 18 GB/s of images instead of 11. The program may write this memory meanwhile,
 * in a host function of a stream: so each word is read once where it counts, and ThreadSanitizer is not asked. */
__attribute__((no_sanitize("thread"))) static size_t next_address(const struct device *d, const unsigned char *p, size_t i, size_t words, uint64_t *word)
{
    enum { AHEAD = 4096 };
    typedef uint32_t halves __attribute__((vector_size(16))); /* halves of two words: lower, upper, lower, upper */
    uint32_t low = (uint32_t)(d->mem.base >> 32), span = (uint32_t)((d->mem.base + d->mem.reserve_bytes - 1) >> 32) - low;
    const halves from = {0, low, 0, low}, most = {0, span, 0, span}, upper = {0, ~0u, 0, ~0u};
    for (; i + 8 <= words; i += 8) {
        halves h[4];
        __builtin_prefetch((const void *)((uintptr_t)p + 8 * i + AHEAD)); /* a prefetch of unmapped memory does nothing */
        memcpy(h, p + 8 * i, sizeof h);
        halves hit = (halves)((h[0] - from <= most) | (h[1] - from <= most) | (h[2] - from <= most) | (h[3] - from <= most)) & upper;
        if (hit[1] | hit[3])
            break;
    }
    for (; i < words; i++) {
        memcpy(word, p + 8 * i, 8);
        if (mem_in_reservation(d, *word))
            break;
    }
    return i;
}

/* ---- addresses that lie in memory -------------------------------------------------------------------------------------- */

/* A word that was copied to `at` and pointed into managed memory, at `to`. The word outlives the buffer there: a program may free the buffer, be given the
 * same address again and find no need to copy it once more. */
struct reached {
    CUdeviceptr at, to;
    const struct slot *list; /* slot that the word lies in; NULL: memory that remat cannot see */
    uint64_t serial;         /* the list's serial when the word was copied */
};

static bool reached_stands(const struct reached *r) { return !r->list || (r->list->live && r->list->serial == r->serial); }

/* Forgets the words in these bytes, which are overwritten, and the words in memory that is gone. */
static void reached_forget(struct device *d, CUdeviceptr at, uint64_t bytes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_reached; i++)
        if (d->reached[i].at - at >= bytes && reached_stands(&d->reached[i]))
            d->reached[n++] = d->reached[i];
    d->n_reached = n;
}

static int reached_note(struct device *d, CUdeviceptr at, CUdeviceptr to, const struct slot *list)
{
    if (!grow_room(&d->reached, d->n_reached, &d->cap_reached, 64))
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->reached[d->n_reached++] = (struct reached){at, to, list, list ? list->serial : 0};
    return CUDA_SUCCESS;
}

/* A copy within the device takes along the known words of its source. */
static int reached_moves_drv(struct device *d, const struct eng_copy *c)
{
    struct slot *to = slot_at(d, c->dst_dev);
    int r = CUDA_SUCCESS;
    if (c->dst_dev - c->src_dev < c->bytes || c->src_dev - c->dst_dev < c->bytes)
        return r; /* the content of overlapping source and destination is undefined */
    reached_forget(d, c->dst_dev, c->bytes);
    for (uint32_t i = 0, n = d->n_reached; i < n && !r; i++) {
        const struct reached from = d->reached[i];
        if (from.at - c->src_dev >= c->bytes || !reached_stands(&from))
            continue;
        r = to ? holds_addresses_drv(d, to) : CUDA_SUCCESS;
        if (!r)
            r = reached_note(d, from.at - c->src_dev + c->dst_dev, from.to, to);
    }
    return r;
}

int reach_reached_drv(struct device *d, struct slot *s)
{
    for (uint32_t i = 0; i < d->n_reached; i++)
        if (d->reached[i].to - s->va < s->bytes && reached_stands(&d->reached[i]))
            return pin_reached_drv(d, s, "an address that was copied when other memory lay there");
    return CUDA_SUCCESS;
}

/* Host memory that the program has pinned, and not given back: the ranges of `in_place` whose end a call tells. */
static struct ranges pinned;

/* With the lock held: the host may read at p, and the driver need not be asked. Memory that a context had pinned goes with the context. */
static bool is_pinned(const void *p) { return !process.context_ended && ranges_hold(&pinned, (uintptr_t)p); }

bool reach_host_reads(CUdeviceptr at)
{
    unsigned type = 0, managed[2] = {0, 0};
    return process.drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS || type != CU_MEMORYTYPE_DEVICE ||
           (process.drv->cuPointerGetAttribute(managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at) == CUDA_SUCCESS && managed[0]);
}

void reach_writes_unknown(struct device *d, CUdeviceptr at)
{
    if (!engine_elsewhere(d) && (d->mode == MODE_PROBE || campaign_follows_plan(d)) && !slot_at(d, at) && !reach_host_reads(at))
        campaign_writes_elsewhere(d);
}

/* A walk over the addresses among the words at p. A word is an address if a slot begins there, or if no two 32-bit numbers make it (mem_may_be_number).
 * Other words in the reservation may be such numbers: in a long stretch they count only if one word in DENSE looks like an address. */
struct walk {
    const unsigned char *p;
    size_t words, i; /* i: index of `word`; equal to `words`: no further address */
    uint64_t word;
    bool all;
};

static size_t walk_look(const struct device *d, struct walk *w, size_t from) { return w->i = next_address(d, w->p, from, w->words, &w->word); }

static struct walk walk_begins(struct device *d, const unsigned char *p, size_t words)
{
    enum { SHORT_WORDS = 64, DENSE = 8 };
    struct walk w = {.p = p, .words = words};
    size_t hits = 0;
    for (size_t i = walk_look(d, &w, 0); i < words; i = walk_look(d, &w, i + 1))
        hits += slot_lookup(d, w.word) != NULL;
    w.all = words <= SHORT_WORDS || hits * DENSE >= words;
    w.words = hits ? words : 0;
    w.i = SIZE_MAX; /* before the first one */
    return w;
}

/* The slot that the next address points at; NULL: there is no further address. */
static struct slot *walk_next(struct device *d, struct walk *w)
{
    while (walk_look(d, w, w->i + 1) < w->words) {
        struct slot *s = slot_lookup(d, w->word);
        if (s && (w->all || w->word == s->va || !mem_may_be_number(w->word)))
            return s;
    }
    return NULL;
}

/* Bytes from `at`, in memory that is not in a slot, to the end of its allocation; 0: the driver does not say. */
static uint64_t bytes_behind(CUdeviceptr at)
{
    CUdeviceptr start = 0;
    size_t size = 0;
    const struct drv *drv = process.drv;
    if (drv->cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at) != CUDA_SUCCESS ||
        drv->cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at) != CUDA_SUCCESS || at - start >= size)
        return 0;
    return start + size - at;
}

/* From now on any launch may use a texture that no argument shows: no launch is run again, and so no value that the plan has dropped is made again. */
static void textures_anywhere(const char *why)
{
    if (texture_by_any())
        return;
    texture_set_by_any();
    for (unsigned i = 0; i < process.n_dev; i++) {
        struct device *d = process.dev[i];
        if (!d->ready || d->gone)
            continue;
        d->mem.address_changes++;
        struct engine_visit v = engine_visit(d);
        campaign_distrusts(d, why);
        engine_return(v);
    }
}

/* Looks for handles of textures among words that are written to memory: a kernel that reads them there may use the textures. */
__attribute__((no_sanitize("thread"))) static int note_textures_drv(struct device *d, struct slot *list, const unsigned char *p, size_t words)
{
    enum { MOST_WORDS = 8192 };
    int r = CUDA_SUCCESS;
    for (size_t i = 0; i < words && words <= MOST_WORDS && texture_any() && !r; i++) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        if (!texture_is(word))
            continue;
        if (list)
            r = holds_addresses_drv(d, list);
        else
            textures_anywhere("a texture's handle comes to lie where any kernel may know it");
    }
    return r;
}

/* Looks for addresses of the program's own memory, and of memory that the host writes. Such memory stays where it is, but a kernel that follows the addresses
 * reads content that no argument shows, as it is at that time. Such lists are short: stretches of more than MOST_WORDS are not looked through. In a stretch that is
 * no list a word may look like an address (see struct walk). The program may write this memory meanwhile, as in next_address(). */
__attribute__((no_sanitize("thread"))) static int note_others_drv(struct device *d, struct slot *list, const unsigned char *p, size_t words)
{
    enum { SHORT_WORDS = 64, MOST_WORDS = 8192 };
    int r = CUDA_SUCCESS;
    for (size_t i = 0; i < words && words <= MOST_WORDS && !r; i++) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        struct slot *s = foreign_lookup(d, word);
        if (s ? word != s->va && words > SHORT_WORDS && mem_may_be_number(word) : !in_place_or_outside(word))
            continue;
        r = list ? holds_addresses_drv(d, list) : s ? is_named_drv(d, s) : CUDA_SUCCESS;
        if (!r && s)
            r = pin_reached_drv(d, s, "a pointer array");
    }
    return r;
}

/* Pointers may travel to the device in arrays and structs: buffers that they point at can be used by any later launch, unseen. On the device
 * they lie at multiples of eight, wherever they come from. */
static int scan_for_pointers(struct device *d, CUdeviceptr dst, const void *src, size_t bytes)
{
    enum { UNKNOWN_MAX_BYTES = 1 << 20 };
    const unsigned char *p = src;
    struct slot *list = slot_at(d, dst);
    const uint64_t room = list ? list->va + list->bytes - dst : bytes > UNKNOWN_MAX_BYTES ? bytes_behind(dst) : bytes;
    if (bytes > room)
        bytes = room; /* the driver refuses a copy beyond the end, and reads nothing of it */
    if (!p || !bytes || (!is_pinned(src) && !reach_host_reads((CUdeviceptr)(uintptr_t)src)))
        return CUDA_SUCCESS;
    if (d->n_reached)
        reached_forget(d, dst, bytes);
    const size_t before = (size_t)(-dst & 7);
    if (bytes < before)
        return CUDA_SUCCESS;
    p += before;
    dst += before;
    bytes -= before;
    const size_t words = bytes / 8;
    for (size_t at = 0; tensor_map_any() && at + TENSOR_MAP_BYTES <= bytes; at += 8) {
        uint64_t shape;
        CUdeviceptr to = tensor_map_at(p + at, &shape);
        struct slot *s = to && mem_in_reservation(d, to) ? slot_lookup(d, to) : NULL;
        int r = s ? pin_reached_drv(d, s, "a tensor map in memory") : CUDA_SUCCESS;
        if (!r && s && list)
            r = holds_addresses_drv(d, list);
        if (r)
            return r;
    }
    struct walk w = walk_begins(d, p, words);
    for (struct slot *s; (s = walk_next(d, &w));) {
        int r = list ? holds_addresses_drv(d, list) : is_named_drv(d, s);
        if (!r)
            r = reached_note(d, dst + 8 * w.i, w.word, list);
        if (!r)
            r = pin_reached_drv(d, s, "a pointer array");
        if (r)
            return r;
    }
    const int r = note_textures_drv(d, list, p, words);
    return r ? r : note_others_drv(d, list, p, words);
}

/* A copy on the device takes along the texture handles in its source. */
static int textures_move_drv(struct device *d, const struct eng_copy *c)
{
    const struct slot *from = texture_any() ? slot_at(d, c->src_dev) : NULL;
    struct slot *to = from && from->points ? slot_at(d, c->dst_dev) : NULL;
    if (to)
        return holds_addresses_drv(d, to);
    if (from && from->points)
        textures_anywhere("a list that may hold a texture's handle is copied to where any kernel may know it");
    return CUDA_SUCCESS;
}

void eng_reach_texture_made(uint64_t handle)
{
    engine_lock();
    texture_note(handle);
    words_mean_others();
    engine_unlock();
}

void eng_reach_texture_gone(uint64_t handle)
{
    engine_lock();
    texture_forget(handle);
    words_mean_others();
    engine_unlock();
}

void eng_reach_texture_bound(void)
{
    engine_lock();
    textures_anywhere("a texture reference is bound");
    engine_unlock();
}

int eng_note_host_data(CUdeviceptr dst, const void *src, size_t bytes)
{
    engine_lock();
    struct device *d = engine_here();
    int r = d ? scan_for_pointers(d, dst, src, bytes) : CUDA_SUCCESS;
    engine_unlock();
    return r;
}

/* ---- addresses that lie where the host writes --------------------------------------------------------------------------- */

void eng_note_in_place(CUdeviceptr p, size_t bytes)
{
    engine_lock();
    if (ranges_add(&in_place, p, bytes))
        log_once(SAY_WARN, "no memory to remember what is pinned: a kernel that finds addresses there may read another tensor's memory");
    words_mean_others();
    engine_unlock();
}

void eng_note_pinned(CUdeviceptr p, size_t bytes)
{
    eng_note_in_place(p, bytes);
    engine_lock();
    (void)!ranges_add(&pinned, p, bytes); /* the driver is asked about a range that finds no room */
    engine_unlock();
}

size_t eng_forget_in_place(CUdeviceptr p)
{
    engine_lock();
    const uint64_t bytes = ranges_remove(&in_place, p);
    ranges_remove(&pinned, p);
    engine_unlock();
    return bytes;
}

void eng_note_outside(CUdeviceptr p, size_t bytes)
{
    engine_lock();
    if (!bytes)
        bytes = bytes_behind(p);
    if (bytes && ranges_add(&in_place_outside, p, bytes))
        log_once(SAY_WARN, "no memory to remember memory that the program maps or opens: a kernel that finds its addresses in a list may read another tensor's memory");
    words_mean_others();
    engine_unlock();
}

size_t eng_forget_outside(CUdeviceptr p)
{
    engine_lock();
    const uint64_t bytes = ranges_remove(&in_place_outside, p);
    engine_unlock();
    return bytes;
}

/* Another thread that opens the same memory notes it after the driver's call: a note before this look is kept, since the driver knows the memory; a later one stays. */
void eng_closed_outside(CUdeviceptr p)
{
    engine_lock();
    if (!bytes_behind(p))
        ranges_remove(&in_place_outside, p);
    engine_unlock();
}

struct reach_noted reach_forget(CUdeviceptr p)
{
    return (struct reach_noted){ranges_remove(&in_place, p), ranges_remove(&in_place_outside, p)};
}

void reach_noted_again(CUdeviceptr p, struct reach_noted was)
{
    if (was.in_place)
        ranges_add(&in_place, p, was.in_place);
    if (was.outside)
        ranges_add(&in_place_outside, p, was.outside);
    if (was.in_place || was.outside)
        words_mean_others();
}

/* The driver still knows the memory, and the host may read it whatever the device does. */
static bool host_may_read(CUdeviceptr at)
{
    unsigned type = 0;
    unsigned managed[2] = {0, 0};
    int at_once = 0;
    CUdevice dev;
    const struct drv *drv = process.drv;
    if (drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS)
        return false;
    if (drv->cuPointerGetAttribute(managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at) != CUDA_SUCCESS || !managed[0])
        return type == CU_MEMORYTYPE_HOST;
    return current_device_drv(drv, &dev) == CUDA_SUCCESS && drv->cuDeviceGetAttribute &&
           drv->cuDeviceGetAttribute(&at_once, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, dev) == CUDA_SUCCESS && at_once;
}

static int keep_reached_drv(struct device *d, struct slot *s, const char *why)
{
    s->written = true;
    s->watched = false;
    return pin_reached_drv(d, s, why);
}

static int follow_odd_drv(struct device *d, const struct rt_op *op)
{
    for (uint32_t i = 0, to; i < op_pieces(op) && op->odd; i++)
        for (uint32_t from = op_piece(op, i, &to), at = op_odd_word(from); op_may_be_packed(from, to) && at + 8 <= to; at += 8) {
            uint64_t p;
            memcpy(&p, op->args + at, 8);
            struct slot *s = slot_at(d, p);
            int r = s ? keep_reached_drv(d, s, "a packed argument") : CUDA_SUCCESS;
            if (r)
                return r;
        }
    return CUDA_SUCCESS;
}

/* True if some word is an address in memory of the program's own. The program may write these words meanwhile, as in next_address(). */
__attribute__((no_sanitize("thread"))) static bool names_own_memory(struct device *d, const unsigned char *p, size_t words)
{
    bool found = false;
    for (size_t i = 0; i < words && !found; i++) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        found = foreign_lookup(d, word) != NULL;
    }
    return found;
}

int reach_follow_drv(struct device *d, const struct rt_op *op)
{
    enum { LOOK_MAX_BYTES = 1 << 16 };
    for (uint32_t i = 0, to; i < op_pieces(op) && op->in_place; i++)
        for (uint32_t at = (op_piece(op, i, &to) + 7) & ~7u; at + 8 <= to; at += 8) {
            uint64_t p;
            memcpy(&p, op->args + at, 8);
            uint64_t bytes = ranges_may_hold(&in_place, p) ? ranges_left(&in_place, p) : 0;
            const uint64_t before = -p & 7;
            bytes -= bytes < before ? bytes : before;
            p += before;
            if (bytes < 8 || !host_may_read(p))
                continue;
            const size_t words = (bytes < LOOK_MAX_BYTES ? bytes : LOOK_MAX_BYTES) / 8;
            if (!d->unconfined && names_own_memory(d, (const unsigned char *)(uintptr_t)p, words))
                unconfined(d, "a kernel finds addresses of the program's own memory in host memory");
            struct walk w = walk_begins(d, (const unsigned char *)(uintptr_t)p, words);
            for (struct slot *s; (s = walk_next(d, &w));) {
                int r = keep_reached_drv(d, s, "memory that the host writes");
                if (r)
                    return r;
            }
        }
    return follow_odd_drv(d, op);
}

/* ---- copies ---------------------------------------------------------------------------------------------------------------- */

/* With the lock held: the driver does not know the memory at p, which is pageable. */
static bool pageable(const void *p)
{
    unsigned type = 0;
    return !is_pinned(p) && process.drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)p) != CUDA_SUCCESS;
}

void eng_before_host_copy(CUstream stream, const void *dst_host, bool sync)
{
    if (!sync && !dst_host)
        return;
    engine_lock();
    struct device *d = sync || pageable(dst_host) ? engine_here() : NULL;
    bool may_wait = d && !engine_is_captured(stream); /* a capture forbids the wait */
    engine_unlock();
    if (may_wait)
        process.drv->cuStreamSynchronize(stream); /* if this fails the copy will report it */
}

/* The copy as the driver takes it: managed device memory given for host memory makes it a copy on the device, whatever the call is named. */
static struct eng_copy by_address(const struct eng_copy *c)
{
    struct eng_copy to = *c;
    CUdeviceptr other = (CUdeviceptr)(uintptr_t)(c->kind == ENG_DTOH ? c->dst_host : c->src_host);
    if (c->kind == ENG_DTOD || !engine_holder(other))
        return to;
    to.kind = ENG_DTOD;
    *(c->kind == ENG_DTOH ? &to.dst_dev : &to.src_dev) = other;
    return to;
}

/* Looks for addresses, and handles of textures, in the bytes to be copied. */
static int look_at_copy_drv(struct device *d, void *arg)
{
    const struct eng_copy *c = arg;
    const int r = c->kind == ENG_HTOD                   ? scan_for_pointers(d, c->dst_dev, c->src_host, c->bytes)
                  : c->kind == ENG_DTOD && d->n_reached ? reached_moves_drv(d, c)
                                                        : CUDA_SUCCESS;
    return !r && c->kind == ENG_DTOD ? textures_move_drv(d, c) : r;
}

int eng_copy(const struct eng_copy *given)
{
    struct rt_op op;
    struct eng_copy told = by_address(given);
    const struct eng_copy *c = &told;
    if (c->kind != ENG_DTOD)
        eng_before_host_copy(c->stream, c->kind == ENG_DTOH ? c->dst_host : NULL, c->sync);
    engine_lock();
    struct device *d = engine_here();
    int r = c->kind == ENG_DTOH ? CUDA_SUCCESS : reach_keep_others_drv(d, c->dst_dev, true);
    if (!r && c->kind != ENG_HTOD)
        r = reach_keep_others_drv(d, c->src_dev, false);
    if (!d || r) {
        engine_unlock();
        return r ? r : op_pass_copy_drv(process.drv, c);
    }
    do {
        if (c->kind != ENG_DTOH) /* a copy to the host belongs to the iteration before it, if to any */
            engine_turn(d);
        r = beginning_again_drv(d, look_at_copy_drv, &told);
        if (r) {
            engine_unlock();
            return r;
        }
        op_from_copy(d, c, &op);
    } while (engine_waited(d, &op));
    if ((c->kind != ENG_DTOH && engine_nobodys(d, c->dst_dev, c->bytes)) || (c->kind != ENG_HTOD && engine_nobodys(d, c->src_dev, c->bytes)))
        r = CUDA_ERROR_INVALID_VALUE;
    else {
        if (c->kind != ENG_DTOH)
            reach_writes_unknown(d, c->dst_dev);
        r = op.n_operands ? engine_op_drv(d, &op) : op_issue_drv(d, &op);
    }
    stats_keep(&process.cfg, process.dev, process.n_dev, eng_active());
    engine_unlock();
    return r;
}

bool eng_is_device_pointer(CUdeviceptr ptr)
{
    if (engine_holder(ptr))
        return true;
    unsigned type = 0;
    return process.drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr) == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE;
}

bool eng_is_managed(CUdeviceptr ptr)
{
    engine_lock();
    const bool managed = engine_holder(ptr) != NULL;
    engine_unlock();
    return managed;
}

struct pin {
    CUdeviceptr ptr;
    const char *why;
};

static int pin_one_drv(struct device *d, void *arg)
{
    const struct pin *p = arg;
    return (void)d, pin_at_drv(p->ptr, p->why);
}

int eng_pin(CUdeviceptr ptr, size_t bytes, const char *why)
{
    (void)bytes; /* the whole allocation, whatever part of it is meant */
    engine_lock();
    struct device *d = engine_holder(ptr);
    int r = d ? beginning_again_drv(d, pin_one_drv, &(struct pin){ptr, why}) : pin_at_drv(ptr, why);
    engine_unlock();
    return r;
}

int eng_note_tensor_map(const CUtensorMap *map, CUdeviceptr ptr, const CUtensorMap *shape)
{
    unsigned what = 0;
    engine_lock();
    int r = CUDA_SUCCESS;
    if (!shape || tensor_map_note(map, ptr, shape) ||
        (process.drv->cuPointerGetAttribute(&what, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)map) == CUDA_SUCCESS && what))
        r = pin_at_drv(ptr, "a tensor map that may be read where nobody sees it");
    engine_unlock();
    return r;
}

CUdeviceptr eng_tensor_map_at(const CUtensorMap *map)
{
    uint64_t shape;
    engine_lock();
    const CUdeviceptr at = tensor_map_at((const unsigned char *)map, &shape);
    engine_unlock();
    return at;
}
