# remat: build, test, demo. `make help` lists the targets.
#
# Files are picked up by wildcard: tracer/*.c policy/*.c preload/*.c make libremat.so, offline/*.c make the
# command line tool, every tests/test_*.c is one Check program, tests/test_*.sh and *.py are scripts
# (exit 77: cannot run here). A folder with rules of its own keeps them in <folder>/<folder>.mk.
#
#   B    build directory            (default build; make refuses one in the environment that is an absolute path, see below)
#   SAN  address | thread | fuzzer  (sanitizer; use with a B of its own)
#   CC   gcc or clang

B       ?= build
B_FROM  := $(origin B)
override B := $(patsubst %/,%,$(patsubst ./%,%,$(B)))
# A build directory that is not the one that is asked for would leave `make build/remat` with nothing to do, and nobody would be told.
ifneq ($(words $(B)),1)
$(error B='$(B)' is no build directory: give one name without blanks, as in `make B=build`)
endif
ifneq ($(filter . .. preload tracer policy offline tests docs .ci .git $(abspath . .. preload tracer policy offline tests docs .ci .git),$(B)),)
$(error B=$(B) holds more than what is built: give a directory of its own, as in `make B=build`)
endif
ifeq ($(B_FROM)$(filter /%,$(B)),environment$(B))
$(error B=$(B) comes from the environment, where it is meant for scripts: `unset B`, or say `make B=$(B)`)
endif
ifneq ($(filter-out $(B)/%,$(foreach g,$(MAKECMDGOALS),$(if $(findstring /,$(g)),$(g:./%=%)))),)
$(error $(firstword $(filter-out $(B)/%,$(foreach g,$(MAKECMDGOALS),$(if $(findstring /,$(g)),$(g:./%=%))))) is not in the build directory, which is $(B): ask for $(B)/..., or give another B)
endif
# One name for each file: the headers that were noted under another one would not be found again.
ifeq ($(findstring /,$(MAKECMDGOALS)),)
override B := $(patsubst $(CURDIR)/%,%,$(B))
endif
CC      ?= gcc
OPT     ?= -O2
WARN    := -Wall -Wextra -Werror
SAN     ?=
CSTD    := -std=c11 -D_GNU_SOURCE -I.
DBG     := -g
ifeq ($(SAN),address)
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifeq ($(SAN),thread)
SANFLAGS := -fsanitize=thread -fno-omit-frame-pointer
else
SANFLAGS :=
endif
CFLAGS  := $(CSTD) $(OPT) $(DBG) $(WARN) $(SANFLAGS) $(EXTRA_CFLAGS)
LDFLAGS := $(SANFLAGS)
ABS_B   := $(abspath $(B))
REMAT_SHARED ?= $(wildcard $(abspath ../shared))
export REMAT_SHARED

REMAT_VERSION := 0.1.0
# the file of maxima, remat.conf(5); fixed here, so that no variable moves it
CONF    ?= /etc/remat.conf
CPPDEFS := -DREMAT_VERSION='"$(REMAT_VERSION)"' -DREMAT_CONF='"$(CONF)"'

.DEFAULT_GOAL := all
# V=1 shows the commands
ifneq ($(V),1)
.SILENT:
endif
ALL_TARGETS :=

# ---- what a fresh Debian machine needs ------------------------------------------------------------------
DEB_PACKAGES := gcc g++ make pkg-config libjansson-dev uthash-dev check coinor-libcbc-dev libblas-dev zlib1g-dev libsqlite3-dev python3 python3-venv \
                glpk-utils libzstd-dev libopenblas-serial-dev libiberty-dev python3-yaml python3-prometheus-client libunwind8
DEPS_STAMP := $(B)/.deps

# what only `make check-clang` and `make fuzz` use: as many bytes as all the others together. The sanitizers' libraries are among what it recommends
CLANG_PACKAGES := clang
CLANG_STAMP := $(B)/.clang-deps

