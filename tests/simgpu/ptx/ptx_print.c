/* What kernels say: vprintf and failed assertions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_warp.h"

/* Bytes of a call's argument k in lane i. */
static uint64_t argument(struct warp *w, const struct ptx_insn *in, unsigned k, unsigned i)
{
    const struct ptx_arg *a = &in->call->arg[k];
    uint64_t v = 0;
    if (k >= in->call->n_in)
        return 0;
    if (!a->in_memory)
        return lane_of(row(w, a->o), a->o.bytes, (int)i);
    uint32_t base = ((const uint32_t *)(w->base[B_FRAME] + FRAME_LOCAL))[i];
    memcpy(&v, memory_at(w, in, S_LOCAL, (uint64_t)base + a->at, a->bytes, 1, i), a->bytes < 8 ? a->bytes : 8);
    return v;
}

static const char *text_at(struct warp *w, const struct ptx_insn *in, uint64_t a, unsigned i)
{
    return a ? (const char *)memory_at(w, in, S_GENERIC, a, 1, 1, i) : "(null)";
}

/* One lane's line: each conversion takes its argument from the buffer at `from`, aligned to its size. */
static int print(struct warp *w, const struct ptx_insn *in, const char *format, uint64_t from, unsigned i)
{
    int n = 0;
    uint64_t at = 0;
    for (const char *c = format; *c; c++) {
        char part[32] = "%";
        size_t k = 1;
        if (*c != '%') {
            putchar(*c);
            continue;
        }
        while (c[1] && strchr("-+ #0123456789.", c[1]) && k < 20)
            part[k++] = *++c;
        unsigned longs = 0;
        while (c[1] && strchr("hlLqjzt", c[1]))
            longs += *++c == 'l' || *c == 'z' || *c == 'j' || *c == 't' || *c == 'q';
        char kind = *++c;
        if (!kind)
            break;
        if (kind == '%') {
            putchar('%');
            continue;
        }
        unsigned bytes = longs || strchr("pseEfFgGaA", kind) ? 8 : 4;
        at = (at + bytes - 1) / bytes * bytes;
        uint64_t v = 0;
        memcpy(&v, memory_at(w, in, S_GENERIC, from + at, bytes, 1, i), bytes);
        at += bytes;
        n++;
        if (strchr("eEfFgGaA", kind)) {
            double d;
            memcpy(&d, &v, 8);
            part[k++] = kind;
            printf(part, d);
        } else if (kind == 's') {
            part[k++] = 's';
            printf(part, text_at(w, in, v, i));
        } else if (kind == 'c') {
            part[k++] = 'c';
            printf(part, (int)v);
        } else if (kind == 'p') {
            printf("%#llx", (unsigned long long)v);
        } else if (strchr("diuxXo", kind)) {
            bool sign = kind == 'd' || kind == 'i';
            strcpy(part + k, "ll");
            part[k + 2] = kind;
            printf(part, sign && bytes == 4 ? (long long)(int32_t)v : (long long)v);
        }
    }
    fflush(stdout);
    return n;
}

void builtin_call(struct warp *w, const struct ptx_insn *in, unsigned builtin, uint32_t m)
{
    const struct ptx_call *c = in->call;
    if (builtin == 2) {
        unsigned i = (unsigned)__builtin_ctz(m);
        warp_fail(w, in, PTX_ASSERT, "%s:%u: %s: assertion `%s` failed", text_at(w, in, argument(w, in, 1, i), i),
                  (unsigned)argument(w, in, 2, i), text_at(w, in, argument(w, in, 3, i), i), text_at(w, in, argument(w, in, 0, i), i));
    }
    EACH_BIT(i, m)
    {
        int n = print(w, in, text_at(w, in, argument(w, in, 0, i), i), argument(w, in, 1, i), i);
        if (!c->n_out)
            continue;
        const struct ptx_arg *a = &c->arg[c->n_in];
        if (!a->in_memory) {
            if (a->o.base != B_SINK)
                set_lane(row(w, a->o), a->o.bytes, (int)i, (uint64_t)n);
            continue;
        }
        uint32_t base = ((const uint32_t *)(w->base[B_FRAME] + FRAME_LOCAL))[i];
        memcpy(memory_at(w, in, S_LOCAL, (uint64_t)base + a->at, a->bytes, 1, i), &n, a->bytes < 4 ? a->bytes : 4);
    }
}
