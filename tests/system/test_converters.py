#!/usr/bin/env python3
"""Converters keep peak and cost: every trace of the tree (and of REMAT_SHARED) goes to each other form and back, to the byte and the nanosecond,
and the other forms' own judge says the same of them. Bad input is answered with file, line and column.

Argument `pytorch`: with PyTorch for the processor instead: FX graphs, torch.export and training steps, whose peak and work are known by hand, and a
trace of the profiler's against its own running total."""
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", ".."))
B = os.environ.get("B", os.path.join(TOP, "build"))
sys.path[:0] = [HERE, os.path.join(TOP, "offline", "python")]
import harness  # noqa: E402
import remat  # noqa: E402
from judge_instance import judge  # noqa: E402
from remat.convert import checkmate, kineto, moccasin, rotor, snapshot  # noqa: E402

REMAT = os.path.join(B, "remat")
PYTHON = os.path.join(B, "pytorch", "bin", "python")


def traces():
    shared = os.environ.get("REMAT_SHARED", "")
    found = [os.path.join(TOP, "tests", "golden", "mlp.json"), os.path.join(TOP, "docs", "example", "gpt.json")]
    for pattern in (os.path.join(TOP, "tests", "corpus", "pytorch", "*.xz"), os.path.join(TOP, "offline", "benchmark", "traces", "*.xz")):
        found += sorted(glob.glob(pattern))
    return found + (sorted(glob.glob(os.path.join(shared, "traces", "*.json"))) if shared and len(found) < 20 else [])


def round_trips(tmp):
    n = 0
    for path in harness.drawn(traces(), test=5):
        t = remat.Trace.load(path)
        want = t.peak_bytes, t.total_ns
        c, r = checkmate.to_checkmate(t), rotor.to_rotor(t)
        stages = range(1, r["L"] + 2)
        told = [judge(c, {"order": list(range(c["n"]))}), judge(r, {"steps": [["F_all", i] for i in stages] + [["B", i] for i in reversed(stages)]})]
        for what, j in zip(("checkmate", "rotor"), told):
            assert j["ok"] and (j["peak"], j["cost"]) == want, (path, what, j, want)
        assert checkmate.peak_bytes(c) == want[0]
        kpath, spath = os.path.join(tmp, "k.json"), os.path.join(tmp, "s.json.xz")
        kineto.to_kineto(t, kpath)
        snapshot.to_snapshot(t, spath)
        back = {"checkmate": checkmate.from_checkmate(c), "rotor": rotor.from_rotor(r), "kineto": kineto.from_kineto(kpath),
                "snapshot": snapshot.from_snapshot(spath)}
        for what, b in back.items():
            b.check()
            assert (b.peak_bytes, b.total_ns) == want, (path, what, b.peak_bytes, b.total_ns, want)
        n += len(back)
    # what remat itself exports for PyTorch's viewer, in whole microseconds
    path = os.path.join(TOP, "docs", "example", "gpt.json")
    t = remat.Trace.load(path)
    for name in ("s.json", "s.pickle"):
        out = os.path.join(tmp, name)
        subprocess.run([REMAT, "export", path, "--format", "memory_viz", "-o", out], check=True)
        b = snapshot.from_snapshot(out)
        b.check()
        assert b.peak_bytes == t.peak_bytes and abs(b.total_ns - t.total_ns) < 2000 * 1000, (b.peak_bytes, t.peak_bytes, b.total_ns, t.total_ns)
    return n


def solved(tmp):
    """What comes out is what `remat solve` reads, and its schedules keep their promise."""
    t = remat.Trace.load(os.path.join(TOP, "tests", "golden", "mlp.json"))
    for to, name, solver in ((checkmate.to_checkmate, "c", "anneal"), (rotor.to_rotor, "r", "chain")):
        inst = to(t, "80%")
        path = os.path.join(tmp, name + ".json")
        checkmate.save(inst, path)
        assert (checkmate if name == "c" else rotor).load(path) == inst
        r = subprocess.run([REMAT, "solve", path, "--solver", solver, "--time-limit", "1", "--json", "-o", path + ".s"], capture_output=True, text=True)
        said = json.loads(r.stdout)
        assert r.returncode == 0 and said["feasible"] and said["peak"] <= inst["budget"], r
        with open(path + ".s") as f:
            found = judge(inst, json.load(f))
        assert found["ok"] and found["cost"] == said["value"] >= t.total_ns, (found, said)


