#!/usr/bin/env python3
"""remat report: the page's own numbers agree with the judge of plans; in headless Chromium it draws itself without an error
on the console, light and dark, wide and narrow (480 px), is legible, and answers the keyboard and the pointer."""
import html.parser
import json
import lzma
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import browser  # noqa: E402
import gen_graph  # noqa: E402

REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
EXAMPLE = os.path.join(HERE, "..", "..", "docs", "example")

# What the page is asked, in its own words.
MARKS = """(() => { /* colours of all marks in the chart, and of the legend */
  const of = (root) => [...new Set([...document.querySelectorAll(root + ' [style]')].filter((e) => getComputedStyle(e).display !== 'none')
    .map((e) => (/(?:fill|stroke|background|border-color):([^;]+)/.exec(e.getAttribute('style').replace(/\\s/g, '')) || [])[1])
    .filter((c) => c && !/soft/.test(c)))];
  return { chart: of('#chart'), legend: of('#legend') };
})()"""
# Text that is hard to read: smaller than 11 px, or with less than 4.5:1 of contrast (WCAG 2 AA) to what lies behind it.
ILLEGIBLE = """(() => {
  const rgb = (c) => c.match(/[\\d.]+/g).map(Number), bad = [];
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const band = (e) => { const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2; /* what is painted last below it */
    return [...document.querySelectorAll('#chart rect')].filter((q) => { const b = q.getBoundingClientRect(); return b.x <= x && b.right >= x && b.y <= y && b.bottom >= y && !q.closest('clipPath'); }).pop(); };
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('script, style, noscript, #asked') || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const r = e.getBoundingClientRect(), s = getComputedStyle(e), svg = e.tagName === 'text';
    if (!r.width || !r.height) continue;
    const under = svg && band(e), a = light(rgb(svg ? s.fill : s.color)), b = light(under ? rgb(getComputedStyle(under).fill) : behind(e));
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05), out = !e.closest('.scroll') && r.right > innerWidth + 1;
    if (parseFloat(s.fontSize) < 10.9 || contrast < 4.5 || out)
      bad.push(`${e.tagName}.${e.className.baseVal ?? e.className} "${e.textContent.slice(0, 30)}" ${s.fontSize} ${contrast.toFixed(2)} ${r.right.toFixed(0)}`);
  }
  return [...new Set(bad)];
})()"""
CUT = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.scrollWidth + ' in ' + e.clientWidth)"
READ = "document.getElementById('read').innerText"
SHAPE = "document.querySelector('#chart path').getAttribute('d')"


def expect(ok, what):
    if not ok:
        print("FAILED: %s" % (what,))
        sys.exit(1)


class Page(html.parser.HTMLParser):
    """Tags that must close, closed in order; nothing fetched from elsewhere."""
    VOID = {"meta", "br", "link", "input", "!doctype"}

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], {}

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        expect(not any(k in ("src", "href") and not (v or "").startswith("data:") for k, v in attrs), "the page fetches: %s" % (attrs,))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        expect(self.open and self.open.pop() == tag, "</%s> closes nothing" % tag)


def remat(*args):
    return subprocess.run([REMAT] + list(args), capture_output=True, text=True)


