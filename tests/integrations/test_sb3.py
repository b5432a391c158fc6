"""Stable-Baselines3 and sb3-contrib: the vector environment, self-play, evaluation, saving and playing."""

import pathlib
import pickle
import re
from typing import Any

import gymnasium
import numpy as np
import pytest

import tradgames_env as tg
from tests.integrations.ledger import Ledger, learner_sides
from tests.integrations.tutorials import run_tutorial

pytest.importorskip("sb3_contrib", reason="pip install 'tradgames-env[sb3]'")

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor

from tradgames_env.agents.base import RowAgent
from tradgames_env.agents.random import RandomAgent
from tradgames_env.integrations import sb3
from tradgames_env.registration import gymnasium_id

torch.set_num_threads(1)  # networks this small are slower on more

SMALL: dict[str, Any] = {"n_steps": 32, "batch_size": 64, "n_epochs": 1, "policy_kwargs": {"net_arch": [16]}, "seed": 0}


def random_actions(masks: Any, choose: np.random.Generator) -> Any:
    return np.array([choose.choice(np.flatnonzero(mask)) for mask in masks])


def test_rewards_are_the_learners_own(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    games = sb3.VecGames(game, "mini", num_envs=16, opponent=RandomAgent())
    ledger = Ledger(games._games.games, monkeypatch)
    games.seed(3)
    observations = games.reset()
    choose = np.random.default_rng(0)
    seen = {"won as black": 0, "lost to the last mover": 0, "two moves in a row": 0, "ended": 0}
    for _ in range(300):
        sides = learner_sides(observations)
        ledger.clear()
        observations, rewards, dones, infos = games.step(random_actions(games.action_masks(), choose))
        assert (dones == ledger.ended).all()
        assert (rewards == ledger.due(sides)).all()
        assert rewards.dtype == np.float32
        for i in np.flatnonzero(dones):
            assert infos[i]["seat"] == sides[i] == learner_sides(infos[i]["terminal_observation"][None])[0]
            assert not infos[i]["illegal"]
            assert infos[i]["TimeLimit.truncated"] == ledger.truncated[i]
            seen["won as black"] += sides[i] == 1 and rewards[i] > 0
            seen["lost to the last mover"] += rewards[i] < 0 and ledger.movers[i][-1] != sides[i]
            seen["ended"] += 1
        assert all(not infos[i] for i in np.flatnonzero(~dones))
        seen["two moves in a row"] += any(movers[1:2] == movers[:1] for movers in ledger.movers)
    assert seen["ended"] > 50
    assert seen["won as black"] > 10
    assert seen["lost to the last mover"] > 10
    games.close()


def test_masks_as_sb3_contrib_asks(game: str) -> None:
    games = VecMonitor(sb3.VecGames(game, num_envs=4))
    games.reset()
    assert is_masking_supported(games)
    masks = get_action_masks(games)
    assert masks.dtype == np.bool_
    assert masks.shape == (4, games.action_space.n)
    assert masks.any(axis=1).all()
    assert (np.stack(games.env_method("action_masks", indices=[2])) == masks[[2]]).all()
    games.close()


def test_illegal_actions_lose() -> None:
    games = sb3.VecGames("petteia", "mini", num_envs=2, seat=0)
    games.reset()
    illegal = np.array([np.flatnonzero(~mask)[0] for mask in games.action_masks()])
    _, rewards, dones, infos = games.step(illegal)
    assert rewards.tolist() == [-1.0, -1.0]
    assert dones.all()
    assert infos[0]["illegal"]
    assert infos[0]["winner"] == 1
    games.close()


def test_seeds_decide(game: str) -> None:
    def play(seed: int) -> list[Any]:
        games = sb3.VecGames(game, "mini", num_envs=3)
        games.seed(seed)
        seen, choose = [games.reset()], np.random.default_rng(0)
        seen += [games.step(random_actions(games.action_masks(), choose))[0] for _ in range(20)]
        games.close()
        return seen

    first, again, other = play(1), play(1), play(2)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("flatten", [True, False])
def test_maskable_ppo_learns_in_both_observations(flatten: bool) -> None:
    games = sb3.VecGames("puluc", "mini", num_envs=4, flatten=flatten)
    model = MaskablePPO("MlpPolicy" if flatten else "MultiInputPolicy", games, **SMALL)
    model.learn(256, callback=sb3.SelfPlay(every=128))
    agent = sb3.MaskableAgent(model.policy, games.get_attr("ruleset")[0])
    position = tg.Position("puluc", "mini", seed=1)
    assert agent.act(position) in position.legal_moves()
    games.close()


@pytest.mark.filterwarnings("ignore:Training and eval env are not of the same type")
@pytest.mark.parametrize("vectors", [DummyVecEnv, SubprocVecEnv])
def test_single_views_in_sb3s_own_vectors(vectors: type[Any]) -> None:
    def make() -> Any:
        return gymnasium.make(gymnasium_id("petteia"), variant="mini", flatten=True)

    views = vectors([make, make])
    judge = DummyVecEnv([lambda: Monitor(make())])
    callbacks = [
        sb3.SelfPlay(every=64, keep=2),
        MaskableEvalCallback(judge, eval_freq=32, n_eval_episodes=2, verbose=0),
    ]
    model = MaskablePPO("MlpPolicy", views, **SMALL)
    model.learn(128, callback=callbacks)
    illegal = views.env_method("step", int(np.flatnonzero(~views.env_method("action_masks")[0])[0]), indices=[0])
    assert illegal[0][4]["illegal"]
    views.close()
    judge.close()


def test_self_play_swaps_opponents_only_between_games(monkeypatch: pytest.MonkeyPatch) -> None:
    games = sb3.VecGames("petteia", "mini", num_envs=8)
    inner = games._games
    playing: list[list[Any]] = []
    step = inner.step

    def watched(actions: Any) -> Any:
        before = list(inner._opponents)
        result = step(actions)
        ended = result[2] | result[3]
        assert all(ended[i] or inner._opponents[i] is before[i] for i in range(8))
        playing.append(list(inner._opponents))
        return result

    monkeypatch.setattr(inner, "step", watched)
    model = MaskablePPO("MlpPolicy", games, **SMALL)
    model.learn(1536, callback=sb3.SelfPlay(every=256, keep=2))
    names = {agent.name for agents in playing for agent in agents}
    assert "random" in names
    assert len(names) > 4
    assert len({id(agent) for agent in playing[-1]}) <= 5
    assert any(len({id(agent) for agent in agents}) > 2 for agents in playing)
    games.close()


def test_learning_beats_random() -> None:
    said = run_tutorial("sb3", steps=24_576)
    mean = re.search(r"mean reward against random after \d+ steps: ([+-][\d.]+)", said)
    assert mean is not None
    assert float(mean[1]) > 0.3
    assert "it opens with " in said


def test_saved_models_play(tmp_path: pathlib.Path) -> None:
    games = sb3.VecGames("yut_nori", "mini", num_envs=4)
    model = MaskablePPO("MlpPolicy", games, **SMALL)
    path = tmp_path / "model.zip"
    sb3.save(model, path)
    agent = tg.load_agent(f"sb3:{path}")
    assert isinstance(agent, RowAgent)
    assert agent.name == "model"
    positions = [tg.Position("yut_nori", "mini", seed=seed) for seed in range(5)]
    assert agent.act_many(positions) == [agent.act(position) for position in positions]
    for position, move in zip(positions, agent.act_many(positions), strict=True):
        policy = agent.policy(position)
        assert list(policy) == position.legal_moves()
        assert sum(policy.values()) == pytest.approx(1.0)
        assert policy[move] == max(policy.values())
        assert -1.0 <= agent.value(position) <= 1.0
    assert evaluate_policy(model, games, n_eval_episodes=4, warn=False)[0] <= 1.0
    with pytest.raises(ValueError, match="was trained for yut_nori/mini and cannot play yut_nori/duel"):
        agent.act(tg.Position("yut_nori", "duel", seed=1))
    games.close()


def test_drawn_moves_follow_the_policy_and_the_seed() -> None:
    games = sb3.VecGames("petteia", "mini", num_envs=2)
    model = MaskablePPO("MlpPolicy", games, **SMALL)
    agent = sb3.MaskableAgent(model.policy, games.get_attr("ruleset")[0], greedy=False)
    position = tg.Position("petteia", "mini")
    agent.seed(1)
    first = agent.act_many([position] * 400)
    agent.seed(1)
    assert agent.act_many([position] * 400) == first
    for move, probability in agent.policy(position).items():
        assert first.count(move) / 400 == pytest.approx(probability, abs=0.1)
    assert pickle.loads(pickle.dumps(agent)).policy(position) == agent.policy(position)
    games.close()


def test_what_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="add SelfPlay as a callback"):
        sb3.VecGames("puluc", opponent="self")
    with pytest.raises(ValueError, match="at least 1"):
        sb3.SelfPlay(every=0)
    with pytest.raises(ValueError, match="there is no file"):
        tg.load_agent(f"sb3:{tmp_path / 'nothing'}")
    games = sb3.VecGames("puluc", "mini", num_envs=2)
    with pytest.raises(AttributeError, match="all games share it"):
        games.set_attr("opponent", "greedy")
    plain = MaskablePPO("MlpPolicy", games, **SMALL)
    plain.save(tmp_path / "plain.zip")
    with pytest.raises(ValueError, match="does not say what it was trained for"):
        tg.load_agent(f"sb3:{tmp_path / 'plain.zip'}")
    games.close()
