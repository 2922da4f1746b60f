#!/usr/bin/env python3
"""Comparing never ends: a kernel that stops repeating itself long after rehearsal stops the program, by name; all of a plan's
rebuilt values are compared within sixteen iterations; it costs less than one part in a hundred of device time."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

checks = harness.Checks()
LEARNING = os.path.join(harness.B, "programs", "learning")


def learning(case, iterations, *options, pages="64K"):
    return harness.run([LEARNING, case, str(iterations)], ["--policy", "plan", "--limit", "60%"] + list(options),
                       {"SIMGPU_MEM": "4M", "SIMGPU_GRANULARITY": pages})


def drift():
    quiet = learning("drift", 60, "--verify", "off")
    checks.ok(quiet.rc == 0 and quiet.stats.get("iterations_enforced", 0) > 20, "drift, nobody looks: runs under a plan to its end",
              "%s %s %s" % (quiet.rc, quiet.stats, quiet.err[-500:]))
    seen = learning("drift", 120)
    lines = seen.out.count("iter ")
    checks.ok(seen.rc != 0 and "can no longer be trusted" in seen.err and "(drift)" in seen.err, "drift: stopped, the kernel named",
              "%s %s" % (seen.rc, seen.err[-800:]))
    # 500 calls are over after 42 iterations at most; sixteen more compare everything, and two until the host looks
    checks.ok(lines <= 42 + 16 + 2, "drift: within sixteen iterations", "%d iterations" % lines)


def tiny_pages():
    """Where a page has no room for whole tables of hashes, smaller ones do."""
    seen = learning("drift", 120, pages="4K")
    checks.ok(seen.rc != 0 and "can no longer be trusted" in seen.err and "are not compared" not in seen.err, "tiny pages: stopped",
              "%s %s" % (seen.rc, seen.err[-800:]))


def run(name, *more):
    """An eighth of gpt has no room for saved values, hashes and chunks in part beside half of its tensors."""
    return harness.run([name] + more[0], *more[1:]) if name == "gpt" else harness.run_eighth(name, *more)


def plan_at_half(name, folder):
    """A plan for half the native peak, and the limit it may be followed at: both runs below follow one plan, whichever it is. Under remat
    there are saved values, hashes and chunks in part beside a plan's tensors, for which it gets a tenth more."""
    trace, plan = os.path.join(folder, "trace.json"), os.path.join(folder, "plan.json")
    native = run(name, ["--iters", "6"], ["--policy", "off", "--trace-out", trace])
    room = native.peak // 2
    made = subprocess.run([harness.PLANNER, "plan", trace, "--limit", str(room), "--solver", "best", "--time-limit", "4", "--no-offload", "-o", plan],
                          capture_output=True, text=True, timeout=300)
    checks.ok(made.returncode == 0, "%s: a plan" % name, made.stderr[-500:])
    return plan, room * 11 // 10


def all_in_turn(name):
    out = {}
    with tempfile.TemporaryDirectory(prefix="remat-verify-") as folder:
        plan, limit = plan_at_half(name, folder)
        for verify in ("off", "sample"):
            out[verify] = run(name, ["--iters", str(harness.so_many(40, test=28))],
                              ["--policy", "plan", "--plan", plan, "--limit", limit, "--verify", verify])
    off, on = out["off"].stats, out["sample"].stats
    enforced = on.get("iterations_enforced", 0)
    a_round = on.get("replays", 0) / max(1, enforced + 1) # a replay makes one value at least
    rounds = enforced // 16
    in_force = on.get("verify_checked", 0) - off.get("verify_checked", 0)
    checks.ok(rounds >= 1 and in_force >= rounds * a_round, "%s: every rebuilt value within sixteen iterations" % name,
              "%d compared in %d iterations of %.0f replays" % (in_force, enforced, a_round))
    checks.ok(on.get("verify_failed") == 0, "%s: nothing differs" % name, str(on))
    ratio = on.get("device_ns_per_iteration", 0) / max(1, off.get("device_ns_per_iteration", 1))
    checks.ok(0 < ratio < 1.01, "%s: less than 1 %% of device time" % name, "%.4f" % ratio)
    print("%s: %.3f %% of device time, %d values compared in %d iterations" % (name, 100 * (ratio - 1), in_force, enforced))


drift()
tiny_pages()
for name in harness.drawn(("mlp", "cnn"), test=1) + harness.drawn(("gpt",), test=0):
    all_in_turn(name)
sys.exit(checks.end())
