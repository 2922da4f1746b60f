/* host.h: how much pinned host memory this process may take.
 *
 * The bytes that can be had are the least of what the machine could give without swapping and of what each memory cgroup on this
 * process's path still allows (v1 and v2, nested: a child's limit is void where its parent's is lower). Pinned memory is never
 * given back under pressure, so taking more gets a process killed. With
 *     F  bytes that can be had now        R  bytes that remat processes have pinned already, this one's and the others'
 * the processes together may pin at most half of what there would be without them:
 *     R + bytes  <=  (F + R) / 2
 * so the order in which they come does not matter, and none needs to know how many there are. A size that the user has named
 * (--host-swap) is taken instead of the half, but never more than F less HOST_RESERVE.
 *
 * Depends on the C library alone. Threads: under the engine's mutex. Errors: none; a file that cannot be read does not limit.
 */
#ifndef REMAT_POLICY_HOST_H
#define REMAT_POLICY_HOST_H

#include <stdint.h>

enum { HOST_RESERVE = 64 << 20 };

/* F. `root` is put before the name of every file: "" but in tests. */
uint64_t host_free_bytes(const char *root);
/* R without this process: bytes that other living processes of this user have published (status.h). */
uint64_t host_others_bytes(void);
/* Bytes that this process may have pinned in all. `own`: bytes it has pinned; `named`: the user's size, 0 none. */
uint64_t host_cap_of(uint64_t free_bytes, uint64_t own, uint64_t others, uint64_t named);

#endif
