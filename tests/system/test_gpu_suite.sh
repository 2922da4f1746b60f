#!/bin/bash
# The GPU suite, as far as a machine without a GPU can check it: its programs on the simulated device, its Python,
# its judge of traces, its driver script in --selftest. Exit 77 only where there is no Python.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
B=${B:-$PWD/build}
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
# a preloaded library comes before the sanitizer's runtime, which wants to be first; clang's is part of the program
runtime=
case ${SAN:-} in
address) runtime=$(${CC:-gcc} -print-file-name=libasan.so) ;;
thread) runtime=$(${CC:-gcc} -print-file-name=libtsan.so) ;;
esac
${CC:-gcc} --version | grep -qi clang && runtime=
export PYTHONDONTWRITEBYTECODE=1 PYTHONPYCACHEPREFIX="$tmp/pyc"

# check NAME COMMAND...: one test; its output is shown when it fails.
check()
{
    local name=$1
    shift
    if "$@" >"$tmp/check.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name"
        sed 's/^/    /' "$tmp/check.log" | tail -15
    fi
}

# fact NAME CONDITION [VAR=VALUE...]: runs the program on the simulated GPU; CONDITION is Python over its line, `d`.
fact()
{
    local name=$1 condition=$2
    shift 2
    timeout 60 env LD_LIBRARY_PATH="$B/simgpu" "$@" "$B/gpu/facts/$name" >"$tmp/fact.json"
    local rc=$?
    python3 - "$tmp/fact.json" "$condition" "$rc" <<'PY'
import json, sys
lines = open(sys.argv[1]).read().splitlines()
assert len(lines) == 1, f"one line expected, got {lines}"
d, rc = json.loads(lines[0]), int(sys.argv[3])
assert eval(sys.argv[2]), f"rc {rc}, {d} does not satisfy {sys.argv[2]}"
PY
}

# spied CONDITION: the spy's line of spy_check satisfies CONDITION.
spied()
{
    rm -f "$tmp/spy"
    timeout 60 env LD_LIBRARY_PATH="$B/simgpu" LD_PRELOAD="$runtime $B/gpu/facts/libspy.so" SPY_OUT="$tmp/spy" \
        "$B/gpu/facts/spy_check" >"$tmp/fact.json" || return 1
    python3 - "$tmp/fact.json" "$tmp/spy" <<'PY'
import json, sys
fact, spy = (json.loads(open(p).read()) for p in sys.argv[1:])
assert fact["ok"] and fact["spied"] and fact["answer"], fact
assert spy["launches"] == 4 and spy["by_extra"] == 1 and spy["dropped"] == 0, spy
assert spy["function"]["handles"] == 1 and spy["function"]["layout_answered"] == 4, spy
assert [m["name"] for m in spy["marks"]] == ["linked", "dlsym", "getproc", "extra"], spy
for m in spy["marks"]:
    assert m["launches"] == 1 and m["blind"] == 0 and m["shows_none"] == 0 and m["kernels"] == ["fact_add"], m
    seen = {k: (w["word"], w["tensor_map"]) for k, w in m["watched"].items()}
    assert seen == {"dst": (1, 0), "src": (1, 0), "stranger": (0, 0)}, m
PY
}

# selftest: run.sh on the simulated device leaves a whole result of the parts that can run there.
selftest()
{
    mkdir -p "$tmp/dist"
    ln -sfn "$B/gpu/facts" "$tmp/dist/facts"
    ln -sfn "$B/workloads" "$tmp/dist/workloads"
    ln -sf "$B/remat" "$B/libremat.so" "$tmp/dist/"
    timeout 240 bash tests/gpu/run.sh --selftest --dist "$tmp/dist" --simgpu "$B/simgpu" --out "$tmp/out" --iters 5 \
        --sections facts,workloads --variants "native,remat,swap 60" --budget 200 >"$tmp/table" || return 1
    python3 - "$tmp/out" "$B" <<'PY'
import glob, json, os, sys
out, build = sys.argv[1:]
paths = glob.glob(out + "/*.json")
assert len(paths) == 1, paths
d = json.load(open(paths[0]))
assert d["format"] == "remat-gpu-1" and d["simulated"] and d["machine"]["gpu"] == "simulated", d["machine"]
facts = d["facts"]["rows"]
for name in ("getproc", "alias", "param_info", "vmm_cost", "launch_cost"):
    assert facts[name]["ok"] and facts[name]["status"] == "ok", (name, facts[name])
assert facts["spy_check"]["spy"]["launches"] == 4, facts["spy_check"]
rows = d["workloads"]["rows"]
for name in ("mlp", "cnn", "gpt"):
    if not os.path.exists(f"{build}/workloads/{name}"):
        assert name in d["workloads"]["missing"], d["workloads"]
        continue
    native = next(r for r in rows if r["workload"] == name and r["variant"] == "native")
    assert native["status"] == "ok" and native["numbers"] == 6 and len(native["iter_ms"]) == 5, native
    assert native["device_peak_bytes"] > 0, native
    for variant in ("remat", "swap 60"):
        under = next((r for r in rows if r["workload"] == name and r["variant"] == variant), None)
        assert under, variant
        if under["status"] in ("timed out", "skipped: time"):
            continue  # a loaded machine, which proves nothing either way
        assert under["status"] == "ok" and under["stats"] and under["equal"], under
        assert variant == "remat" or under["within_limit"] and under["within_limit_device"], under
assert os.path.getsize(paths[0][:-5] + ".txt") > 0 and "SIMULATED" in open(paths[0][:-5] + ".txt").read()
assert glob.glob(out + "/*.logs.tar.xz")
PY
}

