"""Scripts drawn from seeds (drawn.py), natively and under remat with less memory than they need: the bits must be the same.

    python3 tests/simcuda/models/test_drawn.py [--seed S] [--count N] [--setting plan,swap,...]

One line for each seed: what was drawn, how far the plan came, and FAIL with the log's place where the bits are not native's, the device
held more than the limit or the run did not end well."""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from runs import MIB, run, run_all

# (policy, per cent of the native peak). In the program's own order: in others some of these scripts give other bits natively, too, since
# the backward pass of memory-efficient attention adds in the order in which blocks come.
SETTINGS = {'plan': ('plan', 60), 'tight': ('plan', 45), 'swap': ('swap', 60), 'auto': ('auto', 70)}
FOLLOWED = 8  # iterations of a script that are enforced, at least, on the average of four scripts or more


def limit_of(native, percent):
    return max(native.peak_bytes * percent // 100, int(native.held_bytes * 1.1) + 12 * MIB)


def one(seed, settings, iterations):
    """What to print, what failed, iterations enforced under 'plan'."""
    drawn = lambda name, how=('--policy', 'off'): run(f'drawn {seed} {name}', [str(seed), '--iterations', str(iterations)], how, script='drawn.py')
    native = drawn('native')
    habits = [x[7:-1] for x in open(native.log) if x.startswith('habits ')]
    lines, bad = [f'{seed}: native peak {native.peak_bytes / MIB:.1f} MiB; {"".join(habits)}'], 0
    if native.code or not native.checksum:
        return [f'{lines[0]}; FAIL: natively it ended with {native.code}, see {native.log}'], 1, 0
    enforced = 0
    for name in settings:
        policy, percent = SETTINGS[name]
        limit = limit_of(native, percent)
        for _ in range(3):
            r = drawn(name, ('--policy', policy, '--limit', str(limit)))
            need = re.search(r'(?:needs|an allocation of) (\d+) ([KM])iB (?:at once|does not fit)', open(r.log, errors='replace').read())
            if not need or r.code == 0:
                break
            # one of its launches touches more than that, or one of its tensors is larger
            limit = max(limit, (int(need[1]) + 1) * (MIB if need[2] == 'M' else MIB >> 10) * 21 // 20) + 2 * MIB
        s = r.stats
        enforced += s.get('iterations_enforced', 0) if name == 'plan' else 0
        lines.append(f'  {name} {limit / MIB:.1f} MiB: enforced {s.get("iterations_enforced")} of {s.get("iterations")}, replays {s.get("replays")}, '
                     f'{s.get("swaps_steady")} swaps, {r.device_ns / native.device_ns:.2f} x')
        for ok, what in ((r.code == 0, f'ended with {r.code}'), (r.same_as(native), 'OTHER RESULTS'), (r.peak_bytes <= limit, f'held {r.peak_bytes} bytes')):
            if not ok:
                bad += 1
                lines.append(f'  FAIL {name}: {what}; see {r.log}')
    return lines, bad, enforced


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--count', type=int, default=8)
    p.add_argument('--setting', default='plan,swap')
    p.add_argument('--iterations', type=int, default=28)
    p.add_argument('--workers', type=int)
    a = p.parse_args()
    failed = followed = 0
    seeds = range(a.seed, a.seed + a.count)
    for first in range(0, a.count, 4):
        for lines, bad, enforced in run_all([(one, s, a.setting.split(','), a.iterations) for s in seeds[first:first + 4]], a.workers):
            print(*lines, sep='\n', flush=True)
            failed += bad
            followed += enforced
    print(f'{a.count} scripts, {failed} failed, {followed} iterations enforced')
    if a.count >= 4 and 'plan' in a.setting.split(',') and followed < FOLLOWED * a.count:
        print(f'FAIL: {FOLLOWED * a.count} iterations at least were to be enforced')
        return 1
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
