#!/bin/bash
# run.sh [--dist DIR] [--out PATH] [...]: the whole GPU suite, under nine minutes on an H200.
# Without options it takes build/dist-gpu (or the folder it lies in) and writes to $OUT, else to results/.
# All options: python3 run.py --help. What it asks and what it writes: README.md.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v python3 >/dev/null || { echo "run.sh: python3 is needed" >&2; exit 2; }
if [ -z "${CUDA_VISIBLE_DEVICES+set}" ]; then export CUDA_VISIBLE_DEVICES=0; fi
exec python3 -B "$here/run.py" "$@"
