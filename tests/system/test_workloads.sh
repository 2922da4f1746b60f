#!/bin/bash
# The workloads on the simulated GPU, natively: they learn, repeat bit for bit whatever order legal streams run in,
# and every option does what it says.
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-$here/../../build}
W=$B/workloads
[ -e "$B/simgpu/libcuda.so.1" ] || { echo "skipped: no simulated GPU in $B"; exit 77; }
export LD_LIBRARY_PATH=$B/simgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0

ok() {      # ok NAME COMMAND...: the command must succeed
    local name=$1
    shift
    if "$@"; then passed=$((passed + 1)); echo "PASS: $name"
    else failed=$((failed + 1)); echo "FAIL: $name"; fi
}

run() {     # run PROGRAM OPTIONS...: its standard output; a failing program leaves a line that no other run has
    local out
    out=$("$W/$@" 2>"$tmp/stderr") || out="$out
$* exited with status $?: $(cat "$tmp/stderr") ($RANDOM)"
    echo "$out"
}

same() { [ "$1" = "$2" ] || { echo "  one: $1"; echo "  two: $2"; return 1; }; }
differ() { [ "$1" != "$2" ]; }

learns() {  # the losses printed are finite, and their mean falls from the first quarter to the last
    python3 - "$1" <<'PY'
import math, sys
loss = [float.fromhex(l.split()[-1]) for l in sys.argv[1].splitlines() if l.startswith("iter") and " eval " not in l]
q = max(1, len(loss) // 4)
ok = len(loss) >= 4 and all(map(math.isfinite, loss)) and sum(loss[-q:]) < sum(loss[:q])
if not ok:
    print("  losses:", loss or sys.argv[1])
sys.exit(not ok)
PY
}

small() {   # options that make a quick run of a program
    case $1 in
    mlp) echo --batch 96 --layers 4 --iters 8 ;;
    cnn) echo --batch 5 --layers 2 --iters 8 ;;
    gpt) echo --batch 9 --layers 2 --iters 8 ;;
    esac
}

# in `make test` one program, drawn from the commit's hash
programs=(mlp cnn gpt)
if [ "${TEST_TIER:-all}" != all ]; then
    programs=("${programs[$(($(cksum <<< "${TEST_DRAW:-}" | cut -d' ' -f1) % 3))]}")
fi

# ---- at full size ----
for p in $([ "${TEST_TIER:-all}" != all ] || echo "${programs[@]}"); do
    first=$(SIMGPU_STATS=$tmp/stats.json run $p --print-loss --checksum)
    ok "$p: learns" learns "$first"
    ok "$p: prints a checksum" grep -q '^checksum 0x[0-9a-f]\{16\}$' <<< "$first"
    ok "$p: most memory is evictable activations" python3 - "$tmp/stats.json" <<'PY'
import json, sys
peak = json.load(open(sys.argv[1]))["peak_physical_bytes"]
print("  peak_physical_bytes", peak)
sys.exit(not 100 << 20 <= peak <= 330 << 20)
PY
    ok "$p: a second run is the same" same "$first" "$(run $p --print-loss --checksum)"
    ok "$p: another seed is not" differ "$first" "$(run $p --print-loss --checksum --seed 2)"
done

