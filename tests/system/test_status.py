#!/usr/bin/env python3
"""remat status: a running job's row on every device it uses, in the three forms; other users' where they may be read; hostile command
lines; --watch. The Prometheus text is read by Prometheus' own Python parser where there is one."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness as h

MIB = 1 << 20
UUID = "GPU-73696d75-6c61-7465-6420-475055203000"  # the simulated device's
check = h.Checks()
NASTY = 'say "hi" \\ back\033[31m\nnew line \u00e9'


def status(*options, env=None, rc=0):
    p = subprocess.run([h.REMAT, "status"] + list(options), capture_output=True, text=True, env=env, timeout=60)
    check.ok(p.returncode == rc, "status %s exits %d" % (options, rc), "%d %s" % (p.returncode, p.stderr))
    return p


def wait_for(what, tries=600):
    """What it answers, once that is true; a slow machine may take its time."""
    for _ in range(tries):
        got = what()
        if got:
            return got
        time.sleep(0.1)
    return None


def samples(text):
    """Prometheus' text exposition format: {(name, labels): value}; complains of what breaks it."""
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        text_string_to_metric_families = None
    seen, typed, last = {}, {}, None
    for line in text.split("\n")[:-1]:
        m = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)", line)
        if m:
            if m.group(1) == "TYPE":
                check.ok(m.group(2) not in typed and m.group(3) in ("gauge", "counter"), "a type, once a metric", line)
                typed[m.group(2)] = last = m.group(2)
            continue
        m = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[A-Za-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? ([0-9.eE+-]+)', line)
        if not check.ok(m is not None and m.group(1) == last, "a sample below its metric", repr(line)):
            continue
        labels = tuple(sorted((k, v.replace('\\"', '"').replace("\\\\", "\\")) for k, v in re.findall(r'([A-Za-z_]+)="((?:[^"\\]|\\.)*)"', m.group(2) or "")))
        check.ok((m.group(1), labels) not in seen, "a sample, once", line)
        seen[m.group(1), labels] = float(m.group(3))
    check.ok(text.endswith("\n"), "the last line ends")
    if text_string_to_metric_families:
        theirs = {(s.name, tuple(sorted(s.labels.items()))): s.value for f in text_string_to_metric_families(text) for s in f.samples}
        check.ok(theirs == seen, "as Prometheus reads it", "%s" % (set(theirs.items()) ^ set(seen.items())))
    return seen


def start(tmp, env, options, uid=None, size=("--batch", "64", "--layers", "4")):
    """A training run that goes on until it is killed."""
    cmd = [h.REMAT, "run"] + options + ["--", os.path.join(h.B, "workloads", "mlp"), "--iters", "1000000"] + list(size)
    return subprocess.Popen(cmd, env=env, stdout=subprocess.DEVNULL, stderr=open(os.path.join(tmp, "err"), "w"), user=uid)


def one_job(tmp, env):
    groups = os.path.join(tmp, "groups")
    os.makedirs(groups, mode=0o700)
    env = dict(env, REMAT_GROUP_DIR=groups)
    job = start(tmp, env, ["--limit", "200M", "--policy", "swap", "--group", "team", "--group-limit", "300M"])
    try:
        def rows():
            got = json.loads(status("--json", env=env).stdout)
            return got if got["processes"] and got["processes"][0]["iterations_per_s"] > 0 else None
        got = wait_for(rows)
        if not check.ok(got is not None, "the job is seen", open(os.path.join(tmp, "err")).read()):
            return
        check.ok(len(got["processes"]) == 1 and len(got["groups"]) == 1, "one process, one group", str(got))
        p, g = got["processes"][0], got["groups"][0]
        # the device as NVML and DCGM's exporter name it: what joins their metrics with these
        check.ok(p["pid"] == job.pid and p["device"] == {"ordinal": 0, "pci": "0000:01:00.0", "uuid": UUID, "bytes": 512 * MIB} and
                 p["group"] == "team" and p["host"] == os.uname().nodename, "who and where", str(p))
        check.ok(abs(p["share"] - p["in_use_bytes"] / (512 * MIB)) < 1e-9 and g["device_uuid"] == UUID, "its share", str(p))
        check.ok(p["mode"] == "swap" and p["limit_bytes"] == 200 * MIB and 0 < p["in_use_bytes"] <= p["peak_bytes"] <= 200 * MIB, "figures", str(p))
        check.ok(p["iterations"] >= 2 and "mlp --iters" in p["command"] and p["started_unix_s"] > 1e9, "more figures", str(p))
        check.ok(g["group"] == "team" and g["limit_bytes"] == 300 * MIB and g["members"][0]["pid"] == job.pid and
                 g["reserved_bytes"] >= p["in_use_bytes"] // 2, "the group", str(g))
        table = status("--wide", env=env).stdout
        check.ok(re.search(r"^\S+ +%d +0 +team +swap +200.00 MiB " % job.pid, table, re.M) and "group team of" in table, "the table", table)
        table = status(env=env).stdout
        check.ok(re.search(r"^\S+ +%d +0 swap +200M +[\d.]+M +\d+%% +\d+[BKM] +(-|[+-][0-9.]+%%) +[0-9.]+ mlp --iters" % job.pid, table, re.M), "the narrow table", table)
        check.ok(max(map(len, table.splitlines())) <= 80 and "group team of " in table, "80 columns", table)
        s = samples(status("--prometheus", env=env).stdout)
        check.ok(all(("UUID", UUID) in l for (n, l) in s), "every sample says which GPU", str([l for (n, l) in s if ("UUID", UUID) not in l]))
        mine = {n: v for (n, l), v in s.items() if ("pid", str(job.pid)) in l and ("device", "0") in l and ("group", "team") in l}
        check.ok(mine.get("remat_limit_bytes") == 200 * MIB and mine.get("remat_iterations_total", 0) >= 2 and
                 mine.get("remat_process_info") == 1, "Prometheus", str(mine))
        check.ok(any(n == "remat_group_limit_bytes" and v == 300 * MIB for (n, _), v in s.items()), "the group's metrics", str(s))

        watch = subprocess.Popen([h.REMAT, "status", "--watch", "--interval", "0.1", "--json"], env=env, stdout=subprocess.PIPE, text=True)
        lines = [json.loads(watch.stdout.readline()) for _ in range(3)]
        check.ok(all(x["processes"][0]["pid"] == job.pid for x in lines), "--watch --json: an object a line", str(lines))
        check.ok(lines[0]["processes"][0]["iterations"] <= lines[2]["processes"][0]["iterations"], "time goes on", str(lines))
        watch.stdout.close()
        check.ok(watch.wait(60) in (0, 1, -signal.SIGPIPE), "--watch ends with its reader")
        # a job that stands still has no rate for long: it falls with the time since its last iteration
        job.send_signal(signal.SIGSTOP)
        rate = json.loads(status("--json", env=env).stdout)["processes"][0]["iterations_per_s"]
        check.ok(wait_for(lambda: json.loads(status("--json", env=env).stdout)["processes"][0]["iterations_per_s"] < rate / 2), "a stopped job's rate falls")
    finally:
        job.kill()
        job.wait()
    check.ok(json.loads(status("--json", env=env).stdout) == {"processes": [], "groups": []}, "nothing is left of it")
    check.ok("no process" in status(env=env).stdout, "and the table says so")


def on_the_host(tmp, env):
    """What is swapped out is shown, in all three forms: of a job that stands still, so that they agree."""
    job = start(tmp, env, ["--limit", "60M", "--policy", "swap"], size=())
    try:
        def process():
            return (json.loads(status("--json", env=env).stdout)["processes"] or [{}])[0]
        got = wait_for(lambda: process().get("swapped_bytes"))
        if not check.ok(bool(got), "bytes on the host", open(os.path.join(tmp, "err")).read()):
            return
        job.send_signal(signal.SIGSTOP)
        p = process()
        check.ok(p["peak_bytes"] <= 60 * MIB and p["swapped_bytes"] >= 8 * MIB, "as much as does not fit, or more", str(p))
        s = samples(status("--prometheus", env=env).stdout)
        check.ok([v for (n, _), v in s.items() if n == "remat_host_bytes"] == [p["swapped_bytes"]], "Prometheus says the same", str(s))
        table = status("--wide", env=env).stdout
        check.ok(" %.2f MiB " % (p["swapped_bytes"] / MIB) in table, "the table says the same", table)
        counts = {n: v for (n, _), v in s.items()}
        check.ok(p["swaps_out"] > 0 and counts["remat_swaps_out_total"] == p["swaps_out"] and counts["remat_swaps_in_total"] == p["swaps_in"], "copies are counted", str(p))
    finally:
        job.kill()
        job.wait()


def by_a_plan(tmp, env):
    """Replays and comparisons are counted as in the statistics, and the price is told; sorting puts the dear one first."""
    stats = os.path.join(tmp, "stats.json")
    jobs = [start(tmp, env, ["--limit", "33M", "--policy", "plan", "--stats", stats], size=("--batch", "4096", "--layers", "12")),
            start(tmp, env, ["--limit", "400M"], size=("--batch", "256", "--layers", "2"))]
    try:
        def rows():
            got = {p["pid"]: p for p in json.loads(status("--json", "--sort", "price", env=env).stdout)["processes"]}
            mine = got.get(jobs[0].pid, {})
            return got if mine.get("compared") and mine.get("replays") and mine["price"] and len(got) == 2 else None
        got = wait_for(rows)
        if not check.ok(got is not None, "a plan's figures", open(os.path.join(tmp, "err")).read() + status("--json", env=env).stdout):
            return
        for job in jobs:
            job.send_signal(signal.SIGSTOP)
        p = json.loads(status("--json", "--sort", "price", env=env).stdout)["processes"]
        check.ok([x["pid"] for x in p] == [j.pid for j in jobs] and p[0]["price"] > 0.01, "the dearest first", str(p))
        check.ok([x["pid"] for x in json.loads(status("--json", "--sort", "limit", env=env).stdout)["processes"]] == [jobs[1].pid, jobs[0].pid], "the largest limit first")
        p = p[0]
        check.ok(p["mode"] == "enforce" and 0 < p["iterations_planned"] <= p["iterations"] and p["differed"] == 0, "by a plan", str(p))
        s = {n: v for (n, l), v in samples(status("--prometheus", env=env).stdout).items() if ("pid", str(p["pid"])) in l}
        check.ok([s["remat_replays_total"], s["remat_comparisons_total"], s["remat_departures_total"], s["remat_comparisons_failed_total"], s["remat_iterations_planned_total"]] ==
                 [p["replays"], p["compared"], p["departures"], 0, p["iterations_planned"]] and abs(s["remat_price_ratio"] - p["price"]) < 1e-5, "Prometheus says so", str(s))
        jobs[0].send_signal(signal.SIGCONT)
        time.sleep(0.3)
        jobs[0].terminate()
        jobs[0].wait(60)
        with open(stats) as f:
            t = json.load(f)
        check.ok(2 * t["replays"] >= p["replays"] > 0 and 2 * t["verify_checked"] >= p["compared"] > 0 and abs(t["overhead"] - p["price"]) < 0.2,
                 "as the statistics count, as they stood some iterations before the end", "%s %s" % (t, p))
    finally:
        for job in jobs:
            job.kill()
            job.wait()


def two_pods(tmp, env):
    """Two processes of the same number, each in a pid namespace of its own, with one folder: both have a row, and a reader outside knows them by its own numbers."""
    if os.getuid() != 0 or subprocess.run(["unshare", "-p", "-u", "-f", "true"], capture_output=True).returncode:
        return
    env = dict(env, REMAT_GROUP_DIR=os.path.join(tmp, "pods"))
    os.makedirs(env["REMAT_GROUP_DIR"], mode=0o700)
    pods = [subprocess.Popen(["unshare", "-p", "-u", "-f", "--kill-child", "sh", "-c", 'hostname "$0" && exec "$@"', "pod-%d" % i, h.REMAT, "run", "--group", "train",
                              "--group-limit", "100M", "--", os.path.join(h.B, "workloads", "mlp"), "--iters", "1000000", "--batch", "64", "--layers", "4"],
                             env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(2)]
    try:
        def rows():
            got = json.loads(status("--json", env=env).stdout)
            return got if len(got["processes"]) == 2 and len(got["groups"]) == 1 and len(got["groups"][0]["members"]) == 2 else None
        got = wait_for(rows, 200)
        if check.ok(got is not None, "two rows of two pods, in one group", status("--json", env=env).stdout):
            check.ok({p["host"] for p in got["processes"]} == {"pod-0", "pod-1"} and all(os.path.exists("/proc/%d" % p["pid"]) for p in got["processes"]) and
                     len({p["pid"] for p in got["processes"]}) == 2, "by the pod's name, and by this namespace's numbers", str(got))
            check.ok([m["pid"] for m in got["groups"][0]["members"]] == [1, 1], "each is the first of its namespace", str(got["groups"]))
            check.ok(len({tuple(l) for n, l in samples(status("--prometheus", env=env).stdout) if n == "remat_limit_bytes"}) == 2, "two series")
    finally:
        for pod in pods:
            pod.kill()
            pod.wait()
    check.ok(wait_for(lambda: json.loads(status("--json", env=env).stdout) == {"processes": [], "groups": []}), "nothing is left of them")


def two_devices(tmp, env):
    code = ("import ctypes, os, sys\nc = ctypes.CDLL('libcuda.so.1')\np = ctypes.c_void_p()\nassert c.cuInit(0) == 0\n"
            "for d in (1, 0):\n    assert c.cuDevicePrimaryCtxRetain(ctypes.byref(p), d) == 0 and c.cuCtxSetCurrent(p) == 0\n"
            "    assert c.cuMemAllocAsync(ctypes.byref(p), ctypes.c_size_t(5 << 20), None) == 0\n"
            "print('ready', flush=True)\nsys.stdin.read()")
    job = subprocess.Popen([h.REMAT, "run", "--limit", "100M", "--", sys.executable, "-c", code, NASTY], env=dict(env, SIMGPU_DEVICES="2"),
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check.ok(job.stdout.readline() == "ready\n", "two devices")
    got = json.loads(status("--json", env=env).stdout)["processes"]
    check.ok([p["device"]["ordinal"] for p in got] == [0, 1] and all(p["in_use_bytes"] >= 5 * MIB and p["limit_bytes"] == 100 * MIB for p in got),
             "a row a device", str(got))
    check.ok(all("\033" not in p["command"] and "\n" not in p["command"] for p in got), "no control characters from a command line", str(got))
    table = status(env=env).stdout
    check.ok("\033" not in table and table.count("\n") == 3, "nor in the table", repr(table))
    samples(status("--prometheus", env=env).stdout)
    job.communicate("")


def other_users(tmp, env):
    """As root: everybody's; as anybody else: one's own."""
    if os.getuid() != 0:
        return
    uid = 61234
    folder = "/dev/shm/remat-%d" % uid
    env = {k: v for k, v in env.items() if k not in ("REMAT_STATUS_DIR", "REMAT_GROUP_DIR")}
    probe = subprocess.run([h.REMAT, "--version"], user=uid, capture_output=True, cwd="/")
    if os.path.exists(folder) or probe.returncode:
        return # somebody's, or a tree that others may not read
    job = start(tmp, dict(env, HOME="/nonexistent"), ["--limit", "200M", "--group", "theirs", "--group-limit", "300M"], uid)
    try:
        def mine():
            return [p for p in json.loads(status("--json", env=env).stdout)["processes"] if p["pid"] == job.pid]
        got = wait_for(mine)
        if check.ok(bool(got), "root sees another user's job", open(os.path.join(tmp, "err")).read()):
            check.ok(got[0]["user"] == str(uid), "and whose it is", str(got))
            def groups():
                return [(g["user"], g["group"], [m["pid"] for m in g["members"]]) for g in json.loads(status("--json", env=env).stdout)["groups"]]
            check.ok(wait_for(lambda: (str(uid), "theirs", [job.pid]) in groups()), "and its group", str(groups()))
        else:
            return
        p = subprocess.run([h.REMAT, "status", "--json"], capture_output=True, text=True, env=env, user=uid + 1)
        check.ok(p.returncode == 0 and str(job.pid) not in p.stdout and "theirs" not in p.stdout, "a third user does not", p.stdout + p.stderr)
    finally:
        job.kill()
        job.wait()
        mine()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree("/dev/shm/remat-groups-%d" % uid, ignore_errors=True)


def mistakes(env):
    for options, word in ((["--json", "--prometheus"], "not both"), (["--interval", "1"], "--watch"), (["--watch", "--interval", "0"], "0.1"),
                          (["--watch", "--interval", "soon"], "soon"), (["--wach"], 'did you mean "--watch"'),
                          (["--sort", "prize"], 'did you mean "price"'), (["--listen", "here"], "in numbers"), (["--listen", "1", "--json"], "--prometheus")):
        p = status(*options, env=env, rc=2)
        check.ok(p.stderr.count("\n") == 1 and word in p.stderr, "%s: one line" % options, p.stderr)
    with open("/dev/full", "w") as full:
        p = subprocess.run([h.REMAT, "status", "--watch", "--interval", "0.1"], stdout=full, stderr=subprocess.PIPE, env=env, timeout=60)
        check.ok(p.returncode == 1 and p.stderr.count(b"\n") == 1, "a full disk ends --watch", str(p))


def main():
    if os.environ.get("SAN"):
        print("tried in ordinary builds")
        return 77
    tmp = tempfile.mkdtemp(prefix="remat-status-")
    os.chmod(tmp, 0o755)
    env = dict(os.environ, REMAT_SIMGPU="1", SIMGPU_MEM="512M", XDG_CACHE_HOME=tmp, REMAT_STATUS_DIR=os.path.join(tmp, "status"),
               REMAT_GROUP_DIR=os.path.join(tmp, "none"))
    for name in ("LD_PRELOAD", "XDG_RUNTIME_DIR", "REMAT_LIMIT", "REMAT_RUN_STARTED"):
        env.pop(name, None)
    try:
        mistakes(env)
        one_job(tmp, env)
        on_the_host(tmp, env)
        by_a_plan(tmp, env)
        two_pods(tmp, env)
        two_devices(tmp, env)
        other_users(tmp, env)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
