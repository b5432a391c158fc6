"""Gymnasium's wrappers, videos and Minari's datasets over the learner's view of a game."""

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


def test_videos(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("moviepy", reason="pip install 'tradgames-env[gymnasium]'")
    env = gymnasium.make(gymnasium_id("puluc"), variant="mini", render_mode="rgb_array")
    env = wrappers.RecordVideo(env, str(tmp_path / "videos"), episode_trigger=lambda episode: True, disable_logger=True)
    play(env, 1)
    env.close()
    assert next(tmp_path.rglob("*.mp4")).stat().st_size > 1000


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::UserWarning")
def test_minari_datasets(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("minari", "jax", "h5py"):
        pytest.importorskip(module, reason="pip install 'tradgames-env[minari]'")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    import minari

    from tradgames_env.integrations.minari import collector

    env = collector(gymnasium.make(gymnasium_id("puluc"), variant="mini"), data_format="hdf5")
    results = [play(env, seed) for seed in range(3)]
    env.create_dataset(
        "tradgames/puluc-v0", algorithm_name="random", author="tests", author_email="a@b.c", code_permalink="https://a.b",
        description="random games",
    )  # fmt: skip
    env.close()
    dataset = minari.load_dataset("tradgames/puluc-v0")
    assert dataset.total_episodes == 3
    for episode, (reward, info, _) in zip(dataset.iterate_episodes(), results, strict=True):
        assert episode.rewards[-1] == reward
        assert episode.infos["winner"][-1] == info["winner"]
        masks = episode.infos["action_mask"]
        assert (masks == episode.observations["action_mask"]).all()
        assert all(mask[action] for mask, action in zip(masks, episode.actions, strict=False))
    again = dataset.recover_environment()
    assert again.unwrapped.ruleset.label == "puluc/mini"
    again.close()


def test_tutorial() -> None:
    pytest.importorskip("moviepy", reason="pip install 'tradgames-env[gymnasium]'")
    said = run_tutorial("gymnasium_wrappers", steps=0)
    assert "videos: 1" in said
    won = re.search(r"random against random: (\d+) of (\d+) games won", said)
    assert won is not None
    assert 0.4 < int(won[1]) / int(won[2]) < 0.6
