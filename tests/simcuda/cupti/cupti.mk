# In front of NVIDIA's profiling interface: $(B)/simcuda/libcupti.so.13

$(SIMCUDA_DIR)/libcupti.so.13: tests/simcuda/cupti/cupti_absent.c tests/simcuda/cupti/cupti_absent.def tests/simcuda/cupti/exports.map | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -fvisibility=hidden -shared -Wl,-soname,libcupti.so.13 -Wl,-Bsymbolic -Wl,-z,defs \
	  -Wl,--version-script=tests/simcuda/cupti/exports.map $(LDFLAGS) -o $@ $<
ALL_TARGETS += $(SIMCUDA_DIR)/libcupti.so.13
