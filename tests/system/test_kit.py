#!/usr/bin/env python3
"""The kit for those who study, against the command: formats, schemas, the second judge, solvers of one's own.

The Python package accepts and refuses the files that the command does, with the same line and, where it is no syntax error, the same words;
remat.verify judges random plans as `remat check` does; the schemas hold for every good file of the tree and say what is wrong with broken ones;
a solver of one's own (exec:CMD, a Python function) is asked by plan, sweep and run, and each way to fail has its answer."""
import argparse
import contextlib
import glob
import importlib.util
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", ".."))
PACKAGE = os.path.join(TOP, "offline", "python")
sys.path[:0] = [HERE, PACKAGE]
import gen_graph  # noqa: E402
import harness  # noqa: E402
import remat  # noqa: E402

REMAT = harness.REMAT
GOLDEN, CORPUS = os.path.join(TOP, "tests", "golden"), os.path.join(TOP, "tests", "corpus")
TRACE, PLAN = os.path.join(GOLDEN, "mlp.json"), os.path.join(GOLDEN, "mlp.plan.json")
# what jansson and Python call broken JSON is told in other words, some at the other end of the word
SYNTAX = {"plan_truncated", "plan_empty", "trace_bad_utf8", "trace_deep", "trace_duplicate_key", "trace_empty", "trace_huge_number", "trace_infinite_number",
          "trace_not_json", "trace_nul_byte", "trace_trailing_text", "trace_truncated", "trace_truncated_in_string"}
# faults that lie between two entries, which no schema sees
BETWEEN = re.compile("trace_(born|cycle|dies|duplicate|operand|read_and|read_out|reads_itself|site_without|wrong_id)")


def call(*args, env=None, **how):
    return subprocess.run([REMAT, *args], capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=PACKAGE, **(env or {})), **how)


def traces():
    return [TRACE, os.path.join(TOP, "docs", "example", "gpt.json"), *sorted(glob.glob(os.path.join(CORPUS, "pytorch", "*.xz")))]


def same_places():
    """One broken file after another: the command's answer and the package's."""
    n = 0
    for path in sorted(glob.glob(os.path.join(CORPUS, "*.json"))):
        name = os.path.basename(path)[:-5]
        if name.startswith("instance"):
            continue
        is_plan = name.startswith("plan_")
        r = call("check", *([TRACE, path] if is_plan else [path, PLAN]))
        said = r.stderr.strip()[len("remat: "):]
        try:
            (remat.Plan if is_plan else remat.Trace).load(path)
        except remat.BadFile as e:
            mine = str(e)
            assert e.line > 0 and e.column > 0 and mine.startswith(path), mine
        else:
            raise AssertionError("%s: the package takes what the command refuses: %s" % (name, said))
        line = re.match(re.escape(path) + r":(\d+):\d+: ", said)
        assert r.returncode == 2 and line, (name, r)
        assert mine == said if name not in SYNTAX else mine.startswith("%s:%s:" % (path, line.group(1))), "%s\n command %s\n package %s" % (name, said, mine)
        n += 1
    assert n > 50, n
    return n


def same_traces():
    for path in traces():
        t = remat.Trace.load(path)
        meta = remat.places.Document.load(path).root["meta"]
        assert (t.peak_bytes, t.persistent_bytes, t.total_ns) == tuple(meta[k] for k in ("peak_bytes", "persistent_bytes", "total_ns")), path
        again = remat.Trace.parse(t.dumps())
        assert again.to_json() == t.to_json(), path


