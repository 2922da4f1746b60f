/* unshown CASE [ITERATIONS]: a training loop whose layers depend on something that no argument of their launches shows. In every iteration that
 * is written anew before each layer: the same numbers until iteration 12, from then on others for every layer, unless it says otherwise here. A
 * forward pass saves an activation a layer, the backward pass consumes them in reverse. Prints a checksum every iteration.
 *   copied   a variable of the module, by a copy from the host
 *   filled   so, by a fill
 *   rows     so, by a copy in two dimensions
 *   moved    so, by a copy on the device
 *   tensor   a small tensor whose address lies in a variable of the module
 *   buffer   so, in memory of the program's own
 *   shared   how much dynamic shared memory the kernel may have: just what its next launch takes, and that is another one for every layer
 *   lowered  the same for every layer; from iteration 12 on, when they have run, it may have less
 *   kernel   so, by a handle of a library
 *   own      a table in memory of the program's own, whose address lies in a list on the device
 *   laid     so, where a kernel has put it
 *   host     a table in pinned memory, whose address lies in a list on the device
 *   given    so, where a kernel has put it
 *   mapped   a table in memory that the program maps itself, whose address lies in a list on the device
 *   mapped_laid   so, where a kernel has put it
 *   mapped_first  so, where a copy has put it before there was memory
 *   mapped_shared  a table in memory that is exported and imported again: the list has one address, the table is written by the other
 *   opened   a table in memory of another process, opened by its handle, whose address lies in a list on the device
 *   opened_twice   so, opened twice and closed once
 *   opened_pool    so, of the other process's pool
 *   opened_laid    so, where a kernel has put it
 *   external       a table in memory of another interface, whose address lies in a list on the device
 *   host_pool      a table in memory of a pool on the host, which the host writes, whose address lies in a list on the device
 *   host_pool_laid so, where a kernel has put it
 *   managed_pool   so, of a pool of managed memory
 *   managed        so, of cuMemAllocManaged
 *   registered     so, of the program's own, which it has pinned
 *   pageable       so, of the program's own, where the device says that kernels may follow addresses in it (SIMGPU_HMM=1); else pinned memory
 *   signal_X       X is mapped, opened, opened_pool, external, host_pool, managed_pool, managed, registered, host, own: what the list points at is counted up by each layer
 *                  and by nothing else, and the activation is what the count was
 * Or that what writes it does not show: a table of cuMemAlloc, which is an argument of the layers' launches, written by
 *   graph    a graph that was captured once
 *   graph_copy    a graph that copies from pinned memory
 *   graph_late    so, for the first time in iteration 12
 *   through_pinned   a kernel that finds the table's address in pinned memory
 *   through_managed  so, in managed memory
 *   through_named    so, in a variable of the module
 *   through_both     so, where the layers find it there, too
 *   through_host_pool     in memory of a pool on the host
 *   through_managed_pool  of a pool of managed memory
 *   through_opened   another process, which has opened the table
 *   through_opened_pool   so, where the table is of a pool
 *   through_peer     so, in memory of another device, whose kernel it is
 *   function         a function of the host's, in the stream: there the table is pinned memory
 *   value            the stream, word by word (cuStreamWriteValue32)
 *   values           so, by a batch of operations on words
 */
#include "tests/programs/tensors.h"
#include "tests/programs/elsewhere.h"
#include "tests/programs/list_args.h"

#include <sys/mman.h>

enum { LAYERS = 12, WORDS = 32768, TABLE = 64, CHANGE_AT = 12 };

static const char *what;
static bool signals; /* `what` is what follows */
static CUstream s;
static CUfunction map, join, through, factor, f_variable, by_name, by_name_through, point, peek, f_sum;
static CUdeviceptr variable, weight[LAYERS], act[LAYERS + 1], table, alias /* of the table, where it is written */, list, source, sum;
static uint32_t host_table[TABLE], *pinned;

