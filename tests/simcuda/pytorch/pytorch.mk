# PyTorch on the simulated GPU: $(B)/pytorch/bin/python, what is shown with it and what is tested with it. Included by the root
# Makefile. Gigabytes are downloaded, so nothing here belongs to `make all` or `make test`, but to `make test-all`.
#
#   VERSION      of PyTorch (a list of packages tests/simcuda/pytorch/VERSION.txt says what belongs to it)
#   PYTORCH_DIR  an environment elsewhere, made there if need be and linked to: several checkouts can share one

PYTORCH_DIR ?=
PYTORCH_VERSION := $(if $(filter command line environment,$(origin VERSION)),$(VERSION),2.15.0)

.PHONY: pytorch
pytorch: $(DEPS_STAMP)
	@bash tests/simcuda/pytorch/install.sh $(ABS_B)/pytorch "$(PYTORCH_VERSION)" "$(if $(PYTORCH_DIR),$(abspath $(PYTORCH_DIR)))"

# The operators, and small models of transformers and torchvision, against CPU PyTorch; then models under remat, each for each limit and order of
# execution once (rows with the tag `pytorch` in tests/runner/tests.tsv). test-pytorch-all asks for all of them together, and against
# torch.utils.checkpoint.
.PHONY: test-pytorch test-pytorch-all demo-pytorch
test-pytorch: $(DEPS_STAMP)
	@$(MAKE) --no-print-directory test-all T=pytorch
test-pytorch-all: test-pytorch
	@set -e; for p in swap auto; do \
	    REMAT_SIMGPU=1 $(B)/remat run --policy $$p --limit 1G -- $(B)/pytorch/bin/python tests/simcuda/ops/zoo.py; done
	@B=$(ABS_B) python3 tests/simcuda/models/test_drawn.py --count 24 --setting plan,tight,swap,auto
	@B=$(ABS_B) python3 tests/simcuda/models/test_models.py --all
demo-pytorch: pytorch
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@B=$(ABS_B) python3 tests/simcuda/models/demo.py
