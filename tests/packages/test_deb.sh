#!/usr/bin/env bash
# make deb: a package that lintian accepts and dpkg installs (into a folder of its own).
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-$here/../../build}
. "$here/../conformance/env.sh"
cd "$here/../.." || exit 1
command -v dpkg-deb >/dev/null || { echo "no dpkg: not a Debian machine"; exit 77; }
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
make -s B="$B" deb >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
deb=$(realpath "$(tail -n 1 "$tmp/log")")
dpkg-deb -x "$deb" "$tmp/root" || fail "dpkg-deb -x"
[ "$("$tmp/root/usr/bin/remat" run -- sh -c 'echo "$LD_PRELOAD"')" = "$(realpath "$tmp/root")/usr/lib/remat/libremat.so" ] || fail "the library is not found"
(cd "$tmp/root" && dpkg-deb -I "$deb" md5sums | md5sum --quiet -c) || fail "md5sums"
for d in $(dpkg-deb -f "$deb" Depends | sed 's/([^)]*)//g' | tr -d ' ' | tr ',' ' '); do
    dpkg-query -W "$d" >/dev/null 2>&1 || fail "depends on $d, which this machine does not know"
done
dpkg-deb -f "$deb" Depends | grep -q libc6 || fail "no dependency on libc6"
zcat "$tmp/root/usr/share/doc/remat/changelog.gz" >"$tmp/changelog"
dpkg-parsechangelog -l "$tmp/changelog" -S Version | grep -qx "$(dpkg-deb -f "$deb" Version)" || fail "the changelog's version: $(head -n 3 "$tmp/changelog")"
if ! command -v lintian >/dev/null; then
    [ "$(id -u)" = 0 ] && apt-get update -qq >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq lintian >/dev/null 2>&1
fi
[ "$failed" = 0 ] || exit 1
command -v lintian >/dev/null || { echo "no lintian, and it cannot be installed; the rest is well"; exit 77; }
lintian --fail-on error,warning "$deb" || fail "lintian"
exit "$failed"
