/* Ops: built from the program's calls, issued, captured, issued again.
 *
 * Every aligned word of a kernel's arguments that points into memory known to remat is an operand. The scan costs one
 * subtraction and one comparison a word. */
#include "policy/op/op.h"
#include "policy/memory/foreign.h"
#include "policy/memory/in_place.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/op/tensor_map.h"
#include "policy/op/texture.h"
#include "policy/process/capture_mode.h"
#include "policy/process/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct op_scratch {
    unsigned char args[OP_MAX_ARG_BYTES] __attribute__((aligned(16))); /* arguments of the op at hand */
    struct rt_operand operands[OP_MAX_OPERANDS];
    void *params[OP_MAX_PARAMS]; /* parameter pointers of the launch that is being issued */
};

int op_init(struct device *d)
{
    if (!d->op_scratch)
        d->op_scratch = aligned_alloc(_Alignof(struct op_scratch), sizeof *d->op_scratch);
    return d->op_scratch ? 0 : -ENOMEM;
}

static inline uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdull;
    return h ^ (h >> 32);
}

static struct slot *any_lookup(struct device *d, CUdeviceptr p) { return mem_in_reservation(d, p) ? slot_lookup(d, p) : foreign_lookup(d, p); }

/* False: the op has no room for another operand. */
static bool put_operand(struct rt_op *op, struct slot *s, CUdeviceptr p, uint32_t offset, enum rec_mode mode)
{
    if (op->n_operands == OP_MAX_OPERANDS)
        return false;
    op->operands[op->n_operands++] =
        (struct rt_operand){.slot = s, .delta = p - s->va, .serial = s->serial, .offset = offset, .mode = (uint8_t)mode};
    return true;
}

static void add_operand(struct device *d, struct rt_op *op, CUdeviceptr p, uint32_t offset, enum rec_mode mode)
{
    struct slot *s = any_lookup(d, p);
    if (s)
        put_operand(op, s, p, offset, mode);
}

static void op_start(struct device *d, struct rt_op *op, enum op_kind kind, CUstream stream)
{
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->stream = stream;
    op->t = stream_index(d, stream);
    op->operands = d->op_scratch->operands;
    op->sig = mix(0x72656d6174ull, kind);
}

static int read_arguments(struct device *d, const struct eng_kernel *k, struct rt_op *op)
{
    const struct func *fn = op->func;
    op->args = d->op_scratch->args;
    if (k->params && k->extra)
        return -EINVAL;
    if (k->extra) {
        const void *buf = NULL;
        size_t n = 0;
        for (void **e = k->extra; *e != CU_LAUNCH_PARAM_END; e += 2) {
            if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER)
                buf = e[1];
            else if (*e == CU_LAUNCH_PARAM_BUFFER_SIZE && e[1])
                n = *(const size_t *)e[1];
            else
                return -EINVAL;
        }
        if (n > OP_MAX_ARG_BYTES || (n && !buf))
            return -ENOTSUP;
        if (n)
            memcpy(op->args, buf, n);
        if (n < fn->arg_bytes)
            memset(op->args + n, 0, fn->arg_bytes - n);
        op->arg_bytes = (uint32_t)n;
        op->packed = true;
        op->sig = mix(op->sig, n);
        return 0;
    }
    if (!fn->known)
        return -ENOTSUP;
    for (uint32_t i = 0; i < fn->n_params; i++)
        if (!k->params || !k->params[i])
            return -EINVAL;
    op->arg_bytes = fn->arg_bytes;
    for (uint32_t i = 0; i < fn->n_params; i++)
        memcpy(op->args + fn->offset[i], k->params[i], fn->size[i]);
    return 0;
}

/* A known tensor map at `at` in the arguments becomes an operand. False: there is no known map. */
static bool add_map(struct device *d, struct rt_op *op, uint32_t at)
{
    uint64_t shape;
    CUdeviceptr p = tensor_map_at(op->args + at, &shape);
    uint32_t before = op->n_operands;
    if (p)
        add_operand(d, op, p, at, REC_UNKNOWN);
    if (op->n_operands > before)
        op->operands[before].map = shape;
    return p != 0;
}

