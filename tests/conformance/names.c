/* names.c: a libcuda.so.1 of names alone, for linking walk.c the way -lcuda links a program. Its functions do nothing and are
 * weak: names_get.c puts a real cuGetProcAddress in their place.
 */
#include "preload/hooks.def"

#define H(sym, ...)                                                                                                    \
    int sym(void);                                                                                                     \
    __attribute__((weak)) int sym(void)                                                                                \
    {                                                                                                                  \
        return 0;                                                                                                      \
    }
HOOKS_CUDA(H)
