#!/bin/bash
# The simulated driver exports calls of the CUDA driver and nothing else (but four functions of its own), and every call that
# preload/cuda_abi.h declares; it needs nothing but the C library.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
lib=${B:-$root/build}/simgpu/libcuda.so.1
[ -e "$lib" ] || { echo "no $lib here"; exit 77; }
command -v nm readelf >/dev/null || exit 77
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$lib" | awk '{print $3}' | sort >"$work/have"
fail=0
if grep -v -e '^cu[A-Z]' -e '^simgpu_write_stats$' -e '^simgpu_engine_fill$' -e '^simgpu_host_works$' -e '^simgpu_memory_room$' "$work/have"; then echo "exported beside the driver's calls"; fail=1; fi
{
  printf '#define CUDA_ABI_BOTH(name, suffix, args) DECLARED name DECLARED name##suffix\n'
  sed -e '/^#include/d' -e '/define CUDA_ABI_BOTH/d' -e 's/CUresult \(cu[A-Za-z0-9_]*\)(/DECLARED \1 (/' \
    "$root/preload/cuda_abi.h"
} | ${CC:-cc} -E -P -x c - | grep -o 'DECLARED cu[A-Za-z0-9_]*' | awk '{print $2}' | sort -u >"$work/want"
[ "$(wc -l <"$work/want")" -gt 400 ] || { echo "could not read the declarations"; fail=1; }
if comm -13 "$work/have" "$work/want" | grep .; then echo "declared but not exported"; fail=1; fi
readelf -d "$lib" | grep -q 'SONAME.*\[libcuda.so.1\]' || { echo "wrong soname"; fail=1; }
if [ -z "${SAN:-}" ] && readelf -d "$lib" | grep NEEDED | grep -vE 'lib(c|m|dl|pthread)\.so|ld-linux'; then
  echo "needs more than the C library"; fail=1
fi
# Programs open the driver late, when little is left of what each thread has from its beginning: 98 KiB of it once kept PyTorch from opening it.
own=$(readelf -lW "$lib" | awk '$1 == "TLS" {print $6}')
if [ -z "${SAN:-}" ] && [ $((own)) -gt 2048 ]; then echo "$((own)) bytes of each thread's memory: more than a program that is running has left"; fail=1; fi
[ $fail = 0 ] && echo "ok: $(wc -l <"$work/have") calls exported"
exit $fail
