/* rt_check: each fault that is put into the bookkeeping of memory is found, where it is come upon and by audit_memory(); what is found is
 * said once, with its place; and a device without a fault fails no check. */
#include "policy/device.h"
#include "policy/memory/alloc.h"
#include "policy/memory/audit.h"
#include "policy/memory/chunk.h"
#include "policy/memory/resident.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/process/check.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRAN = 1 << 21, CHUNKS = 8 };

static struct config cfg;
static struct drv drv;
static struct device d;
static unsigned made;

static CUresult granularity(size_t *out, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags flags)
{
    (void)prop, (void)flags;
    *out = GRAN;
    return CUDA_SUCCESS;
}
static CUresult address_reserve(CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr at, unsigned long long flags)
{
    (void)bytes, (void)align, (void)at, (void)flags;
    *out = 1ull << 45;
    return CUDA_SUCCESS;
}
static CUresult address_free(CUdeviceptr at, size_t bytes)
{
    (void)at, (void)bytes;
    return CUDA_SUCCESS;
}
static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags)
{
    (void)bytes, (void)prop, (void)flags;
    *out = ++made;
    return CUDA_SUCCESS;
}
static CUresult release(CUmemGenericAllocationHandle h)
{
    (void)h;
    return CUDA_SUCCESS;
}
static CUresult map(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags)
{
    (void)at, (void)bytes, (void)offset, (void)h, (void)flags;
    return CUDA_SUCCESS;
}
static CUresult unmap(CUdeviceptr at, size_t bytes)
{
    (void)at, (void)bytes;
    return CUDA_SUCCESS;
}
static CUresult set_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *acc, size_t n)
{
    (void)at, (void)bytes, (void)acc, (void)n;
    return CUDA_SUCCESS;
}
static CUresult stream_create(CUstream *s, unsigned flags)
{
    (void)flags;
    *s = (CUstream)(uintptr_t)(0x100 + ++made);
    return CUDA_SUCCESS;
}
static CUresult event_create(CUevent *e, unsigned flags)
{
    static char one[1];
    (void)flags;
    *e = (CUevent)one;
    return CUDA_SUCCESS;
}
static CUresult event_record(CUevent e, CUstream s)
{
    (void)e, (void)s;
    return CUDA_SUCCESS;
}
static CUresult event_synchronize(CUevent e)
{
    (void)e;
    return CUDA_SUCCESS;
}
static CUresult stream_wait_event(CUstream s, CUevent e, unsigned flags)
{
    (void)s, (void)e, (void)flags;
    return CUDA_SUCCESS;
}

static void start(void)
{
    memset(&d, 0, sizeof d);
    drv = (struct drv){.cuMemGetAllocationGranularity = granularity,
                       .cuMemAddressReserve = address_reserve,
                       .cuMemAddressFree = address_free,
                       .cuMemCreate = create,
                       .cuMemRelease = release,
                       .cuMemMap = map,
                       .cuMemUnmap = unmap,
                       .cuMemSetAccess = set_access,
                       .cuStreamCreate = stream_create,
                       .cuEventCreate = event_create,
                       .cuEventRecord = event_record,
                       .cuEventSynchronize = event_synchronize,
                       .cuStreamWaitEvent = stream_wait_event};
    d.drv = &drv;
    d.cfg = &cfg;
    d.mem.device_bytes = d.mem.limit_bytes = d.mem.ceiling_bytes = d.mem.plan_limit_bytes = (uint64_t)CHUNKS * GRAN;
    ck_assert_int_eq(memory_init(&d), 0);
    ck_assert_int_eq(stream_init(&d), 0);
}

static void end(void)
{
    memory_end(&d);
    free(d.streams);
}

/* A buffer of so many chunks, in memory. */
static struct slot *buffer(unsigned chunks)
{
    struct slot *s;
    ck_assert_int_eq(alloc_new(&d, (uint64_t)chunks * GRAN, &s), 0);
    ck_assert_int_eq(resident_back(&d, s), 0);
    return s;
}

static void ck_found(void)
{
    ck_assert_uint_eq(d.doubt, DOUBT_MEMORY);
    d.doubt = DOUBT_NONE;
}

static void ck_audit_finds(void)
{
    ck_assert_uint_eq(d.doubt, DOUBT_NONE);
    audit_memory(&d);
    ck_found();
}

START_TEST(nothing_is_found_where_nothing_is_wrong)
{
    struct slot *a = buffer(3), *small, *b;
    ck_assert_int_eq(alloc_new(&d, 1000, &small), 0);
    audit_memory(&d);
    alloc_free(&d, a);
    b = buffer(2);
    stream_issued(&d, STREAM_IN);
    fence_add(&d, &b->users, STREAM_IN);
    audit_memory(&d);
    alloc_free(&d, small);
    alloc_free(&d, b);
    a = buffer(5);
    ck_assert_int_eq(fence_sync(&d, &a->ready), 0);
    room_give(&d, UINT64_MAX);
    audit_memory(&d);
    ck_assert_uint_eq(d.doubt, DOUBT_NONE);
}
END_TEST

/* The chunk of another slot is not put into the list of free ones. */
START_TEST(a_chunk_of_another_slot)
{
    struct slot *a = buffer(2), *b = buffer(2);
    const uint32_t n_free = d.mem.n_free_chunks;
    d.mem.chunks[a->map[1]].owner = (int32_t)b->id;
    ck_audit_finds();
    alloc_free(&d, a);
    ck_found();
    ck_assert_uint_eq(d.mem.n_free_chunks, n_free);
}
END_TEST

