/* dmem.h: what the kernel lets this process have of a device: the cgroup controller `dmem` (Linux 6.14 or newer; NVIDIA's
 * driver registers its memory there from CUDA 13.4 on, and enforces dmem.max itself).
 *
 * The files, one line a region ("nvidia/0000:3b:00.0/vidmem 8589934592", or "max"), in the process's cgroup and each above it:
 *   dmem.max      hard: an allocation above it fails
 *   dmem.min      soft: up to here the memory is the group's own; above, it is borrowed, and may be asked back
 *   dmem.low      the same, as a best effort
 *   dmem.current  in use by the whole group, contexts and code included
 *
 * Threads: any; reads files, keeps nothing. Errors: a file that is not there or not readable says nothing.
 */
#ifndef REMAT_TRACER_DMEM_H
#define REMAT_TRACER_DMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DMEM_NONE UINT64_MAX

struct dmem {
    uint64_t max_bytes;  /* the smallest on the way to the root; DMEM_NONE: none */
    uint64_t room_bytes; /* what is left below it: the smallest max - current on the way; DMEM_NONE */
    uint64_t soft_bytes; /* dmem.min, else dmem.low, of the process's own cgroup; 0: none */
    char from[256];      /* the file that set max_bytes, else the one that set soft_bytes; "" */
};

/* The folder of this process's cgroup (version 2), e.g. /sys/fs/cgroup/user.slice; the variable REMAT_CGROUP names another one to
 * read (for trying things out: the kernel's limits hold whatever is read here). -ENOENT: there is none. */
int dmem_folder(char *out, size_t room);
/* The limits on the device of this PCI address ("0000:3b:00.0", any case; the domain may have four or eight digits). */
void dmem_read(const char *folder, const char *pci, struct dmem *out);
/* True when the controller is there for this cgroup. */
bool dmem_present(const char *folder);

#endif