static bool is(const char *c) { return !strcmp(what, c); }
static bool shares(void) { return is("shared") || is("lowered") || is("kernel"); }
static bool in_pool(void) { return !strncmp(what, "host_pool", 9) || is("managed_pool"); }
static bool lists_host(void) { return is("host") || is("given") || is("managed") || is("registered") || is("pageable") || in_pool(); }
static bool opens(void) { return !strncmp(what, "opened", 6); }
static bool another_writes(void) { return !strncmp(what, "through_opened", 14); }
static int another; /* process */
static bool names(void) { return is("tensor") || is("buffer"); }
static bool maps(void) { return !strncmp(what, "mapped", 6) || opens() || is("external"); }
static bool lists(void) { return is("own") || is("laid") || maps() || lists_host(); }
static bool in_variable(void) { return is("through_named") || is("through_both"); }
static bool graphs(void) { return !strncmp(what, "graph", 5); }
static bool writes_unseen(void) { return graphs() || is("function") || is("value") || is("values") || !strncmp(what, "through_", 8); }

static CUdeviceptr make(uint32_t words) { return tensor_make(words, NULL, s).p; }

static void change(CUdeviceptr to, uint32_t value)
{
    if (lists_host()) {
        MUST(cuStreamSynchronize(s)); /* nobody reads it any more */
        *(volatile uint32_t *)pinned = value;
        return;
    }
    for (uint32_t i = 0; i < TABLE; i++)
        host_table[i] = is("filled") ? value : value + i;
    if (maps()) { /* by a kernel: copies to memory that nobody knows are seen */
        uint32_t n = TABLE, k = 0, mask = ~0u;
        MUST(cuMemcpyHtoDAsync_v2(source, host_table, sizeof host_table, s));
        LAUNCH(map, s, &to, &source, &n, &k, &mask);
        return;
    }
    if (is("filled"))
        MUST(cuMemsetD32Async(to, value, TABLE, s));
    else if (is("rows")) {
        const CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host_table, .srcPitch = TABLE, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                    .dstDevice = to, .dstPitch = TABLE, .WidthInBytes = TABLE, .Height = 4};
        MUST(cuMemcpy2DAsync_v2(&rows, s));
    } else
        MUST(cuMemcpyHtoDAsync_v2(is("moved") ? table : to, host_table, sizeof host_table, s));
    if (is("moved"))
        MUST(cuMemcpyDtoDAsync_v2(to, table, sizeof host_table, s));
}

static CUgraphExec writer;
static CUcontext here, there;
static CUfunction named_to_list, peer_through;
static CUstream peer_stream;

static CUgraphExec capture_writer(void)
{
    uint32_t n = TABLE, k = 0, mask = ~0u;
    CUgraph g;
    CUgraphExec exec;
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    if (is("graph"))
        LAUNCH(map, s, &table, &source, &n, &k, &mask);
    else
        MUST(cuMemcpyHtoDAsync_v2(table, pinned, 4 * TABLE, s));
    MUST(cuStreamEndCapture(s, &g));
    MUST(cuGraphInstantiateWithFlags(&exec, g, 0));
    return exec;
}

static void write_table(void *value)
{
    for (uint32_t i = 0; i < TABLE; i++)
        pinned[i] = (uint32_t)(uintptr_t)value + i;
}

/* The table's first words, without a launch or a copy. */
static void change_words(uint32_t value)
{
    enum { FEW = 8 };
    CUstreamBatchMemOpParams op[FEW] = {0};
    for (uint32_t i = 0; i < FEW; i++) {
        op[i].writeValue = (struct CUstreamMemOpWriteValueParams_st){.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = table + 4 * i, .value = value + i};
        if (is("value"))
            MUST(cuStreamWriteValue32(s, table + 4 * i, value + i, 0));
    }
    if (is("values"))
        MUST(cuStreamBatchMemOp(s, FEW, op, 0));
}

/* The table is written, and the call that does it does not name it. */
static void change_unseen(int iter, uint32_t value)
{
    uint32_t n = TABLE, k = value;
    if (in_variable()) {
        LAUNCH(named_to_list, s, &source, &n, &n, &k);
        return;
    }
    if (is("value") || is("values")) {
        change_words(value);
        return;
    }
    if (is("function")) {
        MUST(cuLaunchHostFunc(s, write_table, (void *)(uintptr_t)value));
        return;
    }
    if (another_writes()) {
        MUST(cuStreamSynchronize(s)); /* nobody reads it any more */
        another_tells(another, &k, sizeof k, -1);
        another_told(another, &k, sizeof k);
        return;
    }
    if (is("through_peer")) {
        MUST(cuStreamSynchronize(s));
        MUST(cuCtxSetCurrent(there));
        LAUNCH(peer_through, peer_stream, &list, &source, &n, &k);
        MUST(cuStreamSynchronize(peer_stream));
        MUST(cuCtxSetCurrent(here));
        return;
    }
    if (!graphs()) {
        LAUNCH(through, s, &list, &source, &n, &k);
        return;
    }
    if (is("graph_late") && iter < CHANGE_AT)
        return;
    MUST(cuStreamSynchronize(s)); /* the last graph has read its numbers */
    for (uint32_t i = 0; i < TABLE; i++)
        pinned[i] = value + i;
    MUST(cuMemcpyHtoDAsync_v2(source, pinned, 4 * TABLE, s));
    MUST(cuGraphLaunch(writer, s));
}

