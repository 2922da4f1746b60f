#!/usr/bin/env python3
"""Iterations that are alike but for one thing (tests/programs/alike.c) stay under their plan, make no memory call in the steady state, and
give what they give without a limit. A flag that is set in one iteration, whichever it is, changes no result."""
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

PROGRAM = os.path.join(harness.B, "programs", "alike")
# where copies would cost nothing beside so much computing, a plan would have no replays, and one whose map had gaps would have copies instead
DEVICE = {"SIMGPU_GRANULARITY": "65536", "SIMGPU_BW": "20e9", "SIMGPU_HOST_BW": "5e8", "REMAT_LOG": "debug"}
LIMIT = 11200000
PLANNED = ("doubled",)  # where a plan is asked for whose map has no gaps, which min-cut does not look at
SPECIAL = {
    "wide": {"SIMGPU_GRANULARITY": "131072"}, # its tensor and decoys of that length, page by page, are nearly all the mappings that a process may have
    "beyond": {"SIMGPU_MEM": "64G"} # remat's reservation is larger than what a byte of an address tells apart
}
# its tensor is longer on its way to the host than an op is waited for: that counts against no op
SLOW_LINK = {"wide": {"SIMGPU_HOST_WALL_BW": "280e6"}}
ITERATIONS = {"ahead": ["7"], "heap": ["48"], "stale": ["36"], "once": ["40"]}
# case, at least so many of 24 iterations enforced, the plan is left at most so often (the end of the program is once)
CASES = [("unused", 16, 1), ("padding", 16, 1), ("dropped", 16, 1), ("pinned", 16, 1), ("batch", 16, 1), ("detour", 12, 2), ("inner", 12, 1), ("number", 16, 1),
         ("update", 16, 1), ("midway", 16, 1), ("ahead", 2, 1), ("optional", 16, 1), ("often", 16, 1), ("late", 16, 1), ("residue", 16, 1), ("halves", 16, 1), ("dangling", 16, 1), ("fields", 16, 1), ("counted", 16, 1), ("wide", 16, 1), ("doubled", 16, 1), ("heap", 16, 1), ("stale", 20, 5),
         ("absent", 16, 1), ("zeros", 16, 1), ("once", 26, 6), ("unused8", 16, 1), ("mode", 16, 1)]
# recording, rehearsal, and the iterations after them are among these
FLAG_AT = {"flag": range(2, 8), "packed": (3, 4, 11), "hosted": (2, 4, 11), "update": (3, 4, 9, 12), "midway": (3, 4, 9, 12), "beside": (4, 15), "optional": (12, 13, 14, 15), "widened": (12, 15), "often": (4, 12, 13, 14, 16), "late": (4, 17, 18, 19), "swings": (3, 12, 13), "crowd": (12,), "upper": (10, 11, 12, 13, 14), "beyond": (10, 11, 12, 13, 14), "swarm": (4, 12), "hearsay": (17, 18), "halves": (4, 9, 12, 15, 16), "dangling": (4, 12), "fields": (4, 12, 15), "counted": (4, 12, 15), "wide": (4, 12, 15), "heap": (4, 12, 15, 18, 19), "doubled": (4, 12, 13, 14, 16),
           # a launch begins to read through an entry that is known to be idle: a replay would read what is there by then
           "absent": (4, 12, 16), "zeros": (12, 15), "mode": (16, 17, 18), "unused8": (4, 7, 8),
           "grown": (12, 13, 14, 17), "zeroed": (12, 13, 17)}


def limit_of(case):
    # its tensor, and four pages: where the others fill larger ones to the last, what the planner finds first makes a memory call, or a copy
    return LIMIT + ((800 << 20) + 4 * 131072 if case == "wide" else 0)


