import dataclasses
import json
import pathlib

import numpy as np
import pytest
import torch

from tradgames_env.agents.checkpoint import CheckpointError, GameRecord, NetworkRecord, read_checkpoint, read_record
from tradgames_env.agents.network import PolicyValueNetwork
from training import checkpoint, durable
from training.config import TrainConfig, parse_config
from training.run import optimiser_arrays, restore_optimiser

CONFIG = {"game": {"name": "puluc", "variant": "mini"}, "network": {"width": 8, "blocks": 1}, "budget": {"steps": 10}}


@pytest.fixture
def config() -> TrainConfig:
    return parse_config({**CONFIG, "seed": 5}, "test")


def network_for(config: TrainConfig, seed: int = 0) -> PolicyValueNetwork:
    size = config.network
    network = PolicyValueNetwork(NetworkRecord.for_games([config.game.ruleset()], size.width, size.blocks))
    network.initialise(torch.Generator().manual_seed(seed))
    return network


def test_round_trip(config: TrainConfig, tmp_path: pathlib.Path) -> None:
    network = network_for(config)
    written = checkpoint.write_checkpoint(tmp_path / "c", network, config, 123)
    read = read_checkpoint(tmp_path / "c")
    assert read.record == written
    assert (read.record.steps, read.record.seed) == (123, 5)
    assert read.record.games == (GameRecord("puluc", "mini", {}, config.game.ruleset().rules.version),)
    assert read.rulesets == (config.game.ruleset(),)
    assert parse_config(read.record.config, "checkpoint") == config
    for name, tensor in network.state_dict().items():
        np.testing.assert_array_equal(read.tensors[name], tensor.numpy())


