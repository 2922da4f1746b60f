#!/usr/bin/env python3
"""remat report: the page's own numbers agree with the judge of plans, with its units fitting; backward ops are tied to their forward ops, labels are
those of the models; in headless Chromium it draws itself without an error on the console, light and dark, wide and narrow (480 px), on paper, is
legible, answers the keyboard and the pointer, keeps its state in its address, and opens 20,000 ops in seconds."""
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
MARKS = """(() => { /* colours of all marks in the chart, and of the legend; blocks are pixels, so the kinds of tensors seen stand for them */
  const of = (root) => [...document.querySelectorAll(root + ' [style]')].filter((e) => getComputedStyle(e).display !== 'none')
    .map((e) => (/(?:fill|stroke|background|border-color):([^;]+)/.exec(e.getAttribute('style').replace(/\\s/g, '')) || [])[1]).filter((c) => c && !/soft/.test(c));
  const seen = new Set(geo.ids);
  return { chart: [...new Set([...of('#chart'), ...[...seen].filter((b) => b >= 0).map((b) => `var(--${VARS[D.bufs[b][1]]})`)])], legend: [...new Set(of('#legend'))] };
})()"""
# Text that is hard to read: smaller than 11 px, or with less than 4.5:1 of contrast (WCAG 2 AA) to what lies behind it.
ILLEGIBLE = """(() => {
  const rgb = (c) => c.match(/[\\d.]+/g).map(Number), bad = [];
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const band = (e) => { const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2; /* what is painted last below it */
    return [...document.querySelectorAll('#chart rect, #price rect')].filter((q) => { const b = q.getBoundingClientRect(); return b.x <= x && b.right >= x && b.y <= y && b.bottom >= y && !q.closest('clipPath'); }).pop(); };
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('script, style, noscript, #asked') || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const r = e.getBoundingClientRect(), s = getComputedStyle(e), svg = e.tagName === 'text';
    if (!r.width || !r.height) continue;
    const under = svg && band(e), a = light(rgb(svg ? s.fill : s.color)), b = light(under ? rgb(getComputedStyle(under).fill) : behind(e));
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05), out = !e.closest('.scroll, .tree') && r.right > innerWidth + 1;
    if (parseFloat(s.fontSize) < 10.9 || contrast < 4.5 || out)
      bad.push(`${e.tagName}.${e.className.baseVal ?? e.className} "${e.textContent.slice(0, 30)}" ${s.fontSize} ${contrast.toFixed(2)} ${r.right.toFixed(0)}`);
  }
  return [...new Set(bad)];
})()"""
CUT = "[...document.querySelectorAll('.scroll, .tree')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.scrollWidth + ' in ' + e.clientWidth)"
READ = "document.getElementById('read').innerText"
SHAPE = "[...document.querySelectorAll('#chart text')].map((e) => e.textContent).join()"
ROWS = "[...document.querySelectorAll('#tree tbody tr')].map((r) => [...r.cells].map((c) => c.innerText.trim()))"


def expect(ok, what):
    if not ok:
        print("FAILED: %s" % (what,))
        sys.exit(1)


def figure(v, units):
    """As the page writes it: three figures in the unit that fits."""
    unit, size = next((u for u in units if v >= u[1]), units[-1])
    x = v / size
    return "%.*f %s" % (0 if size <= 1 or x >= 99.95 else 1 if x >= 9.995 else 2, x, unit)


def mem(v):
    return figure(v, [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)])


def ms(v):
    return figure(v, [("s", 1e9), ("ms", 1e6), ("\u00b5s", 1e3), ("ns", 1)])


