#!/bin/sh
# kernels.ptx is what nvcc makes of kernels.cu today, an assembler accepts it for old and new GPUs, and it holds
# nothing that would round differently from the C build. Without nvcc: exit 77.
here=$(cd "$(dirname "$0")" && pwd)
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
[ -x "$nvcc" ] || { echo "skipped: no nvcc"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
result() {
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "PASS: $2"
    else failed=$((failed + 1)); echo "FAIL: $2"; fi
}

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
