#!/usr/bin/env python3
"""Random opgraph-1 traces and plan-1 schedules, good and bad, for tests. A seed gives the same output for ever.

usage: gen_graph.py SEED [OPS] > trace.json"""
import json
import random
import sys


def graph(rng, n_ops=None):
    """A random iteration: in-place ops, side buffers, opaque ops, early deaths, empty buffers, overwritten state."""
    n_ops = rng.randint(1, 40) if n_ops is None else n_ops
    bufs, ops = [], []

    def size():
        return rng.choice([0, 1, 4096, rng.randint(1, 1000), rng.randint(1, 1 << 30), rng.randint(1, 1 << 20)])

    for _ in range(rng.randint(1, 6)):
        bufs.append({"bytes": size(), "born": -1, "dies": None, "kind": rng.choice(["param", "state", "input", "grad"])})
    alive = list(range(len(bufs)))
    last = {b: -1 for b in alive}
    for i in range(n_ops):
        pool = alive[-12:] + alive[:6] if rng.random() < 0.7 else list(alive)
        rng.shuffle(pool)
        pool = list(dict.fromkeys(pool))

        def take(k):
            return [pool.pop() for _ in range(min(k, len(pool)))]

        op = {"reads": take(rng.choice([0, 1, 1, 2, 3])), "writes": [], "rmw": [], "side": []}
        if rng.random() < 0.2:
            op["rmw"] = take(rng.randint(1, 2))
        if rng.random() < 0.1:
            op["side"] = take(1)
        if rng.random() < 0.1:
            op["writes"] += take(1)
        for _ in range(rng.choice([0, 1, 1, 1, 2]) if op["rmw"] or op["writes"] else rng.choice([1, 1, 2])):
            b = len(bufs)
            bufs.append({"bytes": size(), "born": i, "dies": None, "kind": "activation"})
            alive.append(b)
            op["writes"].append(b)
        for b in op["reads"] + op["writes"] + op["rmw"] + op["side"]:
            last[b] = i
        op.update(id=i, name="op%d" % i, phase=["fwd", "bwd", "opt"][min(2, 3 * i // n_ops)],
                  ns=rng.choice([0, rng.randint(1, 10), rng.randint(1, 10 ** 6)]), flops=1, bytes=1, heavy=False,
                  random=False)
        if rng.random() < 0.05:
            op["opaque"] = True
        ops.append(op)
        if rng.random() < 0.6 and len(alive) > 2:
            b = rng.choice(alive)
            alive.remove(b)
            bufs[b]["dies"] = rng.randint(i + 1, n_ops)
    # a buffer that left the pool may have been chosen to die before its last use was known: repair
    for b, x in enumerate(bufs):
        x["id"] = b
        if x["dies"] is not None and x["dies"] <= last[b]:
            x["dies"] = last[b] + 1
    if rng.random() < 0.3:  # never touched
        bufs.append({"id": len(bufs), "bytes": size(), "born": rng.randint(0, n_ops - 1), "dies": n_ops, "kind": "activation"})
    meta = {"format": "opgraph-1", "model": "random", "batch": 1}
    if rng.random() < 0.7:
        meta["host_bytes_per_s"] = rng.choice([1e9, 25e9, 3.3e8])
    return {"meta": meta, "buffers": bufs, "ops": ops}


class Walk:
    """Residency as a plan goes on, so that most random steps are legal."""

    def __init__(self, tr, rng):
        self.tr, self.rng = tr, rng
        self.cons, self.prod, self.maker = [], [], {}
        ver = {b["id"]: 0 for b in tr["buffers"]}
        for o in tr["ops"]:
            self.cons.append({b: ver[b] for b in o["reads"] + o["rmw"] + o["side"]})
            for b in o["writes"] + o["rmw"] + o["side"]:
                ver[b] += 1
                self.maker[(b, ver[b])] = o["id"]
            self.prod.append({b: ver[b] for b in o["writes"] + o["rmw"] + o["side"]})
        self.final = ver
        self.res = {b["id"]: 0 for b in tr["buffers"] if b["born"] < 0}
        self.cur = {b["id"]: 0 for b in tr["buffers"]}
        self.host, self.steps = {}, []
        self.keep = {b["id"] for b in tr["buffers"] if b["dies"] is not None and rng.random() < 0.3}
        self.next = 0
        self.frees(0)

    def frees(self, i):
        for b in self.tr["buffers"]:
            if b["dies"] == i:
                self.cur[b["id"]] = None
                if b["id"] not in self.keep:
                    self.res.pop(b["id"], None)
                    self.host.pop(b["id"], None)

    def do(self, kind, v):
        self.steps.append({kind: v})
        if kind in ("drop", "release"):
            self.res.pop(v, None)
        elif kind == "offload":
            self.host[v] = self.res.get(v)
        elif kind == "fetch":
            self.res[v] = self.host.get(v)
        elif v < len(self.tr["ops"]):
            o = self.tr["ops"][v]
            for b in o["writes"] + o["rmw"] + (o["side"] if kind == "op" else []):
                self.res[b] = self.prod[v][b]
                if kind == "op":
                    self.cur[b] = self.prod[v][b]
                if b in self.host and self.host[b] != self.cur[b]:
                    del self.host[b]
            if kind == "op":
                self.next += 1
                self.frees(self.next)

    def need(self, b, version, depth=0):
        if self.res.get(b) == version:
            return
        if b in self.host and b not in self.res:
            self.do("fetch", b)
            return
        op = self.maker.get((b, version))
        if op is None or depth > 60 or len(self.steps) > 4000 or op >= self.next:
            return
        o = self.tr["ops"][op]
        for x in o["reads"] + o["rmw"]:
            self.need(x, self.cons[op][x], depth + 1)
        for x in o["writes"] + o["rmw"]:
            if x in self.res and self.res[x] == self.cur[x] != self.prod[op][x]:
                self.do("drop", x)
        self.do("replay", op)

    def random_step(self, chaos):
        rng = self.rng
        if rng.random() < chaos:
            kind = rng.choice(["drop", "offload", "release", "fetch", "replay", "op"])
            hi = len(self.tr["ops"] if kind in ("op", "replay") else self.tr["buffers"])
            self.do(kind, rng.randrange(hi + (rng.random() < 0.05)))
            return
        held = sorted(self.res)
        pick = rng.random()
        if pick < 0.4 and held:
            b = rng.choice(held)
            if (b, self.res[b]) in self.maker or b in self.host:
                self.do("drop", b)
        elif pick < 0.6 and held:
            self.do("offload", rng.choice(held))
        elif pick < 0.75:
            can = [b for b in held if self.host.get(b) == self.res[b]]
            if can:
                self.do("release", rng.choice(can))
        elif pick < 0.85:
            can = [b for b in sorted(self.host) if b not in self.res]
            if can:
                self.do("fetch", rng.choice(can))
        elif self.next:
            op = rng.randrange(self.next)
            o = self.tr["ops"][op]
            if all(self.res.get(b) == self.cons[op][b] for b in o["reads"] + o["rmw"]):
                if not any(b in self.res and self.res[b] == self.cur[b] != self.prod[op][b] for b in o["writes"] + o["rmw"]):
                    self.do("replay", op)


def plan(tr, rng, chaos=0.02):
    """A schedule that is good more often than not; chaos is the share of steps taken without looking."""
    w = Walk(tr, rng)
    busy = rng.choice([0.2, 1.0, 3.0])
    for o in tr["ops"]:
        if w.next != o["id"]:
            break
        while rng.random() < busy / (1 + busy) and len(w.steps) < 4000:
            w.random_step(chaos)
        if w.next != o["id"]:
            break
        for _ in range(2):
            for b in o["reads"] + o["rmw"] + o["side"]:
                w.need(b, w.cons[o["id"]][b])
        w.do("op", o["id"])
    for b in tr["buffers"]:
        if b["dies"] is None and rng.random() < 0.95:
            w.need(b["id"], w.final[b["id"]])
    return {"format": "plan-1", "solver": "random", "limit_bytes": rng.choice([0, 0, 1 << 30, 1 << 62]),
            "keep": sorted(w.keep), "steps": w.steps}


def copies(tr, plan, most=6):
    """A plan of the order as it is, with the largest tensors copied out while nothing touches them: copies without a search, which takes time
    or luck. Only what no step of the plan names and no replay touches."""
    named = {v for s in plan["steps"] for k, v in s.items() if k not in ("op", "replay")}
    touched = {s["replay"] for s in plan["steps"] if "replay" in s}
    uses = {}
    for o in tr["ops"]:
        for b in set(o["reads"] + o["writes"] + o["rmw"] + o["side"]):
            uses.setdefault(b, []).append(o["id"])
    gaps = sorted(((tr["buffers"][b]["bytes"], b, u, v) for b, at in uses.items() if tr["buffers"][b]["born"] >= 0 and b not in named and
                   not touched & set(at) for u, v in zip(at, at[1:]) if v - u > 4), reverse=True)
    after, before, taken = {}, {}, set()
    for _, b, u, v in gaps:
        if b not in taken and len(taken) < most:
            taken.add(b)
            after.setdefault(u + 1, []).extend([{"offload": b}, {"release": b}])
            before.setdefault(v, []).append({"fetch": b})
    steps = []
    for s in plan["steps"]:
        steps += before.get(s.get("op"), []) + [s] + after.get(s.get("op"), [])
    return dict(plan, steps=steps), len(taken)


if __name__ == "__main__":
    json.dump(graph(random.Random(int(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else None), sys.stdout)
