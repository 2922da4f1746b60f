/*
 * SIMGPU_CHAOS=adversary: a program that lacks an order it needs gives the wrong result every time, and one that
 * would go on on a real device goes on. That promised orders are kept is in test_simgpu_order.c, whose loops run
 * under the adversary too.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/simgpu/testing.h"

enum { SEEDS = 24, TIMES = 3 };

static void start_adversary(int seed)
{
    char text[32] = "adversary";
    if (seed)
        snprintf(text, sizeof text, "adversary:%d", seed);
    setenv("SIMGPU_CHAOS", text, 1);
    start();
}

static CUstream new_stream(void)
{
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

/* p = value, and nothing is pending */
static void set_word(CUdeviceptr p, unsigned value)
{
    OK(cuMemsetD32_v2(p, value, 1));
    OK(cuCtxSynchronize());
}

/* ---- what is not promised does not happen ------------------------------------------------------------------- */

START_TEST(reader_that_does_not_wait_reads_too_early)
{
    start_adversary(0);
    CUstream writer = new_stream(), reader = new_stream();
    CUdeviceptr p = alloc_words(1);
    for (int i = 0; i < 5; i++) {
        unsigned got = 0;
        set_word(p, 1);
        OK(cuMemsetD32Async(p, 2, 1, writer));
        OK(cuMemcpyDtoHAsync_v2(&got, p, 4, reader)); /* pageable: waits for itself */
        ck_assert_uint_eq(got, 1);
        OK(cuCtxSynchronize());
        ck_assert_uint_eq(read_word(p), 2);
    }
}
END_TEST

START_TEST(writer_that_does_not_wait_writes_too_early)
{
    start_adversary(0);
    CUstream reader = new_stream(), writer = new_stream();
    CUdeviceptr p = alloc_words(1), q = alloc_words(1);
    for (int i = 0; i < 5; i++) {
        set_word(p, 1);
        OK(cuMemcpyDtoDAsync_v2(q, p, 4, reader));
        OK(cuMemsetD32Async(p, 2, 1, writer));
        OK(cuCtxSynchronize()); /* both are wanted at once: the later goes first */
        ck_assert_uint_eq(read_word(q), 2);
    }
}
END_TEST

/* A wait for an event means the record it saw. */
START_TEST(event_recorded_too_soon_orders_nothing)
{
    start_adversary(0);
    CUstream a = new_stream(), b = new_stream();
    CUdeviceptr p = alloc_words(1), q = alloc_words(1);
    CUevent e;
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 5; i++) {
        set_word(p, 1);
        OK(cuEventRecord(e, a));
        OK(cuMemsetD32Async(p, 2, 1, a));
        OK(cuStreamWaitEvent(b, e, 0));
        OK(cuMemcpyDtoDAsync_v2(q, p, 4, b));
        OK(cuStreamSynchronize(b));
        ck_assert_uint_eq(read_word(q), 1);
        OK(cuCtxSynchronize());
    }
}
END_TEST

