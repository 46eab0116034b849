# Two commands do everything on a fresh machine with Python >= 3.11: `make demo` and `make test`.
# `make check` is the fast lane while you work: lint, types, import contracts, unit tests.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
# Tests run in two processes, but those that start a Flower federation run alone: they have deadlines.
WORKERS ?= 2
PYTEST   = $(BIN)/pytest -n $(WORKERS) --dist loadfile

.PHONY: help demo flower-demo check test fuzz test-packaging test-newest-flower chaos mutants docs lint clean results

demo: $(VENV)/.ready-demo
	$(BIN)/fedcohort compare --out runs/demo --resume

help:
	@echo 'make demo            compare selectors on digits and write runs/demo/report.html'
	@echo 'make flower-demo     run a small Flower federation on this machine'
	@echo 'make check           lint, types, import contracts and quick tests'
	@echo 'make test            all tests but those of packaging'
	@echo 'make test-packaging  install the wheel with each extra and try it'
	@echo 'make fuzz            give strange input to everything that reads input'
	@echo 'make mutants         plant bugs and see which test catches each; WORDS=flower takes some'
	@echo 'make chaos           disturb real Flower deployments; hours'
	@echo 'make docs            build the site into site/'
	@echo 'make results         draw the pages of results/ again'
	@echo 'make clean           delete .venv, runs, build, dist and site'
	@echo
	@echo 'PYTHON=python3.12 takes another Python, VENV=folder another environment.'

# Draw every page of results/ again, after records were added.
results: $(VENV)/.ready-test
	$(BIN)/python scripts/draw_results.py

flower-demo: $(VENV)/.ready-flower
	$(BIN)/python examples/flower-quickstart/demo.py

check: $(VENV)/.ready-test lint
	$(PYTEST) -q -m 'not slow and not packaging'

test: $(VENV)/.ready-test lint
	scripts/install-test-data
	scripts/install-test-browser
	$(PYTEST) -m 'not packaging and not deployment'
	$(BIN)/pytest -m deployment tests/flower

fuzz: $(VENV)/.ready-test
	$(BIN)/python tests/fuzz/run_fuzz.py

test-packaging: $(VENV)/.ready-test
	$(BIN)/pytest -m packaging

# The fast Flower tests against the newest flwr that pip finds, whatever our bounds say. It may fail;
# then our use of Flower's private parts needs a look. No part of `make test`.
NEWEST = .venv-newest-flower
test-newest-flower:
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet -e '.[learning,tracking,dev]' safetensors
	$(NEWEST)/bin/python -m pip install --quiet --upgrade 'flwr[simulation]'
	@echo "Testing against flwr $$($(NEWEST)/bin/python -c 'from importlib.metadata import version; print(version("flwr"))')"
	$(NEWEST)/bin/pytest -q -m 'not slow and not packaging' tests/flower

# A hundred seeded disturbances of real Flower deployments. An episode takes minutes.
chaos: $(VENV)/.ready-test
	PYTHONPATH=tests $(BIN)/python -m chaos --disturbances 100 --seed 1 --out runs/chaos.json

# Plant one bug after the other and see which tests fail; `make mutants WORDS=flower` takes some.
mutants: $(VENV)/.ready-test
	$(BIN)/python tests/mutants/plant.py $(WORDS)

docs: $(VENV)/.ready-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: $(VENV)/.ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fedcohort needs Python >= 3.11, got " + sys.version.split()[0] + "; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-demo: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[learning,plots]'
	touch $@

$(VENV)/.ready-flower: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[learning,flower]'
	touch $@

$(VENV)/.ready-test: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[learning,plots,flower,ray,tracking,mlflow,wandb,prometheus,dev,docs]'
	touch $@

clean:
	rm -rf $(VENV) runs build dist site
