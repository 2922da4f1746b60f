# The workloads: $(B)/workloads/{mlp,cnn,gpt}, and beside them the kernels as a module of the simulated GPU and as
# PTX text. Included by the root Makefile.

WL_DIR  := $(B)/workloads
WL_LIB  := tensor nn nn_text nn_image optim train
WL_OBJ  := $(patsubst %,$(WL_DIR)/obj/%.o,$(filter $(patsubst tests/workloads/%.c,%,$(wildcard tests/workloads/*.c)),$(WL_LIB)))
WL_PROG := $(patsubst %,$(WL_DIR)/%,$(filter $(patsubst tests/workloads/%.c,%,$(wildcard tests/workloads/*.c)),mlp cnn gpt))

$(WL_DIR)/obj/%.o: tests/workloads/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIE -MMD -MP -c $< -o $@

.SECONDARY: $(patsubst $(WL_DIR)/%,$(WL_DIR)/obj/%.o,$(WL_PROG))

# Linked to the driver by its soname: at run time whichever libcuda.so.1 the loader finds.
$(WL_DIR)/%: $(WL_DIR)/obj/%.o $(WL_OBJ) $(B)/simgpu/libcuda.so.1
	$(CC) $(LDFLAGS) -o $@ $< $(WL_OBJ) $(B)/simgpu/libcuda.so.1 -lm -ldl

# The language model with few words, whose iterations are short: for runs of many
$(WL_DIR)/obj/gpt_short.o: tests/workloads/gpt.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -DGPT_LOG2_WORDS=8 -fPIE -MMD -MP -c $< -o $@
.SECONDARY: $(WL_DIR)/obj/gpt_short.o

# The kernels stand for device code: no sanitizer, and IEEE results as on the device (no fused operations).
WL_KERNEL_FLAGS := $(filter-out $(SANFLAGS),$(CFLAGS)) -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off \
                   -Wno-psabi -Wno-unknown-pragmas
$(WL_DIR)/kernels.so $(WL_DIR)/kernels_cuda.so: $(WL_DIR)/%.so: tests/workloads/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(WL_KERNEL_FLAGS) -fPIC -fvisibility=hidden -MMD -MP -shared $< -o $@
$(WL_DIR)/kernels.ptx: tests/workloads/kernels.ptx
	@mkdir -p $(@D)
	cp $< $@

ifneq ($(SIMGPU_SRC),)
ALL_TARGETS += $(WL_PROG) $(WL_DIR)/gpt_short $(WL_DIR)/kernels.so $(WL_DIR)/kernels.ptx $(WL_DIR)/kernels_cuda.so
endif

# The layers' gradients are tested on the simulated GPU.
$(B)/tests/test_workloads_grad: tests/unit/test_workloads_grad.c $(WL_OBJ) $(WL_DIR)/kernels.so $(B)/simgpu/libcuda.so.1 | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -DKERNELS_PATH='"$(abspath $(WL_DIR))/kernels.so"' -MMD -MP $< -o $@ $(LDFLAGS) \
	  $(WL_OBJ) $(CHECK_LIBS) $(B)/simgpu/libcuda.so.1 -Wl,-rpath,$(abspath $(B))/simgpu -lm -ldl -lpthread
