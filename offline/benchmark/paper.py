#!/usr/bin/env python3
"""Every table of README.md and of offline/literature, and the benchmark's own, made anew from the tree alone and held against what is printed.

    make paper [FAST=1] [TABLES=plans,demo,...]     at most 20 minutes on two cores; FAST=1: 4, and less of each table
    paper.py add SOLVER [--name NAME] [--seconds S] a solver's rows for the benchmark's table: a name of remat's, exec:CMD, or FILE.py:FUNCTION
    paper.py take                                   the benchmark's rows of the last `make paper` for those of results.tsv, which may hold old ones
    paper.py render                                 results.tsv as a table and a picture

What comes out is printed, and where it differs from what is printed; exit 1 where a table could not be made or a plan broke a rule. A figure that
was found within a time limit differs on a slower machine, so what is worse is told and no failure."""
import argparse
import concurrent.futures
import csv
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", ".."))
B = os.environ.get("B", os.path.join(TOP, "build"))
sys.path[:0] = [os.path.join(TOP, "tests", "system"), os.path.join(TOP, "offline", "python")]
import instances  # noqa: E402
import remat  # noqa: E402
from remat.draw import draw_sweep  # noqa: E402

REMAT = os.environ["REMAT"] = os.path.join(B, "remat")
os.environ["REMAT_PLAN_CLOCK"] = "busy"  # a solver's seconds last longer where other work has the processors
RESULTS = os.path.join(HERE, "results.tsv")
MADE = os.path.join(B, "paper")  # what `make paper` found, to be taken over or looked at
COLUMNS = ["instance", "limit_percent", "solver", "overhead", "bound", "seconds", "peak_bytes"]
LIMITS, SOLVERS, SECONDS = (70, 50), ("auto", "mincut", "anneal", "chain", "chen-greedy", "dtr"), {"auto": 3, "": 1}
FAST_SOLVERS = ("auto", "mincut", "chen-greedy", "dtr")
WORKERS = 2


def cpu_seconds():
    return sum(r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Table:
    """A table as it is printed against one that was made. Each row that is printed is made, or named: left out by FAST=1, or a fault; a table of which
    nothing can be made here says why in `note`."""

    def __init__(self, name, where):
        self.name, self.where, self.rows, self.differs, self.wrong, self.note = name, where, 0, [], [], ""
        self.printed, self.made, self.left_out = {}, set(), {}
        self.began, self.cpu = time.monotonic(), cpu_seconds()
        print("\n%s (%s)" % (name, where), flush=True)

    def cell(self, row, what, printed, found, tolerance=0.0, better=False):
        """Numbers agree within the tolerance; with `better`, less than what is printed agrees too. Words agree if they are the same."""
        self.rows += 1
        self.made.add(row)
        if isinstance(printed, str) or isinstance(found, str) or printed is None or found is None:
            same = printed == found
        else:
            same = abs(found - printed) <= tolerance + 1e-9 or better and found < printed
        if not same:
            self.differs.append("%s, %s: printed %s, here %s" % (row, what, printed, found))

    def fault(self, what, row=None):
        self.made.add(row)
        self.wrong.append(what)

    def expect(self, rows, left_out=()):
        """The rows that are printed; those of `left_out` are not made this time."""
        self.printed = dict.fromkeys(rows)
        self.left_out = dict.fromkeys(r for r in left_out if r in self.printed)

    def end(self):
        if not self.note.startswith("NOT REPRODUCED"):
            lacking = [r for r in self.printed if r not in self.made and r not in self.left_out]
            if lacking or not self.printed:
                self.fault("printed, and not made: " + ", ".join(lacking) if lacking else "no row of it is found in %s" % self.where)
            if self.left_out:
                self.note = "; ".join(x for x in (self.note, "left out by FAST=1: %d of %d rows" % (len(self.left_out), len(self.printed))) if x)
        print("  %d figures in %.0f s (%.0f s of a processor), %s%s" % (self.rows, time.monotonic() - self.began, cpu_seconds() - self.cpu, self.outcome(),
                                                                        "; " + self.note if self.note else ""))
        for line in self.differs:
            print("  differs: " + line)
        for line in self.wrong:
            print("  FAILED: " + line)
        sys.stdout.flush()
        return self

    def outcome(self):
        return "%d differ" % len(self.differs) if self.differs else "all as printed" if self.rows else "none made"


def page(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


def each(work, jobs):
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, jobs))


