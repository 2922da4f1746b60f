"""Running workloads on the simulated GPU, natively and under remat, and looking at what came of it."""
import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

B = os.environ.get("B") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
REMAT = os.path.join(B, "remat")

# A library built with a sanitizer can only be preloaded behind that sanitizer's own runtime.
RUNTIME = {"address": "libasan.so", "thread": "libtsan.so"}.get(os.environ.get("SAN", ""))
if RUNTIME:
    RUNTIME = subprocess.run([os.environ.get("CC", "gcc"), "-print-file-name=" + RUNTIME], capture_output=True, text=True).stdout.strip()


def preloaded(**env):
    """The environment for a command that starts a program under remat, with these variables."""
    e = dict(os.environ, **env)
    if RUNTIME:
        e["LD_PRELOAD"] = ":".join(filter(None, (RUNTIME, env.get("LD_PRELOAD"))))
    return e


# The planner that programs start: min-cut first, and answers that are kept (tests/runner/planner.c). Under a sanitizer it asks a remat of an
# ordinary build, TEST_PLANNER: a sanitizer's gets as far in its seconds as one in a tenth of them, and comes to other plans than the tests ask
# for, or to none. (`remat plan` itself runs under the sanitizer in the tests that call it.)
PLANNER = os.path.join(B, "tests", "planner")
# Where a test names no policy its program waits for its plans: which iteration the plan begins with then hangs on no clock.
os.environ.setdefault("REMAT_POLICY", "plan")
# No run begins with what another one found out (test_cache.py names folders of its own).
os.environ.setdefault("REMAT_CACHE", "off")
# What goes on and what it came to (lines on stderr) is the question of test_tells.py alone: others look at warnings.
os.environ.setdefault("REMAT_QUIET", "1")
# What a program starts of itself, for tests whose question is the planning: planner=OWN_PLANNER
OWN_PLANNER = os.environ.get("TEST_PLANNER") or REMAT

# A sanitizer makes everything some ten times slower: what is no hang here is none there, and a solver gets as much longer.
SLOWER = float(os.environ.get("TEST_SLOWER") or (10 if RUNTIME else 1))


# What the library says where its own bookkeeping is wrong (policy/process/check.h): no test expects that.
CHECK_FAILED = "a check of remat's own failed"


class Result:
    def __init__(self, rc, out, err, device, stats):
        self.rc, self.out, self.err, self.device, self.stats = rc, out, err, device, stats

    @property
    def losses(self):
        return re.findall(r"^iter \d+ loss \S+", self.out, re.M)

    @property
    def checksum(self):
        m = re.search(r"checksum\s+(\S+)", self.out)
        return m.group(1) if m else None

    @property
    def peak(self):
        return self.device["peak_physical_bytes"]

    def iter_ms(self):
        """Device time of each iteration, as the program measured it."""
        return [float(x) for x in re.findall(r"^iter \d+ time ([0-9.eE+-]+)", self.out, re.M)]


LEAST_LIMIT = 1 << 20


def by_environment(options):
    """Options of `remat run`, and what goes into the environment for them: a limit below a MiB, which no user's program fits in, is refused on the command
    line."""
    options = [str(x) for x in options]
    if "--limit" in options:
        i = options.index("--limit")
        m = re.fullmatch(r"(\d+)(K?)", options[i + 1])
        if m and int(m.group(1)) << (10 if m.group(2) else 0) < LEAST_LIMIT:
            return options[:i] + options[i + 2:], {"REMAT_LIMIT": options[i + 1]}
    return options, {}


def load(path):
    """The JSON that a run left at path; {} where it left none."""
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def run(cmd, remat=None, env=None, timeout=300, planner=PLANNER):
    """Runs cmd (a list; the first word names a workload or is a path) on the simulated GPU; `remat`: options of `remat run`."""
    if "/" not in cmd[0]:
        cmd = [os.path.join(B, "workloads", cmd[0])] + cmd[1:]
    with tempfile.TemporaryDirectory(prefix="remat-test-") as tmp:
        dev, sta = os.path.join(tmp, "device.json"), os.path.join(tmp, "stats.json")
        e = preloaded(SIMGPU_STATS=dev, REMAT_SIMGPU="1", XDG_CACHE_HOME=tmp)
        e["LD_LIBRARY_PATH"] = os.path.join(B, "simgpu") + ":" + e.get("LD_LIBRARY_PATH", "")
        e.update(env or {})
        if remat is not None:
            options, more = by_environment(remat)
            e.update(more)
            cmd = [REMAT, "run", "--stats", sta] + options + ["--"] + ["env", "REMAT_BIN=" + planner] + cmd
        p = subprocess.run(cmd, env=e, capture_output=True, text=True, timeout=timeout * SLOWER)
        if CHECK_FAILED in p.stderr:
            raise AssertionError(p.stderr)
        return Result(p.returncode, p.stdout, p.stderr, load(dev), load(sta))


