"""The samples that are learned from: one file for each iteration, the newest of which form a window.

A sample is a position with what its game and its search told of it. Files never change; a run that goes on reads them
again.

=============  ====================  ==================================================================================
features       (n, F) float16        what the mover sees, as far as it differs between the game's positions
actions        (n, K) int16          the legal actions, in no order, then -1; all -1 where there is no policy to learn
probabilities  (n, K) float16        of these, after the search
weights        (n,) float32          how much the policy is learned from; 0 where it is not
results        (n,) float32          wins less losses that the mover expects, in [-1, 1]
draws          (n,) float32          the draws among them, in [0, 1]
margins        (n,) float32          by how much the mover's margin will change, as a share of its scale
=============  ====================  ==================================================================================

Samples for alpha-beta's evaluation are ``results`` and ``states`` (n, S) int16 alone.
"""

import concurrent.futures
import hashlib
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tradgames_env.agents.checkpoint import CheckpointError
from training.durable import write_file

Arrays = dict[str, NDArray[Any]]
LISTS: Mapping[str, int] = {"actions": -1, "probabilities": 0}
"""Arrays whose rows are lists, and what stands behind the end of one."""


def policy_weights(taught: NDArray[np.bool_], surprises: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """(n,) float32 with a mean of 1 over the samples whose policies are learned from, 0 for the others.

    Args:
        taught: (n,), the policy is learned from.
        surprises: (n,), how far the search moved the policy.
        share: of the weight that is given out by surprise; the rest is equal.
    """
    mean = float(surprises[taught].mean()) if taught.any() else 0.0
    relative = np.maximum(surprises, 0) / mean if mean > 0.0 else np.ones_like(surprises)
    return np.where(taught, 1.0 - share + share * relative, 0.0).astype(np.float32)


def merge(parts: Sequence[Arrays]) -> Arrays:
    """The samples of several parts, in their order; lists of actions are made equally long."""
    width = max((part["actions"].shape[1] for part in parts if "actions" in part), default=0)
    return {name: np.concatenate([_widened(name, part[name], width) for part in parts]) for name in parts[0]}


def _widened(name: str, array: NDArray[Any], width: int) -> NDArray[Any]:
    if name not in LISTS:
        return array
    missing = width - array.shape[1]
    return np.pad(array, ((0, 0), (0, missing)), constant_values=LISTS[name])


def _write(path: pathlib.Path, samples: Arrays) -> str:
    """Write samples to a file; returns its SHA-256."""
    data = safetensors.numpy.save(samples)
    write_file(path, data)
    return hashlib.sha256(data).hexdigest()


class Replay:
    """The files and the window, which is kept in memory as rings of arrays.

    Files are written by a thread, so that learning goes on meanwhile; who needs them on the disk calls ``settle``.

    Args:
        folder: of the files.
        capacity: samples the window may ever hold; files that no window reaches any more are removed.
    """

    def __init__(self, folder: pathlib.Path, capacity: int) -> None:
        self._folder = folder
        self._capacity = capacity
        self._rings: Arrays = {}
        self._total = 0
        self._sizes: dict[int, int] = {}
        self._checksums: dict[int, str] = {}
        self._writer = concurrent.futures.ThreadPoolExecutor(1)
        self._writing: dict[int, concurrent.futures.Future[str]] = {}

    def __len__(self) -> int:
        """Samples in memory."""
        return min(self._total, self._capacity)

    def add(self, iteration: int, samples: Arrays) -> None:
        """Take up the samples of an iteration, and begin to write them.

        Args:
            iteration: its number, higher than those before.
            samples: arrays by name, see above; they may not be changed any more.

        Raises:
            StorageError: those before could not be written, the disk is full or may not be written to.
        """
        self.settle()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._writing[iteration] = self._writer.submit(_write, self._path(iteration), samples)
        self._take(iteration, samples)

    def settle(self) -> None:
        """Wait until everything is on the disk.

        Raises:
            StorageError: the disk is full, or may not be written to.
        """
        for iteration, writing in self._writing.items():
            self._checksums[iteration] = writing.result()
        self._writing = {}

    def close(self) -> None:
        """Let the thread go, once everything is on the disk."""
        self._writer.shutdown()

    def follow(self, iteration: int) -> None:
        """Take up the samples of an iteration that another process has added."""
        data = self._path(iteration).read_bytes()
        self._checksums[iteration] = hashlib.sha256(data).hexdigest()
        self._take(iteration, safetensors.numpy.load(data))

    def _take(self, iteration: int, samples: Arrays) -> None:
        """Put samples into the rings, in place of the oldest; more than these hold leave only their newest."""
        count = len(samples["results"])
        self._sizes[iteration] = count
        self._widen(samples)
        kept = min(count, self._capacity)
        places = np.arange(self._total + count - kept, self._total + count) % self._capacity
        for name, array in samples.items():
            ring = self._rings[name]
            if name in LISTS:
                ring[places, array.shape[1] :] = LISTS[name]
                ring[places, : array.shape[1]] = array[count - kept :]
            else:
                ring[places] = array[count - kept :]
        self._total += count

    def _widen(self, samples: Arrays) -> None:
        """Make rings for such samples, or longer lists in those that are there."""
        for name, array in samples.items():
            ring = self._rings.get(name)
            if ring is None:
                self._rings[name] = np.zeros((self._capacity, *array.shape[1:]), array.dtype)
            elif name in LISTS and array.shape[1] > ring.shape[1]:
                self._rings[name] = _widened(name, ring, array.shape[1])

    def newest(self) -> int:
        """Samples of the newest iteration, 0 before the first one."""
        return self._sizes[max(self._sizes)] if self._sizes else 0

    def forget(self, oldest: int) -> None:
        """Let go of the files that no window reaches any more.

        Args:
            oldest: the earliest iteration after which the run may still have to go on: its window stays whole.
        """
        sizes = {iteration: size for iteration, size in self._sizes.items() if iteration <= oldest}
        reached = sum(sizes.values())
        for iteration, size in sizes.items():
            reached -= size
            if reached < self._capacity:
                break
            self.settle()
            del self._sizes[iteration], self._checksums[iteration]
            self._path(iteration).unlink(missing_ok=True)

    def checksums(self) -> dict[str, str]:
        """SHA-256 of every file that is kept, all of which are on the disk then."""
        self.settle()
        return {str(iteration): checksum for iteration, checksum in self._checksums.items()}

    def restore(self, iteration: int, checksums: Mapping[str, str]) -> None:
        """Read the files of a run that goes on after an iteration; those of later ones are removed.

        Args:
            iteration: the last one that counts.
            checksums: as they were then; of files since forgotten as well.

        Raises:
            CheckpointError: a file is missing or damaged.
        """
        known = sorted(map(int, checksums))
        found = {int(path.stem.removeprefix("it_")) for path in self._folder.glob("it_*.safetensors")}
        kept = [number for number in known if number in found]
        self._checksums = {number: checksums[str(number)] for number in kept}
        self._rings, self._sizes, self._total = {}, {}, 0
        for number in kept:
            self._take(number, self._read(number))
        # Only the earliest are ever forgotten, and only when the others fill the window.
        if kept != known[len(known) - len(kept) :] or (len(kept) < len(known) and self._total < self._capacity):
            raise CheckpointError(f"samples are missing in {self._folder}")
        for number in found:
            if number > iteration:
                self._path(number).unlink(missing_ok=True)

    def draw(self, rng: np.random.Generator, count: int, window: int) -> Arrays:
        """Samples drawn evenly, with repetition, from the newest ``window`` ones.

        Args:
            rng: draws them.
            count: how many.
            window: newest samples to draw from, or all there are.
        """
        reach = min(window, len(self))
        rows = (self._total - reach + rng.integers(0, reach, count)) % self._capacity
        return {name: ring.take(rows, axis=0) for name, ring in self._rings.items()}

    def _path(self, iteration: int) -> pathlib.Path:
        return self._folder / f"it_{iteration:06d}.safetensors"

    def _read(self, iteration: int) -> Arrays:
        path = self._path(iteration)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read ({error.strerror})") from None
        if hashlib.sha256(data).hexdigest() != self._checksums[iteration]:
            raise CheckpointError(f"{path} is damaged, its checksum is not the one noted")
        arrays: Arrays = safetensors.numpy.load(data)
        return arrays
