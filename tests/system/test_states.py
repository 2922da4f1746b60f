#!/usr/bin/env python3
"""State that launches change in place (tests/programs/states.c): a replay finds it as the launch found it. Wrong results once: what it had
become since was taken, in an iteration in which that made a difference. And fresh memory that nobody seems to write: what is
read there was taken for what is overwritten, or for something that nobody had defined."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "states")
DEVICE = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_BW": "20e9"}
CASES = ("counted", "clip", "small", "empty", "poison")


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for case in CASES:
        grid = [(at, order) for at in ("13", "16", "19") for order in ({}, {"SIMGPU_CHAOS": "adversary"})]
        for at, order in harness.drawn(grid, test=2, salt=case):
            differs, stats = harness.plan_against_native([PROGRAM, case, at], 75, dict(DEVICE, **order))
            c.ok(not differs, "%s, iteration %s %s" % (case, at, order), differs)
            c.ok(stats.get("iterations_enforced", 0) >= 9 and stats.get("replays", 0) >= (0 if case == "clip" else 50), case + ": enforced", str(stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