def test_folder_holds_three_files_and_nothing_is_left_over(config: TrainConfig, tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        checkpoint.write_checkpoint(tmp_path / "c", network_for(config), config, 1)
    assert {path.name for path in (tmp_path / "c").iterdir()} == {"model.safetensors", "checkpoint.json", "README.md"}
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_an_earlier_checkpoint_is_replaced(config: TrainConfig, tmp_path: pathlib.Path) -> None:
    checkpoint.write_checkpoint(tmp_path / "c", network_for(config, 0), config, 1)
    checkpoint.write_checkpoint(tmp_path / "c", network_for(config, 1), config, 2)
    assert read_checkpoint(tmp_path / "c").record.steps == 2


def test_other_peoples_folders_are_left_alone(config: TrainConfig, tmp_path: pathlib.Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "thesis")
    for name in ("thesis", "file", "link"):
        with pytest.raises(FileExistsError, match="is no checkpoint; nothing was written"):
            checkpoint.write_checkpoint(tmp_path / name, network_for(config), config, 1)
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "precious"
    assert not list(tmp_path.glob(".*"))


def test_a_failed_write_leaves_the_old_checkpoint(
    config: TrainConfig, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.write_checkpoint(tmp_path / "c", network_for(config), config, 1)

    def full_disk(path: pathlib.Path, data: bytes) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(durable, "_write_through", full_disk)
    with pytest.raises(OSError, match="no space left"):
        checkpoint.write_checkpoint(tmp_path / "c", network_for(config, 1), config, 2)
    assert read_checkpoint(tmp_path / "c").record.steps == 1
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_replacement_killed_between_its_renames_loses_nothing(
    config: TrainConfig, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "c"
    checkpoint.write_checkpoint(folder, network_for(config), config, 1)
    folder.rename(tmp_path / ".c.old")

    def die(temporary: pathlib.Path, folder: pathlib.Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(durable, "_put_in_place", die)
        with pytest.raises(KeyboardInterrupt):
            checkpoint.write_checkpoint(folder, network_for(config, 1), config, 2)
    assert read_checkpoint(folder).record.steps == 1
    checkpoint.write_checkpoint(folder, network_for(config, 1), config, 2)
    assert read_checkpoint(folder).record.steps == 2


def test_strength_is_recorded_beside_unchanged_weights(config: TrainConfig, tmp_path: pathlib.Path) -> None:
    checkpoint.write_checkpoint(tmp_path / "c", network_for(config), config, 1)
    before = (tmp_path / "c" / "model.safetensors").read_bytes()
    result = {"games": 400, "wins": 300, "draws": 20, "losses": 80, "score": 0.775, "score_interval": [0.73, 0.82]}
    checkpoint.record_strength(tmp_path / "c", {"opponents": {"greedy": result}, "seed": 9})
    assert read_checkpoint(tmp_path / "c").record.strength == {"opponents": {"greedy": result}, "seed": 9}
    assert (tmp_path / "c" / "model.safetensors").read_bytes() == before
    card = (tmp_path / "c" / "README.md").read_text()
    assert "| greedy | 400 | 300 | 20 | 80 | 0.775 | 0.73 to 0.82 |" in card
    assert "Not measured" not in card


def test_card_says_what_it_is(config: TrainConfig, tmp_path: pathlib.Path) -> None:
    record = checkpoint.write_checkpoint(tmp_path / "c", network_for(config), config, 123_456)
    card = (tmp_path / "c" / "README.md").read_text()
    for fact in ("puluc", "`mini`", "123,456", record.sha256, "Not measured", record.packages["torch"]):
        assert fact in card
    policy = dataclasses.replace(record, play=dataclasses.replace(record.play, lookahead=False))
    assert "most probable move" in checkpoint.model_card(policy)
    assert "most probable move" not in card


def test_nothing_is_pickled(config: TrainConfig, tmp_path: pathlib.Path) -> None:
    checkpoint.write_checkpoint(tmp_path / "c", network_for(config), config, 1)
    json.loads((tmp_path / "c" / "checkpoint.json").read_text())
    sources = [*pathlib.Path(checkpoint.__file__).parent.glob("*.py"), pathlib.Path(read_record.__code__.co_filename)]
    for source in sources:
        text = source.read_text()
        assert "import pickle" not in text
        assert "torch.load(" not in text
        assert "torch.save(" not in text


# -- the state of a run ----------------------------------------------------------------------------------------------


def test_state_round_trip() -> None:
    arrays = {
        "words": np.array([2**64 - 1], np.uint64),
        "flags": np.array([True, False]),
        "rows": np.arange(6, dtype=np.int16).reshape(2, 3).T,
        "none": np.zeros((4, 0), np.uint64),
    }
    record = {"state": 2**127, "nested": {"a": [1, 2.5, None]}}
    files = checkpoint.state_files(arrays, record)
    read, found = checkpoint.read_state(files)
    assert {name: found[name] for name in record} == record
    assert set(read) == set(arrays)
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)


def test_the_state_of_an_optimiser_replaces_what_it_holds() -> None:
    weights = torch.nn.Parameter(torch.ones(2))
    optimiser = torch.optim.AdamW([weights], fused=True)
    fresh = optimiser_arrays(optimiser)
    weights.grad = torch.ones(2)
    optimiser.step()
    stepped = optimiser_arrays(optimiser)
    restore_optimiser(optimiser, fresh)
    assert not optimiser.state
    restore_optimiser(optimiser, stepped)
    assert optimiser_arrays(optimiser).keys() == stepped.keys()


def test_states_that_are_none() -> None:
    files = checkpoint.state_files({"a": np.zeros(100)}, {"b": 1})
    with pytest.raises(CheckpointError, match="its version is '1', not '2'"):
        checkpoint.read_state({**files, "record.json": b'{"version": "1"}'})
    for spoilt in ({"record.json": b"["}, {"record.json": b"{}"}, {"arrays.safetensors": b""}):
        with pytest.raises(CheckpointError, match="it cannot be read"):
            checkpoint.read_state({**files, **spoilt})
    with pytest.raises(CheckpointError, match="it cannot be read"):
        checkpoint.read_state({})
