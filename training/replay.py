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
    if name not in ("actions", "probabilities"):
        return array
    missing = width - array.shape[1]
    return np.pad(array, ((0, 0), (0, missing)), constant_values=-1 if name == "actions" else 0)


class Replay:
    """The files and the window, which is kept in memory.

    Args:
        folder: of the files.
        capacity: samples the window may ever hold; files that no window reaches any more are removed.
    """

    def __init__(self, folder: pathlib.Path, capacity: int) -> None:
        self._folder = folder
        self._capacity = capacity
        self._parts: list[tuple[int, Arrays]] = []
        self._checksums: dict[int, str] = {}

    def __len__(self) -> int:
        """Samples in memory."""
        return sum(len(samples["results"]) for _, samples in self._parts)

    def add(self, iteration: int, samples: Arrays) -> None:
        """Write the samples of an iteration, and let go of what is too old.

        Args:
            iteration: its number, higher than those before.
            samples: arrays by name, see above.

        Raises:
            StorageError: the disk is full, or may not be written to.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        data = safetensors.numpy.save(samples)
        write_file(self._path(iteration), data)
        self._take(iteration, data, samples)

    def follow(self, iteration: int) -> None:
        """Take up the samples of an iteration that another process has added."""
        data = self._path(iteration).read_bytes()
        self._take(iteration, data, safetensors.numpy.load(data))

    def _take(self, iteration: int, data: bytes, samples: Arrays) -> None:
        self._parts.append((iteration, samples))
        self._checksums[iteration] = hashlib.sha256(data).hexdigest()

    def newest(self) -> int:
        """Samples of the newest iteration, 0 before the first one."""
        return len(self._parts[-1][1]["results"]) if self._parts else 0

    def forget(self, oldest: int) -> None:
        """Let go of the files that no window reaches any more.

        Args:
            oldest: the earliest iteration after which the run may still have to go on: its window stays whole.
        """
        sizes = [len(samples["results"]) for iteration, samples in self._parts if iteration <= oldest]
        reached = sum(sizes)
        for size in sizes:
            reached -= size
            if reached < self._capacity:
                break
            iteration, _ = self._parts.pop(0)
            del self._checksums[iteration]
            self._path(iteration).unlink(missing_ok=True)

    def checksums(self) -> dict[str, str]:
        """SHA-256 of the file of each iteration whose samples are in memory."""
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
        self._parts = [(number, self._read(number)) for number in kept]
        # Only the earliest are ever forgotten, and only when the others fill the window.
        if kept != known[len(known) - len(kept) :] or (len(kept) < len(known) and len(self) < self._capacity):
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
        sizes = [len(samples["results"]) for _, samples in self._parts]
        starts = np.cumsum([0, *sizes])
        total = int(starts[-1])
        rows = rng.integers(max(0, total - window), total, count)
        drawn: list[tuple[NDArray[np.int64], Arrays]] = []
        for start, size, (_, samples) in zip(starts, sizes, self._parts, strict=False):
            places = np.flatnonzero((rows >= start) & (rows < start + size))
            if len(places):
                drawn.append((places, {name: samples[name][rows[places] - start] for name in samples}))
        order = np.argsort(np.concatenate([places for places, _ in drawn]))
        return {name: array[order] for name, array in merge([samples for _, samples in drawn]).items()}

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
