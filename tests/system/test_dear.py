#!/usr/bin/env python3
"""Limits at which recomputing alone is possible and dear, or leaves no map of chunks without a gap (tests/programs/alike.c, learning.c): the
plan with copies to the host is taken where it is the cheaper one, and but for copies far dearer than a gap there is no memory call in a steady
iteration."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

DEVICE = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_BW": "20e9", "REMAT_LOG": "debug"}
PADDING, ALTERED = ("alike", "padding"), ("learning", "altered")
ITERATIONS = 24  # of both
# To the host and back: 1.5 times what a kernel reads in that time, a 40th of it, a 200th
FAST, SLOW, SLOWEST = "30e9", "5e8", "1e8"
# program, limit, bandwidth of the host, device time in times of the native iteration at most, copies, gaps (None: as may be)
# (the first: recomputing alone adds 46 %, which is not yet weighed against copies)
CASES = [(PADDING, 10700000, FAST, 1.5, False, False), (PADDING, 10200000, FAST, 1.2, True, False), (PADDING, 9200000, FAST, 1.2, True, False),
         (PADDING, 8700000, FAST, 1.2, True, False), (PADDING, 10700000, SLOW, 3.2, False, False),
         # What is on the host at the end of an iteration comes back beside the next one's first ops. That they wait for it is in no plan's
         # price: 1.3 is expected, and 1.4, 2.1 or 2.5 comes, as the planner has the time to find one plan or another. By swapping it is more
         (PADDING, 10200000, SLOW, 2.6, None, None),
         # with copies it begins with all there is again: 2.75 and 3.0 where it goes on with what recomputing alone came down to
         (PADDING, 9000000, SLOW, 2.2, None, None), (ALTERED, 2600000, SLOWEST, 2.2, False, True)]


def cheapest(cmd, limit, device, most_ns):
    """When a copy begins hangs on the host too: what else the machine does only adds to an iteration. Of three runs, if need be."""
    for _ in range(3):
        r = harness.run(cmd, remat=["--limit", limit, "--policy", "plan"], env=device, timeout=600, planner=harness.OWN_PLANNER)
        if r.rc or 0 < r.stats.get("device_ns_per_iteration", 0) <= most_ns:
            break
    return r


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for (program, case), limit, host, price, copies, gaps in harness.drawn(CASES, test=2):
        device = dict(DEVICE, SIMGPU_HOST_BW=host)
        cmd = [os.path.join(harness.B, "programs", program), case]
        native = harness.run(cmd, env=dict(device, ALIKE_WORK_US="0"), timeout=300)
        once = native.device.get("device_ns", 0) / ITERATIONS
        r = cheapest(cmd, limit, device, price * once)
        s, name = r.stats, "%s in %d bytes, host at %s" % (case, limit, host)
        c.ok(native.rc == 0 and r.rc == 0 and r.out == native.out, name + ": output", "%s %s" % (r.rc, r.err[-500:]))
        c.ok(r.device and r.peak <= limit, name + ": peak", str(r.device.get("peak_physical_bytes")))
        c.ok(s.get("iterations_enforced", 0) >= 16, name + ": enforced", "%s\n%s" % (s, r.err[-800:]))
        c.ok(gaps in (None, s.get("driver_memory_calls_steady", 1) > 0), name + ": memory calls in a steady iteration", str(s))
        c.ok(0 < s.get("device_ns_per_iteration", 0) <= price * once, name + ": price", "%s ns of %s\n%s" % (s.get("device_ns_per_iteration"), once, r.err[-800:]))
        c.ok(copies in (None, s.get("swaps_steady", 0) > 0), name + ": copies", str(s))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
