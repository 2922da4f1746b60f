#!/usr/bin/env python3
"""A limit that swapping just meets is met by auto, too: beside a page for what learning keeps on the device, all that it holds goes before
the program is refused anything. A page that only learning wants stayed, and programs that swapping ran ended in out of memory."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PAGE = 64 << 10
DEVICE = {"SIMGPU_GRANULARITY": str(PAGE), "SIMGPU_FLOPS": "2e12", "SIMGPU_BW": "150e9", "SIMGPU_HOST_BW": "5e9"}
CASES = (("random_train", "4", "12", "0"), ("random_train", "5", "14"), ("random_args", "3", "16"))


def least_of_swap(cmd, native):
    """The fewest pages with which the program runs by swapping."""
    too_few, enough = 0, native.peak // PAGE + 1
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if harness.run(cmd, ["--policy", "swap", "--limit", str(middle * PAGE)], DEVICE).rc == 0:
            enough = middle
        else:
            too_few = middle
    return enough


def main():
    if not os.path.exists(os.path.join(harness.B, "programs", "random_train")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    for name, *args in CASES:
        cmd = [os.path.join(harness.B, "programs", name)] + args
        native = harness.run(cmd, env=DEVICE)
        least = least_of_swap(cmd, native)
        what = " ".join([name] + args)
        c.ok(least < native.peak // PAGE * 2 / 3, what + ": swapping takes less than two thirds", "%d of %d pages" % (least, native.peak // PAGE))
        limit = (least + 1) * PAGE
        r = harness.run(cmd, ["--policy", "auto", "--limit", str(limit)], DEVICE)
        differs = harness.other_than(native, r, limit)
        c.ok(not differs, what + ": auto where swapping has %d pages" % least, differs)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
