import pathlib

import numpy as np
import pytest

from tradgames_env.agents.checkpoint import CheckpointError
from training.replay import Arrays, Replay, merge, policy_weights


def samples(first: int, count: int, width: int = 3) -> Arrays:
    numbers = np.arange(first, first + count, dtype=np.float32)
    return {
        "features": numbers[:, None].astype(np.float16),
        "actions": np.full((count, width), 1, np.int16),
        "probabilities": np.full((count, width), 0.5, np.float16),
        "weights": np.ones(count, np.float32),
        "results": numbers,
        "draws": np.zeros(count, np.float32),
        "margins": np.zeros(count, np.float32),
    }


def filled(folder: pathlib.Path, capacity: int, iterations: int) -> Replay:
    replay = Replay(folder, capacity)
    for iteration in range(1, iterations + 1):
        replay.add(iteration, samples(10 * iteration, 10, width=2 + iteration))
        replay.forget(iteration)
    replay.settle()
    return replay


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_samples_are_drawn(tmp_path: pathlib.Path) -> None:
    replay = filled(tmp_path, 1000, 5)
    drawn = replay.draw(np.random.default_rng(1), 2000, 15)
    assert set(drawn["results"].astype(int)) == set(range(45, 60))
    assert drawn["features"][:, 0].astype(np.float32).tolist() == drawn["results"].tolist()
    # Lists of actions are as long as the longest, and say where they end.
    assert drawn["actions"].shape == (2000, 7)
    assert (drawn["actions"][drawn["results"] < 50, 6] == -1).all()
    assert (drawn["probabilities"][drawn["results"] < 50, 6] == 0).all()


def test_draws_repeat(tmp_path: pathlib.Path) -> None:
    replay = filled(tmp_path, 1000, 3)
    one, two = (replay.draw(np.random.default_rng(7), 50, 1000) for _ in range(2))
    assert all((one[name] == two[name]).all() for name in one)


def test_files_out_of_reach_are_removed(tmp_path: pathlib.Path) -> None:
    replay = filled(tmp_path, 25, 5)
    assert names(tmp_path) == [f"it_00000{number}.safetensors" for number in (3, 4, 5)]
    assert len(replay) == 25


def test_files_that_an_earlier_checkpoint_needs_are_kept(tmp_path: pathlib.Path) -> None:
    replay = filled(tmp_path, 1000, 3)
    checksums = replay.checksums()
    expected = replay.draw(np.random.default_rng(2), 40, 25)
    replay = Replay(tmp_path, 25)
    replay.restore(3, checksums)
    for number in (4, 5):
        replay.add(number, samples(10 * number, 10))
        replay.forget(3)
    replay.settle()
    assert names(tmp_path) == [f"it_00000{number}.safetensors" for number in (1, 2, 3, 4, 5)]
    replay.forget(4)
    assert names(tmp_path) == [f"it_00000{number}.safetensors" for number in (2, 3, 4, 5)]
    replay = Replay(tmp_path, 20)
    replay.restore(3, checksums)
    found = replay.draw(np.random.default_rng(2), 40, 20)
    assert found.keys() == expected.keys()


def test_a_resumed_run_reads_its_files_and_drops_later_ones(tmp_path: pathlib.Path) -> None:
    before = filled(tmp_path, 1000, 3)
    expected = before.draw(np.random.default_rng(2), 40, 1000)
    before.add(4, samples(500, 10))
    checksums = before.checksums()
    del checksums["4"]
    replay = Replay(tmp_path, 1000)
    replay.restore(3, checksums)
    assert names(tmp_path) == [f"it_00000{number}.safetensors" for number in (1, 2, 3)]
    found = replay.draw(np.random.default_rng(2), 40, 1000)
    assert all((found[name] == expected[name]).all() for name in expected)


def test_missing_and_damaged_files_are_said(tmp_path: pathlib.Path) -> None:
    checksums = filled(tmp_path, 1000, 3).checksums()
    last = tmp_path / "it_000003.safetensors"
    data = bytearray(last.read_bytes())
    data[-1] ^= 1
    last.write_bytes(data)
    with pytest.raises(CheckpointError, match="is damaged"):
        Replay(tmp_path, 1000).restore(3, checksums)
    data[-1] ^= 1
    last.write_bytes(data)
    Replay(tmp_path, 1000).restore(3, checksums)
    for number in (2, 1):
        (tmp_path / f"it_00000{number}.safetensors").unlink()
        with pytest.raises(CheckpointError, match="samples are missing"):
            Replay(tmp_path, 1000).restore(3, checksums)


def test_weights_follow_surprise_and_keep_their_mean() -> None:
    taught = np.array([True, False, True, True])
    weights = policy_weights(taught, np.array([1.0, 9.0, 2.0, 0.0], np.float32), 0.5)
    assert weights.tolist() == [1.0, 0.0, 1.5, 0.5]
    assert policy_weights(taught, np.zeros(4, np.float32), 0.5).tolist() == [1, 0, 1, 1]
    assert policy_weights(~taught & taught, np.zeros(4, np.float32), 0.5).tolist() == [0] * 4


def test_parts_keep_their_order() -> None:
    merged = merge([samples(0, 2, width=1), samples(2, 3, width=4)])
    assert merged["results"].tolist() == [0, 1, 2, 3, 4]
    assert merged["actions"].shape == (5, 4)
