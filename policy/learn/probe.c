#include "policy/learn/probe.h"
#include "tracer/effects/hash_ptx.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON_FIRST = 0x3c, POISON_SECOND = 0x3d, HASHES = 4096, HASH_BLOCK = 256, HASH_GRID_MAX = 1056 };
static const uint64_t SIDE_MAX_BYTES = 64ull << 20;

struct func_effect {
    uint32_t offset;
    uint32_t launches, changes;
};

struct probe {
    CUfunction hash_func;
    CUdeviceptr hash_out;
    uint32_t n_hashes; /* that hash_out has room for */
    CUevent t0, t1;
    uint64_t begin_serial;
    bool tried, usable;
};

/* ---- device code ------------------------------------------------------------------------------------------ */

static int load_device_code(struct device *d)
{
    CUmodule m;
    if (d->drv->cuModuleLoadData(&m, hash_ptx) == CUDA_SUCCESS)
        return d->drv->cuModuleGetFunction(&d->probe->hash_func, m, "remat_hash") == CUDA_SUCCESS ? 0 : -EIO;
    /* the simulated GPU reads modules of its own kind, which lie beside it */
    Dl_info me;
    char path[4096];
    const char *slash;
    if (!d->drv->cuModuleLoad || !dladdr((void *)probe_init, &me) || !(slash = strrchr(me.dli_fname, '/')))
        return -ENOTSUP;
    int n = snprintf(path, sizeof path, "%.*s/simgpu/remat_kernels.so", (int)(slash - me.dli_fname), me.dli_fname);
    if (n < 0 || (size_t)n >= sizeof path || d->drv->cuModuleLoad(&m, path) != CUDA_SUCCESS)
        return -ENOTSUP;
    return d->drv->cuModuleGetFunction(&d->probe->hash_func, m, "remat_hash") == CUDA_SUCCESS ? 0 : -EIO;
}

int probe_init(struct device *d)
{
    if (!d->probe && !(d->probe = calloc(1, sizeof *d->probe)))
        return -ENOMEM;
    if (d->probe->tried)
        return d->probe->usable ? 0 : -ENOTSUP;
    d->probe->tried = true;
    d->probe->n_hashes = HASHES;
    while (d->probe->n_hashes > 1 && !mem_is_small(d, d->probe->n_hashes * 16))
        d->probe->n_hashes /= 2; /* pages may be small */
    if (load_device_code(d) || !(d->probe->hash_out = mem_scratch(d, d->probe->n_hashes * 16)) ||
        d->drv->cuEventCreate(&d->probe->t0, 0) != CUDA_SUCCESS || d->drv->cuEventCreate(&d->probe->t1, 0) != CUDA_SUCCESS)
        return -ENOTSUP;
    d->probe->usable = true;
    return 0;
}

static int hash_range(struct device *d, CUdeviceptr p, uint64_t bytes, CUdeviceptr out)
{
    void *params[] = {&p, &bytes, &out};
    uint64_t grid = (bytes / 8 + HASH_BLOCK - 1) / HASH_BLOCK;
    grid = grid < 1 ? 1 : grid > HASH_GRID_MAX ? HASH_GRID_MAX : grid;
    return d->drv->cuLaunchKernel(d->probe->hash_func, (unsigned)grid, 1, 1, HASH_BLOCK, 1, 1, 0, d->stream[STREAM_IN], params, NULL)
               == CUDA_SUCCESS ? 0 : -EIO;
}

