"""Section 4: training scripts as users write them, native, under remat, and with what PyTorch itself offers."""
import os

from . import base

# script, batch, the precision tried first
MODELS = [("gpt2", 8, "bf16"), ("resnet50", 64, "fp32"), ("bert", 32, "bf16"), ("vit", 64, "bf16"),
          ("unet", 16, "fp32")]
STEPS = 32
# of toys: what an iteration computes is more than what lives on, so that a limit can be held; ResNet-50 has no toy, and refuses its limits
TINY_BATCH, TINY_BATCH_OF = 32, {"resnet50": 2, "unet": 12}
STEADY = 8
# NVML counts the context and loaded kernels with the rest. What of it is overhead is read off the native run, and
# may differ a little between runs: more than this beyond the limit is a breach.
NVML_TOLERANCE = 64 << 20
# per cent of the native peak (warm50: a second run, with what the first one learnt and planned); None: the peak of
# per-block checkpointing
LIMITS = {"remat75": 75, "remat60": 60, "remat50": 50, "remat35": 35, "swap50": 50, "warm50": 50, "remat@ck": None}

# In passes: each is made for every model before the next begins, so that whatever the time allows is a whole table.
PASSES = [("first", ["native", "remat", "remat60"]), ("first", ["checkpoint"]), ("first", ["remat75", "remat50", "remat35"]),
          ("first", ["remat@ck", "warm50"]), ("second", ["native", "remat", "remat60", "checkpoint"]),
          ("first", ["compile"]), ("first", ["swap50"]),
          ("second", ["remat75", "remat50", "remat35"]), ("second", ["compile"])]
# expected wall time in native runs, to decide whether a run still fits
WEIGHT = {"native": 1.0, "checkpoint": 1.2, "remat": 2.0, "remat75": 3.0, "remat60": 3.0, "remat50": 3.0, "remat35": 3.0, "swap50": 3.0,
          "warm50": 2.0, "remat@ck": 2.5, "compile": 5.0}


def finite(losses):
    return all("nan" not in x and "inf" not in x for x in losses)


def judge(row, native):
    """Compares a row with the native one of the same model and precision."""
    losses, wanted = row.get("losses") or [], native.get("losses") or []
    differs = next((i for i, (a, b) in enumerate(zip(losses, wanted)) if a != b), None)
    row["losses_equal"] = bool(wanted) and len(losses) == len(wanted) and differs is None and finite(wanted)
    row["first_difference"] = differs
    row["params_equal"] = row.get("params_sha256") == native.get("params_sha256")
    if row.get("steady_ms") and native.get("steady_ms"):
        row["slowdown"] = row["steady_ms"] / native["steady_ms"]
    limit, overhead = row.get("limit_bytes"), native.get("overhead_bytes")
    if limit:
        peak = (row.get("stats") or {}).get("peak_physical_bytes")
        row["within_limit_driver"] = None if peak is None else peak <= limit
        if row.get("device_peak_bytes") is not None and overhead is not None:
            row["nvml_over_limit_bytes"] = row["device_peak_bytes"] - overhead - limit
            row["within_limit_nvml"] = row["nvml_over_limit_bytes"] <= NVML_TOLERANCE


def row_of(model, amp, variant, r, report, stats):
    row = {"model": model, "amp": amp, "variant": variant, "status": r.status(), "wall_s": round(r.wall_s, 1),
           "device_peak_bytes": r.device_peak_bytes, "stats": stats, "messages": r.messages()[:20]}
    if report:
        walls, steady = report["wall_ms"], base.median(report["wall_ms"][-STEADY:])
        row.update({k: report[k] for k in ("model", "batch", "losses", "iter_ms", "wall_ms", "max_allocated_bytes",
                                           "max_reserved_bytes", "params_sha256", "parameters")})
        row["script"] = model
        row["steady_ms"] = base.median(report["iter_ms"][-STEADY:])
        row["steady_wall_ms"] = steady
        # what the iterations before the steady state took beyond it: learning, planning, warming up
        row["learning_s"] = sum(max(0.0, w - steady) for w in walls) / 1e3
        if variant == "native" and r.device_peak_bytes is not None and report["max_reserved_bytes"]:
            row["overhead_bytes"] = r.device_peak_bytes - report["max_reserved_bytes"]
    if r.status() != "ok":
        row["error"] = r.tail(1200)
    return row


