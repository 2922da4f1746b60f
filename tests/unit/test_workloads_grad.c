/*
 * The workloads' backward passes against their forward passes: for each layer, the derivative of a loss along a
 * random direction of each parameter, once as a central difference and once from the gradients.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "tests/workloads/nn.h"

enum { MAX_PARAMS = 6 };

/* One layer under test: params[0] is its input. Returns a matrix of 16 columns (or 64) for the loss. */
typedef struct {
    const char *name;
    int shape[MAX_PARAMS][4];               /* rows, cols, h, w; rows 0: no more */
    var *(*forward)(param **p);
    float tolerance;
} layer_case;

static tensor *ints(const int *values, int n)
{
    tensor *t = tensor_new((size_t)n * sizeof(int));
    tensor_upload(t, values);
    return t;
}

static int labels[4096];
static batch_norm norm;

/* a leaf as a value of the record, so that layers may drop or take it over */
static var *leaf(param *p)
{
    return nn_add_scalar(&p->v, 0.0f);
}

static var *as_matrix(var *image)
{
    return nn_mean_pool(image);
}

static var *f_linear(param **p)
{
    return nn_linear(leaf(p[0]), p[1], p[2]);
}

static var *f_linear_plain(param **p)
{
    return nn_linear(leaf(p[0]), p[1], NULL);
}

static var *f_silu(param **p)
{
    return nn_silu(leaf(p[0]));
}

static var *f_elementwise(param **p)
{
    var *a = leaf(p[0]), *b = leaf(p[1]);
    var *c = nn_cube(a), *d = nn_tanh(nn_scale(c, 0.7f));
    return nn_add_inplace(nn_mul(nn_add_scalar(d, 1.0f), b), nn_add(a, a));
}

static var *f_relu(param **p)
{
    return nn_relu_inplace(leaf(p[0]));
}

static var *f_dropout(param **p)
{
    nn_random_seed(7);
    return nn_dropout(leaf(p[0]), 0.3f);
}

static var *f_layer_norm(param **p)
{
    return nn_layer_norm(leaf(p[0]), p[1], p[2]);
}

/* p[0] is the table of 8 words; rows in reverse order of words, each word as often as its number */
static var *f_embed(param **p)
{
    int ids[36], order[36], start[9], n = 0, rows = 28;
    for (int word = 7; word >= 0; word--)
        for (int i = 0; i < word; i++)
            ids[n++] = word;
    n = 0;
    for (int word = 0; word < 8; word++) {
        start[word] = n;
        for (int i = 0; i < rows; i++)
            if (ids[i] == word)
                order[n++] = i;
    }
    start[8] = n;
    tensor *t[3] = {ints(ids, rows), ints(order, rows), ints(start, 9)};
    var *y = nn_add_position(nn_embed(p[0], t[0], t[1], t[2], rows), p[1]);
    for (int i = 0; i < 3; i++)
        tensor_drop(t[i]);
    return y;
}

static var *f_attention(param **p)
{
    nn_random_seed(3);
    return nn_attention(leaf(p[0]), 32, 2, 0.0f);
}

static var *f_attention_dropout(param **p)
{
    nn_random_seed(3);
    return nn_attention(leaf(p[0]), 32, 2, 0.2f);
}

static var *f_conv3x3(param **p)
{
    return as_matrix(nn_silu(nn_conv3x3(leaf(p[0]), p[1])));
}

static var *f_conv1x1(param **p)
{
    return as_matrix(nn_silu(nn_conv1x1(leaf(p[0]), p[1])));
}

static var *f_batch_norm(param **p)
{
    norm.gamma = p[1];
    norm.beta = p[2];
    return as_matrix(nn_silu(nn_batch_norm(leaf(p[0]), &norm, true)));
}

static var *f_max_pool(param **p)
{
    return as_matrix(nn_max_pool(leaf(p[0])));
}

static const layer_case cases[] = {
    {"linear", {{300, 32, 1, 1}, {32, 16, 1, 1}, {1, 16, 1, 1}}, f_linear, 0.01f},
    {"linear, no bias, 5 rows", {{5, 16, 1, 1}, {16, 32, 1, 1}}, f_linear_plain, 0.01f},
    {"silu", {{40, 16, 1, 1}}, f_silu, 0.01f},
    {"elementwise", {{40, 16, 1, 1}, {40, 16, 1, 1}}, f_elementwise, 0.01f},
    {"relu", {{40, 16, 1, 1}}, f_relu, 0.03f},
    {"dropout", {{40, 16, 1, 1}}, f_dropout, 0.01f},
    {"layer norm", {{300, 32, 1, 1}, {1, 32, 1, 1}, {1, 32, 1, 1}}, f_layer_norm, 0.01f},
    {"embedding", {{8, 16, 1, 1}, {4, 16, 1, 1}}, f_embed, 0.01f},
    {"attention", {{64, 96, 1, 1}}, f_attention, 0.01f},
    {"attention, dropout", {{64, 96, 1, 1}}, f_attention_dropout, 0.01f},
    {"conv3x3", {{3, 4, 8, 16}, {16, 36, 1, 1}}, f_conv3x3, 0.02f},
    {"conv1x1", {{3, 8, 8, 16}, {16, 8, 1, 1}}, f_conv1x1, 0.02f},
    {"batch norm", {{3, 16, 8, 16}, {1, 16, 1, 1}, {1, 16, 1, 1}}, f_batch_norm, 0.02f},
    {"max pool", {{3, 16, 16, 16}}, f_max_pool, 0.03f},
};

