#!/usr/bin/env bash
# make tarball: unpacked anywhere, with nothing but glibc from the machine.
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-$here/../../build}
. "$here/../conformance/env.sh"
cd "$here/../.." || exit 1
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
# another target of the same tree, and the same one twice, at the same time: one comes after the other
make -s B="$B" wheel >"$tmp/wheel" 2>&1 & wheel=$!
make -s B="$B" tarball >"$tmp/twice" 2>&1 & twice=$!
make -s B="$B" tarball >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
wait $wheel || fail "make wheel beside make tarball: $(cat "$tmp/wheel")"
wait $twice || fail "make tarball twice: $(cat "$tmp/twice")"
tar=$(tail -n 1 "$tmp/log")
mkdir "$tmp/some where" "$tmp/x" && tar -C "$tmp/x" -xzf "$tar" && top=$(ls "$tmp/x")
[ "$(tar -tzf "$tar" | cut -d/ -f1 | sort -u)" = "$top" ] || fail "more than one folder"
r=$tmp/x/$top
outside=$(env -i ldd "$r/bin/remat" | awk '$2 == "=>" {print $3}' | grep -v "^$(realpath "$r")\|^$r" |
    grep -vE '/(libc|libm|libdl|libpthread|librt)\.so')
[ -z "$outside" ] || fail "needs libraries of this machine: $outside"
env -i "$r/bin/remat" plan tests/golden/mlp.json --limit 50% --solver milp --time-limit 5 -o "$tmp/p.json" >"$tmp/out" || [ $? = 3 ] || fail "milp: $(cat "$tmp/out")"
env -i "$r/bin/remat" plan tests/golden/mlp.json --limit 80% --solver chen-greedy >"$tmp/out" || [ $? = 3 ] || fail "plan"
env -i "$r/bin/remat" export tests/golden/mlp.json --format sqlite -o - | head -c 6 | grep -q SQLite || fail "export"
[ "$(env -i PATH="$PATH" "$r/bin/remat" run -- sh -c 'echo "$LD_PRELOAD"')" = "$(realpath "$r")/lib/remat/libremat.so" ] || fail "the library is not found"
[ -s "$r/share/doc/remat/LICENSE" ] && [ -s "$r/share/doc/remat/THIRD-PARTY" ] || fail "licences"
for so in "$r"/lib/remat/*.so.*; do grep -q "^$(basename "$so"): " "$r/share/doc/remat/THIRD-PARTY" || fail "no licence told for $so"; done
# a path that cannot be preloaded gets a line, not a failure of the loader's
mv "$r" "$tmp/some where/r"
"$tmp/some where/r/bin/remat" run -- true 2>"$tmp/err"; [ $? = 125 ] && grep -q 'space or a colon' "$tmp/err" || fail "a space in the path: $(cat "$tmp/err")"
exit "$failed"
