"""Layers with parameters, as scripts use them."""
import torch
import torchvision
import torch.nn.attention
import torch.nn.functional as F
from torch import nn

from harness import BF16, F16, F32, F64, FLOATS, T, row

HALF = (F32, BF16, F16)

row('linear', lambda: nn.Linear(48, 32), T(17, 48))
row('linear_no_bias', lambda: nn.Linear(48, 32, bias=False), T(17, 48))
row('linear_3d', lambda: nn.Linear(48, 32), T(3, 17, 48))
row('linear_long', lambda: nn.Linear(48, 32), T(2100, 48), dtypes=HALF, slack=4)
row('bilinear', lambda: nn.Bilinear(6, 7, 5), T(9, 6), T(9, 7), dtypes=(F32,))
row('mlp', lambda: nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 10)), T(17, 48), dtypes=HALF, slack=4)

row('layer_norm', lambda: nn.LayerNorm(48), T(17, 48))
row('layer_norm_3d', lambda: nn.LayerNorm(128), T(5, 40, 128), slack=4)
row('layer_norm_odd', lambda: nn.LayerNorm(47), T(5, 47), slack=2)
row('layer_norm_large', lambda: nn.LayerNorm(1000), T(33, 1000), dtypes=HALF, slack=4)
row('layer_norm_many_rows', lambda: nn.LayerNorm(64), T(1500, 64), dtypes=HALF, slack=4)
row('layer_norm_plain', lambda: nn.LayerNorm(48, elementwise_affine=False), T(17, 48), dtypes=HALF)
row('layer_norm_no_bias', lambda: nn.LayerNorm(48, bias=False), T(17, 48), dtypes=HALF)
row('layer_norm_two_dims', lambda: nn.LayerNorm((6, 8)), T(17, 6, 8), dtypes=(F32,))
row('rms_norm', lambda: nn.RMSNorm(48), T(17, 48), slack=2)
row('rms_norm_large', lambda: nn.RMSNorm(512, eps=1e-5), T(70, 512), dtypes=HALF, slack=4)
row('group_norm', lambda: nn.GroupNorm(4, 16), T(3, 16, 7, 5), slack=4)
row('group_norm_large', lambda: nn.GroupNorm(8, 32), T(3, 32, 16, 16), dtypes=HALF, slack=4)
row('group_norm_channels_last', lambda: nn.GroupNorm(4, 16), T(3, 16, 7, 5, lay='channels_last'), slack=4)
row('group_norm_channels_last_one', lambda: nn.GroupNorm(1, 48), T(2, 48, 9, 8, lay='channels_last'), dtypes=HALF, slack=4)
row('group_norm_channels_last_large', lambda: nn.GroupNorm(8, 320), T(2, 320, 16, 16, lay='channels_last'), dtypes=HALF, slack=4)
row('group_norm_channels_last_each', lambda: nn.GroupNorm(20, 20), T(3, 20, 9, 8, lay='channels_last'), dtypes=(F32,), slack=4)
row('group_norm_plain', lambda: nn.GroupNorm(4, 16, affine=False), T(3, 16, 7, 5), dtypes=HALF, slack=4)
row('group_norm_plain_channels_last', lambda: nn.GroupNorm(4, 16, affine=False), T(3, 16, 7, 5, lay='channels_last'), dtypes=HALF, slack=4)
row('group_norm_1d', lambda: nn.GroupNorm(2, 8), T(3, 8), dtypes=(F32,), slack=4)
row('batch_norm_1d', lambda: nn.BatchNorm1d(16), T(30, 16), slack=4)
row('batch_norm_1d_3d', lambda: nn.BatchNorm1d(16), T(10, 16, 9), dtypes=HALF, slack=4)
row('batch_norm_2d', lambda: nn.BatchNorm2d(8), T(4, 8, 7, 5), slack=4)
row('batch_norm_2d_channels_last', lambda: nn.BatchNorm2d(8), T(4, 8, 7, 5, lay='channels_last'), dtypes=HALF, slack=4)
row('batch_norm_eval', lambda: nn.BatchNorm2d(8).eval(), T(4, 8, 7, 5), dtypes=HALF, slack=4)
row('batch_norm_plain', lambda: nn.BatchNorm2d(8, affine=False, track_running_stats=False), T(4, 8, 7, 5), dtypes=(F32,), slack=4)
row('instance_norm', lambda: nn.InstanceNorm2d(8, affine=True), T(4, 8, 7, 5), dtypes=(F32,), slack=4)


