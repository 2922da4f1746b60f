"""The operator test: python run.py [-k PART] [--dtype NAME] [--groups A,B] [--list] [--kernels FILE].

Prints one line for each failing row and 'N passed, M failed'. Runs under
`REMAT_SIMGPU=1 remat run -- build/pytorch/bin/python tests/simcuda/ops/run.py`, with any policy.

Rows run in worker processes, one for each core, which share them in turn: a row that ends its process fails, and the rest go on in
another one. The device names a missing kernel once in a process; rows that fail later for the same reason are asked again, each in a
process of its own."""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness

GROUPS = ('pointwise', 'reduce', 'index', 'layers', 'random', 'optim', 'training')
ASK_AGAIN = 12  # unnamed failures that get a process of their own


def rows_of(a):
    for g in a.groups.split(','):
        __import__(f'rows_{g}')
    return [r for r in harness.ROWS if a.k in r.name and a.dtype in harness.type_name(r.dtype)]


def worker(rows, first, step, fd):
    """Runs every `step`-th row from `first`; a line of JSON for each on this file descriptor."""
    torch.backends.cudnn.enabled = False  # it brings a runtime of its own that knows real devices only
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_num_threads(1)
    out = os.fdopen(fd, 'w')
    for i in range(first, len(rows), step):
        reason, kernel = harness.run_row(rows[i])
        out.write(json.dumps([i, reason, kernel]) + '\n')
        out.flush()
        if reason and ('illegal memory access' in reason or 'launch failure' in reason):
            break  # this device is lost
    out.flush()
    sys.stdout.flush()
    os._exit(0)  # not through the interpreter's end: the autograd thread may abort there


def run(first, step):
    """Yields (row, reason, kernel) from a worker, until it ends."""
    r, w = os.pipe()
    p = subprocess.Popen([sys.executable, *sys.argv, '--worker', str(first), str(step), str(w)], pass_fds=[w], stdin=subprocess.DEVNULL)
    os.close(w)
    with os.fdopen(r) as lines:
        for line in lines:
            yield tuple(json.loads(line))
    if p.wait():
        yield None, f'the process ended with {p.returncode}', None


def share(rows, first, step):
    """(how many passed, [(row, reason, kernel) that failed]) of every `step`-th row from `first`."""
    passed, failed, i, asked = 0, [], first, 0
    while i < len(rows):
        for at, reason, kernel in run(i, step):
            at = i if at is None else at
            i = at + step
            if reason is None:
                passed += 1
                continue
            if not kernel and 'invalid device function' in reason and asked < ASK_AGAIN:
                asked += 1
                reason, kernel = ([(why, k) for n, why, k in run(at, len(rows)) if n == at] or [(reason, None)])[0]
                reason = reason or 'fails after other rows, not alone'
            failed.append((at, reason, kernel))
            print(f'FAIL {rows[at].name} {harness.type_name(rows[at].dtype)}: {reason}', flush=True)
            if i >= len(rows):
                break
    return passed, failed


def main():
    p = argparse.ArgumentParser()
    p.add_argument('-k', default='', help='only rows whose name contains this')
    p.add_argument('--groups', default=','.join(GROUPS))
    p.add_argument('--dtype', default='')
    p.add_argument('--list', action='store_true')
    p.add_argument('--kernels', help='write what is missing here, with who wants it')
    p.add_argument('--worker', nargs=3, type=int)
    a = p.parse_args()
    rows = rows_of(a)
    if a.worker:
        worker(rows, *a.worker)
    if a.list:
        for r in rows:
            print(r.name, harness.type_name(r.dtype))
        return 0

    step = min(os.cpu_count() or 1, 8)
    with concurrent.futures.ThreadPoolExecutor(step) as pool:
        shares = list(pool.map(lambda first: share(rows, first, step), range(step)))
    passed, failures, wanted = sum(n for n, _ in shares), sum(len(f) for _, f in shares), {}
    for at, reason, kernel in sorted((x for _, f in shares for x in f), key=lambda x: x[0]):
        wanted.setdefault(kernel or reason, []).append(f'{rows[at].name}[{harness.type_name(rows[at].dtype)}]')
    if a.kernels:
        with open(a.kernels, 'w') as f:
            for what, who in sorted(wanted.items(), key=lambda x: -len(x[1])):
                f.write(f'{len(who)} rows ({", ".join(who[:3])}{", ..." if len(who) > 3 else ""}): {what}\n')
    print(f'ops: {passed} passed, {failures} failed')
    return 1 if failures or not passed else 0


status = main()
sys.stdout.flush()
os._exit(status)
