#!/usr/bin/env python3
"""What `plan`, `sweep`, `advise` and `fit` promise is what `run` does: pages, what no plan can use of a limit, copies, the link's speed; a limit
that the recorded GPU traces can be held to has a price; no solver beats `auto` within the same time; a sweep ends in time. Exit 77 without
the judge."""
import glob
import importlib.util
import json
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import harness  # noqa: E402

SHARED = os.environ.get("REMAT_SHARED", "")
JUDGE = os.path.join(SHARED, "verify_plan.py")
RESULTS = os.path.join(HERE, "..", "gpu", "results")
MIB = 1 << 20
BUSY = {"REMAT_PLAN_CLOCK": "busy"}  # seconds are of processor time where other work has the processors


def remat(*args, env=None):
    return subprocess.run([harness.REMAT, *[str(a) for a in args]], capture_output=True, text=True, env=harness.preloaded(**(env or {})))


def plan(judge, trace, limit, out, *more, env=None):
    """The plan, what is said of it, and what the judge says; (None, None, text) where there is none."""
    if "--time-limit" not in more:
        more += ("--time-limit", "0.5")
    r = remat("plan", trace, "--limit", limit, "--json", "-o", out, *more, env=env or BUSY)
    if r.returncode == 3:
        return None, json.loads(r.stdout), r.stderr
    assert r.returncode == 0, r.stderr
    said, tr, p = json.loads(r.stdout), judge.load(trace), judge.load(out)
    got = judge.verify(tr, p, said["limit_bytes"])
    assert got["ok"] and got["peak_bytes"] == said["peak_bytes"] and got["ns"] == said["planned_ns"], (got, said)
    return p, said, got


