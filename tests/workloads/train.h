/*
 * The training loop that the workloads share: options, data, iterations, what is printed.
 *
 * A workload describes itself in a workload struct and calls train_main from main. Threads: one. Errors: bad
 * options exit 2 with a line on stderr; the driver's errors exit 1 (tensor.h).
 */
#ifndef WORKLOADS_TRAIN_H
#define WORKLOADS_TRAIN_H

#include <stdint.h>

#include "tests/workloads/nn.h"

enum { BATCH_PARTS = 4 };

/* One batch on the device: as many tensors as the workload's data has parts. */
typedef struct {
    int n;                              /* samples */
    tensor *part[BATCH_PARTS];
} batch;

typedef struct {
    const char *name, *about;
    int batch, layers;                  /* defaults */
    float rate;
    bool adam;                          /* else momentum SGD */
    /* Sizes in bytes of the parts of a batch of n samples; 0: no such part. */
    void (*sizes)(int n, size_t bytes[BATCH_PARTS]);
    /* Writes the data of batch number `number`; the same whenever it is asked for. */
    void (*fill)(void *const part[BATCH_PARTS], int n, uint64_t seed, uint64_t number);
    void (*build)(model *m, int layers);
    /* Forward pass; the loss is a scalar. */
    var *(*loss)(const batch *b, bool training);
} workload;

int train_main(int argc, char **argv, const workload *w);

/* Number i of the stream (seed, number) of independent 32-bit draws. */
static inline uint32_t train_draw(uint64_t seed, uint64_t number, uint32_t i)
{
    uint32_t x = i * 0x9E3779B1u + (uint32_t)seed * 0x85EBCA6Bu + (uint32_t)number * 0xC2B2AE35u;
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    x ^= x >> 16;
    return x;
}

/* The same as a float in [0, 1). */
static inline float train_uniform(uint64_t seed, uint64_t number, uint32_t i)
{
    return (float)(train_draw(seed, number, i) >> 8) * (1.0f / 16777216.0f);
}

#endif
