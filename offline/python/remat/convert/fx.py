"""Graphs of PyTorch's as traces; no GPU and no memory for the tensors is needed. Needs torch.

    from_module(model, inputs, loss)    a training step: forward, backward, update (torch's own autograd, traced ahead of time)
    from_export(torch.export.export(..)) an exported program
    from_fx(graph_module, inputs)       any FX graph

Operators become ops, one after another as the graph has them. Views take no memory and no time: what reads a view reads the buffer that it looks into.
A buffer lives from the operator that makes it to its last reader; results of the graph survive. Times come from a roofline (`Device`): a launch, and the
longer of its work and its traffic.
"""
from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..trace import Buffer, Op, Trace

# what PyTorch's schemas call a copy, and what is a view all the same
_VIEWS = {"aten::_unsafe_view", "aten::alias", "aten::detach", "aten::_reshape_alias", "aten::lift_fresh"}


@dataclass
class Device:
    """A roofline; the default is the one of remat's own traces."""
    flops_per_s: float = 90e12
    bytes_per_s: float = 1.4e12
    launch_ns: int = 3000
    host_bytes_per_s: float = 25e9

    def ns(self, flops: int, size: int) -> int:
        return self.launch_ns + int(max(flops / self.flops_per_s, size / self.bytes_per_s) * 1e9)


def _bytes(val: Any) -> int:
    return int(val.numel()) * int(val.element_size())


class _Graph:
    def __init__(self, device: Device, meta: Dict[str, Any]) -> None:
        from torch.utils.flop_counter import flop_registry  # type: ignore
        self.flops, self.device = flop_registry, device
        self.t = Trace(meta={"source": "remat.convert.fx", "host_bytes_per_s": device.host_bytes_per_s, **meta, "cost_model": {
            "flops_per_s": device.flops_per_s, "bytes_per_s": device.bytes_per_s, "launch_ns": device.launch_ns}})
        self.of: Dict[Any, Any] = {}   # node: its buffer, or a list of buffers, None for what is no tensor
        self.stays: List[int] = []

    def buffer(self, size: int, kind: str, born: int = -1) -> int:
        self.t.buffers.append(Buffer(size, born, None, kind))
        return len(self.t.buffers) - 1

    def given(self, node: Any, kind: str) -> None:
        import torch
        val = node.meta.get("val")
        self.of[node] = self.buffer(_bytes(val), kind) if isinstance(val, torch.Tensor) else None

    def call(self, node: Any, phase: str) -> None:
        import torch
        val = node.meta.get("val")
        if node.target is operator.getitem:
            whole = self.of.get(node.args[0])
            self.of[node] = whole[node.args[1]] if isinstance(whole, list) else whole
            return
        outs = list(val) if isinstance(val, (tuple, list)) else [val]
        if not any(isinstance(v, torch.Tensor) for v in outs):
            self.of[node] = None
            return
        args, changed, aliases = self._operands(node)
        me = len(self.t.ops)
        made: List[Optional[int]] = []
        new: List[int] = []
        for k, v in enumerate(outs):
            if not isinstance(v, torch.Tensor):
                made.append(None)
            elif aliases.get(k) is not None:
                made.append(aliases[k])
            else:
                new.append(self.buffer(_bytes(v), "activation", me))
                made.append(new[-1])
        self.of[node] = made if isinstance(val, (tuple, list)) else made[0]
        if not new and not changed:
            return                     # a view
        reads = [b for b in dict.fromkeys(args) if b not in changed]
        flops = self._work(node, val)
        size = sum(self.t.buffers[b].bytes for b in (*reads, *changed, *changed, *new))
        tags = getattr(node.target, "tags", ())
        self.t.ops.append(Op(_name(node), self.device.ns(flops, size), phase, reads, new, list(changed), [], flops, size, flops > 0,
                             torch.Tag.nondeterministic_seeded in tags))

    def _operands(self, node: Any) -> Tuple[List[int], List[int], Dict[int, int]]:
        """(buffers that its arguments name, those it changes in place, {result: buffer that it looks into})."""
        schema = getattr(node.target, "_schema", None)
        args: List[int] = []
        changed: List[int] = []
        by_set: Dict[str, int] = {}
        first: Optional[int] = None

        def walk(a: Any, info: Any) -> None:
            nonlocal first
            if isinstance(a, (tuple, list)):
                for x in a:
                    walk(x, info)
                return
            b = self.of.get(a) if hasattr(a, "op") and hasattr(a, "graph") else None
            for one in b if isinstance(b, list) else [b]:
                if one is None:
                    continue
                first = one if first is None else first
                args.append(one)
                if info is not None:
                    for word in info.before_set:
                        by_set.setdefault(word, one)
                    if info.is_write and one not in changed:
                        changed.append(one)
        infos = {p.name: p.alias_info for p in schema.arguments} if schema else {}
        order = [p.name for p in schema.arguments] if schema else []
        for i, a in enumerate(node.args):
            walk(a, infos.get(order[i]) if i < len(order) else None)
        for k, a in node.kwargs.items():
            walk(a, infos.get(k))
        aliases: Dict[int, int] = {}
        for k, r in enumerate(schema.returns if schema else ()):
            for word in r.alias_info.before_set if r.alias_info else ():
                if word in by_set:
                    aliases[k] = by_set[word]
        if schema and schema.name in _VIEWS and first is not None:
            aliases[0] = first
        return args, changed, aliases

    def _work(self, node: Any, val: Any) -> int:
        count = self.flops.get(getattr(node.target, "overloadpacket", None))
        if count is None:
            return 0

        def value(a: Any) -> Any:
            if isinstance(a, (tuple, list)):
                return type(a)(value(x) for x in a)
            return a.meta.get("val") if hasattr(a, "meta") else a
        return int(count(*[value(a) for a in node.args], **{k: value(a) for k, a in node.kwargs.items()}, out_val=val))

    def finish(self, keep: Sequence[Any] = ()) -> Trace:
        """Buffers die behind their last reader, but for those to keep and those that were there before."""
        last: Dict[int, int] = {}
        for i, o in enumerate(self.t.ops):
            for b in o.touches():
                last[b] = i
        kept = set(keep)
        for b, x in enumerate(self.t.buffers):
            if x.born >= 0 and b not in kept:
                x.dies = last[b] + 1
        self.t.check()
        return self.t


