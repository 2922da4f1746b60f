"""plan-1: a schedule. docs/formats.md says what each step does."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Tuple, Union

from .places import Document, read_bytes, whole
from .trace import Path, write_text

STEPS = ("op", "replay", "drop", "offload", "release", "fetch")
Step = Tuple[str, int]


@dataclass
class Plan:
    """A schedule: steps are pairs (what, op or buffer), as ("replay", 12) or ("drop", 7)."""

    steps: List[Step] = field(default_factory=list)
    keep: List[int] = field(default_factory=list)  # buffers that stay when the program frees them
    limit_bytes: int = 0
    solver: str = ""
    trace: str = ""  # sha256 of the trace
    peak_bytes: int = 0
    baseline_ns: int = 0
    planned_ns: int = 0

    def count(self, what: str) -> int:
        return sum(s == what for s, _ in self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def to_json(self) -> Dict[str, Any]:
        return {"format": "plan-1", "trace": self.trace, "solver": self.solver, "limit_bytes": self.limit_bytes, "peak_bytes": self.peak_bytes,
                "baseline_ns": self.baseline_ns, "planned_ns": self.planned_ns, "keep": sorted(set(self.keep)),
                "steps": [{what: i} for what, i in self.steps]}

    def dumps(self) -> str:
        return json.dumps(self.to_json()) + "\n"

    def save(self, path: Path) -> None:
        write_text(path, self.dumps())

    @classmethod
    def load(cls, path: Path) -> "Plan":
        name = os.fspath(path)
        return cls.parse(read_bytes(path), "standard input" if name == "-" else name)

    @classmethod
    def parse(cls, text: Union[bytes, str], name: str = "text") -> "Plan":
        doc = Document(text, name)
        root = doc.object("a plan")
        if isinstance(root.get("meta"), dict) and isinstance(root.get("ops"), list):
            doc.bad([], "is a trace, where a plan (remat plan -o) is wanted")
        if doc.kind(root, [], "format", str, "a string", need=True) != "plan-1":
            doc.bad(["format"], 'is "%.40s"; this program reads "plan-1"' % root["format"])
        steps = doc.kind(root, [], "steps", list, "an array", need=True)
        keep = doc.kind(root, [], "keep", list, "an array") or []
        p = cls(trace=doc.kind(root, [], "trace", str, "a string") or "", solver=doc.kind(root, [], "solver", str, "a string") or "")
        for key in ("limit_bytes", "peak_bytes", "baseline_ns", "planned_ns"):
            setattr(p, key, doc.integer(root, [], key, 0, 2 ** 63 - 1, default=0))
        for i, b in enumerate(keep):
            n = whole(b)
            if n is None or not 0 <= n < 2 ** 31:
                doc.bad(["keep", i], "must be a buffer's index, a whole number from 0 up")
            p.keep.append(n)
        for i, s in enumerate(steps):
            if not isinstance(s, dict) or len(s) != 1:
                doc.bad(["steps", i], 'a step is an object with one key, such as {"op": 0}')
            (what, v), = s.items()
            if what not in STEPS:
                doc.bad(["steps", i], 'unknown step "%.40s": known are %s' % (what, ", ".join(STEPS)))
            n = whole(v)
            if n is None or not 0 <= n < 2 ** 31:
                doc.bad(["steps", i, what], "must be %s's index, a whole number from 0 up" % ("an op" if what in STEPS[:2] else "a buffer"))
            p.steps.append((what, n))
        return p
