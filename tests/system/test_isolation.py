#!/usr/bin/env python3
"""The five questions of docs/sharing.md, one function each, named as there: two jobs on one simulated device whose memory they share.
What one does beyond its limit is its own affair; the other computes what it computes alone."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import harness as h

MIB = 1 << 20
DEVICE, GRANULARITY = 128 * MIB, str(512 << 10)
JOB = ["--batch", "4096", "--print-loss", "--checksum", "--iters"]
check = h.Checks()


class Two:
    """Jobs started at once on one device; ended in any order."""

    def __init__(self, tmp):
        self.tmp, self.n = tmp, 0
        self.env = dict(os.environ, REMAT_SIMGPU="1", SIMGPU_MEM=str(DEVICE), SIMGPU_GRANULARITY=GRANULARITY, XDG_CACHE_HOME=tmp, REMAT_STATUS_DIR=os.path.join(tmp, "status"),
                        LD_LIBRARY_PATH=os.path.join(h.B, "simgpu") + ":" + os.environ.get("LD_LIBRARY_PATH", ""))

    def run(self, *jobs, iters=4):
        """jobs: options of remat run. [(exit status, losses and checksum, stderr, peak)]"""
        self.n += 1
        shared = os.path.join(self.tmp, "device%d" % self.n)
        running = []
        for i, options in enumerate(jobs):
            stats = os.path.join(self.tmp, "stats%d.%d" % (self.n, i))
            options, more = h.by_environment(options)
            cmd = [h.REMAT, "run", "--stats", stats] + options + ["--", os.path.join(h.B, "workloads", "mlp")] + JOB + [str(iters)]
            running.append((stats, subprocess.Popen(cmd, env=dict(self.env, SIMGPU_SHARED=shared, **more), stdout=subprocess.PIPE,
                                                    stderr=subprocess.PIPE, text=True)))
        ended = []
        for stats, p in running:
            out, err = p.communicate(timeout=400)
            peak = 0
            if os.path.exists(stats):
                with open(stats) as f:
                    peak = int(re.search(r'"peak_physical_bytes": (\d+)', f.read()).group(1))
            ended.append((p.returncode, re.findall(r"loss \S+|checksum \S+", out), err, peak))
        return ended


def who_fails(two, alone):
    """Who asks beyond its limit, alone."""
    small, other = two.run(["--limit", "5M", "--host-swap", "1M"], ["--limit", "50M"])
    check.ok(small[0] != 0 and "out of memory" in small[2], "who fails: who is too small for its limit", str(small))
    check.ok(other[0] == 0 and other[1] == alone and other[2] == "", "and not the neighbour", str(other))


def who_slows(two, alone):
    """Who is above its limit: it pays in replays and copies; a neighbour within its own pays nothing."""
    above, within = two.run(["--limit", "20M", "--policy", "swap"], ["--limit", "50M", "--policy", "swap"])
    for i, job in enumerate((above, within)):
        check.ok(job[0] == 0 and job[1] == alone, "who slows: both are right", str(job))
        with open(os.path.join(two.tmp, "stats%d.%d" % (two.n, i))) as f:
            swaps = int(re.search(r'"swaps_out": (\d+)', f.read()).group(1))
        check.ok((swaps > 0) == (i == 0), "who slows: the one above its limit copies, the other does not", str(swaps))


def what_falls_back(two, alone):
    """Without a plan, swapping; with the host full, the driver's error."""
    job, longer = (two.run(options, iters=8)[0] for options in (["--limit", "20M", "--policy", "plan", "--solver", "none"], ["--policy", "off"]))
    check.ok(job[0] == longer[0] == 0 and job[1] == longer[1] and job[3] <= 20 * MIB and "memory is held by swapping" in job[2], "what falls back: to swapping", str(job))


def which_error(two, alone):
    """The driver's own out-of-memory code, and one line that says what was tried."""
    job = two.run(["--limit", "5M", "--host-swap", "1M"])[0]
    check.ok("CUDA_ERROR_OUT_OF_MEMORY" in job[2] and len(re.findall(r"^remat\[\d+\]: out of memory: ", job[2], re.M)) == 1 and
             "limit 5 MiB" in job[2].replace("the limit is", "limit"), "which error", job[2])
    # what is small is told in KiB: "0 MiB" would say nothing
    two.env["SIMGPU_GRANULARITY"] = "4096"
    job = two.run(["--limit", "612K", "--host-swap", "200K"])[0]
    two.env["SIMGPU_GRANULARITY"] = GRANULARITY
    check.ok("limit 612 KiB" in job[2].replace("the limit is", "limit") and " 0 MiB" not in job[2], "which error, of a small limit", job[2])


def does_isolation_hold(two, alone):
    """Two jobs that would take 70 % each, held to a fifth each by the machine's maxima: both run, neither above it."""
    conf = os.path.join(two.tmp, "half.conf")
    with open(conf, "w") as f:
        f.write("max everyone 20%\n")
    two.env["REMAT_CONF_ALSO"] = conf
    for job in two.run(["--limit", "70%"], ["--limit", "70%", "--policy", "off"]):
        check.ok(job[0] == 0 and job[1] == alone and 0 < job[3] <= DEVICE // 5, "does isolation hold", str(job))
        check.ok("a maximum" in job[2] or "25 MiB it is, %s:1, everyone" % conf in job[2], "and says whose limit it is", job[2])
    del two.env["REMAT_CONF_ALSO"]


def main():
    if os.environ.get("SAN"):
        print("tried in ordinary builds")
        return 77
    tmp = tempfile.mkdtemp(prefix="remat-isolation-")
    try:
        two = Two(tmp)
        alone = two.run(["--policy", "off"])[0]
        check.ok(alone[0] == 0 and len(alone[1]) > 4, "alone", str(alone))
        for question in (who_fails, who_slows, what_falls_back, which_error, does_isolation_hold):
            question(two, alone[1])
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