# an eighth of the workloads' own batches, and a device with an eighth of everything: for what does not depend on how much is computed
EIGHTH = {"mlp": 2048, "cnn": 4, "gpt": 64}
EIGHTH_DEVICE = {"SIMGPU_GRANULARITY": "262144", "SIMGPU_FLOPS": "11e12", "SIMGPU_BW": "0.175e12", "SIMGPU_HOST_BW": "3e9"}


def run_eighth(workload, options, remat=None, env=None):
    return run([workload, "--batch", str(EIGHTH[workload])] + options, remat=remat, env=dict(EIGHTH_DEVICE, **(env or {})))


def other_than(native, r, limit):
    """How a run under remat differs from the native one, or None; beside that, it must have kept its limit (bytes)."""
    if r.rc:
        return "exit %s %s" % (r.rc, r.err[-400:])
    if r.out != native.out:
        lines = zip(r.out.splitlines(), native.out.splitlines())
        return "other results: " + next(("%s, natively %s" % (a, b) for a, b in lines if a != b), "fewer lines")
    return None if r.peak <= limit else "%s bytes at a limit of %s" % (r.peak, limit)


def plan_against_native(cmd, percent, env, timeout=300):
    """cmd natively, then under a plan at so many per cent of its peak: how that differs (other_than), and remat's statistics."""
    native = run(cmd, env=env, timeout=timeout)
    if native.rc or not native.device:
        return "natively: exit %s %s" % (native.rc, native.err[-200:]), {}
    limit = native.peak * percent // 100
    try:
        r = run(cmd, remat=["--limit", limit, "--policy", "plan"], env=env, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "it hangs", {}
    return other_than(native, r, limit), r.stats


# Which suite this process belongs to, and which part of a test it is (tests/runner/run.py). By hand: everything, in one piece.
TIER = os.environ.get("TEST_TIER") or "all"
PART, PARTS = (int(n) for n in (os.environ.get("TEST_PART") or "0/1").split("/"))
# Programs at once: one where the runner has others beside this test.
WORKERS = 1 if "TEST_PART" in os.environ else os.cpu_count()


def drawn(items, test=None, check=None, always=(), salt="", whole=False):
    """The `items` that this process has to run, in their order: all of them in `make test-all` and by hand, so many in `make test` and `make
    check` (None: as many as in the next larger suite). Which ones is drawn from the commit's hash, so that all are met in time; `always` are
    among them whatever is drawn, beside that number. Two grids of one script need a salt each. Of these, every n-th where the test runs in n
    parts, unless the caller divides them later: `whole`."""
    items = list(items)
    most = {"all": None, "test": test, "check": test if check is None else check}[TIER]
    if most is not None and most < len(items):
        salt = os.environ.get("TEST_DRAW", "") + os.path.basename(sys.argv[0]) + salt
        by_lot = sorted(range(len(items)), key=lambda i: hashlib.sha256(("%s %d" % (salt, i)).encode()).digest())
        taken = set(by_lot[:most])
        items = [x for i, x in enumerate(items) if i in taken or x in always]
    return items if whole else items[PART::PARTS]


def so_many(whole, test=None, check=None):
    """A number that grows with the suite."""
    test = whole if test is None else test
    return {"all": whole, "test": test, "check": test if check is None else check}[TIER]


# A mean over all seeds of a grid is promised by no few of them: what a smaller suite may ask of the mean.
OF_MEAN = {"all": 1, "test": 0.25, "check": 0}[TIER]


def seeds_asked_for(count, test=None, check=None, always=()):
    """The seeds of --seed FIRST and --count N; where neither is given, those that are drawn of 1 .. count."""
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int)
    p.add_argument("--seed", type=int)
    a = p.parse_args()
    if a.count is None and a.seed is None:
        return drawn(range(1, count + 1), test, check, always)
    first = a.seed or 1
    return range(first, first + (count if a.count is None else a.count))


class Checks:
    """Counts what held and what did not."""

    def __init__(self):
        self.passed = self.failed = 0

    def ok(self, condition, what, detail=""):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED: %s %s" % (what, detail))
        return bool(condition)

    def end(self):
        print("%d passed, %d failed" % (self.passed, self.failed))
        return 1 if self.failed or not self.passed else 0
