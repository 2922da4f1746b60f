#!/bin/sh
# Prints kernels.ptx, made from kernels.cu with nvcc. The code needs nothing newer than PTX 7.0, so the text asks
# for no more: a driver then loads it whatever toolkit it was made with. Comments name the toolkit; they go.
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"${NVCC:-nvcc}" -I"$root" --ptx -arch=compute_75 --fmad=false -o "$tmp/kernels.ptx" "$root/tests/workloads/kernels.cu"
sed -e '/^\/\//d' -e 's/^\.version .*/.version 7.0/' "$tmp/kernels.ptx" | cat -s
