/*
 * Names of C++ kernels, taken apart. A demangled name such as
 *   void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, ...> >(at::native::ReduceOp<float, ...>)
 * becomes its last component ("reduce_kernel") and its template arguments as text; a functor such as
 *   at::native::f(at::Tensor&)::{lambda()#1}::operator()() const::{lambda(float, bool)#2}
 * the function that it is written in ("f"), the ordinals of its lambdas (1, 2) and its argument types.
 *
 * Threads: no state. Errors: -ENOMEM, -EINVAL for a text that is not of this form. What is allocated is never freed: a
 * name lives as long as its binding, which is as long as the process.
 */
#ifndef SIMCUDA_KNAME_H
#define SIMCUDA_KNAME_H

#include <stdbool.h>

#define KNAME_MAX_ARGS 24

struct kname {
    const char *text;                 /* the whole name, demangled */
    const char *base;                 /* the function's own name: no namespace, no template arguments */
    int n_args;
    const char *arg[KNAME_MAX_ARGS];  /* template arguments */
};

struct kfunctor {
    const char *fn;                   /* the enclosing function, or the functor's class where it is not a lambda */
    bool is_lambda;
    int n_targs;
    const char *targ[KNAME_MAX_ARGS]; /* template arguments of fn */
    int n_ord, ord[6];                /* ordinals of the nested lambdas, outermost first; #1 is 1 */
    int n_params;
    const char *param[KNAME_MAX_ARGS];/* argument types of the innermost lambda */
};

/* The mangled name's readable form, allocated; NULL where it is no mangled name. */
char *kname_demangle(const char *mangled);
int kname_parse(const char *mangled, struct kname *out);
int kname_functor(const char *text, struct kfunctor *out);

/* Splits "a<b, c>, d" at the commas of depth 0 into out[]; returns their number. */
int kname_split(const char *text, const char **out, int max);
/* A number as template arguments write it: 4, 32u, true, (some::Enum)1. False: text is none. */
bool kname_number(const char *text, long *out);

#endif
