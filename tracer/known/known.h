/* known.h: the table of facts about kernels, by their code and by how they are launched; positions in an iteration play no part.
 *
 * A *kernel* is code and a name. A *pattern* is one way in which a kernel is launched: the argument bytes but for addresses and for idle words (words whose
 * value makes no difference), which addresses lead to the same buffer and where in it, how large the buffers are and whether they had been written, grid, block.
 * The *facts* of a pattern are the measured effects of its launches: a use for each address, and why such a launch is not replayed, if so.
 * A launch is
 *
 *   known    if its pattern was measured in two launches that agree, or in a lesson that came to its end (known_settle)
 *   like     if its pattern was met but for bits that vary freely; or never, and three patterns of the kernel or more agree on every address
 *            of the launch. The facts are a guess, which the caller checks
 *   unknown  in any other case: the launch must be measured
 *
 * Example: PyTorch's `vectorized_elementwise_kernel` for GELU in the twelve layers of a GPT is one pattern: layers 1 and 2 are measured, layers 3 to 12
 * known. Another sequence length has another grid: `like`, once three lengths agree.
 *
 * Bits of the arguments are *free* once launches that differ in them, and in nothing else, have been measured three times to have equal effects (a step count,
 * bytes left over on the stack). Bits that were seen to matter once are never free.
 * A pattern whose launch did more than the facts say is *wild* from then on: unknown for good, as long as this table lives.
 *
 * Pure data: no driver, no threads, no clock. One owner. The table is bounded (KNOWN_*_MOST, known_bytes()): a launch without room in it stays unknown;
 * a kernel with too many patterns loses the one met longest ago. The table keeps copies of its inputs. Errors: a negative errno;
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
    KNOWN_PATTERNS_MOST = 64, /* patterns of a kernel */
    KNOWN_AGREE = 2,          /* measured launches after which a pattern is believed */
    KNOWN_LIKE_PATTERNS = 3,  /* patterns of a kernel after which others are believed to be like them */
    KNOWN_LEFT_MOST = 64,     /* ranges that a launch leaves unwritten */
    KNOWN_VARIED = 3          /* times that a bit must differ without effect to be free */
};
static const uint64_t KNOWN_BYTES_MOST = 32ull << 20;

/* Identity of a code image: two words that no other code has. */
struct known_code {
    uint64_t w[2];
};

/* How much of a buffer had been written before the launch. */
enum known_before { KNOWN_BLANK, KNOWN_PARTLY, KNOWN_DEFINED, KNOWN_OLD /* wholly written, before the iteration */ };

/* A launch's use of an address among its arguments, from least to most. */
enum known_use {
    KNOWN_IDLE,     /* none: the word's value makes no difference */
    KNOWN_UNTRIED,  /* changes nothing in the buffer; whether the launch reads it was not tried */
    KNOWN_READ,
    KNOWN_SIDE,     /* changes the buffer in place, without influence on the launch's other outputs */
    KNOWN_WHOLE,    /* overwrites the whole buffer; its old content makes no difference */
    KNOWN_IN_PART,  /* writes some bytes of the buffer; others stay unwritten */
    KNOWN_IN_PLACE, /* changes the buffer, depending on its old content */
    KNOWN_NO_USE
};

/* An address among the arguments of a launch. */
struct known_word {
    uint32_t offset;  /* of its eight bytes in the arguments */
    uint32_t same_as; /* index of the first word that leads to the same buffer; the word's own index if it is the first */
    uint64_t delta;   /* bytes from the buffer's begin */
    uint64_t bytes;   /* size of the buffer */
    uint64_t map;     /* shape of a tensor map, 128 bytes; 0: the word is an address */
    uint8_t before;   /* enum known_before */
    uint64_t blank;   /* hash of the unwritten bytes' ranges (KNOWN_PARTLY) and of those that a memset right before the launch has filled; 0: none */
};

/* Bytes of a buffer that are still unwritten at the end of a launch. */
struct known_range {
    uint32_t offset; /* of the first word that is not idle and leads to the buffer */
    uint64_t from, to;
};

/* A launch before it runs. Borrowed for the call. */
struct known_launch {
    const unsigned char *args; /* [arg_bytes] */
    const struct known_word *words; /* [n_words], rising offsets */
    uint32_t arg_bytes, n_words;
    uint32_t grid[3], block[3];
    uint64_t also; /* shared memory, clusters and other attributes of the launch, mixed into one number */
};

/* The effects of a launch, measured or expected. */
struct known_facts {
    uint8_t *use;          /* [n_words] enum known_use */
    const char *why;       /* why the launch is not replayed; NULL: it repeats bit for bit. A text that outlives the table */
    const uint32_t *idle;  /* [n_idle] offsets in the arguments from which on their word of eight bytes is idle: words of words[], and others, which are
                              addresses of freed memory. Bytes of the word before the offset are compared */
    uint32_t n_idle;
    const struct known_range *left; /* [n_left], rising in offset and place: of all buffers not wholly written before the launch, or after it */
    uint32_t n_left;
    uint64_t ns;           /* device time */
    bool freely;           /* output: KNOWN_LIKE because only bits differ that vary freely */
    bool but_numbers;      /* output with KNOWN_NOT: known but for argument bytes that are no addresses, and none of these was seen to matter; use, why, left are filled */
};

enum known_state { KNOWN_NOT, KNOWN_LIKE, KNOWN_FULLY };

/* A measured launch compared with the pattern's facts. */
enum known_news {
    KNOWN_NEWS_FIRST, /* the pattern is new */
    KNOWN_NEWS_SAME,
    KNOWN_NEWS_LESS,  /* the launch did less: for its data it left unchanged what another launch of the pattern changed */
    KNOWN_NEWS_MORE   /* the launch did something that the facts exclude: the pattern is wild from now on */
};

struct known;
struct known_kernel;

struct known *known_new(void); /* NULL: no memory */
void known_free(struct known *k);
/* The kernel's row, made if need be; the row lives as long as the table. NULL: no memory, or no room. */
struct known_kernel *known_kernel(struct known *k, struct known_code code, const char *name);
const char *known_name(const struct known_kernel *f);

/* The expected effects of a launch. facts->use has room for n_words. For KNOWN_LIKE and KNOWN_FULLY facts->use, why and ns are filled; facts->left is the
 * table's own until the next known_enter(); facts->idle is left alone. */
enum known_state known_ask(struct known *k, struct known_kernel *f, const struct known_launch *l, struct known_facts *facts);
/* Enters the effects of a launch, measured in full. 0: *news is set; -ENOMEM, -ENOSPC, -E2BIG: the launch was not entered. */
int known_enter(struct known *k, struct known_kernel *f, const struct known_launch *l, const struct known_facts *facts, enum known_news *news);
/* The launch was taken to be known, and did something that the facts exclude. */
void known_surprise(struct known *k, struct known_kernel *f, const struct known_launch *l);
/* A value made by relying on the kernel's facts was wrong: the kernel's facts of earlier runs (store.h) are never believed again. */
void known_distrust(struct known_kernel *f);
/* A lesson begins; the lesson has come to its end, and its patterns are known from now on, even if measured only once. */
void known_lesson(struct known *k);
void known_settle(struct known *k);

/* Whether use b does no more than use a: a launch whose facts say a may be seen to do b. */
bool known_use_covers(enum known_use a, enum known_use b);
uint64_t known_bytes(const struct known *k); /* memory that the table takes, about */
uint32_t known_patterns(const struct known *k);
uint32_t known_kernels(const struct known *k);
/* The bits of argument byte i that vary freely. */
unsigned char known_free_bits(const struct known_kernel *f, uint32_t i);

#endif
