#!/usr/bin/env python3
"""Training loops in which something is another thing from step to step (tests/programs/kinds.c): whatever it is, a program that asks for a plan where
one is worth its while (--policy auto) takes hardly longer on the device than one that swaps."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# So many steps that one lesson is a hundredth of what swapping takes.
STEPS = 160
# What is different, and the speed of the link; what auto takes at most, x swapping; steps that follow a plan at least
KINDS = {"same": ("25e7", 0.85, 60), "accumulate": ("25e7", 0.65, 300), "apart": ("25e7", 0.9, 150), "evaluate": ("25e7", 0.9, 120), "reload": ("25e7", 0.9, 50), "keep": ("25e7", 0.9, 90), "second": ("25e7", 0.9, 100), "lengths": ("25e7", 1.03, 0),
         "any": ("25e7", 1.03, 0), "shrink": ("25e7", 1.1, 0), "bursts": ("25e7", 0.9, 30), "mixes": ("25e7", 0.72, 130), "measures": ("25e7", 0.8, 100), "same, a fast link": ("3e9", 1.03, 0)}
DEVICE = {"SIMGPU_MEM": "16M", "SIMGPU_GRANULARITY": "8K", "SIMGPU_FLOPS": "5e11", "SIMGPU_BW": "375e8", "REMAT_LOG": "info"}


def device_ns(r):
    return (r.device or {}).get("device_ns", 0)


def lessons_are_worth_it(c):
    """Over a link on which copies cost next to nothing no iteration is learnt in fourteen; over a slow one it is."""
    options = ["--iters", "14", "--checksum"]
    native = harness.run_eighth("mlp", options)
    limit = native.peak * 60 // 100
    for link, learnt in (("25e9", False), ("3e9", True)):
        r = harness.run_eighth("mlp", options, ["--policy", "auto", "--limit", limit], {"SIMGPU_HOST_BW": link})
        wrong = harness.other_than(native, r, limit)
        c.ok(not wrong, "link of %s: as natively" % link, wrong)
        c.ok((r.stats.get("learning_device_s", -1) > 0) == learnt, "link of %s: %s" % (link, "learnt" if learnt else "nothing is learnt"), str(r.stats))


def main():
    program = os.path.join(harness.B, "programs", "kinds")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for kind in harness.drawn(KINDS, test=2, check=1, always=("accumulate", "shrink")):
        link, most, followed = KINDS[kind]
        command, device = [program, kind.split(",")[0], str(STEPS)], dict(DEVICE, SIMGPU_HOST_BW=link)
        native = harness.run(command, env=device)
        c.ok(native.rc == 0 and native.out.count("step") == STEPS, kind + ": natively", native.err[-300:])
        limit = native.peak * 60 // 100
        runs = {policy: harness.run(command, ["--policy", policy, "--limit", str(limit)], device) for policy in ("swap", "auto")}
        for policy, r in runs.items():
            wrong = harness.other_than(native, r, limit)
            c.ok(not wrong, "%s, %s: as natively" % (kind, policy), wrong)
        swap, auto = (device_ns(runs[policy]) for policy in ("swap", "auto"))
        print("%s: native %.1f ms, swap %.2f x, auto %.2f x, %s steps followed a plan" % (
            kind, device_ns(native) / 1e6, swap / device_ns(native), auto / device_ns(native), runs["auto"].stats.get("iterations_enforced")))
        c.ok(0 < auto <= swap * most, kind + ": auto costs little more than swapping", "%.2f of it; %s" % (auto / max(swap, 1), runs["auto"].err[-1500:]))
        c.ok(runs["auto"].stats.get("iterations_enforced", 0) >= followed, kind + ": a plan is followed", "%s %s" % (runs["auto"].stats, runs["auto"].err[-1500:]))
        if kind == "apart":  # a plan is left where a step's last batch ends, and not in each first batch as well
            c.ok(runs["auto"].stats.get("divergences", 1e9) <= STEPS, "apart: what leaves the plan each time is not begun under it", str(runs["auto"].stats))
        if kind == "evaluate":
            c.ok("learning anew" not in runs["auto"].err, "evaluate: one lesson serves, whatever comes between iterations", runs["auto"].err[-1500:])
    lessons_are_worth_it(c)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
