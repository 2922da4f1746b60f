#!/usr/bin/env python3
"""A training loop that strays from what it did (tests/programs/strays.c), at any place and in any way: under a plan it gives what it gives
natively, within the limit. Drawn from seeds; and some strays by hand (tests/programs/stays.c, spoils.c). Usage: test_strays.py [--count N] [--seed FIRST]"""
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "strays")
DEVICE = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_BW": "20e9", "SIMGPU_HOST_BW": "5e8"}
ORDERS = ({}, {"SIMGPU_CHAOS": "adversary"}, {"SIMGPU_CHAOS": "3"})
PERCENT = (70, 60)
# what strays, by the bits of strays.c; iterations; from which on nothing does
EVERY, KEEPS, RELOADS, NONE = ("ffffffff", 24, 24), ("60", 24, 24), ("400000", 32, 11), ("0", 20, 20)


def one(case):
    """(what differs or None, statistics)"""
    seed, (kinds, iterations, until) = case
    return harness.plan_against_native([PROGRAM, str(seed), str(iterations), kinds, str(until)], PERCENT[seed // 3 % len(PERCENT)],
                                       dict(DEVICE, **ORDERS[seed % len(ORDERS)]))


def looked_at_late(c):
    """What an iteration looks at when no other does."""
    program = os.path.join(harness.B, "programs", "stays")
    for case in ("input", "output", "gone", "back", "small", "stream"):
        for late in harness.drawn(("10", "13"), test=1, salt=case, whole=True):
            differs, stats = harness.plan_against_native([program, case, late], 95, DEVICE)
            c.ok(not differs, "%s looked at late in iteration %s" % (case, late), differs)
            c.ok(stats.get("iterations_enforced", 0) >= 9 and stats.get("replays", 0) >= 1, case + ": enforced", str(stats))
            if case == "stream": # one that has the index of a stream that is gone: its launches were refused, and the plan left
                c.ok(stats.get("divergences", 1) == 0, "stream: the plan is never left", str(stats))


def spoilt(c):
    """What something was made of that the plan has dropped is changed, or given back: that is not made again of it. Wrong results once, and a
    stop."""
    program = os.path.join(harness.B, "programs", "spoils")
    for case, enforced, replays in (("after", 9, 2), ("behind", 9, 20), ("own", 4, 10)):
        differs, stats = harness.plan_against_native([program, case, "10"], 95, DEVICE)
        c.ok(not differs, "spoils " + case, differs)
        c.ok(stats.get("iterations_enforced", 0) >= enforced and stats.get("replays", 0) >= replays and stats.get("divergences", 0) >= 1,
             "spoils %s: enforced, and left" % case, str(stats))


def main():
    seeds = harness.seeds_asked_for(12, test=1)
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    cases = [(seed, EVERY) for seed in seeds] + [(seed, kinds) for kinds in (NONE, KEEPS, RELOADS) for seed in seeds[::4]]
    c = harness.Checks()
    if harness.PART == 0:
        looked_at_late(c)
        spoilt(c)
    whole = replays = left = 0
    with concurrent.futures.ThreadPoolExecutor(harness.WORKERS) as pool:
        for (seed, kinds), (differs, stats) in zip(cases, pool.map(one, cases)):
            c.ok(not differs, "seed %d, strays %s" % (seed, kinds[0]), differs)
            whole += stats.get("iterations_enforced", 0)
            replays += stats.get("replays", 0)
            left += stats.get("divergences", 0)
    print("%d iterations under a plan, %d replays, the plan was left %d times" % (whole, replays, left))
    # what nobody follows, and nobody leaves, tests nothing
    c.ok(whole >= 3 * len(cases) * harness.OF_MEAN and replays >= 60 * len(cases) * harness.OF_MEAN, "iterations are enforced", "%d, replays %d" % (whole, replays))
    c.ok(left >= 2 * len(seeds) * harness.OF_MEAN, "plans are left", str(left))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