/* The caller has synchronised the device; so everything here may run on a stream of our own. */
int probe_hash(struct device *d, struct slot *const *slots, uint32_t n, uint64_t *out)
{
    CUstream s = d->stream[STREAM_IN];
    for (uint32_t done = 0; done < n;) {
        uint32_t part = n - done < d->probe->n_hashes ? n - done : d->probe->n_hashes;
        if (d->drv->cuMemsetD8Async(d->probe->hash_out, 0, part * 16, s) != CUDA_SUCCESS)
            return -EIO;
        for (uint32_t i = 0; i < part; i++)
            if (hash_range(d, slots[done + i]->va, slots[done + i]->bytes, d->probe->hash_out + i * 16))
                return -EIO;
        if (d->drv->cuMemcpyDtoHAsync_v2(out + 2 * done, d->probe->hash_out, part * 16, s) != CUDA_SUCCESS ||
            d->drv->cuStreamSynchronize(s) != CUDA_SUCCESS)
            return -EIO;
        done += part;
    }
    return 0;
}

/* ---- what is known of a kernel ------------------------------------------------------------------------------ */

static struct func_effect *effect_of(struct func *f, uint32_t offset, bool make)
{
    for (uint32_t i = 0; i < f->n_effects; i++)
        if (f->effects[i].offset == offset)
            return &f->effects[i];
    if (!make)
        return NULL;
    if (f->n_effects == f->cap_effects) {
        uint32_t cap = f->cap_effects ? f->cap_effects * 2 : 8;
        struct func_effect *e = realloc(f->effects, cap * sizeof *e);
        if (!e)
            return NULL;
        f->effects = e;
        f->cap_effects = cap;
    }
    f->effects[f->n_effects] = (struct func_effect){.offset = offset};
    return &f->effects[f->n_effects++];
}

bool probe_offset_changes(const struct func *f, uint32_t offset)
{
    for (uint32_t i = 0; i < f->n_effects; i++)
        if (f->effects[i].offset == offset)
            return f->effects[i].changes > 0;
    return false;
}

/* ---- one op ------------------------------------------------------------------------------------------------- */

struct touched {
    struct slot *slot;
    uint64_t before[2], after[2];
    struct host_block *saved; /* its content before the op */
    bool fresh, changed, old, want_save, partial;
};

void probe_begin(struct device *d)
{
    d->probe->begin_serial = d->serial;
}

void probe_poison(struct device *d, struct slot *s)
{
    d->drv->cuCtxSynchronize(); /* the memory may have been another's until a moment ago */
    if (d->drv->cuMemsetD8Async(s->va, POISON_FIRST, s->bytes, d->stream[STREAM_IN]) != CUDA_SUCCESS)
        log_once(SAY_WARN, "cannot fill memory while learning");
    d->drv->cuStreamSynchronize(d->stream[STREAM_IN]);
}

static bool same(const uint64_t *a, const uint64_t *b) { return a[0] == b[0] && a[1] == b[1]; }

static int hash_all(struct device *d, struct touched *u, uint32_t n, struct slot **list, uint64_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        list[i] = u[i].slot;
    return probe_hash(d, list, n, out);
}

static int save(struct device *d, struct touched *u)
{
    u->saved = swap_host_get(d, u->slot->bytes);
    if (!u->saved)
        return -ENOMEM;
    if (swap_host_wait(d, u->saved))
        return -EIO;
    return d->drv->cuMemcpyDtoH_v2(u->saved->p, u->slot->va, u->slot->bytes) == CUDA_SUCCESS ? 0 : -EIO;
}

static int refill(struct device *d, const struct touched *u, unsigned char poison)
{
    CUstream s = d->stream[STREAM_IN];
    if (u->fresh) {
        if (d->drv->cuMemsetD8Async(u->slot->va, poison, u->slot->bytes, s) != CUDA_SUCCESS)
            return -EIO;
    } else if (d->drv->cuMemcpyHtoDAsync_v2(u->slot->va, u->saved->p, u->slot->bytes, s) != CUDA_SUCCESS)
        return -EIO;
    return d->drv->cuStreamSynchronize(s) == CUDA_SUCCESS ? 0 : -EIO;
}