static void scan_words(struct device *d, struct rt_op *op, uint32_t from, uint32_t to)
{
    bool maps = to - from >= TENSOR_MAP_BYTES && tensor_map_any();
    for (uint32_t at = (from + 7) & ~7u; at + 8 <= to; at += 8) {
        if (maps && at + TENSOR_MAP_BYTES <= to && add_map(d, op, at)) {
            at += TENSOR_MAP_BYTES - 8;
            continue;
        }
        uint64_t word;
        memcpy(&word, op->args + at, 8);
        if (word >= 4096)
            add_operand(d, op, word, at, REC_UNKNOWN);
        op->in_place = op->in_place || ranges_hold(&in_place, word);
    }
}

/* True if these bytes hold the handle of a texture; a packed struct may align it to four bytes only. */
static bool has_texture(const struct rt_op *op, uint32_t from, uint32_t to)
{
    bool has = false;
    for (uint32_t at = (from + 3) & ~3u; at + 8 <= to && !has; at += 4) {
        uint64_t word;
        memcpy(&word, op->args + at, 8);
        has = texture_is(word);
    }
    return has;
}

/* Packed structs may align addresses to four bytes only. A struct whose size is a multiple of eight is taken to be
 * not packed: leftovers of the stack in it would look like addresses as well. */
static bool has_odd_address(struct device *d, const struct rt_op *op, uint32_t from, uint32_t to)
{
    for (uint32_t at = op_odd_word(from); op_may_be_packed(from, to) && at + 8 <= to; at += 8) {
        uint64_t word;
        memcpy(&word, op->args + at, 8);
        if (word >= 4096 && any_lookup(d, word))
            return true;
    }
    return false;
}

int op_from_kernel(struct device *d, const struct eng_kernel *k, struct rt_op *op)
{
    if (!k->func)
        return -EINVAL;
    op_start(d, op, OP_KERNEL, k->stream);
    op->func = func_of(d, k->func);
    if (!op->func)
        return -ENOMEM;
    int r = read_arguments(d, k, op);
    if (r)
        return r;
    for (int i = 0; i < 3; i++) {
        op->grid[i] = k->grid[i];
        op->block[i] = k->block[i];
        op->sig = mix(op->sig, (uint64_t)k->grid[i] << 32 | k->block[i]);
    }
    op->shared_bytes = k->shared_bytes;
    op->sig = mix(mix(op->sig, k->shared_bytes), (uintptr_t)op->func);
    op->attrs = k->attrs;
    op->n_attrs = k->n_attrs;
    op->cooperative = k->cooperative;
    for (unsigned i = 0; i < k->n_attrs; i++) {
        const CUlaunchAttributeValue *v = &k->attrs[i].value;
        if (k->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && v->cooperative)
            op->cooperative = true;
        if (k->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) /* the kernel may ask for its cluster's size, and do other work */
            op->sig = mix(mix(op->sig, (uint64_t)v->clusterDim.x << 32 | v->clusterDim.y), v->clusterDim.z);
    }
    op->sig = op->cooperative ? mix(op->sig, CU_LAUNCH_ATTRIBUTE_COOPERATIVE) : op->sig;
    if (!op->func->known)
        scan_words(d, op, 0, op->arg_bytes);
    /* two small parameters side by side are no pointer */
    for (uint32_t i = 0; op->func->known && i < op->func->n_params; i++)
        if (op->func->size[i] >= 8) {
            const uint32_t from = op->func->offset[i], to = from + op->func->size[i];
            scan_words(d, op, from, to);
            op->odd = op->odd || has_odd_address(d, op, from, to);
        }
    op->textures = texture_by_any();
    for (uint32_t i = 0, to; i < op_pieces(op) && texture_any() && !op->textures; i++) {
        const uint32_t from = op_piece(op, i, &to);
        op->textures = has_texture(op, from, to);
    }
    op->sig = op->textures ? mix(op->sig, 1) : op->sig; /* a launch with textures is another op than a recorded one without */
    return 0;
}

