#!/usr/bin/env python3
"""A training loop, and what else a program does beside it (tests/programs/beside.c): each case gives under a limit what it gives natively,
and a plan is enforced where one can be had."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "beside")
# case, limit, at least so many iterations enforced
CASES = [
    # what a saved activation is copied from changes: the copy was made again, and the program was stopped (--verify off: other results)
    ("managed", 10500000, 16), ("pinned", 10500000, 16), ("own", 10500000, 16), ("plain", 10500000, 16), ("graph", 10500000, 16), ("graph_late", 10500000, 6),
    ("peer", 10500000, 16), ("peer_plain", 10500000, 16), ("peer_late", 10500000, 10),
    ("peer_plain_late", 10500000, 10), ("context", 10500000, 16), ("context_late", 10500000, 10),
    # the host waited for all that was queued before a plan came into force, and for each launch that was learnt: it stood still
    ("stands", 10500000, 16), ("stands_late", 10500000, 8), ("stands_within", 10500000, 0),
    # another thread's stream was waited for before work of a plan's was queued in its place
    ("stands_thread", 10500000, 8),
    # what was rebuilt at the plan's end was rebuilt in the context that ended it: other results
    ("elsewhere_capture", 15500000, 8),
]


def main():
    if not os.path.exists(PROGRAM):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    only = sys.argv[1:]
    for case, limit, enforced in harness.drawn(CASES, test=8, check=2):
        if only and case not in only:
            continue
        devices = 2 if case.startswith("peer") else 1
        env = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_DEVICES": str(devices)}
        native = harness.run([PROGRAM, case], env=env)
        c.ok(native.rc == 0 and native.out, case + " natively", native.err[-300:])
        for policy, chaos in (("swap", None), ("plan", None), ("plan", "adversary")):
            what = "%s, %s%s" % (case, policy, ", " + chaos if chaos else "")
            try:
                r = harness.run([PROGRAM, case], remat=["--limit", limit, "--policy", policy], env=dict(env, **({"SIMGPU_CHAOS": chaos} if chaos else {})), timeout=60)
            except subprocess.TimeoutExpired:
                c.ok(False, what, "it hangs")
                continue
            other = harness.other_than(native, r, limit * devices)
            c.ok(not other, what, "%s\n%s" % (other, r.err[-300:]))
            if policy == "plan":
                c.ok(r.stats.get("iterations_enforced", 0) >= enforced, what + ": enforced", str(r.stats))
            else:
                c.ok(r.stats.get("swaps_in", 0) > 0, what + ": it evicts", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
