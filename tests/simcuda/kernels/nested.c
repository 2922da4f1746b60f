/*
 * Lists of tensors of different sizes in one piece of memory (nested tensors), which nn.TransformerEncoder makes of padded batches in
 * evaluation, and what its fused multi-head attention does with them: padding off, padding on, and q, k and v apart.
 *
 * Sizes and places are in device memory as int: sizes[batch][dims] of the tensors in the list, places[batch] of their first elements.
 */
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

/* (const T *padded, T *list, const int *places, const int *padded's sizes (batch in front), const int *sizes, int dims, int batch).
   transform0213: padded is (batch, heads, rows, width), a tensor of the list (rows, heads x width). */
static void remove_padding(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    size_t es = dtype_bytes(k->t[0]);
    bool heads = strstr(k->name.base, "0213") != NULL, two = strstr(k->name.base, "_2") != NULL;
    const int *padded = A(const int *, 3);
    for (int b = 0; b < A(int, 6); b++) {
        const int *size = A(const int *, 4) + b * A(int, 5);
        int rows = size[0], cols = size[1], last = two ? 1 : size[2];
        char *to = A(char *, 1) + (size_t)A(const int *, 2)[b] * es;
        if (heads) {
            int width = cols / padded[1];
            const char *from = A(const char *, 0) + (size_t)b * padded[1] * padded[2] * padded[3] * es;
            for (int r = 0; r < rows; r++)
                for (int h = 0; h < padded[1]; h++, to += (size_t)width * es)
                    memcpy(to, from + ((size_t)h * padded[2] + r) * padded[3] * es, (size_t)width * es);
            continue;
        }
        int inner = two ? 1 : padded[3];
        const char *from = A(const char *, 0) + (size_t)b * padded[1] * padded[2] * inner * es;
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < cols; c++, to += (size_t)last * es) memcpy(to, from + ((size_t)r * padded[2] + c) * inner * es, (size_t)last * es);
    }
}

/* (const T *list, T *padded, T value, const int *places, const int *sizes, int dims, int padded's sizes without the batch, .., int batch);
   as many blocks as padded has tensors: those beyond the list are value all over */
static void add_padding(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    size_t es = dtype_bytes(k->t[0]);
    int dims = A(int, 5), batch = A(int, 6 + dims), want[3] = { 1, 1, 1 };
    for (int d = 0; d < dims; d++) want[3 - dims + d] = A(int, 6 + d);
    char *to = A(char *, 1);
    for (int b = 0; b < (int)l->grid.x; b++) {
        int have[3] = { 1, 1, 1 };
        for (int d = 0; d < dims && b < batch; d++) have[3 - dims + d] = A(const int *, 4)[b * dims + d];
        const char *from = b < batch ? A(const char *, 0) + (size_t)A(const int *, 3)[b] * es : NULL;
        for (int i = 0; i < want[0]; i++)
            for (int j = 0; j < want[1]; j++)
                for (int c = 0; c < want[2]; c++, to += es) {
                    bool in = from && i < have[0] && j < have[1] && c < have[2];
                    memcpy(to, in ? from + (((size_t)i * have[1] + j) * have[2] + c) * es : (const char *)p[2], es);
                }
    }
}

/* <T, Acc, aligned> (accessor <3> rows of q, k and v in one, accessor <1> bias, accessor <5> (3, batch, heads, rows, width), T scale of q);
   add_padding: the first is a list, accessor <1>, const int *places and const int *elements of each follow the bias */
static void split_qkv(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], acc = k->t[1];
    bool list = strstr(k->name.base, "add_padding") != NULL;
    struct accessor x = accessor_read(p[0], list ? 1 : 3, true), bias = accessor_read(p[1], 1, true), y = accessor_read(p[list ? 4 : 2], 5, true);
    double scale = dtype_get(t, p[list ? 5 : 3], 0);
    int64_t heads = y.size[2], width = y.size[4], d = heads * width;
    for (int64_t b = 0; b < y.size[1]; b++)
        for (int64_t r = 0; r < y.size[3]; r++)
            for (int64_t i = 0; i < 3 * d; i++) {
                int64_t part = i / d, out = part * y.stride[0] + b * y.stride[1] + i % d / width * y.stride[2] + r * y.stride[3] + i % width * y.stride[4];
                double v = 0;
                /* a row is in the list where its place in q is */
                if (!list || r * 3 * d + i % d < A(const int *, 3)[b]) {
                    int64_t from = list ? (A(const int *, 2)[b] + r * 3 * d + i) * x.stride[0] : b * x.stride[0] + r * x.stride[1] + i * x.stride[2];
                    v = dtype_round(acc, dtype_get(t, x.data, from) + dtype_get(t, bias.data, i * bias.stride[0]));
                    if (part == 0) v = dtype_round(acc, v * scale);
                }
                dtype_set(t, y.data, out, v);
            }
}

static void qkv_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    struct accessor y = accessor_read(p[strstr(k->name.base, "add_padding") ? 4 : 2], 5, true);
    uint64_t n = 3 * (uint64_t)(y.size[1] * y.size[2] * y.size[3] * y.size[4]);
    *flops = 2 * n;
    *bytes = 2 * n * dtype_bytes(k->t[0]);
}

const struct kern_row nested_rows[] = {
    { "remove_padding", "pppppii", remove_padding, NULL, NULL },
    { "remove_padding_2", "pppppii", remove_padding, NULL, NULL },
    { "remove_padding_transform0213_2", "pppppii", remove_padding, NULL, NULL },
    { "add_padding_1", "pp*ppiii", add_padding, NULL, NULL },
    { "add_padding_2", "pp*ppiiii", add_padding, NULL, NULL },
    { "add_padding_3", "pp*ppiiiii", add_padding, NULL, NULL },
    { "transform_bias_rescale_qkv_kernel", "****", split_qkv, qkv_cost, NULL },
    { "transform_bias_rescale_qkv_add_padding_kernel", "**pp**", split_qkv, qkv_cost, NULL },
    KERN_END
};