def _name(node: Any) -> str:
    schema = getattr(node.target, "_schema", None)
    return schema.name.split("::")[-1] if schema else getattr(node.target, "__name__", str(node.target))


def _results(of: Dict[Any, Any], node: Any) -> List[int]:
    out: List[int] = []

    def walk(a: Any) -> None:
        if isinstance(a, (tuple, list)):
            for x in a:
                walk(x)
        elif isinstance(a, dict):
            for x in a.values():
                walk(x)
        elif hasattr(a, "op"):
            b = of.get(a)
            out.extend(x for x in (b if isinstance(b, list) else [b]) if x is not None)
    walk(node.args)
    return out


def _walk(g: _Graph, nodes: Sequence[Any], kinds: Dict[str, str], phase: Callable[[Any], str]) -> List[int]:
    results: List[int] = []
    for node in nodes:
        if node.op in ("placeholder", "get_attr"):
            g.given(node, kinds.get(node.name, "param" if node.op == "get_attr" else "input"))
        elif node.op == "call_function":
            g.call(node, phase(node))
        elif node.op == "output":
            results = _results(g.of, node)
        else:
            raise ValueError("%s: a graph of operators is wanted, and this is a %s: give the inputs, and it is traced" % (node.name, node.op))
    return results


def from_fx(module: Any, inputs: Optional[Sequence[Any]] = None, *, device: Optional[Device] = None, model: str = "fx") -> Trace:
    """A torch.fx.GraphModule. Of torch.fx.symbolic_trace and the like the inputs are needed: it is traced down to operators with them, without
    computing anything. Results survive; what is given is `input`, attributes are `param`."""
    if not hasattr(module, "graph"):
        raise TypeError("from_fx takes a GraphModule, and no %s; from_module takes a module" % type(module).__name__)
    nodes = list(module.graph.nodes)
    plain = all(n.op in ("placeholder", "get_attr", "output") or n.op == "call_function" and "val" in n.meta for n in nodes)
    kinds: Dict[str, str] = {}
    if inputs is not None or not plain:
        if inputs is None:
            raise ValueError("the graph does not say what its tensors are: give example inputs")
        from torch.fx.experimental.proxy_tensor import make_fx  # type: ignore
        import torch
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        names = list(state)

        def step(params: Dict[str, Any], *args: Any) -> Any:
            return torch.func.functional_call(module, params, args)
        traced = make_fx(step, tracing_mode="fake")(state, *inputs)
        given = [n for n in traced.graph.nodes if n.op == "placeholder"]
        for n, name in zip(given, names):
            kinds[n.name] = "param" if isinstance(state[name], torch.nn.Parameter) else "state"
        nodes = list(traced.graph.nodes)
    g = _Graph(device or Device(), {"model": model})
    results = _walk(g, nodes, kinds, lambda n: "fwd")
    return g.finish(results)


def from_export(program: Any, *, device: Optional[Device] = None, model: str = "export") -> Trace:
    """A torch.export.ExportedProgram: parameters and buffers by its signature, its results survive."""
    if not hasattr(program, "graph_signature"):
        raise TypeError("from_export takes what torch.export.export returns, and no %s" % type(program).__name__)
    kinds = {}
    for spec in program.graph_signature.input_specs:
        word = {"PARAMETER": "param", "BUFFER": "state"}.get(spec.kind.name, "input")
        kinds[getattr(spec.arg, "name", "")] = word
    g = _Graph(device or Device(), {"model": model})
    results = _walk(g, list(program.graph_module.graph.nodes), kinds, lambda n: "fwd")
    return g.finish(results)


