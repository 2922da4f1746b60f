"""opgraph-1: one training iteration as ops and buffers. docs/formats.md says what each key means."""
from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from . import output
from .places import Document, read_bytes, whole

PHASES = ("fwd", "bwd", "opt")
KINDS = ("param", "grad", "state", "input", "activation")
ROLES = ("reads", "rmw", "side", "writes")
HOST_BYTES_PER_S = 25e9
Path = Union[str, "os.PathLike[str]"]


@dataclass
class Buffer:
    bytes: int
    born: int = -1            # op that first writes it; -1: it exists before op 0
    dies: Optional[int] = None  # freed just before this op; None: never
    kind: str = "activation"
    fixed: bool = False       # lies where no plan moves it


@dataclass
class Op:
    name: str
    ns: int
    phase: str = "fwd"
    reads: List[int] = field(default_factory=list)   # not changed
    writes: List[int] = field(default_factory=list)  # overwritten whole
    rmw: List[int] = field(default_factory=list)     # read and changed in place
    side: List[int] = field(default_factory=list)    # changed in place, without influence on the other outputs
    flops: int = 0
    bytes: int = 0
    heavy: bool = False
    random: bool = False
    opaque: bool = False
    site: Optional[int] = None

    def touches(self) -> List[int]:
        return [*self.reads, *self.rmw, *self.side, *self.writes]