def with_flag(flag):
    case, when = flag
    device, program = dict(DEVICE, **SPECIAL.get(case, {})), [PROGRAM, case, "20", str(when)]
    return (harness.run(program, env=device, timeout=300),
            harness.run(program, remat=["--limit", limit_of(case), "--policy", "plan"], env=device, timeout=600))


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    only = sys.argv[1:]
    for case, enforced, left in harness.drawn((case for case in CASES if not only or case[0] in only), test=5, check=2):
        device = dict(DEVICE, **SPECIAL.get(case, {}))
        native = harness.run([PROGRAM, case] + ITERATIONS.get(case, []), env=dict(device, ALIKE_WORK_US="0"), timeout=300)
        c.ok(native.rc == 0, case + " native", native.err[-300:])
        r = harness.run([PROGRAM, case] + ITERATIONS.get(case, []), remat=["--limit", limit_of(case), "--policy", "plan"], env=dict(device, **SLOW_LINK.get(case, {})), timeout=600,
                        planner=harness.OWN_PLANNER if case in PLANNED else harness.PLANNER)
        s = r.stats
        c.ok(r.rc == 0, case + ": exit", "%s %s" % (r.rc, r.err[-500:]))
        c.ok(r.out == native.out, case + ": output")
        c.ok(r.device and r.peak <= limit_of(case), case + ": peak", str(r.device.get("peak_physical_bytes")))
        # ahead: where a replay of the plan that is found hangs on the bundle, whose trial would have to wait for the work before it, the plan is left there
        untried = case == "ahead" and "(bundle): another argument" in r.err
        c.ok(s.get("iterations_enforced", 0) >= (0 if untried else enforced), case + ": enforced", "%s\n%s" % (s, r.err[-800:]))
        c.ok(s.get("replays", 0) >= 20, case + ": replays", str(s.get("replays")))
        c.ok(s.get("divergences", 99) <= (3 if untried else left), case + ": left", "%s\n%s" % (s.get("divergences"), r.err[-800:]))
        # a planner that a sanitizer slows down may come to no other plan than one whose map lacks chunks, or with copies
        # doubled has trials in every iteration: what only those ask for does not count
        # once: iterations in which its plan was left moved memory about, and its map is made anew so often only
        c.ok(os.environ.get("SAN") or case == "once" or s.get("driver_memory_calls_steady", 1) == 0, case + ": no memory call in a steady iteration", str(s))
        # behind the seconds of work of ahead copies cost nothing: its plan may have some
        c.ok(os.environ.get("SAN") or case == "ahead" or s.get("swaps_steady", 1) == 0, case + ": no swap in a steady iteration", str(s))
        if case == "update":
            c.ok(s.get("launches_looked_at", 0) >= 8, "update: launches are looked at", str(s))
        if case == "number": # twelve layers; when it carries into another byte nothing is tried again
            c.ok(0 < s.get("launches_tried", 0) <= 12 * 8, "number: believed after eight trials", str(s))
        if case == "unused8": # once at each of four layers
            c.ok(0 < s.get("launches_tried", 0) <= 4, "unused8: what addresses of the host's are is known", str(s))
        if case == "heap": # the fourth byte of each of four entries is another one six times: that is known from its first trial
            c.ok(0 < s.get("launches_tried", 0) <= 3, "heap: what addresses of the host's are is known", str(s))
        if case == "absent": # four layers
            c.ok(0 < s.get("launches_tried", 0) <= 8, "absent: what is null again is not tried again", str(s))
        if case == "mode": # each of its values is tried three times at each of four layers
            c.ok(0 < s.get("launches_tried", 0) <= 20, "mode: padding of one byte is known", str(s))
        if case == "residue": # a trial is not refused for memory that is remat's own
            c.ok(s.get("launches_tried", 0) >= 2, "residue: launches are tried", str(s))
        if case == "late": # twelve places that were alike; each alone would want three trials
            c.ok(0 < s.get("launches_tried", 0) <= 12, "late: what some layers have shown serves the others", str(s))
    if not only and harness.PART == 0: # what one reservation could take whole: the addresses of decoys are left
        r = harness.run([PROGRAM, "dropped"], remat=["--limit", LIMIT, "--policy", "plan"], env=dict(DEVICE, SIMGPU_WINDOW="512G"), timeout=600)
        c.ok(r.rc == 0 and r.stats.get("iterations_enforced", 0) >= 16, "few addresses", "%s\n%s" % (r.stats, r.err[-800:]))
    # of the iterations all, or one that is drawn
    flags = [(case, when) for case, iterations in FLAG_AT.items() for when in harness.drawn(iterations, test=1, salt=case, whole=True) if not only or case in only]
    flags = harness.drawn(flags, test=6, check=2, salt="flags")
    with concurrent.futures.ThreadPoolExecutor(harness.WORKERS) as pool:
        for (case, when), (native, r) in zip(flags, pool.map(with_flag, flags)):
            name = "%s set in iteration %d" % (case, when)
            c.ok(native.rc == 0 and r.rc == 0, name + ": exit", "%s %s" % (r.rc, r.err[-500:]))
            c.ok(r.out == native.out, name + ": output")
            c.ok(r.stats.get("iterations_enforced", 0) >= 5, name + ": enforced", str(r.stats))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
