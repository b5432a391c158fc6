"""Tianshou: a DQN learns Petteia on 4x4 against frozen copies of itself.

pip install "tradgames-env[tianshou]". Takes about a minute; TUTORIAL_STEPS changes how long it trains.
"""

import os

import numpy as np
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from tradgames_env.integrations.tianshou import MaskedView, QAgent

steps = int(os.environ.get("TUTORIAL_STEPS", "30000"))
torch.manual_seed(1)
np.random.seed(1)  # noqa: NPY002 - what Tianshou explores with

views = [MaskedView("petteia", "mini", opponent="random") for _ in range(16)]
games = DummyVectorEnv([lambda view=view: view for view in views])
games.seed(1)
space, actions = views[0].observation_space["obs"], views[0].action_space
policy = DiscreteQLearningPolicy(
    model=Net(state_shape=space.shape, action_shape=actions.n, hidden_sizes=[128, 128]),
    action_space=actions,
    observation_space=space,
    eps_training=0.1,
    eps_inference=0.0,
)
learner = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.99, target_update_freq=200)
opponents = []


def freeze(epoch: int, step: int) -> None:
    """Once an epoch: games that start from now on meet the last four copies, or a random player."""
    if epoch > len(opponents) + 1:
        opponents.append(QAgent(policy, views[0].view.ruleset, epsilon=0.1, name=f"self@{step}"))
        for view in views:
            view.view.set_opponents([*opponents[-4:], "random"])


collector = Collector(learner, games, VectorReplayBuffer(20_000, len(views)), exploration_noise=True)
collector.reset()
learner.run_training(
    OffPolicyTrainerParams(
        training_collector=collector,
        max_epochs=max(1, steps // 5_000),
        epoch_num_steps=5_000,
        collection_step_num_env_steps=160,
        update_step_num_gradient_steps_per_sample=0.1,
        batch_size=128,
        training_fn=freeze,
        test_in_training=False,
        verbose=False,
        show_progress=False,
    )
)

judges = DummyVectorEnv([lambda: MaskedView("petteia", "mini", opponent="random") for _ in range(16)])
judges.seed(2)
judge = Collector(learner, judges)
judge.reset()
results = judge.collect(n_episode=256)
print(f"mean reward against random in {results.n_collected_episodes} games: {results.returns.mean():+.3f}")
