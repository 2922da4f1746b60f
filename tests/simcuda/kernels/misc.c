/*
 * Single kernels: the loss scale's update, gated linear unit's gradient, device-side assertions, roll, copies of transposed matrices,
 * padding by reflection and replication.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/offset.h"
#include "tests/simcuda/kernels/rows.h"

/* (float *scale, int *growth tracker, const float *found_inf, double growth, double backoff, int interval) */
static void update_scale(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    float *scale = A(float *, 0);
    int *tracker = A(int *, 1);
    if (*A(const float *, 2) != 0) {
        *scale = (float)(*scale * A(double, 4));
        *tracker = 0;
    } else if (*tracker + 1 == A(int, 5)) {
        float grown = (float)(*scale * A(double, 3));
        if (isfinite(grown)) *scale = grown;
        *tracker = 0;
    } else ++*tracker;
}

/* (int n, T *dx, const T *x, const T *dy, offsets <3> in elements, bytes to dx's second half, bytes to x's second half) */
static void glu_backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    size_t es = dtype_bytes(t);
    struct offset_calc c = { p[4], 3 };
    for (int i = 0; i < A(int, 0); i++) {
        uint32_t off[3] = { 0 };
        offset_get(&c, (uint32_t)i, off);
        const char *x = A(const char *, 2) + off[1] * es;
        char *dx = A(char *, 1) + off[0] * es;
        double a = dtype_get(t, x, 0), s = 1 / (1 + exp(-dtype_get(t, x + A(int64_t, 6), 0))), d = dtype_get(t, A(const char *, 3) + off[2] * es, 0);
        dtype_set(t, dx, 0, s * d);
        dtype_set(t, dx + A(int64_t, 5), 0, (1 - s) * s * d * a);
    }
}

/* (const T *value, message): a false value ends the kernel as a device does, by a trap */
static void assert_true(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    if (dtype_get(k->t[0], A(const void *, 0), 0) == 0) kern_trap();
}

/* (const i64 *running count, const bool *mask, i64 elements of the source): more places than elements end the kernel by a trap */
static void check_count(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    if (*A(const int64_t *, 0) + *A(const uint8_t *, 1) > A(int64_t, 2)) kern_trap();
}

/* (const T *x, T *y, n, dimension, start, size, stride, offset) */
static void roll(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    size_t es = dtype_bytes(k->t[0]);
    int64_t n = A(int64_t, 2), start = A(int64_t, 4), size = A(int64_t, 5), stride = A(int64_t, 6);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i % (stride * size) / stride;
        int64_t from = at >= size - start ? i - (size - start) * stride : i + start * stride;
        memcpy(A(char *, 1) + i * (int64_t)es, A(const char *, 0) + from * (int64_t)es, es);
    }
}

/* <T, elements a T, ..> (const T *x, T *y, i64 width, i64 height, i64 pitches of x and y), in Ts: y is x, transposed */
static void transpose(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t each = k->v[1], es = (int64_t)dtype_bytes(k->t[0]) / each, width = A(int64_t, 2) * each, height = A(int64_t, 3) * each;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            memcpy(A(char *, 1) + (x * A(int64_t, 5) * each + y) * es, A(const char *, 0) + (y * A(int64_t, 4) * each + x) * es, (size_t)es);
}

static void transpose_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 0;
    *bytes = 2 * A(uint64_t, 2) * A(uint64_t, 3) * (uint64_t)k->v[1] * dtype_bytes(k->t[0]);
}

static int bind_transpose(struct kern *k)
{
    size_t es = dtype_bytes(k->t[0]);
    return k->v[1] > 0 && es && es % (size_t)k->v[1] == 0 ? 0 : -ENOSYS;
}

static int64_t reflect(int64_t i, int64_t pad, int64_t size)
{
    int64_t v = i - pad;
    v = v < 0 ? -v : v;
    return v >= size ? 2 * (size - 1) - v : v;
}

static int64_t clamp(int64_t v, int64_t size) { return v < 0 ? 0 : v >= size ? size - 1 : v; }

/* One dimension, many planes. (const T *x, T *y, i64 width, left, right, y's width, planes); backward: (T *dx, const T *dy, width, left, dy's width,
   planes), dx gains */
static void pad_reflect_flat(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    bool back = strstr(k->name.base, "backward") != NULL;
    int64_t iw = A(int64_t, 2), left = A(int64_t, 3), ow = A(int64_t, back ? 4 : 5), n = ow * A(int64_t, back ? 5 : 6);
    size_t es = dtype_bytes(t);
    for (int64_t o = 0; o < n; o++) {
        int64_t in = o / ow * iw + reflect(o % ow, left, iw);
        if (back) dtype_set(t, A(void *, 0), in, dtype_get(t, A(void *, 0), in) + dtype_get(t, A(const void *, 1), o));
        else memcpy(A(char *, 1) + o * (int64_t)es, A(const char *, 0) + in * (int64_t)es, es);
    }
}

static int bind_floating(struct kern *k)
{
    return dtype_class(k->t[0]) == DC_F || dtype_class(k->t[0]) == DC_D ? 0 : -ENOSYS;
}

/* (x or dx, y or dy, iw, ih, top, bottom, left, right, y shift, z shift, planes); one dimension: (x, y, iw, left, right). The
   gradient is added to what is there; where algorithms shall be deterministic (.., batch, planes, unused) stand in the place of the shifts. */
