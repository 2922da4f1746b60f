"""PyTorch's profiler (Kineto's Chrome trace, with profile_memory=True) as a trace, and back.

    with torch.profiler.profile(profile_memory=True) as p: step()
    p.export_chrome_trace("step.json")
    trace = from_kineto("step.json")

Kernels and copies are the ops where there are any, by the time of their launch; else the outermost operators of the processor. Memory is that of the
`[memory]` events of one device (the GPU's where there are kernels). See events.py for what such a trace can and cannot tell.
"""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Tuple, Union

from ..places import Document
from ..trace import Path, Trace, write_text
from .events import Events

DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CPU, CUDA = 0, 1


def from_kineto(source: Union[Path, Dict[str, Any]]) -> Trace:
    doc = Document(json.dumps(source), "trace events") if isinstance(source, dict) else Document.load(source)
    root = doc.root
    at: List[Any] = ["traceEvents"]
    if not isinstance(root, dict):
        doc.bad([], "a trace of the profiler's is a JSON object")
    rows = doc.kind(root, [], "traceEvents", list, "an array", need=True)
    work: List[Tuple[int, int, int, str]] = []   # launch ns, order, ns, name
    calls: List[Tuple[int, int, int, str, Any]] = []
    launches: Dict[Any, int] = {}
    memory: List[Tuple[int, int, Any, int, int]] = []
    for i, e in enumerate(rows):
        if not isinstance(e, dict):
            doc.bad([*at, i], "an event is an object")
        kind, args = e.get("cat"), doc.kind(e, [*at, i], "args", dict, "an object") or {}
        if isinstance(args.get("correlation"), (list, dict)) or isinstance(args.get("Addr"), (list, dict)):
            doc.bad([*at, i, "args", "correlation" if isinstance(args.get("correlation"), (list, dict)) else "Addr"], "must be a number or a string")
        if e.get("ph") == "X" and kind in (*DEVICE_WORK, "cpu_op", "cuda_runtime", "cuda_driver"):
            begin, ns = _ns(doc, [*at, i], e, "ts"), _ns(doc, [*at, i], e, "dur")
            if ns < 0:
                doc.bad([*at, i, "dur"], "must not be negative")
            name = str(e.get("name", "?"))
            if kind in DEVICE_WORK:
                work.append((begin, i, ns, name))
            elif kind == "cpu_op":
                calls.append((begin, -ns, i, name, (e.get("pid"), e.get("tid"))))
            elif "correlation" in args:
                launches[args["correlation"]] = begin
        elif e.get("name") == "[memory]":
            here = [*at, i, "args"]
            size = doc.integer(args, here, "Bytes", -(1 << 50), 1 << 50, need=True)
            where = doc.integer(args, here, "Device Type", 0, 1 << 20, default=CPU)
            assert size is not None and where is not None
            memory.append((_ns(doc, [*at, i], e, "ts"), i, args.get("Addr", i), size, where))
    if not work and not calls:
        doc.bad(at, "has neither kernels nor operators")
    device = CUDA if work and any(m[4] == CUDA for m in memory) else memory[0][4] if work and memory else CPU
    meta = {"model": str(root.get("model") or "profiler"), "source": "remat.convert.kineto", "cost_model": "measured by the profiler"}
    ev = Events(**meta)
    stream: List[Tuple[int, int, int, Any]] = [(t, i, 1, ("m", address, size)) for t, i, address, size, where in memory if where == device]
    if work:
        for begin, i, ns, name in work:
            launch = launches.get((rows[i].get("args") or {}).get("correlation"), begin)
            stream.append((launch, i, 1, ("op", name, ns)))
    else:
        for begin, ns, i, name in _outermost(calls):
            stream += [(begin, i, 0, ("begin", name)), (begin + ns, i, 2, ("end",))]
        stream.sort(key=lambda x: (x[0], {"end": 0, "begin": 1, "m": 2}[x[3][0]] if x[3][0] != "end" else 0, x[1]))
        return _walk(ev, stream)
    stream.sort(key=lambda x: (x[0], x[1]))
    return _walk(ev, stream)


def _walk(ev: Events, stream: List[Tuple[int, int, int, Any]]) -> Trace:
    for now, _, _, what in stream:
        if what[0] == "op":
            ev.op(what[1], what[2])
        elif what[0] == "begin":
            ev.begin(what[1], now)
        elif what[0] == "end":
            ev.end(now)
        elif what[2] >= 0:
            ev.alloc(what[1], what[2])
        else:
            ev.free(what[1], -what[2], now)
    return ev.trace()


def _outermost(calls: List[Tuple[int, int, int, str, Any]]) -> List[Tuple[int, int, int, str]]:
    """Operators that lie in no other one of any thread: memory is of all threads, so what overlaps is the earlier one's."""
    out: List[Tuple[int, int, int, str]] = []
    until: Optional[int] = None
    for begin, minus, i, name, _ in sorted(calls, key=lambda c: (c[0], c[1], c[2])):
        if until is None or begin >= until:
            out.append((begin, -minus, i, name))
            until = begin - minus
    return out


def _ns(doc: Document, path: List[Any], e: Dict[str, Any], key: str) -> int:
    """Microseconds as the file has them, as whole nanoseconds."""
    v = e.get(key)
    if isinstance(v, bool) or not isinstance(v, (int, float)):
        doc.bad([*path, key], "must be a number of microseconds")
    if abs(v) >= (1 << 53) / (1000 if key == "dur" else 1):
        doc.bad([*path, key], "is more than a trace can hold")
    return round(v * 1000)


def to_kineto(trace: Trace, path: Optional[Path] = None) -> Dict[str, Any]:
    """A trace as the profiler's events: a kernel an op, one after another, and each buffer's allocation and free."""
    rows: List[Dict[str, Any]] = []
    place, address = {}, 0x700000000000
    dying: Dict[int, List[int]] = {}
    written = {b for o in trace.ops for b in o.writes}
    for b, x in enumerate(trace.buffers):
        place[b] = address
        address += (max(x.bytes, 1) + 511) // 512 * 512
        if x.dies is not None and (x.born < 0 or b in written):
            dying.setdefault(x.dies, []).append(b)
    now = total = 0

    def memory(b: int, sign: int) -> None:
        nonlocal total
        total += sign * trace.buffers[b].bytes
        rows.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 0, "tid": 0, "ts": now / 1000,
                     "args": {"Device Type": CUDA, "Device Id": 0, "Addr": place[b], "Bytes": sign * trace.buffers[b].bytes, "Total Allocated": total}})
    for b, x in enumerate(trace.buffers):
        if x.born < 0:
            memory(b, 1)
    for i, o in enumerate(trace.ops):
        for b in dying.get(i, ()):
            if trace.buffers[b].born < i:
                memory(b, -1)
        for b in o.writes:
            if trace.buffers[b].born == i:
                memory(b, 1)
        rows.append({"ph": "X", "cat": "kernel", "name": o.name, "pid": 0, "tid": 7, "ts": now / 1000, "dur": o.ns / 1000, "args": {"device": 0, "stream": 7}})
        now += o.ns
    for b in dying.get(len(trace.ops), ()):
        memory(b, -1)
    out = {"schemaVersion": 1, "model": str(trace.meta.get("model", "")), "displayTimeUnit": "ms", "traceEvents": rows}
    if path is not None:
        write_text(path, json.dumps(out) + "\n")
    return out
