/* A library of NVTX for tests: writes each range to the file NVTX_RECORD, a line each: "push TEXT", "pop", "start N TEXT", "end N". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *out(void)
{
    static FILE *f;
    const char *path = getenv("NVTX_RECORD");
    if (!f && path && (f = fopen(path, "we")))
        setvbuf(f, NULL, _IOLBF, 0);
    return f ? f : stderr;
}

static uint64_t ranges;
int nvtxRangePushA(const char *text);
int nvtxRangePop(void);
uint64_t nvtxRangeStartA(const char *text);
void nvtxRangeEnd(uint64_t n);

int nvtxRangePushA(const char *text) { return fprintf(out(), "push %s\n", text); }
int nvtxRangePop(void) { return fprintf(out(), "pop\n"); }
uint64_t nvtxRangeStartA(const char *text)
{
    fprintf(out(), "start %llu %s\n", (unsigned long long)++ranges, text);
    return ranges;
}
void nvtxRangeEnd(uint64_t n) { fprintf(out(), "end %llu\n", (unsigned long long)n); }
