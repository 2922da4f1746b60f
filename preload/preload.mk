# preload.mk: included by the root Makefile; builds the conformance programs of the doors (tests/conformance).

CONF_DIR := $(B)/conformance

ALL_TARGETS += $(addprefix $(CONF_DIR)/,walk walk_linked pass.so c10_user calls storm liblate.so libnccl.so.2 libnvidia-ml.so.1 libscope_a.so)

# they run before a sanitizer's runtime has set itself up (see the files)
$(addprefix $(B)/pic/preload/,dlsym.o dlopen.o libc_dlsym.o): CFLAGS := $(filter-out -fsanitize% -fno-sanitize%,$(CFLAGS))

# the doors over the pass-through engine: no tracer, no policy but the log lines
CONF_PIC := $(call PIC_OBJ,$(PRELOAD_SRC) policy/process/log.c tracer/loader.c tracer/machine/alloc_conf.c)
$(CONF_DIR)/engine_pass.o: tests/conformance/engine_pass.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPDEFS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -MMD -MP -c $< -o $@
$(CONF_DIR)/pass.so: $(CONF_PIC) $(CONF_DIR)/engine_pass.o
	$(CC) $(LDFLAGS) -shared -o $@ $^ -Wl,-z,defs -lm -ldl -lpthread

$(CONF_DIR)/walk: tests/conformance/walk.c preload/hooks.def | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) -ldl

# the table of doors in README.md, made anew
.PHONY: doors-table
doors-table: $(CONF_DIR)/walk
	B=$(ABS_B) python3 tests/system/test_doors.py --write

# the same program with libcuda.so.1 among its needs, as -lcuda would leave it; it is linked against names alone
$(CONF_DIR)/names/libcuda.so.1: tests/conformance/names.c tests/conformance/names_get.c preload/hooks.def | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -fPIC -shared -Wl,-soname,libcuda.so.1 $(filter %.c,$^) -o $@
$(CONF_DIR)/walk_linked: tests/conformance/walk.c $(CONF_DIR)/names/libcuda.so.1
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) -Wl,--no-as-needed $(CONF_DIR)/names/libcuda.so.1 -Wl,--as-needed -ldl

# a program that makes one call of nearly every kind, and the libraries it pretends with
$(CONF_DIR)/calls: tests/conformance/calls.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) -ldl -lpthread
$(CONF_DIR)/liblate.so: tests/conformance/late.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -fPIC -shared $< -o $@
$(CONF_DIR)/storm: tests/conformance/storm.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) -ldl -lpthread
$(CONF_DIR)/libnccl.so.2: tests/conformance/fake_nccl.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -fPIC -shared -Wl,-soname,libnccl.so.2 $< -o $@ $(LDFLAGS) -ldl
$(CONF_DIR)/libnvidia-ml.so.1: tests/conformance/fake_nvml.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 $< -o $@ $(LDFLAGS) -ldl

$(CONF_DIR)/libscope_b.so: tests/conformance/scope_b.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -shared -Wl,-soname,libscope_b.so $< -o $@
$(CONF_DIR)/libscope_a.so: tests/conformance/scope_a.c $(CONF_DIR)/libscope_b.so
	$(CC) $(CFLAGS) -fPIC -shared $< -o $@ -Wl,-rpath,'$$ORIGIN' -L$(CONF_DIR) -Wl,--no-as-needed -lscope_b -Wl,--as-needed -ldl

# parts of the doors on their own: each test brings what its part calls
$(B)/tests/test_preload_counted: tests/unit/test_preload_counted.c $(call HOST_OBJ,preload/counted.c preload/vmm.c tracer/loader.c)
$(B)/tests/test_preload_pools: tests/unit/test_preload_pools.c $(call HOST_OBJ,preload/pools.c)
$(B)/tests/test_preload_counted $(B)/tests/test_preload_pools: | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $(filter %.c %.o,$^) -o $@ $(LDFLAGS) $(CHECK_LIBS) -lm -lpthread

# in place of PyTorch's libraries, and a program that calls them
$(CONF_DIR)/torch/libc10.so $(CONF_DIR)/torch/libc10_cuda.so: tests/conformance/fake_c10.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) -fPIC -shared -Wl,-soname,$(@F) $(if $(filter %cuda.so,$@),-DCUDA_PART) $< -o $@
$(CONF_DIR)/c10_user: tests/conformance/c10_user.c $(CONF_DIR)/torch/libc10.so $(CONF_DIR)/torch/libc10_cuda.so
	$(CC) $(CFLAGS) -MMD -MP -o $@ $< $(LDFLAGS) -Wl,--no-as-needed -Wl,-rpath,'$$ORIGIN/torch' $(CONF_DIR)/torch/libc10.so $(CONF_DIR)/torch/libc10_cuda.so
