"""Compares an opgraph-1 trace with the truth that coverage.py recorded from inside PyTorch.

A buffer of the trace is taken for a tensor of the program by its byte size, which coverage.py makes unique to one
operator. The trace may begin anywhere in the cycle, so it is first rotated to begin with the first operator. Then
each trace op is given to one PyTorch operator, in order, by the cheapest monotone assignment: an operator launches
any number of kernels, and some launch none. Under that assignment

  exact         every tensor that went in was read, every tensor that came out was written, nothing else of the
                program's was touched, and the same tensor was the same buffer throughout;
  conservative  right but weaker: an output that the operator overwrites whole was taken for changed in place;
  missing       a tensor that went in or came out does not show in the trace;
  extra         a tensor shows that neither went in nor came out, or is written though it only went in;
  confused      a buffer stands for two tensors, or two buffers for one.

Tensors under `small` bytes (running statistics, scales, step counters) share pages and are never evicted: what
happens to them is counted apart and spoils nothing. Buffers of no known size are an operator's own workspace, and so is one of
a known size that no other operator touches.

Standard library only. Errors: ValueError with a sentence that says what is wrong with which file.
"""
import json

SMALL = 1 << 20  # at most; half a page where the trace's device has smaller ones (a simulated one may)
# operators whose schema says "changed in place" although the old contents do not matter
OVERWRITES = ("copy_", "fill_", "zero_", "bernoulli_", "random_", "normal_", "uniform_", "exponential_")
INF = float("inf")


def _named(op):
    return op["op"].split("::")[-1].split(".")[1] if op["op"].startswith("aten.") else op["op"]


def _launches(op):
    """Whether PyTorch must have launched something for this operator: it makes or changes a tensor's contents."""
    return bool(op["writes"] or op["rmw"]) and "empty" not in op["op"]


def _operands(op):
    """The tensors that went into a PyTorch operator or came out of it."""
    return set(op["reads"] + op["writes"] + op["rmw"])


def _buffers(op):
    """What a trace op touches, in whatever way."""
    return {b for kind in ("reads", "writes", "rmw", "side") for b in op.get(kind, [])}


