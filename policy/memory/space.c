/* Address space: one reservation for everything that is managed, made once; and the tables that speak of it.
 *
 * Pages below device.next_page are of slots, of arenas, or in a list of gaps, in order of address, no two of which touch each other or
 * the end. Pages are taken and given back when slots of new sizes are made and old ones dissolved (slot.c): never in a steady state.
 *
 * Danger: structs passed by value hold numbers of four bytes with bytes beside them that nobody fills, often the upper half of an address
 * that the stack held there. Such a word is an address of ours where a slot lies at that lower half; and a decoy in its place, or another's
 * buffer, would change the number: a stride or a count that sends the op anywhere. No argument's bytes tell the two apart. So no slot
 * lies where the lower half of its address is what a number may be (mem_may_be_number); slots too large for that lie at no integer that
 * is not far below zero; and larger ones, or those of a device with too few addresses, have what there is.
 */
#include "policy/memory/mem_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *table(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

int mem_init(struct device *d)
{
    d->mem = calloc(1, sizeof *d->mem);
    if (!d->mem)
        return -ENOMEM;
    d->mem->small_structs = d->mem->large_structs = d->mem->foreign_free = -1;
    CUmemAllocationProp prop;
    size_t gran = 0;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = d->dev;
    if (d->drv->cuMemGetAllocationGranularity(&gran, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS ||
        !gran || (gran & (gran - 1)))
        return -ENOTSUP;
    d->gran = gran;
    d->shift = (unsigned)__builtin_ctzll(gran);
    /* Address space is spent, never memory: room for 64 devices' worth of slots, less where the driver has less. */
    uint64_t want = 1ull << 36;
    while (want < d->device_bytes * 64)
        want <<= 1;
    for (d->base = 0; want >= d->device_bytes * 2 && !d->base; want >>= 1) {
        CUdeviceptr p = 0, rest = 0;
        if (d->drv->cuMemAddressReserve(&p, want, gran, 0, 0) != CUDA_SUCCESS)
            continue;
        /* Others need addresses too, the program and what learns: half as much is to be left for them. */
        bool least = want / 2 < d->device_bytes * 2;
        if (!least && d->drv->cuMemAddressReserve(&rest, want / 2, gran, 0, 0) != CUDA_SUCCESS) {
            d->drv->cuMemAddressFree(p, want);
            continue;
        }
        if (rest)
            d->drv->cuMemAddressFree(rest, want / 2);
        d->base = p;
        d->reserve_bytes = want;
    }
    if (!d->base)
        return -ENOMEM;
    d->n_va_pages = d->reserve_bytes >> d->shift;
    d->page_slot = table(d->n_va_pages * sizeof *d->page_slot);
    d->slots = table((size_t)MAX_SLOTS * sizeof *d->slots);
    d->chunks = table((size_t)MAX_CHUNKS * sizeof *d->chunks);
    d->mem->arenas = table((size_t)MAX_ARENAS * sizeof *d->mem->arenas);
    d->mem->longest = table(2ull * MAX_ARENAS * sizeof *d->mem->longest);
    d->mem->free_slots = malloc(MAX_LIST_PAGES * sizeof *d->mem->free_slots);
    if (!d->page_slot || !d->slots || !d->chunks || !d->mem->arenas || !d->mem->longest || !d->mem->free_slots)
        return -ENOMEM;
    for (int i = 0; i < MAX_LIST_PAGES; i++)
        d->mem->free_slots[i] = -1;
    d->mem->longest_root = MAX_ARENAS;
    d->free_head = d->free_tail = -1;
    d->mark = 1;
    return 0;
}

/* The chunks go when they are mapped nowhere. */
uint64_t mem_end(struct device *d)
{
    uint64_t kept = 0;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct slot *s = &d->slots[i];
        for (uint32_t p = 0; s->kind == SLOT_LARGE && s->map && p < s->n_pages; p++)
            if (s->map[p] >= 0)
                kept += MEM_CALL(cuMemUnmap(s->va + ((uint64_t)p << d->shift), d->gran)) != CUDA_SUCCESS;
        if (s->kind == SLOT_LARGE)
            free(s->map);
    }
    for (uint32_t i = 0; i < d->mem->n_arenas; i++) {
        struct arena *a = &d->mem->arenas[i];
        if (a->chunk >= 0)
            kept += MEM_CALL(cuMemUnmap(a->va, d->gran)) != CUDA_SUCCESS;
        free(a->unit_slot);
        free(a->runs);
    }
    for (uint32_t c = 0; c < d->n_chunks; c++)
        if (d->chunks[c].owner != CHUNK_GONE)
            kept += MEM_CALL(cuMemRelease(d->chunks[c].handle)) != CUDA_SUCCESS;
    d->drv->cuMemAddressFree(d->base, d->reserve_bytes);
    munmap(d->page_slot, d->n_va_pages * sizeof *d->page_slot);
    munmap(d->slots, (size_t)MAX_SLOTS * sizeof *d->slots);
    munmap(d->chunks, (size_t)MAX_CHUNKS * sizeof *d->chunks);
    munmap(d->mem->arenas, (size_t)MAX_ARENAS * sizeof *d->mem->arenas);
    munmap(d->mem->longest, 2ull * MAX_ARENAS * sizeof *d->mem->longest);
    free(d->mem->free_slots);
    free(d->mem->gaps);
    free(d->mem);
    d->page_slot = NULL;
    d->slots = NULL;
    d->chunks = NULL;
    d->mem = NULL;
    d->base = 0;
    d->reserve_bytes = 0;
    d->n_slots = d->n_chunks = d->n_gone = d->n_free_chunks = 0;
    return kept * d->gran;
}

