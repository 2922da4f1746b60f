/* fixture.h: a device in the test's own process, and a small program on it that is recorded, planned and followed, without doors, threads or
 * a planner.
 *
 * The driver is a table of functions that do everything at once in host memory: a reservation is a range of addresses, a chunk a piece of one
 * file, which is mapped wherever it is mapped "on the device". So contents really move, a stale mapping really shows another buffer, and what
 * has no memory behind it faults.
 *
 * A program is a list of lines: buffers are made, filled with a byte, copied from one another, freed. What each buffer must hold after each
 * line is known without running anything (fx.want). Ops are fills and copies alone: all of them can be replayed.
 *
 *     static const struct fx_line program[] = {FX_MAKE(1), FX_FILL(1, 7), FX_COPY(2, 1), FX_FREE(1)};
 *     fx_begin(8);                            // a device of 8 pages
 *     fx_older(2);                            // a buffer that iterations find, and leave
 *     fx_record(program, 4);                  // one iteration, as learn/ would have seen it
 *     fx_plan("0 1 d1");                      // a plan: ops by number, rN replay of op N, dB oB lB fB drop, offload, release, fetch buffer B
 *     fx_install();
 *     fx_iteration(MODE_REHEARSE);            // follows it; ck_assert()s that every buffer is what it must be
 *
 * Threads: none. Errors: every failure is the test's (ck_assert).
 */
#ifndef REMAT_TESTS_FIXTURE_H
#define REMAT_TESTS_FIXTURE_H

#include "policy/learn/learn.h"
#include "policy/memory/alloc.h"
#include "policy/memory/foreign.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/memory/swap.h"
#include "policy/op/ready.h"
#include "policy/plan/cursor.h"
#include "policy/plan/detour.h"
#include "policy/plan/exec.h"
#include "policy/plan/install.h"
#include "policy/plan/leave.h"
#include "policy/plan/rebuild.h"
#include "policy/process/stats.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FX __attribute__((unused)) static

enum { FX_PAGE = 1 << 16, FX_BUFS = 32, FX_LINES = 128 };
enum fx_what { FX_MAKES, FX_FILLS, FX_COPIES, FX_FREES };
struct fx_line {
    enum fx_what what;
    int buf, arg; /* of a fill: the byte; of a copy: the buffer it is from; of a new one: pages */
};
#define FX_MAKE(b) {FX_MAKES, b, 1}
#define FX_MAKE_LARGE(b, pages) {FX_MAKES, b, pages}
#define FX_FILL(b, byte) {FX_FILLS, b, byte}
#define FX_COPY(b, from) {FX_COPIES, b, from}
#define FX_FREE(b) {FX_FREES, b, 0}

struct fixture {
    struct device d;
    struct config cfg;
    struct drv drv;
    int file;               /* all chunks, one after another */
    uint64_t n_made;        /* chunks so far */
    uint64_t released[16], n_released; /* their handles, which the next ones are given again, the latest first */
    void *host[64];         /* pinned blocks, which end with the device; NULL: none */
    unsigned ended;         /* iterations that ended before an op which came in place of their last ones */
    unsigned came_back;     /* times that the program was found to be back, after the plan was left */
    unsigned launches;      /* fills and copies that the device was given */
    const struct fx_line *lines;
    int n_lines;
    struct slot *slot[FX_BUFS]; /* that the program has now, by its own number; NULL: none */
    int want[FX_BUFS];          /* the byte that is everywhere in it; -1: nothing has written it */
    int32_t rec_buf[FX_BUFS];   /* buffer of the record */
};
FX struct fixture fx;

/* ---- the driver ---------------------------------------------------------------------------------------------------- */

