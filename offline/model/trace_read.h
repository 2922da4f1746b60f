/* trace_read.h: opgraph-1 files as graphs. Threads and errors: as graph.h says. */
#ifndef REMAT_OFFLINE_TRACE_READ_H
#define REMAT_OFFLINE_TRACE_READ_H

#include "offline/model/graph.h"

/* Read an opgraph-1 file. On success *out is the caller's (graph_free). Every count, id and size is checked:
 * an id out of range, a negative size or time, an operand listed twice, a buffer used before it is born
 * or after it dies, a `born` that is not the first op that writes the buffer: each is -EINVAL with the
 * place in err. -ENOENT etc. for files that cannot be opened, -ENOMEM. */
int trace_read(const char *path, struct graph **out, char *err, size_t err_len);

/* The same from memory; name stands for the path in messages. Used by fuzzing. */
int trace_read_text(const char *name, const char *text, size_t len, struct graph **out, char *err, size_t err_len);

#endif
