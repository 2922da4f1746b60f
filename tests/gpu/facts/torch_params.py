"""torch_params: do PyTorch's launches show their operands in their parameters? Run under libspy.so.

Each operator runs once to warm up; its inputs, and the address its output will most likely get again, are watched;
then it runs once more under a mark of the spy. Prints one JSON line; the spy's own line says how each operand showed.
"""
import ctypes
import json
import sys

import torch
import torch.nn.functional as F


def spy():
    lib = ctypes.CDLL(None)
    try:
        lib.spy_open_mark.argtypes = [ctypes.c_char_p]
        lib.spy_watch_range.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_size_t]
        return lib
    except AttributeError:
        return None


def operators(dev):
    f32, bf16 = torch.float32, torch.bfloat16

    def new(*shape, dtype=f32):
        return torch.rand(shape, device=dev).sub_(0.5).to(dtype)

    torch.backends.cuda.matmul.allow_tf32 = False
    for label, dtype in (("fp32", f32), ("bf16", bf16)):
        a, b, c = new(2048, 2048, dtype=dtype), new(2048, 2048, dtype=dtype), new(2048, dtype=dtype)
        yield f"matmul {label}", [a, b], lambda a=a, b=b: a @ b
        yield f"linear {label}", [a, b, c], lambda a=a, b=b, c=c: F.linear(a, b, c)
        x, y = new(64, 256, 256, dtype=dtype), new(64, 256, 256, dtype=dtype)
        yield f"bmm {label}", [x, y], lambda x=x, y=y: torch.bmm(x, y)
        im, w = new(32, 64, 56, 56, dtype=dtype), new(128, 64, 3, 3, dtype=dtype)
        yield f"conv {label}", [im, w], lambda im=im, w=w: F.conv2d(im, w, padding=1)
        last, wl = im.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
        yield f"conv {label} channels last", [last, wl], lambda i=last, w=wl: F.conv2d(i, w, padding=1)
        q, k, v = (new(8, 12, 512, 64, dtype=dtype) for _ in range(3))
        yield f"sdpa {label}", [q, k, v], lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    n = new(4096, 1024)
    yield "layer norm", [n], lambda: F.layer_norm(n, (1024,))
    yield "softmax", [n], lambda: torch.softmax(n, 1)
    yield "dropout", [n], lambda: F.dropout(n, 0.1)
    index = torch.randint(4096, (2048,), device=dev)
    yield "embedding", [n, index], lambda: F.embedding(index, n)
    yield "cat", [n, n[:512]], lambda: torch.cat([n, n[:512]])
    many = [new(1 << 20) for _ in range(5)]
    yield "foreach add", many, lambda: torch._foreach_add(many, 1.0)[0]


def main():
    lib, dev = spy(), torch.device("cuda")
    ran, failed = 0, []
    for name, inputs, call in operators(dev):
        try:
            out = call()
            torch.cuda.synchronize()
            watched = [(f"in{i}", t.data_ptr(), t.untyped_storage().nbytes()) for i, t in enumerate(inputs)]
            watched.append(("out", out.data_ptr(), out.untyped_storage().nbytes()))
            del out
            if lib:
                lib.spy_open_mark(name.encode())
                for label, addr, size in watched:
                    lib.spy_watch_range(label.encode(), addr, size)
            out = call()
            torch.cuda.synchronize()
            if lib:
                lib.spy_close_mark()
            ran += 1
            del out
        except RuntimeError as e:
            failed.append(f"{name}: {str(e)[:120]}")
    print(json.dumps({"fact": "torch_params", "ran": ran, "failed": failed, "spied": lib is not None, "ok": True}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
