/* scope_a.c: a library opened privately (RTLD_LOCAL) that looks names up from where it stands: behind itself, and in its own
 * scope, which holds scope_b. glibc answers by the caller's address; the doors must not lose it.
 */
#include <dlfcn.h>

int scope_answer(void);
int scope_answer(void)
{
    return 'a';
}

int scope_next(void);
int scope_next(void)
{
    int (*f)(void) = (int (*)(void))dlsym(RTLD_NEXT, "scope_answer");
    int r = f ? f() : -1;
    return r; /* after the call: a tail call of dlsym would change who asks */
}

int scope_default(void);
int scope_default(void)
{
    int (*f)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "scope_only_b");
    int r = f ? f() : -1;
    return r;
}
