#!/usr/bin/env bash
# Runs each test given, one line each, output only of what fails. Exit 77 means: cannot run here.
# Env: B (build directory), SAN (sanitizer of this build), REMAT_SHARED, TEST_TIMEOUT (seconds, default 900), TEST_SLOWER (how many times
# as long as in an ordinary build a run of a program or a solver may take; default 10 under a sanitizer, else 1), TEST_BESIDE (names of
# tests that take one processor and no more: where there are two, one of two lanes begins with them), TEST_ALONE (names of tests that other
# work disturbs: they come last, with nothing beside them).
set -u
B=${B:-$PWD/build}
export B SAN=${SAN:-} ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:handle_segv=0:use_sigaltstack=0:allow_user_segv_handler=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:handle_segv=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-120} # seconds for a unit test that sets none: Check's own four are few on a busy machine
logs=$B/test-logs
mkdir -p "$logs"
ended=$logs/ended # a line for each test: how it ended, its name
: >"$ended" || exit 1
began=$SECONDS

one_test() {
  local t=$1 name log rc how=failed word run took TIMEFORMAT='%0R %0U %0S'
  name=$(basename "$t")
  log=$logs/$name.log
  case $t in
    *.sh) run=(bash "$t") ;;
    *.py) run=(python3 "$t") ;;
    *) run=("$t") ;;
  esac
  took=$({ time timeout "${TEST_TIMEOUT:-900}" "${run[@]}" >"$log" 2>&1 </dev/null; } 2>&1)
  rc=$?
  read -r -a took <<<"$took"
  case $rc in
    0) how=passed word=ok ;;
    77) how=skipped word="skipped: $(tail -n 1 "$log")" ;;
    124) word="FAILED: no end after ${TEST_TIMEOUT:-900} s" ;;
    *) word="FAILED (exit $rc)" ;;
  esac
  if [ $how = failed ]; then # in one piece: others write beside it
    word=$word$'\n'$(tail -n 40 "$log" | sed 's/^/    /')
  fi
  printf '%-28s %4d s, %4d s of a processor  %s\n' "$name" "${took[0]}" $((took[1] + took[2])) "$word"
  echo "$how $name" >>"$ended"
}

# Each test is taken by the lane that comes to it first.
lane() {
  local t
  for t in "$@"; do
    if mkdir "$taken/$(basename "$t")" 2>/dev/null; then one_test "$t"; fi
  done
}

most=() beside=() alone=()
for t in "$@"; do
  name=" $(basename "$t") "
  if [[ " ${TEST_BESIDE:-} " == *"$name"* ]]; then
    beside+=("$t")
  elif [[ " ${TEST_ALONE:-} " == *"$name"* ]]; then
    alone+=("$t")
  else
    most+=("$t")
  fi
done
taken=$(mktemp -d) || exit 1
trap 'rm -rf "$taken"' EXIT
if [ "$(nproc)" -gt 1 ]; then lane "${beside[@]}" "${most[@]}" & fi
lane "${most[@]}" "${beside[@]}"
wait
lane "${alone[@]}"

count() { grep -c "^$1 " "$ended"; }
names=$(sed -n 's/^failed //p' "$ended" | tr '\n' ' ')
printf '\n%d s%s\n' $((SECONDS - began)) "${names:+; failed: ${names% }}"
printf '%d passed, %d failed, %d skipped\n' "$(count passed)" "$(count failed)" "$(count skipped)"
[ "$(wc -l <"$ended")" -eq $# ] && [ -z "$names" ] && [ "$(count passed)" -gt 0 ]
