# `make demo` and `make test` need Python 3.11 or newer, make and the package index; both
# make .venv themselves. Nothing is fetched once that is there.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DATA   ?= $(wildcard ../shared/data)

export REJOINDER_DATA := $(if $(REJOINDER_DATA),$(REJOINDER_DATA),$(abspath $(DATA)))

.PHONY: demo test lint types unit bench docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/core
	$(BIN)/rejoinder demo

test: lint types unit

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev
	$(BIN)/mypy

unit: $(VENV)/dev
	$(BIN)/pytest -n 2 --dist loadgroup -q

bench: $(VENV)/dev
	$(BIN)/python benchmarks/all.py $(ONLY)

docs: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rejoinder needs Python 3.11 or newer; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ja,zh]'
	touch $@

$(VENV)/dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/core

clean:
	rm -rf $(VENV) demo-output site .pytest_cache .mypy_cache .ruff_cache .hypothesis
