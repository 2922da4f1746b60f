#!/usr/bin/env python3
"""What no argument of a launch shows (tests/programs/unshown.c) changes between the launch and a replay of it, and did not while that was learnt
and rehearsed: wrong results once, each of them; or, of shared memory, no plan, and a stop."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "unshown")
DEVICE = {"SIMGPU_GRANULARITY": "8192", "SIMGPU_BW": "5e9", "SIMGPU_HOST_BW": "125e6"}
# case, at least so many replays
CASES = (("copied", 0), ("filled", 0), ("rows", 0), ("moved", 0), ("tensor", 0), ("buffer", 0), ("shared", 100), ("lowered", 100),
         ("kernel", 100), ("own", 0), ("laid", 0), ("host", 0), ("given", 0), ("mapped", 0), ("mapped_laid", 0), ("mapped_first", 0),
         ("graph", 0), ("graph_copy", 0), ("graph_late", 0), ("through_pinned", 0), ("through_managed", 0),
         ("opened", 0), ("opened_twice", 0), ("opened_pool", 0), ("opened_laid", 0), ("external", 0), ("host_pool", 0), ("host_pool_laid", 0),
         ("managed_pool", 0), ("through_host_pool", 0), ("through_managed_pool", 0), ("through_opened", 0), ("through_opened_pool", 0),
         ("mapped_shared", 0), ("through_named", 0), ("through_both", 0), ("through_peer", 0), ("managed", 0), ("registered", 0), ("pageable", 0), ("function", 0), ("value", 0), ("values", 0)) + tuple(
        ("signal_" + x, 0) for x in "own mapped opened opened_pool external host host_pool managed_pool managed registered".split())

# the device's own 2 MiB, which do not grow with the tensors, are in their native peak
LARGE = ("mapped", "signal_mapped", "mapped_laid", "mapped_first", "mapped_shared", "through_opened", "through_opened_pool")


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    devices = {"through_peer": dict(DEVICE, SIMGPU_DEVICES="2", SIMGPU_PEERS="1"), "pageable": dict(DEVICE, SIMGPU_HMM="1")}
    for case, replays in [x for x in harness.drawn(CASES, check=3) if not sys.argv[1:] or x[0] in sys.argv[1:]]:
        percent = 75 if case in LARGE else 60
        differs, stats = harness.plan_against_native([PROGRAM, case], percent, devices.get(case, DEVICE))
        c.ok(not differs, case, differs)
        c.ok(stats.get("iterations_enforced", 0) >= 8 and stats.get("replays", 0) >= replays, case + ": enforced", str(stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
