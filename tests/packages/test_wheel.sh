#!/usr/bin/env bash
# make wheel: pip install in a fresh virtual environment, without a network, puts a remat that works on the path; remat[sim] the simulated GPU too.
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-$here/../../build}
. "$here/../conformance/env.sh"
cd "$here/../.." || exit 1
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v" >"$tmp/log" 2>&1 || { echo "python3 -m venv does not work here"; exit 77; }
make -s B="$B" wheel >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
wheel=$(realpath "$(tail -n 1 "$tmp/log")")
case $wheel in *-py3-none-manylinux_2_28_*.whl) ;; *) fail "for which machines is $wheel?" ;; esac
[ "$(stat -c %s "$wheel")" -lt 5000000 ] || fail "$(stat -c %s "$wheel") bytes"
"$tmp/v/bin/pip" install --no-index --disable-pip-version-check "$wheel" >"$tmp/log" 2>&1 || fail "pip install: $(cat "$tmp/log")"
. "$tmp/v/bin/activate"
[ "$(command -v remat)" = "$tmp/v/bin/remat" ] || fail "remat is not on the path: $(command -v remat)"
cd / || exit 1
remat --version | grep -q '^remat [0-9]' || fail "remat --version"
[ "$(remat run -- python -c 'import os; print(os.environ["LD_PRELOAD"])')" = "$(realpath "$tmp/v")/lib/remat/libremat.so" ] || fail "the library is not found"
remat plan "$here/../golden/mlp.json" --limit 80% --solver mincut --time-limit 1 >"$tmp/out" 2>&1 || fail "plan: $(cat "$tmp/out")"
python -c "import remat; t = remat.load('$here/../golden/mlp.json'); p = remat.plan(t, '80%', 'mincut', seconds=1); assert remat.check(t, p).ok
assert remat.simulate(t, p).ns == p.planned_ns and remat.find_command() == '$tmp/v/bin/remat'" >"$tmp/out" 2>&1 || fail "import remat: $(cat "$tmp/out")"
outside=$(env -i ldd "$tmp/v/bin/remat" | awk '$2 == "=>" {print $3}' | grep -v "^$tmp" | grep -vE '/(libc|libm|libdl|libpthread|librt)\.so')
[ -z "$outside" ] || fail "needs libraries of this machine: $outside"
[ -s "$tmp/v/share/man/man1/remat-run.1" ] || fail "no man pages"
REMAT_SIMGPU=1 remat run -- true 2>"$tmp/err"; [ $? = 125 ] && grep -q 'remat\[sim\]' "$tmp/err" || fail "no word of remat[sim]: $(cat "$tmp/err")"
pip install --no-index --disable-pip-version-check --find-links "$(dirname "$wheel")" 'remat[sim]' >"$tmp/log" 2>&1 || fail "remat[sim]: $(cat "$tmp/log")"
REMAT_SIMGPU=1 remat run --limit 100M --policy swap -- "$tmp/v/lib/remat/workloads/mlp" --iters 4 --print-loss >"$tmp/out" 2>&1 || fail "run: $(cat "$tmp/out")"
[ "$(grep -c loss "$tmp/out")" = 4 ] || fail "run: $(cat "$tmp/out")"
pip check --disable-pip-version-check >/dev/null || fail "pip check"
pip show -f remat 2>/dev/null | grep -q 'bin/remat' || fail "pip show"
pip uninstall -y --disable-pip-version-check remat-sim remat >/dev/null 2>&1 || fail "pip uninstall"
[ ! -e "$tmp/v/bin/remat" ] && [ -z "$(find "$tmp/v/lib/remat" "$tmp/v/share" -type f 2>/dev/null)" ] || fail "pip uninstall leaves files"
exit "$failed"
