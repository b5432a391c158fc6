import json
import pathlib
import shutil

import pytest
import torch

from tradgames_env.agents.checkpoint import NetworkRecord, read_record
from tradgames_env.agents.network import PolicyValueNetwork
from training.checkpoint import write_checkpoint
from training.config import parse_config
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
    for name, count in (("final", steps), ("step_1000", 1000), ("step_2000", 2000), ("step_400", 400)):
        shutil.copytree(SHIPPED, tmp_path / "run" / "checkpoints" / name)
        path = tmp_path / "run" / "checkpoints" / name / "checkpoint.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"steps": count}))
    lines = [{"steps": 500, "minutes": 0.5}, {"steps": 1500, "minutes": 1.5}, {"steps": 2500, "minutes": 2.5}]
    lines.append({"steps": steps, "minutes": 4.0})
    (tmp_path / "run" / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return tmp_path / "run"


def test_checkpoints_play_their_ladder_and_the_result_is_noted(
    capsys: Captured, tmp_path: pathlib.Path, folder: pathlib.Path, run_dir: pathlib.Path
) -> None:
    settings = f'ladder = "quick"\ngames = 2\nsimulations = [1]\nrun = "{run_dir.as_posix()}"\n'
    (folder / "puluc.1.toml").write_text(settings)
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


def test_several_runs_are_lines_of_one_plot(
    capsys: Captured, tmp_path: pathlib.Path, folder: pathlib.Path, run_dir: pathlib.Path
) -> None:
    shutil.copytree(run_dir, tmp_path / "other")
    runs = json.dumps([run_dir.as_posix(), (tmp_path / "other").as_posix()])
    (folder / "puluc.1.toml").write_text(f'ladder = "quick"\ngames = 2\nrun = {runs}\n')
    assert Strength(folder, files=tmp_path / "files", workers=1).run("make strength") == FINE
    plot = (folder / "puluc.1.training.svg").read_text()
    assert plot.count("run final") == plot.count("other final") > 0


def test_a_network_of_several_games_plays_the_ladder_of_each(tmp_path: pathlib.Path) -> None:
    games = [{"name": "puluc"}, {"name": "yut_nori", "variant": "duel"}]
    data = {"method": "alphazero", "games": games, "network": {"width": 8, "blocks": 0}, "play": {"plies": 1}}
    config = parse_config({**data, "budget": {"steps": 1}}, "test")
    network = PolicyValueNetwork(NetworkRecord.for_games(config.rulesets(), 8, 0, value="wdl"))
    network.initialise(torch.Generator().manual_seed(0))
    (tmp_path / "made").mkdir()
    write_checkpoint(tmp_path / "made" / "both", network, config, 1)
    (tmp_path / "made" / "both.toml").write_text(f'ladder = "quick"\ngames = 2\nagainst = ["{SHIPPED.as_posix()}"]\n')
    assert Strength(tmp_path / "made", files=tmp_path / "files", workers=1).run("make strength") == FINE
    strength = read_record(tmp_path / "made" / "both").strength
    assert strength is not None
    opponents = {game: set(summary["opponents"]) for game, summary in strength["games"].items()}
    assert opponents["puluc"] - opponents["yut_nori"] == {SHIPPED.as_posix(), "perfect"} - opponents["yut_nori"]
    assert {"random", "greedy", "mcts:100"} <= opponents["yut_nori"]
    card = (tmp_path / "made" / "both" / "README.md").read_text()
    assert card.index("### puluc") < card.index("| random | 2 |") < card.index("### yut_nori")
    for game in opponents:
        assert "greedy" in (tmp_path / "made" / f"both.{game}.ladder.svg").read_text()
        assert not (tmp_path / "made" / f"both.{game}.simulations.svg").exists()  # one point is no curve


def test_who_plays_none_of_the_games_is_refused(capsys: Captured, folder: pathlib.Path) -> None:
    (folder / "puluc.1.toml").write_text('against = ["checkpoints/yote"]\n')
    assert Strength(folder).run("make strength") == FAILED
    assert "checkpoints/yote cannot play puluc/box" in capsys.readouterr().err


def test_minutes_behind_the_checkpoints_of_a_run(run_dir: pathlib.Path) -> None:
    assert [(path.name, minutes) for path, minutes in run_checkpoints(run_dir).items()] == [
        ("step_400", 0.5), ("step_1000", 1.5), ("final", 4.0),
    ]  # fmt: skip


def test_what_is_played_can_be_left_out(tmp_path: pathlib.Path) -> None:
    config = load_strength_config(tmp_path / "none.toml")
    assert (config.ladder, config.games, config.simulations, config.run) == ("standard", 200, (), ())
    (tmp_path / "some.toml").write_text("simulations = [16, 64]\n")
    assert load_strength_config(tmp_path / "some.toml").simulations == (16, 64)
    for text, runs in (('run = "a"', ("a",)), ('run = ["a", "b"]', ("a", "b"))):
        (tmp_path / "some.toml").write_text(text)
        assert load_strength_config(tmp_path / "some.toml").run == runs


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
