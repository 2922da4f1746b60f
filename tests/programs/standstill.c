/* standstill HOW [N]: N streams (70), all of which stand still, each until the host lets it go on, and then change one tensor one after another. Beside
 * them another stream works with memory of its own, on more than fits under a limit, and takes and gives back memory. Prints what is computed. HOW they stand:
 *
 *   by_word        until a word in pinned memory is as it should be
 *   by_batch       the same by a batch of operations on words
 *   by_function    in a function of the host's
 *   by_graph       in a graph, by a function of the host's
 *   by_semaphore   until a semaphore that another interface lets pass has its value
 *   by_event       until an event has passed that another process records
 *   by_context     as by_word, where they are streams of a second context of the device
 *   by_default     as by_word, where they are default streams, of the whole context or of this thread, each of a context of its own (8); two take and give back
 *                  memory there as well
 *   by_capture     as by_word; memory is to stay since a capture begins, and what it must come to is given back behind what stands still, until another thread
 *                  lets it go on with calls of the driver
 *   by_list        so, since its address is copied to the device
 *   by_queue       as by_word; one stream with more launches behind that than a driver's queue holds, until another thread lets it go on with calls of the driver
 *   by_thread      as by_word, and it is another thread that writes the words, with calls of the driver, while this one waits */
#include "tests/programs/crowd.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MOST = 256, TENSOR_WORDS = WORDS };

static unsigned n_streams = 70;
static CUstream s[MOST];
static uint32_t *words;
static CUdeviceptr at;