/* In bytes; more than what every launch may have. */
enum { SHARED_MOST = 100 << 10, SHARED_LEAST = 52 << 10, SHARED_STEP = 4 << 10 };

static void allow_shared(int bytes)
{
    if (is("kernel"))
        MUST(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, (CUkernel)map, 0));
    else
        MUST(cuFuncSetAttribute(map, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
}

static void shared_layer(int i)
{
    uint32_t n = WORDS, k = 3, mask = ~0u;
    const int bytes = SHARED_MOST - (is("shared") ? i * SHARED_STEP : 0);
    allow_shared(bytes);
    MUST(cuLaunchKernel(map, 64, 1, 1, 128, 1, 1, (unsigned)bytes, s, (void *[]){&act[i + 1], &act[i], &n, &k, &mask}, NULL));
}

static void layer(int i, int iter)
{
    uint32_t n = WORDS;
    act[i + 1] = make(WORDS);
    if (shares()) {
        shared_layer(i);
        return;
    }
    if (signals) {
        struct factor_args a = {.list = list, .info = act[i + 1], .words = WORDS, .k = 3};
        LAUNCH(factor, s, &a);
        return;
    }
    if (writes_unseen()) {
        uint32_t few = TABLE;
        change_unseen(iter, iter < CHANGE_AT ? 7 : 100 * (uint32_t)iter + (uint32_t)i);
        if (is("through_both")) {
            LAUNCH(by_name_through, s, &act[i + 1], &act[i], &n);
            return;
        }
        LAUNCH(join, s, &act[i + 1], &act[i], &table, &n, &n, &few);
        return;
    }
    change(alias ? alias : lists() || names() ? table : variable, iter < CHANGE_AT ? 7 : 100 * (uint32_t)iter + (uint32_t)i);
    if (lists())
        LAUNCH(peek, s, &act[i + 1], &act[i], &list, &n);
    else
        LAUNCH(names() ? by_name_through : by_name, s, &act[i + 1], &act[i], &n);
}

static uint64_t train(int iter)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    act[0] = make(WORDS);
    LAUNCH(map, s, &act[0], &weight[0], &n, &k, &mask);
    for (int i = 0; i < LAYERS; i++)
        layer(i, iter);
    if (is("function")) /* a plan is proved where no stream may stand still: all of them have run */
        MUST(cuStreamSynchronize(s));
    if (shares() && !is("shared") && iter >= CHANGE_AT)
        allow_shared(SHARED_LEAST);
    CUdeviceptr g = make(WORDS);
    LAUNCH(map, s, &g, &act[LAYERS], &n, &k, &mask);
    for (int i = LAYERS; i >= 0; i--) {
        CUdeviceptr next = make(WORDS);
        LAUNCH(join, s, &next, &g, &act[i], &n, &n, &n);
        MUST(cuMemFreeAsync(g, s));
        MUST(cuMemFreeAsync(act[i], s));
        g = next;
        if (i < LAYERS)
            LAUNCH(map, s, &weight[i], &g, &n, &k, &mask);
    }
    const uint64_t h = checksum(f_sum, s, sum, g, WORDS);
    MUST(cuMemFreeAsync(g, s));
    return h;
}