/* Stops this process for longer than the device waits for a host that is idle. */
static void stand_still(void)
{
    const pid_t waker = fork();
    ck_assert_int_ge(waker, 0);
    if (!waker) {
        usleep(700000);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    ck_assert_int_eq(waitpid(waker, NULL, 0), waker);
}

/* Nobody may run while all of the process is stopped, or has no processor: that is not a host that does nothing. */
START_TEST(process_that_stands_still_is_not_idle)
{
    start_adversary(0);
    CUstream a = new_stream(), b = new_stream();
    CUdeviceptr p = alloc_words(1), q = alloc_words(1);
    set_word(p, 1);
    OK(cuMemsetD32Async(p, 2, 1, a));
    stand_still();
    usleep(10000); /* for the device to look at the clock */
    OK(cuMemcpyDtoDAsync_v2(q, p, 4, b));
    OK(cuStreamSynchronize(b));
    ck_assert_uint_eq(read_word(q), 1);
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(pinned_memory_is_read_and_written_late)
{
    start_adversary(0);
    CUstream s = new_stream();
    CUdeviceptr p = alloc_words(1);
    unsigned *from, *to;
    OK(cuMemAllocHost_v2((void **)&from, 4));
    OK(cuMemAllocHost_v2((void **)&to, 4));
    for (int i = 0; i < 5; i++) {
        *from = 1;
        *to = 0;
        OK(cuMemcpyHtoDAsync_v2(p, from, 4, s));
        OK(cuMemcpyDtoHAsync_v2(to, p, 4, s));
        *from = 2;
        FAILS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
        ck_assert_uint_eq(*to, 0);
        OK(cuStreamSynchronize(s));
        ck_assert_uint_eq(*to, 2);
    }
}
END_TEST

static _Atomic int calls_back;
static void count_call(void *arg)
{
    (void)arg;
    calls_back++;
}

START_TEST(host_functions_come_late)
{
    start_adversary(0);
    CUstream s = new_stream(), other = new_stream();
    CUdeviceptr p = alloc_words(1);
    for (int i = 0; i < 5; i++) {
        OK(cuLaunchHostFunc(s, count_call, NULL));
        launch_step(p, 1, 1, other);
        OK(cuStreamSynchronize(other));
        ck_assert_int_eq(calls_back, i);
        OK(cuStreamSynchronize(s));
        ck_assert_int_eq(calls_back, i + 1);
    }
}
END_TEST

START_TEST(unmapping_under_a_queued_kernel_faults)
{
    start_adversary(0);
    CUstream s = new_stream();
    CUmemAllocationProp prop = device_prop();
    CUmemAccessDesc rw = { .location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    size_t g;
    OK(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUmemGenericAllocationHandle h;
    CUdeviceptr va;
    OK(cuMemCreate(&h, g, &prop, 0));
    OK(cuMemAddressReserve(&va, g, 0, 0, 0));
    OK(cuMemMap(va, g, 0, h, 0));
    OK(cuMemSetAccess(va, g, &rw, 1));
    launch_step(va, 1, 1, s);
    OK(cuMemUnmap(va, g));
    FAILS(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(free_that_does_not_wait_for_its_reader_faults)
{
    start_adversary(0);
    CUstream owner = new_stream(), reader = new_stream();
    CUdeviceptr p, q = alloc_words(1);
    OK(cuMemAllocAsync(&p, 4, owner));
    OK(cuMemsetD32Async(p, 1, 1, owner));
    OK(cuStreamSynchronize(owner));
    OK(cuMemcpyDtoDAsync_v2(q, p, 4, reader));
    OK(cuMemFreeAsync(p, owner));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(allocation_that_is_not_waited_for_faults)
{
    start_adversary(0);
    CUstream owner = new_stream(), user = new_stream();
    CUdeviceptr p;
    OK(cuMemAllocAsync(&p, 4, owner));
    OK(cuMemsetD32Async(p, 1, 1, user));
    FAILS(cuStreamSynchronize(user), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* Fresh memory is nobody's zeroes. */
START_TEST(memory_comes_full_of_garbage)
{
    start_adversary(0);
    CUdeviceptr p = alloc_words(64);
    unsigned v[64], zeroes = 0;
    OK(cuMemcpyDtoH_v2(v, p, sizeof v));
    for (int i = 0; i < 64; i++)
        zeroes += v[i] == 0;
    ck_assert_uint_lt(zeroes, 4);
}
END_TEST

/* Racers: among the seeds are some under which a copy reads pinned memory before the next call returns, and others
   under which it reads after. */
static int copy_seed(int seed)
{
    int ends[2], late = -1;
    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        start_adversary(seed);
        CUstream s = new_stream();
        CUdeviceptr p = alloc_words(1);
        unsigned *from, wrong = 0;
        OK(cuMemAllocHost_v2((void **)&from, 4));
        CUevent e;
        OK(cuEventCreate(&e, 0));
        int before = 0;
        for (int i = 0; i < TIMES; i++) {
            *from = 1;
            OK(cuMemcpyHtoDAsync_v2(p, from, 4, s));
            OK(cuEventRecord(e, new_stream())); /* any call */
            *from = 2;
            unsigned got = read_word(p);
            OK(cuCtxSynchronize());
            got = got == 1 ? 1 : read_word(p);
            wrong += got != 1 && got != 2;
            before += got == 1;
        }
        int answer = wrong ? -1 : TIMES - before;
        _exit(write(ends[1], &answer, sizeof answer) != sizeof answer);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &late, sizeof late), sizeof late);
    close(ends[0]);
    return late;
}

START_TEST(seeds_make_racers_and_victims)
{
    int always_late = 0, always_early = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        int late = copy_seed(seed);
        ck_assert_int_ge(late, 0);
        always_late += late == TIMES;
        always_early += late == 0;
    }
    ck_assert_int_ge(always_late, SEEDS / 4);
    ck_assert_int_ge(always_early, 3);
}
END_TEST

/* ---- programs that go on on a device go on here ------------------------------------------------------------- */

START_TEST(polling_goes_on)
{
    start_adversary(_i);
    CUstream s = new_stream(), t;
    OK(cuStreamCreate(&t, 0));
    CUevent e;
    OK(cuEventCreate(&e, 0));
    CUdeviceptr p = alloc_words(1);
    launch_step(p, 1, 1, s);
    OK(cuEventRecord(e, s));
    while (cuEventQuery(e) == CUDA_ERROR_NOT_READY)
        ;
    OK(cuEventQuery(e));
    launch_step(p, 1, 1, s);
    while (cuStreamQuery(s) == CUDA_ERROR_NOT_READY)
        ;
    launch_step(p, 1, 1, t);
    while (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY) /* means t as well */
        ;
    OK(cuStreamQuery(t));
    /* a loop that polls and launches something else in between */
    launch_step(p, 1, 1, s);
    while (cuStreamQuery(s) == CUDA_ERROR_NOT_READY) {
        launch_work(1, 1, t);
        usleep(100);
    }
}
END_TEST

static void raise_flag(void *arg)
{
    __atomic_store_n((unsigned *)arg, 1, __ATOMIC_RELEASE);
}

/* A word that a copy of the device's writes meanwhile: no ordering of the host's tells a sanitizer that this is meant. */
__attribute__((no_sanitize("thread"), noinline)) static unsigned peek(const volatile unsigned *word)
{
    return *word;
}

/* The host makes no driver call at all while it waits. */
START_TEST(spinning_on_memory_goes_on)
{
    start_adversary(_i);
    CUstream s = new_stream();
    CUdeviceptr p = alloc_words(1);
    volatile unsigned *word;
    unsigned flag = 0;
    OK(cuMemAllocHost_v2((void **)&word, 4));
    *word = 0;
    set_word(p, 7);
    OK(cuMemcpyDtoHAsync_v2((void *)word, p, 4, s));
    while (peek(word) != 7)
        usleep(100);
    OK(cuLaunchHostFunc(s, raise_flag, &flag));
    while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
        usleep(100);
}
END_TEST

/* A stream waits for a word that another writes, or a kernel does. */
START_TEST(waiting_for_words_goes_on)
{
    start_adversary(_i);
    CUstream a = new_stream(), b = new_stream(), c = new_stream();
    CUdeviceptr p = alloc_words(2);
    unsigned *flag;
    CUdeviceptr out = p + 4;
    OK(cuMemAllocHost_v2((void **)&flag, 4));
    *flag = 0;
    OK(cuMemsetD32_v2(p, 0, 2));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32_v2(b, p, 1, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamWriteValue32_v2(a, p, 1, 0));
    OK(cuStreamSynchronize(b));
    LAUNCH("wait_flag", b, &flag, &out);
    OK(cuLaunchHostFunc(c, raise_flag, flag));
    OK(cuStreamSynchronize(b));
    ck_assert_uint_eq(read_word(out), 1);
}
END_TEST

START_TEST(queues_have_an_end)
{
    start_adversary(0);
    CUstream s = new_stream();
    CUdeviceptr p = alloc_words(1);
    CUevent first;
    OK(cuEventCreate(&first, 0));
    set_word(p, 0);
    launch_step(p, 1, 1, s);
    OK(cuEventRecord(first, s));
    FAILS(cuEventQuery(first), CUDA_ERROR_NOT_READY);
    for (int i = 0; i < 2000; i++)
        launch_step(p, 1, 1, s);
    OK(cuEventQuery(first));
    FAILS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(read_word(p), 2001);
}
END_TEST

static void *sync_thread(void *arg)
{
    OK(cuCtxSetCurrent(test_ctx));
    for (int i = 0; i < 50; i++) {
        launch_step(*(CUdeviceptr *)arg, 1, 1, CU_STREAM_PER_THREAD);
        OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    }
    return NULL;
}

START_TEST(threads_go_on)
{
    start_adversary(_i);
    CUdeviceptr p[3];
    pthread_t t[3];
    for (int i = 0; i < 3; i++) {
        p[i] = alloc_words(1);
        set_word(p[i], 0);
        pthread_create(&t[i], NULL, sync_thread, &p[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        ck_assert_uint_eq(read_word(p[i]), 50);
    }
}
END_TEST

/* A destroyed stream and a destroyed event leave their work and their order behind. */
START_TEST(destroyed_early)
{
    start_adversary(_i);
    CUstream a = new_stream(), b = new_stream();
    CUdeviceptr p = alloc_words(1);
    CUevent e;
    set_word(p, 1);
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    launch_step(p, 3, 0, a);
    OK(cuEventRecord(e, a));
    OK(cuStreamDestroy_v2(a));
    OK(cuStreamWaitEvent(b, e, 0));
    OK(cuEventDestroy_v2(e));
    launch_step(p, 1, 4, b);
    OK(cuStreamSynchronize(b));
    ck_assert_uint_eq(read_word(p), 7);
}
END_TEST

/* ---- the rest --------------------------------------------------------------------------------------------------- */

static float timed_program(void)
{
    CUstream a = new_stream(), b = new_stream();
    CUevent from, to, mid;
    OK(cuEventCreate(&from, 0));
    OK(cuEventCreate(&to, 0));
    OK(cuEventCreate(&mid, 0));
    OK(cuEventRecord(from, a));
    launch_work(90000000000ull, 0, a);
    OK(cuEventRecord(mid, a));
    launch_work(45000000000ull, 0, b);
    OK(cuStreamWaitEvent(b, mid, 0));
    launch_work(45000000000ull, 0, b);
    OK(cuEventRecord(to, b));
    OK(cuEventSynchronize(to));
    float ms;
    OK(cuEventElapsedTime(&ms, from, to));
    return ms;
}

/* The simulated clock follows the calls, not what runs when. */
START_TEST(clock_stays_what_it_is)
{
    int ends[2];
    float plain, ms;
    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    if (!fork()) {
        start();
        plain = timed_program();
        _exit(write(ends[1], &plain, sizeof plain) != sizeof plain);
    }
    ck_assert_int_eq(read(ends[0], &plain, sizeof plain), sizeof plain);
    start_adversary(_i);
    ms = timed_program();
    ck_assert(ms == plain);
    ck_assert(ms > 1.9f);
}
END_TEST

START_TEST(settings)
{
    static const char *const bad[] = { "adversary:", "adversary:x", "adversarial", "adversary7", "adversary:7x" };
    setenv("SIMGPU_CHAOS", bad[_i], 1);
    FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("simgpu_adversary");
    TCase *t = tcase_create("adversary");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, reader_that_does_not_wait_reads_too_early);
    tcase_add_test(t, writer_that_does_not_wait_writes_too_early);
    tcase_add_test(t, event_recorded_too_soon_orders_nothing);
    tcase_add_test(t, process_that_stands_still_is_not_idle);
    tcase_add_test(t, pinned_memory_is_read_and_written_late);
    tcase_add_test(t, host_functions_come_late);
    tcase_add_test(t, unmapping_under_a_queued_kernel_faults);
    tcase_add_test(t, free_that_does_not_wait_for_its_reader_faults);
    tcase_add_test(t, allocation_that_is_not_waited_for_faults);
    tcase_add_test(t, memory_comes_full_of_garbage);
    tcase_add_test(t, seeds_make_racers_and_victims);
    tcase_add_loop_test(t, polling_goes_on, 0, 8);
    tcase_add_loop_test(t, spinning_on_memory_goes_on, 0, 8);
    tcase_add_loop_test(t, waiting_for_words_goes_on, 0, 8);
    tcase_add_test(t, queues_have_an_end);
    tcase_add_loop_test(t, threads_go_on, 0, 4);
    tcase_add_loop_test(t, destroyed_early, 0, SEEDS);
    tcase_add_loop_test(t, clock_stays_what_it_is, 0, 4);
    tcase_add_loop_test(t, settings, 0, 5);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