def ask(trace, limit, solver, seconds=0):
    """What remat plan says, its plan judged; seconds 0: the solver's own."""
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "p.json")
        args = [REMAT, "plan", trace, "--limit", limit, "--solver", solver, "--no-offload", "--json", "-o", out,
                *(["--time-limit", str(seconds)] if seconds else [])]
        r = subprocess.run(args, capture_output=True, text=True)
        if r.returncode not in (0, 3) or not r.stdout.strip():
            return {"feasible": False, "failed": r.stderr.strip() or "exit %d" % r.returncode}
        said = json.loads(r.stdout)
        if said["feasible"]:
            got = remat.check(trace, out)
            if not got.ok or got.peak_bytes > said["limit_bytes"]:
                said["failed"] = "the judge refuses it: " + (got.error or "over the limit")
        return said


def plans(fast):
    """Overhead at 50 and 35 % of the peak: README.md, and the same in offline/README.md."""
    t = Table("plans by auto, and what is proved", "README.md, offline/README.md")
    rows = re.findall(r"^\| (\w+ b\d+) \| (.*?) \|$", page("README.md"), re.M)
    if not set(rows) <= set(re.findall(r"^\| (\w+ b\d+) \| (.*?) \|$", page("offline", "README.md"), re.M)):
        t.differs.append("the two pages do not print the same table")
    jobs = [(name, pct, cells.split("|")[2 * k].strip(), cells.split("|")[2 * k + 1].strip()) for name, cells in rows for k, pct in enumerate((50, 35))]
    t.expect(["%s at %d %%" % j[:2] for j in jobs], ["%s at %d %%" % j[:2] for j in jobs if fast and j[1] != 50])
    jobs = [j for j in jobs if "%s at %d %%" % j[:2] not in t.left_out]
    by_name = {instances.name_of(p).replace("-b", " b"): p for p in instances.traces()}
    for (name, pct, bound, auto), r in zip(jobs, each(lambda j: ask(by_name[j[0]], "%d%%" % j[1], "auto"), jobs)):
        if r.get("failed"):
            t.fault("%s at %d %%: %s" % (name, pct, r["failed"]), "%s at %d %%" % (name, pct))
        elif r["feasible"]:
            t.cell("%s at %d %%" % (name, pct), "bound", float(bound) if bound[:1].isdigit() else bound, int(r["bound"] * 1e4 + 1e-6) / 100, 0.0101)
            t.cell("%s at %d %%" % (name, pct), "auto", float(auto) if auto[:1].isdigit() else auto, round(100 * r["overhead"], 2), 0.0051)
        else:
            floor = r["limit_bytes"] < r["floor_bytes"]
            t.cell("%s at %d %%" % (name, pct), "no plan", "none exists" if bound == "none exists" else bound, "below the floor" if floor else
                   "none exists" if r["proved_infeasible"] else "none found")
    return t.end()


def demo(fast):
    """make demo: programs on the simulated GPU."""
    t = Table("programs on the simulated GPU, at half their memory", "README.md, make demo")
    printed = {}
    workload = None
    for cells in re.findall(r"^\| (.*) \|$", page("README.md"), re.M):
        c = [x.strip(" *") for x in cells.split("|")]
        if len(c) == 6 and c[1] in ("native", "swap", "plan"):
            workload = c[0] or workload
            printed[workload, c[1]] = c[2], c[3], float(re.match(r"[0-9.]+", c[4]).group())
    workloads = list(dict.fromkeys(w for w, _ in printed))
    t.expect(["%s, %s" % k for k in printed], ["%s, %s" % k for k in printed if fast and k[0] != workloads[0]])
    chosen = workloads[:1] if fast else workloads
    runs = each(lambda w: subprocess.run([sys.executable, os.path.join(TOP, "tests", "system", "demo.py"), w], capture_output=True, text=True), chosen)
    for workload, run in zip(chosen, runs):
        if run.returncode:
            t.fault("make demo, %s: %s" % (workload, ((run.stderr.strip() or run.stdout.strip()).splitlines() or ["exit %d" % run.returncode])[-1]))
        for line in run.stdout.splitlines():
            m = re.match(r"\w*\s+(native|swap|plan)\s+(-|\d+ MiB)\s+(\d+ MiB)\s+([0-9.]+) ms", line)
            if not m:
                continue
            row, want = "%s, %s" % (workload, m.group(1)), printed.get((workload, m.group(1)), (None,) * 3)
            t.cell(row, "limit", want[0], m.group(2))
            t.cell(row, "peak", want[1], m.group(3))
            t.cell(row, "ms", want[2], float(m.group(4)), 0.03 * (want[2] or 0), better=True)
            if m.group(1) != "native" and "identical" not in line:
                t.fault(line)
    return t.end()


