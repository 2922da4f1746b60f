#!/usr/bin/env python3
"""Plans with copies to the host where nothing can be hidden: there is one for every limit from a little above the floor, and it comes soon.

The trace is an iteration of a language model in small: the loss needs half of the memory at once, weights and the optimizer's state are as
large as the rest, and nothing replays what a matrix product made, as its workspace is changed in place from one to the next. Once the planner
found no plan here, and used all of its time. Every plan passes the independent judge, under both rules for how long a copy
holds. Exit 77 without it."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import REMAT, SLOWER, drawn  # noqa: E402

SHARED = os.environ.get("REMAT_SHARED", "")
JUDGE = os.path.join(SHARED, "verify_plan.py")
MB = 1 << 20
LIMIT_S = 30  # the planner's; with few layers it takes a tenth of that
FEW = 24


class Trace:
    def __init__(self):
        self.buffers, self.ops = [], []

    def buf(self, mbytes, kind, born=None, dies=None):
        self.buffers.append({"id": len(self.buffers), "bytes": int(mbytes * MB), "born": len(self.ops) if born is None else born, "dies": dies, "kind": kind})
        return len(self.buffers) - 1

    def op(self, name, phase, us, reads=(), writes=(), rmw=()):
        self.ops.append({"id": len(self.ops), "name": name, "phase": phase, "reads": list(reads), "writes": list(writes), "rmw": list(rmw), "side": [],
                         "ns": us * 1000, "flops": 0, "bytes": 0, "heavy": False, "random": False})

    def free(self, *bufs):
        for b in bufs:
            self.buffers[b]["dies"] = len(self.ops)

    def write(self, path, bytes_per_s):
        meta = {"format": "opgraph-1", "model": "tight", "batch": 1, "cost_model": "made up", "peak_bytes": 0, "persistent_bytes": 0,
                "total_ns": sum(o["ns"] for o in self.ops), "source": "test_waits.py", "host_bytes_per_s": bytes_per_s}
        with open(path, "w") as f:
            json.dump({"meta": meta, "buffers": self.buffers, "ops": self.ops}, f)


def language_model(layers, in_place=True):
    t = Trace()
    workspace = [t.buf(1, "param", born=-1)] if in_place else []
    weights = [t.buf(4, "param", born=-1) for _ in range(layers)]
    moments = [[t.buf(4, "state", born=-1) for _ in range(2)] for _ in range(layers)]
    x = t.buf(2, "input", born=-1)
    saved, grads = [], []
    for w in weights:
        h = t.buf(8, "activation")
        t.op("matmul", "fwd", 60, [x, w], [h], workspace)
        y = t.buf(8, "activation")
        t.op("gelu", "fwd", 20, [h], [y])
        saved.append((x, h, y))
        x = y
    logits = t.buf(8 * layers, "activation")
    t.op("matmul", "fwd", 300, [x], [logits], workspace)
    loss = t.buf(8 * layers, "activation")
    t.op("softmax", "fwd", 100, [logits], [loss])
    dlogits = t.buf(8 * layers, "activation")
    t.op("softmax backward", "bwd", 100, [logits, loss], [dlogits])
    t.free(logits, loss)
    dy = t.buf(8, "activation")
    t.op("matmul", "bwd", 300, [dlogits], [dy], workspace)
    t.free(dlogits)
    for (x, h, y), w in zip(reversed(saved), reversed(weights)):
        dh = t.buf(8, "activation")
        t.op("gelu backward", "bwd", 20, [h, dy], [dh])
        t.free(dy, h, y)
        dw, dx = t.buf(4, "grad"), t.buf(8, "activation")
        t.op("matmul", "bwd", 120, [dh, x, w], [dw, dx], workspace)
        t.free(dh)
        grads.append(dw)
        dy = dx
    t.free(dy)
    for w, g, (m, v) in zip(weights, reversed(grads), moments):
        t.op("adam", "opt", 10, [g], [], [w, m, v])
        t.free(g)
    return t


def plan(trace, limit, out, rule, copies=("--offload",)):
    env = dict(os.environ, REMAT_PLAN_CLOCK="busy")
    if rule:
        env["REMAT_PLAN_COPIES"] = rule
    if os.path.exists(out):
        os.unlink(out)
    run = subprocess.run([REMAT, "plan", trace, "--limit", str(limit), *copies, "--solver", "best", "--time-limit", str(int(LIMIT_S * SLOWER)), "--json", "-o", out],
                         env=env, capture_output=True, text=True)
    return json.loads(run.stdout or "{}"), run


def main():
    if not os.path.exists(JUDGE) or not os.path.exists(REMAT):
        print("no judge or no remat: skipped")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        trace, out = os.path.join(tmp, "t.json"), os.path.join(tmp, "p.json")
        for layers, bytes_per_s in drawn(((FEW, 4e9), (FEW, 40e9)), test=1) + drawn(((160, 40e9),), test=0, salt="many"):
            language_model(layers).write(trace, bytes_per_s)
            said, _ = plan(trace, 1 << 40, out, None)
            floor, peak = said["floor_bytes"], said["baseline_peak_bytes"]
            assert floor < 0.8 * peak, said
            last = float("inf")
            for part in (1.03, 1.15, 1.3) if layers == FEW else (1.03,):
                limit = int(floor * part)
                for rule in drawn((None, "until-used"), test=1, salt=str(part)) if layers == FEW else ("until-used",):
                    said, run = plan(trace, limit, out, rule)
                    took = said.get("solve_seconds", 0)
                    assert run.returncode == 0 and said["feasible"], (limit, rule, run)
                    judged = subprocess.run([sys.executable, JUDGE, trace, out, "--limit", str(limit)], capture_output=True, text=True)
                    seen = json.loads(judged.stdout)
                    assert judged.returncode == 0 and seen["ns"] == said["planned_ns"], (limit, rule, judged.stdout)
                    assert took < LIMIT_S / 2 * SLOWER or layers > FEW, "%.1f s, of %d" % (took, LIMIT_S)
                    print("%3d layers, %2.0f GB/s, %.2f floors, %-10s overhead %6.1f %%, %3d replays, %3d copies, %.1f s" % (
                        layers, bytes_per_s / 1e9, part, rule or "", 100 * seen["overhead"], seen["replays"], seen["offloads"], took))
                # more memory, no dearer plan: but for what chance does
                assert seen["ns"] < 1.1 * last, (limit, seen, last)
                last = seen["ns"]
        # without copies: a little of the ladder, which proves nothing here, and a little annealing
        language_model(160, in_place=False).write(trace, 40e9)
        said, _ = plan(trace, 1 << 40, out, None)
        said, run = plan(trace, said["baseline_peak_bytes"] * 8 // 10, out, None, ("--no-offload",))
        assert said.get("feasible") and not said["offloads"] and not said["proved_optimal"], (said, run)
        print("160 layers, no copies, 80 %% of the peak: overhead %.1f %%, %.1f s" % (100 * said["overhead"], said["solve_seconds"]))
        assert said["solve_seconds"] < LIMIT_S / 10 * SLOWER, said
    return 0


if __name__ == "__main__":
    sys.exit(main())
