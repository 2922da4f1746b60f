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

/* A launch is given memory that the host writes, or addresses that are no operands: what these, and those there, point at stays in
 * memory from now on. A refusal is the launch's answer. */
int reach_follow_drv(struct device *d, const struct rt_op *op);
/* Where another device holds this memory it stays in memory from now on: what is queued here is not in its fences. */
int reach_keep_others_drv(struct device *d, CUdeviceptr ptr, bool writes);
/* The host can look there: no memory of a device, or managed. Device memory may be given where a call is named for host memory, and
 * the other way round. */
bool reach_host_reads(CUdeviceptr at);
/* A fill or a copy is about to write at `at`, in a buffer that we know or not. */
void reach_writes_unknown(struct device *d, CUdeviceptr at);
/* Everything that is live stays in memory from now on. */
int reach_pin_all_drv(struct device *d);
/* As a call of the program's that can begin again: a plan in force is left for the reason `why`, and everything that is live stays. */
int reach_all_stays_drv(struct device *d, const char *why);
/* Memory just allocated stays in memory where an address that was copied to the device earlier points into it. */
int reach_reached_drv(struct device *d, struct slot *s);

/* Memory is about to be given back: what eng_note_in_place() and eng_note_outside() have said of this address does not hold any more, before another
 * thread may be given it. Bytes of each; reach_noted_again(): the driver has refused. */
struct reach_noted {
    uint64_t in_place, outside;
};
struct reach_noted reach_forget(CUdeviceptr p);
void reach_noted_again(CUdeviceptr p, struct reach_noted was);

/* ---- doors -------------------------------------------------------------------------------------------------------------- */

int eng_copy(const struct eng_copy *c);
/* Before a call by which the driver keeps the host until `stream` has come to it: a copy that is synchronous, or that goes to host memory
 * which is not pinned (dst_host; NULL: it does not go to the host). The host waits here, with the mutex free: what the stream waits for
 * may be another thread's next call. */
void eng_before_host_copy(CUstream stream, const void *dst_host, bool sync);
/* cuMemcpy, cuMemcpyAsync (unified addresses): tells whether ptr is device memory. Managed and counted ranges are known
 * without asking the driver. */
bool eng_is_device_pointer(CUdeviceptr ptr);
/* The address lies where managed memory is, or will be: nobody's mappings but ours. */
bool eng_is_managed(CUdeviceptr ptr);
/* These bytes of host memory are about to be written at dst by a call that is no eng_copy(): addresses among them keep what they point at
 * in memory. As for eng_pin(), a refusal is the door's answer. */
int eng_note_host_data(CUdeviceptr dst, const void *src, size_t bytes);
/* Memory that something outside our sight may use from now on (IPC, export, peer access, textures, NCCL
 * buffers): made resident and never evicted again. `bytes` 0: the whole allocation. Where no room can be made for it, the
 * driver's out-of-memory code: the door must give that answer and not make its call. */
int eng_pin(CUdeviceptr ptr, size_t bytes, const char *why);
/* The program has pinned or registered host memory, or been given managed memory: kernels may find addresses there, which the host writes
 * without a call. eng_note_pinned(): the same for host memory of which eng_forget_in_place() is told. eng_forget_in_place(): it is about to go; its
 * bytes, 0: it was not known. */
void eng_note_in_place(CUdeviceptr p, size_t bytes);
void eng_note_pinned(CUdeviceptr p, size_t bytes);
size_t eng_forget_in_place(CUdeviceptr p);
/* Memory that is neither stream-ordered nor counted by its address lies there, or will (memory/in_place.h, in_place_outside): the program has
 * reserved the addresses to map memory at, opened them from another process, imported or mapped them. `bytes` 0: as many as the driver says. */
void eng_note_outside(CUdeviceptr p, size_t bytes);
/* These addresses are about to be given back; bytes that were noted there. */
size_t eng_forget_outside(CUdeviceptr p);
/* Memory of another process has been closed, as often as it was opened or less often: it stays noted while the driver knows it. */
void eng_closed_outside(CUdeviceptr p);
/* Something that no operand shows may write memory from now on: a graph is about to be launched, another device's kernels get access. Replays
 * rely on no memory of the program's own any more (cuMemAlloc, say), on any device. `why` is kept: a constant. */
void eng_unconfined(const char *why);
/* A tensor map was made at `map` for the memory at ptr; `shape` (NULL: unknown) is one for another place that is like it in all else.
 * A launch that is given a copy of it uses that memory from then on. Where the map lies in memory that a device can read, or cannot
 * be remembered, the memory is pinned instead: as for eng_pin(). */
int eng_note_tensor_map(const CUtensorMap *map, CUdeviceptr ptr, const CUtensorMap *shape);
/* A texture or a surface has been made with this handle, or is about to go: a launch that holds it is not run again. */
void eng_reach_texture_made(uint64_t handle);
void eng_reach_texture_gone(uint64_t handle);
/* Before a texture or surface reference is bound: any launch may use it. */
void eng_reach_texture_bound(void);
/* The place that a map was noted for; 0: it is not known. */
CUdeviceptr eng_tensor_map_at(const CUtensorMap *map);

#endif
