/* portable_streams.c: stdin, stdout and stderr for archives that were compiled for executables (CBC's, bzip2's). A shared object cannot be linked from
 * code that reads `stdout` where an executable would have a copy of the variable: such code gets a variable of the shared object's own, filled when it is
 * loaded (-Wl,--defsym=stdout=portable_stdout).
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

FILE *portable_stdin, *portable_stdout, *portable_stderr;

__attribute__((constructor)) static void take_streams(void)
{
    static const struct {
        const char *name;
        FILE **to;
    } streams[] = { { "stdin", &portable_stdin }, { "stdout", &portable_stdout }, { "stderr", &portable_stderr } };
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        FILE **of = dlsym(RTLD_DEFAULT, streams[i].name);
        *streams[i].to = of ? *of : NULL;
    }
}
