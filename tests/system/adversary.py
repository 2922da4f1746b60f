#!/usr/bin/env python3
"""Programs drawn from seeds, under remat and the adversary: whatever the device does within what is promised, what they read
back is what they read natively, bit by bit.

    adversary.py [--count N] [--seed S] [--jobs J]      runs seeds S .. S+N-1; exit 1 if one differs
                 [--kind K]                             of these the ones that have it (random_api --kinds: bits), or `none`
                 [--again]                              of these the ones that are training loops, twice each, with one cache for all: what was learnt of
                                                        one program is believed in the next, and of each in its second run
    adversary.py --only SEED [--policy P --limit L --chaos C] [--shrink]
                                                        one program in a process of its own; --shrink leaves out steps
                                                        for as long as it still differs, and prints what remains

Seeds go to a process in batches; what a batch runs under follows from its number, and is printed with every difference.
random_api --seeds N --print shows a program."""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "random_api")
BATCH, FEW = 40, 8  # seeds in one process; of those that have anything of enum kind (tests/programs/api/order.h), which changes what comes after it
CHAOS = ("adversary", "adversary:%d", "adversary:%d")


def grid(*pairs):
    return [(policy, limit, chaos) for policy, limits in pairs for limit in limits for chaos in CHAOS]


SETTINGS = grid(("swap", ("256K", "384K", "1G")), ("plan", ("320K", "512K")), ("auto", ("288K",)))
WITH_KINDS = grid(("swap", ("160K", "192K", "256K", "1G")), ("plan", ("224K",)), ("auto", ("192K",)))
LOOPS = grid(("plan", ("256K", "288K", "352K")), ("auto", ("288K",)), ("swap", ("256K",)))  # what is a training loop and no more
KINDS = ("graph", "list", "mapped", "named", "host", "handle", "context", "peer", "batch", "pool")
PEER = 1 << KINDS.index("peer")
# copies are dear beside kernels, so that a plan replays; a second device that reaches the first one's memory
LOOP_DEVICE = {"SIMGPU_HOST_BW": "5e8", "SIMGPU_BW": "20e9"}
PEER_DEVICE = {"SIMGPU_DEVICES": "2", "SIMGPU_PEERS": "1"}