/* Nobody is given the chunk of another slot, though it is in the list of free ones. */
START_TEST(a_free_chunk_that_somebody_has)
{
    struct slot *a = buffer(2), *b = buffer(2), *c;
    alloc_free(&d, a);
    d.mem.limit_bytes = d.mem.plan_limit_bytes = (uint64_t)d.mem.n_chunks * GRAN;
    d.mem.chunks[d.mem.free_head].owner = (int32_t)b->id;
    ck_audit_finds();
    ck_assert_int_eq(alloc_new(&d, GRAN, &c), 0);
    ck_assert_int_lt(resident_back(&d, c), 0);
    ck_found();
    ck_assert_int_ne(c->state, SLOT_RESIDENT);
}
END_TEST

START_TEST(a_page_that_says_another_chunk)
{
    struct slot *a = buffer(2), *b = buffer(2);
    a->map[0] = b->map[0];
    ck_audit_finds();
}
END_TEST

START_TEST(a_count_of_chunks)
{
    buffer(1);
    d.mem.n_free_chunks++;
    ck_audit_finds();
    d.mem.n_free_chunks--;
    d.mem.n_gone++;
    ck_audit_finds();
    d.mem.n_gone--;
    audit_memory(&d);
    ck_assert_uint_eq(d.doubt, DOUBT_NONE);
}
END_TEST

/* A slot that is on the host, but has no copy there, is not brought in. */
START_TEST(a_slot_without_its_copy)
{
    struct slot *a = buffer(1);
    slot_unback(&d, a, SLOT_EMPTY);
    a->state = SLOT_HOST;
    ck_audit_finds();
    ck_assert_int_eq(resident_swap_in(&d, a), -EINVAL);
    ck_found();
}
END_TEST

/* An arena's unit that somebody has is not given to another small buffer unseen. */
START_TEST(a_small_buffer_in_anothers_place)
{
    struct slot *a, *b;
    ck_assert_int_eq(alloc_new(&d, 1000, &a), 0);
    ck_assert_int_eq(alloc_new(&d, 1000, &b), 0);
    b->entry = a->entry;
    alloc_free(&d, b);
    ck_found();
}
END_TEST

/* A fence that speaks of what has yet to be queued is waited for as far as anything has been. */
START_TEST(a_fence_of_the_future)
{
    struct slot *a = buffer(1);
    struct fence into = {0};
    stream_issued(&d, STREAM_OUT);
    a->ready.point[0] = fence_point(STREAM_OUT, d.seq[STREAM_OUT] + 1);
    ck_audit_finds();
    ck_assert_int_eq(fence_wait(&d, STREAM_IN, &a->ready), 0);
    ck_found();
    fence_merge_all(&d, &into, &a->ready);
    ck_found();
    ck_assert_uint_eq(into.point[0], fence_point(STREAM_OUT, d.seq[STREAM_OUT]));
}
END_TEST

/* A stream of which the host has seen the end of more than there was: what it is to wait for counts as not seen. */
START_TEST(a_stream_that_ended_too_early)
{
    struct fence f = {0};
    stream_issued(&d, STREAM_OUT);
    fence_add(&d, &f, STREAM_OUT);
    const uint64_t seq = d.seq[STREAM_OUT];
    ck_assert_int_eq(fence_sync(&d, &f), 0);
    d.seq[STREAM_OUT] = seq - 1; /* as if it had counted backwards */
    ck_audit_finds();
}
END_TEST

/* One line for each kind of doubt, whatever fails afterwards. */
START_TEST(said_once_with_its_place)
{
    char text[2048] = "", place[64];
    FILE *f = tmpfile();
    const int err = dup(2);
    dup2(fileno(f), 2);
    const int line = __LINE__ + 1;
    ck_assert(!rt_check_plan(&d, d.mem.n_chunks > 99));
    ck_assert(!rt_check_plan(&d, d.mem.n_chunks > 98));
    ck_assert_uint_eq(d.doubt, DOUBT_PLAN);
    ck_assert(!rt_check(&d, d.mem.n_slots > 97));
    ck_assert(!rt_check(&d, d.mem.n_slots > 96));
    ck_assert(!rt_check_plan(&d, d.mem.n_chunks > 95));
    ck_assert_uint_eq(d.doubt, DOUBT_MEMORY);
    ck_assert(rt_check(&d, d.mem.limit_bytes > 0));
    dup2(err, 2);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    snprintf(place, sizeof place, "test_check.c:%d: ", line);
    ck_assert_msg(strstr(text, place) && strstr(text, "d.mem.n_chunks > 99"), "%s", text);
    ck_assert_msg(strstr(text, "d.mem.n_slots > 97") && !strstr(text, "> 98") && !strstr(text, "> 96") && !strstr(text, "> 95"), "%s", text);
}
END_TEST

/* The launches that are told by their bytes are told so no longer: the next one is looked at in full. */
START_TEST(steady_launches_end)
{
    const uint64_t before = d.mem.address_changes;
    rt_check_plan(&d, false);
    ck_assert_uint_ne(d.mem.address_changes, before);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("check");
    TCase *t = tcase_create("check");
    tcase_add_checked_fixture(t, start, end);
    tcase_add_test(t, nothing_is_found_where_nothing_is_wrong);
    tcase_add_test(t, a_chunk_of_another_slot);
    tcase_add_test(t, a_free_chunk_that_somebody_has);
    tcase_add_test(t, a_page_that_says_another_chunk);
    tcase_add_test(t, a_count_of_chunks);
    tcase_add_test(t, a_slot_without_its_copy);
    tcase_add_test(t, a_small_buffer_in_anothers_place);
    tcase_add_test(t, a_fence_of_the_future);
    tcase_add_test(t, a_stream_that_ended_too_early);
    tcase_add_test(t, said_once_with_its_place);
    tcase_add_test(t, steady_launches_end);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
