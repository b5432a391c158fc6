"""Minari: what a dataset gives back is what was played, and its environment is the recorded one."""

import pathlib

import gymnasium
import pytest

for module in ("minari", "jax", "h5py"):
    pytest.importorskip(module, reason="pip install 'tradgames-env[minari]'")

import minari

from tests.integrations.test_gymnasium import play
from tradgames_env.integrations.minari import collector
from tradgames_env.registration import gymnasium_id

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::UserWarning")


def test_datasets_give_back_what_was_recorded(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
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
