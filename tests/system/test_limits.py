#!/usr/bin/env python3
"""Limits that hold: the file of maxima against every variable and nested run; a run within a run; what the kernel allows (cgroup dmem)
as the default, its soft limit as the target. build/held is remat with the file of maxima at build/held/remat.conf."""
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import harness as h
import test_share

MIB = 1 << 20
HELD = os.path.realpath(os.path.join(h.B, "held"))
CONF = os.path.join(HELD, "remat.conf")
NVML = os.path.join(h.B, "conformance", "libnvidia-ml.so.1")
SMALL = [os.path.join(h.B, "programs", "nvml_view"), NVML]  # holds 24 MiB
MLP = [os.path.join(h.B, "workloads", "mlp"), "--iters", "2", "--print-loss", "--checksum"]
# what CUDA says of the device's memory, after the program has taken the limit out of its environment
PYTHON = """import ctypes, os
for name in [n for n in os.environ if n.startswith("REMAT_")]:
    del os.environ[name]
c, ctx, free, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
assert c.cuInit(0) == 0 and c.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0) == 0 and c.cuCtxSetCurrent(ctx) == 0
assert c.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
print("total", total.value)
"""
PCI = "0000:01:00.0"
check = h.Checks()


def conf(text):
    with open(CONF, "w") as f:
        f.write(text)


def limit_of(r):
    return r.stats.get("limit_bytes", 0) / MIB


def held(options, cmd, env=None):
    h.REMAT = os.path.join(HELD, "remat")
    try:
        return h.run(cmd, options, dict({"SIMGPU_MEM": "512M"}, **(env or {})))
    finally:
        h.REMAT = os.path.join(h.B, "remat")


def run(options, cmd, env=None):
    return h.run(cmd, options, dict({"SIMGPU_MEM": "512M"}, **(env or {})))


