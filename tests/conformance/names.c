/* names.c: a libcuda.so.1 of names alone, for linking walk.c the way -lcuda links a program. Never run. */
#include "preload/hooks.def"

#define H(sym, ...)                                                                                                    \
    void sym(void);                                                                                                    \
    void sym(void)                                                                                                     \
    {                                                                                                                  \
    }
HOOKS_CUDA(H)
