#!/bin/sh
# kernels.ptx is what nvcc makes of kernels.cu today, an assembler accepts it for old and new GPUs, and it holds
# nothing that would round differently from the C build. Without nvcc these are left out. And on the simulated GPU, which runs the text as it
# stands, the workloads compute bit for bit what they do with the C build.
here=$(cd "$(dirname "$0")" && pwd)
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
result() {
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "PASS: $2"
    else failed=$((failed + 1)); echo "FAIL: $2"; fi
}

work=$B/workloads
for what in "mlp --iters 2 --batch 256 --layers 3" "cnn --iters 2 --batch 4" "gpt --iters 2 --batch 1"; do
    set -- $what
    program=$1
    shift
    for kernels in kernels.so kernels.ptx; do
        LD_LIBRARY_PATH=$B/simgpu WORKLOAD_KERNELS=$work/$kernels "$work/$program" "$@" --print-loss --checksum > "$tmp/$kernels.out" || echo failed >> "$tmp/$kernels.out"
    done
    [ "$(grep -c . "$tmp/kernels.so.out")" = 3 ] && cmp "$tmp/kernels.so.out" "$tmp/kernels.ptx.out"
    result $? "$program computes the same with the text's kernels"
done
if [ ! -x "$nvcc" ]; then
    echo "no nvcc: the text is not made anew"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
fi

NVCC="$nvcc" "$here/../workloads/kernels_ptx.sh" > "$tmp/kernels.ptx"
# Another release of nvcc words the same code differently: compare text for text only with the one it came from.
if "$nvcc" --version | grep -q 'V13\.0\.88'; then
    cmp "$tmp/kernels.ptx" "$here/../workloads/kernels.ptx"
    result $? "kernels.ptx is up to date (else: kernels_ptx.sh > kernels.ptx)"
fi
grep '^\.visible \.entry\|^	\.param' "$tmp/kernels.ptx" > "$tmp/new"
grep '^\.visible \.entry\|^	\.param' "$here/../workloads/kernels.ptx" > "$tmp/old"
cmp "$tmp/new" "$tmp/old"
result $? "kernels and parameters are those of kernels.def"
! grep -n 'approx\|fma\.\|\.ftz' "$here/../workloads/kernels.ptx"
result $? "no approximate, fused or flushing operation"
ptxas=$(dirname "$nvcc")/ptxas
if [ -x "$ptxas" ]; then
    for arch in sm_75 sm_90; do
        "$ptxas" -arch=$arch -o "$tmp/kernels.cubin" "$here/../workloads/kernels.ptx"
        result $? "assembles for $arch"
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
