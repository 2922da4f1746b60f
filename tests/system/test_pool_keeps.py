#!/usr/bin/env python3
"""Memory that a pool of the driver's keeps after a free (tests/programs/pool_keeps.c) is on the device: it counts against the limit, and is given back
before the program is refused memory. Each case gives at 64 MiB what it gives natively, and the device never has more."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "pool_keeps")
CASES = "threshold waits_not own_pool behind plain mapped some destroyed trimmed captured again".split()
LIMIT = 64 << 20


def main():
    if not os.path.exists(PROGRAM):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for case in CASES:
        native = harness.run([PROGRAM, case])
        c.ok(native.rc == 0 and native.out, case + " natively", native.err[-300:])
        if case in ("own_pool", "plain", "mapped", "captured"):  # elsewhere the same pool serves both
            c.ok(native.peak > LIMIT, case + " natively: the pool does keep it", str(native.peak))
        for policy, chaos in (("swap", None), ("auto", None), ("swap", "adversary")):
            what = "%s, %s%s" % (case, policy, ", " + chaos if chaos else "")
            try:
                r = harness.run([PROGRAM, case], remat=["--limit", LIMIT, "--policy", policy], env={"SIMGPU_CHAOS": chaos} if chaos else {}, timeout=60)
            except subprocess.TimeoutExpired:
                c.ok(False, what, "it hangs")
                continue
            other = harness.other_than(native, r, LIMIT)
            c.ok(not other, what, "%s\n%s" % (other, r.err[-300:]))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