def units_fit(text, what):
    for v, unit in re.findall(r"(?<![\w.])([\d.]+) ([KMGT]?i?B|[m\u00b5n]?s)(?!\w)", text):
        expect(float(v) < 1024 and (float(v) >= 1 or unit in ("B", "ns") or float(v) == 0) and len(v.replace(".", "").lstrip("0")) <= 4, what + "a unit that does not fit: %s %s" % (v, unit))


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
                 "a tensor is evicted", "the op told of below", "its original, or its forward op"):
        expect(word in legend, what + "%s is not in the legend: %s" % (word, legend))
    # ---- units, each as it fits
    text = b.ask("document.querySelector('main').innerText")
    units_fit(text, what)
    expect({"KiB", "MiB"} <= set(re.findall(r"\d ([KMGT]?i?B)\b", text)) and {"ms", "\u00b5s"} <= set(re.findall(r"\d ([mµn]?s)\b", text)), what + "units of one kind alone")
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
    expect(op.group(1) + " " in read() and "run again before" in read(), what + "o: " + read())
    # the replay's time is a link back to it, reached by Tab and followed by Enter
    b.press("Tab")
    expect(b.ask("document.activeElement.closest('#read') !== null"), what + "Tab from the chart into what it tells")
    b.press("Enter")
    expect("replay of " + op.group(1) in read() and "first ran as" in read(), what + "Enter on a link: " + read())
    b.ask("document.getElementById('chart').focus()")
    b.press("Home", "d")
    gone = re.search(r"evicted before it: tensor \d+, [\d.]+ [KM]iB, made by (op \d+)(, rebuilt before)?", read())
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
    if dark == (size == 480): # they look at nothing that the other two would show otherwise
        tensors(b, what)
        groups(b, what)
    # ---- the other schedule: native alone has no limit, no replays, and the plan's line over it
    b.ask("document.querySelectorAll('#pick input')[0].click()")
    legend = b.ask("document.getElementById('legend').innerText")
    expect("gpt.plan.json, in all" in legend and "runs again" not in legend, what + "native: " + legend)
    marks = b.ask(MARKS)
    expect(set(marks["chart"]) <= set(marks["legend"]), what + "native: no legend for %s" % (set(marks["chart"]) - set(marks["legend"])))
    b.ask("document.querySelector('[data-replay]').click()")
    expect("replay of op" in read(), what + "from the table to the replay: " + read())
    # ---- backward is tied to forward
    b.ask("document.getElementById('chart').focus()")
    b.press("End", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft")
    tied = re.search(r"backward of (op \d+) ", read())
    expect(tied, what + "no forward op: " + read())
    b.press("o")
    expect(read().startswith(tied.group(1) + " ") and "(forward" in read(), what + "o to the forward op: " + read())
    # ---- on paper it is light, whole and without what only a screen has
    b.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
    b.ask("dispatchEvent(new Event('beforeprint')), new Promise((r) => requestAnimationFrame(() => r(0)))")
    expect(b.ask("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 250)" and not b.ask(ILLEGIBLE), what + "on paper: %s" % b.ask(ILLEGIBLE))
    b.ask("dispatchEvent(new Event('afterprint'))")
    b.look(size, dark=dark)
    expect(not b.console, what + "the console says: %s" % b.console)
    expect(all(u.startswith(("file:", "data:")) for u in b.fetched), what + "fetched: %s" % b.fetched)


def at_pixel(b):
    """A pixel of the chart within a block of several rows, and the tensor there: (x, y of the window, tensor, bytes)."""
    return b.ask("""(() => { box.scrollIntoView({ block: 'center' }); const r = box.getBoundingClientRect(), { ids, pw, ph, dpr, L, T } = geo;
      for (let x = pw >> 2; x < pw; x += 7) for (let y = 2; y < ph - 2; y++) { const b = ids[y * pw + x];
        if (b >= 0 && D.bufs[b][2] >= 0 && [-1, 1].every((d) => ids[(y + d) * pw + x] === b && ids[y * pw + x + d] === b))
          return [r.x + L + (x + .5) / dpr, r.y + T + (y + .5) / dpr, b, D.bufs[b][0]]; } })()""")


def tensors(b, what):
    """A block tells its tensor and stack while it is pointed at; a click keeps it; up and down go from block to block."""
    read = lambda: b.ask("document.querySelectorAll('#read > div')[1].innerText")  # noqa: E731
    wait = lambda: b.ask("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(0))))")  # noqa: E731
    b.ask("document.getElementById('ztall').click()")
    x, y, tensor, size = at_pixel(b)
    b.point(x, y)
    wait()
    expect("tensor %d, %s" % (tensor, mem(size)) in read() and "made by op" in read() and "gpt+0x" in read(), what + "a block pointed at: " + read())
    b.point(x, y, click=True)
    b.point(x + 40, y + 60)
    wait()
    expect("tensor %d, " % tensor in read() and b.ask("document.querySelector('#read .kept') !== null"), what + "a click keeps: " + read())
    b.ask("document.getElementById('chart').focus()")
    b.press("ArrowDown")
    down = re.match(r"tensor (\d+), ", read())
    expect(down and int(down.group(1)) != tensor, what + "ArrowDown: " + read())
    b.press("ArrowUp")
    expect(read().startswith("tensor %d, " % tensor), what + "ArrowUp: " + read())
    b.press("Escape")
    expect(not b.ask("document.querySelector('#read .kept') !== null"), what + "Escape lets go")
    b.ask("document.getElementById('ztall').click()")


def groups(b, what):
    """Groups sum up to the peak, fold, sort, are searched and marked, by keyboard too."""
    b.ask("document.querySelector('#by input[value=kind]').click()")
    by_kind = {r[0].lstrip("\u25b8\u25be"): r[1:3] for r in b.ask(ROWS)}
    for line, column in ((0, 0), (1, 1)):
        said = b.ask("[native, line()][%d].kinds.slice([native, line()][%d].top * USES.length, ([native, line()][%d].top + 1) * USES.length)" % (line, line, line))
        said = list(said.values()) if isinstance(said, dict) else said
        for name, v in zip(b.ask("USES"), said):
            expect(name in by_kind and by_kind[name][column] == mem(v) or not v, what + "%s: %s in the groups, %s in the chart" % (name, by_kind.get(name), mem(v)))
    b.ask("document.querySelector('#by input[value=kernel]').click()")
    sizes = lambda: b.ask("rows.map((r) => r.n.native)")  # noqa: E731
    expect(sizes() == sorted(sizes(), reverse=True) and len(sizes()) > 5, what + "the largest group first: %s" % sizes())
    b.ask("document.querySelector('#tree [data-by=name]').click()")
    names = [r[0].lstrip("\u25b8\u25be").strip() for r in b.ask(ROWS)]
    expect(names == sorted(names, key=str.lower) and b.ask("document.querySelector('#tree [aria-sort=ascending]').innerText").startswith("group"), what + "sorted by name: %s" % names)
    b.ask("document.querySelector('#find').focus()")
    b.press(*"gemm")
    expect({r[0].lstrip("\u25b8\u25be").strip() for r in b.ask(ROWS)} == {n for n in names if "gemm" in n}, what + "find: %s" % b.ask(ROWS))
    b.press(*"xyzzy")
    expect(not b.ask(ROWS) and "Nothing" in b.ask("document.getElementById('treehint').innerText"), what + "find nothing")
    b.ask("document.querySelector('#find').value = '', document.querySelector('#find').oninput(), document.querySelector('#tree tr[tabindex=\"0\"]').focus()")
    n = len(b.ask(ROWS))
    b.press("ArrowDown", "ArrowRight")
    expect(len(b.ask(ROWS)) > n and "tensor" in b.ask(ROWS)[2][0], what + "ArrowRight unfolds: %s" % b.ask(ROWS)[:4])
    b.press("ArrowLeft")
    expect(len(b.ask(ROWS)) == n, what + "ArrowLeft folds")
    b.press("Enter")
    expect(b.ask("group !== null && group.some((x) => x) && !group.every((x) => x)") and b.ask("document.querySelector('#tree tr.lit') === document.activeElement"), what + "Enter marks")
    b.press("Enter")
    expect(b.ask("group === null"), what + "Enter unmarks")
    b.ask("document.querySelector('#when input[value=here]').click(), go(3), new Promise((r) => setTimeout(r, 200))")
    expect("op 3 " in b.ask("document.getElementById('treehint').innerText") and b.ask("root.native") == b.ask("native.run[native.first[line().run[3][1]]][3]"), what + "groups at the op pointed at")
    b.ask("document.querySelector('#when input[value=peak]').click(), document.querySelector('#by input').click()")
    units_fit(b.ask("document.getElementById('tree').innerText"), what + "groups: ")


def state(b, page):
    """A view is in the address; an address that asks for nonsense is a page all the same."""
    b.look(1280)
    b.open("about:blank") # an address that differs in what follows its # alone is no other page
    b.open("file://" + page + "#line=0&op=5&from=0&to=50&tensor=100&by=kind&find=act")
    expect("op 5 " in b.ask(READ) and "tensor 100, " in b.ask(READ) and b.ask("[S.line, S.lo, S.hi]") == [0, 0, 50] and len(b.ask(ROWS)) == 1, "a view from its address: %s" % b.ask(READ))
    b.ask("document.getElementById('chart').focus()")
    b.press("ArrowRight")
    expect(b.ask("new Promise((r) => setTimeout(() => r(location.hash), 600))").startswith("#line=0&run=6&from=0&to=50&tensor=100&by=kind"), "the address keeps the view: %s" % b.ask("location.hash"))
    b.open("about:blank")
    b.open("file://" + page + "#line=99&run=-4&from=9&to=2&tensor=1e9&by=constructor&find=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    expect(not b.console and b.ask("document.images.length") == 0 and b.ask("[S.line, S.lo, S.by]") == [1, 0, "module"], "a hostile address: %s" % b.console)


def large(b, tmp):
    """20,000 ops: seconds of the browser's processor time to open, next to none to go on."""
    trace, plan, page = (os.path.join(tmp, n) for n in ("big.json", "big.plan.json", "big.html"))
    subprocess.run([sys.executable, os.path.join(HERE, "..", "bench", "gen_blocks.py"), "20000", trace], check=True)
    expect(remat("plan", trace, "--limit", "100%", "--solver", "none", "-o", plan).returncode == 0, "a plan of 20,000 ops")
    expect(remat("report", trace, plan, "-o", page, "--time-limit", "0").returncode == 0, "a page of 20,000 ops")
    b.look(1280)
    b.call("Performance.enable", timeDomain="threadTicks")
    spent = lambda: next(m["value"] for m in b.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")  # noqa: E731
    b.open("file://" + page)
    took = spent()
    expect(took < 3, "20,000 ops took %.1f s of a processor to open" % took)
    expect(b.ask("new Set(geo.ids).size") > 100 and not b.console, "20,000 ops: nothing drawn: %s" % b.console)
    b.ask("document.getElementById('chart').focus()")
    b.press("ArrowRight", "ArrowUp", "+", "-")
    expect(spent() - took < 2 and "tensor" in b.ask(READ), "20,000 ops: four keys took %.1f s of a processor" % (spent() - took))
    print("report: 20,000 ops, %.1f MB, %.2f s of a processor to open, four keys %.2f s" % (os.path.getsize(page) / 1e6, took, spent() - took))
    b.call("Performance.disable")


def of_pytorch(b, tmp):
    """PyTorch's own kernel names and lines: the tensors of the peak are told by the lines of the model, and nothing is too wide for 480 px."""
    trace, plan, page = (os.path.join(tmp, n) for n in ("gpt.json", "gpt.plan.json", "gpt.html"))
    with lzma.open(os.path.join(HERE, "..", "corpus", "pytorch", "gpt.json.xz")) as packed, open(trace, "wb") as f:
        f.write(packed.read())
    run = remat("plan", trace, "--limit", "80%", "--solver", "dtr", "-o", plan)
    expect(run.returncode == 0, run.stderr)
    expect(remat("report", trace, plan, "-o", page, "--time-limit", "0").returncode == 0, "report of PyTorch's GPT")
    data = check_data(trace, [plan], page)
    for size, dark in ((480, False), (1280, True)):
        b.look(size, dark=dark)
        b.open("file://" + page)
        rows = b.ask("[...document.querySelectorAll('table')].pop().querySelectorAll('td.w').length")
        told = b.ask("[...document.querySelectorAll('table')].pop().innerText")
        expect(rows >= 15 and len(re.findall(r"models/nets\.py:\d+ \w+\.forward", told)) > 10 and "_call_impl" not in told, "lines of the model: %s" % told[:600])
        # modules within modules, backward under them too
        tree = [r[0] for r in b.ask(ROWS)]
        expect(any("Model" in n or "GPT" in n for n in tree) and b.ask("[...root.kids.values()].some((k) => k.native > root.native / 2 && k.name !== OUTSIDE)"), "modules: %s" % tree)
        expect(b.ask("D.ops.every((o, i) => o[1] !== 1 || /forward/.test(siteOf(i).py.map((f) => f.name).join()) || o[4] >= 0)"), "a backward op without a line of the model")
        expect(not b.ask(ILLEGIBLE) and not b.ask(CUT), "%d px: %s %s" % (size, b.ask(ILLEGIBLE), b.ask(CUT)))
        b.ask("document.getElementById('chart').focus()")
        b.press("Home", "r")
        expect(re.search(r"\S+\.py:\d+ \w+\.forward", b.ask(READ)), "the line of a replayed op: %s" % b.ask(READ))
        expect(not b.console, "the console says: %s" % b.console)
        # C++ kernels and C++ frames as people write them
        for what, text in (("the page", b.ask("document.querySelector('main').innerText")), ("what the chart tells", b.ask(READ))):
            expect("at::native::" in text and not re.search(r"\b_Z[A-Z]", text), "%d px: symbols in %s: %s" % (size, what, re.findall(r"\b_Z\w+", text)[:2]))
    top, uses = at_peak(data), data["uses"]
    expect(top[uses.index("activations")] > sum(top) / 2 and all(top[uses.index(k)] > 0 for k in ("parameters", "workspaces")), "kinds at GPT's peak: %s" % top)


def in_browser(example, drawn, tmp):
    b = browser.Browser(os.path.join(tmp, "profile"))
    try:
        for size, dark in ((1280, False), (480, True), (480, False), (1280, True)):
            b.look(size, dark=dark)
            b.open("file://" + example)
            use(b, size, dark)
        state(b, example)
        of_pytorch(b, tmp)
        large(b, tmp)
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
        b.ask("document.querySelectorAll('#legend li')[0].remove()")
        marks = b.ask(MARKS)
        expect(not set(marks["chart"]) <= set(marks["legend"]), "a missing legend is not seen")
    finally:
        b.close()


def at_peak(data, k=0):
    """Bytes by kind while the run with the most memory runs."""
    line, now, run = data["lines"][k], [0] * len(data["uses"]), 0
    top = max(range(len(line["run"])), key=lambda i: line["run"][i][3])
    for e in line["mem"]:
        if e < 0:
            if run == top:
                return now
            run += 1
        else:
            now[data["bufs"][e >> 1][1]] += -data["bufs"][e >> 1][0] if e & 1 else data["bufs"][e >> 1][0]


def data_of(path):
    text = open(path).read()
    return text, json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))


def check_memory(data, line, what):
    """Each run's memory is that of the tensors in memory, but for a replay's scratch; each is allocated and freed in turn."""
    live, total, run = set(), 0, 0
    for e in line["mem"]:
        if e < 0:
            rest = line["run"][run][3] - total
            expect(rest == 0 or rest > 0 and line["run"][run][0], "%s: run %d has %d bytes, its tensors %d" % (what, run, line["run"][run][3], total))
            run += 1
            continue
        b = e >> 1
        expect((b in live) == bool(e & 1), "%s: tensor %d is %s twice" % (what, b, "freed" if e & 1 else "allocated"))
        (live.remove if e & 1 else live.add)(b)
        total += -data["bufs"][b][0] if e & 1 else data["bufs"][b][0]
    expect(run == len(line["run"]), "%s: runs in the events of memory" % what)


def check_data(trace, plans, path):
    text, data = data_of(path)
    page = Page()
    page.feed(text)
    expect(not page.open, "left open: %s" % page.open)
    expect("http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", text), "an address in the page")
    tr = json.load(open(trace))
    ops = data["ops"]
    expect([o[2] for o in ops] == [o["ns"] for o in tr["ops"]] and [[x[0], x[2]] for x in data["bufs"]] == [[x["bytes"], x["born"]] for x in tr["buffers"]], "ops and tensors")
    expect(all(ops[o[4]][1] == 0 if o[1] == 1 and o[4] >= 0 else o[4] == -1 for o in ops), "ties lead from backward to forward")
    expect(len(data["lines"]) == len(plans) + 1, "schedules")
    for k, line in enumerate(data["lines"]):
        judged = json.loads(remat("check", trace, plans[k - 1]).stdout) if k else None
        expect(max(r[3] for r in line["run"]) == line["peak"], "peak of schedule %d" % k)
        check_memory(data, line, "schedule %d" % k)
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
            expect([d[0], d[2], d[3]] == [what, at, back], "schedule %d: eviction %s, rebuilt by run %d" % (k, d, back))
        expect(next(drops, None) is None, "evictions of schedule %d" % k)
        if judged:
            expect((line["peak"], line["ns"]) == (judged["peak_bytes"], judged["ns"]), "schedule %d is not as judged" % k)
            expect(len([r for r in line["run"] if r[0]]) == judged["replays"], "replays of schedule %d" % k)
            expect(len([c for c in line["copies"] if c[3]]) == len([w for _, kind, w in runs if kind == "offload" and
                   tr["buffers"][w]["bytes"]]), "copies of schedule %d" % k)
            row = re.search(r"<tr><td>%s.*?</tr>" % re.escape(html.escape(os.path.basename(plans[k - 1]))), text, re.S).group(0)
            for said in (mem(judged["peak_bytes"]), ms(judged["ns"]), "%.2f %%" % (100 * judged["overhead"]), ">%d<" % judged["replays"], ">%d<" % judged["offloads"]):
                expect(said in row, "schedule %d: %s is not in its row: %s" % (k, said, row))
    return data


def check_prices(trace, plan, page):
    """The curve falls from the floor to the program's own memory, a plan's limit among its rows with the price that the judge gives it."""
    text, data = data_of(page)
    judged, price = json.loads(remat("check", trace, plan).stdout), data["price"]
    limits = [p[0] for p in price["at"]]
    expect(limits[0] >= data["lines"][0]["peak"] and limits == sorted(limits, reverse=True) and limits[-1] >= price["floor"] and price["at"][0][1] == 0, "limits: %s" % price)
    table = re.search(r'id="price".*?</table>', text, re.S).group(0)
    now = re.search(r'<tr class="now">.*?</tr>', table, re.S).group(0)
    expect(mem(data["lines"][1]["limit"]) in now and "%.2f \u00d7" % (1 + judged["overhead"]) in now and "today\u2019s limit: gpt.plan.json" in now, "today's limit: %s" % now)
    for limit, overhead in price["at"]:
        expect("<td>%s</td><td>%.0f %%</td><td>%s</td>" % (mem(limit), 100 * limit / limits[0], "no plan found" if overhead is None else "%.2f \u00d7" % (1 + overhead)) in table,
               "the price of %s: %s" % (mem(limit), table))
    expect(mem(price["floor"]) in table and "the floor" in table, "the floor")


BENCHMARK = os.path.join(HERE, "..", "..", "offline", "benchmark", "traces")


def ties(tmp):
    """Ops called x_backward belong to ops called x, in the reverse order: as autograd goes. All of five models'."""
    page = os.path.join(tmp, "ties.html")
    for model in ("bert_base-b32", "gpt2_small-b16", "resnet50-b128", "unet-b32", "mobilenet_v2-b256"):
        expect(remat("report", os.path.join(BENCHMARK, model + ".json.xz"), "-o", page, "--time-limit", "0").returncode == 0, model)
        data = data_of(page)[1]
        name, forward, judged = [data["names"][o[0]] for o in data["ops"]], {}, 0
        for i, o in enumerate(data["ops"]):
            if o[1] == 0:
                forward.setdefault(name[i], []).append(i)
        for i, o in enumerate(data["ops"]):
            base = name[i][:-len("_backward")]
            if o[1] == 1 and name[i].endswith("_backward") and base in forward:
                expect(forward[base] and o[4] == forward[base].pop(), "%s: op %d %s is tied to op %d %s" % (model, i, name[i], o[4], name[o[4]]))
                judged += 1
        expect(judged > 30, "%s: only %d ops judged" % (model, judged))


def labels(tmp):
    """Records of an H100, older than the labels of today: parameters are as many bytes as the models have, gradients and Adam's states twice that, each phase comes once."""
    page, mib = os.path.join(tmp, "labels.html"), 1 << 20
    for model, parameters, states in (("gpt2-b8-bf16", 124439808, 2), ("bert-b32-bf16", 109514298, 2), ("vit-b64-bf16", 86567656, 2), ("resnet50-b64-fp32", 25557032, 1)):
        expect(remat("report", os.path.join(BENCHMARK, "h100-%s.json.xz" % model), "-o", page, "--time-limit", "0").returncode == 0, model)
        data = data_of(page)[1]
        held = {u: 0 for u in data["uses"]}
        for size, use_, *_ in data["bufs"]:
            held[data["uses"][use_]] += size
        phases = [o[1] for o in data["ops"]]
        expect(phases == sorted(phases) and set(phases) == {0, 1, 2}, "%s: phases" % model)
        expect(abs(held["parameters"] / (4 * parameters) - 1) < 0.03, "%s: %d MiB of parameters" % (model, held["parameters"] / mib))
        expect(abs(held["gradients"] / (8 * parameters) - 1) < 0.03, "%s: %d MiB of gradients, of this iteration and the one before" % (model, held["gradients"] / mib))
        expect(4 * parameters * states * 0.97 < held["optimizer state"] < 4 * parameters * states + 40 * mib, "%s: %d MiB of states" % (model, held["optimizer state"] / mib))


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
        run = remat("report", drawn, plan, mixed, "-o", page, "--time-limit", "0")
        expect(run.returncode == 0, run.stderr)
        data = check_data(drawn, [plan, mixed], page)
        expect([bool(x["copies"]) for x in data["lines"]] == [False, True, True] and any(r[0] for r in data["lines"][2]["run"]) and
               any(d[3] >= 0 for d in data["lines"][2]["drops"]), "drops, replays, copies")
        text = open(page).read()
        expect(text.count("<h2>Largest tensors</h2>") == 1 and "In memory at the peak" in text, "the largest tensors")
        expect("p&lt;1&gt;&amp;&quot;.json" in text and "p<1>" not in text and "<i>model" not in text, "a name is not escaped")
        expect('<em title="train.py">train.py:12 forward</em>' in text, "no Python line")
        expect('<em title="/home/u/env/lib/python3.11/site-packages/torch/nn/functional.py">torch/nn/functional.py:2 linear</em>' in text and
               "module.py:1 " not in text.split('id="data"')[0], "PyTorch's lines")
        expect("\\u003c/script>\\u003cb>" in text and "</script><b>" not in text and text.count("<script") == text.count("</script>") == 2, "a kernel's name is not escaped")
        expect(data["price"] is None and 'id="price"' not in text, "no curve is asked for")
        for bad in (["report", drawn], ["report", drawn, drawn, "-o", page], ["report", drawn, "-o", page, "--time-limit", "soon"]):
            run = remat(*bad)
            expect(run.returncode == 2 and len(run.stderr.strip().splitlines()) == 1, "%s: %s" % (bad, run.stderr))
        example = os.path.join(tmp, "example.html")
        trace, plan = os.path.join(EXAMPLE, "gpt.json"), os.path.join(EXAMPLE, "gpt.plan.json")
        expect(remat("report", trace, plan, "-o", example, "--time-limit", "2").returncode == 0, "the example")
        data = check_data(trace, [plan], example)
        uses = data["uses"]
        top = at_peak(data)
        expect(top[uses.index("activations")] > sum(top) / 2, "at the peak of the example activations are most")
        expect({uses[x[1]] for x in data["bufs"] if x[0]} >= {"parameters", "gradients", "optimizer state"}, "the example's kinds")
        expect("<summary>6 ops</summary>" in open(example).read() and "<summary>6 tensors</summary>" in open(example).read(), "what is alike is one row")
        check_prices(trace, plan, example)
        workspaces(tmp)
        ties(tmp)
        labels(tmp)
        if not browser.find():
            print("no Chromium: the page was not opened")
            return 77
        in_browser(example, page, tmp)
    print("report: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
