"""PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot, a pickle, or the same as JSON) as a trace, and back.

    torch.cuda.memory._record_memory_history(); step(); torch.cuda.memory._dump_snapshot("step.pickle")
    trace = from_snapshot("step.pickle")

A snapshot has allocations and frees with the stack that made them, and no kernels: the ops are the allocations, named after the innermost line of the
stack, and the time between two of them is the first one's. See events.py for what such a trace can and cannot tell. Pickles of strangers are read
without running anything of theirs: plain containers and numbers only.
"""
from __future__ import annotations

import io
import json
import os
import pickle
from typing import Any, Dict, List, NoReturn, Optional, Union

from ..places import BadFile, Document, read_bytes
from ..trace import Path, Trace, write_text
from .events import Events


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError("names %s.%s, and a snapshot names nothing" % (module, name))


def load(path: Path) -> Document:
    """The snapshot as a document; a pickle gets its text in JSON, so that faults have a place in it."""
    name = os.fspath(path)
    data = read_bytes(path)
    if data[:1] in (b"{", b"[", b" ", b"\n", b""):
        return Document(data, name)
    try:
        root = _Plain(io.BytesIO(data)).load()
        text = json.dumps(root)
    except Exception as e:
        raise BadFile(name, 1, 1, "is no snapshot: %s" % e) from None
    return Document(text, name)


def from_snapshot(source: Union[Path, Dict[str, Any]], device: int = 0) -> Trace:
    doc = Document(json.dumps(source), "snapshot") if isinstance(source, dict) else load(source)
    root = doc.root
    if not isinstance(root, dict):
        doc.bad([], "a snapshot is an object with device_traces")
    devices = doc.kind(root, [], "device_traces", list, "an array", need=True)
    if not 0 <= device < len(devices) or not isinstance(devices[device], list):
        doc.bad(["device_traces"], "has no events of device %d" % device)
    ev = Events(model="snapshot", source="remat.convert.snapshot", cost_model="time between allocations")
    made = set()
    first: Optional[int] = None
    last_ns = 0
    rows: List[Any] = []
    for i, e in enumerate(devices[device]):
        at = ["device_traces", device, i]
        if not isinstance(e, dict):
            doc.bad(at, "an event is an object")
        action = doc.kind(e, at, "action", str, "a string", need=True)
        doc.kind(e, at, "frames", list, "an array")
        if action not in ("alloc", "free_requested", "free", "snapshot"):
            continue                        # free_completed, segments: the memory left the tensor before
        now = doc.integer(e, at, "time_ns", 0, 1 << 62)
        us = doc.integer(e, at, "time_us", 0, 1 << 62, need=now is None and action != "snapshot")
        stamp = now if now is not None else 1000 * us if us is not None else last_ns + (first or 0)
        if action != "snapshot":
            e = {**e, "addr": doc.integer(e, at, "addr", 0, 1 << 63, need=True), "size": doc.integer(e, at, "size", 0, 1 << 50, need=True)}
        first = stamp if first is None else first
        last_ns = stamp - first
        rows.append((action, e, last_ns))
        if action == "alloc":
            made.add((e["addr"]))
    freed = {e["addr"] for action, e, _ in rows if action.startswith("free")}
    for k, s in enumerate(doc.kind(root, [], "segments", list, "an array") or []):
        if not isinstance(s, dict):
            doc.bad(["segments", k], "a segment is an object")
        for j, block in enumerate(doc.kind(s, ["segments", k], "blocks", list, "an array") or []) if s.get("device", 0) == device else []:
            here = ["segments", k, "blocks", j]
            if not isinstance(block, dict):
                doc.bad(here, "a block is an object")
            if block.get("state") == "active_allocated":
                address, size = doc.integer(block, here, "address", 0, 1 << 63), doc.integer(block, here, "size", 0, 1 << 50, need=True)
                if address is not None and size is not None and address not in made and address not in freed:
                    ev.existing(address, size)
    before = 0
    for action, e, now in rows:
        if now > before:                    # what happened since the last event is its time
            ev.op(_name(e), now - before)
            before = now
        if action == "alloc":
            ev.alloc(e["addr"], e["size"])
        elif action != "snapshot":
            ev.free(e["addr"], e["size"])
    return ev.trace()


def _name(event: Dict[str, Any]) -> str:
    for f in event.get("frames") or []:
        if isinstance(f, dict) and f.get("name"):
            return str(f["name"])
    return "host"


def to_snapshot(trace: Trace, path: Optional[Path] = None) -> Dict[str, Any]:
    """A trace as a snapshot of the whole iteration (JSON; with time_ns beside time_us, which viewers pass over)."""
    events: List[Dict[str, Any]] = []
    place, address = {}, 0x700000000000
    for b, x in enumerate(trace.buffers):
        place[b] = address
        address += (max(x.bytes, 1) + 511) // 512 * 512
    dying: Dict[int, List[int]] = {}
    for b, x in enumerate(trace.buffers):
        if x.dies is not None:
            dying.setdefault(x.dies, []).append(b)
    now = 0
    alive: Dict[int, bool] = {}

    def event(action: str, b: Optional[int], name: str) -> None:
        row: Dict[str, Any] = {"action": action, "stream": 0, "time_us": now // 1000, "time_ns": now, "frames": [{"filename": "op", "line": 0, "name": name}]}
        if b is not None:
            row.update(addr=place[b], size=trace.buffers[b].bytes)
            alive[b] = action == "alloc"
        events.append(row)
    event("snapshot", None, "begin")
    for b, x in enumerate(trace.buffers):
        if x.born < 0:
            event("alloc", b, "before")
    for i, o in enumerate([*trace.ops, None]):
        for b in dying.get(i, ()):
            if alive.get(b):
                event("free_requested", b, o.name if o else "end")
                event("free_completed", b, o.name if o else "end")
        if o:
            for b in o.writes:
                if trace.buffers[b].born == i:
                    event("alloc", b, o.name)
            now += o.ns
    event("snapshot", None, "end")
    segments = [{"device": 0, "address": place[b], "total_size": trace.buffers[b].bytes, "allocated_size": trace.buffers[b].bytes,
                 "active_size": trace.buffers[b].bytes, "requested_size": trace.buffers[b].bytes, "stream": 0, "segment_type": "large", "frames": [],
                 "blocks": [{"address": place[b], "size": trace.buffers[b].bytes, "requested_size": trace.buffers[b].bytes, "state": "active_allocated",
                             "frames": []}]} for b, here in alive.items() if here and trace.buffers[b].bytes]
    out = {"device_traces": [events], "segments": segments}
    if path is not None:
        write_text(path, json.dumps(out) + "\n")
    return out