def use(b, size, dark):
    """The example's page, used by keyboard and pointer in a window of that size."""
    what = "%d px%s: " % (size, ", dark" if dark else "")
    read = lambda: b.ask(READ)  # noqa: E731
    # ---- it is legible, and nothing is cut off
    expect(b.ask("document.documentElement.scrollWidth <= innerWidth") is True, what + "the page is wider than the window")
    expect(b.ask("matchMedia('(prefers-color-scheme: dark)').matches") is dark, what + "the scheme asked for")
    expect((b.ask("getComputedStyle(document.body).backgroundColor") != "rgb(251, 251, 250)") is dark, what + "the scheme's colours")
    expect(not b.ask(ILLEGIBLE), what + "hard to read: %s" % b.ask(ILLEGIBLE))
    expect(size > 600 or not b.ask(CUT), what + "tables wider than their boxes: %s" % b.ask(CUT))
    # ---- every colour drawn is told of, and its words are there
    marks = b.ask(MARKS)
    expect(len(marks["chart"]) > 8 and set(marks["chart"]) <= set(marks["legend"]), what + "no legend for %s" % (set(marks["chart"]) - set(marks["legend"])))
    legend = b.ask("document.getElementById('legend').innerText")
    for word in ("parameters", "gradients", "optimizer state", "activations", "native", "limit", "forward", "backward", "optimizer", "an op runs again",
                 "a tensor is evicted", "the op told of below", "its original"):
        expect(word in legend, what + "%s is not in the legend: %s" % (word, legend))
    # ---- units: one for memory, one for time
    text = b.ask("document.querySelector('main').innerText")
    expect(set(re.findall(r"\d ([KMGT]?i?B)\b", text)) == {"MiB"} and set(re.findall(r"\d ([mµn]?s)\b", text)) == {"ms"}, what + "units of more than one kind")
    # ---- the keyboard alone: Tab comes to the chart; hover, zoom, links
    for _ in range(20):
        b.press("Tab")
        if b.ask("document.activeElement.id") == "chart":
            break
    expect(b.ask("document.activeElement.id") == "chart", what + "Tab does not come to the chart")
    expect(b.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid", what + "the focus is not to be seen")
    b.press("Home")
    expect("op 0 " in read(), what + "Home: " + read())
    b.press("ArrowRight")
    expect("op 1 " in read(), what + "ArrowRight: " + read())
    b.press("p")
    expect("148 MiB" in read() and "native: 297 MiB" in read(), what + "p: " + read())
    whole = b.ask(SHAPE)
    b.press("+", "+")
    expect(b.ask(SHAPE) != whole, what + "+ does not zoom")
    b.press("-", "-")
    expect(b.ask(SHAPE) == whole, what + "- does not undo +")
    b.press("+", "0")
    expect(b.ask(SHAPE) == whole, what + "0 does not show all")
    b.press("r", "r")
    op = re.search(r"replay of (op \d+) ", read())
    expect(op and b.ask("document.getElementById('origin').style.display") == "", what + "r: " + read())
    b.press("o")
    expect(op.group(1) + " " in read() and "run again at" in read(), what + "o: " + read())
    # the replay's time is a link back to it, reached by Tab and followed by Enter
    b.press("Tab")
    expect(b.ask("document.activeElement.closest('#read') !== null"), what + "Tab from the chart into what it tells")
    b.press("Enter")
    expect("replay of " + op.group(1) in read() and "first ran at" in read(), what + "Enter on a link: " + read())
    b.ask("document.getElementById('chart').focus()")
    b.press("Home", "d")
    gone = re.search(r"evicted before it: buffer \d+, [\d.]+ MiB, made by (op \d+)(, rebuilt at)?", read())
    expect(gone, what + "d: " + read())
    b.ask("[...document.querySelectorAll('#read button')].find((e) => e.textContent === '%s').click()" % gone.group(1))
    expect(gone.group(1) + " " in read(), what + "from an eviction to its original: " + read())
    # ---- the pointer
    x, y, w, h = b.ask("(() => { document.getElementById('chart').scrollIntoView({ block: 'center' }); "
                       "const r = document.getElementById('chart').getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()")
    b.point(x + w * 0.3, y + h * 0.5)
    left = read()
    b.point(x + w * 0.7, y + h * 0.5)
    expect(read() != left and "(forward," in left and "(backward," in read(), what + "pointing: " + left + " / " + read())
    # ---- the other schedule: native alone has no limit, no replays, and the plan's line over it
    b.ask("document.querySelectorAll('#pick input')[0].click()")
    legend = b.ask("document.getElementById('legend').innerText")
    expect("gpt.plan.json, in all" in legend and "runs again" not in legend, what + "native: " + legend)
    marks = b.ask(MARKS)
    expect(set(marks["chart"]) <= set(marks["legend"]), what + "native: no legend for %s" % (set(marks["chart"]) - set(marks["legend"])))
    b.ask("document.querySelector('[data-replay]').click()")
    expect("replay of op" in read(), what + "from the table to the replay: " + read())
    expect(not b.console, what + "the console says: %s" % b.console)
    expect(all(u.startswith(("file:", "data:")) for u in b.fetched), what + "fetched: %s" % b.fetched)


def of_pytorch(b, tmp):
    """PyTorch's own kernel names and lines: the tensors of the peak are told by the lines of the model, and nothing is too wide for 480 px."""
    trace, plan, page = (os.path.join(tmp, n) for n in ("gpt.json", "gpt.plan.json", "gpt.html"))
    with lzma.open(os.path.join(HERE, "..", "corpus", "pytorch", "gpt.json.xz")) as packed, open(trace, "wb") as f:
        f.write(packed.read())
    run = remat("plan", trace, "--limit", "80%", "--solver", "dtr", "-o", plan)
    expect(run.returncode == 0, run.stderr)
    expect(remat("report", trace, plan, "-o", page).returncode == 0, "report of PyTorch's GPT")
    data = check_data(trace, [plan], page)
    for size, dark in ((480, False), (1280, True)):
        b.look(size, dark=dark)
        b.open("file://" + page)
        rows = b.ask("[...document.querySelectorAll('h2')].find((e) => e.textContent === 'Largest tensors').parentElement.querySelectorAll('table:last-of-type td.w').length")
        told = b.ask("[...document.querySelectorAll('table')].pop().innerText")
        expect(rows >= 15 and len(re.findall(r"models/nets\.py:\d+ \w+\.forward", told)) > 10 and "_call_impl" not in told, "lines of the model: %s" % told[:600])
        expect(not b.ask(ILLEGIBLE) and not b.ask(CUT), "%d px: %s %s" % (size, b.ask(ILLEGIBLE), b.ask(CUT)))
        b.ask("document.getElementById('chart').focus()")
        b.press("Home", "r")
        expect(re.search(r"from \S+\.py:\d+ ", b.ask(READ)), "the line of a replayed op: %s" % b.ask(READ))
        expect(not b.console, "the console says: %s" % b.console)
        # C++ kernels and C++ frames as people write them
        for what, text in (("the page", b.ask("document.querySelector('main').innerText")), ("what the chart tells", b.ask(READ))):
            expect("at::native::" in text and not re.search(r"\b_Z[A-Z]", text), "%d px: symbols in %s: %s" % (size, what, re.findall(r"\b_Z\w+", text)[:2]))
    top = max(data["lines"][0]["run"], key=lambda r: r[3])[4:]
    uses = data["uses"]
    expect(top[uses.index("activations")] > sum(top) / 2 and all(top[uses.index(k)] > 0 for k in ("parameters", "workspaces")), "kinds at GPT's peak: %s" % top)


def in_browser(example, drawn, tmp):
    b = browser.Browser(os.path.join(tmp, "profile"))
    try:
        for size, dark in ((1280, False), (480, True), (480, False), (1280, True)):
            b.look(size, dark=dark)
            b.open("file://" + example)
            use(b, size, dark)
        of_pytorch(b, tmp)
        # a page drawn from a trace that tries to break careless scripts
        b.open("file://" + drawn)
        expect(not b.console, "the console says: %s" % b.console)
        # this test would see an error, text that is too faint, a line without its legend
        bad = os.path.join(tmp, "bad.html")
        with open(example) as f, open(bad, "w") as g:
            g.write(f.read().replace("</body>", "<script>nothing.there();</script><p style='color:#ccc;background:#fff'>faint</p></body>"))
        b.look(1280)
        b.open("file://" + bad)
        expect(any("nothing is not defined" in line for line in b.console), "errors on the console are not seen")
        expect(any("faint" in line for line in b.ask(ILLEGIBLE)), "faint text is not seen")
        b.ask("document.querySelector('#legend li').remove()")
        marks = b.ask(MARKS)
        expect(not set(marks["chart"]) <= set(marks["legend"]), "a missing legend is not seen")
    finally:
        b.close()


def check_data(trace, plans, path):
    text = open(path).read()
    page = Page()
    page.feed(text)
    expect(not page.open, "left open: %s" % page.open)
    expect("http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", text), "an address in the page")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))
    tr = json.load(open(trace))
    expect(len(data["lines"]) == len(plans) + 1, "schedules")
    for k, line in enumerate(data["lines"]):
        judged = json.loads(remat("check", trace, plans[k - 1]).stdout) if k else None
        expect(max(r[3] for r in line["run"]) == line["peak"], "peak of schedule %d" % k)
        expect(all(sum(r[4:]) == r[3] and min(r[4:]) >= 0 for r in line["run"]), "kinds do not add up in schedule %d" % k)
        expect([r[1] for r in line["run"] if not r[0]] == list(range(len(tr["ops"]))), "ops of schedule %d" % k)
        ends = [r[2] for r in line["run"]]
        expect(ends == sorted(ends) and ends[-1] <= line["ns"] + 1, "times of schedule %d" % k)
        runs = [(s, *next(iter(s.items()))) for s in (json.load(open(plans[k - 1]))["steps"] if k else [])]
        at, drops = 0, iter(line["drops"])
        for i, (_, kind, what) in enumerate(runs):
            at += kind in ("op", "replay")
            if kind not in ("drop", "release"):
                continue
            back, j = -1, at # what makes it anew: the next replay that writes it, unless it is copied back before
            for _, later, w in runs[i + 1:]:
                op = tr["ops"][w] if later == "replay" else None
                if later == "fetch" and w == what or op and what in op["writes"] + op["rmw"]:
                    back = j if op else -1
                    break
                j += later in ("op", "replay")
            d = next(drops)
            expect([d[0], d[2], d[3], d[4], d[5]] == [what, at, tr["buffers"][what]["bytes"], tr["buffers"][what]["born"], back],
                   "schedule %d: eviction %s, rebuilt by run %d" % (k, d, back))
        expect(next(drops, None) is None, "evictions of schedule %d" % k)
        if judged:
            expect((line["peak"], line["ns"]) == (judged["peak_bytes"], judged["ns"]), "schedule %d is not as judged" % k)
            expect(len([r for r in line["run"] if r[0]]) == judged["replays"], "replays of schedule %d" % k)
            expect(len([c for c in line["copies"] if c[3]]) == len([w for _, kind, w in runs if kind == "offload" and
                   tr["buffers"][w]["bytes"]]), "copies of schedule %d" % k)
    return data


