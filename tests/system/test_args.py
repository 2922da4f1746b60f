#!/usr/bin/env python3
"""Launches that take structs by value, drawn from seeds (tests/programs/random_args.c): numbers, modes and flags beside what stacks leave.
Under a plan each gives what it gives natively, within the limit. Usage: test_args.py [--count N] [--seed FIRST]"""
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "random_args")
DEVICE = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_BW": "20e9", "SIMGPU_HOST_BW": "5e8"}
PERCENT = (75, 65)


# With the flag as it is, its word is the address of a tensor: only where that byte of tensors' addresses is 0.
BYTE_OF_ZEROS = {35: {"SIMGPU_ALIGN": "1T"}}


def one(seed):
    """What differs, or None; iterations enforced; replays."""
    device = dict(DEVICE, **BYTE_OF_ZEROS.get(seed, {}))
    differs, stats = harness.plan_against_native([PROGRAM, str(seed)], PERCENT[seed % len(PERCENT)], device)
    return differs, stats.get("iterations_enforced", 0), stats.get("replays", 0)


def main():
    seeds = harness.seeds_asked_for(40, test=3, check=1, always=BYTE_OF_ZEROS)
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    total = replayed = 0
    with concurrent.futures.ThreadPoolExecutor(harness.WORKERS) as pool:
        for seed, (what, enforced, replays) in zip(seeds, pool.map(one, seeds)):
            c.ok(what is None, "seed %d" % seed, str(what))
            total += enforced
            replayed += replays
    print("%d iterations enforced in %d programs, %d replays" % (total, len(seeds), replayed))
    c.ok(total >= 6 * len(seeds) * harness.OF_MEAN, "enforced", str(total))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
