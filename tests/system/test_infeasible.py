#!/usr/bin/env python3
"""Limits near what is possible: `remat plan` finds the plan, or proves that there is none and says so.

Gradients may be given up while memory is shortest and made again before the optimizer changes the weights (resnet18). Where only
three large tensors fit at a time nothing can be done without copies to the host (novel_pairwise at half its peak), although that is
above the floor. Every plan passes the independent judge. Exit 77 without traces."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get("REMAT_SHARED", "")
REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
PAIRWISE, RESNET = "novel_pairwise-b4096", "resnet18-b64"


def plan(name, limit, out):
    trace = os.path.join(SHARED, "traces", name + ".json")
    run = subprocess.run([REMAT, "plan", trace, "--limit", limit, "--no-offload", "--json", "-o", out], capture_output=True, text=True)
    said = json.loads(run.stdout)
    assert run.returncode == (0 if said["feasible"] else 3), run
    assert said["floor_bytes"] <= said["limit_bytes"], "below the floor there is nothing to find out"
    if said["feasible"]:
        judged = subprocess.run([sys.executable, os.path.join(SHARED, "verify_plan.py"), trace, out, "--limit", str(said["limit_bytes"])],
                                capture_output=True, text=True)
        assert judged.returncode == 0 and json.loads(judged.stdout)["ns"] == said["planned_ns"], judged.stdout
    print("%-22s %s: %s" % (name, limit, "%.2f %%, bound %s" % (
        100 * said["overhead"], said["bound"]) if said["feasible"] else run.stderr.strip()))
    return said, run.stderr


def main():
    if not os.path.isdir(os.path.join(SHARED, "traces")) or not os.path.exists(REMAT):
        print("no traces or no remat: skipped")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "p.json")
        said, _ = plan(RESNET, "50%", out)
        assert said["feasible"] and 0.45 < said["bound"] <= said["overhead"] <= 0.60, said
        for limit in ("40%", "50%"):
            said, words = plan(PAIRWISE, limit, out)
            assert not said["feasible"] and said["proved_infeasible"], said
            assert "proved" in words and "--no-offload" in words, words
        said, _ = plan(PAIRWISE, "55%", out)
        assert said["feasible"] and said["proved_optimal"] and said["gap"] < 1e-5, said
    return 0


if __name__ == "__main__":
    sys.exit(main())
