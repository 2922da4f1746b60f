#!/usr/bin/env python3
"""Who made a call: the sites of a trace name the script's own line beside the C frame, and so do the frames of the memory viewer and the
report. A program that calls the driver through ctypes, in every Python found here; PyTorch where there is an environment for it
(PYTORCH_DIR, or build/pytorch)."""
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))
SCRIPT = os.path.realpath(os.path.join(HERE, "..", "programs", "sites.py"))
MODELS = os.path.realpath(os.path.join(HERE, "..", "simcuda", "models"))


def trace(cmd, tmp, env=None, timeout=120):
    """The trace of a command, and what it printed."""
    out = os.path.join(tmp, "trace.json")
    e = dict(os.environ, REMAT_SIMGPU="1", REMAT_LOG="info", XDG_CACHE_HOME=tmp)
    e["LD_LIBRARY_PATH"] = os.path.join(harness.B, "simgpu") + ":" + e.get("LD_LIBRARY_PATH", "")
    if harness.RUNTIME:
        e["LD_PRELOAD"] = harness.RUNTIME
    e.update(env or {})
    p = subprocess.run([harness.REMAT, "trace", "-o", out, "--"] + cmd, env=e, capture_output=True, text=True, timeout=timeout)
    if p.returncode or not os.path.exists(out):
        return None, p
    with open(out, encoding="utf-8") as f:
        t = json.load(f)
    os.rename(out, os.path.join(tmp, "last.json"))
    return t, p


def sites_of(t, name):
    return {t["sites"][o["site"]] for o in t["ops"] if o["name"] == name and "site" in o}


def version(python):
    p = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    return tuple(map(int, p.stdout.split())) if p.returncode == 0 else (0, 0)


def pythons():
    """One of every version from 3.11 on."""
    found = {}
    for p in [sys.executable] + [shutil.which("python3.%d" % k) for k in range(11, 20)]:
        v = version(p) if p else (0, 0)
        if v >= (3, 11) and v not in found:
            found[v] = p
    return sorted(found.items())


def ctypes_program(c, tmp):
    for v, python in pythons():
        name = "python %d.%d" % v
        t, p = trace([python, SCRIPT, os.path.join(harness.B, "programs")], tmp)
        if not c.ok(t, name + ": a trace", p.stderr[-500:]):
            continue
        line = dict(x.split() for x in p.stdout.splitlines())
        path = SCRIPT
        for what, op, function in (("input", "map", "train"), ("forward", "join", "Größe.forward"), ("backward", "join", "train.<locals>.<lambda>")):
            want = "%s:%s %s" % (path, line[what], function)
            hit = [s for s in sites_of(t, op) if want in s.split(" < ")]
            c.ok(hit, "%s: %s is on line %s" % (name, what, line[what]), "%s not in %s" % (want, t.get("sites")))
            frames = hit[0].split(" < ") if hit else []
            c.ok(frames and not frames[0].startswith(path) and frames[-1].endswith(" <module>"), name + ": C inside, the module outside", str(frames))
            c.ok(not [f for f in frames if "PyEval" in f or "libpython" in f], name + ": no frames of the interpreter's own", str(frames))
    c.ok("unwinder" not in p.stderr, "libunwind is there, and nothing is said", p.stderr[-300:])
    return line


def viewers(c, tmp, line):
    """The last trace in PyTorch's memory viewer and in the report."""
    src = os.path.join(tmp, "last.json")
    subprocess.run([harness.REMAT, "export", src, "--format", "memory-viz", "-o", os.path.join(tmp, "viz.pickle")], check=True)
    with open(os.path.join(tmp, "viz.pickle"), "rb") as f:
        snapshot = pickle.load(f)
    frames = {(f["filename"], f["line"], f["name"]) for d in snapshot["device_traces"] for e in d for f in e["frames"]}
    path = SCRIPT
    c.ok((path, int(line["forward"]), "Größe.forward") in frames, "memory viewer: the script's line", str(sorted(frames)[:20]))
    subprocess.run([harness.REMAT, "report", src, "--time-limit", "0", "-o", os.path.join(tmp, "r.html")], check=True)
    with open(os.path.join(tmp, "r.html"), encoding="utf-8") as f:
        c.ok("%s:%s Größe.forward" % (path, line["forward"]) in f.read(), "report: the script's line")


def without_libunwind(c, tmp):
    """A libunwind that cannot be loaded: the compiler's unwinder walks, and it is said once."""
    bad = os.path.join(tmp, "bad")
    os.mkdir(bad)
    with open(os.path.join(bad, "libunwind.so.8"), "w") as f:
        f.write("no library")
    env = {"LD_LIBRARY_PATH": bad + ":" + os.path.join(harness.B, "simgpu")}
    t, p = trace([sys.executable, SCRIPT, os.path.join(harness.B, "programs")], tmp, env)
    c.ok(t, "without libunwind: a trace", p.stderr[-500:])
    said = re.findall(r"walked by the compiler's unwinder.*libunwind", p.stderr)
    c.ok(len(said) == 1, "without libunwind: said once", p.stderr[-500:])
    c.ok(t and all("_ctypes" in s and SCRIPT.split("/")[-1] in s for s in sites_of(t, "join")), "without libunwind: frames of both kinds", str(t and t.get("sites")))


def pytorch(c, tmp):
    python = os.path.join(os.environ.get("PYTORCH_DIR") or os.path.join(harness.B, "pytorch"), "bin", "python")
    if not os.path.exists(python) or version(python) < (3, 11):
        print("no PyTorch of its own: that part is left out")
        return
    t, p = trace([python, os.path.join(MODELS, "train.py"), "mlp"], tmp, {"SIMGPU_FLOPS": "2e12"}, timeout=600)
    if not c.ok(t, "PyTorch: a trace", p.stderr[-500:]):
        return
    sources = {n: open(os.path.join(MODELS, n)).read().splitlines() for n in ("train.py", "nets.py")}
    seen = {"train.py": set(), "nets.py": set()}
    for s in t["sites"]:
        for f in s.split(" < "):
            m = re.fullmatch(re.escape(MODELS) + r"/(train|nets)\.py:(\d+) (\S+)", f)
            if m:
                seen[m.group(1) + ".py"].add((int(m.group(2)), m.group(3)))
    at = {n: [(sources[n][line - 1].strip(), f) for line, f in v] for n, v in seen.items()}
    c.ok([x for x in at["train.py"] if ".backward()" in x[0] and x[1] == "main"], "PyTorch: the line of backward()", str(at["train.py"]))
    c.ok([x for x in at["train.py"] if "forward(x, y)" in x[0] and x[1] == "main"], "PyTorch: the line of the forward pass", str(at["train.py"]))
    c.ok([x for x in at["nets.py"] if x[1] == "MLP.forward" and "(" in x[0]], "PyTorch: the model's own lines", str(at["nets.py"]))
    c.ok([s for s in t["sites"] if "libtorch" in s.split(" < ")[1] or "torch_cuda" in s or "at6native" in s], "PyTorch: C frames beside them")


def main():
    if not os.path.exists(os.path.join(harness.B, "simgpu", "libcuda.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    with tempfile.TemporaryDirectory(prefix="remat-sites-") as tmp:
        line = ctypes_program(c, tmp)
        viewers(c, tmp, line)
        if os.environ.get("SAN") != "thread":  # such a library never loads it (tracer/site.c)
            without_libunwind(c, tmp)
        pytorch(c, tmp)
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
