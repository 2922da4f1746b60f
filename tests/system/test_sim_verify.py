#!/usr/bin/env python3
"""remat check and the independent judge verify_plan.py must say the same of thousands of random plans: verdict, peak,
time, overhead, counts and the words of the first broken rule. Exit 77 without verify_plan.py."""
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
import harness  # noqa: E402

SHARED = os.environ.get("REMAT_SHARED", "")
REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
JUDGE = os.path.join(SHARED, "verify_plan.py")


def main():
    if not SHARED or not os.path.exists(JUDGE) or not os.path.exists(REMAT):
        print("no verify_plan.py or no remat: skipped")
        return 77
    spec = importlib.util.spec_from_file_location("verify_plan", JUDGE)
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    rounds = int(os.environ.get("SIM_ROUNDS") or harness.so_many(400, test=60))
    good = bad = 0
    reasons = set()
    traces = os.path.join(SHARED, "traces")
    real = [os.path.join(traces, f) for f in ("novel_pairwise-b4096.json", "vgg11-b64.json")]
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(rounds):
            rng = random.Random(seed)
            if seed % 40 == 39:
                tpath = real[seed // 40 % 2]
                tr = judge.load(tpath)
            else:
                tpath = os.path.join(tmp, "t.json")
                with open(tpath, "w") as f:
                    json.dump(gen_graph.graph(rng), f)
                tr = judge.load(tpath)
            for turn in range(5):
                plan = gen_graph.plan(tr, rng, chaos=rng.choice([0, 0, 0.02, 0.3]))
                ppath = os.path.join(tmp, "p.json")
                with open(ppath, "w") as f:
                    json.dump(plan, f)
                try:
                    want = judge.verify(tr, plan)
                except ZeroDivisionError:  # a trace whose ops take no time has no overhead
                    continue
                run = subprocess.run([REMAT, "check", tpath, ppath], capture_output=True, text=True)
                try:
                    got = json.loads(run.stdout)
                except ValueError:
                    print("seed %d turn %d: no JSON: %r %r" % (seed, turn, run.stdout, run.stderr))
                    return 1
                if not want["ok"]:
                    bad += 1
                    reasons.add(" ".join(w for w in want["error"].split() if not any(c.isdigit() for c in w)))
                else:
                    good += 1
                if got != want or run.returncode != (0 if want["ok"] else 1):
                    print("seed %d turn %d differ:\n judge %s\n remat %s (exit %d)" % (seed, turn, want, got, run.returncode))
                    return 1
    print("%d good and %d bad plans judged alike, %d kinds of fault" % (good, bad, len(reasons)))
    return 0 if good > rounds and bad > rounds and len(reasons) >= 12 else 1


if __name__ == "__main__":
    sys.exit(main())
