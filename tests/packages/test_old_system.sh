#!/usr/bin/env bash
# The tarballs on a system with glibc 2.31, Debian 11's (Ubuntu 20.04 has the same): every command, with nothing on it but what Debian calls essential.
# Needs root and debootstrap, and a mirror that still has Debian 11.
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-$here/../../build}
. "$here/../conformance/env.sh"
cd "$here/../.." || exit 1
[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || { echo "needs root"; exit 77; }
command -v debootstrap >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap >/dev/null 2>&1
command -v debootstrap >/dev/null || { echo "no debootstrap, and it cannot be installed"; exit 77; }
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
debootstrap --variant=minbase bullseye "$tmp/root" >"$tmp/log" 2>&1 || { echo "no Debian 11 to be had: $(tail -n 1 "$tmp/log")"; exit 77; }
make -s B="$B" tarball >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
for t in $(tail -n 2 "$tmp/log"); do tar -C "$tmp/root/opt" -xzf "$t"; done
cp tests/golden/mlp.json "$tmp/root/root/"
cat >"$tmp/root/root/try" <<'END'
set -eu
cd /root
at=$(echo /opt/remat-*)
export PATH=$at/bin:$PATH LD_BIND_NOW=1 REMAT_SIMGPU=1
/lib/x86_64-linux-gnu/libc.so.6 | head -n 1
remat doctor
remat plan mlp.json --limit 60% --solver milp --time-limit 5
remat run --limit 68M --stats s.json --trace-out t.json -- "$at/lib/remat/workloads/mlp" --print-loss >under
remat run --policy off -- "$at/lib/remat/workloads/mlp" --print-loss >alone
cmp under alone
remat plan t.json --limit 60% --solver mincut --time-limit 2 -o p.json
remat report t.json p.json -o r.html
remat export mlp.json --format sqlite -o m.db
[ -s r.html ] && [ -s m.db ]
echo all of it
END
unshare -m -p -f sh -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin bash /root/try' \
    _ "$tmp/root" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
grep -q '^all of it$' "$tmp/out" || fail "$(cat "$tmp/out")"
head -n 1 "$tmp/out"
exit "$failed"
