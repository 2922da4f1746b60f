#!/usr/bin/env python3
"""What earlier runs have found out (`$XDG_CACHE_HOME/remat`): a second run of a program knows its kernels and has its plan, and computes the same; an entry that is
damaged, of another build of the kernels' file, or of code whose variables the program asks for by name, is not gone by; a file of facts can be shipped."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

ITERS = ["--iters", "9", "--print-loss", "--checksum", "--iter-time"]
LIMITS = {"mlp": "8704K", "gpt": "22M"}
KERNELS = os.path.join(harness.B, "workloads", "kernels.so")


def known(*words, cache):
    return subprocess.run([harness.REMAT, "known", *words], env=dict(os.environ, REMAT_CACHE=cache), capture_output=True, text=True, timeout=60)


def names(cache):
    return sorted(n for n in os.listdir(cache) if n != "lock") if os.path.isdir(cache) else []


def flip(path, k):
    with open(path, "r+b") as f:
        data = bytearray(f.read())
        at = k * 7919 % len(data)
        data[at] ^= 1 << k % 8
        f.seek(0)
        f.write(data)
    return at


class Case:
    def __init__(self, c, workload, tmp):
        self.c, self.workload, self.tmp = c, workload, tmp
        self.native = harness.run_eighth(workload, ITERS)
        self.native_ms = sorted(self.native.iter_ms())[4]

    def run(self, name, cache, options=(), env=None):
        r = harness.run_eighth(self.workload, ITERS, remat=["--limit", LIMITS[self.workload], "--policy", "plan", *options],
                                env=dict({"REMAT_CACHE": cache} if cache else {}, **(env or {})))
        self.c.ok(r.rc == 0 and r.losses == self.native.losses and r.checksum == self.native.checksum and r.losses,
                  "%s, %s: as natively" % (self.workload, name), r.err[-500:])
        print("%s, %s: %s patterns and %s plans of earlier runs, %s launches known, %s not, %s iterations enforced" % (
            self.workload, name, *(r.stats.get(k) for k in ("facts_earlier", "plans_earlier", "facts_taken", "facts_unknown", "iterations_enforced"))))
        self.iter_ms = r.iter_ms()
        return r.stats

    def found(self, stats, name, facts, plans):
        self.c.ok((stats.get("facts_earlier", 0) > 0) == facts, "%s: facts of earlier runs are %staken" % (name, "" if facts else "not "), str(stats))
        self.c.ok(stats.get("plans_earlier") == plans, "%s: %s plans of earlier runs" % (name, plans), str(stats))


def second_run(case, cache):
    c, first = case.c, case.run("first", cache)
    case.found(first, "first", False, 0)
    c.ok([n.split("-")[0] for n in names(cache)] == ["facts", "iteration", "plan"], "the first run leaves facts, a plan, and the iteration", str(names(cache)))
    c.ok(os.stat(cache).st_mode & 0o777 == 0o700 and all(os.stat(os.path.join(cache, n)).st_mode & 0o777 == 0o600 for n in names(cache)), "nobody else's")
    second = case.run("second", cache)
    case.found(second, "second", True, 1)
    c.ok(second.get("facts_unknown", 1e9) * 10 < first.get("facts_unknown", 0), "second: hardly a launch is unknown", "%s then %s" % (first, second))
    c.ok(second.get("facts_contradicted") == 0, "second: nothing is contradicted")
    c.ok(second.get("iterations_enforced", 0) > first.get("iterations_enforced", 1e9), "second: the plan is there sooner", "%s then %s" % (first, second))
    c.ok(case.iter_ms[3] < (case.iter_ms[1] + case.iter_ms[2]) / 3 and case.iter_ms[3] < 1.5 * case.native_ms, "second: in force from the fourth iteration on: learnt in the second, rehearsed in the third",
         str(case.iter_ms[:5]))


def not_gone_by(case, cache):
    c = case.c
    for k in range(1, 4) if harness.TIER == "all" else [1 + int(os.environ.get("TEST_DRAW", "1").encode().hex(), 16) % 5000]:
        damaged = os.path.join(case.tmp, "damaged-%d" % k)
        shutil.copytree(cache, damaged)
        where = [flip(os.path.join(damaged, n), k) for n in names(damaged)]
        case.found(case.run("damaged at %s" % where, damaged), "damaged", False, 0)
    other = os.path.join(case.tmp, "other.so")
    shutil.copy(KERNELS, other)
    with open(other, "ab") as f:
        f.write(b"\0")
    case.found(case.run("another build", cache, env={"WORKLOAD_KERNELS": other}), "another build", False, 1)
    before = [(n, os.stat(os.path.join(cache, n)).st_mtime_ns) for n in names(cache)]
    home = os.path.join(case.tmp, "home")
    case.found(case.run("--no-cache", None, ["--no-cache"], {"HOME": home, "XDG_CACHE_HOME": cache}), "--no-cache", False, 0)
    c.ok(not os.path.exists(home) and before == [(n, os.stat(os.path.join(cache, n)).st_mtime_ns) for n in names(cache)], "--no-cache: nothing is written")


def variables(c, tmp):
    """What code does whose variables the program asks for may be another thing in each run."""
    for kind, known_later in (("same", True), ("named", False)):
        cmd, env = [os.path.join(harness.B, "programs", "kinds"), kind, "16"], {"SIMGPU_GRANULARITY": "16K", "REMAT_CACHE": os.path.join(tmp, kind)}
        native = harness.run(cmd, env=env)
        for again in (False, True):
            r = harness.run(cmd, ["--limit", native.peak * 60 // 100, "--policy", "plan"], env)
            c.ok(r.rc == 0 and r.out == native.out, kind + ": as natively", r.err[-300:])
            c.ok((r.stats.get("facts_earlier", 0) > 0) == (again and known_later), "%s: facts of earlier runs" % kind, str(r.stats))


def shipped(case, cache):
    c, file, there = case.c, os.path.join(case.tmp, "facts"), os.path.join(case.tmp, "there")
    r = known("list", cache=cache)
    c.ok(r.returncode == 0 and "ways to launch them" in r.stdout and r.stdout.count("plan ") == 1, "list", r.stdout + r.stderr)
    c.ok("nothing is known" in known("list", cache=there).stdout, "list: an empty folder")
    c.ok(known("export", file, cache=there).returncode == 1, "export: nothing is there")
    c.ok(known("export", file, cache=cache).returncode == 0 and known("import", file, cache=there).returncode == 0, "export, import")
    facts = [n for n in names(cache) if n.startswith("facts-")]
    c.ok(names(there) == facts, "import: facts alone", str(names(there)))
    case.found(case.run("imported", there), "imported", True, 0)
    size = os.path.getsize(file)
    for cut in (size - 1, 3):
        with open(file, "r+b") as f:
            f.truncate(cut)
        r = known("import", file, cache=os.path.join(case.tmp, "nowhere"))
        c.ok(r.returncode == 2 and "damaged" in r.stderr and "byte" in r.stderr, "import: cut at %d" % cut, r.stderr)
    c.ok(known("import", os.path.join(case.tmp, "none"), cache=there).returncode == 1 and known("export", cache=there).returncode == 2, "import, export: usage")


def main():
    c = harness.Checks()
    with tempfile.TemporaryDirectory() as tmp:
        cache = os.path.join(tmp, "cache")
        case = Case(c, "mlp", tmp)
        second_run(case, cache)
        if harness.TIER != "check":
            not_gone_by(case, cache)
            shipped(case, cache)
            variables(c, tmp)
            second_run(Case(c, "gpt", tmp), os.path.join(tmp, "of gpt"))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