def literature(fast):
    """MOCCASIN's graphs: the table of offline/literature."""
    import test_moccasin
    t = Table("MOCCASIN's graphs", "offline/literature/README.md")
    short = 0.125 if fast else 1
    rows = {name: [c.strip() for c in cells.split("|")] for name, cells in re.findall(r"^\| (\w+_\d\d) \| (.*) \|$", page("offline", "literature", "README.md"), re.M)}
    with tempfile.TemporaryDirectory() as tmp:
        graphs = instances.moccasin_graphs(tmp, get=True)
        if not graphs:
            t.note = "NOT REPRODUCED: the graphs are their authors' (GPL-3.0) and cannot be got here: git clone %s, then make paper MOCCASIN=FOLDER" % instances.DATA_SET
            return t.end()
        t.expect(rows)
        names = [n for n in rows if n in graphs]
        fresh = dict(zip(names, each(lambda n: test_moccasin.both_ways(graphs[n], short), names)))
        os.makedirs(MADE, exist_ok=True)
        with open(os.path.join(MADE, "moccasin.md"), "w", encoding="utf-8") as f:  # the page's rows as they are here
            for name, (cells, cpu) in fresh.items():
                r = rows[name]
                f.write("| %s | %s |\n" % (name, " | ".join((*r[:3], cells[0], r[4], cells[1], *cpu))))
        for name, (cells, _) in fresh.items():
            for what, printed, found in (("given order", rows[name][3], cells[0]), ("any order", rows[name][5], cells[1])):
                number = re.match(r"[0-9.]+", printed)
                t.cell(name, what, float(number.group()) if number else printed, float(found.rstrip("*")) if found != "none" else found, 0.0051, better=True)
        t.note = "an eighth of the time limits: FAST=1" if fast else ""
    return t.end()


# rows of README.md's table, by test_models' names
MODELS = {"GPT, AdamW": "gpt", "GPT, fused attention, dropout, AdamW": "gpt-fused", "BERT, dropout, Adam": "bert", "ViT, fused AdamW": "vit", "Llama, AdamW": "llama",
          "ResNet-18, SGD with momentum": "resnet18", "U-Net, Adam": "unet", "LSTM, SGD, clipped gradients": "lstm", "MLP, Adagrad": "mlp"}
FAST_MODEL = "ViT, fused AdamW"  # the one that takes least


def pytorch(fast):
    """PyTorch's own host code on the simulated GPU: each model by itself, and by a plan."""
    t = Table("PyTorch on the simulated GPU", "README.md, make pytorch")
    printed = {r[0]: r[1:] for r in re.findall(r"^\| (.*?) \| ([0-9.]+) MiB \| ([0-9.]+) MiB \| ([0-9.]+) \|$", page("README.md"), re.M)}
    if set(printed) != set(MODELS):
        t.fault("README.md has the rows %s" % ", ".join(printed))
        return t.end()
    if not os.path.exists(os.path.join(B, "pytorch", "bin", "python")):
        t.note = "NOT REPRODUCED: PyTorch is not here: make pytorch (gigabytes)"
        return t.end()
    t.expect(printed, [r for r in printed if fast and r != FAST_MODEL])
    sys.path.insert(0, os.path.join(TOP, "tests", "simcuda", "models"))
    from runs import MIB, run
    from test_models import arguments, limit_of, what_it_said

    def both(row):
        native = run("paper %s native" % MODELS[row], arguments(MODELS[row]))
        limit = limit_of(native, 60)
        return native, limit, native.code == 0 and run("paper %s plan" % MODELS[row], arguments(MODELS[row]), ("--policy", "plan", "--limit", str(limit)))

    chosen = [r for r in printed if r not in t.left_out]
    for row, (native, limit, plan) in zip(chosen, each(both, chosen)):
        if not plan or plan.code or not plan.same_as(native) or plan.peak_bytes > limit:
            t.fault("%s: %s" % (row, "natively it failed: " + what_it_said(native.log) if not plan else "it failed: " + what_it_said(plan.log) if plan.code else
                                "its losses differ, or %d bytes are over %d: %s" % (plan.peak_bytes, limit, plan.log)), row)
            continue
        for what, was, found, by in zip(("native peak, MiB", "limit, MiB", "time, x native"), printed[row],
                                        (native.peak_bytes / MIB, limit / MIB, plan.steady_ns / native.steady_ns), (0, 0, 0.05)):
            t.cell(row, what, float(was), round(found, 2 if by else 1), by, better=bool(by))
    return t.end()


