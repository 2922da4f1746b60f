#!/usr/bin/env python3
"""Groups: several processes, one budget, on one simulated device that they share. Four at once, one killed with -9 again and
again: the device's own high-water mark never passes the group's limit, nothing is lost, every run that ends is
bit-identical. Guarantees are handed over, by a neighbour that trains and by one that sleeps; whoever is left grows.

  test_share.py                a slice
  test_share.py --seconds 120  kills for so long, one a second (make share)
  test_share.py --only PART    refusals, guarantee_at_once, guarantee_at_the_end, guarantee_from_one_that_sleeps, asked_while_a_context_ends, growth, storm
"""
import argparse
import fcntl
import glob
import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

MIB = 1 << 20
GRAN = 65536
WAIT = 240  # seconds, for something that takes one on a quiet machine
tmp = tempfile.mkdtemp(prefix="remat-share-")
ENV = dict(os.environ, REMAT_SIMGPU="1", SIMGPU_GRANULARITY=str(GRAN), SIMGPU_MEM="1G", XDG_CACHE_HOME=tmp, REMAT_LOG="info",
           REMAT_GROUP_DIR=os.path.join(tmp, "groups"), REMAT_STATUS_DIR=os.path.join(tmp, "status"))
ENV["LD_LIBRARY_PATH"] = os.path.join(harness.B, "simgpu") + ":" + ENV.get("LD_LIBRARY_PATH", "")
if harness.RUNTIME:
    ENV["LD_PRELOAD"] = harness.RUNTIME
c = harness.Checks()


# ---- what others see: the device's own figures, and the ledger --------------------------------------------------------------

class Device:
    """A simulated device that processes share (tests/simgpu/gpu_shared.c has the layout)."""
    n = 0

    def __init__(self):
        Device.n += 1
        self.path = os.path.join(tmp, "device%d" % Device.n)

    def peak(self):
        with open(self.path, "rb") as f:
            return struct.unpack_from("<4Q", f.read(32))[3]


def ledger(group, field=0):
    """Rows of the group's ledger (policy/share/ledger.h): pid -> bytes reserved, or another field after those."""
    rows = {}
    for path in glob.glob(os.path.join(ENV["REMAT_GROUP_DIR"], group + "@*")):
        with open(path, "rb") as f:
            data = f.read()
        for at in range(256, len(data), 128):
            row = struct.unpack_from("<qQQq4Q", data, at)
            if row[0]:
                rows[row[0]] = row[4 + field]
    return rows


def wanted(group, pid):
    return ledger(group, 2).get(pid, 0)


def locks():
    """Every lock of the kernel's on a file of ours: (pid of its taker, path)."""
    files = {}
    for folder, _, names in os.walk(tmp):
        for path in [folder] + [os.path.join(folder, n) for n in names]:
            try:
                st = os.stat(path)
                files["%02x:%02x:%d" % (os.major(st.st_dev), os.minor(st.st_dev), st.st_ino)] = path
            except OSError:
                pass
    with open("/proc/locks") as f:
        rows = [line.split() for line in f]
    return [(int(r[-4]), files[r[-3]]) for r in rows if r[-3] in files]


# ---- programs ------------------------------------------------------------------------------------------------------------

