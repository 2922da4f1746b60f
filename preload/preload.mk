# preload.mk: included by the root Makefile; builds the conformance programs of the doors (tests/conformance).

CONF_DIR := $(B)/conformance

ALL_TARGETS += $(CONF_DIR)/walk $(CONF_DIR)/walk_linked $(CONF_DIR)/pass.so

# the doors over the pass-through engine: no tracer, no policy but the log lines
CONF_PIC := $(call PIC_OBJ,$(PRELOAD_SRC) policy/log.c)
$(CONF_DIR)/engine_pass.o: tests/conformance/engine_pass.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPDEFS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -MMD -MP -c $< -o $@
$(CONF_DIR)/pass.so: $(CONF_PIC) $(CONF_DIR)/engine_pass.o
	$(CC) $(LDFLAGS) -shared -o $@ $^ -Wl,-z,defs -lm -ldl -lpthread

$(CONF_DIR)/walk: tests/conformance/walk.c preload/hooks.def | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) -ldl

# the same program with libcuda.so.1 among its needs, as -lcuda would leave it; it is linked against names alone
$(CONF_DIR)/names/libcuda.so.1: tests/conformance/names.c preload/hooks.def | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -fPIC -shared -nostdlib -Wl,-soname,libcuda.so.1 $< -o $@
$(CONF_DIR)/walk_linked: tests/conformance/walk.c $(CONF_DIR)/names/libcuda.so.1
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) -Wl,--no-as-needed $(CONF_DIR)/names/libcuda.so.1 -Wl,--as-needed -ldl

ifeq ($(wildcard policy/engine.c),)
ALL_TARGETS := $(filter-out $(B)/libremat.so,$(ALL_TARGETS))
endif
