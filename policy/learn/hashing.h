/* hashing.h: hashes of device memory, made on the device.
 *
 * A hash is two 64-bit sums over all words of a range, each word mixed with its index (tracer/effects/hash.h). Ranges begin at
 * multiples of 8 bytes and may end anywhere.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_HASHING_H
#define REMAT_POLICY_HASHING_H

#include "policy/device.h"

struct hash_range {
    CUdeviceptr ptr;
    uint64_t bytes;
};

static inline bool hashing_same(const uint64_t *a, const uint64_t *b) { return a[0] == b[0] && a[1] == b[1]; }

/* The device code is loaded into the current context, without a lock of ours: the driver asks the loader for it (tracer/loader.h). NULL: it cannot be.
 * hashing_loaded() hands it over, or says that there is none; before that nothing is hashed. */
CUmodule hashing_load(const struct drv *drv);
void hashing_loaded(struct device *d, CUmodule m);
bool hashing_is_loaded(const struct device *d);
/* Takes the scratch memory; cheap after the first time. After hashing_loaded(). -ENOTSUP: this device cannot. */
int hashing_init(struct device *d);
/* Hashes n ranges into out[2 * n], on a stream of our own; the host waits for that stream, and for no other: the caller has seen to
 * it that nobody writes the ranges meanwhile. */
int hashing_now(struct device *d, const struct hash_range *r, uint32_t n, uint64_t *out);
/* How many whole words of range i lead into one of the spans of addresses, as multiples of 4: out[2 * i], of out[2 * n]. Else like hashing_now(). A span of no
 * bytes is none. */
#define HASHING_SPANS 4
int hashing_find(struct device *d, const struct hash_range *r, uint32_t n, const struct hash_range spans[HASHING_SPANS], uint64_t *out);
/* Hashes around something on `stream`: of the first n_before ranges before it, of all n after it, all else idle. hashing_before() and
 * hashing_after() queue, and the host waits for nothing; hashing_around() takes the results, when all that has ended. One at a time, of
 * at most hashing_around_most() ranges (0: this device cannot). */
#define HASHING_AROUND_MOST 512
uint32_t hashing_around_most(struct device *d);
int hashing_before(struct device *d, CUstream stream, const struct hash_range *r, uint32_t n_before, uint32_t n);
int hashing_after(struct device *d, CUstream stream);
int hashing_around(struct device *d, uint64_t *before, uint64_t *after);
/* Queues the hashes of n ranges, HASHING_FEW at most, on `stream` with one launch; the host does not wait. The sums of range i are added
 * to out[i] and the word behind it on the device, which the caller has set to zero (in the same order). */
#define HASHING_FEW 8
int hashing_queue(struct device *d, CUstream stream, const struct hash_range *r, const CUdeviceptr *out, uint32_t n);

#endif
