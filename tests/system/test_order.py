#!/usr/bin/env python3
"""Orders that a program promises and remat must not lose (tests/programs/order.c): each case natively, and under remat on a
device that does no more than it must. The limit makes remat evict in `first_touch` and `two_threads`, and give memory back in
`legacy_user`."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

CASES = [("foreign_free", "1G"), ("foreign_fresh", "1G"), ("first_touch", "256K"), ("legacy_free", "1G"), ("blocking_acts", "1G"),
         ("legacy_user", "448K"), ("two_threads", "640K"), ("thread_capture", "64M")]


def main():
    program = os.path.join(harness.B, "programs", "order")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    env = {"SIMGPU_GRANULARITY": "65536"}
    for name, limit in harness.drawn(CASES, check=2):
        native = harness.run([program, name], env=env)
        c.ok(native.rc == 0 and native.out.count("round"), name + " natively", native.err[-300:])
        for chaos in ["adversary"] + ["adversary:%d" % s for s in range(1, 9)]:
            alone = harness.run([program, name], env=dict(env, SIMGPU_CHAOS=chaos))
            c.ok(alone.out == native.out, "%s without remat, %s" % (name, chaos), alone.err[-300:])
            for policy in ("swap", "auto"):
                r = harness.run([program, name], remat=["--limit", limit, "--policy", policy], env=dict(env, SIMGPU_CHAOS=chaos))
                what = "%s at %s, %s, %s" % (name, limit, policy, chaos)
                c.ok(r.rc == 0 and r.out == native.out, what, "exit %d %s" % (r.rc, r.err[-300:]))
                if name in ("first_touch", "two_threads"):
                    c.ok(r.stats.get("swaps_in", 0) > 0, what + ": it does evict", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
