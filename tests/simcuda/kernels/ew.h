/*
 * Elementwise kernels: out = f(in...), for every functor that PyTorch hands to gpu_kernel() and its relatives.
 *
 * A functor is a row: the function it is written in (or its class), the types it takes and gives, the fields that it
 * captures, and a loop for each class of arithmetic. The driver (ew.c) deals with the templates around it (contiguous,
 * strided, casting, one operand a scalar) and stages what is not float, double, int64 or truth value in memory through
 * blocks of those types. Rows are in ew_math.c, ew_binary.c, ew_activation.c, ew_misc.c, ew_complex.c, one table
 * each.
 *
 * types: "outs=ins", a character an operand:
 *   T  the functor's element type (of its first T argument); computed in the class of that type
 *   A  only outs: the type that T computes in (float for f16 and bf16)
 *   B  truth value    L  int64    i  int32
 *   1  only outs: the second template argument of the enclosing function
 *   C  only outs: complex numbers of T    R  only outs: the real type of T's parts
 * caps: the captured fields in order, with natural alignment:
 *   o  the type that T computes in    t  T    f float  d double  i int  l int64  b bool  p pointer
 *
 * Threads, errors: as kern.h.
 */
#ifndef SIMCUDA_EW_H
#define SIMCUDA_EW_H

#include <tgmath.h>

#include "tests/simcuda/kernels/kern.h"

#define EW_MAX_IN 8
#define EW_MAX_OUT 3
#define EW_MAX_CAPS 8

struct ew_args {
    double s[EW_MAX_CAPS];     /* captured field i as a number */
    int64_t si[EW_MAX_CAPS];   /* ... as an integer (or address) */
    double z[EW_MAX_CAPS][2];  /* ... as a complex number */
    enum dtype t;              /* T in memory */
};

typedef void ew_fn(const struct ew_args *g, void *const *out, void *const *in, int n);

struct ew_row {
    const char *fn;
    int ord_first, ord_last;   /* ordinals of the outermost and innermost lambda; 0: any */
    const char *types, *caps;
    ew_fn *f, *d, *i, *c;      /* loops on float, double, int64, complex double; NULL: this functor has none */
};

extern const struct ew_row ew_math_rows[], ew_binary_rows[], ew_activation_rows[], ew_misc_rows[], ew_complex_rows[];

/* The row of a functor by its function, ordinals (0: any) and number of arguments; NULL: none. */
const struct ew_row *ew_find(const char *fn, int ord_first, int ord_last, int n_in);

/* Loops of one expression. Arguments are called a, b, c, d, e, x5, x6; captured fields S(0), S(1), ..; the type is T. */
#define S(k) ((T)g->s[k])
#define EW_IVDEP _Pragma("GCC ivdep")
#define EW_HEAD(name) static void name(const struct ew_args *g, void *const *out, void *const *in, int n)
#define EW_LOOP(O, decl, ...)                                                                                         \
    O *o = out[0];                                                                                                    \
    (void)g;                                                                                                          \
    EW_IVDEP for (int k = 0; k < n; k++) { decl; o[k] = (O)(__VA_ARGS__); }

#define EW_ARG(U, name, i) const U name = ((const U *)in[i])[k]
#define EW_T1 EW_ARG(T, a, 0)
#define EW_T2 EW_T1; EW_ARG(T, b, 1)
#define EW_T3 EW_T2; EW_ARG(T, c, 2)
#define EW_T4 EW_T3; EW_ARG(T, d, 3)
#define EW_T5 EW_T4; EW_ARG(T, e, 4)
#define EW_T6 EW_T5; EW_ARG(T, x5, 5)
#define EW_T7 EW_T6; EW_ARG(T, x6, 6)

#define EW_ONE(name, type, O, decl, ...) EW_HEAD(name) { typedef type T; (void)in; (void)sizeof(T); EW_LOOP(O, decl, __VA_ARGS__) }
/* float and double loops, result of the same type; with int64 too (EW_FDI); truth values (EW_FDI_B) */
#define EW_FD(name, decl, ...) EW_ONE(name##_f, float, float, decl, __VA_ARGS__)                                      \
                               EW_ONE(name##_d, double, double, decl, __VA_ARGS__)
#define EW_I(name, decl, ...) EW_ONE(name##_i, int64_t, int64_t, decl, __VA_ARGS__)
#define EW_FD_B(name, decl, ...) EW_ONE(name##_f, float, uint8_t, decl, __VA_ARGS__)                                  \
                                 EW_ONE(name##_d, double, uint8_t, decl, __VA_ARGS__)
#define EW_I_B(name, decl, ...) EW_ONE(name##_i, int64_t, uint8_t, decl, __VA_ARGS__)

#define ROW_FD(fn, o1, ol, types, caps, name) { fn, o1, ol, types, caps, name##_f, name##_d, NULL, NULL }
#define ROW_I(fn, o1, ol, types, caps, name) { fn, o1, ol, types, caps, NULL, NULL, name##_i, NULL }
#define ROW_FDI(fn, o1, ol, types, caps, name) { fn, o1, ol, types, caps, name##_f, name##_d, name##_i, NULL }
#define EW_END { NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL }

#endif
