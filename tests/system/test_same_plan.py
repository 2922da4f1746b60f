#!/usr/bin/env python3
"""The same plan under any load: `remat plan` counts its work and looks at no clock unless --time-limit is given.

A busy machine is a machine on which the clock runs faster than the program. So each plan is made twice, once as it is and once
under a preloaded library in whose eyes every second lasts a thousand, for wall clocks and for processor time alike; both files
must be the same byte by byte. Anything in the planner or in CBC that ended at a time would end early in the second run. That
the library does what it says is seen from a plan with --time-limit, which is out of time at once. Exit 77 without traces or a
compiler."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get("REMAT_SHARED", "")
REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
# where CBC and the annealer work, and where a value is called back before its source changes
CASES = [("mobilenet_v2-b256", "45%"), ("resnet18-b64", "51%"), ("novel_pairwise-b4096", "80%")]

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
enum { FASTER = 1000 };
static long long start[16];
static long long warp(int clock, long long ns)
{
    long long *const s = &start[clock & 15];
    if (!*s)
        *s = ns;
    return *s + (ns - *s) * FASTER;
}
int clock_gettime(clockid_t c, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int rc = real(c, t);
    const long long ns = warp(c, t->tv_sec * 1000000000LL + t->tv_nsec);
    t->tv_sec = ns / 1000000000;
    t->tv_nsec = ns % 1000000000;
    return rc;
}
int gettimeofday(struct timeval *t, void *zone)
{
    struct timespec x;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &x);
    t->tv_sec = x.tv_sec;
    t->tv_usec = x.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *t)
{
    struct timespec x;
    clock_gettime(CLOCK_REALTIME, &x);
    if (t)
        *t = x.tv_sec;
    return x.tv_sec;
}
clock_t clock(void)
{
    struct timespec x;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &x);
    return x.tv_sec * CLOCKS_PER_SEC + x.tv_nsec / (1000000000 / CLOCKS_PER_SEC);
}
int getrusage(__rusage_who_t who, struct rusage *r)
{
    static int (*real)(__rusage_who_t, struct rusage *);
    if (!real)
        real = (int (*)(__rusage_who_t, struct rusage *))dlsym(RTLD_NEXT, "getrusage");
    const int rc = real(who, r);
    const long long ns = warp(15, r->ru_utime.tv_sec * 1000000000LL + r->ru_utime.tv_usec * 1000LL);
    r->ru_utime.tv_sec = ns / 1000000000;
    r->ru_utime.tv_usec = ns % 1000000000 / 1000;
    return rc;
}
"""


def plan(name, limit, out, preload=None, extra=()):
    env = dict(os.environ)
    if preload:
        env["LD_PRELOAD"] = preload
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + env.get("ASAN_OPTIONS", "")
    run = subprocess.run([REMAT, "plan", os.path.join(SHARED, "traces", name + ".json"), "--limit", limit, "--no-offload", "--json", "-o", out] +
                         list(extra), capture_output=True, text=True, env=env)
    assert run.returncode in (0, 3), "%s %s: %s" % (name, limit, run.stderr)
    return json.loads(run.stdout)


def main():
    compiler = shutil.which(os.environ.get("CC", "cc").split()[-1]) or shutil.which("cc")
    if not os.path.isdir(os.path.join(SHARED, "traces")) or not os.path.exists(REMAT) or not compiler:
        print("no traces, no remat or no compiler: skipped")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        clock = os.path.join(tmp, "clock.so")
        with open(clock[:-2] + "c", "w") as f:
            f.write(CLOCK)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", clock, clock[:-2] + "c", "-ldl"], check=True)
        for name, limit in harness.drawn(CASES, test=1):
            files = []
            for preload in (None, clock):
                out = os.path.join(tmp, "p.json")
                said = plan(name, limit, out, preload)
                assert said["feasible"], "%s at %s: no plan" % (name, limit)
                with open(out, "rb") as f:
                    files.append(f.read())
                os.unlink(out)
            assert files[0] == files[1], "%s at %s: another plan where the clock runs faster" % (name, limit)
            judged = subprocess.run([sys.executable, os.path.join(SHARED, "verify_plan.py"),
                                     os.path.join(SHARED, "traces", name + ".json"), "/dev/stdin"], input=files[0],
                                    capture_output=True)
            assert judged.returncode == 0, judged.stdout
            print("%-22s %s: %d bytes of plan, %.2f %%" % (name, limit, len(files[0]), 100 * said["overhead"]))
        said = plan(CASES[0][0], CASES[0][1], os.path.join(tmp, "q.json"), clock, ["--time-limit", "20"])
        assert not said["feasible"] or said["solve_seconds"] >= 20, "the preloaded clock does not run faster: %s" % said
    print("the same plans whatever the clock says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
