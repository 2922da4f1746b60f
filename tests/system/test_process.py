#!/usr/bin/env python3
"""remat and the processes around it: the statistics are there however the program ends, and its end stays what it was; what the
planner's answer makes of a run."""
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

LEAVE = os.path.join(harness.B, "programs", "leave")
PLANNED = ["env", "REMAT_BIN=" + harness.PLANNER, LEAVE]
PATIENCE = 300 if harness.RUNTIME else 60


def environment(tmp, **more):
    e = dict(os.environ, REMAT_SIMGPU="1", XDG_CACHE_HOME=tmp, REMAT_STATUS_DIR=os.path.join(tmp, "status"), **more)
    e["LD_LIBRARY_PATH"] = os.path.join(harness.B, "simgpu") + ":" + e.get("LD_LIBRARY_PATH", "")
    if harness.RUNTIME:
        e["LD_PRELOAD"] = harness.RUNTIME
    return e


def until(condition):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


# ---- statistics ---------------------------------------------------------------------------------------------------------

def ends_by_signal(c, tmp, how, number, code):
    """A program that works until a signal comes: what the file showed before the signal is in it afterwards, or more."""
    name = "%s, %s" % (how, signal.Signals(number).name)
    sta, out = os.path.join(tmp, "%s-%d.json" % (how, number)), os.path.join(tmp, "out")
    with open(out, "w") as f:
        p = subprocess.Popen([harness.REMAT, "run", "--limit", "12800K", "--policy", "plan", "--stats", sta, "--", *PLANNED, how],
                             env=environment(tmp), stdout=f, stderr=subprocess.DEVNULL)
    c.ok(until(lambda: "on\n" in open(out).read() and harness.load(sta).get("iterations_enforced", 0) > 4), name + ": statistics while it runs")
    seen = harness.load(sta)
    p.send_signal(number)
    p.wait(PATIENCE)
    c.ok(p.returncode == code, name + ": exit", "%d, not %d" % (p.returncode, code))
    s = harness.load(sta)
    for key in ("launches", "iterations", "iterations_enforced", "replays"):
        c.ok(s.get(key, 0) >= seen.get(key, 0) > 0, "%s: %s" % (name, key), "%s after %s" % (s, seen))
    c.ok(s.get("limit_bytes") == 12800 << 10 and 0 < s.get("peak_physical_bytes", 0) <= 12800 << 10, name + ": peak", str(s))
    c.ok(not os.path.exists(sta + ".1"), name + ": one file")


def same_end(c, tmp):
    """Ends that run no destructor leave the same counts as an orderly one."""
    counts = {}
    for how in ("exit", "_exit", "quick_exit", "abort", "exec"):
        r = harness.run([LEAVE, how], ["--limit", "12800K", "--policy", "swap"], timeout=PATIENCE)
        native = harness.run([LEAVE, how], timeout=PATIENCE)
        c.ok(r.rc == native.rc and r.out == native.out, how + ": as natively", "%d %d" % (r.rc, native.rc))
        counts[how] = {k: r.stats.get(k) for k in ("launches", "limit_bytes", "iterations")}
    for how in ("_exit", "quick_exit"):
        c.ok(counts[how] == counts["exit"] and counts["exit"]["launches"], how + ": counts", str(counts))
    for how in ("abort", "exec"):
        c.ok(counts[how]["limit_bytes"] == 12800 << 10, how + ": statistics", str(counts))