/* The second device, which reaches the first one's memory, with a list and a source of its own. */
static void make_peer(void)
{
    MUST(cuCtxGetCurrent(&here));
    MUST(cuDevicePrimaryCtxRetain(&there, 1));
    MUST(cuCtxSetCurrent(there));
    MUST(cuCtxEnablePeerAccess(here, 0));
    peer_through = kernel(load_kernels(), "through");
    MUST(cuStreamCreate(&peer_stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc_v2(&list, 4 * TABLE));
    MUST(cuMemAlloc_v2(&source, 4 * TABLE));
    MUST(cuMemsetD32Async(source, 5, TABLE, peer_stream));
    MUST(cuMemcpyHtoDAsync_v2(list, &table, sizeof table, peer_stream));
    MUST(cuStreamSynchronize(peer_stream));
    MUST(cuCtxSetCurrent(here));
}

/* What change_unseen() writes, from where, and where whoever writes it finds its address. */
static void make_unseen(void)
{
    source = make(TABLE);
    MUST(cuMemsetD32Async(source, 5, TABLE, s));
    if (is("function")) {
        MUST(cuMemHostAlloc((void **)&pinned, 4 * TABLE, CU_MEMHOSTALLOC_DEVICEMAP));
        MUST(cuMemHostGetDevicePointer_v2(&table, pinned, 0));
        return;
    }
    if (another_writes())
        table = another_shows(another, is("through_opened_pool"), 1 << 21);
    else
        MUST(cuMemAlloc_v2(&table, 4 * TABLE));
    MUST(cuMemsetD32Async(table, 5, TABLE, s));
    if (in_variable() || another_writes() || is("value") || is("values"))
        return;
    if (is("through_peer")) {
        MUST(cuStreamSynchronize(s));
        make_peer();
        return;
    }
    if (is("through_host_pool") || is("through_managed_pool")) {
        list = host_pool_memory(is("through_managed_pool"), 4096, s);
        pinned = (uint32_t *)(uintptr_t)list;
    } else if (is("through_managed")) {
        MUST(cuMemAllocManaged(&list, 4096, CU_MEM_ATTACH_GLOBAL));
        pinned = (uint32_t *)(uintptr_t)list;
    } else {
        MUST(cuMemHostAlloc((void **)&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
        MUST(cuMemHostGetDevicePointer_v2(&list, pinned, 0));
    }
    MUST(cuStreamSynchronize(s));
    memcpy(pinned, &table, sizeof table);
    if (graphs())
        writer = capture_writer();
}

/* The same memory at two addresses: at `alias` as the program has made it, at `table` as it would come from another process. */
static void map_shared(size_t bytes)
{
    CUmemAllocationProp prop = memory_of(0);
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h[2];
    CUdeviceptr *at[] = {&alias, &table};
    int fd;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    MUST(cuMemCreate(&h[0], bytes, &prop, 0));
    MUST(cuMemExportToShareableHandle(&fd, h[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    MUST(cuMemImportFromShareableHandle(&h[1], (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    for (int i = 0; i < 2; i++) {
        MUST(cuMemAddressReserve(at[i], bytes, 0, 0, 0));
        MUST(cuMemMap(*at[i], bytes, 0, h[i], 0));
        MUST(cuMemSetAccess(*at[i], bytes, &access, 1));
    }
}

static CUdeviceptr open_another(void)
{
    struct shown said;
    CUdeviceptr p, more;
    const int fd = another_told(another, &said, sizeof said);
    p = another_opens(&said, fd);
    if (is("opened_twice")) {
        more = another_opens(&said, fd);
        MUST(cuIpcCloseMemHandle(more));
    }
    return p;
}

/* Memory as a graphics interface would hand it out. */
static CUdeviceptr map_external(size_t bytes)
{
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle = {.fd = memfd_create("image", 0)}, .size = bytes};
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole = {.size = bytes};
    CUexternalMemory m;
    CUdeviceptr p;
    if (ftruncate(d.handle.fd, (off_t)bytes))
        exit(3);
    MUST(cuImportExternalMemory(&m, &d));
    MUST(cuExternalMemoryGetMappedBuffer(&p, m, &whole));
    return p;
}

/* A table that the host writes. */
static void make_host_table(size_t bytes)
{
    if (in_pool()) {
        table = host_pool_memory(is("managed_pool"), bytes, s);
        pinned = (uint32_t *)(uintptr_t)table;
    } else if (is("managed")) {
        MUST(cuMemAllocManaged(&table, bytes, CU_MEM_ATTACH_GLOBAL));
        pinned = (uint32_t *)(uintptr_t)table;
    } else {
        int pageable = 0;
        if (is("pageable"))
            MUST(cuDeviceGetAttribute(&pageable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0));
        if (!is("registered") && !pageable)
            MUST(cuMemHostAlloc((void **)&pinned, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
        else if (posix_memalign((void **)&pinned, 4096, bytes))
            exit(3);
        if (is("registered"))
            MUST(cuMemHostRegister_v2(pinned, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
        table = (CUdeviceptr)(uintptr_t)pinned;
        if (!pageable)
            MUST(cuMemHostGetDevicePointer_v2(&table, pinned, 0));
    }
}

static void make_list(void)
{
    list = make(TABLE);
    source = make(TABLE);
    if (is("mapped_first")) { /* addresses that memory comes to lie at later */
        const CUmemAllocationProp prop = memory_of(0);
        const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        const size_t bytes = 1 << 21;
        CUmemGenericAllocationHandle h;
        MUST(cuMemAddressReserve(&table, bytes, 0, 0, 0));
        MUST(cuMemcpyHtoD_v2(list, &table, sizeof table));
        MUST(cuMemCreate(&h, bytes, &prop, 0));
        MUST(cuMemMap(table, bytes, 0, h, 0));
        MUST(cuMemSetAccess(table, bytes, &access, 1));
        return;
    }
    if (lists_host()) {
        make_host_table(4 * WORDS);
    } else if (is("mapped_shared"))
        map_shared(1 << 21);
    else if (opens())
        table = open_another();
    else if (is("external"))
        table = map_external(1 << 21);
    else if (maps())
        table = map_own(1 << 21);
    else
        MUST(cuMemAlloc_v2(&table, 4 * WORDS));
    if (signals)
        MUST(cuMemsetD32_v2(table, 5, WORDS));
    if (is("laid") || is("given") || is("mapped_laid") || is("opened_laid") || is("host_pool_laid"))
        LAUNCH(point, s, &list, &table, &(uint32_t){1}, &(uint32_t){0});
    else
        MUST(cuMemcpyHtoD_v2(list, &table, sizeof table));
}

static CUfunction kernel_of_library(const char *name)
{
    char path[4096];
    CUlibrary library;
    CUkernel k;
    kernels_path(path, sizeof path, "kernels.so");
    MUST(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&k, library, name));
    return (CUfunction)k;
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "copied";
    signals = !strncmp(what, "signal_", 7);
    what += signals ? 7 : 0;
    const int iterations = argc > 2 ? atoi(argv[2]) : 20;
    if (opens() || another_writes())
        another = another_process(another_writes(), is("opened_pool"), 1 << 21, TABLE);
    primary_context();
    CUmodule m = load_kernels();
    map = is("kernel") ? kernel_of_library("map") : kernel(m, "map");
    join = kernel(m, "join");
    f_variable = kernel(m, "variable");
    by_name = kernel(m, "by_name");
    by_name_through = kernel(m, "by_name_through");
    point = kernel(m, "point");
    through = kernel(m, "through");
    factor = kernel(m, "factor");
    named_to_list = kernel(m, "named_to_list");
    peek = kernel(m, "peek");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    if (writes_unseen()) /* before there are weights: what a capture meets stays in memory */
        make_unseen();
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WORDS);
        MUST(cuMemsetD32Async(weight[i], 3 + (unsigned)i, WORDS, s));
    }
    sum = make(2);
    if (lists())
        make_list();
    else if (is("buffer"))
        MUST(cuMemAlloc_v2(&table, 4 * TABLE));
    else if (!writes_unseen())
        table = make(TABLE);
    variable = map_own(65536); /* on the device, in memory that the program has not allocated as such */
    LAUNCH(f_variable, s, &variable);
    if (names() || in_variable())
        MUST(cuMemcpyHtoD_v2(variable, &table, sizeof table));
    for (int iter = 0; iter < iterations; iter++)
        printf("iter %d loss %016llx\n", iter, (unsigned long long)train(iter));
    for (int i = 0; i < LAYERS; i++)
        printf("weight %d %016llx\n", i, (unsigned long long)checksum(f_sum, s, sum, weight[i], WORDS));
    if (signals) /* not before: this launch is the first that has the counter as an argument */
        printf("counted %016llx\n", (unsigned long long)checksum(f_sum, s, sum, table, WORDS));
    return 0;
}
