#!/usr/bin/env bash
# A build directory with which make would find nothing to do, or remove sources, is refused: one line, exit 2, nothing run.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
B=$(cd "${B:-$top/build}" && pwd)
export -n B
failed=0 passed=0
# WORDS of the line, then the command (make -n: what would be run)
refused() {
    local words=$1 out rc
    shift
    out=$("$@" 2>&1)
    rc=$?
    if [ $rc = 2 ] && [ "$(wc -l <<<"$out")" = 1 ] && grep -qF -- "$words" <<<"$out"; then passed=$((passed + 1))
    else failed=$((failed + 1)); echo "FAILED: $* (exit $rc)"; echo "$out" | tail -n 3; fi
}
accepted() {
    local out
    if out=$("$@" 2>&1); then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $*"; echo "$out" | tail -n 3; fi
}
m=(make -s -n -C "$top" --no-print-directory)
unset MAKEFLAGS MAKELEVEL MFLAGS
refused "comes from the environment" env B="$B" "${m[@]}" build/remat
refused "comes from the environment" env B="$B" "${m[@]}"
refused "is not in the build directory" "${m[@]}" B="$B" build/remat
refused "is not in the build directory" "${m[@]}" B=build/asan build/remat
refused "is not in the build directory" "${m[@]}" policy/remat
refused "is no build directory" "${m[@]}" B= all
refused "is no build directory" "${m[@]}" B=/ clean
refused "is no build directory" "${m[@]}" "B=two words" all
for folder in . tests policy "$top" "$top/preload"; do
    refused "holds more than what is built" "${m[@]}" B="$folder" clean
done
accepted "${m[@]}" B="$B" "$B/remat"
accepted "${m[@]}" B=build/elsewhere help
accepted env B=build/elsewhere "${m[@]}" clean
# what stands for the same directory is the same
for same in build/elsewhere/ ./build/elsewhere; do
    [ "$("${m[@]}" B=$same clean)" = "rm -rf build/elsewhere" ] && passed=$((passed + 1)) || { failed=$((failed + 1)); echo "FAILED: B=$same"; }
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
