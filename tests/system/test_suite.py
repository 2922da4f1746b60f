#!/usr/bin/env python3
"""The suite itself: every test has its row in tests/runner/tests.tsv, and the runner says of a test what became of it. Run on a table and tests of
its own, in a copy of the runner."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Passes only beside the test that makes the second file.
MEETS = 'touch "$B/%s"; for i in $(seq 100); do if [ -e "$B/%s" ]; then exit 0; fi; sleep 0.05; done; exit 1'
TABLE = [
    ("test_good.sh", "check", "1", "1", "1", "easy", "exit 0"),
    ("test_bad.sh", "test", "1", "1", "1", "easy", "echo the reason; exit 3"),
    ("test_skip.sh", "test", "1", "1", "1", "other", "echo no such machine; exit 77"),
    ("test_parts.sh", "check", "1", "3", "3", "other", 'echo "$TEST_TIER $TEST_PART" >>"$B/parts"'),
    ("test_leaves.sh", "check", "1", "1", "1", "other", 'sleep 300 & echo $! >"$B/left"'),
    ("test_grows.sh", "check", "1", "1", "1/1/40", "other", 'echo "$TEST_TIER" >>"$B/grows"'),
    ("test_sleeps.sh", "test", "0.5", "1", "1", "sleepy", MEETS % ("one", "other")),
    ("test_dozes.sh", "test", "0.5", "1", "1", "sleepy", MEETS % ("other", "one")),
    ("setup", "all", "1", "1", "1", "long", 'test ! -e "$B/no-setup"'),
    ("needs-it", "all", "1", "1", "2", "long", "true"),
    ("test_lonely.sh", "all", "alone", "1", "1", "long", 'test ! -e "$B/busy"'),
    ("test_busy.sh", "all", "1", "1", "2", "long", 'touch "$B/busy"; sleep 0.5; rm "$B/busy"'),
    ("test_endless.sh", "all", "1", "1", "1", "endless", 'echo $$ >>"$B/endless"; exec sleep 300'),
]


def suite(folder):
    """A tree with the runner and the tests of TABLE."""
    for room in ("runner", "system", "unit"):
        os.makedirs(os.path.join(folder, "tests", room))
    shutil.copy(os.path.join(TESTS, "runner", "run.py"), os.path.join(folder, "tests", "runner"))
    with open(os.path.join(folder, "tests", "runner", "tests.tsv"), "w") as f:
        for name, *row, script in TABLE:
            is_file = name.endswith(".sh")
            f.write("\t".join([name] + row + ([] if is_file else [script, "setup" if name == "needs-it" else ""])) + "\n")
            if is_file:
                with open(os.path.join(folder, "tests", "system", name), "w") as s:
                    s.write(script + "\n")
    os.makedirs(os.path.join(folder, "build"))


class Suite:
    def __init__(self, folder):
        self.folder, self.b = folder, os.path.join(folder, "build")

    def run(self, *words, **env):
        e = {k: v for k, v in os.environ.items() if not k.startswith("TEST_") and k != "SAN"}  # the folder's suite is none of a sanitizer's
        e.update(B=self.b, TEST_DRAW="some commit", XDG_CACHE_HOME=os.path.join(self.folder, "cache"), **env)
        p = subprocess.run([sys.executable, os.path.join(self.folder, "tests", "runner", "run.py"), *words], env=e, capture_output=True, text=True, timeout=120)
        return p.returncode, p.stdout + p.stderr

    def text(self, name):
        try:
            with open(os.path.join(self.b, name)) as f:
                return f.read()
        except OSError:
            return ""


def every_test_has_a_row(c):
    sys.path.insert(0, os.path.join(TESTS, "runner"))
    import run as runner
    rows = runner.read_rows()
    c.ok(not [r.name for r in rows if "unlisted" in r.tags], "every test has a row in tests/runner/tests.tsv", str([r.name for r in rows if "unlisted" in r.tags]))
    for r in rows:
        at = os.path.join(TESTS, r.name if "/" in r.name else os.path.join("system", r.name)) if r.script else os.path.join(TESTS, "unit", r.name + ".c")
        c.ok(r.command or os.path.exists(at), "%s is a test" % r.name)
        c.ok(not r.needs or any(r.needs == x.name for x in rows), "%s needs what there is" % r.name, r.needs)
    c.ok(len({r.name for r in rows}) == len(rows), "no name twice")


def main():
    c = harness.Checks()
    every_test_has_a_row(c)
    with tempfile.TemporaryDirectory(prefix="remat-test-") as folder:
        suite(folder)
        s = Suite(folder)

        rc, said = s.run("check")
        c.ok(rc == 0 and "6 passed, 0 failed, 0 skipped" in said, "check", said)
        c.ok("bad" not in said, "check runs its own tier alone", said)
        c.ok(sorted(s.text("parts").split("\n")) == ["", "check 0/3", "check 1/3", "check 2/3"], "parts", s.text("parts"))
        c.ok("test_parts.sh 3/3" in said and re.search(r"^6 of 6 ", said, re.M), "which and how many", said)
        left = int(s.text("left"))
        c.ok(not os.path.exists("/proc/%d" % left) or open("/proc/%d/stat" % left).read().split()[2] == "Z", "what a test leaves running is ended")
        c.ok(json.loads(s.text("test-times.json")).get("test_good.sh@check/1") is not None, "times are kept", s.text("test-times.json"))

        rc, said = s.run("test")
        c.ok(rc == 1 and "8 passed, 1 failed, 1 skipped" in said, "test: one fails", said)
        c.ok("failed: test_bad.sh" in said and "FAILED (exit 3)" in said and "the reason" in said, "which, and why", said)
        c.ok("skipped: no such machine" in said, "skipped, and why", said)

        for words, tells in ((("--only", "bad"), "failed: test_bad.sh"), (("--only", "test_bad.sh"), "0 passed, 1 failed"), (("--only", "easy"), "1 passed, 1 failed"),
                             (("--only", "easy", "--without", "easy"), "0 passed, 0 failed"), (("--only", "nothing"), "no test and no tag is called `nothing`")):
            rc, said = s.run("test", *words)
            c.ok(rc != 0 and tells in said, "test %s" % " ".join(words), said)
        for name in ("one", "other"):
            os.unlink(os.path.join(s.b, name))
        rc, said = s.run("test", "--only", "sleepy", TEST_PLACES="1")
        c.ok(rc == 0 and "2 passed" in said, "two tests that mostly sleep share a place", said)
        rc, said = s.run("check", "--only", "skip")
        c.ok(rc != 0 and "0 passed, 0 failed, 1 skipped" in said, "nothing passed is not well", said)

        rc, said = s.run("test", "--only", "long")
        c.ok(rc == 0 and "4 passed" in said and said.index(" setup ") < said.index(" needs-it "), "what is needed runs first; the lonely alone", said)
        open(os.path.join(s.b, "no-setup"), "w").close()
        rc, said = s.run("test", "--only", "needs-it")
        c.ok(rc != 0 and "left out: needs-it" in said, "what lacks what it needs is left out", said)
        os.unlink(os.path.join(s.b, "no-setup"))
        began = time.monotonic()
        rc, said = s.run("test", "--only", "endless", TEST_TIMEOUT="2")
        c.ok(rc != 0 and "no end after 2 s" in said and time.monotonic() - began < 30, "no end is an end", said)

        # whoever ends the runner ends its tests
        env = dict(os.environ, B=s.b, TEST_DRAW="some commit")
        os.unlink(os.path.join(s.b, "endless"))
        p = subprocess.Popen([sys.executable, os.path.join(folder, "tests", "runner", "run.py"), "test", "--only", "endless"], env=env, stdout=subprocess.DEVNULL)
        before = s.text("endless")
        while s.text("endless") == before and p.poll() is None:
            time.sleep(0.02)
        p.terminate()
        c.ok(p.wait(30) != 0, "terminated: exit")
        pid = s.text("endless").split()
        for _ in range(100):
            if not pid or not os.path.exists("/proc/%s/fd" % pid[-1]) or open("/proc/%s/stat" % pid[-1]).read().split()[2] == "Z":
                break
            time.sleep(0.02)
        c.ok(pid and (not os.path.exists("/proc/%s" % pid[-1]) or open("/proc/%s/stat" % pid[-1]).read().split()[2] == "Z"), "terminated: no test is left", str(pid))

        # the rest: whole grids and long tests, as far as the time goes, and next time the others
        os.unlink(os.path.join(s.b, "grows"))
        shutil.rmtree(os.path.join(folder, "cache"), ignore_errors=True)
        rc, said = s.run("rest", "--seconds", "90", "--without", "endless")
        c.ok(rc == 0 and "left out: test_grows.sh" in said and "4 passed" in said, "no time for the longest", said)
        rc, said = s.run("rest", "--seconds", "110", "--without", "endless")
        c.ok(rc == 0 and s.text("grows") == "all\n", "the grid whole", said + s.text("grows"))
        order = [m for m in re.findall(r"^\d of 5  (\S+)", said, re.M)]
        c.ok(order and order[0] == "test_grows.sh" or "test_grows.sh" in order[:2], "longest unrun first", str(order))
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
