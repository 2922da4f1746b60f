# env.sh: sourced by the scripts that preload the doors. Needs B, the build folder.
#
# A library built with a sanitizer can only be preloaded behind that sanitizer's own runtime, so $PRE goes in front of it
# in every LD_PRELOAD ("" in ordinary builds). Leaks are not looked for: the simulated driver keeps its state to the end.
PRE=
case "${SAN:-}" in
address) PRE=$(${CC:-gcc} -print-file-name=libasan.so): ;;
thread) PRE=$(${CC:-gcc} -print-file-name=libtsan.so): ;;
esac
export REMAT_QUIET=${REMAT_QUIET:-1}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
C=$B/conformance
SIM=$B/simgpu
failed=0
fail() { echo "FAILED: $*"; failed=1; }
# with_doors LIB CMD...: CMD with LIB preloaded
with_doors() { local lib=$1; shift; LD_PRELOAD=$PRE$lib "$@"; }
