#!/usr/bin/env python3
"""Programs as strangers write them: random training loops with every oddity that the format allows, run natively and under
remat. Whatever they do, their output is the same and the device's peak stays within the limit.
Env: PROGRAMS_SEEDS=FROM-TO runs random_train with more seeds, PROGRAMS_PERCENT and PROGRAMS_POLICIES (comma-separated) change
what each seed runs under."""
import concurrent.futures
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAMS = os.path.join(harness.B, "programs")
SMALL_PAGES = {"SIMGPU_GRANULARITY": "65536"}
# what each feature bit of random_train adds: (seed, features, at least so many iterations enforced under a plan at 75 %)
SINGLE = [
    (3, 0x1, 6),        # a buffer written in two launches
    (3, 0x2, 1),        # in place, without effect at first
    (2, 0x4, 6),        # running statistics
    (2, 0x8, 6),        # views and slices
    (3, 0x30, 0),       # pointer arrays, and a kernel that writes through one unseen
    (3, 0x1c0, 6),      # a counter, random numbers, a semaphore
    (2, 0x600, 6),      # copies and fills, weights in cuMemAlloc memory
    (3, 0x7800, 6),     # a pool, two streams, two threads, the per-thread default stream
    (2, 0x18000, 0),    # tensors that live across the boundary, frees that come late
    (3, 0x40000, 0),    # evaluation
    (2, 0x1280000, 6),  # many small tensors, pointers nobody follows, a kernel that never repeats
    (3, 0x400000, 1),   # a flag in the arguments
]
RANDOM = [7, 12, 13, 16, 19, 21, 22]


def compare(c, name, cmd, limit_pct, policies, env, least=0, timeout=120):
    native = harness.run(cmd, env={k: v for k, v in env.items() if k != "SIMGPU_CHAOS"}, timeout=timeout)
    if not c.ok(native.rc == 0 and native.device, name + " native", native.err[-300:]):
        return
    limit = native.peak * limit_pct // 100
    for policy in policies:
        n = "%s at %d %%, %s" % (name, limit_pct, policy)
        try:
            r = harness.run(cmd, remat=["--limit", limit, "--policy", policy], env=env, timeout=timeout)
        except subprocess.TimeoutExpired:
            c.ok(False, n + ": it hangs")
            continue
        c.ok(r.rc == 0, n + ": exit", "%s %s" % (r.rc, r.err[-500:]))
        c.ok(r.out == native.out, n + ": output")
        c.ok(r.device and r.peak <= limit, n + ": peak", "%s > %d" % (r.device.get("peak_physical_bytes"), limit))
        c.ok(r.stats.get("limit_bytes") == limit, n + ": statistics")
        if policy == "plan":
            c.ok(r.stats.get("iterations_enforced", 0) >= least, n + ": enforced", str(r.stats) + r.err[-300:])


def left_behind(before):
    now = set(os.listdir("/tmp")) | set(os.listdir("/dev/shm"))
    return [x for x in now - before if "remat" in x and "remat-test" not in x]


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    train = os.path.join(PROGRAMS, "random_train")
    jobs = []
    if "PROGRAMS_SEEDS" in os.environ:
        first, last = os.environ["PROGRAMS_SEEDS"].split("-")
        for seed in range(int(first), int(last) + 1):
            env = dict(SMALL_PAGES) if seed % 4 else {}
            if seed % 2:
                env["SIMGPU_CHAOS"] = str(seed % 5 + 1)
            for pct in os.environ.get("PROGRAMS_PERCENT", "75,60,50").split(","):
                jobs.append(("seed %d" % seed, [train, str(seed), "14"], int(pct),
                             os.environ.get("PROGRAMS_POLICIES", "swap,plan,auto").split(","), env, 0))
    else:
        for seed, features, least in SINGLE:
            env = dict(SMALL_PAGES, SIMGPU_CHAOS="4") if seed % 2 else SMALL_PAGES
            jobs.append(("features %x" % features, [train, str(seed), "13", "%x" % features], 75, ["plan"], env, least))
        for seed in RANDOM:
            env = dict(SMALL_PAGES, SIMGPU_CHAOS=str(seed % 5 + 1)) if seed % 2 else {}
            jobs.append(("seed %d" % seed, [train, str(seed), "10"], 60 if seed % 2 else 80, ["swap", "plan"] if seed % 3 else ["auto"], env, 0))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for f in [pool.submit(compare, c, *j) for j in jobs]:
            f.result()
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
