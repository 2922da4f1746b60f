#include "tests/workloads/optim.h"

#include <math.h>

#include "tests/workloads/launch.h"

void optim_sgd(model *m, float rate, float mu)
{
    for (int i = 0; i < m->n_params; i++) {
        param *p = m->params[i];
        int n = nn_size(&p->v);
        if (!p->v.grad)
            continue;
        if (!p->state[0]) {
            p->state[0] = tensor_new(p->v.value->bytes);
            k_copy(p->state[0]->p, p->v.grad->p, n);
        } else {
            k_momentum(p->state[0]->p, p->v.grad->p, mu, n);
        }
        k_step(p->v.value->p, p->state[0]->p, rate, n);
    }
}

static void adam_launch(const adam_pack *pack, float rate, int step)
{
    const float beta1 = 0.9f, beta2 = 0.999f;
    k_adam(*pack, rate, beta1, beta2, 1.0f / (1.0f - powf(beta1, (float)step)),
        1.0f / (1.0f - powf(beta2, (float)step)), 1e-8f);
}

void optim_adam(model *m, float rate, int step)
{
    static adam_pack pack;
    pack.n = 0;
    for (int i = 0; i < m->n_params; i++) {
        param *p = m->params[i];
        if (!p->v.grad)
            continue;
        for (int s = 0; s < 2; s++)
            if (!p->state[s]) {
                p->state[s] = tensor_new(p->v.value->bytes);
                tensor_clear(p->state[s]);
            }
        pack.param[pack.n] = p->v.value->p;
        pack.grad[pack.n] = p->v.grad->p;
        pack.m[pack.n] = p->state[0]->p;
        pack.v[pack.n] = p->state[1]->p;
        pack.size[pack.n] = nn_size(&p->v);
        if (++pack.n == ADAM_TENSORS) {
            adam_launch(&pack, rate, step);
            pack.n = 0;
        }
    }
    if (pack.n)
        adam_launch(&pack, rate, step);
}
