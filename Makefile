# Everything a contributor types. `make` alone lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
KEPT := $(VENV)/histories

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long chaos histories schema screenshots check bench

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv and install toolcrib into it (another Python: make setup PYTHON=python3.12)

demo: $(READY) ## Start everything in memory and watch tasks being scheduled
	@$(BIN)/toolcrib demo

test: $(READY) ## Run the tests, except the long ones
	@$(BIN)/pytest -n 4 --dist loadgroup -m "not long"

test-long: $(READY) ## Run all tests, replay all they did, and let the property tests search longer
	@rm -rf $(KEPT) && mkdir -p $(KEPT)
	@TOOLCRIB_REPLAY=$(abspath $(KEPT)) $(BIN)/pytest -n 4 --dist loadgroup --hypothesis-profile=long --timeout 3600
	@for seed in 1 2; do PYTHONPATH=tests PYTHONHASHSEED=$$seed $(BIN)/python -m replay.all_that_ran $(KEPT) || exit 1; done

chaos: $(READY) ## Kill, stop and cut off everything while tasks run (optional: SEED=7 SECONDS=300 TASKS=300 ...)
	@PYTHONPATH=tests $(BIN)/python -m chaos.run $(foreach option,SEED SECONDS TASKS HOSTS KINDS,$(if $($(option)),\
		--$(shell echo $(option) | tr A-Z a-z) "$($(option))"))

histories: $(READY) ## Record the histories that tests/replay replays anew
	@PYTHONPATH=tests $(BIN)/python -m replay.record

schema: $(READY) ## Write the JSON Schema of workflow definitions in docs/ anew
	@PYTHONPATH=tests $(BIN)/python -m write_schema

screenshots: $(READY) ## Take the pictures of the Web UI in docs/images anew (needs Debian's chromium)
	@PYTHONPATH=tests $(BIN)/python -m webui.screenshots

check: $(READY) ## Check style, types, layers and documentation
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy .types/toolcrib tests
	@$(BIN)/lint-imports
	@$(BIN)/python tests/check_docs.py

bench: $(READY) ## Measure throughput and latency
	@$(BIN)/python benchmarks/lifecycle.py

# An environment that has no pip was left unfinished; it is made anew.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "toolcrib needs Python 3.11 or newer; $(PYTHON) is: $$($(PYTHON) --version 2>&1 | head -n 1)"; \
		echo "Name another one: make setup PYTHON=python3.12"; \
		exit 1; \
	} >&2
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
