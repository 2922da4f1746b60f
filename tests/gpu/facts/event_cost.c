/* event_cost: what do the ordering calls cost the host, and the device?
 *
 * Host microseconds per cuEventRecord, cuStreamWaitEvent, cuEventQuery (passed event) and cuStreamQuery, each over
 * many calls; and what a record+wait pair between two streams adds to a chain of small kernels on the device.
 */
#include "tests/gpu/facts/fact.h"

enum { CALLS = 2000, HOPS = 1000, TRIES = 5 };

static CUfunction fill;
static CUstream s, t;
static CUevent go, back;
static CUdeviceptr buf;

/* HOPS pairs of small kernels, the second of each pair on `second`; with `order`, events tie them. Microseconds. */
static double chain(CUstream second, bool order)
{
    uint64_t words = 256;
    uint32_t v = 1;
    fact_cu(cuCtxSynchronize());
    double begin = fact_now_us();
    for (int i = 0; i < HOPS; i++) {
        fact_launch(fill, 1, s, (void *[]){&buf, &words, &v});
        if (order) {
            fact_cu(cuEventRecord(go, s));
            fact_cu(cuStreamWaitEvent(second, go, 0));
        }
        fact_launch(fill, 1, second, (void *[]){&buf, &words, &v});
        if (order) {
            fact_cu(cuEventRecord(back, second));
            fact_cu(cuStreamWaitEvent(s, back, 0));
        }
    }
    fact_cu(cuCtxSynchronize());
    return fact_now_us() - begin;
}

#define PER_CALL(key, call)                                                                                            \
    do {                                                                                                               \
        double us_[TRIES];                                                                                             \
        for (int r_ = 0; r_ < TRIES; r_++) {                                                                           \
            fact_cu(cuCtxSynchronize());                                                                               \
            double b_ = fact_now_us();                                                                                 \
            for (int i_ = 0; i_ < CALLS; i_++)                                                                         \
                fact_cu(call);                                                                                         \
            us_[r_] = (fact_now_us() - b_) / CALLS;                                                                    \
        }                                                                                                              \
        fact_num(key, fact_median(us_, TRIES));                                                                        \
    } while (0)

int main(void)
{
    fact_begin("event_cost");
    fact_open();
    fill = fact_kernel(fact_module(), "fact_fill");
    fact_cu(cuMemAlloc_v2(&buf, 4096));
    fact_cu(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    fact_cu(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    fact_cu(cuEventCreate(&go, CU_EVENT_DISABLE_TIMING));
    fact_cu(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
    chain(t, true);

    PER_CALL("record_us", cuEventRecord(go, s));
    PER_CALL("wait_us", cuStreamWaitEvent(t, go, 0));
    PER_CALL("event_query_us", cuEventQuery(go));
    PER_CALL("stream_query_us", cuStreamQuery(s));

    double same[TRIES], two[TRIES];
    for (int r = 0; r < TRIES; r++) {
        same[r] = chain(s, false) / HOPS;
        two[r] = chain(t, true) / HOPS;
    }
    double a = fact_median(same, TRIES), b = fact_median(two, TRIES);
    fact_num("pair_one_stream_us", a);
    fact_num("pair_two_streams_us", b);
    fact_num("hop_us", (b - a) / 2);
    return fact_end();
}
