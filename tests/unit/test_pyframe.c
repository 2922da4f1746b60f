/* Lines of Python, read from an interpreter made here: known layouts, published ones, and ones that lie. The program exports the
 * names that CPython exports; each test lays its objects out as a version of CPython does. */
#include "tracer/pyframe.h"
#include "tracer/site.h"

#include <check.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT unsigned long Py_Version;
EXPORT uint64_t _PyRuntime[128];
EXPORT uint64_t PyCode_Type[4], PyUnicode_Type[4], PyBytes_Type[4];
static void *thread_now;
EXPORT void *PyGILState_GetThisThreadState(void);
void *PyGILState_GetThisThreadState(void) { return thread_now; }

/* where things lie in the interpreter at hand, in words */
static struct {
    unsigned head, text, thread_frame, code, previous, instr, file, qual, table, first_byte, bytecode;
    bool by_way;
    unsigned by_way_at;
} at;

enum { OBJECT_WORDS = 256 };
static uint64_t *object(const void *type)
{
    uint64_t *o = calloc(OBJECT_WORDS, sizeof *o);
    if (type)
        o[at.head - 1] = (uintptr_t)type;
    return o;
}

static uint64_t *ascii(const char *s)
{
    uint64_t *o = object(PyUnicode_Type);
    o[at.head] = strlen(s);
    strcpy((char *)(o + at.text), s);
    return o;
}

/* two bytes a character */
static uint64_t *wide(const uint16_t *s, size_t n)
{
    uint64_t *o = object(PyUnicode_Type);
    o[at.head] = n;
    o[at.head + 2] = 2 << 2 | 1 << 5;
    memcpy(o + at.text + (at.text == 6 ? 3 : 2), s, n * sizeof *s);
    return o;
}

/* four units on the first line, three units two lines on, one with no line, two units 40 back (the long form) */
static const unsigned char lines[] = {0x80 | 2 << 3 | 3, 0x11, 0x80 | 12 << 3 | 2, 1, 1, 0x80 | 15 << 3, 0x80 | 14 << 3 | 1, 0x51, 1, 0, 0, 0};
enum { FIRST_LINE = 100 };

static uint64_t *code(uint64_t *file, uint64_t *name)
{
    uint64_t *o = object(PyCode_Type), *t = object(PyBytes_Type);
    int32_t first = FIRST_LINE;
    o[at.file] = (uintptr_t)file;
    o[at.qual] = (uintptr_t)name;
    o[at.table] = (uintptr_t)t;
    memcpy((char *)o + at.first_byte, &first, sizeof first);
    t[at.head] = sizeof lines;
    memcpy(t + at.head + 2, lines, sizeof lines);
    return o;
}

static uint64_t *frame(const uint64_t *c, unsigned unit, const uint64_t *previous)
{
    uint64_t *o = object(NULL);
    o[at.code] = (uintptr_t)c;
    o[at.instr] = (uintptr_t)(c + at.bytecode) + 2 * unit;
    o[at.previous] = (uintptr_t)previous;
    return o;
}

static void enter(const uint64_t *f)
{
    uint64_t *t = object(NULL), *way = object(NULL);
    way[at.by_way_at] = (uintptr_t)f;
    t[at.thread_frame] = (uintptr_t)(at.by_way ? way : f);
    thread_now = t;
}

static const char *seen(void)
{
    static char out[4096];
    ck_assert_uint_eq(pyframe_lines(out, sizeof out), strlen(out));
    return out;
}

static void be_311(void)
{
    memset(&at, 0, sizeof at);
    Py_Version = 0x030b07f0;
    at.head = 2, at.text = 6, at.by_way = true, at.thread_frame = 7, at.by_way_at = 1, at.code = 4, at.previous = 6, at.instr = 7;
    at.file = 14, at.qual = 16, at.table = 17, at.first_byte = 72, at.bytecode = 23;
}

static void be_312(void)
{
    be_311();
    Py_Version = 0x030c01f0;
    at.text = 5, at.by_way_at = 0, at.code = 0, at.previous = 1, at.first_byte = 68, at.bytecode = 24;
}

/* What later versions publish; `more`: with fields that came after 3.13. */
static void be_published(bool more, bool without_lock)
{
    uint64_t *w = _PyRuntime;
    be_312();
    Py_Version = more ? 0x030e00f0 : 0x030d00f0;
    at.by_way = false, at.thread_frame = 9, at.bytecode = 25;
    if (without_lock)
        at.head = 4, at.text = 7, at.bytecode = 27;
    if (more)
        at.previous = 1, at.code = 0, at.instr = 8;
    memset(_PyRuntime, 0, sizeof _PyRuntime);
    memcpy(w, "xdebugpy", 8);
    w[1] = Py_Version;
    w[2] = without_lock;
    w += 3;
    const uint64_t runtime[] = {400000, 600, 640}, state[] = {200000, 7000, 6900, 7008, 7100, 7500, 7600, 7700, 7800, 7900, 8000, 8100, 8200};
    const uint64_t thread[] = {500, 0, 8, 16, 8 * at.thread_frame, 150, 158, 200, 32};
    const uint64_t frame_at[] = {88, 8 * at.previous, 8 * at.code, 8 * at.instr, 72, 70};
    const uint64_t code_at[] = {224, 8 * at.file, 8 * at.file + 8, 8 * at.qual, 8 * at.table, at.first_byte, 48, 96, 104, 8 * at.bytecode};
#define PUT(a) (memcpy(w, a, sizeof a), w += sizeof a / 8)
    PUT(runtime);
    PUT(state);
    if (more)
        *w++ = 9000, *w++ = 9100, *w++ = 9200;
    PUT(thread);
    if (more)
        *w++ = 300;
    PUT(frame_at);
    if (more)
        *w++ = 64, *w++ = 0;
    PUT(code_at);
}

