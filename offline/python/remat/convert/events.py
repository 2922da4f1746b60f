"""A run as events in time (ops that begin and end, memory that is taken and given back) as a trace: what kineto and snapshot share.

Which op reads which memory is not known from events: an op is taken to write what is allocated in it and to read what is freed after it, and is
opaque, so that no plan replays it. Such a trace shows memory and time to the byte and the nanosecond; plans for it can copy to the host.
"""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ..trace import Buffer, Op, Trace


class Events:
    """Events in the order of time. An op in which memory is freed and then taken again becomes several, so that the peak is exact."""

    def __init__(self, **meta: Any) -> None:
        self.t = Trace(meta=meta)
        self.at: Dict[Any, int] = {}      # address: buffer
        self.pending: List[int] = []      # allocated, and no op yet to own it
        self.used: List[int] = []         # freed since the last op was closed: it read them
        self.name, self.phase, self.since = "", "fwd", 0

    def existing(self, address: Any, size: int, kind: str = "param") -> None:
        self.at[address] = len(self.t.buffers)
        self.t.buffers.append(Buffer(size, -1, None, kind))

    def alloc(self, address: Any, size: int) -> None:
        if address in self.at:
            self.free(address, size)
        self.at[address] = len(self.t.buffers)
        self.pending.append(len(self.t.buffers))
        self.t.buffers.append(Buffer(size, len(self.t.ops), None))

    def free(self, address: Any, size: int, now_ns: Optional[int] = None) -> None:
        b = self.at.pop(address, None)
        if b is None:                     # it was there before the events began
            b = len(self.t.buffers)
            self.t.buffers.append(Buffer(size, -1, None, "activation"))
        if self.pending:                  # taken before this is freed: both are there at once
            self._emit(self.name or "host", 0 if now_ns is None or not self.name else now_ns - self.since)
            if now_ns is not None:
                self.since = now_ns
        self.t.buffers[b].dies = len(self.t.ops)

    def begin(self, name: str, now_ns: int, phase: str = "fwd") -> None:
        if self.pending:
            self._emit("host", 0)
        self.name, self.since, self.phase = name, now_ns, phase

    def end(self, now_ns: int) -> None:
        self._emit(self.name, now_ns - self.since)
        self.name = ""

    def op(self, name: str, ns: int, phase: str = "fwd") -> None:
        """An op whose memory was taken before it: a launch."""
        self.phase = phase
        self._emit(name, ns)

    def _emit(self, name: str, ns: int) -> None:
        self.t.ops.append(Op(name, max(ns, 0), self.phase, writes=self.pending, opaque=True))
        self.pending = []

    def trace(self) -> Trace:
        if self.pending:
            self._emit("host", 0)
        t = self.t
        for b, x in enumerate(t.buffers):   # who was at work when it was freed is taken to have read it
            if x.dies and x.born < x.dies - 1 and b not in t.ops[x.dies - 1].writes:
                t.ops[x.dies - 1].reads.append(b)
        return t
