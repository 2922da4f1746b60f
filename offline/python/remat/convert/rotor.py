"""Rotor's model (rotor-chain-v1): a chain of stages, each forward once and backward once.

    to_rotor(trace)        the chain that a training step is, as far as it is one; the peak with everything stored, and the cost, are the trace's
    from_rotor(instance)   an instance as a trace, with everything stored

The forward ops are cut where all that later forward ops read is one buffer. A stage's abar is what its forward ops made and the backward ones still
need; a backward op belongs to the stage whose results it reads, never to a later one than the op before it. Scratch (o_f, o_b) is what the trace
has in memory beside that; the gradients of weights are in it. Updates are part of the last backward.
"""
from __future__ import annotations

from typing import Any, Dict, List, Set, Tuple, Union

from ..places import Document
from ..trace import Buffer, Op, Path, Trace

Instance = Dict[str, Any]


def _cuts(trace: Trace, n_fwd: int) -> List[Tuple[int, int]]:
    """(the op behind which it may be cut, the bytes that cross), of the forward ops."""
    last: Dict[int, int] = {}
    for i in range(n_fwd):
        for b in (*trace.ops[i].reads, *trace.ops[i].rmw, *trace.ops[i].side):
            last[b] = i
    ends: Dict[int, List[int]] = {}
    for b, x in enumerate(trace.buffers):
        if x.born >= 0 and last.get(b, -1) > x.born:
            ends.setdefault(last[b], []).append(b)
    crossing: Set[int] = set()
    out = []
    for i in range(n_fwd - 1):
        crossing.update(b for b in trace.ops[i].writes if trace.buffers[b].born == i and last.get(b, -1) > i)
        crossing.difference_update(ends.get(i, ()))
        if len(crossing) == 1:
            out.append((i, trace.buffers[next(iter(crossing))].bytes))
    return out


