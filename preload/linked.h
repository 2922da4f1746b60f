/* linked.h: the third way in, for names that this library does not export: a program that is linked with the driver or with NCCL refers to a call that no
 * table has (cuMemAlloc_v3), and the loader has bound it past the doors. Where such a reference is kept, the stub of the net is put (net.h), so that the
 * call is noted when it is made; being linked tells nothing: PyTorch is linked with all of NCCL.
 *
 * Threads: any; asks the loader: not with the engine's mutex held. Errors: none; where there is no memory, or more than can be noted, the rest stays as it is.
 */
#ifndef REMAT_PRELOAD_LINKED_H
#define REMAT_PRELOAD_LINKED_H

#include <stdbool.h>

/* Looks through the libraries in the process that need the driver or NCCL, those that it has not seen yet. What a constructor called before is not noted. False:
 * another thread is looking; it is not waited for, since it may wait for the loader, and the loader for this thread (a constructor). */
bool linked_look(void);

#endif
