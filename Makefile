# What a reviewer runs. `make` alone lists the targets. Needs python 3.11 or newer, git and make; nothing else.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready

SECONDS ?= 300
SEED    ?= 1
RESULTS ?= docs/reliability.jsonl

.PHONY: help venv fix lint test demo drill bench soak mutants reliability docs wheel clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z][a-z.]*:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(READY)  ## make .venv with everything the tests and examples need

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "milepost needs python 3.11 or newer; say which with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[console,dev,examples]'
	@touch $@

fix: $(READY)  ## format the code and repair what ruff can repair
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format --quiet

lint: $(READY)  ## style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

test: lint  ## everything: lint, then all tests on two processes
	$(BIN)/pytest -n 2 --dist worksteal

demo: $(READY)  ## the month of invoices, killed five times and resumed, beside an undisturbed run
	PYTHONPATH=examples $(BIN)/milepost demo

drill: $(READY)  ## kill the invoice example at every point and compare (some minutes)
	PYTHONPATH=examples $(BIN)/milepost drill examples/invoices/reconcile.py:reconcile month=2026-10 \
	  --setup invoices.drilled:month --observe invoices.drilled:outside

bench: $(READY)  ## the table of docs/design.md §8, beside raw SQLite on this machine
	$(BIN)/python bench/run.py

soak: $(READY)  ## every harness of tests/soak within a time: make soak SECONDS=600 SEED=7
	MILEPOST_SOAK_RESULTS=$(RESULTS) $(BIN)/python tools/soak.py --seconds $(SECONDS) --seed $(SEED)

mutants: $(READY)  ## plant bugs in copies of the package and show which harness notices each
	MILEPOST_SOAK_RESULTS=$(RESULTS) PYTHONPATH=tools $(BIN)/python -m mutants

reliability: $(READY)  ## write docs/reliability.md from what soak and mutants found
	$(BIN)/python tools/reliability.py

docs: $(READY)  ## write docs/cli.md from the help of the commands
	$(BIN)/python tests/house/cli_page.py > docs/cli.md.new && mv docs/cli.md.new docs/cli.md

wheel: $(READY)  ## build the wheel and the sdist into dist/
	$(BIN)/python -m build --outdir dist

clean:  ## remove what the other targets made, runs and stores excepted
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .import_linter_cache .hypothesis
