# Set-up on a fresh machine: `make demo` installs into .venv and resolves a paragraph, `make test`
# runs the tests. PYTHON chooses the interpreter, as in `make PYTHON=python3.12 test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow coverage mutants compat lint docs clean

demo: $(VENV)/installed
	$(BIN)/python scripts/demo.py

test: $(VENV)/installed
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

test-slow: $(VENV)/installed
	$(BIN)/python -m pytest -m slow

# Branches too; fails below what pyproject.toml asks for.
coverage: $(VENV)/installed
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest --numprocesses 2 --dist loadfile
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --show-missing

# What survives is explained in docs/reliability.md.
mutants: $(VENV)/installed
	$(BIN)/python scripts/mutants.py

# The oldest and the newest packages on every Python at hand, into docs/compatibility.md.
compat:
	$(PYTHON) scripts/compat.py

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	$(BIN)/python -m mkdocs build

$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
