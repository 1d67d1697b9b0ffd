# Each target sets up what it needs in .venv (or .venv-bench) the first time, and is quick after that.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Options: make test ARGS="-k greedy", make bench BENCH=shareboost ARGS="--help", make test JOBS=1
ARGS ?=
BENCH ?= shareboost
JOBS ?= auto
PYTHON ?=

VENV := .venv
BENCH_VENV := .venv-bench
BIN := $(VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check
INSTALL := $(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt
# Workers in parallel, so one BLAS thread each. They share compiled files, so that these are written.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1

# The first Python of 3.11 or later, or the one given as PYTHON=...
find_python = for p in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
	  if "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$$p"; exit 0; fi; \
	done; \
	echo "mixnorm needs Python 3.11 or later; tried: $(or $(PYTHON),python3.13 python3.12 python3.11 python3)." \
	     "Install one, or name it: make PYTHON=/path/to/python" >&2; exit 1

.PHONY: help demo test lint docs wheel bench clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.stamp-cli  ## Find the few pixels that tell ten digits apart, and write a report
	@$(BIN)/mixnorm demo $(ARGS)

test: $(VENV)/.stamp-test  ## Run the tests and the examples in docstrings and user guide
	$(ONE_THREAD) PYTHONDONTWRITEBYTECODE= MPLBACKEND=Agg $(BIN)/python -m pytest -n $(JOBS) --maxprocesses=8 $(ARGS)

lint: $(VENV)/.stamp-lint  ## Check style, types, import directions, changelog fragments
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/towncrier build --draft --version next >/dev/null

docs: $(VENV)/.stamp-docs  ## Build the documentation into docs/_build/html, warnings being errors
	$(ONE_THREAD) MPLBACKEND=Agg $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html $(ARGS)
	@echo "open docs/_build/html/index.html"

wheel: $(VENV)/.stamp-test  ## Build the wheel and run the package test against it, not the source tree
	rm -rf build/wheel build/installed
	$(BIN)/python -m pip wheel $(PIP_FLAGS) --no-deps --wheel-dir build/wheel .
	$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --target build/installed build/wheel/*.whl
	PYTHONPATH=$(CURDIR)/build/installed MIXNORM_INSTALLED=$(CURDIR)/build/installed $(BIN)/python -m pytest -q tests/test_package.py

bench: $(BENCH_VENV)/.stamp  ## Run a benchmark beside its peers (BENCH=shareboost)
	$(BENCH_VENV)/bin/python -m benchmarks $(BENCH) $(ARGS)

clean:  ## Remove environments, caches and everything built
	rm -rf $(VENV) $(BENCH_VENV) build dist mixnorm-demo docs/_build docs/api.rst docs/generated docs/auto_examples docs/sg_execution_times.rst
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests docs examples -type d -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@python=$$($(find_python)); "$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# The tests hold other array libraries against NumPy. torch is large, so it has a step of its own.
$(VENV)/.stamp-test: $(VENV)/.stamp-torch
$(VENV)/.stamp-torch: constraints.txt | $(VENV)/bin/python
	@echo "Installing torch into $(VENV)"
	@$(INSTALL) torch==2.13.0
	@touch $@

# .stamp-cli, .stamp-test, .stamp-lint, .stamp-docs: mixnorm with the extra of that name.
$(VENV)/.stamp-%: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing mixnorm[$*] into $(VENV)"
	@$(INSTALL) -e ".[$*]"
	@touch $@

$(BENCH_VENV)/bin/python:
	@python=$$($(find_python)); "$$python" -m venv $(BENCH_VENV) || { rm -rf $(BENCH_VENV); exit 1; }

# MKLpy asks for torch, which is large: it has a step of its own here too, before the peers.
$(BENCH_VENV)/.stamp: $(BENCH_VENV)/.stamp-torch
$(BENCH_VENV)/.stamp-torch: | $(BENCH_VENV)/bin/python
	@echo "Installing torch into $(BENCH_VENV)"
	@$(BENCH_VENV)/bin/python -m pip install $(PIP_FLAGS) torch==2.13.0
	@touch $@

# The peers choose their own versions, so the constraints do not apply here.
$(BENCH_VENV)/.stamp: pyproject.toml benchmarks/requirements.txt | $(BENCH_VENV)/bin/python
	@echo "Installing mixnorm and the peers into $(BENCH_VENV)"
	@$(BENCH_VENV)/bin/python -m pip install $(PIP_FLAGS) -r benchmarks/requirements.txt -e ".[cli]"
	@touch $@
