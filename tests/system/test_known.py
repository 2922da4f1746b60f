#!/usr/bin/env python3
"""What is known of a kernel by its code and pattern is what measuring each launch would say: an iteration is recorded the same with and without it,
where launches were taken to be known; a measured launch never contradicts it; and code that takes the place of other code under the same names is learnt
anew (facts_contradicted was 12 there with facts kept by the name alone).

REMAT_KNOWN: off measures every launch, measure does too and compares, use does not measure those that are known."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

LIMITS = {"mlp": "8704K", "cnn": "7M", "gpt": "22M"}
LAUNCHES = {"mlp": 200, "cnn": 250, "gpt": 350}  # at least so many of an iteration are of patterns that two launches before had


def recorded(workload, known):
    """The recorded iteration, without times and names of places in the program; the statistics."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "trace.json")
        r = harness.run_eighth(workload, ["--iters", "7"], remat=["--limit", LIMITS[workload], "--policy", "plan", "--trace-out", path],
                                env={"REMAT_KNOWN": known})
        trace = harness.load(path)
    trace.pop("meta", None)
    for op in trace.get("ops", []):
        for key in ("time_ns", "ns", "site"):
            op.pop(key, None)
    return (trace, r.stats) if not r.rc else ({}, {})


def reloaded(c):
    """Eight calm iterations, then modules of the same kernels by name, every other one of which changes its input, and calm again from the 20th on."""
    cmd, env = [os.path.join(harness.B, "programs", "strays"), "3", "48", "400000", "20"], {"SIMGPU_GRANULARITY": "65536", "REMAT_LOG": "debug"}
    native = harness.run(cmd, env=env)
    r = harness.run(cmd, remat=["--limit", native.peak * 6 // 10, "--policy", "plan"], env=env)
    c.ok(r.rc == 0 and r.out == native.out, "reloaded: as native", r.err[-300:])
    c.ok(r.err.count("learning took") > 1, "reloaded: learnt again")
    c.ok(r.stats.get("facts_contradicted") == 0, "reloaded: facts of other code were believed", r.err[-300:])


def main():
    c = harness.Checks()
    if harness.PART == 0:
        reloaded(c)
    for w in harness.drawn(LIMITS, test=1, check=1):
        every, _ = recorded(w, "off")
        known, stats = recorded(w, "use")
        c.ok(every.get("ops") and every == known, w, "is recorded otherwise where launches are known")
        c.ok(stats.get("facts_taken", 0) >= LAUNCHES[w], w, "%s launches were known" % stats.get("facts_taken"))
        c.ok(stats.get("facts_contradicted") == 0, w, "facts were contradicted")
        _, stats = recorded(w, "measure")
        c.ok(stats.get("facts_known", 0) >= LAUNCHES[w] and not stats["facts_taken"], w, "measured: %s" % stats)
        c.ok(stats.get("facts_contradicted") == 0, w, "facts were contradicted by measured launches")
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