static const uint64_t HALF = 1ull << 32;

/* Of the lower halves of addresses: what a slot may have, the best first; its addresses are neighbours. */
static const struct lower_halves {
    uint64_t from, to;
} LOWER_HALVES[] = {{MEM_NUMBERS_TO, MEM_NUMBERS_FROM}, {1ull << 31, 0xf0000000}, {0, UINT64_MAX}};

/* The first page from `first` on where n pages may lie. */
static uint64_t next_place(const struct device *d, uint64_t first, uint64_t n, const struct lower_halves *h)
{
    const uint64_t bytes = n << d->shift, low = (d->base + (first << d->shift)) % HALF;
    const uint64_t skip = low < h->from ? h->from - low : low + bytes <= h->to ? 0 : HALF - low + h->from;
    return first + ((skip + (1ull << d->shift) - 1) >> d->shift);
}

static int gap_insert(struct mem *m, uint32_t i, struct gap g)
{
    if (m->n_gaps == m->cap_gaps) {
        uint32_t cap = m->cap_gaps ? m->cap_gaps * 2 : 64;
        struct gap *p = realloc(m->gaps, cap * sizeof *p);
        if (!p)
            return -ENOMEM;
        m->gaps = p;
        m->cap_gaps = cap;
    }
    memmove(m->gaps + i + 1, m->gaps + i, (m->n_gaps++ - i) * sizeof *m->gaps);
    m->gaps[i] = g;
    return 0;
}

static void gap_remove(struct mem *m, uint32_t i) { memmove(m->gaps + i, m->gaps + i + 1, (--m->n_gaps - i) * sizeof *m->gaps); }

/* [at, at + n) of gap i; what is left on both sides stays in the list. */
static int gap_cut(struct mem *m, uint32_t i, uint64_t at, uint64_t n)
{
    struct gap *g = &m->gaps[i];
    const struct gap before = {g->first, at - g->first}, after = {at + n, g->first + g->n - (at + n)};
    if (before.n && after.n) {
        int r = gap_insert(m, i + 1, after);
        if (!r)
            m->gaps[i] = before;
        return r;
    }
    if (before.n || after.n)
        *g = before.n ? before : after;
    else
        gap_remove(m, i);
    return 0;
}

static int take(struct device *d, uint64_t n, const struct lower_halves *h, uint64_t *first)
{
    struct mem *m = d->mem;
    for (uint32_t i = 0; i < m->n_gaps; i++) {
        const struct gap *g = &m->gaps[i];
        *first = next_place(d, g->first, n, h);
        if (*first + n <= g->first + g->n)
            return gap_cut(m, i, *first, n);
    }
    *first = next_place(d, d->next_page, n, h);
    if (*first + n > d->n_va_pages ||
        (*first > d->next_page && gap_insert(m, m->n_gaps, (struct gap){d->next_page, *first - d->next_page})))
        return -ENOMEM;
    d->next_page = *first + n;
    d->top_page = d->next_page > d->top_page ? d->next_page : d->top_page;
    return 0;
}

int space_take(struct device *d, uint64_t n, uint64_t *first)
{
    for (size_t i = 0; i < sizeof LOWER_HALVES / sizeof *LOWER_HALVES; i++)
        if (n << d->shift <= LOWER_HALVES[i].to - LOWER_HALVES[i].from && !take(d, n, &LOWER_HALVES[i], first))
            return 0;
    return -ENOMEM;
}

int space_give(struct device *d, uint64_t first, uint64_t n)
{
    struct mem *m = d->mem;
    uint32_t i = 0;
    while (i < m->n_gaps && m->gaps[i].first < first)
        i++;
    bool after = i && m->gaps[i - 1].first + m->gaps[i - 1].n == first, before = i < m->n_gaps && first + n == m->gaps[i].first;
    if (after && before) {
        m->gaps[i - 1].n += n + m->gaps[i].n;
        gap_remove(m, i);
    } else if (after)
        m->gaps[i - 1].n += n;
    else if (before) {
        m->gaps[i].first = first;
        m->gaps[i].n += n;
    } else if (gap_insert(m, i, (struct gap){first, n}))
        return -ENOMEM;
    memset(d->page_slot + first, 0, n * sizeof *d->page_slot);
    if (m->gaps[m->n_gaps - 1].first + m->gaps[m->n_gaps - 1].n == d->next_page)
        d->next_page = m->gaps[--m->n_gaps].first;
    return 0;
}
