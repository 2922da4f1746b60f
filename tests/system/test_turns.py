#!/usr/bin/env python3
"""Batches whose sizes take turns (tests/programs/turns.c): all of one round are one iteration, which is planned and followed, though every
launch looks like that of the batch before. And sizes that become larger once, and are felt only then."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# sizes in turn, batches, limit, rounds that follow a plan at least; one size: as ever
CASES = [(1, 40, "3M", 30), (2, 40, "3M", 12), (3, 60, "3M", 12)]


def main():
    program = os.path.join(harness.B, "programs", "turns")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    env = {"SIMGPU_MEM": "8M", "SIMGPU_GRANULARITY": "8K", "SIMGPU_BW": "0.35e12", "SIMGPU_HOST_BW": "25e7", "REMAT_LOG": "debug"}
    for shapes, batches, limit, followed in CASES:
        what = "%d sizes" % shapes
        native = harness.run([program, str(shapes), str(batches)], env=env)
        c.ok(native.rc == 0 and native.out.count("iter") == batches, what + ", natively", native.err[-300:])
        r = harness.run([program, str(shapes), str(batches)], ["--policy", "plan", "--limit", limit], env)
        c.ok(r.rc == 0 and r.out == native.out, what + ": the same", "exit %d %s" % (r.rc, r.err[-500:]))
        c.ok(r.device and r.peak <= 3 << 20 < native.peak, what + ": within the limit", "%s, natively %s" % (r.peak, native.peak))
        c.ok(r.stats.get("iterations_enforced", 0) >= followed, what + ": a plan is followed", "%s %s" % (r.stats, r.err[-1500:]))
        c.ok(r.stats.get("divergences", 99) <= 1, what + ": and not left, but at the end", str(r.stats))
        c.ok(r.stats.get("swaps_steady", 1) == 0, what + ": without swapping", str(r.stats))
    first_plan(c, program, env)
    only_counted(c)
    no_more_calls(c)
    grown_later(c)
    return c.end()


def first_plan(c, program, env):
    """A batch that lives until the next one is there has slots that take turns, and small tensors want pages of their own: the planner is asked
    for what is left, so that its first plan has a map. Another plan takes as long as the first, and the program stands still for it."""
    command = [program, "1", "40", "late"]
    native = harness.run(command, env=env)
    for limit in harness.drawn((11 << 18, 23 << 17, 12 << 18), test=1, salt="first"):
        what = "a batch that lives on, %d KiB" % (limit >> 10)
        r = harness.run(command, ["--policy", "plan", "--limit", str(limit)], env)
        c.ok(r.rc == 0 and native.rc == 0 and r.out == native.out, what + ": the same", "exit %d %s" % (r.rc, r.err[-500:]))
        c.ok(r.device and r.peak <= limit < native.peak, what + ": within the limit", "%s, natively %s" % (r.peak, native.peak))
        c.ok(r.stats.get("iterations_enforced", 0) >= 30, what + ": a plan is followed", "%s %s" % (r.stats, r.err[-1500:]))
        c.ok(r.stats.get("driver_memory_calls_steady", 1) == 0, what + ": no memory call", str(r.stats))
        c.ok(not re.search("plan of .* lacks", r.err), what + ": the first one", r.err[-1500:])


def only_counted(c):
    """Without a limit iterations are counted, and what counts them looks at little once it is sure of them."""
    # what they do, at least, at most: batches of a step are no iterations; an evaluation between two is none either
    for more, least, most in harness.drawn(((["--iters", "60", "--accumulate", "4"], 50, 60),
                              (["--iters", "160", "--eval-every", "40", "--eval-batches", "3"], 145, 160)), test=1, salt="counted"):
        r = harness.run_eighth("cnn", more + ["--batch", "1"], [])
        c.ok(r.rc == 0 and least <= r.stats.get("iterations", 0) <= most, "counted: " + " ".join(more), "%s %s" % (r.stats, r.err[-300:]))


def no_more_calls(c):
    """Without a felt limit memory stays where it is mapped: each call takes 14 us on a real device, and there were hundreds in an iteration."""
    for workload in harness.drawn(("mlp", "cnn", "gpt"), test=1, salt="calls"):
        calls = []
        for iters in ("12", "32"):
            r = harness.run_eighth(workload, ["--iters", iters], ["--limit", "100%"], {"SIMGPU_GRANULARITY": "64K"})
            calls.append(r.stats.get("driver_memory_calls", 0))
            most = r.stats.get("native_peak_bytes", 0) * 3 // 2
            c.ok(r.rc == 0 and 0 < r.peak <= most, workload + ", no limit: at most half as much again as is alive", "%s %s" % (r.peak, r.stats))
        c.ok(calls[0] == calls[1] > 0, workload + ", no limit: no memory call once all have been made", str(calls))


def grown_later(c):
    """Batches that become larger: while the limit is not felt iterations are only counted, from then on they are learnt as ever."""
    train = ["--iters", "75", "--small-first", "45", "--print-loss", "--checksum"]
    native = harness.run_eighth("cnn", train)
    free = harness.run_eighth("cnn", train, [])
    c.ok(free.rc == 0 and free.out == native.out, "grown later, without a limit: the same", "exit %d %s" % (free.rc, free.err[-500:]))
    c.ok(70 <= free.stats.get("iterations", 0) <= 75, "grown later, without a limit: counted", str(free.stats))
    limit = native.peak * 75 // 100
    r = harness.run_eighth("cnn", train, ["--policy", "plan", "--limit", limit])
    why = harness.other_than(native, r, limit)
    c.ok(not why, "grown later: the same, within the limit", why)
    c.ok(r.stats.get("iterations", 0) >= 70, "grown later: counted", str(r.stats))
    c.ok(r.stats.get("iterations_enforced", 0) >= 22, "grown later: a plan is followed", "%s %s" % (r.stats, r.err[-1500:]))


if __name__ == "__main__":
    sys.exit(main())
