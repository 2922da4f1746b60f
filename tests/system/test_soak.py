#!/usr/bin/env python3
"""Many iterations of a language model at 60 % of its memory: nothing grows. Looked at while it runs: resident memory, mappings and
address space of the process, and what the driver was asked to make less what it was asked to destroy (events, streams, physical
memory, mappings, reservations, pinned host memory). The last quarter must not hold more than what came before it, once learning is
over (an eighth of the run): launches are tried again now and then, ever more rarely, and that takes host memory for a moment.
Env: SOAK_ITERATIONS (default 1500: learning is over in the first half; `make soak`: 10,000), SOAK_POLICIES (default plan; `make soak`: plan,swap), SOAK_PROGRAM (gpt_short; `make soak`: gpt)."""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PAIRS = {  # what is held: made, given back
    "events": (("cuEventCreate",), ("cuEventDestroy_v2",)),
    "streams": (("cuStreamCreate", "cuStreamCreateWithPriority"), ("cuStreamDestroy_v2",)),
    "physical handles": (("cuMemCreate",), ("cuMemRelease",)),
    "device mappings": (("cuMemMap",), ("cuMemUnmap",)),
    "reservations": (("cuMemAddressReserve",), ("cuMemAddressFree",)),
    "pinned blocks": (("cuMemHostAlloc", "cuMemAllocHost_v2"), ("cuMemFreeHost",)),
    "modules": (("cuModuleLoad", "cuModuleLoadData"), ("cuModuleUnload",)),
}
# gpt_short is quick. gpt's update touches 8 MiB at once: its activations must be more than that for 60 % to be possible.
PROGRAM, BATCH = ("gpt", "64") if os.environ.get("SOAK_PROGRAM") == "gpt" else ("gpt_short", "8")
# By how much the last quarter may exceed what came before. Swapping maps and unmaps all the time: no number of mappings is exact.
ROOM = {"resident KiB": 1536, "address space KiB": 1024, "mappings": 24, "device mappings": 16}


def program_of(pid):
    """The process that trains: pid itself once it has become the program, or a child of it."""
    for p in [pid] + [int(d) for d in os.listdir("/proc") if d.isdigit()]:
        try:
            with open("/proc/%d/stat" % p) as f:
                name, rest = f.read().rsplit(")", 1)
            if name.split("(", 1)[1] == PROGRAM and (p == pid or int(rest.split()[1]) == pid):
                return p
        except (OSError, ValueError):
            pass
    return None


def sample(pid, device):
    held = {}
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            key, value = line.split(":", 1)
            if key in ("VmRSS", "VmSize"):
                held["resident KiB" if key == "VmRSS" else "address space KiB"] = int(value.split()[0])
    with open("/proc/%d/maps" % pid) as f:
        held["mappings"] = sum(1 for _ in f)
    try:
        with open(device) as f:
            calls = json.load(f)["calls"]
    except (OSError, ValueError):
        return held
    for what, (made, gone) in PAIRS.items():
        held[what] = sum(calls.get(c, 0) for c in made) - sum(calls.get(c, 0) for c in gone)
    return held


def soak(c, policy, iterations):
    args = [PROGRAM, "--iters", str(iterations), "--batch", BATCH, "--layers", "2", "--print-loss", "--checksum"]
    env = {"SIMGPU_GRANULARITY": "16384"}
    native = harness.run(args, env=env, timeout=6 * 3600)
    if not c.ok(native.rc == 0 and native.device, "natively", native.err[-300:]):
        return
    with tempfile.TemporaryDirectory(prefix="remat-soak-") as tmp:
        out, device, stats = (os.path.join(tmp, n) for n in ("out", "device", "stats"))
        e = dict(os.environ, SIMGPU_STATS=device, REMAT_SIMGPU="1", XDG_CACHE_HOME=tmp, **env)
        e["LD_LIBRARY_PATH"] = os.path.join(harness.B, "simgpu") + ":" + e.get("LD_LIBRARY_PATH", "")
        if harness.RUNTIME:
            e["LD_PRELOAD"] = harness.RUNTIME
        cmd = [harness.REMAT, "run", "--limit", str(native.peak * 60 // 100), "--policy", policy, "--stats", stats, "--",
               os.path.join(harness.B, "workloads", args[0])] + args[1:]
        samples, began = [], time.time()
        with open(out, "w") as f:
            p = subprocess.Popen(cmd, env=e, stdout=f, stderr=subprocess.PIPE, text=True)
            while p.poll() is None and time.time() - began < 12 * 3600:
                time.sleep(0.03 if iterations < 5000 else 1)
                with open(out) as g:
                    done = g.read().count("\n")
                try:
                    pid = program_of(p.pid)
                    if pid:
                        samples.append((done, sample(pid, device)))
                except OSError:
                    pass
        if p.returncode is None:
            p.kill()
        err = p.communicate()[1]
        with open(out) as g:
            text = g.read()
        s = json.load(open(stats)) if os.path.exists(stats) else {}
    c.ok(p.returncode == 0 and text == native.out, "%s: %d iterations as natively" % (policy, iterations), "exit %s %s" % (p.returncode, err[-400:]))
    c.ok(s.get("peak_physical_bytes", 1 << 60) <= native.peak * 60 // 100, policy + ": within the limit", str(s))
    if policy == "plan":
        c.ok(s.get("iterations_enforced", 0) >= iterations * 2 // 3, "the plan is enforced", str(s))
    # by iterations, not by time: on a busy machine planning may take longer than all of them. stdout is buffered in blocks, so the
    # number of lines lags behind: an iteration that is counted has been
    first = [x for x in samples if iterations // 8 <= x[0] < iterations * 3 // 4]
    last = [x for x in samples if x[0] >= iterations * 3 // 4]
    if not c.ok(len(first) >= 3 and len(last) >= 3, "samples", str(len(samples))):
        return
    for what in ["resident KiB", "address space KiB", "mappings"] + list(PAIRS):
        a = [held[what] for _, held in first if what in held]
        b = [held[what] for _, held in last if what in held]
        if c.ok(a and b, "%s: %s is known" % (policy, what)):
            c.ok(max(b) <= max(a) + ROOM.get(what, 0), "%s: %s do not grow" % (policy, what), "from %d to %d" % (max(a), max(b)))
            if iterations >= 1000:
                print("%-6s %-18s %9d .. %d" % (policy, what, max(a), max(b)))


def main():
    if not os.path.exists(os.path.join(harness.B, "workloads", PROGRAM)):
        print("no simulated GPU built")
        return 77
    if os.environ.get("SAN"):
        print("a sanitizer's own memory grows")
        return 77
    c = harness.Checks()
    for policy in os.environ.get("SOAK_POLICIES", "plan").split(","):
        soak(c, policy, int(os.environ.get("SOAK_ITERATIONS", "1500")))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
