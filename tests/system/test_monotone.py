#!/usr/bin/env python3
"""More memory never costs more: `remat plan` at rising limits, each in a process of its own, over the recorded traces. Every
plan passes the independent judge, none is over its limit, none is below the bound that came with it, and there is no hole.
MONOTONE_STEP (per cent, default: a slice of two limits) and MONOTONE_TRACES (names) widen it. Exit 77 without traces."""
import glob
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get("REMAT_SHARED", "")
REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")


def plan(trace, pct, out):
    run = subprocess.run([REMAT, "plan", trace, "--limit", "%g%%" % pct, "--json", "-o", out], capture_output=True, text=True)
    if run.returncode not in (0, 2, 3) or not run.stdout.strip():
        raise SystemExit("%s at %g %%: exit %d %s" % (trace, pct, run.returncode, run.stderr))
    return json.loads(run.stdout)


def main():
    traces = sorted(glob.glob(os.path.join(SHARED, "traces", "*.json"))) if SHARED else []
    if not traces or not os.path.exists(REMAT):
        print("no traces or no remat: skipped")
        return 77
    spec = importlib.util.spec_from_file_location("verify_plan", os.path.join(SHARED, "verify_plan.py"))
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    step = float(os.environ.get("MONOTONE_STEP", "0"))
    names = os.environ.get("MONOTONE_TRACES", "" if step else "resnet50-b128,unet-b32")
    # the slice is where plans take a second; test_cover.c has the ladder on graphs where plans of one limit alone cost more with
    # more memory
    limits = [10 + step * i for i in range(int(90 / step) + 1)] if step else [49.5, 50.0]
    plans = 0
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "p.json")
        for trace in traces:
            if names and os.path.basename(trace)[:-5] not in names.split(","):
                continue
            tr, last = judge.load(trace), None
            for pct in limits:
                r = plan(trace, pct, out)
                where = "%s at %g %%" % (os.path.basename(trace), pct)
                if not r["feasible"]:
                    if last is not None:
                        print(where + ": a hole: a smaller limit has a plan")
                        return 1
                    continue
                got = judge.verify(tr, judge.load(out), r["limit_bytes"])
                if not got["ok"] or got["ns"] != r["planned_ns"]:
                    print(where + ": %s against %s" % (got, r))
                    return 1
                if last is not None and r["planned_ns"] > last:
                    print(where + ": %d ns, and %d with less memory" % (r["planned_ns"], last))
                    return 1
                if r["bound"] is None or r["gap"] < -1e-9 or abs(r["overhead"] - r["bound"] - r["gap"]) > 2e-6:
                    print(where + ": bound %s gap %s overhead %s" % (r["bound"], r["gap"], r["overhead"]))
                    return 1
                last = r["planned_ns"]
                plans += 1
    print("%d plans, none dearer than with less memory" % plans)
    return 0 if plans else 1


if __name__ == "__main__":
    sys.exit(main())
