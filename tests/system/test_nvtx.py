#!/usr/bin/env python3
"""`--nvtx`: modes, iterations, replays and copies become ranges, each closed once, as many as the statistics say; the numbers stay
the same. A library that writes ranges down stands in for NVIDIA's; where that is installed too, it is loaded and nothing breaks."""
import glob
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

CMD = ["mlp", "--iters", "12", "--print-loss", "--checksum", "--batch", str(harness.EIGHTH["mlp"])]


def run(limit, folder, policy="plan", record=None, options=("--nvtx",)):
    env = dict(harness.EIGHTH_DEVICE)
    env.update({"LD_LIBRARY_PATH": ":".join([folder, os.path.join(harness.B, "simgpu")])})
    if record:
        env["NVTX_RECORD"] = record
    return harness.run(CMD, remat=["--limit", limit, "--policy", policy] + list(options), env=env)


def ranges(c, path, what):
    """Texts of all ranges by kind; each must be closed exactly once, pushes from the inside out."""
    pushed, started, texts, depth = [], {}, [], 0
    with open(path) as f:
        for line in f.read().splitlines():
            verb, _, rest = line.partition(" ")
            if verb == "push":
                texts.append(rest)
                pushed.append(rest)
                depth = max(depth, len(pushed))
            elif verb == "pop":
                c.ok(pushed, what + ": a pop without its push")
                pushed and pushed.pop()
            elif verb == "start":
                n, _, text = rest.partition(" ")
                started[n] = text
                texts.append(text)
            else:
                c.ok(started.pop(rest, None) is not None, what + ": a range ends that was not open", line)
    c.ok(not pushed, what + ": every push has its pop", str(pushed[:3]))
    c.ok(len(started) <= 2, what + ": of modes and iterations one each is open at the end", str(started))
    return texts


def main():
    recorder = os.path.join(harness.B, "programs", "nvtx")
    if not os.path.exists(os.path.join(recorder, "libnvtx3interop.so.1")):
        print("no simulated GPU built")
        return 77
    c = harness.Checks()
    native = harness.run(CMD, env=harness.EIGHTH_DEVICE)
    half = native.peak // 2
    with tempfile.TemporaryDirectory(prefix="remat-nvtx-") as tmp:
        log = os.path.join(tmp, "plan")
        r = run(half, recorder, record=log)
        c.ok(r.rc == 0 and r.losses == native.losses and r.checksum == native.checksum, "plan: as natively", r.err[-300:])
        t = ranges(c, log, "plan")
        replays = [x for x in t if x.startswith("remat replay ")]
        c.ok(len(replays) == r.stats.get("replays") and replays and all(len(x) > len("remat replay ") for x in replays), "a range for each replay", "%d %s" % (len(replays), r.stats))
        modes = [x.split()[-1] for x in t if x.startswith("remat mode ")]
        at = [modes.index(m) for m in ("probe", "plan", "rehearse", "enforce") if m in modes]
        c.ok(len(at) == 4 and at == sorted(at), "the modes in their order", str(modes))
        its = [int(re.match(r"remat iteration (\d+) ", x).group(1)) for x in t if x.startswith("remat iteration ")]
        c.ok(its == sorted(set(its)) and len([x for x in t if x.endswith("(enforce)")]) >= 4, "iterations, each once", str(its))

        log = os.path.join(tmp, "swap")
        r = run(half, recorder, "swap", log)
        t = ranges(c, log, "swap")
        out, back = ([x for x in t if x.startswith("remat copies " + w)] for w in ("out", "in"))
        c.ok(len(out) == r.stats.get("swaps_out") and len(back) == r.stats.get("swaps_in") and out, "a range for each copy", "%d %d %s" % (len(out), len(back), r.stats))
        c.ok(all(re.search(r"\(\d+\.\d MiB\)$", x) for x in out + back), "copies tell their size")

        log = os.path.join(tmp, "off")
        run(half, recorder, "swap", log, ())
        c.ok(not os.path.exists(log), "without --nvtx nothing is made")

        bad = os.path.join(tmp, "bad")
        os.mkdir(bad)
        for name in ("libnvtx3interop.so.1", "libnvToolsExt.so.1", "libnvtx3interop.so"):
            with open(os.path.join(bad, name), "w") as f:
                f.write("no library")
        r = run(half, bad, "swap")
        c.ok(r.rc == 0 and r.losses == native.losses and r.err.count("no library of NVTX is found") == 1, "without NVTX it is said once", r.err[-300:])
    for real in glob.glob("/usr/local/cuda*/lib*/libnvtx3interop.so.1")[:1]:
        r = run(half, os.path.dirname(real), "swap")
        c.ok(r.rc == 0 and r.losses == native.losses and "NVTX" not in r.err, "NVIDIA's own library", r.err[-300:])
    return c.end()


if __name__ == "__main__":
    sys.exit(main())
