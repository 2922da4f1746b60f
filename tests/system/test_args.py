#!/usr/bin/env python3
"""Launches that take structs by value, drawn from seeds (tests/programs/random_args.c): numbers, modes and flags beside what stacks leave.
Under a plan each gives what it gives natively, within the limit. Usage: test_args.py [--count N] [--seed FIRST]"""
import argparse
import concurrent.futures
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "random_args")
DEVICE = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_BW": "20e9", "SIMGPU_HOST_BW": "5e8"}
PERCENT = (75, 65)
PATIENCE = 300


def one(seed):
    """What differs, or None; iterations enforced; replays."""
    cmd = [PROGRAM, str(seed)]
    native = harness.run(cmd, env=DEVICE, timeout=PATIENCE)
    if native.rc or not native.device:
        return "natively: exit %s %s" % (native.rc, native.err[-200:]), 0, 0
    limit = native.peak * PERCENT[seed % len(PERCENT)] // 100
    try:
        r = harness.run(cmd, remat=["--limit", limit, "--policy", "plan"], env=DEVICE, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return "it hangs", 0, 0
    return harness.other_than(native, r, limit), r.stats.get("iterations_enforced", 0), r.stats.get("replays", 0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    total = replayed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for seed, (what, enforced, replays) in zip(range(a.seed, a.seed + a.count), pool.map(one, range(a.seed, a.seed + a.count))):
            c.ok(what is None, "seed %d" % seed, str(what))
            total += enforced
            replayed += replays
    print("%d iterations enforced in %d programs, %d replays" % (total, a.count, replayed))
    c.ok(total >= 6 * a.count, "enforced", str(total))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
