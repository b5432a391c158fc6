"""Runs: planned before they start, told of, stopped and taken up again."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving import solver
from tradgames_env.solving.expectation import Keep
from tradgames_env.solving.indexing import TableError
from tradgames_env.solving.solver import Progress
from tradgames_env.solving.table import Table

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
    names = [f"layer-{number}.npy" for number in range(4)] + ["layer-4-unfinished.npy", "lock", "run.json"]
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


@pytest.fixture
def stopped(tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder of a run that was stopped in its last layer."""

    def stop(progress: Progress) -> None:
        if progress.layer == "3 and 3 counters" and progress.residual < 0.1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.solve(FAMILY, folder=tmp_path / "family", report=stop)
    return tmp_path / "family"


def first_layer(folder: pathlib.Path) -> str:
    """Where a run goes on; it must end well."""
    heard: list[Progress] = []
    table = solver.solve(FAMILY, folder=folder, report=heard.append)
    assert Table.open(folder, FAMILY, verify=True).header.residual <= solver.TOLERANCE
    assert table.header.count == heard[-1].count
    return heard[0].layer


BEGIN, LAST = "1 and 1 counters", "3 and 3 counters"


@pytest.mark.parametrize(
    "changes",
    [
        {"seconds": "1"},
        {"seconds": float("nan")},
        {"seconds": 10**400},
        {"seconds": True},
        {"layers": 5},
        {"layers": [[0.0, 1]] * 99},
        {"layers": [[float("nan"), 1]]},
        {"layers": [[None, 1]]},
        {"layers": [[0.0]]},
        {"layers": [[0.0, "1"]]},
        {"layers": {"0": [0.0, 1]}},
        {"unfinished": None},
        {"unfinished": [[]]},
        {"identity": []},
        {"more": 1},
    ],
    ids=str,
)
def test_records_that_are_not_sound_are_not_believed(stopped: pathlib.Path, changes: dict[str, Any]) -> None:
    path = stopped / "partial" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    assert first_layer(stopped) == BEGIN


@pytest.mark.parametrize("text", [b"", b"{}", b"[" * 100_000, b"\xff", b"9" * 10_000, b"null"], ids=len)
def test_records_that_are_none_are_not_believed(stopped: pathlib.Path, text: bytes) -> None:
    (stopped / "partial" / "run.json").write_bytes(text)
    assert first_layer(stopped) == BEGIN


def test_what_stands_in_place_of_the_partial_folder_makes_way(tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "layer-0.npy").write_text("mine")
    for name in ("file", "link", "folders"):
        (tmp_path / name).mkdir()
    (tmp_path / "file" / "partial").write_text("x")
    (tmp_path / "link" / "partial").symlink_to(elsewhere)
    for name in ("run.json", "layer-0.npy", "layer-0-unfinished.npy", ".layer-1.npy.99"):
        (tmp_path / "folders" / "partial" / name).mkdir(parents=True)
    for name in ("file", "link", "folders"):
        assert first_layer(tmp_path / name) == BEGIN
    assert [path.read_text() for path in elsewhere.iterdir()] == ["mine"]


@pytest.mark.parametrize(("name", "layer"), [("layer-2.npy", "2 and 2 counters"), ("layer-5-unfinished.npy", LAST)])
def test_changed_layers_are_not_believed(stopped: pathlib.Path, name: str, layer: str) -> None:
    changed = stopped / "partial" / name
    data = bytearray(changed.read_bytes())
    data[-4] ^= 1  # the last digit of a value
    changed.write_bytes(data)
    heard: list[Progress] = []
    solver.solve(FAMILY, folder=stopped, report=heard.append)
    assert (heard[0].layer, heard[-1].done) == (layer, 11_309)
    steps = [progress for progress in heard if progress.layer == LAST and progress.residual < 2]
    assert steps[0].residual > 0.1  # not those of the layer in work either


def test_a_crash_between_two_files_loses_nothing(stopped: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(path: pathlib.Path, values: object) -> None:
        raise OSError("no power")

    def stop(progress: Progress) -> None:
        if progress.residual < 1e-3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(solver, "write_array", crash)
        with pytest.raises(OSError, match="no power"):
            solver.solve(FAMILY, folder=stopped, report=stop)
    heard: list[Progress] = []
    solver.solve(FAMILY, folder=stopped, report=heard.append)
    assert next(progress.residual for progress in heard if progress.residual < 2) < 0.1


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_two_runs_do_not_share_a_folder(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "family"
    errors: list[str] = []

    def meanwhile(progress: Progress) -> None:
        if not errors:
            with pytest.raises(TableError) as caught:
                solver.solve(FAMILY, folder=folder)
            errors.append(str(caught.value))

    solver.solve(FAMILY, folder=folder, report=meanwhile)
    assert errors == [f"another process is solving puluc/family in {folder}; wait for it to end"]
    solver.solve(FAMILY, folder=folder)
    script = f"import fcntl; file = open({str(folder / 'partial' / 'lock')!r}, 'ab'); fcntl.flock(file, 2)"
    (folder / "partial").mkdir()
    subprocess.run([sys.executable, "-c", script], check=True)
    solver.solve(FAMILY, folder=folder)


def test_folders_with_anything_else_are_left_alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for folder, why in (
        (tmp_path / "work", "it holds 'notes.txt', which is no part of a table"),
        (tmp_path / "file", "it is not a folder"),
        ("", "it is the working folder"),
        (".", "it is the working folder"),
        ("..", "it holds 'empty'"),
        ("../work", "it holds 'notes.txt'"),
    ):
        with pytest.raises(TableError, match=why) as caught:
            solver.solve(FAMILY, folder=folder)
        assert os.path.abspath(folder) in str(caught.value)
    assert (tmp_path / "work" / "notes.txt").read_text() == (tmp_path / "file").read_text() == "mine"
    solver.solve(FAMILY, folder="table")
    solver.solve(FAMILY, folder="table")


def test_the_coarsest_tolerance(tmp_path: pathlib.Path) -> None:
    heard: list[Progress] = []
    solver.solve(FAMILY, folder=tmp_path / "family", tolerance=1.0, report=heard.append)
    assert heard[-1].done == 11_309