void op_from_memset(struct device *d, const struct eng_memset *m, struct rt_op *op)
{
    op_start(d, op, OP_MEMSET, m->stream);
    op->set = *m;
    op->sig = mix(mix(mix(mix(op->sig, m->elem_bytes), m->width), m->height), m->pitch_bytes);
    add_operand(d, op, m->dst, OPERAND_DST, REC_RMW);
    if (op->n_operands) {
        struct rt_operand *o = &op->operands[0];
        uint64_t n = m->width * m->elem_bytes;
        if (o->delta == 0 && (m->height == 1 || m->pitch_bytes == n) && n * m->height >= o->slot->bytes)
            o->mode = REC_WRITE;
    }
}

void op_from_copy(struct device *d, const struct eng_copy *c, struct rt_op *op)
{
    op_start(d, op, OP_COPY, c->stream);
    op->copy = *c;
    op->sig = mix(mix(op->sig, c->kind), c->bytes);
    if (c->kind != ENG_DTOH)
        add_operand(d, op, c->dst_dev, OPERAND_DST, REC_RMW);
    if (op->n_operands && op->operands[0].delta == 0 && c->bytes >= op->operands[0].slot->bytes)
        op->operands[0].mode = REC_WRITE;
    if (c->kind != ENG_HTOD)
        add_operand(d, op, c->src_dev, OPERAND_SRC, REC_READ);
}

bool op_from_other(struct device *d, const char *name, CUstream stream, struct eng_touch *touch, unsigned n, int (*issue)(void *), void *ctx,
                   struct rt_op *op)
{
    op_start(d, op, OP_OTHER, stream);
    op->other_name = name;
    op->other_issue = issue;
    op->other_ctx = ctx;
    for (const char *c = name; *c; c++)
        op->sig = mix(op->sig, (unsigned char)*c);
    const uint64_t walk = ++d->mem.walk;
    for (unsigned i = 0; i < n; i++)
        if (touch[i].mode & ENG_EARLY) {
            op->early = touch;
            op->n_early = n;
        }
    for (unsigned i = 0; i < n; i++) {
        struct slot *s = any_lookup(d, touch[i].ptr);
        const enum rec_mode mode = touch[i].mode & ENG_WRITE ? REC_RMW : REC_READ;
        op->waits |= touch[i].mode & ENG_WAITS;
        if (!s)
            continue;
        uint32_t k = s->visited_in == walk ? 0 : op->n_operands; /* all touches of one allocation share one operand */
        while (k < op->n_operands && op->operands[k].slot != s)
            k++;
        if (k == op->n_operands && !put_operand(op, s, touch[i].ptr, i * 8, mode))
            return false;
        if (mode == REC_RMW)
            op->operands[k].mode = REC_RMW;
        s->visited_in = walk;
    }
    return true;
}

const char *op_name(const struct rt_op *op)
{
    switch (op->kind) {
    case OP_KERNEL:
        return op->func->name;
    case OP_MEMSET:
        return "memset";
    case OP_COPY:
        return op->copy.kind == ENG_HTOD ? "copy_htod" : op->copy.kind == ENG_DTOH ? "copy_dtoh" : "copy_dtod";
    default:
        return op->other_name;
    }
}

bool op_repeatable(const struct rt_op *op)
{
    return (op->kind == OP_KERNEL && !op->cooperative && !op->textures) || op->kind == OP_MEMSET ||
           (op->kind == OP_COPY && op->copy.kind == ENG_DTOD);
}

static inline int launch_plainly(const struct drv *drv, const struct eng_kernel *k, void **params, void **extra)
{
    return drv->cuLaunchKernel(k->func, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2], k->shared_bytes,
                               k->stream, params, extra);
}

/* What a launch is for. By programmatic dependent launch a kernel may begin before the kernel in front of it has ended, and wait inside for
 * that kernel's output. Where remat has put work of its own in front of a kernel, the kernel must wait for that work. Events that the program
 * attaches to a launch (programmatic, launch completion) are not a replay's to record. */
enum meant { AS_GIVEN, AFTER_OURS, A_REPLAY };

static bool is_left_out(CUlaunchAttributeID id, enum meant meant)
{
    return (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && meant != AS_GIVEN) ||
           ((id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) && meant == A_REPLAY);
}

