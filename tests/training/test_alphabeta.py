"""Training of alpha-beta's evaluation: repeatable, resumable, and learned weights mean the same in the search."""

import hashlib
import pathlib
import shutil

import numpy as np
import pytest
import torch
from rich.console import Console

import tradgames_env as tg
from tradgames_env.agents.checkpoint import NetworkRecord, read_checkpoint
from tradgames_env.agents.incremental import IncrementalAgent
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.search import incremental
from training.alphabeta import AlphaBetaRun, EvaluationNetwork, Sight
from training.config import AlphaBetaTrainConfig, ConfigError, load_config, parse_config
from training.deepening import DeepeningTask, play_deepening
from training.train import train

QUIET = Console(quiet=True)
ITERATION = 2 * 8 * 60


def small(iterations: int, game: str = "petteia", variant: str = "mini") -> AlphaBetaTrainConfig:
    config = parse_config(
        {
            "method": "alphabeta",
            "game": {"name": game, "variant": variant},
            "budget": {"steps": iterations * ITERATION},
            "deepening": {"positions": 60, "batch_size": 64},
            "selfplay": {
                "shards": 2, "games": 8, "decisions": 60, "engine": "serial", "random_share": 0.1,
                "opening_share": 0.5, "opening_plies": 20, "sparse_share": 0.2,
            },
            "replay": {"window": 500},
            "shaping": {"weight": 0.4},
            "threads": 1,
            "seed": 3,
        },
        "test",
    )  # fmt: skip
    assert isinstance(config, AlphaBetaTrainConfig)
    return config


def digest(run: pathlib.Path) -> str:
    paths = [run / "checkpoints" / "final" / "model.safetensors", *sorted((run / "replay").iterdir())]
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in paths)).hexdigest()


def task(config: AlphaBetaTrainConfig, **changes: object) -> DeepeningTask:
    values: dict[str, object] = {
        "game": config.game.name,
        "variant": config.game.variant,
        "options": {},
        "weights": None,
        "search": config.deepening,
        "selfplay": config.selfplay,
        "shaping": 0.4,
        "sparse_share": 0.2,
        "seed": (1, 2, 3),
        "state": None,
    }
    return DeepeningTask(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["petteia", "yote"])
def test_a_run_repeats_and_its_evaluation_plays(name: str, tmp_path: pathlib.Path) -> None:
    final = train(small(3, name), tmp_path / "a", console=QUIET)
    train(small(3, name), tmp_path / "b", console=QUIET)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    agent = tg.load_agent(f"{final}:100")
    assert isinstance(agent, IncrementalAgent)
    position = tg.Position(name, "mini")
    assert agent.act(position) in position.legal_moves()
    assert "alpha-beta" in (final / "README.md").read_text()


def test_a_run_taken_up_goes_on_as_the_first_did(tmp_path: pathlib.Path) -> None:
    run = AlphaBetaRun(small(3), tmp_path / "a", print)
    run.iterate()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    taken_up = AlphaBetaRun(small(3), tmp_path / "b", print)
    taken_up.restore(print)
    for each in (run, taken_up):
        each.iterate()
    weights, others = run.network.state_dict(), taken_up.network.state_dict()
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    assert run.replay.checksums() == taken_up.replay.checksums()


def test_a_shard_is_a_function_of_its_task() -> None:
    config = small(1)
    first, again = play_deepening(task(config)), play_deepening(task(config))
    for name, array in first.state.items():
        np.testing.assert_array_equal(array, again.state[name])
    np.testing.assert_array_equal(first.samples["results"], again.samples["results"])
    following = play_deepening(task(config, state=first.state, seed=(1, 3, 3)))
    assert following.counts.games > 0
    assert first.samples["states"].dtype == np.int16
    assert np.abs(first.samples["results"]).max() <= 1.0


@pytest.mark.parametrize("name", ["petteia", "yote"])
@pytest.mark.parametrize("variant", ["mini", "box"])
def test_the_network_and_the_search_evaluate_alike(name: str, variant: str) -> None:
    ruleset = load_ruleset(name, variant)
    network = EvaluationNetwork(NetworkRecord.for_games([ruleset], 32, 0, trunk="incremental"))
    network.initialise(torch.Generator().manual_seed(1))
    with torch.no_grad():
        network.output.weight.mul_(10)
    config = small(1, name, variant)
    states = play_deepening(task(config)).state["noted/states"]
    own, other, buckets = Sight(ruleset).read(states)
    odds = network(torch.from_numpy(own).float(), torch.from_numpy(other).float(), torch.from_numpy(buckets))
    tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    model = incremental.model_of(ruleset, incremental.IncrementalWeights.of_tensors(tensors))
    frames = np.zeros((incremental.LEVELS, 1000 + 3 * ruleset.num_actions), np.int32)
    keys, plan = np.zeros(incremental.LEVELS, np.uint64), np.zeros(incremental.PLAN_SIZE, np.int64)
    cells = ruleset.rules.cells(ruleset.options)
    assert cells is not None
    for state, expected in zip(states, odds.tolist(), strict=True):
        row = state[None].copy()
        row[0, cells.clocks[0][0]] = 0  # the search makes less of a lead when the clock runs out
        incremental.start(model, row, frames, keys)
        score = incremental.standing(model, row, frames, plan, 0) / incremental.SCORE_ONE
        assert score == pytest.approx(expected, abs=0.02)


def test_mirrored_features_are_those_of_the_mirrored_position() -> None:
    ruleset = load_ruleset("petteia", "box")
    sight = Sight(ruleset)
    assert sight.mirrored is not None
    np.testing.assert_array_equal(sight.mirrored[sight.mirrored], np.arange(128))
    assert sight.mirrored[0] == 7


def test_hands_stay_what_they_are_in_the_mirror() -> None:
    mirrored = Sight(load_ruleset("yote", "box")).mirrored
    assert mirrored is not None
    np.testing.assert_array_equal(mirrored[mirrored], np.arange(2 * (30 + 8)))
    assert mirrored[0] == 5
    np.testing.assert_array_equal(mirrored[30:38], np.arange(30, 38))


def test_games_with_dice_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ConfigError, match="without dice"):
        AlphaBetaRun(small(1, "puluc"), tmp_path, print)


@pytest.mark.parametrize("name", ["petteia_fr6", "petteia_box", "yote_box"])
def test_configurations_load(name: str) -> None:
    assert isinstance(load_config(f"configs/alphabeta_{name}.toml"), AlphaBetaTrainConfig)


def test_a_checkpoint_names_its_kind(tmp_path: pathlib.Path) -> None:
    final = train(small(1), tmp_path, console=QUIET)
    assert read_checkpoint(final).record.network.trunk == "incremental"
