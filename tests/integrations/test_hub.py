"""A checkpoint folder is a model repository; sending and fetching are tested without a network."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

import tradgames_env as tg
from tests.agents.test_network import make_checkpoint, rewrite_record

huggingface_hub = pytest.importorskip("huggingface_hub", reason="pip install 'tradgames-env[hub]'")

from tradgames_env.agents.checkpoint import CheckpointError
from tradgames_env.agents.network import NetworkAgent
from tradgames_env.integrations.hub import FILES, from_hub, push_to_hub

ROOT = pathlib.Path(tg.__file__).parent.parent
SHIPPED = sorted(path.parent for path in ROOT.glob("checkpoints/*/checkpoint.json"))
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    return make_checkpoint(tmp_path / "trained", "puluc", "family")


@pytest.fixture
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def in_the_cache_of_the_hub(home: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The folder as ``huggingface_hub`` keeps what it has fetched: blobs, and snapshots of links to them."""
    repository = home / "hub" / "models--someone--puluc"
    snapshot = repository / "snapshots" / COMMIT
    for part in (snapshot, repository / "blobs", repository / "refs"):
        part.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    for path in folder.iterdir():
        shutil.copy(path, repository / "blobs" / path.name)
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    return snapshot


def fetches(monkeypatch: pytest.MonkeyPatch, snapshot: pathlib.Path) -> list[dict[str, Any]]:
    """What ``snapshot_download`` was asked for, from now on; it answers with ``snapshot``."""
    asked: list[dict[str, Any]] = []

    def download(repo_id: str, **arguments: Any) -> str:
        asked.append({"repo_id": repo_id, **arguments})
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return asked


# -- cards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_shipped_folders_are_model_repositories(folder: pathlib.Path) -> None:
    games = [entry["game"] for entry in json.loads((folder / "checkpoint.json").read_text())["games"]]
    card = huggingface_hub.ModelCard.load(folder / "README.md")
    assert card.data.license == "mit"
    assert card.data.library_name == "tradgames-env"
    assert card.data.pipeline_tag == "reinforcement-learning"
    assert card.data.tags == ["reinforcement-learning", "self-play", "board-games", *games]
    assert card.data.model_name.startswith(f"{games[0]}-")
    assert card.text.lstrip().startswith(f"# {games[0]} ")


def test_written_cards_have_metadata_that_survive(folder: pathlib.Path) -> None:
    card = huggingface_hub.ModelCard.load(folder / "README.md")
    assert card.data.model_name == "puluc-family"
    again = huggingface_hub.ModelCard(str(card))
    assert again.data.to_dict() == card.data.to_dict()
    assert {path.name for path in folder.iterdir()} == set(FILES)


# -- sending ---------------------------------------------------------------------------------------------------------


class FakeHub:
    """Keeps what it is sent."""

    calls: list[tuple[str, dict[str, Any]]]

    def __init__(self) -> None:
        FakeHub.calls = []

    def create_repo(self, repo_id: str, **arguments: Any) -> None:
        FakeHub.calls.append(("create", {"repo_id": repo_id, **arguments}))

    def upload_folder(self, **arguments: Any) -> Any:
        FakeHub.calls.append(("upload", arguments))

        class Commit:
            commit_url = "https://hub/someone/puluc/commit/1"

        return Commit


def test_push(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "HfApi", FakeHub)
    assert push_to_hub(folder, "someone/puluc", private=True) == "https://hub/someone/puluc/commit/1"
    (create, created), (upload, uploaded) = FakeHub.calls
    assert (create, created) == ("create", {"repo_id": "someone/puluc", "private": True, "exist_ok": True})
    assert upload == "upload"
    assert uploaded["folder_path"] == folder
    assert set(uploaded["allow_patterns"]) == {"README.md", "checkpoint.json", "model.safetensors"}


def test_damaged_checkpoints_are_not_sent(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "HfApi", None)
    (folder / "README.md").unlink()
    with pytest.raises(CheckpointError, match="the model card is missing"):
        push_to_hub(folder, "someone/puluc")
    (folder / "model.safetensors").write_bytes(b"junk")
    with pytest.raises(CheckpointError, match="its header is cut off"):
        push_to_hub(folder, "someone/puluc")


# -- fetching --------------------------------------------------------------------------------------------------------


def test_load_agent_from_the_hub(
    folder: pathlib.Path, cache: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = fetches(monkeypatch, in_the_cache_of_the_hub(tmp_path / "home", folder))
    agent = tg.load_agent("hub:someone/puluc")
    assert isinstance(agent, NetworkAgent)
    assert agent.checkpoint.folder == cache / "tradgames_env" / "hub" / "someone--puluc" / COMMIT
    assert not any(path.is_symlink() for path in agent.checkpoint.folder.iterdir())
    position = tg.Position("puluc", "family", seed=1)
    assert agent.policy(position) == tg.load_agent(folder).policy(position)
    tg.load_agent("hub:someone/puluc@v1")
    from_hub("someone/puluc", revision="v2")
    assert [(call["repo_id"], call["revision"]) for call in asked] == [
        ("someone/puluc", None),
        ("someone/puluc", "v1"),
        ("someone/puluc", "v2"),
    ]
    assert all(set(call["allow_patterns"]) == set(FILES) for call in asked)
    assert [path.name for path in agent.checkpoint.folder.parent.iterdir()] == [COMMIT]


def test_what_comes_from_the_hub_is_checked(
    folder: pathlib.Path, cache: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite_record(folder, lambda record: record.update(encoder_version=99))
    fetches(monkeypatch, in_the_cache_of_the_hub(tmp_path / "home", folder))
    with pytest.raises(CheckpointError, match="version 99 of the encoder"):
        tg.load_agent("hub:someone/puluc")
    shutil.rmtree(cache)
    (tmp_path / "empty").mkdir()
    fetches(monkeypatch, tmp_path / "empty")
    with pytest.raises(CheckpointError, match=r"checkpoint.json: the file is missing"):
        tg.load_agent("hub:someone/puluc")


def test_offline_from_the_cache_of_the_hub(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The real library, in a process that may not use the network."""
    in_the_cache_of_the_hub(tmp_path / "home", folder)
    script = (
        "import tradgames_env as tg\n"
        "print(tg.load_agent('hub:someone/puluc').act(tg.Position('puluc', 'family', seed=1)))\n"
        "for name in ('nobody/nothing', 'no repository'):\n"
        "    try:\n"
        "        tg.load_agent(f'hub:{name}')\n"
        "    except ValueError:\n"
        "        print('misnamed')\n"
        "    except OSError:\n"
        "        print('missing')\n"
    )
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **offline},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    move, *problems = result.stdout.splitlines()
    assert move in tg.Position("puluc", "family", seed=1).legal_moves()
    assert problems == ["missing", "misnamed"]
