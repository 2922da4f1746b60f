#!/usr/bin/env bash
# compilers.sh AT PYTORCH: the packages of compilers.txt in the folder AT, for the Python of the environment PYTORCH (install.sh); put AT on
# PYTHONPATH to use them. Wheels are kept where install.sh keeps its own. Exit 77 with one line when they cannot be had.
set -euo pipefail
at=$1 python=$2/bin/python
here=$(cd "$(dirname "$0")" && pwd)
wheels=${PYTORCH_WHEELS:-${XDG_CACHE_HOME:-$HOME/.cache}/remat-wheels}
want=$(sha256sum <"$here/compilers.txt" | cut -c1-16)

mkdir -p "$at" "$wheels"
exec 9>"$at/.lock"
flock 9
if [ "$(cat "$at/.installed" 2>/dev/null)" = "$want" ]; then exit 0; fi
pip=("$python" -m pip --disable-pip-version-check -q)
"${pip[@]}" download --no-deps --retries 5 --timeout 60 -d "$wheels" -r "$here/compilers.txt" 2>"$at/.pip-log" \
  || { echo "compilers: cannot download ($(grep -m 1 '^ERROR' "$at/.pip-log" || echo 'no word from pip')): is there a network?" >&2; exit 77; }
"${pip[@]}" install --no-deps --no-index --find-links "$wheels" --upgrade --target "$at" -r "$here/compilers.txt" 2>"$at/.pip-log" \
  || { echo "compilers: pip cannot install what was downloaded: $(tail -n 1 "$at/.pip-log")" >&2; exit 1; }
PYTHONPATH=$at "$python" -c 'import triton, numba' 2>"$at/.pip-log" || { echo "compilers: installed, but $(tail -n 1 "$at/.pip-log")" >&2; exit 1; }
echo "$want" >"$at/.installed"
