#!/usr/bin/env bash
# make install and uninstall, the man pages, completion in the shells that are here.
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-$here/../../build}
. "$here/../conformance/env.sh"
[ -z "${SAN:-}" ] || { echo "installing is tried in ordinary builds"; exit 77; }
cd "$here/../.." || exit 1
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
make -s B="$B" install DESTDIR="$tmp/d" PREFIX=/opt/x >"$tmp/log" 2>&1 || fail "make install: $(cat "$tmp/log")"
p=$tmp/d/opt/x
touch "$p/share/man/man1/other.1" "$p/bin/other"

# ---- it works where it is, and after a move -------------------------------------------------------------------------------
[ "$(cd / && "$p/bin/remat" run -- sh -c 'echo "$LD_PRELOAD"')" = "$(realpath "$p")/lib/remat/libremat.so" ] || fail "the library is not found"
mv "$p" "$tmp/moved"
[ "$("$tmp/moved/bin/remat" run -- sh -c 'echo "$LD_PRELOAD"')" = "$(realpath "$tmp/moved")/lib/remat/libremat.so" ] || fail "not relocatable"
PATH=$tmp/moved/bin:$PATH remat plan tests/golden/mlp.json --limit 100% --solver none >"$tmp/out" || fail "remat plan from PATH"
mv "$tmp/moved" "$p"

# ---- man pages: one a command, and troff has nothing to say ----------------------------------------------------------------
for c in $("$B/remat" --help | sed -n 's/^  remat \([a-z]*\) .*/\1/p'); do
    [ -s "$p/share/man/man1/remat-$c.1" ] || fail "no man page of remat $c"
    for o in $("$B/remat" "$c" --help | grep -oE '^  (-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        grep -qF -- "${o//-/\\-}" "$p/share/man/man1/remat-$c.1" || fail "$o is not in the man page of remat $c"
    done
    for section in "EXIT STATUS" ENVIRONMENT FILES EXAMPLES; do
        grep -q "^\.SH \"$section\"" "$p/share/man/man1/remat-$c.1" || fail "the man page of remat $c has no $section (offline/commands/options_man.c)"
    done
done
if command -v groff >/dev/null; then
    for m in "$p"/share/man/man*/remat*; do
        groff -ww -man -Tutf8 -P-cbou "$m" >"$tmp/page" 2>"$tmp/err"
        [ ! -s "$tmp/err" ] || fail "$m: $(cat "$tmp/err")"
        grep -q NAME "$tmp/page" || fail "$m: no text"
    done
fi

# ---- completion --------------------------------------------------------------------------------------------------------------
bash_says() { # WORD...: what bash offers for the last word
    bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _remat 2>/dev/null; echo "${COMPREPLY[@]}"' - \
        "$p/share/bash-completion/completions/remat" "$@"
}
[ "$(bash_says remat pl)" = plan ] || fail "bash: remat pl: $(bash_says remat pl)"
[ "$(bash_says remat plan t --solv)" = --solver ] || fail "bash: --solv: $(bash_says remat plan t --solv)"
[ "$(bash_says remat plan --solver mi)" = "mincut milp" ] || fail "bash: --solver mi: $(bash_says remat plan --solver mi)"
[ "$(bash_says remat export --format mem)" = memory-viz ] || fail "bash: --format mem"
bash_says remat run --l | grep -qx -- --limit || fail "bash: run --l: $(bash_says remat run --l)"
if command -v fish >/dev/null; then
    fish_says() { HOME=$tmp fish --no-config -c "source $p/share/fish/vendor_completions.d/remat.fish; complete -C '$1'" 2>&1 | cut -f1; }
    fish_says 'remat pl' | grep -qx plan || fail "fish: remat pl: $(fish_says 'remat pl')"
    fish_says 'remat plan --solv' | grep -qx -- --solver || fail "fish: --solv: $(fish_says 'remat plan --solv')"
    [ "$(fish_says 'remat plan --solver mi' | tr '\n' ' ')" = "milp mincut " ] || fail "fish: --solver mi: $(fish_says 'remat plan --solver mi')"
    fish_says 'remat check --solv' | grep -q solver && fail "fish: an option of another command"
fi
if command -v zsh >/dev/null; then
    zsh_says() { # the words at the cursor, as the completion system hands them over; what _arguments and _describe are told
        zsh -fc 'file=$1; shift; words=("$@"); CURRENT=$#
                 _arguments() { print -l -- "$@" }; _describe() { print -l -- "${(P@)4}" }; _normal() { :; }
                 source $file' - "$p/share/zsh/site-functions/_remat" "$@"
    }
    zsh_says remat pl | grep -q '^plan:compute' || fail "zsh: commands: $(zsh_says remat pl)"
    zsh_says remat plan --x | grep -qF -- '--solver=[who makes the plan]:NAME|exec:CMD:(auto best chain' || fail "zsh: $(zsh_says remat plan --x)"
    # shellcheck disable=SC2016
    if zsh -fc 'zmodload zsh/zpty' 2>/dev/null; then # and for real, in a terminal
        got=$(HOME=$tmp TERM=dumb zsh -fc 'zmodload zsh/zpty; zpty s zsh -fi; 
            zpty -w s "PS1=; fpath=($1 \$fpath); autoload -U compinit; compinit -u -d '"$tmp"'/dump; print ready; unsetopt zle_bracketed_paste"
            while zpty -r s line && [[ $line != ready* ]]; do :; done
            zpty -n -w s "remat plan --solver minc"$'"'\t'"'; sleep 1
            zpty -r -t s line; while zpty -r -t s more; do line+=$more; done; print -r -- $line; zpty -d s' - "$p/share/zsh/site-functions" 2>/dev/null)
        case $got in *"--solver mincut"*) ;; *) fail "zsh in a terminal: $got" ;; esac
    fi
fi

# ---- and out again: what remat put there, nothing else ------------------------------------------------------------------------
make -s B="$B" uninstall DESTDIR="$tmp/d" PREFIX=/opt/x >"$tmp/log" 2>&1 || fail "make uninstall: $(cat "$tmp/log")"
left=$(cd "$p" && find . -type f | sort | tr '\n' ' ')
[ "$left" = "./bin/other ./share/man/man1/other.1 " ] || fail "left, or taken too much: $left"
[ ! -d "$p/lib/remat" ] || fail "the folder of the library stays"
exit "$failed"
