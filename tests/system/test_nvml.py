#!/usr/bin/env python3
"""NVML's answers agree with the limit inside the process: memory (both versions), process lists (all versions), before cuInit and after;
what NVML knows of limits is the default limit. NVML is a stand-in (tests/conformance/fake_nvml.c)."""
import os
import sys

import harness as h

MIB = 1 << 20
TOTAL = 512 * MIB
NVML = os.path.join(h.B, "conformance", "libnvidia-ml.so.1")
PROGRAM = os.path.join(h.B, "programs", "nvml_view")
BINDINGS = """import ctypes, sys
class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_ulonglong) for n in ("total", "free", "used")]
lib, m, handle = ctypes.CDLL(sys.argv[1]), Memory(), ctypes.c_void_p()
for f in (lib.nvmlDeviceGetMemoryInfo, getattr(lib, "nvmlDeviceGetMemoryInfo")):
    assert f(ctypes.c_void_p(1), ctypes.byref(m)) == 0
    print(m.total, m.free, m.used)
"""
check = h.Checks()
OWN = os.path.join(h.B, "simgpu", "libnvidia-ml.so.1")
ASK = """import ctypes, os, sys
class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_ulonglong) for n in ("total", "free", "used")]
class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("a", ctypes.c_uint), ("b", ctypes.c_uint)]
n, cu = ctypes.CDLL(sys.argv[1]), ctypes.CDLL("libcuda.so.1")
d, count, m, text = ctypes.c_void_p(), ctypes.c_uint(), Memory(), ctypes.create_string_buffer(96)
print("before", n.nvmlDeviceGetCount_v2(ctypes.byref(count)))
assert n.nvmlInit_v2() == 0 and n.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
print("count", count.value, n.nvmlDeviceGetHandleByIndex_v2(count.value, ctypes.byref(d)))
for i in range(count.value):
    pci = ctypes.create_string_buffer(32)
    assert cu.cuInit(0) == 0 and cu.cuDeviceGetPCIBusId(pci, 32, i) == 0
    assert n.nvmlDeviceGetHandleByPciBusId_v2(b"0000" + pci.value, ctypes.byref(d)) == 0
    assert n.nvmlDeviceGetUUID(d, text, 96) == 0
    u = (ctypes.c_ubyte * 16)()
    cu.cuDeviceGetUuid_v2(u, i)
    print("uuid", text.value.decode().replace("-", "") == "GPU" + bytes(u).hex())
n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d))
ctx, p, k = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint(0)
print("empty", n.nvmlDeviceGetMemoryInfo(d, ctypes.byref(m)), m.total, m.used)
assert cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0) == 0 and cu.cuCtxSetCurrent(ctx) == 0
assert cu.cuMemAllocAsync(ctypes.byref(p), 24 << 20, None) == 0 and cu.cuMemsetD8Async(p, 1, 24 << 20, None) == 0 and cu.cuStreamSynchronize(None) == 0
print("held", n.nvmlDeviceGetMemoryInfo(d, ctypes.byref(m)), m.total, m.used)
few = n.nvmlDeviceGetComputeRunningProcesses_v3(d, ctypes.byref(k), None)
k, rows = ctypes.c_uint(4), (Process * 4)()
r = n.nvmlDeviceGetComputeRunningProcesses_v3(d, ctypes.byref(k), rows)
print("processes", few, r, k.value, rows[0].pid == os.getpid(), rows[0].used)
print("links", n.nvmlDeviceGetNvLinkRemoteDeviceType(d, 0, ctypes.byref(k)), n.nvmlShutdown(), n.nvmlShutdown())
"""


def own():
    """The simulated device's NVML: what it says is what the driver says, natively and under a limit."""
    want = ["before 1", "count 2 6", "uuid True", "uuid True", "empty 0 %d 0" % TOTAL, "held 0 %d %d" % (TOTAL, 24 * MIB), "processes 7 0 1 True %d" % (24 * MIB), "links 3 0 1"]
    env = {"SIMGPU_MEM": str(TOTAL), "SIMGPU_DEVICES": "2"}
    r = h.run([sys.executable, "-c", ASK, OWN], env=env)
    check.ok(r.out.splitlines() == want, "the simulated device's own NVML", r.out + r.err)
    r = h.run([sys.executable, "-c", ASK, OWN], ["--limit", "64M"], env)
    limited = [x.replace(str(TOTAL), str(64 * MIB)) for x in want]
    check.ok(r.out.splitlines() == limited, "the same under a limit", r.out + r.err)


def view(options, env=None):
    """Rows of numbers by the words before them."""
    e = {"SIMGPU_MEM": str(TOTAL), "FAKE_NVML_TOTAL": str(TOTAL), "REMAT_LOG": "warn"}
    e.update(env or {})
    r = h.run([PROGRAM, NVML], options, e)
    check.ok(r.rc == 0, "nvml_view %s" % options, "%d %s" % (r.rc, r.err))
    rows, lists = {}, []
    for line in r.out.splitlines():
        words = line.split()
        numbers = [int(w) for w in words if w.lstrip("-").isdigit()]
        if words[0] == "processes":
            lists.append(numbers)
        else:
            rows[" ".join(words[:2])] = numbers
    return rows, lists, r


