#!/usr/bin/env bash
# install.sh AT VERSION [SHARED]: a virtual environment at AT with PyTorch VERSION from PyPI and what belongs to it (VERSION.txt
# here). With SHARED it is made there and AT becomes a link to it. AT that is a link already stays one while what it
# points to has that version.
#
# Wheels are kept in $PYTORCH_WHEELS (default ~/.cache/remat-wheels), so that a second checkout downloads nothing. Two
# installations into one place wait for each other. A broken download is tried again; exit 77 with one line when it cannot
# be had, 1 when something else is wrong.
set -euo pipefail
at=$1 version=$2 shared=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
list=$here/$version.txt
wheels=${PYTORCH_WHEELS:-${XDG_CACHE_HOME:-$HOME/.cache}/remat-wheels}

die() { echo "make pytorch: $*" >&2; exit "${status:-1}"; }

[ -f "$list" ] || die "no list of packages for version $version; there are: $(cd "$here" && ls [0-9]*.txt | sed 's/\.txt$//' | tr '\n' ' ')"
mkdir -p "$(dirname "$at")"
[ "$shared" != "$at" ] || shared= # a link to itself would be nothing
if [ -z "$shared" ] && [ -L "$at" ] && [ "$(cat "$at/.version" 2>/dev/null)" = "$version" ]; then shared=$(readlink "$at"); fi
if [ -n "$shared" ]; then
  dir=$shared
  if [ ! -L "$at" ]; then rm -rf "$at"; fi
  ln -sfn "$shared" "$at"
else
  dir=$at
  if [ -L "$at" ]; then rm "$at"; fi
fi
want="$version $(cat "$list" "$here/common.txt" | sha256sum | cut -c1-16)"

mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
if [ "$(cat "$dir/.installed" 2>/dev/null)" = "$want" ]; then exit 0; fi

if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing: python3-venv"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
  else die "python3-venv is missing; as root: apt-get install python3-venv"; fi
fi
rm -f "$dir/.installed"
[ "$(cat "$dir/.version" 2>/dev/null)" = "$version" ] || rm -rf "$dir"
python3 -m venv "$dir" || die "python3 -m venv $dir failed"
echo "$version" >"$dir/.version"

# no dependency is looked up: the lists are whole, and what they leave out stays out
mkdir -p "$wheels"
pip=("$dir/bin/python" -m pip --disable-pip-version-check -q)
try=0
until "${pip[@]}" download --no-deps --retries 5 --timeout 60 -d "$wheels" -r "$list" 2>"$dir/.pip-log"; do
  try=$((try + 1))
  [ $try -lt 4 ] || status=77 die "cannot download PyTorch $version ($(grep -m 1 '^ERROR' "$dir/.pip-log" || echo 'no word from pip')): is there a network?"
  echo "make pytorch: download broke off, trying again ($try of 3)" >&2
  sleep $((try * 5))
done
"${pip[@]}" install --no-deps --no-index --find-links "$wheels" -r "$list" 2>"$dir/.pip-log" \
  || die "pip cannot install what was downloaded: $(tail -n 1 "$dir/.pip-log")"
"$dir/bin/python" -c 'import torch, torchvision, transformers' 2>"$dir/.pip-log" \
  || die "PyTorch $version was installed but does not load: $(tail -n 1 "$dir/.pip-log")"
echo "$want" >"$dir/.installed"
echo "PyTorch $version: $dir/bin/python"
