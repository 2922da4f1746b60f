"""Reductions, softmaxes, losses, sorting, cumulative operations."""
import torch
import torch.nn.functional as F
from torch import nn

from harness import DEVICE, check, scenario, BF16, F16, F32, F64, FLOATS, T, row

HALF = (F32, BF16, F16)

for name, f in {'sum': torch.sum, 'mean': torch.mean}.items():
    row(f'{name}_all', lambda f=f: f, T(33, 47))
    row(f'{name}_last', lambda f=f: lambda a: f(a, -1), T(33, 47))
    row(f'{name}_first', lambda f=f: lambda a: f(a, 0), T(33, 47))
    row(f'{name}_middle', lambda f=f: lambda a: f(a, 1), T(6, 21, 35))
    row(f'{name}_two', lambda f=f: lambda a: f(a, (0, 2)), T(6, 21, 35))
    row(f'{name}_outer_two', lambda f=f: lambda a: f(a, (0, 1)), T(6, 21, 35))
    row(f'{name}_transposed', lambda f=f: lambda a: f(a, -1), T(33, 47, lay='transposed'))
row('sum_large', lambda: torch.sum, T(700, 1001), dtypes=HALF)
row('sum_large_last', lambda: lambda a: a.sum(-1), T(3, 70001), dtypes=HALF)
row('sum_large_first', lambda: lambda a: a.sum(0), T(5000, 40), dtypes=HALF)
row('sum_to_size', lambda: lambda a: a.sum_to_size(1, 7, 1), T(4, 7, 9), dtypes=HALF)
row('sum_to_float', lambda: lambda a: a.sum(dtype=F32), T(33, 47), dtypes=(BF16, F16))
row('sum_int', lambda: lambda a: (a.sum(), a.sum(0), a.sum(1)), T(33, 47, fill='index:50'), dtypes=(F32,), backward=False)
row('sum_bool', lambda: lambda a: (a.sum(), a.any(), a.all(), a.any(0), a.all(1), a.sum(0)), T(33, 47, fill='bool'), dtypes=(F32,), backward=False)
row('mean_empty_like', lambda: lambda a: a.mean((1, 2), keepdim=True), T(6, 5, 5), dtypes=HALF)
row('var', lambda: lambda a: a.var(-1), T(33, 47), dtypes=HALF, slack=4)
row('std', lambda: lambda a: a.std(), T(33, 47), dtypes=(F32, F64), slack=4)
row('var_unbiased_off', lambda: lambda a: a.var((0, 2), unbiased=False), T(6, 21, 35), dtypes=(F32,), slack=4)
row('var_mean', lambda: lambda a: torch.var_mean(a, -1), T(33, 47), dtypes=(F32,), slack=4)
row('max_all', lambda: torch.max, T(33, 47), dtypes=HALF)
row('min_all', lambda: torch.min, T(33, 47), dtypes=HALF)
row('max_dim', lambda: lambda a: torch.max(a, -1), T(33, 47), dtypes=HALF)
row('min_dim', lambda: lambda a: torch.min(a, 0), T(33, 47), dtypes=HALF)
row('amax', lambda: lambda a: a.amax(-1), T(33, 47), dtypes=HALF)
row('amin', lambda: lambda a: a.amin(0), T(33, 47), dtypes=(F32,))
row('argmax', lambda: lambda a: (a.argmax(-1), a.argmax(), a.argmax(0)), T(33, 47), dtypes=FLOATS, backward=False)
row('argmin', lambda: lambda a: a.argmin(-1), T(33, 47), dtypes=HALF, backward=False)
row('max_int', lambda: lambda a: (a.max(), a.min(), a.max(1), a.argmax(1)), T(33, 47, fill='index:100000'), dtypes=(F32,), backward=False)
row('norm_2', lambda: lambda a: torch.linalg.vector_norm(a), T(33, 47))
row('norm_1', lambda: lambda a: torch.linalg.vector_norm(a, 1), T(33, 47), dtypes=HALF)
row('norm_inf', lambda: lambda a: torch.linalg.vector_norm(a, float('inf')), T(33, 47), dtypes=HALF)
row('norm_dim', lambda: lambda a: a.norm(dim=-1), T(33, 47), dtypes=HALF)
row('logsumexp', lambda: lambda a: torch.logsumexp(a, -1), T(33, 47), dtypes=HALF)
row('cumsum', lambda: lambda a: a.cumsum(-1), T(7, 131), slack=4)
row('cumsum_first', lambda: lambda a: a.cumsum(0), T(131, 7), dtypes=HALF, slack=4)
row('cumsum_int', lambda: lambda a: a.cumsum(0), T(131, 7, fill='index:9'), dtypes=(F32,), backward=False)
row('cumsum_1d', lambda: lambda a: a.cumsum(0), T(5000), dtypes=(F32, F64), slack=10)


