/*
 * Depthwise convolution, where each channel has filters of its own: PyTorch has kernels for it beside the matrix products of
 * conv.c. Two dimensions over dense tensors, three over accessors; forward, gradient of the input, gradient of the weights.
 */
#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

/* m: filters a channel has; c: channels of the output. */
struct depthwise { int64_t m, c, iw, ih, ow, oh, kw, kh, sw, sh, pw, ph, dw, dh; };

static void read_sizes(struct depthwise *g, void *const *p, int at)
{
    int64_t *f = &g->iw;
    for (int i = 0; i < 12; i++) f[i] = A(int, at + i);
}

static const char *data_of(const void *accessor)
{
    const char *d;
    memcpy(&d, accessor, sizeof d);
    return d;
}

/* A plane of doubles, and where its rows meet the filter's element (y, x): each pair of an output and an input element. */
static void plane(const struct depthwise *g, double *in, double *out, double *w, int what)
{
    for (int64_t y = 0; y < g->kh; y++)
        for (int64_t x = 0; x < g->kw; x++) {
            double s = 0, f = w[y * g->kw + x];
            for (int64_t oy = 0; oy < g->oh; oy++) {
                int64_t iy = oy * g->sh - g->ph + y * g->dh;
                if (iy < 0 || iy >= g->ih) continue;
                for (int64_t ox = 0; ox < g->ow; ox++) {
                    int64_t ix = ox * g->sw - g->pw + x * g->dw;
                    if (ix < 0 || ix >= g->iw) continue;
                    double *i = in + iy * g->iw + ix, *o = out + oy * g->ow + ox;
                    if (what == 0) *o += f * *i;
                    else if (what == 1) *i += f * *o;
                    else s += *i * *o;
                }
            }
            if (what == 2) w[y * g->kw + x] += s;
        }
}

/* (accessor x, accessor y, accessor w, accessor bias, has bias, elements, channels, filters a channel, sizes ..) */
static void forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[k->name.n_args - 2];
    struct depthwise g = { .c = A(int, 6), .m = A(int, 7) };
    read_sizes(&g, p, 8);
    int64_t ip = g.ih * g.iw, op = g.oh * g.ow, kp = g.kh * g.kw, images = op && g.c ? A(int, 5) / (op * g.c) : 0;
    double *in = row_scratch(ip + op + kp), *out = in + ip, *w = out + op;
    for (int64_t n = 0; n < images; n++)
        for (int64_t c = 0; c < g.c; c++) {
            row_load(t, in, data_of(p[0]), (n * (g.c / g.m) + c / g.m) * ip, 1, ip);
            row_load(t, w, data_of(p[2]), c * kp, 1, kp);
            double bias = A(bool, 4) ? dtype_get(t, data_of(p[3]), c) : 0;
            for (int64_t i = 0; i < op; i++) out[i] = bias;
            plane(&g, in, out, w, 0);
            row_store(t, out, (char *)data_of(p[1]), (n * g.c + c) * op, 1, op);
        }
    free(in);
}

/* (accessor dy, accessor dx, accessor w, elements, input channels, filters a channel, output channels, sizes ..) */
static void backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[k->name.n_args - 2];
    struct depthwise g = { .m = A(int, 5), .c = A(int, 6) };
    read_sizes(&g, p, 7);
    int64_t ip = g.ih * g.iw, op = g.oh * g.ow, kp = g.kh * g.kw, ic = A(int, 4), images = ip && ic ? A(int, 3) / (ip * ic) : 0;
    double *in = row_scratch(ip + op + kp), *out = in + ip, *w = out + op;
    for (int64_t n = 0; n < images; n++)
        for (int64_t c = 0; c < ic; c++) {
            memset(in, 0, sizeof *in * (size_t)ip);
            for (int64_t o = c * g.m; o < (c + 1) * g.m; o++) {
                row_load(t, out, data_of(p[0]), (n * g.c + o) * op, 1, op);
                row_load(t, w, data_of(p[2]), o * kp, 1, kp);
                plane(&g, in, out, w, 1);
            }
            row_store(t, in, (char *)data_of(p[1]), (n * ic + c) * ip, 1, ip);
        }
    free(in);
}

