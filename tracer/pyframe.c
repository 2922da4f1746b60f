#include "tracer/pyframe.h"

#include "tracer/loader.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_FRAMES = 64, MAX_NAME = 400, MAX_TABLE = 1 << 16, MAX_WORDS = 96 };

/* Offsets in bytes. A thread state points at its innermost frame directly, or at a struct on the C stack that does (`by_way`). */
struct layout {
    uint64_t object, text; /* sizes of an object's head, and of a string's where it is plain ASCII */
    uint64_t thread_frame, by_way_frame;
    bool by_way;
    uint64_t code, previous, instr, locals;              /* in a frame */
    uint64_t filename, qualname, lines, first, bytecode; /* in a code object */
};

static const struct layout v3_11 = {.object = 16, .text = 48, .by_way = true, .thread_frame = 56, .by_way_frame = 8, .code = 32,
                                    .previous = 48, .instr = 56, .locals = 72, .filename = 112, .qualname = 128, .lines = 136, .first = 72, .bytecode = 184};
static const struct layout v3_12 = {.object = 16, .text = 40, .by_way = true, .thread_frame = 56, .by_way_frame = 0, .code = 0,
                                    .previous = 8, .instr = 56, .locals = 72, .filename = 112, .qualname = 128, .lines = 136, .first = 68, .bytecode = 192};

struct interpreter {
    void *(*thread)(void);
    uint64_t type_code, type_text, type_bytes, type_float;
    struct layout at;
};

static bool peek(uint64_t from, void *to, size_t n)
{
    struct iovec here = {to, n}, there = {(void *)(uintptr_t)from, n};
    return from >= 4096 && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)n;
}

static bool peek_word(uint64_t from, uint64_t *out) { return peek(from, out, sizeof *out); }

/* A block of the published offsets: its first word is the size of the struct, the next ones offsets of fields. Blocks grow at
 * their ends and in number from version to version, so a block is recognised by its first fields, not by its place. */
static const uint64_t *find_block(const uint64_t *w, size_t n, size_t from, bool (*is)(const uint64_t *b))
{
    for (size_t i = from; i + 10 < n; i++)
        if (is(w + i))
            return w + i;
    return NULL;
}

/* size, prev, next, interp, current_frame: every thread state begins with three pointers */
static bool is_thread(const uint64_t *b) { return b[0] > 64 && b[1] == 0 && b[2] == 8 && b[3] == 16 && b[4] >= 24 && b[4] < b[0]; }

/* size, previous, executable, instr_ptr, localsplus */
static bool is_frame(const uint64_t *b)
{
    return b[0] > 32 && b[0] < 512 && b[1] < b[0] && b[2] < b[0] && b[3] < b[0] && (b[1] == 0 || b[2] == 0) && b[1] != b[2] && b[3] > 8 && b[3] % 8 == 0;
}

/* size, filename, name, qualname, linetable, firstlineno, .., co_code_adaptive: four pointers in a row */
static bool is_code(const uint64_t *b)
{
    return b[0] > 96 && b[0] < 1024 && b[1] && b[2] == b[1] + 8 && b[3] == b[1] + 16 && b[4] == b[1] + 24 && b[5] < b[1] && b[9] > b[4] && b[9] <= b[0];
}

static bool published(const unsigned char *runtime, struct layout *at)
{
    uint64_t w[MAX_WORDS];
    if (!peek((uintptr_t)runtime, w, sizeof w) || memcmp(w, "xdebugpy", 8))
        return false;
    const uint64_t *thread = find_block(w, MAX_WORDS, 3, is_thread);
    const uint64_t *frame = thread ? find_block(w, MAX_WORDS, (size_t)(thread - w) + 5, is_frame) : NULL;
    const uint64_t *code = frame ? find_block(w, MAX_WORDS, (size_t)(frame - w) + 4, is_code) : NULL;
    if (!code)
        return false;
    uint64_t object = w[2] ? 32 : 16; /* free-threaded Python (no interpreter lock): each object's head is larger */
    *at = (struct layout){.object = object, .text = object + 24, .thread_frame = thread[4], .previous = frame[1], .code = frame[2],
                          .instr = frame[3], .locals = frame[4], .filename = code[1], .qualname = code[3], .lines = code[4], .first = code[5], .bytecode = code[9]};
    return true;
}

