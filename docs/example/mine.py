"""Give up what is cheap to make again for its size and its idle time, until the limit is met."""
import remat


def solve(trace, limit_bytes, *, seconds, seed, offload):
    touched, changed = {}, {}  # buffer: ops that use it, ops that change it
    for i, op in enumerate(trace.ops):
        for b in op.touches():
            touched.setdefault(b, []).append(i)
        for b in op.writes + op.rmw + op.side:
            changed.setdefault(b, []).append(i)

    def lasts(b, first, last):  # what op `first` read is still there just before op `last`
        dies = trace.buffers[b].dies
        return (dies is None or dies > last) and not any(first <= i < last for i in changed.get(b, ()))

    options = []
    for i, op in enumerate(trace.ops):
        uses = touched.get(op.writes[0], []) if len(op.writes) == 1 and not op.rmw + op.side and not op.opaque else []
        if len(uses) > 1 and changed[op.writes[0]] == [i]:
            a, b = max(zip(uses, uses[1:]), key=lambda gap: gap[1] - gap[0])
            if b > a + 1 and all(lasts(r, i, b) for r in op.reads):
                options.append((trace.buffers[op.writes[0]].bytes * (b - a) / (op.ns + 1), op.writes[0], i, a, b))
    drops, replays, needed = {}, {}, set()
    for _, buffer, i, a, b in [(0, None, 0, 0, 0)] + sorted(options, reverse=True):
        if buffer is not None:
            if buffer in needed or any(r in set(sum(drops.values(), [])) for r in trace.ops[i].reads):
                continue  # one replay at a time: none needs what another has given up
            drops.setdefault(a + 1, []).append(buffer)
            replays.setdefault(b, []).append(i)
            needed.update(trace.ops[i].reads)
        steps = [s for k in range(len(trace.ops)) for s in [("drop", x) for x in drops.get(k, ())] + [("replay", x) for x in replays.get(k, ())] + [("op", k)]]
        if remat.simulate(trace, remat.Plan(steps), limit_bytes).ok:
            return steps
    return None