/* One launch call: cuLaunchKernel where it can say all, otherwise cuLaunchKernelEx. */
static int launch_with(const struct drv *drv, const struct eng_kernel *k, enum meant meant, void **params, void **extra)
{
    CUlaunchAttribute attrs[OP_MAX_ATTRS + 1];
    unsigned n = 0;
    bool coop = false;
    if (!k->n_attrs && !k->cooperative)
        return launch_plainly(drv, k, params, extra);
    for (unsigned i = 0; i < k->n_attrs && n < OP_MAX_ATTRS; i++) {
        CUlaunchAttributeID id = k->attrs[i].id;
        if (is_left_out(id, meant))
            continue;
        coop |= id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attrs[n++] = k->attrs[i];
    }
    if (k->cooperative && !coop) {
        memset(&attrs[n], 0, sizeof attrs[n]);
        attrs[n].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attrs[n++].value.cooperative = 1;
    }
    if (!n || !drv->cuLaunchKernelEx)
        return launch_plainly(drv, k, params, extra);
    CUlaunchConfig cfg;
    memset(&cfg, 0, sizeof cfg);
    cfg.gridDimX = k->grid[0];
    cfg.gridDimY = k->grid[1];
    cfg.gridDimZ = k->grid[2];
    cfg.blockDimX = k->block[0];
    cfg.blockDimY = k->block[1];
    cfg.blockDimZ = k->block[2];
    cfg.sharedMemBytes = k->shared_bytes;
    cfg.hStream = k->stream;
    cfg.attrs = attrs;
    cfg.numAttrs = n;
    return drv->cuLaunchKernelEx(&cfg, k->func, params, extra);
}

int op_pass_drv(const struct drv *drv, const struct eng_kernel *k) { return launch_with(drv, k, AS_GIVEN, k->params, k->extra); }

static int launch_drv(struct device *d, const struct rt_op *op, unsigned char *args, bool replay)
{
    void **params = d->op_scratch->params;
    size_t packed_bytes = op->arg_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, args, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_bytes, CU_LAUNCH_PARAM_END};
    struct eng_kernel k = {.func = op->func->handle, .shared_bytes = op->shared_bytes, .stream = op->stream,
                           .attrs = op->attrs, .n_attrs = op->n_attrs, .cooperative = op->cooperative};
    memcpy(k.grid, op->grid, sizeof k.grid);
    memcpy(k.block, op->block, sizeof k.block);
    for (uint32_t i = 0; i < op->func->n_params && !op->packed; i++)
        params[i] = args + op->func->offset[i];
    /* remat has work of its own in the stream where memory has been short, or an iteration is measured or followed */
    const enum meant meant = replay ? A_REPLAY : d->mem.pressed || d->mode != MODE_OBSERVE ? AFTER_OURS : AS_GIVEN;
    return launch_with(d->drv, &k, meant, op->packed ? NULL : params, op->packed ? extra : NULL);
}

int op_pass_memset_drv(const struct drv *drv, const struct eng_memset *m)
{
    int r;
    if (m->height == 1 && !m->pitch_bytes)
        r = m->elem_bytes == 1   ? drv->cuMemsetD8Async(m->dst, (unsigned char)m->value, m->width, m->stream)
            : m->elem_bytes == 2 ? drv->cuMemsetD16Async(m->dst, (unsigned short)m->value, m->width, m->stream)
                                 : drv->cuMemsetD32Async(m->dst, m->value, m->width, m->stream);
    else
        r = m->elem_bytes == 1   ? drv->cuMemsetD2D8Async(m->dst, m->pitch_bytes, (unsigned char)m->value, m->width, m->height, m->stream)
            : m->elem_bytes == 2 ? drv->cuMemsetD2D16Async(m->dst, m->pitch_bytes, (unsigned short)m->value, m->width, m->height, m->stream)
                                 : drv->cuMemsetD2D32Async(m->dst, m->pitch_bytes, m->value, m->width, m->height, m->stream);
    return r;
}