def data_set(tmp):
    """MOCCASIN's two forms, in little; with the data set at hand, its graphs against the instances that the literature's table is of."""
    a = {"graph": {"name": "a"}, "nodes": [{"name": "x", "cost_cpu": c, "cost_ram": m, "id": i} for i, c, m in ((0, 5, 10), (1, 6, 20), (2, 7, 30))],
         "links": [{"source": 0, "target": 2}, {"source": 2, "target": 1}]}
    b = {"graph": {"order": [4, 9, 7]}, "nodes": [{"name": i, "duration": c, "out_cost": m, "param_cost": 0} for i, c, m in ((4, 5, 10), (7, 6, 20), (9, 7, 30))],
         "links": [{"0": 4, "1": 9}, {"0": 9, "1": 7}]}
    for inst in (a, b):
        path = os.path.join(tmp, "m.json")
        with open(path, "w") as f:
            json.dump(inst, f)
        c = moccasin.to_checkmate(path, "90%")
        assert (c["cost"], c["mem"], c["edges"], c["budget"]) == ([5, 7, 6], [10, 30, 20], [[0, 1], [1, 2]], 45), c
    theirs, ours = os.environ.get("MOCCASIN", ""), os.path.join(os.environ.get("REMAT_SHARED", ""), "anchors", "moccasin")
    if theirs and os.path.isdir(ours):
        for path in sorted(glob.glob(os.path.join(ours, "*.json"))):
            name, percent = os.path.basename(path)[:-5].rsplit("_", 1)
            with open(path) as f:
                want = json.load(f)
            got = moccasin.to_checkmate(os.path.join(theirs, "data", moccasin.FILES[name]), percent + "%")
            assert all(got[k] == want[k] for k in ("n", "edges", "cost", "mem", "budget")), path


# a § stands before the place of the fault
BAD = (
    (kineto.from_kineto, '§[\n 1]', ""), (kineto.from_kineto, '{"traceEvents": §3}', "traceEvents: must be an array"),
    (kineto.from_kineto, '{"traceEvents": [\n {"ph": "X", "cat": "kernel", "ts": §"x", "dur": 1}]}', "traceEvents[0].ts: "),
    (kineto.from_kineto, '{"traceEvents": [\n {"ph": "X", "cat": "kernel", "ts": 1, "dur": §-1}]}', "traceEvents[0].dur: "),
    (kineto.from_kineto, '{"traceEvents": [\n  {"name": "[memory]", "ts": 1, "args": {"Bytes": §"much"}}]}', "traceEvents[0].args.Bytes: "),
    (kineto.from_kineto, '{"traceEvents": §[]}', "traceEvents: has neither"), (kineto.from_kineto, '{"traceEvents": [§', ""),
    (snapshot.from_snapshot, '§{"segments": []}', "device_traces: missing"), (snapshot.from_snapshot, "§not a pickle", "is no snapshot"),
    (snapshot.from_snapshot, '{"device_traces": [[\n§{"action": "alloc", "addr": 1, "time_us": 0}]]}', "device_traces[0][0].size: missing"),
    (snapshot.from_snapshot, '{"device_traces": [[\n{"action": "alloc", "addr": 1, "size": §-4, "time_us": 0}]]}', "device_traces[0][0].size: "),
    (checkmate.load, '{"format": §"rotor-chain-v1"}', "format: "),
    (checkmate.load, '{"format": "checkmate-v1", "n": 2, "cost": [1, 2],\n "mem": §[1], "edges": []}', "mem: "),
    (checkmate.load, '{"format": "checkmate-v1", "n": 2, "cost": [1, 2],\n "mem": [1, 1],\n "edges": [[0, 1], §[1, 0]]}', "edges[1]: "),
    (rotor.load, '{"format": "rotor-chain-v1", "L": 1, "w_a": [0, 0],\n "w_abar": [0, §-1]}', "w_abar[1]: "),
    (moccasin.to_checkmate, '{"nodes": [\n §{"id": 0, "cost_cpu": 1}], "links": []}', "nodes[0].cost_ram: missing"),
    (moccasin.to_checkmate, '{"nodes": [{"id": 0, "cost_cpu": 1, "cost_ram": 1}],\n "links": [§{"source": 0, "target": 5}]}', "links[0]: "),
    # values of a kind that nobody writes: each of these once ended in an exception of Python's
    (kineto.from_kineto, '{"traceEvents": [\n {"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "args": §true}]}', "traceEvents[0].args: must be an object"),
    (kineto.from_kineto, '{"traceEvents": [\n {"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "args": {"correlation": §[]}}]}', "traceEvents[0].args.correlation: "),
    (kineto.from_kineto, '{"traceEvents": [\n {"name": "[memory]", "ts": 1, "args": {"Bytes": 1, "Addr": §{}}}]}', "traceEvents[0].args.Addr: "),
    (kineto.from_kineto, '{"traceEvents": [\n {"ph": "X", "cat": "kernel", "ts": §1e308, "dur": 1}]}', "traceEvents[0].ts: is more than"),
    (snapshot.from_snapshot, '{"device_traces": [[\n{"action": "alloc", "addr": 1, "size": 4, "time_us": 0, "frames": §7}]]}', "device_traces[0][0].frames: "),
    (snapshot.from_snapshot, '{"device_traces": [[]],\n "segments": §3}', "segments: must be an array"),
    (snapshot.from_snapshot, '{"device_traces": [[]],\n "segments": [{"blocks": [{"state": "active_allocated", "address": 1, "size": §"x"}]}]}', "segments[0].blocks[0].size: "),
    (checkmate.load, '{"format": "checkmate-v1", "n": 2, "cost": [1, 2], "mem": [1, 1], "edges": [],\n "names": §["a"]}', "names: has 1 entries"),
    (checkmate.load, '{"format": "checkmate-v1", "n": 1, "cost": [1], "mem": [1], "edges": [],\n "names": [§0]}', "names[0]: must be a string"),
    (rotor.load, '{"format": "rotor-chain-v1", "L": 1,\n "name": §5}', "name: must be a string"),
    (moccasin.to_checkmate, '{"nodes": [{"id": 0, "cost_cpu": 1, "cost_ram": 1}],\n "links": [§{"source": [], "target": 0}]}', "links[0]: "),
)


