"""A fifth game is one rules file: the toy game, registered from here, goes through every layer unchanged."""

import pathlib

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from pettingzoo.test import api_test, seed_test

import tradgames_env as tg
from tests import toy_game
from tradgames_env import rendering
from tradgames_env.encoding import Encoder
from training.config import parse_config
from training.evaluate import evaluate
from training.train import train


def test_rules_and_position(sprint: str) -> None:
    assert sprint in tg.games()
    assert set(tg.variants(sprint)) == {"box", "long"}
    position = tg.Position(sprint, seed=1)
    assert tg.Position.from_text(sprint, position.text(), chance="explicit").text() == position.text()
    while not position.is_over:
        position.push("run")
    assert position.reason == "home"
    assert tg.perft(sprint, 3) == (2 * 2) ** 3
    assert "o" in str(tg.Position(sprint))


def test_environments(sprint: str) -> None:
    api_test(tg.env(sprint, mask_in="info"), num_cycles=100)
    seed_test(lambda: tg.env(sprint), num_cycles=100)
    env = gymnasium.make("tradgames/Sprint-v0", opponent="greedy", variant="long", seat=0)
    env.reset(seed=2)
    done = False
    while not done:
        _, reward, terminated, truncated, _ = env.step(0)
        done = terminated or truncated
    assert reward in (1.0, -1.0)
    vector = gymnasium.make_vec("tradgames/Sprint-v0", num_envs=32, autoreset_mode=AutoresetMode.SAME_STEP)
    vector.reset(seed=1)
    wins = 0.0
    for _ in range(100):
        _, rewards, *_ = vector.step(np.zeros(32, np.int64))
        wins += rewards.sum()
    assert wins > 50  # always running beats random play


def test_batch_and_encoder(sprint: str) -> None:
    games = tg.BatchGames(sprint, num_games=512, seed=0)
    assert games.play_random(200) > 512
    assert games.observations.shape == (512, *Encoder(games.ruleset).shape)


def test_pictures(sprint: str) -> None:
    assert rendering.svg(tg.Position(sprint)).startswith("<svg")
    assert rendering.image(tg.Position(sprint)).std() > 1


@pytest.mark.parametrize("agent", ["random", "greedy", "mcts:50"])
def test_agents(sprint: str, agent: str) -> None:
    position = tg.Position(sprint, seed=3)
    assert tg.load_agent(agent).act(position) in position.legal_moves()


def test_training_and_evaluation(sprint: str, tmp_path: pathlib.Path) -> None:
    settings = {
        "game": {"name": sprint, "variant": "long"},
        "budget": {"steps": 40_000},
        "rollout": {"games": 64, "steps": 32},
        "network": {"width": 32, "blocks": 1},
        "progress": "off",
    }
    checkpoint = train(parse_config(settings, "test"), tmp_path / "run")
    agent = tg.load_agent(checkpoint)
    position = tg.Position(sprint, "long", seed=1)
    assert agent.act(position).startswith("run")
    result = evaluate(agent, ["random"], position.ruleset, games=100)
    assert result.matches[0].score > 0.75


def test_a_name_can_be_taken_once(sprint: str) -> None:
    tg.register_game(toy_game.RULES)  # the same rules again change nothing
    clash = type(toy_game.RULES)(**{**vars(toy_game.RULES), "name": "petteia"})
    with pytest.raises(ValueError, match="there already is a game 'petteia'"):
        tg.register_game(clash)
