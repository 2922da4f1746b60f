#!/usr/bin/env python3
"""Two devices in one process (tests/programs/devices.c): each holds its own limit, follows its own plan, and computes what it computes
alone. Mixed up, one device's limit would have to serve for both, or a launch would follow the other's plan."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

MIB = 1 << 20
LIMIT = 9 * MIB
ITERS = 24


def main():
    program = os.path.join(harness.B, "programs", "devices")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    env = {"SIMGPU_DEVICES": "2", "SIMGPU_GRANULARITY": "64K"}
    native = harness.run([program, str(ITERS)], env=dict(env, SIMGPU_MEM="64M"))
    c.ok(native.rc == 0 and native.out.count("sum") == 2 * ITERS, "natively", "%s %s" % (native.rc, native.err[-300:]))
    c.ok(native.peak > 2 * LIMIT * 5 // 4, "natively: neither fits its limit", str(native.peak))
    for policy in ("swap", "plan"):
        # each device has no more than its limit: whoever were to take another's share would be refused it
        r = harness.run([program, str(ITERS)], remat=["--limit", LIMIT, "--policy", policy], env=dict(env, SIMGPU_MEM=str(LIMIT)))
        c.ok(r.rc == 0 and r.out == native.out, policy + ": the same results on both", "exit %d %s" % (r.rc, r.err[-500:]))
        for i in range(2):
            # what is evicted at the end counts as its owner's, beside what is free: a little more than the limit, and less than both
            told = re.search(r"device %d total (\d+)\n" % i, r.err)
            c.ok(told and LIMIT // MIB <= int(told.group(1)) < 2 * LIMIT // MIB, "%s: device %d tells of its own limit" % (policy, i), r.err[-300:])
        c.ok(r.stats.get("limit_bytes") == 2 * LIMIT, policy + ": two limits", str(r.stats))
        c.ok(LIMIT < r.stats.get("peak_physical_bytes", 0) <= 2 * LIMIT, policy + ": both are used", str(r.stats))
        if policy == "swap":
            c.ok(r.stats.get("swaps_in", 0) > 2 * ITERS, "swap: both evict", str(r.stats))
        else:
            c.ok(r.stats.get("iterations_enforced", 0) > ITERS and r.stats.get("replays", 0) > ITERS, "plan: both follow one", str(r.stats))
            c.ok(r.stats.get("divergences") == 0, "plan: neither leaves it", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
