"""Trains one of the models on data that it makes, and says exactly what came out.

    python train.py MODEL [--optimizer O] [--dtype f32|bf16|f16] [--iterations N] [--batch N] [--dropout P] [--checkpoint] ...

Prints `loss I HEX` for each iteration (the float's bits, as Python's float.hex has them), and at the end `checksum SHA256` of all
parameters and buffers. Two runs are the same when those lines are. Written for the simulated GPU and for real ones; with
--device cpu it is the reference."""
import argparse
import ctypes
import hashlib
import json
import os
import select
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nets


def words(batch, length, gen, vocabulary=256):
    x = torch.randint(1, vocabulary, (batch, length + 1), generator=gen)
    return x[:, :-1].contiguous(), x[:, 1:].contiguous()


def masked_words(batch, length, gen):
    x, _ = words(batch, length, gen)
    x[:, length - 7:] = 0  # padding at the end of every sentence
    hidden = torch.rand(batch, length, generator=gen) < 0.15
    targets = torch.where(hidden & (x != 0), x, torch.tensor(-100))
    return torch.where(hidden & (x != 0), torch.tensor(1), x), targets


def images(batch, size, gen):
    return torch.randn(batch, 3, size, size, generator=gen), torch.randint(0, 10, (batch,), generator=gen)


def noisy_images(batch, size, gen):
    x, noise = torch.randn(batch, 3, size, size, generator=gen), torch.randn(batch, 3, size, size, generator=gen)
    return x + noise, noise


# name: (net, batch, data)
MODELS = {
    'gpt': (lambda a: nets.GPT(dropout=a.dropout, tied=a.tied, **size(a)), 32, lambda b, g: words(b, 64, g)),
    'gpt-fused': (lambda a: nets.GPT(fused=True, dropout=a.dropout, tied=a.tied, **size(a)), 32, lambda b, g: words(b, 64, g)),
    'bert': (lambda a: nets.BERT(dropout=a.dropout, **size(a)), 32, lambda b, g: masked_words(b, 64, g)),
    'vit': (lambda a: nets.ViT(dropout=a.dropout, **size(a)), 32, lambda b, g: images(b, 32, g)),
    'llama': (lambda a: nets.Llama(**size(a)), 32, lambda b, g: words(b, 64, g)),
    'resnet18': (lambda a: nets.ResNet18(**size(a)), 12, lambda b, g: images(b, 48, g)),
    'unet': (lambda a: nets.UNet(**size(a)), 16, lambda b, g: noisy_images(b, 32, g)),
    'lstm': (lambda a: nets.LSTM(dropout=a.dropout, **size(a)), 256, lambda b, g: words(b, 12, g)),
    'mlp': (lambda a: nets.MLP(**size(a)), 2048, lambda b, g: (torch.randn(b, 256, generator=g), torch.randint(0, 10, (b,), generator=g))),
}

OPTIMIZERS = {
    'sgd': lambda p: torch.optim.SGD(p, lr=0.05),
    'momentum': lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4),
    'nesterov': lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    'adam': lambda p: torch.optim.Adam(p, lr=1e-3),
    'adamw': lambda p: torch.optim.AdamW(p, lr=1e-3),
    'adamw-foreach': lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=True),
    'adamw-for': lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=False),
    'adamw-fused': lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
    'rmsprop': lambda p: torch.optim.RMSprop(p, lr=1e-3),
    'adagrad': lambda p: torch.optim.Adagrad(p, lr=1e-2),
}


def size(a):
    return {k: v for k, v in (('width', a.width), ('depth', a.depth)) if v}


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('model', choices=sorted(MODELS))
    p.add_argument('--optimizer', choices=sorted(OPTIMIZERS), default='adamw')
    p.add_argument('--dtype', choices=('f32', 'bf16', 'f16', 'f64'), default='f32', help='bf16 and f16: autocast (f16 with a GradScaler); f64: all of it in double')
    p.add_argument('--iterations', type=int, default=24)
    p.add_argument('--batch', type=int)
    p.add_argument('--width', type=int)
    p.add_argument('--depth', type=int)
    p.add_argument('--dropout', type=float, default=0.0)
    p.add_argument('--tied', action='store_true', help='GPT: one matrix for words in and out')
    p.add_argument('--clip', type=float, help='clip_grad_norm_ to this')
    p.add_argument('--ema', action='store_true', help='keep an exponential moving average of the parameters')
    p.add_argument('--accumulate', type=int, default=1, help='backward passes for one step')
    p.add_argument('--checkpoint', action='store_true', help='torch.utils.checkpoint around each block')
    p.add_argument('--compile', nargs='?', const='default', metavar='MODE', help='torch.compile the net')
    p.add_argument('--compile-step', action='store_true', help='torch.compile the optimizer\'s step')
    p.add_argument('--cut', type=int, metavar='N', help='from half of the iterations on: sentences of N words, or batches of N of anything else')
    p.add_argument('--device', default='cuda')
    p.add_argument('--sizes', action='store_true', help='print what parameters, gradients and states there are, in bytes')
    p.add_argument('--first', metavar='FILE', help='put the first iteration\'s loss and gradients there (runs.first)')
    p.add_argument('--times', action='store_true', help='print the seconds of each iteration, and device time between their beginnings (events)')
    p.add_argument('--in-turn', nargs=2, metavar=('MINE', 'OTHER'), help='two FIFOs: an iteration begins with a byte from MINE, ends with the device idle and a byte into OTHER')
    return p.parse_args()


