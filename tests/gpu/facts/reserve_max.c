/* reserve_max: how much virtual address space does one process get?
 *
 * The largest single cuMemAddressReserve that succeeds (to 2 MiB, by doubling and then halving the step), what it
 * costs, how far many reservations of an eighth of it go together, and what fixed-address hints are worth.
 */
#include "tests/gpu/facts/fact.h"

static bool try_reserve(size_t bytes, CUdeviceptr *va)
{
    return cuMemAddressReserve(va, bytes, 0, 0, 0) == CUDA_SUCCESS;
}

int main(void)
{
    fact_begin("reserve_max");
    fact_open();
    CUdeviceptr va = 0;
    size_t best = 0;
    for (size_t bytes = FACT_CHUNK_BYTES; bytes <= (size_t)1 << 56; bytes *= 2) {
        if (!try_reserve(bytes, &va))
            break;
        fact_cu(cuMemAddressFree(va, bytes));
        best = bytes;
    }
    for (size_t step = best / 2; step >= FACT_CHUNK_BYTES; step /= 2) {
        if (try_reserve(best + step, &va)) {
            best += step;
            fact_cu(cuMemAddressFree(va, best));
        }
    }
    fact_int("max_reservation_bytes", (long long)best);
    fact_bool("answer", best >= (size_t)1 << 40); /* a terabyte of slots is what a process may come to need */

    double t = fact_now_us();
    bool again = try_reserve(best, &va);
    fact_num("reserve_max_us", fact_now_us() - t);
    fact_bool("max_repeatable", again);
    if (again) {
        t = fact_now_us();
        fact_cu(cuMemAddressFree(va, best));
        fact_num("free_max_us", fact_now_us() - t);
    }

    CUdeviceptr part[64];
    int parts = 0;
    size_t eighth = best / 8 / FACT_CHUNK_BYTES * FACT_CHUNK_BYTES;
    while (eighth && parts < 64 && try_reserve(eighth, &part[parts]))
        parts++;
    fact_num("total_bytes_in_eighths", (double)parts * (double)eighth);
    /* a hint at an address that was just free */
    if (parts) {
        CUdeviceptr hint = part[0], got = 0;
        fact_cu(cuMemAddressFree(part[0], eighth));
        fact_bool("hint_honoured",
                  cuMemAddressReserve(&got, eighth, 0, hint, 0) == CUDA_SUCCESS && got == hint);
        if (got)
            fact_cu(cuMemAddressFree(got, eighth));
    }
    for (int i = 1; i < parts; i++)
        fact_cu(cuMemAddressFree(part[i], eighth));
    return fact_end();
}
