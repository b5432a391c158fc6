import json
import pathlib
import shutil

import pytest

from tradgames_env.agents.checkpoint import read_record
from training.console import FAILED, FINE, MISTAKE
from training.strength import Strength, load_strength_config, run_checkpoints

Captured = pytest.CaptureFixture[str]
SHIPPED = pathlib.Path("checkpoints/puluc")


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copytree(SHIPPED, tmp_path / "made" / "puluc.1")
    return tmp_path / "made"


@pytest.fixture
def run_dir(tmp_path: pathlib.Path) -> pathlib.Path:
    steps = read_record(SHIPPED).steps
    for name, count in (("final", steps), ("step_1000", 1000)):
        shutil.copytree(SHIPPED, tmp_path / "run" / "checkpoints" / name)
        path = tmp_path / "run" / "checkpoints" / name / "checkpoint.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"steps": count}))
    lines = [{"steps": 500, "minutes": 0.5}, {"steps": 1500, "minutes": 1.5}, {"steps": steps, "minutes": 20.0}]
    (tmp_path / "run" / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return tmp_path / "run"


def test_checkpoints_play_their_ladder_and_the_result_is_noted(
    capsys: Captured, tmp_path: pathlib.Path, folder: pathlib.Path, run_dir: pathlib.Path
) -> None:
    (folder / "puluc.1.toml").write_text(f'ladder = "quick"\ngames = 2\nrun = "{run_dir.as_posix()}"\n')
    before = read_record(folder / "puluc.1")
    strength = Strength(folder, files=tmp_path / "files", workers=1)
    assert strength.run("make strength") == FINE
    assert "Ladder, random = 0" in capsys.readouterr().out
    data = json.loads((folder / "puluc.1.strength.json").read_text())
    name = str(folder / "puluc.1")
    assert {row["name"] for row in data["ladder"]} >= {name, "random", "greedy", "mcts:100"}
    record = read_record(folder / "puluc.1")
    assert record.sha256 == before.sha256
    assert record.strength is not None
    assert set(record.strength["opponents"]) >= {"random", "greedy", "mcts:100"}
    assert record.strength["rating"]["anchor"] == "random"
    assert record.strength["command"] == "make strength"
    assert "| random | 2 |" in (folder / "puluc.1" / "README.md").read_text()
    for kind, word in (("ladder", "greedy"), ("time", "seconds"), ("simulations", "mcts:100"), ("training", "final")):
        assert word in (folder / f"puluc.1.{kind}.svg").read_text()
    pairs = (tmp_path / "files" / "puluc.1" / "pairs.jsonl").read_bytes()
    assert strength.run("make strength") == FINE
    assert (tmp_path / "files" / "puluc.1" / "pairs.jsonl").read_bytes() == pairs


def test_minutes_behind_the_checkpoints_of_a_run(run_dir: pathlib.Path) -> None:
    assert [(path.name, minutes) for path, minutes in run_checkpoints(run_dir).items()] == [
        ("step_1000", 1.5), ("final", 20.0),
    ]  # fmt: skip


def test_what_is_played_can_be_left_out(tmp_path: pathlib.Path) -> None:
    config = load_strength_config(tmp_path / "none.toml")
    assert (config.ladder, config.games, config.simulations, config.run) == ("standard", 200, (), None)
    (tmp_path / "some.toml").write_text("simulations = [16, 64]\n")
    assert load_strength_config(tmp_path / "some.toml").simulations == (16, 64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gams = 2", "gams: Extra inputs"),
        ('ladder = "high"', "known ladders are quick, standard, deep"),
        ('games = "many"', "games: Input should be a valid integer"),
        ("games = ", "cannot be read as TOML"),
    ],
)
def test_wrong_files_are_told_in_one_line(capsys: Captured, folder: pathlib.Path, text: str, message: str) -> None:
    (folder / "puluc.1.toml").write_text(text)
    assert Strength(folder).run("make strength") == FAILED
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_there_must_be_a_checkpoint(capsys: Captured, folder: pathlib.Path) -> None:
    assert Strength(folder, only=("yote",)).run("make strength") == MISTAKE
    assert "there are puluc.1" in capsys.readouterr().err