/* (accessor dy, accessor x, accessor dw, images, input channels, output channels, filters a channel, sizes ..) */
static void weights(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct depthwise g = { .c = A(int, 5), .m = A(int, 6) };
    read_sizes(&g, p, 7);
    int64_t ip = g.ih * g.iw, op = g.oh * g.ow, kp = g.kh * g.kw, ic = A(int, 4);
    double *in = row_scratch(ip + op + kp), *out = in + ip, *w = out + op;
    for (int64_t c = 0; c < g.c; c++) {
        memset(w, 0, sizeof *w * (size_t)kp);
        for (int64_t n = 0; n < A(int, 3); n++) {
            row_load(t, out, data_of(p[0]), (n * g.c + c) * op, 1, op);
            row_load(t, in, data_of(p[1]), (n * ic + c / g.m) * ip, 1, ip);
            plane(&g, in, out, w, 2);
        }
        row_store(t, w, (char *)data_of(p[2]), c * kp, 1, kp);
    }
    free(in);
}

/* Three dimensions: the kernel's and the volumes' sizes are those of the accessors. */
struct volume { struct accessor x, y, w; int64_t stride[3], pad[3], dilation[3]; };

static void read_volume(struct volume *v, void *const *p, const struct kern *k, int at)
{
    bool wide = k->k->bytes[0] == 88;
    v->x = accessor_read(p[0], 5, wide);
    v->y = accessor_read(p[1], 5, wide);
    v->w = accessor_read(p[2], 5, wide);
    for (int d = 0; d < 3; d++) {
        v->stride[d] = A(int, at + d);
        v->pad[d] = A(int, at + 3 + d);
        v->dilation[d] = A(int, at + 6 + d);
    }
}

static int64_t at5(const struct accessor *a, int64_t n, int64_t c, int64_t i, int64_t j, int64_t h)
{
    return n * a->stride[0] + c * a->stride[1] + i * a->stride[2] + j * a->stride[3] + h * a->stride[4];
}

/* Where output element o[] and kernel element e[] meet the volume x; -1 outside of it. */
static int64_t met(const struct volume *v, int64_t n, int64_t c, const int64_t *o, const int64_t *e, const struct accessor *x)
{
    int64_t i[3];
    for (int d = 0; d < 3; d++) {
        i[d] = o[d] * v->stride[d] - v->pad[d] + e[d] * v->dilation[d];
        if (i[d] < 0 || i[d] >= x->size[2 + d]) return -1;
    }
    return at5(x, n, c, i[0], i[1], i[2]);
}

#define EACH3(i, n) for (i[0] = 0; i[0] < (n)[0]; i[0]++) for (i[1] = 0; i[1] < (n)[1]; i[1]++) for (i[2] = 0; i[2] < (n)[2]; i[2]++)

/* (accessor x, accessor y, accessor w, const T *bias, stride[3], pad[3], dilation[3]) */
static void forward3(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct volume v;
    read_volume(&v, p, k, 4);
    const void *bias = A(const void *, 3);
    int64_t o[3], e[3], m = v.y.size[1] / KERN_MAX(v.x.size[1], 1);
    for (int64_t n = 0; n < v.y.size[0]; n++)
        for (int64_t c = 0; c < v.y.size[1]; c++)
            EACH3(o, v.y.size + 2) {
                double s = bias ? dtype_get(t, bias, c) : 0;
                EACH3(e, v.w.size + 2) {
                    int64_t at = met(&v, n, c / m, o, e, &v.x);
                    if (at >= 0) s += dtype_get(t, v.x.data, at) * dtype_get(t, v.w.data, at5(&v.w, c, 0, e[0], e[1], e[2]));
                }
                dtype_set(t, v.y.data, at5(&v.y, n, c, o[0], o[1], o[2]), s);
            }
}

