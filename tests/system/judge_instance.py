#!/usr/bin/env python3
"""judge_instance.py INSTANCE SCHEDULE: re-executes a schedule that `remat solve -o` wrote, from the instance alone.

Shares no code and no idea with the solvers: a forward simulation with a set of what is in memory. Prints cost (or makespan)
and peak, or the first broken rule and exit status 1. As a module: judge(instance, schedule) returns a dict with
"ok", "error", "cost", "peak", "in_order" (nodes are first computed in the given order).

checkmate-v1: `order` lists the nodes as they are computed. Every input must be in memory when its reader runs; a result is
in memory from its computation to its last reader before it is computed again; every node must be computed.
rotor-chain-v1: `steps` are [kind, stage]; forward kinds F_all, F_ck, F_none, the backward B, and drop; the loss is stage
L + 1 without sizes. Rotor paper, table 1: what each reads, makes, gives up, and needs while it runs."""
import json
import sys


class Broken(Exception):
    pass


def judge_checkmate(inst, sched):
    n, mem, cost = inst["n"], inst["mem"], inst["cost"]
    inputs = [set() for _ in range(n)]
    for u, v in inst["edges"]:
        inputs[v].add(u)
    order = sched["order"]
    # when each computation's result is read for the last time before the node is computed again
    current, last = {}, [k for k in range(len(order))]
    for k, v in enumerate(order):
        if not 0 <= v < n:
            raise Broken("step %d computes node %s, which is none" % (k, v))
        for u in inputs[v]:
            if u not in current:
                raise Broken("step %d: node %d reads %d, which was never computed" % (k, v, u))
            last[current[u]] = k
        current[v] = k
    if len(current) != n:
        raise Broken("node %d is never computed" % min(set(range(n)) - set(current)))
    leaves = {}
    for k, end in enumerate(last):
        leaves.setdefault(end, []).append(k)
    held, peak = inst.get("constant_overhead", 0), inst.get("constant_overhead", 0)
    for k, v in enumerate(order):
        held += mem[v]
        peak = max(peak, held)
        for j in leaves.get(k, []):
            held -= mem[order[j]]
    firsts, seen = [], set()
    for v in order:
        if v not in seen:
            seen.add(v)
            firsts.append(v)
    return {"cost": sum(cost[v] for v in order), "peak": peak, "in_order": firsts == sorted(firsts)}


def judge_chain(inst, sched):
    L = inst["L"]
    a, abar, delta = (inst["w_" + k] + [0] for k in ("a", "abar", "delta"))
    uf, ub = [0] + inst["u_f"] + [0], [0] + inst["u_b"] + [inst.get("u_loss", 0)]
    of, ob = [0] + inst["o_f"] + [0], [0] + inst["o_b"] + [0]
    alone, saved, back, time = {0}, set(), L + 1, 0
    peak = 0

    def held():
        return sum(a[l] for l in alone) + sum(abar[l] for l in saved) + delta[back]

    peak = held()
    for k, (kind, l) in enumerate(sched["steps"]):
        if kind == "drop":
            if l not in alone:
                raise Broken("step %d drops a^%d, which is not there" % (k, l))
            alone.discard(l)
            continue
        if l - 1 not in alone and l - 1 not in saved:
            raise Broken("step %d: %s of stage %d lacks its input" % (k, kind, l))
        if kind == "B":
            if l != back or l not in saved:
                raise Broken("step %d: backward of stage %d is not next, or lacks what it saved" % (k, l))
            peak = max(peak, held() + delta[l - 1] + ob[l])
            time += ub[l]
            saved.discard(l)
            alone.discard(l)
            back -= 1
        else:
            target = saved if kind == "F_all" else alone
            if l in target:
                raise Broken("step %d computes what is there" % k)
            target.add(l)
            peak = max(peak, held() + of[l])
            time += uf[l]
            if kind == "F_none":
                alone.discard(l - 1)
        peak = max(peak, held())
    if back != 0:
        raise Broken("the backward of stage %d is never run" % back)
    return {"cost": time, "peak": peak}


def judge(inst, sched):
    try:
        if inst["format"] == "rotor-chain-v1":
            found = judge_chain(inst, sched)
        else:
            found = judge_checkmate(inst, sched)
        return dict(found, ok=True, error="")
    except Broken as e:
        return {"ok": False, "error": str(e), "cost": -1, "peak": -1}


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    with open(sys.argv[1]) as f, open(sys.argv[2]) as g:
        found = judge(json.load(f), json.load(g))
    print(json.dumps(found))
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
