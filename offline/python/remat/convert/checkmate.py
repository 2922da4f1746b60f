"""Checkmate's model (checkmate-v1): nodes with one result each, in a given order.

    to_checkmate(trace)        what `remat solve` reads; the given order's peak and cost are the trace's
    from_checkmate(instance)   an instance as a trace: an op a node, alive from the node to its last reader

Checkmate's model has less in it than a trace. What becomes of the rest:
- what exists before the iteration and stays is `constant_overhead`; what exists before and is freed is a node of its own, without cost, at the start;
- the first buffer that an op makes is the op's node (where the op changes nothing in place); each further one is a node without cost right behind
  it, which reads the op's inputs too;
- a change in place is a node without memory, which reads what it changes;
- a buffer that lives on after its last reader is read by the last node of the op after which the program frees it; what survives, by a last node `end`.
"""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Set, Tuple, Union

from ..places import Document
from ..trace import Buffer, Op, Path, Trace

Instance = Dict[str, Any]


def to_checkmate(trace: Trace, limit: Union[None, str, int] = None) -> Instance:
    """`limit`: the instance's budget, of the whole memory; the trace's peak where it is left out."""
    n = len(trace.ops)
    bufs = trace.buffers
    written = {b for o in trace.ops for b in o.writes}
    names: List[str] = []
    cost: List[int] = []
    mem: List[int] = []
    op_of: List[int] = []
    edges: Set[Tuple[int, int]] = set()
    maker: Dict[int, int] = {}   # buffer: node that made its present version
    birth: Dict[int, int] = {}   # buffer: node that has its memory
    last_node: List[int] = []    # of each op

    def node(name: str, ns: int, size: int, op: int) -> int:
        names.append(name)
        cost.append(ns)
        mem.append(size)
        op_of.append(op)
        return len(names) - 1

    for b, x in enumerate(bufs):
        if x.born < 0 and x.dies is not None:
            maker[b] = birth[b] = node("before", 0, x.bytes, -1)
    start = len(names) - 1
    for i, o in enumerate(trace.ops):
        born = [b for b in o.writes if bufs[b].born == i]
        alone = len(born) == len(o.writes) and not o.rmw and not o.side   # else what reads a change would hold the new buffer
        me = node(o.name, o.ns, bufs[born[0]].bytes if born and alone else 0, i)
        inputs = {maker[b] for b in (*o.reads, *o.rmw, *o.side) if b in maker}
        edges.update((u, me) for u in inputs)
        maker.update((b, me) for b in (*o.writes, *o.rmw, *o.side))
        if born and alone:
            birth[born[0]] = me
        for b in born[1 if alone else 0:]:
            more = node(o.name, 0, bufs[b].bytes, i)
            edges.update((u, more) for u in (*inputs, me))
            maker[b] = birth[b] = more
        last_node.append(len(names) - 1)
    survive = [b for b, x in enumerate(bufs) if x.born >= 0 and x.dies is None and b in written]
    if survive:
        end = node("end", 0, 0, -1)
        edges.update((u, end) for b in survive for u in (birth[b], maker[b]))
    for b, x in enumerate(bufs):
        if b in birth and x.dies is not None:
            edges.add((birth[b], last_node[x.dies - 1] if x.dies > 0 else max(start, 0)))
    out: Instance = {"format": "checkmate-v1", "name": str(trace.meta.get("model", "")), "n": len(names),
                     "edges": sorted([u, v] for u, v in edges if u < v), "cost": cost, "mem": mem,
                     "budget": trace.limit(limit) if limit is not None else trace.peak_bytes, "names": names, "op": op_of}
    constant = trace.persistent_bytes
    if constant:
        out["constant_overhead"] = constant
    return out


def from_checkmate(instance: Union[Instance, Path]) -> Trace:
    inst = instance if isinstance(instance, dict) else load(instance)
    n, names = inst["n"], inst.get("names")
    inputs: List[List[int]] = [[] for _ in range(n)]
    last = list(range(n))
    for u, v in inst["edges"]:
        inputs[v].append(u)
        last[u] = max(last[u], v)
    t = Trace(meta={"model": inst.get("name") or "checkmate-v1", "source": "remat.convert.checkmate"})
    for i in range(n):
        t.buffers.append(Buffer(inst["mem"][i], i, last[i] + 1))
        t.ops.append(Op(names[i] if names else "node %d" % i, inst["cost"][i], "fwd", reads=sorted(set(inputs[i])), writes=[i]))
    if inst.get("constant_overhead"):
        t.buffers.append(Buffer(inst["constant_overhead"], kind="param"))
    return t


def load(path: Path) -> Instance:
    """Read and check a file; BadFile has the place of what is wrong."""
    doc = Document.load(path)
    return check(doc)


def check(doc: Document) -> Instance:
    root = doc.instance("checkmate-v1")
    n = doc.integer(root, [], "n", 1, 1 << 30, need=True)
    doc.integer(root, [], "budget", 0, 2 ** 62)
    doc.integer(root, [], "constant_overhead", 0, 1 << 50)
    doc.kind(root, [], "name", str, "a string")
    assert n is not None
    names = doc.kind(root, [], "names", list, "an array")
    if names and len(names) != n:
        doc.bad(["names"], "has %d entries, and there are %d nodes" % (len(names), n))
    for i, v in enumerate(names or []):
        if not isinstance(v, str):
            doc.bad(["names", i], "must be a string")
    for key in ("cost", "mem"):
        row = doc.kind(root, [], key, list, "an array", need=True)
        if len(row) != n:
            doc.bad([key], "has %d entries, and there are %d nodes" % (len(row), n))
        for i, v in enumerate(row):
            if isinstance(v, bool) or not isinstance(v, int) or not 0 <= v <= 1 << 53:
                doc.bad([key, i], "must be a whole number from 0 to 2^53")
    for i, e in enumerate(doc.kind(root, [], "edges", list, "an array", need=True)):
        if not isinstance(e, list) or len(e) != 2 or any(isinstance(x, bool) or not isinstance(x, int) for x in e) or not 0 <= e[0] < e[1] < n:
            doc.bad(["edges", i], "an edge is [node, its user], two of the %d nodes, the first one the earlier" % n)
    return root


def save(instance: Instance, path: Path) -> None:
    from ..trace import write_text
    write_text(path, json.dumps(instance) + "\n")


def peak_bytes(instance: Instance) -> int:
    """Of the given order, each node once."""
    last: List[int] = list(range(instance["n"]))
    for u, v in instance["edges"]:
        last[u] = max(last[u], v)
    leave: List[List[int]] = [[] for _ in last]
    for u, v in enumerate(last):
        leave[v].append(u)
    held: int = instance.get("constant_overhead") or 0
    peak: Optional[int] = held
    for i, size in enumerate(instance["mem"]):
        held += size
        peak = max(peak or 0, held)
        held -= sum(instance["mem"][u] for u in leave[i])
    return peak or 0
