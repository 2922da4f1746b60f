#!/usr/bin/env python3
"""The main promise: every workload, under less memory than it needs, computes the very same numbers, and the device's own
high-water mark stays within the limit. Policies swap and plan, 75, 60 and 50 % of the native peak, orderly and in chaos.
Env: E2E_WORKLOADS, E2E_PERCENT (comma-separated) narrow it."""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

ITERS = 16
WORKLOADS = os.environ.get("E2E_WORKLOADS", "mlp,cnn,gpt").split(",")
PERCENT = [int(x) for x in os.environ.get("E2E_PERCENT", "75,60,50").split(",")]
ARGS = ["--iters", str(ITERS), "--print-loss", "--checksum", "--iter-time"]


def floor_of(workload):
    """The least memory any plan can do with, as remat plan tells it from a trace, in chunks and with the arenas."""
    with tempfile.TemporaryDirectory() as tmp:
        t = os.path.join(tmp, "trace.json")
        r = harness.run_eighth(workload, ["--iters", "8"], remat=["--limit", "8G", "--policy", "swap", "--trace-out", t])
        if r.rc or not os.path.exists(t):
            return None
        p = subprocess.run([harness.REMAT, "plan", t, "--limit", "100%", "--solver", "none", "--json"],
                           capture_output=True, text=True)
        return json.loads(p.stdout)["floor_bytes"]


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    native, floor = {}, {}
    for w in WORKLOADS:
        native[w] = harness.run_eighth(w, ARGS)
        if not c.ok(native[w].rc == 0 and len(native[w].losses) == ITERS and native[w].checksum, w + " native", native[w].err):
            return c.end()
        floor[w] = floor_of(w)
        c.ok(floor[w], w + ": a trace and its floor")
    jobs = []
    for w in WORKLOADS:
        for pct in PERCENT:
            limit = max(native[w].peak * pct // 100, int((floor[w] or 0) * 1.1))
            for policy in ("swap", "plan"):
                for chaos in (None, "7"):
                    jobs.append((w, pct, limit, policy, chaos))
    jobs = harness.drawn(jobs, test=6, check=3)

    def one(job):
        w, pct, limit, policy, chaos = job
        return harness.run_eighth(w, ARGS, remat=["--limit", limit, "--policy", policy],
                           env={"SIMGPU_CHAOS": chaos} if chaos else None)

    time = {}
    with concurrent.futures.ThreadPoolExecutor(harness.WORKERS) as pool:
        for job, r in zip(jobs, pool.map(one, jobs)):
            w, pct, limit, policy, chaos = job
            name = "%s at %d %%, %s%s" % (w, pct, policy, ", chaos" if chaos else "")
            n = native[w]
            if not c.ok(r.rc == 0, name + ": exit", "%s %s" % (r.rc, r.err[-600:])):
                continue
            c.ok(r.losses == n.losses, name + ": losses")
            c.ok(r.checksum == n.checksum, name + ": checksum")
            c.ok(r.peak <= limit, name + ": device peak", "%d > %d" % (r.peak, limit))
            c.ok(r.stats.get("peak_physical_bytes", 0) <= limit, name + ": own peak")
            if policy == "plan":
                s = r.stats
                c.ok(s.get("iterations_enforced", 0) >= 10, name + ": enforced", str(s))
                c.ok(s.get("replays", 0) > 0, name + ": replays")
                c.ok(s.get("swaps_steady", 1) == 0, name + ": no swap in a steady iteration", str(s))
                c.ok(s.get("verify_failed", 1) == 0, name + ": nothing rebuilt differed")
            t = r.iter_ms()
            if not chaos and len(t) == ITERS:
                time[w, pct, policy] = sum(t[-4:]) / 4
    for w in WORKLOADS:
        if 50 in PERCENT and (w, 50, "plan") in time and (w, 50, "swap") in time:
            c.ok(time[w, 50, "plan"] < time[w, 50, "swap"], w + ": plan is faster than swap at 50 %",
                 "%.3f ms against %.3f ms" % (time[w, 50, "plan"], time[w, 50, "swap"]))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
