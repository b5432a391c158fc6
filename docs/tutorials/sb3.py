"""Stable-Baselines3: MaskablePPO learns Petteia on 4x4 against copies of itself, and plays as one of our agents.

pip install "tradgames-env[sb3]". Takes about a minute; TUTORIAL_STEPS changes how long it trains.
"""

import os
import tempfile

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

import tradgames_env as tg
from tradgames_env.integrations.sb3 import SelfPlay, VecGames, save

steps = int(os.environ.get("TUTORIAL_STEPS", "65536"))

# 64 games in one process; `opponent` plays the other side until the first copy of the learner is frozen.
games = VecMonitor(VecGames("petteia", "mini", num_envs=64, opponent="random"))
model = MaskablePPO("MlpPolicy", games, n_steps=64, batch_size=512, n_epochs=4, learning_rate=1e-3, seed=1)
model.learn(steps, callback=SelfPlay(every=8_192))

# The mean reward against a random player: 1 if all games were won, 0 if as many were won as lost.
judge = VecMonitor(VecGames("petteia", "mini", num_envs=64, opponent="random"))
judge.seed(2)
mean, _ = evaluate_policy(model, judge, n_eval_episodes=512)
print(f"mean reward against random after {model.num_timesteps} steps: {mean:+.3f}")

with tempfile.TemporaryDirectory() as folder:
    save(model, f"{folder}/petteia.zip")
    agent = tg.load_agent(f"sb3:{folder}/petteia.zip")
    position = tg.Position("petteia", "mini")
    print(f"it opens with {agent.act(position)} and expects {agent.value(position):+.2f}")