def main():
    if not os.path.exists(PROGRAM) or not os.path.exists(NVML):
        print("no nvml_view: skipped")
        return 77
    own()
    # the machine's own answers, for comparison: six tenths are free
    native = [TOTAL, TOTAL // 10 * 6, TOTAL - TOTAL // 10 * 6]
    rows, lists, _ = view(None)
    check.ok(rows["before v1"] == native and rows["held v1"] == native, "without remat", str(rows))
    check.ok(lists == [[7, 0, 2, 11, 22]] * 10, "process lists without remat", str(lists))

    rows, lists, _ = view(["--policy", "off", "--limit", "64M"])
    check.ok(rows["held v1"] == native and rows["before v1"] == native, "--policy off: as without", str(rows))
    rows, lists, _ = view(["--limit", "64M"], {"REMAT_DISABLE": "1"})
    check.ok(rows["held v1"] == native and rows["before v1"] == native, "REMAT_DISABLE: as without", str(rows))

    for policy in ("swap", "auto"):
        rows, lists, _ = view(["--limit", "64M", "--policy", policy])
        for when in ("before", "empty", "held"):
            total, free, used = rows[when + " v1"]
            check.ok(total == 64 * MIB and total == free + used, "%s: total is the limit" % when, str(rows[when + " v1"]))
            check.ok(rows[when + " v2"] == [total, free, used, 0], "%s: v2 says what v1 says" % when, str(rows[when + " v2"]))
        check.ok(rows["empty v1"][2] == 0 and rows["held v1"][2] == 24 * MIB, "used is what is held", str(rows))
        check.ok(rows["held cuda"] == rows["held v1"][:2], "CUDA and NVML agree", str(rows))
        check.ok(lists == [[7, 0, 2, 11, 24 * MIB]] * 10, "process lists: the own row is what is held, others stand", str(lists))
        # before cuInit any device may be the one; afterwards only those of the process
        check.ok(rows["before other"][0] == 64 * MIB and rows["held other"] == native, "another device", str(rows))

    # as Python's bindings and nvidia-smi ask: the library opened by name, the functions looked up in it
    r = h.run([sys.executable, "-c", BINDINGS, NVML], ["--limit", "64M"], {"SIMGPU_MEM": str(TOTAL), "FAKE_NVML_TOTAL": str(TOTAL)})
    check.ok(r.rc == 0 and r.out.split() == [str(64 * MIB), str(64 * MIB), "0"] * 2, "Python's bindings", r.out + r.err)

    # a child asks whose parent had a thread inside remat at that moment
    r = h.run([PROGRAM, NVML, "fork"], ["--limit", "64M", "--policy", "swap"], {"SIMGPU_MEM": str(TOTAL), "FAKE_NVML_TOTAL": str(TOTAL)})
    check.ok(r.rc == 0 and r.out == "hung 0\n", "forked children get their answer", "%d %s%s" % (r.rc, r.out, r.err[-300:]))

    # more held than the limit: the total stays what it is, all of it in use
    rows, lists, _ = view(["--limit", "16M", "--policy", "swap"])
    total, free, used = rows["held v1"]
    check.ok(total == 16 * MIB and free + used == total and free <= MIB and rows["held cuda"] == [total, free], "evicted tensors: the total stays", str(rows))

    # what NVML knows of limits is the default: hard, what is left of it; soft, where it is aimed at
    lib = {"LD_LIBRARY_PATH": os.path.dirname(NVML) + ":" + os.path.join(h.B, "simgpu"), "REMAT_CGROUP": "/nonexistent"}
    rows, _, r = view([], dict(lib, FAKE_NVML_HARD=str(100 * MIB), FAKE_NVML_USED=str(20 * MIB)))
    check.ok(rows["empty v1"][0] == 80 * MIB and r.stats["limit_bytes"] == 80 * MIB, "hard limit less what others use", str(rows))
    rows, _, r = view([], dict(lib, FAKE_NVML_HARD=str(100 * MIB), FAKE_NVML_SOFT=str(40 * MIB)))
    check.ok(r.stats["limit_bytes"] == 40 * MIB, "the soft limit is the target", str(r.stats))
    rows, _, r = view(["--limit", "30M"], dict(lib, FAKE_NVML_HARD=str(100 * MIB), FAKE_NVML_SOFT=str(40 * MIB)))
    check.ok(r.stats["limit_bytes"] == 30 * MIB, "--limit below both", str(r.stats))
    rows, _, r = view(["--limit", "200M"], dict(lib, FAKE_NVML_HARD=str(100 * MIB)))
    check.ok(r.stats["limit_bytes"] == 100 * MIB and "100 MiB it is, the memory limit that NVML tells of" in r.err,
             "--limit above the hard one", "%s %s" % (r.stats, r.err))
    rows, _, r = view(["--limit", "64M"], lib)
    check.ok(r.stats["limit_bytes"] == 64 * MIB and r.err == "", "no limits in NVML", r.err)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
