#!/usr/bin/env bash
# Every entry point of hooks.def by every route, against the simulated driver and NVIDIA's own list of names; what the
# library exports and needs; what it leaves alone.
set -u
B=${B:-$(cd "$(dirname "$0")/../.." && pwd)/build}
. "$(dirname "$0")/../conformance/env.sh"
lib=$B/libremat.so
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

# ---- routes ---------------------------------------------------------------------------------------------------------
# walk_all FOLDER: the driver in FOLDER, with and without the doors
walk_all() {
    local dir=$1
    for walk in walk walk_linked; do
        LD_LIBRARY_PATH=$dir "$C/$walk" bare || fail "$walk bare in $dir"
        for doors in "$C/pass.so" "$lib"; do
            LD_LIBRARY_PATH=$dir with_doors "$doors" "$C/$walk" doors "$(basename "$doors")" || fail "$walk doors in $dir"
        done
        LD_LIBRARY_PATH=$dir REMAT_DISABLE=1 with_doors "$lib" "$C/walk" bare || fail "the kill switch in $dir"
    done
}
walk_all "$SIM"
# a driver whose cuGetProcAddress answers with addresses that no symbol names
for doors in "$C/pass.so" "$lib"; do
    LD_LIBRARY_PATH=$C/names with_doors "$doors" "$C/walk" doors "$(basename "$doors")" || fail "variants told by the rule"
done
# a program that expects its first call to open the driver
[ "$(LD_LIBRARY_PATH=$SIM with_doors "$lib" "$C/walk" late "$C/liblate.so")" = "cuInit 0" ] || fail "the first call does not open the driver"
[ -n "$(ldconfig -p | grep 'libcuda\.so\.1 ')" ] ||
    [ "$(with_doors "$lib" "$C/walk" late "$C/liblate.so")" = "cuInit 3" ] || fail "cuInit without a driver"
with_doors "$lib" "$C/walk" nodriver || fail "a driver out of nowhere"
"$C/walk" nodriver || fail "a driver out of nowhere, without the doors"
with_doors "$lib" "$C/walk" scope "$C/libscope_a.so" || fail "the caller's scope is lost"
"$C/walk" scope "$C/libscope_a.so" || fail "scope test itself"

# ---- names and versions, where NVIDIA's own lists are installed ---------------------------------------------------------
cuda=${CUDA_HOME:-/usr/local/cuda}
stub=$(ls "$cuda"/lib*/stubs/libcuda.so 2>/dev/null | head -1)
# what is installed may be older than some rows
installed=$(sed -n 's/^#define CUDA_VERSION *//p' "$cuda/include/cuda.h" 2>/dev/null)
known_rows() { "$C/walk" rows | awk -v most="${installed:-999999}" '$3 <= most'; }
if [ -n "$stub" ]; then
    mkdir "$tmp/stub" && ln -s "$stub" "$tmp/stub/libcuda.so.1"
    walk_all "$tmp/stub"
    known_rows | cut -d' ' -f1 | sort >"$tmp/ours"
    nm -D --defined-only "$stub" | awk '{print $3}' | sort >"$tmp/theirs"
    missing=$(comm -23 "$tmp/ours" "$tmp/theirs")
    [ -z "$missing" ] || fail "not in NVIDIA's driver: $missing"
fi
types=$cuda/include/cudaTypedefs.h
if [ -r "$types" ]; then
    # PFN_cuMemAlloc_v3020, PFN_cuLaunchKernel_v7000_ptsz: the versions that cuGetProcAddress goes by
    grep -oE 'PFN_cu[A-Za-z0-9]+_v[0-9]+(_pt[a-z]+)?' "$types" | sed 's/^PFN_//; s/_pt[a-z]*$/ thread/' | sort -u >"$tmp/known"
    known_rows | while read -r symbol base since flavour; do
        want="${base}_v$since"
        [ "$flavour" = thread ] && want="$want thread"
        grep -qxF "$want" "$tmp/known" || echo "$symbol: cudaTypedefs.h has no $want"
    done >"$tmp/wrong"
    [ -s "$tmp/wrong" ] && { cat "$tmp/wrong"; fail "versions differ from cudaTypedefs.h"; }
fi

# ---- what the library is to the loader ------------------------------------------------------------------------------------
root=$(cd "$(dirname "$0")/../.." && pwd)
stubs() { grep -oE '\b[SC]\(("[^"]*", )?[A-Za-z]\w+' "$root/preload/doors.def" "$root/preload/bypass.c" -h | sed 's/.*[ (]//' | grep -vxE 'symbol|library'; }
{ "$C/walk" rows | cut -d' ' -f1; stubs; printf '%s\n' dlsym dlopen _exit _Exit setenv unsetenv putenv; } | sort >"$tmp/want"
nm -D --defined-only "$lib" | awk '{print $3}' | grep -vE '^(p?nccl|nvml|_ZN3c10)' | sort >"$tmp/exported"
diff "$tmp/want" "$tmp/exported" >"$tmp/diff" || { cat "$tmp/diff"; fail "exports are not the hooks, the stubs of doors.def and bypass.c, dlsym, dlopen, _exit and setenv"; }
needed=$(readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libdl|libpthread|ld-linux[-a-z0-9_]*)\.so|^lib(a|t|ub)san\.so')
[ -z "$needed" ] || fail "libremat.so needs $needed"

# ---- programs that use no CUDA are left alone -------------------------------------------------------------------------------
for cmd in "ls /" "sh -c 'exit 7'" "sort --version"; do
    eval "$cmd" >"$tmp/plain" 2>&1; plain=$?
    eval "LD_PRELOAD=$PRE$lib $cmd" >"$tmp/preloaded" 2>&1; preloaded=$?
    cmp -s "$tmp/plain" "$tmp/preloaded" && [ $plain = $preloaded ] || fail "$cmd differs under the library"
done
with_doors "$lib" "$C/walk" rows >/dev/null 2>"$tmp/err"
[ -s "$tmp/err" ] && fail "the library speaks without being asked: $(head -1 "$tmp/err")"
grep -q libcuda "$tmp/err" && fail "the library loads the driver by itself"

# ---- NVIDIA's runtime library asks for its entry points through the doors -----------------------------------------------------
cudart=$(ls "$cuda"/lib*/libcudart.so.1[0-9] /usr/lib/*/libcudart.so.1[0-9] 2>/dev/null | head -1)
if [ -n "$cudart" ] && [ -z "${SAN:-}" ]; then
    LD_LIBRARY_PATH=$SIM REMAT_LOG=doors with_doors "$lib" "$C/walk" cudart "$cudart" 2>"$tmp/doors"
    given=$(grep -cE 'door cu.*given ([1-9][0-9]* times by dlsym|0 times by dlsym, [1-9])' "$tmp/doors")
    echo "libcudart took $given hooks; $(tail -1 "$tmp/doors")"
    [ "$given" -ge 60 ] || fail "libcudart took only $given hooks"
    grep -qE 'door cuInit: [1-9]' "$tmp/doors" || fail "libcudart's cuInit passed no door"
fi
exit $failed
