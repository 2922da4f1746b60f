# The library's own device code: PTX text (regenerated and compared where nvcc is present) and a simulated-GPU module.
$(B)/simgpu/remat_kernels.so: tracer/effects/sim_module.c tracer/effects/hash.h tracer/effects/hash_ptx.h | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -O3 -fPIC -shared -fvisibility=hidden -o $@ $<
ALL_TARGETS += $(B)/simgpu/remat_kernels.so

.PHONY: device-code
device-code: ; sh tracer/effects/generate.sh > tracer/effects/hash_ptx.h
