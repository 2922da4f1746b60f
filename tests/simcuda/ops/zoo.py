"""Small models of transformers and torchvision, each once on the CPU and once on the device from the same weights: loss and gradients must agree.

    python zoo.py [MODEL...]

What the libraries do, and the operator tables do not think of: layouts, sizes from which on a kernel of its own is taken, types. Models with batch
normalisation run in double precision, since a batch of two amplifies the last bits of a float. Prints one line for each model that differs or lacks a
kernel, and 'N passed, M failed'. No download: all weights are random."""
import copy
import os
import sys
import warnings

warnings.filterwarnings('ignore')
os.environ['HF_HUB_OFFLINE'] = '1'
import torch
import torchvision.models as vision
import transformers
from torch import nn

torch.backends.cudnn.enabled = False
torch.set_num_threads(1)
transformers.logging.set_verbosity_error()

TOLERANCE = {torch.float32: 2e-3, torch.float64: 1e-7}  # of the largest gradient
# What configurations call their sizes; each takes those that it has.
SIZES = dict.fromkeys(('hidden_size', 'd_model', 'n_embd', 'embedding_size', 'dim', 'word_embed_proj_dim'), 32)
SIZES |= dict.fromkeys(('num_hidden_layers', 'n_layer', 'num_layers', 'encoder_layers', 'decoder_layers', 'num_decoder_layers', 'n_layers'), 2)
SIZES |= dict.fromkeys(('num_attention_heads', 'n_head', 'num_heads', 'encoder_attention_heads', 'decoder_attention_heads', 'num_key_value_heads',
                        'n_heads', 'num_experts_per_tok'), 2)
SIZES |= dict.fromkeys(('intermediate_size', 'd_ff', 'encoder_ffn_dim', 'decoder_ffn_dim', 'ffn_dim', 'hidden_dim'), 48)
SIZES |= dict.fromkeys(('max_position_embeddings', 'n_positions'), 64)
SIZES |= dict.fromkeys(('num_local_experts', 'num_experts', 'state_size', 'time_step_rank'), 4)
SIZES |= {'vocab_size': 61, 'head_dim': 16, 'd_kv': 16, 'moe_intermediate_size': 24, 'sliding_window': 8, 'image_size': 32, 'patch_size': 8,
          'pad_token_id': 0, 'bos_token_id': 1, 'eos_token_id': 2}
LANGUAGE = {
    'CausalLM': 'GPT2 XLNet OPT GPTNeoX GPTNeo Llama Mistral Mixtral Phi Gemma Gemma2 Qwen2 Qwen3 Qwen2Moe Bloom Falcon StableLm Mamba Cohere Olmo Starcoder2 GptOss '
                'XGLM BioGpt Mpt Rwkv',
    'MaskedLM': 'Bert Roberta DistilBert Albert Electra Deberta DebertaV2 MPNet Funnel Longformer BigBird Nystromformer ConvBert SqueezeBert ModernBert',
    'ConditionalGeneration': 'T5 Bart Pegasus MBart LED ProphetNet',
}
LM_HEAD = ('GPT2', 'XLNet')  # older names of classes
IMAGES = 'ViT DeiT Beit Dinov2 ResNet RegNet MobileViT PoolFormer Pvt Cvt Segformer FocalNet SwiftFormer'
VISION = ('alexnet vgg11_bn squeezenet1_1 densenet121 mobilenet_v2 mobilenet_v3_small efficientnet_b0 shufflenet_v2_x0_5 mnasnet0_5 regnet_y_400mf '
          'convnext_tiny swin_t swin_v2_t resnext50_32x4d')
SEGMENTATION = 'deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large'
VIDEO = 'r3d_18 mc3_18 swin3d_t'


def configured(name, task):
    config = getattr(transformers, name + 'Config')()
    chances = {k: 0.0 for k, v in vars(config).items() if 'drop' in k and isinstance(v, float)}
    for k, v in (SIZES | chances).items():
        try:
            if isinstance(getattr(config, k, None), (int, float)):
                setattr(config, k, v)
        except (AttributeError, NotImplementedError):
            pass  # it follows from others here
    if task == 'ConditionalGeneration':
        config.decoder_start_token_id = 1
    if task == 'ImageClassification':
        config.num_labels = 5
    return getattr(transformers, f'{name}LMHeadModel' if name in LM_HEAD else f'{name}For{task}')(config)


