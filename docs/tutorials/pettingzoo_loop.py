"""PettingZoo: the loop over both players' moves, plain and in SuperSuit's wrappers.

pip install "tradgames-env[pettingzoo]". Takes some seconds.
"""

import numpy as np
from pettingzoo import AECEnv

import tradgames_env as tg
from tradgames_env.integrations.supersuit import wrap


def play(env: AECEnv, seed: int) -> dict[str, float]:
    """Random moves until the end; what each player has been paid."""
    choose = np.random.default_rng(seed)
    env.reset(seed=seed)
    paid = dict.fromkeys(env.possible_agents, 0.0)
    # An agent may come twice in a row. After the end each comes once more, to be told its reward, and plays None.
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        paid[agent] += reward
        mask = info["action_mask"] if "action_mask" in info else observation["action_mask"]
        env.step(None if terminated or truncated else int(choose.choice(np.flatnonzero(mask))))
    return paid


print("plain:", play(tg.env("yut_nori", "traditional"), seed=1))

# SuperSuit takes no dict observations, so the mask goes into the info.
stacked = wrap(tg.env("puluc", "mini", mask_in="info"), "frame_stack_v1", 3)
print("stacked observations:", stacked.observation_space("player_0").shape, play(stacked, seed=1))
try:
    wrap(stacked, "sticky_actions_v0", 0.5)
except ValueError as error:
    print(error)
