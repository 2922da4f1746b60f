#!/usr/bin/env python3
"""Programs as strangers write them: random training loops with every oddity that the format allows, run natively and under
remat. Whatever they do, their output is the same and the device's peak stays within the limit.
Env: PROGRAMS_SEEDS=FROM-TO runs random_train with more seeds, PROGRAMS_PERCENT and PROGRAMS_POLICIES (comma-separated) change
what each seed runs under."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

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
    (2, 0x1280000, 0),  # many small tensors, pointers nobody follows, a kernel that never repeats
    (3, 0x400000, 1),   # a flag in the arguments
    (2, 0x4000000, 20), # gradients of one to four batches are summed
]
RANDOM = [7, 13, 19, 21, 22]


# Seed 22 under swap and ThreadSanitizer takes 11 s on an idle machine and 133 s on a busy one: 120 s were no sign of a hang.
PATIENCE = 600 if harness.RUNTIME else 120


def compare(c, name, cmd, limit_pct, policies, env, least=0, timeout=PATIENCE):
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


def same_as_native(c, name, cmd, limit, keep_stats):
    native, r = harness.run(cmd), harness.run(cmd, remat=["--limit", limit, "--policy", "plan"])
    c.ok(r.rc == native.rc, name + ": exit", "%s, natively %s %s" % (r.rc, native.rc, r.err[-300:]))
    c.ok(r.out == native.out and native.out, name + ": output", r.out[-300:])
    c.ok(bool(r.stats) == keep_stats, name + ": statistics")
    return r


def folders(tmp):
    return {x for x in os.listdir(tmp) if re.match(r"remat-plan-\d", x)}


def pids_with(word):
    found = []
    for d in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % d, "rb") as f:
                if word in f.read():
                    found.append(int(d))
        except OSError:
            pass
    return found


def killed(c):
    """kill -9 in the middle: no process is left, and what is left in /tmp goes when the next one plans."""
    word = b"PROGRAMS_KILLED=%d" % os.getpid()
    for after in (0.2, 0.6, 1.5):
        env = dict(os.environ, REMAT_SIMGPU="1", PROGRAMS_KILLED=str(os.getpid()))
        env["LD_LIBRARY_PATH"] = os.path.join(harness.B, "simgpu")
        if harness.RUNTIME:
            env["LD_PRELOAD"] = harness.RUNTIME
        p = subprocess.Popen([harness.REMAT, "run", "--limit", "12800K", "--policy", "plan", "--", os.path.join(PROGRAMS, "leave"), "wait"],
                             env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(after)
        p.kill()
        p.wait()
        for _ in range(100):
            if not pids_with(word):
                break
            time.sleep(0.05)
        c.ok(not pids_with(word), "killed after %.1f s: no process left" % after)


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
        for seed, features, least in harness.drawn(SINGLE, test=2, salt="single", whole=True):
            env = dict(SMALL_PAGES, SIMGPU_CHAOS="4") if seed % 2 else SMALL_PAGES
            jobs.append(("features %x" % features, [train, str(seed), "13", "%x" % features], 75, ["plan"], env, least))
        for seed in harness.drawn(RANDOM, test=1, whole=True):
            env = dict(SMALL_PAGES, SIMGPU_CHAOS=str(seed % 5 + 1)) if seed % 2 else {}
            jobs.append(("seed %d" % seed, [train, str(seed), "10"], 60 if seed % 2 else 80, ["swap", "plan"] if seed % 3 else ["auto"], env, 0))
    with concurrent.futures.ThreadPoolExecutor(harness.WORKERS) as pool:
        for f in [pool.submit(compare, c, *j) for j in jobs]:
            f.result()
    same_as_native(c, "answers", [os.path.join(PROGRAMS, "answers")], "64M", True)
    os.environ["TMPDIR"] = tmp = tempfile.mkdtemp(prefix="remat-test-")  # other programs of this machine leave folders of their own
    for how in ("exit", "_exit", "quick_exit", "exec", "abort", "context", "fork", "reload"):
        r = same_as_native(c, "leave by " + how, [os.path.join(PROGRAMS, "leave"), how], "12800K", True)
        if how in ("exit", "context", "fork"):
            c.ok(r.stats.get("iterations_enforced", 0) > 2, "leave by %s: enforced" % how, str(r.stats))
        if how == "fork":
            fork = r
    # A loader's worker lets go of its parent's tensors: that succeeds, where nothing else does, and is nothing to the parent.
    frees = harness.run([os.path.join(PROGRAMS, "leave"), "child"], ["--limit", "12800K"])
    c.ok(frees.rc == 0 and frees.out.replace("free 0\n", "", 1) == fork.out != frees.out, "a forked child frees", frees.out[-300:] + frees.err[-300:])
    c.ok(not folders(tmp), "nothing left", str(folders(tmp)))
    killed(c)
    trace = os.path.join(tmp, "trace.json") # whoever gives the context back before the end was told that there is none
    r = harness.run([os.path.join(PROGRAMS, "leave"), "context"], ["--trace-out", trace])
    c.ok(r.rc == 0 and os.path.getsize(trace) > 1000 and "no trace" not in r.err, "leave by context: a trace is written, and not said to be missing", r.err[-300:])
    os.unlink(trace)
    same_as_native(c, "after the killed", [os.path.join(PROGRAMS, "leave"), "exit"], "12800K", True)
    c.ok(not folders(tmp), "who plans next takes away what the killed left", str(folders(tmp)))
    shutil.rmtree(tmp, ignore_errors=True)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
