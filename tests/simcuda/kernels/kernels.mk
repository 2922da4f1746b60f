# The catalogue of PyTorch's device kernels in C: build/simcuda/catalogue.so.

SIMCUDA_KERN_DIR := $(SIMCUDA_DIR)/kernels
SIMCUDA_KERN_OBJ := $(patsubst tests/simcuda/kernels/%.c,$(SIMCUDA_KERN_DIR)/%.o,$(wildcard tests/simcuda/kernels/*.c))

# The kernels stand for device code: no sanitizer, IEEE results as on the device (no fused operations), no errno.
SIMCUDA_KERN_FLAGS := $(filter-out $(SANFLAGS),$(CFLAGS)) -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off \
                      -fno-strict-aliasing -Wno-psabi -Wno-unknown-pragmas -fPIC -fvisibility=hidden

$(SIMCUDA_KERN_DIR)/%.o: tests/simcuda/kernels/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(SIMCUDA_KERN_FLAGS) -MMD -MP -c $< -o $@

$(SIMCUDA_DIR)/catalogue.so: $(SIMCUDA_KERN_OBJ)
	$(CC) -shared -o $@ $^ -liberty -lm

-include $(SIMCUDA_KERN_OBJ:.o=.d)
ALL_TARGETS += $(SIMCUDA_DIR)/catalogue.so
