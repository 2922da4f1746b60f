#!/usr/bin/env python3
"""Labels of recorded iterations against PyTorch's own names, for all nine models: of the bytes of parameters, gradients and states, 99 % are labelled
so, activations are no gradients, and the phases come once each, in their order.

    python3 tests/simcuda/models/test_labels.py [MODEL...]     needs `make pytorch`

The trace has no addresses, so tensors are matched by size within a kind; parameters and states are those that outlive the iteration, gradients
those that it makes."""
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from record import MODELS
from runs import DEVICE, build_dir

PART = 0.99


def judge(trace, sizes):
    """What is wrong with the labels, a line each; and the share of bytes that is right, by kind."""
    wrong, shares = [], {}
    for kind in ('param', 'grad', 'state'):
        lives = [b for b in trace['buffers'] if b['kind'] == kind and (b['born'] >= 0 or kind != 'grad')]
        said, real = (collections.Counter(x) for x in ([b['bytes'] for b in lives], sizes[kind]))
        both = sum(n * min(said[n], real[n]) for n in real)
        most = max(sum(n * k for n, k in said.items()), sum(n * k for n, k in real.items()))
        shares[kind] = both / most if most else 1.0
        if shares[kind] < PART and most > 1 << 16:
            wrong.append('%s: %.1f %% of %d bytes; said and not so: %s; so and not said: %s' % (
                kind, 100 * shares[kind], most, sorted((said - real).items(), reverse=True)[:4], sorted((real - said).items(), reverse=True)[:4]))
    phases = [o['phase'] for o in trace['ops']]
    spans = [p for i, p in enumerate(phases) if not i or phases[i - 1] != p]
    if spans != ['fwd', 'bwd', 'opt']:
        wrong.append('phases: %s' % spans)
    return wrong, shares


def one(name):
    b = build_dir()
    out = os.path.join(b, 'pytorch-test', f'labels-{name}.json')
    os.makedirs(os.path.dirname(out), exist_ok=True)
    env = dict(os.environ, REMAT_SIMGPU='1', OMP_NUM_THREADS='1', REMAT_CACHE=os.path.join(b, 'pytorch-test', 'trace-cache'), **DEVICE)
    p = subprocess.run([os.path.join(b, 'remat'), 'trace', '-o', out, '--', os.path.join(b, 'pytorch', 'bin', 'python'), os.path.join(HERE, 'train.py'),
                        *MODELS[name], '--iterations', '7', '--sizes'], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=1200)
    said = [line for line in p.stdout.splitlines() if line.startswith('sizes ')]
    if p.returncode or not said or not os.path.exists(out):
        print(f'{name}: exit {p.returncode}\n{p.stdout[-500:]}\n{p.stderr[-1500:]}')
        return 1
    with open(out) as f:
        wrong, shares = judge(json.load(f), json.loads(said[0][6:]))
    print(f'{name:<10}', ', '.join(f'{k} {100 * s:.2f} %' for k, s in shares.items()), *wrong, sep='\n    ' if wrong else ' ', flush=True)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(max(one(m) for m in sys.argv[1:] or MODELS))
