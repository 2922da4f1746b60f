#!/usr/bin/env python3
"""remat export: every format is read back and says what the trace and the judge of plans say."""
import json
import lzma
import os
import pickle
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gen_graph  # noqa: E402

REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
TRACES = [os.path.join(HERE, "..", "..", "docs", "example", "gpt.json"),
          os.path.join(os.environ.get("REMAT_SHARED", ""), "traces", "vgg11-b64.json"),
          os.path.join(HERE, "..", "corpus", "pytorch", "mlp.json.xz")]


def remat(*args):
    return subprocess.run([REMAT] + list(args), capture_output=True, text=True)


def expect(ok, what):
    if not ok:
        print("FAILED: %s" % (what,))
        sys.exit(1)


def check_flows(ev, replays):
    """Trace Event Format: an arrow starts ("s") and ends ("f", bound to its slice) with one id, category and name; each end
    lies in a slice of its track; from an op to its replay."""
    start = {e["id"]: e for e in ev if e["ph"] == "s"}
    end = {e["id"]: e for e in ev if e["ph"] == "f"}
    expect(len(start) == len(end) == replays and start.keys() == end.keys(), "perfetto: %d arrows" % len(start))
    slices = [e for e in ev if e["ph"] == "X"]

    def slice_at(e):
        found = [x for x in slices if x["tid"] == e["tid"] and x["ts"] <= e["ts"] <= x["ts"] + x["dur"]]
        expect(found, "perfetto: an arrow ends nowhere")
        return found
    for i, s in start.items():
        f = end[i]
        expect(s["ts"] <= f["ts"] and f["bp"] == "e" and (s["cat"], s["name"]) == (f["cat"], f["name"]), "perfetto: arrow %d" % i)
        ops = {x["args"]["op"] for x in slice_at(s) if x["cat"] != "replay"}
        expect(any(x["cat"] == "replay" and x["args"]["op"] in ops for x in slice_at(f)), "perfetto: arrow to another op")


def check_events(ev):
    """What every event of the format must have."""
    for e in ev:
        expect(e["ph"] in "XCMsf" and e["pid"] == 1 and isinstance(e["name"], str), "perfetto: %s" % e)
        expect(e["ph"] == "M" or (isinstance(e["ts"], (int, float)) and e["ts"] >= 0), "perfetto: %s" % e)
        expect(e["ph"] != "X" or e["dur"] >= 0, "perfetto: %s" % e)


def trace_processor(path, slices, arrows):
    """Perfetto's own reader, where a binary of it is on the path."""
    shell = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if not shell:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as q:
        q.write("select (select count(*) from slice) || ' ' || (select count(*) from flow) as n;")
        q.flush()
        run = subprocess.run([shell, "-q", q.name, path], capture_output=True, text=True)
    expect('"%d %d"' % (slices, arrows) in run.stdout, "trace processor: %s %s" % (run.stdout, run.stderr))


def torch_viewer(path):
    """PyTorch's own reader of snapshots, where there is a PyTorch."""
    python = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "pytorch", "bin", "python")
    python = os.environ.get("REMAT_TORCH_PYTHON", python)
    if not os.path.exists(python):
        print("no PyTorch (make pytorch): its viewer is not tried")
        return
    code = ("import pickle, sys, torch.cuda._memory_viz as v\n"
            "s = pickle.load(open(sys.argv[1], 'rb'))\n"
            "assert 'MEM[' in v.trace(s) and 'MemoryViz' in v.trace_plot(s) and 'segments: ' in v.segsum(s); v.segment_plot(s)\n"
            "print(len(v.trace(s).splitlines()))\n")
    run = subprocess.run([python, "-c", code, path], capture_output=True, text=True)
    expect(run.returncode == 0 and int(run.stdout.split()[-1]) > 10, "torch.cuda._memory_viz: %s" % run.stderr[-800:])


def peak_of(events):
    live = peak = 0
    held = {}
    for e in events:
        if e["action"] == "alloc":
            expect(e["addr"] not in held, "allocated twice")
            held[e["addr"]] = e["size"]
            live += e["size"]
        elif e["action"] == "free_completed":
            live -= held.pop(e["addr"])
        peak = max(peak, live)
    return peak, live


def plainly(names):
    """{symbol: as people write it}, by the binutils."""
    out = subprocess.run(["c++filt", "-p"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, out.split("\n")))


