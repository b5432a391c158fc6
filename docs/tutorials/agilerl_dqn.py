"""AgileRL: a DQN with masked actions learns Puluc against frozen copies of itself.

Needs an environment of its own, since AgileRL holds PettingZoo below 1.27: pip install "tradgames-env[agilerl]". Takes
some minutes; TUTORIAL_STEPS changes how long it trains.
"""

import os

import numpy as np
import torch
from agilerl.components.replay_buffer import ReplayBuffer

import tradgames_env as tg
from tradgames_env.integrations.agilerl import MaskedDQN, played, space, transitions

steps = int(os.environ.get("TUTORIAL_STEPS", "20000"))
torch.manual_seed(1)
choose = np.random.default_rng(1)

# AgileRL wants masks in the info, and refuses them in the observation.
game = tg.raw_env("puluc", "family", mask_in="info")
learner = MaskedDQN(
    space(game),
    game.action_space("player_0"),
    net_config={"encoder_config": {"hidden_size": [128]}, "head_config": {"hidden_size": [64]}},
    batch_size=128,
    lr=1e-3,
    gamma=0.99,
    tau=0.01,
)
buffer = ReplayBuffer(max_size=20_000)


def against(opponent, seat, epsilon):
    """Decides for the learner in its seat, and for the opponent, None for a random one, in the other."""

    def decide(agent, seen, mask):
        if agent == seat:
            return learner.act(seen, mask, epsilon)
        return int(choose.choice(np.flatnonzero(mask))) if opponent is None else opponent.act(seen, mask, 0.05)

    return decide


opponents, learned, games = [None], 0, 0
while learned < steps:
    seat = f"player_{games % 2}"
    epsilon = max(0.1, 1.0 - 2.0 * learned / steps)
    opponent = opponents[choose.integers(len(opponents))]
    turns = [turn for turn in played(game, against(opponent, seat, epsilon), seed=games) if turn.agent == seat]
    buffer.add(transitions(turns))
    for _ in range(len(turns) // 4):
        learner.learn(buffer.sample(learner.batch_size))
    learned += len(turns)
    games += 1
    if learned * 4 // steps >= len(opponents):
        opponents.append(learner.clone())

rewards = []
for number in range(1000):
    seat = f"player_{number % 2}"
    rewards += [turn.reward for turn in played(game, against(None, seat, 0.0)) if turn.agent == seat and turn.done]
print(f"mean reward against random in {len(rewards)} games: {np.mean(rewards):+.3f}")