@dataclass
class Trace:
    """A trace. `meta` has what the file's meta has, but for what follows from ops and buffers (peak_bytes, persistent_bytes, total_ns)."""

    buffers: List[Buffer] = field(default_factory=list)
    ops: List[Op] = field(default_factory=list)
    meta: Dict[str, Any] = field(default_factory=dict)
    sites: List[Any] = field(default_factory=list)
    sha256: str = ""  # of the file's uncompressed text; "" for a trace that was made

    # ---- what follows from ops and buffers ----

    @property
    def total_ns(self) -> int:
        """Time with nothing evicted."""
        return sum(o.ns for o in self.ops)

    @property
    def persistent_bytes(self) -> int:
        return sum(b.bytes for b in self.buffers if b.born < 0 and b.dies is None)

    @property
    def host_bytes_per_s(self) -> float:
        return float(self.meta.get("host_bytes_per_s") or HOST_BYTES_PER_S)

    def live_bytes(self) -> List[int]:
        """Memory in use while each op runs, with nothing evicted."""
        n = len(self.ops)
        step = [0] * (n + 2)
        written = {b for o in self.ops for b in o.writes}
        for i, b in enumerate(self.buffers):
            end = n if b.dies is None else b.dies
            if end > max(b.born, 0) and (b.born < 0 or i in written):
                step[max(b.born, 0)] += b.bytes
                step[end] -= b.bytes
        out, used = [], 0
        for i in range(n):
            used += step[i]
            out.append(used)
        return out

    @property
    def peak_bytes(self) -> int:
        """Memory in use at most, with nothing evicted."""
        before = sum(b.bytes for b in self.buffers if b.born < 0)
        return max([before, *self.live_bytes()])

    def limit(self, text: Union[str, int, float]) -> int:
        """A limit in bytes: a number of bytes, "50%" of the peak, or a size such as "12G" or "1.5GiB" (binary)."""
        return parse_limit(text, self.peak_bytes)

    def floor_bytes(self) -> int:
        """The largest working set of one op: no plan of any kind goes lower."""
        return max((sum(self.buffers[b].bytes for b in o.touches()) for o in self.ops), default=0)

    # ---- in and out ----

    def check(self) -> None:
        """Raise BadFile if this is no trace: the checks that a file gets."""
        Trace.parse(json.dumps(self.to_json()), "trace")

    def to_json(self) -> Dict[str, Any]:
        meta = {"format": "opgraph-1", **{k: v for k, v in self.meta.items() if k != "format"}}
        meta.update(peak_bytes=self.peak_bytes, persistent_bytes=self.persistent_bytes, total_ns=self.total_ns)
        ops = []
        for i, o in enumerate(self.ops):
            row: Dict[str, Any] = {"id": i, "name": o.name, "phase": o.phase, "reads": o.reads, "writes": o.writes, "rmw": o.rmw, "side": o.side,
                                   "ns": o.ns, "flops": o.flops, "bytes": o.bytes, "heavy": o.heavy, "random": o.random}
            if o.opaque:
                row["opaque"] = True
            if o.site is not None:
                row["site"] = o.site
            ops.append(row)
        out: Dict[str, Any] = {"meta": meta, "buffers": [{"id": i, "bytes": b.bytes, "born": b.born, "dies": b.dies, "kind": b.kind,
                                                          **({"fixed": True} if b.fixed else {})}
                                                         for i, b in enumerate(self.buffers)], "ops": ops}
        if self.sites:
            out["sites"] = self.sites
        return out

    def dumps(self) -> str:
        """The file's text: a line a buffer and op."""
        j = self.to_json()

        def rows(key: str) -> str:
            return ",\n".join("  " + json.dumps(r) for r in j[key])
        tail = ',\n "sites": %s' % json.dumps(j["sites"]) if "sites" in j else ""
        return '{"meta": %s,\n "buffers": [\n%s\n ],\n "ops": [\n%s\n ]%s}\n' % (json.dumps(j["meta"]), rows("buffers"), rows("ops"), tail)

    def save(self, path: Path) -> None:
        """Write the file, compressed if its name ends in .gz or .xz."""
        write_text(path, self.dumps())

    @classmethod
    def load(cls, path: Path) -> "Trace":
        name = os.fspath(path)
        return cls.parse(read_bytes(path), "standard input" if name == "-" else name)

    @classmethod
    def parse(cls, text: Union[bytes, str], name: str = "text") -> "Trace":
        data = text if isinstance(text, bytes) else text.encode()
        t = _Reader(Document(data, name)).trace()
        t.sha256 = hashlib.sha256(data).hexdigest()
        return t

    # ---- for other tools ----

    def to_pandas(self) -> Tuple[Any, Any]:
        """(ops, buffers) as data frames; needs pandas."""
        import pandas as pd  # type: ignore
        j = self.to_json()
        live = self.live_bytes()
        return (pd.DataFrame([{**r, "live_bytes": m} for r, m in zip(j["ops"], live)]).set_index("id"),
                pd.DataFrame(j["buffers"]).astype({"dies": "Int64"}).set_index("id"))

    def to_numpy(self) -> Dict[str, Any]:
        """Columns as arrays: op_ns, op_live_bytes, buf_bytes, buf_born, buf_dies (-1: never); operands as rows op, buffer, role
        (index into remat.ROLES). Needs numpy."""
        import numpy as np  # type: ignore
        rows = [(i, b, r) for i, o in enumerate(self.ops) for r, role in enumerate(ROLES) for b in getattr(o, role)]
        return {"op_ns": np.array([o.ns for o in self.ops], dtype=np.int64), "op_live_bytes": np.array(self.live_bytes(), dtype=np.int64),
                "buf_bytes": np.array([b.bytes for b in self.buffers], dtype=np.int64),
                "buf_born": np.array([b.born for b in self.buffers], dtype=np.int64),
                "buf_dies": np.array([-1 if b.dies is None else b.dies for b in self.buffers], dtype=np.int64),
                "operands": np.array(rows, dtype=np.int64).reshape(-1, 3)}

    def to_networkx(self) -> Any:
        """A MultiDiGraph: a node an op, an edge a value from the op that made it to each that consumes it (buffer, version, bytes). What
        existed before comes from the node -1. graph["trace"] is this trace. Needs networkx."""
        import networkx as nx  # type: ignore
        g = nx.MultiDiGraph(trace=self)
        g.add_node(-1, name="before", ns=0, phase="fwd")
        for i, o in enumerate(self.ops):
            g.add_node(i, name=o.name, ns=o.ns, phase=o.phase)
        for i, (used, _) in enumerate(self.versions()):
            for b, v in used.items():
                g.add_edge(self._maker[b, v], i, buffer=b, version=v, bytes=self.buffers[b].bytes)
        return g

    def versions(self) -> List[Tuple[Dict[int, int], Dict[int, int]]]:
        """For each op ({buffer: version consumed}, {buffer: version made}); side operands are in both."""
        now = [0] * len(self.buffers)
        out = []
        self._maker: Dict[Tuple[int, int], int] = {(b, 0): -1 for b in range(len(self.buffers))}
        for i, o in enumerate(self.ops):
            used = {b: now[b] for b in (*o.reads, *o.rmw, *o.side)}
            made = {}
            for b in (*o.writes, *o.rmw, *o.side):
                now[b] += 1
                made[b] = now[b]
                self._maker[b, now[b]] = i
            out.append((used, made))
        return out


