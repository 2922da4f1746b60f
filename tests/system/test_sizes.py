#!/usr/bin/env python3
"""Address space is used again for other sizes: a program whose every allocation has a size of its own (tests/programs/sizes.c) goes on for
ever where little can be reserved, and what is mapped does not grow."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# 2,048 pages of device, 8,192 of address space; in 600 rounds the program asks for some 75,000
DEVICE = {"SIMGPU_MEM": "8M", "SIMGPU_GRANULARITY": "4K", "SIMGPU_VA": "32M"}


def main():
    program = os.path.join(harness.B, "programs", "sizes")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    native = harness.run([program, "600"], env=DEVICE)
    c.ok(native.rc == 0 and len(native.out.split()) == 1, "natively", native.err[-300:])
    for policy in ("swap", "plan"):
        for chaos in ("", "adversary:3"):
            env = dict(DEVICE, SIMGPU_CHAOS=chaos)
            r = harness.run([program, "600"], ["--policy", policy, "--limit", "2M"], env)
            what = "%s%s" % (policy, ", " + chaos if chaos else "")
            if not c.ok(r.rc == 0 and r.out == native.out, what + ": as natively", "exit %d %s %s" % (r.rc, r.out, r.err[-400:])):
                continue
            c.ok(r.peak <= 2 << 20, what + ": within the limit", str(r.peak))
            c.ok(r.stats["evictions"] > 100, what + ": the limit presses", str(r.stats))
            # Addresses keep what was last mapped there: those of the six live buffers, of free slots up to a quarter of all and two more,
            # and what the limit has. How many of these they are at the end is a matter of time, so two lengths cannot be compared.
            c.ok(r.device["mappings"] <= 8192 // 4 + (6 + 2) * 250 + 512, what + ": few pages stay mapped", str(r.device["mappings"]))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
