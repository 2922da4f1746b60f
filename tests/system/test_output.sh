#!/usr/bin/env bash
# What the commands read and write: "-", devices, symlinks, the input itself, a full disk, several processes of one run.
set -u
B=${B:-$(cd "$(dirname "$0")/../.." && pwd)/build}
. "$(dirname "$0")/../conformance/env.sh"
remat=$B/remat
golden=$(cd "$(dirname "$0")/../golden" && pwd)
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
cp "$golden/mlp.json" t.json
"$remat" plan t.json --limit 100% --solver none -o p.json >out || fail "plan: $?"

# ---- a full disk: exit 1 and one line, wherever the output goes ---------------------------------------------------------
full() {
    "$remat" "$@" >/dev/full 2>err
    rc=$?
    [ $rc = 1 ] || fail "remat $* on a full disk: exit $rc, not 1"
    [ "$(wc -l <err)" = 1 ] && grep -q 'No space left on device' err || fail "remat $*: $(cat err)"
}
full --version
full --help
full plan --help
full plan t.json --limit 100% --solver none
full plan t.json --limit 100% --solver none --json
full plan t.json --limit 100% --solver none -o -
full plan t.json --limit 100% --solver none -o /dev/stdout
full plan t.json --limit 100% --solver none -o /dev/full
full check t.json p.json
full sweep t.json --limits 100% --solvers none
full sweep t.json --limits 100% --solvers none --csv
full sweep t.json --limits 100% --solvers none --plot -
full sweep t.json --limits 100% --solvers none --plot /dev/full
full solve "$golden/chain.json"
full solve "$golden/chain.json" -o -
full solve "$golden/chain.json" -o /dev/full
full status
full status --json
full report t.json --time-limit 0 -o -
full report t.json --time-limit 0 -o /dev/full
for f in perfetto memory-viz dot sqlite; do full export t.json --format $f -o -; full export t.json --format $f -o /dev/full; done
"$remat" doctor >/dev/full 2>err; [ $? = 1 ] || fail "doctor on a full disk"

# ---- what the arguments name is not destroyed ------------------------------------------------------------------------------
write() { # COMMAND...: every command that writes a file, to the name OUT
    for c in "plan t.json --limit 100% --solver none" "report t.json p.json" "export t.json --format perfetto" \
             "export t.json --format memory-viz" "export t.json --format dot" "export t.json --format sqlite"; do
        # shellcheck disable=SC2086
        "$remat" $c -o "$1" >out 2>err || fail "$c -o $1: $? $(cat err)"
        eval "$2" || fail "$c -o $1: not [ $2 ]"
    done
}
if mknod null c 1 3 2>/dev/null; then
    write null '[ -c null ]'
    ln -s null to-null
    write to-null '[ -L to-null ] && [ -c null ]'
fi
echo old >target; ln -s target link
write link '[ -L link ] && [ "$(head -c 3 target)" != old ] && echo old >target'
mkfifo pipe
cat pipe >got & "$remat" plan t.json --limit 100% --solver none -o pipe >out; wait $!
[ -p pipe ] && cmp -s got p.json || fail "a pipe as output"
for c in "sweep t.json --limits 100% --solvers none --plot" "solve $golden/chain.json -o"; do # the other commands that write
    # shellcheck disable=SC2086
    echo old >target; "$remat" $c link >out 2>err && [ -L link ] && [ "$(cat target)" != old ] || fail "$c link: $(cat err)"
    # shellcheck disable=SC2086
    [ ! -c null ] || { "$remat" $c null >out 2>err && [ -c null ]; } || fail "$c null: $(cat err)"
done
# the input itself
cp t.json same.json; cp p.json same-plan.json
"$remat" plan same.json --limit 100% --solver none -o same.json >out && cmp -s same.json p.json || fail "output over the input"
"$remat" export t.json same-plan.json --format dot -o same-plan.json && grep -q '^digraph' same-plan.json || fail "export over its plan"
# a write that fails leaves the file that was there, and nothing beside it
echo precious >keep.html
(trap '' XFSZ; ulimit -f 1; "$remat" report t.json p.json --time-limit 0 -o keep.html) 2>err
[ $? = 1 ] && [ "$(cat keep.html)" = precious ] || fail "a failed write: $(head -c 80 keep.html) $(cat err)"
[ "$(wc -l <err)" = 1 ] || fail "a failed write: $(cat err)"
ls -A | grep -q '\.remat-' && fail "left behind: $(ls -A)"

