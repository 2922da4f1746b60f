/* alloc_conf.h: PyTorch's allocator, as its variables choose it: PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF (which one is read depends on PyTorch's
 * version), "key:value,...", values may hold bracketed lists. `remat run` sets them for the command, the library sets them again where a shell or a
 * script has set others (preload/torch_env.h).
 *
 * Threads: any. Errors: 0 or a negative errno.
 */
#ifndef REMAT_TRACER_ALLOC_CONF_H
#define REMAT_TRACER_ALLOC_CONF_H

#include <stdbool.h>
#include <stddef.h>

enum alloc_conf {
    ALLOC_CONF_NONE,  /* the program's own choice stands */
    ALLOC_CONF_ASYNC, /* backend:cudaMallocAsync: stream-ordered memory */
    ALLOC_CONF_EACH   /* PyTorch's own allocator without its cache: a cuMemAlloc for each tensor, managed like the rest */
};

/* --allocator's words, REMAT_ALLOCATOR's. */
enum alloc_conf alloc_conf_of(const char *word); /* NULL, "" and unknown words: ALLOC_CONF_NONE */

#define ALLOC_CONF_NO_CACHE "PYTORCH_NO_CUDA_MEMORY_CACHING" /* 1 where each tensor has memory of its own */
/* Both names of the variable. */
enum { ALLOC_CONF_NAMES = 2 };
extern const char *const alloc_conf_names[ALLOC_CONF_NAMES];

/* The settings that serve `how`, not ALLOC_CONF_NONE, made of `user`'s (NULL: none): with the backend that is needed, and without what that backend cannot
 * have. `dropped` lists what was left out, "" if nothing. Returns 0, or -ENAMETOOLONG. */
int alloc_conf_merge(enum alloc_conf how, const char *user, char *out, size_t room, char *dropped, size_t dropped_room);

#endif