def bad_input(tmp):
    for load, text, want in BAD:
        path, before = os.path.join(tmp, "bad.json"), text[:text.index("§")]
        want = "%d:%d: %s" % (before.count("\n") + 1, len(before) - before.rfind("\n"), want)
        with open(path, "w") as f:
            f.write(text.replace("§", ""))
        try:
            load(path)
        except remat.BadFile as e:
            assert str(e).startswith("%s:%s" % (path, want)), (str(e), want)
        else:
            raise AssertionError("%s.%s takes %s" % (load.__module__, load.__name__, text))
    # a pickle that would run something runs nothing
    path, ran = os.path.join(tmp, "evil.pickle"), os.path.join(tmp, "ran")
    with open(path, "wb") as f:
        f.write(b"cos\nsystem\n(S'touch %s'\ntR." % ran.encode())
    try:
        snapshot.from_snapshot(path)
    except remat.BadFile as e:
        assert "names os.system" in str(e) and not os.path.exists(ran), e
    else:
        raise AssertionError("a pickle that calls a function was read")


def other_tools():
    t = remat.Trace.load(os.path.join(TOP, "docs", "example", "gpt.json"))
    try:
        g = t.to_networkx()
        assert sum(d["ns"] for _, d in g.nodes(data=True)) == t.total_ns and all(u < v for u, v in g.edges())
        assert g.number_of_edges() == sum(len(o.reads) + len(o.rmw) + len(o.side) for o in t.ops)
    except ImportError:
        print("no networkx")
    try:
        a = t.to_numpy()
        assert a["op_ns"].sum() == t.total_ns and a["op_live_bytes"].max() <= t.peak_bytes and len(a["buf_bytes"]) == len(t.buffers)
    except ImportError:
        print("no numpy")
    try:
        ops, bufs = t.to_pandas()
        assert ops.ns.sum() == t.total_ns and len(bufs) == len(t.buffers)
    except ImportError:
        print("no pandas")


