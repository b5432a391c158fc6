"""Files that are there whole, on the disk, or not at all, and the checkpoints that a run resumes from.

Everything is written under another name, brought to the disk, and renamed: whoever is killed meanwhile, by a signal or
a power cut, leaves what was there before. Checkpoints carry checksums; one that is damaged is passed over for the one
before it.
"""

import contextlib
import errno
import hashlib
import json
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from tradgames_env.agents.checkpoint import CheckpointError

LATEST_FILE = "latest"
CHECKSUMS_FILE = "checksums.json"
_TEMPORARY = ".tmp"
_NAME = re.compile(r"it_(\d{6,})")
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of disk space is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "there is no permission to write here",
    errno.EPERM: "there is no permission to write here",
}

T = TypeVar("T")


class StorageError(OSError):
    """Something could not be written; the message is one line, and what was written before is still there."""

    def __init__(self, path: pathlib.Path, cause: OSError) -> None:
        reason = _REASONS.get(cause.errno or 0, cause.strerror or str(cause))
        super().__init__(f"{path}: {reason}; nothing that was saved before is lost")
        self.errno = cause.errno


@contextlib.contextmanager
def _storing(path: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(path, error) from error


def write_file(path: pathlib.Path, data: bytes) -> None:
    """Write a file; one that is there is replaced as a whole.

    Raises:
        StorageError: the disk is full, or may not be written to.
    """
    temporary = path.with_name(f".{path.name}{_TEMPORARY}")
    with _storing(path):
        try:
            _write_through(temporary, data)
            os.replace(temporary, path)
        except OSError:
            # What is written of the new file only takes up room.
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def write_folder(
    folder: pathlib.Path, files: Mapping[str, bytes], may_be_replaced: Callable[[pathlib.Path], bool]
) -> None:
    """Write a folder of files; one that is there is replaced as a whole.

    Args:
        folder: where; its parent must exist.
        files: content by name.
        may_be_replaced: whether the folder found there is the caller's to replace.

    Raises:
        FileExistsError: what is there is not the caller's to replace.
        StorageError: the disk is full, or may not be written to.
    """
    with _storing(folder):
        _restore_moved_aside(folder)
    if folder.is_symlink() or (folder.exists() and not may_be_replaced(folder)):
        raise FileExistsError(f"{folder} exists and is no checkpoint; nothing was written")
    with _storing(folder), _workshop(folder) as temporary:
        for name, data in files.items():
            _write_through(temporary / name, data)
        temporary.chmod(0o755)
        _sync_folder(temporary)
        _put_in_place(temporary, folder)


@contextlib.contextmanager
def _workshop(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A temporary folder beside ``folder``, gone afterwards unless it was renamed."""
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=_TEMPORARY, dir=folder.parent))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put_in_place(temporary: pathlib.Path, folder: pathlib.Path) -> None:
    """Give the new folder its name; an old one steps aside first, since a full folder cannot be overwritten."""
    aside = _aside(folder)
    if folder.exists():
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(folder, aside)
    os.rename(temporary, folder)
    _sync_folder(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _restore_moved_aside(folder: pathlib.Path) -> None:
    """Undo a replacement that was killed between its two renames."""
    aside = _aside(folder)
    if aside.exists() and not folder.exists():
        os.rename(aside, folder)


def _aside(folder: pathlib.Path) -> pathlib.Path:
    return folder.with_name(f".{folder.name}.old")


def _write_through(path: pathlib.Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: pathlib.Path) -> None:
    # Windows cannot open folders, and needs no such call.
    with contextlib.suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(folder: pathlib.Path) -> None:
    """Remove from a folder what killed processes had begun to write there; nobody else may be writing."""
    for path in folder.glob(f".*{_TEMPORARY}"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class Checkpoints:
    """The checkpoints of one run: folders ``it_000123`` of files with their checksums, and the name of the newest.

    One process writes; any number may read.

    Args:
        folder: where; made by the first ``save``.
        keep: how many of the newest are kept.
        every: a checkpoint whose iteration is a multiple of it is kept for good; None keeps none.
    """

    def __init__(self, folder: pathlib.Path, keep: int = 3, every: int | None = None) -> None:
        self._folder = folder
        self._keep = keep
        self._every = every

    def iterations(self) -> list[int]:
        """Iterations of which a checkpoint is there, in rising order."""
        if not self._folder.is_dir():
            return []
        names = (_NAME.fullmatch(path.name) for path in self._folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def path(self, iteration: int) -> pathlib.Path:
        """The folder of an iteration's checkpoint."""
        return self._folder / f"it_{iteration:06d}"

    def save(self, iteration: int, files: Mapping[str, bytes]) -> pathlib.Path:
        """Write a checkpoint, then remove those that are no longer kept.

        Args:
            iteration: its number; a checkpoint of this number is replaced, those of later ones are removed: a run
                that went back to an earlier checkpoint makes them again.
            files: content by name.

        Returns:
            Its folder.

        Raises:
            StorageError: the disk is full, or may not be written to.
        """
        with _storing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self._folder)
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        checksums = (json.dumps(sums, indent=2) + "\n").encode()
        folder = self.path(iteration)
        write_folder(folder, {**files, CHECKSUMS_FILE: checksums}, lambda found: True)
        write_file(self._folder / LATEST_FILE, f"{folder.name}\n".encode())
        self._prune(iteration)
        return folder

    def load(self, read: Callable[[Mapping[str, bytes]], T], say: Callable[[str], None]) -> tuple[int, T]:
        """What ``read`` makes of the newest checkpoint that is whole.

        Args:
            read: gets the content by name; raises CheckpointError, saying why, where it cannot be used.
            say: gets one line for each checkpoint passed over.

        Returns:
            The iteration, and what ``read`` gave.

        Raises:
            CheckpointError: there is none that can be used.
        """
        problems: list[str] = []
        for iteration in reversed(self.iterations()):
            try:
                result = read(_checked(self.path(iteration)))
            except CheckpointError as error:
                problems.append(f"{self.path(iteration)}: {error}")
                continue
            for problem in problems:
                say(f"{problem}; going back to the checkpoint before it")
            return iteration, result
        if problems:
            raise CheckpointError(f"{problems[0]}; start without resume")
        raise CheckpointError(f"{self._folder}: there is no saved state to resume from; start without resume")

    def _prune(self, newest: int) -> None:
        past = [iteration for iteration in self.iterations() if iteration <= newest]
        kept = {iteration for iteration in past if self._every and iteration % self._every == 0}
        kept.update(past[-self._keep :])
        for iteration in set(self.iterations()) - kept:
            shutil.rmtree(self.path(iteration), ignore_errors=True)


def _checked(folder: pathlib.Path) -> dict[str, bytes]:
    """The content of a checkpoint by name, once its checksums agree."""
    try:
        sums = json.loads((folder / CHECKSUMS_FILE).read_bytes())
        files = {name: (folder / name).read_bytes() for name in sums}
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"it cannot be read ({error})") from None
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != sums[name]:
            raise CheckpointError(f"{name} is damaged, its checksum is not the one noted")
    return files
