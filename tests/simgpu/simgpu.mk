# The simulated GPU: $(B)/simgpu/libcuda.so.1, and the parts its tests need. Included by the root Makefile.

SIMGPU_DIR := $(B)/simgpu
SIMGPU_SRC := $(wildcard tests/simgpu/gpu_*.c)
# static, its symbols hidden: a program may have a zstd of its own
SIMGPU_ZSTD := -Wl,-Bstatic -lzstd -Wl,-Bdynamic
SIMGPU_OBJ := $(patsubst tests/simgpu/%.c,$(SIMGPU_DIR)/%.o,$(SIMGPU_SRC))

# PTX: what is computed lane by lane is compiled twice, the second time for processors with AVX2; results are the same
PTX_SRC := $(wildcard tests/simgpu/ptx/ptx_*.c)
PTX_ALU := $(wildcard tests/simgpu/ptx/ptx_alu_*.c)
# clang complains of loops that it does not vectorize where assume_safety asks for no more than that nothing be in the way
PTX_FLAGS := -O3 -Wno-pass-failed -fno-math-errno -fno-trapping-math -ffp-contract=off -fPIC -fvisibility=hidden
PTX_AVX2 := $(if $(filter x86_64,$(shell uname -m)),-mavx2 -mfma -mf16c -mbmi2)
PTX_OBJ := $(patsubst tests/simgpu/%.c,$(SIMGPU_DIR)/%.o,$(filter-out $(PTX_ALU),$(PTX_SRC))) \
           $(foreach v,any avx2,$(patsubst tests/simgpu/ptx/%.c,$(SIMGPU_DIR)/ptx/$(v)/%.o,$(PTX_ALU)))
$(SIMGPU_DIR)/ptx/any/%.o: tests/simgpu/ptx/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(PTX_FLAGS) -DPTX_VARIANT=any -MMD -MP -c $< -o $@
$(SIMGPU_DIR)/ptx/avx2/%.o: tests/simgpu/ptx/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(PTX_FLAGS) $(PTX_AVX2) -DPTX_VARIANT=avx2 -MMD -MP -c $< -o $@
$(SIMGPU_DIR)/ptx/%.o: tests/simgpu/ptx/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(PTX_FLAGS) -MMD -MP -c $< -o $@
SIMGPU_OBJ += $(PTX_OBJ)

$(SIMGPU_DIR)/%.o: tests/simgpu/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@

ifneq ($(SIMGPU_SRC),)
$(SIMGPU_DIR)/libcuda.so.1: $(SIMGPU_OBJ) tests/simgpu/exports.map
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--version-script=tests/simgpu/exports.map \
	  -o $@ $(SIMGPU_OBJ) $(SIMGPU_ZSTD) -lm -ldl -lpthread
	@ln -sf libcuda.so.1 $(SIMGPU_DIR)/libcuda.so
# NVML beside it, with settings of its own reading
$(SIMGPU_DIR)/libnvidia-ml.so.1: $(SIMGPU_DIR)/nvml.o $(SIMGPU_DIR)/gpu_config.o tests/simgpu/nvml.map
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic -Wl,--version-script=tests/simgpu/nvml.map -o $@ $(filter %.o,$^) -ldl -lpthread
ALL_TARGETS += $(SIMGPU_DIR)/libcuda.so.1 $(SIMGPU_DIR)/libnvidia-ml.so.1
endif

# a driver with calls that are newer than remat's tables
$(SIMGPU_DIR)/newer/newer.o: tests/simgpu/newer/newer.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@
$(SIMGPU_DIR)/newer/libcuda.so.1: $(SIMGPU_OBJ) $(SIMGPU_DIR)/newer/newer.o tests/simgpu/exports.map
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--version-script=tests/simgpu/exports.map \
	  -o $@ $(SIMGPU_OBJ) $(SIMGPU_DIR)/newer/newer.o $(SIMGPU_ZSTD) -lm -ldl -lpthread
ifneq ($(SIMGPU_SRC),)
ALL_TARGETS += $(SIMGPU_DIR)/newer/libcuda.so.1
endif

# ---- our declarations of the driver interface against NVIDIA's, each header in a file of its own -----------
CUDA_INCLUDE ?= $(firstword $(wildcard /usr/local/cuda/include /usr/include))
ABI_OBJ := $(SIMGPU_DIR)/abi/abi_ours.o $(SIMGPU_DIR)/abi/abi_nvidia.o

$(SIMGPU_DIR)/abi/%.o: tests/simgpu/%.c tests/simgpu/abi_rows.def | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -idirafter $(CUDA_INCLUDE) -MMD -MP -c $< -o $@
$(B)/tests/test_cuda_abi: tests/unit/test_cuda_abi.c $(ABI_OBJ) | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< $(ABI_OBJ) -o $@ $(LDFLAGS) $(CHECK_LIBS)

# ---- the kernels that the simulated GPU's tests launch ------------------------------------------------------
$(SIMGPU_DIR)/testkernels.so: tests/simgpu/testkernels.c tests/simgpu/simgpu.h | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -fvisibility=hidden -shared $< -o $@ $(LDFLAGS) -lpthread
ALL_TARGETS += $(SIMGPU_DIR)/testkernels.so
$(SIMGPU_DIR)/testcatalogue.so: tests/simgpu/testcatalogue.c tests/simcuda/catalogue.h | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -fvisibility=hidden -shared $< -o $@ $(LDFLAGS)
ALL_TARGETS += $(SIMGPU_DIR)/testcatalogue.so
# the readers of machine code are linked into their test too
$(B)/tests/test_simgpu_code: $(SIMGPU_DIR)/gpu_fatbin.o $(SIMGPU_DIR)/gpu_cubin.o $(SIMGPU_DIR)/testcatalogue.so
$(B)/tests/test_simgpu_code: private LDFLAGS += $(SIMGPU_DIR)/gpu_fatbin.o $(SIMGPU_DIR)/gpu_cubin.o -lzstd
$(B)/fuzz/fuzz_fatbin: tests/fuzz/fuzz_fatbin.c tests/simgpu/gpu_fatbin.c tests/simgpu/gpu_cubin.c | $(CLANG_STAMP)
	mkdir -p $(@D)
	clang $(CSTD) -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $(filter %.c,$^) -o $@ -lzstd
# the reader of PTX is what is fuzzed; the tables of arithmetic come along as they are
$(B)/fuzz/fuzz_ptx: tests/fuzz/fuzz_ptx.c $(filter-out $(PTX_ALU),$(PTX_SRC)) $(filter $(SIMGPU_DIR)/ptx/any/% $(SIMGPU_DIR)/ptx/avx2/%,$(PTX_OBJ)) | $(CLANG_STAMP)
	mkdir -p $(@D)
	clang $(CSTD) -O1 -g $(CPPDEFS) -Wno-pass-failed -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $(filter %.c %.o,$^) -o $@ -lm -lpthread
# its test reads the statistics back
$(B)/tests/test_simgpu_clock $(B)/tests/test_simgpu_costs: private LDFLAGS += -ljansson
# the tables and the executor are linked into the test of every form
$(B)/tests/test_simgpu_ptx_forms: tests/simgpu/ptx/ptx_forms.def $(PTX_OBJ)
$(B)/tests/test_simgpu_ptx_forms: private LDFLAGS += $(PTX_OBJ)