# what only tests use: a browser for the report, shells for the completion, troff for the man pages. Without them these tests are skipped
TEST_PACKAGES := chromium fish zsh groff-base sqlite3
TEST_STAMP := $(B)/.test-deps

# PACKAGES, what is said and what follows when they are missing and cannot be installed, options of apt-get
define INSTALL
	@mkdir -p $(B)
	@missing=; for p in $(1); do \
	  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing:$$missing"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(4) $$missing >/dev/null || $(3); \
	  else echo "$(2):$$missing"; \
	       echo "  as root: apt-get install$$missing"; $(3); fi; fi
	@touch $@
endef
$(DEPS_STAMP):
	$(call INSTALL,$(DEB_PACKAGES),remat needs these Debian packages,exit 1,--no-install-recommends)
$(CLANG_STAMP): $(DEPS_STAMP)
	$(call INSTALL,$(CLANG_PACKAGES),clang and libFuzzer need these Debian packages,exit 1)
$(TEST_STAMP): $(DEPS_STAMP)
	$(call INSTALL,$(TEST_PACKAGES),tests that need these Debian packages are skipped,true)

.PHONY: all deps help clean demo test bench check-gcc check-clang asan tsan fuzz dist-gpu
deps: $(DEPS_STAMP)

help:
	@echo 'make            build libremat.so, remat, the simulated GPU and the workloads'
	@echo 'make demo       each workload native, under 50 % swap, under 50 % plan, as one table'
	@echo 'make check      what one runs before a commit: a minute and a half'
	@echo 'make test       the suite: each promise and each fault that was ever mended, grids drawn from the commit; eight minutes'
	@echo 'make test-all   whole grids, packages, PyTorch: hours'
	@echo 'make test T=..  tests by name, or a tag (learning order faults cli docs share planner ..; also with check, test-all, asan, tsan)'
	@echo 'make check-gcc check-clang  everything that make test builds, with -Wall -Wextra -Werror under each compiler'
	@echo 'make asan tsan  the suite under AddressSanitizer+UBSan, the threaded parts under ThreadSanitizer'
	@echo 'make adversary  20,000 programs drawn from seeds, on a device that is as unkind as it may be (COUNT=n SEED=s)'
	@echo 'make faults     every driver call failed in turn; make soak: 10,000 iterations, and nothing grows'
	@echo 'make share      four processes share a device, one is killed each second, for two minutes'
	@echo 'make fuzz       the readers under libFuzzer, a minute each'
	@echo 'make paper      every table of the READMEs anew, and where it differs (20 minutes; FAST=1: 4)'
	@echo 'make moccasin  MOCCASIN'\''s graphs against the literature, as a table'
	@echo 'make monotone   plans of every trace at limits half a percent apart; make bounds: every solver against the bounds'
	@echo 'make bench      build/bench.json'
	@echo 'make pytorch    build/pytorch/bin/python: PyTorch for the simulated GPU (gigabytes; VERSION=2.11.0 another one)'
	@echo 'make demo-pytorch, test-pytorch  PyTorch under remat on the simulated GPU: a table; the tests'
	@echo 'make clients    other people'\''s training loops (REMAT_SHARED) under auto and swap: hours'
	@echo 'make dist-gpu   a folder of prebuilt binaries for a machine with a GPU; make test-gpu-small: its suite on the simulated device'
	@echo 'make install    into PREFIX (default /usr/local), below DESTDIR; make uninstall takes it out again'
	@echo 'make deb tarball wheel   packages, in build/; make test-packages tries them'

