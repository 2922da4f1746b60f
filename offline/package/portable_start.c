/* portable_start.c: an executable's start where glibc is older than 2.34. There crt1.o brought the function that calls constructors and handed it to
 * __libc_start_main(); today's crt1.o hands over none, since libc calls them, and on an old one they would never run. Linked with
 * -Wl,--wrap=__libc_start_main; a libc of today calls what it is handed, once, as for any old program.
 */
typedef int main_function(int, char **, char **);
typedef void init_function(int, char **, char **);

extern init_function *__preinit_array_start[] __attribute__((visibility("hidden"))), *__preinit_array_end[] __attribute__((visibility("hidden")));
extern init_function *__init_array_start[] __attribute__((visibility("hidden"))), *__init_array_end[] __attribute__((visibility("hidden")));
void _init(void) __attribute__((visibility("hidden")));

int __real___libc_start_main(main_function *, int, char **, init_function *, void (*fini)(void), void (*loader_fini)(void), void *);
int __wrap___libc_start_main(main_function *, int, char **, init_function *, void (*fini)(void), void (*loader_fini)(void), void *);

static void constructors(int argc, char **argv, char **envp)
{
    for (init_function **f = __preinit_array_start; f < __preinit_array_end; f++)
        (*f)(argc, argv, envp);
    _init();
    for (init_function **f = __init_array_start; f < __init_array_end; f++)
        (*f)(argc, argv, envp);
}

/* Destructors: the loader calls these itself, at exit, in every glibc (DT_FINI_ARRAY). */
int __wrap___libc_start_main(main_function *main, int argc, char **argv, init_function *init, void (*fini)(void), void (*loader_fini)(void), void *stack)
{
    return __real___libc_start_main(main, argc, argv, init ? init : constructors, fini, loader_fini, stack);
}