def workspaces(tmp):
    """A buffer between two kernels of one call of a library is a workspace; between two calls it is none."""
    def uses(sites):
        def op(i, reads, writes, phase):
            return {"id": i, "name": "k%d" % i, "phase": phase, "reads": reads, "writes": writes, "rmw": [], "side": [], "ns": 1000, "flops": 1, "bytes": 1,
                    "heavy": False, "random": False, "site": i}
        def buffer(i, born, dies, kind):
            return {"id": i, "bytes": 1 << 20, "born": born, "dies": dies, "kind": kind}
        tr = {"meta": {"format": "opgraph-1", "model": "m", "batch": 1, "cost_model": "c", "peak_bytes": 4 << 20, "persistent_bytes": 1 << 20, "total_ns": 3000,
                       "source": "s"},
              "buffers": [buffer(0, -1, None, "param"), buffer(1, 0, 2, "activation"), buffer(2, 1, 3, "activation"), buffer(3, 2, None, "activation")],
              "ops": [op(0, [0], [1], "fwd"), op(1, [1], [2], "fwd"), op(2, [2], [3], "bwd")], "sites": sites}
        path = os.path.join(tmp, "w.json")
        with open(path, "w") as f:
            json.dump(tr, f)
        run = remat("export", path, "--format", "sqlite", "-o", path + ".db")
        expect(run.returncode == 0, run.stderr)
        with sqlite3.connect(path + ".db") as db:
            return [r[0] for r in db.execute("SELECT use FROM buffers ORDER BY id")]
    tail = " < libblas.so+0x7 < gemm < m.py:3 f"
    expect(uses(["libblas.so+0x1" + tail, "libblas.so+0x2" + tail, "lib.so+1 < relu < m.py:3 f"])[1:3] == ["workspaces", "activations"], "a split product")
    expect(uses(["lib.so+0x1 < mul < m.py:3 f"] * 3)[1:3] == ["activations"] * 2, "one function called again and again")
    expect(uses(["a.so+0x1 < mul < m.py:3 f", "a.so+0x1 < add < m.py:3 f", "m.py:3 f"])[1:3] == ["activations"] * 2, "two functions on one line")