def run(suite, budget):
    section = suite.result["training"] = {"steps": STEPS, "nvml_tolerance_bytes": NVML_TOLERANCE, "rows": []}
    rows = section["rows"]
    rows += [r for r in suite.before.get("training", {}).get("rows", []) if r["status"] == "ok"]
    chosen = suite.args.models.split(",") if suite.args.models else [m[0] for m in MODELS]
    variants = suite.args.variants.split(",") if suite.args.variants else list(WEIGHT)
    other = {"fp32": "bf16", "bf16": "fp32"}

    def key(row):
        return row.get("script", row["model"]), row["amp"], row["variant"]

    def find(model, amp, variant):
        return next((r for r in rows if key(r) == (model, amp, variant)), None)

    def one(model, batch, amp, variant):
        if find(model, amp, variant):
            return
        native = find(model, amp, "native")
        if variant != "native" and (not native or native["status"] != "ok"):
            return
        expected = (native["wall_s"] if native else 12) * WEIGHT[variant]
        if budget.left() < expected + 2:
            rows.append({"model": model, "amp": amp, "variant": variant, "status": "skipped: time"})
            suite.save()
            return
        name = f"{model}-{amp}-{variant}"
        report_path, trace = os.path.join(suite.work, name + ".json"), os.path.join(suite.work, name + ".trace")
        argv = [suite.python, os.path.join(suite.here, "scripts", f"train_{model}.py"), "--steps", str(STEPS),
                "--batch", str(batch), "--amp", amp, "--seed", "0", "--json", report_path]
        if suite.args.tiny:
            argv += ["--tiny", "--batch", str(TINY_BATCH_OF.get(model, TINY_BATCH)), "--steps", "12" if suite.simulated else "4"]
        timeout, stats, limit = min(max(300 if suite.simulated else 40, 4 * expected), budget.left()), None, None
        if variant == "native":
            r = suite.run(name, argv, timeout)
        elif variant == "checkpoint":
            r = suite.run(name, argv + ["--checkpoint"], timeout)
        elif variant == "compile":
            r = suite.run(name, argv + ["--compile-budget", "0.5"], timeout)
        elif variant == "remat":
            r, stats = suite.remat_run(name, argv, timeout, trace_out=trace)
        else:
            peer = native if LIMITS[variant] else find(model, amp, "checkpoint")
            limit = int(((peer or {}).get("max_allocated_bytes") or 0) * (LIMITS[variant] or 100) / 100)
            if not limit:
                return
            cache = os.path.join(suite.work, f"cache-{model}-{amp}") if variant in ("remat50", "warm50") else None
            if variant == "warm50" and not (find(model, amp, "remat50") and os.path.isdir(cache)):
                rows.append({"model": model, "amp": amp, "variant": variant, "status": "skipped: no cold run"})
                return
            if variant == "remat50":
                os.makedirs(cache, exist_ok=True)
            r, stats = suite.remat_run(name, argv, timeout, limit=limit, cache=cache,
                                       policy="swap" if variant.startswith("swap") else "plan")
        row = row_of(model, amp, variant, r, base.read_json(report_path), stats)
        if limit:
            row["limit_bytes"] = limit
        if variant != "native":
            judge(row, native)
            base.note_messages(suite.result, name, r.messages())
        if variant == "remat":
            row["trace"] = suite.keep_trace(trace, f"{model}-b{batch}-{amp}")
        rows.append(row)
        suite.save()

    for which, wanted in PASSES:
        for variant in wanted:
            for model, batch, first in MODELS:
                if model in chosen and variant in variants:
                    one(model, batch, first if which == "first" else other[first], variant)


def table(section):
    lines = [f"{'model':22} {'amp':5} {'variant':11} {'peak GiB':>8} {'limit':>6} {'nvml':>6} {'ms/iter':>8} "
             f"{'x native':>8} {'equal':>6} {'within':>6} {'learn s':>8}  status"]

    def gib(v):
        return f"{v / 2**30:.2f}" if v else "-"

    def yes(v):
        return {True: "yes", False: "NO", None: "-"}[v]

    order = {m[0]: i for i, m in enumerate(MODELS)}
    variants = list(WEIGHT)
    for r in sorted(section["rows"], key=lambda r: (order.get(r.get("script", r["model"]), 9), r["amp"],
                                                    variants.index(r["variant"]))):
        stats, ms, slow = r.get("stats") or {}, r.get("steady_ms"), r.get("slowdown")
        learn = r.get("learning_s")
        equal = None if r["variant"] == "compile" else r.get("losses_equal")  # it changes the arithmetic
        within = [v for v in (r.get("within_limit_driver"), r.get("within_limit_nvml")) if v is not None]
        lines.append(f"{r['model']:22} {r['amp']:5} {r['variant']:11} "
                     f"{gib(stats.get('peak_physical_bytes') or r.get('max_allocated_bytes')):>8} "
                     f"{gib(r.get('limit_bytes')):>6} {gib(r.get('device_peak_bytes')):>6} "
                     f"{f'{ms:.1f}' if ms else '-':>8} {f'{slow:.3f}' if slow else '-':>8} "
                     f"{yes(equal):>6} {yes(all(within) if within else None):>6} "
                     f"{f'{learn:.1f}' if learn is not None else '-':>8}  {r['status']}")
    return "\n".join(lines)
