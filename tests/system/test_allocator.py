#!/usr/bin/env python3
"""PyTorch's allocator as remat chooses it, without PyTorch: the variables stay as they are to be, whoever sets others (a shell script, a script, a C program);
memory of cuMemAlloc is managed under `--allocator each` (tests/programs/each.c); the device's total and cuMemGetInfo's are the limit, both; what PyTorch refuses
is told, and its lack of memory has the words that programs look for (tests/conformance/c10_user.c); `--policy off` leaves all of it alone."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

EACH = os.path.join(harness.B, "programs", "each")
USER = os.path.join(harness.B, "conformance", "c10_user")
MIB = 1 << 20
ASYNC = "backend:cudaMallocAsync"
CLEAN = {"PYTORCH_CUDA_ALLOC_CONF": "", "PYTORCH_ALLOC_CONF": ""}
SCRIPT = """import os, sys, ctypes
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
get = ctypes.CDLL(None).getenv
get.restype = ctypes.c_char_p
def seen(n): return (get(n.encode()) or b"-").decode()
print(seen("PYTORCH_CUDA_ALLOC_CONF"))
os.environ.pop("PYTORCH_CUDA_ALLOC_CONF")
print(seen("PYTORCH_CUDA_ALLOC_CONF"))
os.putenv("PYTORCH_ALLOC_CONF", "backend:native")
print(seen("PYTORCH_ALLOC_CONF"))
sys.stdout.flush()
os.execve("/bin/sh", ["sh", "-c", "echo $PYTORCH_CUDA_ALLOC_CONF"], dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64"))
"""
c = harness.Checks()


def run(cmd, options, **env):
    return harness.run(cmd, remat=options, env=dict(CLEAN, **env))


def environment():
    for options, at_first, after in ((["--policy", "off"], "- - - -", "max_split_size_mb:128,pinned_num_register_threads:4 expandable_segments:True - z"),
                                     ([], "%s %s - -" % (ASYNC, ASYNC), "%s,pinned_num_register_threads:4 %s - z" % (ASYNC, ASYNC)),
                                     (["--allocator", "each"], "- - 1 -", "max_split_size_mb:128,pinned_num_register_threads:4 expandable_segments:True 1 z"),
                                     (["--policy", "off", "--allocator", "async"], "%s %s - -" % (ASYNC, ASYNC), "%s,pinned_num_register_threads:4 %s - z" % (ASYNC, ASYNC)),
                                     (["--policy", "off", "--trace-out", "/dev/null"], "%s %s - -" % (ASYNC, ASYNC), None)):
        r = run([EACH, "env"], options)
        lines = [x.replace("''", "-") for x in r.out.splitlines()]
        c.ok(r.rc == 0 and lines[0] == "found " + at_first, "env %s: at first" % options, r.out + r.err)
        if after:
            c.ok(lines[3] == "put " + after, "env %s: after others were set" % options, r.out)
            c.ok(lines[1].split()[1:] == lines[2].split()[1:], "env %s: set without overwriting" % options, r.out)
            want = "-" if "off" in options and len(options) == 2 or "each" in options else ASYNC
            c.ok(lines[4].split()[1] == want and lines[4].split()[4] == "-", "env %s: taken out" % options, r.out)
    # a script of Python's, and what it starts; a shell script
    r = run([sys.executable, "-c", SCRIPT], [])
    c.ok(r.out.split() == [ASYNC] * 4, "a script sets, takes out, hands on", r.out + r.err)
    r = run([sys.executable, "-c", SCRIPT], ["--policy", "off"])
    c.ok(r.out.split() == ["expandable_segments:True", "-", "backend:native", "max_split_size_mb:64"], "--policy off: the script's own", r.out + r.err)
    for how, want in (([], ASYNC), (["--policy", "off"], "max_split_size_mb:9"), (["--allocator", "each"], "max_split_size_mb:9")):
        r = run(["/bin/sh", "-c", "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:9; %s env" % EACH], how)
        c.ok(r.out.split()[1:2] == [want], "export in a shell script %s" % how, r.out)
        c.ok("left out" not in r.err, "export %s: no device is used, nothing is said" % how, r.err)
    r = run(["/bin/sh", "-c", "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:9; %s waits" % EACH], [])
    c.ok(r.err.count("left out max_split_size_mb:9") == 1, "export: told once where a device is used", r.err)
    r = run(["/bin/true"], ["--allocator", "other"])
    c.ok(r.rc == 125 and "--allocator other: it takes one of async, each" in r.err, "--allocator: a wrong word", r.err)


def each():
    for case in "chain waits asked wrong fork".split():
        native = harness.run([EACH, case], env={"SIMGPU_MEM": "512M"})
        c.ok(native.rc == 0 and native.out, "%s natively" % case, native.err)
        for policy, chaos in (("swap", None), ("auto", None), ("auto", "adversary")):
            env = dict({"SIMGPU_MEM": "512M"}, **({"SIMGPU_CHAOS": chaos} if chaos else {}))
            r = run([EACH, case], ["--limit", "64M", "--allocator", "each", "--policy", policy], **env)
            other = harness.other_than(native, r, 64 * MIB)
            c.ok(not other, "each %s, %s %s" % (case, policy, chaos), "%s %s" % (other, r.err[-300:]))
        if case == "chain":
            c.ok(native.peak > 64 * MIB and r.stats["evictions"] > 0, "chain: more than the limit, and managed", str(r.stats))
            r = run([EACH, case], ["--limit", "64M"], SIMGPU_MEM="512M")
            c.ok(r.rc == 3 and "--allocator each moves" in r.err, "chain without it: told what serves", r.err)
    native = harness.run([EACH, "ipc"])
    r = run([EACH, "ipc"], ["--limit", "64M", "--allocator", "each"])
    c.ok("SUCCESS" not in r.out and "cannot be handed to another process" in r.err, "IPC: refused, and told", r.out + r.err)
    r = run([EACH, "ipc"], ["--limit", "64M"])
    c.ok(r.out == native.out, "IPC without it", r.out + r.err)
    r = run([EACH, "chain"], ["--limit", "64M", "--allocator", "each"], SIMGPU_DEVICES="2")
    c.ok("of several visible devices" in r.err, "several devices: told", r.err)


def captures():
    """What a capture gave out and nothing ever made is given back without an error, which PyTorch would meet in a destructor."""
    native = harness.run([EACH, "capture"])
    refused = [line for line in native.out.splitlines() if line.split()[0] in ("free", "inside") and "SUCCESS" not in line]
    c.ok(native.rc == 0 and len(refused) == 6, "captures natively: what was never made is refused", native.out + native.err)
    for options in (["--limit", "256M"], ["--limit", "256M", "--policy", "swap"], []):
        r = run([EACH, "capture"], options)
        lines = r.out.splitlines()
        c.ok(r.rc == 0 and [x for x in lines if x.split()[0] in ("free", "inside")] == ["inside CUDA_SUCCESS"] + ["free CUDA_SUCCESS"] * 8, "captures %s" % options, r.out + r.err)
        c.ok([x for x in lines if x.split()[0] not in ("free", "inside")] == [x for x in native.out.splitlines() if x.split()[0] not in ("free", "inside")],
             "captures %s: all else as natively" % options, r.out)


def totals():
    for mem, limit, want in (("512M", "64M", 64 * MIB), ("512M", "16M", 16 * MIB), ("512M", "50%", 256 * MIB), ("512M", None, 512 * MIB), ("100M", "400M", 100 * MIB)):
        r = run([EACH, "totals"], ["--limit", limit] if limit else [], SIMGPU_MEM=mem)
        rows = [x.split() for x in r.out.splitlines()]
        c.ok(r.rc == 0 and [x[1:3] for x in rows] == [[str(want)]] + [[str(want)] * 2] * 3, "totals of %s at %s" % (mem, limit), r.out + r.err)
    r = run([EACH, "totals"], ["--limit", "64M", "--policy", "off"], SIMGPU_MEM="512M")
    c.ok(r.out.split()[1] == str(512 * MIB), "totals under --policy off", r.out)


FRACTION = """import ctypes, sys
cu = ctypes.CDLL("libcuda.so.1")
ctx, p = ctypes.c_void_p(), ctypes.c_uint64()
def must(r): assert r == 0, r
must(cu.cuInit(0)); must(cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0)); must(cu.cuCtxSetCurrent(ctx))
def total():
    f, t = ctypes.c_size_t(), ctypes.c_size_t()
    must(cu.cuMemGetInfo_v2(ctypes.byref(f), ctypes.byref(t)))
    return t.value
