/* static_jansson.h: the object that stands for libc's `stdin` in the static libjansson; see static_jansson.c. Named by the Makefile alone.
 *
 * Threads: any. Errors: none.
 */
#ifndef REMAT_POLICY_PROCESS_STATIC_JANSSON_H
#define REMAT_POLICY_PROCESS_STATIC_JANSSON_H

#include <stdio.h>

extern FILE *remat_no_stdin;

#endif
