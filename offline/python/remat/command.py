"""The command `remat`, called from Python. A solver is a name ("mincut"), "exec:CMD", or a Python function:

    def solve(trace, limit_bytes, *, seconds, seed, offload):   # seconds 0: no limit
        return plan          # a Plan, or its steps; None: none found

Copies to the host are part of plans only with offload=True. In `plan` and `sweep` a function is called in this process, and what it returns is judged by remat.simulate. `run` calls it in a process of its own,
so there it must be one that can be imported: of a file or a module, by name.
"""
from __future__ import annotations

import inspect
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Union

from .judge import Result, simulate
from .plan import Plan
from .trace import Path, Trace

Solve = Callable[..., Union[Plan, Sequence[Any], None]]
Solver = Union[str, Solve]
Limit = Union[str, int]


class NoCommand(RuntimeError):
    """There is no command `remat`."""


class Failed(RuntimeError):
    """The command, or a solver, failed; the text is what it said."""


class Infeasible(Exception):
    """No plan within the limit was found. The text says why."""


@dataclass
class SweepRow:
    solver: str
    limit_bytes: int
    feasible: bool
    peak_bytes: Optional[int]
    overhead: Optional[float]
    replays: Optional[int]
    offloads: Optional[int]
    seconds: float


def find_command() -> str:
    """The command's path: $REMAT, the wheel's or the tree's own, or the one on the PATH. $B names the build folder of a tree, and means nothing to a wheel."""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    built = os.path.join(top, os.environ.get("B") or "build", "remat") if os.path.isfile(os.path.join(top, "offline", "package", "package.mk")) else None
    for path in (os.environ.get("REMAT"), built, os.path.join(os.path.dirname(sys.executable), "remat"), shutil.which("remat")):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.normpath(path)
    raise NoCommand("there is no command `remat`: install it, put it on the PATH, or name it in $REMAT")


