#!/usr/bin/env python3
"""More memory never costs more, over the recorded traces: the overhead never rises with the limit, there is no hole, no plan is over its
limit and none below its bound.

Twice: one `remat sweep` over all limits, which remembers from one limit to the next, and `remat plan` alone, each limit in a process
of its own, its plan passed to the independent judge; both must say the same at the same limit. MONOTONE_STEP: per cent between
limits of the sweep, MONOTONE_ALONE: of `remat plan` (a multiple of it; default: a slice of two limits each); MONOTONE_TRACES: names."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import instances  # noqa: E402

REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")


def plan(trace, pct, out):
    run = subprocess.run([REMAT, "plan", trace, "--limit", "%g%%" % pct, "--no-offload", "--json", "-o", out], capture_output=True, text=True)
    if run.returncode not in (0, 2, 3) or not run.stdout.strip():
        raise SystemExit("%s at %g %%: exit %d %s" % (trace, pct, run.returncode, run.stderr))
    return json.loads(run.stdout)


def sweep(trace, limits):
    """A row each limit; the limits are asked for from the highest down, as people do."""
    run = subprocess.run([REMAT, "sweep", trace, "--solvers", "auto", "--no-offload", "--json", "--limits",
                          ",".join("%g%%" % p for p in reversed(limits))], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit("%s: sweep: exit %d %s" % (trace, run.returncode, run.stderr))
    return list(reversed(json.loads(run.stdout)["rows"]))


def rising(rows):
    """What is wrong with rows of (per cent, limit, feasible, peak, cost), the limits rising; None: nothing."""
    last = None
    for pct, limit, feasible, peak, cost in rows:
        if not feasible and last is not None:
            return "%g %%: a hole: a smaller limit has a plan" % pct
        if feasible and peak > limit:
            return "%g %%: %d bytes, over the limit" % (pct, peak)
        if feasible and last is not None and cost > last:
            return "%g %%: costs %s, and %s with less memory" % (pct, cost, last)
        last = cost if feasible else last
    return None


def judged(judge, tr, r, plan_file, where):
    """Faults of one plan of `remat plan`."""
    got = judge.verify(tr, judge.load(plan_file), r["limit_bytes"])
    if not got["ok"] or got["ns"] != r["planned_ns"]:
        return "%s: %s against %s" % (where, got, r)
    if r["bound"] is None or r["gap"] < -1e-9 or abs(r["overhead"] - r["bound"] - r["gap"]) > 2e-6:
        return "%s: bound %s gap %s overhead %s" % (where, r["bound"], r["gap"], r["overhead"])
    return None


def one_trace(judge, trace, limits, alone, tmp):
    """Returns how many plans held; ends the test otherwise."""
    name, out, tr = instances.name_of(trace), os.path.join(tmp, "p.json"), judge.load(trace)
    rows = sweep(trace, limits)
    swept = [(p, r["limit_bytes"], r["feasible"], r["peak_bytes"], r["overhead"]) for p, r in zip(limits, rows)]
    wrong = rising(swept)
    lonely = []
    for pct in alone:
        if wrong:
            break
        r = plan(trace, pct, out)
        lonely.append((pct, r["limit_bytes"], r["feasible"], r["peak_bytes"], r["planned_ns"]))
        wrong = judged(judge, tr, r, out, "%s at %g %%" % (name, pct)) if r["feasible"] else None
        same = rows[limits.index(pct)]
        if not wrong and any(r[k] != same[k] for k in ("limit_bytes", "feasible", "peak_bytes", "overhead", "replays")):
            wrong = "%g %%: alone %s, in the sweep %s" % (pct, r, same)
    wrong = wrong or rising(lonely)
    if wrong:
        raise SystemExit("%s: %s" % (name, wrong))
    found = [s for s in swept if s[2]]
    print("%-22s %d limits swept, %d alone; plans from %s" % (name, len(swept), len(lonely), "%g %% (%.2f %% dearer) up" % (
        found[0][0], 100 * found[0][4]) if found else "nowhere"))
    sys.stdout.flush()
    return len(found) + sum(x[2] for x in lonely)


def main():
    assert rising([(1, 10, 1, 9, 5), (2, 20, 1, 9, 6)]) and rising([(1, 10, 1, 9, 5), (2, 20, 0, None, None)])
    assert rising([(1, 10, 1, 11, 5)]) and not rising([(1, 10, 0, None, None), (2, 20, 1, 20, 5), (3, 30, 1, 5, 5)])
    traces = instances.traces()
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    judge = instances.Judge
    step = float(os.environ.get("MONOTONE_STEP", "0"))
    names = os.environ.get("MONOTONE_TRACES", "" if step else "resnet50-b128,unet-b32,novel_pairwise-b4096")
    # the slice is where plans take a second; test_cover.c has the ladder on graphs where plans of one limit alone cost more with
    # more memory
    limits = [10 + step * i for i in range(int(90 / step) + 1)] if step else [49.5, 50.0]
    alone = float(os.environ.get("MONOTONE_ALONE", str(step)))
    alone = limits[::max(1, round(alone / step))] if step else limits
    plans = 0
    with tempfile.TemporaryDirectory() as tmp:
        for trace in traces:
            if not names or instances.name_of(trace) in names.split(","):
                plans += one_trace(judge, trace, limits, alone, tmp)
    print("%d plans, none dearer than with less memory" % plans)
    return 0 if plans else 1


if __name__ == "__main__":
    sys.exit(main())
