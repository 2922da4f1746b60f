#!/usr/bin/env python3
"""`remat solve` on instances at the edge: one node, costs and sizes of zero, budgets of nothing or barely enough, no edges or
all of them, and a hundredth of a second. Every solver of the format ends with a documented status, in time, and what it
calls a schedule passes the judge. EDGES_SEEDS (default 12) widens it; under a sanitizer this is what finds a bad access."""
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from judge_instance import judge  # noqa: E402

REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
CHECKMATE = [("anneal", []), ("anneal", ["--reorder"]), ("milp", []), ("milp-lp", [])]
CHAIN = [("chain", []), ("chain-float", []), ("revolve", []), ("chen-sqrt", []), ("chen-greedy", [])]
ALLOWED_S = 300  # far beyond any machine's slowness: a solver that ignores the clock altogether


def checkmate(r):
    n = r.choice([1, 1, 2, 3, 5, 9, 17, 40, 90])
    share = r.choice([0, 0.1, 0.4, 1])
    edges = [[u, v] for v in range(n) for u in range(v) if r.random() < share]
    mem = [r.choice([0, 0, 1, 7, r.randint(0, 1000)]) for _ in range(n)]
    cost = [r.choice([0, 1, r.randint(0, 1000), r.randint(0, 10**9)]) for _ in range(n)]
    if r.random() < 0.15:
        mem = [0] * n
    if r.random() < 0.15:
        cost = [0] * n
    need = max(mem[v] + sum(mem[u] for u, w in edges if w == v) for v in range(n))
    inst = {"format": "checkmate-v1", "n": n, "edges": edges, "cost": cost, "mem": mem,
            "budget": r.choice([0, 1, need - 1 if need else 0, need, need + 1, need + need // 4, 2 * need, sum(mem), 2**60])}
    if r.random() < 0.2:
        inst["constant_overhead"] = r.choice([0, 1, inst["budget"], inst["budget"] + 1])
    return inst


def chain(r):
    n = r.choice([1, 1, 2, 3, 6, 20])
    small = r.random() < 0.3

    def list_of(k):
        return [0 if small and r.random() < 0.6 else r.randint(0, 50) for _ in range(k)]
    inst = {"format": "rotor-chain-v1", "L": n, "w_a": list_of(n + 1), "w_abar": list_of(n + 1), "w_delta": list_of(n + 1),
            "u_f": list_of(n), "u_b": list_of(n), "o_f": list_of(n), "o_b": list_of(n), "u_loss": 0}
    inst["w_abar"] = [max(a, b) for a, b in zip(inst["w_a"], inst["w_abar"])]
    inst["budget"] = r.choice([0, 1, 60, 150, 400, 10**6])
    return inst


def one(inst, solver, extra, seconds, tmp):
    path, out = os.path.join(tmp, "i.json"), os.path.join(tmp, "s.json")
    with open(path, "w") as f:
        json.dump(inst, f)
    if os.path.exists(out):
        os.unlink(out)
    cmd = [REMAT, "solve", path, "--solver", solver, "--time-limit", str(seconds), "--json", "-o", out] + extra
    run = subprocess.run(cmd, capture_output=True, text=True, timeout=ALLOWED_S)
    where = "%s on %s" % (" ".join(cmd[4:]), json.dumps(inst))
    assert run.returncode in (0, 1, 2, 3), "%s: status %d\n%s" % (where, run.returncode, run.stderr[-3000:])
    if run.returncode in (1, 2):  # one line that says what is wrong with it
        assert run.stderr.startswith("remat") and run.stderr.count("\n") == 1, "%s: %s" % (where, run.stderr[-3000:])
        return 0
    said = json.loads(run.stdout)
    assert said["feasible"] == (run.returncode == 0), "%s: %s" % (where, said)
    if not said["feasible"] or not os.path.exists(out):
        return 0
    with open(out) as f:
        found = judge(inst, json.load(f))
    assert found["ok"] and found["peak"] <= inst["budget"], "%s: %s, %s said" % (where, found, said)
    assert abs(found["cost"] - said["value"]) < 0.5, "%s: %s, %s said" % (where, found, said)
    assert said["bound"] is None or said["bound"] <= said["value"] + 1e-6, "%s: %s" % (where, said)
    return 1


def main():
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    runs = judged = 0
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(int(os.environ.get("EDGES_SEEDS", "12"))):
            r = random.Random(seed)
            for make, solvers in ((checkmate, CHECKMATE), (chain, CHAIN)):
                inst = make(r)
                for solver, extra in solvers:
                    judged += one(inst, solver, extra, r.choice([0.01, 0.01, 0.05]), tmp)
                    runs += 1
    print("%d runs at the edge, %d schedules judged" % (runs, judged))
    return 0 if judged > runs / 8 else 1


if __name__ == "__main__":
    sys.exit(main())
