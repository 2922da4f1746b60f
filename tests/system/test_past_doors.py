#!/usr/bin/env python3
"""Calls that are newer than the tables of doors, and libraries that work on device memory past the driver (tests/programs/past_doors.c): the results are
right, one line says what it is by name, and memory stays from then on. What is known, or present and unused, changes nothing."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "past_doors")
NEEDS = PROGRAM + "_needs"  # linked with OptiX
# the newer driver lies in a folder of its own, without what stands for remat's PTX
DEVICE = {"SIMGPU_GRANULARITY": "8192", "SIMGPU_BW": "5e9", "SIMGPU_HOST_BW": "125e6", "SIMGPU_TWINS": os.path.join(harness.B, "simgpu", "remat_kernels.so")}
STAYS = "memory stays where it is from now on"
LIMIT = 60  # per cent of the native peak
# case: what the line names
CALLS = {"dlsym": "cuMemsetD32Async_v2", "default": "cuMemsetD32Async_v2", "proc": "cuMemsetD32Async_v2", "copy": "cuMemcpyHtoDAsync_v3",
         "unnamed": "cuMemsetD16Async of CUDA 14.0", "fresh": "cuFreshFill", "fresh_proc": "cuFreshFill", "linked": "cuMemsetD32Async_v2",
         "plugin": "cuFreshFill", "first": "cuFreshFill", "nccl": "ncclFreshFill", "pnccl": "pncclFreshFill", "nccl_plugin": "ncclFreshFill"}
LIBRARIES = {"encode": "libnvidia-encode.so", "optix_thread": "libnvoptix.so", "early": "libnvidia-encode.so", "registers": "libnvcuvid.so",
             "file": "cuFileRead", "file_plugin": "cuFileRead", "rdma": "ibv_reg_mr", "rdma_plugin": "ibv_reg_mr", "needs": "libnvoptix.so"}
NOTHING = ("known", "asked", "file_idle", "rdma_host")
# Memory stays from the start: all of it must fit.
FROM_THE_START = ("early", "first", "needs")


def run(case, percent, *more):
    newer = ["/usr/bin/env", "LD_LIBRARY_PATH=" + os.path.join(harness.B, "simgpu", "newer"), NEEDS if case == "needs" else PROGRAM]
    native = harness.run(newer + [case], env=DEVICE)
    if native.rc or not native.device:
        return "natively: exit %s %s" % (native.rc, native.err[-200:]), None, 0
    limit = native.peak * percent // 100
    r = harness.run(newer + [case, *more], remat=["--limit", limit, "--policy", "plan"], env=DEVICE)
    return harness.other_than(native, r, limit), r, limit


def lines(r):
    return [x for x in r.err.splitlines() if STAYS in x]


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "newer", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    named = dict(CALLS, **LIBRARIES)
    for case in harness.drawn(named, check=4, always=("needs", "first")):
        start = case in FROM_THE_START
        differs, r, _ = run(case, 101 if start else LIMIT)
        c.ok(not differs, case, differs)
        if r is None:
            continue
        said = lines(r)
        c.ok(len(said) == 1 and named[case] in said[0], case + ": one line, by name", r.err[-400:])
        c.ok(bool(r.stats.get("evictions")) != start and (r.stats.get("iterations_enforced", 0) >= 3) != start, case + ": moved before", str(r.stats))
    for case in harness.drawn(NOTHING, check=1, salt="nothing"):
        differs, r, _ = run(case, LIMIT)
        c.ok(not differs and not lines(r), case + ": nothing is said", differs or r.err[-400:])
    # whatever is freed and asked for: no more than the limit, and nothing moves for it
    for case in harness.drawn(("proc", "encode", "known"), check=0, salt="full"):
        differs, r, limit = run(case, LIMIT, "full")
        more = int((re.findall(r"(\d+) more", r.err) or ["0"])[0]) if r else 0
        c.ok(not differs and (more == 200) == (case == "known"), case + ": full", differs or r.err[-300:])
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
