#!/usr/bin/env python3
"""A launch is known by its bytes (policy/plan/steady.c): programs in which one is nearly the same as an iteration ago compute what they
compute alone (tests/programs/steady.c), where only an order may be lost on a device that does no more than it must."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

ADVERSARY = ("adversary", "adversary:3")
CHANGE_AT = 24
# case, limit, on which device, what is seen in one iteration: nothing, another launch, an address that came back; or the address came back, and the plan
# goes on with who has it now
CASES = [
    ("scalar", "9M", ADVERSARY, None),
    ("stream", "9M", ADVERSARY, None),
    ("ahead", "10M", ("adversary:1", "adversary:6"), None),  # a writer comes after what a replay reads
    ("anew", "9M", (None,), "successor"),  # the slots no longer stand for what they stood for: replays had nothing to read, the program was stopped
    ("resized", "9M", (None,), "address"), # likewise, and no plan knows who has the address now
    ("stray", "10M", (None,), "address"),  # an address that nobody held is somebody's: an operand more
    ("null", "9M", (None,), None),   # an argument that the driver refuses: read all the same once, the program died
    ("fewer", "10M", (None,), None),   # what was nobody's in the rest was compared: a right program was stopped
    ("cluster", "9M", (None,), "launch"), # it went on as if it were the same
]


def main():
    program = os.path.join(harness.B, "programs", "steady")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    env = {"SIMGPU_MEM": "16M", "SIMGPU_GRANULARITY": "64K", "REMAT_LOG": "info"}
    for case, limit, devices, seen in harness.drawn(CASES, check=2):
        native = harness.run([program, case], env=env)
        c.ok(native.rc == 0 and native.out.count("iter") == 40, case + " natively", native.err[-300:])
        for chaos in devices:
            r = harness.run([program, case], ["--policy", "plan", "--limit", limit], dict(env, SIMGPU_CHAOS=chaos) if chaos else env)
            c.ok(r.rc == 0 and r.out == native.out, "%s, %s: the same" % (case, chaos), "exit %d %s" % (r.rc, r.err[-500:]))
            c.ok(r.stats.get("iterations_enforced", -1) >= 20, "%s, %s: under the plan" % (case, chaos), "%s %s" % (r.stats, r.err[-500:]))
            if seen in ("address", "successor"):
                c.ok("the same address" in r.err, case + ": the address came back", r.err[-500:])
            if seen == "successor":
                c.ok("left the plan" not in r.err and r.stats.get("iterations_enforced", -1) >= 34, case + ": the plan goes on", "%s %s" % (r.stats, r.err[-500:]))
            elif seen:
                c.ok("iteration %d left the plan" % CHANGE_AT in r.err, case + ": it was seen", r.err[-500:])
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
