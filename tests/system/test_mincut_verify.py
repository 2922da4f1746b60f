#!/usr/bin/env python3
"""Plans of `mincut` and `milp` before the independent judge: on random traces and on small training-like ones (in-place
ops, side statistics, dropout, skips, dead intermediates), where `mincut` must never beat a proved `milp`, and a limit
that `milp` proves impossible must be refused by both. Exit 77 without verify_plan.py."""
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gen_graph  # noqa: E402

SHARED = os.environ.get("REMAT_SHARED", "")
REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
JUDGE = os.path.join(SHARED, "verify_plan.py")


def training(rng, layers):
    """A small network's iteration as an opgraph-1 trace."""
    bufs, ops = [], []

    def buf(size, kind="activation", persistent=False):
        bufs.append({"id": len(bufs), "bytes": size, "born": -1 if persistent else None, "dies": None, "kind": kind})
        return len(bufs) - 1

    def op(phase, ns, reads=(), writes=(), rmw=(), side=(), heavy=False):
        for b in writes:
            if bufs[b]["born"] is None:
                bufs[b]["born"] = len(ops)
        ops.append({"id": len(ops), "name": "op", "phase": phase, "reads": list(reads), "writes": list(writes),
                    "rmw": list(rmw), "side": list(side), "ns": ns, "flops": 1, "bytes": 1, "heavy": heavy, "random": False})

    x = buf(rng.randint(10, 80), "input", True)
    layer, grads = [], []
    for i in range(layers):
        size = rng.randint(50, 150)
        d = {"p": buf(rng.randint(1, 20), "param", True), "s": buf(4, "state", True), "y": buf(size), "w": buf(size),
             "m": buf(size) if rng.random() < 0.25 else None}
        layer.append(d)
        op("fwd", rng.randint(100, 500), [layer[i - 1]["w"] if i else x, d["p"]], [d["y"]], heavy=True)
        op("fwd", rng.randint(20, 60), [d["y"]], [d["w"]], side=[d["s"]])
        op("fwd", rng.randint(10, 40), [layer[i - 2]["w"]] if i >= 2 and rng.random() < 0.4 else [], rmw=[d["w"]])
        if d["m"] is not None:
            op("fwd", 15, writes=[d["m"]])
            op("fwd", 25, [d["m"]], rmw=[d["w"]])
    g = None
    for i in reversed(range(layers)):
        d = layer[i]
        h, up, gp = buf(bufs[d["y"]]["bytes"]), buf(50), buf(bufs[d["p"]]["bytes"], "grad")
        op("bwd", rng.randint(30, 70), [b for b in (d["w"], g, d["m"]) if b is not None], [h])
        op("bwd", rng.randint(30, 70), [d["y"]], rmw=[h])
        op("bwd", rng.randint(200, 800), [layer[i - 1]["w"] if i else x, h], [up, gp], heavy=True)
        g = up
        grads.append((gp, d["p"]))
    for gp, p in grads:
        op("opt", 5, [gp], rmw=[p])
    last = {}
    for o in ops:
        for b in o["reads"] + o["writes"] + o["rmw"] + o["side"]:
            last[b] = o["id"]
    for b in bufs:
        if b["kind"] == "activation":
            b["dies"] = last[b["id"]] + 1
    meta = {"format": "opgraph-1", "model": "net", "batch": 1, "peak_bytes": 0, "persistent_bytes": 0,
            "total_ns": sum(o["ns"] for o in ops), "source": "test"}
    return {"meta": meta, "buffers": bufs, "ops": ops}


def run(trace, limit, solver, out, seconds):
    cmd = [REMAT, "plan", trace, "--limit", str(limit), "--solver", solver, "--time-limit", str(seconds), "--no-offload", "--json", "-o", out]
    p = subprocess.run(cmd, capture_output=True, text=True)
    return p.returncode, json.loads(p.stdout) if p.stdout.strip() else {}, p.stderr.strip()


def main():
    if not SHARED or not os.path.exists(JUDGE) or not os.path.exists(REMAT):
        print("no verify_plan.py or no remat: skipped")
        return 77
    spec = importlib.util.spec_from_file_location("verify_plan", JUDGE)
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    plans = proved = replays = refused = 0
    with tempfile.TemporaryDirectory() as tmp:
        tpath, ppath = os.path.join(tmp, "t.json"), os.path.join(tmp, "p.json")
        for seed in range(int(os.environ.get("MINCUT_ROUNDS", "24"))):
            rng = random.Random(seed)
            tr = training(rng, rng.randint(2, 4)) if seed % 3 else gen_graph.graph(rng, rng.randint(4, 14))
            with open(tpath, "w") as f:
                json.dump(tr, f)
            if not sum(o["ns"] for o in tr["ops"]):
                continue
            _, none, _ = run(tpath, 1 << 50, "none", ppath, 1)
            floor, peak = none["floor_bytes"], none["baseline_peak_bytes"]
            if peak == 0:
                continue
            limit = max(1, int(floor + (peak - floor) * rng.choice([0.2, 0.4, 0.7])))
            ns = {}
            exact = {}
            for solver, seconds in (("milp", 4), ("mincut", 0.4)):
                if os.path.exists(ppath):
                    os.unlink(ppath)
                rc, r, err = run(tpath, limit, solver, ppath, seconds)
                exact[solver] = r
                if rc == 3 and r and not r["feasible"]:
                    refused += 1
                    continue
                if rc or not os.path.exists(ppath):
                    print("seed %d %s limit %d: exit %d %s" % (seed, solver, limit, rc, err))
                    return 1
                got = judge.verify(tr, judge.load(ppath), limit)
                if not got["ok"] or got["peak_bytes"] != r["peak_bytes"] or got["ns"] != r["planned_ns"]:
                    print("seed %d %s limit %d: %s against %s" % (seed, solver, limit, got, r))
                    return 1
                ns[solver] = got["ns"]
                plans += 1
                replays += got["replays"] > 0
            proved += bool(exact["milp"].get("proved_optimal"))
            if exact["milp"].get("proved_optimal") and ns.get("mincut", 1 << 62) < ns["milp"]:
                print("seed %d limit %d: mincut %d beats the proved optimum %d" % (seed, limit, ns["mincut"], ns["milp"]))
                return 1
            if exact["milp"].get("proved_infeasible") and "mincut" in ns:
                print("seed %d limit %d: mincut found a plan where milp proved that none exists" % (seed, limit))
                return 1
    print("%d plans, %d with replays, %d proved optimal, %d refusals" % (plans, replays, proved, refused))
    return 0 if plans > 10 and replays > 5 and proved > 5 else 1


if __name__ == "__main__":
    sys.exit(main())
