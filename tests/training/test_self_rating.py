"""The Elo of a run so far."""

import json
import pathlib

import pytest
from rich.console import Console

from tradgames_env.rules.ruleset import load_ruleset
from training.config import load_config
from training.metrics import read_metrics
from training.self_rating import SelfRating
from training.train import train

ROOT = pathlib.Path(__file__).parents[2]
QUIET = Console(quiet=True)


def trained(run_dir: pathlib.Path, steps: int, **changes: object) -> pathlib.Path:
    overrides = {"budget.steps": steps, "save_minutes": 1e-6, "rating_games": 4, "progress": "off", **changes}
    config = load_config(ROOT / "configs" / "smoke.toml", overrides)
    return train(config, run_dir, resume=(run_dir / "resume").exists(), console=QUIET)


def test_checkpoints_are_rated_in_a_chain_that_a_resume_goes_on_with(tmp_path: pathlib.Path) -> None:
    iteration = trained(tmp_path, 1) and read_metrics(tmp_path / "metrics.jsonl")[0]["steps"]
    trained(tmp_path, 4 * iteration)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert all(line["rating/error"] > 0 for line in lines if "rating/elo" in line)
    assert any("rating/elo" in line for line in lines)
    (path,) = tmp_path.glob("rating_*.json")
    rows = json.loads(path.read_bytes())
    assert rows[0][1] == "random"
    assert [first for first, *_ in rows].count(rows[-1][0]) <= 2
    assert all(len(points) == 2 and set(points) <= {0.0, 0.5, 1.0, 1.5, 2.0} for *_, points in rows)


def test_the_weights_are_those_of_a_run_that_is_not_rated(tmp_path: pathlib.Path) -> None:
    weights = {
        (trained(tmp_path / str(games), 4096, rating_games=games) / "model.safetensors").read_bytes()
        for games in (0, 4)
    }
    assert len(weights) == 1


def test_results_of_checkpoints_that_a_kill_took_are_forgotten(tmp_path: pathlib.Path) -> None:
    folder = trained(tmp_path, 4096)
    ruleset = load_ruleset("puluc", "mini")
    path = tmp_path / f"rating_{ruleset.game}_{ruleset.variant}.json"
    path.write_text(json.dumps([["step_9", "random", [2.0]]]))
    assert SelfRating(tmp_path, ruleset, 4, 0).rate(folder)["rating/elo"] is not None
    assert [row[:2] for row in json.loads(path.read_bytes())] == [[folder.name, "random"]]


@pytest.mark.parametrize("removed", [{"step_1"}, {"step_1", "step_2"}, {"step_2", "step_3"}])
def test_checkpoints_may_be_removed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, removed: set[str]) -> None:
    rows = [("step_1", "random"), ("step_2", "step_1"), ("step_3", "step_2"), ("step_3", "step_1")]
    rows += [("step_4", "step_3"), ("step_4", "step_2")]
    (tmp_path / "rating_puluc_mini.json").write_text(json.dumps([[*row, [1.5]] for row in rows]))
    for name in {"step_1", "step_2", "step_3", "step_4", "step_5"} - removed:
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
        (tmp_path / "checkpoints" / name / "checkpoint.json").touch()
    monkeypatch.setattr(SelfRating, "_play", lambda rating, folder, opponent: (1.5, 2.0))
    rated = SelfRating(tmp_path, load_ruleset("puluc", "mini"), 4, 0).rate(tmp_path / "checkpoints" / "step_5")
    assert rated["rating/elo"] > 0


def test_results_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    ruleset = load_ruleset("puluc", "mini")
    (tmp_path / "rating_puluc_mini.json").write_text("[[1]]")
    with pytest.raises(ValueError, match="delete it"):
        SelfRating(tmp_path, ruleset, 4, 0)