def deterministic(f):
    """Its gradient is taken inside: algorithms in a fixed order, forward and backward."""
    def run(a):
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            y = f(a)
            return (y.detach(), *torch.autograd.grad(y.sin().sum(), a)) if a.requires_grad else y
        finally:
            torch.use_deterministic_algorithms(before)
    return run


row('cumsum_fixed', lambda: deterministic(lambda a: a.cumsum(0)), T(20000, scale=0.01), dtypes=(F32, F64), slack=10)
row('cumsum_int_fixed', lambda: deterministic(lambda a: a.cumsum(0)), T(30000, fill='index:9'), dtypes=(F32,), backward=False)
row('pad_reflect_fixed', lambda: deterministic(lambda a: F.pad(a, (1, 2, 2, 1), mode='reflect')), T(2, 3, 9, 5), dtypes=(F32,))
row('pad_replicate_fixed', lambda: deterministic(lambda a: F.pad(a, (1, 2, 2, 1), mode='replicate')), T(2, 3, 9, 5), dtypes=(F32,))
row('mode', lambda: lambda a: a.mode(1)[0], T(9, 31, fill='ties'), dtypes=(F32, F64), backward=False)
row('mode_int', lambda: lambda a: a.mode(0)[0], T(50, 6, fill='index:4'), dtypes=(F32,), backward=False)
row('cumprod', lambda: lambda a: a.cumprod(-1), T(7, 12, fill='positive'), dtypes=(F32,), slack=10)
row('sort', lambda: lambda a: torch.sort(a, dim=-1, stable=True)[0], T(7, 131), dtypes=HALF)
row('sort_index', lambda: lambda a: torch.sort(a, dim=-1, stable=True, descending=True), T(7, 131), dtypes=(F32,), backward=False)
row('sort_first', lambda: lambda a: torch.sort(a, dim=0)[0], T(131, 7), dtypes=(F32,))
row('sort_int', lambda: lambda a: torch.sort(a, dim=-1, stable=True), T(5, 99, fill='index:40'), dtypes=(F32,), backward=False)
row('sort_long', lambda: lambda a: torch.sort(a, dim=-1, stable=True), T(2, 3000), dtypes=(F32,), backward=False)
row('argsort', lambda: lambda a: torch.argsort(a, dim=-1), T(7, 131), dtypes=(F32,), backward=False)
row('topk', lambda: lambda a: torch.topk(a, 5, dim=-1), T(7, 131), dtypes=HALF)
row('topk_smallest', lambda: lambda a: torch.topk(a, 3, dim=0, largest=False), T(131, 7), dtypes=(F32,))
row('topk_large', lambda: lambda a: torch.topk(a, 40, dim=-1), T(2, 3000), dtypes=(F32,))
row('kthvalue', lambda: lambda a: torch.kthvalue(a, 3, dim=-1)[0], T(7, 131), dtypes=(F32,))
row('median', lambda: lambda a: torch.median(a, dim=-1)[0], T(7, 131), dtypes=(F32,))
row('unique', lambda: lambda a: torch.unique(a), T(300, fill='index:40'), dtypes=(F32,), backward=False)
row('bincount', lambda: lambda a: torch.bincount(a, minlength=40), T(300, fill='index:40'), dtypes=(F32,), backward=False)
row('histc', lambda: lambda a: torch.histc(a, 10, -3.0, 3.0), T(300), dtypes=(F32,), backward=False)

# softmax: by warps (short), by blocks (long), over another dimension
for n in (1, 17, 64, 500, 1024, 1025, 3000):
    row(f'softmax_{n}', lambda: lambda a: F.softmax(a, -1), T(9, n), dtypes=FLOATS if n == 64 else HALF)
    row(f'log_softmax_{n}', lambda: lambda a: F.log_softmax(a, -1), T(9, n), dtypes=FLOATS if n == 64 else HALF)
