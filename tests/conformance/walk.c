/* walk.c: takes every entry point of hooks.def by every route and says in which library the answer lies.
 *
 *   walk doors LIB     under LD_PRELOAD=.../LIB: every answer lies in LIB, and a route's variant is exactly the row's
 *   walk bare          without it: every answer lies in the driver (or there is none where the driver lacks the call)
 *   walk nodriver      no driver in the process: no route finds one, whether the doors are there or not
 *   walk scope LIB_A   lookups from inside a privately opened library get glibc's own answers
 *   walk cudart LIB    makes NVIDIA's runtime library LIB look for the driver; how far it gets is not judged
 *   walk late LIB      the library LIB calls cuInit with no driver in the process yet; prints the result
 *   walk rows          prints the table: symbol, base, since, flavour
 *
 * The driver is opened as libcuda.so.1, or is in the process already (then direct references are looked at too).
 * Exit status: 0, 1 after one line a deviation (the first few), 77 when there is no driver to open.
 */
#include "preload/abi_extra.h"
#include "preload/hooks.def"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Direct references, as a program linked with -lcuda has them; weak, since not every driver has every call. */
#define H(sym, ...) extern __typeof__(sym) sym __attribute__((weak));
HOOKS_CUDA(H)
#undef H

enum mode { PLAIN, LEGACY, THREAD };
static const struct row {
    const char *symbol, *base;
    int since;
    enum mode mode;
    void *direct;
} rows[] = {
#define H(sym, base, since, mode, body, params, args) {#sym, base, since, mode, (void *)sym},
    HOOKS_CUDA(H)
#undef H
};
enum { ROWS = sizeof rows / sizeof rows[0] };

enum { MAX_LINES = 20 };
static int failures, checked;
static const char *expected; /* file name every answer must lie in */

static const char *library_of(const void *p)
{
    Dl_info info;
    if (!p)
        return "nowhere";
    if (!dladdr(p, &info) || !info.dli_fname)
        return "unknown";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static void expect_in(const char *route, const char *symbol, const void *p, const char *file)
{
    checked++;
    if (strncmp(library_of(p), file, strlen(file)) == 0)
        return;
    if (failures++ < MAX_LINES)
        printf("%s of %s lies in %s, not in %s\n", route, symbol, library_of(p), file);
}

static void expect_same(const char *route, const char *symbol, const void *p, const void *q)
{
    checked++;
    if (p == q)
        return;
    if (failures++ < MAX_LINES)
        printf("%s of %s is another variant than its name says\n", route, symbol);
}

typedef CUresult get_v1(const char *, void **, int, cuuint64_t);
typedef CUresult get_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* Rows that the newest question for their name and stream flavour does not reach, at their own version, must still be told
 * apart: the version asked is the row's own. */
static void walk_proc_address(void *lib, const char *getter, int with_status)
{
    void *fn = dlsym(lib, getter);
    if (!fn)
        return;
    for (int i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        void *by_name = dlsym(lib, r->symbol), *p = NULL;
        cuuint64_t flags = r->mode == THREAD ? 2 : r->mode == LEGACY ? 1 : 0;
        CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)99;
        CUresult rc = with_status ? ((get_v2 *)fn)(r->base, &p, r->since, flags, &status)
                                  : ((get_v1 *)fn)(r->base, &p, r->since, flags);
        if (rc != CUDA_SUCCESS || !p || !by_name)
            continue; /* this driver does not have it, by this route or at all */
        expect_in(getter, r->symbol, p, expected);
        expect_same(getter, r->symbol, p, by_name);
        if (with_status && (int)status != 0) {
            failures++;
            printf("%s of %s: status %d although found\n", getter, r->symbol, (int)status);
        }
    }
    /* names that are no hooks, or no names */
    static const char *const foreign[] = {"cuGetExportTable", "cuDriverGetVersion", "cuGetErrorString"};
    for (unsigned i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        void *p = NULL;
        CUdriverProcAddressQueryResult status;
        CUresult rc = with_status ? ((get_v2 *)fn)(foreign[i], &p, 12000, 0, &status)
                                  : ((get_v1 *)fn)(foreign[i], &p, 12000, 0);
        if (rc == CUDA_SUCCESS && p)
            expect_in(getter, foreign[i], p, "libcuda.so");
    }
    void *p = (void *)1;
    CUdriverProcAddressQueryResult status;
    if (with_status)
        ((get_v2 *)fn)("", &p, 12000, 0, &status);
    else
        ((get_v1 *)fn)("", &p, 12000, 0);
    if (p && p != (void *)1) {
        failures++;
        printf("%s of the empty name answers %p\n", getter, p);
    }
}

