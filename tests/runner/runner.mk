# The planner that programs start in the tests. Included by the root Makefile.
$(B)/tests/planner: tests/runner/planner.c offline/model/sha256.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SANFLAGS),$(CFLAGS)) -o $@ $^
ALL_TARGETS += $(B)/tests/planner
