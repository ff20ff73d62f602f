# Needs python3 (3.10 or newer) with pip, and make; everything else goes into $(VENV).
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
# By file: tests of one file share compiled loops, which two processes would otherwise compile at the same moment.
pytest = $(bin)/python -m pytest -n $(JOBS) --dist loadfile

bin := $(VENV)/bin
pip := $(bin)/python -m pip -qq --no-input --disable-pip-version-check
sources := $(wildcard src tests tools benchmarks examples)
# Commands start sooner, also where PYTHONDONTWRITEBYTECODE keeps Python from doing this by itself.
bytecode := $(bin)/python -m compileall -q src

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all lint types completeness imports bench docs wheel clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile
	@echo "Tests on real data run where ONLEARN_DATA names the folder that holds them."

demo: $(VENV)/.onlearn ## install, then train the named learners on data that ships with the packages
	@$(bin)/onlearn demo

test: lint types ## set up for the tests and run them, with the linters and type checks
	$(pytest) -m "not slow"

test-all: lint types completeness ## the same with the long sweeps and the share of known types
	$(pytest)

lint: imports ## style, formatting and the direction of imports
	$(bin)/ruff check $(sources)
	$(bin)/ruff format --check $(sources)

types: $(VENV)/.onlearn-dev ## types of the public surface
	$(bin)/mypy

completeness: $(VENV)/.onlearn-types ## the share of the public surface whose types are known: 95 % or more
	$(bin)/python tools/check_types.py

imports: $(VENV)/.onlearn-dev ## no module imports from a layer above its own
	$(bin)/python tools/check_imports.py

bench: $(VENV)/.onlearn-bench ## measure against the peers (installs them)
	$(bin)/python benchmarks/run.py

docs: $(VENV)/.onlearn-dev ## run the examples in the documents and check their links
	$(bin)/python tools/check_docs.py

wheel: $(VENV)/.onlearn ## a wheel for Linux on x86-64 that holds compiled code, so that a first run need not compile
	$(pip) install 'hatchling>=1.27'
	ONLEARN_SHIP=1 $(pip) wheel --no-build-isolation --no-deps --wheel-dir dist .

clean: ## remove caches and builds (not the environment)
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find $(sources) -type d -name __pycache__ -prune -exec rm -rf {} +

# A stamp is written only after its step succeeded, so an interrupted install is tried again.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "onlearn needs Python 3.10 or newer: '$(PYTHON)' is older or missing (make PYTHON=/path/to/python3 ...)" >&2; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv --without-pip $(VENV)
	@# Some systems ship Python without ensurepip; there the pip that is installed brings one in.
	@$(bin)/python -m pip --version >/dev/null 2>&1 || \
		PYTHONPATH="$$($(PYTHON) -c 'import os, pip; print(os.path.dirname(os.path.dirname(pip.__file__)))')" \
		$(pip) install --ignore-installed pip
	@touch $@

$(VENV)/.onlearn: pyproject.toml $(VENV)/.created
	@echo "Installing onlearn (a minute or two the first time)"
	@$(pip) install --editable .
	@$(bytecode)
	@touch $@

$(VENV)/.onlearn-%: pyproject.toml $(VENV)/.created
	@echo "Installing onlearn with what '$*' needs (a minute or two the first time)"
	@$(pip) install --editable '.[$*]'
	@$(bytecode)
	@touch $@ $(VENV)/.onlearn
