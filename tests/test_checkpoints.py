"""The policies that ship load, belong to this version, and play."""

import json
import pathlib

import pytest

import tradgames_env as tg
from training.match import play_match

FOLDER = pathlib.Path(tg.__file__).parent.parent / "checkpoints"
EFFORT = {"petteia": ":2000", "petteia-simple": ":2000"}  # a tenth of a second a move is too much for a test
SHIPPED = sorted(path.parent for path in FOLDER.glob("*/checkpoint.json"))


def test_these_policies_ship() -> None:
    single = ["petteia", "petteia-fr6", "petteia-simple", "puluc", "yote", "yut_nori", "yut_nori-traditional"]
    assert [path.name for path in SHIPPED] == ["all", *single]
    assert all(path.stat().st_size <= 8 * 2**20 for folder in SHIPPED for path in folder.iterdir())


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_shipped_policies_beat_random(folder: pathlib.Path) -> None:
    agent = tg.load_agent(f"{folder}{EFFORT.get(folder.name, '')}")
    for ruleset in agent.rulesets:
        assert play_match(agent, tg.load_agent("random"), ruleset, 40, 1, 4).score > 0.75


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_shipped_policies_say_how_strong_they_are(folder: pathlib.Path) -> None:
    strength = json.loads((folder / "checkpoint.json").read_text())["strength"]
    assert "tradgames evaluate" in json.dumps(strength) or "training.strength" in json.dumps(strength)
    assert "## Strength" in (folder / "README.md").read_text()