def set_per_process_memory_fraction(fraction, device=None):
    f, t = ctypes.c_size_t(), ctypes.c_size_t()
    must(cu.cuMemGetInfo_v2(ctypes.byref(f), ctypes.byref(t)))
    return int(fraction * t.value)
def get_per_process_memory_fraction(device=None):
    f, t = ctypes.c_size_t(), ctypes.c_size_t()
    must(cu.cuMemGetInfo_v2(ctypes.byref(f), ctypes.byref(t)))
    return t.value
before = get_per_process_memory_fraction()
limits = []
for word in sys.argv[1:]:
    f = float(word) if "." in word else int(word)
    limits.append(set_per_process_memory_fraction(f))
    print("allowed", limits[-1], "fraction", round(limits[-1] / get_per_process_memory_fraction(), 6), "total", total(), "before", before)
bufs = []
for i in range(6):
    must(cu.cuMemAllocAsync(ctypes.byref(p), 8 << 20, None)); must(cu.cuMemsetD8Async(p, i, 8 << 20, None)); bufs.append(p.value)
b = ctypes.create_string_buffer(4)
for i, at in enumerate(bufs):
    must(cu.cuMemcpyDtoH_v2(b, ctypes.c_uint64(at), 4)); print(b.raw[0])
"""


def fractions():
    """What a script's fraction allows: (fractions, as printed first and last; bytes that may lie on the device)."""
    for words, fraction, most in ((["0.5"], 0.5, 32 * MIB), (["1"], 1.0, 64 * MIB), (["0.25", "0.5"], 0.5, 32 * MIB), (["0.5", "1.0"], 1.0, 64 * MIB)):
        r = run([sys.executable, "-c", FRACTION] + words, ["--limit", "64M", "--policy", "swap"], SIMGPU_MEM="512M")
        rows = [x.split() for x in r.out.splitlines() if x.startswith("allowed")]
        c.ok(r.rc == 0 and len(rows) == len(words) and r.out.split()[-6:] == list("012345"), "fraction %s: runs" % words, r.out + r.err)
        c.ok(rows and int(rows[-1][1]) > 1 << 50 and float(rows[-1][3]) == fraction, "fraction %s: what is held does not count" % words, r.out)
        c.ok(rows and rows[-1][5] == rows[-1][7] == str(64 * MIB), "fraction %s: the total stays" % words, r.out)
        c.ok(r.peak <= most and (most > 48 * MIB or r.stats["swaps_out"] > 0), "fraction %s: what lies on the device" % words, "%d %s" % (r.peak, r.err))
    for options in ([], ["--limit", "64M", "--policy", "off"]):
        r = run([sys.executable, "-c", FRACTION, "0.5"], options, SIMGPU_MEM="512M")
        c.ok(r.out.split()[1] == str(256 * MIB), "without a limit the fraction is PyTorch's %s" % options, r.out + r.err)