def one_trace(trace):
    with tempfile.TemporaryDirectory() as tmp:
        if trace.endswith(".xz"):
            packed, trace = trace, os.path.join(tmp, "trace.json")
            with lzma.open(packed) as f, open(trace, "wb") as g:
                g.write(f.read())
        tr = json.load(open(trace))
        plain = plainly([o["name"] for o in tr["ops"]])
        base = json.loads(remat("plan", trace, "--limit", "100%", "--solver", "none", "--no-offload", "--json").stdout) # the floor without copies: chen-greedy makes none
        plan = os.path.join(tmp, "p<1>.json")  # a name that needs escaping
        limit = (base["floor_bytes"] + 2 * base["baseline_peak_bytes"]) // 3
        run = remat("plan", trace, "--limit", str(limit), "--solver", "chen-greedy", "--json", "-o", plan) # no solver that takes time or luck
        expect(run.returncode == 0, run.stderr)
        made = json.loads(run.stdout)
        with open(plan) as f:
            with_copies, n = gen_graph.copies(tr, json.load(f))
        expect(n > 1, "only %d tensors to copy" % n)
        copied = os.path.join(tmp, "copied.json")
        with open(copied, "w") as f:
            json.dump(with_copies, f)
        judged = json.loads(remat("check", trace, copied).stdout)
        expect(judged["offloads"] == n, "%s" % judged)
        for args, peak in (([trace], base["peak_bytes"]), ([trace, plan], made["peak_bytes"]), ([trace, copied], judged["peak_bytes"])):
            out = os.path.join(tmp, "o")
            expect(remat("export", *args, "--format", "perfetto", "-o", out).returncode == 0, "perfetto")
            ev = json.load(open(out))["traceEvents"]
            expect(max(e["args"]["bytes"] for e in ev if e["ph"] == "C") == peak, "perfetto: memory counter")
            ops = [e for e in ev if e["ph"] == "X" and e["tid"] == 1]
            check_events(ev)
            check_flows(ev, len([e for e in ops if e["cat"] == "replay"]))
            trace_processor(out, len([e for e in ev if e["ph"] == "X"]), len([e for e in ev if e["ph"] == "s"]))
            expect([(e["name"], e["args"]["symbol"]) for e in ops if e["cat"] != "replay"] == [(plain[o["name"]], o["name"]) for o in tr["ops"]], "perfetto: ops")
            expect(not any("_Z" in e["args"].get("site", "") for e in ops), "perfetto: a symbol in a call site")
            expect(all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in zip(ops, ops[1:])), "perfetto: ops overlap")
            expect(remat("export", *args, "--format", "memory-viz", "-o", out).returncode == 0, "memory-viz")
            expect(remat("export", *args, "--format", "memory-viz", "-o", out + ".json").returncode == 0, "memory-viz json")
            snap = pickle.load(open(out, "rb"))
            expect(snap == json.load(open(out + ".json")), "memory-viz: pickle and JSON differ")
            top, left = peak_of(snap["device_traces"][0])
            frames = [e["frames"] for e in snap["device_traces"][0] if e["action"] == "alloc" and e["frames"]]
            expect(frames and all(f[0]["name"] in {plain[o["name"]] for o in tr["ops"]} for f in frames), "memory-viz: frames")
            expect(not any(n["name"].startswith("_Z") for f in frames for n in f), "memory-viz: a symbol in the frames")
            if tr.get("sites"):
                expect(any(len(f) > 2 for f in frames), "memory-viz: no call sites in the frames")
            torch_viewer(out)
            expect(top == peak, "memory-viz: peak %d, not %d" % (top, peak))
            expect(left == sum(s["total_size"] for s in snap["segments"]), "memory-viz: what is left")
            expect(remat("export", *args, "--format", "sqlite", "-o", out).returncode == 0, "sqlite")
            db = sqlite3.connect(out)
            one = lambda q: db.execute(q).fetchone()[0]  # noqa: E731
            expect(db.execute("SELECT name, symbol FROM ops ORDER BY id").fetchall() == [(plain[o["name"]], o["name"]) for o in tr["ops"]], "sqlite: ops")
            expect(one("SELECT sum(ns) FROM ops") == sum(o["ns"] for o in tr["ops"]), "sqlite: time")
            expect(one("SELECT count(*) FROM buffers") == len(tr["buffers"]), "sqlite: buffers")
            expect(one("SELECT max(use_bytes) FROM steps") <= peak, "sqlite: steps")
            expect(one("SELECT count(*) FROM ops WHERE site IS NOT NULL") == len([o for o in tr["ops"] if "site" in o]), "sqlite: sites")
            expect(one("SELECT count(DISTINCT use) FROM buffers") > 1, "sqlite: uses")
            db.close()
            expect(remat("export", *args, "--format", "dot", "-o", out).returncode == 0, "dot")
            dot = open(out).read()
            bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", dot)
            expect(dot.count("fillcolor=") == len(tr["ops"]) and bare.count("{") == bare.count("}") == 1 and "_ZN" not in dot, "dot: nodes")
        for bad in (["export", trace, "--format", "xls", "-o", "-"], ["export", trace]):
            run = remat(*bad)
            expect(run.returncode == 2 and len(run.stderr.strip().splitlines()) == 1, "%s: %s" % (bad, run.stderr))


