/* Which of OpenBLAS's kernels multiply. OpenBLAS asks OPENBLAS_CORETYPE, and else its list of processors: on one that is newer than the list
 * it takes what a processor of 2004 can do, five times slower. So where the environment says nothing it hears of Haswell wherever AVX2 and FMA
 * are there; and all such machines then give the same bits. Its getenv() is ours (--wrap=getenv in blas.mk). */
#include <stdlib.h>
#include <string.h>

char *__real_getenv(const char *name);
char *__wrap_getenv(const char *name);

char *__wrap_getenv(const char *name)
{
    static char haswell[] = "Haswell";
    char *said = __real_getenv(name);
#ifdef __x86_64__
    __builtin_cpu_init(); /* OpenBLAS asks in a constructor */
    if (!said && !strcmp(name, "OPENBLAS_CORETYPE") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return haswell;
#endif
    return said;
}
