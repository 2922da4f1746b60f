#!/usr/bin/env bash
# A program that makes one call of nearly every kind prints the same with and without the doors, and the ledger balances:
# what was reserved was settled, what was counted was given back.
set -u
B=${B:-$(cd "$(dirname "$0")/../.." && pwd)/build}
. "$(dirname "$0")/../conformance/env.sh"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
set -- "$SIM/libcuda.so.1"
count() { sed -n "s/^ledger $1 //p" "$2"; }

"$C/calls" "$@" >"$tmp/bare" || { echo "calls fails without the doors"; exit 1; }
CONFORMANCE_LEDGER=1 with_doors "$C/pass.so" "$C/calls" "$@" >"$tmp/doors" 2>"$tmp/ledger" || fail "calls fails under the doors"
diff "$tmp/bare" "$tmp/doors" || fail "answers differ under the doors"
for zero in pending_bytes counted_bytes fork_child; do
    [ "$(count $zero "$tmp/ledger")" = 0 ] || fail "$zero is $(count $zero "$tmp/ledger"), not 0"
done
for one in start finish context_gone stream_destroyed; do
    [ "$(count $one "$tmp/ledger")" = 1 ] || fail "$one: $(count $one "$tmp/ledger") times, not once"
done
for some in alloc_async alloc_driver free_async foreign_reserve memset copy other mem_info pin pointer_attribute; do
    [ "$(count $some "$tmp/ledger")" -gt 0 ] || fail "no call reached eng_$some"
done
[ $(($(count alloc_async "$tmp/ledger") + $(count alloc_driver "$tmp/ledger"))) = "$(count free_async "$tmp/ledger")" ] || fail "allocations and frees differ"

# Each allocating call fails once, early or late: the program sees the driver's own code, nothing stays reserved.
for call in cuMemAlloc_v2 cuMemAllocPitch_v2 cuMemAllocManaged cuMemCreate cuMemAllocAsync cuMemAllocFromPoolAsync \
    cuArrayCreate_v2 cuMemPoolCreate cuMemMap; do
    for n in 1 2 3; do
        SIMGPU_FAULTS=$call:$n "$C/calls" "$@" >"$tmp/bare5" 2>&1
        SIMGPU_FAULTS=$call:$n CONFORMANCE_LEDGER=1 with_doors "$C/pass.so" "$C/calls" "$@" >"$tmp/doors5" 2>"$tmp/ledger5"
        [ $n = 1 ] && cmp -s "$tmp/bare" "$tmp/bare5" && fail "no failure of $call was injected"
        diff "$tmp/bare5" "$tmp/doors5" || fail "answers differ when $call fails at call $n"
        [ "$(count pending_bytes "$tmp/ledger5")" = 0 ] || fail "bytes stay reserved when $call fails at call $n"
    done
done

# Inside a collective: its copies pass unseen, its allocation counts, its buffers are pinned.
CONFORMANCE_LEDGER=1 with_doors "$C/pass.so" "$C/calls" "$@" "$C/libnccl.so.2" "$C/libnvidia-ml.so.1" \
    >"$tmp/doors2" 2>"$tmp/ledger2" || fail "calls fails with collectives"
"$C/calls" "$@" "$C/libnccl.so.2" "$C/libnvidia-ml.so.1" >"$tmp/bare2"
diff "$tmp/bare2" "$tmp/doors2" || fail "answers differ with collectives"
more() { echo $(($(count "$1" "$tmp/ledger2") - $(count "$1" "$tmp/ledger"))); }
[ "$(more copy)" = 2 ] || fail "the collective's own copies reached the engine ($(more copy), not 2)"
[ "$(more foreign_reserve)" = 1 ] || fail "the collective's memory is not counted"
[ "$(more pin)" = 2 ] || fail "the collective's buffers are not pinned"
[ "$(more other)" = 1 ] || fail "the collective is no op"

# Whole programs: launches, tensors that come and go, modules that are unloaded.
for model in mlp cnn gpt; do
    [ -x "$B/workloads/$model" ] || { fail "no $model"; continue; }
    LD_LIBRARY_PATH=$SIM "$B/workloads/$model" --iters 2 --checksum >"$tmp/bare4" 2>&1 || fail "$model"
    LD_LIBRARY_PATH=$SIM CONFORMANCE_LEDGER=1 with_doors "$C/pass.so" "$B/workloads/$model" --iters 2 --checksum \
        >"$tmp/doors4" 2>"$tmp/ledger4" || fail "$model under the doors"
    grep -v '^ledger' "$tmp/ledger4" >>"$tmp/doors4"
    grep -q checksum "$tmp/bare4" && diff "$tmp/bare4" "$tmp/doors4" || fail "$model differs under the doors"
    [ "$(count launch "$tmp/ledger4")" -gt 0 ] || fail "no launch of $model reached eng_launch"
    [ "$(count alloc_async "$tmp/ledger4")" = "$(count free_async "$tmp/ledger4")" ] || fail "$model leaks by the ledger"
done

# Many threads at once, from the first cuInit on.
for doors in "$C/pass.so" "$B/libremat.so"; do
    with_doors "$doors" "$C/storm" "$@" || fail "threads under $(basename "$doors")"
done

# The kill switch: nothing starts.
CONFORMANCE_LEDGER=1 REMAT_DISABLE=1 with_doors "$C/pass.so" "$C/calls" "$@" >"$tmp/off" 2>"$tmp/ledger3"
diff "$tmp/bare" "$tmp/off" || fail "answers differ under the kill switch"
[ -s "$tmp/ledger3" ] && fail "the engine started under the kill switch"
exit $failed
