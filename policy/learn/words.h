/* words.h: which of an op's argument words matter to it, found with decoys in their place (words.c says how).
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_WORDS_H
#define REMAT_POLICY_WORDS_H

#include "policy/learn/trial.h"
#include "policy/memory/space.h"

/* Takes the argument words that do not matter out of op->operands, what of them is idle (words_idle_part) into idle[] (room for
 * OP_MAX_OPERANDS). The op repeats bit for bit. `use`: NULL, or what each operand is known to be (enum known_use): then nothing runs, and the rules by which
 * idle words stay operands are applied to that. 0, or a negative errno: then memory is not as it was. */
int words_try(struct trial *t, const uint8_t *use, uint32_t *idle, uint32_t *n_idle);
/* No word that words_try() would run the op for is unanswered by `use`. */
bool words_are_known(const struct trial *t, const uint8_t *use);
/* May a decoy take the place of the word of a struct at this offset (words.c says where it would be a danger)? The second asks it of the op's
 * operand k. */
bool words_may_be_decoy(const struct device *d, const struct rt_op *op, uint32_t offset);
bool words_operand_may_be_decoy(const struct device *d, const struct rt_op *op, uint32_t k);
/* The decoy of [at, at + bytes]: all zeros, and its lower 32 bits are those of `at`. 0: there is none. Decoys lie as far from each other as
 * what they stand for, modulo 2^32, and may be in one place. */
CUdeviceptr words_decoy(struct device *d, CUdeviceptr at, uint64_t bytes);
/* The hash of a range of so many zeros, of which words_decoy made one. */
int words_zeros(struct device *d, CUdeviceptr decoy, uint64_t bytes, uint64_t hash[2]);
/* The decoy page is not all zeros since it was last given or filled, or cannot be hashed: the words of decoys count as used then, also where
 * what a kernel does to the real buffer changes nothing (a sum so large that the 1 added to it is lost). All that ran must have ended. */
bool words_decoy_is_written(struct device *d);
/* Where what is idle begins, of the word `word` at `offset` that a decoy was put in place of, or that points nowhere: a decoy has the lower
 * half of what it stands for, of which nothing was shown. Where it may be a number, or a few small ones of a byte each, the upper half alone is
 * idle. Else it may begin with small ones, beside the rest of an address that the stack held: its first two bytes are watched. Those
 * of most addresses are always zero. */
static inline uint32_t words_idle_part(uint32_t offset, CUdeviceptr word)
{
    enum { BYTES = 0xf0f0f0 };
    return offset + (mem_may_be_number(word) || !(word & BYTES) ? 4 : 2);
}

#endif
