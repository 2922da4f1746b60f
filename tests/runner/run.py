#!/usr/bin/env python3
"""Runs the tests that tests.tsv lists: those of a tier, as many at once as there are processors, the longest first.

    run.py check|test|all [--only NAME|TAG] [--without TAG]
    run.py rest --seconds N     what `test` leaves out, longest unrun first, as much of it as fits into N seconds

A line when a test ends: how many of how many, what is running and for how long, how long the rest will take. Output of a test is shown when it
fails, and lies in $B/test-logs. Exit status 77 of a test means: cannot run here.

Environment: B (build directory), SAN (sanitizer of this build), REMAT_SHARED, TEST_TIMEOUT (seconds for one test, default 900), TEST_SLOWER (how
many times as long as in an ordinary build a program or a solver may take; default 10 under a sanitizer), TEST_DRAW (what the smaller grids are
drawn from; default the commit's hash), TEST_PLACES (tests at once; default the number of processors and a half). Each test gets TEST_TIER, TEST_DRAW and
TEST_PART (this one/of so many), which harness.drawn() reads.
"""
import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
ROOT = os.path.dirname(TESTS)
B = os.path.abspath(os.environ.get("B") or os.path.join(ROOT, "build"))
TIERS = ("check", "test", "all")
TAIL_LINES = 40
NEWS_S = 20  # where nobody watches a terminal: a line at least so often
SPARE_S = 60  # of a budget: guesses of times are guesses
# What tests see that set none of it themselves. Check's own four seconds for a unit test are few on a busy machine.
DEFAULTS = {
    "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:use_sigaltstack=0:allow_user_segv_handler=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:handle_segv=0:suppressions=" + os.path.join(HERE, "tsan.supp"),
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "CK_DEFAULT_TIMEOUT": "120",
    "REMAT_CACHE": "off",  # what a test finds out is no other test's, nor the user's; test_cache.py has folders of its own
}


class Row:
    """A line of tests.tsv: what there is to say of one test. Its head says what the columns mean."""

    def __init__(self, name, tier, places, parts, seconds, tags, command="", needs=""):
        self.name, self.tier, self.places, self.command, self.needs = name, tier, places, command, needs
        self.tags = set(tags.split())
        self.stem = os.path.splitext(os.path.basename(name))[0]
        self.script = {".py": sys.executable, ".sh": "bash"}.get(os.path.splitext(name)[1])
        first = TIERS.index(tier)
        self.parts, self.guess_s = ([kind(v) for v in words.split("/")] for words, kind in ((parts, int), (seconds, float)))
        self.grows = tier != "all" and len(self.guess_s) > TIERS.index("all") - first and self.guess_s[-1] != self.guess_s[-2]
        self.first = first

    def at(self, values, tier):
        """The value for a tier: one for each from the row's first tier on, the last for those that follow."""
        return values[min(max(TIERS.index(tier) - self.first, 0), len(values) - 1)]

    def words(self):
        if self.command:
            return ["sh", "-ec", self.command]
        if self.script:
            return [self.script, os.path.join(TESTS, self.name if "/" in self.name else os.path.join("system", self.name))]
        return [os.path.join(B, "tests", self.name)]

    def targets(self):
        """What make builds for it, below the build directory or by name."""
        return {"build-all"} if self.script or self.command else {os.path.join(os.environ.get("B") or "build", "tests", self.name)}

    def is_called(self, word):
        return word in self.tags or word in (self.name, self.stem) or "test_" + word == self.stem


def read_rows():
    """The table, and tests without a row (test_suite.py asks for one): they run like others."""
    with open(os.path.join(HERE, "tests.tsv")) as f:
        rows = [Row(*line.rstrip("\n").split("\t")) for line in f if line.strip() and not line.startswith("#")]
    named = {r.name for r in rows}
    there = [f for f in os.listdir(os.path.join(TESTS, "system")) if f.startswith("test_") and f.endswith((".py", ".sh"))]
    there += [f[:-2] for f in os.listdir(os.path.join(TESTS, "unit")) if f.startswith("test_") and f.endswith(".c")]
    return rows + [Row(name, "test", "1", "1", "5", "unlisted") for name in sorted(there) if name not in named]


