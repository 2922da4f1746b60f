#!/usr/bin/env python3
"""Out of memory for one op: what it is said to need and what cannot move add up to a limit that will do, and to more than the one at
hand. They counted bytes, where memory comes in pages: their sum lay below a limit that was too small."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PAGE = 64 << 10
UNIT = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def size(number, unit):
    return int(number) * UNIT[unit]


def main():
    program = os.path.join(harness.B, "programs", "needs")
    if not os.path.exists(program):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    line = re.compile(r"needs (\d+) (\w+) at once; the limit is \d+ \w+, of which (\d+) (\w+) cannot move; --limit (\d+K) would do")
    for pages in (1, 5, 16):
        for over in (256, PAGE // 2, PAGE):
            cmd = [program, str(pages * PAGE + over)]
            # one page short: two tensors of pages + 1 each, and one page of small ones
            limit = (2 * (pages + 1) + 1) * PAGE - 1024
            what = "%d pages and %d bytes" % (pages, over)
            r = harness.run(cmd, ["--policy", "swap", "--limit", str(limit)], {"SIMGPU_GRANULARITY": str(PAGE)})
            said = line.search(r.err)
            if not c.ok(r.rc == 1 and said, what + ": refused", "exit %d %s %s" % (r.rc, r.out, r.err[-400:])):
                continue
            enough = size(*said.groups()[:2]) + size(*said.groups()[2:4])
            c.ok(int(said.group(5)[:-1]) << 10 == enough, what + ": said as a limit", said.group(0))
            c.ok(enough > limit, what + ": more than the limit", "%d of %d: %s" % (enough, limit, said.group(0)))
            r = harness.run(cmd, ["--policy", "swap", "--limit", str(enough)], {"SIMGPU_GRANULARITY": str(PAGE)})
            c.ok(r.rc == 0 and r.out == "7\n" and r.peak <= enough, what + ": the sum will do", "%d: exit %d %s" % (enough, r.rc, r.err[-400:]))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
