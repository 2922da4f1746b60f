#!/usr/bin/env python3
"""The traces of PyTorch's models (tests/corpus/pytorch, recorded by tests/simcuda/models/record.py): read, and planned within a limit; what
cannot be replayed is at most 5 % of each one's device time; the folder stays small."""
import json
import lzma
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
B = os.environ.get('B', os.path.join(here, '..', '..', 'build'))
corpus = os.path.join(here, '..', 'corpus', 'pytorch')
sys.path.insert(0, os.path.join(here, '..', 'simcuda', 'models'))
from record import opaque_share

# per cent of the peak; the solver is the one that takes no time and no luck, and does not go as low as others on every net
LIMIT = {'resnet18': 90}
failed = passed = 0


def check(ok, what):
    global failed, passed
    passed += bool(ok)
    if not ok:
        failed += 1
        print('FAILED', what)


def plan(path, limit):
    p = subprocess.run([os.path.join(B, 'remat'), 'plan', path, '--limit', limit, '--solver', 'dtr', '--json'],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    return p.returncode, json.loads(p.stdout) if p.returncode == 0 else {}, p.stderr


files = sorted(f for f in os.listdir(corpus) if f.endswith('.json.xz'))
sizes = {f: os.path.getsize(os.path.join(corpus, f)) for f in files}
check(len(files) >= 8, f'{len(files)} traces')
check(all(s < 300 << 10 for s in sizes.values()) and sum(sizes.values()) < 3 << 20, f'sizes: {sizes}')
with tempfile.TemporaryDirectory() as tmp:
    for f in files:
        path = os.path.join(tmp, f[:-3])
        with lzma.open(os.path.join(corpus, f)) as packed, open(path, 'wb') as out:
            out.write(packed.read())
        with open(path) as t:
            trace = json.load(t)
        share, names = opaque_share(trace)
        check(share <= 0.05, f'{f}: {100 * share:.1f} % of the device time is opaque: {names.most_common(3)}')
        check(any(o.get('phase') == 'bwd' for o in trace['ops']) or len(trace['ops']) > 30, f'{f}: {len(trace["ops"])} ops are no training step')
        code, whole, err = plan(path, '100%')
        check(code == 0, f'{f} at 100 %: {err}')
        limit = LIMIT.get(f[:-len('.json.xz')], 80)
        code, got, err = plan(path, f'{limit}%')
        check(code == 0, f'{f} at {limit} %: {err}')
        peak = trace['meta'].get('peak_bytes')
        if code == 0 and peak:
            check(got['peak_bytes'] <= peak * limit / 100 + 1, f'{f}: the plan needs {got["peak_bytes"]} of {peak}')
print(f'{passed} passed, {failed} failed')
sys.exit(1 if failed else 0)