/* Looks for the interpreter, each time anew: it may be loaded later. False: none in this process, or one of an unknown version. */
static bool find(struct interpreter *py)
{
    *(void **)&py->thread = loader_symbol(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    const unsigned long *version = py->thread ? loader_symbol(RTLD_DEFAULT, "Py_Version") : NULL; /* exists from 3.11 on */
    py->type_code = (uintptr_t)loader_symbol(RTLD_DEFAULT, "PyCode_Type");
    py->type_text = (uintptr_t)loader_symbol(RTLD_DEFAULT, "PyUnicode_Type");
    py->type_bytes = (uintptr_t)loader_symbol(RTLD_DEFAULT, "PyBytes_Type");
    py->type_float = (uintptr_t)loader_symbol(RTLD_DEFAULT, "PyFloat_Type");
    if (!version || !py->type_code || !py->type_text || !py->type_bytes || sizeof(void *) != 8)
        return false;
    unsigned long minor = *version >> 16;
    if (minor == 0x30b || minor == 0x30c) {
        py->at = minor == 0x30b ? v3_11 : v3_12;
        return true;
    }
    const unsigned char *runtime = minor > 0x30c ? loader_symbol(RTLD_DEFAULT, "_PyRuntime") : NULL;
    return runtime && published(runtime, &py->at);
}

static bool is_a(const struct interpreter *py, uint64_t object, uint64_t type)
{
    uint64_t t;
    return object && object % 8 == 0 && peek_word(object + py->at.object - 8, &t) && t == type;
}

/* ---- names -------------------------------------------------------------------------------------------------------------- */

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 32 || c == 127 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
        c = '?';
    if (c < 0x80)
        return out[0] = (char)c, 1;
    if (c < 0x800)
        return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)), out[2] = (char)(0x80 | (c & 63)), 3;
    return out[0] = (char)(0xf0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 63)), out[2] = (char)(0x80 | (c >> 6 & 63)),
           out[3] = (char)(0x80 | (c & 63)), 4;
}

/* A string as UTF-8, into out[MAX_NAME * 4 + 1]. Characters of 1, 2 or 4 bytes lie behind the string's head; a string that is not
 * all ASCII has a longer head, which says how wide its characters are. */
static bool text_of(const struct interpreter *py, uint64_t object, char *out)
{
    uint64_t length;
    unsigned char raw[MAX_NAME * 4 + 1];
    size_t n = 0;
    if (!is_a(py, object, py->type_text) || !peek_word(object + py->at.object, &length) || !length || length > MAX_NAME)
        return false;
    bool ascii = peek(object + py->at.text, raw, length + 1) && !raw[length];
    for (uint64_t i = 0; i < length && ascii; i++)
        ascii = raw[i] && raw[i] < 0x80;
    uint32_t state, width = 1;
    uint64_t data = object + py->at.text;
    if (!ascii) {
        if (!peek(object + py->at.object + 16, &state, sizeof state))
            return false;
        width = state >> 2 & 7;
        data += py->at.text == v3_11.text ? 24 : 16;
        if ((width != 1 && width != 2 && width != 4) || !peek(data, raw, length * width))
            return false;
    }
    for (uint64_t i = 0; i < length; i++) {
        uint32_t c = 0;
        memcpy(&c, raw + i * width, width); /* little-endian, as all machines here */
        n += put_utf8(out + n, c);
    }
    out[n] = 0;
    return true;
}

/* ---- lines -------------------------------------------------------------------------------------------------------------- */

static uint64_t varint(const unsigned char *t, size_t n, size_t *i)
{
    uint64_t v = 0;
    for (unsigned shift = 0; *i < n && shift < 60; shift += 6) {
        unsigned char b = t[(*i)++];
        v |= (uint64_t)(b & 63) << shift;
        if (!(b & 64))
            break;
    }
    return v;
}

static long signed_varint(const unsigned char *t, size_t n, size_t *i)
{
    uint64_t v = varint(t, n, i);
    return v & 1 ? -(long)(v >> 1) : (long)(v >> 1);
}

/* CPython's location table (3.11 on): each entry stands for 1 to 8 instruction units and has the change of the line since the entry
 * before; its first byte tells its form. Returns the line of the instruction `unit`; 0: it has none. */
