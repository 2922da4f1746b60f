"""Section 2: the C workloads, the same sources as on the simulated GPU, native against remat."""
import os
import re

from . import base

NAMES = ["mlp", "cnn", "gpt"]
PERCENTS = [75, 60, 50]
POLICIES = ["swap", "plan"]
ITERS = 16
STEADY = 6  # the last iterations, over which the median is taken


def numbers(run):
    """What must be identical: losses and checksum lines, in order."""
    return [line for line in run.out.splitlines() if " loss " in line or line.startswith("checksum")]


def times_ms(run):
    return [float(m.group(1)) for m in re.finditer(r"^iter \d+ time ([0-9.]+) ms", run.out, re.M)]


def row_of(suite, name, variant, r, stats, native=None):
    """A row of the result from one run; `native` is the native run's row."""
    values, ms = numbers(r), times_ms(r)
    row = {"workload": name, "variant": variant, "status": r.status(), "numbers": len(values), "iter_ms": ms,
           "steady_ms": base.median(ms[-STEADY:]), "device_peak_bytes": r.device_peak_bytes,
           "wall_s": round(r.wall_s, 2), "stats": stats}
    if native is None:
        row["values"] = values
    else:
        row["equal"] = bool(values) and values == native["values"]
        if row["steady_ms"] and native["steady_ms"]:
            row["slowdown"] = row["steady_ms"] / native["steady_ms"]
        base.note_messages(suite.result, f"{name} {variant}", r.messages())
    if r.status() != "ok":
        row["error"] = r.tail()
    return row


def run(suite, budget):
    folder = os.path.join(suite.dist, "workloads")
    section = suite.result["workloads"] = {"rows": []}
    rows = section["rows"]
    rows += [r for r in suite.before.get("workloads", {}).get("rows", []) if r["status"] == "ok"]
    names = [n for n in NAMES if os.path.exists(os.path.join(folder, n))]
    section["missing"] = [n for n in NAMES if n not in names]
    iters = suite.args.iters or ITERS
    section["iterations"] = iters
    chosen = suite.args.variants.split(",") if suite.args.variants else None

    def done(name, variant):
        return next((r for r in rows if r["workload"] == name and r["variant"] == variant), None)

    def add(row):
        rows[:] = [r for r in rows if (r["workload"], r["variant"]) != (row["workload"], row["variant"])]
        rows.append(row)
        suite.save()

    def argv(name):
        return [os.path.join(folder, name), "--iters", str(iters), "--print-loss", "--checksum", "--iter-time"]

    for name in names:
        if not done(name, "native"):
            add(row_of(suite, name, "native", suite.run(f"{name}-native", argv(name), min(30, budget.left())), None))
        native = done(name, "native")
        if native["status"] == "ok" and not done(name, "remat"):
            trace = os.path.join(suite.work, f"{name}.json")
            r, stats = suite.remat_run(f"{name}-remat", argv(name), min(40, budget.left()), trace_out=trace)
            row = row_of(suite, name, "remat", r, stats, native)
            row["trace"] = suite.keep_trace(trace, f"workload {name}")
            add(row)
    # breadth first: every workload at one limit before the next limit
    for percent in PERCENTS:
        for policy in POLICIES:
            for name in names:
                variant = f"{policy} {percent}"
                free = done(name, "remat")
                if chosen and variant not in chosen:
                    continue
                if done(name, variant) or not free or not free["stats"]:
                    continue
                if budget.left() < 3 * free["wall_s"] + 2:
                    add({"workload": name, "variant": variant, "status": "skipped: time"})
                    continue
                limit = int(free["stats"]["native_peak_bytes"] * percent / 100)
                r, stats = suite.remat_run(f"{name}-{policy}-{percent}", argv(name), min(60, budget.left()),
                                           limit=limit, policy=policy)
                row = row_of(suite, name, variant, r, stats, done(name, "native"))
                row["limit_bytes"] = limit
                if stats:
                    row["within_limit"] = stats["peak_physical_bytes"] <= limit
                if suite.simulated and row["device_peak_bytes"] is not None:
                    row["within_limit_device"] = row["device_peak_bytes"] <= limit
                add(row)


def table(section):
    lines = [f"{'workload':9} {'variant':9} {'peak MiB':>9} {'limit MiB':>9} {'ms/iter':>9} {'x native':>8} "
             f"{'equal':>6} {'replays':>8} {'swaps':>6}  status"]

    def mib(v):
        return f"{v / 2**20:.0f}" if v else "-"

    for r in section["rows"]:
        s = r.get("stats") or {}
        ms, slow = r.get("steady_ms"), r.get("slowdown")
        peak = s.get("peak_physical_bytes") or r.get("device_peak_bytes")
        equal = {True: "yes", False: "NO", None: "-"}[r.get("equal")]
        lines.append(f"{r['workload']:9} {r['variant']:9} {mib(peak):>9} {mib(r.get('limit_bytes')):>9} "
                     f"{f'{ms:.3f}' if ms else '-':>9} {f'{slow:.2f}' if slow else '-':>8} {equal:>6} "
                     f"{s.get('replays', '-'):>8} {s.get('swaps_out', '-'):>6}  {r['status']}")
    return "\n".join(lines)