def load(path: Path) -> Any:
    """A Trace or a Plan, whichever the file holds."""
    from .plan import Plan
    doc = Document.load(path)
    return Plan.load(path) if isinstance(doc.root, dict) and "steps" in doc.root else Trace.load(path)


def write_text(path: Path, text: str) -> None:
    name = os.fspath(path)
    data = text.encode()
    if name.endswith(".gz"):
        import gzip
        data = gzip.compress(data, mtime=0)
    elif name.endswith(".xz"):
        import lzma
        data = lzma.compress(data, preset=9)
    output.write(name, data)


def parse_limit(text: Union[str, int, float], whole_bytes: int) -> int:
    if not isinstance(text, str):
        return int(text)
    s = text.strip()
    try:
        if s.endswith("%"):
            return int(whole_bytes * float(s[:-1]) / 100)
        for power, letter in enumerate("KMGT", 1):
            for tail in (letter + "iB", letter + "B", letter):
                if s.endswith(tail):
                    return int(float(s[:-len(tail)]) * 1024 ** power)
        return int(s)
    except ValueError:
        raise ValueError('"%s" is no size or percentage, such as 12G or 50%%' % text) from None


class _Reader:
    def __init__(self, doc: Document) -> None:
        self.doc, self.n_bufs, self.n_ops, self.n_sites = doc, 0, 0, 2 ** 31 - 1

    def trace(self) -> Trace:
        doc, root = self.doc, self.doc.object("a trace")
        meta = root.get("meta")
        if meta is None and isinstance(root.get("format"), str):
            doc.bad([], 'is "%.40s", where a trace (opgraph-1) is wanted' % root["format"])
        if not isinstance(meta, dict):
            doc.bad(["meta"], "missing" if meta is None else "must be an object")
        if doc.kind(meta, ["meta"], "format", str, "a string", need=True) != "opgraph-1":
            doc.bad(["meta", "format"], 'is "%.40s"; this program reads "opgraph-1"' % meta["format"])
        bufs = doc.kind(root, [], "buffers", list, "an array", need=True)
        ops = doc.kind(root, [], "ops", list, "an array", need=True)
        sites = doc.kind(root, [], "sites", list, "an array")
        self.n_bufs, self.n_ops = len(bufs), len(ops)
        self.n_sites = len(sites) if sites is not None else self.n_sites
        t = Trace([self.buffer(i, b) for i, b in enumerate(bufs)], [self.op(i, o) for i, o in enumerate(ops)],
                  {k: v for k, v in meta.items() if k not in ("format", "peak_bytes", "persistent_bytes", "total_ns")}, sites or [])
        self.sizes(t)
        self.operands(t)
        for key in ("model", "device", "source"):
            doc.kind(meta, ["meta"], key, str, "a string")
        doc.integer(meta, ["meta"], "batch", 0, 2 ** 63 - 1)
        doc.integer(meta, ["meta"], "granularity_bytes", 0, 1 << 40)
        speed = meta.get("host_bytes_per_s")
        if speed is not None and (isinstance(speed, bool) or not isinstance(speed, (int, float))):
            doc.bad(["meta", "host_bytes_per_s"], "must be a number")
        if speed is not None and not 1 <= speed <= 1e18:
            doc.bad(["meta", "host_bytes_per_s"], "must be between 1 and 1e+18")
        return t

    def entry(self, at: Sequence[Any], row: Any, what: str) -> None:
        if not isinstance(row, dict):
            self.doc.bad(at, what)
        if self.doc.integer(row, at, "id", 0, 2 ** 31 - 1, need=True) != at[1]:
            self.doc.bad([*at, "id"], "is %d, but an id is the entry's own index, %d" % (row["id"], at[1]))

    def word(self, row: Any, at: Sequence[Any], key: str, words: Iterable[str]) -> str:
        word: str = self.doc.kind(row, at, key, str, "a string", need=True)
        if word not in words:
            self.doc.bad([*at, key], 'unknown %s "%.40s"' % (key, word))
        return word

    def buffer(self, i: int, row: Any) -> Buffer:
        at = ["buffers", i]
        self.entry(at, row, "a buffer is an object")
        size = self.doc.integer(row, at, "bytes", 0, 1 << 50, need=True)
        born = self.doc.integer(row, at, "born", -1, self.n_ops - 1, need=True)
        dies = self.doc.integer(row, at, "dies", 0, self.n_ops)
        assert size is not None and born is not None
        return Buffer(size, born, dies, self.word(row, at, "kind", KINDS),
                      bool(self.doc.kind(row, at, "fixed", bool, "true or false")))

    def op(self, i: int, row: Any) -> Op:
        at, doc = ["ops", i], self.doc
        self.entry(at, row, "an op is an object")
        name = doc.kind(row, at, "name", str, "a string", need=True)
        phase = self.word(row, at, "phase", PHASES)
        ns = doc.integer(row, at, "ns", 0, 1 << 53, need=True)
        flops, size = (doc.integer(row, at, k, 0, 2 ** 63 - 1, default=0) for k in ("flops", "bytes"))
        flags = [bool(doc.kind(row, at, k, bool, "true or false")) for k in ("heavy", "random", "opaque")]
        site = doc.integer(row, at, "site", 0, self.n_sites - 1)
        lists = []
        for key in ("reads", "writes", "rmw", "side"):
            ids = doc.kind(row, at, key, list, "an array", need=key != "side") or []
            for k, b in enumerate(ids):
                n = whole(b)
                if n is None or not 0 <= n < self.n_bufs:
                    doc.bad([*at, key, k], "op %d must name a buffer here, a whole number from 0 to %d" % (i, self.n_bufs - 1))
            lists.append([int(b) for b in ids])
        assert ns is not None and flops is not None and size is not None
        reads, writes, rmw, side = lists
        heavy, random, opaque = flags
        return Op(name, ns, phase, reads, writes, rmw, side, flops, size, heavy, random, opaque, site)

    def sizes(self, t: Trace) -> None:
        total = ns = 0
        for i, b in enumerate(t.buffers):
            total += b.bytes
            if total > 1 << 62:
                self.doc.bad(["buffers", i, "bytes"], "sizes up to buffer %d add up to over 2^62 bytes" % i)
            if b.dies is not None and b.dies < b.born:
                self.doc.bad(["buffers", i, "dies"], "buffer %d dies before op %d, yet is born at op %d" % (i, b.dies, b.born))
        for i, o in enumerate(t.ops):
            ns += o.ns
            if ns > 1 << 53:
                self.doc.bad(["ops", i, "ns"], "times up to op %d add up to over 2^53 ns" % i)

    def operands(self, t: Trace) -> None:
        last = [-1] * len(t.buffers)
        for i, o in enumerate(t.ops):
            for role in ROLES:
                for k, b in enumerate(getattr(o, role)):
                    x, at = t.buffers[b], ["ops", i, role, k]
                    if last[b] == i:
                        self.doc.bad(at, "op %d names buffer %d twice" % (i, b))
                    if x.dies is not None and x.dies <= i:
                        self.doc.bad(at, "op %d uses buffer %d, which the program frees before op %d" % (i, b, x.dies))
                    if x.born > i:
                        self.doc.bad(at, "op %d uses buffer %d, which is only born at op %d: ops depend on each other in a cycle, or are out of order"
                                     % (i, b, x.born))
                    if x.born >= 0 and last[b] < 0:
                        if role != "writes":
                            self.doc.bad(at, "op %d needs what is in buffer %d, but no op before it wrote the buffer" % (i, b))
                        if x.born != i:
                            self.doc.bad(["buffers", b, "born"], "buffer %d is born at op %d, but first written by op %d" % (b, x.born, i))
                    last[b] = i
