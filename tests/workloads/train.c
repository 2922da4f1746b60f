#include "tests/workloads/train.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/workloads/launch.h"
#include "tests/workloads/optim.h"

enum {
    BUFFERS = 3,            /* pinned staging: two for training batches in turn, one for evaluation */
    EVAL_BUFFER = 2,
    EVAL_NUMBER = 1 << 30   /* evaluation batches are numbered from here */
};

static struct {
    int iters, profile, batch, layers, eval_every, eval_batches, loss_every, early_break, accumulate, small_first, streams;
    uint64_t seed;
    bool print_loss, keep_losses, checksum, vary_batch, late_free, late_read, iter_time;
    size_t oom_bytes;
    dev_options dev;
} opt = {.iters = 16, .profile = -1, .accumulate = 1, .streams = 1, .seed = 1, .loss_every = 1, .eval_batches = 1, .early_break = -1};

static struct {
    const workload *w;
    void *staging[BUFFERS][BATCH_PARTS];
    bool staged[BUFFERS];               /* a copy from this buffer was given to the device */
    model m;
    float *loss;                        /* pinned */
    int steps;                          /* of the optimizer */
    tensor **kept;                      /* with --keep-losses: [iters * accumulate], as far as they are made */
    int n_kept;
} train;

/* ---- options ----------------------------------------------------------------------------------------- */

static void usage(FILE *f, const workload *w)
{
    fprintf(f,
        "usage: %s [options]      (%s)\n"
        "  --iters N          optimizer steps (16)\n"
        "  --batch N          samples of a batch (%d)\n"
        "  --layers N         depth (%d)\n"
        "  --seed N           of parameters, data and dropout (1)\n"
        "  --print-loss       read every loss back and print it, as a hex float\n"
        "  --loss-every N     .. but only after every N-th iteration\n"
        "  --keep-losses      keep every loss on the device, and print them all at the end\n"
        "  --checksum         print a hash of all parameters, statistics and optimizer state at the end\n"
        "  --iter-time        print the device time of every iteration\n"
        "  --profile N        cuProfilerStart before iteration N (from 0), cuProfilerStop after the last one\n"
        "  --eval-every N     an evaluation pass after every N-th iteration\n"
        "  --eval-batches N   .. of so many batches (1)\n"
        "  --early-break N    leave iteration N (from 0) in the middle of its backward pass\n"
        "  --accumulate K     K batches per optimizer step\n"
        "  --vary-batch       every fourth batch is smaller\n"
        "  --small-first N    the first N batches are half as large\n"
        "  --streams 1|2      2: copies of the next batch and work on gradients go to a second stream\n"
        "  --late-free        in odd iterations some tensors are freed a little later\n"
        "  --late-read        likewise, and they are read before that: the checksum has them, too\n"
        "  --oom BYTES        after iteration 2 ask for BYTES, expecting to be refused\n"
        "  --route linked|dlsym|procaddr\n"
        "                     how the driver's entry points are found (linked)\n"
        "  --use-kernel-handles\n"
        "                     cuLibrary* and cuLaunchKernelEx instead of cuModule* and cuLaunchKernel\n"
        "  --extra            pass kernel parameters through the `extra` buffer\n",
        w->name, w->about, w->batch, w->layers);
}

static void bad_option(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "%s: --%s %s: expected %s\n", train.w->name, name, value, expected);
    exit(2);
}

static unsigned long long number(const char *name, const char *text, unsigned long long least,
    unsigned long long most)
{
    char *end, expected[80];
    errno = 0;
    unsigned long long v = strtoull(text, &end, 0);
    if (errno || end == text || *end || *text == '-' || v < least || v > most) {
        snprintf(expected, sizeof expected, "a whole number from %llu to %llu", least, most);
        bad_option(name, text, expected);
    }
    return v;
}

