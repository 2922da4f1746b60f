/* A struct as compilers and stacks make them: what each word of it means is drawn from `layout`, and the rest holds anything. Shared by the
 * kernel and the program. */
#ifndef PROGRAMS_ROLE_ARGS_H
#define PROGRAMS_ROLE_ARGS_H

#include <stdint.h>

enum { ROLE_WORDS = 10, ROLE_LIST = 4 };
struct role_args {
    uint64_t out, in;
    uint64_t w[ROLE_WORDS];
    uint64_t list[ROLE_LIST]; /* entries past n are stale */
    uint32_t words, layout, n;
    uint32_t rest; /* nobody fills it */
};

enum role {
    ROLE_NONE,      /* nobody fills it */
    ROLE_LOWER,     /* a number in the lower half */
    ROLE_UPPER,     /* in the upper one */
    ROLE_WHOLE,     /* of eight bytes */
    ROLE_MODE_LOW,  /* a number in the lower half: where it is not role_base(), the input is changed */
    ROLE_MODE_HIGH, /* the same in the upper half */
    ROLE_FLAG       /* byte role_byte(): where it is set, the first tensor of the list is changed, or the input where there is none. Bytes
                       before it in its half are zeros */
};

static inline uint32_t role_draw(uint32_t layout, uint32_t k, uint32_t what)
{
    uint32_t x = layout * 0x9e3779b9u + k * 0x85ebca6bu + what * 0xc2b2ae35u;
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    return x ^ x >> 15;
}

static inline enum role role_of(uint32_t layout, uint32_t k)
{
    static const enum role roles[] = {ROLE_NONE, ROLE_NONE, ROLE_NONE, ROLE_LOWER, ROLE_UPPER, ROLE_WHOLE, ROLE_MODE_LOW, ROLE_MODE_LOW, ROLE_MODE_HIGH, ROLE_FLAG};
    return roles[role_draw(layout, k, 1) % (sizeof roles / sizeof *roles)];
}

/* Counts, strides, floats. */
static inline uint32_t role_base(uint32_t layout, uint32_t k)
{
    static const uint32_t bases[] = {0, 1, 4, 128, 65536, 0x3f800000, 0xbf800000, 0xffffffff};
    return bases[role_draw(layout, k, 2) % (sizeof bases / sizeof *bases)];
}

static inline unsigned role_byte(uint32_t layout, uint32_t k) { return role_draw(layout, k, 3) % 8 == 3 ? 0 : role_draw(layout, k, 3) % 8; }

#endif
