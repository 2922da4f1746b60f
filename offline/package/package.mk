# Installing and packing: install, uninstall, deb, tarball, wheel. Included by the root Makefile.
#
#   PREFIX   where it will live        (default /usr/local)
#   DESTDIR  put in front of it while installing, for packagers
#
# The layout is the same everywhere, and relocatable: the command finds the library by its own place.
#   PREFIX/bin/remat                PREFIX/lib/remat/{libremat.so,remat-milp.so}      PREFIX/share/{man,doc,bash-completion,zsh,fish}

PREFIX  ?= /usr/local
DESTDIR ?=
PKG     := $(B)/package
PKG_COMMANDS := run trace plan sweep check report export solve status doctor
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

# what brings the libraries it needs: DT_RPATH, so that they find each other through it too
$(PKG)/remat: $(CLI_OBJ)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/remat' -o $@ $(CLI_OBJ) $(CLI_LIBS)
$(PKG)/remat-milp.so: $(MILP_OBJ)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN' -shared -o $@ $(MILP_OBJ) $(CBC_LIBS)

.PHONY: install uninstall deb tarball wheel test-packages pkg-parts pkg-install pkg-portable
# One at a time in a build folder: they share a tree, which the next one makes anew.
PKG_ALONE = @mkdir -p $(PKG); flock $(PKG)/lock sh -ec
install uninstall: $(DEPS_STAMP)
	$(PKG_ALONE) '$(MAKE) --no-print-directory -j2 B=$(B) pkg-parts; $(MAKE) --no-print-directory B=$(B) pkg-$@'
pkg-parts: $(B)/remat $(B)/remat-milp.so $(B)/libremat.so $(PKG_MAN) $(PKG_SH)

# what goes where: mode, file, folder under PREFIX, name there
PKG_ROWS = 755:$(PKG_BIN):bin:remat 644:$(B)/libremat.so:lib/remat:libremat.so 644:$(PKG_MILP):lib/remat:remat-milp.so \
  $(foreach m,$(PKG_MAN),644:$(m):share/man/man$(subst .,,$(suffix $(m))):$(notdir $(m))) \
  644:$(PKG)/remat.bash:share/bash-completion/completions:remat 644:$(PKG)/_remat:$(PKG_ZSH):_remat \
  644:$(PKG)/remat.fish:share/fish/vendor_completions.d:remat.fish \
  644:README.md:share/doc/remat:README.md $(foreach d,$(wildcard docs/*.md docs/*.svg),644:$(d):share/doc/remat/docs:$(notdir $(d)))
PKG_BIN = $(B)/remat
PKG_MILP = $(B)/remat-milp.so
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
	  rmdir --ignore-fail-on-non-empty "$$to/lib/remat" "$$to/share/doc/remat/docs" "$$to/share/doc/remat" 2>/dev/null; true
	@echo "remat is no longer in $(DESTDIR)$(PREFIX)"

# ---- portable: a tree that runs wherever glibc is as new as here --------------------------------------------------
PKG_TREE := $(PKG)/tree/$(PKG_NAME)
pkg-portable: $(PKG)/remat $(PKG)/remat-milp.so pkg-parts
	@rm -rf $(PKG)/tree
	@$(MAKE) --no-print-directory B=$(B) PREFIX=/ DESTDIR=$(abspath $(PKG_TREE)) PKG_BIN=$(PKG)/remat PKG_MILP=$(PKG)/remat-milp.so pkg-install >/dev/null
	@ldd $(PKG)/remat $(PKG)/remat-milp.so | awk '$$2 == "=>" && $$3 ~ /^\// && $$1 !~ /$(GPU_GLIBC)/ {print $$3}' | sort -u | \
	  while read -r so; do cp -L "$$so" $(PKG_TREE)/lib/remat/ && strip --strip-unneeded $(PKG_TREE)/lib/remat/$$(basename $$so); done
	@cp LICENSE $(PKG_TREE)/share/doc/remat/
	@{ echo 'The libraries in lib/remat other than libremat.so come from Debian; their licences:'; \
	   for so in $(PKG_TREE)/lib/remat/*.so.*; do \
	     p=$$(dpkg-query -S "*/$$(basename $$so)" 2>/dev/null | head -n 1 | cut -d: -f1); \
	     [ -z "$$p" ] || printf '%s: /usr/share/doc/%s/copyright\n' $$(basename $$so) $$p; done; } >$(PKG_TREE)/share/doc/remat/THIRD-PARTY
	@for p in $$(awk -F/ 'NR > 1 {print $$(NF - 1)}' $(PKG_TREE)/share/doc/remat/THIRD-PARTY | sort -u); do \
	   install -D -m 644 /usr/share/doc/$$p/copyright $(PKG_TREE)/share/doc/remat/licences/$$p; done
pkg-tarball:
	@tar -C $(PKG)/tree --owner=0 --group=0 --sort=name -czf $(B)/$(PKG_NAME).tar.gz.part $(PKG_NAME)
	@mv $(B)/$(PKG_NAME).tar.gz.part $(B)/$(PKG_NAME).tar.gz
	@echo $(B)/$(PKG_NAME).tar.gz
pkg-wheel:
	@python3 offline/package/wheel.py $(PKG_TREE) $(REMAT_VERSION) $(B)
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
