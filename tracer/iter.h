/* iter.h: where one training iteration ends and the next begins, found from the stream of ops alone.
 *
 * Two ops correspond when their signatures are equal and, wherever both have an operand, it is the same buffer, or one
 * born since the earlier op, or one born as many ops after the other as the ops are apart: weights repeat, activations
 * are new, a batch fetched ahead is as old as the last one was. The second rule tells the layers of one network from
 * its iterations. The distance p between corresponding ops is the period once p of them in a row correspond and the
 * program holds as much memory as it did p ops ago (a forward pass through equal layers holds more each time; a list that grows by a loss
 * in every iteration, next to nothing). A buffer may be used in the same way several times an iteration: then p is one of the distances to the
 * last few times. A loop within an
 * iteration goes through a batch image by image: ops and buffers repeat, but the addresses within the buffers move on. Where they
 * do in a third of the ops, it is no iteration (a program that takes its batches from one large buffer moves in an op or two).
 *
 * A few ops of an iteration may be others than in the one before, or more, or fewer: one in sixteen, 24 at most, where an iteration has 64 and more. A batch is mixed
 * up, or a piece of it cut out of one and put into another, and that piece has another size each time. Such ops correspond to none; the period is the distance of those
 * that do.
 *
 * Batches of other shapes that take turns (A, B, A, B, ..) may launch the same ops, and only hold other amounts. Then a few p together are the
 * period: as many as make every one of its ops correspond and hold as much.
 *
 * Pure data, no driver. Threads: one owner. Errors: 0 or a negative errno. Cost: a few hash operations an op.
 */
#ifndef REMAT_TRACER_ITER_H
#define REMAT_TRACER_ITER_H

#include <stdbool.h>
#include <stdint.h>

struct iter_operand {
    uint64_t serial;   /* the allocation; unique */
    uint64_t birth_op; /* ops that had been fed when it was allocated */
    uint64_t delta;    /* bytes from the allocation's begin */
    uint32_t offset;   /* of the pointer in the op's arguments; rising within an op */
};

struct iter;

struct iter *iter_new(void);
void iter_free(struct iter *it);
/* Forgets all ops; op numbers start from `first_op` (what birth_op counts). */
void iter_reset(struct iter *it, uint64_t first_op);

/* The program held `then` bytes and holds `now`: the same, but for very little of what an iteration's `swing` is, from the least to the most
 * that is held in it. */
bool iter_holds_as_much(uint64_t then, uint64_t now, uint64_t swing);

/* One more op (copies to the host are none: they come and go); `from_host`: it brings data in. Returns the period in ops when it is
 * certain, 0 while it is not, or a negative errno. */
int64_t iter_feed(struct iter *it, uint64_t sig, const struct iter_operand *operands, uint32_t n, uint64_t live_bytes,
                  int from_host);

/* After iter_feed has returned p: how many more ops belong to the current iteration, so that the next one begins
 * where the program holds little memory: of the ops launched while it holds at most LITTLE_PCT of the way from its least
 * to its most, a copy from the host that follows none (a new batch arrives), else the one with the least. 0 .. p - 1. */
uint64_t iter_until_boundary(const struct iter *it, uint64_t p);
/* Where an iteration of p ops has ended: it was like the one before in what it held (from its least to its most), or enough of them have gone by
 * to see whether shapes take turns. If not, what comes next may be of another shape. */
bool iter_is_settled(const struct iter *it, uint64_t p);
/* How often, in a row, what now comes with period p has come: 2 where iter_feed() has just returned p. */
uint64_t iter_has_come(const struct iter *it, uint64_t p);
/* Half of a period, and more, has come again by now: it may be one. 0: none has. */
uint64_t iter_candidate(const struct iter *it);
/* The latest op is another one than the period before had, or comes right after such a one: whether the period goes on is not known yet. */
bool iter_is_astray(const struct iter *it);
/* The op so many ops before the one to be fed next corresponds to the one `apart` ops before it. */
bool iter_correspond(const struct iter *it, uint64_t ago, uint64_t apart);
/* The op so many ops before the one to be fed next corresponds to one so many ops before it; 0: to none, or it is not remembered. */
uint64_t iter_apart(const struct iter *it, uint64_t ago);
/* So many ops have been fed, and are remembered. */
bool iter_remembers(const struct iter *it, uint64_t n);
/* Signature of the op that should follow after `ahead` more ops, if the period p holds. */
uint64_t iter_expected_sig(const struct iter *it, uint64_t p, uint64_t ahead);
/* The operand at this offset of the op so many ops before the one to be fed next; NULL: it had none. Where that is a whole number of periods, its birth_op and this one's
 * are as far apart where a new buffer takes the place of an old one. *known: the op is remembered. */
const struct iter_operand *iter_expected_operand(const struct iter *it, uint64_t ago, uint32_t offset, bool *known);
/* The op to be fed next, as it was a period before, had a buffer at this offset that one of the `ahead` ops after it, with more than `few` operands, had
 * at the same offset: an entry that stays on the stack when a shorter list is written over a long one, say. True as well where that is not remembered. */
bool iter_expected_again(const struct iter *it, uint64_t p, uint64_t ahead, uint32_t offset, uint32_t few);

#endif
