"""Runs: planned before they start, told of, stopped and taken up again."""

import pathlib
import shutil

import numpy as np
import pytest

from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving import solver
from tradgames_env.solving.expectation import Keep
from tradgames_env.solving.indexing import TableError
from tradgames_env.solving.solver import Progress

FAMILY = load_ruleset("puluc", "family")


def test_plans_say_what_it_takes() -> None:
    plan = solver.plan(FAMILY)
    assert (plan.positions, plan.layers, plan.table_bytes, plan.keep) == (11_309, 6, 45_236, Keep.SUCCESSORS)
    box = load_ruleset("puluc")
    small, large = solver.plan(box, memory=600 * 2**20), solver.plan(box, memory=4 * 2**30)
    assert (small.keep, large.keep) == (Keep.MOVES, Keep.SUCCESSORS)
    assert small.peak_bytes <= 600 * 2**20 < large.peak_bytes < 2 * 2**30
    assert small.seconds > large.seconds


@pytest.mark.parametrize("options", [{}, {"pieces": 7, "length": 31}])
def test_what_does_not_fit_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(TableError, match=r"needs .* GiB of memory for .* positions, and 0\.2 GiB may be used"):
        solver.plan(load_ruleset("puluc", "box", **options), memory=200 * 2**20)


def test_games_without_an_index_are_refused(sprint: str) -> None:
    with pytest.raises(TableError, match="sprint cannot be solved"):
        solver.plan(load_ruleset(sprint))


def test_progress_rises_to_the_end(tmp_path: pathlib.Path) -> None:
    heard: list[Progress] = []
    table = solver.solve(FAMILY, folder=tmp_path / "family", report=heard.append, provenance={"command": "test"})
    done = [progress.done for progress in heard]
    assert done == sorted(done)
    assert done[-1] == heard[-1].count == 11_309
    assert [progress.layer for progress in heard if progress.residual <= solver.TOLERANCE] == [
        layer.name for layer in table.index.layers
    ]
    assert table.header.provenance["command"] == "test"
    assert table.header.provenance["seconds"] > 0
    assert table.header.provenance["peak_bytes"] > 10**7


@pytest.mark.parametrize("residual", [2.0, 1e-3])
def test_a_stopped_run_goes_on_where_it_was(tmp_path: pathlib.Path, residual: float) -> None:
    folder = tmp_path / "family"
    whole = solver.solve(FAMILY, folder=tmp_path / "whole")

    def stop(progress: Progress) -> None:
        if progress.layer == "3 and 2 counters" and progress.residual < residual:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.solve(FAMILY, folder=folder, report=stop)
    assert sorted(path.name for path in folder.iterdir()) == ["partial"]
    names = [f"layer-{number}.npy" for number in range(4)] + ["layer-4-unfinished.npy", "run.json"]
    assert sorted(path.name for path in (folder / "partial").iterdir()) == names
    heard: list[Progress] = []
    table = solver.solve(FAMILY, folder=folder, report=heard.append)
    assert {progress.layer for progress in heard} == {"3 and 2 counters", "3 and 3 counters"}
    assert heard[1].residual == np.inf or heard[1].residual < 2 * residual
    assert np.abs(table.values - whole.values).max() < 1e-5
    assert sorted(path.name for path in folder.iterdir()) == ["table.json", "values.npy"]


def test_what_another_run_left_is_not_used(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "family"

    def stop(progress: Progress) -> None:
        if progress.layer == "3 and 3 counters":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.solve(FAMILY, folder=folder, report=stop)
    broken = folder / "partial" / "layer-2.npy"
    broken.write_bytes(broken.read_bytes()[:-4])
    saved = tmp_path / "saved"
    shutil.copytree(folder, saved)
    heard: list[Progress] = []
    solver.solve(FAMILY, folder=folder, report=heard.append)
    assert heard[0].layer == "2 and 2 counters"
    heard.clear()
    solver.solve(load_ruleset("puluc", "family", stick_p=0.4), folder=saved, report=heard.append)
    assert heard[0].layer == "1 and 1 counters"
