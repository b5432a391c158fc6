"""Gymnasium's wrappers and videos over the learner's view of a game."""

import pathlib
import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers

from tests.integrations.tutorials import run_tutorial
from tradgames_env.registration import gymnasium_id

WRAPPERS: dict[str, Any] = {
    "Autoreset": wrappers.Autoreset,
    "ClipReward": lambda env: wrappers.ClipReward(env, -1.0, 1.0),
    "FlattenObservation": wrappers.FlattenObservation,
    "FrameStackObservation": lambda env: wrappers.FrameStackObservation(env, 2),
    "FilterObservation": lambda env: wrappers.FilterObservation(env, ["observation"]),
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
}


def play(env: Any, seed: int) -> tuple[float, dict[str, Any], bool]:
    choose = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    while True:
        assert env.observation_space.contains(observation)
        action = int(choose.choice(np.flatnonzero(info["action_mask"])))
        observation, reward, terminated, truncated, info = env.step(action)
        assert not info["illegal"]
        if terminated or truncated:
            return float(reward), info, truncated


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers(game: str, name: str) -> None:
    env = WRAPPERS[name](gymnasium.make(gymnasium_id(game), variant="mini"))
    for seed in range(4):
        reward, info, _ = play(env, seed)
        assert reward == {None: 0.0, info["seat"]: 1.0, 1 - info["seat"]: -1.0}[info["winner"]]
    env.close()


def test_statistics_and_time_limit() -> None:
    env = gymnasium.make(gymnasium_id("yote"), variant="mini")
    env = wrappers.RecordEpisodeStatistics(wrappers.TimeLimit(env, 3))
    reward, info, truncated = play(env, 1)
    assert truncated
    assert reward == 0.0
    assert info["episode"]["l"] == 3
    env.close()


@pytest.mark.filterwarnings("ignore:.*invalid escape sequence")  # moviepy, when Python compiles it for the first time
def test_videos(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("moviepy", reason="pip install 'tradgames-env[gymnasium]'")
    env = gymnasium.make(gymnasium_id("puluc"), variant="mini", render_mode="rgb_array")
    env = wrappers.RecordVideo(env, str(tmp_path / "videos"), episode_trigger=lambda episode: True, disable_logger=True)
    play(env, 1)
    env.close()
    assert next(tmp_path.rglob("*.mp4")).stat().st_size > 1000


def test_tutorial() -> None:
    pytest.importorskip("moviepy", reason="pip install 'tradgames-env[gymnasium]'")
    said = run_tutorial("gymnasium_wrappers", steps=0)
    assert "videos: 1" in said
    won = re.search(r"random against random: (\d+) of (\d+) games won", said)
    assert won is not None
    assert 0.4 < int(won[1]) / int(won[2]) < 0.6
