#!/usr/bin/env bash
# remat sweep: table, CSV and JSON say the same, nothing on stderr in a pipe, bad requests are refused with exit 2.
set -u
here=$(cd "$(dirname "$0")" && pwd)
remat=${B:-$here/../../build}/remat
trace=${REMAT_SHARED:-/nonexistent}/traces/vgg11-b64.json
[ -x "$remat" ] || { echo "no remat: skipped"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
[ -e "$trace" ] || trace=$here/../golden/mlp.json
args=(sweep "$trace" --limits 100%,85% --solvers none,dtr,anneal --no-offload --time-limit 1)
"$remat" "${args[@]}" --json >"$tmp/j" 2>"$tmp/e" || fail "--json: exit $?: $(cat "$tmp/e")"
[ -s "$tmp/e" ] && fail "a pipe got progress: $(cat "$tmp/e")"
"$remat" "${args[@]}" --csv >"$tmp/c" 2>"$tmp/e" || fail "--csv: exit $?"
"$remat" "${args[@]}" >"$tmp/t" 2>"$tmp/e" || fail "table: exit $?"
python3 - "$tmp/j" "$tmp/c" "$tmp/t" <<'P' || fail "the three forms differ"
import csv, json, sys
j = json.load(open(sys.argv[1])); c = list(csv.DictReader(open(sys.argv[2]))); t = open(sys.argv[3]).read().splitlines()
assert len(j["rows"]) == len(c) == 6 and len(t) == 7, (len(j["rows"]), len(c), len(t))
for a, b, line in zip(j["rows"], c, t[1:]):
    assert a["solver"] == b["solver"] == line.split()[3], (a, b, line)
    assert a["limit_bytes"] == int(b["limit_bytes"])
    assert a["feasible"] == (b["feasible"] == "1") == ("no plan" not in line), (a, b, line)
    if a["feasible"]:
        assert a["peak_bytes"] <= a["limit_bytes"]
        if a["solver"] != "anneal":
            assert abs(a["overhead"] - float(b["overhead"])) < 1e-6
assert j["rows"][0]["feasible"] and j["rows"][0]["overhead"] == 0, j["rows"][0]
assert not j["rows"][3]["feasible"], "no eviction cannot hold a lower limit"
P
"$remat" sweep "$trace" --limits 100%,95%,90%,85% --solvers auto,dtr --no-offload --plot "$tmp/p.svg" >/dev/null || fail "--plot: exit $?"
python3 - "$tmp/p.svg" <<'P' || fail "the picture is not what it should be"
import sys, xml.dom.minidom
d = xml.dom.minidom.parse(sys.argv[1])
text = " ".join(t.firstChild.data for t in d.getElementsByTagName("text") if t.firstChild)
for word in ("auto", "dtr", "GiB", "overhead", "memory limit", "%"):
    assert word in text, word
lines = [p for p in d.getElementsByTagName("path") if p.getAttribute("class") == "line" and "M" in p.getAttribute("d") and "L" in p.getAttribute("d")]
assert len(lines) >= 3, "a line a solver and the bound: %d" % len(lines)
ys = [float(q.split()[1]) for q in lines[-1].getAttribute("d")[1:].split("L")]  # auto, drawn last: y falls downwards
assert all(b >= a - 0.05 for a, b in zip(ys, ys[1:])), ys
assert "prefers-color-scheme: dark" in d.toxml()
P
"$remat" sweep "$trace" --limits 100% --solvers none --plot "$tmp/no/p.svg" >/dev/null 2>"$tmp/e" && fail "a picture in no folder"
for bad in "--limits 0%" "--limits x" "--solvers nobody" "--csv --json" "--time-limit soon"; do
  # shellcheck disable=SC2086
  "$remat" sweep "$trace" $bad >"$tmp/o" 2>"$tmp/e"
  rc=$?
  [ $rc -eq 2 ] || fail "sweep $bad: exit $rc"
  [ "$(wc -l <"$tmp/e")" -eq 1 ] || fail "sweep $bad: not one line: $(cat "$tmp/e")"
done
"$remat" sweep "$tmp/none.json" >/dev/null 2>&1
[ $? -eq 2 ] || fail "a missing trace"
echo "sweep: all well"
