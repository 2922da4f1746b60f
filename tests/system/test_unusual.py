#!/usr/bin/env python3
"""Programs that a driver serves and that a library in front of it easily gets wrong (tests/programs/unusual.c): each case natively, and
under remat with and without a limit that makes it evict."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# case, a limit that is felt
CASES = [("wait_copy", "640K"), ("wait_pageable", "640K"), ("wait_box", "640K"), ("wait_batch", "640K"), ("wait_boxes", "640K"), ("host_free", "640K"), ("host_capture", "640K"), ("host_room", "640K"), ("host_many", "640K"), ("contexts", "640K"), ("legacies", "640K"),
         ("no_context", "640K"), ("other_stream", "640K"), ("other_copy", "640K"), ("capture_free", "640K"), ("capture_lost", "640K"), ("capture_loop", "640K"), ("capture_thread", "640K"), ("other_capture", "640K"), ("wrong_way", "640K"),
         ("no_arguments", "640K"), ("bad_stream", "640K"), ("huge", "640K"), ("past_end", "640K"), ("early", "640K"), ("batch_many", "640K"), ("lone_batch", "640K"), ("sync_fill", "640K"), ("capture_fresh", "640K"), ("attributes", "640K"),
         ("pool_most", "16M"), ("pool_peaks", "16M"),
         ("one_pointer", "640K"), ("odd_pointer", "640K"), ("odd_box", "640K"), ("boxes_pointer", "640K"), ("far_pointer", "1728K"), ("odd_list", "640K"), ("box_pointer", "640K"), ("batch_pointer", "640K"), ("word_pointer", "640K"), ("pinned_list", "640K"), ("own_list", "640K"), ("managed_list", "640K"), ("gone_list", "640K"), ("same_pointer", "640K")]
EVICTS = ("_pointer", "host_room", "pinned_list", "own_list", "managed_list", "batch_many", "lone_batch", "contexts", "legacies", "other_copy", "wrong_way", "capture_lost", "other_capture")


def main():
    program = os.path.join(harness.B, "programs", "unusual")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for name, limit in CASES:
        env = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_DEVICES": "2" if name.startswith("other") else "1"}
        native = harness.run([program, name], env=env)
        c.ok(native.rc == 0 and native.out, name + " natively", native.err[-300:])
        for policy, size in (("swap", limit), ("auto", limit), ("swap", "1G")):
            what = "%s at %s, %s" % (name, size, policy)
            try:
                r = harness.run([program, name], remat=["--limit", size, "--policy", policy], env=env, timeout=60)
            except subprocess.TimeoutExpired:
                c.ok(False, what, "it hangs")
                continue
            c.ok(r.rc == 0 and r.out == native.out, what, "exit %d\n%snatively\n%s%s" % (r.rc, r.out, native.out, r.err[-300:]))
            if name == "early":  # where memory is short something of remat's may lie in front of them: then none begins early
                n = r.device.get("calls", {}).get("cuLaunchKernelEx", 0)
                c.ok(n == (0 if size == limit else 8), what + ": launches that may begin early", str(n))
            if name.endswith(EVICTS) and size == limit:
                c.ok(r.stats.get("swaps_in", 0) > 0, what + ": it does evict", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
