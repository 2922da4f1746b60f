#!/usr/bin/env python3
"""remat export and remat report: every format is read back and says what the trace and the judge of plans say."""
import html.parser
import json
import os
import pickle
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import xml.dom.minidom

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gen_graph  # noqa: E402

REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
TRACE = os.path.join(os.environ.get("REMAT_SHARED", ""), "traces", "vgg11-b64.json")


def remat(*args):
    return subprocess.run([REMAT] + list(args), capture_output=True, text=True)


def expect(ok, what):
    if not ok:
        print("FAILED: %s" % (what,))
        sys.exit(1)


class Page(html.parser.HTMLParser):
    """Tags that must close, closed in order; nothing fetched from elsewhere."""
    VOID = {"meta", "br", "!doctype"}

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], {}

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        expect(not any(k in ("src", "href") for k, _ in attrs), "the page fetches something: %s" % (attrs,))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1

    def handle_endtag(self, tag):
        expect(self.open and self.open.pop() == tag, "</%s> closes nothing" % tag)


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


def main():
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        trace = TRACE
        if not os.path.exists(trace):
            trace = os.path.join(tmp, "t.json")
            with open(trace, "w") as f:
                json.dump(gen_graph.graph(random.Random(5), 40), f)
        tr = json.load(open(trace))
        base = json.loads(remat("plan", trace, "--limit", "100%", "--solver", "none", "--json").stdout)
        plan = os.path.join(tmp, "p<1>.json")  # a name that needs escaping
        limit = (base["floor_bytes"] + 2 * base["baseline_peak_bytes"]) // 3
        run = remat("plan", trace, "--limit", str(limit), "--time-limit", "1", "--offload", "--json", "-o", plan)
        expect(run.returncode == 0, run.stderr)
        made = json.loads(run.stdout)
        for args, peak in (([trace], base["peak_bytes"]), ([trace, plan], made["peak_bytes"])):
            out = os.path.join(tmp, "o")
            expect(remat("export", *args, "--format", "perfetto", "-o", out).returncode == 0, "perfetto")
            ev = json.load(open(out))["traceEvents"]
            expect(max(e["args"]["bytes"] for e in ev if e["ph"] == "C") == peak, "perfetto: memory counter")
            ops = [e for e in ev if e["ph"] == "X" and e["tid"] == 1]
            expect(len([e for e in ops if e["cat"] != "replay"]) == len(tr["ops"]), "perfetto: ops")
            expect(all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in zip(ops, ops[1:])), "perfetto: ops overlap")
            expect(remat("export", *args, "--format", "memory-viz", "-o", out).returncode == 0, "memory-viz")
            expect(remat("export", *args, "--format", "memory-viz", "-o", out + ".json").returncode == 0, "memory-viz json")
            snap = pickle.load(open(out, "rb"))
            expect(snap == json.load(open(out + ".json")), "memory-viz: pickle and JSON differ")
            top, left = peak_of(snap["device_traces"][0])
            expect(top == peak, "memory-viz: peak %d, not %d" % (top, peak))
            expect(left == sum(s["total_size"] for s in snap["segments"]), "memory-viz: what is left")
            expect(remat("export", *args, "--format", "sqlite", "-o", out).returncode == 0, "sqlite")
            db = sqlite3.connect(out)
            one = lambda q: db.execute(q).fetchone()[0]  # noqa: E731
            expect(one("SELECT count(*) FROM ops") == len(tr["ops"]), "sqlite: ops")
            expect(one("SELECT sum(ns) FROM ops") == sum(o["ns"] for o in tr["ops"]), "sqlite: time")
            expect(one("SELECT count(*) FROM buffers") == len(tr["buffers"]), "sqlite: buffers")
            expect(one("SELECT max(use_bytes) FROM steps") <= peak, "sqlite: steps")
            db.close()
            expect(remat("export", *args, "--format", "dot", "-o", out).returncode == 0, "dot")
            dot = open(out).read()
            expect(dot.count("fillcolor=") == len(tr["ops"]) and dot.count("{") == dot.count("}") == 1, "dot: nodes")
        page = os.path.join(tmp, "r.html")
        run = remat("report", trace, plan, "-o", page)
        expect(run.returncode == 0, run.stderr)
        text = open(page).read()
        p = Page()
        p.feed(text)
        expect(not p.open, "left open: %s" % p.open)
        expect(p.tags["svg"] == 2 and p.tags["path"] == 2 and p.tags["circle"] == 2, "charts: %s" % p.tags)
        expect("p&lt;1&gt;.json" in text and "p<1>" not in text, "a name is not escaped")
        for svg in re.findall(r"<svg.*?</svg>", text, re.S):
            doc = xml.dom.minidom.parseString(svg)
            for path in doc.getElementsByTagName("path"):
                d = path.getAttribute("d")
                ys = [float(y) for y in re.findall(r"V([-0-9.]+)", d)]
                xs = [float(x) for x in re.findall(r"H([-0-9.]+)", d)]
                expect(ys and 0 <= min(ys) and max(ys) <= 320 and xs == sorted(xs) and xs[-1] <= 960, "a line leaves the chart")
        for bad in (["export", trace, "--format", "xls", "-o", "-"], 
                    ["export", trace], ["report", trace], ["report", trace, trace, "-o", page]):
            run = remat(*bad)
            expect(run.returncode == 2 and len(run.stderr.strip().splitlines()) == 1, "%s: %s" % (bad, run.stderr))
    print("export and report: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