class RunningStatistics(nn.Module):
    """The statistics that batch norm keeps are results too."""

    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(6, momentum=0.3)

    def forward(self, x):
        y = self.bn(x)
        y = self.bn(y * 2 + 1)
        return y, self.bn.running_mean, self.bn.running_var, self.bn.num_batches_tracked


row('batch_norm_statistics', RunningStatistics, T(4, 6, 7, 5), dtypes=(F32, F64), slack=4)

# attention
row('mha', lambda: nn.MultiheadAttention(32, 4, batch_first=True), T(3, 9, 32), T(3, 7, 32), T(3, 7, 32), dtypes=HALF, slack=6)


class SelfAttention(nn.Module):
    def __init__(self, **how):
        super().__init__()
        self.a = nn.MultiheadAttention(32, 4, batch_first=True)
        self.how = how

    def forward(self, x):
        how = dict(self.how)
        if how.pop('causal', False):
            how['attn_mask'] = torch.triu(torch.ones(x.shape[1], x.shape[1], device=x.device, dtype=torch.bool), 1)
        if how.pop('padding', False):
            how['key_padding_mask'] = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1) >= 6
        return self.a(x, x, x, **how)[0]


row('mha_self', lambda: SelfAttention(), T(3, 9, 32), dtypes=HALF, slack=6)
row('mha_self_no_weights', lambda: SelfAttention(need_weights=False), T(3, 9, 32), dtypes=HALF, slack=6)
row('mha_self_causal', lambda: SelfAttention(causal=True, need_weights=False), T(3, 9, 32), dtypes=HALF, slack=6)
row('mha_self_padding', lambda: SelfAttention(padding=True), T(3, 9, 32), dtypes=HALF, slack=6)


