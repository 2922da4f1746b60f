#!/usr/bin/env python3
"""Iterations recorded on a GPU (tests/gpu/results), made again as driver calls on the simulated one, which charges the host's time of each call
as an H200's driver takes it (SIMGPU_COSTS): what remat's plans cost against what they expect, without a GPU.

  twin.py [--percent 60,75] [--iterations N] [MODEL...]     gpt2, resnet50, bert, vit; a table

Memory is divided by SCALE (2 MiB pages by 64 KiB, what copies and pinned memory take a byte is multiplied by it), times are as they were: each kernel
takes what it took on the GPU. Kernels read, change and overwrite the buffers that the trace says. A launch that changes a workspace of which a memset
cleared a part right before it makes its results of that part, counts there, and leaves what it likes in the rest (cuBLASLt)."""
import argparse
import json
import lzma
import os
import re
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))
import harness  # noqa: E402

SCALE = 32
GAP = 20000  # ns of the program's own work before each launch: PyTorch's 10 to 40 us
LISTED, LIST_MOST = 14, 512  # see tests/programs/twin.c
LAST = 16  # iterations that count
ITERATIONS = 150  # of a run that README's table speaks of: a good plan is there by then
MODELS = {"gpt2": "gpt2-b8-bf16", "resnet50": "resnet50-b64-fp32", "bert": "bert-b32-bf16", "vit": "vit-b64-bf16"}
TRACES = os.path.join(HERE, "..", "gpu", "results", "nvidia-h100-80gb-hbm3-2026-11-26-1541.traces.tar")
COSTS = os.path.join(HERE, "..", "simgpu", "gpu_costs.c")
DEVICE = {"REMAT_SIMGPU": "1", "REMAT_PLAN_CLOCK": "busy", "SIMGPU_GRANULARITY": "64K", "SIMGPU_FLOPS": "1e9", "SIMGPU_BW": "1e15", "SIMGPU_LAUNCH_NS": "0", "SIMGPU_MEM": "4G"}

KERNELS = r'''#include "tests/simgpu/simgpu.h"
static uint64_t mix(uint64_t h, uint64_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15ull; return h ^ h >> 31; }
static uint64_t head(const uint64_t *p) { uint64_t h = 1; for (int i = 0; i < 8; i++) h = mix(h, p[i]); return h; }
static void fill(uint64_t *p, uint64_t bytes, uint64_t v) { for (uint64_t i = 0; i < bytes / 8; i++) p[i] = v; }
/* r read, m changed in place, s side, w overwritten, c with counters that were cleared; `list`: their addresses are one parameter */
static void run(void *const *params, int r, int m, int s, int w, int c, int list)
{
    const uint32_t *size = params[1];
    const int n = r + m + s + w + c, side = r + m, made = side + s, cleared = made + w;
    uint64_t h = *(const uint32_t *)params[0];
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            uint64_t *p = list ? ((uint64_t *const *)params[2])[i] : *(uint64_t *const *)params[2 + i];
            if (!pass && (i < side || i >= cleared))
                h = mix(h, head(p));
            else if (pass && i >= r)
                fill(p, size[i] * 64ull, i < side ? mix(h, (uint64_t)i) | 0x3c : i < made ? mix(head(p), 7) : i < cleared ? mix(h, (uint64_t)i) : h | 0x77);
        }
}
static void cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = *(const uint32_t *)params[0];
    *bytes = 0;
}
'''


class Failed(Exception):
    """One line, or what a program said at its end."""


def trace(model):
    with tarfile.open(TRACES) as t:
        return json.loads(lzma.decompress(t.extractfile("traces/%s.json.xz" % MODELS[model]).read()))


def operands(op, last):
    """Buffers by what the launch does with them: read, changed, side, overwritten, changed behind a memset of a part of them."""
    cleared = [b for b in op["rmw"] if last.get(b) and not op["opaque"]]
    return op["reads"], [b for b in op["rmw"] if b not in cleared], op.get("side", []), op["writes"], cleared


