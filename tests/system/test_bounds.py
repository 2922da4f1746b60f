#!/usr/bin/env python3
"""No plan is below a bound: every solver's plan on every recorded trace against every bound that `auto` proved.

A bound holds for its limit and every smaller one, so a plan is held against the bounds of all limits that its peak is within,
not only against that of the limit it was made for. Every plan passes the independent judge first. BOUNDS_LIMITS (per cent)
and BOUNDS_TRACES (names) say what is looked at (default: a slice), BOUNDS_SECONDS what each solver may take. `make bounds`
looks at all traces."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
import instances  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
SOLVERS = ["auto", "anneal", "mincut", "chain", "chain-float", "chen-greedy", "chen-sqrt", "dtr", "milp", "revolve"]
ROUNDING = 1e-6  # the overhead is printed with six decimals


def plan(trace, pct, solver, seconds, out):
    cmd = [REMAT, "plan", trace, "--limit", "%g%%" % pct, "--solver", solver, "--no-offload", "--json", "-o", out]
    if solver != "auto":
        cmd += ["--time-limit", str(seconds)]
    run = subprocess.run(cmd, capture_output=True, text=True)
    if run.returncode not in (0, 2, 3) or (run.returncode == 0 and not run.stdout.strip()):
        raise SystemExit("%s: exit %d %s" % (" ".join(cmd), run.returncode, run.stderr))
    return json.loads(run.stdout) if run.stdout.strip() else {"feasible": False, "bound": None}


def below(bounds, plans):
    """The first plan that is cheaper than a bound which holds for it."""
    for limit, bound, at in bounds:
        for peak, overhead, who in plans:
            if peak <= limit and overhead < bound - ROUNDING:
                return "%s: overhead %.6f with a peak of %d, and the bound of %s is %.6f" % (who, overhead, peak, at, bound)
    return None


def main():
    assert below([(100, 0.10, "b")], [(100, 0.09, "p")]) and not below([(100, 0.10, "b")], [(101, 0.09, "p"), (50, 0.1, "q")])
    traces = instances.traces()
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    judge = instances.Judge
    limits = [float(p) for p in (os.environ.get("BOUNDS_LIMITS") or ",".join(harness.drawn(("50", "70"), test=1))).split(",")]
    names = os.environ.get("BOUNDS_TRACES", "resnet50-b128,unet-b32")
    seconds = float(os.environ.get("BOUNDS_SECONDS", "1"))
    n = n_bounds = 0
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "p.json")
        for trace in traces:
            name = instances.name_of(trace)
            if names != "all" and name not in names.split(","):
                continue
            tr, bounds, plans = judge.load(trace), [], []
            for pct in limits:
                for solver in SOLVERS:
                    r = plan(trace, pct, solver, seconds, out)
                    where = "%s, %s at %g %%" % (name, solver, pct)
                    if r["bound"] is not None:
                        bounds.append((r["limit_bytes"], r["bound"], where))
                    if not r["feasible"]:
                        continue
                    got = judge.verify(tr, judge.load(out), r["limit_bytes"])
                    if not got["ok"] or got["ns"] != r["planned_ns"]:
                        print("%s: %s against %s" % (where, got, r))
                        return 1
                    plans.append((got["peak_bytes"], r["overhead"], where))
            wrong = below(bounds, plans)
            if wrong:
                print(wrong)
                return 1
            best = {}
            for _, overhead, who in plans:
                pct = who.split(" at ")[1]
                best[pct] = min(best.get(pct, overhead), overhead)
            print("%-22s %d plans, %d bounds; best %s" % (name, len(plans), len(bounds), " ".join(
                "%s %.4f" % (k, best[k]) for k in sorted(best))))
            sys.stdout.flush()
            n += len(plans)
            n_bounds += len(bounds)
    print("%d plans, none below the %d bounds" % (n, n_bounds))
    return 0 if n and n_bounds else 1


if __name__ == "__main__":
    sys.exit(main())
