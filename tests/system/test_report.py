#!/usr/bin/env python3
"""remat report: the page's own numbers agree with the judge of plans; in headless Chromium it draws itself without an error
on the console, light and dark, wide and narrow, and answers the keyboard."""
import html.parser
from html import unescape as html_unescape
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gen_graph  # noqa: E402

REMAT = os.path.join(os.environ.get("B", os.path.join(HERE, "..", "..", "build")), "remat")
EXAMPLE = os.path.join(HERE, "..", "..", "docs", "example")

# Pressed in the page, after it has drawn itself; the answers stand in the title, which --dump-dom shows.
KEYS = """<script>
(() => {
  const said = [], box = document.getElementById('chart'), read = document.getElementById('read');
  const press = (key) => box.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  const say = (what) => said.push(what + '=' + read.innerText.split('\\n')[0]);
  const view = () => box.querySelector('path').getAttribute('d');
  press('Home'); say('home'); press('ArrowRight'); say('right'); press('p'); say('peak'); press('r'); press('r'); say('replay');
  press('o'); say('origin');
  const whole = view(); press('+'); said.push('zoomed=' + (view() !== whole)); press('0'); said.push('back=' + (view() === whole));
  document.querySelectorAll('[data-replay]')[0].click(); say('table');
  const bad = [...box.querySelectorAll('path')].filter((p) => /NaN|Infinity/.test(p.getAttribute('d'))).length;
  said.push('bad=' + bad, 'paths=' + box.querySelectorAll('path').length, 'rects=' + box.querySelectorAll('rect').length);
  said.push('wide=' + (document.documentElement.scrollWidth > window.innerWidth));
  said.push('legend=' + document.getElementById('legend').innerText.replace(/\\n/g, ', '));
  document.body.append(Object.assign(document.createElement('pre'), { id: 'said', textContent: said.join('|') }));
  THROW
})();
</script>"""


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


def chromium():
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return found


def browse(browser, path, width, dark):
    run = subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
                          "--window-size=%d,900" % width, "--virtual-time-budget=2000", "--dump-dom",
                          "--user-data-dir=" + os.path.join(os.path.dirname(path), "profile"),
                          "--blink-settings=preferredColorScheme=%d" % (0 if dark else 1), "file://" + path],
                         capture_output=True, text=True, timeout=120)
    console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    said = re.search(r'<pre id="said">(.*?)</pre>', run.stdout, re.S)
    answers = dict(a.split("=", 1) for a in html_unescape(said.group(1)).split("|")) if said else {}
    return console, answers


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
        if judged:
            expect((line["peak"], line["ns"]) == (judged["peak_bytes"], judged["ns"]), "schedule %d is not as judged" % k)
            expect(len([r for r in line["run"] if r[0]]) == judged["replays"], "replays of schedule %d" % k)
            expect(len([c for c in line["copies"] if c[3]]) == judged["offloads"], "copies of schedule %d" % k)
    return data


def main():
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    browser = chromium()
    with tempfile.TemporaryDirectory() as tmp:
        # a drawn trace, with names that try to leave where they stand
        drawn, plan, page = (os.path.join(tmp, n) for n in ("t.json", "p<1>&\".json", "r.html"))
        tr = gen_graph.graph(random.Random(5), 60)
        tr["ops"][0]["name"] = "</script><b>\\"
        tr["meta"]["model"] = "<i>model"
        tr["sites"] = ["train.py:12 forward < libtorch.so+0x12 < </td>"]
        for op in tr["ops"]:
            op["site"] = 0
        json.dump(tr, open(drawn, "w"))
        base = json.loads(remat("plan", drawn, "--limit", "100%", "--solver", "none", "--json").stdout)
        limit = (base["floor_bytes"] + 2 * base["baseline_peak_bytes"]) // 3
        run = remat("plan", drawn, "--limit", str(limit), "--time-limit", "8" if os.environ.get("SAN") else "1", "--offload", "-o", plan)
        expect(run.returncode == 0, run.stderr)
        run = remat("report", drawn, plan, "-o", page)
        expect(run.returncode == 0, run.stderr)
        check_data(drawn, [plan], page)
        text = open(page).read()
        expect("p&lt;1&gt;&amp;&quot;.json" in text and "p<1>" not in text and "<i>model" not in text, "a name is not escaped")
        expect("<em>train.py:12 forward</em>" in text, "no Python line")
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
        if not browser:
            print("no Chromium: the page was not opened")
            return 77
        source = open(example).read()
        asks = os.path.join(tmp, "asks.html")
        open(asks, "w").write(source.replace("</body>", KEYS.replace("THROW", "") + "</body>"))
        for width, dark in ((1280, False), (500, True)):
            console, said = browse(browser, asks, width, dark)
            expect(not console, "the console says: %s" % console)
            expect(said.get("bad") == "0" and int(said["paths"]) > 4 and int(said["rects"]) > 100, "the chart: %s" % said)
            expect("op 0 " in said["home"] and "op 1 " in said["right"], "arrow keys: %s" % said)
            expect("148 MiB" in said["peak"] and "replay of op" in said["replay"], "p and r: %s" % said)
            op = re.search(r"replay of (op \d+) ", said["replay"]).group(1)
            expect(op + " " in said["origin"] and "run again at" in said["origin"], "o: %s" % said)
            expect(said["zoomed"] == said["back"] == "true" and "replay of op" in said["table"], "zoom, table: %s" % said)
            expect(said["wide"] == "false", "the page is wider than a window of %d" % width)
            expect(all(w in said["legend"] for w in ("activations", "native", "limit", "forward", "an op runs again")), said["legend"])
        # the drawn page holds what breaks careless scripts
        console, _ = browse(browser, page, 1280, False)
        expect(not console, "the console says: %s" % console)
        # this test would see an error
        open(asks, "w").write(source.replace("</body>", KEYS.replace("THROW", "nothing.there();") + "</body>"))
        console, _ = browse(browser, asks, 1280, False)
        expect(any("nothing is not defined" in line for line in console), "errors on the console are not seen")
    print("report: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
