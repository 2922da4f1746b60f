"""A Python function as a solver of the command's: `python3 -m remat.solver FILE.py:NAME`, or MODULE:NAME, is what exec: runs.

    remat plan trace.json --limit 50% --solver "exec:python3 -m remat.solver mine.py:solve" -o plan.json

The function is called as remat.command says, with the trace of standard input and the question of the environment (docs/formats.md); its plan is
printed. It prints what it has to say to standard error: standard output is the plan's, and print() is led to the other one.
"""
from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any, List

from .command import Infeasible, as_plan
from .places import BadFile
from .trace import Trace

NO_PLAN = 3


def find(words: str) -> Any:
    where, _, name = words.rpartition(":")
    if not where or not name:
        raise SystemExit("remat.solver: give FILE.py:NAME or MODULE:NAME")
    if where.endswith(".py"):
        spec = importlib.util.spec_from_file_location("remat_solver_file", where)
        if spec is None or spec.loader is None or not os.path.exists(where):
            raise SystemExit("remat.solver: %s: no such file" % where)
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, os.path.dirname(os.path.abspath(where)))
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(where)
    what: Any = module
    for part in name.split("."):
        what = getattr(what, part, None)
    if not callable(what):
        raise SystemExit("remat.solver: %s has no function %s" % (where, name))
    return what


def main(argv: List[str]) -> int:
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    out = os.dup(1)
    os.dup2(2, 1)
    solve, env = find(argv[0]), os.environ
    try:
        trace = Trace.load("-")
    except BadFile as e:
        print("remat.solver: %s" % e, file=sys.stderr)
        return 2
    try:
        found = solve(trace, int(env["REMAT_LIMIT_BYTES"]) if "REMAT_LIMIT_BYTES" in env else trace.peak_bytes,
                      seconds=float(env.get("REMAT_TIME_LIMIT_S", 0)), seed=int(env.get("REMAT_SEED", 1)), offload=env.get("REMAT_OFFLOAD") == "1")
    except Infeasible as e:  # it asked another solver
        print(e, file=sys.stderr)
        found = None
    if found is None:
        return NO_PLAN
    try:
        plan = as_plan(found)
    except TypeError as e:
        raise SystemExit("remat.solver: %s: %s" % (argv[0], e)) from None
    with os.fdopen(out, "w") as f:
        f.write(plan.dumps())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
