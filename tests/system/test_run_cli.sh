#!/usr/bin/env bash
# remat run, trace, status: exit codes, one clear line for each mistake, what the command's environment looks like, signals,
# the page that status reads.
set -u
B=${B:-$(cd "$(dirname "$0")/../.." && pwd)/build}
. "$(dirname "$0")/../conformance/env.sh"
remat=$B/remat
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export REMAT_STATUS_DIR=$tmp/status
unset PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF REMAT_LIMIT REMAT_POLICY LD_PRELOAD
# a sanitizer's runtime must already be in front when the library is put there
[ -n "$PRE" ] && export LD_PRELOAD=${PRE%:}
one_line() { [ "$(wc -l <"$tmp/err")" = 1 ] && grep -qE '^remat(\[[0-9]+\])?: ' "$tmp/err"; }

# ---- exit codes -------------------------------------------------------------------------------------------------------
# code WANT ARGS...: exit status of remat ARGS
code() {
    local want=$1; shift
    "$remat" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    local got=$?
    [ $got = "$want" ] || { cat "$tmp/err"; fail "remat $*: exit $got, not $want"; }
}
# refuse WORD ARGS...: exit 125 and one line that names WORD
refuse() {
    local word=$1; shift
    code 125 "$@"
    one_line || fail "remat $*: not one line: $(cat "$tmp/err")"
    grep -qF -- "$word" "$tmp/err" || fail "remat $*: the line does not name $word: $(cat "$tmp/err")"
    [ -s "$tmp/out" ] && fail "remat $*: speaks on stdout"
}
code 0 run -- true
code 1 run -- false
code 7 run -- sh -c 'exit 7'
code 127 run -- ./no-such-command
one_line || fail "no line for a missing command"
code 127 run -- no-such-command-in-path
echo 'not a program' >"$tmp/plain"; code 126 run -- "$tmp/plain"
one_line || fail "no line for a command that cannot run"
code 126 run -- "$tmp"
code 0 run --help
grep -q 'exits with 125' "$tmp/out" || fail "run --help does not tell the exit codes"
code 0 trace --help
code 0 status --help
code 0 doctor --help
code 2 doctor --no-such-option

# ---- mistakes ---------------------------------------------------------------------------------------------------------
for size in 0 0G 0% 101% -1 12X '' 1e9 nan 50%% ' 1G' 99999999999999999999; do
    refuse '--limit' run --limit "$size" -- true
done
refuse '--policy' run --policy fast -- true
refuse '--verify' run --verify often -- true
refuse '--solver' run --solver magic -- true
refuse '--host-swap' run --host-swap much -- true
refuse '--host-swap' run --host-swap 0 -- true
refuse 'no-such-plan' run --plan no-such-plan -- true
refuse '--plan' run --plan "$tmp" -- true
echo '{"format": "plan-1", "steps": []}' >plan.json
refuse '--policy' run --plan plan.json --policy swap -- true
refuse '--stats' run --stats no-such-folder/s.json -- true
refuse '--trace-out' run --trace-out "$tmp" -- true
refuse 'no command' run
refuse 'no command' run --limit 1G --
refuse '--frobnicate' run --frobnicate -- true
refuse 'true' run true
refuse '-o' trace -- true
refuse '--iterations' trace -o t.json --iterations 0 -- true
refuse '--iterations' trace -o t.json --iterations many -- true

# ---- the command's environment ------------------------------------------------------------------------------------------
# sees NAME WANT ARGS...: the value of NAME that a command started with ARGS finds
sees() {
    local name=$1 want=$2; shift 2
    local got
    got=$("$remat" "$@" -- sh -c "printf %s \"\${$name-unset}\"" 2>"$tmp/err")
    [ "$got" = "$want" ] || fail "$name is '$got', not '$want' ($*)"
}
lib=$(realpath "$B/libremat.so")
sees REMAT_LIMIT 12884901888 run --limit 12G
sees REMAT_LIMIT 1610612736 run --limit=1536MiB
sees REMAT_LIMIT 37.5% run --limit 37.5%
sees REMAT_LIMIT unset run
sees REMAT_POLICY swap run --policy swap
sees REMAT_MODE run run
sees REMAT_VERIFY sample run --verify sample
sees REMAT_HOST_SWAP 1073741824 run --host-swap 1G
sees REMAT_SOLVER mincut run --solver mincut
long=exec:$(printf %4091s | tr ' ' x) # no longer than the library holds
refuse 'more than 4095 bytes' run --solver "$long" -- true
code 0 run --solver "${long%x}" -- true
sees REMAT_PLAN "$tmp/plan.json" run --plan plan.json
sees REMAT_STATS "$tmp/s.json" run --stats s.json
sees REMAT_TRACE_OUT "$tmp/t.json" run --trace-out t.json
sees REMAT_BIN "$(realpath "$remat")" run
sees REMAT_MODE trace trace -o t.json
sees REMAT_TRACE_OUT "$tmp/t.json" trace -o t.json
sees REMAT_ITERATIONS 3 trace -o t.json --iterations 3
sees LD_PRELOAD "$PRE$lib" run
sees PYTORCH_CUDA_ALLOC_CONF backend:cudaMallocAsync run
sees PYTORCH_ALLOC_CONF backend:cudaMallocAsync run
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,pinned_use_background_threads:True
sees PYTORCH_CUDA_ALLOC_CONF backend:cudaMallocAsync,pinned_use_background_threads:True run
{ one_line && grep -q expandable_segments:True "$tmp/err"; } || fail "no warning about what was left out: $(cat "$tmp/err")"
sees PYTORCH_ALLOC_CONF backend:cudaMallocAsync,pinned_use_background_threads:True run
unset PYTORCH_CUDA_ALLOC_CONF

