/* words.h: which of an op's argument words matter to it, found with decoys in their place (words.c says how).
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_WORDS_H
#define REMAT_POLICY_WORDS_H

#include "policy/learn/trial.h"
#include "policy/memory/space.h"

/* Takes the argument words that do not matter out of op->operands, and puts the offsets from which they are idle (words_idle_part) into idle[] (room for OP_MAX_OPERANDS). The
 * op repeats bit for bit. `use`: NULL, or what each operand is known to be (enum known_use): then nothing runs, and the rules by which idle words stay operands are applied to
 * `use`. 0, or a negative errno: then memory may not be as the program's run left it. */
int words_try(struct trial *t, const uint8_t *use, uint32_t *idle, uint32_t *n_idle);
/* `use` answers for every word that words_try() would run the op for. */
bool words_are_known(const struct trial *t, const uint8_t *use);
/* May a decoy take the place of the struct word at this offset (words.c says where that would be a danger)? words_operand_may_be_decoy() asks this of the op's operand k. */
bool words_may_be_decoy(const struct device *d, const struct rt_op *op, uint32_t offset);
bool words_operand_may_be_decoy(const struct device *d, const struct rt_op *op, uint32_t k);
/* The decoy of [at, at + bytes]: addresses behind which all is zero, and whose first has the lower 32 bits of `at`. 0: there is none. Decoys lie as far from each other as the
 * buffers they stand for, modulo 2^32, and may coincide. */
CUdeviceptr words_decoy(struct device *d, CUdeviceptr at, uint64_t bytes);
/* The hash of `bytes` zeros. `decoy`: a range of as many bytes, from words_decoy(). */
int words_zeros(struct device *d, CUdeviceptr decoy, uint64_t bytes, uint64_t hash[2]);
/* True if the decoy page is not all zeros since it was last given or filled (a run wrote through a decoy), or cannot be hashed: the words of decoys count as used then, even
 * where the kernel's writes leave the real buffer as it was (a sum so large that the 1 added to it is lost). All that ran must have ended. */
bool words_decoy_is_written(struct device *d);
/* The offset from which the argument word `word` at `offset` is idle, when a decoy in its place made no difference, or when it points nowhere. A decoy has the lower half of
 * the word it stands for, so nothing was shown of that half. Where the lower half may be a number, or a few small ones of a byte each, the upper half alone is idle. Else
 * small numbers may stand in the first two bytes, beside the rest of an address that the stack held: these two bytes, always zero in most addresses, are watched. */
static inline uint32_t words_idle_part(uint32_t offset, CUdeviceptr word)
{
    enum { BYTES = 0xf0f0f0 };
    return offset + (mem_may_be_number(word) || !(word & BYTES) ? 4 : 2);
}

#endif
