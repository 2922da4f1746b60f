/* iter.h: where one training iteration ends and the next begins, found from the stream of ops alone.
 *
 * Two ops correspond when their signatures are equal and, wherever both have an operand, the later op's buffer is the earlier op's, or was
 * born since the earlier op, or was born as many ops after the other buffer as the ops are apart: weights repeat, activations
 * are new, a batch fetched ahead is as old as the last one was. The condition on operands tells the layers of one network from
 * its iterations. The distance p between corresponding ops is the period once p ops in a row correspond and the
 * program holds as much memory as it did p ops ago (a forward pass through equal layers holds more each time; a list that grows by a loss
 * in every iteration, next to nothing). A buffer may be used in the same way several times an iteration: p is then one of the distances to
 * the buffer's last few uses. A loop within an iteration (through a batch, image by image) repeats ops and buffers too, but the addresses
 * within the buffers move on. A loop whose addresses move in a third of the ops is no iteration (a program that takes its batches from one
 * large buffer moves in an op or two).
 *
 * A few ops of an iteration may differ from the iteration before, or be more, or fewer: one in sixteen, 24 at most, in iterations of 64 ops and more. Example: a batch
 * is mixed up, or a piece of one batch is put into another, and the piece has another size each time. Such ops correspond to none; the period is the distance
 * between the other ops.
 *
 * Batches of different shapes that take turns (A, B, A, B, ..) may launch the same ops, and differ only in the memory that they hold. The period is then a multiple of
 * p under which every op corresponds and holds as much.
 *
 * Pure data, no driver. Threads: one owner. Errors: 0 or a negative errno. Cost: a few hash operations an op.
 */
#ifndef REMAT_TRACER_ITER_H
#define REMAT_TRACER_ITER_H

#include <stdbool.h>
#include <stdint.h>

struct iter_operand {
    uint64_t serial;   /* the allocation; unique */
    uint64_t birth_op; /* ops fed before the allocation */
    uint64_t delta;    /* bytes from the allocation's begin */
    uint32_t offset;   /* of the pointer in the op's arguments; rising within an op */
};

struct iter;

struct iter *iter_new(void);
void iter_free(struct iter *it);
/* Forgets all ops; op numbers start from `first_op` (what birth_op counts). */
void iter_reset(struct iter *it, uint64_t first_op);

/* Whether the bytes held, `then` and `now`, are equal but for a small part of an iteration's `swing`: the difference between the most and the least that is held
 * in it. */
bool iter_holds_as_much(uint64_t then, uint64_t now, uint64_t swing);

/* Feeds an op (copies to the host are not fed: they come and go); `from_host`: the op brings data in. Returns the period in ops when the period is
 * certain, 0 while it is not, or a negative errno. */
int64_t iter_feed(struct iter *it, uint64_t sig, const struct iter_operand *operands, uint32_t n, uint64_t live_bytes,
                  int from_host);

/* After iter_feed has returned p: how many more ops belong to the current iteration, so that the next iteration begins
 * where the program holds little memory. Of the ops launched while it holds at most LITTLE_PCT of the way from its least
 * to its most: a copy from the host that does not follow another one (a new batch arrives); else the op with the least. 0 .. p - 1. */
uint64_t iter_until_boundary(const struct iter *it, uint64_t p);
/* Called where an iteration of p ops has ended. True: its swing was about that of the iteration before, or enough iterations have gone by
 * to see whether shapes take turns. False: the next iteration may be of another shape. */
bool iter_is_settled(const struct iter *it, uint64_t p);
/* How many iterations of p ops have come in a row: 2 where iter_feed() has just returned p. */
uint64_t iter_has_come(const struct iter *it, uint64_t p);
/* The candidate period, if half of it or more has come again by now; 0: none. */
uint64_t iter_candidate(const struct iter *it);
/* The latest op differs from the op a period before, or comes right after such an op: whether the period goes on is not known yet. */
bool iter_is_astray(const struct iter *it);
/* Whether the op `ago` ops before the one to be fed next corresponds to the op `apart` ops before itself. */
bool iter_correspond(const struct iter *it, uint64_t ago, uint64_t apart);
/* Distance from the op `ago` ops before the one to be fed next to the earlier op that it corresponds to; 0: it corresponds to none, or is not remembered. */
uint64_t iter_apart(const struct iter *it, uint64_t ago);
/* Whether the last n ops are remembered. */
bool iter_remembers(const struct iter *it, uint64_t n);
/* Signature of the op that should follow after `ahead` more ops, if the period p holds. */
uint64_t iter_expected_sig(const struct iter *it, uint64_t p, uint64_t ahead);
/* The operand at `offset` of the op `ago` ops before the one to be fed next; NULL: it had none there. If `ago` is a whole number of periods, and a new buffer takes
 * the place of an old one each time, the birth_op of the next op's operand is `ago` larger. *known: the op is remembered. */
const struct iter_operand *iter_expected_operand(const struct iter *it, uint64_t ago, uint32_t offset, bool *known);
/* Whether the op p before the one to be fed next had a buffer at `offset` that one of the `ahead` ops after it, one with more than `few` operands, had
 * at the same offset: an entry that stays on the stack when a shorter list is written over a long one, say. True as well if that op is not remembered. */
bool iter_expected_again(const struct iter *it, uint64_t p, uint64_t ahead, uint32_t offset, uint32_t few);

#endif
