# What the catalogue has of a library's kernels: $(B)/simcuda/list_kernels LIBRARY CATALOGUE

$(SIMCUDA_DIR)/list_kernels: tests/simcuda/list/list.c $(B)/simgpu/gpu_fatbin.o $(B)/simgpu/gpu_cubin.o | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< $(B)/simgpu/gpu_fatbin.o $(B)/simgpu/gpu_cubin.o -o $@ $(LDFLAGS) -lzstd -ldl
-include $(SIMCUDA_DIR)/list_kernels.d
ALL_TARGETS += $(SIMCUDA_DIR)/list_kernels
