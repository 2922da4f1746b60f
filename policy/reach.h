/* reach.h: memory that is reached otherwise than through the arguments of a launch: it stays where it is. And copies, which may carry addresses to the
 * device. The eng_ functions are doors: see engine.h.
 *
 * Threads: eng_: any; engine_: under engine_lock(). Errors: the driver's code for the program.
 */
#ifndef REMAT_POLICY_REACH_H
#define REMAT_POLICY_REACH_H

#include "policy/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct rt_op;
struct slot;

/* A launch is given memory that the host writes, or packed addresses that are no operands: buffers that these addresses, or addresses in that
 * memory, point at stay in memory from now on. A refusal is the launch's answer. */
int reach_follow_drv(struct device *d, const struct rt_op *op);
/* The buffer at ptr, if another device holds it, stays in memory from now on: work queued on `d` is not in that buffer's fences. */
int reach_keep_others_drv(struct device *d, CUdeviceptr ptr, bool writes);
/* The host can read at `at`: no device memory, or CUDA's managed memory. Programs may give device memory to a call named for host memory, and
 * the other way round. */
bool reach_host_reads(CUdeviceptr at);
/* A fill or a copy is about to write at `at`, in a known buffer or elsewhere. */
void reach_writes_unknown(struct device *d, CUdeviceptr at);
/* Everything that is live stays in memory from now on. */
int reach_pin_all_drv(struct device *d);
/* For a call of the program's that can begin again: a plan in force is left for the reason `why`, and everything that is live stays. */
int reach_all_stays_drv(struct device *d, const char *why);
/* The newly allocated slot s stays in memory if an address that was copied to the device earlier points into it. */
int reach_reached_drv(struct device *d, struct slot *s);

/* Memory at p is about to be given back: forgets what eng_note_in_place() and eng_note_outside() have noted of it, before another thread may be
 * given the address. Bytes of each note; reach_noted_again(): the driver has refused, and both notes hold again. */
struct reach_noted {
    uint64_t in_place, outside;
};
struct reach_noted reach_forget(CUdeviceptr p);
void reach_noted_again(CUdeviceptr p, struct reach_noted was);

/* ---- doors -------------------------------------------------------------------------------------------------------------- */

int eng_copy(const struct eng_copy *c);
/* Before a call by which the driver keeps the host until `stream` has come to it: a copy that is synchronous, or that goes to host memory
 * which is not pinned (dst_host; NULL: it does not go to the host). The host waits here, with the mutex free: the stream may be waiting
 * for another thread's next call. */
void eng_before_host_copy(CUstream stream, const void *dst_host, bool sync);
/* cuMemcpy, cuMemcpyAsync (unified addresses): tells whether ptr is device memory. Managed and counted ranges are known
 * without asking the driver. */
bool eng_is_device_pointer(CUdeviceptr ptr);
/* The address lies in the reservation for managed memory, where only remat maps. */
bool eng_is_managed(CUdeviceptr ptr);
/* These bytes of host memory are about to be written at dst by a call that is no eng_copy(): buffers that addresses among them point at
 * stay in memory. As for eng_pin(), a refusal is the door's answer. */
int eng_note_host_data(CUdeviceptr dst, const void *src, size_t bytes);
/* Memory that something outside remat's sight may use from now on (IPC, export, peer access, textures, NCCL
 * buffers): made resident and never evicted again. `bytes` 0: the whole allocation. Where no room can be made for it, the
 * driver's out-of-memory code: the door must give that answer and not make its call. */
int eng_pin(CUdeviceptr ptr, size_t bytes, const char *why);
/* The program has pinned or registered host memory, or been given managed memory: kernels may find addresses there, which the host writes
 * without a call. eng_note_pinned(): the same for host memory whose end eng_forget_in_place() will tell. eng_forget_in_place(): the memory at p is about to
 * go; its bytes, 0: not known. */
void eng_note_in_place(CUdeviceptr p, size_t bytes);
void eng_note_pinned(CUdeviceptr p, size_t bytes);
size_t eng_forget_in_place(CUdeviceptr p);
/* Memory that is neither stream-ordered nor counted by its address lies at p, or will (memory/in_place.h, in_place_outside): the program has
 * reserved the addresses to map memory at, opened them from another process, imported or mapped them. `bytes` 0: as many as the driver says. */
void eng_note_outside(CUdeviceptr p, size_t bytes);
/* The addresses at p are about to be given back. Returns the bytes that were noted. */
size_t eng_forget_outside(CUdeviceptr p);
/* The program has closed memory of another process, as often as it opened it or less often: the memory stays noted while the driver knows it. */
void eng_closed_outside(CUdeviceptr p);
/* Something that no operand shows may write memory from now on: a graph is about to be launched, another device's kernels get access. Replays
 * rely on no memory of the program's own any more (cuMemAlloc, say), on any device. `why` is kept: a constant. */
void eng_unconfined(const char *why);
/* A tensor map was made at `map` for the memory at ptr; `shape` (NULL: unknown) is one for another place that is like it in all else.
 * A launch that is given a copy of the map uses that memory from then on. Where the map lies in memory that a device can read, or cannot
 * be remembered, the memory is pinned instead: as for eng_pin(). */
int eng_note_tensor_map(const CUtensorMap *map, CUdeviceptr ptr, const CUtensorMap *shape);
/* A texture or a surface has been made with this handle, or is about to go: a launch with the handle in its arguments is not run again. */
void eng_reach_texture_made(uint64_t handle);
void eng_reach_texture_gone(uint64_t handle);
/* Before a texture or surface reference is bound: any launch may use it. */
void eng_reach_texture_bound(void);
/* The place that a map was noted for; 0: the map is not known. */
CUdeviceptr eng_tensor_map_at(const CUtensorMap *map);

#endif
