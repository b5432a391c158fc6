"""Gymnasium: a learner's view of a game, the usual wrappers, a video, and thousands of games at once.

pip install "tradgames-env[gymnasium]". Takes some seconds.
"""

import pathlib
import tempfile

import gymnasium
import numpy as np
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, RecordVideo

import tradgames_env  # noqa: F401 - registers the games

choose = np.random.default_rng(1)


def play(env: gymnasium.Env) -> dict:
    """One game of random moves; the last info."""
    _, info = env.reset(seed=1)
    over = False
    while not over:
        action = int(choose.choice(np.flatnonzero(info["action_mask"])))
        _, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return info


with tempfile.TemporaryDirectory() as folder:
    env = gymnasium.make("tradgames/Petteia-v0", variant="mini", opponent="greedy", render_mode="rgb_array")
    env = RecordVideo(
        RecordEpisodeStatistics(FlattenObservation(env)), f"{folder}/videos", episode_trigger=lambda episode: True
    )
    info = play(env)
    env.close()
    print(f"reward {info['episode']['r']} in {info['episode']['l']} decisions, winner {info['winner']}")
    print("videos:", len(list(pathlib.Path(folder).rglob("*.mp4"))))

many = gymnasium.make_vec("tradgames/YutNori-v0", num_envs=256, opponent="random")
observations, infos = many.reset(seed=1)
wins = games = 0
for _ in range(200):
    actions = np.array([choose.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]])
    observations, rewards, terminated, truncated, infos = many.step(actions)
    games += int((terminated | truncated).sum())
    wins += int((rewards > 0).sum())
many.close()
print(f"random against random: {wins} of {games} games won")