class Job:
    """One process: a test, or a part of one."""

    def __init__(self, row, tier, part):
        self.row, self.part, self.alone = row, part, row.places == "alone"
        self.tier = TIERS[max(TIERS.index(tier), row.first)]
        self.of = row.at(row.parts, self.tier)
        self.name = row.name if self.of == 1 else "%s %d/%d" % (row.name, part + 1, self.of)
        self.key = "%s@%s/%d" % (row.name, self.tier, self.of)

    def start(self, draw, timeout_s):
        self.log = os.path.join(B, "test-logs", self.name.replace("/", "-").replace(" ", "-") + ".log")
        env = dict(DEFAULTS, **os.environ)
        if os.path.basename(os.path.dirname(shutil.which("python3") or "")) == "shims":  # pyenv's: bash, 80 ms, and then the interpreter that runs this
            env["PATH"] = os.path.dirname(sys.executable) + ":" + env["PATH"]
        env.update(B=B, TEST_TIER=self.tier, TEST_DRAW=draw, TEST_PART="%d/%d" % (self.part, self.of))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.row.words(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=ROOT, start_new_session=True)
        self.began = time.monotonic()
        self.timeout_s, self.late = timeout_s, False

    def poll(self):
        """None while it runs, else its exit status; what it left running is ended."""
        pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
        self.took_s = time.monotonic() - self.began
        if pid == 0:
            if self.took_s > self.timeout_s and not self.late:
                self.late = True
                self.end()
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.busy_s = used.ru_utime + used.ru_stime
        self.end()
        return self.process.returncode

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def log_tail(self):
        with open(self.log, errors="replace") as f:
            return [line.rstrip("\n") for line in f.readlines()[-TAIL_LINES:]]


class Times:
    """Seconds that tests took in this build directory; before that, the guesses of the table."""

    def __init__(self):
        self.path = os.path.join(B, "test-times.json")
        self.known = read_json(self.path)
        self.slower = float(os.environ.get("TEST_SLOWER") or (10 if os.environ.get("SAN") else 1))

    def of(self, job):
        return self.known.get(job.key) or self.slower * job.row.at(job.row.guess_s, job.tier) / job.of

    def note(self, job):
        before = self.known.get(job.key, job.took_s)
        self.known[job.key] = round((before + job.took_s) / 2, 2)

    def keep(self):
        write_json(self.path, self.known)


class Record:
    """When each of the long tests passed last on this machine, whatever the checkout: a fresh clone knows nothing of earlier runs."""

    def __init__(self):
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.path = os.path.join(cache, "remat-tests", "ran.json")
        self.at = read_json(self.path)

    def longest_unrun_first(self, jobs, draw):
        """Those first that never ran, in an order that turns with the commit."""
        return sorted(jobs, key=lambda j: (self.at.get(j.name, 0), hashlib.sha256((draw + j.row.name).encode()).digest(), j.part))

    def note(self, jobs):
        for job in jobs:
            self.at[job.name] = int(time.time())
        write_json(self.path, self.at)


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def write_json(path, what):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w") as f:
        json.dump(what, f, indent=0, sort_keys=True)
    os.replace(path + ".new", path)


class Screen:
    """One line that is drawn again on a terminal; elsewhere a line when a test ends, and at least every NEWS_S."""

    def __init__(self):
        self.terminal, self.said, self.width = sys.stdout.isatty(), time.monotonic(), 0

    def line(self, text):
        if self.width:
            sys.stdout.write("\r" + " " * self.width + "\r")
            self.width = 0
        print(text, flush=True)
        self.said = time.monotonic()

    def passing(self, text):
        if self.terminal:
            text = text[: os.get_terminal_size().columns - 1]
            sys.stdout.write("\r" + text.ljust(self.width))
            sys.stdout.flush()
            self.width = len(text)
        elif time.monotonic() - self.said > NEWS_S:
            self.line(text)


