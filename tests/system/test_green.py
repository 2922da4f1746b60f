#!/usr/bin/env python3
"""Contexts that become current by calls that nobody counts (tests/programs/green.c): each has a default stream of its own, and ends in its own way. Each
case gives under a limit what it gives natively, in any order that the calls allow."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "green")
CASES = "green pushed two streams first ended last detached kept".split()
DEVICE = {"SIMGPU_GRANULARITY": "65536"}
LIMIT = 384 << 10


def main():
    if not os.path.exists(PROGRAM):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for case in CASES:
        native = harness.run([PROGRAM, case], env=DEVICE)
        c.ok(native.rc == 0 and native.out, case + " natively", native.err[-300:])
        for policy, chaos, more in (("swap", None, []), ("swap", "adversary", ["proven"]), ("swap", "adversary:1", ["proven"]), ("auto", None, ["proven"])):
            what = ", ".join([case, policy] + ([chaos] if chaos else []) + more)
            try:
                r = harness.run([PROGRAM, case] + more, remat=["--limit", LIMIT, "--policy", policy], env=dict(DEVICE, **({"SIMGPU_CHAOS": chaos} if chaos else {})),
                                timeout=60)
            except subprocess.TimeoutExpired:
                c.ok(False, what, "it hangs")
                continue
            other = harness.other_than(native, r, LIMIT)
            c.ok(not other, what, "%s\n%s" % (other, r.err[-300:]))
            c.ok(r.stats.get("swaps_in", 0) > 0, what + ": it evicts", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
