/* libFuzzer target: fuzz_plan of fuzz_readers.h. Build: clang -fsanitize=fuzzer,address with the offline objects. */
#include "tests/fuzz/fuzz_readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_plan(data, len);
    return 0;
}
