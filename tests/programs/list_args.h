/* What the optimizer kernel takes by value; shared by the kernels and the programs. */
#ifndef PROGRAMS_LIST_ARGS_H
#define PROGRAMS_LIST_ARGS_H

#include <stdint.h>

enum { LIST_MAX = 12 };
struct list_args {
    uint64_t w[LIST_MAX], g[LIST_MAX]; /* entries past n are stale */
    uint32_t words[LIST_MAX];
    uint32_t n, step;
};

/* A struct as templates make them: room for many inputs, few in use, the rest never filled. */
enum { BUNDLE_MAX = 12, BUNDLE_ASKS = 2, BUNDLE_LOOKS = 3, BUNDLE_OTHER = 4, BUNDLE_OPTIONAL = 5, BUNDLE_GIVEN = 6, BUNDLE_ABSENT = 7 };
struct bundle_args {
    uint64_t out, in[BUNDLE_MAX]; /* entries past n are stale */
    uint32_t words, n, flag, junk; /* flag: the first input is changed too; BUNDLE_ASKS: if junk, which is none then, says so;
                                      BUNDLE_LOOKS: if the second input does; BUNDLE_OTHER: in[BUNDLE_OPTIONAL] is, whatever n; BUNDLE_GIVEN: nothing
                                      is, and in[BUNDLE_OPTIONAL] counts as well, if it is not null; BUNDLE_ABSENT: if it is null */
    uint32_t rest;                 /* nobody fills it */
    uint8_t mode, pad[3];          /* mode: as flag, where that is 0 */
};

/* Where number is not base the input is changed too, or `other` if it is not null. Nobody fills rest. It takes the time of moving so many
 * MiB more. */
struct count_args {
    uint64_t out, in;
    uint32_t number, rest, base, words;
    uint64_t more_mib, other;
};

/* One matrix of a batch is worked on in place: its address is the first of the list. */
struct factor_args {
    uint64_t list, info;
    uint32_t words, k;
};

/* A convolution as libraries have them: what it reads, what it makes and room for what it puts together before it begins lie in one workspace,
 * and the struct has each of their addresses several times. */
enum { CONVOLVE_IN, CONVOLVE_OUT, CONVOLVE_MAP, CONVOLVE_KINDS, CONVOLVE_TIMES = 4 };
struct convolve_args {
    struct {
        uint64_t at, words;
    } part[CONVOLVE_TIMES * CONVOLVE_KINDS];
};

/* Lists as optimizers hand them over: room for many addresses, few in use. `lists` lists of n each, which begin at multiples of MANY_MAX / lists; the
 * rest is what the stack held. */
enum { MANY_MAX = 48 };
struct many_args {
    uint64_t at[MANY_MAX];
    uint32_t n, lists, words, k;
};

/* A functor by value: bytes 1 to 3 are padding. */
struct functor {
    uint8_t kind;
    uint32_t k;
};

#endif
