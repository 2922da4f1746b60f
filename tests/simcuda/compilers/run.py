#!/usr/bin/env python3
"""Programs whose kernels numba and NVRTC compile (loop.py): natively they give what numpy gives; under remat the same bits within the limit, by swapping
and under a plan.

    python3 tests/simcuda/compilers/run.py [numba|nvrtc ...]

Needs the environment of `make pytorch` and compilers.sh's packages in $B/compilers; without them exits 77."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get('B', 'build'))
PYTHON, PACKAGES = os.path.join(B, 'pytorch', 'bin', 'python'), os.path.join(B, 'compilers')
ITERATIONS = 20
MOVED = {'numba': ('--allocator', 'each'), 'nvrtc': ()}  # numba allocates by cuMemAlloc
SETTINGS = {'swap': 60, 'plan': 68}                      # per cent of the native peak
VARIABLES = 64 << 10  # of modules: the driver's own memory, as code is; no limit counts them, this device does
DEVICE = {'SIMGPU_FLOPS': '2e12', 'SIMGPU_BW': '150e9', 'SIMGPU_HOST_BW': '2.5e9', 'SIMGPU_GRANULARITY': '64K'}


def run(compiler, program, setting, options):
    """(what it printed, the device's high-water mark, what remat says of it)"""
    files = [os.path.join(B, 'pytorch-test', f'compilers {compiler} {program} {setting}.{kind}') for kind in ('device', 'stats')]
    os.makedirs(os.path.dirname(files[0]), exist_ok=True)
    for f in files:
        if os.path.exists(f):
            os.remove(f)
    command = [os.path.join(B, 'remat'), 'run', *options, *(() if setting == 'native' else ('--stats', files[1])), '--', PYTHON,
               os.path.join(HERE, compiler + '_programs.py'), program, str(ITERATIONS)]
    env = dict(os.environ, REMAT_SIMGPU='1', SIMGPU_STATS=files[0], PYTHONPATH=PACKAGES, NUMBA_CACHE_DIR=os.path.join(B, 'pytorch-test', 'numba'), **DEVICE)
    p = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    said = {'device': {}, 'stats': {}}
    for f in files:
        if os.path.exists(f):
            with open(f) as text:
                said[f.rpartition('.')[2]] = json.load(text)
    lines = [x for x in p.stdout.splitlines() if x.startswith(('result ', 'ok '))]
    if p.returncode or len(lines) != ITERATIONS + 1:
        print(p.stdout[-3000:])
        raise SystemExit(f'FAIL {compiler} {program} {setting}: ended with {p.returncode}')
    return lines, said['device']['peak_physical_bytes'], said['stats']


def main():
    if not os.path.exists(os.path.join(PACKAGES, '.installed')) or not os.path.exists(PYTHON):
        print(f'{PACKAGES} is not there: bash tests/simcuda/pytorch/compilers.sh {PACKAGES} {os.path.dirname(os.path.dirname(PYTHON))}')
        return 77
    failed = passed = 0
    for compiler in sys.argv[1:] or MOVED:
        for program in ('stencil', 'reduction', 'histogram'):
            native, peak, _ = run(compiler, program, 'native', ('--policy', 'off', '--allocator', 'async'))
            for setting, percent in SETTINGS.items():
                limit = peak * percent // 100
                lines, held, said = run(compiler, program, setting, ('--policy', setting, '--limit', str(limit), *MOVED[compiler]))
                print(f'{compiler} {program} {setting}: {held} of {limit} bytes, {said["swaps_out"]} copied out, {said["replays"]} replays, '
                      f'plan followed in {said["iterations_enforced"]} of {said["iterations"]} iterations', flush=True)
                for ok, what in ((lines == native, 'OTHER RESULTS'), (said['peak_physical_bytes'] <= limit and held <= limit + VARIABLES, 'beyond the limit'),
                                 (said['swaps_out'] > 0 or setting == 'plan', 'nothing was swapped'),
                                 (setting == 'swap' or (said['iterations_enforced'] > 0 and said['replays'] > 0), 'no plan was followed')):
                    passed += ok
                    failed += not ok
                    if not ok:
                        print(f'FAIL {compiler} {program} {setting}: {what}')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
