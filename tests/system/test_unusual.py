#!/usr/bin/env python3
"""Programs that a driver serves and that a library in front of it easily gets wrong, a case each (tests/programs: unusual, waits, standing,
captures, addresses, standstill): natively, and under remat with and without a limit that makes it evict."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

CASES = {
    "waits": "wait_copy wait_pageable wait_box wait_batch wait_boxes host_free host_room host_batch host_many func_free func_room func_many"
             " func_six func_own many_own func_calls sync_fill",
    "captures": "capture_free capture_lost capture_loop capture_thread other_capture other_global other_local other_relaxed other_unsafe other_spans other_beside other_twice capture_fresh host_capture graph_memory graph_full",
    "addresses": "one_pointer box_pointer batch_pointer word_pointer odd_pointer odd_box boxes_pointer far_pointer odd_list pinned_list own_list"
                 " managed_list pool_list gone_list same_pointer moved_pointer",
    "standing": "alloc plain launch to_device to_host within box batch events behind streams destroy free_behind free_ordered free_now churn questions pinned register"
                " managed array pools mapped module capture graph retain collect words huge thread",
    "standstill": "by_word by_batch by_function by_graph by_semaphore by_event by_context by_default by_capture by_list by_queue by_thread",
    "unusual": "contexts legacies no_context other_stream other_copy pool_most pool_peaks pool_gone wrong_way no_arguments bad_stream dead_stream huge early batch_many"
               " lone_batch retained mapped failed past_end attributes",
}
FELT = {"pool_most": "16M", "pool_peaks": "16M", "far_pointer": "1728K", "capture": "2M", "graph": "2M"}  # a limit that is felt, where it is not 640K
EVICTS = ("_pointer", "host_room", "host_batch", "func_room", "func_six", "func_own", "many_own", "func_calls", "pinned_list", "own_list", "managed_list", "pool_list",
          "batch_many", "lone_batch", "contexts", "legacies", "other_copy", "retained", "wrong_way", "capture_lost", "other_capture", "other_global", "other_local", "other_spans", "other_twice", "graph_memory", "by_word", "by_batch", "by_function", "by_graph", "by_semaphore", "by_event", "by_context", "by_default", "by_capture", "by_list")
HELD = ("retained", "graph_memory", "graph_full")  # what is not remat's to give, and counts


def check(c, program, name):
    limit = FELT.get(name, "640K")
    command = [os.path.join(harness.B, "programs", program), name]
    env = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_DEVICES": "2" if name.startswith("other") else "1"}
    if name == "by_queue":
        env["SIMGPU_QUEUE"] = "1024"
    native = harness.run(command, env=env)
    c.ok(native.rc == 0 and native.out, name + " natively", native.err[-300:])
    for policy, size in (("swap", limit), ("auto", limit), ("swap", "1G")):
        what = "%s at %s, %s" % (name, size, policy)
        try:
            r = harness.run(command, remat=["--limit", size, "--policy", policy], env=env, timeout=60)
        except subprocess.TimeoutExpired:
            c.ok(False, what, "it hangs")
            continue
        c.ok(r.rc == 0 and r.out == native.out, what, "exit %d\n%snatively\n%s%s" % (r.rc, r.out, native.out, r.err[-300:]))
        if name == "early":  # where memory is short something of remat's may lie in front of them: then none begins early
            n = r.device.get("calls", {}).get("cuLaunchKernelEx", 0)
            c.ok(n == (0 if size == limit else 8), what + ": launches that may begin early", str(n))
        if name in HELD and size == limit:
            c.ok(r.peak <= 640 << 10, what + ": the limit holds", str(r.peak))
        if name.endswith(EVICTS) and size == limit:
            c.ok(r.stats.get("swaps_in", 0) > 0, what + ": it does evict", str(r.stats))


def main():
    if not os.path.exists(os.path.join(harness.B, "programs", "unusual")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    only = sys.argv[1:]
    for program, name in harness.drawn(((program, name) for program, names in CASES.items() for name in names.split()), check=8):
        if not only or name in only:
            check(c, program, name)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
