#!/usr/bin/env python3
"""What `remat plan` foretells for a limit against what `remat run` takes under it, for a model of each kind: within five points of its native time.

    python3 tests/simcuda/models/test_foretold.py [MODEL...]     needs `make pytorch`

The trace is recorded without a limit, as a user would who asks what one costs, and the run is `remat run --limit` with nothing but that: it swaps until its
planner has answered, and follows the best plan of several. What the run itself expects of its plan is held to the same. Times are the simulated device's,
between the beginnings of iterations: what the run says that one takes (--stats), which one must not have exceeded by the device's own clock. Left out
of that are iterations in which a launch came with bytes of padding that no launch there had before, and ran as a trial: ever fewer, and told apart here, as
the median of the last ones. Where a stale word on a stack made two iterations one period, each of which has trials for long, sixty iterations say nothing of
those without one: where a run says that its period is two iterations, or has had none without trials, the same is asked of a run of two hundred. Plans of earlier runs are not looked for."""
import json
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from runs import BUSY, DEVICE, MIB, build_dir, run
from test_models import arguments, limit_of

NINE = ('gpt', 'gpt-fused', 'bert', 'vit', 'llama', 'resnet18', 'unet', 'lstm', 'mlp')
POINTS = 5.0
PERCENT = 60
NATIVE, HELD, LONG, LAST = 6, 60, 200, 24  # iterations: in the first ones under a plan rebuilt tensors are compared, which takes time, ever less of it


def train(name, iterations):
    return arguments(name) + ['--iterations', str(iterations)]


def foretold(name, limit):
    """Points over the native time that `remat plan` foretells, with the trace recorded anew."""
    b = build_dir()
    trace = os.path.join(b, 'pytorch-test', f'foretold-{name}.json')
    env = dict(os.environ, REMAT_SIMGPU='1', OMP_NUM_THREADS='1', **DEVICE, **BUSY)
    script = [os.path.join(b, 'pytorch', 'bin', 'python'), os.path.join(HERE, 'train.py'), *train(name, 7)]
    for command in (['trace', '-o', trace, '--', *script], ['plan', trace, '--limit', str(limit), '--time-limit', '3', '--json']):
        p = subprocess.run([os.path.join(b, 'remat'), *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=1200)
        if p.returncode:
            raise SystemExit(f'{name}: remat {command[0]}: exit {p.returncode}\n{p.stdout[-500:]}\n{p.stderr[-1500:]}')
    said = json.loads(p.stdout)
    return 100 * said['overhead'], said


def one(name):
    native = run(f'foretold {name} native', train(name, NATIVE))
    limit = limit_of(native, PERCENT)
    points, said = foretold(name, limit)
    bad, says_nothing = against(name, native, limit, points, said, HELD)
    if bad and says_nothing:
        bad, _ = against(name, native, limit, points, said, LONG)
    return 1 if bad else 0


def against(name, native, limit, points, said, iterations):
    """Whether a run of so many iterations took something else, and whether it can say so little of what one takes: its period is two iterations, or none
    was without a trial."""
    held = run(f'foretold {name} {PERCENT} %', train(name, iterations), ('--no-cache', '--limit', str(limit)), BUSY)
    if not native.steady_ns or held.code or held.losses[:NATIVE] != native.losses:
        raise SystemExit(f'{name}: not as native; see {held.log}')
    between = [int(x) for x in re.search(r'^device_ns (.*)', open(held.log).read(), re.M).group(1).split()]
    period = max(1, round(held.stats['native_ns_per_iteration'] / native.steady_ns))  # iterations that are one to the run
    whole = held.stats['device_ns_per_iteration'] / period
    says_nothing = period > 1 or not whole
    measured, median, least = (100 * (ns / native.steady_ns - 1) for ns in (whole, statistics.median(between[-LAST:]), min(between)))
    own = re.findall(r'plan in force.*?: ([\d.]+) % more device time', open(held.log).read())
    bad = abs(points - measured) > POINTS or not own or abs(float(own[-1]) - measured) > POINTS or least > measured + 0.5
    print(f'{name:<10} {iterations:>3} iterations, {native.peak_bytes / MIB:5.1f} MiB in {limit / MIB:5.1f}: plan foretells {points:+6.1f} %, the run {"+".join([""] + own[-1:])} %, '
          f'measured {measured:+6.1f} % (with trials {median:+.1f} %){("  not yet" if says_nothing and iterations == HELD else "  FAILED") if bad else ""}  ({said["replays"]} replays, {said["offloads"]} copies; native {native.steady_ns / 1e6:.3f} ms, '
          f'trace {said["baseline_ns"] / 1e6:.3f}; {held.stats.get("iterations_enforced")} by plan, copied {held.stats.get("bytes_in")})', flush=True)
    if bad:
        print('\n'.join(line for line in open(held.log, errors='replace').read().split('\n') if line.startswith(('remat[', 'device_ns'))))
    return bad, says_nothing


if __name__ == '__main__':
    sys.exit(max(one(m) for m in sys.argv[1:] or NINE))
