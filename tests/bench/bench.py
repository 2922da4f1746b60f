#!/usr/bin/env python3
"""make bench: runs the bench programs given, measures the runtime on the simulated GPU, writes build/bench.json:
{"name": {"value": N, "unit": "...", "baseline": N, "ratio": N}}. Ratios compare within one run; single values are noisy."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import harness  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gen_blocks  # noqa: E402
import twin  # noqa: E402


def row(value, unit, baseline=None):
    r = {"value": value, "unit": unit}
    if baseline:
        r.update(baseline=baseline, ratio=value / baseline)
    return r


# The hook is timed at one launch in 61: 16 iterations give some hundred samples, in which a few late ones outweigh the rest.
HOOK_ITERATIONS = 128


def runtime():
    args = ["--iters", "16", "--iter-time"]
    out = {}
    for w in ("mlp", "cnn", "gpt"):
        native = harness.run([w] + args)
        steady = {"native": native.iter_ms()[-1]}
        for policy in ("swap", "plan"):
            r = harness.run([w] + args, remat=["--limit", native.peak // 2, "--policy", policy])
            steady[policy] = r.iter_ms()[-1]
            if policy == "plan":
                out["driver_memory_calls_steady_" + w] = row(r.stats["driver_memory_calls_steady"], "calls/iteration")
        r = harness.run([w, "--iters", str(HOOK_ITERATIONS)], remat=["--limit", native.peak // 2, "--policy", "plan"])
        out["hook_ns_per_launch_" + w] = row(r.stats["hook_ns_per_launch"], "ns")
        for policy in ("swap", "plan"):
            out["iteration_%s_50pct_%s" % (policy, w)] = row(steady[policy], "ms device time", steady["native"])
    return out


def recorded():
    """Iterations that were recorded on a GPU, under plans: x native, against what was foretold."""
    out = {}
    for model in twin.MODELS:
        t = twin.Twin(model)
        for percent in (60, 75, 100):
            u = t.under(percent, twin.ITERATIONS)
            out["recorded_%s_%d" % (model, percent)] = row(u["ratio"], "x native", u["told"])
    return out


def planners():
    """How the planner grows with the trace: user CPU seconds, memory, and how far the plan is from its bound."""
    out = {}
    for n in (1000, 10000, 100000):
        trace = os.path.join(harness.B, "bench_blocks_%d.json" % n)
        with open(trace, "w") as f:
            json.dump(gen_blocks.trace(n), f)
        p = subprocess.Popen([os.path.join(harness.B, "remat"), "plan", trace, "--limit", "70%", "--no-offload", "--json"], stdout=subprocess.PIPE)
        r = json.loads(p.stdout.read())
        _, status, used = os.wait4(p.pid, 0)
        if status or not r["feasible"]:
            sys.exit("planning %d ops failed" % n)
        out["plan_cpu_%d_ops" % n] = row(used.ru_utime, "s", out.get("plan_cpu_1000_ops", {}).get("value"))
        out["plan_memory_%d_ops" % n] = row(used.ru_maxrss / 1024, "MiB")
        out["plan_overhead_%d_ops" % n] = row(100 * r["overhead"], "%", 100 * r["bound"])
        os.unlink(trace)
    return out


def main():
    bench = planners()
    for b in sys.argv[1:]:
        p = subprocess.run([b], capture_output=True, text=True, timeout=300)
        if p.returncode == 77:
            continue
        if p.returncode:
            print("%s failed (%d): %s" % (b, p.returncode, p.stderr), file=sys.stderr)
            return 1
        for line in p.stdout.splitlines():
            if line.startswith("{"):
                bench.update(json.loads(line))
    bench.update(runtime())
    bench.update(recorded())
    path = os.path.join(harness.B, "bench.json")
    with open(path, "w") as f:
        json.dump(bench, f, indent=1, sort_keys=True)
    for name, r in sorted(bench.items()):
        print("%-36s %14.6g %-18s%s" % (name, r["value"], r["unit"],
                                       "%8.3g x of %.6g" % (r["ratio"], r["baseline"]) if "ratio" in r else ""))
    print("written to " + path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