# rows of README.md's table of recorded iterations, by the names of tests/bench/twin.py
RECORDED = {"GPT-2 124M, bf16, batch 8": "gpt2", "ResNet-50, batch 64": "resnet50", "BERT base, bf16, batch 32": "bert", "ViT-B/16, bf16, batch 64": "vit"}
FAST_RECORDED, FAST_RECORDED_PERCENT = "ViT-B/16, bf16, batch 64", 60


def recorded(fast):
    """Iterations recorded on a GPU, made again as driver calls: x native, and what the plan foretold."""
    sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
    import twin
    t = Table("recorded iterations on the simulated GPU", "README.md, tests/bench/twin.py")
    printed, figure = {}, r"([0-9.]+)(?: \((?:foretold )?([0-9.]+)\))?"
    for name, *cells in re.findall(r"^\| ([^|]*) \| %s \| %s \| ([0-9.]+) \|$" % (figure, figure), page("README.md"), re.M):
        printed.update({(name, 60): cells[0:2], (name, 75): cells[2:4], (name, 100): (cells[4], "")})
    if {name for name, _ in printed} != set(RECORDED):
        t.fault("README.md has the rows %s" % ", ".join(dict.fromkeys(name for name, _ in printed)))
        return t.end()
    words = {k: "%s at %d %%" % k for k in printed}
    chosen = [k for k in printed if not fast or k == (FAST_RECORDED, FAST_RECORDED_PERCENT)]
    t.expect(words.values(), [words[k] for k in printed if k not in chosen])

    def under(name):
        try:
            made = twin.Twin(RECORDED[name])
            return {k: made.under(k[1], twin.ITERATIONS) for k in chosen if k[0] == name}
        except twin.Failed as e:
            return {k: str(e) for k in chosen if k[0] == name}

    for found in each(under, dict.fromkeys(name for name, _ in chosen)):
        for k, u in found.items():
            if isinstance(u, str) or not u["right"]:
                t.fault("%s: %s" % (words[k], u if isinstance(u, str) else "another result, or beyond its limit"), words[k])
                continue
            measured, foretold = printed[k]
            t.cell(words[k], "x native", float(measured), round(u["ratio"], 2), 0.03, better=True)
            if foretold:
                t.cell(words[k], "foretold", float(foretold), u["told"] and round(u["told"], 2), 0.03, better=True)
    return t.end()


def hardware(_):
    """What was measured on a real GPU is measured by tests/gpu; here the page is held against that record."""
    t = Table("an NVIDIA H200", "README.md, tests/gpu/results")
    record = page("tests", "gpu", "results", "nvidia-h200-2026-11-27.md")
    rows = re.findall(r"^\| ([^,|]*)[^|]*\| ([0-9.]+) GiB \| ([0-9.]+) GiB \| ([0-9.]+) \|$", page("README.md"), re.M)
    t.expect([r[0] for r in rows])
    for model, native, limit, times in rows:
        m = re.search(r"^\| %s[^|]*\| ([0-9.]+) GiB \| ([0-9.]+) \(60 %%\) \|.*?\| ([0-9.]+) x \|" % re.escape(model), record, re.M)
        for what, printed, found in zip(("native peak", "limit", "time"), (native, limit, times), m.groups() if m else (None,) * 3):
            t.cell(model, what, float(printed), float(found) if found else None)
    t.note = "the record's; to measure anew: make dist-gpu, on a machine with a GPU"
    return t.end()


# ---- the benchmark's own table ---------------------------------------------------------------------------------------------


def none_exists(said):
    """No plan without copies: the limit is below the floor, or a solver proved it."""
    return not said["feasible"] and (said.get("proved_infeasible") or said.get("limit_bytes", 0) < said.get("floor_bytes", 0))


def measured(job):
    path, limit, solver, seconds, name = job
    r = ask(path, "%g%%" % limit, solver, seconds)
    return {"instance": instances.name_of(path), "limit_percent": limit, "solver": name, "failed": r.get("failed"),
            "overhead": None if not r["feasible"] or r.get("failed") else r["overhead"], "bound": float("inf") if none_exists(r) else r.get("bound"), "seconds": r.get("solve_seconds"),
            "peak_bytes": r.get("peak_bytes")}


