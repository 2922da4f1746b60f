# The simulated CUDA runtime: $(B)/simcuda/libcudart.so.13

RT_OBJ := $(patsubst tests/simcuda/runtime/%.c,$(SIMCUDA_DIR)/rt/%.o,$(wildcard tests/simcuda/runtime/*.c))

$(SIMCUDA_DIR)/rt/%.o: tests/simcuda/runtime/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -MMD -MP -c $< -o $@
$(SIMCUDA_DIR)/libcudart.so.13: $(RT_OBJ) tests/simcuda/runtime/exports.map
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcudart.so.13 -Wl,-Bsymbolic -Wl,-z,defs \
	  -Wl,--version-script=tests/simcuda/runtime/exports.map -o $@ $(RT_OBJ) -ldl -lpthread
ALL_TARGETS += $(SIMCUDA_DIR)/libcudart.so.13

# its tests link it in front of the simulated driver
$(B)/tests/test_simcuda_runtime: tests/unit/test_simcuda_runtime.c $(SIMCUDA_DIR)/libcudart.so.13 $(B)/simgpu/libcuda.so.1 \
  $(B)/simgpu/testcatalogue.so | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) $(SIMCUDA_DIR)/libcudart.so.13 -Wl,-rpath,$(ABS_B)/simcuda $(CHECK_LIBS) \
	  $(SIM_LINK) -lm -ldl -lpthread
$(B)/tests/test_simcuda_abi: tests/unit/test_simcuda_abi.c tests/simcuda/runtime/rt_abi.h | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -idirafter $(CUDA_INCLUDE) -MMD -MP $< -o $@ $(LDFLAGS)
