# PyTorch on the simulated GPU: what stands in front of NVIDIA's libraries. Included by the root Makefile. Each part has a
# makefile of its own beside its sources.

SIMCUDA_DIR := $(B)/simcuda
-include $(wildcard tests/simcuda/*/*.mk)