def _without_memory(model: Any, inputs: Sequence[Any]) -> Tuple[Any, List[Any]]:
    """Meta tensors as fake ones of the processor: some operators (nll_loss) have no gradient for meta tensors."""
    import copy
    import torch
    tensors = [*model.parameters(), *model.buffers(), *(x for x in inputs if isinstance(x, torch.Tensor))]
    if not any(t.device.type == "meta" for t in tensors):
        return model, list(inputs)
    from torch._subclasses.fake_tensor import FakeTensorMode  # type: ignore
    seen: Dict[int, Any] = {}
    model = copy.deepcopy(model)
    with FakeTensorMode():
        def fake(t: Any) -> Any:
            if id(t) not in seen:
                new = torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="cpu")
                seen[id(t)] = torch.nn.Parameter(new, t.requires_grad) if isinstance(t, torch.nn.Parameter) else new.requires_grad_(t.requires_grad)
            return seen[id(t)]
        for m in model.modules():
            for rows in (m._parameters, m._buffers):
                rows.update((k, fake(t)) for k, t in list(rows.items()) if t is not None)
        return model, [fake(x) if isinstance(x, torch.Tensor) else x for x in inputs]


STATES = {"sgd": 0, "momentum": 1, "adam": 2}


def from_module(model: Any, inputs: Sequence[Any], loss: Optional[Callable[[Any], Any]] = None, *, optimizer: Optional[str] = "momentum",
                device: Optional[Device] = None, name: Optional[str] = None) -> Trace:
    """A training step of a module. `loss` makes a number of what the module returns; without it the module returns one. `optimizer`: sgd, momentum,
    adam (one op a parameter, its states beside it), or None: no update. Built under torch.device("meta"), a model of any size takes no memory."""
    import torch
    from torch._functorch.aot_autograd import aot_export_module  # type: ignore

    model, inputs = _without_memory(model, inputs)

    class Step(torch.nn.Module):  # type: ignore
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *args: Any) -> Any:
            out = self.model(*args)
            return (loss(out) if loss else out,)
    if optimizer is not None and optimizer not in STATES:
        raise ValueError("optimizer %r: one of %s, or None" % (optimizer, ", ".join(STATES)))
    graph, sig = aot_export_module(Step(), tuple(inputs), trace_joint=True, output_loss_index=0)
    nodes = list(graph.graph.nodes)
    kinds = {**{k: "param" for k in sig.inputs_to_parameters}, **{k: "state" for k in sig.inputs_to_buffers}}
    # the first operator that the loss does not need begins the backward pass
    at = {n.name: i for i, n in enumerate(nodes)}
    turn = at[sig.user_outputs[0]]
    g = _Graph(device or Device(), {"model": name or type(model).__name__})
    mark: Dict[str, str] = {n.name: "fwd" if i <= turn else "bwd" for i, n in enumerate(nodes)}
    results = _walk(g, nodes, kinds, lambda n: mark[n.name])
    by_name = {n.name: b for n, b in g.of.items() if not isinstance(b, list)}
    for new, old in sig.buffers_to_mutate.items():
        target = next(by_name[k] for k, v in sig.inputs_to_buffers.items() if v == old)
        source = by_name.get(new)
        if source is not None and target is not None and source != target:
            size = g.t.buffers[source].bytes
            g.t.ops.append(Op("copy_", g.device.ns(0, 2 * size), "opt", reads=[source], writes=[target], bytes=2 * size))
    grads = {p: by_name[k] for k, p in sig.backward_signature.gradients_to_parameters.items() if by_name.get(k) is not None}
    params = {p: by_name[k] for k, p in sig.inputs_to_parameters.items()}
    for p, b in grads.items():
        if g.t.buffers[b].born >= 0:
            g.t.buffers[b].kind = "grad"
    for p, b in grads.items() if optimizer else ():
        w = params[p]
        size = g.t.buffers[w].bytes
        states = [g.buffer(size, "state") for _ in range(STATES[optimizer or "sgd"])]
        moved = size * (3 + 2 * len(states))
        g.t.ops.append(Op("%s_" % optimizer, g.device.ns(0, moved), "opt", reads=[b], rmw=[w, *states], bytes=moved))
    t = g.finish(list(grads.values()) if not optimizer else [])
    n = len(t.ops)
    for b in set(results) | set(grads.values()):    # gradients and the loss are there until the step ends
        if t.buffers[b].born >= 0:
            t.buffers[b].dies = n if optimizer else None
    t.check()
    return t
