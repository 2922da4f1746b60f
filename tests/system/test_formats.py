#!/usr/bin/env python3
"""What `remat plan` and `remat solve` print and write, key by key: other programs read it. Names, types, when a key is null, how keys
hang together, exit codes, the files of -o, and that they say what standard output says. Uses the golden files alone; the judge of
plans where REMAT_SHARED has it."""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from judge_instance import judge  # noqa: E402

REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
JUDGE = os.path.join(os.environ.get("REMAT_SHARED", ""), "verify_plan.py")
GOLDEN = os.path.join(HERE, "..", "golden")
INT, NUM, BOOL, STR = (int,), (int, float), (bool,), (str,)
PLAN_KEYS = {"solver": STR, "feasible": BOOL, "limit_bytes": INT, "floor_bytes": INT, "floor_op": INT, "baseline_peak_bytes": INT,
             "peak_bytes": INT, "baseline_ns": INT, "planned_ns": INT, "overhead": NUM, "replays": INT, "offloads": INT, "bound": NUM,
             "gap": NUM, "solve_seconds": NUM, "proved_optimal": BOOL, "proved_infeasible": BOOL}
OF_A_PLAN = {"peak_bytes", "planned_ns", "overhead", "replays", "offloads", "bound", "gap"}  # null where there is none
SOLVE_KEYS = {"solver": STR, "value": NUM, "peak": NUM, "feasible": BOOL, "proved_optimal": BOOL, "bound": NUM, "solve_seconds": NUM}
CHECKMATE_KEYS = {"budget": INT, "reordered": BOOL, "staged": BOOL, "proved_infeasible": BOOL, "replays": INT}
# the second reader of 0 comes late: in the given order 0 is held or made again, in another one neither
LATE = {"format": "checkmate-v1", "n": 6, "edges": [[0, 1], [1, 2], [2, 3], [0, 4], [3, 5], [4, 5]], "cost": [10, 1, 1, 1, 1, 1],
        "mem": [9, 4, 9, 2, 2, 1], "budget": 17}


def run(*args):
    return subprocess.run([REMAT, *args], capture_output=True, text=True)


def typed(said, keys, null=()):
    for key, kind in keys.items():
        assert key in said, "%s is missing from %s" % (key, said)
        if key in null:
            assert said[key] is None, "%s is to be null: %s" % (key, said)
        else:
            assert type(said[key]) in kind, "%s is %r" % (key, said[key])


def plans(tmp):
    trace, out = os.path.join(GOLDEN, "mlp.json"), os.path.join(tmp, "p.json")
    with open(trace) as f:
        tr = json.load(f)
    floor = json.loads(run("plan", trace, "--limit", "1", "--json", "--no-offload").stdout)["floor_bytes"]
    for solver, limit, extra in (("auto", "80%", ["--no-offload"]), ("auto", "100%", ["--no-offload"]), ("dtr", "80%", ["--no-offload"]), ("auto", "80%", ["--time-limit", "1"]),
                                 ("auto", "80%", ["--offload", "--time-limit", "1"])):
        r = run("plan", trace, "--limit", limit, "--solver", solver, "--json", "-o", out, *extra)
        timed = "--time-limit" in extra
        assert r.returncode == 0 and not r.stderr.strip() or timed, r
        said = json.loads(r.stdout)
        known = solver == "auto" and not timed
        typed(said, PLAN_KEYS, () if known else {"bound", "gap"})
        assert set(said) == set(PLAN_KEYS), "keys: %s" % (set(said) ^ set(PLAN_KEYS))
        assert said["solver"] == solver and said["feasible"] and said["peak_bytes"] <= said["limit_bytes"]
        assert abs(said["planned_ns"] / said["baseline_ns"] - 1 - said["overhead"]) < 1e-6
        assert said["baseline_ns"] == tr["meta"]["total_ns"] and said["baseline_peak_bytes"] == tr["meta"]["peak_bytes"]
        if known:
            assert 0 <= said["bound"] <= said["overhead"] + 1e-9 and abs(said["overhead"] - said["bound"] - said["gap"]) < 2e-6, said
            assert not said["proved_optimal"] or said["gap"] < 2e-6
        with open(out) as f:
            plan = json.load(f)
        typed(plan, {"format": STR, "trace": STR, "solver": STR, "limit_bytes": INT, "peak_bytes": INT, "baseline_ns": INT, "planned_ns": INT,
                     "keep": (list,), "steps": (list,)})
        assert plan["format"] == "plan-1" and re.fullmatch("[0-9a-f]{64}", plan["trace"]) and plan["solver"] == solver
        for key in ("limit_bytes", "peak_bytes", "baseline_ns", "planned_ns"):
            assert plan[key] == said[key], key
        kinds = [next(iter(s)) for s in plan["steps"]]
        assert set(kinds) <= {"op", "replay", "drop", "offload", "release", "fetch"} and all(len(s) == 1 for s in plan["steps"])
        assert kinds.count("replay") == said["replays"] and kinds.count("offload") == said["offloads"]
        assert [s["op"] for s in plan["steps"] if "op" in s] == list(range(len(tr["ops"])))
        if os.path.exists(JUDGE):
            judged = subprocess.run([sys.executable, JUDGE, trace, out, "--limit", str(said["limit_bytes"])], capture_output=True, text=True)
            assert judged.returncode == 0 and json.loads(judged.stdout)["ns"] == said["planned_ns"], judged.stdout
        os.unlink(out)
    told = run("plan", trace, "--limit", "80%", "--no-offload").stdout  # without --json a line tells the bound
    assert re.search(r"^bound: .* less than [0-9.]+ % overhead; this one is within [0-9.]+ points of it$", told, re.M), told
    assert "bound:" not in run("plan", trace, "--limit", "80%", "--solver", "dtr", "--no-offload").stdout
    assert json.loads(run("plan", trace, "--limit", "80%", "--no-offload", "-o", "-").stdout)["format"] == "plan-1"
    r = run("plan", trace, "--limit", str(floor - 1), "--no-offload", "--json", "-o", out)
    typed(json.loads(r.stdout), PLAN_KEYS, OF_A_PLAN)
    assert r.returncode == 3 and json.loads(r.stdout)["proved_infeasible"] and not os.path.exists(out)
    assert "floor" in r.stderr and str(floor) in r.stderr and len(r.stderr.splitlines()) == 1, r.stderr
    for code, args in ((2, ["--limit", "80%", "--json", "-o", "-"]), (2, ["--limit", "0"]), (2, ["--limit", "80%", "--solver", "nobody"]), (2, []),
                       (1, ["--limit", "80%", "--solver", "dtr", "-o", os.path.join(tmp, "none", "p.json")])):
        r = run("plan", trace, *args)
        assert r.returncode == code and len(r.stderr.splitlines()) == 1, (args, r)


