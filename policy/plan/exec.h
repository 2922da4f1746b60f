/* exec.h: the recorded iteration and the plan in force.
 *
 * Threads: under the engine's mutex. Errors: *_drv return the driver's code for the program; others 0 or a negative errno.
 */
#ifndef REMAT_POLICY_EXEC_H
#define REMAT_POLICY_EXEC_H

#include "policy/iteration.h"
#include "policy/op/ready.h"

/* The slot that stands for buffer b in this iteration; NULL while there is none. */
static inline struct slot *exec_slot(struct device *d, int32_t b) { return d->ex->bind[b] >= 0 ? &d->slots[d->ex->bind[b]] : NULL; }
/* steps.c: what op `at` is about to overwrite on stream t, and a replay will make again, is set aside, or hashed, to compare. */
int exec_set_aside(struct device *d, uint32_t at, unsigned t);
/* Op `at`, which comes next on stream t, or a replay of it, is the first to write a buffer, and perhaps not all of it. How much it writes may hang
 * on its arguments, or on data: what it leaves must be the same each time where it is compared. So what is there before it is made the same. */
bool exec_begins_compared(const struct device *d, uint32_t at);
int exec_fill_before(struct device *d, uint32_t at, unsigned t);
/* Before the program's own launch of the op, which is ready on stream t: its small in-place state is kept as a replay must find it. 0 or -EIO. */
int exec_keep_sides(struct device *d, uint32_t at, unsigned t);
/* Everything up to op `to`, which comes now (n_ops: the iteration has ended): the plan's steps before it and before each of the ops in
 * between, which do not come, and what the recorded iteration frees there. < 0: the plan must be left. */
int exec_pass(struct device *d, uint32_t to, unsigned t);
/* b's memory goes, and what is in it with it: until a replay makes it again, it is lost. Nothing is compared. */
void exec_take_away(struct device *d, int32_t b);
int exec_die(struct device *d, int32_t b, unsigned t); /* < 0: its value could not be set aside; it is still there */

/* Derives versions, producers, deaths from the record. */
int exec_index(struct device *d);
/* Takes a plan for the record: checks that it fits, compiles its steps. -EINVAL with a line. `own`: made for our own form
 * of the trace, with holds; else for the trace the user was given (same ops but for the holds). */
int exec_load_plan(struct device *d, const char *path, bool own);
void exec_clear(struct device *d);
/* elide.c: which replays are left out once they are proved, and how long buffers must keep their addresses for that. 0 or -ENOMEM. */
int exec_elide(struct device *d);
static inline void exec_refer(struct device *d, int32_t b, int32_t at)
{
    if (d->ex->last_ref[b] < at)
        d->ex->last_ref[b] = at;
}
/* The program writes such memory before its next op: the iteration that is being recorded is told; where one is followed, whether it has
 * been told so of this place. */
int exec_note_elsewhere(struct device *d);
bool exec_knows_elsewhere(const struct device *d);
/* A new iteration begins with the next op. */
void exec_begin(struct device *d);
/* The program's op under the plan, which is left (exec_diverge) before the op, not run then, or after it, where that did something
 * else than was recorded. */
enum exec_left { EXEC_STAYED, EXEC_LEFT_BEFORE, EXEC_LEFT_AFTER };
int exec_op_drv(struct device *d, struct rt_op *op, enum exec_left *left);
extern const char exec_step_failed[], exec_was_refused[]; /* why the plan was left */
/* What the captured or matched op touches is in memory and ordered before it; NULL, or why not. */
const char *exec_make_ready(struct device *d, struct rt_op *op);
/* The op at ex->pos has been issued. */
void exec_op_done(struct device *d);
/* Memory that the driver knows and we do not see lies there. */
bool exec_is_elsewhere(struct device *d, uint64_t word);
/* That, or memory of ours. */
bool exec_is_address(struct device *d, uint64_t word);
/* The program may have had it of us, or the driver knows it. In the part of our reservation where nothing has ever lain there are none: a word with
 * an address there is something else, a flag beside what an address of the process has left, say. */
