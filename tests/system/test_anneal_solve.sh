#!/usr/bin/env bash
# remat solve --solver anneal on checkmate-v1: the optima that exact solvers proved, and --reorder where another order is
# the cheaper way.
set -u
here=$(cd "$(dirname "$0")" && pwd)
remat=${B:-$here/../../build}/remat
[ -x "$remat" ] || { echo "no remat: skipped"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
value() { python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["value"], d["peak"], d["feasible"])'; }
# two branches that meet; in this order both large results would be held at once
cat >"$tmp/i.json" <<'J'
{"format": "checkmate-v1", "n": 5, "edges": [[0, 2], [1, 3], [2, 4], [3, 4]],
 "cost": [10, 10, 1, 1, 1], "mem": [4, 4, 1, 1, 1], "budget": 6}
J
got=$("$remat" solve "$tmp/i.json" --solver anneal --time-limit 1 --json | value)
[ "$got" = "43 6 True" ] || fail "fixed order: $got"
got=$("$remat" solve "$tmp/i.json" --solver anneal --reorder --time-limit 1 --json | value)
[ "$got" = "23 6 True" ] || fail "free order: $got"
milp=${REMAT_SHARED:-/nonexistent}/anchors/milp
[ -d "$milp" ] || { echo "anneal: well without the instances"; exit 0; }
for want in linear_n11_B4:14 linear_n11_B5:13 linear_n21_B5:29 linear_n21_B6:27; do
  file=$milp/${want%%:*}.json
  budget=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["budget"])' "$file")
  read -r cost peak feasible <<<"$("$remat" solve "$file" --solver anneal --time-limit 3 --json | value)"
  [ "$cost" = "${want##*:}" ] && [ "$feasible" = True ] && [ "$peak" -le "$budget" ] || fail "$want: $cost $peak $feasible"
done
echo "anneal: all well"
