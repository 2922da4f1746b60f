#!/usr/bin/env bash
# make tarball: unpacked anywhere, with nothing but glibc from the machine, and nothing of it that 2.28 has not; under 5 MB without the simulated GPU, which
# is a tarball over the same folder.
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
sim=$(tail -n 2 "$tmp/log" | head -n 1)
[ "$(stat -c %s "$tar")" -lt 5000000 ] || fail "$(stat -c %s "$tar") bytes"
mkdir "$tmp/some where" "$tmp/x" && tar -C "$tmp/x" -xzf "$tar" && top=$(ls "$tmp/x")
[ "$(tar -tzf "$tar" "$top" | cut -d/ -f1 | sort -u)" = "$(tar -tzf "$sim" | cut -d/ -f1 | sort -u)" ] || fail "more than one folder"
r=$tmp/x/$top
# what the doors answer to is the same as in a build of the tree
exports() { nm -D --defined-only "$1" | awk '{print $2, $3}' | sort; }
diff <(exports "$B/libremat.so") <(exports "$r/lib/remat/libremat.so") || fail "libremat.so exports something else than in the build folder"
env -i REMAT_SIMGPU=1 "$r/bin/remat" run -- true 2>"$tmp/err"; [ $? = 125 ] && grep -q remat-sim "$tmp/err" || fail "no word of how to get the simulator: $(cat "$tmp/err")"
tar -C "$tmp/x" -xzf "$sim"
elves=$(find "$r" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF && echo "$1"' _ {} \;)
[ "$(echo "$elves" | wc -l)" -ge 16 ] || fail "files: $elves"
for f in $elves; do
    strange=$(readelf -d "$f" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(lib(c|m|dl|pthread)\.so|ld-linux|libcuda\.so\.1$)')
    [ -z "$strange" ] || fail "${f#$r/} needs $strange"
    new=$(objdump -T "$f" | grep -oE 'GLIBC_2\.(29|[3-9][0-9])[^ ]* +[^ ]+' | tr -s ' ')
    [ -z "$new" ] || fail "${f#$r/} asks for symbols newer than glibc 2.28: $new"
done
# whatever it asks for is there, not only what these commands come to
run() { env -i PATH="$PATH" LD_BIND_NOW=1 REMAT_SIMGPU=1 "$r/bin/remat" "$@"; }
run doctor >"$tmp/out" || fail "doctor: $(cat "$tmp/out")"
while read -r w limit; do
    LD_LIBRARY_PATH=$SIM "$B/workloads/$w" --iters 4 --print-loss >"$tmp/native" || fail "$w, native"
    run run --policy swap --limit "$limit" -- "$r/lib/remat/workloads/$w" --iters 4 --print-loss >"$tmp/out" || fail "$w"
    [ "$(grep -c loss "$tmp/native")" = 4 ] && cmp "$tmp/native" "$tmp/out" || fail "$w computes something else"
done <<<"mlp 100M
cnn 90M
gpt 220M"
env -i "$r/bin/remat" plan tests/golden/mlp.json --limit 50% --solver milp --time-limit 5 -o "$tmp/p.json" >"$tmp/out" || [ $? = 3 ] || fail "milp: $(cat "$tmp/out")"
env -i "$r/bin/remat" plan tests/golden/mlp.json --limit 80% --solver chen-greedy >"$tmp/out" || [ $? = 3 ] || fail "plan"
env -i "$r/bin/remat" export tests/golden/mlp.json --format sqlite -o - | head -c 6 | grep -q SQLite || fail "export"
[ "$(env -i PATH="$PATH" "$r/bin/remat" run -- sh -c 'echo "$LD_PRELOAD"')" = "$(realpath "$r")/lib/remat/libremat.so" ] || fail "the library is not found"
for part in "remat jansson iberty sqlite3 Cbc Clp CoinUtils lapack blas stdc++ bz2 z" "remat-sim openblas zstd"; do
    doc=$r/share/doc/${part%% *}
    [ -s "$doc/LICENSE" ] || fail "no licence in $doc"
    for a in ${part#* }; do
        to=$(sed -n "s/^lib$a\.a: //p" "$doc/THIRD-PARTY" 2>/dev/null)
        [ -n "$to" ] && [ -s "$doc/$to" ] || fail "no licence told for lib$a.a: $to"
    done
done
# a path that cannot be preloaded gets a line, not a failure of the loader's
mv "$r" "$tmp/some where/r"
"$tmp/some where/r/bin/remat" run -- true 2>"$tmp/err"; [ $? = 125 ] && grep -q 'space or a colon' "$tmp/err" || fail "a space in the path: $(cat "$tmp/err")"
exit "$failed"
