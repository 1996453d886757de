# Two commands do all the set-up: `make serve` and `make test`. Everything goes into $(VENV).
VENV   ?= .venv
PYTHON ?= python3
RECIPE ?= recipes/peer.yaml
BIN    := $(VENV)/bin
READY  := $(VENV)/.kvflow-ready

.DEFAULT_GOAL := help
.PHONY: help setup serve run test check bench soak

help:             ## Show these targets.
	@grep -hE '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## */  make \1\t/' | expand -t 16

# pip, not uv: pip finds a torch that lies on disk. The engine extra is about 10 GB.
# The stamp holds the checkout's path too, since an editable install belongs to one checkout.
setup: $(READY)   ## Create the virtual environment and install kvflow with its engine.
	@test "$$(cat $(READY))" = "$(CURDIR)" || { \
	  echo "pointing $(VENV) at this checkout" >&2; \
	  $(BIN)/python -m pip install --quiet --no-deps -e . && echo "$(CURDIR)" > $(READY); }

$(READY): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing kvflow and SGLang into $(VENV): about 10 GB and 4 minutes the first time" >&2
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --progress-bar off -e '.[engine,nvml,tui,plot]' --group dev
	@echo "$(CURDIR)" > $@

serve: setup      ## Serve RECIPE (recipes/peer.yaml); without a GPU on the CPU engine.
	$(BIN)/kvflow serve --recipe $(RECIPE)

run: setup        ## Walk RECIPE against the server that `make serve` started.
	$(BIN)/kvflow run $(RECIPE)

# Two workers: real servers and whatever else runs beside them want most of 16 GB.
test: setup       ## Run the tests, the real engine included.
	$(BIN)/python -m pytest -n 2 --no-loadscope-reorder

check: setup      ## Format, lint, types and import contracts.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup      ## Compare the tree cores: match, insert, evict.
	$(BIN)/python benchmarks/tree_cost.py

soak: setup       ## A long run against a served recipe: RUNS runs (200), 8 at once.
	$(BIN)/kvflow run $(RECIPE) --runs $(or $(RUNS),200) --concurrency 8