def solve(inst, tmp, *args):
    path, out = os.path.join(tmp, "i.json"), os.path.join(tmp, "s.json")
    with open(path, "w") as f:
        json.dump(inst, f)
    if os.path.exists(out):
        os.unlink(out)
    r = run("solve", path, "--json", "-o", out, "--time-limit", "1", *args)
    said = json.loads(r.stdout)
    assert r.returncode == (0 if said["feasible"] else 3) and said["feasible"] == os.path.exists(out), r
    if not said["feasible"]:
        return said, None
    typed(said, SOLVE_KEYS, () if said["bound"] is not None else {"bound"})
    with open(out) as f:
        schedule = json.load(f)
    got = judge(inst, schedule)
    assert got["ok"] and got["cost"] == said["value"], (got, said)
    return said, schedule


def instances(tmp):
    orders = {}
    for name, args in (("given", []), ("any", ["--reorder"]), ("milp", [])):
        said, schedule = solve(LATE, tmp, "--solver", "milp" if name == "milp" else "anneal", *args)
        typed(schedule, {"format": STR, "order": (list,), "cost": INT, "peak": INT, "budget": INT})
        assert schedule["format"] == "checkmate-schedule-1" and set(schedule["order"]) == set(range(6))
        assert schedule["cost"] == said["value"] and schedule["peak"] == said["peak"] <= schedule["budget"] == 17
        orders[name] = (said["value"], schedule["order"])
        if name != "milp":
            typed(said, CHECKMATE_KEYS)
            assert said["reordered"] == (not judge(LATE, schedule)["in_order"]) == (name == "any"), said
            assert said["staged"] or name == "any"
            assert said["replays"] == len(schedule["order"]) - 6
    assert orders["given"] == (25, [0, 1, 2, 3, 0, 4, 5]), orders
    assert orders["milp"][0] == 25 and orders["any"][0] == 15 and len(orders["any"][1]) == 6, orders
    said, _ = solve(dict(LATE, budget=12), tmp, "--solver", "anneal")
    assert said["proved_infeasible"] and said["value"] is None, said
    with open(os.path.join(GOLDEN, "chain.json")) as f:
        chain = json.load(f)
    for solver in ("chain", "chain-float"):
        said, schedule = solve(chain, tmp, "--solver", solver)
        typed(schedule, {"format": STR, "steps": (list,), "makespan": INT, "peak": INT})
        assert schedule["format"] == "rotor-schedule-1" and schedule["makespan"] == said["value"] and schedule["peak"] == said["peak"]
        assert all(len(s) == 2 and isinstance(s[0], str) and isinstance(s[1], int) for s in schedule["steps"])


def main():
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        plans(tmp)
        instances(tmp)
    print("formats: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
