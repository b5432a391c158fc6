# make demo   sets everything up and runs the main job: train, load back, evaluate, report
# make test   sets everything up and runs every check of the continuous integration
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test lint types imports pytest docs bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

demo: setup
	$(BIN)/python -m training.demo

test: lint types imports pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

pytest: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

docs: setup
	$(BIN)/python docs/generate.py

bench: setup
	$(BIN)/tradgames bench

clean:
	rm -rf .venv build *.egg-info
