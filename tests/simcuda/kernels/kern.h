/*
 * One entry of the catalogue, and one kernel that is bound to it.
 *
 * A row names a template ("softmax_warp_forward") and what runs it. Several rows may have one name: the first whose
 * signature and bind() accept the kernel gets it. A bound kernel carries its template arguments, as types and as numbers.
 *
 * Threads: rows are constant; a kernel is written while it is bound (under the driver's lock) and constant afterwards.
 * Errors: bind() returns 0 or -ENOSYS (this functor, these types are not known), -EPROTO (other parameters), -ENOMEM.
 */
#ifndef SIMCUDA_KERN_H
#define SIMCUDA_KERN_H

#include <errno.h>
#include <stdlib.h>

#include "tests/simcuda/catalogue.h"
#include "tests/simcuda/kernels/dtype.h"
#include "tests/simcuda/kernels/kname.h"

struct kern;

typedef void kern_run_fn(const struct catalogue_launch *l, void *const *p, const struct kern *k);
typedef void kern_cost_fn(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops,
                          uint64_t *bytes);

struct kern_row {
    const char *base;        /* the kernel's own name, without namespaces and template arguments; a star at
                                its end stands for any rest */
    const char *sig;         /* sizes of its parameters, a character each: b 1, h 2, i 4, p 8 bytes, * any. NULL: unchecked */
    kern_run_fn *run;
    kern_cost_fn *cost;      /* NULL: every thread reads and writes one word */
    int (*bind)(struct kern *k);
};

struct kern {
    const struct kern_row *row;
    const struct catalogue_kernel *k;
    struct kname name;
    enum dtype t[KNAME_MAX_ARGS]; /* template argument i as a type, DT_NONE where it is none */
    long v[KNAME_MAX_ARGS];       /* ... and as a number, 0 where it is none */
    void *priv;                   /* what bind() found out */
};

/* Parameter i as a T. */
#define A(T, i) (*(T const *)p[i])

/* Ends a kernel that is running as a device's trap does. */
static inline void kern_trap(void)
{
    volatile uintptr_t nowhere = 16;
    *(volatile char *)nowhere = 0;
}

/* Ends a family's table. */
#define KERN_END { NULL, NULL, NULL, NULL, NULL }

#define KERN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define KERN_MAX(a, b) ((a) > (b) ? (a) : (b))

/* A family has one table, named in families.def. */
#define FAMILY(name) extern const struct kern_row name##_rows[];
#include "tests/simcuda/kernels/families.def"
#undef FAMILY

#endif
