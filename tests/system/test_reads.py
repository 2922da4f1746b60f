#!/usr/bin/env python3
"""Copies to the host come in one iteration and not in the next (tests/programs/reads.c): what they read is what it is natively, and an
iteration that only lacks some of them, or has others of what lies in memory, is no other iteration.
Usage: test_reads.py [--count N] [--seed FIRST]"""
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "reads")
DEVICE = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_BW": "20e9", "SIMGPU_HOST_BW": "5e8"}
ORDERS = ({}, {"SIMGPU_CHAOS": "adversary"}, {"SIMGPU_CHAOS": "3"})
PERCENT = (70, 55)
ITERATIONS = 30


def one(seed):
    """(what differs or None, statistics)"""
    return harness.plan_against_native([PROGRAM, str(seed), str(ITERATIONS)], PERCENT[seed % len(PERCENT)], dict(DEVICE, **ORDERS[seed % len(ORDERS)]))


def main():
    seeds = harness.seeds_asked_for(24, test=4, check=1)
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    whole = replays = left = 0
    with concurrent.futures.ThreadPoolExecutor(harness.WORKERS) as pool:
        for seed, (differs, stats) in zip(seeds, pool.map(one, seeds)):
            c.ok(not differs, "seed %d" % seed, differs)
            whole += stats.get("iterations_enforced", 0)
            replays += stats.get("replays", 0)
            left += stats.get("divergences", 0)
    print("%d iterations under a plan, %d replays, the plan was left %d times" % (whole, replays, left))
    # what nobody follows, and nobody leaves, tests nothing
    c.ok(whole >= 8 * len(seeds) * harness.OF_MEAN and replays >= 20 * len(seeds) * harness.OF_MEAN, "iterations are enforced", "%d, replays %d" % (whole, replays))
    c.ok(left >= len(seeds) // 2 * harness.OF_MEAN, "reads ask for what is evicted", str(left))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