static long line_at(const unsigned char *t, size_t n, uint64_t unit, long line)
{
    enum { SHORT_LAST = 9, ONE_LINE = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
    uint64_t at = 0;
    for (size_t i = 0; i < n;) {
        unsigned form = t[i] >> 3 & 15, units = (t[i] & 7) + 1;
        i++;
        if (form <= SHORT_LAST) {
            i++;
        } else if (form <= ONE_LINE_LAST) {
            line += (long)(form - ONE_LINE);
            i += 2;
        } else if (form < NONE) {
            line += signed_varint(t, n, &i);
            for (int k = 0; k < 3 && form == LONG; k++)
                varint(t, n, &i);
        }
        if (unit < at + units)
            return form == NONE ? 0 : line;
        at += units;
    }
    return 0;
}

static long line_of(const struct interpreter *py, uint64_t code, uint64_t instr)
{
    uint64_t lines, bytes, start = code + py->at.bytecode;
    int32_t first;
    if (!peek(code + py->at.first, &first, sizeof first))
        return 0;
    if (instr < start || !peek_word(code + py->at.lines, &lines) || !is_a(py, lines, py->type_bytes) ||
        !peek_word(lines + py->at.object, &bytes) || bytes > MAX_TABLE)
        return first;
    unsigned char *t = malloc(bytes + 1);
    long line = t && peek(lines + py->at.object + 16, t, bytes) ? line_at(t, bytes, (instr - start) / 2, first) : 0;
    free(t);
    return line > 0 ? line : first;
}

/* ---- frames ------------------------------------------------------------------------------------------------------------- */

static size_t put_frame(const struct interpreter *py, uint64_t code, uint64_t instr, bool first, char *out, size_t room)
{
    char file[MAX_NAME * 4 + 1], name[MAX_NAME * 4 + 1];
    uint64_t f, q;
    if (!is_a(py, code, py->type_code) || !peek_word(code + py->at.filename, &f) || !peek_word(code + py->at.qualname, &q) ||
        !text_of(py, f, file) || !text_of(py, q, name) || !strncmp(name, "<interpreter", 12))
        return 0;
    int n = snprintf(out, room, "%s%s:%ld %s", first ? "" : " < ", file, line_of(py, code, instr), name);
    if (n > 0 && (size_t)n < room)
        return (size_t)n;
    out[0] = 0;
    return room;
}

/* This thread's innermost frame; 0: the thread is in no Python, or in one of an unknown version. */
static uint64_t innermost(struct interpreter *py)
{
    uint64_t frame = 0;
    if (!find(py))
        return 0;
    const uint64_t thread = (uintptr_t)py->thread();
    if (!thread || !peek_word(thread + py->at.thread_frame, &frame) || (py->at.by_way && !peek_word(frame + py->at.by_way_frame, &frame)))
        return 0;
    return frame;
}

size_t pyframe_lines(char *out, size_t room)
{
    struct interpreter py;
    size_t n = 0;
    out[0] = 0;
    uint64_t frame = innermost(&py);
    for (int i = 0; i < MAX_FRAMES && frame; i++) {
        uint64_t code, instr, previous;
        if (!peek_word(frame + py.at.code, &code) || !peek_word(frame + py.at.instr, &instr) || !peek_word(frame + py.at.previous, &previous))
            break;
        /* the low bits of a reference are marks of the interpreter's; a frame that is no code of Python's is passed over */
        size_t k = put_frame(&py, code & ~7ull, instr, n == 0, out + n, room - n);
        if (k == room - n)
            break;
        n += k;
        frame = previous;
    }
    return n;
}

bool pyframe_argument(const char *name, double *value)
{
    struct interpreter py;
    char text[MAX_NAME * 4 + 1];
    const uint64_t frame = innermost(&py);
    uint64_t code, is, first;
    *value = 1;
    if (!frame || !peek_word(frame + py.at.code, &code) || !is_a(&py, code &= ~7ull, py.type_code) || !peek_word(code + py.at.qualname, &is) ||
        !text_of(&py, is, text) || strcmp(text, name) != 0)
        return false;
    if (peek_word(frame + py.at.locals, &first) && is_a(&py, first &= ~7ull, py.type_float))
        peek(first + py.at.object, value, sizeof *value);
    return true;
}

bool pyframe_is_interpreter(const void *code)
{
    Dl_info at, interpreter;
    void *f = loader_symbol(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    return f && loader_address(f, &interpreter) && loader_address(code, &at) && at.dli_fbase == interpreter.dli_fbase;
}
