# The suite for a machine with an NVIDIA GPU: driver-fact programs, and $(B)/dist-gpu with everything prebuilt.
# Included by the root Makefile. The programs are linked against libcuda.so.1 by its soname; the simulated
# driver stands in for it while linking.

FACT_DIR  := $(B)/gpu/facts
FACT_NAME := getproc alias vmm_cost vmm_block param_info event_cost memset_rate reserve_max launch_cost spy_check \
             cublas_params
FACT_BIN  := $(addprefix $(FACT_DIR)/,$(FACT_NAME))
FACT_DEP  := $(wildcard tests/gpu/facts/*.h) preload/cuda_abi.h preload/cuda_abi_types.h
NVCC      ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
GPU_DIST  := $(B)/dist-gpu

$(FACT_DIR)/fact.o: tests/gpu/facts/fact.c $(FACT_DEP) | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIE -c $< -o $@
$(FACT_BIN): $(FACT_DIR)/%: tests/gpu/facts/%.c $(FACT_DIR)/fact.o $(FACT_DEP) $(B)/simgpu/libcuda.so.1 | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIE $< $(FACT_DIR)/fact.o -o $@ $(LDFLAGS) -pie -L$(B)/simgpu -l:libcuda.so.1 -ldl -lpthread
# never with a sanitizer: it answers dlsym before a sanitizer's runtime is up
$(FACT_DIR)/libspy.so: tests/gpu/facts/spy.c $(FACT_DEP) | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) -fPIC -fvisibility=hidden -shared $< -o $@ -ldl -lpthread
# device code: it stands for what no sanitizer sees on a device, and is slow under one
$(FACT_DIR)/kernels.simgpu.so: tests/gpu/facts/kernels_sim.c tests/simgpu/simgpu.h | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) -fPIC -fvisibility=hidden -shared $< -o $@
$(FACT_DIR)/kernels.ptx: tests/gpu/facts/kernels.ptx
	@mkdir -p $(@D)
	cp $< $@
# a program of the CUDA runtime, as users have them: only where a CUDA compiler is installed
$(FACT_DIR)/cudart_params: tests/gpu/facts/cudart_params.cu
	@mkdir -p $(@D)
	$(NVCC) -O2 -std=c++17 -cudart static -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90 \
	  -Xcompiler -Wall,-static-libstdc++,-static-libgcc $< -o $@ -ldl

GPU_FACTS := $(FACT_BIN) $(FACT_DIR)/libspy.so $(FACT_DIR)/kernels.simgpu.so $(FACT_DIR)/kernels.ptx \
             $(if $(NVCC),$(FACT_DIR)/cudart_params)
.PHONY: gpu-facts dist-gpu-check
gpu-facts: $(GPU_FACTS)

# ---- the folder that travels --------------------------------------------------------------------------------
# remat and remat-milp.so are linked once more, with their libraries beside them: DT_RPATH, not RUNPATH, since the bundled libraries
# must find each other through it too. libremat.so needs nothing but glibc and is copied as it is.
GPU_GLIBC := ^(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|linux-vdso)\.so
GPU_COMMIT = $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)$(shell \
               test -z "$$(git status --porcelain -uno 2>/dev/null)" || echo -dirty)

dist-gpu: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory B=$(B) build-all gpu-facts
	@$(MAKE) --no-print-directory B=$(B) dist-gpu-folder
.PHONY: dist-gpu-folder
dist-gpu-folder: $(CLI_OBJ) $(MILP_OBJ) $(GPU_FACTS)
	@rm -rf $(GPU_DIST)
	@mkdir -p $(GPU_DIST)/lib $(GPU_DIST)/facts $(GPU_DIST)/workloads
	$(CC) $(LDFLAGS) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib' -o $(GPU_DIST)/remat $(CLI_OBJ) $(CLI_LIBS)
	$(CC) $(LDFLAGS) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib' -shared -o $(GPU_DIST)/remat-milp.so $(MILP_OBJ) $(CBC_LIBS)
	@# of the LAPACKs that may be installed the plain one: the fast ones are thirty times its size
	@LD_LIBRARY_PATH=$(subst $(eval) ,:,$(wildcard /usr/lib/*/lapack /usr/lib/*/blas)) ldd $(GPU_DIST)/remat $(GPU_DIST)/remat-milp.so | awk '$$2 == "=>" && $$3 ~ /^\// && $$1 !~ /$(GPU_GLIBC)/ {print $$3}' | sort -u | \
	  while read -r so; do cp -L "$$so" $(GPU_DIST)/lib/; done
	cp $(B)/libremat.so $(GPU_DIST)/
	cp $(GPU_FACTS) tests/gpu/facts/torch_params.py $(GPU_DIST)/facts/
	rm -f $(GPU_DIST)/facts/kernels.simgpu.so
	find $(B)/workloads -maxdepth 1 -type f \( -perm -u+x ! -name '*.so*' -o -name '*.ptx' \) \
	  -exec cp {} $(GPU_DIST)/workloads/ \;
	cp -r tests/gpu/run.sh tests/gpu/*.py tests/gpu/suite tests/gpu/scripts tests/gpu/README.md $(GPU_DIST)/
	find $(GPU_DIST) -name __pycache__ -prune -exec rm -rf {} +
	@for f in $(GPU_DIST)/remat $(GPU_DIST)/remat-milp.so $(GPU_DIST)/lib/* $(GPU_DIST)/facts/*; do \
	  case $$f in *.ptx|*.py) ;; *) strip --strip-debug $$f;; esac; done
	@echo $(GPU_COMMIT) > $(GPU_DIST)/COMMIT
	@bash tests/gpu/check_dist.sh $(GPU_DIST)

# ---- the whole suite in small, on the simulated device, PyTorch included: what a real one will be asked is tried here first --------
# Beside the folder's remat lie the simulated driver, runtime and BLAS: that is where it looks for them. With a workspace of 32 MiB, as the
# suite asks of a real cuBLAS, models as small as these would be little else.
.PHONY: test-gpu-small
test-gpu-small: pytorch
	@$(MAKE) --no-print-directory B=$(B) dist-gpu
	@rm -rf $(B)/gpu-small && cp -r $(GPU_DIST) $(B)/gpu-small && ln -s ../simgpu ../simcuda $(B)/gpu-small/
	@cp $(FACT_DIR)/kernels.simgpu.so $(B)/gpu-small/facts/
	@cp $(B)/workloads/kernels.so $(B)/gpu-small/workloads/
	@SIMGPU_GRANULARITY=64K OMP_NUM_THREADS=1 CUBLAS_WORKSPACE_CONFIG=:16:8 bash $(B)/gpu-small/run.sh --selftest --dist $(B)/gpu-small --simgpu $(ABS_B)/simgpu \
	  --python $(ABS_B)/pytorch/bin/python --tiny --scale 8 --budget 1500 --iters 8 --variants native,remat,remat60,checkpoint,remat@ck,'swap 75','plan 50' \
	  --out $(B)/gpu-small/result.json
	@python3 tests/gpu/check_small.py $(B)/gpu-small/result.json
