# The library's own device code: PTX text (regenerated and compared where nvcc is present) and a simulated-GPU module.
$(B)/simgpu/remat_kernels.so: policy/devkern/sim_module.c policy/devkern/hash.h | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -O3 -fPIC -shared -fvisibility=hidden -o $@ $<
ALL_TARGETS += $(B)/simgpu/remat_kernels.so

.PHONY: device-code
device-code: ; sh policy/devkern/generate.sh > policy/devkern/hash_ptx.h
