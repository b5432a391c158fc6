"""Tianshou: its DQN over the learner's view, whose successors are the learner's own."""

import re
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tests.integrations.tutorials import run_tutorial

pytest.importorskip("tianshou", reason="pip install 'tradgames-env[tianshou]'")

from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net

from tests.integrations.ledger import learner_sides
from tradgames_env.integrations.tianshou import MaskedView, QAgent

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")


def fresh_policy(view: MaskedView) -> Any:
    space, actions = view.observation_space["obs"], view.action_space
    network = Net(state_shape=space.shape, action_shape=actions.n, hidden_sizes=[16])
    return DiscreteQLearningPolicy(model=network, action_space=actions, observation_space=space, eps_training=0.5)


def test_successors_and_rewards_are_the_learners_own() -> None:
    for game in tg.games():
        views = [MaskedView(game, "mini") for _ in range(4)]
        envs = DummyVectorEnv([lambda view=view: view for view in views])
        envs.seed(1)
        buffer = VectorReplayBuffer(4000, 4)
        collector = Collector(fresh_policy(views[0]), envs, buffer, exploration_noise=True)
        collector.reset()
        collector.collect(n_episode=12)
        stored = buffer[:]
        sides, after = learner_sides(stored.obs.obs), learner_sides(stored.obs_next.obs)
        assert (sides == after).all()
        assert not stored.info.illegal.any()
        assert stored.obs.mask[np.arange(len(stored)), stored.act].all()
        ended = stored.terminated | stored.truncated
        winners = stored.info.winner[ended]
        assert (stored.rew[ended] == np.select([winners == -1, winners == sides[ended]], [0.0, 1.0], -1.0)).all()
        assert not stored.rew[~ended].any()


def test_policies_as_agents() -> None:
    view = MaskedView("puluc", "mini")
    agent = QAgent(fresh_policy(view), view.view.ruleset, epsilon=0.5)
    for seed in range(20):
        position = tg.Position("puluc", "mini", seed=seed)
        agent.seed(seed)
        move = agent.act(position)
        assert move in position.legal_moves()
        agent.seed(seed)
        assert agent.policy(position)[move] == 1.0
    with pytest.raises(ValueError, match="was trained for puluc/mini and cannot play puluc/box"):
        agent.act(tg.Position("puluc", seed=1))


def test_learning_beats_random() -> None:
    said = run_tutorial("tianshou_dqn", steps=20_000)
    mean = re.search(r"mean reward against random in (\d+) games: ([+-][\d.]+)", said)
    assert mean is not None
    assert int(mean[1]) == 256
    assert float(mean[2]) > 0.1
