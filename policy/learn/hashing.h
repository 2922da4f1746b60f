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

/* hashing_load() loads the device code into the current context; no lock of remat's may be held, since the driver asks the loader for the code (tracer/loader.h). NULL: it
 * cannot be loaded. hashing_loaded() hands the module to the device, or NULL if there is none; before that nothing is hashed. */
CUmodule hashing_load(const struct drv *drv);
void hashing_loaded(struct device *d, CUmodule m);
bool hashing_is_loaded(const struct device *d);
/* Takes the scratch memory; cheap after the first time. After hashing_loaded(). -ENOTSUP: this device cannot hash. */
int hashing_init(struct device *d);
/* Hashes n ranges into out[2 * n], on STREAM_IN; the host waits for that stream, and for no other: the caller has seen to it that nobody writes the ranges meanwhile. */
int hashing_now(struct device *d, const struct hash_range *r, uint32_t n, uint64_t *out);
/* Counts the whole words of range i that are multiples of 4 and addresses in one of the spans, into out[2 * i], of out[2 * n]. Else like hashing_now(). A span of 0 bytes
 * holds no address. */
#define HASHING_SPANS 4
int hashing_find(struct device *d, const struct hash_range *r, uint32_t n, const struct hash_range spans[HASHING_SPANS], uint64_t *out);
/* Hashes around an op on `stream`: the first n_before ranges before it, all n after it, all other streams idle. hashing_before() and hashing_after() queue, and the host waits
 * for nothing; hashing_around() takes the results, when all that has ended. One op at a time, at most hashing_around_most() ranges (0: this device cannot). */
#define HASHING_AROUND_MOST 512
uint32_t hashing_around_most(struct device *d);
int hashing_before(struct device *d, CUstream stream, const struct hash_range *r, uint32_t n_before, uint32_t n);
int hashing_after(struct device *d, CUstream stream);
int hashing_around(struct device *d, uint64_t *before, uint64_t *after);
/* Queues the hashes of n ranges, HASHING_FEW at most, on `stream` with one launch; the host does not wait. The sums of range i are added to the two words at out[i] on the
 * device, which the caller has set to zero in the order of `stream`. */
#define HASHING_FEW 8
int hashing_queue(struct device *d, CUstream stream, const struct hash_range *r, const CUdeviceptr *out, uint32_t n);

#endif
