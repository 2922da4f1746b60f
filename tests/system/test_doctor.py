#!/usr/bin/env python3
"""remat doctor: whether this driver, PyTorch, cgroup and ulimit are fit, each found as it is: drivers and interpreters made for the purpose stand
in the way in one respect each. As text, as JSON, and by the exit status, which agree."""
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

import harness as h

check = h.Checks()
DRIVER = """
#include <string.h>
int cuInit(unsigned f) { return INIT; }
int cuDriverGetVersion(int *v) { *v = VERSION; return 0; }
int cuDeviceGetCount(int *n) { *n = COUNT; return 0; }
int cuDeviceGetName(char *s, int n, int d) { strncpy(s, "Stand-in", (unsigned long)n); return 0; }
int cuDeviceTotalMem_v2(unsigned long *b, int d) { *b = 3ul << 30; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = FITS; return 0; }
void cuMemAddressReserve(void) {} void cuMemCreate(void) {} void cuMemMap(void) {} void cuMemUnmap(void) {} void cuMemSetAccess(void) {}
void cuMemFreeAsync(void) {} void cuMemAllocFromPoolAsync(void) {}
#ifdef WHOLE
void cuMemAllocAsync(void) {} void cuFuncGetParamInfo(void) {}
#endif
"""


def doctor(env, before=None):
    """[(verdict, about, finding)], from JSON; the text says the same, and so does the exit status."""
    runs = [subprocess.run([h.REMAT, "doctor"] + more, env=env, capture_output=True, text=True, preexec_fn=before, timeout=120) for more in ([], ["--json"])]
    d = json.loads(runs[1].stdout)
    found = [(f["verdict"], f["about"], f["finding"]) for f in d["findings"]]
    rows = [re.match(r"(ok|note|BAD) +(.{11}) (.*)$", line) for line in runs[0].stdout.splitlines() if not line.endswith("stand in the way")]
    check.ok(all(rows) and [(m.group(1).lower(), m.group(2).strip(), m.group(3)) for m in rows] == found, "text and JSON say the same", runs[0].stdout)
    bad = any(f[0] == "bad" for f in found)
    check.ok([r.returncode for r in runs] == [int(bad)] * 2 and d["fit"] == (not bad) and re.fullmatch(r"[0-9.]+", d["version"]), "the exit status is the verdict",
             str(d))
    return found


def says(found, verdict, about, words):
    check.ok(any(f[0] == verdict and f[1] == about and words in f[2] for f in found), "%s %s: %s" % (verdict, about, words),
             str([f for f in found if f[1] == about]))


def drivers(tmp, env):
    for name, defines, verdict, about, words in (
            ("fit", {"WHOLE": 1}, "ok", "driver", "CUDA 12.8"),
            ("fit", {"WHOLE": 1}, "ok", "device", "0: Stand-in, 3.00 GiB, virtual memory management yes, memory pools yes"),
            ("fit", {"WHOLE": 1}, "ok", "parameters", "12.4 or newer"),
            ("partial", {}, "bad", "driver", "it has no cuMemAllocAsync"),
            ("partial", {}, "note", "parameters", "older than 12.4"),
            ("old", {"WHOLE": 1, "VERSION": 11010}, "bad", "driver", "CUDA 11.1: stream-ordered memory needs 11.2 or newer"),
            ("broken", {"WHOLE": 1, "INIT": 999}, "bad", "driver", "cuInit answers 999"),
            ("empty", {"WHOLE": 1, "COUNT": 0}, "bad", "devices", "the driver sees none (CUDA_VISIBLE_DEVICES?)"),
            ("unfit", {"WHOLE": 1, "FITS": 0}, "bad", "device", "virtual memory management NO, memory pools NO")):
        folder = os.path.join(tmp, name)
        if not os.path.exists(folder):
            os.mkdir(folder)
            with open(os.path.join(folder, "d.c"), "w") as f:
                f.write(DRIVER)
            values = dict({"VERSION": 12080, "INIT": 0, "COUNT": 1, "FITS": 1}, **defines)
            subprocess.run([os.environ.get("CC", "gcc"), "-w", "-shared", "-fPIC", "-o", os.path.join(folder, "libcuda.so.1"), os.path.join(folder, "d.c")] +
                           ["-D%s=%s" % v for v in values.items()], check=True)
        says(doctor(dict(env, LD_LIBRARY_PATH=folder)), verdict, about, words)
    with open(os.path.join(tmp, "old", "libcuda.so.1"), "w") as f:
        f.write("no library")
    if not os.path.exists("/dev/nvidiactl"):
        says(doctor(dict(env, LD_LIBRARY_PATH=os.path.join(tmp, "old"))), "note", "driver", "no libcuda.so.1 on this machine")


