# PyTorch on the simulated GPU: $(B)/pytorch/bin/python, what is shown with it and what is tested with it. Included by the root
# Makefile. Gigabytes are downloaded, so nothing here belongs to `make all` or `make test`.
#
#   VERSION      of PyTorch (a list of packages tests/simcuda/pytorch/VERSION.txt says what belongs to it)
#   PYTORCH_MODELS which models test-pytorch trains, with commas (all of models/test_models.py)
#   DRAWN        scripts drawn from seeds that test-pytorch trains (4)
#   PYTORCH_DIR  an environment elsewhere, made there if need be and linked to: several checkouts can share one

PYTORCH_DIR ?=
PYTORCH_VERSION := $(if $(filter command line environment,$(origin VERSION)),$(VERSION),2.15.0)

.PHONY: pytorch
pytorch: $(DEPS_STAMP)
	@bash tests/simcuda/pytorch/install.sh $(ABS_B)/pytorch "$(PYTORCH_VERSION)" "$(if $(PYTORCH_DIR),$(abspath $(PYTORCH_DIR)))"

# The operators, and small models of transformers and torchvision, against CPU PyTorch first: nothing is asked of remat before the kernels are known
# to be right. test-pytorch asks each model for each limit and order of execution once, test-pytorch-all for all of them together, and against
# torch.utils.checkpoint.
DRAWN ?= 4
.PHONY: test-ops test-zoo test-pytorch-scripts test-pytorch test-pytorch-all demo-pytorch
test-ops: pytorch
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@REMAT_SIMGPU=1 $(B)/remat run --policy off -- $(B)/pytorch/bin/python tests/simcuda/ops/run.py
test-zoo: pytorch
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@REMAT_SIMGPU=1 $(B)/remat run --policy off -- $(B)/pytorch/bin/python tests/simcuda/ops/zoo.py
test-pytorch-scripts: test-ops test-zoo
	@B=$(ABS_B) REMAT_TORCH_PYTHON=$(ABS_B)/pytorch/bin/python python3 tests/system/test_sweep_export.py
	@B=$(ABS_B) python3 tests/system/test_docs.py pytorch
	@B=$(ABS_B) python3 tests/simcuda/scripts/run.py
	@B=$(ABS_B) python3 tests/simcuda/models/test_group.py
test-pytorch: test-pytorch-scripts
	@B=$(ABS_B) python3 tests/simcuda/models/test_loops.py
	@B=$(ABS_B) python3 tests/simcuda/models/demo.py ViT
	@B=$(ABS_B) python3 tests/simcuda/models/test_drawn.py --count $(DRAWN)
	@B=$(ABS_B) python3 tests/simcuda/models/test_models.py $(if $(PYTORCH_MODELS),--only $(PYTORCH_MODELS))
test-pytorch-all: test-pytorch-scripts
	@set -e; for p in swap auto; do \
	    REMAT_SIMGPU=1 $(B)/remat run --policy $$p --limit 1G -- $(B)/pytorch/bin/python tests/simcuda/ops/zoo.py; done
	@B=$(ABS_B) python3 tests/simcuda/models/test_drawn.py --count 24 --setting plan,tight,swap,auto
	@B=$(ABS_B) python3 tests/simcuda/models/test_models.py --all
demo-pytorch: pytorch
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@B=$(ABS_B) python3 tests/simcuda/models/demo.py
