/* decoy.h: decoys: ranges of addresses with one page behind them all, mapped again and again. A decoy takes a buffer's place in the arguments of an op, to learn
 * whether the op uses the buffer (learn/words.c). It is as long as the buffer, and its lower 32 bits are those of the buffer's address. Two decoys lie as far from each
 * other as their buffers, modulo 2^32, and may coincide.
 *
 * The page never stands in the way: before the program is refused memory, decoy_give() gives it back (memory/evict.c). Argument words that want
 * proof have none from then on, until there is a page again.
 *
 * Order: a trial uses decoys between trial_open() and trial_close() alone (device.trying), and all work of the trial has ended by then. So unmapping
 * needs no wait.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_DECOY_H
#define REMAT_POLICY_DECOY_H

#include "policy/device.h"

enum { DECOY_SIZES = 32 };

struct decoy {
    CUdeviceptr reserved, va; /* reserved 0: no addresses. va: the first multiple of 2^32 in them */
    uint64_t reserved_bytes, pages; /* pages: from va on */
    CUdeviceptr latest;       /* first page of the decoy that was given out last; 0: none */
    uint64_t *mapped;         /* bit i: page i is mapped */
    CUmemGenericAllocationHandle page;
    bool made;
    struct {
        uint64_t bytes, hash[2];
    } zeros[DECOY_SIZES]; /* hashes of `bytes` zeros, for the sizes that were asked for last; bytes 0: an empty entry (words_zeros) */
    uint32_t next_size;
};

/* There is a page to make decoys of. */
bool decoy_has_page(const struct device *d);
/* Makes the page, where the limit and the driver allow it; nothing is evicted for it (room.h does). 0 or -ENOMEM. */
int decoy_page(struct device *d);
/* The decoy of [at, at + bytes], of unknown content. 0: no page, or no addresses for it. */
CUdeviceptr decoy_of(struct device *d, CUdeviceptr at, uint64_t bytes);
/* Queues zeros for the page behind `at`, a decoy's address, on STREAM_IN. */
int decoy_zero(struct device *d, CUdeviceptr at);
/* When an iteration has been learnt, the addresses go back; the page stays, since under a plan no memory may be free when an argument word wants
 * proof. Under a plan the addresses stay as well: the next trial makes no memory call for them. */
void decoy_end(struct device *d);
/* The page goes back to the driver, where nothing else can move. False: there is none, or a trial is under way. */
bool decoy_give(struct device *d);
/* The context is gone: page and addresses go back to the driver. */
void decoy_context_gone(struct device *d);

#endif
