#!/usr/bin/env python3
"""Iterations that depart from the recorded one are as right as any other: evaluation in between, an early break, smaller
batches, late frees, what is read late, accumulation, a second stream, refused allocations, every way to the driver's entry points."""
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

ITERS = 20
BASE = ["--iters", str(ITERS), "--print-loss", "--checksum"]
# (workload, options, at least so many iterations enforced under a plan)
CASES = [
    ("cnn", ["--eval-every", "4"], 10),
    ("gpt", ["--eval-every", "5"], 9),
    ("mlp", ["--early-break", "11"], 10),
    ("cnn", ["--early-break", "3"], 8),
    ("cnn", ["--vary-batch"], 4),
    ("mlp", ["--accumulate", "2"], 10),
    # what is read back now and then, a list that grows, a loop of batches within the iteration
    ("gpt", ["--loss-every", "3"], 10),
    ("cnn", ["--loss-every", "4", "--eval-every", "5"], 8),
    ("mlp", ["--keep-losses", "--loss-every", "5"], 10),
    ("cnn", ["--eval-every", "5", "--eval-batches", "12"], 9),
    ("cnn", ["--accumulate", "4"], 10),
    ("mlp", ["--accumulate", "4", "--keep-losses"], 10),
    ("gpt", ["--late-free"], 10),
    ("mlp", ["--late-free"], 10),
    ("gpt", ["--late-read"], 10),
    ("mlp", ["--late-read"], 10),
    ("cnn", ["--streams", "2"], 10),
    ("gpt", ["--streams", "2"], 10),
    ("mlp", ["--route", "dlsym", "--extra"], 10),
    ("cnn", ["--route", "procaddr", "--use-kernel-handles"], 10),
]


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()

    def one(case):
        w, opts, _ = case
        native = harness.run_eighth(w, BASE + opts)
        limit = native.peak * 60 // 100 if native.device else 0
        chaos = {"SIMGPU_CHAOS": "3"} if "--streams" in opts else None
        return native, limit, [(p, harness.run_eighth(w, BASE + opts, remat=["--limit", limit, "--policy", p], env=chaos))
                               for p in ("swap", "plan")]

    with concurrent.futures.ThreadPoolExecutor(harness.WORKERS) as pool:
        cases = harness.drawn(CASES, test=1, check=1)
        for case, (native, limit, runs) in zip(cases, pool.map(one, cases)):
            w, opts, least = case
            if not c.ok(native.rc == 0 and native.checksum, "%s %s native" % (w, opts), native.err):
                continue
            for policy, r in runs:
                name = "%s %s, %s" % (w, " ".join(opts), policy)
                c.ok(r.rc == 0, name + ": exit", "%s %s" % (r.rc, r.err[-500:]))
                c.ok(r.losses == native.losses and r.checksum == native.checksum, name + ": results")
                c.ok(r.device and r.peak <= limit, name + ": peak", str(limit))
                if policy == "plan":
                    c.ok(r.stats.get("iterations_enforced", 0) >= least, name + ": enforced", str(r.stats))

    if harness.PART or harness.TIER == "check":
        return c.end()
    # past any plan: the driver's own code, one line, and the program goes on
    native = harness.run_eighth("mlp", BASE)
    for policy in ("swap", "plan"):
        limit = native.peak * 60 // 100
        r = harness.run_eighth("mlp", BASE + ["--oom", str(limit + (8 << 20))], remat=["--limit", limit, "--policy", policy])
        c.ok(r.rc == 0 and "CUDA_ERROR_OUT_OF_MEMORY" in r.out, "refused allocation, %s" % policy, r.out[-300:] + r.err[-300:])
        c.ok(r.losses == native.losses and r.checksum == native.checksum, "after a refused allocation, %s: results" % policy)
        lines = [x for x in r.err.splitlines() if "out of memory" in x]
        c.ok(len(lines) == 1, "one explaining line, %s" % policy, r.err[-500:])

    # no limit, and shut doors: nothing changes either
    for opts, env in ((["--policy", "auto"], None), (["--policy", "off"], None), (["--limit", "50%"], {"REMAT_DISABLE": "1"})):
        r = harness.run_eighth("mlp", BASE, remat=opts, env=env)
        c.ok(r.rc == 0 and r.losses == native.losses and r.checksum == native.checksum, "as native: %s %s" % (opts, env), r.err)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
