#!/usr/bin/env python3
"""Addresses that a struct of arguments holds for nothing do not end a program: what a launch may not need lies in host memory at its own address,
where no limit holds, and is right there whether it is used or not.

Sixteen tensors of four pages each, all in the arguments, where the limit leaves room for eight."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "residue")
PAGE = 64 << 10
DEVICE = {"SIMGPU_GRANULARITY": str(PAGE)}
ROOM = (8 * 4 + 2) * PAGE
SAID = "leaves no room for all that its arguments point at"


def main():
    if not os.path.exists(PROGRAM):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    native = {}
    for case in ("one", "two", "buffer", "freed", "stream", "whole", "product"):
        native[case] = harness.run([PROGRAM, case], env=DEVICE)
        for chaos in (None, "adversary", "5"):
            env = dict(DEVICE, REMAT_LOG="info", **({"SIMGPU_CHAOS": chaos} if chaos else {}))
            r = harness.run([PROGRAM, case], ["--policy", "swap", "--limit", str(ROOM)], env)
            what = "%s, order %s" % (case, chaos)
            wrong = harness.other_than(native[case], r, ROOM)
            c.ok(not wrong, what, wrong)
            c.ok(SAID in r.err, what + ": something is where nobody asks for it", r.err[-300:])
    # learnt and planned with: no launch sees anything else
    for case in ("one", "two", "freed", "whole", "product"):
        n = harness.run([PROGRAM, case, "14"], env=DEVICE)
        for more in ([], ["--rehearse", "unmapped"]):
            for limit in (ROOM, (12 * 4 + 2) * PAGE):
                r = harness.run([PROGRAM, case, "14"], ["--policy", "plan", "--limit", str(limit)] + more, dict(DEVICE, REMAT_LOG="info"))
                wrong = harness.other_than(n, r, limit)
                c.ok(not wrong, "%s, learnt, %d pages %s" % (case, limit // PAGE, more), wrong)
    # an argument of its own is an operand, and has to be there
    r = harness.run([PROGRAM, "pointer"], ["--policy", "swap", "--limit", str(ROOM)], dict(DEVICE, REMAT_LOG="info"))
    c.ok(SAID not in r.err and re.search(r"map needs \d+ KiB at once; the limit", r.err), "a pointer is certain", r.out + r.err[-300:])
    # where host memory cannot be mapped, or is short, the refusal tells what is certain and what is not
    for what, options, env in (("an old driver", [], {"SIMGPU_HOST_VMM": "0"}), ("no host memory", ["--host-swap", str(9 << 19)], {})):
        r = harness.run([PROGRAM, "one"], ["--policy", "swap", "--limit", str(ROOM)] + options, dict(DEVICE, **env))
        c.ok(r.rc == 1 and "refused" in r.out, what + ": refused", "%d %s %s" % (r.rc, r.out, r.err[-300:]))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
