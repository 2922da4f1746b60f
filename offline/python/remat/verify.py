"""The second judge as a command:

    python3 -m remat.verify TRACE PLAN [--limit SIZE|PCT]

prints one JSON object, as `remat check` does. Exit 0: the plan is good; 1: it breaks a rule or its limit; 2: a file cannot be read.
"""
from __future__ import annotations

import json
import sys
from typing import List

from .judge import Result, simulate
from .places import BadFile
from .plan import Plan
from .trace import Trace

__all__ = ["Result", "simulate"]


def main(argv: List[str]) -> int:
    limit = None
    if "--limit" in argv:
        at = argv.index("--limit")
        limit = argv[at + 1] if at + 1 < len(argv) else ""
        argv = argv[:at] + argv[at + 2:]
    if len(argv) != 2 or limit == "":
        print(__doc__, file=sys.stderr)
        return 2
    try:
        r = simulate(Trace.load(argv[0]), Plan.load(argv[1]), limit)
    except (BadFile, ValueError) as e:
        print("remat.verify: %s" % e, file=sys.stderr)
        return 2
    print(json.dumps(r.to_json()))
    return 0 if r.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