def torch():
    def told(r):
        """What it was told, but for the last line: USER has PyTorch's words and no GPU."""
        lines = r.err.splitlines()
        return lines[:-1] if lines and "the program used no GPU" in lines[-1] else lines + ["not told that no GPU was used"]

    native = run([USER], ["--policy", "off"])
    c.ok(native.rc == 0 and not told(native) and "Allocation on device 12 would exceed allowed memory. (out of memory)" in native.out and
         "settings 1 backend:native" in native.out and "thrown" not in native.out, "--policy off: PyTorch's own words", native.out + native.err)
    r = run([USER], ["--limit", "64M"])
    lines, was = r.out.splitlines(), native.out.splitlines()
    changed = [i for i, (a, b) in enumerate(zip(lines, was)) if a != b]
    c.ok(len(lines) == len(was) and all(len(a) == len(b) for a, b in zip(lines[:12], was[:12])), "words are put in place", r.out)
    c.ok(r.out.count(" CUDA out of memory. Device ") == 2 and " out of memory." in r.out and len(changed) == 5, "known words, and nothing else", r.out)
    for what, serves in (("to record the history of its memory", "--policy off has it"), ("a snapshot of its memory", "--policy off has it"),
                         ("to send a tensor to another process", "--policy off alone")):
        lines_of = [x for x in told(r) if "refuses %s:" % what in x]
        c.ok(len(lines_of) == 1 and serves in lines_of[0], "%s: one line, and what serves" % what, r.err)
    c.ok(len(told(r)) == 3, "three lines", r.err)
    c.ok(lines[-3:] == ["settings 1 %s,pinned_num_register_threads:4" % ASYNC, "settings 1 " + ASYNC, "settings 1 " + ASYNC], "settings by call", str(lines[-3:]))
    r = run([USER], ["--limit", "64M", "--allocator", "each"])
    at = [i for i, line in enumerate(r.out.splitlines()) if "thrown 1 7 0" in line]
    c.ok(len(at) == 1 and r.out.splitlines()[at[0] - 1] == "asked for the error" and "CUDA out of memory. The device" in r.out.splitlines()[at[0] - 2],
         "each: torch.OutOfMemoryError, once", r.out)
    c.ok("settings 1 expandable_segments:True,pinned_num_register_threads:4" in r.out and "backend" not in r.out.split("thrown")[1] and not told(r),
         "each: its own settings stay", r.out + r.err)


def main():
    if not os.path.exists(EACH) or not os.path.exists(USER):
        print("no simulated GPU built")
        return 77
    environment()
    each()
    captures()
    totals()
    fractions()
    torch()
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
