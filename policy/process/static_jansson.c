/* Debian builds libjansson.a position-independent for executables only: its one reference to libc's `stdin` (to compare
 * a stream with) cannot stand in a shared library. The link gives it this object instead; nothing here reads streams. */
#include "policy/process/static_jansson.h"

FILE *remat_no_stdin;
