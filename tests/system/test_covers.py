#!/usr/bin/env python3
"""A kernel that stores over all of an earlier value makes a new one (policy/learn/covers.h): it is replayed without what was there. One that leaves a byte, or
does so for some values or arguments, changes what was there. Programs compute what they compute alone (tests/programs/covers.c)."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

LIMIT, LAYERS, CHANGE_AT = 2625000, 12, 12
DEVICE = {"SIMGPU_HOST_BW": "25e6", "SIMGPU_GRANULARITY": "8192", "SIMGPU_BW": "5e9", "REMAT_LOG": "info"}
# case, whether its stores are new values, iterations under the plan at least
CASES = [
    ("whole", True, 14),
    ("byte", False, 0),
    ("larger", False, 0),   # a value that was not there while this was learnt: the fills of a trial show it
    ("seen", False, 0),     # one launch of the kernel speaks for the others
    ("argument", True, 4),  # a trial under the plan has the fills as well
]


def stores(path):
    """How many launches of `cover` are recorded as writes, and as changes."""
    with open(path) as f:
        ops = [op for op in json.load(f)["ops"] if op["name"] == "cover"]
    return sum(bool(op["writes"]) for op in ops), sum(bool(op["rmw"]) for op in ops)


def cases(c, program, folder):
    for case, new, enforced in harness.drawn(CASES, check=3):
        native = harness.run([program, case], env=DEVICE)
        c.ok(native.rc == 0 and native.out.count("iter") == 20, case + " natively", native.err[-300:])
        for chaos in (None, "3"):
            path = os.path.join(folder, "%s.trace" % case)
            r = harness.run([program, case], ["--policy", "plan", "--limit", LIMIT, "--trace-out", path], dict(DEVICE, SIMGPU_CHAOS=chaos) if chaos else DEVICE)
            c.ok(r.rc == 0 and r.out == native.out, "%s, %s: the same" % (case, chaos), "exit %d %s" % (r.rc, r.err[-500:]))
            c.ok(stores(path) == ((LAYERS, 0) if new else (0, LAYERS)), "%s, %s: %s" % (case, chaos, "new values" if new else "changes"), str(stores(path)))
            c.ok(r.stats.get("iterations_enforced", -1) >= enforced, "%s, %s: under the plan" % (case, chaos), "%s %s" % (r.stats, r.err[-500:]))
            c.ok(not new or r.stats.get("replays", 0) >= 50, "%s, %s: replays" % (case, chaos), str(r.stats))
            c.ok(r.stats.get("verify_failed", 0) == 0, "%s, %s: none differs" % (case, chaos), str(r.stats))


def stopped(c, program):
    """What no trial can show: another input keeps some of what was there. The program's own launch finds it, and a replay is compared each time."""
    native = harness.run([program, "said"], env=DEVICE)
    r = harness.run([program, "said"], ["--policy", "plan", "--limit", LIMIT], DEVICE)
    c.ok(native.rc == 0 and r.rc != 0 and "(cover) made another value than the program had" in r.err, "said: the program is stopped", "%s %s" % (r.rc, r.err[-500:]))
    c.ok(native.out.startswith(r.out) and "iter %d " % (CHANGE_AT - 1) in r.out, "said: before it says anything that is wrong", r.out[-200:])
    return c.end()


def main():
    program = os.path.join(harness.B, "programs", "covers")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    with tempfile.TemporaryDirectory() as folder:
        cases(c, program, folder)
    stopped(c, program)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
