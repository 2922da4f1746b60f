/* table.h: the table of known.h from inside, and the memory that it takes: for known.c, and for store.c, which writes rows to bytes and reads them.
 *
 * Threads: one owner. Errors: NULL: no memory.
 */
#ifndef REMAT_TRACER_KNOWN_TABLE_H
#define REMAT_TRACER_KNOWN_TABLE_H

#include "tracer/known/known.h"

#include <uthash.h>

struct pattern {
    uint32_t grid[3], block[3], arg_bytes, n_words;
    uint64_t also;
    unsigned char *args, *care; /* [arg_bytes]; care: 0xff where a different byte makes a different pattern */
    struct known_word *words;   /* [n_words] */
    uint8_t *use;               /* [n_words] */
    struct known_range *left;   /* [n_left] */
    uint32_t n_left;
    const char *why;
    uint64_t ns, lesson, met; /* met: known.clock when a launch of the pattern was last asked for or entered */
    uint32_t measured;
    bool settled, wild;
    bool earlier; /* found by an earlier run (store.h) */
};

/* Planes of bits over a kernel's arguments: seen to vary once, twice, KNOWN_VARIED times, and seen to matter. */
enum { ONCE, TWICE, FREE, MATTERS, PLANES };

struct kernel_key {
    struct known_code code;
    uint64_t name; /* hash; the name itself is compared too */
};

struct known_kernel {
    struct kernel_key key;
    char *name;
    struct pattern *p[KNOWN_PATTERNS_MOST];
    uint32_t n, plane_bytes;
    unsigned char *plane[PLANES]; /* [plane_bytes] each; NULL before bits have varied */
    bool wild;                    /* a pattern of the kernel is wild: no launch is taken to be like its patterns any more */
    struct known_kernel *next;    /* another kernel with the same key */
    UT_hash_handle hh;
};

struct known {
    struct known_kernel *kernels;
    uint32_t n_kernels, n_patterns;
    uint64_t bytes, clock, lesson;
    uint32_t *to_pattern, *to_launch; /* [cap_groups] scratch of words_match() */
    uint32_t cap_groups;
};

/* A new pattern with room for these counts, all zero. */
struct pattern *table_make_pattern(uint32_t arg_bytes, uint32_t n_words, uint32_t n_left);
/* Frees a pattern that no table owns; frees a pattern of the table k, whose count goes down. */
void table_drop_pattern(struct pattern *p);
void table_free_pattern(struct known *k, struct pattern *p);
/* Adds a pattern to the kernel; the table owns it from now on. False: there is no room, and the pattern has been freed. */
bool table_add_pattern(struct known *k, struct known_kernel *f, struct pattern *p);
/* Makes the kernel's planes, `bytes` bytes each, if need be. False: other launches of the kernel had another number of bytes, or there is no room. */
bool table_have_planes(struct known *k, struct known_kernel *f, uint32_t bytes);

#endif