def documented(tmp):
    """docs/report.md: the tables and columns it tells of are those of the file; each of its five queries answers what the trace says."""
    page = open(os.path.join(HERE, "..", "..", "docs", "report.md"), encoding="utf-8").read()
    trace, plan = TRACES[0], TRACES[0].replace("gpt.json", "gpt.plan.json")
    out = os.path.join(tmp, "doc.db")
    expect(remat("export", trace, plan, "--format", "sqlite", "-o", out).returncode == 0, "sqlite")
    db = sqlite3.connect(out)
    told = {t: re.findall(r"`(\w+)`", columns) for t, columns in re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", page, re.M)}
    there = {t: [r[1] for r in db.execute("PRAGMA table_info(%s)" % t)] for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    expect(told == there, "the schema of docs/report.md is %s, the file's %s" % (told, there))
    queries = re.findall(r'^sqlite3 -header gpt.db "(.*?)"$', page, re.S | re.M)
    expect(len(queries) == 5, "%d example queries" % len(queries))
    kinds, again, held, phases, lines = (db.execute(q).fetchall() for q in queries)
    with open(trace) as f:
        tr = json.load(f)
    with open(plan) as f:
        steps = json.load(f)["steps"]
    ops = tr["ops"]
    peak = json.loads(remat("plan", trace, "--limit", "100%", "--solver", "none", "--json").stdout)["baseline_peak_bytes"]
    expect(abs(sum(k[2] for k in kinds) * 2 ** 20 - peak) < 1 and kinds[0][0] == "activations", "the first query: %s of %d" % (kinds, peak))
    ms, times = {}, {}
    for s in steps:
        if "replay" in s:
            o = ops[s["replay"]]
            ms[o["name"]] = ms.get(o["name"], 0) + o["ns"] / 1e6
            times[o["name"]] = times.get(o["name"], 0) + 1
    best = sorted(ms.values(), reverse=True)[:5]
    expect([round(a[2], 6) for a in again] == [round(b, 6) for b in best] and all(times[a[0]] == a[1] for a in again), "the second: %s" % again)
    gaps, before = [], {}
    for o in ops:
        for b in sorted(set(o["reads"] + o["writes"] + o["rmw"] + o["side"])):
            if b in before:
                gaps.append(tr["buffers"][b]["bytes"] * (o["id"] - before[b]))
            before[b] = o["id"]
    expect([a[1] * a[2] for a in held] == sorted(gaps, reverse=True)[:5], "the third: %s" % held)
    want = {p: (len([o for o in ops if o["phase"] == p]), round(sum(o["ns"] for o in ops if o["phase"] == p) / 1e6, 6)) for p in {o["phase"] for o in ops}}
    expect({p: (n, round(t, 6)) for p, n, t in phases} == want, "the fourth: %s" % phases)
    made = {}
    for b in tr["buffers"]:
        if b["born"] >= 0:
            site = tr["sites"][ops[b["born"]]["site"]] if "site" in ops[b["born"]] else None
            made[site] = made.get(site, 0) + b["bytes"] / 2 ** 20
    expect([round(x[1], 6) for x in lines] == [round(v, 6) for v in sorted(made.values(), reverse=True)[:5]], "the fifth: %s" % lines)
    db.close()


def main():
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        drawn = os.path.join(tmp, "t.json")
        with open(drawn, "w") as f:
            json.dump(gen_graph.graph(random.Random(5), 40), f)
        documented(tmp)
        for trace in [drawn] + [t for t in TRACES if os.path.exists(t)]:
            one_trace(trace)
    print("export: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
