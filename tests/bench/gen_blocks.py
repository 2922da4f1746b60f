#!/usr/bin/env python3
"""A trace of a transformer of any depth (opgraph-1): the blocks of a model, forward and back, and one optimizer op a
parameter. For how the planners grow.

usage: gen_blocks.py OPS OUT.json      about OPS ops
"""
import json
import sys

MIB = 1 << 20
FLOPS, BANDWIDTH, LAUNCH = 90e12, 1.4e12, 3000


class Trace:
    def __init__(self):
        self.buffers, self.ops, self.last = [], [], []

    def buffer(self, size, kind="activation", born=None):
        self.buffers.append({"id": len(self.buffers), "bytes": size, "born": -1 if born is None else born, "dies": None, "kind": kind})
        self.last.append(-1)
        return len(self.buffers) - 1

    def op(self, name, phase, reads, sizes, flops=0, rmw=(), kind="activation"):
        i = len(self.ops)
        writes = [self.buffer(s, kind, i) for s in sizes]
        moved = sum(self.buffers[b]["bytes"] for b in list(reads) + list(rmw) * 2 + writes)
        for b in list(reads) + list(rmw) + writes:
            self.last[b] = i
        self.ops.append({"id": i, "name": name, "phase": phase, "reads": sorted(set(reads)), "writes": writes, "rmw": list(rmw),
                         "side": [], "ns": int(max(flops / FLOPS, moved / BANDWIDTH) * 1e9) + LAUNCH, "flops": int(flops),
                         "bytes": moved, "heavy": flops > 0, "random": name == "dropout"})
        return writes


def linear(t, x, w, out, flops):
    return t.op("linear", "fwd", [x, w], [out], flops)[0]


def block_forward(t, x, unit, flops):
    """One block; what the backward pass needs is what it returns."""
    p = [t.buffer(s, "param") for s in (3 * unit, unit, 4 * unit, 4 * unit)]
    n1, s1 = t.op("layer_norm", "fwd", [x], [unit, 4096])
    qkv = linear(t, n1, p[0], 3 * unit, 3 * flops)
    heads = [t.op("clone", "fwd", [qkv], [unit])[0] for _ in range(3)]
    score = t.op("bmm", "fwd", heads[:2], [2 * unit], flops / 2)[0]
    soft = t.op("softmax", "fwd", [score], [2 * unit])[0]
    drop, mask = t.op("dropout", "fwd", [soft], [2 * unit, unit // 2])
    mix = t.op("bmm", "fwd", [drop, heads[2]], [unit], flops / 2)[0]
    proj = linear(t, mix, p[1], unit, flops)
    h = t.op("add", "fwd", [x, proj], [unit])[0]
    n2, s2 = t.op("layer_norm", "fwd", [h], [unit, 4096])
    up = linear(t, n2, p[2], 4 * unit, 4 * flops)
    act = t.op("gelu", "fwd", [up], [4 * unit])[0]
    down = linear(t, act, p[3], unit, 4 * flops)
    y = t.op("add", "fwd", [h, down], [unit])[0]
    return y, (x, p, n1, s1, heads, soft, drop, mask, mix, h, n2, s2, up, act)


def block_backward(t, g, saved, unit, flops, grads):
    x, p, n1, s1, heads, soft, drop, mask, mix, h, n2, s2, up, act = saved

    def weight(a, b, size, f):
        grads.append((t.op("linear_dw", "bwd", [a, b], [size], f, kind="grad")[0]))

    weight(act, g, 4 * unit, 4 * flops)
    ga = t.op("linear_dx", "bwd", [g, p[3]], [4 * unit], 4 * flops)[0]
    gu = t.op("gelu_backward", "bwd", [ga, up], [4 * unit])[0]
    weight(n2, gu, 4 * unit, 4 * flops)
    gn = t.op("linear_dx", "bwd", [gu, p[2]], [unit], 4 * flops)[0]
    gh = t.op("layer_norm_backward", "bwd", [gn, h, s2], [unit])[0]
    gh = t.op("add", "bwd", [g, gh], [unit])[0]
    weight(mix, gh, unit, flops)
    gm = t.op("linear_dx", "bwd", [gh, p[1]], [unit], flops)[0]
    gd = t.op("bmm", "bwd", [gm, heads[2]], [2 * unit], flops / 2)[0]
    gv = t.op("bmm", "bwd", [gm, drop], [unit], flops / 2)[0]
    gs = t.op("dropout_backward", "bwd", [gd, mask], [2 * unit])[0]
    gs = t.op("softmax_backward", "bwd", [gs, soft], [2 * unit])[0]
    gq = t.op("bmm", "bwd", [gs, heads[1]], [unit], flops / 2)[0]
    gk = t.op("bmm", "bwd", [gs, heads[0]], [unit], flops / 2)[0]
    gqkv = t.op("cat", "bwd", [gq, gk, gv], [3 * unit])[0]
    weight(n1, gqkv, 3 * unit, 3 * flops)
    gn = t.op("linear_dx", "bwd", [gqkv, p[0]], [unit], 3 * flops)[0]
    gx = t.op("layer_norm_backward", "bwd", [gn, x, s1], [unit])[0]
    return t.op("add", "bwd", [gh, gx], [unit])[0]


def trace(n_ops):
    unit, flops, t = 4 * MIB, 2e9, Trace()
    x = t.buffer(unit, "input")
    saved, grads = [], []
    for _ in range(max(1, n_ops // 38)):
        x, s = block_forward(t, x, unit, flops)
        saved.append(s)
    g = t.op("loss", "bwd", [x], [unit])[0]
    params = [p for s in reversed(saved) for p in (s[1][3], s[1][2], s[1][1], s[1][0])]
    for s in reversed(saved):
        g = block_backward(t, g, s, unit, flops, grads)
        for p, w in zip(params[len(grads) - 4:len(grads)], grads[-4:]):
            t.op("sgd", "opt", [w], [], rmw=[p])  # as the gradient comes: it does not pile up
    for b, last in zip(t.buffers, t.last):
        if b["kind"] in ("activation", "grad"):
            b["dies"] = last + 1
    live, peak, size = 0, 0, len(t.ops)
    at = [0] * (size + 2)
    for b in t.buffers:
        at[max(b["born"], 0)] += b["bytes"]
        if b["dies"] is not None:
            at[b["dies"]] -= b["bytes"]
    for d in at[:size]:
        live += d
        peak = max(peak, live)
    meta = {"format": "opgraph-1", "model": "blocks-%d" % size, "batch": 1, "cost_model": {"name": "a100"}, "peak_bytes": peak,
            "persistent_bytes": sum(b["bytes"] for b in t.buffers if b["kind"] == "param"),
            "total_ns": sum(o["ns"] for o in t.ops), "source": "gen_blocks.py"}
    return {"meta": meta, "buffers": t.buffers, "ops": t.ops}


def main():
    if len(sys.argv) != 3 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    with open(sys.argv[2], "w") as f:
        json.dump(trace(int(sys.argv[1])), f)


if __name__ == "__main__":
    main()