class Run:
    def __init__(self, jobs, draw, budget_s=None):
        # half a place more than processors: who mostly sleeps fills what the others' waits leave
        self.places = float(os.environ.get("TEST_PLACES") or (os.cpu_count() or 1) + 0.5)
        self.timeout_s = float(os.environ.get("TEST_TIMEOUT") or 900)
        self.times, self.screen, self.draw, self.budget_s = Times(), Screen(), draw, budget_s
        self.began = time.monotonic()
        self.waiting, self.running, self.n = jobs, [], len(jobs)
        self.ended = {"passed": [], "failed": [], "skipped": [], "left out": []}
        self.told_of_failed = []  # their lines, to be told once more at the end: whoever reads a long output reads its end

    def takes(self, job):
        return self.places if job.alone else min(float(job.row.places), self.places)

    def next(self):
        """The first that may begin now; None: none may yet. Who wants nothing beside it comes last."""
        taken = sum(self.takes(j) for j in self.running)
        crowd = any(not j.alone for j in self.waiting)
        needed = {j.row.needs for j in self.waiting}
        return next((j for j in self.waiting if taken + self.takes(j) <= self.places and not (j.alone and crowd and j.row.name not in needed)), None)

    def hindered(self, job):
        """Why it cannot run, or None."""
        if self.budget_s is not None and time.monotonic() - self.began + self.times.of(job) + SPARE_S > self.budget_s:
            return "no time"
        if job.row.needs and not any(j.row.name == job.row.needs for j in self.ended["passed"]):
            return "it needs " + job.row.needs
        return None

    def begin_some(self):
        while True:
            job = self.next()
            if job is None:
                return
            if job.row.needs and any(j.row.name == job.row.needs for j in self.waiting + self.running):  # that one first, with nothing beside it
                first = next((j for j in self.waiting if j.row.name == job.row.needs), None)
                if first is None or self.running:
                    return
                job = first
            self.waiting.remove(job)
            if self.hindered(job):
                self.ended["left out"].append(job)
                self.n -= 1
                continue
            job.start(self.draw, self.timeout_s)
            self.running.append(job)

    def rest_s(self):
        now = time.monotonic()
        left = [max(self.times.of(j) - (now - j.began), 1) for j in self.running] + [self.times.of(j) for j in self.waiting if not j.alone]
        return sum(self.times.of(j) for j in self.waiting if j.alone) + max(sum(left) / self.places, max(left, default=0))

    def state(self):
        now = time.monotonic()
        what = ", ".join("%s for %d s" % (j.name, now - j.began) for j in self.running)
        return "%d of %d ended; running: %s; about %d s to go" % (self.n_ended(), self.n, what or "nothing", self.rest_s())

    def n_ended(self):
        return sum(len(self.ended[h]) for h in ("passed", "failed", "skipped"))

    def report(self, job, rc):
        if rc == 0:
            how, word = "passed", "ok"
            self.times.note(job)
        elif rc == 77:
            how, word = "skipped", "skipped: " + (job.log_tail() or ["no reason given"])[-1]
        else:
            how, word = "failed", "FAILED: no end after %d s" % self.timeout_s if job.late else "FAILED (exit %d)" % rc
            word = "\n    ".join([word] + job.log_tail())
        self.ended[how].append(job)
        width = len(str(self.n))
        line = "%*d of %d  %-28s %4d s, %4d s of a processor  %s" % (width, self.n_ended(), self.n, job.name, job.took_s, job.busy_s, word)
        if how == "failed":
            self.told_of_failed.append(line)
        self.screen.line(line)

    def go(self):
        """Whoever is interrupted takes along what it runs: tests are sessions of their own, which no terminal reaches."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            return self.all_of_them()
        finally:
            for job in self.running:
                job.end()

    def all_of_them(self):
        while self.waiting or self.running:
            self.begin_some()
            for job in list(self.running):
                rc = job.poll()
                if rc is not None:
                    self.running.remove(job)
                    self.report(job, rc)
            self.screen.passing(self.state())
            time.sleep(0.05)
        self.times.keep()
        names = {how: " ".join(j.name for j in jobs) for how, jobs in self.ended.items()}
        self.screen.line("\n%d s, %d s of a processor" % (time.monotonic() - self.began, sum(j.busy_s for h in ("passed", "failed", "skipped") for j in self.ended[h])))
        for line in self.told_of_failed if self.n > 1 else ():
            self.screen.line(line)
        for how in ("left out", "failed"):
            if names[how]:
                self.screen.line("%s: %s" % (how, names[how]))
        self.screen.line("%d passed, %d failed, %d skipped" % tuple(len(self.ended[h]) for h in ("passed", "failed", "skipped")))
        return 0 if self.ended["passed"] and not self.ended["failed"] else 1


def commit():
    p = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True)
    return p.stdout.strip()[:12] or "no commit"


def chosen(rows, words):
    for word in words:
        if not any(r.is_called(word) for r in rows):
            tags = sorted(set().union(*(r.tags for r in rows)))
            sys.exit("no test and no tag is called `%s`. Tags: %s" % (word, " ".join(tags)))
    rows = [r for r in rows if any(r.is_called(w) for w in words)]
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tier", choices=TIERS + ("rest",))
    p.add_argument("--only", default="", help="names of tests and tags, with blanks between them")
    p.add_argument("--without", default="", help="tags of what is left out")
    p.add_argument("--seconds", type=float, help="begin nothing that would not have ended by then")
    p.add_argument("--targets", action="store_true", help="say what make builds for these tests, and run nothing")
    a = p.parse_args()
    every, tier = read_rows(), "all" if a.tier == "rest" else a.tier
    if a.only:
        rows = chosen(every, a.only.split())
    elif a.tier == "rest":
        rows = [r for r in every if r.tier == "all" or r.grows]
    else:
        rows = [r for r in every if r.first <= TIERS.index(tier)]
    rows = [r for r in rows if not r.tags & set(a.without.split())]
    needed = {r.needs for r in rows} - {r.name for r in rows}
    rows += [r for r in every if r.name in needed]
    if a.targets:
        print(" ".join(sorted(set().union(*(r.targets() for r in rows)))))
        return 0
    os.makedirs(os.path.join(B, "test-logs"), exist_ok=True)
    draw = os.environ.get("TEST_DRAW") or commit()
    jobs = [Job(r, tier, k) for r in rows for k in range(r.at(r.parts, tier))]
    run = Run(jobs, draw, a.seconds)
    if a.tier == "rest":
        record = Record()
        run.waiting = record.longest_unrun_first(jobs, draw)
        rc = run.go()
        record.note(run.ended["passed"])
        return rc
    run.waiting.sort(key=run.times.of, reverse=True)
    print("%d tests; smaller grids are drawn from %s" % (run.n, draw))
    return run.go()


if __name__ == "__main__":
    sys.exit(main())
