#!/usr/bin/env python3
"""`--rehearse unmapped`: a kernel that reads an evicted tensor in a way which no argument shows faults and is named; programs without
such a kernel give what they gave, and their plan is in force afterwards, without a memory call."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "learning")
DEVICE = {"SIMGPU_GRANULARITY": "8192", "SIMGPU_BW": "5e9", "SIMGPU_HOST_BW": "6e9"}
UNMAPPED = ["--rehearse", "unmapped"]


def losses(r):
    return re.findall(r"^iter .*", r.out, re.M)


def hidden(c):
    native = harness.run([PROGRAM, "seek"], env=DEVICE)
    c.ok(native.rc == 0, "seek native")
    r = harness.run([PROGRAM, "seek"], remat=["--limit", 2425000, "--policy", "plan"], env=DEVICE)
    c.ok(losses(r) != losses(native), "plan: the plan at this limit drops what is read unseen", r.err[-500:])
    for policy, limit in ("plan", 2425000), ("swap", 1250000):
        r = harness.run([PROGRAM, "seek"], remat=["--limit", limit, "--policy", policy] + UNMAPPED, env=DEVICE)
        said = re.findall(r"remat\[\d+\]: (\w+) touched memory that is evicted and that none of its arguments shows", r.err)
        c.ok(said == ["seek"], policy + ": the kernel is named, once", r.err[-500:])
        c.ok(r.rc == 3 and "f_seek" in r.err and "CUDA_ERROR_ILLEGAL_ADDRESS" in r.err, policy + ": the program gets the driver's error from that launch", "%s %s" % (r.rc, r.err[-500:]))
        c.ok(native.out.startswith(r.out) and "checksum" not in r.out, policy + ": nothing wrong was computed before")


def no_false_alarm(c):
    for case, limit, enforced in (("untouched", 2625000, 8), ("map", 2625000, 8), ("stale", 2925000, 4)):
        native = harness.run([PROGRAM, case], env=DEVICE)
        r = harness.run([PROGRAM, case], remat=["--limit", limit, "--policy", "plan"] + UNMAPPED, env=DEVICE)
        c.ok(r.rc == 0 and r.out == native.out, case + ": as natively", "%s %s" % (r.rc, r.err[-500:]))
        c.ok(r.stats.get("iterations_enforced", 0) >= enforced, case + ": enforced", str(r.stats))
    options = ["--iters", "16", "--print-loss", "--checksum"]
    native = harness.run_eighth("mlp", options)
    r = harness.run_eighth("mlp", options, remat=["--limit", native.peak // 2, "--policy", "plan"] + UNMAPPED)
    c.ok(r.rc == 0 and r.losses == native.losses and r.checksum == native.checksum, "mlp: as natively", r.err[-500:])
    c.ok(r.peak <= native.peak // 2, "mlp: the limit holds")
    c.ok(r.stats.get("iterations_enforced", 0) >= 8 and r.stats.get("driver_memory_calls_steady") == 0, "mlp: the plan's places are as installed", str(r.stats))


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    p = subprocess.run([harness.REMAT, "run", "--rehearse", "sometimes", "--", "true"], capture_output=True, text=True)
    c.ok(p.returncode == 125 and "--rehearse" in p.stderr and "unmapped" in p.stderr, "a wrong word", "%s %s" % (p.returncode, p.stderr))
    hidden(c)
    no_false_alarm(c)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