def to_rotor(trace: Trace, limit: Union[None, str, int] = None, stages: int = 0) -> Instance:
    """`limit`: the budget, of the whole memory; the peak where it is left out. `stages`: at most so many; 0: as many as there are."""
    phases = [o.phase for o in trace.ops]
    n = len(phases)
    n_fwd = next((i for i, p in enumerate(phases) if p != "fwd"), n)
    cuts = _cuts(trace, n_fwd)
    if stages and len(cuts) > stages - 1:
        cuts = [cuts[(k + 1) * len(cuts) // stages] for k in range(stages - 1)]
    firsts = [0] + [c + 1 for c, _ in cuts]
    L = len(firsts)
    stage_of = [sum(1 for f in firsts if f <= i) for i in range(n_fwd)]  # 1 .. L
    now = L
    for i in range(n_fwd, n):
        made = [stage_of[trace.buffers[b].born] for b in (*trace.ops[i].reads, *trace.ops[i].rmw) if 0 <= trace.buffers[b].born < n_fwd]
        now = 1 if phases[i] == "opt" else min(now, max(made)) if made else now
        stage_of.append(now)
    live = trace.live_bytes()
    bufs = trace.buffers
    zero = [0] * (L + 1)
    w_a, abar, delta, u_f, u_b, o_f, o_b = (list(zero) for _ in range(7))
    w_a[0] = trace.persistent_bytes
    written = {b for o in trace.ops for b in o.writes}
    for b, x in enumerate(bufs):
        if 0 <= x.born < n_fwd and b in written and (x.dies is None or x.dies > n_fwd):
            abar[stage_of[x.born]] += x.bytes
    for k, (_, size) in enumerate(cuts):
        w_a[k + 1] = size
    w_a[L] = 0
    held, r = [w_a[0]], w_a[0]
    for k in range(1, L + 1):
        r += abar[k]
        held.append(r)
    most_f, most_b = list(zero), list(zero)
    for i in range(n):
        k, back = stage_of[i], i >= n_fwd
        (u_b if back else u_f)[k] += trace.ops[i].ns
        most = most_b if back else most_f
        most[k] = max(most[k], live[i])
    most_f[1] = max(most_f[1], sum(x.bytes for x in bufs if x.born < 0))
    begins = {stage_of[i]: i for i in range(n - 1, n_fwd - 1, -1)}  # first backward op of each stage
    for k in range(1, L + 1):
        o_f[k] = max(0, most_f[k] - held[k])
        w_a[k] = min(w_a[k], abar[k])  # abar holds a
    for k in range(L, 0, -1):
        at = begins.get(k - 1, n)
        crossing = 0 if k == 1 else sum(x.bytes for b, x in enumerate(bufs) if n_fwd <= x.born < at and b in written and x.dies is not None
                                        and x.dies > at and x.kind != "grad")
        delta[k - 1] = max(0, min(crossing, most_b[k] - held[k] - delta[k]))
        o_b[k] = max(0, most_b[k] - held[k] - delta[k] - delta[k - 1])
    return {"format": "rotor-chain-v1", "name": str(trace.meta.get("model", "")), "L": L, "unit": "bytes", "time_unit": "ns", "w_a": w_a, "w_abar": abar,
            "w_delta": delta, "u_f": u_f[1:], "u_b": u_b[1:], "o_f": o_f[1:], "o_b": o_b[1:],
            "budget": trace.limit(limit) if limit is not None else trace.peak_bytes}


def from_rotor(instance: Union[Instance, Path]) -> Trace:
    c = instance if isinstance(instance, dict) else load(instance)
    L = c["L"]
    t = Trace(meta={"model": c.get("name") or "rotor-chain-v1", "source": "remat.convert.rotor"})
    n = 2 * L + (1 if c.get("u_loss") else 0)
    back = n - L                                  # op of the backward of stage L
    ops_b = {l: back + (L - l) for l in range(1, L + 1)}
    t.buffers.append(Buffer(c["w_a"][0], kind="input"))
    abar = {0: 0}
    for l in range(1, L + 1):
        abar[l] = len(t.buffers)
        t.buffers.append(Buffer(c["w_abar"][l], l - 1, ops_b[l] + 1))
        scratch = len(t.buffers)
        t.buffers.append(Buffer(c["o_f"][l - 1], l - 1, l))
        t.ops.append(Op("forward %d" % l, c["u_f"][l - 1], "fwd", reads=[abar[l - 1]], writes=[abar[l], scratch]))
    grad = len(t.buffers)
    # the gradient of the last stage's output is there when its backward begins
    t.buffers.append(Buffer(c["w_delta"][L], back - 1 if c.get("u_loss") else back, ops_b[L] + 1))
    if c.get("u_loss"):
        t.ops.append(Op("loss", c["u_loss"], "fwd", reads=[abar[L]], writes=[grad]))
    for l in range(L, 0, -1):
        at = ops_b[l]
        below = len(t.buffers)
        t.buffers.append(Buffer(c["w_delta"][l - 1], at, (ops_b[l - 1] if l > 1 else at) + 1))
        scratch = len(t.buffers)
        t.buffers.append(Buffer(c["o_b"][l - 1], at, at + 1))
        first = l == L and not c.get("u_loss")
        t.ops.append(Op("backward %d" % l, c["u_b"][l - 1], "bwd", reads=[abar[l - 1], abar[l]] + ([] if first else [grad]),
                        writes=[below, scratch] + ([grad] if first else [])))
        grad = below
    return t


def load(path: Path) -> Instance:
    """Read and check a file; BadFile has the place of what is wrong."""
    return check(Document.load(path))


def check(doc: Document) -> Instance:
    root = doc.instance("rotor-chain-v1")
    L = doc.integer(root, [], "L", 1, 1 << 20, need=True) or 1
    doc.integer(root, [], "budget", 0, 2 ** 62)
    doc.integer(root, [], "u_loss", 0, 1 << 53)
    doc.kind(root, [], "name", str, "a string")
    for key in ("w_a", "w_abar", "w_delta", "u_f", "u_b", "o_f", "o_b"):
        row = doc.kind(root, [], key, list, "an array", need=True)
        if len(row) != L + (key[0] == "w"):
            doc.bad([key], "has %d entries, and a chain of %d stages has %d" % (len(row), L, L + (key[0] == "w")))
        for i, v in enumerate(row):
            if isinstance(v, bool) or not isinstance(v, int) or not 0 <= v <= 1 << 53:
                doc.bad([key, i], "must be a whole number from 0 to 2^53")
    return root
