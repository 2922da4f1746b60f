#!/usr/bin/env python3
"""What `remat run` says of itself: a line for each change of state, one at the end whose figures are those of --stats and true, what is not held; plans
that cannot be followed. And what it refuses to take for a limit."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
import test_progress  # noqa: E402

TELLS = {"REMAT_QUIET": "0"}
OURS = re.compile(r"^remat\[\d+\]: (.*)$", re.M)
CLOSING = re.compile(r"peak .*")
MIB = 1 << 20
TURNS, TENSOR = os.path.join(harness.B, "programs", "turns"), 4 * 32768


def lines(err):
    return OURS.findall(err)


def closing(c, what, r):
    said = [x for x in lines(r.err) if CLOSING.match(x)]
    c.ok(len(said) == 1 and lines(r.err)[-1] == said[0], what + ": one line at the end", r.err[-800:])
    return said[0] if said else ""


def mib(said, after):
    m = re.search(re.escape(after) + r" ?(\d+) (MiB|KiB)", said)
    return int(m.group(1)) << (20 if m.group(2) == "MiB" else 10) if m else None


def figures(c, what, r):
    """The closing line's figures are those of the statistics."""
    s, said = r.stats, closing(c, what, r)
    unit = lambda n: (n >> 20 << 20) if n >= 16 * MIB or (n and not n & (MIB - 1)) else -(-n // 1024) * 1024  # noqa: E731
    c.ok(mib(said, "peak") == unit(s["peak_physical_bytes"]), what + ": peak", said)
    c.ok(mib(said, "natively") == unit(s["native_peak_bytes"]), what + ": native peak", said)
    c.ok("%d of %d iterations by a plan" % (s["iterations_enforced"], s["iterations"]) in said, what + ": iterations", said)
    c.ok("; %.3f ms each" % (s["device_ns_per_iteration"] / 1e6) in said, what + ": time", said)
    if s["native_ns_per_iteration"]:
        c.ok("%+.1f %% on %.3f ms natively (%s)" % (100 * s["overhead"], s["native_ns_per_iteration"] / 1e6, s["native_is"]) in said, what + ": native time", said)
        c.ok(abs(s["overhead"] - (s["device_ns_per_iteration"] / s["native_ns_per_iteration"] - 1)) < 1e-5, what + ": overhead", str(s))
    else:
        c.ok("natively not known" in said and s["overhead"] is None and s["native_is"] is None, what + ": native time", said)
    c.ok("proved bound %+.1f %%" % (100 * s["bound"]) in said if s["bound"] is not None else "proved" not in said, what + ": bound", said)
    c.ok("copied %s out" % size(s["bytes_out"]) in said and "%s in" % size(s["bytes_in"]) in said, what + ": bytes", said)
    return said


def size(n):
    return "%d MiB" % (n >> 20) if n >= 16 * MIB or (n and not n & (MIB - 1)) else "%d KiB" % -(-n // 1024)


def under_a_plan(c, native):
    options = ["--iters", "16"]
    limit = native.peak * 60 // 100
    r = harness.run_eighth("mlp", options, ["--limit", limit, "--solver", "auto"], TELLS)
    said, s = figures(c, "a plan", r), r.stats
    c.ok(r.rc == 0 and s["plans"] > 0 and s["iterations_enforced"] > 6, "a plan", "%s %s" % (s, r.err))
    # 16 iterations and what is done once: the estimate is of one
    once = native.device["device_ns"] / 16
    c.ok(0.9 * once < s["native_ns_per_iteration"] < 1.05 * once and s["native_is"] == "estimated", "a plan: the native time is what it takes natively",
         "%s of %s" % (s["native_ns_per_iteration"], once))
    c.ok(s["bound"] is not None and 0 <= s["bound"] <= s["overhead"] + 0.01, "a plan: the bound is proved", str(s))
    c.ok(0.7 * limit < s["peak_physical_bytes"] == r.peak <= limit, "a plan: peak", str(s))
    c.ok(s["learning_s"] > s["learning_device_s"] > 0 and s["planning_s"] > 0 and s["first_enforced_s"] > s["learning_s"], "a plan: seconds", str(s))
    c.ok("; %d values compared, 0 differed" % s["verify_checked"] in said and s["verify_checked"] > 0, "a plan: values compared", said)
    c.ok(s["host_peak_bytes"] > 0 and ("why_not" in s) == (2 * s["iterations_enforced"] < s["iterations"]), "a plan: host memory", str(s))
    c.ok(re.search(r"\(the first \d+ ran before the plan was there\)", said), "a plan: why not more", said)
    states = [x for x in lines(r.err) if not CLOSING.match(x)]
    c.ok(states[:1] and states[0].startswith("learning what the ") and len(states) <= 1 + s["first_enforced_s"] / 10 + 1, "a plan: a line in ten seconds", r.err)
    quiet = harness.run_eighth("mlp", options, ["--limit", limit, "--quiet"], TELLS)
    c.ok(quiet.rc == 0 and not quiet.err and quiet.stats["iterations"], "--quiet", quiet.err)


def by_swapping(c):
    """Every tensor that moves is of one size: bytes are counted, not guessed."""
    env = dict(TELLS, SIMGPU_GRANULARITY="8192")
    native = harness.run([TURNS, "1", "12"], env=env)
    r = harness.run([TURNS, "1", "12"], ["--limit", native.peak // 2, "--policy", "swap"], env)
    s = r.stats
    figures(c, "swapping", r)
    c.ok(r.rc == 0 and r.out == native.out and s["swaps_out"] > 12, "swapping", "%s %s" % (s, r.err))
    c.ok(s["bytes_out"] == TENSOR * s["swaps_out"] and s["bytes_in"] == TENSOR * s["swaps_in"], "swapping: bytes", str(s))
    c.ok("(--policy swap makes no plan)" in r.err and s["why_not"] == "--policy swap makes no plan", "swapping: why", r.err)
    c.ok("swapping: --policy swap makes no plan" in r.err or s["launches"] < 1024, "swapping: a line", r.err)


def never_felt(c):
    native = harness.run_eighth("mlp", ["--iters", "40"])
    for options, says in ((["--limit", "50%"], "of 4096 MiB (50.00 % of the device's memory); "), ([], "without a limit; ")):
        r = harness.run_eighth("mlp", ["--iters", "40"], options, TELLS)
        said = closing(c, "never felt", r)
        c.ok(says in said and "each, as natively (measured)" in said, "never felt: %s" % options, said)
        once = native.device["device_ns"] / 40
        c.ok(r.stats["native_is"] == "measured" and abs(r.stats["native_ns_per_iteration"] / once - 1) < 0.05 and r.stats["overhead"] == 0,
             "never felt: measured", "%s %s" % (r.stats, once))
        c.ok(("the limit is not felt" in r.err) == bool(options) and r.stats["why_not"] == ("the limit was never felt" if options else "there was no limit"),
             "never felt: said", r.err)


def terminal(c):
    """One line, which is drawn anew; the program's own output stays where it is. Learning takes longer here than a line stands at least, 0.2 s."""
    env = dict(TELLS, REMAT_SIMGPU="1", LD_LIBRARY_PATH=os.path.join(harness.B, "simgpu"), REMAT_POLICY="plan", **harness.EIGHTH_DEVICE)
    if harness.RUNTIME:
        env["LD_PRELOAD"] = harness.RUNTIME
    cmd = [harness.REMAT, "run", "--limit", "36M", "--", "env", "REMAT_BIN=" + harness.PLANNER, os.path.join(harness.B, "workloads", "mlp"), "--batch", "8192"]
    said = test_progress.said_by(cmd + ["--iters", "10"], True, True, env)
    rows = re.findall(r"(\x1b\[(\d)A\r\x1b\[J)?remat\[\d+\]: (learning|planning for|plan in force|peak)", said)
    c.ok(len(rows) >= 3 and rows[0][2] == "learning" and not rows[0][0] and all(r[0] for r in rows[1:-1]) and rows[-1][2] == "peak" and not rows[-1][0],
         "a terminal: drawn anew", repr(said))


def not_held(c, tmp):
    def remat(*words, rc=0):
        p = subprocess.run([harness.REMAT, "run", *words], env=harness.preloaded(**TELLS), capture_output=True, text=True, timeout=60)
        c.ok(p.returncode == rc, "%s: exit" % (words,), "%d %s" % (p.returncode, p.stderr))
        return p.stderr

    python, stats = [sys.executable, "-c", "1"], os.path.join(tmp, "none.json")
    c.ok("used no GPU" in remat("--limit", "1G", "--", *python), "no GPU: said")
    c.ok(not remat("--", *python), "no GPU, and nothing asked: nothing said")
    err = remat("--stats", stats, "--", "bash", "-c", "'%s' -c 1; exit" % sys.executable)
    c.ok(err.count("used no GPU") == 1 and "the statistics say so" in err, "no GPU: said once", err)
    s = harness.load(stats)
    c.ok(s.get("mode") == "unused" and s.get("why_not") == "the program used no GPU" and s.get("launches") == 0, "no GPU: statistics", str(s))
    for text, word in (("12", "12 bytes: did you mean 12G"), ("50", "50%? A percentage is of the device's memory"), ("500", "did you mean 500G, or 500M?"),
                       ("200K", "no program fits in less than 1 MiB"), ("1048575", "less than 1 MiB")):
        err = remat("--limit", text, "--", *python, rc=125)
        c.ok(word in err and err.count("\n") == 1, "--limit " + text, err)
    p = subprocess.run([harness.REMAT, "run", "--", *python], env=harness.preloaded(REMAT_SOLVER="minced"), capture_output=True, text=True, timeout=60)
    c.ok(p.returncode == 125 and 'REMAT_SOLVER=minced: no such solver' in p.stderr and 'did you mean "mincut"' in p.stderr, "REMAT_SOLVER by hand", p.stderr)
    bad = os.path.join(tmp, "bad.json")
    with open(bad, "w") as f:
        f.write('{"format": "plan-1", "steps": 3}')
    c.ok("bad.json:1:" in remat("--plan", bad, "--", *python, rc=125), "a plan that is none: told at the start")
    c.ok("--plan FILE" in remat("--plan-only", "--", *python, rc=125), "--plan-only alone")


def left_alone(c, tmp):
    """--policy off with --stats wrote no file once. A child that the program forks writes none."""
    r = harness.run_eighth("mlp", ["--iters", "2"], ["--policy", "off"])
    c.ok(r.rc == 0 and not r.err and r.stats.get("mode") == "off" and r.stats.get("launches") == 0 and "--policy off" in r.stats.get("why_not", ""), "--policy off: statistics",
         "%s %s" % (r.stats, r.err))
    folder = os.path.join(tmp, "off")
    os.mkdir(folder)
    forks = "import ctypes, os, sys\nassert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0\npid = os.fork()\npid and os.waitpid(pid, 0)\n"
    p = subprocess.run([harness.REMAT, "run", "--policy", "off", "--stats", os.path.join(folder, "s.json"), "--", sys.executable, "-c", forks],
                       env=harness.preloaded(REMAT_SIMGPU="1", LD_LIBRARY_PATH=os.path.join(harness.B, "simgpu")), capture_output=True, text=True, timeout=60)
    c.ok(p.returncode == 0 and os.listdir(folder) == ["s.json"], "--policy off: one file", "%s %s" % (os.listdir(folder), p.stderr))


def too_short(c, native):
    """A run that ends before a plan is in force says how far it had come."""
    for policy, iterations, why in (("plan", 1, "no iteration that comes again was recognised"), ("plan", 3, "the program ended while its iteration was being learnt"),
                                    ("auto", 5, "the program ended while its (plan was being made|iteration was being learnt)|the program ended before its plan was proved|"
                                     "the plan was left after iteration 5: code that the recorded iteration launches is unloaded|copies have taken little time so far, "
                                     "less than it takes to learn an iteration")):
        r = harness.run_eighth("mlp", ["--iters", str(iterations)], ["--limit", native.peak * 60 // 100, "--policy", policy], TELLS)
        said = closing(c, "too short", r)
        c.ok(r.rc == 0 and not r.stats["iterations_enforced"] and re.fullmatch(why, r.stats["why_not"]) and r.stats["why_not"] in said,
             "%d iterations: why not" % iterations, "%s %s" % (r.stats, said))


def would_do(c, native):
    """The limit that a refused allocation names is enough for that one: the program comes further under it. Once it named less than the limit at hand."""
    limit, held = native.peak // 2, 0
    for _ in range(2):
        r = harness.run_eighth("mlp", ["--iters", "2"], ["--limit", limit, "--policy", "swap", "--host-swap", "1M"], TELLS)
        m = re.search(r"an allocation of .* does not fit: limit .*, (\d+) KiB held by the program, .*; --limit (\d+)K would do for it", r.err)
        if not c.ok(r.rc == 1 and m and int(m.group(2)) << 10 > limit and int(m.group(1)) > held, "the limit that would do, after %s" % limit, r.err):
            return
        held, limit = int(m.group(1)), int(m.group(2)) << 10


def own_plan(c, tmp, native):
    """A plan made for a limit is followed under that limit, by itself: `plan --limit 150M` knew nothing of what a run keeps, and `run --limit 150M` swapped for life."""
    trace, plan, limit = os.path.join(tmp, "own.trace.json"), os.path.join(tmp, "own.json"), native.peak * 60 // 100
    r = harness.run_eighth("mlp", ["--iters", "16"], ["--trace-out", trace])
    p = subprocess.run([harness.REMAT, "plan", trace, "--limit", str(limit), "--solver", "mincut", "--time-limit", "1", "-o", plan], capture_output=True, text=True)
    if not c.ok(r.rc == 0 and p.returncode == 0 and "remat run --limit %d" % limit in p.stdout, "a plan for a limit", p.stdout + p.stderr + r.err):
        return
    r = harness.run_eighth("mlp", ["--iters", "16"], ["--limit", limit, "--plan", plan, "--plan-only"])
    c.ok(r.rc == 0 and r.out == native.out and r.peak <= limit and r.stats["iterations_enforced"] > 6 and r.stats["replays"], "followed at that limit", "%s %s" % (r.stats, r.err))


def other_plan(c, tmp, native):
    """A plan of another program: another is made at once; with --plan-only the program ends; where nothing has to be planned, that is said."""
    other = os.path.join(tmp, "other.json")
    with open(other, "w") as f:
        f.write('{"format": "plan-1", "steps": [{"op": 0}]}')
    limit = ["--limit", native.peak * 60 // 100]
    r = harness.run_eighth("mlp", ["--iters", "16"], limit + ["--plan", other])
    c.ok(r.rc == 0 and r.out == native.out and "made for another program, or for other shapes; another plan is made" in r.err and r.stats["iterations_enforced"] > 6,
         "planned anew", "%s %s" % (r.stats, r.err))
    r = harness.run_eighth("mlp", ["--iters", "16"], limit + ["--plan", other, "--plan-only"])
    c.ok(r.rc == 125 and "--plan-only: the program ends here" in r.err and "final" not in r.out and r.stats["iterations"], "--plan-only", "%d %s" % (r.rc, r.err))
    r = harness.run_eighth("mlp", ["--iters", "16"], ["--plan", other])
    c.ok(r.rc == 0 and r.out == native.out and "nothing is planned, since the program fits the limit, or has none" in r.err, "no limit", r.err)


def main():
    if not os.path.exists(TURNS):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    native = harness.run_eighth("mlp", ["--iters", "16"])
    with tempfile.TemporaryDirectory(prefix="remat-test-") as tmp:
        under_a_plan(c, native)
        by_swapping(c)
        never_felt(c)
        terminal(c)
        not_held(c, tmp)
        left_alone(c, tmp)
        own_plan(c, tmp, native)
        other_plan(c, tmp, native)
    too_short(c, native)
    would_do(c, native)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
