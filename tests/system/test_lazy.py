#!/usr/bin/env python3
"""The driver loads kernels when they are first launched, and takes device memory for that (SIMGPU_LAZY). Under a limit that is all that the
device has, remat's memory goes back to the driver where a launch would fail for want of it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402


def main():
    program = os.path.join(harness.B, "programs", "steady")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    env = {"SIMGPU_MEM": "16M", "SIMGPU_GRANULARITY": "64K"}
    cmd = [program, "scalar", "14"]
    native = harness.run(cmd, env=env)
    c.ok(native.rc == 0 and native.out.count("iter") == 14, "natively", native.err[-300:])
    alone = harness.run(cmd, env=dict(env, SIMGPU_LAZY="16M"))
    c.ok(alone.rc != 0 and "OUT_OF_MEMORY" in alone.err, "the device fails a launch that it has no memory for", alone.err[-300:])
    small = dict(env, SIMGPU_MEM="10M", REMAT_LOG="info")
    for lazy, policy, chaos in (("256K", "swap", "adversary"), ("2850K", "swap", None), ("1M", "plan", None)):
        more = {"SIMGPU_LAZY": lazy, **({"SIMGPU_CHAOS": chaos} if chaos else {})}
        r = harness.run(cmd, ["--limit", "100%", "--policy", policy], dict(small, **more))
        what = "%s a kernel, %s" % (lazy, policy)
        c.ok(r.rc == 0 and r.out == native.out, what + ": the same", "exit %d %s" % (r.rc, r.err[-500:]))
        c.ok("went back to it" in r.err, what + ": memory went back to the driver", r.err[-500:])
        c.ok(policy != "plan" or r.stats.get("iterations_enforced", 0) >= 4, what + ": a plan all the same", str(r.stats))
    none = harness.run(cmd, ["--limit", "100%", "--policy", "swap"], dict(small, SIMGPU_LAZY="12M"))
    c.ok(none.rc != 0 and "CUDA_ERROR_OUT_OF_MEMORY" in none.err, "more than there is: the driver's own error", none.err[-500:])
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
