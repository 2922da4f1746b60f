#!/usr/bin/env python3
"""Launches that are given a texture or a surface have no operand for what that shows, and it changes (tests/programs/textures.c): each case gives under a
plan what it gives natively; they were run again once, with what was there by then."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "textures")
DEVICE = {"SIMGPU_GRANULARITY": "8192", "SIMGPU_BW": "5e9", "SIMGPU_HOST_BW": "125e6"}
# case, at least so many iterations enforced
CASES = (("address", 8), ("linear", 8), ("own", 8), ("pitched", 8), ("array", 8), ("filled", 8), ("mipmapped", 8), ("level", 8), ("surface", 8), ("struct", 8), ("packed", 8), ("list", 8),
         ("moved", 8), ("given", 8), ("variable", 8),
         ("renewed", 8), ("another", 6), ("late", 2))


def main():
    if not os.path.exists(PROGRAM):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for case, enforced in harness.drawn(CASES, check=3):
        differs, stats = harness.plan_against_native([PROGRAM, case], 60, DEVICE)
        c.ok(not differs, case, differs)
        c.ok(stats.get("iterations_enforced", 0) >= enforced, case + ": enforced", str(stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