# ---- "-" -------------------------------------------------------------------------------------------------------------------
"$remat" plan - --limit 100% --solver none -o - <t.json | cmp -s - p.json || fail "plan - -o -"
[ "$("$remat" check - p.json <t.json)" = "$("$remat" check t.json p.json)" ] || fail "check - PLAN"
[ "$("$remat" check t.json - <p.json)" = "$("$remat" check t.json p.json)" ] || fail "check TRACE -"
"$remat" report - --time-limit 0 -o - <t.json | grep -q '</html>' || fail "report - -o -"
"$remat" export - --format sqlite -o - <t.json | head -c 15 | grep -q 'SQLite format 3' || fail "export sqlite -o -"
"$remat" sweep - --limits 100% --solvers none --csv <t.json | grep -q ',none,1,' || fail "sweep -"
"$remat" sweep - --limits 100% --solvers none --plot - <t.json | head -c 4 | grep -q '<svg' || fail "sweep --plot -"
"$remat" sweep t.json --limits 100% --solvers none --json --plot - >out 2>err; [ $? = 2 ] && [ ! -s out ] && grep -q 'both want' err || fail "--json --plot -: $(cat err)"
"$remat" solve "$golden/chain.json" -o - | python3 -c 'import json, sys; json.load(sys.stdin)["steps"]' || fail "solve -o -"
"$remat" solve - --json <"$golden/chain.json" | grep -q '"feasible": true' || fail "solve -"
echo '{' | "$remat" plan - --limit 80% 2>err; [ $? = 2 ] && grep -q 'standard input:' err || fail "no name for standard input: $(cat err)"
"$remat" check - - <t.json >out 2>err; [ $? = 2 ] && grep -q 'standard input' err || fail "standard input twice: $(cat err)"

# ---- run: names of several processes --------------------------------------------------------------------------------------
if [ ! -x "$B/workloads/mlp" ]; then echo "no workload: the rest is left out"; exit "$failed"; fi
export REMAT_SIMGPU=1 REMAT_STATUS_DIR=$tmp/status
[ -n "$PRE" ] && export LD_PRELOAD=${PRE%:}
mlp="$B/workloads/mlp --iters 3 --batch 256 --layers 2"
run() { "$remat" run "$@" >out 2>err; }
run --stats 's.%r.%p.json' -- sh -c "RANK=0 $mlp & RANK=1 $mlp & RANK=2 $mlp & wait" || fail "three ranks: $(cat err)"
for r in 0 1 2; do [ "$(ls s.$r.*.json | wc -l)" = 1 ] || fail "rank $r: $(ls)"; done
echo '{"old": 1}' >one.json
run --stats one.json -- sh -c "$mlp & $mlp & wait; $mlp" || fail "three processes: $(cat err)"
[ "$(ls one.json*)" = "$(printf 'one.json\none.json.1\none.json.2')" ] || fail "three processes, one name: $(ls)"
grep -q '"old"' one.json* && fail "an earlier run's file stays"
[ "$(grep -c 'another process of this run wrote it' err)" = 2 ] || fail "not said: $(cat err)"
run --stats one.json -- $mlp && [ "$(ls one.json* | wc -l)" = 3 ] && [ ! -s err ] || fail "the next run: $(ls; cat err)"
run --stats /dev/stderr -- $mlp && grep -q '"iterations"' err || fail "statistics on stderr: $(cat err)"
# a folder that somebody has locked holds nobody up
timeout 60 flock . "$remat" run --stats locked.json -- $mlp >out 2>err || fail "in a locked folder: $? $(cat err)"
grep -q '"iterations"' locked.json || fail "in a locked folder: $(ls)"
run --stats - -- true; [ $? = 125 ] && grep -q /dev/fd err || fail "--stats -: $(cat err)"
run --stats 'none/%p' -- true; [ $? = 125 ] && [ "$(wc -l <err)" = 1 ] || fail "--stats none/%p: $(cat err)"
exit "$failed"
