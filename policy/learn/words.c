/* Which of an op's argument words matter to it.
 *
 * Parameters that are structs passed by value carry entries which the program never filled: they hold pointers of calls long past,
 * others in every iteration. Such a word is found by putting a decoy in its place, a range of addresses as long as the buffer, with
 * nothing behind it but one page of zeros mapped again and again, and running the op once more: if every result is the same, the op
 * neither read nor wrote through the word. Zeros are harmless where the buffer held an index or a count; where it held zeros itself
 * they prove nothing, and the word counts as used.
 *
 * Words are tested in groups, halves of those that matter after that. What proves that a word is idle holds for this launch at its
 * place in the iteration. An op that selects by data may ignore a real operand once and read it another time: so a word that pointed
 * at the same buffer one iteration ago stays an operand, unless it is one of many in its struct (the tail of a list).
 */
#include "policy/learn/learn.h"
#include "policy/learn/trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Runs for one op at most; and as many idle words of one struct that are the same in every iteration are still taken for operands */
enum { RUNS_MOST = 96, FEW = 8 };

enum { SIZES = 32 };

struct decoy {
    CUdeviceptr va;
    uint64_t reserved, mapped; /* bytes */
    CUmemGenericAllocationHandle page;
    bool made;
    struct {
        uint64_t bytes, hash[2];
    } zeros[SIZES]; /* hashes of so many zeros, the latest sizes that were asked for; bytes 0: none */
    uint32_t next_size;
};

struct word {
    uint32_t operand, param;
    bool idle;
};

struct search {
    struct trial *t;
    struct word *w;
    unsigned char *args;
    uint32_t runs;
    bool clean; /* the latest run left everything as the program's did */
    int failed; /* the first error of a run */
};

/* ---- the decoy ------------------------------------------------------------------------------------------------------ */

void words_end(struct device *d)
{
    struct decoy *y = d->decoy;
    if (!y)
        return;
    mem_page_unmap(d, y->va, y->mapped >> d->shift);
    if (y->reserved)
        d->drv->cuMemAddressFree(y->va, y->reserved);
    y->mapped = y->reserved = 0;
    d->own[OWN_DECOY] = (struct own_range){0};
}

/* The page stays when a range of it goes: under a plan no memory may be free when a word wants proof. */
static int decoy_page(struct device *d)
{
    struct decoy *y = d->decoy;
    if (!y && !(y = d->decoy = calloc(1, sizeof *y)))
        return -ENOMEM;
    if (!y->made && (mem_make_foreign_room(d, d->gran) || mem_page_of_own(d, &y->page))) {
        log_say(SAY_DEBUG, "no page for a decoy: words that want proof have none");
        return -ENOMEM;
    }
    y->made = true;
    return 0;
}

void words_prepare(struct device *d) { (void)decoy_page(d); }

/* A range of at least so many bytes. */
static int decoy_for(struct device *d, uint64_t bytes)
{
    bytes = mem_pages(d, bytes + 1) << d->shift;
    struct decoy *y = d->decoy;
    if (y && y->mapped >= bytes)
        return 0;
    int r = decoy_page(d);
    if (r)
        return r;
    y = d->decoy;
    words_end(d);
    CUresult e = d->drv->cuMemAddressReserve(&y->va, bytes, d->gran, 0, 0);
    if (e != CUDA_SUCCESS) {
        log_say(SAY_DEBUG, "no addresses for a decoy of %llu bytes: %s", (unsigned long long)bytes, rt_code_name(d, (int)e));
        return -ENOMEM;
    }
    y->reserved = bytes;
    d->own[OWN_DECOY] = (struct own_range){y->va, bytes};
    r = mem_page_map(d, y->va, bytes >> d->shift, y->page);
    if (!r)
        y->mapped = bytes;
    return r;
}

static int decoy_zero(struct device *d)
{
    return d->drv->cuMemsetD8Async(d->decoy->va, 0, d->gran, d->stream[STREAM_IN]) == CUDA_SUCCESS ? 0 : -EIO;
}

CUdeviceptr words_decoy(struct device *d, uint64_t bytes) { return decoy_for(d, bytes) || decoy_zero(d) ? 0 : d->decoy->va; }

int words_zeros(struct device *d, uint64_t bytes, uint64_t hash[2])
{
    struct decoy *y = d->decoy;
    uint32_t k = 0;
    while (k < SIZES && y->zeros[k].bytes != bytes)
        k++;
    if (k == SIZES) {
        const struct hash_range range = {y->va, bytes};
        k = y->next_size++ % SIZES;
        y->zeros[k].bytes = 0;
        if (decoy_zero(d) || hashing_now(d, &range, 1, y->zeros[k].hash))
            return -EIO;
        y->zeros[k].bytes = bytes;
    }
    memcpy(hash, y->zeros[k].hash, sizeof y->zeros[k].hash);
    return 0;
}

/* ---- one test ------------------------------------------------------------------------------------------------------- */

