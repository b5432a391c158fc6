# make demo   sets everything up and runs the main job: train, load back, evaluate, report
# make test   sets everything up and runs every check of the continuous integration
# make test-cluster  runs the tests that need Ray, in a virtual environment of their own
# make test-integrations  runs the tests of all libraries in three virtual environments, since RLlib and AgileRL hold others back
# make test-matrix  runs the tests of the environments with the oldest and newest versions of what they stand on, and asks
#                   a resolver for each extra and each two of them
# make strength   lets every checkpoint in checkpoints/ play a ladder and notes the ratings beside it; goes on if stopped
# make solve-all  makes the tables of exact values of docs/solving.md in some minutes, for the agent called perfect
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test lint types imports site pytest test-cluster test-integrations test-matrix docs bench strength solve-all clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

demo: setup
	rm -rf runs/demo
	$(BIN)/tradgames train --config configs/alphabeta_petteia_fr6.toml --minutes 3 --run-dir runs/demo/petteia
	$(BIN)/tradgames evaluate runs/demo/petteia/checkpoints/final:10000 --against random greedy alphabeta:2 --games 200 --report runs/demo/petteia/report
	$(BIN)/tradgames train --config configs/puluc.toml --run-dir runs/demo/puluc
	$(BIN)/tradgames evaluate runs/demo/puluc/checkpoints/final --against random greedy --games 400 --report runs/demo/puluc/report

test: lint types imports site pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

pytest: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-cluster:
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev,ray]"
	.venv-ray/bin/python -m pytest tests/cluster

RECORD := --record-compatibility build/compatibility.json
# without compiling what is never imported, which would take as much space as a library
QUIET_PIP := install --quiet --disable-pip-version-check --no-compile
LIBRARIES := .venv-integrations .venv-rllib .venv-agilerl

test-integrations: $(LIBRARIES:=/.ready)
	rm -f build/compatibility.json
	.venv-integrations/bin/python -m pytest -n 2 --dist worksteal $(addprefix tests/envs/test_,aec.py wrapped.py single_agent.py vector.py) tests/integrations $(RECORD)
	.venv-rllib/bin/python -m pytest tests/integrations/test_rllib.py tests/integrations/test_speed.py $(RECORD)
	.venv-agilerl/bin/python -m pytest $(addprefix tests/integrations/test_,agilerl.py minari.py speed.py) $(RECORD)

# what is large and of one version everywhere is installed once: the other environments find it by a file of paths,
# after what they have themselves
.venv-shared/.ready: constraints-rllib.txt
	$(PYTHON) -m venv .venv-shared
	.venv-shared/bin/pip $(QUIET_PIP) --constraint $< numba pyarrow scipy torch
	touch $@

.venv-integrations/.ready: EXTRAS := train,integrations,tianshou
.venv-integrations/.ready: constraints.txt
.venv-rllib/.ready: EXTRAS := rllib
.venv-rllib/.ready: constraints-rllib.txt
.venv-agilerl/.ready: EXTRAS := agilerl
.venv-agilerl/.ready: constraints-agilerl.txt

$(LIBRARIES:=/.ready): %/.ready: pyproject.toml .venv-shared/.ready
	$(PYTHON) -m venv $*
	echo $(CURDIR)/.venv-shared/lib/python*/site-packages > $$(echo $*/lib/python*/site-packages)/shared.pth
	$*/bin/pip $(QUIET_PIP) --constraint $(filter constraints%,$^) --editable ".[$(EXTRAS)]" pytest pytest-xdist
	touch $@

test-matrix:
	$(PYTHON) tests/matrix.py

site: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# writes the generated pages and serves the site of the documentation on this machine
docs: setup
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

bench: setup
	$(BIN)/tradgames bench

strength: setup
	$(BIN)/python -m training.strength checkpoints

solve-all: setup
	for pieces in 2 3 4 5; do $(BIN)/tradgames solve puluc --option pieces=$$pieces || exit 1; done
	for pieces in 1 2 3; do $(BIN)/tradgames solve yut_nori --option pieces=$$pieces || exit 1; done
	$(BIN)/tradgames solve puluc --variant mini
	$(BIN)/tradgames solve puluc --variant family
	$(BIN)/tradgames solve petteia --variant mini
	$(BIN)/tradgames solve petteia --part endings-2v2
	$(BIN)/tradgames solve petteia --part endings-2v3
	$(BIN)/tradgames solve yote --variant mini
	$(BIN)/tradgames solve yote --variant mini --option cols=4
	$(BIN)/tradgames solve yote --part endings-2v2

clean:
	rm -rf .venv .venv-agilerl .venv-integrations .venv-matrix .venv-ray .venv-rllib .venv-shared build *.egg-info
