/* decoy.h: addresses with one page behind them all, mapped again and again: what stands for a buffer where an op is asked whether it uses it
 * (learn/words.c). A decoy is as long as the buffer, and its lower 32 bits are those of the buffer's address. Decoys lie as far from each other as
 * what they stand for, modulo 2^32, and may be in one place.
 *
 * The page never stands in anybody's way: before the program is refused memory, decoy_give() gives it back (memory/evict.c). Words that want
 * proof have none then, until the next such page.
 *
 * Order: a trial uses decoys between trial_open() and trial_close() alone (device.trying), and what ran in it has ended by then. So unmapping
 * needs no wait.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_DECOY_H
#define REMAT_POLICY_DECOY_H

#include "policy/device.h"

enum { DECOY_SIZES = 32 };

struct decoy {
    CUdeviceptr reserved, va; /* 0: no addresses. va: the first multiple of 2^32 there */
    uint64_t reserved_bytes, pages; /* pages: from va on */
    CUdeviceptr latest;       /* of the decoys given out, the page of the latest; 0: none */
    uint64_t *mapped;         /* bit i: page i is */
    CUmemGenericAllocationHandle page;
    bool made;
    struct {
        uint64_t bytes, hash[2];
    } zeros[DECOY_SIZES]; /* hashes of so many zeros, the latest sizes that were asked for; bytes 0: none (words_zeros) */
    uint32_t next_size;
};

/* There is a page to make decoys of. */
bool decoy_has_page(const struct device *d);
/* Makes it, where the limit and the driver allow it; nothing moves for that (room.h). 0 or -ENOMEM. */
int decoy_page(struct device *d);
/* The decoy of [at, at + bytes], of unknown content. 0: there is none, or no page. */
CUdeviceptr decoy_of(struct device *d, CUdeviceptr at, uint64_t bytes);
/* Zeros in the decoy's page, in the order of STREAM_IN. */
int decoy_zero(struct device *d, CUdeviceptr at);
/* The addresses go back, when an iteration has been learnt; the page stays, for under a plan no memory may be free when a word wants proof.
 * Under a plan the addresses stay as well: the next trial makes no memory call for them. */
void decoy_end(struct device *d);
/* The page goes back to the driver, where nothing else can move. False: there is none, or a trial is under way. */
bool decoy_give(struct device *d);
/* The context is gone: page and addresses go back to the driver. */
void decoy_context_gone(struct device *d);

#endif
