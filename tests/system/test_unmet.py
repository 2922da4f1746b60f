#!/usr/bin/env python3
"""A launch that needs more at once than the limit leaves (tests/programs/unmet.c) is told of at the next allocation, where a program catches it; what it should
have made is read by nobody, and what can be read is what it is natively."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "unmet")
LIMIT = 48 << 20
NO = "CUDA_ERROR_OUT_OF_MEMORY"
# Natively all of them succeed. Here: line, what stands there instead.
CASES = {
    "told": {1: "take " + NO, 2: "take " + NO},
    "chain": {2: "end " + NO, 3: "middle " + NO},
    "read": {1: "out " + NO},
    "in_place": {0: "launch " + NO, 1: "out CUDA_SUCCESS 9 9"},
    "updates": {1: "update " + NO, 2: "sum CUDA_SUCCESS 5 5"},
    "workspace": {1: "in " + NO},
    "garbage": {2: "end " + NO}, # what the launch was to change may be anything
    "other": {2: "mine " + NO},
    "freed": {2: "take " + NO},
    "again": {11: "take " + NO, 24: "take " + NO, 37: "take " + NO},
}


def main():
    if not os.path.exists(PROGRAM):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for case, other in CASES.items():
        native = harness.run([PROGRAM, case])
        want = native.out.splitlines()
        c.ok(native.rc == 0 and NO not in native.out and len(want) > max(other, default=0), case + " natively", native.err[-300:])
        for i, line in other.items():
            want[i] = line
        for policy, chaos in (("swap", None), ("auto", "adversary")):
            r = harness.run([PROGRAM, case], remat=["--limit", LIMIT, "--policy", policy], env={"SIMGPU_CHAOS": chaos} if chaos else {})
            got = r.out.splitlines()
            c.ok(r.rc == 0 and got == want, "%s, %s" % (case, policy), "exit %d, %s" % (r.rc, [x for x in zip(got, want) if x[0] != x[1]] or r.err[-300:]))
            c.ok(r.peak <= LIMIT, "%s, %s: the limit" % (case, policy), str(r.peak))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
