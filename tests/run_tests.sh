#!/usr/bin/env bash
# Runs each test given, one line each, output only of what fails. Exit 77 means: cannot run here.
# Env: B (build directory), SAN (sanitizer of this build), REMAT_SHARED, TEST_TIMEOUT (seconds, default 900), TEST_SLOWER (how many times
# as long as in an ordinary build a run of a program or a solver may take; default 10 under a sanitizer, else 1).
set -u
B=${B:-$PWD/build}
export B SAN=${SAN:-} ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:handle_segv=0:use_sigaltstack=0:allow_user_segv_handler=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:handle_segv=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-120} # seconds for a unit test that sets none: Check's own four are few on a busy machine
logs=$B/test-logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0 names=
began=$SECONDS
for t in "$@"; do
  name=$(basename "$t")
  log=$logs/$name.log
  at=$SECONDS
  case $t in
    *.sh) run=(bash "$t") ;;
    *.py) run=(python3 "$t") ;;
    *) run=("$t") ;;
  esac
  timeout "${TEST_TIMEOUT:-900}" "${run[@]}" >"$log" 2>&1 </dev/null
  rc=$?
  case $rc in
    0) passed=$((passed + 1)); word=ok ;;
    77) skipped=$((skipped + 1)); word="skipped: $(tail -n 1 "$log")" ;;
    124) failed=$((failed + 1)); names="$names $name"; word="FAILED: no end after ${TEST_TIMEOUT:-900} s" ;;
    *) failed=$((failed + 1)); names="$names $name"; word="FAILED (exit $rc)" ;;
  esac
  printf '%-28s %4d s  %s\n' "$name" $((SECONDS - at)) "$word"
  case $word in FAILED*) tail -n 40 "$log" | sed 's/^/    /' ;; esac
done
printf '\n%d s%s\n' $((SECONDS - began)) "${names:+; failed:$names}"
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ] && [ $passed -gt 0 ]
