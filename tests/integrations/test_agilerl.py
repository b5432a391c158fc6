"""AgileRL: turns are each player's own, its DQN takes legal actions only, and learns by self-play."""

import itertools
import re
import warnings
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tests.integrations.tutorials import run_tutorial

pytest.importorskip("agilerl", reason="pip install 'tradgames-env[agilerl]' in an environment of its own")
pytestmark = pytest.mark.filterwarnings("ignore")  # AgileRL imports much that warns

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # parts of AgileRL warn of others when they are imported
    from agilerl.algorithms import PPO

from agilerl.components.replay_buffer import ReplayBuffer

from tests.integrations.ledger import learner_sides
from tradgames_env.integrations.agilerl import MaskedDQN, Turn, played, space, transitions

VARIANTS = {"petteia": "mini", "puluc": "mini", "yote": "mini", "yut_nori": "duel"}


def fresh(env: Any) -> MaskedDQN:
    networks = {"encoder_config": {"hidden_size": [16]}, "head_config": {"hidden_size": [16]}}
    return MaskedDQN(space(env), env.action_space("player_0"), net_config=networks, batch_size=32)


def test_turns_are_each_players_own(game: str) -> None:
    env = tg.raw_env(game, VARIANTS[game], mask_in="info")
    learner, moves = fresh(env), []

    def choose(agent: str, seen: Any, mask: Any) -> int:
        assert (seen[-len(mask) :] == mask).all()
        moves.append((agent, learner.act(seen, mask, epsilon=0.5)))
        return moves[-1][1]

    again, actions = 0, env.action_space("player_0").n
    for seed in range(6):
        moves.clear()
        turns = list(played(env, choose, seed=seed))
        again += sum(one == other for (one, _), (other, _) in itertools.pairwise(moves))
        for agent in env.possible_agents:
            own = [turn for turn in turns if turn.agent == agent]
            assert [turn.action for turn in own] == [action for mover, action in moves if mover == agent]
            images = np.stack([turn.obs[:-actions] for turn in own] + [own[-1].next_obs[:-actions]])
            assert (learner_sides(images) == int(agent[-1])).all()
            assert all(one.next_obs is other.obs for one, other in itertools.pairwise(own))
            assert [turn.done for turn in own] == [False] * (len(own) - 1) + [True]
            assert not any(turn.reward for turn in own[:-1])
            assert own[-1].reward == env.unwrapped._position.rewards[int(agent[-1])]
    assert (again > 0) == (game in ("yote", "yut_nori"))


def test_targets_are_of_legal_actions() -> None:
    env = tg.raw_env("puluc", "mini", mask_in="info")
    learner = fresh(env)
    actions = env.action_space("player_0").n
    obs = np.zeros(space(env).shape, np.float32)
    after = obs.copy()
    after[-actions] = 1.0
    values = learner.actor_target(torch.from_numpy(after[None]))[0]
    batch = transitions([Turn("player_0", obs, 1, 0.0, after, False)])
    goal = learner.gamma * values[0]
    was = learner.actor(torch.from_numpy(obs[None]))[0, 1]
    assert learner.learn(batch) == pytest.approx(float((was - goal) ** 2), rel=1e-4)
    with pytest.raises(ValueError, match="there is no turn to learn from"):
        transitions([])


def test_a_replay_buffer_takes_turns() -> None:
    env = tg.raw_env("puluc", "mini", mask_in="info")
    learner, buffer = fresh(env), ReplayBuffer(max_size=1000)
    before = [weights.clone() for weights in learner.actor.parameters()]
    for seed in range(3):
        buffer.add(transitions(played(env, lambda agent, seen, mask: learner.act(seen, mask, 1.0), seed=seed)))
    for _ in range(5):
        assert np.isfinite(learner.learn(buffer.sample(32)))
    assert any(not torch.equal(one, other) for one, other in zip(before, learner.actor.parameters(), strict=True))


def test_its_ppo_plays_by_masks(game: str) -> None:
    env = tg.raw_env(game, VARIANTS[game], mask_in="info")
    networks = {"encoder_config": {"hidden_size": [16]}, "head_config": {"hidden_size": [16]}}
    player = PPO(space(env), env.action_space("player_0"), net_config=networks)

    # The bare game raises on an illegal action.
    def choose(agent: str, seen: Any, mask: Any) -> int:
        return int(player.get_action(seen[None], action_mask=mask[None].astype(bool))[0][0])

    assert list(played(env, choose, seed=1))


def test_learning_beats_random() -> None:
    said = run_tutorial("agilerl_dqn", steps=20_000)
    mean = re.search(r"mean reward against random in (\d+) games: ([+-][\d.]+)", said)
    assert mean is not None
    assert int(mean[1]) == 1000
    assert float(mean[2]) > 0.2  # six standard errors of a player no better than its opponent
