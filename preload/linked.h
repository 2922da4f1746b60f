/* linked.h: direct linking, for names that this library does not export: a program that is linked with the driver or with NCCL refers to a call that no
 * table has (cuMemAlloc_v3), and the loader has bound the reference past the doors. The word that holds the call's address gets the net's stub (net.h), so
 * that the call is noted when it is made; being linked tells nothing: PyTorch is linked with all of NCCL.
 *
 * Threads: any; asks the loader: not with the engine's mutex held. Errors: none; a reference that cannot be written, or is one too many to be noted, stays as it is.
 */
#ifndef REMAT_PRELOAD_LINKED_H
#define REMAT_PRELOAD_LINKED_H

#include <stdbool.h>

/* Looks through the libraries in the process that need the driver or NCCL and are not looked through yet. Calls that a constructor made before are not noted. False: another
 * thread is looking. This thread does not wait, since the other may wait for the loader, which this thread may hold (in a constructor). */
bool linked_look(void);

#endif