static var *loss_of(const layer_case *c, param **p, tensor *label)
{
    return nn_cross_entropy(nn_scale(c->forward(p), 5.0f), label);
}

static float loss_value(const layer_case *c, param **p, tensor *label)
{
    float value;
    nn_begin(true);
    var *loss = loss_of(c, p, label);
    dev_synchronize();
    tensor_download(&value, loss->value);
    nn_end();
    return value;
}

/* the loss with p moved by t along direction */
static float moved_loss(const layer_case *c, param **p, int which, const float *origin, const float *direction,
    float t, tensor *label)
{
    int n = nn_size(&p[which]->v);
    float *values = malloc((size_t)n * sizeof *values);
    for (int i = 0; i < n; i++)
        values[i] = origin[i] + t * direction[i];
    dev_synchronize();
    tensor_upload(p[which]->v.value, values);
    float loss = loss_value(c, p, label);
    tensor_upload(p[which]->v.value, origin);
    free(values);
    return loss;
}

START_TEST(gradient_agrees_with_difference)
{
    const layer_case *c = &cases[_i];
    model m = {.seed = 11};
    param *p[MAX_PARAMS];
    int n_params = 0;
    srand(5);
    for (; n_params < MAX_PARAMS && c->shape[n_params][0]; n_params++) {
        const int *s = c->shape[n_params];
        p[n_params] = nn_param_uniform(&m, s[0], s[1] * s[2] * s[3], 1.0f);
        p[n_params]->v.cols = s[1];
        p[n_params]->v.h = s[2];
        p[n_params]->v.w = s[3];
    }
    norm.running_mean = nn_buffer_constant(&m, 16, 0.0f);
    norm.running_var = nn_buffer_constant(&m, 16, 1.0f);
    for (int i = 0; i < 4096; i++)
        labels[i] = i * 7 % 16;
    tensor *label = ints(labels, 4096);

    nn_begin(true);
    nn_backward(loss_of(c, p, label), 1.0f, 1.0);
    nn_end();
    dev_synchronize();
    for (int which = 0; which < n_params; which++) {
        int n = nn_size(&p[which]->v);
        float *grad = malloc((size_t)n * sizeof *grad), *direction = malloc((size_t)n * sizeof *direction);
        float *origin = malloc((size_t)n * sizeof *origin);
        ck_assert_msg(p[which]->v.grad != NULL, "%s: parameter %d has no gradient", c->name, which);
        tensor_download(grad, p[which]->v.grad);
        tensor_download(origin, p[which]->v.value);
        /* along the gradient's sign with a random weight: the derivative is then large against rounding */
        double analytic = 0.0;
        for (int i = 0; i < n; i++) {
            direction[i] = (grad[i] < 0.0f ? -1.0f : 1.0f) * ((float)rand() / (float)RAND_MAX + 0.1f);
            analytic += (double)grad[i] * (double)direction[i];
        }
        const float eps = 4e-3f;
        double difference = ((double)moved_loss(c, p, which, origin, direction, eps, label) -
            (double)moved_loss(c, p, which, origin, direction, -eps, label)) / (2.0 * (double)eps);
        ck_assert_msg(analytic > 1e-3, "%s: parameter %d: no slope to test", c->name, which);
        ck_assert_msg(fabs(difference - analytic) <= (double)c->tolerance * fabs(analytic),
            "%s: parameter %d: difference quotient %g, gradient %g", c->name, which, difference, analytic);
        free(grad);
        free(direction);
        free(origin);
    }
    tensor_drop(label);
    nn_model_free(&m);
}
END_TEST

static void open_device(void)
{
    const dev_options plain = {.route = ROUTE_LINKED};
    dev_open(&plain);
}

int main(void)
{
    setenv("WORKLOAD_KERNELS", KERNELS_PATH, 0);
    Suite *s = suite_create("workloads_grad");
    TCase *t = tcase_create("layers");
    tcase_add_checked_fixture(t, open_device, dev_close);
    tcase_add_loop_test(t, gradient_agrees_with_difference, 0, (int)(sizeof cases / sizeof *cases));
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
