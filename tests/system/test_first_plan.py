#!/usr/bin/env python3
"""A plan that is made in a moment is followed while the planner takes its usual seconds for a good one, which takes the first one's place only
where it saves enough; and where no plan is found in a moment, the good one is waited for. The planner is a script: it notes what it is asked."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# For how much of the limit, in %, the first question is answered, which is made in a moment, and all that follow: less memory, a dearer plan. 0: exit
# status 3, no plan. And how many plans are followed, one after the other.
CASES = [(100, 80, 1), (80, 100, 2), (0, 100, 1)]
PLANNER = """#!/bin/bash
# plan TRACE --limit N --solver S --time-limit T -o PLAN --[no-]offload
echo "$@" >> %(asked)s
part=%(rest)d
[ "$8" = 0.4 ] && part=%(first)d
[ $part = 0 ] && { echo "remat: plan: none" >&2; exit 3; }
[ "$8" = 0.4 ] || sleep 0.3
exec %(remat)s plan "$2" --limit $(($4 * part / 100)) --solver mincut --time-limit 0.4 --no-offload "${@:9:2}"
"""


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    cmd = ["mlp", "--batch", str(harness.EIGHTH["mlp"]), "--iters", "120", "--print-loss", "--checksum"]
    native = harness.run(cmd, env=harness.EIGHTH_DEVICE)
    for first, rest, plans in CASES:
        with tempfile.TemporaryDirectory() as folder:
            planner, asked = os.path.join(folder, "planner"), os.path.join(folder, "asked")
            with open(planner, "w") as f:
                f.write(PLANNER % {"asked": asked, "first": first, "rest": rest, "remat": harness.OWN_PLANNER})
            os.chmod(planner, 0o700)
            r = harness.run(cmd, remat=["--policy", "auto", "--limit", str(native.peak * 6 // 10)], env=dict(harness.EIGHTH_DEVICE, REMAT_LOG="debug"), planner=planner)
            with open(asked) as f:
                seconds = [float(line.split()[7]) for line in f]
        name = "%d %%, then %d %%" % (first, rest)
        expected = [float(x) for x in re.findall(r"plan installed: \d+ steps, ([0-9.]+)% more", r.err)]
        c.ok(native.rc == 0 and r.rc == 0 and r.out == native.out, name + ": output", "%s %s" % (r.rc, r.err[-500:]))
        c.ok(seconds[0] == 0.4 and len(seconds) > 1 and min(seconds[1:]) >= 1, name + ": seconds", str(seconds))
        c.ok(len(expected) == plans and sorted(expected, reverse=True) == expected, name + ": plans followed", "%s\n%s" % (expected, r.err[-1500:]))
        c.ok(r.stats.get("iterations_enforced", 0) > 20 and r.stats.get("replays", 0) > 20, name + ": enforced", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
