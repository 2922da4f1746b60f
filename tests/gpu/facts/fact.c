/* See fact.h. */
#include "tests/gpu/facts/fact.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The line so far, without its closing brace: always a valid prefix, so that the crash handler can finish it with
 * write(2) alone. */
static char line[16384];
static size_t line_len;
static char *image;

static void put(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line + line_len, sizeof line - line_len, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < sizeof line - line_len - 256) /* 256: room for the error and the brace */
        line_len += (size_t)n;
    else
        line[line_len] = 0; /* an entry that does not fit is left out whole */
}

static void on_crash(int sig)
{
    char tail[40] = ",\"ok\":false,\"signal\":00}\n";
    char *d = strstr(tail, "00");
    d[0] = (char)('0' + sig / 10 % 10);
    d[1] = (char)('0' + sig % 10);
    if (d[0] == '0')
        d[0] = ' ';
    ssize_t w = write(1, line, line_len);
    w += write(1, tail, strlen(tail));
    _exit(w > 0 ? 1 : 2);
}

void fact_begin(const char *name)
{
    line_len = 0;
    put("{\"fact\":\"%s\"", name);
    struct sigaction sa = {.sa_handler = on_crash};
    for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, 0}; *s; s++)
        sigaction(*s, &sa, NULL);
}

void fact_bool(const char *key, bool v) { put(",\"%s\":%s", key, v ? "true" : "false"); }
void fact_int(const char *key, long long v) { put(",\"%s\":%lld", key, v); }
void fact_num(const char *key, double v) { put(",\"%s\":%.6g", key, v); }

void fact_str(const char *key, const char *v)
{
    char esc[1024];
    size_t n = 0;
    for (; *v && n < sizeof esc - 3; v++) {
        if ((unsigned char)*v < 0x20)
            continue;
        if (*v == '"' || *v == '\\')
            esc[n++] = '\\';
        esc[n++] = *v;
    }
    esc[n] = 0;
    put(",\"%s\":\"%s\"", key, esc);
}

void fact_nums(const char *key, const double *v, int n)
{
    char list[4096];
    size_t len = 0;
    list[0] = 0;
    for (int i = 0; i < n && len < sizeof list - 40; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%.6g", i ? "," : "", v[i]);
    put(",\"%s\":[%s]", key, list);
}

static void finish(bool ok)
{
    printf("%s,\"ok\":%s}\n", line, ok ? "true" : "false");
    fflush(stdout);
}

int fact_end(void)
{
    finish(true);
    free(image);
    image = NULL;
    return 0;
}

_Noreturn void fact_fail(const char *what, int code)
{
    const char *name = NULL;
    char msg[512];
    if (cuGetErrorName((CUresult)code, &name) != CUDA_SUCCESS || !name)
        name = "?";
    snprintf(msg, sizeof msg, "%s: %s (%d)", what, name, code);
    fact_refuse(msg);
}

_Noreturn void fact_refuse(const char *why)
{
    fact_str("error", why);
    finish(false);
    /* _exit: a context with a sticky error may hang in the driver's own exit handlers */
    _exit(1);
}

CUdevice fact_open(void)
{
    CUdevice dev;
    CUcontext ctx;
    char name[128] = "";
    fact_cu(cuInit(0));
    fact_cu(cuDeviceGet(&dev, 0));
    fact_cu(cuDeviceGetName(name, sizeof name, dev));
    fact_str("device", name);
    fact_cu(cuDevicePrimaryCtxRetain(&ctx, dev));
    fact_cu(cuCtxSetCurrent(ctx));
    return dev;
}

/* Reads `name` beside the executable; NULL when it is not there. A zero byte is appended: PTX is a string. */
static char *read_beside(const char *name)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    if (n <= 0)
        return NULL;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    strcpy(slash + 1, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *buf = size > 0 ? malloc((size_t)size + 1) : NULL;
    if (buf) {
        buf[fread(buf, 1, (size_t)size, f)] = 0;
    }
    fclose(f);
    return buf;
}

CUmodule fact_module(void)
{
    CUmodule m = NULL;
    CUresult rc = CUDA_ERROR_FILE_NOT_FOUND;
    static const char *const names[] = {"kernels.ptx", "kernels.simgpu.so"};
    for (int i = 0; i < 2; i++) {
        free(image);
        image = read_beside(names[i]);
        if (!image)
            continue;
        rc = cuModuleLoadData(&m, image);
        if (rc == CUDA_SUCCESS)
            return m;
    }
    fact_fail("cuModuleLoadData(kernels.ptx | kernels.simgpu.so)", (int)rc);
}

const void *fact_image(void) { return image; }

CUfunction fact_kernel(CUmodule m, const char *name)
{
    CUfunction f;
    fact_cu(cuModuleGetFunction(&f, m, name));
    return f;
}

void fact_launch(CUfunction f, unsigned blocks, CUstream s, void **args)
{
    fact_cu(cuLaunchKernel(f, blocks, 1, 1, 256, 1, 1, 0, s, args, NULL));
}

void fact_spin(CUfunction spin, CUdeviceptr out, uint64_t ns, CUstream s)
{
    void *args[] = {&out, &ns};
    fact_cu(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, s, args, NULL));
}

double fact_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int cmp_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fact_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, cmp_double);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

CUmemAllocationProp fact_prop(CUdevice dev)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev}};
}

CUmemAccessDesc fact_access(CUdevice dev)
{
    return (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
                             .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}
