/* twin SCRIPT MODULE ITERATIONS [GAP]: makes the driver calls of a recorded iteration (tests/bench/twin.py writes SCRIPT, and the kernels, MODULE),
 * time and again; before each launch it works for GAP ns on the simulated host's clock. Prints each iteration's time on the device's clock, and what its last copy to the host brought.
 *
 * SCRIPT, words divided by blanks:
 *
 *   buffers N BYTES...            of buffer 0, 1, ..
 *   held N BUFFER...              made before the first iteration
 *   older N LEFT BUFFER ...       pairs: what an iteration leaves in LEFT is BUFFER in the next one
 *   kernels N NAME...
 *   calls N, then of each call:
 *     A BUFFER                    allocate it
 *     F BUFFER                    free it
 *     H BUFFER                    copy all of it from pinned memory
 *     D BUFFER                    copy its first 8 bytes to the host
 *     C TO FROM                   copy on the device, as much as the smaller one holds
 *     M BUFFER BYTES              clear its first bytes
 *     K KERNEL NS PACKED N BUFFER...  launch: takes NS, arguments in one buffer where PACKED is 1
 *
 * Arguments of a launch: NS (4 bytes), the buffers' sizes in 64 bytes (4 bytes each), their addresses (8 bytes each; more than LISTED: one struct
 * of LIST_MOST).
 */
#include "tests/programs/program.h"

#include <dlfcn.h>

enum { LISTED = 14, LIST_MOST = 512 };

struct call {
    char what;
    uint32_t ns;
    int buffer, from, kernel, packed, n, *operands;
    uint64_t bytes;
};

static FILE *script;
static uint64_t *bytes;
static CUdeviceptr *at;
static struct call *calls;
static int n_buffers, n_calls;

static int number(void)
{
    int n;
    if (fscanf(script, "%d", &n) != 1)
        exit((fprintf(stderr, "twin: the script ends too early\n"), 2));
    return n;
}

static int count_of(const char *what)
{
    char word[32];
    if (fscanf(script, "%31s", word) != 1 || strcmp(word, what))
        exit((fprintf(stderr, "twin: the script has no %s where they should be\n", what), 2));
    return number();
}

static void *room(size_t n, size_t each)
{
    void *p = calloc(n + 1, each);
    if (!p)
        exit(3);
    return p;
}

static int *numbers(int n)
{
    int *p = room((size_t)n, sizeof *p);
    for (int i = 0; i < n; i++)
        p[i] = number();
    return p;
}

static void read_call(struct call *c)
{
    if (fscanf(script, " %c", &c->what) != 1)
        exit(2);
    if (c->what == 'K') {
        c->kernel = number();
        c->ns = (uint32_t)number();
        c->packed = number();
        c->n = number();
        c->operands = numbers(c->n);
        return;
    }
    c->buffer = number();
    if (c->what == 'C')
        c->from = number();
    if (c->what == 'M')
        c->bytes = (uint64_t)number();
}

static void make(int b)
{
    MUST(cuMemAllocAsync(&at[b], bytes[b], NULL));
}

