"""Section `batch` (only when asked for): the largest batch that trains within a fixed limit.

The limit is what the model needs natively at the batch of the training section. For native runs and for per-block
checkpointing the peak is measured at two batches, the largest that fits is computed from the line through them (peak
memory is affine in the batch) and confirmed by a run. For remat, whether a batch trains is tried: from the batch that
checkpointing reaches, upwards by a quarter until one fails, or downwards until one does not.
"""
import os

from . import base, training

MODELS = ["gpt2", "resnet50"]
STEPS = 12  # enough for remat to learn, plan and enforce
TRIES = 5


def run(suite, budget):
    section = suite.result["batch"] = {"steps": STEPS, "rows": []}
    rows = section["rows"]
    chosen = suite.args.models.split(",") if suite.args.models else MODELS
    for model, start, amp in training.MODELS:
        if model not in chosen:
            continue
        count = [0]

        def attempt(batch, how, limit=None):
            """(fits or None when it could not be told, peak bytes, ms per iteration) of `batch` samples."""
            if budget.left() < 20:
                return None, None, None
            count[0] += 1
            name = f"batch-{model}-{how}-{batch}-{count[0]}"
            report_path = os.path.join(suite.work, name + ".json")
            argv = [suite.python, os.path.join(suite.here, "scripts", f"train_{model}.py"), "--steps", str(STEPS),
                    "--batch", str(batch), "--amp", amp, "--seed", "0", "--json", report_path]
            argv += ["--checkpoint"] if how == "checkpoint" else []
            argv += ["--tiny"] if suite.args.tiny else []
            stats = None
            if how == "remat":
                r, stats = suite.remat_run(name, argv, min(120, budget.left()), limit=limit)
            else:
                r = suite.run(name, argv, min(60, budget.left()))
            report = base.read_json(report_path)
            if r.timed_out:
                return None, None, None
            if r.rc != 0 or not report:
                return False, None, None
            peak = (stats or {}).get("peak_physical_bytes") if how == "remat" else report["max_allocated_bytes"]
            fits = None if peak is None else limit is None or peak <= limit
            return fits, peak, base.median(report["iter_ms"][-4:])

        def record(how, batch, peak, ms, tried):
            rows.append({"model": model, "amp": amp, "how": how, "limit_bytes": limit, "batch": batch,
                         "peak_bytes": peak, "iter_ms": ms, "samples_per_s": batch / ms * 1e3 if batch and ms else None,
                         "tried": tried})
            suite.save()

        limit = None
        fits, limit, ms = attempt(start, "native")
        if not fits or not limit:
            rows.append({"model": model, "amp": amp, "how": "native", "status": "no native peak"})
            continue
        record("native", start, limit, ms, [start])
        _, first, _ = attempt(start, "checkpoint")
        _, second, _ = attempt(2 * start, "checkpoint")
        if not first or not second or second <= first:
            rows.append({"model": model, "amp": amp, "how": "checkpoint", "status": "no two peaks"})
            continue
        best = int(start + (limit - first) * start / (second - first))
        tried = [start, 2 * start]
        for _ in range(TRIES):  # the line may miss by a sample or two: allocators round
            fits, peak, ms = attempt(best, "checkpoint", limit)
            tried.append(best)
            if fits is not False:
                break
            best -= max(1, best // 50)
        record("checkpoint", best if fits else None, peak, ms, tried)
        reached, tried, size, step_up = None, [], best, True
        for _ in range(TRIES):
            fits, peak, ms = attempt(size, "remat", limit)
            tried.append(size)
            if fits is None:
                break
            if fits:
                reached = (size, peak, ms)
                if not step_up:
                    break
                size += max(1, size // 4)
            else:
                if reached:
                    break
                step_up = False
                size -= max(1, size // 8)
        record("remat", *(reached or (None, None, None)), tried)


def table(section):
    lines = [f"{'model':10} {'how':11} {'limit GiB':>9} {'batch':>6} {'ms/iter':>8} {'samples/s':>9}  tried"]
    for r in section["rows"]:
        if "status" in r:
            lines.append(f"{r['model']:10} {r['how']:11} {r['status']}")
            continue
        ms, rate = r["iter_ms"], r["samples_per_s"]
        lines.append(f"{r['model']:10} {r['how']:11} {r['limit_bytes'] / 2**30:9.2f} {r['batch'] or '-':>6} "
                     f"{f'{ms:.1f}' if ms else '-':>8} {f'{rate:.1f}' if rate else '-':>9}  {r['tried']}")
    return "\n".join(lines)