# ---- small runs: orders, routes, options ----
for p in "${programs[@]}"; do
    size="$p $(small $p) --print-loss --checksum"
    plain=$(run $size)
    losses=$(grep loss <<< "$plain")
    sum=$(grep checksum <<< "$plain")
    for chaos in 1 2 3; do
        ok "$p: chaos $chaos" same "$plain" "$(SIMGPU_CHAOS=$chaos run $size)"
        ok "$p: chaos $chaos, two streams, late frees" same "$plain" \
            "$(SIMGPU_CHAOS=$chaos run $size --streams 2 --late-free)"
    done
    for route in linked dlsym procaddr; do
        ok "$p: route $route" same "$plain" "$(run $size --route $route)"
        ok "$p: route $route, kernel handles" same "$plain" "$(run $size --route $route --use-kernel-handles)"
    done
    ok "$p: extra" same "$plain" "$(run $size --extra)"
    ok "$p: extra, kernel handles" same "$plain" "$(run $size --extra --use-kernel-handles)"
    ok "$p: two streams" same "$plain" "$(run $size --streams 2)"
    ok "$p: late frees" same "$plain" "$(run $size --late-free)"
    ok "$p: without reading losses" same "$sum" "$(run $p $(small $p) --checksum | grep checksum)"

    with=$(run $size --eval-every 3)
    ok "$p: evaluation leaves training alone" same "$plain" "$(grep -v eval <<< "$with")"
    ok "$p: evaluation twice in 8 iterations" same 2 "$(grep -c ' eval loss ' <<< "$with")"

    with=$(run $size --early-break 3)
    ok "$p: early break: same until then" same "$(head -4 <<< "$losses")" "$(head -4 <<< "$with")"
    ok "$p: early break: the step is missing" differ "$(sed -n 5p <<< "$losses")" "$(sed -n 5p <<< "$with")"
    ok "$p: early break: goes on" same 8 "$(grep -c '^iter' <<< "$with")"

    with=$(run $size --accumulate 3)
    ok "$p: accumulation: 8 steps" same 8 "$(grep -c '^iter' <<< "$with")"
    ok "$p: accumulation is another training" differ "$plain" "$with"
    [ $p = cnn ] || ok "$p: accumulation learns" learns "$with"     # batches of 5 images are too noisy to tell
    ok "$p: accumulation, two streams" same "$with" "$(run $size --accumulate 3 --streams 2)"

    with=$(run $size --vary-batch)
    ok "$p: varying batch: same until then" same "$(head -3 <<< "$losses")" "$(head -3 <<< "$with")"
    ok "$p: varying batch: differs then" differ "$(sed -n 4p <<< "$losses")" "$(sed -n 4p <<< "$with")"
    ok "$p: varying batch: repeats" same "$with" "$(SIMGPU_CHAOS=4 run $size --vary-batch --streams 2)"

    with=$(run $size --oom 1000000000000)
    ok "$p: refusal is reported" grep -qx 'oom: CUDA_ERROR_OUT_OF_MEMORY' <<< "$with"
    ok "$p: and survived" same "$plain" "$(grep -v oom <<< "$with")"
    ok "$p: an expected refusal that is granted is an error" sh -c "! '$W/$p' $(small $p) --oom 4096 >/dev/null 2>&1"

    ok "$p: times of 8 iterations" same 8 "$(run $size --iter-time | grep -c '^iter [0-9]* time [0-9]*\.[0-9]*[1-9][0-9]* ms$')"
    ok "$p: everything at once repeats" same \
        "$(run $size --streams 2 --late-free --vary-batch --accumulate 2 --eval-every 2 --early-break 5)" \
        "$(SIMGPU_CHAOS=7 run $size --streams 2 --late-free --vary-batch --accumulate 2 --eval-every 2 \
            --early-break 5 --route procaddr --use-kernel-handles --extra)"
    ok "$p: the CUDA source computes the same" same "$plain" "$(WORKLOAD_KERNELS=$W/kernels_cuda.so run $size)"

    "$W/$p" $(small $p) --iters 0 >/dev/null 2>"$tmp/stderr"
    ok "$p: a bad option's exit status" same 2 $?
    ok "$p: a bad option's message" grep -q "$p: --iters 0: expected a whole number" "$tmp/stderr"
    SIMGPU_FAULTS=cuMemAllocAsync:9 "$W/$p" $(small $p) >/dev/null 2>"$tmp/stderr"
    ok "$p: a driver error's exit status" same 1 $?
    ok "$p: a driver error's name and place" grep -q '^tensor.c:[0-9]*: cuMemAllocAsync: CUDA_ERROR_' "$tmp/stderr"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
