/* op.h: one piece of device work as the engine handles it, and how it is issued (again).
 *
 * Threads: under the engine's mutex. Errors: op_issue_drv returns the driver's code.
 */
#ifndef REMAT_POLICY_OP_H
#define REMAT_POLICY_OP_H

#include "policy/call.h"
#include "policy/device.h"
#include "policy/op/func.h"
#include "tracer/record.h"

enum op_kind { OP_KERNEL, OP_MEMSET, OP_COPY, OP_OTHER };

enum {
    OP_MAX_OPERANDS = OP_MAX_ARG_BYTES / 8,
    OP_MAX_ATTRS = 32,
    OPERAND_DST = 0, /* offsets of memset and copy operands */
    OPERAND_SRC = 8
};

struct rt_operand {
    struct slot *slot;
    uint64_t delta;  /* bytes from the slot's start */
    uint64_t serial; /* the slot's serial when the op was issued */
    uint32_t offset; /* bytes from the arguments' begin to the word, or the tensor map */
    uint8_t mode;    /* enum rec_mode; REC_UNKNOWN for kernels */
    uint64_t map;    /* shape of the tensor map that the argument is (tensor_map.h); 0: the argument is an address */
    int32_t buf;     /* buffer of the plan's record; valid in launches that steady.c knows */
    bool moved_on;   /* while recording: last iteration's buffer here was another one, allocated one period earlier */
    bool remains;    /* while recording: last iteration's buffer here was this one */
    bool regular;    /* the word pointed at the same buffer in the iterations before, or in the recorded one */
    bool recurs;     /* while recording: a later list of the iteration before had the same buffer in the same word, or may have had */
    bool unasked;    /* while recording: a list's entry that has been shown neither to be in use nor to be idle */
    bool idle;       /* the recorded launch does not use this pointer; while recording: nor does this launch, and yet the pointer stays an operand */
};

struct rt_op {
    enum op_kind kind;
    uint64_t sig; /* hash of kernel, grid, block, shared bytes, clusters, whether cooperative (other kinds: of a copy's size, a call's name); no pointer, no scalar */
    unsigned t;   /* stream index */
    CUstream stream;
    struct func *func;
    unsigned grid[3], block[3], shared_bytes, n_attrs;
    const CUlaunchAttribute *attrs;
    bool cooperative, packed; /* packed: the layout is unknown, arguments go as one buffer */
    bool in_place; /* a word of the arguments may point into memory that the host writes (memory/in_place.h) */
    bool odd;      /* an address lies across two words of the arguments, in a packed struct: no operand; its buffer stays in memory (reach.c) */
    bool textures; /* the launch may use a texture or a surface, which is no operand (texture.h) */
    bool waits;    /* the stream may stand still here until the host has made a later call (ENG_WAITS) */
    unsigned char *args;
    struct rt_operand *operands;
    uint32_t n_operands, arg_bytes;
    struct eng_memset set;
    struct eng_copy copy;
    const char *other_name;
    int (*other_issue)(void *);
    void *other_ctx;
    struct eng_touch *early; /* the call's touches, if it may read some out of stream order (ENG_EARLY); NULL: none */
    uint32_t n_early;
};

/* Allocates the device's memory for the op at hand, which the device keeps for good. 0 or -ENOMEM. */
int op_init(struct device *d);

/* A launch's arguments in pieces, none of whose words reaches into the next: its parameters, or one piece where the layout is
 * unknown. op_piece() gives where piece i begins, and in *to where it ends. */
static inline uint32_t op_pieces(const struct rt_op *op) { return op->func->known ? op->func->n_params : 1; }
static inline uint32_t op_piece(const struct rt_op *op, uint32_t i, uint32_t *to)
{
    uint32_t from = op->func->known ? op->func->offset[i] : 0, end = op->func->known ? from + op->func->size[i] : op->arg_bytes;
    *to = end < op->arg_bytes ? end : op->arg_bytes;
    return from;
}

/* The piece [from, to) may be a packed struct, whose addresses are aligned to four bytes only. */
static inline bool op_may_be_packed(uint32_t from, uint32_t to) { return (to - from) % 8 != 0; }
/* The first place from `from` on that is aligned to four bytes and not to eight. */
static inline uint32_t op_odd_word(uint32_t from) { return ((from + 3) & ~7u) + 4; }

/* The operand in the argument word at `offset`; NULL: none. */
static inline const struct rt_operand *op_operand_at(const struct rt_op *op, uint32_t offset)
{
    uint32_t a = 0, b = op->n_operands;
    while (a < b) {
        const uint32_t m = (a + b) / 2;
        if (op->operands[m].offset < offset)
            a = m + 1;
        else
            b = m;
    }
    return a < op->n_operands && op->operands[a].offset == offset ? &op->operands[a] : NULL;
}

/* Fills `op` from the program's call; arguments and operands lie in buffers of op.c's own, valid until the next build.
 * -ENOTSUP: the parameters cannot be read; -EINVAL: there are none, or they are given in a way
 * that the driver refuses. */
int op_from_kernel(struct device *d, const struct eng_kernel *k, struct rt_op *op);
void op_from_memset(struct device *d, const struct eng_memset *m, struct rt_op *op);
void op_from_copy(struct device *d, const struct eng_copy *c, struct rt_op *op);
/* False: the call touches more allocations than an op can have operands; all live memory has to stay then. */
bool op_from_other(struct device *d, const char *name, CUstream stream, struct eng_touch *touch, unsigned n, int (*issue)(void *), void *ctx,
                   struct rt_op *op);

int op_issue_drv(struct device *d, const struct rt_op *op);
/* A launch just as the program gave it, on the stream of index t; it has no attributes and is not cooperative. */
int op_issue_given_drv(struct device *d, const struct eng_kernel *k, unsigned t);
/* The program's launch, as it came. */
int op_pass_drv(const struct drv *drv, const struct eng_kernel *k);
int op_pass_memset_drv(const struct drv *drv, const struct eng_memset *m);
int op_pass_copy_drv(const struct drv *drv, const struct eng_copy *c);
/* Issues the op as a replay: without programmatic dependent launch, with `args` in place of op->args (NULL: with these). */
int op_replay_drv(struct device *d, const struct rt_op *op, unsigned char *args);

/* The kernel's name, or a name for an op of another kind. */
const char *op_name(const struct rt_op *op);
/* A copy to the host changes nothing on the device: it may come in one iteration and not in the next (a loss that is printed now and then). */
static inline bool op_reads_for_host(const struct rt_op *op) { return op->kind == OP_COPY && op->copy.kind == ENG_DTOH; }
/* The op is a memset of a part of the operand's buffer. */
static inline bool op_fills_part(const struct rt_op *op, const struct rt_operand *w) { return op->kind == OP_MEMSET && w->mode == REC_RMW; }
/* Repeats the memset `op`, which filled a part of the buffer at `was`, in the buffer at `now`: as a replay, on the stream of index t. */
int op_fill_elsewhere_drv(struct device *d, const struct rt_op *op, CUdeviceptr was, CUdeviceptr now, unsigned t);
/* The op may run again with the same arguments (kernels, memsets, device copies; not cooperative launches, nor ones that may use textures). */
bool op_repeatable(const struct rt_op *op);
/* A copy of op with memory of its own; `dst` may hold an earlier capture, whose memory is reused. 0 or -ENOMEM. */
int op_capture(struct rt_op *dst, const struct rt_op *op);
void op_capture_free(struct rt_op *op);

#endif
