# Needs Python 3.11 or newer and make; everything else is installed into .venv by the targets themselves.

VENV := .venv
BIN  := $(VENV)/bin

# PYTHON=/path/to/python makes the choice by hand; otherwise the first of these that runs and is new enough.
PYTHON ?= $(shell for p in python3.12 python3.11 python3.13 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

# Extra arguments for the tool behind a target: make test ARGS="-k laplace", make mutate ARGS="--module noise".
ARGS ?=

# How many times more random questions than usual make torture asks.
TORTURE ?= 45

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench bench-utility bench-learn docs mutate torture forks audit clean

help: ## say what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

demo: $(VENV)/.user ## set up, run the main job and end
	$(BIN)/python examples/demo.py $(ARGS)

test: $(VENV)/.dev ## set up and run all tests
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(ARGS)

lint: $(VENV)/.dev ## ruff, formatting, mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(wildcard src tests tools bench examples)

bench: $(VENV)/.bench ## ratios against the peers that install, DuckDB and NumPy, kept as JSON in bench/results (an hour or less; ARGS=large: 100 million rows)
	$(BIN)/python -m bench $(ARGS)

bench-utility: $(VENV)/.bench ## what is published, beside the reference implementations' figures, in minutes; kept in bench/results
	$(BIN)/python -m bench utility scale $(ARGS)

bench-learn: $(VENV)/.bench ## private estimators beside diffprivlib's, in minutes; kept in bench/results
	$(BIN)/python -m bench learn-bayes learn-classify learn-engine learn-kmeans learn-pca learn-regression learn-speed $(ARGS)

docs: $(VENV)/.dev ## build the documentation into site/, with a gallery that is run anew
	$(BIN)/python -m tools.gallery
	$(BIN)/mkdocs build --strict $(ARGS)

mutate: $(VENV)/.dev ## break the code on purpose, 1,500 mutants chosen by their hash, and see that the tests notice (under two hours)
	$(BIN)/python -m tools.mutate --limit 1500 $(ARGS)

torture: $(VENV)/.dev ## kill and race the ledger's users for ten minutes; then ask 100,000 random questions, on neighbouring data too, and break every call after a charge
	$(BIN)/python -m tools.torture $(ARGS)
	HUBBUB_TORTURE=$(TORTURE) $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal tests/query/test_engine.py tests/query/test_replay.py tests/publish/test_replay_publish.py tests/engines/test_postgres_plans.py tests/engines/test_postgres_replay.py tests/engines/test_postgres_requests.py tests/engines/test_postgres_functions.py
	HUBBUB_FAULTS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal tests/session/test_faults_after_charge.py tests/session/test_faults_in_sessions.py

forks: $(VENV)/.dev ## answer 100,000 questions by forks of the engine's first process while these are killed and memory is short (half an hour; ARGS="--forks 5000 --seed 7")
	$(BIN)/python -m tools.forks $(ARGS)

audit: $(VENV)/.dev ## audit everything that has a name 100 times; nothing of ours may be accused (two hours on two cores; ARGS="--runs 1": two minutes; in pieces: ARGS="--tally FILE")
	$(BIN)/python -m tools.audit $(ARGS)

clean: ## remove everything that the other targets made
	rm -rf $(VENV) out site docs/gallery build dist .mutate .bench .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Hubbub needs Python 3.11 or newer: none was found. Try make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of packages; an edit of pyproject.toml makes them all stale.
$(VENV)/.user: EXTRAS = plot
$(VENV)/.dev: EXTRAS = dev,learn,plot,postgres
$(VENV)/.bench: EXTRAS = bench,learn,plot
$(VENV)/.user $(VENV)/.dev $(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	@echo "Installing hubbub[$(EXTRAS)] into $(VENV)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[$(EXTRAS)]"
	@touch $@