/* The words [from, to) do not matter together. */
static bool idle_together(struct search *s, uint32_t from, uint32_t to)
{
    struct trial *t = s->t;
    struct device *d = t->d;
    if (s->failed || s->runs == RUNS_MOST || !probe_time_left(d))
        return false;
    s->runs++;
    memcpy(s->args, t->args ? t->args : t->op->args, t->op->arg_bytes);
    for (uint32_t i = from; i < to; i++) {
        const struct rt_operand *w = &t->op->operands[s->w[i].operand];
        CUdeviceptr p = d->decoy->va + w->delta;
        memcpy(s->args + w->offset, &p, sizeof p);
    }
    s->failed = decoy_zero(d);
    if (!s->failed)
        s->failed = trial_again(t, s->args, POISON_FIRST);
    s->clean = !s->failed && trial_equal(t);
    return s->clean;
}

static void search(struct search *s, uint32_t from, uint32_t to, bool matters)
{
    if (from == to)
        return;
    if (!matters && idle_together(s, from, to)) {
        for (uint32_t i = from; i < to; i++)
            s->w[i].idle = true;
        return;
    }
    if (to - from == 1)
        return;
    uint32_t middle = from + (to - from) / 2;
    search(s, from, middle, false);
    bool left_idle = true;
    for (uint32_t i = from; i < middle; i++)
        left_idle &= s->w[i].idle;
    search(s, middle, to, left_idle); /* then it must be the right half */
}

/* ---- which words ---------------------------------------------------------------------------------------------------- */

static bool is_candidate(const struct trial *t, uint32_t k, uint32_t *param)
{
    const struct rt_operand *w = &t->op->operands[k];
    int i = func_param_at(t->op->func, w->offset);
    *param = (uint32_t)i;
    return i >= 0 && func_is_struct(t->op->func, (uint32_t)i) && !w->slot->points && !w->map;
}

/* Buffers of zeros look like the decoy: their words are used for all we know. */
static int doubt_zeros(struct search *s, uint32_t n)
{
    struct trial *t = s->t;
    for (uint32_t k = 0; k < t->n; k++) {
        uint64_t zeros[2] = {0};
        for (uint32_t i = 0, asked = 0; i < n; i++) {
            const struct rt_operand *w = &t->op->operands[s->w[i].operand];
            if (!s->w[i].idle || w->slot != t->u[k].slot)
                continue;
            if (!asked++ && words_zeros(t->d, w->slot->bytes, zeros))
                return -EIO;
            if (!hashing_same(t->u[k].before, zeros))
                continue;
            s->w[i].idle = false;
            log_say(SAY_DEBUG, "%s: the buffer of argument byte %u holds zeros: no test can tell whether the word is idle", t->op->func->name, w->offset);
        }
    }
    return 0;
}

static void take_out(struct search *s, uint32_t n, uint32_t *idle, uint32_t *n_idle)
{
    struct rt_op *op = s->t->op;
    uint32_t kept = 0, next = 0;
    for (uint32_t k = 0; k < op->n_operands; k++) {
        bool out = false;
        for (next = 0; next < n && !out; next++)
            out = s->w[next].operand == k && s->w[next].idle;
        if (out)
            idle[(*n_idle)++] = op->operands[k].offset;
        else
            op->operands[kept++] = op->operands[k];
    }
    op->n_operands = kept;
}

int words_try(struct trial *t, uint32_t *idle, uint32_t *n_idle)
{
    struct rt_op *op = t->op;
    struct search s = {.t = t};
    uint32_t n = 0, regular = 0, param;
    uint64_t most = 0;
    for (uint32_t k = 0; k < op->n_operands; k++)
        n += is_candidate(t, k, &param);
    if (!n || op->packed || !op->func->known)
        return 0;
    s.w = calloc(n, sizeof *s.w);
    s.args = malloc(op->arg_bytes + 16);
    int r = s.w && s.args ? 0 : -ENOMEM;
    n = 0;
    for (int pass = 0; pass < (t->planned ? 1 : 2) && !r; pass++) { /* those that were others one iteration ago first */
        regular = n;
        for (uint32_t k = 0; k < op->n_operands; k++) {
            if (!is_candidate(t, k, &param) || op->operands[k].regular != (pass == 1))
                continue;
            s.w[n++] = (struct word){.operand = k, .param = param};
            if (op->operands[k].slot->bytes > most)
                most = op->operands[k].slot->bytes;
        }
    }
    if (t->planned)
        regular = n;
    bool lists = false; /* many regular words in one struct? */
    for (uint32_t i = regular; i < n && !r; i++)
        lists |= i + FEW < n && s.w[i + FEW].param == s.w[i].param;
    if (!r && (regular || lists) && !trial_save_all(t) && !decoy_for(t->d, most)) {
        search(&s, 0, regular, false);
        for (uint32_t i = regular, j; i < n; i = j) {
            uint32_t idle_here = 0;
            for (j = i; j < n && s.w[j].param == s.w[i].param; j++)
                ;
            if (j - i <= FEW)
                continue;
            search(&s, i, j, false);
            for (uint32_t k = i; k < j; k++)
                idle_here += s.w[k].idle;
            for (uint32_t k = i; k < j && idle_here <= FEW; k++)
                s.w[k].idle = false;
        }
        r = s.failed ? s.failed : doubt_zeros(&s, n);
        if (!r && s.runs && !s.clean) { /* memory as the program's run left it */
            r = trial_again(t, NULL, POISON_FIRST);
            if (!r && !trial_equal(t))
                r = -EIO;
        }
        if (!r)
            take_out(&s, n, idle, n_idle);
    }
    free(s.w);
    free(s.args);
    return r;
}
