#!/usr/bin/env python3
"""One table: each workload native, under 50 % of its memory by swapping, and by a plan."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

ITERS = 32
ROUND = 16  # in so many iterations each rebuilt value is compared once: what that costs differs from one to the next
ARGS = ["--iters", str(ITERS), "--print-loss", "--checksum", "--iter-time"]


def mib(b):
    return "%.0f MiB" % (b / 2**20)


def steady_ms(r):
    t = r.iter_ms()
    return sum(t[-ROUND:]) / ROUND if len(t) >= ROUND else float("nan")


def main():
    head = ("workload", "run", "limit", "peak (device)", "device time/iteration", "", "replays", "swaps", "losses and checksum")
    rows, bad = [], 0
    tty = sys.stderr.isatty()
    for w in sys.argv[1:] or ("mlp", "cnn", "gpt"):
        base = None
        for how in ("native", "swap", "plan"):
            if tty:
                print("\r%s, %s ...   " % (w, how), end="", file=sys.stderr, flush=True)
            limit = base.peak // 2 if base else None
            r = harness.run([w] + ARGS, remat=["--limit", limit, "--policy", how] if base else None)
            if r.rc:
                print("%s, %s failed: %s" % (w, how, r.err), file=sys.stderr)
                return 1
            base = base or r
            same = r.losses == base.losses and r.checksum == base.checksum
            fits = limit is None or r.peak <= limit
            bad += not same or not fits
            ms = steady_ms(r)
            rows.append((w if how == "native" else "", how, mib(limit) if limit else "-",
                         mib(r.peak) + ("" if fits else " OVER"), "%.3f ms" % ms,
                         "" if how == "native" else "%+.1f %%" % (100 * (ms / steady_ms(base) - 1)),
                         str(r.stats.get("replays", 0)) if r.stats else "-",
                         str((r.stats.get("swaps_in", 0) + r.stats.get("swaps_out", 0))) if r.stats else "-",
                         "-" if how == "native" else "identical" if same else "DIFFERENT"))
    if tty:
        print("\r" + " " * 30 + "\r", end="", file=sys.stderr)
    widths = [max(len(str(x[i])) for x in rows + [head]) for i in range(len(head))]
    for x in [head, tuple("-" * n for n in widths)] + rows:
        print("  ".join(str(v).ljust(n) if i < 2 else str(v).rjust(n) for i, (v, n) in enumerate(zip(x, widths))).rstrip())
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    print("\nSimulated GPU (90 Tflop/s, 1.4 TB/s, 25 GB/s to the host), device time by its own clock, mean of the last %d of "
          "%d iterations%s." % (ROUND, ITERS, ", commit " + commit if commit else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
