"""no_cudnn.py SCRIPT [ARGUMENT...]: runs a script with PyTorch's cuDNN switched off. On the simulated device only: cuDNN brings a CUDA
runtime of its own inside, which knows real devices; PyTorch then takes its own convolutions."""
import os
import runpy
import sys

import torch

torch.backends.cudnn.enabled = False
torch.set_num_threads(1)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
    code = 0
except SystemExit as e:
    code = e.code if isinstance(e.code, int) or e.code is None else 1
    if e.code is not None and not isinstance(e.code, int):
        print(e.code, file=sys.stderr)
except BaseException:
    import traceback
    traceback.print_exc()
    code = 1
sys.stdout.flush()
sys.stderr.flush()
# C's exit: libraries write what they write at the end, but the interpreter does not end under the autograd thread, which may abort then
import ctypes
ctypes.PyDLL(None).exit(code or 0)