row('softmax_first', lambda: lambda a: F.softmax(a, 0), T(33, 47), dtypes=HALF)
row('softmax_middle', lambda: lambda a: F.softmax(a, 1), T(5, 33, 6), dtypes=HALF)
row('log_softmax_middle', lambda: lambda a: F.log_softmax(a, 1), T(5, 33, 6), dtypes=HALF)
row('softmax_to_float', lambda: lambda a: F.softmax(a, -1, dtype=F32), T(9, 64), dtypes=(F16, BF16))
row('softmax_masked', lambda: lambda a, m: F.softmax(a.masked_fill(m, float('-inf')), -1), T(9, 64), T(9, 64, fill='bool'), dtypes=HALF)

# losses
row('cross_entropy', lambda: F.cross_entropy, T(37, 50), T(37, fill='index:50'))
row('cross_entropy_sum', lambda: lambda a, t: F.cross_entropy(a, t, reduction='sum'), T(37, 50), T(37, fill='index:50'), dtypes=(F32,))
row('cross_entropy_none', lambda: lambda a, t: F.cross_entropy(a, t, reduction='none'), T(37, 50), T(37, fill='index:50'), dtypes=(F32,))
row('cross_entropy_large', lambda: F.cross_entropy, T(600, 1500), T(600, fill='index:1500'), dtypes=HALF)
row('cross_entropy_ignore', lambda: lambda a, t: F.cross_entropy(a, t, ignore_index=3), T(37, 50), T(37, fill='index:50'), dtypes=HALF)
row('cross_entropy_smooth', lambda: lambda a, t: F.cross_entropy(a, t, label_smoothing=0.1), T(37, 50), T(37, fill='index:50'), dtypes=HALF)
row('cross_entropy_weight', lambda: lambda a, t, w: F.cross_entropy(a, t, weight=w), T(37, 50), T(37, fill='index:50'), T(50, fill='positive', grad=False), dtypes=(F32,))
row('cross_entropy_2d', lambda: F.cross_entropy, T(3, 7, 6, 5), T(3, 6, 5, fill='index:7'), dtypes=HALF)
row('cross_entropy_soft', lambda: lambda a, t: F.cross_entropy(a, F.softmax(t, -1)), T(37, 50), T(37, 50), dtypes=(F32,))
row('mse_loss', nn.MSELoss, T(33, 47), T(33, 47))
row('mse_loss_none', lambda: nn.MSELoss(reduction='none'), T(33, 47), T(33, 47), dtypes=(F32,))
row('l1_loss', nn.L1Loss, T(33, 47), T(33, 47, grad=False), dtypes=HALF)
row('smooth_l1_loss', nn.SmoothL1Loss, T(33, 47), T(33, 47, grad=False), dtypes=HALF)
row('huber_loss', lambda: nn.HuberLoss(delta=0.7), T(33, 47), T(33, 47, grad=False), dtypes=(F32,))
row('bce', nn.BCELoss, T(33, 47, fill='unit'), T(33, 47, fill='unit', grad=False), dtypes=(F32,))
row('bce_with_logits', nn.BCEWithLogitsLoss, T(33, 47), T(33, 47, fill='unit', grad=False), dtypes=HALF)
row('kl_div', lambda: lambda a, b: F.kl_div(F.log_softmax(a, -1), F.softmax(b, -1), reduction='batchmean'), T(9, 47), T(9, 47, grad=False), dtypes=(F32,))
row('nll_loss', lambda: lambda a, t: F.nll_loss(F.log_softmax(a, -1), t), T(37, 50), T(37, fill='index:50'), dtypes=HALF)
row('cosine_similarity', lambda: lambda a, b: F.cosine_similarity(a, b, dim=-1), T(9, 47), T(9, 47), dtypes=(F32,))
row('cosine_embedding_loss', lambda: lambda a, b, t: F.cosine_embedding_loss(a, b, t * 2 - 1), T(9, 47), T(9, 47), T(9, fill='index:2'), dtypes=(F32,))
row('triplet_margin', lambda: nn.TripletMarginLoss(), T(9, 47), T(9, 47), T(9, 47), dtypes=(F32,))
for how in ('mean', 'sum', 'none'):
    row(f'multi_margin_{how}', lambda how=how: nn.MultiMarginLoss(reduction=how), T(9, 11), T(9, fill='index:11'), dtypes=(F32, F64))
    row(f'multilabel_margin_{how}', lambda how=how: lambda a, t: F.multilabel_margin_loss(a, t - 1, reduction=how), T(9, 11), T(9, 11, fill='index:12'),
        dtypes=(F32, F64))
    row(f'hinge_embedding_{how}', lambda how=how: lambda a, t: F.hinge_embedding_loss(a, t * 2 - 1, reduction=how), T(9, 11), T(9, 11, fill='index:2'),
        dtypes=(F32,))
    row(f'margin_ranking_{how}', lambda how=how: lambda a, b, t: F.margin_ranking_loss(a, b, t * 2 - 1, margin=0.2, reduction=how), T(47), T(47),
        T(47, fill='index:2'), dtypes=(F32,))
