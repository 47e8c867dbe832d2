# Each target does all the set-up it needs, on a machine that has Python 3.11 or newer and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Four tenths of the time of all tests is waiting for servers, browsers and other processes: three share two cores.
WORKERS ?= 3
# Tests start Python many times: what it compiles is kept, and so are the assertions that pytest rewrites.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check install test verify coverage torch hooks lint types layers format docs bench bench-query clients clean help

help:  ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 13

demo: $(VENV)/.installed  ## a private answer with error bars, in half a minute
	@$(BIN)/tacit demo

check: $(VENV)/.dev lint types  ## style, types and some cases of the quick tests: the inner loop, within a minute
	$(BIN)/pytest -n 2 --dist worksteal --timeout 60 -p tests.support.quick --quick

install: $(VENV)/bin/python  ## build the wheel, and try it in bare environments
	$(BIN)/python tools/try_install.py

test: $(VENV)/.dev lint types layers  ## everything that must hold, in a few minutes
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --timeout 300  # a test that hangs is a test that fails

verify: $(VENV)/.dev lint types layers  ## the same, then at full counts what they change: what was stopped goes on where it was
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -p tests.support.continued --record=build/tested.jsonl
	TACIT_FULL=1 $(BIN)/pytest -n 2 --dist worksteal -p tests.support.counted --counted -p tests.support.continued --record=build/verified.jsonl

coverage: $(VENV)/.dev  ## all tests, and which lines and branches they reach: htmlcov/index.html
	$(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered --cov-report=html

torch: $(VENV)/.torch  ## PyTorch: without it the tests of tacit.learn.torch are left out

hooks: $(VENV)/.dev  ## let git run the checks before each commit
	$(BIN)/pre-commit install

lint: $(VENV)/.dev  ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## mypy, strict
	$(BIN)/mypy

layers: $(VENV)/.dev  ## packages import lower layers only
	$(BIN)/lint-imports

format: $(VENV)/.dev  ## put the style right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs  ## the documentation as a site, offline: build/docs/index.html
	rm -rf build/docs
	$(BIN)/sphinx-build -j 2 -W --keep-going -b html docs build/docs
	$(BIN)/python tools/check_site.py build/docs

bench: $(VENV)/.installed  ## speed, as ratios in one run
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/ask.py
	$(BIN)/python benchmarks/ask_small.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/local.py
	cd benchmarks && ../$(BIN)/python serve.py

clients: $(VENV)/.dev  ## PostgreSQL clients, each installed by itself, against a served curator: a table
	$(BIN)/python tools/try_clients.py

bench-query: $(VENV)/.dev  ## queries at scale, up to 100 million rows, in a quarter of an hour
	$(BIN)/python benchmarks/query.py

clean:  ## remove what make made
	rm -rf $(VENV) build docs/gallery docs/project docs/reference/api .venv-bench .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tacit needs Python 3.11 or newer; try make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	@echo "Setting up Tacit in $(VENV) (once, about a minute)..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	@echo "Setting up the tests in $(VENV) (once, about a minute)..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(VENV)/.installed

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml
	@echo "Setting up the documentation in $(VENV) (once, about a minute)..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@ $(VENV)/.installed

$(VENV)/.torch: $(VENV)/.dev requirements/torch.txt
	@echo "Setting up PyTorch in $(VENV) (once, about a minute)..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/torch.txt
	@touch $@