class Turns:
    """Iterations of two runs, one at a time: whatever else the machine does is beside both of them alike."""
    PATIENCE = 120  # s

    def __init__(self, fifos):
        self.mine, self.other = [os.open(x, os.O_RDWR) for x in fifos] if fifos else (None, None)

    def begin(self):
        if self.mine is not None:
            if not select.select([self.mine], [], [], self.PATIENCE)[0]:
                sys.exit(f'the other run has had its turn for {self.PATIENCE} s')
            os.read(self.mine, 1)

    def end(self):
        if self.other is not None:
            torch.cuda.synchronize()

    def give(self):
        if self.other is not None:
            os.write(self.other, b'.')


def shorter(a, i, x, y):
    if not a.cut or i < a.iterations // 2:
        return x, y
    return (x[:, :a.cut].contiguous(), y[:, :a.cut].contiguous()) if x.dim() == 2 and not x.is_floating_point() else (x[:a.cut], y[:a.cut])


def checksum(*modules):
    h = hashlib.sha256()
    for m in modules:
        for name, t in sorted(m.state_dict().items()):
            h.update(name.encode())
            h.update(t.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() if t.dim() else
                     t.detach().cpu().reshape(1).view(torch.uint8).numpy().tobytes())
    return h.hexdigest()


def held_bytes(net, optimizer):
    """What one launch of an optimizer over all parameters touches at once: no limit below this can be met."""
    states = [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor) and t.dim()]
    grads = [p.grad for p in net.parameters() if p.grad is not None]
    return sum(t.numel() * t.element_size() for t in [*net.parameters(), *grads, *states])


def sizes(net, optimizer):
    """Bytes of each tensor, by what it is: as PyTorch names them."""
    size = lambda tensors: sorted(t.numel() * t.element_size() for t in tensors if t.is_cuda)
    states = [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
    return {'param': size(net.parameters()), 'grad': size(p.grad for p in net.parameters() if p.grad is not None), 'state': size([*states, *net.buffers()])}


def put_first(path, loss, net):
    """A line of JSON (the loss; name and number of elements of each gradient), then the gradients as floats, one after the other."""
    grads = [(name, p.grad.detach().float().cpu().contiguous()) for name, p in net.named_parameters() if p.grad is not None]
    with open(path, 'wb') as out:
        out.write(json.dumps({'loss': loss.hex(), 'gradients': [[name, g.numel()] for name, g in grads]}).encode() + b'\n')
        for _, g in grads:
            out.write(g.reshape(-1).view(torch.uint8).numpy().tobytes())


def main():
    a = arguments()
    torch.manual_seed(1234)
    torch.set_num_threads(1)
    torch.backends.cudnn.enabled = False  # cuDNN's own runtime knows real devices only
    make, batch, data = MODELS[a.model]
    batch = a.batch or batch
    net = make(a).to(a.device)
    net = net.double() if a.dtype == 'f64' else net
    net.checkpointed = a.checkpoint
    optimizer = OPTIMIZERS[a.optimizer](net.parameters())
    scaler = torch.amp.GradScaler(a.device, enabled=a.dtype == 'f16')
    half = {'bf16': torch.bfloat16, 'f16': torch.float16}.get(a.dtype)
    average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)) if a.ema else None
    gen = torch.Generator().manual_seed(5)
    forward = torch.compile(net, mode=a.compile) if a.compile else net
    step = torch.compile(optimizer.step) if a.compile_step else lambda: scaler.step(optimizer)
    marks = [] if a.times and a.device == 'cuda' else None
    turns = Turns(a.in_turn)
    for i in range(a.iterations):
        turns.begin()
        began = time.perf_counter()
        if marks is not None:
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
        optimizer.zero_grad()
        total = 0.0
        for _ in range(a.accumulate):
            x, y = (t.to(a.device) for t in shorter(a, i, *data(batch, gen)))
            x, y = (t.double() if a.dtype == 'f64' and t.is_floating_point() else t for t in (x, y))
            with torch.autocast(a.device, dtype=half, enabled=half is not None):
                loss = forward(x, y) / a.accumulate
            scaler.scale(loss).backward()
            total += loss.item()
        if a.first and i == 0:
            put_first(a.first, total, net)
        if a.clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(net.parameters(), a.clip)
        step()
        scaler.update()
        if average:
            average.update_parameters(net)
        turns.end()
        print('loss', i, total.hex(), f'{total:.6f}', *([f'{time.perf_counter() - began:.6f} s'] if a.times else []), flush=True)
        turns.give()
    if a.sizes:
        print('sizes', json.dumps(sizes(net, optimizer)))
    if marks:
        torch.cuda.synchronize()
        print('device_ns', *[round(1e6 * x.elapsed_time(y)) for x, y in zip(marks, marks[1:])])
    print('held', held_bytes(net, optimizer))
    print('checksum', checksum(net, *([average] if average else [])), flush=True)


main()
sys.stdout.flush()
# C's exit: what is written at the end of a process is written, but the interpreter does not end under the autograd thread,
# which may abort then
ctypes.PyDLL(None).exit(0)
