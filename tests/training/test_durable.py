import errno
import os
import pathlib
import shutil
from collections.abc import Mapping

import pytest

from tradgames_env.agents.checkpoint import CheckpointError
from training import durable
from training.durable import Checkpoints, StorageError, write_file


def read(files: Mapping[str, bytes]) -> bytes:
    return files["state"]


def silent(line: str) -> None:
    raise AssertionError(line)


def names(folder: pathlib.Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_replaced_whole(tmp_path: pathlib.Path) -> None:
    for data in (b"one", b"two"):
        write_file(tmp_path / "f", data)
        assert (tmp_path / "f").read_bytes() == data
    assert names(tmp_path) == {"f"}


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "there is no permission to write here"),
    ],
)
def test_a_failed_write_says_why_and_loses_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    checkpoints = Checkpoints(tmp_path / "ckpt")
    checkpoints.save(1, {"state": b"one"})
    write_file(tmp_path / "f", b"one")

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StorageError, match=f"f: {reason}; nothing that was saved before is lost") as caught:
            write_file(tmp_path / "f", b"two")
        assert caught.value.errno == number
        assert "\n" not in str(caught.value)
        with pytest.raises(StorageError, match=f"it_000002: {reason}"):
            checkpoints.save(2, {"state": b"two"})
    assert (tmp_path / "f").read_bytes() == b"one"
    assert names(tmp_path) == {"f", "ckpt"}
    assert names(tmp_path / "ckpt") == {"it_000001", "latest"}
    assert checkpoints.load(read, silent) == (1, b"one")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="everything is permitted to root")
def test_a_folder_without_permission(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="no permission"):
        Checkpoints(tmp_path / "ckpt").save(1, {"state": b"one"})
    tmp_path.chmod(0o700)


def test_the_newest_and_every_kth_are_kept(tmp_path: pathlib.Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=3, every=4)
    for iteration in range(1, 12):
        folder = checkpoints.save(iteration, {"state": b"%d" % iteration})
        assert (tmp_path / "latest").read_text() == f"{folder.name}\n"
    assert checkpoints.iterations() == [4, 8, 9, 10, 11]
    assert checkpoints.load(read, silent) == (11, b"11")


def test_nothing_to_resume_from(tmp_path: pathlib.Path) -> None:
    with pytest.raises(CheckpointError, match="no saved state to resume from"):
        Checkpoints(tmp_path / "missing").load(read, silent)


@pytest.mark.parametrize("damage", ["bit", "cut", "missing", "sums", "unusable"])
def test_a_damaged_newest_falls_back(tmp_path: pathlib.Path, damage: str) -> None:
    checkpoints = Checkpoints(tmp_path)
    for iteration in (1, 2, 3):
        checkpoints.save(iteration, {"state": b"content %d" % iteration})
    state = tmp_path / "it_000003" / "state"
    if damage == "bit":
        state.write_bytes(b"content 2")
    elif damage == "cut":
        state.write_bytes(b"")
    elif damage == "missing":
        state.unlink()
    elif damage == "sums":
        (tmp_path / "it_000003" / "checksums.json").write_text("[")

    def usable(files: Mapping[str, bytes]) -> bytes:
        if damage == "unusable" and files["state"].endswith(b"3"):
            raise CheckpointError("it does not fit")
        return files["state"]

    lines: list[str] = []
    assert checkpoints.load(usable, lines.append) == (2, b"content 2")
    (line,) = lines
    assert line.endswith("going back to the checkpoint before it")
    assert "\n" not in line


def test_going_back_drops_what_came_later(tmp_path: pathlib.Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for iteration in (1, 2, 3):
        checkpoints.save(iteration, {"state": b"before"})
    shutil.rmtree(tmp_path / "it_000003")
    checkpoints.save(2, {"state": b"after"})
    assert checkpoints.iterations() == [1, 2]
    assert checkpoints.load(read, silent) == (2, b"after")


def test_leftovers_of_a_killed_process_are_ignored_and_removed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"state": b"one"})
    (tmp_path / ".it_000002.abc.tmp").mkdir()
    (tmp_path / ".it_000002.abc.tmp" / "state").write_bytes(b"half")
    (tmp_path / ".latest.tmp").write_bytes(b"it_")
    assert checkpoints.load(read, silent) == (1, b"one")
    checkpoints.save(2, {"state": b"two"})
    assert names(tmp_path) == {"it_000001", "it_000002", "latest"}


def test_files_reach_the_disk_before_they_get_their_name(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    for module, name in ((os, "fsync"), (os, "rename"), (os, "replace")):
        real = getattr(module, name)

        def recorded(*arguments: object, name: str = name, real: object = real) -> None:
            events.append(name)
            real(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(module, name, recorded)
    durable.write_folder(tmp_path / "c", {"a": b"a", "b": b"b"}, lambda folder: True)
    assert events == ["fsync", "fsync", "fsync", "rename", "fsync"]
    events.clear()
    write_file(tmp_path / "f", b"f")
    assert events == ["fsync", "replace", "fsync"]
