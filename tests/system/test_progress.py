#!/usr/bin/env python3
"""remat plan on a terminal: a line that counts the seconds and is gone at the end; into a pipe, nothing of it."""
import os
import pty
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
TRACE = os.path.join(HERE, "..", "..", "docs", "example", "gpt.json")


def plan(terminal, *more):
    """What comes out on stderr."""
    master, slave = pty.openpty()
    with tempfile.TemporaryFile() as out:
        run = subprocess.Popen([REMAT, "plan", TRACE, "--limit", "50%", "--solver", "mincut", "--time-limit", "2.5", *more],
                               stdout=out, stderr=slave if terminal else subprocess.PIPE)
        os.close(slave)
        said = b""
        while terminal:
            try:
                piece = os.read(master, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
        said += run.communicate()[1] or b""
        os.close(master)
    assert run.returncode == 0, said
    return said.decode()


def main():
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    shown = plan(True)
    assert "mincut, 1 s of 2 s at most" in shown or "mincut, 1 s of 3 s at most" in shown, shown
    # at the end the line is wiped: blanks over it, and back to its beginning
    assert re.search(r"at most *\r +\r", shown) and "at most" not in shown.split("\r")[-1], repr(shown)
    assert "at most" not in plan(False), "progress in a pipe"
    assert "at most" not in plan(True, "--json"), "progress with --json"
    print("progress: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
