#!/usr/bin/env python3
"""What takes long on a terminal: a line that counts the seconds and is gone at the end; into a pipe, nothing of it. `remat plan`; and a program
that stands still while it is planned for, in the terminal's foreground."""
import fcntl
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import harness  # noqa: E402

REMAT = harness.REMAT
TRACE = os.path.join(HERE, "..", "..", "docs", "example", "gpt.json")


def said_by(cmd, terminal, foreground=False, env=None):
    """What comes out on stderr."""
    def ahead():
        os.setsid()
        fcntl.ioctl(2, termios.TIOCSCTTY, 0)

    master, slave = pty.openpty()
    with tempfile.TemporaryFile() as out:
        run = subprocess.Popen(cmd, stdout=out, stderr=slave if terminal else subprocess.PIPE, env=dict(os.environ, **(env or {})),
                               preexec_fn=ahead if foreground else None)
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


def plan(terminal, *more):
    return said_by([REMAT, "plan", TRACE, "--limit", "50%", "--solver", "mincut", "--time-limit", "2.5", *more], terminal)


def training(foreground):
    """A program of some 600 launches an iteration, planned for in more than the two seconds in which nothing is said."""
    env = {"REMAT_SIMGPU": "1", "LD_LIBRARY_PATH": os.path.join(harness.B, "simgpu")}
    if harness.RUNTIME:
        env["LD_PRELOAD"] = harness.RUNTIME
    planner = ["env", "REMAT_BIN=" + harness.OWN_PLANNER]
    return said_by([REMAT, "run", "--limit", "178M", "--", *planner, os.path.join(harness.B, "workloads", "gpt"), "--iters", "6"], True, foreground, env)


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
    shown = training(True)
    assert re.search(r"planning [a-z ]+, 2 s", shown), repr(shown)
    assert re.search(r"s\r +\r$", shown), repr(shown)
    if harness.TIER == "all":
        assert "planning" not in training(False), "progress where the terminal is another's"
    print("progress: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
