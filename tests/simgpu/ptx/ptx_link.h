/* After the whole text was read: shared memory gets its places, and each kernel what it says of itself. Leaves by ptx_lex_fail. */
#ifndef SIMGPU_PTX_LINK_H
#define SIMGPU_PTX_LINK_H

#include "tests/simgpu/ptx/ptx_parse.h"

enum { PTX_STACK_UNKNOWN = 16 << 10 /* local memory of a thread whose calls go in circles or through pointers */ };
void ptx_link(struct ptx_parse *P);

#endif