/* Runs the op again from its old state, fresh outputs holding `poison`, and hashes all into `out`. */
static int again(struct device *d, const struct rt_op *op, struct touched *u, uint32_t n, unsigned char poison, struct slot **list, uint64_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        if (u[i].changed && refill(d, &u[i], poison))
            return -EIO;
    if (op_replay_drv(d, op, NULL) || d->drv->cuCtxSynchronize() != CUDA_SUCCESS)
        return -EIO;
    return hash_all(d, u, n, list, out);
}

static bool equal_to_first(const struct touched *u, uint32_t n, const uint64_t *h)
{
    for (uint32_t i = 0; i < n; i++)
        if (!same(u[i].after, h + 2 * i))
            return false;
    return true;
}

static void set_mode(struct rt_op *op, const struct slot *s, enum rec_mode m)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].slot == s)
            op->operands[i].mode = (uint8_t)m;
}

/* Do the in-place outputs influence the others? They hold what the first run left; the others are made anew. */
static int try_side(struct device *d, struct rt_op *op, struct touched *u, uint32_t n, struct slot **list, uint64_t *h)
{
    uint64_t in_place = 0;
    uint32_t others = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (u[i].changed && !u[i].fresh)
            in_place += u[i].slot->bytes;
        others += u[i].changed && u[i].fresh;
    }
    if (!in_place || !others || in_place > SIDE_MAX_BYTES)
        return 0;
    struct host_block **left = calloc(n, sizeof *left);
    int r = left ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < n && !r; i++)
        if (u[i].changed && !u[i].fresh) {
            left[i] = swap_host_get(d, u[i].slot->bytes);
            if (!left[i])
                r = -ENOMEM;
            else {
                if (swap_host_wait(d, left[i]) || d->drv->cuMemcpyDtoH_v2(left[i]->p, u[i].slot->va, u[i].slot->bytes) != CUDA_SUCCESS)
                    r = -EIO;
            }
        }
    bool side = false, ran = false;
    if (!r) {
        for (uint32_t i = 0; i < n && !r; i++)
            if (u[i].changed && u[i].fresh)
                r = refill(d, &u[i], POISON_FIRST);
        ran = !r && !op_replay_drv(d, op, NULL) && d->drv->cuCtxSynchronize() == CUDA_SUCCESS && !hash_all(d, u, n, list, h);
        side = ran;
        for (uint32_t i = 0; i < n && ran; i++)
            if (u[i].changed && u[i].fresh && !same(u[i].after, h + 2 * i))
                side = false;
        for (uint32_t i = 0; i < n; i++)
            if (left[i] && d->drv->cuMemcpyHtoD_v2(u[i].slot->va, left[i]->p, u[i].slot->bytes) != CUDA_SUCCESS)
                r = -EIO;
        if (!r && (!ran || !side))
            r = again(d, op, u, n, POISON_FIRST, list, h);
    }
    for (uint32_t i = 0; left && i < n; i++)
        swap_host_put(d, left[i]);
    free(left);
    for (uint32_t i = 0; i < n && side; i++)
        if (u[i].changed && !u[i].fresh)
            set_mode(op, u[i].slot, REC_SIDE);
    return r == -ENOMEM ? 0 : r;
}

