"""What the five training scripts share: options, determinism, synthetic data, the loop, and what it reports.

Every script prints one line per step, `step 3 loss 0x1.5bf0a8p+1 ms 93.10`, and at the end the most memory
PyTorch held and a digest of the trained parameters. `--json FILE` writes the same as one object.
"""
import argparse
import functools
import hashlib
import json
import os
import random
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic matrix products; before torch starts

import torch
from torch.utils.checkpoint import checkpoint


def parse(batch, description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--batch", type=int, default=batch)
    p.add_argument("--amp", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--json", metavar="FILE", help="write the report here")
    p.add_argument("--checkpoint", action="store_true", help="activation checkpointing, block by block")
    p.add_argument("--compile-budget", type=float, metavar="0..1",
                   help="torch.compile with this activation memory budget")
    p.add_argument("--tiny", action="store_true", help="a toy size of the model, to try the script on a CPU")
    return p.parse_args()


def start(args):
    """Seeds and deterministic algorithms; returns the device."""
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # a debugging aid: every output would be filled first
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def checkpoint_blocks(blocks):
    """Recompute each block in the backward pass instead of keeping what it computed inside."""
    for block in blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)


def host_batches(make, args, count=4):
    """`count` batches made on the host by make(generator), in pinned memory where there is a GPU."""
    g = torch.Generator().manual_seed(args.seed + 1)
    batches = [make(g) for _ in range(count)]
    if torch.cuda.is_available():
        batches = [tuple(t.pin_memory() for t in b) for b in batches]
    return batches


def params_digest(model):
    h = hashlib.sha256()
    for p in model.parameters():
        h.update(p.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return h.hexdigest()


def fit(name, model, blocks, optimizer, loss_of, make_batch, args, device):
    """Trains for args.steps and reports. loss_of(model, *batch) gives the scalar loss."""
    cuda = device.type == "cuda"
    if args.checkpoint:
        checkpoint_blocks(blocks)
    step_model = model
    if args.compile_budget is not None:
        import torch._functorch.config as functorch_config
        functorch_config.activation_memory_budget = args.compile_budget
        step_model = torch.compile(model)
    batches = host_batches(make_batch, args)
    losses, event_ms, wall_ms = [], [], []
    for step in range(args.steps):
        began = time.perf_counter()
        if cuda:
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
        batch = [t.to(device, non_blocking=True) for t in batches[step % len(batches)]]
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=args.amp == "bf16"):
            loss = loss_of(step_model, *batch)
        loss.backward()
        optimizer.step()
        if cuda:
            last.record()
        losses.append(loss.item().hex())
        wall_ms.append((time.perf_counter() - began) * 1e3)
        event_ms.append(first.elapsed_time(last) if cuda else wall_ms[-1])
        print(f"step {step} loss {losses[-1]} ms {event_ms[-1]:.2f}", flush=True)

    report = {
        "model": name, "batch": args.batch, "amp": args.amp, "seed": args.seed, "steps": args.steps,
        "checkpoint": args.checkpoint, "compile_budget": args.compile_budget,
        "torch": torch.__version__, "device": torch.cuda.get_device_name() if cuda else "cpu",
        "parameters": sum(p.numel() for p in model.parameters()),
        "losses": losses, "iter_ms": event_ms, "wall_ms": wall_ms,
        "max_allocated_bytes": torch.cuda.max_memory_allocated() if cuda else None,
        "max_reserved_bytes": torch.cuda.max_memory_reserved() if cuda else None,
        "params_sha256": params_digest(model),
    }
    print(f"memory {report['max_allocated_bytes']} reserved {report['max_reserved_bytes']}")
    print(f"params {report['params_sha256']}")
    if args.json:
        with open(args.json, "w") as f:
            json.dump(report, f)