row('multi_margin_square', lambda: lambda a, t: F.multi_margin_loss(a, t, p=2, margin=0.7, weight=torch.linspace(0.5, 2, 11, device=a.device, dtype=a.dtype)),
    T(9, 11), T(9, fill='index:11'), dtypes=HALF, slack=4)
row('multi_margin_one', lambda: nn.MultiMarginLoss(), T(11), T(1, fill='index:11'), dtypes=(F32,))
row('gaussian_nll', lambda: nn.GaussianNLLLoss(full=True), T(9, 11), T(9, 11, grad=False), T(9, 11, fill='positive'), dtypes=(F32,), slack=4)
row('poisson_nll', lambda: nn.PoissonNLLLoss(full=True), T(9, 11), T(9, 11, fill='positive', grad=False), dtypes=(F32,), slack=4)
row('multilabel_soft_margin', nn.MultiLabelSoftMarginLoss, T(9, 11), T(9, 11, fill='unit', grad=False), dtypes=(F32,))
row('normalize', lambda: lambda a: F.normalize(a, dim=-1), T(9, 47), dtypes=HALF)
row('soft_margin', nn.SoftMarginLoss, T(9, 47), T(9, 47, grad=False), dtypes=(F32,))
for p in (0.5, 1, 1.5, 2, 3, float('inf')):
    row(f'cdist_{p}', lambda p=p: lambda a, b: torch.cdist(a, b, p), T(2, 9, 5), T(2, 7, 5), dtypes=(F32, F64) if p == 2 else (F32,), slack=20)
for p in (0, 1, 1.5, 2, 3, float('inf')):
    row(f'pdist_{p}', lambda p=p: lambda a: F.pdist(a, p), T(9, 5), dtypes=(F32, F64) if p == 2 else (F32,), slack=20)
row('cdist_products', lambda: lambda a, b: torch.cdist(a, b), T(2, 39, 5), T(2, 37, 5), dtypes=(F32,), slack=50)
row('cross', lambda: lambda a, b: torch.linalg.cross(a, b), T(9, 3), T(9, 3), dtypes=(F32,))
row('searchsorted', lambda: lambda a, b: (torch.searchsorted(a.sort(-1)[0], b), torch.bucketize(b, a[0].sort()[0], right=True)), T(9, 17), T(9, 5), dtypes=(F32,), backward=False)
row('sort_long', lambda: lambda a: torch.sort(a, dim=-1, stable=True)[0], T(3, 5000), dtypes=HALF)
row('sort_many_long', lambda: lambda a: torch.sort(a, dim=-1, stable=True)[0], T(140, 4200), dtypes=(F32,))
row('argsort_first', lambda: lambda a: torch.argsort(a, dim=0, stable=True), T(700, 3), dtypes=(F32,), backward=False)
row('unique_counts', lambda: lambda a: torch.unique(a, return_inverse=True, return_counts=True), T(300, fill='index:40'), dtypes=(F32,), backward=False)
row('unique_consecutive', lambda: lambda a: torch.unique_consecutive(a.sort()[0]), T(300, fill='index:40'), dtypes=(F32,), backward=False)
row('bincount_weights', lambda: lambda i, w: (torch.bincount(i, w), torch.bincount(i, minlength=300)), T(300, fill='index:40'), T(300, grad=False), dtypes=(F32,), backward=False)
row('logcumsumexp', lambda: lambda a: (a.logcumsumexp(-1), a.logcumsumexp(0)), T(9, 47), dtypes=(F32, BF16), slack=2)
row('topk_wide', lambda: lambda a: torch.topk(a, 7, dim=-1)[0], T(3, 40000), dtypes=(F32, BF16))


@scenario('compiled_at_run_time')
def _():
    """What PyTorch compiles itself (NVRTC) cannot run here: such kernels have names that do not tell their types. It must say so."""
    x = torch.rand(9, 5) + 0.5
    for name, f in {'exp2': torch.exp2, 'erfc': torch.erfc, 'prod': torch.prod, 'i0': torch.special.i0}.items():
        try:
            got = f(x.to(DEVICE)).cpu()
        except RuntimeError as e:
            check('named symbol not found' in str(e), f'{name}: {e}')
        else:
            check(torch.allclose(got, f(x)), f'{name}: another result')