static void make_words(void)
{
    MUST(cuMemHostAlloc((void **)&words, 4 * MOST, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(words, 0, 4 * MOST);
    MUST(cuMemHostGetDevicePointer_v2(&at, words, 0));
}

static void write_word(unsigned i) { __atomic_store_n(&words[i], 1, __ATOMIC_RELEASE); }

static void stand_word(unsigned i) { MUST(cuStreamWaitValue32(s[i], at + 4 * i, 1, CU_STREAM_WAIT_VALUE_GEQ)); }

static void stand_batch(unsigned i)
{
    CUstreamBatchMemOpParams op;
    memset(&op, 0, sizeof op);
    op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    op.waitValue.address = at + 4 * i;
    op.waitValue.value = 1;
    op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    MUST(cuStreamBatchMemOp(s[i], 1, &op, 0));
}

static void until_word(void *word)
{
    while (!__atomic_load_n((uint32_t *)word, __ATOMIC_ACQUIRE))
        usleep(500);
}

static void stand_function(unsigned i) { MUST(cuLaunchHostFunc(s[i], until_word, &words[i])); }

static void stand_graph(unsigned i)
{
    CUgraph g;
    CUgraphExec e;
    MUST(cuStreamBeginCapture_v2(s[i], CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuLaunchHostFunc(s[i], until_word, &words[i]));
    MUST(cuStreamEndCapture(s[i], &g));
    MUST(cuGraphInstantiateWithFlags(&e, g, 0));
    MUST(cuGraphLaunch(e, s[i]));
}

/* ---- a semaphore: a timeline that somebody else drives ------------------------------------------------------------------------ */

static CUexternalSemaphore semaphore;
static volatile uint64_t *counter;

static void make_semaphore(void)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC d;
    memset(&d, 0, sizeof d);
    d.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    d.handle.fd = memfd_create("timeline", 0);
    if (ftruncate(d.handle.fd, 4096) || (counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, d.handle.fd, 0)) == MAP_FAILED)
        exit(3);
    MUST(cuImportExternalSemaphore(&semaphore, &d));
}

static void stand_semaphore(unsigned i)
{
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS how;
    memset(&how, 0, sizeof how);
    how.params.fence.value = i + 1;
    MUST(cuWaitExternalSemaphoresAsync(&semaphore, &how, 1, s[i]));
}

static void signal_semaphore(unsigned i) { *counter = i + 1; }

/* ---- events of another process, which stands still until it is told ------------------------------------------------------------ */

static int to_child[2], from_child[2];
static CUevent events[MOST];

static void told(int fd, void *what, size_t bytes)
{
    if (read(fd, what, bytes) != (ssize_t)bytes)
        _exit(0); /* the other one has gone */
}

static void tell(int fd, const void *what, size_t bytes)
{
    if (write(fd, what, bytes) != (ssize_t)bytes)
        exit(3);
}

/* Before the driver is initialised: a process of its own. */
static void child_records(void)
{
    if (pipe(to_child) || pipe(from_child))
        exit(3);
    if (fork()) {
        close(to_child[0]);
        close(from_child[1]);
        return;
    }
    close(to_child[1]);
    close(from_child[0]);
    unsetenv("SIMGPU_STATS");
    ctx = primary_context();
    make_words();
    CUstream own = stream(1);
    for (unsigned i = 0; i < n_streams; i++) {
        CUipcEventHandle h;
        CUevent e;
        told(to_child[0], &h, sizeof h);
        MUST(cuIpcOpenEventHandle(&e, h));
        MUST(cuStreamWaitValue32(own, at + 4 * i, 1, CU_STREAM_WAIT_VALUE_GEQ));
        MUST(cuEventRecord(e, own));
        tell(from_child[1], &i, sizeof i);
    }
    for (unsigned i;;) {
        told(to_child[0], &i, sizeof i);
        write_word(i);
    }
}

static void stand_event(unsigned i)
{
    CUipcEventHandle h;
    unsigned answer;
    MUST(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    MUST(cuIpcGetEventHandle(&h, events[i]));
    tell(to_child[1], &h, sizeof h);
    told(from_child[0], &answer, sizeof answer);
    MUST(cuStreamWaitEvent(s[i], events[i], 0));
}

static void tell_child(unsigned i) { tell(to_child[1], &i, sizeof i); }

/* ---- another thread -------------------------------------------------------------------------------------------------------------- */

static void *writes_words(void *arg)
{
    CUstream own = arg;
    MUST(cuCtxSetCurrent(ctx));
    for (unsigned i = 0; i < n_streams; i++) {
        CUdeviceptr p = alloc(own);
        fill(p, i, own);
        usleep(500);
        MUST(cuStreamWriteValue32(own, at + 4 * i, 1, 0));
        MUST(cuMemFreeAsync(p, own));
        MUST(cuStreamSynchronize(own));
        MUST(cuStreamSynchronize(s[i])); /* the next one changes the tensor after it */
    }
    return arg;
}

/* ---- memory that must stay ---------------------------------------------------------------------------------------------------------- */

static void *lets_all_go(void *arg)
{
    MUST(cuCtxSetCurrent(ctx));
    usleep(50000);
    for (unsigned i = 0; i < n_streams; i++)
        MUST(cuStreamWriteValue32(arg, at + 4 * i, 1, 0));
    return arg;
}

/* Some of `stay` has given way to `gone`, which is in use behind what stands still, and given back there. */
static void must_stay(bool capture)
{
    enum { STAY = 6, GONE = 8 };
    CUdeviceptr stay[STAY], gone[GONE], list;
    CUstream own = stream(1), lets = stream(1);
    uint32_t n = WORDS, k = 7, all = 0xffffffffu;
    pthread_t other;
    n_streams = GONE;
    for (unsigned i = 0; i < STAY; i++)
        fill(stay[i] = alloc(own), i + 1, own);
    MUST(cuMemAllocAsync(&list, sizeof stay, own));
    for (unsigned i = 0; i < GONE; i++)
        fill(gone[i] = alloc(own), 9, own);
    MUST(cuStreamSynchronize(own));
    for (unsigned i = 0; i < GONE; i++) {
        s[i] = stream(1);
        stand_word(i);
        LAUNCH_ON(f_map, s[i], &gone[i], &gone[i], &n, &k, &all);
        MUST(cuMemFreeAsync(gone[i], s[i]));
    }
    if (pthread_create(&other, NULL, lets_all_go, lets))
        exit(3);
    if (capture) {
        CUgraph g;
        CUgraphExec e;
        MUST(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_RELAXED));
        for (unsigned i = 0; i < STAY; i++)
            LAUNCH_ON(f_map, own, &stay[i], &stay[i], &n, &k, &all);
        MUST(cuStreamEndCapture(own, &g));
        MUST(cuGraphInstantiateWithFlags(&e, g, 0));
        MUST(cuGraphLaunch(e, own));
    } else
        MUST(cuMemcpyHtoDAsync_v2(list, stay, sizeof stay, own));
    pthread_join(other, NULL);
    for (unsigned i = 0; i < STAY; i++)
        look("stays", stay[i], own);
    for (unsigned i = 0; i < GONE; i++)
        MUST(cuStreamSynchronize(s[i]));
}

/* ---- a full queue ------------------------------------------------------------------------------------------------------------------- */

/* First as many launches as a queue just holds, and the thread that made them lets the stream go on; then more, and another thread does. */
static void full_queue(void)
{
    enum { HELD = 1010, LAUNCHES = 1300 };
    CUstream lets = stream(1);
    uint32_t n = 64, k = 1, all = 0xffffffffu;
    pthread_t other;
    n_streams = 1;
    s[0] = stream(1);
    CUdeviceptr p = alloc(s[0]);
    fill(p, 1, s[0]);
    stand_word(0);
    for (int i = 0; i < HELD; i++)
        LAUNCH_ON(f_map, s[0], &p, &p, &n, &k, &all);
    write_word(0);
    look("queue held", p, s[0]);
    __atomic_store_n(&words[0], 0, __ATOMIC_RELEASE);
    stand_word(0);
    if (pthread_create(&other, NULL, lets_all_go, lets))
        exit(3);
    for (int i = 0; i < LAUNCHES; i++)
        LAUNCH_ON(f_map, s[0], &p, &p, &n, &k, &all);
    pthread_join(other, NULL);
    look("queue", p, s[0]);
}

/* ---- another context --------------------------------------------------------------------------------------------------------------- */

enum { DEFAULTS = 8 };
static CUcontext others[DEFAULTS]; /* stream i is of context others[i % n_others] */
static CUfunction others_map[DEFAULTS];
static unsigned n_others;
static bool by_default;

static void make_others(unsigned n)
{
    make_words();
    for (n_others = 0; n_others < n; n_others++) {
        MUST(cuCtxCreate_v2(&others[n_others], 0, 0));
        others_map[n_others] = kernel(load_kernels(), "map");
    }
    MUST(cuCtxSetCurrent(ctx));
}

static void make_second(void) { make_others(1); }

static void make_defaults(void)
{
    n_streams = n_streams < DEFAULTS ? n_streams : DEFAULTS;
    by_default = true;
    make_others(n_streams);
}

/* The context of stream i is current from here on. */
static void goes_to(unsigned i)
{
    if (n_others)
        MUST(cuCtxSetCurrent(others[i % n_others]));
}

static void comes_back(void) { MUST(cuCtxSetCurrent(ctx)); }

/* Behind what stands still. */
static void takes_memory(CUstream own, CUfunction map_there)
{
    CUdeviceptr p;
    uint32_t n = WORDS, k = 3, all = 0xffffffffu;
    MUST(cuMemAllocAsync(&p, 4 * WORDS, own));
    MUST(cuMemsetD32Async(p, 1, WORDS, own));
    LAUNCH_ON(map_there, own, &p, &p, &n, &k, &all);
    MUST(cuMemFreeAsync(p, own));
}

/* ---- all of them ------------------------------------------------------------------------------------------------------------------ */

static void works_beside(CUstream own)
{
    CUdeviceptr more[CROWD] = {0};
    crowd(more, own);
    for (int i = 0; i < CROWD; i++)
        map(more[i], more[(i + 1) % CROWD], own);
    look("beside", more[0], own);
    for (int i = 0; i < CROWD; i++)
        MUST(cuMemFreeAsync(more[i], own));
    crowd((CUdeviceptr[CROWD]){0}, own);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*prepare)(void), (*stand)(unsigned), (*let_go)(unsigned);
    } hows[] = {{"by_word", make_words, stand_word, write_word},
                {"by_batch", make_words, stand_batch, write_word},
                {"by_function", make_words, stand_function, write_word},
                {"by_graph", make_words, stand_graph, write_word},
                {"by_semaphore", make_semaphore, stand_semaphore, signal_semaphore},
                {"by_event", NULL, stand_event, tell_child},
                {"by_context", make_second, stand_word, write_word},
                {"by_default", make_defaults, stand_word, write_word},
                {"by_capture", make_words, NULL, NULL},
                {"by_list", make_words, NULL, NULL},
                {"by_queue", make_words, NULL, NULL},
                {"by_thread", make_words, stand_word, NULL}};
    size_t how = 0;
    while (argc > 1 && how < sizeof hows / sizeof *hows && strcmp(argv[1], hows[how].name))
        how++;
    if (argc < 2 || how == sizeof hows / sizeof *hows) {
        fprintf(stderr, "usage: standstill HOW [STREAMS]\n");
        return 2;
    }
    if (argc > 2)
        n_streams = (unsigned)atoi(argv[2]) % (MOST + 1);
    if (!hows[how].prepare)
        child_records();
    start();
    if (hows[how].prepare)
        hows[how].prepare();
    if (!hows[how].stand) {
        if (!strcmp(argv[1], "by_queue"))
            full_queue();
        else
            must_stay(!strcmp(argv[1], "by_capture"));
        return 0;
    }
    CUstream own = stream(1);
    CUdeviceptr tensor;
    MUST(cuMemAllocAsync(&tensor, 4 * TENSOR_WORDS, own));
    MUST(cuMemsetD32Async(tensor, 1, TENSOR_WORDS, own));
    MUST(cuStreamSynchronize(own));
    uint32_t n = TENSOR_WORDS, k = 5, all = 0xffffffffu;
    for (unsigned i = 0; i < n_streams; i++) {
        goes_to(i);
        s[i] = !by_default ? stream(1) : i % 2 ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
        hows[how].stand(i);
        LAUNCH_ON(n_others ? others_map[i % n_others] : f_map, s[i], &tensor, &tensor, &n, &k, &all);
        if (by_default && i < 2)
            takes_memory(s[i], others_map[i]);
        comes_back();
    }
    pthread_t other;
    if (!hows[how].let_go && pthread_create(&other, NULL, writes_words, stream(1)))
        exit(3);
    if (hows[how].let_go)
        works_beside(own);
    for (unsigned i = 0; i < n_streams; i++) {
        if (hows[how].let_go)
            hows[how].let_go(i);
        goes_to(i);
        if (i % 2)
            MUST(cuStreamSynchronize(s[i]));
        else
            MUST(cuMemcpyDtoHAsync_v2(host, tensor, 4 * TENSOR_WORDS, s[i])); /* not pinned: the host waits there */
        comes_back();
        if (i % 16 == 0 && hows[how].let_go) /* else the next ones may be at work */
            printf("%u\n", host[7]);
    }
    if (!hows[how].let_go)
        pthread_join(other, NULL);
    works_beside(own);
    memset(host, 0, sizeof host);
    MUST(cuMemcpyDtoHAsync_v2(host, tensor, 4 * TENSOR_WORDS, own));
    MUST(cuStreamSynchronize(own));
    printf("%016llx\n", (unsigned long long)hash());
    return 0;
}
