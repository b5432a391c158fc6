"""The studies of ``benchmarks/comparisons.toml`` are trainings that exist, and one runs to its page."""

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
