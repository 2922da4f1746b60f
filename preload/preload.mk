# preload.mk: included by the root Makefile; builds the conformance programs of the doors (tests/conformance).

CONF_DIR := $(B)/conformance

ALL_TARGETS += $(CONF_DIR)/walk $(CONF_DIR)/pass.so

# the doors over the pass-through engine: no tracer, no policy but the log lines
CONF_PIC := $(call PIC_OBJ,$(PRELOAD_SRC) policy/log.c)
$(CONF_DIR)/engine_pass.o: tests/conformance/engine_pass.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPDEFS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -MMD -MP -c $< -o $@
$(CONF_DIR)/pass.so: $(CONF_PIC) $(CONF_DIR)/engine_pass.o
	$(CC) $(LDFLAGS) -shared -o $@ $^ -Wl,-z,defs -lm -ldl -lpthread

$(CONF_DIR)/walk: tests/conformance/walk.c preload/hooks.def | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $< -o $@ $(LDFLAGS) -Wl,-z,dynamic-undefined-weak -ldl

ifeq ($(wildcard policy/engine.c),)
ALL_TARGETS := $(filter-out $(B)/libremat.so,$(ALL_TARGETS))
endif
