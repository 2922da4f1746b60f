/* site.h: the call site of the call at hand: frames, innermost first, separated by " < ". Frames of C ("symbol" or "library+0x12") up to
 * the first of the Python interpreter's, then the lines of Python ("path.py:LINE function", see pyframe.h).
 *
 * libunwind walks the stack. The library is loaded when first needed, and privately: nothing else in the process sees its symbols, for it
 * has _Unwind_* functions of its own, which must never take the place of those that exceptions go through. If libunwind is not
 * installed, the compiler's own unwinder, which is part of this library, walks instead.
 *
 * Cost: tens of microseconds, so only for the ops of an iteration that is learnt. Threads: any. Errors: NULL.
 */
#ifndef REMAT_TRACER_SITE_H
#define REMAT_TRACER_SITE_H

/* The call site as text, which the caller frees. */
char *site_here(void);
/* The unwinder's name: "libunwind", or "the compiler's unwinder" with the reason in *why (else NULL). */
const char *site_unwinder(const char **why);

#endif
