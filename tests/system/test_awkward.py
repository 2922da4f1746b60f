#!/usr/bin/env python3
"""Moments at which a library in front of the driver easily loses its limit, or its way (tests/programs/awkward.c): each case gives under
a limit what it gives natively, and the device never holds more than the limit."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

KIB = 1024
# case, a limit that is felt, whether it evicts
CASES = [
    ("capture_beside", 640 * KIB, False),  # memory beside a capture was not counted
    ("wait_room", 640 * KIB, False),       # the wait for a mapping that had to go kept the other thread out: a hang
    ("reset", 640 * KIB, True), ("release", 640 * KIB, True), ("own_context", 640 * KIB, True), # what came after was beyond the limit
    ("other_create", 640 * KIB, True),     # it was counted on the current device
    ("other_free", 640 * KIB, True), ("streams", 640 * KIB, True),
    ("leaving", 640 * KIB, False),         # it did not count from the call on: beyond the limit
    ("pitches", 640 * KIB, False),         # what was there did not count for a moment: one run in some
    ("capture_own", 896 * KIB, False),     # what a captured stream had used was waited for: no memory
]
# What the driver does not take back when a context ends is nobody's, and counts.
FAULTS = ("cuMemRelease:1", "cuMemUnmap:23")


def main():
    program = os.path.join(harness.B, "programs", "awkward")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    only = sys.argv[1:]
    for case, limit, evicts in CASES:
        if only and case not in only:
            continue
        env = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_DEVICES": "2" if case.startswith("other") else "1"}
        native = harness.run([program, case], env=env)
        c.ok(native.rc == 0 and native.out, case + " natively", native.err[-300:])
        c.ok(native.peak >= limit, case + " natively: the limit is felt", str(native.peak))
        if case == "other_create": # each device has no more than its limit: what is counted on another one is refused here
            env["SIMGPU_MEM"] = str(limit)
        for policy in ("swap", "plan"):
            for chaos in (None, "adversary"):
                what = "%s, %s%s" % (case, policy, ", " + chaos if chaos else "")
                try:
                    r = harness.run([program, case], remat=["--limit", limit, "--policy", policy], env=dict(env, **({"SIMGPU_CHAOS": chaos} if chaos else {})), timeout=30)
                except subprocess.TimeoutExpired:
                    c.ok(False, what, "it hangs")
                    continue
                other = harness.other_than(native, r, limit)
                c.ok(not other, what, "%s\n%s" % (other, r.err[-300:]))
                if evicts:
                    c.ok(r.stats.get("swaps_in", 0) > 0, what + ": it evicts", str(r.stats))
    for fault in () if only and "reset" not in only else FAULTS:
        r = harness.run([program, "reset"], remat=["--limit", 640 * KIB, "--policy", "swap"], env={"SIMGPU_GRANULARITY": "65536", "SIMGPU_FAULTS": fault})
        c.ok(r.rc == 0 and r.peak <= 640 * KIB, "reset where %s fails" % fault, "exit %d, %s bytes\n%s" % (r.rc, r.peak, r.err[-300:]))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