static int walk(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int in_process = lib != NULL;
    if (!lib)
        lib = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!lib) {
        puts("walk: no libcuda.so.1 to open");
        return 77;
    }
    int present = 0;
    for (int i = 0; i < ROWS; i++) {
        void *p = dlsym(lib, rows[i].symbol);
        if (!p)
            continue;
        present++;
        expect_in("dlsym", rows[i].symbol, p, expected);
        if (in_process) {
            expect_in("a direct reference", rows[i].symbol, rows[i].direct, expected);
            expect_same("dlsym(RTLD_DEFAULT)", rows[i].symbol, dlsym(RTLD_DEFAULT, rows[i].symbol), p);
        }
    }
    static const char *const others[] = {"cuGetExportTable", "cuGetErrorString", "cuEventRecord"};
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++)
        if (dlsym(lib, others[i]))
            expect_in("dlsym", others[i], dlsym(lib, others[i]), "libcuda.so");
    walk_proc_address(lib, "cuGetProcAddress", 0);
    walk_proc_address(lib, "cuGetProcAddress_v2", 1);
    printf("walk: %d of %d entry points in this driver, %d answers looked at, %d wrong\n", present, ROWS, checked, failures);
    return failures != 0;
}

/* Loading the doors must not make a driver appear. */
static int nodriver(void)
{
    void *self = dlopen(NULL, RTLD_LAZY);
    for (int i = 0; i < ROWS; i++) {
        dlerror();
        void *a = dlsym(RTLD_DEFAULT, rows[i].symbol);
        int explained = dlerror() != NULL;
        void *b = dlsym(self, rows[i].symbol);
        checked++;
        if (!a && !b && explained)
            continue;
        failures++;
        printf("%s is found in a process without a driver, or its absence is not explained\n", rows[i].symbol);
    }
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
        failures++;
        puts("libcuda.so.1 is loaded though nobody asked for it");
    }
    expect_in("dlsym(RTLD_DEFAULT)", "gnu_get_libc_version", dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), "libc.so");
    expect_in("dlsym(RTLD_NEXT)", "gnu_get_libc_release", dlsym(RTLD_NEXT, "gnu_get_libc_release"), "libc.so");
    printf("walk: %d answers looked at, %d wrong\n", checked, failures);
    return failures != 0;
}

static int scope(const char *path)
{
    void *a = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*next)(void) = a ? (int (*)(void))dlsym(a, "scope_next") : NULL;
    int (*def)(void) = a ? (int (*)(void))dlsym(a, "scope_default") : NULL;
    if (!next || !def) {
        printf("walk: cannot open %s: %s\n", path, dlerror());
        return 1;
    }
    int n = next(), d = def();
    printf("walk: RTLD_NEXT answers '%c', RTLD_DEFAULT '%c'\n", n < 0 ? '-' : n, d < 0 ? '-' : d);
    return n != 'b' || d != 'B';
}

static int cudart(const char *path)
{
    void *lib = dlopen(path, RTLD_NOW);
    int (*count)(int *) = lib ? (int (*)(int *))dlsym(lib, "cudaGetDeviceCount") : NULL;
    if (!count) {
        printf("walk: cannot open %s: %s\n", path, dlerror());
        return 1;
    }
    int n = 0, r = count(&n);
    printf("walk: cudaGetDeviceCount answers %d\n", r);
    return 0;
}

static int late(const char *path)
{
    void *lib = dlopen(path, RTLD_NOW);
    int (*call)(void) = lib ? (int (*)(void))dlsym(lib, "late") : NULL;
    if (!call) {
        printf("walk: cannot open %s: %s\n", path, dlerror());
        return 1;
    }
    printf("cuInit %d\n", call());
    return 0;
}

static int print_rows(void)
{
    static const char *const flavour[] = {"plain", "legacy", "thread"};
    for (int i = 0; i < ROWS; i++)
        printf("%s %s %d %s\n", rows[i].symbol, rows[i].base, rows[i].since, flavour[rows[i].mode]);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "doors") == 0) {
        expected = argv[2];
        return walk();
    }
    if (argc == 2 && strcmp(argv[1], "bare") == 0) {
        expected = "libcuda.so";
        return walk();
    }
    if (argc == 2 && strcmp(argv[1], "nodriver") == 0)
        return nodriver();
    if (argc == 3 && strcmp(argv[1], "scope") == 0)
        return scope(argv[2]);
    if (argc == 3 && strcmp(argv[1], "cudart") == 0)
        return cudart(argv[2]);
    if (argc == 3 && strcmp(argv[1], "late") == 0)
        return late(argv[2]);
    if (argc == 2 && strcmp(argv[1], "rows") == 0)
        return print_rows();
    fputs("usage: walk doors LIB | bare | nodriver | scope LIB_A | cudart LIB | late LIB | rows\n", stderr);
    return 2;
}
