#!/usr/bin/env python3
"""Batches whose sizes take turns (tests/programs/turns.c): all of one round are one iteration, which is planned and followed, though every
launch looks like that of the batch before."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# sizes in turn, batches, limit, rounds that follow a plan at least; one size: as ever
CASES = [(1, 40, "12M", 30), (2, 40, "12M", 12), (3, 60, "12M", 12)]


def main():
    program = os.path.join(harness.B, "programs", "turns")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    env = {"SIMGPU_MEM": "32M", "SIMGPU_GRANULARITY": "64K", "SIMGPU_HOST_BW": "1e9", "REMAT_LOG": "debug"}
    for shapes, batches, limit, followed in CASES:
        what = "%d sizes" % shapes
        native = harness.run([program, str(shapes), str(batches)], env=env)
        c.ok(native.rc == 0 and native.out.count("iter") == batches, what + ", natively", native.err[-300:])
        r = harness.run([program, str(shapes), str(batches)], ["--policy", "plan", "--limit", limit], env)
        c.ok(r.rc == 0 and r.out == native.out, what + ": the same", "exit %d %s" % (r.rc, r.err[-500:]))
        c.ok(r.device and r.peak <= 12 << 20 < native.peak, what + ": within the limit", "%s, natively %s" % (r.peak, native.peak))
        c.ok(r.stats.get("iterations_enforced", 0) >= followed, what + ": a plan is followed", "%s %s" % (r.stats, r.err[-1500:]))
        c.ok(r.stats.get("divergences", 99) <= 1, what + ": and not left, but at the end", str(r.stats))
        c.ok(r.stats.get("swaps_steady", 1) == 0, what + ": without swapping", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
