/* spy.h: how a program talks to libspy.so, when that is preloaded. Without it every call here does nothing.
 *
 * A program opens a mark, says which address ranges to look for, makes its launches and ends the mark. The spy
 * appends, at exit, one JSON line to the file that SPY_OUT names: what it saw in all, and mark by mark how each
 * watched range showed in the launches' parameters.
 *
 * Threads: any; marks are process-wide. Errors: none; what does not fit the fixed tables is counted as dropped.
 */
#ifndef REMAT_GPU_SPY_H
#define REMAT_GPU_SPY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library's own symbols; programs (and Python, through ctypes) find them by dlsym. */
typedef void spy_open_mark_fn(const char *name);
typedef void spy_watch_range_fn(const char *label, uint64_t addr, size_t bytes);
typedef void spy_close_mark_fn(void);

static inline bool spy_present(void) { return dlsym(RTLD_DEFAULT, "spy_open_mark") != NULL; }

static inline void spy_mark(const char *name)
{
    spy_open_mark_fn *f = (spy_open_mark_fn *)dlsym(RTLD_DEFAULT, "spy_open_mark");
    if (f)
        f(name);
}

/* Watches [addr, addr + bytes), device addresses, under `label` in the open mark. */
static inline void spy_watch(const char *label, uint64_t addr, size_t bytes)
{
    spy_watch_range_fn *f = (spy_watch_range_fn *)dlsym(RTLD_DEFAULT, "spy_watch_range");
    if (f)
        f(label, addr, bytes);
}

static inline void spy_mark_end(void)
{
    spy_close_mark_fn *f = (spy_close_mark_fn *)dlsym(RTLD_DEFAULT, "spy_close_mark");
    if (f)
        f();
}

#endif
