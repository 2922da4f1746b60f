/* known.h: what is known of kernels, by their code and by how they are launched; nothing here knows of positions in an iteration.
 *
 * A *kernel* is code and a name. A *pattern* is one way in which a kernel is launched: the argument bytes without the addresses and without what was
 * found idle, which addresses lead to the same buffer and where in it, how large the buffers are and whether anybody had written them, grid, block.
 * The *facts* of a pattern are what its launches were measured to do: a use for each address, and why such a launch is not replayed, if so.
 *
 *   known    the pattern was measured in two launches that agree, or in a lesson that came to its end (known_settle)
 *   like     the pattern was met but for bits that vary freely; or never, and three patterns of the kernel or more agree on every address
 *            of the launch. Its facts are a guess, which the caller checks
 *   unknown  anything else: measure it
 *
 * Example: PyTorch's `vectorized_elementwise_kernel` for GELU in the twelve layers of a GPT is one pattern: layers 1 and 2 are measured, layers 3 to 12
 * known. For another sequence length the grid is another one: `like`, once three lengths agree.
 *
 * Bits of the arguments are *free* once launches that differ in them, and in nothing else, have been measured to do the same three times (a step count,
 * what a stack left behind). Bits that were seen to matter once are never free.
 * A pattern whose launch did more than the facts say is *wild* from then on: unknown for good, as long as this table lives.
 *
 * Pure data: no driver, no threads, no clock. One owner. The table is bounded (KNOWN_*_MOST, known_bytes()): what there is no room for stays unknown;
 * in a kernel with too many patterns the one that was met longest ago goes. Nothing that is handed in is kept but by copy. Errors: a negative errno;
 * without memory a launch is unknown.
 * Source: DESIGN section 3.
 */
#ifndef REMAT_TRACER_KNOWN_H
#define REMAT_TRACER_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KNOWN_KERNELS_MOST = 8192,
    KNOWN_PATTERNS_MOST = 64, /* of a kernel */
    KNOWN_AGREE = 2,          /* measured launches of a pattern, until it is believed */
    KNOWN_LIKE_PATTERNS = 3,  /* of a kernel, until others are believed to be like them */
    KNOWN_LEFT_MOST = 64,     /* ranges that a launch leaves unwritten */
    KNOWN_VARIED = 3          /* a bit is free once it has differed so many times */
};
static const uint64_t KNOWN_BYTES_MOST = 32ull << 20;

/* Whose code it is: two words that no other code has. */
struct known_code {
    uint64_t w[2];
};

/* What had been written of a buffer before the launch. */
enum known_before { KNOWN_BLANK, KNOWN_PARTLY, KNOWN_DEFINED, KNOWN_OLD /* wholly, before the iteration */ };

/* What a launch does with an address among its arguments; in the order of how much that is. */
enum known_use {
    KNOWN_IDLE,     /* nothing: whatever stands there makes no difference */
    KNOWN_UNTRIED,  /* changes nothing there; whether the launch reads there was not tried */
    KNOWN_READ,
    KNOWN_SIDE,     /* changes the buffer in place, without influence on what else it makes */
    KNOWN_WHOLE,    /* overwrites the buffer, whatever it held */
    KNOWN_IN_PART,  /* writes some bytes of the buffer, and leaves others as nobody has written them */
    KNOWN_IN_PLACE, /* changes the buffer, going by what it held */
    KNOWN_NO_USE
};

/* An address among the arguments of a launch. */
struct known_word {
    uint32_t offset;  /* of its eight bytes in the arguments */
    uint32_t same_as; /* index of the first word that leads to the same buffer; its own index where it is that */
    uint64_t delta;   /* bytes from the buffer's begin */
    uint64_t bytes;   /* of the buffer */
    uint64_t map;     /* a tensor map of this shape, 128 bytes; 0: an address */
    uint8_t before;   /* enum known_before */
    uint64_t blank;   /* which bytes nobody had written (KNOWN_PARTLY), and which a memset right before the launch has filled, mixed into one number; 0: none */
};

