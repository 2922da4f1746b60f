#include "policy/learn/rows.h"
#include "policy/learn/probing.h"
#include "policy/memory/slot.h"

#include <stdlib.h>
#include <string.h>

static void forget(struct rows *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        free(p->row[i]);
    free(p->row);
    p->row = NULL;
    p->n = 0;
}

void rows_begin(struct device *d)
{
    forget(&d->probe->rows);
    d->probe->rows.begin_serial = d->mem.serial;
}

void rows_end(struct device *d)
{
    forget(&d->probe->rows);
    d->probe->rows.begin_serial = UINT64_MAX;
}

bool rows_is_new(const struct device *d, const struct slot *s) { return s->serial > d->probe->rows.begin_serial; }

struct blank_row *rows_of(struct device *d, const struct slot *s, bool make)
{
    struct rows *p = &d->probe->rows;
    if (s->pins)
        return NULL; /* a pinned slot is reached through addresses that lie in memory: ops may write it that have no operand for it */
    if (s->id >= p->n && make) {
        uint32_t n = d->mem.n_slots + 64;
        struct blank_row **rows = realloc(p->row, n * sizeof *rows);
        if (!rows)
            return NULL;
        memset(rows + p->n, 0, (n - p->n) * sizeof *rows);
        p->row = rows;
        p->n = n;
    }
    struct blank_row *r = s->id < p->n ? p->row[s->id] : NULL;
    if (r && r->serial == s->serial)
        return r->scattered || r->b.n ? r : NULL;
    if (!make || !rows_is_new(d, s) || (!r && !(r = p->row[s->id] = malloc(sizeof *r))))
        return NULL;
    r->serial = s->serial;
    r->scattered = false;
    blank_all(&r->b, s->bytes);
    return r;
}

struct blank_row *rows_make(struct device *d, const struct slot *s)
{
    struct blank_row *r = rows_of(d, s, true);
    if (!r && s->id < d->probe->rows.n) { /* the buffer was wholly defined until now */
        r = d->probe->rows.row[s->id] ? d->probe->rows.row[s->id] : (d->probe->rows.row[s->id] = malloc(sizeof *r));
        if (r)
            *r = (struct blank_row){.serial = s->serial};
    }
    return r;
}

int rows_defined(struct device *d, const struct slot *s, struct rec_range *out)
{
    const struct blank_row *row = rows_of(d, s, false);
    return row && !row->scattered ? (int)blank_defined(&row->b, s->bytes, out) : -1;
}
