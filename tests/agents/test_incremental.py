"""The agent of the incremental search: from a checkpoint, repeatable, tactically sound, of one game."""

import dataclasses
import hashlib
import json
import pathlib

import numpy as np
import pytest
import safetensors.numpy

import tradgames_env as tg
from tradgames_env.agents.checkpoint import CheckpointError, CheckpointRecord, GameRecord, NetworkRecord, PlayRecord
from tradgames_env.agents.incremental import IncrementalAgent
from tradgames_env.encoding import ENCODER_VERSION
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.search.incremental import IncrementalWeights

WIN_IN_THREE = "x1x1/o2x/o3/3x x 11 -"


def write_checkpoint(folder: pathlib.Path, variant: str = "mini") -> pathlib.Path:
    ruleset = load_ruleset("petteia", variant)
    network = NetworkRecord.for_games([ruleset], 32, 0, trunk="incremental")
    rng = np.random.default_rng(1)
    tensors = {name: rng.normal(0, 0.1, shape).astype(np.float32) for name, shape in network.tensor_shapes().items()}
    weights = safetensors.numpy.save(tensors)
    record = CheckpointRecord(
        games=(GameRecord.of(ruleset),),
        encoder_version=ENCODER_VERSION,
        network=network,
        play=PlayRecord(simulations=700),
        config={},
        seed=0,
        packages={},
        steps=0,
        strength=None,
        sha256=hashlib.sha256(weights).hexdigest(),
    )
    folder.mkdir()
    (folder / "checkpoint.json").write_text(record.to_json())
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def agent(variant: str = "mini", **settings: float) -> IncrementalAgent:
    ruleset = load_ruleset("petteia", variant)
    zero = IncrementalWeights.zero(len(ruleset.layout.cells))
    return IncrementalAgent(ruleset, zero, margin_weight=1.0, **settings)  # type: ignore[arg-type]


def test_a_checkpoint_plays_with_its_budget_or_another(tmp_path: pathlib.Path) -> None:
    folder = write_checkpoint(tmp_path / "c")
    recommended, other = tg.load_agent(str(folder)), tg.load_agent(f"{folder}:50")
    assert isinstance(recommended, IncrementalAgent)
    assert isinstance(other, IncrementalAgent)
    assert (recommended.positions, other.positions) == (700, 50)
    position = tg.Position("petteia", "mini")
    while not position.is_over:
        position.push(recommended.act(position))


def test_a_record_of_other_sizes_is_refused(tmp_path: pathlib.Path) -> None:
    folder = write_checkpoint(tmp_path / "c")
    record = json.loads((folder / "checkpoint.json").read_text())
    record["network"]["inputs"] = 64
    (folder / "checkpoint.json").write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match="64 inputs"):
        tg.load_agent(folder)
    with pytest.raises(ValueError, match="number of games"):
        dataclasses.replace(NetworkRecord(32, (96,), 32, 0, trunk="incremental"), actions=(96, 96))


def test_a_win_in_sight_is_played() -> None:
    position = tg.Position.from_text("petteia", WIN_IN_THREE, "mini")
    player = agent(positions=20_000)
    assert player.value(position) == 1.0
    for _ in range(3):
        position.push(player.act(position))
    assert position.is_over


def test_moves_repeat_with_the_seed_and_alone_or_together() -> None:
    player, position = agent("fr6", positions=2_000), tg.Position("petteia", "fr6")
    player.seed(3)
    moves = player.act_many([position] * 8)
    player.seed(3)
    assert moves == [player.act(position) for _ in range(8)]
    assert len(set(moves)) > 1
    assert player.act_many([]) == []


def test_a_time_for_a_move_is_kept_about() -> None:
    player, position = agent("box", seconds=0.02), tg.Position("petteia", "box")
    for _ in range(10):
        player.act(position)
    assert player._search is not None
    assert 1e4 < player._speed < 1e8


def test_what_cannot_be_played_is_refused() -> None:
    with pytest.raises(ValueError, match="plays petteia/mini, not petteia/box"):
        agent().act(tg.Position("petteia", "box"))
    with pytest.raises(ValueError, match="seconds"):
        agent(seconds=0.0)
    with pytest.raises(ValueError, match="positions"):
        agent(positions=0)