def read_results(path=None):
    path = path or RESULTS
    if not os.path.exists(path):
        return []
    with open(path, newline="") as f:
        rows = list(csv.DictReader((line for line in f if not line.startswith("#")), delimiter="\t"))
    for r in rows:
        r.update({k: None if r[k] in ("", None) else float(r[k]) for k in ("limit_percent", "overhead", "bound", "seconds", "peak_bytes")})
    return rows


def write_results(rows, path=None):
    path = path or RESULTS
    order = {s: i for i, s in enumerate(SOLVERS)}
    rows = sorted(rows, key=lambda r: (r["instance"], -r["limit_percent"], order.get(r["solver"], len(order)), r["solver"]))
    with open(path + ".tmp", "w", newline="") as f:
        f.write("# made by offline/benchmark/paper.py: overhead and bound as shares of the iteration's time; seconds of the solver; empty: no plan; a bound of inf: none exists\n")
        w = csv.writer(f, delimiter="\t", lineterminator="\n")
        w.writerow(COLUMNS)
        for r in rows:
            w.writerow(["" if r[k] is None else "%g" % r[k] if k == "limit_percent" else "%.6f" % r[k] if k in ("overhead", "bound") else "%.2f" % r[k]
                        if k == "seconds" else "%d" % r[k] if k == "peak_bytes" else r[k] for k in COLUMNS])
    os.rename(path + ".tmp", path)


def all_traces():
    return instances.traces(("", "h100", "torch"))


def benchmark(fast):
    t = Table("solvers x traces x limits", "offline/benchmark/results.tsv")
    known = {(r["instance"], r["limit_percent"], r["solver"]): r for r in read_results()}
    jobs = [(p, limit, s, SECONDS.get(s, SECONDS[""]), s) for p in (instances.traces() if fast else all_traces()) for limit in (LIMITS[-1:] if fast else LIMITS)
            for s in (FAST_SOLVERS if fast else SOLVERS)]
    others = sorted({k[2] for k in known} - set(SOLVERS))
    ours = ["%s at %g %%, %s" % k for k in known if k[2] in SOLVERS]
    t.expect(ours, set(ours) - {"%s at %g %%, %s" % (instances.name_of(j[0]), *j[1:3]) for j in jobs} if fast else ())
    t.note = "not made anew: the lines of %s (paper.py add)" % ", ".join(others) if others else ""
    fresh = each(measured, jobs)
    os.makedirs(MADE, exist_ok=True)
    write_results([r for r in fresh if not r["failed"]], os.path.join(MADE, "results.tsv"))
    for r in fresh:
        key = r["instance"], r["limit_percent"], r["solver"]
        if r["failed"]:
            t.fault("%s at %g %%, %s: %s" % (*key, r["failed"]), "%s at %g %%, %s" % key)
        elif key in known:
            old, new = known[key]["overhead"], r["overhead"]
            if old is None or new is None:
                t.cell("%s at %g %%, %s" % key, "overhead", "no plan" if old is None else "%.2f %%" % (100 * old), "no plan" if new is None else "%.2f %%" % (100 * new))
            else:
                t.cell("%s at %g %%, %s" % key, "overhead, %", round(100 * old, 2), round(100 * new, 2), 0.02 + 2 * old, better=True)
        else:
            t.differs.append("%s at %g %%, %s: no line in results.tsv" % key)
    return t.end()


def chosen_of(what, words, there):
    """The values of `there` that a list of words names."""
    for w in words.split(","):
        if w not in there:
            sys.exit("paper.py: no %s %r: there are %s" % (what, w, ", ".join(there)))
    return [there[w] for w in words.split(",")]


def add(args):
    solver = args.solver
    if re.search(r"\.py:\w+$", solver) and not solver.startswith("exec:"):
        path, function = solver.rsplit(":", 1)
        solver = "exec:PYTHONPATH=%s exec %s -m remat.solver %s:%s" % (os.path.join(TOP, "offline", "python"), sys.executable, os.path.abspath(path), function)
    name = args.name or args.solver
    seconds = args.seconds or SECONDS.get(solver, SECONDS[""])
    known = {instances.name_of(p): p for p in all_traces()}
    chosen = chosen_of("trace", args.traces, known) if args.traces else known.values()
    fresh = each(measured, [(p, limit, solver, seconds, name) for p in chosen for limit in LIMITS])
    bad = [r for r in fresh if r["failed"]]
    if bad:  # it was not asked below a trace's floor, so a solver that never answered would still have lines
        said = dict.fromkeys("; ".join(r["failed"].splitlines()[-2:]) for r in bad)
        print("\n".join("FAILED: " + x for x in said))
        print("%d of %d times; no line of %s is in results.tsv" % (len(bad), len(fresh), name))
        return 1
    merge(fresh)
    print("%d lines of %s in results.tsv" % (len(fresh), name))
    return render()