bool exec_may_have_been_had(struct device *d, uint64_t word);
/* Where what is idle of the argument word (its offset, a multiple of 8) begins; word + 8: nothing is. */
uint32_t exec_idle_from(const struct record *r, const struct rec_op *o, uint32_t word);
/* The argument word is no operand: what it points at does not matter to the op. Its first bytes may be numbers, which do. */
static inline bool exec_word_is_idle(const struct record *r, const struct rec_op *o, uint32_t word) { return exec_idle_from(r, o, word) < word + 8; }
/* The program allocates: its planned slot, or NULL. */
struct slot *exec_alloc(struct device *d, uint64_t bytes);
/* The program frees a slot that the plan knows. True: the plan keeps the memory; do not free it. */
bool exec_free(struct device *d, struct slot *s);
/* The iteration's last op has run (ended): what is left of the plan's steps, and what came of it. */
enum exec_end {
    EXEC_END_WHOLE,
    EXEC_END_BANNED,     /* a replay differed in rehearsal: its op is banned, the plan must be made anew */
    EXEC_END_UNPROVABLE, /* rehearsed again and again, and still not everything could be compared */
    EXEC_END_MOVED       /* memory was mapped: something outside the plan holds chunks of the static map, it must be made anew */
};
enum exec_end exec_end_iteration(struct device *d);
/* Leaves the plan: everything the program holds is made readable or swapped, nothing stays LOST. */
void exec_diverge(struct device *d, const char *why, const struct rt_op *op);
/* Out of the plan: does this op begin an iteration that the plan knows? */
bool exec_may_resume(struct device *d, const struct rt_op *op);
/* Memory that the plan relies on can be reached in ways that no argument shows, or holds addresses, and did not when the iteration was recorded:
 * the plan is of no use any more. */
bool exec_reached_since(const struct device *d);
/* left.c: after the plan was left. Every buffer that the recorded iteration changes, and neither makes nor frees, is still there: if not
 * (weights loaded into other memory), no iteration will follow the plan again. */
bool exec_can_be_followed(struct device *d);
/* From now on no plan asks what launches of the kernel at which it was left do: they are never replayed. The plan is void then, and must
 * be made anew. False: nothing would be different. */
bool exec_trust_no_more(struct device *d);
/* Signature of the last op that comes in every iteration; 0: there is none. */
uint64_t exec_last_sig(const struct device *d);
/* Plain peak of the recorded iteration, in chunks: of what a plan may move, or of what it may not. */
uint64_t exec_recorded_peak_pages(struct device *d, bool pinned);
/* That op (not yet run) begins an iteration under the plan; what it allocated is bound when it is seen. */
void exec_resume(struct device *d);
/* Runs op `op_index` again on stream t, with the arguments it had in this iteration. -ENODATA: an input is missing. */
int exec_replay(struct device *d, uint32_t op_index, unsigned t);

/* args.c: the launch at hand against the one of the iteration before, at the same place. VARIED: only in numbers that have changed in
 * every iteration for long. SURPRISE: what the kernel does with these bytes was never measured; *offset: one that differs. */
enum args_change { ARGS_SAME, ARGS_VARIED, ARGS_SURPRISE };
int args_index(struct device *d);
void args_clear(struct device *d);
enum args_change args_compare(struct device *d, const struct rt_op *op, uint32_t *offset);
/* The same, where bytes were a SURPRISE: true: places of the iteration that are alike know them to be padding. */
bool args_known_alike(struct device *d, const struct rt_op *op);
/* The op's arguments with the words that may be padding as they were an iteration ago, into out[arg_bytes]; all: those, too, that have
 * changed in earlier ones, as they were before that. False: there are none. */
bool args_before(struct device *d, const struct rt_op *op, bool all, unsigned char *out);
/* In out all is as it was an iteration ago, but for addresses that are operands and for idle words. */
bool args_were_all_put_back(const struct device *d);
/* The op at d->ex->pos did what was recorded, with the bytes that it has now; before it is captured. */
enum args_mattered { ARGS_UNTRIED, ARGS_MATTERED, ARGS_IDLE }; /* whether those words made a difference */
void args_accept(struct device *d, const struct rt_op *op, enum args_mattered mattered);
/* How often the op at d->ex->pos has surprised under this plan, this time included. */
uint32_t args_surprised(struct device *d);
/* The op at d->ex->pos ran with other bytes, and it was looked at only: a count among them may have brought an idle word into use. Until
 * a trial with decoys says that it has not, such words are operands, and what they point at must be there. */
void args_doubt_idle(struct device *d, bool doubt);
bool args_idle_in_doubt(const struct device *d);
/* The op at d->ex->pos ran with other bytes, and nothing says what it did: no replay may have them, and the next launch there wants proof even
 * where it has the same ones. args_accept() ends that. */
