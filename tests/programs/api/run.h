/* run.h: what the files that run programs share.
 *
 * Threads: two programs may run at the same time, one a side; of enum kind only the first one has anything.
 */
#ifndef PROGRAMS_API_RUN_H
#define PROGRAMS_API_RUN_H

#include "tests/programs/api/order.h"
#include "tests/programs/program.h"

#define RUN_KERNELS(X) X(map) X(join) X(half) X(relu) X(add) X(stats) X(random) X(variable) X(put) X(from_list) X(to_list) X(from_named) X(named_to_list) \
    X(textured) X(surface) X(tensor)
struct functions {
#define X(name) CUfunction name;
    RUN_KERNELS(X)
#undef X
};

enum { SIDES = 2 };
struct run {
    const struct program *p;
    uint64_t *notes;
    int side;
    CUstream stream[MAX_STREAMS];
    CUevent event[MAX_EVENTS];
    uint8_t event_context[MAX_EVENTS];
    CUdeviceptr tensor[MAX_TENSORS];
    uint32_t words[MAX_TENSORS];
    uint8_t memory[MAX_TENSORS]; /* of those that are not stream-ordered */
    struct call {
        uint32_t *buffer;
        uint32_t value;
        uint64_t *note;
    } *calls; /* of host functions, by step */
    uint32_t *paged;
    struct kinds_of_run *kinds;
};

/* Of the first device, of the second. */
extern struct functions run_functions[2];
extern CUcontext run_contexts[CONTEXTS];
extern CUmemoryPool run_pool;

static inline const struct functions *run_functions_of(const struct step *s) { return &run_functions[s->context == CONTEXT_PEER]; }

#define RUN_LAUNCH(f, s, ...)                                                                                          \
    do {                                                                                                               \
        void *args_[] = {__VA_ARGS__};                                                                                 \
        MUST(cuLaunchKernel(f, 8, 1, 1, 64, 1, 1, 0, s, args_, NULL));                                                 \
    } while (0)

/* run.c. The context becomes the thread's current one. */
void run_use(int context);
void run_load(struct functions *f);
uint64_t run_hash(const uint32_t *p, uint32_t n);
void run_pattern(uint32_t *p, uint32_t n, uint32_t value);
uint32_t *run_pinned(int side, int host);

/* run_kinds.c */
extern const unsigned run_context_kind[CONTEXTS]; /* the enum kind that has the context */
void run_kinds_begin(struct run *r);
void run_kinds_end(struct run *r);
void run_kinds_second_device(void);
CUstream run_kinds_stream(const struct program *p, int stream);
/* Memory that is not stream-ordered. */
void run_alloc(struct run *r, const struct step *s);
void run_free(struct run *r, const struct step *s);
/* false: the step is none of a kind. */
bool run_kinds_step(struct run *r, int step);

#endif