static void parse(int argc, char **argv, const workload *w)
{
    enum { ITERS, BATCH, LAYERS, SEED, PRINT_LOSS, LOSS_EVERY, KEEP, CHECKSUM, ITER_TIME, PROFILE, EVAL, EVAL_BATCHES, BREAK, ACCUMULATE, VARY, SMALL_FIRST, STREAMS,
        LATE, LATE_READ, OOM, ROUTE, HANDLES, EXTRA, HELP };
    static const struct option options[] = {
        {"iters", 1, NULL, ITERS}, {"batch", 1, NULL, BATCH}, {"layers", 1, NULL, LAYERS},
        {"seed", 1, NULL, SEED}, {"print-loss", 0, NULL, PRINT_LOSS},
        {"loss-every", 1, NULL, LOSS_EVERY}, {"keep-losses", 0, NULL, KEEP}, {"checksum", 0, NULL, CHECKSUM},
        {"iter-time", 0, NULL, ITER_TIME}, {"profile", 1, NULL, PROFILE}, {"eval-every", 1, NULL, EVAL},
        {"eval-batches", 1, NULL, EVAL_BATCHES}, {"early-break", 1, NULL, BREAK},
        {"accumulate", 1, NULL, ACCUMULATE}, {"vary-batch", 0, NULL, VARY}, {"small-first", 1, NULL, SMALL_FIRST}, {"streams", 1, NULL, STREAMS},
        {"late-free", 0, NULL, LATE}, {"late-read", 0, NULL, LATE_READ}, {"oom", 1, NULL, OOM}, {"route", 1, NULL, ROUTE},
        {"use-kernel-handles", 0, NULL, HANDLES}, {"extra", 0, NULL, EXTRA}, {"help", 0, NULL, HELP},
        {NULL, 0, NULL, 0}};
    int c, which;

    opt.batch = w->batch;
    opt.layers = w->layers;
    while ((c = getopt_long(argc, argv, "", options, &which)) != -1) {
        const char *name = c == '?' ? "" : options[which].name;
        switch (c) {
        case ITERS: opt.iters = (int)number(name, optarg, 1, 1000000); break;
        case BATCH: opt.batch = (int)number(name, optarg, 1, 1 << 20); break;
        case LAYERS: opt.layers = (int)number(name, optarg, 1, 1000); break;
        case SEED: opt.seed = number(name, optarg, 0, ~0ull); break;
        case PRINT_LOSS: opt.print_loss = true; break;
        case LOSS_EVERY: opt.loss_every = (int)number(name, optarg, 1, 1000000); break;
        case KEEP: opt.keep_losses = true; break;
        case CHECKSUM: opt.checksum = true; break;
        case ITER_TIME: opt.iter_time = true; break;
        case PROFILE: opt.profile = (int)number(name, optarg, 0, 1000000); break;
        case EVAL: opt.eval_every = (int)number(name, optarg, 1, 1000000); break;
        case EVAL_BATCHES: opt.eval_batches = (int)number(name, optarg, 1, 1000); break;
        case BREAK: opt.early_break = (int)number(name, optarg, 0, 1000000); break;
        case ACCUMULATE: opt.accumulate = (int)number(name, optarg, 1, 1000); break;
        case VARY: opt.vary_batch = true; break;
        case SMALL_FIRST: opt.small_first = (int)number(name, optarg, 0, 1000000); break;
        case STREAMS: opt.streams = (int)number(name, optarg, 1, 2); break;
        case LATE: opt.late_free = true; break;
        case LATE_READ: opt.late_free = opt.late_read = true; break;
        case OOM: opt.oom_bytes = (size_t)number(name, optarg, 1, ~0ull); break;
        case ROUTE:
            if (!strcmp(optarg, "linked"))
                opt.dev.route = ROUTE_LINKED;
            else if (!strcmp(optarg, "dlsym"))
                opt.dev.route = ROUTE_DLSYM;
            else if (!strcmp(optarg, "procaddr"))
                opt.dev.route = ROUTE_PROCADDR;
            else
                bad_option(name, optarg, "linked, dlsym or procaddr");
            break;
        case HANDLES: opt.dev.kernel_handles = true; break;
        case EXTRA: opt.dev.extra = true; break;
        case HELP: usage(stdout, w); exit(0);
        default: usage(stderr, w); exit(2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: unexpected argument %s\n", w->name, argv[optind]);
        exit(2);
    }
}

/* ---- data -------------------------------------------------------------------------------------------- */

static int samples(uint64_t batch_number)
{
    int n = opt.batch;
    if (opt.vary_batch && batch_number % 4 == 3)
        n = n * 5 / 8;
    if (batch_number < (uint64_t)opt.small_first)
        n /= 2;
    return n ? n : 1;
}

static void make_staging(void)
{
    size_t bytes[BATCH_PARTS] = {0};
    train.w->sizes(opt.batch, bytes);
    for (int b = 0; b < BUFFERS; b++)
        if (b < EVAL_BUFFER || opt.eval_every)
            for (int i = 0; i < BATCH_PARTS; i++)
                train.staging[b][i] = bytes[i] ? dev_pinned(bytes[i]) : NULL;
    train.loss = dev_pinned(sizeof *train.loss);
}

/* Fills staging buffer b with a batch and copies it into new tensors on the current stream. */
static void fetch(batch *to, uint64_t batch_number, int b)
{
    size_t bytes[BATCH_PARTS] = {0};
    to->n = samples(batch_number);
    train.w->sizes(to->n, bytes);
    if (train.staged[b])
        dev_mark_wait(b);
    train.w->fill(train.staging[b], to->n, opt.seed, batch_number);
    for (int i = 0; i < BATCH_PARTS; i++) {
        to->part[i] = NULL;
        if (bytes[i]) {
            to->part[i] = tensor_new(bytes[i]);
            tensor_upload_async(to->part[i], train.staging[b][i]);
        }
    }
    dev_mark(b);
    train.staged[b] = true;
}

static void drop_batch(batch *b)
{
    for (int i = 0; i < BATCH_PARTS; i++)
        tensor_drop(b->part[i]);
}

static batch ahead;                 /* with two streams: the batch that is on its way */

static void prefetch(uint64_t batch_number)
{
    dev_use(SIDE);
    fetch(&ahead, batch_number, (int)(batch_number % 2));
    dev_use(MAIN);
}

/* Batch number i of the training, `total` in all. */
static void next_batch(batch *b, uint64_t i, uint64_t total)
{
    if (opt.streams == 1) {
        fetch(b, i, (int)(i % 2));
        return;
    }
    if (i == 0)
        prefetch(0);
    *b = ahead;
    dev_wait(SIDE);
    if (i + 1 < total)
        prefetch(i + 1);
}

/* ---- one iteration ----------------------------------------------------------------------------------- */

/* Weight decay as soon as a gradient is complete; on the side stream when there are two. */
static void decay_gradient(var *leaf)
{
    const float decay = 1e-4f;
    if (opt.streams == 2) {
        dev_use(SIDE);
        dev_wait(MAIN);
    }
    k_weight_decay(leaf->grad->p, leaf->value->p, decay, nn_size(leaf));
    dev_use(MAIN);
}

static float read_loss(const tensor *loss)
{
    tensor_download_async(train.loss, loss);
    dev_mark(EVAL_BUFFER + 1);
    dev_mark_wait(EVAL_BUFFER + 1);
    return *train.loss;
}

static void step_optimizer(void)
{
    train.steps++;
    if (train.w->adam)
        optim_adam(&train.m, train.w->rate, train.steps);
    else
        optim_sgd(&train.m, train.w->rate, 0.9f);
}

static void iterate(int iter)
{
    uint64_t total = (uint64_t)opt.iters * (uint64_t)opt.accumulate;
    float sum = 0.0f;
    bool broken = iter == opt.early_break, last = iter == opt.iters - 1, read = opt.print_loss && (iter + 1) % opt.loss_every == 0;

    dev_late_free(opt.late_free && iter % 2);
    for (int k = 0; k < opt.accumulate; k++) {
        batch b;
        next_batch(&b, (uint64_t)iter * (uint64_t)opt.accumulate + (uint64_t)k, total);
        nn_begin(true);
        nn_set_grad_hook(k == opt.accumulate - 1 && !broken ? decay_gradient : NULL);
        var *loss = train.w->loss(&b, true);
        tensor *value = tensor_ref(loss->value);
        nn_backward(loss, 1.0f / (float)opt.accumulate, broken ? 0.5 : 1.0);
        nn_end();
        drop_batch(&b);
        if (opt.keep_losses)
            train.kept[train.n_kept++] = tensor_ref(value);
        if (read || last)
            sum += read_loss(value) / (float)opt.accumulate;
        tensor_drop(value);
    }
    if (opt.streams == 2)
        dev_wait(SIDE);
    if (!broken)
        step_optimizer();
    nn_zero_grad(&train.m);
    if (read)
        printf("iter %d loss %a\n", iter, (double)sum);
    else if (last)
        printf("final loss %a\n", (double)sum);
}

static void evaluate(int iter)
{
    batch b;
    fetch(&b, EVAL_NUMBER + (uint64_t)iter, EVAL_BUFFER);
    nn_begin(false);
    var *loss = train.w->loss(&b, false);
    if (opt.print_loss)
        printf("iter %d eval loss %a\n", iter, (double)read_loss(loss->value));
    nn_end();
    drop_batch(&b);
}

static void provoke_refusal(void)
{
    const char *answer = dev_try_alloc(opt.oom_bytes);
    printf("oom: %s\n", answer);
    if (strcmp(answer, "CUDA_ERROR_OUT_OF_MEMORY") != 0) {
        fprintf(stderr, "%s: %zu bytes were to be refused for lack of memory\n", train.w->name, opt.oom_bytes);
        exit(1);
    }
}

/* ---- the end ----------------------------------------------------------------------------------------- */

static void print_kept(void)
{
    for (int i = 0; i < train.n_kept; i++) {
        printf("iter %d loss %a of batch %d\n", i / opt.accumulate, (double)read_loss(train.kept[i]), i % opt.accumulate);
        tensor_drop(train.kept[i]);
    }
    free(train.kept);
}

static void print_checksum(void)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (int i = 0; i < train.m.n_params; i++) {
        h = tensor_hash(h, train.m.params[i]->v.value);
        h = tensor_hash(h, train.m.params[i]->state[0]);
        h = tensor_hash(h, train.m.params[i]->state[1]);
    }
    for (int i = 0; i < train.m.n_buffers; i++)
        h = tensor_hash(h, train.m.buffers[i]);
    h ^= dev_late_seen();
    printf("checksum 0x%016llx\n", (unsigned long long)h);
}

int train_main(int argc, char **argv, const workload *w)
{
    train.w = w;
    parse(argc, argv, w);
    dev_open(&opt.dev);
    dev_late_read(opt.late_read);
    make_staging();
    train.m.seed = opt.seed;
    nn_random_seed(opt.seed);
    w->build(&train.m, opt.layers);
    if (opt.keep_losses && !(train.kept = calloc((size_t)opt.iters * (size_t)opt.accumulate, sizeof *train.kept)))
        abort();
    for (int iter = 0; iter < opt.iters; iter++) {
        if (opt.iter_time)
            dev_time_stamp();
        if (iter == opt.profile)
            dev_profile(true);
        iterate(iter);
        for (int n = 0; opt.eval_every && (iter + 1) % opt.eval_every == 0 && n < opt.eval_batches; n++)
            evaluate(iter + n * opt.iters);
        if (opt.oom_bytes && iter == 2)
            provoke_refusal();
        fflush(stdout);
    }
    if (opt.profile >= 0)
        dev_profile(false);
    if (opt.iter_time) {
        dev_time_stamp();
        for (int iter = 0; iter < opt.iters; iter++)
            printf("iter %d time %.6f ms\n", iter, (double)dev_time_between(iter, iter + 1));
    }
    dev_late_free(false);
    dev_synchronize();
    print_kept();
    if (opt.checksum)
        print_checksum();
    nn_model_free(&train.m);
    dev_close();
    return 0;
}
