"""Checkpoints on the Hugging Face hub: a checkpoint folder is a model repository as it stands.

Its ``README.md`` is the model card. What comes from the hub is checked like any other checkpoint, and runs no code.
"""

import os
import pathlib
import shutil
import tempfile

import huggingface_hub
import platformdirs

from tradgames_env.agents.checkpoint import RECORD_FILE, WEIGHTS_FILE, CheckpointError, read_checkpoint

CARD_FILE = "README.md"
FILES = (RECORD_FILE, WEIGHTS_FILE, CARD_FILE)
"""What a repository holds; nothing else is sent or fetched."""


def push_to_hub(
    folder: str | os.PathLike[str], repo_id: str, *, private: bool = False, message: str = "Upload checkpoint"
) -> str:
    """Send a checkpoint to the hub; the repository is made if it is not there.

    Args:
        folder: the checkpoint.
        repo_id: "USER/REPO".
        private: whether a repository that is made is private.
        message: of the commit.

    Returns:
        The address of the commit.

    Raises:
        CheckpointError: the folder cannot be used; nothing was sent.
        ValueError: ``repo_id`` cannot be a repository.
        OSError: the hub cannot be reached, or refuses; a token is found as ``huggingface_hub`` says.
    """
    folder = pathlib.Path(folder)
    read_checkpoint(folder)
    if not (folder / CARD_FILE).is_file():
        raise CheckpointError(f"{folder / CARD_FILE}: the model card is missing; give a whole checkpoint folder")
    hub = huggingface_hub.HfApi()
    hub.create_repo(repo_id, private=private, exist_ok=True)
    commit = hub.upload_folder(repo_id=repo_id, folder_path=folder, allow_patterns=list(FILES), commit_message=message)
    return str(commit.commit_url)


def from_hub(repo_id: str, *, revision: str | None = None) -> pathlib.Path:
    """Fetch a checkpoint from the hub, or from the cache of ``huggingface_hub`` when it is offline.

    Args:
        repo_id: "USER/REPO", or "USER/REPO@REVISION".
        revision: branch, tag or commit; the main branch when None.

    Returns:
        The folder, with plain files, in the cache of the user; one for each commit.

    Raises:
        CheckpointError: a file is missing, or the checkpoint is damaged or made for another version.
        ValueError: ``repo_id`` cannot be a repository.
        OSError: the hub cannot be reached, or has no such repository or revision.
    """
    name, _, after = repo_id.partition("@")
    fetched = huggingface_hub.snapshot_download(name, revision=revision or after or None, allow_patterns=list(FILES))
    folder = _plain_copy(pathlib.Path(fetched), name.replace("/", "--"))
    read_checkpoint(folder)
    return folder


def _plain_copy(snapshot: pathlib.Path, name: str) -> pathlib.Path:
    """A copy of a snapshot, whose files are links; its last part is the commit."""
    folder = platformdirs.user_cache_path("tradgames_env") / "hub" / name / snapshot.name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", suffix=".tmp", dir=folder.parent) as temporary:
        copied = pathlib.Path(temporary) / "copy"
        copied.mkdir()
        for file in FILES:
            if (snapshot / file).is_file():
                shutil.copyfile(snapshot / file, copied / file)
        # Another process may have been faster; its copy is as good.
        if not folder.is_dir():
            os.rename(copied, folder)
    return folder