def maxima(native):
    conf("# for everyone\nmax everyone 80M\n")
    line = "80 MiB it is, %s:2, everyone" % CONF
    remat = os.path.join(HELD, "remat")
    for what, options, cmd, env, says in (
            ("no limit asked for", [], SMALL, {}, ""),
            ("--limit below it", ["--limit", "30M"], SMALL, {}, ""),
            ("--limit above it", ["--limit", "100M"], SMALL, {}, line),
            ("the variable unset", ["--limit", "100M"], ["/usr/bin/env", "-u", "REMAT_LIMIT"] + SMALL, {}, ""),
            ("the variable raised", ["--limit", "70M"], ["/usr/bin/env", "REMAT_LIMIT=300M"] + SMALL, {}, line),
            ("REMAT_DISABLE", [], SMALL, {"REMAT_DISABLE": "1"}, "REMAT_DISABLE counts for nothing here: a maximum holds (%s:2, everyone)" % CONF),
            ("--policy off", ["--policy", "off"], SMALL, {}, "--policy off is swap here: a maximum holds"),
            ("a variable that is nonsense", [], ["/usr/bin/env", "REMAT_LIMIT=lots"] + SMALL, {}, "it is left out, since a maximum holds"),
            ("another file named", ["--limit", "100M"], SMALL, {"REMAT_CONF": "/dev/null", "REMAT_CONF_ALSO": "/dev/null"}, line),
            ("a run within a run", [], [remat, "run", "--limit", "300M", "--"] + SMALL, {}, line),
            ("off within a run", [], [remat, "run", "--policy", "off", "--"] + SMALL, {}, "--policy off is swap here")):
        r = held(options, cmd, env)
        want = 30 if what == "--limit below it" else 80
        check.ok(r.rc == 0 and limit_of(r) == want, "%s: held at %d MiB" % (what, want), "%s %s %s" % (r.rc, r.stats, r.err))
        check.ok(says in r.err and (says or not r.err), "%s: says so" % what, repr(r.err))
    r = held(["--limit", "100M"], ["/usr/bin/env", "-i", "LD_PRELOAD=" + ":".join(filter(None, [h.RUNTIME, HELD + "/libremat.so"])),
                                   "LD_LIBRARY_PATH=" + os.path.join(h.B, "simgpu"), "SIMGPU_MEM=512M", "ASAN_OPTIONS=detect_leaks=0",
                                   sys.executable, "-c", PYTHON])
    check.ok("total %d" % (80 * MIB) in r.out, "an empty environment", r.out + r.err)
    r = held(["--limit", "100M"], [sys.executable, "-c", PYTHON])
    check.ok("total %d" % (80 * MIB) in r.out, "taken out of the process's environment", r.out + r.err)

    # it is a limit: training is the same, and the device never sees more
    r = held(["--limit", "500M", "--policy", "off"], MLP)
    check.ok(r.rc == 0 and r.losses == native.losses and r.checksum == native.checksum and r.peak <= 80 * MIB < native.peak,
             "training within the maximum", "%d %d of %d %s" % (r.rc, r.peak, native.peak, r.err))
    # where the device cannot be set up, there is no way past it
    r = held([], MLP, {"SIMGPU_FAULTS": "cuMemGetAllocationGranularity:1"})
    check.ok(r.rc not in (0, 125) and "so the program gets no memory there" in r.err and "OUT_OF_MEMORY" in r.err, "nothing where it cannot hold", r.err)

    conf("max everyone 80M\nmax user %d none\n" % os.getuid())
    r = held(["--policy", "off", "--limit", "300M"], MLP)
    check.ok(r.rc == 0 and r.peak == native.peak, "one user is let off", "%s %s" % (r.peak, r.err))
    conf("max group %d 25%%\nlimit everyone 60M\n" % os.getgid())
    r = held([], SMALL)
    check.ok(limit_of(r) == 60, "a default", str(r.stats))
    r = held(["--limit", "90%"], SMALL)
    check.ok(limit_of(r) == 128 and "group %d" % os.getgid() in r.err, "a maximum by group, in per cent", "%s %s" % (r.stats, r.err))
    conf("max everyone 80M\nmax evryone 10M\n")
    r = held([], SMALL)
    check.ok(limit_of(r) == 80 and "%s:2:5: after max comes user NAME" % CONF in r.err, "a line that cannot be read", r.err)
    os.unlink(CONF)
    r = held(["--limit", "100M"], SMALL, {"REMAT_DISABLE": "1"})
    check.ok(r.rc == 0 and not r.stats and not r.err, "without the file, off is off", "%s %s" % (r.stats, r.err))


def another_user(tmp):
    """Rules for a user and for groups hold for who is in them: seen as that user, with a group of his own and supplementary ones."""
    uid, gid, more = 61234, 61235, [61236, 61237]
    remat = os.path.join(HELD, "remat")
    if os.getuid() != 0 or subprocess.run([remat, "--version"], user=uid, capture_output=True, cwd="/").returncode:
        return # not root, or a tree that others may not read
    env = h.preloaded(REMAT_SIMGPU="1", SIMGPU_MEM="512M", LD_LIBRARY_PATH=os.path.join(h.B, "simgpu"), HOME="/nonexistent", REMAT_STATUS_DIR=os.path.join(tmp, "none"))

    def total():
        p = subprocess.run([remat, "run", "--limit", "300M", "--"] + SMALL, env=env, user=uid, group=gid, extra_groups=more, cwd="/",
                           capture_output=True, text=True, timeout=120)
        seen = re.search(r"^held cuda (\d+) ", p.stdout, re.M)
        return int(seen.group(1)) // MIB if seen else 0, p.stderr
    for text, want in (("max everyone 80M\n", 80), ("max everyone 80M\nmax user %d 90M\n" % uid, 90), ("max user 0 40M\n", 300),
                       ("max group %d 70M\n" % gid, 70), ("max group %d 60M\nmax group %d 50M\nmax group 0 10M\n" % (gid, more[1]), 50),
                       ("max group %d 60M\nmax user %d none\n" % (gid, uid), 300)):
        conf(text)
        os.chmod(CONF, 0o644)
        got, err = total()
        check.ok(got == want, "another user, %r: %d MiB" % (text, want), "%d %s" % (got, err))
    os.chmod(CONF, 0o600)
    got, err = total()
    check.ok(got == 300 and "it should be readable by everyone" in err, "a closed file is told of", "%d %s" % (got, err))
    os.unlink(CONF)


