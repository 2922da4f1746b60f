/* What a call of the driver leaves on the caller's stack, in the 48 KiB below, where a program's next function has its variables: the number
 * of bytes that are neither what they were before nor zero. PyTorch hands over lists of tensors that lie there and are not filled.
 *
 *   litter [KIB]     after an allocation, a fill and a free; then the same calls in a thread with a stack of so many KiB
 *
 * Before that 128 MiB are in use: where that is more than there may be, arguments are learnt from.
 */
#include <pthread.h>

#include "program.h"

enum { BELOW = 48 << 10, NEAR = 512, SOIL = 0xab, MUCH = 64 << 20 };

/* The nearest bytes hold what this program's own functions have left. */
__attribute__((noinline, no_sanitize("address", "thread"))) static unsigned left_there(void)
{
    unsigned char below[BELOW];
    unsigned n = 0;
    __asm__ volatile("" : : "r"(below) : "memory");
    for (unsigned i = 0; i < BELOW - NEAR; i++)
        n += below[i] != 0 && below[i] != SOIL;
    return n;
}

__attribute__((noinline, no_sanitize("address", "thread"))) static void soil(void)
{
    unsigned char below[BELOW];
    memset(below, SOIL, sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory");
}

__attribute__((noinline)) static void work(CUdeviceptr *p, int what)
{
    if (what == 0)
        MUST(cuMemAllocAsync(p, 1 << 20, NULL));
    else if (what == 1)
        MUST(cuMemsetD8Async(*p, 1, 1 << 20, NULL));
    else
        MUST(cuMemFreeAsync(*p, NULL));
}

static void *in_thread(void *context)
{
    CUdeviceptr p = 0;
    MUST(cuCtxSetCurrent(context));
    for (int what = 0; what < 3; what++)
        work(&p, what);
    return NULL;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"alloc", "fill", "free"};
    CUdeviceptr p = 0;
    CUcontext c = primary_context();
    CUdeviceptr much[2];
    for (int i = 0; i < 2; i++) {
        MUST(cuMemAllocAsync(&much[i], MUCH, NULL));
        MUST(cuMemsetD8Async(much[i], 1, MUCH, NULL));
    }
    for (int i = 0; i < 2; i++)
        MUST(cuMemFreeAsync(much[i], NULL));
    work(&p, 0); /* whatever is done once */
    work(&p, 2);
    for (int what = 0; what < 3; what++) {
        soil();
        work(&p, what);
        printf("%s %u\n", names[what], left_there());
    }
    if (argc > 1) {
        pthread_attr_t a;
        pthread_t t;
        pthread_attr_init(&a);
        if (pthread_attr_setstacksize(&a, (size_t)atoi(argv[1]) << 10) || pthread_create(&t, &a, in_thread, c) || pthread_join(t, NULL))
            return 1;
        puts("lives");
    }
    return 0;
}