/* The per-thread variants of synchronous copies have no entry of their own in `drv`: the stream says which is meant. */
int op_pass_copy_drv(const struct drv *drv, const struct eng_copy *c)
{
    bool plain = c->sync && c->stream == CU_STREAM_LEGACY;
    int r;
    switch (c->kind) {
    case ENG_HTOD:
        r = plain ? drv->cuMemcpyHtoD_v2(c->dst_dev, c->src_host, c->bytes)
                  : drv->cuMemcpyHtoDAsync_v2(c->dst_dev, c->src_host, c->bytes, c->stream);
        break;
    case ENG_DTOH:
        r = plain ? drv->cuMemcpyDtoH_v2(c->dst_host, c->src_dev, c->bytes)
                  : drv->cuMemcpyDtoHAsync_v2(c->dst_host, c->src_dev, c->bytes, c->stream);
        break;
    default:
        r = plain ? drv->cuMemcpyDtoD_v2(c->dst_dev, c->src_dev, c->bytes)
                  : drv->cuMemcpyDtoDAsync_v2(c->dst_dev, c->src_dev, c->bytes, c->stream);
        return r;
    }
    return r == CUDA_SUCCESS && c->sync && !plain ? (int)drv->cuStreamSynchronize(c->stream) : r;
}

/* The driver may load a kernel when it is first launched, which takes device memory. Where no memory is left the launch has had no
 * effect: memory of remat's goes back to the driver, ever more of it, and the launch is made again. */
static int launch_again_drv(struct device *d, const struct rt_op *op, unsigned char *args, bool replay)
{
    int r = CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t all = 0, number = ++d->mem.op_at_hand;
    for (uint32_t i = 0; i < op->n_operands; i++)
        op->operands[i].slot->needed_by = number;
    for (uint64_t bytes = d->mem.gran, given; r == CUDA_ERROR_OUT_OF_MEMORY && (given = room_give_driver(d, bytes)); bytes *= 2) {
        all += given;
        r = launch_drv(d, op, args, replay);
    }
    log_once(SAY_INFO, "the driver had no memory to launch %s: %s went back to it%s", op->func->name, rt_size(all).text,
             r ? ", which was not enough" : "");
    return r;
}

/* Programs allow a kernel just the dynamic shared memory that its next launch takes: a replayed launch may have had more. The driver then refuses
 * the replay, which has had no effect; it is made again with as much allowed for one call. */
static int replay_kernel_drv(struct device *d, const struct rt_op *op, unsigned char *args)
{
    int most;
    const int r = launch_drv(d, op, args, true), bytes = (int)op->shared_bytes;
    if (r != CUDA_ERROR_INVALID_VALUE || !bytes || func_shared_most_drv(d, op->func, &most) != CUDA_SUCCESS || most >= bytes ||
        func_set_shared_most_drv(d, op->func, bytes) != CUDA_SUCCESS)
        return r;
    const int again = launch_drv(d, op, args, true);
    (void)func_set_shared_most_drv(d, op->func, most);
    return again;
}

/* Issues the memset on op->stream: the program's own stream for its own call, perhaps another one for a replay. */
static int memset_drv(struct device *d, const struct rt_op *op)
{
    struct eng_memset m = op->set;
    m.stream = op->stream;
    return op_pass_memset_drv(d->drv, &m);
}

/* Issues the copy on op->stream. A replay of a synchronous copy does not wait for it. */
static int copy_drv(struct device *d, const struct rt_op *op, bool replay)
{
    struct eng_copy c = op->copy;
    c.stream = op->stream;
    c.sync &= !replay;
    return op_pass_copy_drv(d->drv, &c);
}

/* Memory that the call may read out of stream order, and whose content is still on its way in a stream (a copy from the host, a replay), is read in order. */
static void read_in_order(struct device *d, const struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_early; i++) {
        const struct slot *s = op->early[i].mode & ENG_EARLY ? any_lookup(d, op->early[i].ptr) : NULL;
        op->early[i].mode &= ~(unsigned)ENG_IN_ORDER;
        if (s && !fence_empty(&s->ready) && (d->capturing || !fence_has_passed(d, &s->ready)))
            op->early[i].mode |= ENG_IN_ORDER;
    }
}