def numbers(shape, below=0):
    g = torch.Generator().manual_seed(3)
    return torch.randint(0, below, shape, generator=g) if below else torch.randn(shape, generator=g)


def language(m, device):
    words = (numbers((2, 32), 57) + 3).to(device)
    return m(input_ids=words, labels=words).loss


def labelled(m, device):
    return m(pixel_values=numbers((5, 3, 32, 32)).to(device, m.dtype), labels=torch.arange(5, device=device)).loss


def classes(*shape):
    def loss(m, device):
        p = next(m.parameters())
        out = m(numbers(shape).to(device, p.dtype))
        if isinstance(out, dict):
            return nn.functional.cross_entropy(out['out'], numbers((shape[0], *shape[2:]), 5).to(device))
        return nn.functional.cross_entropy(out, torch.arange(shape[0], device=device))
    return loss


def zoo():
    """{name: (what makes it, loss(model, device))}"""
    found = {}
    for task, names in LANGUAGE.items():
        for n in names.split():
            found[n] = (lambda n=n, task=task: configured(n, task)), language
    for n in IMAGES.split():
        found[n] = (lambda n=n: configured(n, 'ImageClassification')), labelled
    for n in VISION.split():
        found[n] = (lambda n=n: getattr(vision, n)(num_classes=5)), classes(2, 3, 64, 64)
    for n in SEGMENTATION.split():
        found[n] = (lambda n=n: getattr(vision.segmentation, n)(weights=None, weights_backbone=None, num_classes=5)), classes(2, 3, 64, 64)
    for n in VIDEO.split():
        found[n] = (lambda n=n: getattr(vision.video, n)(num_classes=5)), classes(1, 3, 16, 32, 32)
    return found


def without_chance(m):
    for part in m.modules():
        if 'Drop' in type(part).__name__ or 'Stochastic' in type(part).__name__:
            for name in ('p', 'drop_prob'):
                if isinstance(getattr(part, name, None), float):
                    setattr(part, name, 0.0)
    return m


def gradients(m, loss, device):
    value = loss(m, device)
    value.backward()
    return value.item(), [None if p.grad is None else p.grad.cpu() for p in m.parameters()]


def differs(make, loss):
    torch.manual_seed(5)
    m = without_chance(make().train())
    if any(isinstance(x, nn.modules.batchnorm._BatchNorm) for x in m.modules()):
        m = m.double()
    there = copy.deepcopy(m).cuda()
    want, want_grads = gradients(m, loss, 'cpu')
    got, got_grads = gradients(there, loss, 'cuda')
    torch.cuda.synchronize()
    tolerance = TOLERANCE[next(m.parameters()).dtype]
    scale = max(g.abs().max().item() for g in want_grads if g is not None)
    if not abs(got - want) <= tolerance * abs(want):
        return f'loss {got}, the CPU has {want}'
    for (name, _), g, w in zip(m.named_parameters(), got_grads, want_grads):
        if (g is None) != (w is None) or (w is not None and not (g - w).abs().max().item() <= tolerance * scale):
            return f'the gradient of {name}'
    return ''


def main():
    found = zoo()
    names = sys.argv[1:] or list(found)
    unknown = [n for n in names if n not in found]
    if unknown:
        sys.exit(f'no model {unknown[0]!r}: there are {", ".join(found)}')
    failed = 0
    for n in names:
        try:
            what = differs(*found[n])
        except Exception as e:
            what = f'{type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ""}'
        failed += bool(what)
        if what:
            print(f'FAIL {n}: {what}', flush=True)
        if 'illegal' in what or 'device-side' in what:
            break  # nothing works in this process any more
    print(f'zoo: {len(names) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    status = main()
    sys.stdout.flush()
    os._exit(status)  # the interpreter's own end may abort under the autograd thread
