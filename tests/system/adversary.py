#!/usr/bin/env python3
"""Programs drawn from seeds, under remat and the adversary: whatever the device does within what is promised, what they read
back is what they read natively, bit by bit.

    adversary.py [--count N] [--seed S] [--jobs J]      runs seeds S .. S+N-1; exit 1 if one differs
    adversary.py --only SEED [--policy P --limit L --chaos C] [--shrink]
                                                        one program in a process of its own; --shrink leaves out steps
                                                        for as long as it still differs, and prints what remains

Seeds go to a process in batches; what a batch runs under follows from its number, and is printed with every difference.
random_api --seeds N --print shows a program."""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "random_api")
BATCH = 40
SETTINGS = [(policy, limit, chaos) for policy, limits in (("swap", ("256K", "384K", "1G")), ("plan", ("320K", "512K")), ("auto", ("288K",)))
            for limit in limits for chaos in ("adversary", "adversary:%d", "adversary:%d")]


def setting(batch):
    policy, limit, chaos = SETTINGS[batch * 7 % len(SETTINGS)]
    return policy, limit, chaos % (batch + 1) if "%" in chaos else chaos


def execute(args, how=None, timeout=300):
    """Output lines, exit status and last lines of stderr. how: (policy, limit, chaos), or None natively."""
    env = dict(os.environ, REMAT_SIMGPU="1", SIMGPU_GRANULARITY="4096", SIMGPU_MEM="256M")
    env["LD_LIBRARY_PATH"] = os.path.join(harness.B, "simgpu") + ":" + env.get("LD_LIBRARY_PATH", "")
    env.pop("SIMGPU_CHAOS", None)
    if harness.RUNTIME:
        env["LD_PRELOAD"] = harness.RUNTIME
    cmd = [PROGRAM] + args
    with tempfile.TemporaryDirectory(prefix="remat-adversary-") as tmp:
        env["XDG_CACHE_HOME"] = tmp
        if how:
            policy, limit, chaos = how
            if chaos:
                env["SIMGPU_CHAOS"] = chaos
            if policy != "native":
                cmd = [harness.REMAT, "run", "--policy", policy, "--limit", limit, "--"] + cmd
        try:
            p = subprocess.run(cmd, env=env, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as e:
            return (e.stdout or b"").decode().split("\n")[:-1], "it hangs", ""
        return p.stdout.split("\n")[:-1], p.returncode, p.stderr[-400:]


def differences(args, how, native):
    """[(seed, what)]: the first thing each differing program got wrong."""
    lines, rc, err = execute(args, how)
    found = []
    for want, got in zip(native, lines):
        if want != got:
            w, g = want.split(), got.split()
            first = next(((a, b) for a, b in zip(w, g) if a != b), ("", ""))
            found.append((int(w[0]), "step:checksum %s, natively %s" % (first[1], first[0])))
    if rc != 0 or len(lines) != len(native):
        at = native[len(lines)].split()[0] if len(lines) < len(native) else "0"
        found.append((int(at), "exit %s %s" % (rc, err.strip())))
    return found


def words(how):
    return "--policy %s --limit %s --chaos %s" % how


def batch(number, first, count):
    how = setting(number)
    args = ["--seeds", "%d-%d" % (first, first + count - 1)]
    native, rc, err = execute(args)
    if rc != 0 or len(native) != count:
        return [(first, how, "natively: exit %s %s" % (rc, err))]
    return [(seed, how, what) for seed, what in differences(args, how, native)]


def ranges(numbers):
    out, numbers = [], sorted(numbers)
    for n in numbers:
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ",".join("%d-%d" % (a, b) for a, b in out)


def smallest(items, fails):
    """Takes ever smaller stretches out of the list while what remains fails."""
    size = max(1, len(items) // 2)
    while size and items:
        at = 0
        while at < len(items):
            attempt = items[:at] + items[at + size:]
            if fails(attempt):
                items = attempt
            else:
                at += size
        size //= 2
    return items


def shrink(seed, how):
    """First the programs before it in the same process, then its own steps, while what is left is race-free and differs."""
    plain = dict(os.environ, LD_LIBRARY_PATH=os.path.join(harness.B, "simgpu"))
    steps = int(subprocess.run([PROGRAM, "--seeds", str(seed), "--check"], capture_output=True, text=True, env=plain).stdout.split()[1])

    def arguments(before, left):
        args = ["--seeds", ",".join(str(s) for s in before + [seed])]
        return args + (["--without", ranges(set(range(steps)) - set(left))] if len(left) < steps else [])

    def fails(before, left):
        args = arguments(before, left)
        native, rc, _ = execute(args, timeout=60)
        return rc == 0 and any(s == seed for s, _ in differences(args, how, native))
    every = list(range(steps))
    before = next((b for b in ([], list(range(seed - seed % BATCH, seed))) if fails(b, every)), None)
    if before is None:
        print("seed %d does not differ, alone or after the others of its batch" % seed)
        return
    before = smallest(before, lambda b: fails(b, every))
    left = smallest(every, lambda s: fails(before, s)) if seed % 5 != 4 else every  # two at a time stay as they are
    args = arguments(before, left)
    print("random_api " + " ".join(args))
    print("\n".join(execute(args + ["--print"])[0]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=20000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--only", type=int)
    p.add_argument("--policy", default="swap", choices=["swap", "plan", "auto", "native"])
    p.add_argument("--limit", default="256K")
    p.add_argument("--chaos", default="adversary")
    p.add_argument("--shrink", action="store_true")
    a = p.parse_args()
    if not os.path.exists(PROGRAM):
        print("no simulated GPU built")
        return 77
    how = (a.policy, a.limit, a.chaos)
    if a.only is not None:
        if a.shrink:
            shrink(a.only, how)
            return 0
        args = ["--seeds", str(a.only)]
        found = differences(args, how, execute(args)[0])
        for seed, what in found:
            print("seed %d: %s" % (seed, what))
        return 1 if found else 0
    began, done, differing, stages = time.time(), 0, 0, []
    at = a.seed
    while at < a.seed + a.count:
        # batches start at multiples, so that a seed meets the same settings whatever the first one was
        n = min(BATCH - at % BATCH, a.seed + a.count - at)
        stages.append((at // BATCH, at, n))
        at += n
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for f in concurrent.futures.as_completed([pool.submit(batch, *s) for s in stages]):
            found = f.result()
            done += BATCH
            for seed, how, what in found:
                differing += 1
                print("\rseed %d differs under %s (batch from %d): %s" % (seed, words(how), seed - seed % BATCH, what), flush=True)
            if sys.stdout.isatty():
                print("\r%d of %d programs, %d differ, %.0f s " % (min(done, a.count), a.count, differing, time.time() - began), end="", flush=True)
    if sys.stdout.isatty():
        print()
    print("%d programs, %d differ from native" % (a.count, differing))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