def main():
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        # a drawn trace, with names that try to leave where they stand
        drawn, plan, page = (os.path.join(tmp, n) for n in ("t.json", "p<1>&\".json", "r.html"))
        tr = gen_graph.graph(random.Random(5), 60)
        tr["ops"][0]["name"] = "</script><b>\\"
        tr["meta"]["model"] = "<i>model"
        site = "/home/u/env/lib/python3.11/site-packages/torch/nn/%s"
        tr["sites"] = [" < ".join(["libtorch.so+0x12", "</td>", site % "functional.py:2 linear", site % "modules/module.py:1 Module._call_impl",
                                   "train.py:12 forward"])]
        for op in tr["ops"]:
            op["site"] = 0
        json.dump(tr, open(drawn, "w"))
        expect(remat("plan", drawn, "--limit", "100%", "--solver", "none", "-o", plan).returncode == 0, "plan")
        copied, n = gen_graph.copies(tr, json.load(open(plan)))
        expect(n > 3, "only %d tensors to copy" % n)
        with open(plan, "w") as f:
            json.dump(copied, f)
        mixed = os.path.join(tmp, "mixed.json") # drops, replays and copies by chance
        with open(mixed, "w") as f:
            json.dump(gen_graph.plan(tr, random.Random(57), 0), f)
        run = remat("report", drawn, plan, mixed, "-o", page)
        expect(run.returncode == 0, run.stderr)
        data = check_data(drawn, [plan, mixed], page)
        expect([bool(x["copies"]) for x in data["lines"]] == [False, True, True] and any(r[0] for r in data["lines"][2]["run"]) and
               any(d[5] >= 0 for d in data["lines"][2]["drops"]), "drops, replays, copies")
        text = open(page).read()
        expect(text.count("<th>buffer</th>") == 1 and "in memory at the peak" in text, "the largest tensors")
        expect("p&lt;1&gt;&amp;&quot;.json" in text and "p<1>" not in text and "<i>model" not in text, "a name is not escaped")
        expect('<em title="train.py">train.py:12 forward</em>' in text, "no Python line")
        expect('<em title="/home/u/env/lib/python3.11/site-packages/torch/nn/functional.py">torch/nn/functional.py:2 linear</em>' in text and
               "module.py:1 " not in text.split('id="data"')[0], "PyTorch's lines")
        for bad in (["report", drawn], ["report", drawn, drawn, "-o", page]):
            run = remat(*bad)
            expect(run.returncode == 2 and len(run.stderr.strip().splitlines()) == 1, "%s: %s" % (bad, run.stderr))
        example = os.path.join(tmp, "example.html")
        trace, plan = os.path.join(EXAMPLE, "gpt.json"), os.path.join(EXAMPLE, "gpt.plan.json")
        expect(remat("report", trace, plan, "-o", example).returncode == 0, "the example")
        data = check_data(trace, [plan], example)
        uses = data["uses"]
        top = max(data["lines"][0]["run"], key=lambda r: r[3])[4:]
        expect(top[uses.index("activations")] > sum(top) / 2, "at the peak of the example activations are most")
        expect(all(max(r[4 + uses.index(k)] for r in data["lines"][0]["run"]) > 0 for k in ("parameters", "gradients", "optimizer state")),
               "the example's kinds")
        workspaces(tmp)
        if not browser.find():
            print("no Chromium: the page was not opened")
            return 77
        in_browser(example, page, tmp)
    print("report: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