FX CUresult fx_ok(void) { return CUDA_SUCCESS; }
FX CUresult fx_refuse(void) { return CUDA_ERROR_NOT_SUPPORTED; }
FX CUresult fx_granularity(size_t *g, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags f)
{
    (void)p, (void)f;
    *g = FX_PAGE;
    return CUDA_SUCCESS;
}
FX CUresult fx_reserve(CUdeviceptr *p, size_t bytes, size_t align, CUdeviceptr at, unsigned long long flags)
{
    (void)align, (void)at, (void)flags;
    char *q = mmap(NULL, bytes + FX_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *p = ((uintptr_t)q + FX_PAGE - 1) / FX_PAGE * FX_PAGE;
    return q == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
FX CUresult fx_unreserve(CUdeviceptr p, size_t bytes) { return munmap((void *)p, bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
FX CUresult fx_create(CUmemGenericAllocationHandle *h, size_t bytes, const CUmemAllocationProp *p, unsigned long long flags)
{
    (void)p, (void)flags;
    *h = fx.n_released ? fx.released[--fx.n_released] : ++fx.n_made;
    return ftruncate(fx.file, (off_t)(fx.n_made * bytes)) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
FX CUresult fx_release(CUmemGenericAllocationHandle h)
{
    if (fx.n_released < 16)
        fx.released[fx.n_released++] = h;
    return CUDA_SUCCESS;
}
FX CUresult fx_map(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags)
{
    (void)offset, (void)flags;
    for (uint64_t i = 0; i < fx.n_released; i++)
        if (fx.released[i] == h)
            return CUDA_ERROR_INVALID_VALUE;
    void *q = mmap((void *)p, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fx.file, (off_t)((h - 1) * bytes));
    return q == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
FX CUresult fx_unmap(CUdeviceptr p, size_t bytes)
{
    void *q = mmap((void *)p, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return q == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
FX CUresult fx_host(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    int i = 0;
    while (i < 63 && fx.host[i])
        i++;
    ck_assert_ptr_null(fx.host[i]);
    *p = fx.host[i] = malloc(bytes);
    return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
FX CUresult fx_host_free(void *p)
{
    for (int i = 0; i < 64; i++)
        if (fx.host[i] == p)
            fx.host[i] = NULL;
    free(p);
    return CUDA_SUCCESS;
}
FX CUresult fx_htod(CUdeviceptr to, const void *from, size_t n) { return memcpy((void *)to, from, n), CUDA_SUCCESS; }
FX CUresult fx_dtoh(void *to, CUdeviceptr from, size_t n) { return memcpy(to, (void *)from, n), CUDA_SUCCESS; }
FX CUresult fx_dtod(CUdeviceptr to, CUdeviceptr from, size_t n)
{
    fx.launches++;
    return memmove((void *)to, (void *)from, n), CUDA_SUCCESS;
}
FX CUresult fx_htod_async(CUdeviceptr to, const void *from, size_t n, CUstream s) { return (void)s, fx_htod(to, from, n); }
FX CUresult fx_dtoh_async(void *to, CUdeviceptr from, size_t n, CUstream s) { return (void)s, fx_dtoh(to, from, n); }
FX CUresult fx_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) { return (void)s, fx_dtod(to, from, n); }
FX CUresult fx_set(CUdeviceptr to, unsigned char byte, size_t n, CUstream s)
{
    (void)s;
    fx.launches++;
    return memset((void *)to, byte, n), CUDA_SUCCESS;
}
FX CUresult fx_stream(CUstream *s, unsigned flags)
{
    static uintptr_t n = 0x1000;
    (void)flags;
    *s = (CUstream)(n += 16);
    return CUDA_SUCCESS;
}
FX CUresult fx_event(CUevent *e, unsigned flags)
{
    (void)flags;
    *e = (CUevent)(uintptr_t)16;
    return CUDA_SUCCESS;
}

/* ---- a device ------------------------------------------------------------------------------------------------------ */

#define FX_CALL(name, f) fx.drv.name = (__typeof__(fx.drv.name))(void (*)(void))(f)

FX void fx_begin(unsigned pages)
{
    memset(&fx, 0, sizeof fx);
    fx.file = memfd_create("chunks", 0);
    ck_assert_int_ge(fx.file, 0);
#define FX_NONE(name) FX_CALL(name, fx_refuse);
    DRV_REQUIRED(FX_NONE)
#undef FX_NONE
    FX_CALL(cuMemGetAllocationGranularity, fx_granularity), FX_CALL(cuMemAddressReserve, fx_reserve), FX_CALL(cuMemAddressFree, fx_unreserve);
    FX_CALL(cuMemCreate, fx_create), FX_CALL(cuMemRelease, fx_release), FX_CALL(cuMemMap, fx_map), FX_CALL(cuMemUnmap, fx_unmap), FX_CALL(cuMemSetAccess, fx_ok);
    FX_CALL(cuMemHostAlloc, fx_host), FX_CALL(cuMemFreeHost, fx_host_free);
    FX_CALL(cuMemcpyHtoD_v2, fx_htod), FX_CALL(cuMemcpyDtoH_v2, fx_dtoh), FX_CALL(cuMemcpyDtoD_v2, fx_dtod);
    FX_CALL(cuMemcpyHtoDAsync_v2, fx_htod_async), FX_CALL(cuMemcpyDtoHAsync_v2, fx_dtoh_async), FX_CALL(cuMemcpyDtoDAsync_v2, fx_dtod_async);
    FX_CALL(cuMemsetD8Async, fx_set), FX_CALL(cuStreamCreate, fx_stream), FX_CALL(cuEventCreate, fx_event);
    FX_CALL(cuStreamDestroy_v2, fx_ok), FX_CALL(cuStreamSynchronize, fx_ok), FX_CALL(cuStreamQuery, fx_ok), FX_CALL(cuStreamWaitEvent, fx_ok);
    FX_CALL(cuEventDestroy_v2, fx_ok), FX_CALL(cuEventRecord, fx_ok), FX_CALL(cuEventQuery, fx_ok), FX_CALL(cuEventSynchronize, fx_ok);
    FX_CALL(cuCtxSynchronize, fx_ok);
    struct device *d = &fx.d;
    d->drv = &fx.drv;
    d->cfg = &fx.cfg;
    fx.cfg.host_swap_bytes = 64u << 20;
    fx.cfg.verify = VERIFY_OFF;
    d->mem.device_bytes = 1 << 28;
    d->mem.limit_bytes = d->mem.ceiling_bytes = d->mem.plan_limit_bytes = (uint64_t)pages * FX_PAGE;
    ck_assert_int_eq(learn_init(d), 0);
    ck_assert_int_eq(foreign_init(d), 0);
    ck_assert_int_eq(stats_init(d), 0);
    ck_assert_int_eq(op_init(d), 0);
    ck_assert_int_eq(memory_init(d), 0);
    ck_assert_int_eq(stream_init(d), 0);
    ck_assert_int_eq(pinned_init(d), 0);
    ck_assert_int_eq(swap_init(d), 0);
    stream_index(d, NULL);
    for (int b = 0; b < FX_BUFS; b++)
        fx.want[b] = -1;
}

/* The slots and chunks go; what small state the other files have ends with the process. */
FX void fx_end(void)
{
    struct device *d = &fx.d;
    exec_clear(d);
    for (int b = 0; b < FX_BUFS; b++)
        if (fx.slot[b])
            alloc_free(d, fx.slot[b]);
    ck_assert_uint_eq(memory_end(d), 0);
    pinned_end(d);
    for (int i = 0; i < 64; i++)
        free(fx.host[i]);
    close(fx.file);
}

/* ---- the program --------------------------------------------------------------------------------------------------- */

FX void fx_build(const struct fx_line *l, struct rt_op *op)
{
    const struct slot *s = fx.slot[l->buf];
    if (l->what == FX_FILLS) {
        const struct eng_memset m = {.dst = s->va, .value = (unsigned)l->arg, .elem_bytes = 1, .width = s->bytes, .height = 1};
        op_from_memset(&fx.d, &m, op);
    } else {
        const struct eng_copy c = {.kind = ENG_DTOD, .dst_dev = s->va, .src_dev = fx.slot[l->arg]->va, .bytes = s->bytes};
        op_from_copy(&fx.d, &c, op);
    }
}

FX bool fx_is_op(const struct fx_line *l) { return l->what == FX_FILLS || l->what == FX_COPIES; }

/* What the program's buffers hold after the line. */
FX void fx_happened(const struct fx_line *l)
{
    fx.want[l->buf] = l->what == FX_FILLS ? l->arg : l->what == FX_COPIES ? fx.want[l->arg] : -1;
    if (l->what == FX_FREES)
        fx.slot[l->buf] = NULL;
}

/* A buffer of one page that is older than the iteration, and full of that byte. */
FX void fx_older(int buf, int byte)
{
    ck_assert_int_eq(alloc_new(&fx.d, FX_PAGE, &fx.slot[buf]), 0);
    const struct fx_line fill = FX_FILL(buf, byte);
    struct rt_op op;
    fx_build(&fill, &op);
    ck_assert_int_eq(run_plain_drv(&fx.d, &op), 0);
    fx_happened(&fill);
}

FX int32_t fx_buf_of(struct slot *s)
{
    struct record *r = &fx.d.ex->learnt.rec;
    if (s->rec_buf < 0) {
        s->rec_buf = record_buf(r, s->bytes, s->id, s->serial, s->rec_buf <= -2 ? -2 - s->rec_buf : -1);
        ck_assert_int_ge(s->rec_buf, 0);
        r->bufs[s->rec_buf].birth_op = s->birth_op;
    }
    return s->rec_buf;
}

/* The program runs once, as it is; device.ex->learnt says what it did. */
FX void fx_record(const struct fx_line *lines, int n)
{
    struct device *d = &fx.d;
    struct recording *x = &d->ex->learnt;
    fx.lines = lines;
    fx.n_lines = n;
    x->caps = calloc((size_t)n + 1, sizeof *x->caps);
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        d->mem.slots[i].rec_buf = -1;
    for (const struct fx_line *l = lines; l < lines + n; l++) {
        if (l->what == FX_MAKES) {
            ck_assert_int_eq(alloc_new(d, (uint64_t)l->arg * FX_PAGE, &fx.slot[l->buf]), 0);
            fx.slot[l->buf]->rec_buf = -2 - record_alloc(&x->rec, (uint64_t)l->arg * FX_PAGE);
        } else if (l->what == FX_FREES) {
            record_free(&x->rec, fx_buf_of(fx.slot[l->buf]));
            alloc_free(d, fx.slot[l->buf]);
        } else {
            struct rt_op op;
            fx_build(l, &op);
            const int i = record_op(&x->rec, op.sig, l->what == FX_FILLS ? "fill" : "copy", NULL, d->mem.live_bytes);
            for (uint32_t k = 0; k < op.n_operands; k++)
                record_operand(&x->rec, fx_buf_of(op.operands[k].slot), op.operands[k].offset, op.operands[k].delta, op.operands[k].mode);
            x->rec.ops[i].ns = 1000;
            fx.rec_buf[l->buf] = fx_buf_of(fx.slot[l->buf]);
            ck_assert_int_eq(run_plain_drv(d, &op), 0);
            ck_assert_int_eq(op_capture(&x->caps[i], &op), 0);
            d->op_count++;
        }
        fx_happened(l);
    }
    ck_assert_int_eq(record_seal(&x->rec), 0);
    x->n_caps = x->n_trace_ops = x->rec.n_ops;
    x->op_of_trace = calloc(x->n_caps + 1, sizeof *x->op_of_trace);
    for (uint32_t i = 0; i < x->n_caps; i++)
        x->op_of_trace[i] = i;
    x->boundary_live_bytes = d->mem.live_bytes;
    ck_assert_int_eq(exec_index(d), 0);
}

/* ---- a plan -------------------------------------------------------------------------------------------------------- */

/* See above. Buffers have the program's own numbers. Returns exec_load_plan()'s answer. */
FX int fx_try_plan(const char *text, bool own)
{
    struct plan p = {.limit_bytes = 1, .peak_bytes = 1};
    char path[] = "/tmp/remat-test-XXXXXX", err[400] = "";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    for (const char *c = text; *c; c += strcspn(c, " "), c += strspn(c, " ")) {
        const char *const kind = strchr("rdolf", *c);
        const int id = atoi(c + (kind != NULL));
        static const enum plan_kind of[] = {PLAN_REPLAY, PLAN_DROP, PLAN_OFFLOAD, PLAN_RELEASE, PLAN_FETCH};
        ck_assert_int_eq(plan_push(&p, kind ? of[kind - "rdolf"] : PLAN_OP, kind && *c != 'r' ? fx.rec_buf[id] : id), 0);
    }
    ck_assert_msg(plan_write(&p, path, err, sizeof err) == 0, "%s", err);
    plan_free(&p);
    const int r = exec_load_plan(&fx.d, path, own);
    unlink(path);
    return r;
}
FX void fx_plan(const char *text) { ck_assert_int_eq(fx_try_plan(text, true), 0); }

/* All chunks that the map needs are there, or the test says how many are not. */
FX void fx_install(int lacking)
{
    ck_assert_int_eq(install_plan(&fx.d), lacking);
    cursor_begin(&fx.d);
}

/* ---- an iteration under it ----------------------------------------------------------------------------------------- */

/* The buffer's content, wherever it is. */
FX void fx_check(int buf)
{
    struct slot *s = fx.slot[buf];
    if (!s || fx.want[buf] < 0)
        return;
    ck_assert_msg(s->state == SLOT_RESIDENT || s->state == SLOT_HOST, "buffer %d has no content: state %d", buf, s->state);
    const unsigned char *p = s->state == SLOT_HOST ? s->host->p : (const void *)s->va;
    for (uint64_t i = 0; i < s->bytes; i += 509)
        ck_assert_msg(p[i] == fx.want[buf], "buffer %d: byte %llu is %d, and must be %d", buf, (unsigned long long)i, p[i], fx.want[buf]);
}

FX void fx_check_all(void)
{
    for (int b = 0; b < FX_BUFS; b++)
        fx_check(b);
}

FX bool fx_follows(void) { return fx.d.mode == MODE_REHEARSE || fx.d.mode == MODE_ENFORCE; }

/* One line of the program, under the plan while that is followed. What the op has touched is what it must be. */
FX void fx_line(const struct fx_line *l)
{
    struct device *d = &fx.d;
    if (l->what == FX_MAKES) {
        const uint64_t bytes = (uint64_t)l->arg * FX_PAGE;
        fx.slot[l->buf] = fx_follows() ? exec_alloc(d, bytes) : NULL;
        if (!fx.slot[l->buf])
            ck_assert_int_eq(alloc_new(d, bytes, &fx.slot[l->buf]), 0);
    } else if (l->what == FX_FREES) {
        if (!fx_follows() || !exec_free(d, fx.slot[l->buf]))
            alloc_free(d, fx.slot[l->buf]);
    } else {
        struct rt_op op;
        enum exec_left left = EXEC_LEFT_BEFORE;
        fx_build(l, &op);
        int r = fx_follows() ? exec_op_drv(d, &op, &left) : 0;
        if (fx_follows() && left == EXEC_ENDED) {
            fx.ended++;
            exec_end_iteration(d);
            fx_check_all();
            cursor_begin(d);
            exec_resume(d);
            r = exec_op_drv(d, &op, &left);
        }
        if (fx_follows() && left != EXEC_STAYED)
            d->mode = MODE_OBSERVE;
        if (left == EXEC_LEFT_BEFORE && !d->ex->now.code)
            r = run_plain_drv(d, &op);
        ck_assert_int_eq(r, 0);
        fx.came_back += !fx_follows() && detour_comes_back(d, &op);
        d->op_count++;
    }
    fx_happened(l);
    if (fx_is_op(l))
        fx_check(l->buf);
}

/* The lines from..to of the program. */
FX void fx_run(int from, int to)
{
    for (int i = from; i < to; i++)
        fx_line(&fx.lines[i]);
}

/* A whole one; then all buffers are looked at, and the next begins. What came of it. */
FX enum exec_end fx_iteration(enum rt_mode mode)
{
    fx.d.mode = mode;
    fx_run(0, fx.n_lines);
    ck_assert_int_eq(fx.d.mode, mode);
    const enum exec_end end = exec_end_iteration(&fx.d);
    ck_assert_int_eq(fx.d.ex->now.code, 0);
    fx_check_all();
    cursor_begin(&fx.d);
    return end;
}

/* The plan is left where it stands. */
FX void fx_leave(void)
{
    leave_plan(&fx.d, "the test says so", NULL);
    fx.d.mode = MODE_OBSERVE;
}

#endif
