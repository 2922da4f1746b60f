#!/usr/bin/env python3
"""Runs the scripts of this folder on the simulated GPU: natively, and under remat with a limit, by swap and by plan.

    python3 tests/simcuda/scripts/run.py [SCRIPT...]

Needs `make pytorch`; without it exits 77. Each script checks what it computed and ends with 'ok: NAME'."""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.normpath(os.path.join(here, '..', '..', '..'))
build = os.environ.get('B', os.path.join(root, 'build'))
python = os.path.join(build, 'pytorch', 'bin', 'python')
SETTINGS = {'native': ['--policy', 'off', '--allocator', 'async'], 'swap': ['--policy', 'swap', '--limit', '256M'],
            'plan': ['--policy', 'auto', '--limit', '256M']}
# memory as PyTorch takes it of its own accord, and each tensor by itself
ALLOCATORS = {'own': ['--policy', 'off'], 'each': ['--limit', '256M', '--allocator', 'each']}
MORE = {'retry': dict(ALLOCATORS, plan=['--limit', '96M'], swap=['--policy', 'swap', '--limit', '96M'], each=['--limit', '96M', '--allocator', 'each']),
        'profiler': ALLOCATORS, 'step_graph': {'native': ALLOCATORS['own']}}  # a capture that is broken off ends a native run on the other one
ENV = {'two_devices': {'SIMGPU_DEVICES': '2'}, 'retry': {'SIMGPU_MEM': '96M'},
       'missing': {'SIMGPU_CATALOGUE': os.path.join(build, 'simgpu', 'testcatalogue.so')}}
STDERR = {'missing': 'to add one: tests/simcuda/README.md): <_ZN2at6native29vectorized_elementwise_kernel'}


def settings(name):
    return dict(SETTINGS, **MORE.get(name, {}))


def run(name, setting):
    """The losses that it printed; None: it is not as it should be."""
    env = dict(os.environ, REMAT_SIMGPU='1', OMP_NUM_THREADS='1', **ENV.get(name, {}))
    command = [os.path.join(build, 'remat'), 'run', *settings(name)[setting], '--', python, os.path.join(here, name + '.py')]
    p = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    good = p.returncode == 0 and f'ok: {name}' in p.stdout and p.stderr.count(STDERR.get(name, '')) == (1 if name in STDERR else len(p.stderr) + 1)
    if not good:
        print(f'FAILED {name} ({setting}): exit {p.returncode}\n{p.stdout[-1000:]}\n{p.stderr[-3000:]}')
    return [line for line in p.stdout.splitlines() if line.startswith('loss ')] if good else None


def main():
    if not os.path.exists(python):
        print(f'{python} is not there: make pytorch')
        return 77
    names = sys.argv[1:] or sorted(f[:-3] for f in os.listdir(here) if f.endswith('.py') and f != 'run.py')
    bad = count = 0
    for n in names:
        found = {s: run(n, s) for s in settings(n)}
        count += len(found)
        for s, losses in found.items():
            if losses is not None and losses != found['native']:
                print(f'FAILED {n} ({s}): other losses than natively')
            bad += losses is None or losses != found['native']
    print(f'{count - bad} of {count} runs as they should be')
    return 1 if bad else 0


sys.exit(main())