/* (accessor dy, accessor dx, accessor w, stride[3], pad[3], dilation[3]) */
static void backward3(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct volume v;
    read_volume(&v, p, k, 3);
    const struct accessor *dy = &v.x, *dx = &v.y;
    int64_t o[3], e[3], m = dy->size[1] / KERN_MAX(dx->size[1], 1), plane_n = dx->size[2] * dx->size[3] * dx->size[4];
    struct accessor sum = { .size = { 1, 1, dx->size[2], dx->size[3], dx->size[4] },
                            .stride = { 0, 0, dx->size[3] * dx->size[4], dx->size[4], 1 } };
    double *acc = row_scratch(plane_n);
    for (int64_t n = 0; n < dx->size[0]; n++)
        for (int64_t c = 0; c < dx->size[1]; c++) {
            memset(acc, 0, sizeof *acc * (size_t)plane_n);
            for (int64_t f = c * m; f < (c + 1) * m; f++)
                EACH3(o, dy->size + 2) {
                    double d = dtype_get(t, dy->data, at5(dy, n, f, o[0], o[1], o[2]));
                    EACH3(e, v.w.size + 2) {
                        int64_t at = met(&v, 0, 0, o, e, &sum);
                        if (at >= 0) acc[at] += d * dtype_get(t, v.w.data, at5(&v.w, f, 0, e[0], e[1], e[2]));
                    }
                }
            EACH3(o, dx->size + 2)
                dtype_set(t, dx->data, at5(dx, n, c, o[0], o[1], o[2]), acc[at5(&sum, 0, 0, o[0], o[1], o[2])]);
        }
    free(acc);
}

/* (accessor dy, accessor x, accessor dw, stride[3], pad[3], dilation[3]) */
static void weights3(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct volume v;
    read_volume(&v, p, k, 3);
    const struct accessor *dy = &v.x, *x = &v.y;
    int64_t o[3], e[3], m = dy->size[1] / KERN_MAX(x->size[1], 1);
    for (int64_t f = 0; f < dy->size[1]; f++)
        EACH3(e, v.w.size + 2) {
            double s = 0;
            for (int64_t n = 0; n < dy->size[0]; n++)
                EACH3(o, dy->size + 2) {
                    int64_t at = met(&v, n, f / m, o, e, x);
                    if (at >= 0) s += dtype_get(t, x->data, at) * dtype_get(t, dy->data, at5(dy, n, f, o[0], o[1], o[2]));
                }
            dtype_set(t, v.w.data, at5(&v.w, f, 0, e[0], e[1], e[2]), s);
        }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    struct depthwise g;
    bool fwd = k->row->run == forward, w = k->row->run == weights;
    read_sizes(&g, p, fwd ? 8 : 7);
    uint64_t per = (uint64_t)(g.kh * g.kw);
    uint64_t n = w ? (uint64_t)A(int, 3) * (uint64_t)A(int, 5) * (uint64_t)(g.oh * g.ow) : A(uint32_t, fwd ? 5 : 3);
    *flops = 2 * n * per;
    *bytes = 3 * n * dtype_bytes(w ? k->t[0] : k->t[k->name.n_args - 2]);
}

static void cost3(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    struct volume v;
    read_volume(&v, p, k, k->row->run == forward3 ? 4 : 3);
    const struct accessor *out = k->row->run == forward3 ? &v.y : &v.x;
    uint64_t n = 1, per = 1;
    for (int d = 0; d < 5; d++) n *= (uint64_t)out->size[d];
    for (int d = 2; d < 5; d++) per *= (uint64_t)v.w.size[d];
    *flops = 2 * n * per;
    *bytes = 3 * n * dtype_bytes(k->t[0]);
}

const struct kern_row depthwise_rows[] = {
    { "conv_depthwise2d_forward_kernel", "****biiiiiiiiiiiiiii", forward, cost, NULL },
    { "conv_depthwise2d_forward_kernel_generic", "****biiiiiiiiiiiiiii", forward, cost, NULL },
    { "conv_depthwise2d_backward_kernel", "***iiiiiiiiiiiiiiii", backward, cost, NULL },
    { "conv_depthwise2d_grad_weight_kernel", "***iiiiiiiiiiiiiiii", weights, cost, NULL },
    { "conv_depthwise3d_cuda_kernel", "***piiiiiiiii", forward3, cost3, NULL },
    { "conv_depthwise3d_cuda_backward_input_kernel", "***iiiiiiiii", backward3, cost3, NULL },
    { "conv_depthwise3d_cuda_backward_weight_kernel", "***iiiiiiiii", weights3, cost3, NULL },
    KERN_END
};
