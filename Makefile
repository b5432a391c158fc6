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
	rm -rf runs/demo
	$(BIN)/tradgames train --config configs/petteia.toml --run-dir runs/demo/petteia
	$(BIN)/tradgames evaluate runs/demo/petteia/checkpoints/final --against random greedy --games 400 --report runs/demo/petteia/report
	$(BIN)/tradgames train --config configs/puluc.toml --run-dir runs/demo/puluc
	$(BIN)/tradgames evaluate runs/demo/puluc/checkpoints/final --against random greedy --games 400 --report runs/demo/puluc/report

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
