"""remat's traces and plans in Python: load, simulate, check, draw, convert, and a Python function as a solver.

    import remat
    trace = remat.load("trace.json.xz")
    plan = remat.plan(trace, "50%", solver="mincut")
    print(remat.simulate(trace, plan).overhead)
    remat.draw(trace, [plan], "memory.png")

Nothing but Python 3.8 is needed; numpy, pandas and networkx are used where a method says so, torch by remat.convert.fx. `plan`, `sweep`, `check`
and `run` call the command `remat`, which is looked for beside this package, in $REMAT and on the PATH. docs/formats.md describes the files.
"""
from .command import Infeasible, NoCommand, Failed, SweepRow, check, find_command, plan, run, solver_words, sweep
from .draw import draw
from .judge import Result, simulate
from .places import BadFile
from .plan import STEPS, Plan
from .trace import KINDS, PHASES, ROLES, Buffer, Op, Trace, load, parse_limit

__all__ = ["BadFile", "Buffer", "Failed", "Infeasible", "KINDS", "NoCommand", "Op", "PHASES", "Plan", "ROLES", "Result", "STEPS", "SweepRow", "Trace",
           "check", "draw", "find_command", "load", "parse_limit", "plan", "run", "simulate", "solver_words", "sweep"]