/* Bytes of a buffer that nobody has written by the end of a launch. */
struct known_range {
    uint32_t offset; /* of the first word that leads to the buffer and is not idle */
    uint64_t from, to;
};

/* A launch, as the caller sees it before it runs. Borrowed for the call. */
struct known_launch {
    const unsigned char *args; /* [arg_bytes] */
    const struct known_word *words; /* [n_words], rising offsets */
    uint32_t arg_bytes, n_words;
    uint32_t grid[3], block[3];
    uint64_t also; /* shared memory, clusters and other attributes of the launch, mixed into one number */
};

/* What it did, or is taken to do. */
struct known_facts {
    uint8_t *use;          /* [n_words] enum known_use */
    const char *why;       /* it is not replayed; NULL: it repeats bit for bit. A text that outlives the table */
    const uint32_t *idle;  /* [n_idle] places in the arguments from which on their word of eight bytes is idle: of words[], and of others, which are
                              addresses of memory that has gone. What lies before such a place in its word is compared */
    uint32_t n_idle;
    const struct known_range *left; /* [n_left], rising in offset and place: of all buffers that were not wholly written before, or are not now */
    uint32_t n_left;
    uint64_t ns;           /* device time */
    bool freely;           /* told: KNOWN_LIKE by bits alone that vary freely */
    bool but_numbers;      /* told with KNOWN_NOT: known but for argument bytes that are no addresses, of which none was seen to matter; use, why, left are filled */
};

enum known_state { KNOWN_NOT, KNOWN_LIKE, KNOWN_FULLY };

/* How what was measured stands to what was known. */
enum known_news {
    KNOWN_NEWS_FIRST, /* nothing was known */
    KNOWN_NEWS_SAME,
    KNOWN_NEWS_LESS,  /* it did less: another launch of the pattern changed what this one left as it was, for its data */
    KNOWN_NEWS_MORE   /* it did what the facts exclude: the pattern is wild now */
};

struct known;
struct known_kernel;

struct known *known_new(void); /* NULL: no memory */
void known_free(struct known *k);
/* The kernel's row, made if need be; it lives as long as the table. NULL: no memory, or no room. */
struct known_kernel *known_kernel(struct known *k, struct known_code code, const char *name);
const char *known_name(const struct known_kernel *f);

/* What a launch is expected to do. facts->use has room for n_words and is filled for KNOWN_LIKE and KNOWN_FULLY; facts->why and ns are set then, and
 * facts->left is the table's own until something is entered; facts->idle is left alone. */
enum known_state known_ask(struct known *k, struct known_kernel *f, const struct known_launch *l, struct known_facts *facts);
/* What it did, measured in full. 0, *news is said; -ENOMEM, -ENOSPC, -E2BIG: it was not entered. */
int known_enter(struct known *k, struct known_kernel *f, const struct known_launch *l, const struct known_facts *facts, enum known_news *news);
/* The launch was taken to be known, and did what the facts exclude. */
void known_surprise(struct known *k, struct known_kernel *f, const struct known_launch *l);
/* Something that was made by going by the kernel's facts was not what it should have been: those of earlier runs (store.h) are never believed again. */
void known_distrust(struct known_kernel *f);
/* A lesson begins; it has come to its end: its patterns are known from now on, those that were measured once as well. */
void known_lesson(struct known *k);
void known_settle(struct known *k);

/* b is possible for a launch of which a is known: it does no more. */
bool known_use_covers(enum known_use a, enum known_use b);
uint64_t known_bytes(const struct known *k); /* what the table takes, about */
uint32_t known_patterns(const struct known *k);
uint32_t known_kernels(const struct known *k);
/* The bits of argument byte i that vary freely. */
unsigned char known_free_bits(const struct known_kernel *f, uint32_t i);

#endif
