#!/usr/bin/env python3
"""What a launch does to an entry of its list may change nothing while it is learnt (tests/programs/lost.c): the entry is in use all the same,
and the trace names it."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "lost")
DEVICE = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_BW": "20e9", "SIMGPU_HOST_BW": "5e8"}
ENTRIES = 11


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    native = harness.run([PROGRAM], env=DEVICE)
    with tempfile.TemporaryDirectory(prefix="remat-test-") as tmp:
        out = os.path.join(tmp, "trace.json")
        r = harness.run([PROGRAM], remat=["--policy", "off", "--trace-out", out], env=DEVICE)
        c.ok(native.rc == 0 and r.rc == 0 and r.out == native.out, "recorded: as native", r.err[-300:])
        ops = [o for o in harness.load(out)["ops"] if o["name"] == "raise"]
        c.ok(len(ops) == 12, "the launches are recorded", str(len(ops)))
        lost = [o["id"] for o in ops if len(o.get("rmw", [])) + len(o.get("side", [])) < ENTRIES]
        c.ok(not lost, "every entry of every list is named", "op %s: %s" % (lost[:3], [json.dumps(o)[:200] for o in ops if o["id"] in lost][:1]))
    differs, stats = harness.plan_against_native([PROGRAM, "24"], 70, DEVICE)
    c.ok(not differs, "under a limit: as native", str(differs))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
