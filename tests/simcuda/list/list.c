/*
 * list_kernels LIBRARY CATALOGUE [ARCH]: every kernel in a library's fat binaries, a line each:
 *   bound | functor | template | sizes   total bytes   sizes of the parameters   demangled name
 * "bound": the catalogue has it; "template": no entry, "functor": an entry, but not for this functor or type, "sizes": an entry
 * that expects other parameters. The last line counts. So it is seen what a version of PyTorch has that the catalogue has not,
 * and where structs differ between versions, without running anything.
 *
 * Errors: one line on stderr; exit 2 for wrong arguments, 1 for a library or catalogue that cannot be read.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simcuda/catalogue.h"
#include "tests/simgpu/gpu_cubin.h"
#include "tests/simgpu/gpu_fatbin.h"

static const char *verdict(int e)
{
    return e == 0 ? "bound" : e == -EPROTO ? "sizes" : e == -ENOSYS ? "functor" : "template";
}

static void show(const struct catalogue_info *info, const struct gpu_cubin *cubin, unsigned i, unsigned long *bound)
{
    const struct gpu_cubin_kernel *k = &cubin->kernels[i];
    struct catalogue_kernel ck = { .name = k->name, .n_params = k->n_params, .offset = k->offset, .bytes = k->bytes,
                                   .param_bytes = k->param_bytes, .max_threads = k->max_threads,
                                   .static_shared_bytes = k->static_shared_bytes, .registers = k->registers, .arch = cubin->arch,
                                   .beside = cubin->names, .n_beside = cubin->n_kernels };
    struct catalogue_binding b;
    static char text[1 << 16];
    int e = info->find(&ck, &b);
    *bound += e == 0;
    info->describe(k->name, text, sizeof text);
    printf("%s\t%u\t", verdict(e), k->param_bytes);
    for (unsigned j = 0; j < k->n_params; j++) printf("%s%u", j ? "," : "", k->bytes[j]);
    printf("\t%s\n", text);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: list_kernels LIBRARY CATALOGUE [ARCH]\n");
        return 2;
    }
    unsigned arch = argc > 3 ? (unsigned)atoi(argv[3]) : 80;
    void *so = dlopen(argv[2], RTLD_NOW);
    const struct catalogue_info *info = so ? dlsym(so, CATALOGUE_SYMBOL) : NULL;
    if (!info || info->abi != CATALOGUE_ABI) {
        fprintf(stderr, "list_kernels: %s: %s\n", argv[2], so ? "no catalogue of this version" : dlerror());
        return 1;
    }
    int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    struct stat st;
    unsigned char *file = MAP_FAILED;
    if (fd >= 0 && !fstat(fd, &st) && st.st_size > 16) file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED) {
        fprintf(stderr, "list_kernels: %s: cannot be read\n", argv[1]);
        return 1;
    }
    unsigned long n = 0, bound = 0;
    for (off_t at = 0; at + 16 < st.st_size; at += 8) {
        if (!gpu_fatbin_is(file + at)) continue;
        size_t bytes = gpu_fatbin_bytes(file + at);
        if (bytes < 16 || bytes > (size_t)(st.st_size - at)) continue;
        struct gpu_fatbin_code code = { 0 };
        struct gpu_cubin cubin;
        char why[256];
        if (gpu_fatbin_pick(file + at, bytes, arch, &code, why, sizeof why)) continue;
        /* never freed: what is bound keeps names and sizes */
        if (!gpu_cubin_read(code.bytes, code.n_bytes, &cubin, why, sizeof why))
            for (unsigned i = 0; i < cubin.n_kernels; i++, n++) show(info, &cubin, i, &bound);
        free(code.owned);
        at += (off_t)(bytes / 8 * 8) - 8;
    }
    printf("%lu of %lu kernels are in the catalogue\n", bound, n);
    return n == 0;
}