def merge(fresh):
    """Rows into results.tsv, each in place of the one that was there."""
    keys = {(r["instance"], r["limit_percent"], r["solver"]) for r in fresh}
    write_results([r for r in read_results() if (r["instance"], r["limit_percent"], r["solver"]) not in keys] + [r for r in fresh if not r.get("failed")])


def take():
    fresh = read_results(os.path.join(MADE, "results.tsv"))
    if not fresh:
        print("nothing to take: make paper TABLES=benchmark makes %s" % os.path.join(MADE, "results.tsv"))
        return 1
    merge(fresh)
    print("%d lines in results.tsv" % len(fresh))
    return render()


def render():
    """results.tsv as a table in README.md of this folder, and as a picture."""
    rows = read_results()
    solvers = list(dict.fromkeys([s for s in SOLVERS if any(r["solver"] == s for r in rows)] + sorted({r["solver"] for r in rows})))
    cells = {(r["instance"], r["limit_percent"], r["solver"]): r for r in rows}
    lines = ["| trace | limit | bound | %s |" % " | ".join(solvers), "| --- | --- | ---: |%s" % (" ---: |" * len(solvers))]
    for name, limit in sorted({(r["instance"], r["limit_percent"]) for r in rows}, key=lambda x: (x[0], -x[1])):
        mine = [cells.get((name, limit, s)) for s in solvers]
        good = [r["overhead"] for r in mine if r and r["overhead"] is not None]
        bound = max((r["bound"] for r in mine if r and r["bound"] is not None), default=None)
        out = []
        for r in mine:
            text = "" if r is None else "-" if r["overhead"] is None else "%.2f" % (100 * r["overhead"])
            text = "**%s**" % text if good and r and r["overhead"] == min(good) else text
            out.append(text + (" (%.1f s)" % r["seconds"] if r and r["seconds"] is not None and text else ""))
        lines.append("| %s | %g %% | %s | %s |" % (name, limit, "" if bound is None else "none exists" if bound == float("inf") else "%.2f" % (100 * bound), " | ".join(out)))
    path = os.path.join(HERE, "README.md")
    text = page("offline", "benchmark", "README.md")
    begin, end = text.index("<!-- table -->"), text.index("<!-- end -->")
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.write(text[:begin] + "<!-- table -->\n" + "\n".join(lines) + "\n" + text[end:])
    os.rename(path + ".tmp", path)
    os.makedirs(MADE, exist_ok=True)
    for name in sorted({r["instance"] for r in rows}):
        t = next((remat.load(p) for p in all_traces() if instances.name_of(p) == name), None)
        if t:
            drawn = [remat.SweepRow(r["solver"], int(t.peak_bytes * r["limit_percent"] / 100), r["overhead"] is not None, None, r["overhead"], None, None, 0)
                     for r in rows if r["instance"] == name]
            draw_sweep(drawn, os.path.join(MADE, name + ".png"), name + ": overhead over the limit")
    return 0


TABLES = {"plans": plans, "demo": demo, "literature": literature, "benchmark": benchmark, "hardware": hardware, "recorded": recorded, "pytorch": pytorch}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("what", nargs="?", default="tables", choices=("tables", "add", "take", "render"))
    a.add_argument("solver", nargs="?")
    a.add_argument("--fast", action="store_true")
    a.add_argument("--tables", default=",".join(TABLES))
    a.add_argument("--name")
    a.add_argument("--seconds", type=float)
    a.add_argument("--traces")
    args = a.parse_args()
    if args.what == "add":
        return add(args) if args.solver else a.error("add which solver?")
    if args.what == "take":
        return take()
    if args.what == "render":
        return render()
    began = time.monotonic()
    done = [make(args.fast) for make in chosen_of("table", args.tables, TABLES)]
    print("\n%d tables in %.0f s, %.0f s of a processor:" % (len(done), time.monotonic() - began, cpu_seconds()))
    for t in done:
        print("  %-52s %s" % (t.name, "FAILED" if t.wrong else "%d figures, %s%s" % (t.rows, t.outcome(), "; " + t.note if t.note else "")))
    return 1 if any(t.wrong for t in done) else 0


if __name__ == "__main__":
    sys.exit(main())
