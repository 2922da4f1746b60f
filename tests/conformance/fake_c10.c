/* fake_c10.c: in place of PyTorch's libc10.so and libc10_cuda.so (-DCUDA_PART): the functions that the doors stand in front of (preload/torch_c10.c). Each prints
 * what it is given. C++ is not needed: names and layouts are the compiler's.
 */
#include "tests/conformance/c10_types.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CUDA_PART
void fake_fail_text(const char *, const char *, uint32_t, const char *) __asm__("_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
void fake_fail_string(const char *, const char *, uint32_t, const struct string *) __asm__("_ZN3c106detail14torchCheckFailEPKcS2_jRK" STRING);
void fake_error(void *, struct place, struct string *) __asm__("_ZN3c105ErrorC1ENS_14SourceLocationE" STRING);
void fake_error_part(void *, struct place, struct string *) __asm__("_ZN3c105ErrorC2ENS_14SourceLocationE" STRING);
void fake_no_memory(void *, struct place, struct string *) __asm__("_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationE" STRING);
void fake_parse(void *, const struct string *) __asm__("_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERK" STRING);
extern int fake_type __asm__("_ZTIN3c1016OutOfMemoryErrorE");
int fake_type = 7;

void fake_fail_text(const char *function, const char *file, uint32_t line, const char *why) { printf("fails %s %s %u %s\n", function, file, line, why); }
void fake_fail_string(const char *function, const char *file, uint32_t line, const struct string *why)
{
    printf("fails %s %s %u %.*s\n", function, file, line, (int)why->length, why->text);
}
void fake_error(void *self, struct place at, struct string *why) { printf("error %d %s %u %.*s\n", self != NULL, at.file, at.line, (int)why->length, why->text); }
void fake_error_part(void *self, struct place at, struct string *why) { fake_error(self, at, why); }
void fake_no_memory(void *self, struct place at, struct string *why) { fake_error(self, at, why); }
void fake_parse(void *self, const struct string *settings) { printf("settings %d %.*s\n", self != NULL, (int)settings->length, settings->text); }
#else
void fake_checked(int, const char *, const char *, uint32_t, bool, void *)
    __asm__("_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jbPNS0_19CUDAErrorLogCaptureE");
void fake_parse_cuda(void *, const struct string *) __asm__("_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig9parseArgsERK" STRING);
void *fake_new(size_t) __asm__("_Znwm");
void *__cxa_allocate_exception(size_t);
void __cxa_throw(void *, void *, void *);
int cudaGetLastError(void);
void fake_check(int code, const char *file);

void fake_checked(int code, const char *file, const char *function, uint32_t line, bool assertions, void *log)
{
    printf("checked %d %s %s %u %d %d\n", code, file, function, line, assertions, log != NULL);
}
void fake_parse_cuda(void *self, const struct string *settings) { printf("settings %d %.*s\n", self != NULL, (int)settings->length, settings->text); }
void *fake_new(size_t n) { return malloc(n); }
void *__cxa_allocate_exception(size_t n) { return malloc(n); }
void __cxa_throw(void *e, void *type, void *gone) { printf("thrown %d %d %d\n", e != NULL, *(int *)type, gone != NULL); }
int cudaGetLastError(void) { return printf("asked for the error\n"), 2; }
void fake_check(int code, const char *file) { fake_checked(code, file, "malloc", 5, true, NULL); }
#endif
