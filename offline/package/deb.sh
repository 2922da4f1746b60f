#!/usr/bin/env bash
# deb.sh FOLDER VERSION OUT: FOLDER/root, as installed under /usr, becomes OUT/remat_VERSION_ARCH.deb. Needs dpkg-dev
# (dpkg-shlibdeps finds what the binaries depend on). The maintainer is whoever packs: DEBFULLNAME and DEBEMAIL, as for
# Debian's own tools, else the author of the last commit.
set -euo pipefail
folder=$1 version=$2 out=$3
root=$folder/root
here=$(cd "$(dirname "$0")" && pwd)
command -v dpkg-shlibdeps >/dev/null || {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y -qq dpkg-dev >/dev/null; } || {
  echo "make deb needs dpkg-shlibdeps: apt-get install dpkg-dev" >&2; exit 1; }
arch=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-remat developers} <${DEBEMAIL:-}>"
[ -n "${DEBEMAIL:-}" ] || maintainer=$(git -C "$here" log -1 --format='%an <%ae>' 2>/dev/null) ||
  { echo "make deb: set DEBEMAIL (and DEBFULLNAME) to the packager's address" >&2; exit 1; }
doc=$root/usr/share/doc/remat
gzip -9n "$root"/usr/share/man/man*/*
cp "$here/copyright" "$doc/copyright"
# the newest date in the file, so that one source gives one package
changed=$(sed -n 's/^## [^ ]* (\([0-9-]*\))$/\1/p' "$here/../../CHANGELOG.md" | head -n 1)
{ echo "remat ($version) unstable; urgency=medium"; echo
  # one line an entry, then folded as Debian wants it
  awk -v v="$version" '/^## /{on = index($0, "## " v) == 1} on && /^- /{printf "%s%s", n++ ? "\n" : "", substr($0, 3); next}
                       on && /^  /{sub(/^ */, " "); printf "%s", $0} END {print ""}' "$here/../../CHANGELOG.md" |
    while read -r line; do echo "$line" | fold -s -w 74 | sed '1s/^/  * /; 2,$s/^/    /; s/ *$//'; done
  echo; echo " -- $maintainer  $(LC_ALL=C date -u -R -d "${changed:-1970-01-01}")"; } | gzip -9n >"$doc/changelog.gz"
find "$root" -type d -exec chmod 755 {} +
mkdir -p "$folder/debian"
printf 'Source: remat\n\nPackage: remat\nArchitecture: %s\n' "$arch" >"$folder/debian/control"
depends=$(cd "$folder" && dpkg-shlibdeps -O root/usr/bin/remat root/usr/lib/remat/libremat.so root/usr/lib/remat/remat-milp.so 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo "dpkg-shlibdeps found no dependencies" >&2; exit 1; }
mkdir -p "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: remat
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Recommends: libunwind8
Section: science
Priority: optional
Description: train PyTorch models in less GPU memory than they need
 remat runs an unmodified PyTorch training script under a limit of GPU memory.
 A preloaded library stands between the process and the CUDA driver: it learns
 which kernel reads and writes which tensor, and from then on drops tensors and
 computes them again, or copies them to the host and back, behind unchanged
 addresses. The numbers computed are the same, bit for bit.
END
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
deb=$out/remat_${version}_$arch.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$deb.part" >/dev/null
mv "$deb.part" "$deb"
echo "$deb"