/* After the program's run: what repeats, what is overwritten, what is changed in place. */
static const char *classify(struct device *d, struct rt_op *op, struct touched *u, uint32_t n, struct slot **list, uint64_t *h)
{
    bool all_old = true, unsaved = false;
    for (uint32_t i = 0; i < n; i++) {
        set_mode(op, u[i].slot, u[i].changed ? (u[i].fresh ? REC_WRITE : REC_RMW) : REC_READ);
        if (u[i].changed) {
            all_old &= u[i].old;
            unsaved |= !u[i].fresh && !u[i].saved;
        }
    }
    if (!op_repeatable(op))
        return op->kind == OP_KERNEL ? "cooperative launch" : "not a kernel";
    if (unsaved)
        return "changed memory that this kernel had not changed before";
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any |= u[i].changed;
    if (!any)
        return NULL;
    if (all_old)
        return "changes only what outlives the iteration";
    if (again(d, op, u, n, POISON_SECOND, list, h))
        return "failed when it ran again";
    if (!equal_to_first(u, n, h)) {
        /* Buffers that still show the poison were written in part; anything else that differs read what nobody wrote. */
        bool only_fresh = true;
        for (uint32_t i = 0; i < n; i++)
            if (!same(u[i].after, h + 2 * i)) {
                u[i].partial = u[i].changed && u[i].fresh;
                only_fresh &= u[i].partial;
            }
        /* from exactly the old state: does it repeat? */
        if (again(d, op, u, n, POISON_FIRST, list, h))
            return "failed when it ran again";
        if (!equal_to_first(u, n, h))
            return "does not repeat bit for bit";
        for (uint32_t i = 0; i < n; i++)
            if (u[i].partial || (!only_fresh && u[i].changed))
                set_mode(op, u[i].slot, REC_RMW);
        if (!only_fresh)
            return NULL;
    }
    if (try_side(d, op, u, n, list, h))
        return "failed when it ran again";
    return NULL;
}

/* Non-kernels tell what they do; only their time is measured. */
static int plain_op_drv(struct device *d, struct rt_op *op, struct probe_result *out)
{
    float ms = 0;
    d->drv->cuEventRecord(d->probe->t0, op->stream);
    int r = op_issue_drv(d, op);
    d->drv->cuEventRecord(d->probe->t1, op->stream);
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].mode != REC_READ) {
            op->operands[i].slot->written = true;
            op->operands[i].slot->watched = false;
        }
    if (r == CUDA_SUCCESS && d->drv->cuEventSynchronize(d->probe->t1) == CUDA_SUCCESS && d->drv->cuEventElapsedTime &&
        d->drv->cuEventElapsedTime(&ms, d->probe->t0, d->probe->t1) == CUDA_SUCCESS)
        out->ns = (uint64_t)(ms * 1e6 + 0.5);
    if (op->kind == OP_OTHER)
        out->why_opaque = "a call that remat does not repeat";
    else if (op->kind == OP_COPY && op->copy.kind != ENG_DTOD)
        out->why_opaque = op->copy.kind == ENG_HTOD ? "copies from host memory" : "copies to host memory";
    return r;
}

/* A kernel may have put addresses into memory for another one to follow: what they point at stays in memory. */
static void find_addresses(struct device *d, struct slot *s)
{
    enum { LOOK_MAX_BYTES = 1 << 16 };
    if (s->bytes < 8 || s->bytes > LOOK_MAX_BYTES)
        return;
    uint64_t *words = malloc(s->bytes);
    if (words && d->drv->cuMemcpyDtoH_v2(words, s->va, s->bytes) == CUDA_SUCCESS)
        for (size_t i = 0; i < s->bytes / 8; i++) {
            struct slot *to = mem_in_reservation(d, words[i]) ? mem_lookup(d, words[i]) : NULL;
            if (!to || words[i] % 4)
                continue;
            s->points = true;
            to->pins += !to->pins;
        }
    free(words);
}