class Job:
    """A workload in a group. `options` of remat run; what it printed is compared with `native` when it has ended."""
    n = 0

    def __init__(self, device, group, limit, work, options=(), stepped=False, env=()):
        """`stepped`: it waits after every line that it prints, or after the next, until that is read here."""
        Job.n += 1
        self.name = os.path.join(tmp, "job%d" % Job.n)
        self.work = work
        self.out, self.err = open(self.name + ".out", "w+"), open(self.name + ".err", "w+")
        cmd = [os.path.join(harness.B, "workloads", work[0])] + work[1:] if work[0] in ("mlp", "cnn", "gpt") else work
        self.pipe, into = None, self.out
        if stepped: # packets of one line each, and room for one
            ends = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
            fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
            self.pipe, into = os.fdopen(ends[0], "rb", buffering=0), os.fdopen(ends[1], "wb", buffering=0)
        self.p = subprocess.Popen([harness.REMAT, "run", "--group", group, "--group-limit", str(limit), "--stats", self.name + ".json"] +
                                  [str(o) for o in options] + ["--", "env", "REMAT_BIN=" + harness.PLANNER] + cmd, env=dict(ENV, SIMGPU_SHARED=device.path, **dict(env)), stdout=into,
                                  stderr=self.err, stdin=subprocess.PIPE)
        if stepped:
            into.close()

    def text(self, f):
        f.flush()
        with open(f.name) as g:
            return g.read()

    def iterations(self):
        return len(re.findall(r"^iter \d+ loss", self.text(self.out), re.M))

    def step(self, wait):
        """The next line, if it comes soon. False: there will be none."""
        if not select.select([self.pipe], [], [], wait)[0]:
            return True
        line = self.pipe.read(4096)
        self.out.write(line.decode())
        return line != b""

    def until(self, what, condition):
        end = time.monotonic() + WAIT
        while not condition():
            if self.p.poll() is not None or time.monotonic() > end:
                return c.ok(False, what, "exit %s: %s" % (self.p.poll(), self.text(self.err)[-600:]))
            if not self.pipe or not self.step(0.02):
                time.sleep(0.02)
        return True

    def finish(self, what):
        """Waits for its end and compares."""
        end = time.monotonic() + WAIT
        while self.pipe and time.monotonic() < end and self.step(0.5):
            pass
        try:
            self.p.wait(max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
        ok = c.ok(self.p.returncode == 0, what + ": exit", "%s: %s" % (self.p.returncode, self.text(self.err)[-600:]))
        if ok and tuple(self.work) in native:
            ok = c.ok(self.text(self.out) == native[tuple(self.work)].out, what + ": results")
        return ok

    def stats(self):
        return harness.json.load(open(self.name + ".json"))


native = {}


def work(name, *options):
    w = [name] + [str(o) for o in options] + ["--print-loss", "--checksum"]
    if tuple(w) not in native:
        e = {k: v for k, v in ENV.items() if k.startswith("SIMGPU_")}
        native[tuple(w)] = harness.run(w, env=e)
        c.ok(native[tuple(w)].rc == 0 and native[tuple(w)].checksum, "%s native" % w, native[tuple(w)].err)
    return w


def native_peak(w):
    return native[tuple(w)].peak


# A program that fills memory, makes no driver call until its standard input ends, and then looks whether all is as it was.
HOLDER = """
import ctypes, sys
cu = ctypes.CDLL("libcuda.so.1")
def ok(r, what):
    if r:
        sys.exit("%s: %d" % (what, r))
ctx, n, each = ctypes.c_void_p(), int(sys.argv[1]), int(sys.argv[2])
ok(cu.cuInit(0), "init")
ok(cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0), "context")
ok(cu.cuCtxSetCurrent(ctx), "current")
at = []
for i in range(n):
    p = ctypes.c_uint64()
    ok(cu.cuMemAllocAsync(ctypes.byref(p), ctypes.c_size_t(each), None), "alloc %d" % i)
    ok(cu.cuMemsetD8Async(p, ctypes.c_ubyte(i * 7 + 1 & 255), ctypes.c_size_t(each), None), "fill %d" % i)
    at.append(p)
ok(cu.cuCtxSynchronize(), "sync")
print("filled", flush=True)
sys.stdin.read()
host = ctypes.create_string_buffer(each)
for i, p in enumerate(at):
    ok(cu.cuMemcpyDtoH_v2(host, p, ctypes.c_size_t(each)), "copy %d" % i)
    if host.raw != bytes([i * 7 + 1 & 255]) * each:
        sys.exit("buffer %d is not as it was" % i)
print("as it was", flush=True)
"""


# A program like HOLDER, but that releases its context where HOLDER looks.
LEAVER = HOLDER[:HOLDER.index("host =")] + """
ok(cu.cuDevicePrimaryCtxRelease_v2(0), "release")
print("released", flush=True)
"""


def holder(n, each):
    return [sys.executable, "-c", HOLDER, str(n), str(each)]


# ---- one killed again and again ------------------------------------------------------------------------------------------

def storm(kills, pause, times):
    rng = random.Random(1)
    device, works = Device(), [work("gpt", "--batch", 8, "--iters", 40 * times), work("mlp", "--batch", 1024, "--iters", 30 * times),
                               work("cnn", "--batch", 4, "--iters", 15 * times), work("mlp", "--batch", 512, "--streams", 2, "--iters", 40 * times)]
    limit = sum(native_peak(w) for w in works) * 60 // 100 // GRAN * GRAN
    options = [["--guarantee", native_peak(works[0]) * 90 // 100], [], ["--policy", "swap"], []]

    def start(i):
        return Job(device, "storm", limit, works[i], options[i])

    jobs, whole = [start(i) for i in range(4)], 0
    next_kill = time.monotonic()
    for k in range(kills):
        next_kill += pause
        time.sleep(max(0, next_kill - time.monotonic()))
        for i in range(4):
            if jobs[i].p.poll() is not None: # came to its end unharmed
                whole += jobs[i].finish("storm, job %d before kill %d" % (i, k))
                jobs[i] = start(i)
        i = rng.randrange(4)
        jobs[i].p.send_signal(signal.SIGKILL)
        time.sleep(rng.random() * pause / 2) # its parent does not look at once
        jobs[i].p.wait()
        left = [path for pid, path in locks() if pid == jobs[i].p.pid]
        c.ok(not left, "storm: no lock outlives a process", str(left))
        jobs[i] = start(i)
    c.ok({j.p.pid for j in jobs} & {pid for pid, _ in locks()}, "storm: the locks of the living are seen", str(locks()))
    for i in range(4):
        whole += jobs[i].finish("storm, job %d at the end" % i)
    c.ok(whole >= 4, "storm: whole runs", str(whole))
    c.ok(not locks(), "storm: no lock is left at the end", str(locks()))
    c.ok(device.peak() <= limit, "storm: the device's high-water mark", "%d, limit %d" % (device.peak(), limit))
    c.ok(device.peak() >= limit * 9 // 10, "storm: the budget was used", "%d, limit %d" % (device.peak(), limit))
    # nothing was lost: whoever comes now may have all of it
    big = Job(device, "storm", limit, holder(limit // GRAN // 16 - 1, 16 * GRAN))
    big.until("storm: all of it for the next one", lambda: "filled" in big.text(big.out))
    c.ok(sum(ledger("storm").values()) >= limit * 9 // 10, "storm: nothing lost", str(ledger("storm")))
    big.p.stdin.close()
    if big.finish("storm: the next one"):
        c.ok("given back" not in big.text(big.err) and big.stats()["swaps_out"] == 0, "storm: without a neighbour nothing moves",
             str(big.stats()))
    return whole


# ---- handing over ------------------------------------------------------------------------------------------------------------

def hand_over(what, first_limit, at_once, line, attempts=1):
    """The first follows a plan for all it may have; it gives, plans anew, and both come out right. With more than one attempt: what it
    says may be another line where it waits just between two iterations."""
    device, a, b = Device(), work("mlp", "--batch", 1024, "--iters", 50), work("mlp", "--batch", 512, "--iters", 40)
    limit = native_peak(a) * 80 // 100 // GRAN * GRAN
    mine = limit // 2
    first = Job(device, what, limit, a, ["--policy", "plan", "--limit", limit * first_limit // 100], stepped=True)
    if not first.until(what + ": a plan in force", lambda: "plan installed" in first.text(first.err) and first.iterations() >= 16):
        return
    second = Job(device, what, limit, b, ["--guarantee", mine], stepped=True)

    def asked(): # or has it already: that may take a few milliseconds
        return wanted(what, second.p.pid) or ledger(what).get(second.p.pid, 0) >= mine * 9 // 10

    if not second.until(what + ": the second asks", lambda: "given back" in first.text(first.err) if at_once else asked()):
        return
    if not first.finish(what + ": the first") & second.finish(what + ": the second"):
        return
    s, t = first.stats(), second.stats()
    c.ok(s["gave_back_bytes"] > 0, what + ": given back", str(s))
    as_said = line in first.text(first.err)
    if as_said or attempts == 1:
        c.ok(as_said, what + ": the plan was made anew, or left", first.text(first.err)[-600:])
    c.ok(t["peak_physical_bytes"] >= mine * 9 // 10, what + ": the second came to its share", "%s of %d" % (t, mine))
    c.ok(device.peak() <= limit, what + ": the device's high-water mark", "%d, limit %d" % (device.peak(), limit))
    if not as_said and attempts > 1:
        hand_over(what, first_limit, at_once, line, attempts - 1)


def guarantee_at_once():
    """Nothing is left for the second, which cannot go on: the first leaves its plan where it is, while it waits for its output."""
    hand_over("at_once", 100, True, "a neighbour cannot go on without its share", attempts=3)


def guarantee_at_the_end():
    """The second can run with what is left, in less than it is entitled to: it comes to that at the end of the first's iteration."""
    hand_over("at_the_end", 65, False, "a neighbour has asked for its share")


def guarantee_from_one_that_sleeps():
    """The neighbour holds everything and makes no driver call: it gives all the same."""
    device, b = Device(), work("gpt", "--batch", 8, "--iters", 20)
    limit = 32 * MIB
    first = Job(device, "sleep", limit, holder(31, MIB))
    if not first.until("asleep: filled", lambda: "filled" in first.text(first.out)):
        return
    second = Job(device, "sleep", limit, b, ["--guarantee", 16 * MIB])
    second.finish("asleep: the second")
    c.ok("as it was" not in first.text(first.out), "asleep: the first still slept")
    first.p.stdin.close()
    if not first.finish("asleep: the first has all its values"):
        return
    c.ok("as it was" in first.text(first.out) and first.stats()["gave_back_bytes"] >= 4 * MIB, "asleep: given back", str(first.stats()))
    c.ok(device.peak() <= limit, "asleep: the device's high-water mark", "%d, limit %d" % (device.peak(), limit))


def asked_while_a_context_ends():
    """The helper thread is copying memory away for a neighbour, slowly, when the program releases its context: the copy ends first."""
    device, b = Device(), work("gpt", "--batch", 8, "--iters", 20)
    limit = 32 * MIB
    first = Job(device, "leave", limit, [sys.executable, "-c", LEAVER, "31", str(MIB)], env={"SIMGPU_HOST_WALL_BW": str(32 * MIB)})
    if not first.until("leaving: filled", lambda: "filled" in first.text(first.out)):
        return
    pid, all_of_it = max(ledger("leave").items(), key=lambda row: row[1])
    second = Job(device, "leave", limit, b, ["--guarantee", 16 * MIB])
    second.until("leaving: the helper has begun", lambda: ledger("leave").get(pid, 0) < all_of_it)
    first.p.stdin.close()
    first.finish("leaving: the first")
    second.finish("leaving: the second")
    said = first.text(first.err)
    given = re.search(r"(\d+) MiB given back to the group, of (\d+) MiB", said)
    c.ok(given and given[1] == given[2] and "the driver failed" not in said, "leaving: all is given back", said[-600:])


def growth():
    """Little is left beside a neighbour that may keep what it has; it ends by -9, and the other grows."""
    device, a = Device(), work("mlp", "--batch", 1024, "--iters", 70)
    limit = native_peak(a) * 110 // 100 // GRAN * GRAN
    small = limit * 55 // 100
    first = Job(device, "grow", limit, holder((limit - small) // MIB, MIB), ["--guarantee", limit - small])
    if not first.until("growth: filled", lambda: "filled" in first.text(first.out)):
        return
    second = Job(device, "grow", limit, a, stepped=True)
    if second.until("growth: a plan in force", lambda: "plan installed" in second.text(second.err) and second.iterations() >= 20):
        c.ok(ledger("grow").get(second.p.pid, limit) <= limit - (limit - small) // MIB * MIB, "growth: small at first", str(ledger("grow")))
    first.p.kill()
    first.p.wait()
    if not second.finish("growth"):
        return
    c.ok(second.stats()["peak_physical_bytes"] >= small * 5 // 4, "growth: it grew", "%s, %d at first" % (second.stats(), small))
    c.ok("the group has more to give" in second.text(second.err), "growth: by a plan made anew", second.text(second.err)[-600:])
    c.ok(device.peak() <= limit, "growth: the device's high-water mark", "%d, limit %d" % (device.peak(), limit))


# ---- refusals ----------------------------------------------------------------------------------------------------------------

def refusals():
    device = Device()
    holds = Job(device, "taken", 32 * MIB, holder(1, MIB), ["--guarantee", 20 * MIB])
    if not holds.until("refusals: filled", lambda: "filled" in holds.text(holds.out)):
        return
    for options, line in [
            (["--group", "a/b", "--group-limit", "1G"], "'a/b' is no name for a group"),
            (["--group", "", "--group-limit", "1G"], "'' is no name for a group"),
            (["--group", "taken", "--group-limit", "64M"], "group taken has a limit of 32M, fixed by its first member: --group-limit 64M differs"),
            (["--group", "taken", "--group-limit", "50%"], "group taken has a limit of 32M"),
            (["--group", "taken", "--guarantee", "16M"], "--guarantee 16M cannot be promised: 20M of group taken's limit of 32M"),
            (["--group", "new"], "group new has no member yet: its first one must give --group-limit"),
            (["--group", "new", "--group-limit", "0"], "--group-limit 0 is neither a size"),
            (["--group", "new", "--group-limit", "101%"], "--group-limit 101% is neither a size"),
            (["--group", "new", "--group-limit", "1G", "--guarantee", "x"], "--guarantee x is not a size"),
            (["--group", "new", "--group-limit", "1G", "--guarantee", "2G"], "--guarantee 2G is more than the whole group's"),
            (["--group", "new", "--group-limit", "1G", "--guarantee", "2M", "--limit", "1M"], "--guarantee 2M is more than --limit 1M"),
            (["--group", "new", "--group-limit", "1G", "--policy", "off"], "--group goes with a policy that keeps a limit"),
            (["--group-limit", "1G"], "--group-limit and --guarantee go with --group NAME")]:
        p = subprocess.run([harness.REMAT, "run"] + options + ["--", "true"], env=ENV, capture_output=True, text=True, timeout=WAIT)
        c.ok(p.returncode == 125 and line in p.stderr and p.stderr.count("\n") == 1, "refused: %s" % options, "%d %s" % (p.returncode, p.stderr))
    p = subprocess.run([harness.REMAT, "run", "--group", "new", "--group-limit", "1G", "--", "true"], capture_output=True, text=True,
                       env=dict(ENV, REMAT_GROUP_DIR="/proc/nowhere"), timeout=WAIT)
    c.ok(p.returncode == 125 and "/proc/nowhere (REMAT_GROUP_DIR) cannot be used" in p.stderr, "refused: no folder", p.stderr)
    # past the command line: a process that cannot join must not run beside the limit
    for more, line in [({"REMAT_GROUP": "taken", "REMAT_GROUP_LIMIT": "64M"}, "--group-limit 64M differs"),
                       ({"REMAT_GROUP": "x y", "REMAT_GROUP_LIMIT": "64M"}, "is no name for a group"),
                       ({"REMAT_GROUP": "huge", "REMAT_GROUP_LIMIT": "2G"}, "more than the device has")]:
        p = subprocess.run([harness.REMAT, "run", "--"] + holder(1, MIB), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           env=dict(ENV, SIMGPU_SHARED=device.path, **more), timeout=WAIT)
        c.ok(p.returncode == 1 and line in p.stderr and "gets no memory on device 0" in p.stderr and "alloc 0: 2" in p.stderr,
             "not joined: %s" % more, "%d %s" % (p.returncode, p.stderr))
    # half of the device's memory, said in both ways, is one limit
    p = subprocess.run([harness.REMAT, "run", "--group", "taken", "--group-limit", "3.125%", "--"] + holder(1, MIB), capture_output=True,
                       stdin=subprocess.DEVNULL, text=True, env=dict(ENV, SIMGPU_SHARED=device.path), timeout=WAIT)
    c.ok(p.returncode == 0 and "as it was" in p.stdout, "a percentage that comes to the same", p.stderr)
    holds.p.stdin.close()
    holds.finish("refusals: the member")


def timed(name, part):
    at, cpu = time.monotonic(), os.times()
    answer = part()
    now = os.times()
    print("%s: %.1f s, %.1f s of CPU" % (name, time.monotonic() - at, sum(now[2:4]) - sum(cpu[2:4])), flush=True)
    return answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--only", help="a part, or storm")
    args = parser.parse_args()
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    try:
        for part in (refusals, guarantee_at_once, guarantee_at_the_end, guarantee_from_one_that_sleeps, asked_while_a_context_ends, growth):
            if args.only in (None, part.__name__):
                timed(part.__name__, part)
        if args.only in (None, "storm"):
            whole = timed("storm", lambda: storm(args.seconds, 1.0, 2) if args.seconds else storm(harness.so_many(8, test=2), 0.3, 1))
            print("%d runs came to their end" % whole)
    finally:
        if not c.failed:
            shutil.rmtree(tmp, ignore_errors=True)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
