# Programs as strangers would write them, and their kernels as a module of the simulated GPU. Included by the root Makefile.

PR_DIR  := $(B)/programs
PR_PROG := $(patsubst tests/programs/%.c,$(PR_DIR)/%,$(filter-out $(addprefix tests/programs/,kernels.c nvtx_record.c loading_library.c past_doors.c),$(wildcard tests/programs/*.c)))

$(PR_PROG): $(PR_DIR)/%: tests/programs/%.c $(B)/simgpu/libcuda.so.1 | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -o $@ $< $(LDFLAGS) $(B)/simgpu/libcuda.so.1 -ldl -lpthread
# linked with a driver that is newer than remat, and with nothing left to be bound; and libraries that work on device memory past the driver
$(PR_DIR)/past_doors: tests/programs/past_doors.c $(B)/simgpu/newer/libcuda.so.1 | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -rdynamic -o $@ $< $(LDFLAGS) -Wl,-z,now,-z,relro $(B)/simgpu/newer/libcuda.so.1 -ldl -lpthread
# the same program, which needs such a library from the start
$(PR_DIR)/past_doors_needs: tests/programs/past_doors.c $(PR_DIR)/engines/libplugin.so
	$(CC) $(CFLAGS) -rdynamic -o $@ $< $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/engines' -Wl,--no-as-needed $(PR_DIR)/engines/libnvoptix.so.1 $(B)/simgpu/newer/libcuda.so.1 -ldl -lpthread
PR_ENGINES := $(addprefix $(PR_DIR)/engines/,libnvidia-encode.so.1 libnvoptix.so.1 libnvcuvid.so.1 libcufile.so.0 libibverbs.so.1 libnccl.so.2)
$(PR_ENGINES): tests/programs/engines/engine.c $(B)/simgpu/newer/libcuda.so.1 | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) $(if $(findstring nvcuvid,$@),-DNVCUVID) $(if $(findstring cufile,$@),-DCUFILE) $(if $(findstring ibverbs,$@),-DIBVERBS) $(if $(findstring nccl,$@),-DNCCL) -fPIC -shared -Wl,-soname,$(@F) -o $@ $< $(B)/simgpu/newer/libcuda.so.1
$(PR_DIR)/engines/libplugin.so: tests/programs/engines/plugin.c $(PR_ENGINES) $(B)/simgpu/newer/libcuda.so.1 | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) -fPIC -shared -o $@ $< -Wl,-rpath,'$$ORIGIN' -Wl,--no-as-needed $(PR_DIR)/engines/libcufile.so.0 \
	  $(PR_DIR)/engines/libibverbs.so.1 $(PR_DIR)/engines/libnccl.so.2 $(B)/simgpu/newer/libcuda.so.1
# programs drawn from seeds
$(PR_DIR)/random_api: $(wildcard tests/programs/api/*.c tests/programs/api/*.h) tests/programs/program.h $(B)/simgpu/libcuda.so.1 | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $(filter %.c,$^) $(LDFLAGS) $(B)/simgpu/libcuda.so.1 -ldl -lpthread
# device code: no sanitizer, and as wide as the processor at hand
PR_WIDE := $(shell grep -qwm1 avx2 /proc/cpuinfo && echo -mavx2)
$(PR_DIR)/kernels_other.so: KERNELS := -DOTHER_KERNELS
$(PR_DIR)/kernels.so $(PR_DIR)/kernels_other.so: tests/programs/kernels.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) $(KERNELS) -O3 $(PR_WIDE) -fPIC -fvisibility=hidden -MMD -MP -shared $< -o $@

# what it says when it comes and goes is the program's
$(PR_DIR)/loading: LDFLAGS += -rdynamic
$(PR_DIR)/loading_library.so: tests/programs/loading_library.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) -fPIC -MMD -MP -shared $< -o $@

# in place of NVIDIA's: writes the ranges down
$(PR_DIR)/nvtx/libnvtx3interop.so.1: tests/programs/nvtx_record.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) -fPIC -MMD -MP -shared $< -o $@

ifneq ($(SIMGPU_SRC),)
ALL_TARGETS += $(PR_PROG) $(PR_DIR)/past_doors $(PR_DIR)/past_doors_needs $(PR_DIR)/engines/libplugin.so $(PR_DIR)/random_api $(PR_DIR)/kernels.so $(PR_DIR)/kernels_other.so $(PR_DIR)/loading_library.so $(PR_DIR)/nvtx/libnvtx3interop.so.1
endif

# programs drawn from seeds, under the adversary
COUNT ?= 20000
SEED  ?= 1
.PHONY: adversary faults soak
adversary: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) SAN=$(SAN) build-all
	@B=$(ABS_B) CC=$(CC) SAN=$(SAN) python3 tests/system/adversary.py --count $(COUNT) --seed $(SEED)
	@B=$(ABS_B) CC=$(CC) SAN=$(SAN) python3 tests/system/test_args.py --count $$(($(COUNT) / 20 + 1)) --seed $(SEED)
# every driver call failed in turn (FAULTS_MOST=0: every single one), and many iterations
faults: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) SAN=$(SAN) build-all
	@B=$(ABS_B) CC=$(CC) SAN=$(SAN) FAULTS_MOST=$${FAULTS_MOST:-25} python3 tests/system/test_faults.py
soak: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@B=$(ABS_B) SOAK_ITERATIONS=$${SOAK_ITERATIONS:-10000} SOAK_POLICIES=$${SOAK_POLICIES:-plan,swap} SOAK_PROGRAM=$${SOAK_PROGRAM:-gpt} python3 tests/system/test_soak.py

# remat with the file of maxima where a test may write it: its place is fixed when remat is built
HELD := $(B)/held
$(HELD)/limits.o: policy/process/limits.c | $(DEPS_STAMP)
$(HELD)/ledger.o: policy/share/ledger.c | $(DEPS_STAMP)
$(HELD)/limits.o $(HELD)/ledger.o:
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPDEFS) -UREMAT_CONF -DREMAT_CONF='"$(ABS_B)/held/remat.conf"' -DREMAT_TOTAL_DIR='"$(ABS_B)/held"' -fPIC -fvisibility=hidden -ftls-model=initial-exec -MMD -MP -c $< -o $@
$(HELD)/libremat.so: $(filter-out $(B)/pic/policy/process/limits.o $(B)/pic/policy/share/ledger.o,$(LIB_OBJ)) $(HELD)/limits.o $(HELD)/ledger.o
	$(CC) $(LDFLAGS) -shared -o $@ $^ -Wl,--exclude-libs,ALL -Wl,-z,defs $(LIB_VERSION_SCRIPT) $(LIB_STATIC) -lm -ldl -lpthread
$(HELD)/remat: $(B)/remat $(HELD)/libremat.so
	cp $< $@ && ln -sfn ../simgpu $(HELD)/simgpu
ALL_TARGETS += $(HELD)/remat