class Script:
    """One iteration as calls, and the kernels that it launches."""

    def __init__(self, t):
        self.buffers, self.ops = t["buffers"], t["ops"]
        self.kernels, self.calls = {}, []
        born, dies = {}, {}
        for b in self.buffers:
            born.setdefault(b["born"], []).append(b["id"])
            dies.setdefault(b["dies"], []).append(b["id"])
        old = [b for b in self.buffers if b["born"] < 0 and b["dies"] is not None and b["dies"] > 0]
        self.older = []
        for b in self.buffers:  # what an iteration leaves takes the place of one that it frees, of the same size
            if b["born"] >= 0 and b["dies"] is None:
                other = next((o for o in old if o["bytes"] == b["bytes"]), None)
                if not other:
                    raise Failed("buffer %d outlives the iteration, and none of its size is freed in one" % b["id"])
                old.remove(other)
                self.older.append((b["id"], other["id"]))
        if old:
            raise Failed("buffers of earlier iterations are freed, and none take their places")
        self.last = {}  # buffer -> whether a memset of a part of it was the last to touch it
        for i, op in enumerate(self.ops):
            self.calls += ["F %d" % b for b in dies.get(i, []) if i] + ["A %d" % b for b in born.get(i, [])]
            self.calls += self.call(op)
            for b in op["reads"] + op["writes"] + op["rmw"] + op.get("side", []):
                self.last[b] = op["name"] == "memset" and b in op["rmw"]
        self.calls += ["F %d" % b for b in dies.get(len(self.ops), [])]

    def bytes(self, b):
        return max(64, -(-self.buffers[b]["bytes"] // SCALE // 64) * 64)

    def call(self, op):
        name, made = op["name"], op["writes"] + op["rmw"]
        if name == "copy_htod" and made:
            return ["H %d" % made[0]]
        if name == "copy_dtoh" and op["reads"]:
            return ["D %d" % op["reads"][0]]
        if name == "copy_dtod" and made and op["reads"]:
            return ["C %d %d" % (made[0], op["reads"][0])]
        if name == "memset":
            return ["M %d %d" % (b, self.bytes(b) if b in op["writes"] else max(64, self.bytes(b) // 1024 * 64)) for b in made[:1]]
        lists = operands(op, self.last)
        counts, n = tuple(map(len, lists)), sum(map(len, lists))
        if n > LIST_MOST:
            raise Failed("a launch of %d buffers: want %d at most" % (n, LIST_MOST))
        k = self.kernels.setdefault((re.sub(r"\W", "_", name)[:200],) + counts, len(self.kernels))
        return ["K %d %d %d %d %s" % (k, op["ns"], name.startswith("nvjet") and n <= LISTED, n, " ".join(str(b) for x in lists for b in x))]

    def text(self):
        held = [b["id"] for b in self.buffers if b["born"] < 0]
        names = ["%s_%d_%d_%d_%d_%d" % k for k in self.kernels]
        return "\n".join(["buffers %d" % len(self.buffers), " ".join(str(self.bytes(b["id"])) for b in self.buffers),
                          "held %d %s" % (len(held), " ".join(map(str, held))),
                          "older %d %s" % (len(self.older), " ".join("%d %d" % p for p in self.older)),
                          "kernels %d %s" % (len(names), " ".join(names)), "calls %d" % len(self.calls)] + self.calls) + "\n"

    def module(self):
        """C."""
        out, rows = [KERNELS], []
        for i, k in enumerate(self.kernels):
            name, counts = k[0], k[1:]
            n = sum(counts)
            sizes = [4, 4 * max(1, n)] + ([8 * LIST_MOST] if n > LISTED else [8] * n)
            out.append("static const size_t sizes%d[] = {%s};" % (i, ", ".join(map(str, sizes))))
            out.append("static void run%d(const simgpu_launch *l, void *const *p) { (void)l; run(p, %s, %d); }" % (i, ", ".join(map(str, counts)), n > LISTED))
            rows.append('{"%s_%s", %d, sizes%d, run%d, cost}' % (name, "_".join(map(str, counts)), len(sizes), i, i))
        out.append("static const simgpu_kernel kernels[] = {%s};\nconst simgpu_module_info simgpu_module = {1, %d, kernels};" % (",\n".join(rows), len(rows)))
        return "\n".join(out) + "\n"


def costs():
    """The H200's figures, with those of a byte multiplied."""
    lines = []
    for name, ns, more in re.findall(r'"(\w+\*?) ([\d.e]+)(?: (\d+))?\\n"', open(COSTS).read()):
        lines.append("%s %g" % (name, float(ns) / SCALE) if name.startswith("host_bw") else "%s %s %d" % (name, ns, int(more or 0) * SCALE))
    return "\n".join(lines) + "\n"


class Twin:
    def __init__(self, model):
        self.model = model
        folder = os.path.join(harness.B, "twin")
        os.makedirs(folder, exist_ok=True)
        stem = os.path.join(folder, model)
        script = Script(trace(model))
        for suffix, text in ((".play", script.text()), (".c", script.module()), (".costs", costs())):
            with open(stem + suffix, "w") as f:
                f.write(text)
        subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-shared", "-fPIC", "-I", os.path.join(HERE, "..", ".."), "-o", stem + ".so", stem + ".c"], check=True)
        self.command = [os.path.join(harness.B, "programs", "twin"), stem + ".play", stem + ".so"]
        self.env = dict(DEVICE, SIMGPU_COSTS=stem + ".costs", REMAT_QUIET="", REMAT_LOG="debug")
        self.native = self.run(6)

    def run(self, iterations, remat=None):
        r = harness.run(self.command + [str(iterations), str(GAP)], remat=remat, env=self.env, timeout=600, planner=harness.OWN_PLANNER)
        if r.rc:
            raise Failed("%s: exit %d\n%s" % (self.model, r.rc, r.err[-1500:]))
        return r

    def trace(self):
        """What `remat trace` records of it."""
        path = os.path.join(harness.B, "twin", self.model + ".json")
        p = subprocess.run([harness.REMAT, "trace", "-o", path, "--"] + self.command + ["8", str(GAP)], env=harness.preloaded(**self.env), capture_output=True, text=True)
        if p.returncode:
            raise Failed("%s: remat trace: exit %d\n%s" % (self.model, p.returncode, p.stderr[-1500:]))
        return harness.load(path)

    def native_ms(self):
        return self.native.iter_ms()[-1]

    def under(self, percent, iterations, policy="auto"):
        """What a run within so many percent of the native peak took (100: without a limit). Policy `plan` waits for its plans, so that the same ones come
        on a machine that has other work."""
        limit = ["--limit", self.native.peak * percent // 100] if percent < 100 else []
        r = self.run(iterations, remat=limit + ["--policy", policy, "--no-cache"])
        ms = r.iter_ms()
        told = re.findall(r"plan installed: \d+ steps, ([\d.]+)% more device time", r.err)
        first = next((i for i, t in enumerate(ms) if i and told and t < ms[0] / 2 and t < 1.5 * ms[-1]), None)
        same = r.losses[:len(self.native.losses)] == self.native.losses
        return {"model": self.model, "percent": percent, "same": same, "right": same and (not limit or r.peak <= limit[1]), "peak": r.peak,
                "iterations": iterations, "limit": limit[1] if limit else None, "ratio": sum(ms[-LAST:]) / LAST / self.native_ms(), "told": 1 + float(told[-1]) / 100 if told else None,
                "first_enforced_s": sum(ms[:first]) / 1e3 if first else None, "most_ms": max(ms[1:]), "ms": ms, "stats": r.stats, "err": r.err}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", choices=[[]] + list(MODELS), default=[])
    parser.add_argument("--percent", default="60,75,100")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--policy", default="auto")
    args = parser.parse_args()
    print("%-9s %5s %9s %9s %9s %14s %16s" % ("model", "limit", "native", "measured", "foretold", "first by plan", "longest iteration"))
    for model in args.models or MODELS:
        t = Twin(model)
        for percent in map(int, args.percent.split(",")):
            u = t.under(percent, args.iterations, args.policy)
            if not u["right"]:
                raise Failed("%s at %d %%: another result, or beyond its limit" % (model, percent))
            print("%-9s %3d %% %6.2f ms %6.3f x %9s %14s %13.1f ms" % (model, percent, t.native_ms(), u["ratio"], "%.3f x" % u["told"] if u["told"] else "-",
                                                                      "%.2f s" % u["first_enforced_s"] if u["first_enforced_s"] else "-", u["most_ms"]), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        sys.exit("twin.py: %s" % e)