def same_verdicts(tmp):
    """Random plans, good and bad, before the two judges in the tree, and the one outside of it where it is."""
    judge = None
    path = os.path.join(os.environ.get("REMAT_SHARED", ""), "verify_plan.py")
    if os.path.exists(path):
        spec = importlib.util.spec_from_file_location("verify_plan", path)
        judge = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(judge)
    good = bad = 0
    reasons = set()
    tpath, ppath = os.path.join(tmp, "t.json"), os.path.join(tmp, "p.json")
    for seed in range(harness.so_many(200, test=25)):
        rng = random.Random(seed)
        tr = gen_graph.graph(rng)
        with open(tpath, "w") as f:
            json.dump(tr, f)
        t = remat.Trace.load(tpath)
        for turn in range(5):
            plan = gen_graph.plan(tr, rng, chaos=rng.choice([0, 0, 0.02, 0.3]))
            with open(ppath, "w") as f:
                json.dump(plan, f)
            p = remat.Plan.load(ppath)
            mine = remat.simulate(t, p).to_json()
            if judge and t.total_ns:
                want = judge.verify(tr, plan)
                assert mine == want, "seed %d turn %d:\n judge   %s\n package %s" % (seed, turn, want, mine)
            if turn == 0 or not judge:
                said = json.loads(call("check", tpath, ppath).stdout)
                assert mine == said, "seed %d turn %d:\n command %s\n package %s" % (seed, turn, said, mine)
            good, bad = good + mine["ok"], bad + (not mine["ok"])
            if not mine["ok"]:
                reasons.add(" ".join(w for w in mine["error"].split() if not any(c.isdigit() for c in w)))
    assert good > 20 and bad > 20 and len(reasons) >= 10, (good, bad, reasons)
    r = subprocess.run([sys.executable, "-m", "remat.verify", TRACE, PLAN], capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert r.returncode == 0 and r.stdout == call("check", TRACE, PLAN).stdout and not r.stderr, r
    r = subprocess.run([sys.executable, "-m", "remat.verify", TRACE, PLAN, "--limit", "10%"], capture_output=True, text=True,
                       env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert r.returncode == 1 and r.stdout == call("check", TRACE, PLAN, "--limit", "10%").stdout, r
    return good, bad


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def against(schema, v, at="$"):
    """What is wrong with v, of the words that our schemas use; None: nothing. An unknown word is an error of the schema's."""
    unknown = set(schema) - {"$schema", "$id", "title", "description", "default", "type", "const", "enum", "minimum", "maximum", "required",
                             "properties", "additionalProperties", "minProperties", "maxProperties", "items"}
    assert not unknown, unknown
    if "const" in schema and v != schema["const"]:
        return at + ": is not " + schema["const"]
    if "enum" in schema and v not in schema["enum"]:
        return at + ": is none of the words"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    number = isinstance(v, (int, float)) and not isinstance(v, bool)
    if kinds and not any(number and (k == "number" or v == int(v)) if k in ("number", "integer") else isinstance(v, TYPES[k]) for k in kinds):
        return "%s: is no %s" % (at, " or ".join(kinds))
    if number and not schema.get("minimum", v) <= v <= schema.get("maximum", v):
        return at + ": is too small or too large"
    if isinstance(v, dict):
        for k in schema.get("required", []):
            if k not in v:
                return "%s: has no %s" % (at, k)
        if not schema.get("minProperties", 0) <= len(v) <= schema.get("maxProperties", len(v)):
            return at + ": has too few or too many members"
        for k, x in v.items():
            inner = schema.get("properties", {}).get(k)
            if inner is None and schema.get("additionalProperties") is False:
                return "%s: %s is unknown" % (at, k)
            wrong = against(inner, x, "%s.%s" % (at, k)) if inner else None
            if wrong:
                return wrong
    if isinstance(v, list) and "items" in schema:
        for i, x in enumerate(v):
            wrong = against(schema["items"], x, "%s[%d]" % (at, i))
            if wrong:
                return wrong
    return None


def schema(name):
    with open(os.path.join(PACKAGE, "remat", "schemas", name + ".schema.json")) as f:
        return json.load(f)


def schemas_hold():
    trace, plan = schema("opgraph-1"), schema("plan-1")
    for path in traces():
        wrong = against(trace, remat.places.Document.load(path).root)
        assert not wrong, (path, wrong)
    for path in (PLAN, os.path.join(TOP, "docs", "example", "gpt.plan.json")):
        wrong = against(plan, remat.places.Document.load(path).root)
        assert not wrong, (path, wrong)
    for path in sorted(glob.glob(os.path.join(CORPUS, "*.json"))):
        name = os.path.basename(path)[:-5]
        if name.startswith("instance") or name in SYNTAX:
            continue
        wrong = against(plan if name.startswith("plan_") else trace, remat.places.Document.load(path).root)
        assert wrong or BETWEEN.match(name), "%s: the schema finds nothing wrong" % name
    with open(os.path.join(TOP, "docs", "formats.md"), encoding="utf-8") as f:
        page = f.read()
    for text in re.findall(r"^```json\n(.*?)^```$", page, re.S | re.M):
        assert not against(trace, json.loads(text)), text
        remat.Trace.parse(text, "docs/formats.md")
    with open(os.path.join(TOP, "docs", "tutorial.md"), encoding="utf-8") as f, open(os.path.join(TOP, "docs", "example", "mine.py"), encoding="utf-8") as g:
        assert re.findall(r"^```python\n(.*?)^```$", f.read(), re.S | re.M) == [g.read()], "docs/tutorial.md does not show docs/example/mine.py"
    for name, keys in (("opgraph-1", trace["properties"]["ops"]["items"]["properties"]), ("plan-1", plan["properties"]), ("stats", schema("stats")["required"])):
        for key in keys:
            assert "`%s`" % key in page, "docs/formats.md says nothing of %s (%s)" % (key, name)


KEEP_ALL = """import json, os, sys
t = json.load(sys.stdin)
if t["meta"]["peak_bytes"] > int(os.environ["REMAT_LIMIT_BYTES"]):
    sys.exit(3)
print(json.dumps({"format": "plan-1", "steps": [{"op": i} for i in range(len(t["ops"]))]}))
"""
MINE = """import remat
def solve(trace, limit_bytes, *, seconds, seed, offload):
    print("a word that is no plan")
    if trace.peak_bytes <= limit_bytes:
        return [("op", i) for i in range(len(trace.ops))]
def seven(trace, limit_bytes, **how):
    return 7
def over(trace, limit_bytes, **how):
    return [("op", i) for i in range(len(trace.ops))]
def ours(trace, limit_bytes, *, seconds, seed, offload):
    with open(%r, "a") as f:
        print(limit_bytes, seconds, len(trace.ops), file=f)
    return remat.plan(trace, limit_bytes, "mincut", seconds=1)
"""


def waited_s():
    """Seconds since the system began in which some process waited for a processor."""
    try:
        with open("/proc/pressure/cpu") as f:
            return int(f.read().split("total=")[1].split()[0]) / 1e6
    except OSError:
        return 0.0


def own_solvers(tmp):
    keep, mine = os.path.join(tmp, "keep.py"), os.path.join(tmp, "mine.py")
    for path, text in ((keep, KEEP_ALL), (mine, MINE % os.path.join(tmp, "asked"))):
        with open(path, "w") as f:
            f.write(text)
    py = sys.executable
    own = "exec:%s %s" % (py, keep)
    out = os.path.join(tmp, "p.json")
    # the graph that is handed over is the trace's: another solver finds the same plan in it
    seen = os.path.join(tmp, "seen.json")
    for path in (TRACE, os.path.join(TOP, "docs", "example", "gpt.json"), os.path.join(CORPUS, "pytorch", "unet.json.xz")):
        call("plan", path, "--limit", "100%", "--solver", "exec:cat >%s; exit 3" % seen)
        a, b = remat.Trace.load(path), remat.Trace.load(seen)
        assert (a.peak_bytes, a.total_ns, a.persistent_bytes, a.buffers, a.sites) == (b.peak_bytes, b.total_ns, b.persistent_bytes, b.buffers, b.sites), path
        assert [(o.name, *map(sorted, (o.reads, o.writes, o.rmw, o.side)), o.opaque, o.phase, o.site) for o in a.ops] == [
            (o.name, *map(sorted, (o.reads, o.writes, o.rmw, o.side)), o.opaque, o.phase, o.site) for o in b.ops], path
    # every way to answer
    good = call("plan", TRACE, "--limit", "100%", "--solver", own, "--json", "-o", out)
    said = json.loads(good.stdout)
    assert good.returncode == 0 and said["solver"] == own and said["overhead"] == 0, good
    assert remat.check(TRACE, out).ok and remat.Plan.load(out).trace == remat.Trace.load(TRACE).sha256
    for command, code, words in (("exit 3", 3, "found no plan"), ("exit 7", 1, "ended with status 7"), ("kill -9 $$", 1, "signal 9"),
                                 ("cat", 1, ":1:1: is a trace"), ("echo '{'", 1, ":2:0: "), ("true", 1, ":1:0: "), ("nothing-of-that-name", 1, "no such command"),
                                 ("echo '{\"format\": \"plan-1\", \"steps\": [{\"op\": 1}]}'", 1, "step 0: op 1 out of order, expected 0"),
                                 ("echo '{\"format\": \"plan-1\", \"steps\": [{\"op\": 0}, {\"offload\": 0}]}'", 1, "step 1: copies to the host were not allowed"),
                                 ("%s -m remat.solver %s:over" % (py, mine), 1, "over limit"),
                                 ("%s -m remat.solver %s:solve" % (py, mine), 3, "found no plan"),
                                 ("%s -m remat.solver %s:seven" % (py, mine), 1, "mine.py:seven: a solver returns a Plan"),
                                 ("%s -m remat.solver %s:nobody" % (py, mine), 1, "has no function nobody")):
        r = call("plan", TRACE, "--limit", "80%", "--no-offload", "--solver", "exec:" + command, "-o", out + "x")
        assert r.returncode == code and words in r.stderr and not os.path.exists(out + "x"), (command, r)
    assert call("plan", TRACE, "--limit", "80%", "--solver", "exec:").returncode == 2
    asked = call("plan", TRACE, "--limit", "80%", "--time-limit", "2.5", "--seed", "9", "--offload", "--solver",
                 "exec:echo $REMAT_LIMIT_BYTES $REMAT_TIME_LIMIT_S $REMAT_SEED $REMAT_OFFLOAD >&2; exit 3", env={"REMAT_SEED": "3"})
    assert asked.stderr.split("\n")[0] == "%d 2.5 9 1" % int(0.8 * remat.Trace.load(TRACE).peak_bytes), asked
    # one that does not answer is ended, with what it started, after 5.2 s of the wall's clock, which stands still only while a machine is busy
    began, waited = time.monotonic(), waited_s()
    late = call("plan", TRACE, "--limit", "80%", "--time-limit", "0.1", "--solver", "exec:sleep 6007 | sleep 6007", env={"REMAT_PLAN_CLOCK": "busy"})
    assert late.returncode == 3 and "had not answered in 5.2 s" in late.stderr and time.monotonic() - began < 12 + waited_s() - waited, late
    assert subprocess.run(["pgrep", "-f", "sleep 6007"], capture_output=True).returncode, "a solver that was ended has left a process"
    # in a table
    rows = json.loads(call("sweep", TRACE, "--limits", "100%,80%", "--solvers", "dtr," + own, "--no-offload", "--json").stdout)["rows"]
    assert [(r["solver"], r["feasible"]) for r in rows] == [("dtr", True), (own, True), ("dtr", True), (own, False)], rows
    quoted = own + ' "a" b'
    told = call("sweep", TRACE, "--limits", "100%", "--solvers", quoted, "--csv").stdout
    assert '"' + quoted.replace('"', '""') + '"' in told, told
    # from Python, in this process and by the command
    spec = importlib.util.spec_from_file_location("mine", mine)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    t = remat.load(TRACE)
    rows = remat.sweep(t, ["100%", "80%"], ["dtr", module.ours, module.solve])
    assert [(r.solver, r.feasible) for r in rows] == [(s, x) for x in (True, False) for s in ("dtr", "ours", "solve")][:5] + [("solve", False)] or \
        [r.feasible for r in rows] == [True] * 5 + [False], rows
    assert rows[0].overhead == rows[2].overhead == 0 and rows[4].overhead > 0
    for solver, error in ((module.solve, remat.Infeasible), (module.over, remat.Failed), ("exec:exit 7", remat.Failed), ("exec:exit 3", remat.Infeasible)):
        try:
            remat.plan(t, "80%", solver)
        except error:
            continue
        raise AssertionError("%s has a plan" % solver)
    return mine


def own_solver_of_a_run(tmp, mine):
    """A program under a limit whose plans a Python function makes: asked with the run's limit, followed, and the numbers are the program's own."""
    cmd, asked = ["mlp", "--iters", "24", "--batch", "4096", "--print-loss"], os.path.join(tmp, "asked")
    native = harness.run(cmd)
    if os.path.exists(asked):
        os.unlink(asked)
    run = harness.run(cmd, remat=["--limit", "30M", "--solver", "exec:%s -m remat.solver %s:ours" % (sys.executable, mine)],
                      env={"PYTHONPATH": PACKAGE, "REMAT": REMAT}, planner=harness.OWN_PLANNER)
    got = run.stats
    wrong = against(schema("stats"), got)
    assert not wrong, (wrong, run.err)
    assert run.rc == 0 and run.losses and run.losses == native.losses, run.err
    with open(asked) as f:
        questions = [line.split() for line in f]
    assert questions and all(0 < int(q[0]) <= 30 << 20 and float(q[1]) > 0 and int(q[2]) > 10 for q in questions), questions
    assert got["iterations_enforced"] > 3 and got["replays"] > 0 and got["verify_failed"] == 0, got
    # one that never answers is asked once: nothing else would be answered sooner
    run = harness.run(["mlp", "--iters", "8", "--batch", "4096", "--print-loss"], remat=["--limit", "30M", "--policy", "plan", "--solver",
                      "exec:echo >>%s; sleep 6008.%d" % (asked, os.getpid())], planner=harness.OWN_PLANNER)
    with open(asked) as f:
        assert run.rc == 0 and run.losses == native.losses[:8] and len(f.readlines()) == len(questions) + 1, run.err
    assert "not answered in" in run.err, run.err
    # ended with the planner that had asked, and not only the shell
    assert subprocess.run(["pgrep", "-f", "sleep 6008.%d" % os.getpid()], capture_output=True).returncode, "a solver has outlived its run"
    bad = subprocess.run([REMAT, "run", "--limit", "30M", "--solver", "exe:x", "--", "true"], capture_output=True, text=True)
    assert bad.returncode == 125, bad


def benchmark_lines(tmp, mine):
    """paper.py add and take: lines of a solver into the table; one that fails makes none, and says so."""
    here = os.path.join(TOP, "offline", "benchmark")
    spec = importlib.util.spec_from_file_location("paper", os.path.join(here, "paper.py"))
    paper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(paper)
    paper.HERE, paper.MADE, paper.RESULTS = tmp, os.path.join(tmp, "made"), os.path.join(tmp, "results.tsv")

    def add(solver, traces="torch-unet-small,vgg11-b64", name=None):
        return paper.add(argparse.Namespace(solver=solver, name=name, seconds=None, traces=traces))

    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet):
        assert add("dtr") == 0 and add("%s:ours" % mine, name="ours") == 0, quiet.getvalue()
        rows = paper.read_results()
        assert [(r["instance"], r["solver"], r["overhead"] is not None, r["bound"]) for r in rows if r["limit_percent"] == 70] == [
            ("torch-unet-small", "dtr", True, None), ("torch-unet-small", "ours", True, None), ("vgg11-b64", "dtr", False, float("inf")),
            ("vgg11-b64", "ours", False, float("inf"))], rows
        for bad, words in (("exec:exit 7", "status 7"), ("%s:over" % mine, "over limit"), ("nix", 'no solver "nix"'), ("%s:seven" % mine, "returns a Plan")):
            assert add(bad) == 1 and paper.read_results() == rows and words in quiet.getvalue(), (bad, quiet.getvalue())
        assert paper.take() == 1  # nothing is there
        os.makedirs(paper.MADE, exist_ok=True)
        changed = [dict(r, overhead=0.5) for r in rows if r["instance"] == "torch-unet-small" and r["solver"] == "dtr"]
        paper.write_results(changed, os.path.join(paper.MADE, "results.tsv"))
        assert paper.take() == 0
    assert [r["overhead"] for r in paper.read_results()] == [0.5 if r in [dict(c, overhead=r["overhead"]) for c in changed] else r["overhead"] for r in rows]
    with open(os.path.join(tmp, "README.md"), encoding="utf-8") as f:
        page = f.read()
    assert "| torch-unet-small | 70 % |  | 50.00 (" in page and "| vgg11-b64 | 70 % | none exists | - (" in page, page
    try:
        add("dtr", traces="nix")
    except SystemExit as e:
        assert "no trace 'nix'" in str(e), e
    else:
        raise AssertionError("a trace that is not there has lines")
    with contextlib.redirect_stdout(quiet):
        t = paper.Table("a table", "of a test")
    t.cell("r", "c", 1.0, 1.02, 0.01)
    t.cell("r", "c", 1.0, 0.5, 0.01, better=True)
    t.cell("r", "c", "none", 1.0)
    assert len(t.differs) == 2 and t.rows == 3, t.differs


def main():
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    os.environ["REMAT"] = REMAT
    with tempfile.TemporaryDirectory() as tmp:
        print("%d broken files, the same places" % same_places())
        same_traces()
        print("%d good and %d bad plans judged alike" % same_verdicts(tmp))
        schemas_hold()
        mine = own_solvers(tmp)
        own_solver_of_a_run(tmp, mine)
        benchmark_lines(tmp, mine)
    print("kit: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
