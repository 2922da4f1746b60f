# cuBLAS and cuBLASLt on the simulated GPU: two libraries with the names that PyTorch's libraries ask for, and the module with
# their kernels. Included by tests/simcuda/simcuda.mk.

BLAS_DIR    := $(SIMCUDA_DIR)/blas
BLAS_SRC    := tests/simcuda/blas
BLAS_DEVICE := blas_module blas_gemm_kernels blas_finish blas_vector_kernels blas_convert blas_core
BLAS_SHARED := blas_driver blas_gemm blas_convert
BLAS_HOST   := cublas_handle cublas_gemm cublas_vector cublas_refused
# OpenBLAS without threads of its own, static: nothing of it is seen outside the module
OPENBLAS    := openblas-serial
MULTIARCH   := $(shell $(CC) -print-multiarch 2>/dev/null)

$(BLAS_DIR)/%.o: $(BLAS_SRC)/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -MMD -MP -c $< -o $@
# device code: no sanitizer, and no fused operations, so that rounding is the same everywhere
$(BLAS_DIR)/device/%.o: $(BLAS_SRC)/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) -O3 -ffp-contract=off -fno-math-errno -fPIC -fvisibility=hidden \
	  -I/usr/include/$(MULTIARCH)/$(OPENBLAS) -MMD -MP -c $< -o $@
$(SIMCUDA_DIR)/blas_kernels.so: $(BLAS_DEVICE:%=$(BLAS_DIR)/device/%.o)
	$(CC) -shared -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,--wrap=getenv -o $@ $^ \
	  -L/usr/lib/$(MULTIARCH)/$(OPENBLAS) -Wl,-Bstatic -lopenblas -Wl,-Bdynamic -lm -lpthread

$(SIMCUDA_DIR)/libcublas.so.13: $(BLAS_HOST:%=$(BLAS_DIR)/%.o)
$(SIMCUDA_DIR)/libcublasLt.so.13: $(BLAS_DIR)/cublaslt.o
$(SIMCUDA_DIR)/libcublas.so.13 $(SIMCUDA_DIR)/libcublasLt.so.13: $(BLAS_SHARED:%=$(BLAS_DIR)/%.o) $(BLAS_SRC)/cublas.map $(BLAS_SRC)/cublaslt.map
	$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic -Wl,--version-script=$(BLAS_SRC)/$(if $(filter %Lt.so.13,$@),cublaslt,cublas).map \
	  -o $@ $(filter %.o,$^) -ldl -lpthread

ALL_TARGETS += $(SIMCUDA_DIR)/libcublas.so.13 $(SIMCUDA_DIR)/libcublasLt.so.13 $(SIMCUDA_DIR)/blas_kernels.so

$(B)/tests/test_simcuda_blas: tests/unit/test_simcuda_blas.c $(SIMCUDA_DIR)/libcublas.so.13 $(SIMCUDA_DIR)/blas_kernels.so $(B)/simgpu/libcuda.so.1 | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) $(CHECK_LIBS) $(SIM_LINK) $(SIMCUDA_DIR)/libcublas.so.13 \
	  -Wl,-rpath,$(abspath $(SIMCUDA_DIR)) -lm -ldl -lpthread
