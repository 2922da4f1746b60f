"""The rules of plans, re-executed: an independent judge of a plan-1 schedule, beside `remat check`, with which it agrees to the byte and the
nanosecond (docs/formats.md has the rules). `python3 -m remat.verify` is its command."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple, Union

from .plan import Plan
from .trace import Trace


@dataclass
class Result:
    ok: bool
    peak_bytes: int
    ns: int = 0             # when computation and copies are done; 0: the plan did not run through
    overhead: float = 0.0   # 0.07 = 7 %
    replays: int = 0
    offloads: int = 0
    error: str = ""         # the first broken rule
    use_bytes: List[int] = field(default_factory=list)   # memory in use at each step
    clock_ns: List[float] = field(default_factory=list)  # the compute clock after each step

    def to_json(self) -> Dict[str, object]:
        out: Dict[str, object] = {"ok": self.ok, "peak_bytes": self.peak_bytes}
        if self.ok or self.ns:
            out.update(ns=self.ns, overhead=round(self.overhead, 5), replays=self.replays, offloads=self.offloads)
        if not self.ok:
            out["error"] = self.error
        return out


class _Broken(Exception):
    pass


class _Machine:
    """Device memory, the host's copies and three clocks (compute, out, in), in nanoseconds."""

    def __init__(self, t: Trace, keep: List[int]) -> None:
        self.t, self.keep = t, set(keep)
        self.size = [b.bytes for b in t.buffers]
        self.resident: Dict[int, int] = {b: 0 for b, x in enumerate(t.buffers) if x.born < 0}  # buffer: version
        self.now: Dict[int, Optional[int]] = {b: 0 for b in range(len(t.buffers))}  # the program's version; None: it freed it
        self.host: Dict[int, Tuple[int, float]] = {}    # buffer: version, when its copy out is done
        self.coming: Dict[int, float] = {}              # buffer: when its copy in is done
        self.used = sum(self.size[b] for b in self.resident)
        self.peak = self.used
        self.compute = self.out = self.inn = 0.0
        self.io = t.versions()
        self.dying: Dict[int, List[int]] = {}
        for b, x in enumerate(t.buffers):
            if x.dies is not None:
                self.dying.setdefault(x.dies, []).append(b)

    def copy_ns(self, b: int) -> float:
        return self.size[b] / self.t.host_bytes_per_s * 1e9

    def frees(self, i: int) -> None:
        for b in self.dying.get(i, ()):
            self.now[b] = None
            if b in self.keep:
                continue
            if b in self.resident:
                self.leave(b)
                self.coming.pop(b, None)
            self.host.pop(b, None)

    def leave(self, b: int) -> None:
        self.used -= self.size[b]
        del self.resident[b]

    def run(self, what: str, i: int) -> None:
        op, replay = self.t.ops[i], what == "replay"
        used, made = self.io[i]
        uses = [*op.reads, *op.rmw] + ([] if replay else op.side)
        makes = [*op.writes, *op.rmw] + ([] if replay else op.side)
        for b in uses:
            if b not in self.resident:
                raise _Broken("%s %d %s reads buffer %d, which is not resident" % (what, i, op.name, b))
            if self.resident[b] != used[b]:
                raise _Broken("%s %d %s needs buffer %d at version %d, resident is %d" % (what, i, op.name, b, used[b], self.resident[b]))
        for b in makes:
            if replay and b in self.resident and self.resident[b] == self.now[b] != made[b]:
                raise _Broken("replay %d would overwrite live buffer %d (version %d) with version %d" % (i, b, self.resident[b], made[b]))
            if b in self.host and b in self.resident and self.host[b][1] > self.compute and self.host[b][0] != made[b]:
                self.compute = self.host[b][1]  # a copy out still reads it
            if b not in self.resident:
                self.used += self.size[b]
            self.resident[b] = made[b]
            if not replay:
                self.now[b] = made[b]
            if b in self.host and self.host[b][0] != self.now[b]:
                del self.host[b]
            if b not in uses:
                self.coming.pop(b, None)
        self.peak = max(self.peak, self.used + (sum(self.size[b] for b in op.side) if replay else 0))
        for b in uses:
            self.compute = max(self.compute, self.coming.pop(b, 0.0))
        self.compute += op.ns

    def move(self, what: str, b: int) -> None:
        if what != "fetch" and b not in self.resident:
            raise _Broken("%s of buffer %d, which is not resident" % (what, b))
        if what == "drop":
            self.compute = max(self.compute, self.coming.pop(b, 0.0))
            self.leave(b)
        elif what == "offload":
            if b in self.coming:
                raise _Broken("offload of buffer %d, which is still coming in" % b)
            self.out = max(self.out, self.compute) + self.copy_ns(b)
            self.host[b] = self.resident[b], self.out
        elif what == "release":
            if b not in self.host or self.host[b][0] != self.resident[b]:
                raise _Broken("release of buffer %d, which has no host copy of its version" % b)
            self.compute = max(self.compute, self.host[b][1], self.coming.pop(b, 0.0))
            self.leave(b)
        else:
            if b not in self.host:
                raise _Broken("fetch of buffer %d, which has no host copy" % b)
            if b in self.resident:
                raise _Broken("fetch of buffer %d, which is resident" % b)
            self.used += self.size[b]
            self.peak = max(self.peak, self.used)
            self.resident[b] = self.host[b][0]
            self.inn = max(self.inn, self.compute, self.host[b][1]) + self.copy_ns(b)
            self.coming[b] = self.inn