def kept_file(c, tmp):
    """What the file that is kept must not do: end the program, go where it has no business, spoil what it cannot write."""
    run = [harness.REMAT, "run", "--limit", "12800K", "--policy", "swap", "--stats"]
    sta = os.path.join(tmp, "cut.json")
    p = subprocess.Popen(run + [sta, "--", *PLANNED, "exit"], env=environment(tmp), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: os.path.exists(sta) or p.poll() is not None)
    try:
        os.truncate(sta, 0)
        os.unlink(sta)
    except OSError:
        pass
    out, err = p.communicate(timeout=PATIENCE)
    c.ok(p.returncode == 0 and harness.load(sta).get("launches"), "truncated and removed meanwhile", "%d %s" % (p.returncode, err))
    fifo = os.path.join(tmp, "fifo")
    os.mkfifo(fifo)
    p = subprocess.Popen(run + [fifo, "--", *PLANNED, "exit"], env=environment(tmp), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(fifo) as f:
        got = f.read()
    p.wait(PATIENCE)
    c.ok(json.loads(got or "{}").get("launches") and stat.S_ISFIFO(os.stat(fifo).st_mode), "a pipe gets one object, at the end", got)
    link, target = os.path.join(tmp, "link.json"), os.path.join(tmp, "target.json")
    os.symlink(target, link)
    p = subprocess.run(run + [link, "--", *PLANNED, "abort"], env=environment(tmp), capture_output=True, timeout=PATIENCE)
    c.ok(os.path.islink(link) and harness.load(target).get("limit_bytes"), "a symlink stays one", str(p))
    # two processes at once under one name, both killed
    one = os.path.join(tmp, "one.json")
    p = subprocess.run(run + [one, "--", "sh", "-c", "'%s' abort & '%s' abort & wait" % (LEAVE, LEAVE)], env=environment(tmp),
                       capture_output=True, text=True, timeout=PATIENCE)
    c.ok(harness.load(one).get("limit_bytes") and harness.load(one + ".1").get("limit_bytes"), "two processes, two files", p.stderr[-300:])


# ---- the planner ---------------------------------------------------------------------------------------------------------

PLANNER = """#!/bin/sh
echo "$*" >>'%(log)s'
case "$*" in *--offload*) exec '%(remat)s' "$@" ;; esac
echo 'plan: recomputing alone does not reach the limit' >&2
exit 3
"""


def copies_where_recomputing_fails(c, tmp):
    """A planner that finds nothing without copies to the host: `plan` asks again with them, `dtr` does not. `auto` begins with them, where the plan is made in
    a moment."""
    for policy, enforced in (("plan", True), ("auto", True), ("dtr", False)):
        log, planner = os.path.join(tmp, "asked-" + policy), os.path.join(tmp, "planner")
        with open(planner, "w") as f:
            f.write(PLANNER % {"log": log, "remat": harness.OWN_PLANNER})
        os.chmod(planner, 0o755)
        r = harness.run(["/usr/bin/env", "REMAT_BIN=" + planner, os.path.join(harness.B, "workloads", "mlp"), "--iters", "20", "--batch", "256",
                         "--layers", "4", "--print-loss"], ["--limit", 610000, "--policy", policy], {"SIMGPU_GRANULARITY": "16384", "SIMGPU_HOST_BW": "25e7"}, PATIENCE)
        with open(log) as f:
            asked = ["--offload" in line for line in f]
        c.ok(r.rc == 0 and asked[:1] == [policy == "auto"] and (True in asked[1:]) == enforced, policy + ": asks", str(asked) + r.err[-300:])
        c.ok((r.stats.get("iterations_enforced", 0) > 0) == enforced, policy + ": a plan with copies", str(r.stats) + r.err[-300:])


HASTY = """#!/bin/sh
echo "$*" >>'%(log)s'
case "$*" in *--time-limit\ 8*) exec '%(remat)s' "$@" ;; esac
echo 'plan: no schedule within the limit after 0 mutations' >&2
exit 3
"""


def planner_that_had_no_time(c, tmp):
    """A machine so busy that the planner's usual seconds end before one schedule is whole: it is asked again, with more of them."""
    log, planner = os.path.join(tmp, "asked-in-haste"), os.path.join(tmp, "hasty")
    with open(planner, "w") as f:
        f.write(HASTY % {"log": log, "remat": harness.REMAT})
    os.chmod(planner, 0o755)
    r = harness.run(["/usr/bin/env", "REMAT_BIN=" + planner, os.path.join(harness.B, "workloads", "mlp"), "--iters", "14", "--batch", "256",
                     "--layers", "4", "--print-loss"], ["--limit", 700000, "--policy", "plan"], {"SIMGPU_GRANULARITY": "16384"}, PATIENCE)
    with open(log) as f:
        asked = [("--offload" in line, "--time-limit 8" in line) for line in f]
    # recomputing, with copies, with them and all that there is, and then once more with patience
    c.ok(r.rc == 0 and asked[:4] == [(False, False), (True, False), (True, False), (False, True)], "in haste: asked again with patience", str(asked) + r.err[-300:])
    c.ok(r.stats.get("iterations_enforced", 0) > 0, "in haste: a plan in the end", str(r.stats) + r.err[-300:])


SLOW = """#!/bin/sh
echo $$ >>'%(log)s'
%(does)s
exec '%(remat)s' "$@"
"""
PAUSE_MS = 200
PAUSES = os.path.join(harness.B, "programs", "pauses")


def with_planner(tmp, does, train, policy="auto", tries=3):
    """The program `pauses` at 60 percent, with a planner that does this first: what it came to, how long its longest call took in ms, and how often the
    planner was asked. On a busy machine once more, if a call took long."""
    log, planner, device = os.path.join(tmp, "asked"), os.path.join(tmp, "slow"), {"SIMGPU_GRANULARITY": "65536", "REMAT_LOG": "info"}
    native = harness.run([PAUSES, train[0], "0", *train[2:]], env=device)
    with open(planner, "w") as f:
        f.write(SLOW % {"log": log, "does": does, "remat": harness.OWN_PLANNER})
    os.chmod(planner, 0o755)
    for left in reversed(range(tries)):
        open(log, "w").close()
        r = harness.run([PAUSES, *train], ["--limit", native.peak * 60 // 100, "--policy", policy], device, PATIENCE, planner=planner)
        longest = re.search(r"longest call: (\d+) ms", r.err)
        ms = int(longest.group(1)) if longest else 1 << 30
        if ms < PAUSE_MS or not left:
            break
    pids = [int(n) for n in open(log).read().split()]
    return (harness.other_than(native, r, native.peak * 60 // 100), r, ms, pids)


def goes_on_while_it_is_planned(c, tmp):
    """However long a planner takes, a program stands still for no call longer than 200 ms, and its plan comes into force later."""
    def case(what, does, train, enforced, asked=1):
        wrong, r, ms, pids = with_planner(tmp, does, train)
        c.ok(not wrong, what + ": as natively", wrong)
        c.ok(ms < PAUSE_MS, what + ": it goes on", "%d ms %s" % (ms, r.err[-600:]))
        c.ok((r.stats.get("iterations_enforced", 0) > 0) == enforced, what + ": a plan", "%s %s" % (r.stats.get("iterations_enforced"), r.err[-600:]))
        c.ok(len(pids) >= asked, what + ": asked", str(pids))
        c.ok(not any(os.path.exists("/proc/%d" % p) for p in pids), what + ": no planner outlives it", str(pids))
        return r

    case("a slow planner", "sleep 1", ["70", "50"], True)
    case("a planner that dies", "kill -9 $$", ["40", "10"], False, asked=3)
    r = case("a planner that never answers", "exec sleep 600", ["150", "80"], False)
    c.ok("has not answered" in r.err, "a planner that never answers: it is ended", r.err[-600:])
    r = case("a plan for another shape", "sleep 1", ["90", "40", "other", "10"], True)
    c.ok(r.err.count("an iteration is") > 1, "a plan for another shape: learnt anew", r.err[-600:])
    r = case("a planner that is asked for a shape that has gone", "[ $(wc -l <'%s') -gt 1 ] || exec sleep 600" % os.path.join(tmp, "asked"), ["110", "30", "other", "10"], True)
    c.ok("something else than what a plan was asked for" in r.err, "a planner that is asked for a shape that has gone: it is ended", r.err[-600:])
    r = case("a plan for other tensors", "sleep 1", ["70", "50", "anew", "10"], True)
    c.ok(r.err.count("an iteration is") == 1, "a plan for other tensors: these have the part of the recorded ones", r.err[-600:])
    # who asks for a plan and nothing else waits for it
    wrong, r, ms, _ = with_planner(tmp, "sleep 1", ["20", "0"], policy="plan", tries=1)
    c.ok(not wrong and ms >= 1000 and r.stats.get("iterations_enforced", 0) > 8, "--policy plan waits", "%s %d ms %s" % (wrong, ms, r.stats))


def bandwidth_is_measured(c, tmp):
    """The planner is told how fast this machine's copies are."""
    for want in harness.drawn((1e9, 40e9), test=1, salt="bandwidth"):
        trace = os.path.join(tmp, "trace-%g.json" % want)
        r = harness.run(["mlp", "--iters", "8", "--batch", "4096"], ["--limit", "15M", "--policy", "plan", "--trace-out", trace], {"SIMGPU_HOST_BW": "%g" % want}, PATIENCE)
        got = harness.load(trace).get("meta", {}).get("host_bytes_per_s", 0)
        c.ok(r.rc == 0 and 0.8 * want < got < 1.05 * want, "copies at %g bytes a second" % want, "%s %s" % (got, r.err[-300:]))


# ---- memory that nobody touches ------------------------------------------------------------------------------------------

def untouched(c):
    """Allocations that no op touches take the place of nothing; one that is touched late gets its memory then."""
    program = os.path.join(harness.B, "programs", "untouched")
    for env, swaps in (({}, 0), ({"UNTOUCHED_LATE": "1"}, None)):
        native = harness.run([program], env=dict(env, SIMGPU_GRANULARITY="65536"))
        r = harness.run([program], ["--limit", "9M" if env else "7M", "--policy", "swap"], dict(env, SIMGPU_GRANULARITY="65536"))
        c.ok(native.rc == r.rc == 0 and native.out == r.out, "untouched %s: output" % env, "%d %s" % (r.rc, r.err[-300:]))
        if swaps is not None:
            c.ok(r.stats.get("swaps_out") == swaps and r.stats.get("limit_bytes") == 7 << 20, "untouched: nothing is moved", str(r.stats))


def stack_is_swept(c):
    """What a call has left on the program's stack is no operand of what the program hands over from there unfilled."""
    program, small = os.path.join(harness.B, "programs", "litter"), "512" if harness.RUNTIME else "16"
    free, r = (harness.run([program, small], ["--limit", limit, "--policy", "plan"]) for limit in ("2G", "100M"))
    words = free.out.split()
    c.ok(free.rc == 0 and words[0:5:2] == ["alloc", "fill", "free"] and int(words[3]) > 50, "where memory is never short, what a call leaves there stays", free.out)
    c.ok(r.rc == 0 and r.out.split() == ["alloc", "0", "fill", "0", "free", "0", "lives"], "a call leaves nothing there", "%d %s%s" % (r.rc, r.out, r.err[-300:]))


def main():
    if not os.path.exists(LEAVE):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    with tempfile.TemporaryDirectory(prefix="remat-test-") as tmp:
        ends_by_signal(c, tmp, "work", signal.SIGTERM, -signal.SIGTERM)
        ends_by_signal(c, tmp, "work", signal.SIGKILL, -signal.SIGKILL)
        ends_by_signal(c, tmp, "signal", signal.SIGTERM, 9)
        same_end(c, tmp)
        kept_file(c, tmp)
        copies_where_recomputing_fails(c, tmp)
        planner_that_had_no_time(c, tmp)
        goes_on_while_it_is_planned(c, tmp)
        bandwidth_is_measured(c, tmp)
        untouched(c)
        stack_is_swept(c)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
