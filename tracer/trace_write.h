/* trace_write.h: a record as an opgraph-1 file. Any thread; 0 or a negative errno. */
#ifndef REMAT_TRACER_TRACE_WRITE_H
#define REMAT_TRACER_TRACE_WRITE_H

#include "tracer/record.h"

/* Writes opgraph-1. `page_bytes` > 1: sizes as the planner of this device must see them: large buffers rounded up to multiples of it,
 * small ones and memory that is never managed as 0 bytes. 1: the user's own file, which no other process of the run writes
 * over (output.h, OUTPUT_RUN). 0 or a negative errno. */
int record_write(const struct record *r, const char *path, uint64_t page_bytes);

#endif
