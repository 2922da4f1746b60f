/* pyframe.h: the lines of Python that the calling thread is in, read from the interpreter's own frames.
 *
 * No function of the interpreter is called but PyGILState_GetThisThreadState(), which only looks up a thread-local value. Reading works
 * with and without the interpreter's lock, which may not be taken here (another thread may hold it and wait for a lock of remat's).
 * A thread's frames, their code objects and the names in them do not change while it is in C code, so reading them needs no lock.
 *
 * Offsets of fields: CPython 3.13 and later publish them at the start of _PyRuntime; for 3.11 and 3.12, which do not, the offsets are
 * built in (64-bit machines, ordinary builds). Other versions give no lines. Addresses are not trusted: the kernel checks every read
 * (process_vm_readv), and an object counts only if it has the expected type. An interpreter with another layout gives no lines, and
 * never a crash.
 *
 * Threads: any. Errors: 0 lines.
 */
#ifndef REMAT_TRACER_PYFRAME_H
#define REMAT_TRACER_PYFRAME_H

#include <stdbool.h>
#include <stddef.h>

/* "path.py:LINE function < path.py:LINE function", innermost first, as many as fit, zero-terminated. The bytes written; 0: this
 * thread is in no Python, or in one that cannot be read. */
size_t pyframe_lines(char *out, size_t room);
/* Whether this thread's innermost Python function is `name`. *value: its first argument; 1 if that is no float. */
bool pyframe_argument(const char *name, double *value);
/* Whether the code at this address belongs to the interpreter itself (libpython, or a program that contains it). */
bool pyframe_is_interpreter(const void *code);

#endif
