#!/usr/bin/env python3
"""Copies of a batch whose sources the driver may read out of stream order (tests/programs/early_reads.c): what was evicted comes back in stream order.
The simulated device reads as early as it may. Each case gives under a limit what it gives natively, whatever the order within the promises."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "early_reads")
CASES = "during any in_order mixed many boxes lone over still".split()
DEVICE = {"SIMGPU_GRANULARITY": "65536"}


def main():
    if not os.path.exists(PROGRAM):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for case in CASES:
        native = harness.run([PROGRAM, case], env=DEVICE)
        c.ok(native.rc == 0 and native.out, case + " natively", native.err[-300:])
        for policy, chaos in (("swap", None), ("swap", "adversary"), ("swap", "adversary:3"), ("auto", None)):
            what = "%s, %s%s" % (case, policy, ", " + chaos if chaos else "")
            try:
                r = harness.run([PROGRAM, case], remat=["--limit", "768K", "--policy", policy],
                                env=dict(DEVICE, **({"SIMGPU_CHAOS": chaos} if chaos else {})), timeout=60)
            except subprocess.TimeoutExpired:
                c.ok(False, what, "it hangs")
                continue
            other = harness.other_than(native, r, 768 << 10)
            c.ok(not other, what, "%s\n%s" % (other, r.err[-300:]))
            c.ok(r.stats.get("swaps_in", 0) > 0, what + ": it evicts", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
