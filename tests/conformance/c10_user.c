/* c10_user: calls what PyTorch's libraries call of each other (fake_c10.c), as they do when they refuse something, and prints what comes of it. */
#include "tests/conformance/c10_types.h"

#include <stdio.h>
#include <string.h>

void fail_text(const char *, const char *, uint32_t, const char *) __asm__("_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
void fail_string(const char *, const char *, uint32_t, const struct string *) __asm__("_ZN3c106detail14torchCheckFailEPKcS2_jRK" STRING);
void error_part(void *, struct place, struct string *) __asm__("_ZN3c105ErrorC2ENS_14SourceLocationE" STRING);
void no_memory(void *, struct place, struct string *) __asm__("_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationE" STRING);
void parse(void *, const struct string *) __asm__("_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERK" STRING);
void parse_cuda(void *, const struct string *) __asm__("_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig9parseArgsERK" STRING);
void fake_check(int code, const char *file);

static struct string string(char *s) { return (struct string){s, strlen(s), strlen(s), 0}; }

int main(void)
{
    static const char async[] = "/src/c10/cuda/CUDAMallocAsyncAllocator.cpp", other[] = "/src/c10/core/Tensor.cpp";
    const struct place at = {"malloc", async, 3};
    int self;
    char why[] = "cudaMallocAsync does not yet support shareIpcHandle. If you need it, please file an issue.";
    struct string s = string(why);
    fail_text("f", async, 1, "cudaMallocAsync does not yet support recordHistory. If you need it, please file an issue.");
    fail_text("f", async, 1, "Calling snapshot with backend:cudaMallocAsync is not meaningful. (For backend:native, ..)");
    fail_string("f", async, 2, &s);
    fail_string("f", async, 2, &s);
    fail_text("f", other, 1, "something does not yet support this");
    fail_text("f", async, 1, "Invalid device argument.");
    static char texts[][120] = {"Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 4.00 MiB",
                                "Allocation on device 12 would exceed allowed memory. (out of memory)", "Allocation on device 0 would be nice",
                                "Allocation on device x would exceed allowed memory. (out of memory)\n", ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        s = string(texts[i]);
        (i % 2 ? error_part : no_memory)(&self, at, &s);
    }
    fake_check(2, "/src/c10/cuda/CUDACachingAllocator.cpp");
    fake_check(2, other);
    fake_check(1, "/src/c10/cuda/CUDACachingAllocator.cpp");
    static char settings[][60] = {"expandable_segments:True,pinned_num_register_threads:4", "backend:native", ""};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        s = string(settings[i]);
        (i % 2 ? parse_cuda : parse)(&self, &s);
    }
    return 0;
}