/* The program may believe such memory to be read already, and have another stream write to it: writers are ordered behind this call. */
static void note_read_in_order(struct device *d, const struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_early; i++) {
        struct slot *s = op->early[i].mode & ENG_IN_ORDER ? any_lookup(d, op->early[i].ptr) : NULL;
        if (s)
            fence_add(d, &s->unseen, op->t);
    }
}

static int issue_drv(struct device *d, const struct rt_op *op, unsigned char *args, bool replay)
{
    int r;
    bool ours, stands;
    uint64_t began = stats_driver_begins(d);
    switch (op->kind) {
    case OP_KERNEL:
        r = replay ? replay_kernel_drv(d, op, args) : launch_drv(d, op, args, false);
        if (r == CUDA_ERROR_OUT_OF_MEMORY)
            r = launch_again_drv(d, op, args, replay);
        break;
    case OP_MEMSET:
        r = memset_drv(d, op);
        break;
    case OP_COPY:
        ours = !replay && capture_mode_call_begins(d->drv);
        r = copy_drv(d, op, replay);
        capture_mode_call_ended(d->drv, ours);
        break;
    default:
        stands = op->waits && stream_may_wait(d, op->t);
        read_in_order(d, op);
        ours = capture_mode_call_begins(d->drv);
        r = op->other_issue(op->other_ctx);
        capture_mode_call_ended(d->drv, ours);
        if (stands)
            stream_may_stand(d, op->t);
        break;
    }
    stats_driver_ended(d, began);
    stream_issued(d, op->t);
    if (op->n_early)
        note_read_in_order(d, op);
    return r;
}

int op_issue_given_drv(struct device *d, const struct eng_kernel *k, unsigned t)
{
    uint64_t began = stats_driver_begins(d);
    int r = launch_plainly(d->drv, k, k->params, k->extra);
    stats_driver_ended(d, began);
    stream_issued(d, t);
    return r;
}

int op_issue_drv(struct device *d, const struct rt_op *op) { return issue_drv(d, op, op->args, false); }
int op_replay_drv(struct device *d, const struct rt_op *op, unsigned char *args) { return issue_drv(d, op, args ? args : op->args, true); }

int op_fill_elsewhere_drv(struct device *d, const struct rt_op *op, CUdeviceptr was, CUdeviceptr now, unsigned t)
{
    struct rt_op fill = *op;
    fill.set.dst = now + (op->set.dst - was);
    fill.t = t;
    fill.stream = d->stream[t];
    return op_replay_drv(d, &fill, NULL);
}

/* Room for n things of `size` bytes in *p, whose content need not be kept. False: no memory, and *p is as it was. */
static bool room_for(void **p, size_t n, size_t size)
{
    void *q = realloc(*p, n * size);
    if (q)
        *p = q;
    return q != NULL;
}

int op_capture(struct rt_op *dst, const struct rt_op *op)
{
    void *args = dst->args, *attrs = (void *)dst->attrs, *operands = dst->operands;
    bool ok = ((op->arg_bytes <= dst->arg_bytes && args) || room_for(&args, op->arg_bytes + 16, 1)) &&
              (op->n_attrs <= dst->n_attrs || room_for(&attrs, op->n_attrs, sizeof *op->attrs)) &&
              (op->n_operands <= dst->n_operands || room_for(&operands, op->n_operands, sizeof *op->operands));
    if (ok)
        *dst = *op;
    dst->args = args;
    dst->attrs = attrs;
    dst->operands = operands;
    if (!ok)
        return -ENOMEM;
    if (op->arg_bytes)
        memcpy(args, op->args, op->arg_bytes);
    if (op->n_attrs)
        memcpy(attrs, op->attrs, op->n_attrs * sizeof *op->attrs);
    if (op->n_operands)
        memcpy(operands, op->operands, op->n_operands * sizeof *op->operands);
    return 0;
}

void op_capture_free(struct rt_op *op)
{
    free(op->args);
    free((void *)op->attrs);
    free(op->operands);
    memset(op, 0, sizeof *op);
}
