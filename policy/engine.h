/* engine.h: the runtime behind the doors: work, notes; allocations.h memory, reach.h copies and what must stay, answers.h questions, life.h start
 * and end, active.h whether remat is active at all. `preload` translates a driver call into one of these calls; the engine
 * answers it in full, makes the real driver calls itself, and returns what the program is to see.
 *
 * Threads: any thread may call; one mutex per process is held inside (uncontended in ordinary training). No engine
 * function calls back into a hook: it only uses the table of eng_start().
 * Errors: functions of type `int` return the driver's result code for the program (0: CUDA_SUCCESS), because what they
 * answer is a driver call. Where its own bookkeeping is wrong the engine says so once on stderr, and relies on that no longer
 * (process/check.h).
 * Streams: the doors hand over explicit handles: CU_STREAM_LEGACY (0x1) or CU_STREAM_PER_THREAD (0x2) for a NULL
 * stream, by the variant that was called.
 */
#ifndef REMAT_POLICY_ENGINE_H
#define REMAT_POLICY_ENGINE_H

#include "policy/active.h"
#include "policy/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- work ----------------------------------------------------------------------------------------------------- */

int eng_launch(const struct eng_kernel *k);

int eng_memset(const struct eng_memset *m);

/* Any other call that touches device memory (2D/3D copies, stream memory operations, graph launches, host functions,
 * collectives). The engine makes the touched memory resident, calls issue(ctx), and records an op that is never
 * replayed. `touch` may be empty. */
int eng_other(const char *name, CUstream stream, struct eng_touch *touch, unsigned n_touch, int (*issue)(void *ctx), void *ctx);

/* ---- notes from the doors -------------------------------------------------------------------------------------- */

/* `k` came from cuLibraryGetKernel or its kin: parameter questions go to cuKernelGetParamInfo. */
void eng_note_kernel(CUkernel k);
/* A module or library has been loaded (the other one is NULL) from an image in memory, or from a file: its code gets an identity that holds in other
 * runs too, if possible (op/code.h). The file is looked at before and after the load: if the looks differ, what was loaded is unknown. */
struct eng_file {
    uint64_t w[2];
    bool known;
};
struct eng_file eng_file_code(const char *path);
void eng_note_file(CUmodule module, CUlibrary library, const char *path, const struct eng_file *before);
void eng_note_image(CUmodule module, CUlibrary library, const void *image);
/* The program asks by name for a variable of the module or library. */
void eng_note_variable(CUmodule module, CUlibrary library);
/* A module or library was unloaded: handles may be reused for other functions. */
void eng_note_unload(void);
/* Before cuModuleUnload of `module`, or cuLibraryUnload of `library` (the other one is NULL): values that remat could make again only with its
 * kernels are made now. */
void eng_before_unload(CUmodule module, CUlibrary library);
/* A stream was created with these flags. */
void eng_note_stream(unsigned flags);
/* Before cuStreamDestroy of `stream`. */
void eng_stream_destroyed(CUstream stream);
/* Everything live becomes unevictable. As for eng_pin(), a refusal is the door's answer. */
int eng_pin_everything(void);
/* Before cuStreamBeginCapture: as eng_pin_everything(), since the graph may run at any time; and nothing moves until the capture ends. */
int eng_capture_begins(CUstream stream);
/* The capture has begun. */
void eng_capture_began(CUstream stream);
/* The capture has ended, or never began. */
void eng_capture_ends(CUstream stream);
/* Whether any capture is under way: a relaxed read. */
bool eng_capture_under_way(void);
/* Before cuStreamWaitEvent: if the event was recorded in a capture, the stream's device comes into the capture (*joins), as if a capture began on it;
 * eng_capture_joined() is then to be called after the wait. */
int eng_capture_joins(CUstream stream, CUevent event, bool *joins);
void eng_capture_joined(CUstream stream);
/* The program makes a context of its own: while that exists, the device's memory outlives other contexts. */
void eng_note_context(CUcontext ctx, CUdevice dev);
/* How often a context of the program's own is attached, its making included, after adding `more` (0, 1, -1); 0: not such a context. */
int engine_context_attached(CUcontext ctx, int more);
/* The device of a context; -1: the driver does not say. */
CUdevice engine_context_device(CUcontext ctx);
/* Around a driver call that may end a context (the last release of a primary one, a destruction), eng_context_gone() included: no thread of remat's
 * works in a context in the meantime. */
void eng_ending_begins(void);
void eng_ending_is_over(void);
/* This context is about to be destroyed, and has been destroyed (primary context reset or last release, context destroy). A device that
 * was set up in it, and has no other, ends, and begins anew with the next one. */
void eng_context_ends(CUcontext ctx);
void eng_context_gone(CUcontext ctx, bool was_primary);

#endif
