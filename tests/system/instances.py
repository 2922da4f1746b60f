"""Where the traces and instances of tests are: in the tree (offline/benchmark), so that a clean clone has them; MOCCASIN's graphs, which are not ours to
hand on, in $REMAT_SHARED/anchors/moccasin or in a clone of their authors' repository ($MOCCASIN, else build/moccasin)."""
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", ".."))
B = os.environ.get("B", os.path.join(TOP, "build"))
SHARED = os.environ.get("REMAT_SHARED", "")
BENCHMARK = os.path.join(TOP, "offline", "benchmark")
DATA_SET = "https://github.com/haoming-codes/moccasin"
sys.path.insert(0, os.path.join(TOP, "offline", "python"))
import remat  # noqa: E402
from remat.convert import moccasin  # noqa: E402
from remat.places import Document  # noqa: E402


def name_of(path):
    return os.path.basename(path).split(".json")[0]


def traces(kinds=("",)):
    """The traces of the tables of the READMEs; kinds: "h100", "torch" of the others."""
    found = sorted(glob.glob(os.path.join(BENCHMARK, "traces", "*.json.xz")))
    return [p for p in found for k in kinds if (name_of(p).split("-")[0] if name_of(p).split("-")[0] in ("h100", "torch") else "") == k]


def instance(name):
    """A file of rotor, milp or mincut."""
    return os.path.join(BENCHMARK, "instances", name + ".json.xz")


def read(path):
    return Document.load(path).root


class Judge:
    """The tree's second judge, with the calls of verify_plan.py."""
    @staticmethod
    def load(path):
        return remat.load(path)

    @staticmethod
    def verify(trace, plan, limit=None):
        return remat.simulate(trace, plan, limit).to_json()


def published():
    """{name: (bound, Checkmate, MOCCASIN, FastSA)} of the literature's table, None where there is none."""
    out = {}
    with open(os.path.join(TOP, "offline", "literature", "README.md"), encoding="utf-8") as f:
        for row in re.findall(r"^\| (\w+_\d\d) \| (.*) \|$", f.read(), re.M):
            cells = [c.strip() for c in row[1].split("|")]
            number = [None if c == "-" else float(re.match(r"[0-9.]+", c).group()) for c in cells]
            out[row[0]] = (number[0], number[1], number[2], number[4])
    return out


def clone():
    """A folder of the data set, got once; None: it cannot be got here."""
    there = os.environ.get("MOCCASIN") or os.path.join(B, "moccasin")
    if not os.path.isdir(os.path.join(there, "data")) and not os.environ.get("MOCCASIN"):
        print("getting MOCCASIN's graphs from %s (GPL-3.0; they stay in %s)" % (DATA_SET, there), flush=True)
        try:
            subprocess.run(["git", "clone", "-q", "--depth", "1", DATA_SET, there], timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, env=dict(os.environ, GIT_TERMINAL_PROMPT="0"))
        except (OSError, subprocess.TimeoutExpired):
            pass
    return there if os.path.isdir(os.path.join(there, "data")) else None


def moccasin_graphs(tmp, get=False):
    """{name: path} of the instances of the literature's table; {}: they are not here. get: fetch them if need be."""
    here = os.path.join(SHARED, "anchors", "moccasin")
    if os.path.isdir(here) and not os.environ.get("MOCCASIN"):
        return {name_of(p): p for p in sorted(glob.glob(os.path.join(here, "*.json")))}
    there = os.environ.get("MOCCASIN") or os.path.join(B, "moccasin")
    if get:
        there = clone()
    if not there or not os.path.isdir(os.path.join(there, "data")):
        return {}
    out = {}
    for name in sorted(published()):
        graph, percent = name.rsplit("_", 1)
        out[name] = os.path.join(tmp, name + ".json")
        with open(out[name], "w") as f:
            json.dump(moccasin.to_checkmate(os.path.join(there, "data", moccasin.FILES[graph]), percent + "%"), f)
    return out
