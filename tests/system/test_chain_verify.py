#!/usr/bin/env python3
"""The chain solvers on real models: every plan passes the independent judge within its limit, says of itself what the
judge finds, comes out the same twice, and the dynamic program beats the classic schedules. Exit 77 without the traces."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import harness  # noqa: E402

SHARED = os.environ.get("REMAT_SHARED", "")
REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
JUDGE = os.path.join(SHARED, "verify_plan.py")
CASES = [("unet-b32", "60%"), ("resnet18-b64", "70%"), ("vgg11-b64", "90%"), ("novel_pairwise-b4096", "90%")]
SOLVERS = ["chain", "chain-float", "revolve", "chen-sqrt", "chen-greedy"]


def main():
    if not SHARED or not os.path.exists(JUDGE) or not os.path.exists(REMAT):
        print("no verify_plan.py or no remat: skipped")
        return 77
    spec = importlib.util.spec_from_file_location("verify_plan", JUDGE)
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for model, limit in harness.drawn(CASES, test=1):
            trace = os.path.join(SHARED, "traces", model + ".json")
            tr = judge.load(trace)
            ns = {}
            for solver in SOLVERS:
                out = os.path.join(tmp, "p.json")
                cmd = [REMAT, "plan", trace, "--limit", limit, "--solver", solver, "--time-limit", str(60 * harness.SLOWER), "--no-offload", "--json", "-o", out]
                run = subprocess.run(cmd, capture_output=True, text=True)
                said = json.loads(run.stdout)
                if run.returncode == 3 and not said["feasible"] and solver.startswith("chen"):
                    continue  # these have one schedule, or few
                first = open(out).read()
                found = judge.verify(tr, judge.load(out), said["limit_bytes"])
                good = (found["ok"] and found["peak_bytes"] == said["peak_bytes"] and found["ns"] == said["planned_ns"]
                        and found["replays"] == said["replays"] and said["peak_bytes"] >= said["floor_bytes"])
                subprocess.run(cmd, capture_output=True)
                good = good and open(out).read() == first
                ns[solver] = said["planned_ns"]
                print("%-22s %-12s %s: %+.2f %%, %s" % (model, solver, limit, 100 * found.get("overhead", 0),
                                                      "ok" if good else "WRONG %s %s" % (found, said)))
                failed |= not good
            if any(ns["chain"] > ns[s] for s in ns if s != "chain-float"):
                print("%s: the dynamic program is beaten: %s" % (model, ns))
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