def _call(args: Sequence[str], good: Iterable[int] = (0,)) -> "subprocess.CompletedProcess[str]":
    r = subprocess.run([find_command(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode == 3 and 3 not in good:
        raise Infeasible(r.stderr.strip())
    if r.returncode not in good:
        raise Failed(r.stderr.strip() or "remat %s: exit %d" % (args[0], r.returncode))
    return r


class _Files:
    """A trace as a file for the command, and room for its answer."""

    def __init__(self, trace: Union[Trace, Path]) -> None:
        self.tmp = tempfile.TemporaryDirectory(prefix="remat-")
        self.trace, self.plan = os.path.join(self.tmp.name, "trace.json"), os.path.join(self.tmp.name, "plan.json")
        if isinstance(trace, Trace):
            trace.save(self.trace)
        else:
            self.trace = os.fspath(trace)

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *_: Any) -> None:
        self.tmp.cleanup()


def _options(seconds: Optional[float], seed: int, offload: bool) -> List[str]:
    return [*(["--time-limit", "%g" % seconds] if seconds else []), "--seed", str(seed), "--offload" if offload else "--no-offload"]


def as_plan(found: Union[Plan, Sequence[Any]]) -> Plan:
    """What a solver returned: a Plan, or its steps, as pairs or as {"op": 0}."""
    if isinstance(found, Plan):
        return found
    try:
        return Plan([next(iter(s.items())) if isinstance(s, dict) else (s[0], s[1]) for s in found])
    except (TypeError, IndexError, KeyError, StopIteration):
        raise TypeError("a solver returns a Plan, its steps as (\"op\", 0) or {\"op\": 0}, or None, and no %.60r" % (found,)) from None


def ask(solve: Solve, trace: Trace, limit_bytes: int, seconds: float = 0, seed: int = 1, offload: bool = False) -> Plan:
    """Call a Python solver, and judge what it returns."""
    found = solve(trace, limit_bytes, seconds=seconds, seed=seed, offload=offload)
    if found is None:
        raise Infeasible("solver %s found no plan within %d bytes" % (getattr(solve, "__name__", "?"), limit_bytes))
    p = as_plan(found)
    if not offload and p.count("offload"):
        raise Failed("solver %s: copies to the host were not allowed" % getattr(solve, "__name__", "?"))
    r = simulate(trace, p, limit_bytes)
    if not r.ok:
        raise Failed("solver %s: %s" % (getattr(solve, "__name__", "?"), r.error))
    p.limit_bytes, p.peak_bytes, p.baseline_ns, p.planned_ns = limit_bytes, r.peak_bytes, trace.total_ns, r.ns
    p.solver, p.trace = p.solver or getattr(solve, "__name__", "python"), trace.sha256
    return p


def _trace(trace: Union[Trace, Path]) -> Trace:
    return trace if isinstance(trace, Trace) else Trace.load(trace)


def plan(trace: Union[Trace, Path], limit: Limit, solver: Solver = "auto", *, seconds: Optional[float] = None, seed: int = 1,
         offload: bool = False, extra: Sequence[str] = ()) -> Plan:
    """A plan within the limit, judged. Infeasible: there is none, or none was found."""
    if callable(solver):
        t = _trace(trace)
        return ask(solver, t, t.limit(limit), seconds or 0, seed, offload)
    with _Files(trace) as f:
        _call(["plan", f.trace, "--limit", str(limit), "--solver", solver, "-o", f.plan, *_options(seconds, seed, offload), *extra])
        return Plan.load(f.plan)


def sweep(trace: Union[Trace, Path], limits: Sequence[Limit], solvers: Sequence[Solver], *, seconds: float = 3, seed: int = 1,
          offload: bool = False) -> List[SweepRow]:
    """A row for each limit and solver. pandas.DataFrame(rows) makes a table of them."""
    t, out = _trace(trace), []
    names = [s for s in solvers if isinstance(s, str)]
    known: Dict[Any, Dict[str, Any]] = {}
    sizes = {limit: t.limit(limit) for limit in limits}
    if names:
        with _Files(trace) as f:
            r = _call(["sweep", f.trace, "--limits", ",".join(str(sizes[x]) for x in limits), "--solvers", ",".join(names), "--json",
                       *_options(seconds, seed, offload)])
        known = {(row["solver"], row["limit_bytes"]): row for row in json.loads(r.stdout)["rows"]}
    for limit in limits:
        for solver in solvers:
            if isinstance(solver, str):
                row = known[solver, sizes[limit]]
                out.append(SweepRow(solver, sizes[limit], row["feasible"], row["peak_bytes"], row["overhead"], row["replays"], row["offloads"],
                                    row["solve_seconds"]))
                continue
            name, start = getattr(solver, "__name__", "python"), time.monotonic()
            try:
                p = ask(solver, t, sizes[limit], seconds, seed, offload)
            except Infeasible:
                out.append(SweepRow(name, sizes[limit], False, None, None, None, None, time.monotonic() - start))
                continue
            out.append(SweepRow(name, sizes[limit], True, p.peak_bytes, p.planned_ns / p.baseline_ns - 1 if p.baseline_ns else 0.0, p.count("replay"),
                                p.count("offload"), time.monotonic() - start))
    return out


def check(trace: Union[Trace, Path], plan: Union[Plan, Path], limit: Optional[Limit] = None) -> Result:
    """What `remat check` says of a plan; remat.simulate says the same without the command."""
    with _Files(trace) as f:
        if isinstance(plan, Plan):
            plan.save(f.plan)
            path = f.plan
        else:
            path = os.fspath(plan)
        said = json.loads(_call(["check", f.trace, path, *(["--limit", str(limit)] if limit is not None else [])], good=(0, 1)).stdout)
    return Result(said["ok"], said["peak_bytes"], said.get("ns", 0), said.get("overhead", 0.0), said.get("replays", 0), said.get("offloads", 0),
                  said.get("error", ""))


def solver_words(solver: Solver) -> str:
    """What --solver takes for it: a function becomes exec:PYTHON -m remat.solver FILE:NAME."""
    if isinstance(solver, str):
        return solver
    name = getattr(solver, "__qualname__", "")
    if not name or "<" in name:
        raise ValueError("a solver of a process of its own is a function with a name, at the top of a file or module")
    module = getattr(solver, "__module__", "__main__")
    source = inspect.getsourcefile(solver) if module == "__main__" else None
    words = [sys.executable, "-m", "remat.solver", "%s:%s" % (os.path.abspath(source) if source else module, name)]
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join(p for p in (here, os.environ.get("PYTHONPATH", ""), os.path.abspath(sys.path[0])) if p)
    return "exec:PYTHONPATH=%s exec %s" % (shlex.quote(path), " ".join(shlex.quote(w) for w in words))


def run(command: Sequence[str], limit: Optional[Limit] = None, solver: Optional[Solver] = None, *, stats: Optional[Path] = None,
        trace_out: Optional[Path] = None, plan: Optional[Path] = None, extra: Sequence[str] = (), **how: Any) -> "subprocess.CompletedProcess[Any]":
    """`remat run`: the command within the limit. `how` goes to subprocess.run."""
    args = [find_command(), "run"]
    for option, value in (("--limit", limit), ("--stats", stats), ("--trace-out", trace_out), ("--plan", plan)):
        if value is not None:
            args += [option, os.fspath(value) if not isinstance(value, int) else str(value)]
    if solver is not None:
        args += ["--solver", solver_words(solver)]
    return subprocess.run([*args, *extra, "--", *command], **how)
