#!/usr/bin/env python3
"""A plan that is made in a moment is followed while the planner takes its usual seconds for a good one, which takes the first one's place only
where it saves enough; and where no plan is found in a moment, the good one is waited for. The planner is a script: it notes what it is asked."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# Who answers: the first question, made in a moment, and all that follow. "fail": exit status 3, no plan. dtr takes about twice what mincut adds.
CASES = [("mincut", "dtr", 1), ("dtr", "mincut", 2), ("fail", "mincut", 1)]  # and how many plans are followed, one after the other
PLANNER = """#!/bin/bash
# remat plan TRACE --limit N --solver S --time-limit T -o PLAN --[no-]offload
echo "$@" >> %(asked)s
who=%(rest)s
[ "$8" = 0.4 ] && who=%(first)s
[ $who = fail ] && { echo "remat: plan: none" >&2; exit 3; }
[ "$8" = 0.4 ] || sleep 0.3
exec %(remat)s "${@:1:5}" $who --no-offload "${@:7:4}"
"""


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    cmd = [os.path.join(harness.B, "workloads", "mlp"), "--iters", "400", "--print-loss", "--checksum", "--batch", "256"]
    native = harness.run(cmd, timeout=300)
    for first, rest, plans in CASES:
        with tempfile.TemporaryDirectory() as folder:
            planner, asked = os.path.join(folder, "planner"), os.path.join(folder, "asked")
            with open(planner, "w") as f:
                f.write(PLANNER % {"asked": asked, "first": first, "rest": rest, "remat": harness.OWN_PLANNER})
            os.chmod(planner, 0o700)
            r = harness.run(cmd, remat=["--limit", str(native.peak * 6 // 10)], env={"REMAT_LOG": "debug", "REMAT_SOLVER": "best"}, timeout=300, planner=planner)
            with open(asked) as f:
                seconds = [float(line.split()[7]) for line in f]
        name = "%s, then %s" % (first, rest)
        expected = [float(x) for x in re.findall(r"plan installed: \d+ steps, ([0-9.]+)% more", r.err)]
        c.ok(native.rc == 0 and r.rc == 0 and r.out == native.out, name + ": output", "%s %s" % (r.rc, r.err[-500:]))
        c.ok(seconds[0] == 0.4 and len(seconds) > 1 and min(seconds[1:]) >= 1, name + ": seconds", str(seconds))
        c.ok(len(expected) == plans and sorted(expected, reverse=True) == expected, name + ": plans followed", "%s\n%s" % (expected, r.err[-1500:]))
        c.ok(r.stats.get("iterations_enforced", 0) > 20 and r.stats.get("replays", 0) > 20, name + ": enforced", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
