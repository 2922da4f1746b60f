/* site.h: who made the call at hand. Unwinds the stack; used in the probed iteration only.
 * Threads: any. Errors: NULL. */
#ifndef REMAT_TRACER_SITE_H
#define REMAT_TRACER_SITE_H

/* The innermost callers outside this library, innermost first: "name+0x12 < name < ...". The caller frees it. */
char *site_here(void);

#endif
