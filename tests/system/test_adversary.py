#!/usr/bin/env python3
"""A slice of `make adversary`: programs drawn from seeds, on a device as unkind as its promises allow, under remat as they are
natively. And that the slice is worth something: the programs have one result without remat, whatever the device does, and under
remat tensors leave and come back, plans are enforced, and two threads and short-lived streams take part.
Env: ADVERSARY_COUNT programs (default 600, fewer in the smaller suites and under a sanitizer)."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import adversary  # noqa: E402
import harness  # noqa: E402


def main():
    if not os.path.exists(adversary.PROGRAM):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    few = bool(os.environ.get("SAN"))
    count = int(os.environ.get("ADVERSARY_COUNT", "100" if few else str(harness.so_many(600, test=90, check=60))))
    first = 1 + harness.drawn(range(max(1, 600 // count)), test=1, whole=True)[0] * count  # of the 600 a stretch
    p = subprocess.run([sys.executable, adversary.__file__, "--count", str(count), "--seed", str(first)], capture_output=True, text=True)
    c.ok(p.returncode == 0 and "%d programs, 0 differ" % count in p.stdout, "under remat", p.stdout[-3000:] + p.stderr[-500:])

    # of the first 72 seeds half are training loops; another stretch of as many may have none
    p = subprocess.run([sys.executable, adversary.__file__, "--again", "--count", str(harness.so_many(400, test=72)), "--seed", "1"], capture_output=True, text=True)
    c.ok(p.returncode == 0 and re.search(r"^[1-9]\d* programs, 0 differ", p.stdout, re.M), "twice each, with one cache for all", p.stdout[-3000:] + p.stderr[-500:])

    many = 40 if few else harness.so_many(100, test=40)
    seeds = ["--seeds", "1-%d" % many]
    native, rc, err = adversary.execute(seeds)
    c.ok(rc == 0 and len(native) == many, "natively", err)
    for seed in range(0, 2 if few else 4):
        got, rc, err = adversary.execute(seeds, ("native", "", "adversary:%d" % seed if seed else "adversary"))
        c.ok(rc == 0 and got == native, "one result without remat, adversary %d" % seed, err)

    text = "\n".join(adversary.execute(["--seeds", "1-60", "--print"])[0])
    for word in ("second thread", "free_sync", "on short", "on legacy", "on thread", "on blocking", "call_read", "up_paged", "drop_event",
                 "poll_event", "fill_part", "copy_sync", "destroy"):
        c.ok(word in text, "the programs have: " + word)
    # each kind begins a stretch of eight seeds: all are met within the first thousand
    text = "\n".join(adversary.execute(["--seeds", ",".join(str(b.first) for b in adversary.batches(1, 1000) if b.kinds), "--print"])[0])
    for word in ("list_up", "list_poke", "list_lay", "list_copy", "from_list", "to_list", "from_named", "poke", "peek", "graph_make", "graph_run", "graph_up", "show",
                 "textured", "surface", "array_up", "tensor_map", "batch", "batch_up", "peer_copy", "beside_capture", "trim", "in green", "in second device", "mapped",
                 "managed", "pinned", "remote", "named", "array"):
        c.ok(re.search(r"\b%s\b" % word, text), "the programs have: " + word)
    kinds = [b for b in adversary.batches(1, 200) if b.kinds][:3 if few else harness.so_many(10, test=6)]
    for b in kinds:
        seeds = ["--seeds", "%d-%d" % (b.first, b.first + b.count - 1)]
        native = adversary.execute(seeds, device=b.device())
        got = [adversary.execute(seeds, ("native", "", chaos), device=b.device()) for chaos in ("adversary", "adversary:3")]
        c.ok(native[1] == 0 and all(g[:2] == native[:2] for g in got), "one result without remat, from seed %d on" % b.first, native[2] + got[0][2] + got[1][2])
    # what is left out takes along what rests on it, and nothing else changes
    whole = adversary.execute(["--seeds", "3"])[0]
    less = adversary.execute(["--seeds", "3", "--without", "0-20"])
    c.ok(less[1] == 0 and less[0] != whole, "steps left out")
    c.ok(adversary.execute(["--seeds", "x"])[1] == 2 and adversary.execute([])[1] == 2, "usage")

    with tempfile.TemporaryDirectory() as tmp:
        stats = os.path.join(tmp, "stats")
        env = harness.preloaded(REMAT_SIMGPU="1", SIMGPU_GRANULARITY="4096", REMAT_LIMIT="200K", XDG_CACHE_HOME=tmp, LD_LIBRARY_PATH=os.path.join(harness.B, "simgpu"))
        p = subprocess.run([harness.REMAT, "run", "--policy", "plan", "--stats", stats, "--", adversary.PROGRAM, "--seeds", "1-80"],
                           env=env, capture_output=True, text=True, timeout=300 * harness.SLOWER)
        c.ok(p.returncode == 0, "80 programs in one process", "exit %d %s" % (p.returncode, p.stderr[-500:]))
        with open(stats) as f:
            s = json.load(f)
    for key, least in (("swaps_in", 100), ("swaps_out", 100), ("iterations", 50), ("iterations_enforced", 0 if few else 1)):
        c.ok(s[key] >= least, "%s at least %d" % (key, least), str(s))
    # a program that does differ is reported with its seed, and the exit status says so
    fake = adversary.differences(["--seeds", "5"], None, [re.sub(r":\w+", ":0", adversary.execute(["--seeds", "5"])[0][0], count=1)])
    c.ok(len(fake) == 1 and fake[0][0] == 5 and "natively" in fake[0][1], "a difference is seen", str(fake))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
