#!/usr/bin/env python3
"""A launch is known by its bytes (policy/plan/steady.c): programs in which one is nearly the same as an iteration ago compute what they
compute alone, on a device that does no more than it must (tests/programs/steady.c)."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# (case, at least so many iterations under the plan)
CASES = [("scalar", 20), ("stream", 20)]


def main():
    program = os.path.join(harness.B, "programs", "steady")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    env = {"SIMGPU_MEM": "16M", "SIMGPU_GRANULARITY": "64K"}
    for case, least in CASES:
        native = harness.run([program, case], env=env)
        c.ok(native.rc == 0 and native.out.count("iter") == 40, case + " natively", native.err[-300:])
        for chaos in ("adversary", "adversary:3"):
            r = harness.run([program, case], ["--policy", "plan", "--limit", "9M"], dict(env, SIMGPU_CHAOS=chaos))
            c.ok(r.rc == 0 and r.out == native.out, "%s, %s: the same" % (case, chaos), "exit %d %s" % (r.rc, r.err[-500:]))
            c.ok(r.stats.get("iterations_enforced", -1) >= least, "%s, %s: under the plan" % (case, chaos), "%s %s" % (r.stats, r.err[-500:]))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
