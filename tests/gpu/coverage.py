"""One training-like loop over single PyTorch operators, and the truth about what each of them touches.

    coverage.py --steps 12                    the loop alone: what is run under `remat trace`
    coverage.py --truth TRUTH.json            one iteration, watched from inside PyTorch
    coverage.py --compare TRACE.json TRUTH.json [--json OUT]

Every operator works on tensors of its own, whose byte sizes occur in no other operator: that is how a buffer of
the trace is recognised as a tensor of the program (suite/effects.py compares the two and says by which rules).
The loop itself knows nothing of being watched.
"""
import argparse
import json
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def make_cases(torch, dev, scale):
    """The operators: a list of (name, step). Dimensions are multiples of 8 that give every case its own sizes;
    `scale` divides the large one, to try the loop on a CPU."""
    F = torch.nn.functional
    f32, bf16 = torch.float32, torch.bfloat16
    cases = []
    gen = torch.Generator().manual_seed(3)

    def new(*shape, dtype=f32, grad=False):
        t = (torch.rand(shape, generator=gen) - 0.5).to(dev).to(dtype)
        return t.requires_grad_(grad)

    def d(n):
        return max(8, n // scale)

    def case(name, leaves, forward, out_grad):
        """One differentiable operator: forward, then backward from a given gradient; gradients are then dropped."""
        def step():
            out = forward()
            torch.autograd.backward(out, out_grad)
            for leaf in leaves:
                leaf.grad = None
        cases.append((name, step))

    def product(name, dtype, m, k, n, tf32=False):
        a, b = new(d(m), k, dtype=dtype, grad=True), new(k, n, dtype=dtype, grad=True)

        def forward():
            torch.backends.cuda.matmul.allow_tf32 = tf32
            return a @ b
        case(name, [a, b], forward, new(d(m), n, dtype=dtype))

    product("matmul fp32", f32, 1032, 776, 520)
    product("matmul tf32", f32, 1544, 648, 904, tf32=True)
    product("matmul bf16", bf16, 2056, 1288, 1160)

    def batched(name, dtype, count, m, k, n):
        a, b = new(d(count), m, k, dtype=dtype, grad=True), new(d(count), k, n, dtype=dtype, grad=True)
        case(name, [a, b], lambda: torch.bmm(a, b), new(d(count), m, n, dtype=dtype))

    batched("bmm fp32", f32, 48, 136, 168, 184)
    batched("bmm bf16", bf16, 56, 232, 200, 248)

    x, w, bias = new(d(1816), 1048, dtype=bf16, grad=True), new(1304, 1048, dtype=bf16, grad=True), \
        new(1304, dtype=bf16, grad=True)
    case("linear bias bf16", [x, w, bias], lambda: F.linear(x, w, bias), new(d(1816), 1304, dtype=bf16))

    def conv(name, dtype, n, c_in, c_out, side, last=False):
        layout = torch.channels_last if last else torch.contiguous_format
        # PyTorch's own convolution goes image by image: few of them, or their loop is what looks like the iteration
        n = n if scale == 1 else 2 + n // 16 % 2
        x = new(n, c_in, side, side, dtype=dtype).to(memory_format=layout).detach().requires_grad_()
        w = new(c_out, c_in, 3, 3, dtype=dtype).to(memory_format=layout).detach().requires_grad_()
        g = new(n, c_out, side, side, dtype=dtype).to(memory_format=layout)
        case(name, [x, w], lambda: F.conv2d(x, w, padding=1), g)

    conv("conv fp32", f32, 16, 168, 216, 26)
    conv("conv bf16", bf16, 24, 264, 312, 22)
    conv("conv bf16 channels last", bf16, 24, 280, 344, 30, last=True)

    xb, wb, bb = new(d(40), 72, 34, 34, grad=True), new(72, grad=True), new(72, grad=True)
    mean, var = torch.zeros(72, device=dev), torch.ones(72, device=dev)
    case("batch norm", [xb, wb, bb], lambda: F.batch_norm(xb, mean, var, wb, bb, training=True),
         new(d(40), 72, 34, 34))

    xl, wl, bl = new(d(2312), 744, grad=True), new(744, grad=True), new(744, grad=True)
    case("layer norm", [xl, wl, bl], lambda: F.layer_norm(xl, (744,), wl, bl), new(d(2312), 744))

    xs = new(d(2712), 616, grad=True)
    case("softmax", [xs], lambda: torch.softmax(xs, 1), new(d(2712), 616))

    def attention(name, dtype, b, h, t, e):
        q, k, v = (new(d(b), h, t, e, dtype=dtype, grad=True) for _ in range(3))
        case(name, [q, k, v], lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
             new(d(b), h, t, e, dtype=dtype))

    attention("sdpa bf16", bf16, 6, 11, 376, 64)
    attention("sdpa fp32", f32, 5, 9, 328, 64)

    table, index = new(d(5000), 328, grad=True), torch.randint(d(5000), (d(3336),), generator=gen).to(dev)
    case("embedding", [table], lambda: F.embedding(index, table), new(d(3336), 328))

    c1, c2 = new(d(1208), 456, grad=True), new(d(1672), 456, grad=True)
    case("cat", [c1, c2], lambda: torch.cat([c1, c2]), new(d(1208) + d(1672), 456))

    xi, pick = new(d(3912), 392, grad=True), torch.randint(d(3912), (d(2232),), generator=gen).to(dev)
    case("index_select", [xi], lambda: torch.index_select(xi, 0, pick), new(d(2232), 392))

    xd = new(d(2856), 552, grad=True)
    case("dropout", [xd], lambda: F.dropout(xd, 0.3), new(d(2856), 552))

    xg = new(d(2968), 584, dtype=bf16, grad=True)
    case("gelu bf16", [xg], lambda: F.gelu(xg, approximate="tanh"), new(d(2968), 584, dtype=bf16))

    xr = new(d(3128), 424, grad=True)
    case("add, relu in place", [xr], lambda: torch.relu_(xr + 0.125), new(d(3128), 424))

    xm = new(d(48), 88, 38, 38, grad=True)
    case("max pool", [xm], lambda: F.max_pool2d(xm, 2), new(d(48), 88, 19, 19))

    xc, label = new(d(1448), 1352, grad=True), torch.randint(1352, (d(1448),), generator=gen).to(dev)
    case("cross entropy", [xc], lambda: F.cross_entropy(xc, label), torch.ones((), device=dev))

    def adam(name, rows, **how):
        params = [new(d(r), 488, grad=True) for r in rows]
        for p in params:
            p.grad = new(*p.shape)
        cases.append((name, torch.optim.Adam(params, lr=1e-3, **how).step))

    adam("adam foreach", [1016, 1256, 1488], foreach=True)
    adam("adam fused", [1736, 1976, 2216], fused=True)
    return cases


def watch(torch, cases, steps):
    """Runs `steps` iterations, the last one under a dispatch mode; returns the truth as a dictionary."""
    from torch.utils._python_dispatch import TorchDispatchMode

    tensors, ops, keep, ids = [], [], [], {}
    current = [None]
    # arguments that a schema marks as changed, which the kernel changes only when another argument asks for it
    unchanged_unless = {("aten::_fused_adam_", "grads"): "grad_scale"}
    # arguments of which an operator takes the shape alone
    shape_only = {("aten::max_pool2d_with_indices_backward", "self"), ("aten::new_zeros", "self"), ("aten::nll_loss_backward", "self")}
    # autograd adds to the zeros in place, but into a copy of them where somebody watches
    in_place_unwatched = {"aten::index_add"}  # of its first argument

    def tensor_id(t, fresh):
        storage = t.untyped_storage()
        key = storage._cdata
        if key not in ids:
            ids[key] = len(tensors)
            # holding the storage keeps its address from naming a second tensor; holding the tensor as well would
            # make autograd copy gradients that it otherwise takes as they are
            keep.append(storage)
            tensors.append({"bytes": storage.nbytes(), "persistent": not fresh, "case": current[0],
                            "shape": list(t.shape), "dtype": str(t.dtype)})
        return ids[key]

    def flat(x):
        if isinstance(x, torch.Tensor):
            yield x
        elif isinstance(x, (list, tuple)):
            for y in x:
                yield from flat(y)

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            reads, mutated = [], []
            for i, a in enumerate(func._schema.arguments):
                value = args[i] if i < len(args) else kwargs.get(a.name)
                changed = a.alias_info is not None and a.alias_info.is_write
                asks = unchanged_unless.get((func._schema.name, a.name))
                if asks and kwargs.get(asks) is None:
                    changed = False
                for t in flat(value) if (func._schema.name, a.name) not in shape_only else ():
                    (mutated if changed else reads).append(tensor_id(t, fresh=False))
            before = set(ids)
            out = func(*args, **kwargs)
            writes = []
            if func._schema.name in in_place_unwatched:
                changed = tensor_id(args[0], fresh=False)
                ids[out.untyped_storage()._cdata] = changed
                keep.append(out.untyped_storage())
                mutated, before = [changed], set(ids)
            for t in flat(out):
                if t.untyped_storage()._cdata not in before:
                    writes.append(tensor_id(t, fresh=True))
            ops.append({"op": str(func), "case": current[0], "reads": sorted(set(reads) - set(mutated)),
                        "rmw": sorted(set(mutated)), "writes": sorted(set(writes))})
            return out

    for _ in range(steps - 1):
        for _, step in cases:
            step()
    with Watch():
        for name, step in cases:
            current[0] = name
            step()
    return {"format": "effects-1", "torch": torch.__version__, "cases": [n for n, _ in cases], "tensors": tensors,
            "ops": ops}


def size_clashes(truth, at_least):
    """Sizes of at least `at_least` bytes that occur in more than one case: {bytes: [case, ...]}."""
    owners = {}
    for t in truth["tensors"]:
        if t["bytes"] >= at_least:
            owners.setdefault(t["bytes"], set()).add(t["case"])
    return {b: sorted(c) for b, c in owners.items() if len(c) > 1}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--truth", metavar="FILE")
    p.add_argument("--compare", nargs=2, metavar=("TRACE", "TRUTH"))
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--scale", type=int, default=1, help="divide the large dimensions, to try it on a CPU")
    args = p.parse_args()

    if args.compare:
        from suite import effects
        result = effects.compare_files(*args.compare)
        if args.json:
            with open(args.json, "w") as f:
                json.dump(result, f, indent=1)
        print(effects.table(result))
        return 0 if result["all_exact"] else 1

    import torch
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cases = make_cases(torch, dev, args.scale)
    if args.truth:
        truth = watch(torch, cases, 3)
        clashes = size_clashes(truth, 1 << 20)
        if clashes:
            sys.exit(f"coverage.py: two operators have tensors of one size: {clashes}")
        with open(args.truth, "w") as f:
            json.dump(truth, f)
        print(f"{len(truth['ops'])} operators on {len(truth['tensors'])} tensors")
        return 0
    for step in range(args.steps):
        for _, run in cases:
            run()
        if dev.type == "cuda":
            torch.cuda.synchronize()
        print(f"step {step}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
