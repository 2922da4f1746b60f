/* space.c: address space: one reservation for all managed memory, made once, and its tables.
 *
 * Pages below memory.next_page belong to slots, to arenas, or to gaps. The list of gaps is in order of address; no gap touches another one or
 * the end. Pages are taken and given back when slots of new sizes are made and old ones dissolved (slot.c): never in a steady state.
 *
 * Danger: structs passed by value hold numbers of four bytes beside four bytes that nobody fills, often the upper half of an address
 * that the stack held there. Both together are an address of ours where a slot's lower half is the number; and a decoy, or another
 * buffer's address, put in their place would change the number: a stride or a count that sends the op anywhere. The bytes of an argument do not
 * tell a number from an address. So no slot lies where the lower half of its address may be a number (mem_may_be_number). Slots too large for
 * that lie where the lower half is an integer far below zero; still larger slots, or those of a device with too few addresses, lie anywhere.
 */
#include "policy/memory/space.h"

#include "policy/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t HALF = 1ull << 32;

/* Ranges of lower halves of addresses, the best first: a slot lies as a whole in one of them. */
static const struct lower_halves {
    uint64_t from, to;
} LOWER_HALVES[] = {{MEM_NUMBERS_TO, MEM_NUMBERS_FROM}, {1ull << 31, 0xf0000000}, {0, UINT64_MAX}};

/* The first page from `first` on where n pages may lie by h. */
static uint64_t next_place(const struct device *d, uint64_t first, uint64_t n, const struct lower_halves *h)
{
    const uint64_t bytes = n << d->mem.shift, low = (d->mem.base + (first << d->mem.shift)) % HALF;
    const uint64_t skip = low < h->from ? h->from - low : low + bytes <= h->to ? 0 : HALF - low + h->from;
    return first + ((skip + (1ull << d->mem.shift) - 1) >> d->mem.shift);
}

static int gap_insert(struct memory *m, uint32_t i, struct gap g)
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

static void gap_remove(struct memory *m, uint32_t i) { memmove(m->gaps + i, m->gaps + i + 1, (--m->n_gaps - i) * sizeof *m->gaps); }

/* Cuts [at, at + n) out of gap i; the rest on both sides stays in the list. */
static int gap_cut(struct memory *m, uint32_t i, uint64_t at, uint64_t n)
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
    struct memory *m = &d->mem;
    for (uint32_t i = 0; i < m->n_gaps; i++) {
        const struct gap *g = &m->gaps[i];
        *first = next_place(d, g->first, n, h);
        if (*first + n <= g->first + g->n)
            return gap_cut(m, i, *first, n);
    }
    *first = next_place(d, d->mem.next_page, n, h);
    if (*first + n > d->mem.n_va_pages ||
        (*first > d->mem.next_page && gap_insert(m, m->n_gaps, (struct gap){d->mem.next_page, *first - d->mem.next_page})))
        return -ENOMEM;
    d->mem.next_page = *first + n;
    d->mem.top_page = d->mem.next_page > d->mem.top_page ? d->mem.next_page : d->mem.top_page;
    return 0;
}

int space_take(struct device *d, uint64_t n, uint64_t *first)
{
    for (size_t i = 0; i < sizeof LOWER_HALVES / sizeof *LOWER_HALVES; i++)
        if (n << d->mem.shift <= LOWER_HALVES[i].to - LOWER_HALVES[i].from && !take(d, n, &LOWER_HALVES[i], first))
            return 0;
    return -ENOMEM;
}

int space_give(struct device *d, uint64_t first, uint64_t n)
{
    struct memory *m = &d->mem;
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
    memset(d->mem.page_slot + first, 0, n * sizeof *d->mem.page_slot);
    if (m->gaps[m->n_gaps - 1].first + m->gaps[m->n_gaps - 1].n == d->mem.next_page)
        d->mem.next_page = m->gaps[--m->n_gaps].first;
    return 0;
}
