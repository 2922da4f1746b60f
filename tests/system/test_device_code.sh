#!/usr/bin/env bash
# The PTX in the library is what hash.cu says: assembled for each kind of device, and where the compiler that made it is at hand, made anew
# and compared. Exit 77: neither is.
set -u
cd "$(dirname "$0")/../.."
have=tracer/effects/hash_ptx.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
did=0 failed=0
# Additions to one address are done one after the other: they are a block's, after its threads have met, two in each kernel.
sed -n 's/^    "\(.*\)\\n"$/\1/p' "$have" | awk '/\.entry/ {kernels++} /bar\.sync/ {met = NR} /(atom|red)\.(global\.)?add/ {adds++; if (!met) early++} /^}/ {met = 0}
  END {exit !(kernels == 3 && adds == 6 && !early)}' || { echo "FAILED: not one addition a block and sum in $have"; failed=1; }
if command -v ptxas >/dev/null; then
  sed -n 's/^    "\(.*\)\\n"$/\1/p' "$have" | sed -e 's/\\"/"/g' -e 's/\\\\/\\/g' >"$work/hash.ptx"
  for sm in $(ptxas --help | grep -oE "sm_[0-9]+'" | grep -oE '[0-9]+' | sort -nu | awk '$1 >= 75'); do
    ptxas -arch="sm_$sm" "$work/hash.ptx" -o /dev/null || { echo "FAILED: it does not assemble for sm_$sm"; failed=1; }
    did=$((did + 1))
  done
fi
if command -v nvcc >/dev/null; then
  sh tracer/effects/generate.sh >"$work/hash_ptx.h" || { echo "FAILED: generate.sh"; exit 1; }
  made_by=$(head -n 1 "$have")
  if [ "$made_by" = "$(head -n 1 "$work/hash_ptx.h")" ]; then
    diff "$have" "$work/hash_ptx.h" || { echo "FAILED: $have is not what generate.sh writes"; failed=1; }
    did=$((did + 1))
  fi
fi
[ $did -gt 0 ] || { echo "no CUDA toolkit is installed"; exit 77; }
echo "$did checks"
exit $failed
