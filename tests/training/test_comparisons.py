"""The studies of ``benchmarks/comparisons.toml`` are trainings that exist, and one runs to its page."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

from tradgames_env.agents import load_agent
from training.config import load_config

ROOT = pathlib.Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("comparisons", ROOT / "benchmarks" / "comparisons.py")
assert SPEC is not None
assert SPEC.loader is not None
comparisons = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(comparisons)
STUDIES = tomllib.loads((ROOT / "benchmarks" / "comparisons.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", STUDIES)
def test_contenders_are_configurations(name: str) -> None:
    study = STUDIES[name]
    for contender in study["contenders"].values():
        if contender["config"] != "sb3":
            changes = {"game.name": study["game"], "game.variant": study["variant"], **contender.get("set", {})}
            load_config(ROOT / "configs" / f"{contender['config']}.toml", changes)
    for opponent in study["opponents"]:
        load_agent(opponent)


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_known_is_of_contenders(name: str) -> None:
    for pair in STUDIES[name].get("known", []):
        assert len(pair) == 2
        assert set(pair) <= set(STUDIES[name]["contenders"])


def test_contradictions_are_told() -> None:
    study = comparisons.Study(
        question="Which?", game="puluc", variant="mini", minutes=1.0, opponents=["random"],
        contenders={name: comparisons.Contender(config="smoke") for name in ("a", "b")}, known=[("a", "b")],
    )  # fmt: skip

    def row(name: str, low: float, high: float) -> dict[str, object]:
        return {"name": name, "low": low, "high": high}

    assert comparisons.contradictions(study, [row("a", 200, 300), row("b", 0, 100)]) == []
    (line,) = comparisons.contradictions(study, [row("a", 90, 300), row("b", 0, 100)])
    assert line == "a (from +90) is not clearly above b (up to +100)"
    seeds = [row("a, seed 0", 200, 300), row("a, seed 1", 50, 300), row("b, seed 0", 0, 20), row("b, seed 1", 0, 60)]
    assert len(comparisons.contradictions(study, seeds)) == 1


def test_a_study_is_trained_played_and_noted(tmp_path: pathlib.Path) -> None:
    for part in ("benchmarks", "configs"):
        (tmp_path / part).mkdir()
    (tmp_path / "docs" / "images").mkdir(parents=True)
    for name in ("comparisons.py", "sb3_baseline.py"):
        (tmp_path / "benchmarks" / name).write_text((ROOT / "benchmarks" / name).read_text(encoding="utf-8"))
    (tmp_path / "configs" / "smoke.toml").write_text((ROOT / "configs" / "smoke.toml").read_text(encoding="utf-8"))
    (tmp_path / "benchmarks" / "comparisons.toml").write_text(
        """
[tiny]
question = "Which?"
game = "puluc"
variant = "mini"
minutes = 0.02
opponents = ["random"]

[tiny.contenders]
"ours" = { config = "smoke", set = { "network.width" = 16 } }
"theirs" = { config = "sb3" }
"""
    )
    command = [sys.executable, "benchmarks/comparisons.py", "tiny", "--games", "4", "--folder", str(tmp_path / "runs")]
    settings = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "cwd": tmp_path}
    made = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, **settings)
    assert made.returncode == 0, made.stdout + made.stderr
    found = json.loads((tmp_path / "benchmarks" / "results" / "comparisons.json").read_text(encoding="utf-8"))["tiny"]
    assert sorted(row["name"] for row in found["ladder"]) == ["ours", "random", "theirs"]
    assert (tmp_path / "docs" / "images" / "comparison_tiny.svg").stat().st_size > 1_000
    assert (tmp_path / "runs" / "tiny" / "index.html").exists()
