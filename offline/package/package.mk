# Installing and packing: install, uninstall, deb, tarball, wheel. Included by the root Makefile.
#
#   PREFIX   where it will live        (default /usr/local)
#   DESTDIR  put in front of it while installing, for packagers
#
# The layout is the same everywhere, and relocatable: the command finds the library by its own place.
#   PREFIX/bin/remat       PREFIX/lib/remat/{libremat.so,remat-milp.so}       PREFIX/share/{man,doc,remat,bash-completion,zsh,fish}
# The simulated GPU is a tarball and a wheel of its own, `remat-sim`, over the same layout: lib/remat/{simgpu,simcuda,workloads}.

PREFIX  ?= /usr/local
DESTDIR ?=
PKG     := $(B)/package
PKG_COMMANDS := run trace plan sweep advise fit check report export solve status known doctor
PKG_MAN := $(PKG)/man/remat.1 $(PKG_COMMANDS:%=$(PKG)/man/remat-%.1) $(patsubst docs/%,$(PKG)/man/%,$(wildcard docs/*.5))
PKG_SH  := $(PKG)/remat.bash $(PKG)/_remat $(PKG)/remat.fish
PKG_ARCH := $(shell uname -m)
PKG_NAME := remat-$(REMAT_VERSION)-linux-$(PKG_ARCH)

$(PKG)/man/remat.1: $(B)/remat
	@mkdir -p $(@D)
	$(B)/remat --generate man >$@
$(PKG)/man/remat-%.1: $(B)/remat
	@mkdir -p $(@D)
	$(B)/remat --generate man $* >$@
$(PKG)/man/%.5: docs/%.5
	@mkdir -p $(@D)
	cp $< $@
$(PKG)/remat.bash: $(B)/remat
	@mkdir -p $(@D)
	$(B)/remat --generate bash >$@
$(PKG)/_remat: $(B)/remat
	@mkdir -p $(@D)
	$(B)/remat --generate zsh >$@
$(PKG)/remat.fish: $(B)/remat
	@mkdir -p $(@D)
	$(B)/remat --generate fish >$@

.PHONY: install uninstall deb tarball wheel test-packages pkg-parts pkg-install pkg-portable
# One at a time in a build folder: they share a tree, which the next one makes anew.
PKG_ALONE = @mkdir -p $(PKG); flock $(PKG)/lock sh -ec
install uninstall: $(DEPS_STAMP)
	$(PKG_ALONE) '$(MAKE) --no-print-directory -j2 B=$(B) pkg-parts; $(MAKE) --no-print-directory B=$(B) pkg-$@'
pkg-parts: $(B)/remat $(B)/remat-milp.so $(B)/libremat.so $(PKG_MAN) $(PKG_SH)

# what goes where: mode, file, folder under PREFIX, name there
PKG_ROWS = 755:$(PKG_BIN):bin:remat 644:$(PKG_LIB):lib/remat:libremat.so 644:$(PKG_MILP):lib/remat:remat-milp.so \
  $(foreach m,$(PKG_MAN),644:$(m):share/man/man$(subst .,,$(suffix $(m))):$(notdir $(m))) \
  644:$(PKG)/remat.bash:share/bash-completion/completions:remat 644:$(PKG)/_remat:$(PKG_ZSH):_remat \
  644:$(PKG)/remat.fish:share/fish/vendor_completions.d:remat.fish \
  $(foreach f,$(wildcard $(addprefix offline/package/,kubernetes/*.yaml prometheus/*)),644:$(f):$(patsubst offline/package/%/,share/remat/%,$(dir $(f))):$(notdir $(f))) \
  644:README.md:share/doc/remat:README.md $(foreach d,$(wildcard docs/*.md docs/*.svg docs/*.png),644:$(d):share/doc/remat/docs:$(notdir $(d)))
PKG_BIN = $(B)/remat
PKG_MILP = $(B)/remat-milp.so
PKG_LIB = $(B)/libremat.so
PKG_ZSH = share/zsh/site-functions

pkg-install:
	@set -e; to=$(DESTDIR)$(PREFIX); for row in $(PKG_ROWS); do IFS=: read -r mode from dir name <<<"$$row"; \
	  install -d "$$to/$$dir"; install -m $$mode $$from "$$to/$$dir/$$name"; \
	  case $$name in remat|libremat.so|remat-milp.so) [ $$dir = bin ] || [ $$dir = lib/remat ] && strip --strip-unneeded "$$to/$$dir/$$name" || true;; esac; done
	@echo "remat $(REMAT_VERSION) is in $(DESTDIR)$(PREFIX)"
pkg-install pkg-uninstall pkg-portable pkg-tarball pkg-deb: SHELL := /bin/bash
.PHONY: pkg-uninstall pkg-tarball pkg-deb pkg-wheel
# only what was put there, and folders of remat's own
pkg-uninstall:
	@to=$(DESTDIR)$(PREFIX); for row in $(PKG_ROWS); do IFS=: read -r mode from dir name <<<"$$row"; rm -f "$$to/$$dir/$$name"; done; \
	  rmdir --ignore-fail-on-non-empty "$$to/lib/remat" "$$to/share/doc/remat/docs" "$$to/share/doc/remat" \
	    "$$to/share/remat/kubernetes" "$$to/share/remat/prometheus" "$$to/share/remat" 2>/dev/null; true
	@echo "remat is no longer in $(DESTDIR)$(PREFIX)"

# ---- portable: a tree that runs wherever glibc is as new as PORTABLE_GLIBC, and needs no other library -------------------------
# The same objects as in B, linked against libraries that have that glibc's names (glibc.py), with what it lacks (portable*.c) and with static archives.
# LAPACK and BLAS are the plain ones (libblas-dev): CBC factors small dense blocks with them, and the fast ones are thirty times their size.
PORTABLE_GLIBC := 2.28
PORTABLE := $(PKG)/portable
PORTABLE_LINK = $(CC) $(LDFLAGS) -nodefaultlibs -Wl,--gc-sections,-O1,--exclude-libs,ALL
PORTABLE_ARCHIVE_DIRS := -L/usr/lib/$(shell $(CC) -print-multiarch 2>/dev/null)/lapack -L/usr/lib/$(shell $(CC) -print-multiarch 2>/dev/null)/blas
# archives before, glibc behind
PORTABLE_LIBC = $(PORTABLE)/portable.o -L$(PORTABLE)/glibc -Wl,--no-as-needed -lpthread -ldl -Wl,--as-needed -lm -lc -lld -l:libc_nonshared.a \
  -Wl,-Bstatic -lgcc_eh -lgcc -Wl,-Bdynamic -lc -lld
PORTABLE_STREAMS := -Wl,--defsym=stdin=portable_stdin,--defsym=stdout=portable_stdout,--defsym=stderr=portable_stderr
PORTABLE_CBC := -lCbcSolver -lCbc -lCgl -lOsiClp -lClpSolver -lClp -lOsi -lCoinUtils -lbz2 -lz -llapack -lblas -lstdc++

$(PORTABLE)/glibc/libc.so: offline/package/glibc.py
	@rm -rf $(@D)
	CC=$(CC) python3 $< $(PORTABLE_GLIBC) $(@D)
$(PORTABLE)/%.o: offline/package/%.c | $(DEPS_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@
$(PORTABLE)/remat: $(CLI_OBJ) $(PORTABLE)/portable.o $(PORTABLE)/portable_start.o $(PORTABLE)/glibc/libc.so
	$(PORTABLE_LINK) -Wl,--wrap=__libc_start_main -o $@ $(CLI_OBJ) $(PORTABLE)/portable_start.o \
	  -Wl,-Bstatic -ljansson -liberty -lsqlite3 -Wl,-Bdynamic $(PORTABLE_LIBC)
$(PORTABLE)/libremat.so: $(LIB_OBJ) $(LIB_EXTRA_OBJ) $(PORTABLE)/portable.o $(PORTABLE)/glibc/libc.so
	$(PORTABLE_LINK) -shared -o $@ $(LIB_OBJ) $(LIB_EXTRA_OBJ) $(LIB_VERSION_SCRIPT) -Wl,-z,defs -Wl,--defsym=stdin=remat_no_stdin \
	  -Wl,-Bstatic -ljansson -liberty -Wl,-Bdynamic $(PORTABLE_LIBC)
$(PORTABLE)/remat-milp.so: $(MILP_OBJ) $(addprefix $(PORTABLE)/,portable.o portable_streams.o portable_lapack.o glibc/libc.so)
	$(PORTABLE_LINK) -shared -o $@ $(MILP_OBJ) $(PORTABLE)/portable_streams.o $(PORTABLE)/portable_lapack.o -Wl,-z,defs $(PORTABLE_STREAMS) \
	  $(PORTABLE_ARCHIVE_DIRS) -Wl,-Bstatic -Wl,--start-group $(PORTABLE_CBC) -Wl,--end-group -Wl,-Bdynamic $(PORTABLE_LIBC)

# the simulated GPU, PyTorch's parts of it, and programs to try it with
PORTABLE_SIM := simgpu/libcuda.so.1 simgpu/libnvidia-ml.so.1 simcuda/libcudart.so.13 simcuda/libcublas.so.13 simcuda/libcublasLt.so.13 simcuda/catalogue.so \
  workloads/mlp workloads/cnn workloads/gpt
PORTABLE_SIM_AS_IS := simgpu/remat_kernels.so simcuda/libcupti.so.13 simcuda/blas_kernels.so workloads/kernels.so workloads/kernels.ptx
comma := ,
PORTABLE_SO = @mkdir -p $(@D); $(PORTABLE_LINK) -shared -o $@ -Wl,-soname,$(@F) -Wl,-Bsymbolic $(filter-out %/portable.o,$(filter %.o,$^)) \
  $(addprefix -Wl$(comma)--version-script=,$(filter %.map,$^))
$(addprefix $(PORTABLE)/,$(PORTABLE_SIM)): $(PORTABLE)/portable.o $(PORTABLE)/glibc/libc.so
$(PORTABLE)/simgpu/libcuda.so.1: $(SIMGPU_OBJ) tests/simgpu/exports.map
	$(PORTABLE_SO) $(SIMGPU_ZSTD) $(PORTABLE_LIBC)
$(PORTABLE)/simgpu/libnvidia-ml.so.1: $(SIMGPU_DIR)/nvml.o $(SIMGPU_DIR)/gpu_config.o tests/simgpu/nvml.map
	$(PORTABLE_SO) $(PORTABLE_LIBC)
$(PORTABLE)/simcuda/libcudart.so.13: $(RT_OBJ) tests/simcuda/runtime/exports.map
	$(PORTABLE_SO) $(PORTABLE_LIBC)
$(PORTABLE)/simcuda/libcublas.so.13: $(addprefix $(BLAS_DIR)/,$(BLAS_HOST:%=%.o) $(BLAS_SHARED:%=%.o)) $(BLAS_SRC)/cublas.map
	$(PORTABLE_SO) $(PORTABLE_LIBC)
$(PORTABLE)/simcuda/libcublasLt.so.13: $(addprefix $(BLAS_DIR)/,cublaslt.o $(BLAS_SHARED:%=%.o)) $(BLAS_SRC)/cublaslt.map
	$(PORTABLE_SO) $(PORTABLE_LIBC)
$(PORTABLE)/simcuda/catalogue.so: $(SIMCUDA_KERN_OBJ)
	@mkdir -p $(@D)
	$(PORTABLE_LINK) -shared -o $@ $(SIMCUDA_KERN_OBJ) -Wl,-Bstatic -liberty -Wl,-Bdynamic $(PORTABLE_LIBC)
$(PORTABLE)/workloads/%: $(WL_DIR)/obj/%.o $(WL_OBJ) $(PORTABLE)/portable_start.o $(SIMGPU_DIR)/libcuda.so.1
	@mkdir -p $(@D)
	$(PORTABLE_LINK) -Wl,--wrap=__libc_start_main,--unresolved-symbols=ignore-in-shared-libs -o $@ $(filter-out %/portable.o,$(filter %.o,$^)) \
	  $(SIMGPU_DIR)/libcuda.so.1 $(PORTABLE_LIBC)

# two trees of one layout, so that what is unpacked or installed into one place is whole
PKG_TREE := $(PKG)/tree/$(PKG_NAME)
PKG_SIM_TREE := $(PKG)/tree-sim/$(PKG_NAME)
PKG_ARCHIVES = $(foreach a,$(1),$(shell $(CC) $(PORTABLE_ARCHIVE_DIRS) -print-file-name=lib$(a).a))
pkg-portable: $(addprefix $(PORTABLE)/,remat libremat.so remat-milp.so $(PORTABLE_SIM)) $(addprefix $(B)/,$(PORTABLE_SIM_AS_IS)) pkg-parts
	@rm -rf $(PKG)/tree $(PKG)/tree-sim
	@$(MAKE) --no-print-directory B=$(B) PREFIX=/ DESTDIR=$(abspath $(PKG_TREE)) PKG_BIN=$(PORTABLE)/remat PKG_LIB=$(PORTABLE)/libremat.so \
	  PKG_MILP=$(PORTABLE)/remat-milp.so pkg-install >/dev/null
	@install -D -m 644 LICENSE $(PKG_TREE)/share/doc/remat/LICENSE; install -D -m 644 LICENSE $(PKG_SIM_TREE)/share/doc/remat-sim/LICENSE
	@for f in $(PORTABLE_SIM:%=$(PORTABLE)/%) $(PORTABLE_SIM_AS_IS:%=$(B)/%); do to=$(PKG_SIM_TREE)/lib/remat/$$(basename $$(dirname $$f)); \
	  case $${f##*/} in mlp|cnn|gpt) mode=755;; *) mode=644;; esac; install -D -m $$mode $$f $$to/$${f##*/}; \
	  case $$f in *.ptx) ;; *) strip --strip-unneeded $$to/$${f##*/};; esac; done
	@python3 offline/package/licences.py $(PKG_TREE)/share/doc/remat $(call PKG_ARCHIVES,jansson iberty sqlite3 $(patsubst -l%,%,$(PORTABLE_CBC)))
	@python3 offline/package/licences.py $(PKG_SIM_TREE)/share/doc/remat-sim $(call PKG_ARCHIVES,zstd iberty) /usr/lib/$(MULTIARCH)/$(OPENBLAS)/libopenblas.a
pkg-tarball:
	@set -e; for t in tree-sim tree; do of=$(B)/$$([ $$t = tree ] && echo $(PKG_NAME) || echo remat-sim-$(PKG_NAME:remat-%=%)).tar.gz; \
	  tar -C $(PKG)/$$t --owner=0 --group=0 --sort=name --mtime='1980-01-01 UTC' -cf - $(PKG_NAME) | gzip -9n >$$of.part; mv $$of.part $$of; echo $$of; done
pkg-wheel:
	@python3 offline/package/wheel.py remat-sim $(PKG_SIM_TREE) $(REMAT_VERSION) $(PORTABLE_GLIBC) $(B)
	@python3 offline/package/wheel.py remat $(PKG_TREE) $(REMAT_VERSION) $(PORTABLE_GLIBC) $(B)
tarball wheel: $(DEPS_STAMP)
	$(PKG_ALONE) '$(MAKE) --no-print-directory -j2 B=$(B) pkg-parts pkg-portable; $(MAKE) --no-print-directory B=$(B) pkg-$@'

# ---- .deb -------------------------------------------------------------------------------------------------------------
deb: $(DEPS_STAMP)
	$(PKG_ALONE) '$(MAKE) --no-print-directory -j2 B=$(B) EXTRA_CFLAGS="$(EXTRA_CFLAGS)" pkg-parts; $(MAKE) --no-print-directory B=$(B) pkg-deb'
pkg-deb:
	@rm -rf $(PKG)/deb
	@$(MAKE) --no-print-directory B=$(B) PREFIX=/usr DESTDIR=$(abspath $(PKG)/deb/root) PKG_ZSH=share/zsh/vendor-completions pkg-install >/dev/null
	@bash offline/package/deb.sh $(PKG)/deb $(REMAT_VERSION) $(B)

# packing takes minutes, and tools that only packagers have, others' viewers are downloaded: a target of its own. Exit 77 of a test:
# cannot run here
test-packages: $(DEPS_STAMP) $(TEST_STAMP)
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@$(RUN_TESTS) all --only packages