# ---- no trace, and why --------------------------------------------------------------------------------------------------
untold() { [ ! -s "$tmp/err" ] || fail "remat $*: says $(cat "$tmp/err")"; }
for how in "trace -o" "run --trace-out"; do
    code 0 $how none.json -- true
    { one_line && grep -q 'no trace was written: the program used no GPU' "$tmp/err"; } || fail "$how: not told that there is no trace: $(cat "$tmp/err")"
    code 3 $how none.json -- bash -c 'true; true | cat; exit 3' # what it starts is not heard; some shells end without running destructors
    one_line || fail "$how: told more than once: $(cat "$tmp/err")"
    code 0 $how made.json -- bash -c 'cat >made.json; true' # as another process of the run would
    untold $how made.json
    code 0 $how made.json -- true # that was another run's
    one_line || fail "$how: an old trace is taken for this run's"
    code 0 $how 'made-%p.json' -- true
    untold $how made-%p.json
done
code 0 run -- true; untold run

# ---- the command is this very process --------------------------------------------------------------------------------------
"$remat" run -- sh -c 'kill -TERM $$'; [ $? = 143 ] || fail "a signal's exit status is lost"
"$remat" run -- sleep 30 & pid=$!
for _ in $(seq 100); do [ "$(cat /proc/$pid/comm 2>/dev/null)" = sleep ] && break; sleep 0.05; done
[ "$(cat /proc/$pid/comm)" = sleep ] || fail "the command is a child, not this process"
kill -USR1 $pid; wait $pid 2>/dev/null; [ $? = 138 ] || fail "a signal does not reach the command"
echo in | "$remat" run -- cat >"$tmp/out"; [ "$(cat "$tmp/out")" = in ] || fail "standard input is not the command's"

# ---- the simulated GPU, where there is no other -----------------------------------------------------------------------------
if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ] && ! ldconfig -p | grep -q 'libcuda\.so\.1 '; then
    export REMAT_SIMGPU=1
    sees LD_LIBRARY_PATH "$(realpath "$SIM")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" run
    "$remat" run -- "$C/walk" doors libremat.so >"$tmp/out" || { cat "$tmp/out"; fail "remat run with the simulated GPU"; }
    "$remat" trace -o none.json -- env REMAT_LIMIT=abc "$B/programs/learning" stale 1 >"$tmp/out" 2>"$tmp/err"
    { grep -q 'stands aside' "$tmp/err" && ! grep -q 'used no GPU' "$tmp/err"; } || fail "a program that used the GPU is said not to have: $(cat "$tmp/err")"
    unset REMAT_SIMGPU
fi