int probe_op_drv(struct device *d, struct rt_op *op, int32_t nth, struct probe_result *out)
{
    *out = (struct probe_result){.unannounced = -1};
    d->drv->cuCtxSynchronize();
    if (op->kind != OP_KERNEL)
        return plain_op_drv(d, op, out);
    uint32_t n = 0;
    struct touched *u = calloc(op->n_operands + 1, sizeof *u);
    struct slot **list = calloc(op->n_operands + 1, sizeof *list);
    uint64_t *h = calloc(op->n_operands + 1, 2 * sizeof *h);
    int r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!u || !list || !h)
        goto out;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct slot *s = op->operands[i].slot;
        uint32_t k = 0, places = 0;
        while (k < n && u[k].slot != s)
            k++;
        if (k == n)
            u[n++] = (struct touched){.slot = s, .fresh = !s->written && s->serial > d->probe->begin_serial,
                                      .old = s->serial <= d->probe->begin_serial};
        for (uint32_t j = 0; j < op->n_operands; j++)
            places += op->operands[j].slot == s;
        struct func_effect *e = effect_of(op->func, op->operands[i].offset, true);
        u[k].want_save |= !e || !e->launches || e->changes || places > 1;
    }
    if (hash_all(d, u, n, list, h)) {
        r = CUDA_ERROR_LAUNCH_FAILED;
        goto out;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct slot *s = u[i].slot;
        memcpy(u[i].before, h + 2 * i, sizeof u[i].before);
        if (s->watched && !same(s->hash, u[i].before)) {
            s->pins++; /* something writes it behind our back: it stays where it is */
            if (out->unannounced < 0 || s->watched_at < out->unannounced)
                out->unannounced = s->watched_at;
        }
        if (!u[i].fresh && u[i].want_save && save(d, &u[i])) {
            swap_host_put(d, u[i].saved);
            u[i].saved = NULL;
        }
    }
    float ms = 0;
    d->drv->cuEventRecord(d->probe->t0, op->stream);
    r = op_issue_drv(d, op);
    d->drv->cuEventRecord(d->probe->t1, op->stream);
    if (r != CUDA_SUCCESS)
        goto out;
    if (d->drv->cuCtxSynchronize() != CUDA_SUCCESS)
        goto out; /* the program will see the error at its own next call */
    if (d->drv->cuEventElapsedTime && d->drv->cuEventElapsedTime(&ms, d->probe->t0, d->probe->t1) == CUDA_SUCCESS)
        out->ns = (uint64_t)(ms * 1e6 + 0.5);
    if (hash_all(d, u, n, list, h))
        goto out;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(u[i].after, h + 2 * i, sizeof u[i].after);
        u[i].changed = !same(u[i].before, u[i].after);
    }
    for (uint32_t i = 0; i < op->n_operands; i++) {
        uint32_t places = 0, k = 0;
        for (uint32_t j = 0; j < op->n_operands; j++)
            places += op->operands[j].slot == op->operands[i].slot;
        while (u[k].slot != op->operands[i].slot)
            k++;
        struct func_effect *e = effect_of(op->func, op->operands[i].offset, true);
        if (e && places == 1) { /* else it is not known through which pointer */
            e->launches++;
            e->changes += u[k].changed;
        }
    }
    out->why_opaque = classify(d, op, u, n, list, h);
    if (out->why_opaque && !hash_all(d, u, n, list, h)) /* a repeat may have left other content, just as right */
        for (uint32_t i = 0; i < n; i++)
            memcpy(u[i].after, h + 2 * i, sizeof u[i].after);
    for (uint32_t i = 0; i < n; i++) {
        struct slot *s = u[i].slot;
        s->written |= u[i].changed;
        if (u[i].changed)
            find_addresses(d, s);
        s->watched = true;
        s->watched_at = nth;
        memcpy(s->hash, u[i].after, sizeof s->hash);
    }
out:
    for (uint32_t i = 0; i < n; i++)
        swap_host_put(d, u[i].saved);
    free(u);
    free(list);
    free(h);
    return r;
}

int32_t probe_census(struct device *d)
{
    d->drv->cuCtxSynchronize();
    int32_t found = -1;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct slot *s = &d->slots[i];
        uint64_t h[2];
        if (!s->live || !s->watched || (s->kind == SLOT_LARGE && s->state != SLOT_RESIDENT))
            continue;
        if (!probe_hash(d, &s, 1, h) && !same(h, s->hash)) {
            s->pins++;
            if (found < 0 || s->watched_at < found)
                found = s->watched_at;
        }
        s->watched = false;
    }
    return found;
}
