/* The arithmetic of the device hash, shared by its CUDA and its simulated form. Two 64-bit sums over all words, each
 * word mixed with its index, so that blocks may add in any order. */
#ifndef REMAT_TRACER_EFFECTS_HASH_H
#define REMAT_TRACER_EFFECTS_HASH_H

#ifdef __CUDACC__
#define HASH_FN __device__ static inline
#else
#define HASH_FN static inline
#endif

typedef unsigned long long hash_word;

/* A range to hash, as the device reads it. Ranges may share `out`: the sums of all of them are added up, each word mixed with
 * its index in its own range. */
struct hash_row {
    hash_word ptr, bytes, out; /* ptr and out are addresses, multiples of 8 */
};

/* So many of them as one argument of a launch: no table has to be on the device. */
enum { HASH_FEW = 8 };
struct hash_few {
    struct hash_row row[HASH_FEW];
};

/* Where addresses may lead to, as spans of addresses: `low` and how many bytes from there. */
enum { FIND_SPANS = 4 };
struct find_spans {
    struct {
        hash_word low, bytes;
    } at[FIND_SPANS];
};

/* 1: the word is a multiple of 4 in one of the spans; else 0. */
HASH_FN hash_word find_may_be(const struct find_spans *s, hash_word w)
{
    hash_word in = 0;
    for (int k = 0; k < FIND_SPANS; k++)
        in |= w - s->at[k].low < s->at[k].bytes;
    return in & !(w % 4);
}

HASH_FN hash_word hash_mix(hash_word x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}
HASH_FN hash_word hash_first(hash_word w, hash_word i) { return hash_mix(w + (i + 1) * 0x9e3779b97f4a7c15ull); }
HASH_FN hash_word hash_second(hash_word w, hash_word i) { return hash_mix((w ^ 0xd6e8feb86659fd93ull) * (2 * i + 1) + i); }

/* The last, partial word: its bytes, then zeros. */
HASH_FN hash_word hash_tail(const unsigned char *p, hash_word n)
{
    hash_word w = 0;
    for (hash_word k = 0; k < n; k++)
        w |= (hash_word)p[k] << (8 * k);
    return w;
}

#endif