refuses_results()
{
    bash tests/gpu/run.sh --selftest --out tests/gpu/results --sections facts 2>"$tmp/err"
    [ $? = 2 ] && grep -q 'only numbers off a real device' "$tmp/err"
}

# NAME.py byte-compiles; nothing is written beside it.
compiles() { python3 -c "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')" "$1"; }

innocent() { ! grep -il remat tests/gpu/scripts/*.py; }

units() { (cd tests/gpu && python3 -m unittest -q suite.test_effects suite.test_sections); }

# every kernel of the PTX has its twin in the simulated module, and the other way round
same_kernels()
{
    diff <(grep -o '\.entry [a-z_]*' tests/gpu/facts/kernels.ptx | cut -d' ' -f2 | sort) \
        <(grep -o '{"fact_[a-z_]*"' tests/gpu/facts/kernels_sim.c | tr -d '{"' | sort)
}

ptx_assembles() { ptxas -arch=sm_90 tests/gpu/facts/kernels.ptx -o "$tmp/kernels.cubin"; }

check "the fact programs build" make --no-print-directory B="$B" CC="${CC:-gcc}" SAN="${SAN:-}" gpu-facts
if [ -x "$B/gpu/facts/alias" ]; then
    check getproc fact getproc \
        "rc == 0 and d['ok'] and d['asked'] == d['equal'] + d['other'] + d['missing'] and d['equal'] > 30"
    check alias fact alias "rc == 0 and d['ok'] and d['answer'] and d['rounds'] == 500"
    check "alias under chaos" fact alias "rc == 0 and d['ok'] and d['answer']" SIMGPU_CHAOS=7
    check param_info fact param_info "rc == 0 and d['answer']"
    check vmm_cost fact vmm_cost \
        "rc == 0 and d['granularity_minimum'] == 2 << 20 and d['map_us'] > 0 and d['unmap_us_512mib'] > 0"
    check event_cost fact event_cost "rc == 0 and d['record_us'] > 0 and d['pair_two_streams_us'] > 0"
    check reserve_max fact reserve_max "rc == 0 and d['max_reservation_bytes'] >= 8 << 30"
    check launch_cost fact launch_cost "rc == 0 and d['answer'] and d['launch_ns'] > 0"
    # rates over much memory: seconds, minutes under ThreadSanitizer
    if [ "${SAN:-}" != thread ] && [ "${TEST_TIER:-all}" = all ]; then
        check vmm_block fact vmm_block \
            "rc == 0 and d['map_us'] > 0 and not d['event_record_waits'] and d['kernels_slowdown'] > 0"
        check memset_rate fact memset_rate "rc == 0 and d['memset_bytes_per_s'] > 0 and d['copy_both_bytes_per_s'] > 0"
    fi
    check "a failing call is an answer" fact alias \
        "rc == 1 and d['ok'] is False and 'cuMemMap' in d['error'] and d['fact'] == 'alias'" SIMGPU_FAULTS=cuMemMap:1
    check "the spy sees operands by every way" spied
fi
# what follows is no program of a sanitized build: Python, and the folder that travels
if [ -z "${SAN:-}" ]; then
    check "kernels and their twins" same_kernels
    command -v ptxas >/dev/null && check "the PTX assembles" ptx_assembles
    for f in tests/gpu/*.py tests/gpu/suite/*.py tests/gpu/scripts/*.py tests/gpu/facts/*.py; do
        check "$f compiles" compiles "$f"
    done
    for f in tests/gpu/*.sh; do check "$f parses" bash -n "$f"; done
    check "the scripts know nothing of what runs them" innocent
    check "the sections and the judge of traces" units
    check "selftest writes no device numbers" refuses_results
    if [ -x "$B/remat" ] && [ -e "$B/libremat.so" ] && [ -x "$B/gpu/facts/alias" ]; then
        [ "${TEST_TIER:-all}" != all ] || check "run.sh --selftest" selftest # a minute and a half of workloads
        [ "${TEST_TIER:-all}" != all ] || check "make dist-gpu" make --no-print-directory B="$B" CC="${CC:-gcc}" dist-gpu
    fi
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
