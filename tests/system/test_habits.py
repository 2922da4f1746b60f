#!/usr/bin/env python3
"""Training loops as people write them (tests/programs/habits.c): for each a plan is found and followed, within the limit, with what the program
computes alone."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

ENV = {"SIMGPU_MEM": "16M", "SIMGPU_GRANULARITY": "8K", "SIMGPU_BW": "5e9", "SIMGPU_HOST_BW": "125e6", "REMAT_LOG": "debug"}


def main():
    program = os.path.join(harness.B, "programs", "habits")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for habit in ("late", "next", "shared", "kept"):
        native = harness.run([program, habit], env=ENV)
        c.ok(native.rc == 0 and native.out.count("iter") >= 40, habit + " natively", native.err[-300:])
        for percent, chaos in harness.drawn([(percent, chaos) for percent in (70, 80) for chaos in (None, "adversary")], test=1, salt=habit):
            limit = native.peak * percent // 100
            what = "%s at %d %%%s" % (habit, percent, ", " + chaos if chaos else "")
            r = harness.run([program, habit], ["--policy", "plan", "--limit", limit], dict(ENV, SIMGPU_CHAOS=chaos) if chaos else ENV)
            s = r.stats
            c.ok(r.rc == 0 and r.out == native.out, what + ": the same", "exit %d %s" % (r.rc, r.err[-500:]))
            c.ok(r.device and r.peak <= limit, what + ": within the limit", "%s of %s" % (r.peak, limit))
            c.ok(s.get("iterations_enforced", 0) >= 28, what + ": a plan is followed", "%s %s" % (s, r.err[-1500:]))
            c.ok(s.get("replays", 0) > 0 and s.get("divergences", 99) <= 1, what + ": it replays, and is left at the end", str(s))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