static void two_frames(void)
{
    static const uint16_t name[] = {'G', 0xf6, 0x4e2d};
    const uint64_t *outer = frame(code(ascii("/home/u/train.py"), ascii("main")), 5, NULL);
    enter(frame(code(ascii("/home/u/net.py"), wide(name, 3)), 0, outer));
    ck_assert_str_eq(seen(), "/home/u/net.py:100 Gö中 < /home/u/train.py:102 main");
}

START_TEST(layouts)
{
    be_311();
    two_frames();
    be_312();
    two_frames();
    for (int k = 0; k < 4; k++) {
        be_published(k & 1, k & 2);
        two_frames();
    }
}
END_TEST

START_TEST(every_form_of_a_line)
{
    be_published(false, false);
    const int line[] = {100, 100, 100, 100, 102, 102, 102, 100 /* none: the function's */, 62, 62, 100 /* past the end */};
    for (unsigned unit = 0; unit < sizeof line / sizeof *line; unit++) {
        char want[64];
        enter(frame(code(ascii("a.py"), ascii("<module>")), unit, NULL));
        snprintf(want, sizeof want, "a.py:%d <module>", line[unit]);
        ck_assert_str_eq(seen(), want);
    }
}
END_TEST

START_TEST(frames_that_are_no_code_are_passed_over)
{
    be_published(true, false);
    const uint64_t *outer = frame(code(ascii("a.py"), ascii("f")), 0, NULL), *none = object(PyBytes_Type);
    const uint64_t *way = frame(code(ascii("t"), ascii("<interpreter trampoline>")), 0, frame(none, 0, outer));
    uint64_t *marked = frame(code(ascii("b.py"), ascii("g")), 0, way);
    marked[at.code] |= 3;
    enter(marked);
    ck_assert_str_eq(seen(), "b.py:100 g < a.py:100 f");
}
END_TEST

/* Any word of any struct may be anything: no crash, and no line that is not there. */
START_TEST(lies)
{
    static const uint64_t word[] = {0, 1, 8, 4095, 0x7fffffffffff, 0x123456789abcdef0, UINT64_MAX};
    for (int k = 0; k < 4; k++) {
        k == 0 ? be_311() : k == 1 ? be_312() : be_published(k == 3, false);
        uint64_t *f = ascii("a.py"), *q = ascii("f"), *c = code(f, q), *fr = frame(c, 0, NULL), *t = (uint64_t *)(uintptr_t)c[at.table];
        uint64_t *all[] = {f, q, c, fr, t, _PyRuntime};
        for (size_t o = 0; o < sizeof all / sizeof *all; o++)
            for (size_t i = 0; i < 64; i++)
                for (size_t v = 0; v < sizeof word / sizeof *word; v++) {
                    uint64_t was = all[o][i];
                    all[o][i] = word[v];
                    enter(fr);
                    seen();
                    free(thread_now);
                    all[o][i] = was;
                }
        fr[at.previous] = (uintptr_t)fr; /* a circle ends */
        enter(fr);
        ck_assert(strlen(seen()) > 0);
    }
}
END_TEST

START_TEST(no_room_no_frame_cut_in_two)
{
    char out[40];
    be_312();
    const uint64_t *outer = frame(code(ascii("/home/u/train.py"), ascii("main")), 5, NULL);
    enter(frame(code(ascii("/home/u/net.py"), ascii("f")), 0, outer));
    ck_assert_uint_eq(pyframe_lines(out, sizeof out), strlen("/home/u/net.py:100 f"));
    ck_assert_str_eq(out, "/home/u/net.py:100 f");
    thread_now = NULL; /* a thread that has never been in Python */
    ck_assert_uint_eq(pyframe_lines(out, sizeof out), 0);
    ck_assert_str_eq(out, "");
}
END_TEST

/* libunwind has _Unwind_* functions of its own: nobody else may find them. */
START_TEST(the_process_keeps_its_unwinder)
{
    static const char *const names[] = {"_Unwind_RaiseException", "_Unwind_Backtrace", "_Unwind_GetIP", "backtrace", "unw_backtrace"};
    void *before[5];
    const char *why;
    for (int i = 0; i < 5; i++)
        before[i] = dlsym(RTLD_DEFAULT, names[i]);
#ifdef __SANITIZE_THREAD__
    const char *expected = "the compiler's unwinder"; /* see tracer/site.c */
#else
    const char *expected = "libunwind";
#endif
    ck_assert_str_eq(site_unwinder(&why), expected);
    ck_assert_ptr_null(why);
    free(site_here());
    for (int i = 0; i < 5; i++)
        ck_assert_ptr_eq(dlsym(RTLD_DEFAULT, names[i]), before[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pyframe");
    TCase *c = tcase_create("pyframe");
    tcase_add_test(c, layouts);
    tcase_add_test(c, every_form_of_a_line);
    tcase_add_test(c, frames_that_are_no_code_are_passed_over);
    tcase_add_test(c, lies);
    tcase_add_test(c, no_room_no_frame_cut_in_two);
    tcase_add_test(c, the_process_keeps_its_unwinder);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