class Batch:
    """Seeds first .. first+count-1, which have the same of enum kind."""

    def __init__(self, first, count, kinds, trains):
        self.first, self.count, self.kinds, self.trains = first, count, kinds, trains
        self.size = FEW if kinds else BATCH
        self.number = first // self.size

    def setting(self):
        settings = LOOPS if self.trains else WITH_KINDS if self.kinds else SETTINGS
        policy, limit, chaos = settings[(self.number + self.number // BATCH) * 7 % len(settings)]
        return policy, limit, chaos % (self.number + 1) if "%" in chaos else chaos

    def device(self):
        return dict(PEER_DEVICE if self.kinds & PEER else {}, **(LOOP_DEVICE if self.trains else {}))


def batches(first, count):
    """Of the seeds first .. first+count-1. They begin at multiples of their size, so that a seed meets the same settings whatever the first one was."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(harness.B, "simgpu"))
    told = subprocess.run([PROGRAM, "--seeds", "%d-%d" % (first, first + count - 1), "--kinds"], capture_output=True, text=True, env=env).stdout
    found = []
    for seed, kinds, trains in (tuple(int(w) for w in line.split()) for line in told.splitlines()):
        if not found or seed % found[-1].size == 0 or (kinds, trains) != (found[-1].kinds, found[-1].trains):
            found.append(Batch(seed, 0, kinds, trains))
        found[-1].count += 1
    return found


def batch_of(seed):
    """The whole batch that the seed belongs to."""
    size = batches(seed, 1)[0].size
    return batches(seed - seed % size, size)[0]


def execute(args, how=None, timeout=300, device=None, cache=None):
    """Output lines, exit status and last lines of stderr. how: (policy, limit, chaos), or None natively. device: more about the device. More on
    it than the limit is an error as any other. cache: the folder of what earlier runs have found out."""
    env = harness.preloaded(REMAT_SIMGPU="1", SIMGPU_GRANULARITY="4096", SIMGPU_MEM="256M", REMAT_BIN=harness.PLANNER, **(device or {}))
    env["LD_LIBRARY_PATH"] = os.path.join(harness.B, "simgpu") + ":" + env.get("LD_LIBRARY_PATH", "")
    env.pop("SIMGPU_CHAOS", None)
    cmd = [PROGRAM] + args
    with tempfile.TemporaryDirectory(prefix="remat-adversary-") as tmp:
        env["XDG_CACHE_HOME"] = tmp
        limit = None
        if how:
            policy, limit, chaos = how
            if chaos:
                env["SIMGPU_CHAOS"] = chaos
            if policy != "native":
                env["SIMGPU_STATS"] = os.path.join(tmp, "device")
                options, more = harness.by_environment(["--policy", policy, "--limit", limit])
                env.update(more)
                if cache:
                    env["REMAT_CACHE"] = cache
                cmd = [harness.REMAT, "run"] + options + ["--"] + ["env", "REMAT_BIN=" + harness.PLANNER] + cmd
        try:
            p = subprocess.run(cmd, env=env, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as e:
            return (e.stdout or b"").decode().split("\n")[:-1], "it hangs", ""
        most = json.load(open(env["SIMGPU_STATS"]))["peak_physical_bytes"] if os.path.exists(env.get("SIMGPU_STATS", "")) else 0
        err = p.stderr[-400:]
        if p.returncode == 0 and most > bytes_of(limit) * (2 if device and "SIMGPU_PEERS" in device else 1):
            return p.stdout.split("\n")[:-1], "with %d bytes on the device" % most, err
        return p.stdout.split("\n")[:-1], p.returncode, err


def bytes_of(limit):
    return int(limit[:-1]) << {"K": 10, "M": 20, "G": 30}[limit[-1]] if limit else 0


def differences(args, how, native, device=None, cache=None):
    """[(seed, what)]: the first thing each differing program got wrong."""
    lines, rc, err = execute(args, how, device=device, cache=cache)
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


def batch(b, cache=None):
    how = b.setting()
    args = ["--seeds", "%d-%d" % (b.first, b.first + b.count - 1)]
    native, rc, err = execute(args, device=b.device())
    if rc != 0 or len(native) != b.count:
        return [(b.first, how, "natively: exit %s %s" % (rc, err))]
    return [(seed, how, what) for _ in range(2 if cache else 1) for seed, what in differences(args, how, native, b.device(), cache)]


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
    of = batch_of(seed)
    plain = dict(os.environ, LD_LIBRARY_PATH=os.path.join(harness.B, "simgpu"))
    steps = int(subprocess.run([PROGRAM, "--seeds", str(seed), "--check"], capture_output=True, text=True, env=plain).stdout.split()[1])

    def arguments(before, left):
        args = ["--seeds", ",".join(str(s) for s in before + [seed])]
        return args + (["--without", ranges(set(range(steps)) - set(left))] if len(left) < steps else [])

    def fails(before, left):
        args = arguments(before, left)
        native, rc, _ = execute(args, timeout=60, device=of.device())
        return rc == 0 and any(s == seed for s, _ in differences(args, how, native, of.device()))
    every = list(range(steps))
    before = next((b for b in ([], list(range(of.first, seed))) if fails(b, every)), None)
    if before is None:
        print("seed %d does not differ, alone or after the others of its batch" % seed)
        return
    before = smallest(before, lambda b: fails(b, every))
    left = smallest(every, lambda s: fails(before, s)) if seed % 5 != 4 or of.kinds else every  # two at a time stay as they are
    args = arguments(before, left)
    print("random_api " + " ".join(args))
    print("\n".join(execute(args + ["--print"])[0]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=20000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--only", type=int)
    p.add_argument("--kind", choices=KINDS + ("none",))
    p.add_argument("--again", action="store_true")
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
        args, device = ["--seeds", str(a.only)], batch_of(a.only).device()
        found = differences(args, how, execute(args, device=device)[0], device)
        for seed, what in found:
            print("seed %d: %s" % (seed, what))
        return 1 if found else 0
    began, done, differing = time.time(), 0, 0
    kind = None if a.kind is None else 0 if a.kind == "none" else 1 << KINDS.index(a.kind)
    stages = [b for b in batches(a.seed, a.count) if kind is None or (b.kinds & kind if kind else not b.kinds)]
    stages = [b for b in stages if b.trains] if a.again else stages
    count = sum(b.count for b in stages)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool, tempfile.TemporaryDirectory(prefix="remat-adversary-") as cache:
        runs = {pool.submit(batch, b, cache if a.again else None): b for b in stages}
        for f in concurrent.futures.as_completed(runs):
            done += runs[f].count
            for seed, how, what in f.result():
                differing += 1
                print("\rseed %d differs under %s (batch from %d): %s" % (seed, words(how), runs[f].first, what), flush=True)
            if sys.stdout.isatty():
                print("\r%d of %d programs, %d differ, %.0f s " % (done, count, differing, time.time() - began), end="", flush=True)
    if sys.stdout.isatty():
        print()
    print("%d programs, %d differ from native" % (count, differing))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