def pythons(tmp, env):
    folder = os.path.join(tmp, "bin")
    os.mkdir(folder)
    for body, verdict, words in (
            ("echo 2.9.1 12.8 cudaMallocAsync", "ok", "2.9.1 12.8 cudaMallocAsync"),
            ("echo 2.0.1 11.8 native", "note", "its allocator does not take backend:cudaMallocAsync"),
            ('echo 2.9.1 12.8 "$PYTORCH_CUDA_ALLOC_CONF"', "ok", "2.9.1 12.8 backend:cudaMallocAsync"),
            ("exit 3", "note", "not installed for python3"),
            ("kill -SEGV $$", "note", "python3 -c 'import torch' fails"),
            ("exit 1", "note", "python3 -c 'import torch' fails")):
        path = os.path.join(folder, "python3")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n%s\n" % body)
        os.chmod(path, 0o755)
        says(doctor(dict(env, PATH=folder + ":/usr/bin:/bin")), verdict, "pytorch", words)
    says(doctor(dict(env, PATH=os.path.join(tmp, "nowhere"))), "note", "pytorch", "no python3 in PATH")
    says(doctor(dict(env, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")), "note", "pytorch", "expandable_segments:True will be left out")


def host(tmp, env):
    says(doctor(env), "ok", "ulimit -v", "unlimited")
    found = doctor(env, lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)))
    says(found, "bad", "ulimit -v", "8.00 GiB of address space: the driver and remat reserve more; set it to unlimited")
    says(doctor(env, lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))), "note", "ulimit -l", "64.00 KiB")
    group = os.path.join(tmp, "group")
    os.mkdir(group)
    says(doctor(dict(env, REMAT_CGROUP=group)), "note", "cgroup", "has no dmem controller")
    for name, text in (("max", "nvidia/0000:01:00.0/vidmem 4096\n"), ("min", "nvidia/0000:01:00.0/vidmem 1024\n"), ("current", "")):
        with open(os.path.join(group, "dmem." + name), "w") as f:
            f.write(text)
    found = doctor(dict(env, REMAT_CGROUP=group))
    says(found, "ok", "cgroup", "dmem.max: nvidia/0000:01:00.0/vidmem 4096")
    says(found, "ok", "cgroup", "dmem.min: nvidia/0000:01:00.0/vidmem 1024")


def self_test(tmp, env):
    """A tool of which the program to train is ours: one that behaves, and others with one fault each, which have to be found."""
    place = os.path.join(tmp, "place")
    os.makedirs(os.path.join(place, "workloads"))
    for name in ("remat", "libremat.so", "remat-milp.so"):
        shutil.copy(os.path.join(h.B, name), place)
    os.symlink(os.path.join(h.B, "simgpu"), os.path.join(place, "simgpu"))
    train = 'env REMAT_BIN=%s %s/workloads/mlp "$@" --batch 4096 --layers 6' % (h.PLANNER, h.B)
    for body, rc, verdict, words in (
            ("exec " + train, 0, "ok", "by a plan: the same losses and parameters in"),
            (train + '; echo "${REMAT_LIMIT:-none}"', 1, "bad", "swapping: losses or parameters are not the native ones"),
            ("echo 1", 1, "bad", "none of the memory of workloads/mlp on the simulated GPU was seen"),
            ("echo this is why >&2; exit 3", 1, "bad", "natively: workloads/mlp on the simulated GPU fails: this is why")):
        path = os.path.join(place, "workloads", "mlp")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n%s\n" % body)
        os.chmod(path, 0o755)
        p = subprocess.run([os.path.join(place, "remat"), "doctor", "--self-test", "--json"], env=dict(env, TMPDIR=place, SIMGPU_GRANULARITY="262144"), capture_output=True,
                           text=True, timeout=120)
        found = [(f["verdict"], f["about"], f["finding"]) for f in json.loads(p.stdout)["findings"]]
        if any("after a minute" in f[2] for f in found):
            continue # too busy a machine
        says(found, verdict, "self-test", words)
        check.ok(p.returncode == rc and any(f[0] == "bad" for f in found) == bool(rc), "%s: exit %d" % (body[:20], rc), p.stdout)
        if rc == 0:
            check.ok([f[2].split(":")[0] for f in found if f[1] == "self-test"][:3] == ["natively", "swapping", "by a plan"] and
                     any(re.search(r"by a plan: .* [1-9]\d* of \d+ iterations by a plan$", f[2]) for f in found), "each run is told", str(found))
    check.ok(not [n for n in os.listdir(place) if n.startswith("remat-self")], "nothing is left")


def main():
    if os.environ.get("SAN"):
        print("tried in ordinary builds")
        return 77
    tmp = tempfile.mkdtemp(prefix="remat-doctor-")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("REMAT_", "PYTORCH_")) and k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    try:
        says(doctor(env), "ok", "library", "libremat.so")
        drivers(tmp, env)
        pythons(tmp, env)
        host(tmp, env)
        self_test(tmp, dict(env, PATH="/usr/bin:/bin"))
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
