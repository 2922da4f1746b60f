#include "offline/solvers/frontier.h"

#include <errno.h>
#include <stdlib.h>

static int before(struct frontier_entry a, struct frontier_entry b) { return a.f != b.f ? a.f < b.f : a.along > b.along; }

int frontier_push(struct frontier *q, struct frontier_entry x)
{
    if (q->n == q->room) {
        const int32_t room = q->room ? 2 * q->room : 1024;
        struct frontier_entry *p = realloc(q->heap, (size_t)room * sizeof *p);
        if (!p)
            return -ENOMEM;
        q->heap = p;
        q->room = room;
    }
    int32_t i = q->n++;
    for (; i && before(x, q->heap[(i - 1) / 2]); i = (i - 1) / 2)
        q->heap[i] = q->heap[(i - 1) / 2];
    q->heap[i] = x;
    return 0;
}

struct frontier_entry frontier_pop(struct frontier *q)
{
    const struct frontier_entry top = q->heap[0], last = q->heap[--q->n];
    int32_t i = 0;
    for (int32_t d; (d = 2 * i + 1) < q->n; i = d) {
        if (d + 1 < q->n && before(q->heap[d + 1], q->heap[d]))
            d++;
        if (!before(q->heap[d], last))
            break;
        q->heap[i] = q->heap[d];
    }
    if (q->n)
        q->heap[i] = last;
    return top;
}

void frontier_free(struct frontier *q)
{
    free(q->heap);
    *q = (struct frontier){0};
}