# ---- objects ------------------------------------------------------------------------------------------
# rooms: one level below each folder, two below offline/solvers. What a room keeps for others than the library is left out
ROOMS        = $(wildcard $(1)/*.c $(1)/*/*.c $(1)/*/*/*.c)
TRACER_SRC  := $(filter-out tracer/effects/sim_module.c,$(call ROOMS,tracer))
POLICY_SRC  := $(call ROOMS,policy)
PRELOAD_SRC := $(call ROOMS,preload)
OFFLINE_SRC := $(filter-out offline/package/%,$(call ROOMS,offline))
# what the command line tool shares with the library: how files are written, how kernels are called, what the machine allows, what is known of kernels, the ledgers of groups
CLI_SRC     := $(OFFLINE_SRC) tracer/loader.c tracer/output.c tracer/place.c tracer/plain.c $(wildcard tracer/machine/*.c) $(wildcard tracer/known/*.c) $(wildcard policy/share/ledger*.c) policy/process/status.c tracer/labels.c
# the readers that the preloaded library shares with the command line tool
SHARED_SRC  := $(wildcard offline/model/plan.c offline/model/json_read.c)

PIC_OBJ  = $(patsubst %.c,$(B)/pic/%.o,$(1))
HOST_OBJ = $(patsubst %.c,$(B)/obj/%.o,$(1))

$(B)/pic/%.o: %.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	echo "  CC   $< (library)"
	$(CC) $(CFLAGS) $(CPPDEFS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -MMD -MP -c $< -o $@
$(B)/obj/%.o: %.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	echo "  CC   $<"
	$(CC) $(CFLAGS) $(CPPDEFS) -fPIE -MMD -MP -c $< -o $@

# ---- libremat.so: third-party parts static and hidden, NEEDED only libc, libm, libdl, libpthread ----------
LIB_OBJ := $(call PIC_OBJ,$(TRACER_SRC) $(POLICY_SRC) $(PRELOAD_SRC) $(SHARED_SRC))
LIB_STATIC := -Wl,--defsym=stdin=remat_no_stdin -Wl,-Bstatic -ljansson -liberty -Wl,-Bdynamic -static-libgcc
ifneq ($(PRELOAD_SRC),)
$(B)/libremat.so: $(LIB_OBJ) $(LIB_EXTRA_OBJ)
	echo "  LD   $@"
	$(CC) $(LDFLAGS) -shared -o $@ $^ -Wl,--exclude-libs,ALL -Wl,-z,defs $(LIB_VERSION_SCRIPT) \
	  $(LIB_STATIC) -lm -ldl -lpthread
ALL_TARGETS += $(B)/libremat.so
endif

# ---- remat: the command line tool -----------------------------------------------------------------------
-include offline/offline.mk
# read by the assembler, which tells no dependencies
$(B)/obj/offline/report/page_parts.o: $(wildcard offline/report/*.js) offline/report/page.css
# CBC apart, loaded by the tool from beside itself: with it every start would take ten times as long (offline/solvers/milp/milp_cbc.h)
MILP_SRC := offline/solvers/milp/milp_cbc.c
MILP_OBJ := $(call PIC_OBJ,$(MILP_SRC))
CLI_OBJ  := $(call HOST_OBJ,$(filter-out $(MILP_SRC),$(CLI_SRC)))
CLI_LIBS := -ljansson -liberty -lsqlite3 -lm -ldl -lpthread
CBC_LIBS  = $(shell pkg-config --libs cbc 2>/dev/null)
$(B)/remat: $(CLI_OBJ) | $(B)/remat-milp.so
	echo "  LD   $@"
	$(CC) $(LDFLAGS) -o $@ $(CLI_OBJ) $(CLI_LIBS)
$(B)/remat-milp.so: $(MILP_OBJ)
	echo "  LD   $@"
	$(CC) $(LDFLAGS) -shared -o $@ $(MILP_OBJ) $(CBC_LIBS)
ifneq ($(wildcard offline/commands/main.c),)
ALL_TARGETS += $(B)/remat
endif

# ---- parts with rules of their own ------------------------------------------------------------------------
-include tests/simgpu/simgpu.mk
-include tests/simcuda/simcuda.mk
-include tests/workloads/workloads.mk
-include tests/programs/programs.mk
-include tests/runner/runner.mk
-include preload/preload.mk
-include policy/policy.mk
-include tests/gpu/gpu.mk
-include offline/package/package.mk

# ---- tests ----------------------------------------------------------------------------------------------
TEST_C      := $(wildcard tests/unit/test_*.c)
TEST_BIN    := $(patsubst tests/unit/%.c,$(B)/tests/%,$(TEST_C))
TEST_SCRIPT := $(wildcard tests/system/test_*.sh tests/system/test_*.py)
BENCH_BIN   := $(patsubst tests/bench/%.c,$(B)/tests/%,$(wildcard tests/bench/bench_*.c))
CHECK_LIBS  := $(shell pkg-config --libs check 2>/dev/null || echo -lcheck)
SIM_LINK    := -L$(B)/simgpu -lcuda -Wl,-rpath,$(ABS_B)/simgpu
# a unit test links everything but the command line's main and the doors
UNIT_OBJ = $(call HOST_OBJ,$(TRACER_SRC) $(POLICY_SRC) $(filter-out offline/commands/main.c,$(OFFLINE_SRC)))
$(B)/obj/unit.a: $(UNIT_OBJ)
	rm -f $@ && ar rcs $@ $^

$(B)/tests/test_simgpu_%: tests/unit/test_simgpu_%.c $(B)/simgpu/libcuda.so.1 | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) $(CHECK_LIBS) $(SIM_LINK) -lm -ldl -lpthread
define LINK_UNIT
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) -Wl,--whole-archive $(B)/obj/unit.a -Wl,--no-whole-archive $(CHECK_LIBS) $(CBC_LIBS) $(CLI_LIBS)
endef
# it plays an interpreter whose names are looked up
$(B)/tests/test_pyframe: LDFLAGS += -rdynamic
# two libraries alike but for the name of their function
$(B)/tests/test_site: | $(B)/tests/site_first.so $(B)/tests/site_other.so
$(B)/tests/site_%.so: tests/unit/site_lib.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -shared -DNAME=$* $< -o $@ $(LDFLAGS)
$(B)/tests/test_%: tests/unit/test_%.c $(B)/obj/unit.a | $(DEPS_STAMP)
	$(LINK_UNIT)
$(B)/tests/bench_%: tests/bench/bench_%.c $(B)/obj/unit.a | $(DEPS_STAMP)
	$(LINK_UNIT)

# as many at once as there are processors, unless `make -j..` says how many
ALL_JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))
all: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory $(ALL_JOBS) B=$(B) build-all
build-tests: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory B=$(B) build-all-tests
.PHONY: build-all build-tests build-all-tests
build-all: $(ALL_TARGETS)
build-all-tests: build-all $(TEST_BIN)
# asked for both, -j would have each make the same objects at the same time; what they call is parallel all the same
ifneq ($(filter all build-tests,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

# T: tests by name, or tags; what they need is built, nothing else
T ?=
RUN_TESTS = B=$(ABS_B) CC=$(CC) python3 tests/runner/run.py
define BUILD_AND_RUN
	@$(MAKE) --no-print-directory -j2 B=$(B) $(if $(T),$$(B=$(B) python3 tests/runner/run.py $(1) --only "$(T)" --targets || echo no-such-test),build-tests)
	@$(RUN_TESTS) $(1) $(if $(T),--only "$(T)")
endef
.PHONY: check test-all test-rest no-such-test
no-such-test: ; @false
check: $(DEPS_STAMP)
	$(call BUILD_AND_RUN,check)
test: $(DEPS_STAMP) $(TEST_STAMP)
	$(call BUILD_AND_RUN,test)
test-all: $(DEPS_STAMP) $(TEST_STAMP)
	$(call BUILD_AND_RUN,all)
# what `make test` leaves out, longest unrun first, as much as SECONDS_LEFT allow
SECONDS_LEFT ?= 3600
test-rest: $(DEPS_STAMP) $(TEST_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) build-tests
	@$(RUN_TESTS) rest --seconds $(SECONDS_LEFT)

# the literature's graphs at full time limits, as a table (about ten minutes)
.PHONY: moccasin
moccasin: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@B=$(ABS_B) python3 tests/system/test_moccasin.py --all

demo: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@B=$(ABS_B) python3 tests/system/demo.py

# every table of the READMEs anew, and where it differs (at most 20 minutes; FAST=1 4). TABLES: some of them. MOCCASIN: a clone of its data set
.PHONY: paper
paper: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@B=$(ABS_B) python3 offline/benchmark/paper.py $(if $(filter 1,$(FAST)),--fast) $(if $(TABLES),--tables $(TABLES))

check-gcc:
	@$(MAKE) --no-print-directory B=build/gcc CC=gcc build-tests
check-clang: $(CLANG_STAMP)
	@$(MAKE) --no-print-directory B=build/clang CC=clang build-tests
asan:
	@$(MAKE) --no-print-directory B=build/asan SAN=address test-sanitized
tsan:
	@$(MAKE) --no-print-directory B=build/tsan SAN=thread test-sanitized
.PHONY: test-sanitized
# Solvers, readers of files and the like (tag `unthreaded`) have nothing that ThreadSanitizer could see.
# Everything takes ten times as long, and is no hang for that.
test-sanitized: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) SAN=$(SAN) build-tests
	@$(MAKE) --no-print-directory -j2 B=$(B)/plain SAN= $(B)/plain/remat
	@SAN=$(SAN) TEST_PLANNER=$(ABS_B)/plain/remat TEST_TIMEOUT=$${TEST_TIMEOUT:-7200} \
	  $(RUN_TESTS) test $(if $(T),--only "$(T)") --without "$(if $(filter thread,$(SAN)),unthreaded)"

bench: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all $(BENCH_BIN)
	@B=$(ABS_B) python3 tests/bench/bench.py $(BENCH_BIN)

# the readers under libFuzzer: each target FUZZ_SECONDS, starting from the corpus of broken files
FUZZ_SECONDS ?= 60
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SRC := $(filter-out offline/commands/% offline/report/%,$(CLI_SRC)) offline/commands/cli.c
$(B)/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz_readers.h $(FUZZ_SRC) | $(CLANG_STAMP)
	mkdir -p $(@D)
	clang $(CSTD) -O1 -g $(CPPDEFS) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $< $(FUZZ_SRC) -o $@ \
	  $(CBC_LIBS) $(CLI_LIBS)
fuzz: $(CLANG_STAMP)
	$(MAKE) --no-print-directory $(FUZZ_BIN)
	for f in $(FUZZ_BIN); do n=$$(basename $$f); mkdir -p $(B)/fuzz/corpus-$$n; \
	  ASAN_OPTIONS=detect_leaks=0 $$f -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096 -timeout=20 -print_final_stats=1 \
	    $(B)/fuzz/corpus-$$n tests/corpus >$(B)/fuzz/$$n.log 2>&1 || { tail -n 30 $(B)/fuzz/$$n.log; exit 1; }; \
	  grep -E 'stat::number_of_executed_units' $(B)/fuzz/$$n.log | sed "s/^/$$n /"; done

clean:
	rm -rf $(B)

-include $(shell find $(B) -name '*.d' -type f 2>/dev/null)

# four processes on one device, one of them killed each second, for two minutes; `make test` has a slice
.PHONY: share
share: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	B=$(ABS_B) python3 tests/system/test_share.py --seconds 120

# every trace swept at steps of half a percent, and `remat plan` alone at every fifth of them: hours on one core, so not part of `make
# test`, which has a slice
.PHONY: monotone
monotone: $(B)/remat
	B=$(abspath $(B)) MONOTONE_STEP=0.5 MONOTONE_ALONE=2.5 python3 tests/system/test_monotone.py

# every solver's plans on every trace against the bounds, likewise
.PHONY: bounds
bounds: $(B)/remat
	B=$(abspath $(B)) BOUNDS_TRACES=all BOUNDS_LIMITS=35,50,70,85 BOUNDS_SECONDS=10 python3 tests/system/test_bounds.py