static void pad_reflect(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    bool one = k->k->n_params == 5, back = strstr(k->name.base, "backward") != NULL, fixed = strstr(k->name.base, "_det_") != NULL;
    int64_t iw = A(int64_t, 2), ih = one ? 1 : A(int64_t, 3), top = one ? 0 : A(int, 4), bottom = one ? 0 : A(int, 5);
    int64_t left = one ? A(int64_t, 3) : A(int, 6), right = one ? A(int64_t, 4) : A(int, 7);
    int64_t oh = ih + top + bottom, ow = iw + left + right;
    for (int64_t z = 0; z < (fixed ? A(int, 8) : (int64_t)l->grid.z); z++)
        for (int64_t y = 0; y < (fixed ? A(int, 9) : (int64_t)l->grid.y); y++) {
            int64_t plane = one ? z * l->grid.y + y : fixed ? z * A(int, 9) + y : y + A(int, 8) + (z + A(int, 9)) * A(int, 10);
            for (int64_t o = 0; o < oh * ow; o++) {
                int64_t in = plane * ih * iw + reflect(o / ow, top, ih) * iw + reflect(o % ow, left, iw), out = plane * oh * ow + o;
                if (back) dtype_set(t, A(void *, 0), in, dtype_get(t, A(void *, 0), in) + dtype_get(t, A(const void *, 1), out));
                else if (dtype_class(t) == DC_I) dtype_seti(t, A(void *, 1), out, dtype_geti(t, A(const void *, 0), in));
                else dtype_set(t, A(void *, 1), out, dtype_get(t, A(const void *, 0), in));
            }
        }
}

/* (accessor x or dx, accessor y or dy, [front, [top,]] left, shifts): (batch, planes, [[d,] h,] w). Padding in three dimensions by reflection
   names left, top, front. The gradient is added to what is there. */
static void pad_accessors(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    bool back = strstr(k->name.base, "backward") != NULL, reflects = strstr(k->name.base, "reflection") != NULL;
    int axes = (int)(k->k->bytes[0] - 8) / 16 - 2, first = 3 - axes;
    struct space x = space_read(p[0], axes), y = space_read(p[1], axes);
    int64_t pad[3] = { 0 }, at[3], from[3] = { 0 };
    for (int i = first; i < 3; i++) pad[i] = reflects ? A(int64_t, 4 - i) : A(int, 2 + i - first);
    for (int64_t n = 0; n < y.a.size[0]; n++)
        for (int64_t c = 0; c < y.a.size[1]; c++)
            for (int64_t e = 0; e < space_places(&y); e++) {
                space_place(&y, e, at);
                for (int i = first; i < 3; i++) from[i] = reflects ? reflect(at[i], pad[i], x.size[i]) : clamp(at[i] - pad[i], x.size[i]);
                int64_t in = space_offset(&x, n, c, from), out = space_offset(&y, n, c, at);
                if (back) dtype_set(t, x.a.data, in, dtype_get(t, x.a.data, in) + dtype_get(t, y.a.data, out));
                else dtype_set(t, y.a.data, out, dtype_get(t, x.a.data, in));
            }
}

static int bind_accessors(struct kern *k)
{
    uint32_t n = k->k->bytes[0];
    return dtype_class(k->t[0]) != DC_NONE && (n == 56 || n == 72 || n == 88) ? 0 : -ENOSYS;
}

const struct kern_row misc_rows[] = {
    { "amp_update_scale_cuda_kernel", "pppppi", update_scale, NULL, NULL },
    { "glu_backward_kernel", "ippp*pp", glu_backward, NULL, NULL },
    { "_assert_async_cuda_kernel", "p*", assert_true, NULL, NULL },
    { "masked_scatter_size_check", "ppp", check_count, NULL, NULL },
    { "transpose_copy_tiled_kernel", "pppppp", transpose, transpose_cost, bind_transpose },
    { "roll_cuda_kernel", "pppppppp", roll, NULL, NULL },
    { "reflection_pad2d_out_kernel", "ppppiiiiiii", pad_reflect, NULL, NULL },
    { "reflection_pad2d_backward_out_kernel", "ppppiiiiiii", pad_reflect, NULL, NULL },
    { "reflection_pad2d_backward_det_out_kernel", "ppppiiiiiii", pad_reflect, NULL, NULL },
    { "reflection_pad1d_flat", "ppppppp", pad_reflect_flat, NULL, NULL },
    { "reflection_pad1d_backward_flat", "pppppp", pad_reflect_flat, NULL, bind_floating },
    { "reflection_pad1d_out_kernel", "ppppp", pad_reflect, NULL, NULL },
    { "reflection_pad1d_backward_out_kernel", "ppppp", pad_reflect, NULL, NULL },
    { "replication_pad_forward_kernel1d", NULL, pad_accessors, NULL, bind_accessors },
    { "replication_pad_forward_kernel2d", NULL, pad_accessors, NULL, bind_accessors },
    { "replication_pad_forward_kernel3d", "**iiiii", pad_accessors, NULL, bind_accessors },
    { "replication_pad_backward_kernel", NULL, pad_accessors, NULL, bind_accessors },
    { "reflection_pad3d_out_kernel", "**ppppp", pad_accessors, NULL, bind_accessors },
    { "reflection_pad3d_backward_out_kernel", "**ppppp", pad_accessors, NULL, bind_accessors },
    KERN_END
};
