#!/usr/bin/env python3
"""Every n-th driver call fails in turn (SIMGPU_FAULTS): memory, stream, event, module and launch calls, whoever makes them, the
program or remat. Each run ends with what the program prints natively, or with the driver's error in the program's own words and
nothing wrong printed before; never with wrong results, a hang or a crash.

Programs: mlp with two streams, and two drawn from seeds (tests/programs/README.md), one that swaps and one that comes as far as an
enforced plan. n goes up to the number of such calls that the run makes without a fault.
Env: FAULTS_MOST n values for each call (default 1, drawn anew for each call; `make faults`: 25, spread evenly; 0: all of them),
FAULTS_ONLY=call:n with FAULTS_PROGRAM=NAME runs one and prints what came of it."""
import concurrent.futures
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

API = os.path.join(harness.B, "programs", "random_api")
PAGES = {"SIMGPU_GRANULARITY": "16384"}
TINY = {"SIMGPU_GRANULARITY": "4096"}
PROGRAMS = {
    "mlp": (["mlp", "--iters", "10", "--batch", "256", "--layers", "4", "--streams", "2", "--print-loss", "--checksum"], "plan", 610000, PAGES),
    "seed 12": ([API, "--seeds", "12"], "swap", 160 << 10, TINY),
    "seed 163": ([API, "--seeds", "163"], "plan", 200 << 10, TINY),
}
# wrong results once: a hash or a repeat of the probe failed, a kernel whose parameters could not be read wrote what was thought blank
ALWAYS = [("mlp", "cuLaunchKernel:307"), ("mlp", "cuMemcpyHtoDAsync_v2:195"), ("mlp", "cuStreamQuery:1526"), ("mlp", "cuStreamSynchronize:71"),
          ("seed 163", "cuMemcpyDtoHAsync_v2:108"), ("seed 163", "cuStreamQuery:1103"), ("seed 163", "cuFuncGetParamInfo:1")]
FAMILIES = ("cuMem", "cuStream", "cuEvent", "cuModule", "cuLibrary", "cuKernel", "cuFunc", "cuLaunch", "cuPointer")


def run(name, fault=None):
    cmd, policy, limit, env = PROGRAMS[name]
    env = dict(env, SIMGPU_FAULTS=fault) if fault else env
    return harness.run(cmd, remat=["--limit", limit, "--policy", policy], env=env, timeout=600 if harness.RUNTIME else 120)


def verdict(r, native):
    """None, or what is wrong with a run that had a fault."""
    if r.rc == 0:
        return None if r.out == native.out else "wrong results"
    if r.rc < 0 or r.rc >= 128:
        return "crash (exit %d)" % r.rc
    whole = r.out[:r.out.rfind("\n") + 1]
    if not native.out.startswith(whole):
        return "wrong results before the error"
    return None if re.search(r"CUDA_ERROR_\w+", r.err) else "exit %d without the driver's error" % r.rc


def values(call, count, most):
    if most == 0 or count <= most:
        return range(1, count + 1)
    if most == 1:
        return [random.Random(call).randint(1, count)]
    return sorted({1 + round(i * (count - 1) / (most - 1)) for i in range(most)})


def main():
    if not os.path.exists(API):
        print("no simulated GPU built")
        return 77
    most = int(os.environ.get("FAULTS_MOST", "1"))
    if "FAULTS_ONLY" in os.environ:
        name = os.environ.get("FAULTS_PROGRAM", "mlp")
        r, native = run(name, os.environ["FAULTS_ONLY"]), run(name)
        print(r.out[-2000:], r.err[-4000:], "exit %d: %s" % (r.rc, verdict(r, native) or "right"), sep="\n")
        return 0
    c = harness.Checks()
    jobs = []
    natives = {}
    for name in PROGRAMS:
        cmd, _, _, env = PROGRAMS[name]
        native, plain = harness.run(cmd, env=env), run(name)
        c.ok(plain.rc == 0 and plain.out == native.out, name + " without faults", plain.err[-300:])
        c.ok(plain.stats.get("evictions", 0) > 0, name + " evicts", str(plain.stats))
        natives[name] = native
        calls = plain.device.get("calls", {})
        for call in sorted(k for k in calls if k.startswith(FAMILIES)):
            jobs += [(name, "%s:%d" % (call, n), native) for n in values(name + call, calls[call], most)]

    c.ok(len(jobs) > 60, "enough calls", str(len(jobs)))
    copies = [j for j in jobs if j[1].startswith("cuMemcpy")]  # always: a refused copy that counts as made is a wrong tensor
    jobs = copies + harness.drawn([j for j in jobs if j not in copies], test=18) + [(name, fault, natives[name]) for name, fault in harness.drawn(ALWAYS)]

    def one(job):
        name, fault, native = job
        try:
            r = run(name, fault)
        except subprocess.TimeoutExpired:
            return name, fault, "hang", ""
        return name, fault, verdict(r, native), r.err[-400:]
    ended = 0
    with concurrent.futures.ThreadPoolExecutor(harness.WORKERS) as pool:
        for name, fault, wrong, err in pool.map(one, jobs):
            c.ok(wrong is None, "%s with %s:" % (name, fault), "%s %s" % (wrong, err.strip()))
            ended += 1
            if sys.stdout.isatty():
                print("\r%d of %d faults " % (ended, len(jobs)), end="", flush=True)
    if sys.stdout.isatty():
        print()
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
