#!/usr/bin/env python3
"""Records one iteration of each model with `remat trace`, and says how much of its device time cannot be replayed, by name.

    python3 tests/simcuda/models/record.py [MODEL...]     into tests/corpus/pytorch/, compressed; needs `make pytorch`

tests/system/test_pytorch_traces.py plans what lies there, without PyTorch. Record again when the format changes, or what is learnt."""
import collections
import json
import lzma
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from runs import DEVICE, build_dir

TOP = os.path.normpath(os.path.join(HERE, '..', '..', '..'))
CORPUS = os.path.join(HERE, '..', '..', 'corpus', 'pytorch')
MODELS = {
    'gpt': ['gpt', '--optimizer', 'adamw', '--dropout', '0.1', '--tied'],
    'gpt-fused': ['gpt-fused', '--optimizer', 'adamw-fused'],
    'bert': ['bert', '--optimizer', 'adam', '--dtype', 'bf16'],
    'vit': ['vit', '--optimizer', 'adamw-fused'],
    'llama': ['llama', '--optimizer', 'adamw', '--dtype', 'bf16'],
    'resnet18': ['resnet18', '--optimizer', 'momentum', '--batch', '8'],
    'unet': ['unet', '--optimizer', 'adam', '--batch', '6'],
    'lstm': ['lstm', '--optimizer', 'sgd', '--batch', '64'],
    'mlp': ['mlp', '--optimizer', 'rmsprop'],
}
# nothing learns these away: what crosses the bus, and what only changes parameters and states in place
INHERENT = ('copies from host memory', 'copies to host memory', 'changes only what outlives the iteration')


def opaque_share(trace):
    """(share of the device time, {name: share}) of ops that cannot be replayed although nothing in them forbids it."""
    total, names = sum(o.get('ns', 0) for o in trace['ops']) or 1, collections.Counter()
    for o in trace['ops']:
        if o.get('opaque') and o.get('why_opaque') not in INHERENT:
            names[o['name']] += o.get('ns', 0) / total
    return sum(names.values()), names


def record(name):
    b = build_dir()
    out = os.path.join(b, 'pytorch-test', f'trace-{name}.json')
    os.makedirs(os.path.dirname(out), exist_ok=True)
    env = dict(os.environ, REMAT_SIMGPU='1', OMP_NUM_THREADS='1', REMAT_CACHE=os.path.join(b, 'pytorch-test', 'trace-cache'), **DEVICE)
    p = subprocess.run([os.path.join(b, 'remat'), 'trace', '-o', out, '--', os.path.join(b, 'pytorch', 'bin', 'python'),
                        os.path.join(HERE, 'train.py'), *MODELS[name], '--iterations', '7'], env=env, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=1200)
    if p.returncode or not os.path.exists(out):
        print(f'{name}: exit {p.returncode}\n{p.stdout[-1500:]}')
        return 1
    with open(out, 'rb') as f:
        raw = f.read().replace((b + '/pytorch/lib/').encode(), b'').replace((TOP + '/').encode(), b'') # where it was recorded is nobody's business
    trace = json.loads(raw)
    share, names = opaque_share(trace)
    packed = lzma.compress(raw, preset=9)
    os.makedirs(CORPUS, exist_ok=True)
    with open(os.path.join(CORPUS, name + '.json.xz'), 'wb') as f:
        f.write(packed)
    print(f'{name:<10} {len(trace["ops"]):5} ops {len(packed) / 1024:7.1f} KiB  opaque {100 * share:5.1f} %  '
          + '; '.join(f'{100 * s:.1f} % {n[:60]}' for n, s in names.most_common(3)), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(max(record(m) for m in sys.argv[1:] or MODELS))