# ---- where the library is looked for -------------------------------------------------------------------------------------------
mkdir -p "$tmp/alone" "$tmp/root/bin" "$tmp/root/lib"
cp "$remat" "$tmp/alone/"; cp "$remat" "$tmp/root/bin/"; cp "$lib" "$tmp/root/lib/"
"$tmp/root/bin/remat" run -- true || fail "the library is not found in ../lib"
"$tmp/alone/remat" run -- true 2>"$tmp/err"; [ $? = 125 ] || fail "run without a library"
{ one_line && grep -q libremat.so "$tmp/err"; } || fail "no line about the missing library: $(cat "$tmp/err")"
"$tmp/alone/remat" doctor >"$tmp/out"; [ $? = 1 ] || fail "doctor is content without a library"
grep -q '^BAD *library' "$tmp/out" || fail "doctor does not name the missing library"
# CBC is a shared object of its own, for commands that solve: with it each start took 10 ms. One of another version of remat is refused
readelf -d "$remat" | grep NEEDED | grep -qE 'Cbc|stdc\+\+' && fail "every start of remat loads CBC: $(readelf -d "$remat" | grep NEEDED)"
grep -q '^BAD *solver .*remat-milp.so is neither' "$tmp/out" || fail "doctor does not name the missing solver: $(cat "$tmp/out")"
"$tmp/alone/remat" plan "$here/../golden/mlp.json" --limit 60% --solver milp 2>"$tmp/err"; [ $? = 1 ] || fail "plan without a solver"
{ one_line && grep -q 'milp failed: remat-milp.so is neither' "$tmp/err"; } || fail "no line about the missing solver: $(cat "$tmp/err")"
version=$("$remat" --version | sed 's/^remat //')
LC_ALL=C sed "s/\\x00$version\\x00/\\x00${version%?}x\\x00/" "$(dirname "$remat")/remat-milp.so" >"$tmp/root/lib/remat-milp.so"
"$tmp/root/bin/remat" doctor | grep -q "^BAD *solver .*is of remat ${version%?}x, not $version" || fail "a solver of another version: $("$tmp/root/bin/remat" doctor)"
"$remat" doctor >"$tmp/out"; rc=$?
grep -q '^ok *solver' "$tmp/out" || fail "doctor does not find the solver: $(cat "$tmp/out")"
[ "$(grep -c '^BAD ' "$tmp/out")" = 0 ]; [ $? = $rc ] || fail "doctor's exit status $rc is not its verdict: $(cat "$tmp/out")"
grep -q '^ok *library' "$tmp/out" || fail "doctor does not find the library"
grep -qvE '^(ok   |note |BAD  ) |stand in the way$' "$tmp/out" && fail "doctor's lines: $(cat "$tmp/out")"


# the same as JSON, and what limits memory here: the file of maxima, the kernel
doctor_json() { # CODE: python that looks at d, the object, and f, its findings
    env -u LD_PRELOAD python3 -c 'import json,sys; d = json.load(open(sys.argv[1])); f = [(x["verdict"], x["about"], x["finding"]) for x in d["findings"]]
assert d["fit"] == (not any(v == "bad" for v, _, _ in f)), d
assert '"$1" "$tmp/out" || fail "doctor --json: $(cat "$tmp/out")"
}
"$remat" doctor --json >"$tmp/out"; [ $? = $rc ] || fail "doctor --json has another exit status"
doctor_json 'any(a == "library" and v == "ok" for v, a, _ in f) and any(a == "maxima" for _, a, _ in f) and any(a == "cgroup" for _, a, _ in f), d'
mkdir -p "$tmp/group"
echo 'nvidia/0000:01:00.0/vidmem 4096' >"$tmp/group/dmem.max"
printf 'max everyone 12G\nmax evryone 1G\n' >"$tmp/also.conf"; chmod 644 "$tmp/also.conf"
REMAT_CGROUP=$tmp/group REMAT_CONF_ALSO=$tmp/also.conf "$remat" doctor --json >"$tmp/out"
[ $? = 1 ] || fail "doctor is content with a line that is no rule"
doctor_json '("ok", "cgroup", "dmem.max: nvidia/0000:01:00.0/vidmem 4096") in f and any(v == "bad" and ":2:5: after max comes" in t for v, _, t in f), d'
doctor_json 'any(v == "ok" and t.startswith("12.00 GiB for you (") for v, _, t in f), d'
echo 'max everyone 12G' >"$tmp/also.conf"; chmod 666 "$tmp/also.conf"
REMAT_CONF_ALSO=$tmp/also.conf "$remat" doctor >"$tmp/out"
grep -q '^BAD *maxima .*others than root may write it' "$tmp/out" || fail "doctor does not mind a file that anybody may write: $(cat "$tmp/out")"

# ---- status -----------------------------------------------------------------------------------------------------------------------
status() { "$remat" status "$@" >"$tmp/out" 2>"$tmp/err" || fail "status exits $?"; }
export REMAT_GROUP_DIR=$tmp/groups
status; grep -q 'no process' "$tmp/out" || fail "status sees processes where none are"
mkdir -p "$REMAT_STATUS_DIR"
for f in 12345 2026 .7 notes; do cp "$remat" "$REMAT_STATUS_DIR/$f"; done # files that are no pages, whatever they are called
status --json
for f in 12345 2026 .7 notes; do [ -e "$REMAT_STATUS_DIR/$f" ] || fail "status removes what is not its own: $f"; done
env -u LD_PRELOAD python3 -c 'import json,sys; assert json.load(open(sys.argv[1])) == {"processes": [], "groups": []}' "$tmp/out" || fail "status --json: $(cat "$tmp/out")"
exit $failed