def paged(tr, page):
    """The trace with the sizes that a run has."""
    tr = json.loads(json.dumps(tr))
    for b in tr["buffers"]:
        b["bytes"] = 0 if b.get("fixed") else -(-b["bytes"] // page) * page
    return tr


def layered(page, reserve, layers=12):
    """Layers whose outputs are a page and a quarter each, which pages make two of, and a small tensor beside each."""
    buffers, ops = [], []
    size = page + page // 4

    def buf(n, born, dies):
        buffers.append({"id": len(buffers), "bytes": n, "born": born, "dies": dies, "kind": "activation", "fixed": n < page // 2})
        return buffers[-1]["id"]

    n = 2 * layers
    x = buf(size, -1, None)
    outs = [buf(size, i, n - i) for i in range(layers)]
    small = [buf(1000, i, n - i) for i in range(layers)]
    for i in range(layers):
        ops.append(dict(name="f", phase="fwd", reads=[outs[i - 1] if i else x], writes=[outs[i], small[i]], ns=100000))
    grads = [buf(size, layers + i, layers + i + 2 if i + 1 < layers else None) for i in range(layers)]
    for i in range(layers):
        ops.append(dict(name="b", phase="bwd", reads=[outs[layers - 1 - i], small[layers - 1 - i]] + grads[i - 1:i], writes=[grads[i]], ns=100000))
    for b in buffers:
        b["dies"] = None if b["dies"] is not None and b["dies"] >= n else b["dies"]
    for i, o in enumerate(ops):
        o.update(id=i, rmw=[], side=[], flops=0, bytes=0, heavy=False, random=False)
    return {"meta": {"format": "opgraph-1", "model": "layers", "batch": 1, "source": "remat tracer", "page_bytes": page, "reserve_bytes": reserve,
                     "host_bytes_per_s": 10e9}, "buffers": buffers, "ops": ops}


def as_a_run(judge, tmp):
    """A plan keeps within the limit less the reserve in whole pages, copies are in it unless refused, and the floor and the words count as a run does."""
    page, reserve = 2 * MIB, 10 * MIB
    tr, trace, out = layered(page, reserve), os.path.join(tmp, "t.json"), os.path.join(tmp, "p.json")
    with open(trace, "w") as f:
        json.dump(tr, f)
    peak = judge.verify(paged(tr, page), {"steps": [{"op": i} for i in range(len(tr["ops"]))], "limit_bytes": 1 << 60})["peak_bytes"]
    floor = remat("plan", trace, "--limit", "1", "--json", "--no-offload", "--time-limit", "0.5")
    floor = json.loads(floor.stdout)["floor_bytes"]
    assert floor % page == 0 and floor >= reserve + 3 * page * 2, floor
    for limit in (peak + reserve, (peak + reserve + floor) // 2, floor + 4 * page):
        p, said, _ = plan(judge, trace, limit, out, "--no-offload")
        assert p, (limit, said)
        got = judge.verify(paged(tr, page), p, limit - reserve)
        assert got["ok"], (limit, got)
    assert plan(judge, trace, peak + reserve, out, "--no-offload")[1]["overhead"] == 0
    p, said, _ = plan(judge, trace, peak + reserve - 1, out, "--no-offload")  # exact sizes would fit without a plan
    assert said["overhead"] > 0 and said["replays"], said
    text = remat("plan", trace, "--limit", peak + reserve, "--no-offload", "--time-limit", "0.5").stdout
    assert "remat run --limit %d" % (peak + reserve) in text and "10.00 MiB" in text, text
    tr["meta"]["host_bytes_per_s"] = 1e13  # copies that cost nothing: who may copy does
    for b in tr["buffers"]:
        b["kind"] = "activation"
    with open(trace, "w") as f:
        json.dump(tr, f)
    copied = plan(judge, trace, floor + 4 * page, out, "--solver", "best", "--time-limit", "1", env=BUSY)[1]
    text = remat("plan", trace, "--limit", floor + 4 * page, "--solver", "best", "--time-limit", "1", env=BUSY).stdout
    assert "copies to the host at 10000.0 GB/s, as the link was measured" in text, text
    refused = plan(judge, trace, floor + 4 * page, out, "--solver", "best", "--time-limit", "1", "--no-offload", env=BUSY)[1]
    assert copied["offloads"] > 0 == refused["offloads"] and copied["overhead"] < refused["overhead"], (copied, refused)


def without_pages(judge, tmp):
    """What may not move takes its bytes of a limit also where a trace tells of no pages: a plan is found, and keeps within the limit."""
    tr, trace, out = layered(2 * MIB, 0), os.path.join(tmp, "bytes.json"), os.path.join(tmp, "p.json")
    for told in ("page_bytes", "reserve_bytes"):
        del tr["meta"][told]
    for b in tr["buffers"][2:5]:
        b["fixed"] = True
    with open(trace, "w") as f:
        json.dump(tr, f)
    fixed = max(sum(b["bytes"] for b in tr["buffers"] if b.get("fixed") and b["born"] < i <= (b["dies"] or len(tr["ops"]))) for i in range(len(tr["ops"])))
    assert fixed > 3 * 2 * MIB, fixed
    peak = judge.verify(tr, {"steps": [{"op": i} for i in range(len(tr["ops"]))], "limit_bytes": 1 << 60})["peak_bytes"]
    for percent in (90, 75):
        for solver in ("auto", "best", "mincut", "dtr"):
            p, said, got = plan(judge, trace, peak * percent // 100, out, "--solver", solver)
            assert p and got["peak_bytes"] <= peak * percent // 100, (percent, solver, said, got)


def of_the_gpus(judge, tmp):
    """Recorded on GPUs before traces told pages: a price at 60 % of the peak, or the floor."""
    found = 0
    for tar in sorted(glob.glob(os.path.join(RESULTS, "*h100*.traces.tar"))):
        with tarfile.open(tar) as t:
            for m in t.getmembers():
                if not m.name.endswith("gpt2-b8-bf16.json.xz"):
                    continue
                trace = os.path.join(tmp, "gpu.json")
                with open(trace, "wb") as f:
                    f.write(lzma.decompress(t.extractfile(m).read()))
                p, said, got = plan(judge, trace, "60%", os.path.join(tmp, "p.json"), "--time-limit", "3", env=BUSY)
                assert p, (m.name, said, got)
                print("%s at 60 %%: %.2f x, %d replays, %d copies" % (os.path.basename(m.name), 1 + said["overhead"], said["replays"], said["offloads"]))
                found += 1
    assert found


CHEN = ("chen-sqrt", "chen-greedy")  # whose plans take no time; what the others find in none is a matter of which thread ran first
OTHERS = ("mincut", "anneal", "dtr", "chain", "chain-float", "chen-sqrt", "chen-greedy", "revolve", "best")
# trace, limit, with copies, which solvers, seconds: auto gets twice as many, since its two threads' time counts, where the wall's counts once
AGAINST = [("resnet18-b64", "62.3%", False, OTHERS, 2), ("vgg11-b64", "77.7%", False, OTHERS, 2), ("unet-b32", "48.8%", False, OTHERS, 2), ("unet-b32", "62.3%", False, OTHERS, 2),
           ("resnet18-b64", "62.3%", True, ("best", "anneal"), 2), ("unet-b32", "60%", True, ("best", "anneal"), 2),
           ("lstm_lm-b256", "75%", False, CHEN, 0), ("gpt2_small-b16", "60%", True, CHEN, 0)]


def none_beats_auto(judge, tmp):
    """At limits between the rungs of its ladder auto lost a quarter of a point to annealing; with no time at all it found nothing where Chen's heuristics
    found a plan."""
    for name, limit, copies, others, seconds in harness.drawn(AGAINST, test=2, salt="auto"):
        trace, cost = os.path.join(SHARED, "traces", name + ".json"), {}
        for solver in others + ("auto",):
            p, said, _ = plan(judge, trace, limit, os.path.join(tmp, "p.json"), "--solver", solver, "--offload" if copies else "--no-offload",
                              "--time-limit", 2 * seconds if solver == "auto" else seconds, env=BUSY)
            if p:
                cost[solver] = said["overhead"]
            assert seconds or said["solve_seconds"] < 2, (name, solver, said)
        assert (cost["auto"] if cost else 0) <= min(cost.values(), default=0) + 5e-4, (name, limit, cost)
        print("%s at %s%s, %d s: %s" % (name, limit, " with copies" if copies else "", seconds, cost))


def in_time(_, tmp):
    """A sweep without options: every solver, eight limits, twenty seconds of a clock that stands while others have the processors; of the largest trace, too."""
    for trace in harness.drawn((os.path.join(HERE, "..", "golden", "mlp.json"), os.path.join(SHARED, "traces", "lstm_lm-b256.json")), test=1, salt="sweep"):
        began = time.monotonic()
        r = remat("sweep", trace, "--json", env=BUSY)
        rows = json.loads(r.stdout)["rows"]
        seconds = sum(x["solve_seconds"] for x in rows)
        assert r.returncode == 0 and seconds < 21, (seconds, r.stderr)
        assert len({x["solver"] for x in rows}) == 11 and len(rows) == 88 and any(x["feasible"] and x["overhead"] > 0 for x in rows)
        print("a sweep of %s: %d rows, %.1f s by its clock, %.1f s by the wall's" % (os.path.basename(trace), len(rows), seconds, time.monotonic() - began))


def advised(judge, tmp):
    """The floor and the prices are plan's, the memory at the peak is divided without rest, and the loss is named where it is what fills memory."""
    tr, trace = layered(2 * MIB, 4 * MIB), os.path.join(tmp, "t.json")
    tr["ops"][12]["name"] = "log_softmax_backward"
    tr["sites"] = ["cudaLaunchKernel < /x/site-packages/torch/nn/functional.py:9 linear < /home/me/net.py:7 Block.forward < /home/me/train.py:3 main"]
    for o in tr["ops"]:
        o["site"] = 0
    with open(trace, "w") as f:
        json.dump(tr, f)
    r = remat("advise", trace, "--json", "--time-limit", "2", env=BUSY)
    assert r.returncode == 0, r.stderr
    said = json.loads(r.stdout)
    assert said["limits"][0]["overhead"] == 0 and said["floor_bytes"] == json.loads(remat("plan", trace, "--limit", "1", "--json", "--time-limit", "0.5").stdout)["floor_bytes"]
    costs = [x["overhead"] for x in said["limits"] if x["overhead"] is not None]
    assert len(costs) > 3 and costs[-1] > 0 and said["knee_bytes"] in [x["limit_bytes"] for x in said["limits"]], said
    assert sum(said["kinds"].values()) == said["peak_bytes"] and sum(x["bytes"] for x in said["lines"]) == said["peak_bytes"], said
    assert said["modules"][0]["name"] == "Block" and said["lines"][0]["name"] == "net.py:7 Block.forward", said
    text = remat("advise", trace, "--time-limit", "1", env=BUSY).stdout
    assert "the floor" in text and "remat run --limit" in text and "where it is" in text, text


def commanded(tmp):
    """`advise` and `fit` end a program that would run for ever once they know enough; what fit names trains under the limit."""
    program = os.path.join(harness.B, "workloads", "mlp")
    sim = {"REMAT_SIMGPU": "1", "XDG_CACHE_HOME": tmp, "SIMGPU_GRANULARITY": "64K", **BUSY}
    r = remat("fit", "--json", "--limit", "8M", "--vary", "--batch {}", "--from", "512", "--", program, "--iters", "1000000", env=sim)
    assert r.returncode == 0, r.stderr[-800:]
    said = json.loads(r.stdout)
    assert said["largest"] > 512 and said["largest"] >= said["native"], said
    held = harness.run(["mlp", "--iters", "6", "--batch", str(said["largest"])], ["--limit", "8M"], {"SIMGPU_GRANULARITY": "64K"})
    assert not held.rc and held.peak <= 8 * MIB, (said, held)
    print("fit: batch %(largest)d under 8 MiB, about %(native)d without remat" % said)
    r = remat("advise", "--", "true", env=sim)
    assert r.returncode == 1 and "ended before an iteration" in r.stderr, r
    # the look whether the trace can be written makes a file of its name and takes it away: slow here, as on a busy machine
    slow, made = os.path.join(tmp, "slow.so"), "#include <string.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n" \
        "int unlink(const char *p) { if (strstr(p, \"trace.json\")) usleep(300000); return (int)syscall(SYS_unlink, p); }\n"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", slow], input=made, text=True, check=True)
    r = remat("advise", "--json", "--time-limit", "0.5", "--", program, "--iters", "1000000", "--batch", "512", env=dict(sim, LD_PRELOAD=slow))
    assert r.returncode == 0 and json.loads(r.stdout)["peak_bytes"], r
    sleeps = ["sh", "-c", "sleep 60; true"]  # with a process of its own, which is ended too: else its end of the pipe is waited for
    for words in (["advise"], ["fit", "--limit", "1G", "--vary", "--batch {}"]):
        began = time.monotonic()
        r = remat(*words, "--wait", "0.5", "--", *sleeps, env=sim)
        assert time.monotonic() - began < 50, words
        assert r.returncode == 1 and "in 0.5 s" in r.stderr and "--wait SEC" in r.stderr.splitlines()[-1], r


def main():
    if not os.path.exists(JUDGE) or not os.path.exists(harness.REMAT):
        print("no judge or no remat: skipped")
        return 77
    spec = importlib.util.spec_from_file_location("verify_plan", JUDGE)
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    with tempfile.TemporaryDirectory() as tmp:
        as_a_run(judge, tmp)
        without_pages(judge, tmp)
        advised(judge, tmp)
        commanded(tmp)
        for what in harness.drawn((of_the_gpus, none_beats_auto, in_time), test=1, salt="long"):
            what(judge, tmp)
    print("advice: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
