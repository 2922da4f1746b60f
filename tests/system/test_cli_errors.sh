#!/usr/bin/env bash
# Every broken file of tests/corpus, and wrong usage: exit code 2 (3 for a limit that no plan meets), one line on stderr that names the file and a position,
# nothing on stdout, no crash.
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-$here/../../build}
remat=$B/remat
. "$here/../conformance/env.sh"
[ -x "$remat" ] || { echo "no $remat: skipped"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
golden=$here/../golden
failed=0 done=0

fail() { printf '%s\n' "$*"; failed=1; }

# refuse WHAT COMMAND...: WHAT must appear in the message; WANT is the exit code
WANT=2
refuse() {
  local what=$1 rc
  shift
  "$remat" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
  rc=$?
  done=$((done + 1))
  [ $rc -eq $WANT ] || fail "exit $rc, not $WANT: remat $*: $(cat "$tmp/err")"
  [ ! -s "$tmp/out" ] || fail "output on stdout: remat $*"
  [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "not one line: remat $*: $(cat "$tmp/err")"
  grep -qF -- "$what" "$tmp/err" || fail "\"$what\" is not in: $(cat "$tmp/err")"
}

for f in "$here"/../corpus/trace_*.json; do
  refuse "$f:" plan "$f" --limit 50% --solver none
  grep -qE '\.json:[0-9]+:-?[0-9]+: ' "$tmp/err" || fail "no position: $(cat "$tmp/err")"
  refuse "$f:" check "$f" "$golden/mlp.plan.json"
done
for f in "$here"/../corpus/plan_*.json; do
  refuse "$f:" check "$golden/mlp.json" "$f"
  grep -qE '\.json:[0-9]+:-?[0-9]+: ' "$tmp/err" || fail "no position: $(cat "$tmp/err")"
done
for f in "$here"/../corpus/instance_*.json; do
  refuse "$f:" solve "$f"
  grep -qE '\.json:[0-9]+:-?[0-9]+: ' "$tmp/err" || fail "no position: $(cat "$tmp/err")"
done

t=$golden/mlp.json
refuse 'no command "plam"; did you mean "plan"?' plam "$t"
refuse 'no command "frobnicate" (' frobnicate
refuse 'help: no command "plam"; did you mean "plan"?' help plam
refuse 'no option "--verison"; did you mean "--version"?' --verison
refuse 'is a trace, where a plan' check "$t" "$t"
refuse 'is a trace, where a plan' report "$t" "$t" -o "$tmp/x"
refuse 'is "plan-1", where a trace' plan "$golden/mlp.plan.json" --limit 50%
refuse 'is "rotor-chain-v1", where a trace' report "$golden/chain.json" -o "$tmp/x"
refuse 'did you mean "--solver"?' plan "$t" --limit 50% --slover none
refuse 'did you mean "--time-limit"?' plan "$t" --limit 50% --time-limt=3
refuse 'did you mean "mincut"?' plan "$t" --limit 50% --solver min-cut
refuse 'did you mean "memory-viz"?' export "$t" --format memory-vis -o "$tmp/x"
refuse 'did you mean "chain-float"?' sweep "$t" --solvers chain-flot
refuse "give a trace" plan
refuse "give a trace and --limit" plan "$t"
refuse "--limit" plan "$t" --limit
refuse "no size" plan "$t" --limit 12Q
refuse "no size" plan "$t" --limit 0
refuse "no size" plan "$t" --limit=-5G
refuse "no solver" plan "$t" --limit 50% --solver simplex
refuse "--seed" plan "$t" --limit 50% --solver none --seed x
refuse "--time-limit" plan "$t" --limit 50% --solver none --time-limit soon
refuse "unknown option" plan "$t" --limit 50% --slover none
refuse "unexpected argument" plan "$t" "$t" --limit 50%
refuse "cannot open" plan "$tmp/none.json" --limit 50%
refuse "not a file" plan "$tmp" --limit 50%
refuse "give a trace and a plan" check "$t"
refuse "give an instance" solve
refuse "no solver here reads" solve "$golden/other_format.json"
refuse "--slots" solve "$golden/chain.json" --slots none
refuse "no solver \"milp\"" solve "$golden/chain.json" --solver milp
# infeasible: the floor and the op that sets it
WANT=3
refuse "the floor is 71327808 bytes" plan "$t" --no-offload --limit 10%
refuse "op 23 (relu_backward)" plan "$t" --no-offload --limit 10%
refuse "without eviction the program needs" plan "$t" --limit 60% --solver none
WANT=2
# a file that cannot be written is a failure of ours, not of the input
"$remat" plan "$t" --limit 100% --solver none -o "$tmp/no/such/dir/p.json" >/dev/null 2>"$tmp/err"
[ $? -eq 1 ] && grep -q "cannot write" "$tmp/err" || fail "unwritable plan: $(cat "$tmp/err")"

# PyTorch's spelling; every solver that the table of options names is one
for f in memory_viz Memory-Viz memory-viz; do "$remat" export "$t" --format $f -o "$tmp/x" || fail "--format $f"; done
for s in $("$remat" plan --help | tr -d '\n' | sed -n 's/.*who makes the plan: \([^()]*\)(.*/\1/p' | tr -d ','); do
  "$remat" plan "$t" --limit 200% --solver $s --time-limit 0.1 >/dev/null 2>"$tmp/err" || [ $? -eq 3 ] || fail "--solver $s: $(cat "$tmp/err")"
  solvers=$((${solvers:-0} + 1))
done
[ "${solvers:-0}" -eq 12 ] || fail "${solvers:-0} solvers in plan --help"
for c in -V --version; do "$remat" $c | grep -qE '^remat [0-9]+\.[0-9]+' || fail "$c"; done
for c in $("$remat" --help | sed -n 's/^  remat \([a-z]*\) .*/\1/p'); do
  "$remat" $c --help >"$tmp/out" && grep -q "^usage: remat $c" "$tmp/out" || fail "$c --help"
  "$remat" help $c | cmp -s - "$tmp/out" || fail "help $c"
  awk 'length > 132 {exit 1}' "$tmp/out" || fail "$c --help: lines too long"
  "$remat" --generate man $c >"$tmp/page" && grep -q '^.SH NAME' "$tmp/page" || fail "man page of $c"
done
"$remat" --help | grep -q '^  remat doctor' || fail "--help"
# every option with values to choose from, or a number that stands when it is left out, tells its default in help and man page, or that it
# must be given; what has none is in the list
none=" run:limit run:plan run:trace-out run:stats run:group trace:stats plan:output sweep:plot solve:output status:listen "
for c in $("$remat" --help | sed -n 's/^  remat \([a-z]*\) .*/\1/p'); do
  "$remat" $c --help | awk '/^  (-., )?--/ {if (row) print row; row = $0; next} /^   / && row {row = row " " $0; next} row {print row; row = ""}' >"$tmp/rows"
  while IFS= read -r row; do
    name=$(grep -oE -- '--[a-z-]+' <<<"$row" | head -n 1); name=${name#--}
    grep -qE -- '^  (-., )?--[a-z-]+ [A-Z]' <<<"$row" || continue # takes no argument
    told=$((${told:-0} + 1))
    grep -qE '\((default:|required)|; required\)|\(required\)' <<<"$row" || [[ $none == *" $c:$name "* ]] || fail "no default told: remat $c: $row"
  done <"$tmp/rows"
  defaults=$("$remat" $c --help | tr -d '\n' | grep -o '(default:' | wc -l)
  [ "$("$remat" --generate man $c | grep -o 'default' | wc -l)" -ge "$defaults" ] || fail "man page of $c: defaults"
done
[ "${told:-0}" -ge 25 ] || fail "only ${told:-0} options with an argument"
# and what is told is so
[ "$("$remat" plan "$t" --limit 80% --no-offload --json | grep -o '"solver": "[a-z]*"')" = '"solver": "auto"' ] || fail "plan's default solver"

# ---- what is told instead of done -------------------------------------------------------------------------------------
: >"$tmp/empty.json"
refuse "$tmp/empty.json:1:1: is empty" plan "$tmp/empty.json" --limit 80%
for with in gzip xz zstd; do
  command -v $with >/dev/null || continue
  $with -c "$t" >"$tmp/packed" && "$remat" plan "$tmp/packed" --limit 80% --solver none >/dev/null 2>"$tmp/err"
  [ $? -eq 3 ] || fail "a trace packed by $with: $(cat "$tmp/err")"
  head -c 40 "$tmp/packed" >"$tmp/torn"
  refuse "is compressed, and $with cannot read it" plan "$tmp/torn" --limit 80%
done
cp "$t" "$tmp/t.json" && ln -s t.json "$tmp/link.json"
refuse 'is a trace: use `remat plan`' solve "$t"
refuse 'is one of the inputs' report "$tmp/t.json" -o "$tmp/link.json"
cmp -s "$t" "$tmp/t.json" || fail "an input was replaced"
for list in 50%, ,50% 50%,,60% ''; do
  [ -z "$list" ] && refuse "nothing to do" sweep "$t" --limits "$list" || refuse "between two commas" sweep "$t" --limits "$list"
done
# no time is no time: whoever is asked ends at once, with what there is by then or without a plan
for s in auto best mincut anneal milp; do
  began=$(date +%s%N)
  "$remat" plan "$t" --limit 80% --solver $s --time-limit 0 >/dev/null 2>"$tmp/err"; rc=$?
  [ $rc -eq 0 ] || [ $rc -eq 3 ] || fail "--time-limit 0, $s: exit $rc: $(cat "$tmp/err")"
  [ $((($(date +%s%N) - began) / 1000000)) -lt 3000 ] || fail "--time-limit 0, $s: $((($(date +%s%N) - began) / 1000000)) ms"
done
# `best` found none in no time where `auto` did: neither gives up before it has asked those that take next to none
for s in auto best; do
  "$remat" plan "$here/../../offline/benchmark/traces/resnet50-b128.json.xz" --limit 60% --solver $s --time-limit 0 >/dev/null 2>"$tmp/err" || fail "--time-limit 0, $s: $(cat "$tmp/err")"
done
WANT=3 refuse "did you mean 50%, of the trace's peak, or 50G?" plan "$t" --limit 50
# a solver's notes come with -v alone: a line of its own (`h_DTR`, `1567 plans tried`) stood on stderr after each plan
for s in auto best mincut anneal dtr; do
  "$remat" plan "$t" --limit 80% --solver $s --time-limit 0.2 >/dev/null 2>"$tmp/err" && [ ! -s "$tmp/err" ] || fail "plan --solver $s: $(cat "$tmp/err")"
done
"$remat" plan "$t" --limit 80% --solver dtr -v >/dev/null 2>"$tmp/err" && grep -q '^remat: plan: h_DTR' "$tmp/err" || fail "plan --solver dtr -v: $(cat "$tmp/err")"
export REMAT_SIMGPU=1
WANT=125 refuse 'did you mean 12G, or 12%?' run --limit 12 -- true
WANT=125 refuse 'cannot be written' run --trace-out /proc/x -- true
WANT=127 refuse 'leave out the quotes' run -- 'true and more'
WANT=126 refuse 'is a directory' run -- /tmp
printf '#!/nope/python\n' >"$tmp/script" && chmod +x "$tmp/script"
WANT=127 refuse 'its interpreter /nope/python is not there' run -- "$tmp/script"
# a program that no library can be put in front of says so, and runs; so does a script of which one such is the interpreter
printf 'void _start(void) { __asm__("mov $60, %%eax; xor %%edi, %%edi; syscall"); }' | ${CC:-cc} -O -static -nostdlib -x c - -o "$tmp/static" || fail "no static program"
printf '#!%s -x\n' "$tmp/static" >"$tmp/script"
WANT=0 refuse "$tmp/static is linked statically" run -- "$tmp/static"
WANT=0 refuse "$tmp/static is linked statically" run -- "$tmp/script"
if [ "$(id -u)" -eq 0 ]; then # another user's, with his rights
  cp /bin/true "$tmp/his" && chown 65534 "$tmp/his" && chmod 4755 "$tmp/his"
  WANT=0 refuse 'runs as another user' run -- "$tmp/his"
fi
LD_PRELOAD=${PRE%:} "$remat" run -- true 2>"$tmp/err" && [ ! -s "$tmp/err" ] || fail "true: $(cat "$tmp/err")"

echo "$done refusals checked"
[ $done -gt 100 ] && exit $failed