class Evaluated(nn.Module):
    """A module in evaluation without gradients: attention and encoder layers take kernels of their own then."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner.eval()

    def forward(self, x, *lengths):
        keep = {}
        if lengths:
            # what is behind a sentence's end is the caller's, whatever it holds
            keep['src_key_padding_mask'] = torch.arange(x.shape[1], device=x.device) >= lengths[0][:, None].clamp(min=1)
            keep['src_key_padding_mask'][0] = False
        with torch.no_grad():
            y = self.inner(x, **keep)
        return y.masked_fill(keep['src_key_padding_mask'][:, :, None], 0) if keep else y


def encoder(**how):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 48, batch_first=True, **how), 2)


row('mha_eval', lambda: Evaluated(SelfAttention(need_weights=False)), T(3, 9, 32, grad=False), dtypes=HALF, slack=6)
row('mha_eval_odd', lambda: Evaluated(nn.Sequential(SelfAttention(need_weights=False))), T(3, 9, 32, grad=False, lay='transposed'), dtypes=(F32,), slack=6)
row('mha_eval_weights', lambda: Evaluated(SelfAttention()), T(3, 9, 32, grad=False), dtypes=HALF, slack=6)
row('mha_eval_causal', lambda: Evaluated(SelfAttention(causal=True)), T(3, 9, 32, grad=False), dtypes=HALF, slack=6)
row('mha_eval_padding', lambda: Evaluated(SelfAttention(padding=True)), T(3, 9, 32, grad=False), dtypes=HALF, slack=6)
row('encoder_eval', lambda: Evaluated(encoder()), T(3, 9, 32, grad=False), dtypes=HALF, slack=6)
row('encoder_eval_norm_first', lambda: Evaluated(encoder(norm_first=True)), T(3, 9, 32, grad=False), dtypes=HALF, slack=6)
row('encoder_eval_nested', lambda: Evaluated(encoder()), T(3, 10, 32, grad=False), T(3, fill='index:9'), dtypes=(F32, F16), slack=6)
row('encoder_eval_padding', lambda: Evaluated(encoder(norm_first=True)), T(3, 10, 32, grad=False), T(3, fill='index:9'), dtypes=HALF, slack=6)


def nested_and_back(x):
    """Lists of tensors of different sizes, padded and back."""
    n = torch.nested.nested_tensor([x[0], x[1, :4], x[2, :7]], dtype=x.dtype, device=x.device)
    return n.to_padded_tensor(0.5), n.to_padded_tensor(-1.0, (4, 11, x.shape[2]))


row('nested_padded', lambda: nested_and_back, T(3, 9, 16, grad=False), dtypes=(F32, F64, F16))
row('nested_padded_3d', lambda: lambda x: torch.nested.nested_tensor([x[0], x[1, :4], x[2, :7, :2]], dtype=x.dtype, device=x.device).to_padded_tensor(0.5), T(3, 9, 4, 6, grad=False), dtypes=(F32, F64, F16))
row('nested_padded_1d', lambda: lambda x: torch.nested.nested_tensor([x[0], x[1, :4], x[2, :7]], dtype=x.dtype, device=x.device).to_padded_tensor(0.5), T(3, 9, grad=False), dtypes=(F32,))
row('masked_softmax_rows', lambda: lambda x, m: torch._masked_softmax(x, m[:, :, 0] | m[:, :1, 1], 3, 1).nan_to_num(), T(3, 4, 12, 12, grad=False), T(3, 12, 2, fill='bool'), dtypes=(F32, F16))


def sdpa(backend=None, **how):
    def f(q, k, v, m=None):
        if backend is None:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=m, **how)
        from torch.nn.attention import sdpa_kernel
        if q.device.type == 'cpu':
            return F.scaled_dot_product_attention(q, k, v, attn_mask=m, **how)
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=m, **how)
    return lambda: f


B = torch.nn.attention.SDPBackend
for kind, backend, types in (('math', B.MATH, HALF), ('efficient', B.EFFICIENT_ATTENTION, HALF), ('flash', B.FLASH_ATTENTION, (BF16, F16))):
    for how in ({}, {'is_causal': True}):
        tail = '_causal' if how else ''
        row(f'sdpa_{kind}{tail}', sdpa(backend, **how), T(2, 4, 64, 32), T(2, 4, 64, 32), T(2, 4, 64, 32), dtypes=types, slack=4)
        row(f'sdpa_{kind}{tail}_odd', sdpa(backend, **how), T(2, 3, 50, 40), T(2, 3, 50, 40), T(2, 3, 50, 40), dtypes=types, slack=4)
    row(f'sdpa_{kind}_cross', sdpa(backend), T(2, 4, 33, 64), T(2, 4, 70, 64), T(2, 4, 70, 64), dtypes=types, slack=4)
row('sdpa_default', sdpa(is_causal=True), T(2, 4, 130, 32), T(2, 4, 130, 32), T(2, 4, 130, 32), dtypes=HALF, slack=4)
row('sdpa_bool_mask', sdpa(), T(2, 4, 33, 32), T(2, 4, 40, 32), T(2, 4, 40, 32), T(2, 1, 33, 40, fill='bool'), dtypes=HALF, slack=4)
row('sdpa_float_mask', sdpa(), T(2, 4, 33, 32), T(2, 4, 40, 32), T(2, 4, 40, 32), T(2, 4, 33, 40, grad=False), dtypes=HALF, slack=4)
row('sdpa_gqa', sdpa(enable_gqa=True), T(2, 4, 33, 32), T(2, 2, 33, 32), T(2, 2, 33, 32), dtypes=HALF, slack=4)


def packed(q, k, v):
    """Sequences of several lengths behind one another, each with its own keys."""
    at_q, at_k = [0, 5, 22, 38], [0, 9, 29, 47]
    if q.device.type != 'cpu':
        starts = [torch.tensor(at, dtype=torch.int32, device=q.device) for at in (at_q, at_k)]
        return torch.ops.aten._efficient_attention_forward(q, k, v, None, *starts, 17, 20, 0.0, 0, True)[0]
    parts = [(q[:, a:b], k[:, c:d], v[:, c:d]) for a, b, c, d in zip(at_q, at_q[1:], at_k, at_k[1:])]
    return torch.cat([F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in part)).transpose(1, 2) for part in parts], 1)


row('sdpa_efficient_packed', lambda: packed, T(1, 38, 3, 32), T(1, 47, 3, 32), T(1, 47, 3, 32), dtypes=HALF, slack=4)
row('encoder_layer', lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True), T(3, 9, 32), dtypes=HALF, slack=8)
row('encoder_layer_gelu_pre', lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0, activation='gelu', batch_first=True, norm_first=True), T(3, 9, 32), dtypes=HALF, slack=8)
row('encoder', lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True), 2), T(3, 9, 32), dtypes=(F32, BF16), slack=10)
row('encoder_eval', lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).eval(), T(3, 9, 32), dtypes=(F32,), slack=10, backward=False)
row('decoder_layer', lambda: nn.TransformerDecoderLayer(32, 4, 64, dropout=0, batch_first=True), T(3, 9, 32), T(3, 7, 32), dtypes=(F32, BF16), slack=8)
row('decoder', lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(32, 4, 64, dropout=0, batch_first=True), 2), T(3, 9, 32), T(3, 7, 32), dtypes=(F32,), slack=10)

# convolutions and what goes with them
row('conv2d', lambda: nn.Conv2d(3, 8, 3, padding=1), T(2, 3, 9, 8), slack=4)
row('conv2d_stride', lambda: nn.Conv2d(4, 8, 3, stride=2, padding=1), T(2, 4, 9, 8), dtypes=HALF, slack=4)
row('conv2d_1x1', lambda: nn.Conv2d(4, 8, 1), T(2, 4, 9, 8), dtypes=HALF, slack=4)
row('conv2d_no_bias', lambda: nn.Conv2d(4, 8, 3, bias=False), T(2, 4, 9, 8), dtypes=HALF, slack=4)
row('conv2d_patch', lambda: nn.Conv2d(3, 16, 4, stride=4), T(2, 3, 16, 16), dtypes=HALF, slack=4)
row('conv2d_dilated', lambda: nn.Conv2d(4, 8, 3, dilation=2, padding=2), T(2, 4, 9, 8), dtypes=(F32,), slack=4)
row('conv2d_grouped', lambda: nn.Conv2d(4, 8, 3, groups=2, padding=1), T(2, 4, 9, 8), dtypes=(F32,), slack=4)
row('conv2d_depthwise', lambda: nn.Conv2d(8, 8, 3, groups=8, padding=1), T(2, 8, 9, 8), dtypes=(F32, BF16), slack=4)
row('conv2d_channels_last', lambda: nn.Conv2d(4, 8, 3, padding=1).to(memory_format=torch.channels_last), T(2, 4, 9, 8, lay='channels_last'), dtypes=(F32,), slack=4)
row('conv1d', lambda: nn.Conv1d(4, 8, 3, padding=1), T(2, 4, 19), dtypes=HALF, slack=4)
row('conv1d_stride', lambda: nn.Conv1d(4, 8, 5, stride=2), T(2, 4, 19), dtypes=(F32,), slack=4)
row('conv3d', lambda: nn.Conv3d(2, 4, 3, padding=1), T(2, 2, 5, 6, 7), dtypes=(F32,), slack=4)
row('conv_transpose2d', lambda: nn.ConvTranspose2d(4, 6, 2, stride=2), T(2, 4, 5, 6), dtypes=HALF, slack=4)
row('conv_transpose2d_padded', lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), T(2, 4, 5, 6), dtypes=(F32,), slack=4)
row('conv_transpose1d', lambda: nn.ConvTranspose1d(4, 6, 4, stride=2), T(2, 4, 9), dtypes=(F32,), slack=4)
row('max_pool2d', lambda: nn.MaxPool2d(2), T(2, 4, 9, 8), dtypes=HALF)
row('max_pool2d_overlap', lambda: nn.MaxPool2d(3, stride=2, padding=1), T(2, 4, 9, 8), dtypes=HALF)
row('max_pool2d_channels_last', lambda: nn.MaxPool2d(2), T(2, 4, 8, 8, lay='channels_last'), dtypes=(F32,))
row('max_pool1d', lambda: nn.MaxPool1d(2), T(2, 4, 9), dtypes=(F32,))
row('avg_pool2d', lambda: nn.AvgPool2d(2), T(2, 4, 9, 8), dtypes=HALF)
row('avg_pool2d_padded', lambda: nn.AvgPool2d(3, stride=2, padding=1), T(2, 4, 9, 8), dtypes=(F32,))
row('avg_pool2d_last', lambda: nn.AvgPool2d(3, stride=2, padding=1), T(2, 4, 9, 8, lay='channels_last'), dtypes=HALF)
row('avg_pool2d_divisor', lambda: nn.AvgPool2d(3, stride=2, padding=1, divisor_override=5), T(2, 4, 9, 8), dtypes=(F32,))
row('avg_pool1d', lambda: nn.AvgPool1d(2), T(2, 4, 9), dtypes=(F32,))
row('adaptive_avg_pool2d_1', lambda: nn.AdaptiveAvgPool2d(1), T(2, 4, 9, 8), dtypes=HALF)
row('adaptive_avg_pool2d_3', lambda: nn.AdaptiveAvgPool2d((3, 2)), T(2, 4, 9, 8), dtypes=HALF)
row('adaptive_avg_pool2d_last', lambda: nn.AdaptiveAvgPool2d((3, 2)), T(2, 4, 9, 8, lay='channels_last'), dtypes=HALF)
row('adaptive_avg_pool1d', lambda: nn.AdaptiveAvgPool1d(3), T(2, 4, 9), dtypes=(F32,))
row('adaptive_max_pool2d', lambda: nn.AdaptiveMaxPool2d(2), T(2, 4, 9, 8), dtypes=(F32,))
row('adaptive_max_pool1d', lambda: nn.AdaptiveMaxPool1d(3), T(2, 4, 11), dtypes=(F32,))
row('adaptive_max_pool3d', lambda: nn.AdaptiveMaxPool3d((2, 3, 3)), T(2, 3, 5, 7, 6), dtypes=HALF)
row('adaptive_max_pool3d_even', lambda: nn.AdaptiveMaxPool3d(2), T(2, 3, 4, 6, 8), dtypes=(F32,))
row('lp_pool1d', lambda: nn.LPPool1d(3, 2), T(2, 4, 9, fill='positive'), dtypes=(F32,), slack=4)
row('lp_pool2d', lambda: nn.LPPool2d(2, 2), T(2, 4, 9, 8, fill='positive'), dtypes=(F32,), slack=4)
for d, shape in ((1, (9,)), (2, (8, 6)), (3, (4, 6, 8))):
    pool, back = getattr(F, f'max_pool{d}d'), getattr(F, f'max_unpool{d}d')
    row(f'max_unpool{d}d', lambda pool=pool, back=back: lambda a: back(*pool(a, 2, return_indices=True), 2), T(2, 3, *shape),
        dtypes=(F32, F64))
row('fractional_max_pool2d', lambda: lambda a, u: F.fractional_max_pool2d(a, (2, 3), output_size=(6, 5), _random_samples=u), T(2, 4, 12, 10),
    T(2, 4, 2, fill='unit', grad=False), dtypes=(F32, F64))
row('fractional_max_pool3d', lambda: lambda a, u: F.fractional_max_pool3d(a, 2, output_size=(3, 4, 3), _random_samples=u), T(2, 3, 8, 9, 8),
    T(2, 3, 3, fill='unit', grad=False), dtypes=(F32, F64))
row('instance_norm_1d', lambda: nn.InstanceNorm1d(4, affine=True), T(2, 4, 19), dtypes=(F32,), slack=4)
row('instance_norm_3d', lambda: nn.InstanceNorm3d(4), T(2, 4, 5, 6, 3), dtypes=(F32,), slack=4)
row('local_response_norm', lambda: nn.LocalResponseNorm(3), T(2, 6, 5, 4), dtypes=(F32,), slack=4)
row('interpolate_nearest', lambda: lambda a: F.interpolate(a, scale_factor=2, mode='nearest'), T(2, 4, 5, 6), dtypes=HALF)
row('interpolate_bilinear', lambda: lambda a: F.interpolate(a, scale_factor=2, mode='bilinear', align_corners=False), T(2, 4, 5, 6), dtypes=HALF)
row('interpolate_bilinear_corners', lambda: lambda a: F.interpolate(a, size=(9, 7), mode='bilinear', align_corners=True), T(2, 4, 5, 6), dtypes=(F32,))
row('interpolate_bicubic', lambda: lambda a: F.interpolate(a, scale_factor=2, mode='bicubic', align_corners=False), T(2, 4, 5, 6), dtypes=(F32,), slack=4)
row('interpolate_linear', lambda: lambda a: F.interpolate(a, scale_factor=2, mode='linear'), T(2, 4, 9), dtypes=(F32,))
row('pixel_shuffle', lambda: nn.PixelShuffle(2), T(2, 8, 5, 6), dtypes=(F32,))
row('unfold', lambda: nn.Unfold(3, padding=1), T(2, 4, 9, 8), dtypes=(F32,))
row('fold', lambda: nn.Fold((6, 6), 2, stride=2), T(2, 16, 9), dtypes=(F32,))

# recurrent
row('lstm', lambda: nn.LSTM(12, 20, batch_first=True), T(3, 7, 12), dtypes=HALF, slack=6)
row('lstm_two_layers', lambda: nn.LSTM(12, 20, num_layers=2), T(7, 3, 12), dtypes=(F32, F64), slack=6)
row('lstm_bidirectional', lambda: nn.LSTM(12, 20, bidirectional=True), T(7, 3, 12), dtypes=(F32,), slack=6)
row('gru', lambda: nn.GRU(12, 20, batch_first=True), T(3, 7, 12), dtypes=HALF, slack=6)
row('gru_two_layers', lambda: nn.GRU(12, 20, num_layers=2), T(7, 3, 12), dtypes=(F32,), slack=6)
row('rnn', lambda: nn.RNN(12, 20, batch_first=True), T(3, 7, 12), dtypes=(F32,), slack=6)
row('lstm_cell', lambda: nn.LSTMCell(12, 20), T(3, 12), dtypes=HALF, slack=4)
row('gru_cell', lambda: nn.GRUCell(12, 20), T(3, 12), dtypes=HALF, slack=4)

# what less common models are made of
for mode in ('bilinear', 'nearest', 'bicubic'):
    for padding in ('zeros', 'border', 'reflection'):
        row(f'grid_sample_{mode}_{padding}', lambda mode=mode, padding=padding: lambda a, g: F.grid_sample(a, g, mode, padding, align_corners=padding == 'border'),
            T(2, 3, 7, 5), T(2, 6, 4, 2), dtypes=(F32, F64) if mode == 'bilinear' else (F64,), slack=10)
row('grid_sample_3d', lambda: lambda a, g: F.grid_sample(a, g, align_corners=False), T(2, 3, 4, 7, 5), T(2, 3, 6, 4, 3), dtypes=(F64,), slack=10)
row('affine_grid', lambda: lambda t, a: F.grid_sample(a, F.affine_grid(t, (2, 3, 6, 4), align_corners=False), align_corners=False), T(2, 2, 3), T(2, 3, 7, 5), dtypes=(F64,), slack=10)


def ctc(long_targets=False, **how):
    def f(x, t):
        lengths = torch.tensor([20, 17, 12], device=x.device)
        return F.ctc_loss(x.log_softmax(-1), t + 1, lengths, torch.tensor([6, 5, 0 if how else 3], device=x.device), **how)
    return lambda: f


row('ctc_loss', ctc(), T(20, 3, 9), T(3, 6, fill='index:8'), dtypes=(F32, F64), slack=4)
row('ctc_loss_sum', ctc(reduction='sum', zero_infinity=True), T(20, 3, 9), T(3, 6, fill='index:8'), dtypes=(F32,), slack=4)
row('ctc_loss_wide', ctc(), T(20, 3, 2400), T(3, 6, fill='index:2399'), dtypes=(F32,), slack=8)
row('weight_norm', lambda: nn.utils.parametrizations.weight_norm(nn.Linear(20, 9)), T(7, 20), dtypes=HALF, slack=4)
row('weight_norm_last', lambda: nn.utils.parametrizations.weight_norm(nn.Linear(20, 9), dim=1), T(7, 20), dtypes=(F32,), slack=4)
row('spectral_norm', lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(20, 9)), T(7, 20), dtypes=(F32,), slack=20)
row('embedding_bag_max', lambda: nn.EmbeddingBag(60, 24, mode='max'), T(9, 17, fill='index:60'), dtypes=(F32,))
row('embedding_bag_weights', lambda: lambda w, i, s: F.embedding_bag(i, w, mode='sum', per_sample_weights=s), T(60, 24), T(9, 17, fill='index:60'), T(9, 17), dtypes=(F32, F16))
row('embedding_by_frequency', lambda: nn.Embedding(60, 24, scale_grad_by_freq=True), T(9, 17, fill='index:60'), dtypes=(F32,))
row('embedding_max_norm', lambda: nn.Embedding(60, 24, max_norm=1.0), T(9, 17, fill='index:60'), dtypes=(F32,))
row('conv3d_depthwise', lambda: nn.Conv3d(6, 12, 3, padding=1, groups=6), T(2, 6, 4, 5, 6), dtypes=(F32,), slack=8)
row('interpolate_trilinear', lambda: lambda a: F.interpolate(a, scale_factor=2, mode='trilinear'), T(2, 3, 4, 5, 3), dtypes=(F32,), slack=4)
row('interpolate_nearest_3d', lambda: lambda a: F.interpolate(a, scale_factor=2), T(2, 3, 4, 5, 3), dtypes=(F32,), slack=4)
row('interpolate_bilinear_channels_last', lambda: lambda a: F.interpolate(a, size=(9, 11), mode='bilinear'), T(2, 8, 5, 4, lay='channels_last'), dtypes=HALF, slack=4)
row('interpolate_antialias', lambda: lambda a: (F.interpolate(a, size=(4, 5), mode='bilinear', antialias=True), F.interpolate(a, size=(4, 5), mode='bicubic', antialias=True)),
    T(2, 3, 11, 9), dtypes=(F32,), slack=8)
row('max_pool3d', lambda: nn.MaxPool3d(3, 2, padding=1, dilation=1), T(2, 3, 7, 8, 9), dtypes=(F32, BF16))
row('avg_pool3d', lambda: nn.AvgPool3d(3, 2, padding=1), T(2, 3, 7, 8, 9), dtypes=(F32,))
row('avg_pool3d_wide', lambda: nn.AvgPool3d((2, 3, 8), 1, count_include_pad=False), T(2, 3, 7, 8, 9), dtypes=(F32,))
row('avg_pool3d_divisor', lambda: nn.AvgPool3d(3, 2, divisor_override=7), T(2, 3, 7, 8, 9), dtypes=HALF, slack=2)
row('avg_pool3d_apart', lambda: nn.AvgPool3d(2, padding=1, divisor_override=3), T(2, 3, 7, 8, 9), dtypes=HALF)
row('adaptive_avg_pool3d', lambda: nn.AdaptiveAvgPool3d((3, 2, 4)), T(2, 3, 7, 8, 9), dtypes=(F32,))
row('adaptive_avg_pool3d_even', lambda: nn.AdaptiveAvgPool3d(2), T(2, 3, 4, 6, 8), dtypes=(F32,))


def boxes(corners, sizes):
    return torch.cat([corners, corners + sizes.abs() + 1], -1)


ROIS = [[0, 1.0, 0.5, 7.0, 6.25], [1, -2.0, 2.0, 5.5, 8.0], [1, 3.0, 3.0, 3.25, 3.5], [0, 6.0, 5.0, 14.0, 12.0]]
row('nms', lambda: lambda c, d, s: torchvision.ops.nms(boxes(c, d), s, 0.3), T(90, 2, scale=4.0), T(90, 2, scale=6.0), T(90), dtypes=(F32, F64), backward=False)
row('nms_few', lambda: lambda c, d, s: torchvision.ops.nms(boxes(c, d), s, 0.7), T(3, 2), T(3, 2, scale=6.0), T(3), dtypes=(F32,), backward=False)
row('batched_nms', lambda: lambda c, d, s, i: torchvision.ops.batched_nms(boxes(c, d), s, i, 0.4), T(130, 2, scale=4.0), T(130, 2, scale=6.0), T(130), T(130, fill='index:3'),
    dtypes=(F32,), backward=False)
for aligned in (False, True):
    for ratio in (-1, 2):
        row(f'roi_align_{"aligned_" if aligned else ""}{"whole" if ratio < 0 else ratio}',
            lambda aligned=aligned, ratio=ratio: lambda a: torchvision.ops.roi_align(a, torch.tensor(ROIS, device=a.device, dtype=a.dtype), (3, 2), 0.75, ratio, aligned),
            T(2, 3, 9, 11), dtypes=(F32, F64), slack=8)
