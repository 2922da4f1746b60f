"""Runs the GPU suite: facts, workloads, coverage, training, each within its own time, and writes one JSON.

    run.py --dist DIR --out PATH [--sections facts,training] [--models gpt2] [--variants native,remat50]
           [--budget SECONDS] [--resume EARLIER.json]

PATH is a folder or a file that ends in .json. Beside the JSON come a table (.txt), the traces (.traces.tar, each
compressed) and the programs' output (.logs.tar.xz). README.md says what each section asks and what the JSON holds.
Exit status: 0 when every section ran, whatever its answers; 1 when a section itself broke; 2 for bad usage.
"""
import argparse
import os
import shutil
import sys
import tarfile
import traceback

sys.dont_write_bytecode = True

from suite import base, batch, cover, facts, training, workloads

# section, its share of the time in seconds: what one leaves over, the last one gets
SECTIONS = [("facts", facts, 60), ("workloads", workloads, 75), ("coverage", cover, 55), ("training", training, 3600),
            ("batch", batch, 3600)]
ONLY_WHEN_ASKED = {"batch"}


def parse(argv):
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dist", help="the folder that `make dist-gpu` made")
    p.add_argument("--out", help="where the result goes (default: $OUT, else results/)")
    p.add_argument("--sections", default=",".join(s[0] for s in SECTIONS if s[0] not in ONLY_WHEN_ASKED))
    p.add_argument("--models", help="of the training section: gpt2,resnet50,bert,vit,unet")
    p.add_argument("--variants", help="of the training section: " + ",".join(training.WEIGHT) +
                   "; of the workloads: 'swap 75', 'plan 50', ...")
    p.add_argument("--budget", type=float, default=525, help="seconds in all (525)")
    p.add_argument("--resume", metavar="JSON", help="take what an earlier run finished from its result")
    p.add_argument("--python", help="the Python that has PyTorch (default: this one)")
    p.add_argument("--iters", type=int, help="iterations of the C workloads (16)")
    p.add_argument("--selftest", action="store_true", help="on the simulated GPU, with no device: facts and workloads; with "
                   "--python also what needs PyTorch")
    p.add_argument("--simgpu", metavar="DIR", help="where the simulated driver is (with --selftest)")
    p.add_argument("--tiny", action="store_true", help="toy models, to try the training section without a GPU")
    p.add_argument("--scale", type=int, default=1, help="divide the coverage loop's sizes, to try it without a GPU")
    args = p.parse_args(argv)
    known = [s[0] for s in SECTIONS]
    args.sections = [s for s in args.sections.split(",") if s]
    for s in args.sections:
        if s not in known:
            p.error(f"no section '{s}': there are {', '.join(known)}")
    if not args.dist:
        travels = os.path.exists(os.path.join(here, "libremat.so"))
        args.dist = here if travels else os.path.join(root, "build", "dist-gpu")
    if args.selftest and not args.out:
        p.error("--selftest writes no numbers of a device: name another place with --out")
    if args.selftest and not args.simgpu:
        args.simgpu = os.path.join(os.path.dirname(args.dist), "simgpu")
    args.out = args.out or os.environ.get("OUT") or os.path.join(here, "results")
    if args.selftest and os.path.realpath(args.out).startswith(os.path.realpath(os.path.join(here, "results"))):
        p.error("--selftest may not write to results/: only numbers off a real device go there")
    return args


def pack(suite):
    """The traces and the programs' output beside the result; compressed, since both are text."""
    stem = suite.json_path[:-len(".json")]
    if os.listdir(suite.traces):
        with tarfile.open(stem + ".traces.tar", "w") as tar:
            tar.add(suite.traces, "traces")
    with tarfile.open(stem + ".logs.tar.xz", "w:xz") as tar:
        tar.add(suite.logs, "logs")


def tables(result):
    m = result["machine"]
    head = (f"{m['gpu']}, driver {m['driver']}, torch {m['torch']}, commit {result['commit']}, {result['started']}, "
            f"{result['seconds']} s")
    parts = ["SIMULATED DEVICE: no number below is a device's\n" + head if result["simulated"] else head]
    for name, module, _ in SECTIONS:
        section = result.get(name)
        if section:
            if section.get("broke"):
                parts.append(f"{name} broke: {section['broke'].strip().splitlines()[-1]}")
            if section.get("rows") or "cases" in section or "error" in section:
                parts.append(module.table(section))
    wrong = result.get("wrong", {})
    if wrong.get("opaque"):
        parts.append("never replayed:\n" + "\n".join(
            f"  {n[:70]:70} {r['ops']:5} ops {r['ns'] / 1e6:8.2f} ms  {'; '.join(r['why'])}"
            for n, r in sorted(wrong["opaque"].items(), key=lambda x: -x[1]["ns"])))
    if wrong.get("messages"):
        parts.append("said by remat:\n" + "\n".join(
            f"  {r['count']:4} x {r['first'][:150]}" for r in
            sorted(wrong["messages"].values(), key=lambda r: -r["count"])[:25]))
    return "\n\n".join(parts) + "\n"


def main(argv):
    args = parse(argv)
    suite = base.Suite(args)
    broke = 0
    suite.save()
    try:
        for name, module, share in SECTIONS:
            if name not in args.sections:
                if name in suite.before:
                    suite.result[name] = suite.before[name]
                continue
            budget = base.Budget(args.budget if args.selftest else share, within=suite.budget)
            print(f"{name} ...", file=sys.stderr, flush=True)
            if budget.left() <= 1:
                suite.result[name] = {"status": "skipped: time"}
                continue
            try:
                module.run(suite, budget)
            except Exception:
                broke += 1
                suite.result.setdefault(name, {})["broke"] = traceback.format_exc()
                traceback.print_exc()
            suite.result[name]["spent_s"] = round(budget.spent(), 1)
            suite.save()
        text = tables(suite.result)
        with open(suite.json_path[:-len(".json")] + ".txt", "w") as f:
            f.write(text)
        sys.stdout.write(text)
        pack(suite)
    finally:
        suite.save()
        shutil.rmtree(suite.work, ignore_errors=True)
    print(suite.json_path, file=sys.stderr)
    return 1 if broke else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