class _Sizes:
    """Finds the program's size behind a buffer's: exact, or rounded up by an allocator to 512 bytes or a chunk."""

    def __init__(self, truth):
        self.known = sorted({t["bytes"] for t in truth["tensors"] if t["bytes"]})
        self.exact = set(self.known)

    def of(self, nbytes, granularity):
        if nbytes in self.exact:
            return nbytes
        for unit in (512, granularity):
            fits = [s for s in self.known if s > nbytes - unit and -(-s // unit) * unit == nbytes]
            if len(fits) == 1:
                return fits[0]
        return None


def _touched(op, size_of):
    """(all sizes touched, sizes written) of a trace op, known sizes only."""
    written = {size_of[b] for k in ("writes", "rmw", "side") for b in op.get(k, [])}
    read = {size_of[b] for k in ("reads", "rmw") for b in op.get(k, [])}
    return (written | read) - {None}, written - {None}


def _rotate(ops, touched, truth, small):
    """The ops, begun at the cycle's first operator: after an op of another case, the first that touches case 0."""
    sizes_of_case = {}
    for t in truth["tensors"]:
        if t["bytes"] >= small:
            sizes_of_case.setdefault(t["case"], set()).add(t["bytes"])
    first = sizes_of_case.get(truth["cases"][0], set())
    others = set().union(*(s for c, s in sizes_of_case.items() if c != truth["cases"][0]), set())
    n = len(ops)
    last_other = None
    for k in list(range(n)) * 2:
        if touched[k][0] & first and last_other is not None:
            return ops[k:] + ops[:k], touched[k:] + touched[:k]
        if touched[k][0] & others:
            last_other = k
    return ops, touched


def _assign(touched, truth):
    """For each trace op the index of its PyTorch operator: monotone, of least cost. Dynamic program over (trace op,
    operator, does the operator have one yet); an operator that must have launched and has nothing costs 1, a size
    that does not belong costs 3."""
    bytes_of = [t["bytes"] for t in truth["tensors"]]
    want = []
    for op in truth["ops"]:
        out = {bytes_of[i] for i in op["writes"] + op["rmw"]}
        want.append(({bytes_of[i] for i in op["reads"]} | out, out, _launches(op)))
    n, m = len(touched), len(want)

    def misfit(k, j):
        every, written = touched[k]
        return 3 * len(every - want[j][0]) + 3 * len(written - want[j][1]) + (1 if every and not want[j][2] else 0)

    # cost[j][h]: best so far with the current operator j, h = 1 when an op was assigned to it
    cost, back = [[INF, INF] for _ in range(m)], []
    cost[0][0] = 0
    for j in range(1, m):
        cost[j][0] = cost[j - 1][0] + want[j - 1][2]
    for k in range(n):
        new, choice = [[INF, INF] for _ in range(m)], [[None, None] for _ in range(m)]
        for j in range(m):
            best, h = min((cost[j][0], 0), (cost[j][1], 1))
            if best < INF:
                new[j][1], choice[j][1] = best + misfit(k, j), ("take", h)
        for j in range(1, m):  # moving on to operator j after op k
            here = min((new[j - 1][0] + want[j - 1][2], 0), (new[j - 1][1], 1))
            if here[0] < new[j][0]:
                new[j][0], choice[j][0] = here[0], ("move", here[1])
        cost = new
        back.append(choice)
    tail = [INF] * m  # finishing: the operators after j launch nothing more
    left = 0
    for j in range(m - 1, -1, -1):
        tail[j] = left
        left += want[j][2]
    _, j, h = min((cost[j][h] + tail[j] + (want[j][2] if not h else 0), j, h) for j in range(m) for h in (0, 1))
    where = [0] * n
    for k in range(n - 1, -1, -1):
        while back[k][j][h][0] == "move":
            h = back[k][j][h][1]
            j -= 1
        where[k] = j
        h = back[k][j][h][1]
    return where


def _resplit(where, ops, size_of, born, truth):
    """Operators that follow each other and have operands of one size alone (an attention and its gradient, a convolution whose weight
    is turned round for both) leave open where the one ends. It ends where the fewest buffers are more, and the fewest are less, than
    it has tensors of their size and birth."""
    tensors = truth["tensors"]

    def misfit(part, op):
        have, may = {}, {}
        for b in {b for o in part for b in _buffers(o) if size_of[b] is not None}:
            kind = size_of[b], born[b] < 0
            have[kind] = have.get(kind, 0) + 1
        for i in _operands(op):
            kind = tensors[i]["bytes"], tensors[i]["persistent"]
            may[kind] = may.get(kind, 0) + 1
        return sum(abs(have.get(kind, 0) - may.get(kind, 0)) for kind in have.keys() | may.keys())

    launching = [j for j, op in enumerate(truth["ops"]) if _launches(op)]
    for j, after in zip(launching, launching[1:]):
        both = [k for k in range(len(ops)) if where[k] in (j, after)]
        sizes = [{tensors[i]["bytes"] for i in _operands(truth["ops"][x])} for x in (j, after)]
        if len(both) < 2 or not sizes[0] & sizes[1]:
            continue
        now = sum(where[k] == j for k in both)

        def cost(at):
            return (misfit([ops[k] for k in both[:at]], truth["ops"][j]) + misfit([ops[k] for k in both[at:]], truth["ops"][after]),
                    abs(at - now))
        at = min(range(1, len(both)), key=cost)
        for i, k in enumerate(both):
            where[k] = j if i < at else after
    return where


class _Identity:
    """Which buffer stands for which tensor. Where several operands of one operator have one size, a tensor has
    several candidates until a later operator tells them apart."""

    def __init__(self, tensors, born):
        self.tensors, self.born = tensors, born
        self.candidates = {}  # tensor: set of buffers
        self.owner = {}       # buffer: the one tensor it is

    def buffers(self, tensor):
        return self.candidates.get(tensor, set())

    def bind(self, tensor, fits, rivals, alone):
        """`fits`: buffers of the tensor's size that the operator touched in the tensor's role; `rivals`: the tensors of
        that size in that role, itself among them; `alone`: no other operand has this size, in any role. Returns (the
        buffer or one of them, what is wrong or None)."""
        held = {b for r in rivals if r != tensor and len(self.buffers(r)) == 1 for b in self.buffers(r)}
        old = self.candidates.get(tensor)
        free = [b for b in fits if self.owner.get(b, tensor) == tensor and b not in held]
        now = set(free) if old is None else old & set(fits)
        if not now:
            return fits[0], (f"is another buffer than before ({sorted(old)[0]}, now {fits[0]})" if old
                             else f"is buffer {fits[0]}, which is another tensor")
        if alone and len(now) > 1:
            # of the operator's own temporary and the tensor, the tensor is the one of the right birth
            lasting = [b for b in now if (self.born[b] < 0) == self.tensors[tensor]["persistent"]]
            now = set(lasting[:1]) or now
        self.candidates[tensor] = now
        b = min(now)
        if len(now) == 1:
            self.owner[b] = tensor
            if self.tensors[tensor]["persistent"] and self.born[b] >= 0:
                return b, f"lives on from before, and buffer {b} is born in the iteration"
        return b, None


def compare(trace, truth):
    """Returns {"cases": {name: {...}}, "all_exact": bool, ...}; the lists hold short sentences."""
    needs = (("trace", trace, ("buffers", "ops", "meta")), ("truth", truth, ("tensors", "ops", "cases")))
    for name, doc, keys in needs:
        for k in keys:
            if k not in doc:
                raise ValueError(f"the {name} has no '{k}'")
    sizes = _Sizes(truth)
    granularity = trace["meta"].get("granularity_bytes", 2 << 20)
    least = min(SMALL, granularity // 2)
    size_of = {b["id"]: sizes.of(b["bytes"], granularity) for b in trace["buffers"]}
    born = {b["id"]: b["born"] for b in trace["buffers"]}
    touched = [_touched(o, size_of) for o in trace["ops"]]
    ops, touched = _rotate(trace["ops"], touched, truth, least)
    where = _resplit(_assign(touched, truth), ops, size_of, born, truth)
    seen = {}  # buffer: the operators that touch it
    for k, o in enumerate(ops):
        for b in _buffers(o):
            seen.setdefault(b, set()).add(where[k])

    cases = {c: {"operators": 0, "kernels": 0, "exact": True, "conservative": [], "missing": [], "extra": [],
                 "confused": [], "small": 0, "opaque": []} for c in truth["cases"]}
    tensors = truth["tensors"]
    who = _Identity(tensors, born)

    for j, op in enumerate(truth["ops"]):
        mine = [k for k in range(len(ops)) if where[k] == j]
        case, name = cases[op["case"]], _named(op)
        case["kernels"] += len(mine)
        if not mine and not _launches(op):
            continue
        case["operators"] += 1
        reads, writes, rmw = {}, {}, {}
        for k in mine:
            o = ops[k]
            if o.get("opaque"):
                case["opaque"].append(o["name"])
            for kind, into in (("reads", reads), ("writes", writes), ("rmw", rmw), ("side", rmw)):
                for b in o.get(kind, []):
                    if size_of[b] is not None and not (kind == "reads" and (b in writes or b in rmw)):
                        into.setdefault(b, k)
        # an output written whole first and changed later is an output written whole
        for b in [b for b in rmw if b in writes and writes[b] <= rmw[b]]:
            del rmw[b]

        overwrites = any(name.startswith(o) or name == o for o in OVERWRITES)
        # an operator that only allocates has outputs without contents
        out = [] if "empty" in op["op"] else op["writes"]
        operands = _operands(op)
        for kind, listed in (("out", out), ("changed", op["rmw"]), ("in", op["reads"])):
            for t in listed:
                small = tensors[t]["bytes"] < least
                nbytes = tensors[t]["bytes"]
                label = f"{name}: {tensors[t]['dtype'].replace('torch.', '')}{tensors[t]['shape']}"
                changed = [b for b in dict.fromkeys([*writes, *rmw]) if size_of[b] == nbytes]
                fits = ([b for b in reads if size_of[b] == nbytes] or changed) if kind == "in" else changed
                if small:
                    case["small"] += not fits
                    continue
                if not fits:
                    case["missing"].append(f"{label} went {'in' if kind == 'in' else 'out'} unseen")
                    continue
                b, wrong = who.bind(t, fits, [x for x in listed if tensors[x]["bytes"] == nbytes],
                                    sum(tensors[x]["bytes"] == nbytes for x in operands) == 1)
                if wrong:
                    case["confused"].append(f"{label} {wrong}")
                if kind == "out" and b in rmw:
                    case["conservative"].append(f"{label} came out, seen as changed in place")
                if kind == "changed" and b in rmw and overwrites:
                    case["conservative"].append(f"{label} is overwritten, seen as changed in place")
                if kind == "changed" and b in writes and not overwrites and b not in reads:
                    case["extra"].append(f"{label} is changed in place, seen as overwritten")
                if kind == "in" and b in writes and b not in reads:
                    case["extra"].append(f"{label} went in, seen as overwritten")
        allowed = set().union(*(who.buffers(t) for t in operands))
        may_write = set().union(*(who.buffers(t) for t in op["writes"] + op["rmw"]))
        for b in dict.fromkeys([*reads, *writes, *rmw]):
            if size_of[b] < least or (b not in allowed and born[b] >= 0 and seen[b] == {j}):
                continue  # nobody else ever sees the operator's own copy of what went in
            if b not in allowed:
                case["extra"].append(f"{name}: buffer {b} of {size_of[b]} bytes is no operand")
            elif b not in may_write and (b in writes or b in rmw):
                case["extra"].append(f"{name}: buffer {b} of {size_of[b]} bytes only went in, and is written")
    for case in cases.values():
        case["opaque"] = sorted(set(case["opaque"]))
        case["exact"] = not (case["conservative"] or case["missing"] or case["extra"] or case["confused"])
        case["right"] = not (case["missing"] or case["extra"] or case["confused"])
    return {"cases": cases, "all_exact": all(c["exact"] for c in cases.values()),
            "all_right": all(c["right"] for c in cases.values()),
            "exact": sum(c["exact"] for c in cases.values()), "of": len(cases),
            "trace_ops": len(ops), "operators": len(truth["ops"])}


def compare_files(trace_path, truth_path):
    docs = []
    for path in (trace_path, truth_path):
        with open(path) as f:
            try:
                docs.append(json.load(f))
            except ValueError as e:
                raise ValueError(f"{path}: {e}") from None
    return compare(*docs)


def table(result):
    lines = [f"{'operator':26} {'exact':6} {'kernels':>7}  what differs"]
    for name, c in result["cases"].items():
        what = c["missing"] + c["extra"] + c["confused"] + c["conservative"]
        lines.append(f"{name:26} {'yes' if c['exact'] else 'weaker' if c['right'] else 'NO':6} {c['kernels']:7}  "
                     f"{what[0] if what else ''}{f' (+{len(what) - 1})' if len(what) > 1 else ''}")
    lines.append(f"{result['exact']} of {result['of']} exact")
    return "\n".join(lines)
