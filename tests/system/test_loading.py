#!/usr/bin/env python3
"""Libraries whose constructors and destructors call the driver, beside a thread that works (tests/programs/loading.c): each case gives under remat what
it gives natively. Whoever asks the loader while a lock of ours is held stands still with such a library; and says so in every test of the suite, by
a failed check (tracer/loader.h), whether or not a library comes at that moment. That the check speaks is seen here as well, and what makes one up."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "loading")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ENV = {"SIMGPU_GRANULARITY": "65536", "LD_LIBRARY_PATH": os.path.join(harness.B, "programs", "nvtx") + ":" + os.path.join(harness.B, "simgpu"), "NVTX_RECORD": "/dev/null"}
KIB = 1024
# case, limit that is felt, policies, whether a plan must be followed
CASES = [("set_up", 4096 * KIB, ("auto",), False), ("launch", 640 * KIB, ("swap",), False), ("train", 1792 * KIB, ("plan", "swap"), True),
         ("goes", 1792 * KIB, ("plan",), True), ("names", 1792 * KIB, ("plan",), True), ("modules", 640 * KIB, ("auto",), False)]

# Who asks the loader: only where the check stands in front, and the doors' own way past themselves.
MAY_ASK = {"tracer/loader.c", "preload/libc_dlsym.c", "preload/dlsym.c"}
ASKS = re.compile(r"\b(dlopen|dlmopen|dlclose|dlsym|dlvsym|dladdr1?|dlinfo|dl_iterate_phdr|pthread_once|getpw\w+|getgr\w+)\s*\(")
LOCKS = re.compile(r"\bpthread_(mutex|rwlock|spin)_\w*(lock|trylock|rdlock|wrlock)\s*\(")
# names of users are asked for behind loader_asks()
NAMES = {"tracer/machine/conf.c"}


def check_sources(c):
    found = 0
    for folder in ("preload", "policy", "tracer"):
        for where, _, files in os.walk(os.path.join(ROOT, folder)):
            for f in files:
                path = os.path.normpath(os.path.relpath(os.path.join(where, f), ROOT))
                if not f.endswith((".c", ".h")) or path == "tracer/loader.h":
                    continue
                with open(os.path.join(where, f), encoding="utf-8") as source:
                    text = re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"', " ", source.read(), flags=re.S)
                found += 1
                if path not in MAY_ASK:
                    asks = [m for m in ASKS.findall(text) if path not in NAMES or not m.startswith("get")]
                    c.ok(not asks, path + " asks the loader past tracer/loader.h:", str(asks))
                c.ok(not LOCKS.search(text), path + " takes a lock that loader_lock() does not count")
    c.ok(found > 100, "sources were read", str(found))


def check_case(c, case, limit, policies, followed):
    native = harness.run([PROGRAM, case], env=ENV, timeout=60)
    c.ok(native.rc == 0 and native.out, case + " natively", native.err[-300:])
    for policy in policies:
        what = "%s, %s" % (case, policy)
        try:
            r = harness.run([PROGRAM, case], remat=["--limit", limit, "--policy", policy, "--nvtx", "--trace-out", os.devnull], env=ENV, timeout=60)
        except subprocess.TimeoutExpired:
            c.ok(False, what, "it stands still")
            continue
        other = harness.other_than(native, r, limit)
        c.ok(not other, what, "%s\n%s" % (other, r.err[-500:]))
        if followed:
            done = r.stats.get("iterations_enforced" if policy == "plan" else "swaps_in", 0)
            c.ok(done > 0, what + ": it was planned, or swapped", str(r.stats))


def main():
    if not os.path.exists(PROGRAM):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    only = sys.argv[1:]
    if not only:
        check_sources(c)
    for case in CASES:
        if not only or case[0] in only:
            check_case(c, *case)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