def simulate(trace: Trace, plan: Plan, limit: Union[None, str, int] = None) -> Result:
    """Judge a plan, step by step. limit: instead of the plan's own; 0 or none at all: no limit."""
    m, n, at = _Machine(trace, plan.keep), len(trace.ops), 0
    r = Result(False, m.peak)
    m.frees(0)
    try:
        for k, (what, i) in enumerate(plan.steps):
            try:
                if what in ("op", "replay"):
                    if not 0 <= i < n:
                        raise _Broken("no op %d" % i)
                    if what == "op" and i != at:
                        raise _Broken("op %d out of order, expected %d" % (i, at))
                    if what == "replay" and i >= at:
                        raise _Broken("replay of op %d before it ran" % i)
                    if what == "replay" and trace.ops[i].opaque:
                        raise _Broken("op %d may not be replayed" % i)
                    m.run(what, i)
                    r.use_bytes.append(m.used + (sum(m.size[b] for b in trace.ops[i].side) if what == "replay" else 0))
                    if what == "op":
                        at += 1
                        m.frees(at)
                    r.replays += what == "replay"
                else:
                    if not 0 <= i < len(trace.buffers):
                        raise _Broken("no buffer %d" % i)
                    m.move(what, i)
                    r.offloads += what == "offload"
                    r.use_bytes.append(m.used)
            except _Broken as e:
                raise _Broken("step %d: %s" % (k, e)) from None
            r.clock_ns.append(m.compute)
        if at != n:
            raise _Broken("%d of %d ops ran" % (at, n))
        final = [0] * len(trace.buffers)
        for _, made in m.io:
            for b, v in made.items():
                final[b] = v
        for b, x in enumerate(trace.buffers):
            if x.dies is None and (final[b] > 0 or x.born < 0) and m.resident.get(b) != final[b] and m.host.get(b, (-1, 0.0))[0] != final[b]:
                raise _Broken("buffer %d is not back at its final version at the end" % b)
    except _Broken as e:
        r.peak_bytes, r.error = m.peak, str(e)
        return r
    r.ok, r.peak_bytes, r.ns = True, m.peak, int(max(m.compute, m.out, m.inn))
    base = trace.total_ns
    r.overhead = r.ns / base - 1 if base else 0.0
    most = trace.limit(limit) if limit else plan.limit_bytes
    if most and m.peak > most:
        r.ok, r.error = False, "peak %d over limit %d" % (m.peak, most)
    return r
