#!/usr/bin/env python3
"""What a steady iteration under a plan asks of the driver beyond what the program itself asks: calls are counted, not timed. The simulated device counts those
between cuProfilerStart and cuProfilerStop; the same iterations natively stand beside them."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

FROM, TO = 22, 30  # by iteration FROM the plan is in force, and the contexts of every thread are proven (policy/current.h)
# What remat may make more an iteration than the program makes. Comparing takes one copy of hashes to the host: it leaves the program's stream for one of
# remat's own (a record and a wait), and its arrival is an event; the iteration's time is another.
MOST = {"cuCtxGetCurrent": 0, "cuCtxSetCurrent": 0, "cuCtxGetDevice": 0, "cuPointerGetAttribute": 0, "cuStreamQuery": 0, "cuStreamGetCtx": 0,
        "cuEventRecord": 3, "cuStreamWaitEvent": 1, "cuEventQuery": 2, "cuEventSynchronize": 1, "cuEventElapsedTime": 1, "cuMemcpyDtoHAsync_v2": 1,
        "cuMemcpyHtoDAsync_v2": 0, "cuStreamSynchronize": 0, "cuCtxSynchronize": 0, "cuMemMap": 0, "cuMemUnmap": 0, "cuMemSetAccess": 0, "cuMemCreate": 0}

INPUTS = 2  # small inputs of a replay, in the mean: it reads copies of them, since a kernel may change, for certain data only, what it had only read


def main():
    c = harness.Checks()
    for workload in harness.drawn(("gpt", "mlp"), check=1, always=("gpt",)):
        options = ["--iters", str(TO), "--profile", str(FROM)]
        native = harness.run_eighth(workload, options + ["--checksum"])
        limit = native.peak * 60 // 100
        r = harness.run_eighth(workload, options + ["--checksum"], ["--limit", limit, "--policy", "plan"])
        c.ok(not harness.other_than(native, r, limit), workload + ": the same", str(harness.other_than(native, r, limit)))
        steady = r.stats.get("iterations_enforced", 0) >= TO - FROM and r.stats.get("swaps_steady") == 0
        c.ok(steady, workload + ": under a plan without copies", str(r.stats))
        own, more = native.device["profiled"], r.device["profiled"]
        replays = round(r.stats["replays"] / r.stats["iterations_enforced"]) if steady else 0
        for call, most in sorted(dict(MOST, cuMemcpyDtoDAsync_v2=INPUTS * replays).items()):
            n, was = more.get(call, 0), own.get(call, 0)
            c.ok(n - was <= most * (TO - FROM), "%s: %s: %.1f an iteration, natively %.1f" % (workload, call, n / (TO - FROM), was / (TO - FROM)), "at most %d more" % most)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