void args_unproved(struct device *d, const struct rt_op *op);
bool args_are_unproved(const struct device *d, uint32_t at);
/* The op at d->ex->pos wants proof, whatever its bytes are. */
bool args_ask_again(const struct device *d);
/* The launch that is accepted next may have used words that are no recorded operands: its bytes, a count among them, are never put back.
 * Another launch has anything in those words. */
void args_may_use_others(struct device *d, bool may);
/* So may this one, for buffers that it reads anyway (probe.h, covered). That holds for this launch alone: the next one there asks again, even with
 * the same bytes. After args_may_use_others(). */
void args_are_covered(struct device *d);
/* The word may hold anything from this offset on; what is before it is watched (words_idle_part). */
int args_free_word(struct device *d, uint32_t offset);

/* steady.c: a launch that is the same as an iteration ago, byte for byte. NO: nothing was done, it has to be looked at (exec_op_drv).
 * LEFT: the plan has been left before it, and it has not been run. REFUSED: the driver has not taken it, and the plan has been left. */
enum steady { STEADY_NO, STEADY_RAN, STEADY_LEFT, STEADY_REFUSED };
enum steady steady_launch_drv(struct device *d, const struct eng_kernel *k, int *r);
/* A plan was loaded: nothing is known to be the same. */
int steady_plan(struct device *d);
/* Op `at` was captured. `same`: it corresponded, with the arguments it had an iteration before: can the next one be told by its bytes? */
void steady_note(struct device *d, uint32_t at, const struct rt_op *op, bool same);
/* The op may be missing in an iteration. */
static inline bool exec_is_optional(const struct rec_op *o) { return o->hold || o->to_host; }
/* The next op that must come, n_ops: none is left of the iteration. */
uint32_t steady_next(const struct device *d);
/* The op has other arguments than before: it may leave more of its new buffers as they are, and what is compared must not hang on that. */
void steady_may_write_less(struct device *d, uint32_t at);
/* The op overwrites a buffer that has values to compare. */
bool steady_sets_aside(const struct device *d, uint32_t op);

/* rebuild.c: every value that the program holds is in memory or on the host. 0, or a negative errno: some are gone. */
int rebuild_all(struct device *d, unsigned t);
/* The same for b alone; all else is as it was, but what no live buffer needs. */
int rebuild_one(struct device *d, int32_t b, unsigned t);
/* The program holds a value of b that is not there. */
bool rebuild_owed(struct device *d, int32_t b);
/* [n_bufs] whether rebuild_all() would begin from what is in the buffer now, or after the op at `at`, which comes next. For free(); NULL: no
 * memory. */
uint8_t *rebuild_sources(struct device *d, uint32_t at);

/* install.c: slots for all allocations, chunks by interval colouring, mapped. The number of chunks that the static map
 * lacks (0: a steady iteration makes no memory call), or a negative errno. */
int install_plan(struct device *d);
/* Pages that had to take another chunk get theirs again. */
void install_repair(struct device *d);
void install_drop(struct device *d);
/* Scratch for the side operands of replays, as the record needs it. 0 or -ENOMEM. */
int install_scratch(struct device *d);
/* Pages that the map of any plan takes beside what the record tells the planner. Where an allocation is made while the buffer that the
 * iteration before made there is still in memory, each of them needs a slot of its own, and both slots are the iteration's from end to end,
 * since they take turns. And the entries of small allocations, which are theirs alone, may want more arena pages than there are; where a
 * plan is still to be made one page more is left for them, since some live longer in a plan, and what is free lies in pieces (without it every
 * third first plan lacked one chunk). A plan that is given (`--plan`) is held against what there is. */
uint64_t install_pages_beside(struct device *d);

/* Somebody may look at version v of buffer b after a replay has made it. */
static inline bool exec_matters(struct device *d, int32_t b, int32_t v)
{
    struct slot *s = exec_slot(d, b);
    return d->ex->used[d->ex->first_val[b] + v] || (s && s->live);
}

/* saved.c */
int saved_put(struct device *d, int32_t buf, int32_t version, struct slot *s);
struct saved_value *saved_find(struct device *d, int32_t buf, int32_t version);
/* The value is taken out; its block, which the caller owns now; NULL: it was not set aside. */
struct host_block *saved_take(struct device *d, int32_t buf, int32_t version);
void saved_clear(struct device *d);
int saved_restore(struct device *d, const struct saved_value *v, struct slot *s);

#endif
