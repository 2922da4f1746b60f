/*
 * The argument struct of multi_tensor_apply_kernel, which one launch spreads over many tensors: for each block the tensor
 * and the chunk of 65,536 elements that it works on. Lists come in depths (inputs, outputs); entries behind the used ones
 * are uninitialised.
 *   { void *addr[depth][max]; i64 numel[max]; [scalar[max]]; [float *step[max]]; u16 block_tensor[2240]; i32 block_chunk[2240];
 *     i32 first_tensor }
 */
#ifndef SIMCUDA_MTA_H
#define SIMCUDA_MTA_H

#include "tests/simcuda/kernels/kern.h"

#define MTA_CHUNK 65536
#define MTA_MAX_DEPTH 5

enum mta_kind { MTA_LIST, MTA_SCALAR_LIST, MTA_FUSED };

struct mta_layout {
    enum mta_kind kind;
    int depth, max;
    int blocks;                /* of one launch at most */
    int index_bytes;           /* a block's tensor: 2, or 1 in older versions, whose parameters had 4 KiB */
    enum dtype scalar_t;       /* of a scalar list */
};

/* One block's share. */
struct mta_chunk {
    int tensor;
    int64_t chunk, n;          /* which chunk of the tensor, elements in it */
    char *addr[MTA_MAX_DEPTH]; /* where the chunk begins in each list; element sizes as given */
};

/* From the kernel's first template argument; -ENOSYS, -EPROTO. */
int mta_layout(const struct kern *k, struct mta_layout *out);
struct mta_chunk mta_chunk(const struct mta_layout *m, const void *meta, unsigned block, const size_t *elem_bytes);
double mta_scalar(const struct mta_layout *m, const void *meta, int tensor);
int64_t mta_scalar_i(const struct mta_layout *m, const void *meta, int tensor);
const float *mta_step(const struct mta_layout *m, const void *meta, int tensor);
const void *mta_address(const struct mta_layout *m, const void *meta, int list, int tensor);
int mta_first_tensor(const struct mta_layout *m, const void *meta);
/* Elements that a launch of so many blocks works on. */
uint64_t mta_elements(const struct mta_layout *m, const void *meta, unsigned blocks);

#endif