static void launch(const struct call *c, CUfunction f)
{
    uint32_t size[LIST_MOST];
    CUdeviceptr list[LIST_MOST] = {0};
    void *params[2 + LISTED];
    for (int i = 0; i < c->n; i++) {
        size[i] = (uint32_t)(bytes[c->operands[i]] / 64);
        list[i] = at[c->operands[i]];
    }
    params[0] = &(uint32_t){c->ns};
    params[1] = size;
    params[2] = list;
    for (int i = 0; i < c->n && c->n <= LISTED; i++)
        params[2 + i] = &list[i];
    const unsigned grid = c->n ? 1 + size[c->n - 1] / 64 : 1;
    if (!c->packed || c->n > LISTED) {
        MUST(cuLaunchKernel(f, grid, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
        return;
    }
    unsigned char all[8 * (2 + LISTED) + 4 * LISTED] = {0};
    const size_t sizes = 4 * (size_t)(c->n ? c->n : 1), from = sizes % 8 ? 4 : 8; /* parameters are aligned by their sizes */
    size_t n = (from + sizes + 7) & ~(size_t)7;
    memcpy(all, &c->ns, 4);
    memcpy(all + from, size, 4 * (size_t)c->n);
    memcpy(all + n, list, 8 * (size_t)c->n);
    n += 8 * (size_t)c->n;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, all, CU_LAUNCH_PARAM_BUFFER_SIZE, &n, CU_LAUNCH_PARAM_END};
    MUST(cuLaunchKernel(f, grid, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
}

static void issue(const struct call *c, const CUfunction *kernels, void *host, uint64_t *loss, uint64_t gap_ns)
{
    static void (*works)(uint64_t ns);
    const int b = c->buffer;
    if (gap_ns && (works || (works = (void (*)(uint64_t))dlsym(RTLD_DEFAULT, "simgpu_host_works"))) && c->what == 'K')
        works(gap_ns);
    switch (c->what) {
    case 'A': make(b); break;
    case 'F': MUST(cuMemFreeAsync(at[b], NULL)); break;
    case 'H': MUST(cuMemcpyHtoDAsync_v2(at[b], host, bytes[b], NULL)); break;
    case 'D': MUST(cuMemcpyDtoHAsync_v2(loss, at[b], sizeof *loss, NULL)); break;
    case 'C': MUST(cuMemcpyDtoDAsync_v2(at[b], at[c->from], bytes[b] < bytes[c->from] ? bytes[b] : bytes[c->from], NULL)); break;
    case 'M': MUST(cuMemsetD8Async(at[b], 0, c->bytes, NULL)); break;
    default: launch(c, kernels[c->kernel]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || !(script = fopen(argv[1], "re")))
        exit((fprintf(stderr, "usage: twin SCRIPT MODULE ITERATIONS [GAP]\n"), 2));
    n_buffers = count_of("buffers");
    bytes = room((size_t)n_buffers, sizeof *bytes);
    at = room((size_t)n_buffers, sizeof *at);
    for (int i = 0; i < n_buffers; i++)
        bytes[i] = (uint64_t)number();
    const int n_held = count_of("held");
    const int *held = numbers(n_held);
    const int n_older = count_of("older");
    const int *older = numbers(2 * n_older);
    primary_context();
    CUmodule m;
    MUST(cuModuleLoad(&m, argv[2]));
    const int n_kernels = count_of("kernels");
    CUfunction *kernels = room((size_t)n_kernels, sizeof *kernels);
    for (int i = 0; i < n_kernels; i++) {
        char name[512];
        if (fscanf(script, "%511s", name) != 1)
            exit(2);
        kernels[i] = kernel(m, name);
    }
    n_calls = count_of("calls");
    calls = room((size_t)n_calls, sizeof *calls);
    uint64_t most = 64;
    for (int i = 0; i < n_calls; i++) {
        read_call(&calls[i]);
        if (calls[i].what == 'H' && bytes[calls[i].buffer] > most)
            most = bytes[calls[i].buffer];
    }
    for (int i = 0; i < n_held; i++) {
        make(held[i]);
        MUST(cuMemsetD32Async(at[held[i]], 0x3f800000 + (unsigned)i, bytes[held[i]] / 4, NULL));
    }
    float *host;
    MUST(cuMemHostAlloc((void **)&host, most, 0));
    for (uint64_t i = 0; i < most / sizeof *host; i++)
        host[i] = (float)(i % 977) * 0.01f - 3;
    CUevent from, to;
    MUST(cuEventCreate(&from, 0));
    MUST(cuEventCreate(&to, 0));
    for (int i = 0; i < atoi(argv[3]); i++) {
        uint64_t loss = 0;
        float ms;
        host[0] = 0.5f * (float)i;
        MUST(cuEventRecord(from, NULL));
        for (int k = 0; k < n_calls; k++)
            issue(&calls[k], kernels, host, &loss, argc > 4 ? (uint64_t)atoll(argv[4]) : 0);
        MUST(cuEventRecord(to, NULL));
        MUST(cuEventSynchronize(to));
        MUST(cuEventElapsedTime(&ms, from, to));
        for (int k = 0; k < n_older; k++)
            at[older[2 * k + 1]] = at[older[2 * k]];
        printf("iter %d time %.6f loss %016llx\n", i, (double)ms, (unsigned long long)loss);
        fflush(stdout);
    }
    return 0;
}