def with_pytorch(tmp):
    import torch
    from torch import nn
    from remat.convert import fx
    seq = nn.Sequential(nn.Linear(1000, 500), nn.ReLU(inplace=True), nn.Linear(500, 10))
    x = torch.empty(100, 1000)
    params = 4 * (1000 * 500 + 500 + 500 * 10 + 10)
    t = fx.from_fx(torch.fx.symbolic_trace(seq), (x,))
    # the largest moment is the second product: weights, input, the hidden layer (changed in place), the result
    assert t.peak_bytes == params + 4 * (100 * 1000 + 100 * 500 + 100 * 10), t.peak_bytes
    assert [o.name for o in t.ops] == ["addmm", "relu_", "addmm"] and t.ops[1].rmw == t.ops[0].writes and not t.ops[1].writes
    assert [o.flops for o in t.ops] == [2 * 100 * 1000 * 500, 0, 2 * 100 * 500 * 10]
    ns = fx.Device().ns
    assert t.total_ns == ns(10 ** 8, params - 4 * 5010 + 4 * 150000) + ns(0, 2 * 4 * 50000) + ns(10 ** 6, 4 * (5010 + 50000 + 1000))
    e = fx.from_export(torch.export.export(seq, (x,)))
    assert [o.name for o in e.ops][::2] == ["linear", "linear"] and e.peak_bytes == t.peak_bytes and e.persistent_bytes == params + 400000

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.n, self.b, self.d = nn.Linear(1000, 500), nn.BatchNorm1d(500), nn.Linear(500, 10), nn.Dropout(0.1)

        def forward(self, x, y):
            return nn.functional.cross_entropy(self.b(self.d(torch.relu(self.n(self.a(x))))), y)
    with torch.device("meta"):
        net, y = Net(), torch.empty(100, dtype=torch.int64)
        x = torch.empty(100, 1000)
    t = fx.from_module(net, (x, y), optimizer="adam")
    weights = sum(p.numel() * 4 for p in net.parameters())
    kinds = {k: sum(b.bytes for b in t.buffers if b.kind == k) for k in remat.KINDS}
    assert kinds["param"] == weights and kinds["grad"] == weights and kinds["state"] == 2 * weights + 2 * 500 * 4 + 8, kinds
    assert {o.phase for o in t.ops} == set(remat.PHASES) and sum(o.name == "adam_" for o in t.ops) == 6
    assert [o.name for o in t.ops if o.random] == ["native_dropout"]
    product = 2 * 100 * 1000 * 500
    assert sum(o.flops for o in t.ops) == 2 * product + 3 * 2 * 100 * 500 * 10, "no gradient of the input is needed"
    with torch.device("meta"):
        deep = nn.Sequential(*(m for _ in range(8) for m in (nn.Linear(256, 256), nn.ReLU())))
        d = fx.from_module(deep, (torch.empty(8192, 256),), lambda out: out.sum(), optimizer=None)
    p = remat.plan(d, "70%", "dtr")
    assert remat.check(d, p).ok and p.count("replay") > 0
    # the profiler's own running total, byte for byte, and the time of what lies in no other operator
    net, x, y = Net(), torch.randn(100, 1000), torch.randint(0, 10, (100,))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
        net(x, y).backward()
        opt.step()
    path = os.path.join(tmp, "k.json")
    prof.export_chrome_trace(path)
    t = kineto.from_kineto(path)
    with open(path) as f:
        events = [e["args"] for e in sorted((e for e in json.load(f)["traceEvents"] if e.get("name") == "[memory]"), key=lambda e: e["ts"])]
    before = events[0]["Total Allocated"] - events[0]["Bytes"]
    assert t.peak_bytes == max(a["Total Allocated"] for a in events) - before, (t.peak_bytes, before)
    assert t.total_ns > 0 and all(o.opaque for o in t.ops) and any("addmm" in o.name or "linear" in o.name for o in t.ops)


def main():
    if not os.path.exists(REMAT):
        print("no remat: skipped")
        return 77
    os.environ["REMAT"] = REMAT
    if sys.argv[1:] == ["pytorch"]:
        if not os.path.exists(PYTHON):
            print("no PyTorch: make pytorch")
            return 77
        if os.path.realpath(sys.executable) != os.path.realpath(PYTHON) or "torch" not in sys.modules and not os.environ.get("OF_PYTORCH"):
            os.execve(PYTHON, [PYTHON, *sys.argv], dict(os.environ, OF_PYTORCH="1", CUDA_VISIBLE_DEVICES=""))
    with tempfile.TemporaryDirectory() as tmp:
        if sys.argv[1:] == ["pytorch"]:
            with_pytorch(tmp)
            other_tools()
            print("converters with PyTorch: all well")
            return 0
        print("%d round trips, to the byte and the nanosecond" % round_trips(tmp))
        solved(tmp)
        data_set(tmp)
        bad_input(tmp)
        other_tools()
    print("converters: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
