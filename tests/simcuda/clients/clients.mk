# Other people's training loops, which lie beside the checkout ($REMAT_SHARED/clients): all of them, hours. Three, drawn by the commit's hash, belong to
# `make test-all` (tests/runner/tests.tsv). With build/clients-site (pip install --target, as the loops' README says) those too that need other packages.
.PHONY: clients
clients: pytorch
	@$(MAKE) --no-print-directory -j2 B=$(B) build-all
	@B=$(ABS_B) python3 tests/simcuda/clients/clients.py --all