def totals(tmp):
    """`total`: what all of a user's programs may have together. Two jobs that would take 70 % each, on one device that they share: both come to
    their end, together within it, whatever they call themselves; one alone may have all of it."""
    total = 150
    native = run(None, MLP)
    conf("total everyone %dM\n" % total)
    r = held(["--limit", "70%"], SMALL)
    check.ok(limit_of(r) == total and "%d MiB it is, %s:1, everyone" % (total, CONF) in r.err, "one job: the total is its limit", "%s %s" % (r.stats, r.err))
    r = held(["--policy", "off"], MLP, {"REMAT_DISABLE": "1"})
    check.ok(r.rc == 0 and r.checksum == native.checksum and native.peak <= r.peak <= total * MIB and "a maximum holds (%s:1, everyone)" % CONF in r.err,
             "alone it may have all, and off is not off", "%s %s" % (r.peak, r.err))
    for n, ways in enumerate(([[], []], [["--group", "a", "--group-limit", "400M"], []], [["--group", "a", "--group-limit", "400M"], ["--group", "b", "--group-limit", "400M"]])):
        device, jobs = os.path.join(tmp, "device%d" % n), []
        for i, more in enumerate(ways):
            env = h.preloaded(REMAT_SIMGPU="1", SIMGPU_MEM="512M", SIMGPU_SHARED=device, XDG_CACHE_HOME=tmp, REMAT_GROUP_DIR=os.path.join(tmp, "g%d%d" % (n, i)),
                              REMAT_STATUS_DIR=os.path.join(tmp, "status"), LD_LIBRARY_PATH=os.path.join(h.B, "simgpu"))
            os.makedirs(env["REMAT_GROUP_DIR"], exist_ok=True)
            cmd = [os.path.join(HELD, "remat"), "run", "--limit", "70%", "--policy", "swap"] + more + ["--"] + MLP
            jobs.append(subprocess.Popen(cmd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        for i, job in enumerate(jobs):
            out, err = job.communicate(timeout=900)
            check.ok(job.returncode == 0 and "checksum %s" % native.checksum in re.sub(r" +", " ", out), "two jobs %s: %d" % (ways, i), "%d %s" % (job.returncode, err[-600:]))
        with open(device, "rb") as f: # tests/simgpu/gpu_shared.c has the layout
            peak = struct.unpack_from("<4Q", f.read(32))[3]
        check.ok(total * MIB * 9 // 10 <= peak <= total * MIB, "two jobs %s: together within the total" % ways, "%d of %d MiB" % (peak // MIB, total))
    # one in a group holds all of the total, and sleeps; another outside the group comes to its part all the same, and nothing is lost
    env = dict(env, SIMGPU_SHARED=os.path.join(tmp, "handed"), SIMGPU_GRANULARITY="65536")
    first = subprocess.Popen([os.path.join(HELD, "remat"), "run", "--group", "a", "--group-limit", "400M", "--", sys.executable, "-c", test_share.HOLDER, "148", str(MIB)],
                             env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check.ok(first.stdout.readline() == "filled\n", "one holds all of the total")
    second = subprocess.run([os.path.join(HELD, "remat"), "run", "--"] + SMALL, env=env, capture_output=True, text=True, timeout=300)
    check.ok(second.returncode == 0, "another comes to its part", "%d %s" % (second.returncode, second.stderr))
    out, err = first.communicate("")
    check.ok(first.returncode == 0 and out == "as it was\n", "who gave has all its values", "%s %s" % (out, err[-600:]))
    # its folder's name taken by somebody else: another name does; the total holds
    taken = os.path.join(HELD, "remat-groups-%d" % os.getuid())
    for path in glob.glob(taken + "*"):
        shutil.rmtree(path)
    open(taken, "w").close()
    r = held([], SMALL)
    check.ok(r.rc == 0 and limit_of(r) == total, "the folder's name is taken: the total holds all the same", "%s %s %s" % (r.rc, r.stats, r.err))
    mine = glob.glob(taken + "-??????")
    check.ok(len(mine) == 1 and os.stat(mine[0]).st_mode & 0o777 == 0o700, "in another folder", str(mine))
    # what the machine cannot keep, it does not give: a place where everybody may take the folder away
    shutil.rmtree(mine[0])
    os.chmod(HELD, 0o777)
    r = held([], SMALL)
    os.chmod(HELD, 0o755)
    os.unlink(taken)
    check.ok(r.rc != 0 and "no folder for groups" in r.err and "this process gets no memory on device 0" in r.err, "no folder for the total, no memory", r.err)
    os.unlink(CONF)


def without_the_library(tmp):
    """What the docs say a preload cannot hold, and what they say of /etc/ld.so.preload: it holds even who empties his environment."""
    conf("max everyone 80M\n")
    library, env = os.path.join(HELD, "libremat.so"), {"LD_LIBRARY_PATH": os.path.join(h.B, "simgpu"), "SIMGPU_MEM": "512M", "REMAT_STATUS_DIR": tmp,
                    **({"LD_PRELOAD": h.RUNTIME, "ASAN_OPTIONS": "detect_leaks=0"} if h.RUNTIME else {})}
    bare = ["/usr/bin/env", "-i"] + ["%s=%s" % e for e in env.items()] + [sys.executable, "-c", PYTHON]
    r = held(["--limit", "100M"], bare)
    check.ok("total %d" % (512 * MIB) in r.out, "who drops the library is not held, as the docs say", r.out + r.err)
    preload, script = os.path.join(tmp, "ld.so.preload"), os.path.join(tmp, "in")
    with open(preload, "w") as f:
        f.write(library + "\n")
    with open(script, "w") as f: # in a mount namespace of its own: the machine's file is not touched
        f.write('touch /etc/ld.so.preload 2>/dev/null; mount --bind "%s" /etc/ld.so.preload || exit 77\nexec "$@"\n' % preload)
    there = os.path.exists("/etc/ld.so.preload")
    p = subprocess.run(["unshare", "--mount", "sh", script] + bare, capture_output=True, text=True, timeout=120) if os.getuid() == 0 and not h.RUNTIME else None
    if not there and os.path.exists("/etc/ld.so.preload") and os.path.getsize("/etc/ld.so.preload") == 0:
        os.unlink("/etc/ld.so.preload")
    if p and p.returncode not in (1, 77): # 1: no namespaces here
        check.ok("total %d" % (80 * MIB) in p.stdout, "named in /etc/ld.so.preload it holds all the same", p.stdout + p.stderr)
    os.unlink(CONF)


def second_file(tmp):
    also = os.path.join(tmp, "also.conf")
    conf("max everyone 80M\n")
    for text, want in (("max everyone 60M\n", 60), ("max everyone 200M\nmax user %d none\n" % os.getuid(), 80)):
        with open(also, "w") as f:
            f.write(text)
        r = held(["--limit", "300M"], SMALL, {"REMAT_CONF_ALSO": also})
        check.ok(limit_of(r) == want, "the second file takes and does not give", "%s %s" % (r.stats, r.err))
    os.unlink(CONF)


def nested():
    remat = h.REMAT
    outer = "the limit of the remat run around this one"
    for options, inner, want, says in ((["--limit", "80M"], ["--limit", "300M"], 80, "300 MiB was asked for: 80 MiB it is, " + outer),
                                       (["--limit", "80M"], ["--limit", "60M"], 60, ""),
                                       (["--limit", "80M"], [], 80, ""),
                                       (["--limit", "10%"], ["--limit", "300M"], 51.2, outer),
                                       (["--limit", "80M"], ["--policy", "off"], 80, "--policy off is swap here: a maximum holds (%s)" % outer),
                                       ([], ["--limit", "300M"], 300, "")):
        r = run(options, [remat, "run"] + inner + ["--"] + SMALL)
        check.ok(r.rc == 0 and abs(limit_of(r) - want) < 0.1, "%s around %s" % (options, inner), "%s %s" % (r.stats, r.err))
        check.ok(says in r.err and (says or not r.err), "%s around %s: says so" % (options, inner), repr(r.err))
    r = run(["--limit", "200M"], [remat, "run", "--limit", "80M", "--", remat, "run", "--limit", "150M", "--"] + SMALL)
    check.ok(limit_of(r) == 80, "three deep", "%s %s" % (r.stats, r.err))
    r = run(["--limit", "80M"], [sys.executable, "-c", PYTHON])
    check.ok("total %d" % (80 * MIB) in r.out, "the limit at the process's start binds it", r.out + r.err)


def kernel(tmp, native):
    group = os.path.join(tmp, "group")
    os.makedirs(group)
    env = {"REMAT_CGROUP": group}

    def put(**files):
        for name in os.listdir(group):
            os.unlink(os.path.join(group, name))
        for name, value in files.items():
            with open(os.path.join(group, "dmem." + name), "w") as f:
                f.write("nvidia/0000:02:00.0/vidmem 1048576\nnvidia/%s/vidmem %s\n" % (PCI, value if value == "max" else value * MIB))

    put()
    check.ok(limit_of(run([], SMALL, env)) == 512, "no dmem: the device")
    put(max="max")
    check.ok(limit_of(run([], SMALL, env)) == 512, "dmem.max is max: the device")
    put(max=90, current=10)
    check.ok(limit_of(run([], SMALL, env)) == 80, "what is left of dmem.max is the default")
    r = run([], MLP, env)
    check.ok(r.rc == 0 and r.checksum == native.checksum and r.peak <= 80 * MIB, "training within it", "%s %s" % (r.peak, r.err))
    r = run(["--limit", "300M"], SMALL, env)
    check.ok(limit_of(r) == 80 and "80 MiB it is, %s/dmem.max" % group in r.err, "--limit above it", "%s %s" % (r.stats, r.err))
    check.ok(limit_of(run(["--limit", "50M"], SMALL, env)) == 50, "--limit below it")
    put(max=300, min=70)
    check.ok(limit_of(run([], SMALL, env)) == 70, "dmem.min is the target")
    check.ok(limit_of(run(["--limit", "200M"], SMALL, env)) == 200, "--limit goes before the target")
    # aimed at, not held: with too little host memory to swap, more is taken, up to dmem.max
    for top, ends_well in ((300, True), (70, False)):
        put(max=top, min=60)
        r = run(["--policy", "swap", "--host-swap", "8M"], MLP, env)
        check.ok((r.rc == 0) == ends_well and r.peak <= top * MIB, "soft 60 of %d" % top, "%d peak %d %s" % (r.rc, r.peak, r.err))
        if ends_well:
            check.ok(r.checksum == native.checksum and "the soft limit gives way" in r.err and r.peak > 60 * MIB, "it gave way", r.err)


# holds MiB of a device that others use, too, until its input ends
HOLDS = """import ctypes, sys
c, ctx, p = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert c.cuInit(0) == 0 and c.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0) == 0 and c.cuCtxSetCurrent(ctx) == 0
assert c.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(int(sys.argv[1]) << 20)) == 0
print("held", flush=True)
sys.stdin.read()
"""


# fills what there is with memory that remat can move, then takes 16 MiB that it cannot, in several ways; nothing is lost
OWN = """import ctypes
c, ctx = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
def ok(r):
    assert r == 0, r
ok(c.cuInit(0)), ok(c.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0)), ok(c.cuCtxSetCurrent(ctx))
moves = [ctypes.c_uint64() for _ in range(12)]
for i, p in enumerate(moves):
    ok(c.cuMemAllocAsync(ctypes.byref(p), ctypes.c_size_t(8 << 20), None)), ok(c.cuMemsetD8Async(p, ctypes.c_ubyte(i), ctypes.c_size_t(8 << 20), None))
stays, pitch = ctypes.c_uint64(), ctypes.c_size_t()
for ask in (lambda: c.cuMemAlloc_v2(ctypes.byref(stays), ctypes.c_size_t(16 << 20)),
            lambda: c.cuMemAllocPitch_v2(ctypes.byref(stays), ctypes.byref(pitch), ctypes.c_size_t(4 << 10), ctypes.c_size_t(4 << 10), 4),
            lambda: c.cuMemAllocManaged(ctypes.byref(stays), ctypes.c_size_t(16 << 20), 1)):
    for p in moves:
        ok(c.cuMemsetD8Async(ctypes.c_uint64(p.value + 1), ctypes.c_ubyte(200), ctypes.c_size_t(1), None))
    print("own", ask()), ok(c.cuMemFree_v2(stays))
print("too much", c.cuMemAlloc_v2(ctypes.byref(stays), ctypes.c_size_t(80 << 20)))
large = ctypes.c_uint64()
print("at once", c.cuMemAllocAsync(ctypes.byref(large), ctypes.c_size_t(70 << 20), None) or c.cuMemsetD8Async(large, ctypes.c_ubyte(1), ctypes.c_size_t(70 << 20), None))
byte = ctypes.c_ubyte()
for i, p in enumerate(moves):
    ok(c.cuMemcpyDtoH_v2(ctypes.byref(byte), ctypes.c_uint64(p.value + (8 << 20) - 1), ctypes.c_size_t(1)))
    assert byte.value == i
"""


def beside_a_stranger(tmp):
    """Something that is not under remat holds 40 of the device's 96 MiB: a limit of 90 cannot be had."""
    longer = MLP[:1] + ["--batch", "8192", "--iters", "12", "--print-loss", "--checksum"]
    native = run(None, longer)
    shared = {"SIMGPU_MEM": "96M", "SIMGPU_SHARED": os.path.join(tmp, "device")}
    env = h.preloaded(LD_LIBRARY_PATH=os.path.join(h.B, "simgpu"), REMAT_SIMGPU="1", **shared)
    stranger = subprocess.Popen([sys.executable, "-c", HOLDS, "40"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        check.ok(stranger.stdout.readline() == b"held\n", "a stranger holds memory")
        r = run(["--limit", "90M", "--policy", "plan", "--solver", "mincut"], longer, dict(shared, REMAT_LOG="debug"))
        check.ok(r.rc == 0 and r.losses == native.losses and r.checksum == native.checksum, "training beside a stranger", "%d %s" % (r.rc, r.err))
        check.ok("the driver gives 56 MiB of the limit of 90 MiB and no more: something else" in r.err, "a stranger is told of", r.err)
        asked = [int(x) for x in re.findall(r"a plan for (\d+) MiB is asked for", r.err)]
        check.ok(r.stats.get("iterations_enforced", 0) > 2 and asked and max(asked) < 56, "plans are for what there is", "%s %s" % (asked, r.stats))
        r = run(["--limit", "90M", "--policy", "swap"], [sys.executable, "-c", OWN], shared)
        check.ok(r.rc == 0 and r.out.split("\n")[:5] == ["own 0"] * 3 + ["too much 2", "at once 2"], "what the driver refuses to the program is made room for",
                 "%d %s %s" % (r.rc, r.out, r.err))
        check.ok("of that limit the driver gives no more than" in r.err, "not the limit's doing", r.err)
    finally:
        stranger.communicate(b"", timeout=60)


def main():
    if not os.path.exists(os.path.join(HELD, "libremat.so")):
        print("no build/held: skipped")
        return 77
    native = run(None, MLP)
    check.ok(native.rc == 0 and native.peak > 100 * MIB, "native", native.err)
    tmp = tempfile.mkdtemp(prefix="remat-limits-")
    try:
        maxima(native)
        os.chmod(tmp, 0o755)
        another_user(tmp)
        totals(tmp)
        without_the_library(tmp)
        second_file(tmp)
        nested()
        kernel(tmp, native)
        beside_a_stranger(tmp)
    finally:
        shutil.rmtree(tmp)
        shutil.rmtree(test_share.tmp, ignore_errors=True)
        if os.path.exists(CONF):
            os.unlink(CONF)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
