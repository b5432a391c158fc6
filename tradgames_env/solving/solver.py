"""Solving a ruleset: what it takes, the run itself, which can be stopped and goes on where it was, and the table.

While a table is made, its folder holds ``partial/``: ``run.json`` says what is being solved, ``layer-N.npy`` holds the
values of a finished layer, ``layer-N-unfinished.npy`` those of the one in work, written every minute and when the run
is stopped. ``run.json`` also holds checksums of these files; what is not as it says is solved anew. While a run works,
it holds a lock on ``partial/lock``.
"""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import shutil
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tradgames_env.processors import cores
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.solving import retrograde
from tradgames_env.solving.expectation import Expectation, Keep, Stage
from tradgames_env.solving.indexing import PositionIndex, TableError, load_index, telling_options
from tradgames_env.solving.table import (
    DISTANCE,
    EXPECTATION,
    FIXED_POINT,
    HOLE,
    PARTIAL_FOLDER,
    Table,
    check_ours,
    describe,
    kind_of,
    map_array,
    read_small,
    table_folder,
    write_array,
    write_table,
    write_text,
)

SMALL = {EXPECTATION: 200_000, DISTANCE: 2_000_000}
"""Positions that are solved on the spot, in seconds, where a table is wanted and none was made."""
COARSE = 500_000_000
"""Positions from which on a table of expectations is kept in 16 bits each."""
TOLERANCE = 1e-6
SAVE_SECONDS = 60.0

_RUN_FILE, _LOCK_FILE = "run.json", "lock"

_GIB = 2**30
_PROGRAM_BYTES = 200_000_000
"""Of Python and the compiled code."""
_POSITION_SECONDS = {Keep.VALUES: 80e-6, Keep.MOVES: 30e-6, Keep.SUCCESSORS: 8e-6}
"""Of one core, for a first guess: 25 steps over all moves, or 10 of them and 80 others; the rules take 3 us."""
_DISTANCE_SECONDS = 5e-6
"""Of one core for a position whose distance is found."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What solving takes.

    Attributes:
        positions: numbers in the index, holes included.
        layers: parts that are solved one after the other.
        table_bytes: of the finished values on disk.
        peak_bytes: of memory while solving.
        seconds: a rough guess.
        keep: what stays in memory of the layer in work.
    """

    positions: int
    layers: int
    table_bytes: int
    peak_bytes: int
    seconds: float
    keep: Keep


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        layer: name of the layer in work.
        done: positions solved, of ``count``.
        residual: of the layer in work; infinite while its successors are listed, 0 where values are exact.
        seconds: that the run has taken, earlier runs included.
        left: seconds it may still take, None where nothing is known yet.
        what: one line for people.
    """

    layer: str
    done: int
    count: int
    residual: float
    seconds: float
    left: float | None
    what: str


def plan(
    ruleset: Ruleset, part: str | None = None, *, memory: int | None = None, num_threads: int | None = None
) -> Plan:
    """What solving a ruleset, or a part of it, takes.

    Args:
        ruleset: the game.
        part: a part of it; all of it when None.
        memory: bytes that may be used; what is free now when None.
        num_threads: all cores of the process when None.

    Raises:
        TableError: the ruleset cannot be solved, or not in so much memory.
    """
    index = load_index(ruleset, part)
    limit = free_memory() if memory is None else memory
    if kind_of(index) == DISTANCE:
        largest = max(layer.end - layer.begin for layer in index.layers)
        peak = _PROGRAM_BYTES + _work_type(index).itemsize * (index.count + largest) + index.tables.nbytes
        _check_fits(ruleset, index, part, peak, limit)
        seconds = index.count * _DISTANCE_SECONDS / (num_threads or cores())
        return Plan(index.count, len(index.layers), _dtype(index).itemsize * index.count, peak, seconds, Keep.VALUES)
    always = _PROGRAM_BYTES + 4 * index.count + index.tables.nbytes
    packing = 0 if _dtype(index) == _work_type(index) else _dtype(index).itemsize * index.count
    _check_fits(ruleset, index, part, always + packing, limit)
    # Sampling reads values, whatever they are; zeros that nobody writes take no memory.
    method = Expectation(ruleset, index, np.zeros(index.count, np.float32))
    largest = max(layer.end - layer.begin for layer in index.layers)
    # Values are packed when the last layer is done, so the two do not add up.
    peaks = {keep: always + max(packing, int(largest * size)) for keep, size in method.bytes_kept().items()}
    keep = max(keep for keep, peak in peaks.items() if peak <= limit)
    seconds = index.count * _POSITION_SECONDS[keep] / (num_threads or cores())
    return Plan(index.count, len(index.layers), _dtype(index).itemsize * index.count, peaks[keep], seconds, keep)


def _check_fits(ruleset: Ruleset, index: PositionIndex, part: str | None, needed: int, limit: int) -> None:
    if needed > limit:
        advice = "" if part or index.a_part is None else f"; parts of it can be solved, such as {index.a_part!r}"
        raise TableError(
            f"solving {ruleset.label} needs {needed / _GIB:,.1f} GiB of memory for {index.count:,} positions, "
            f"and {limit / _GIB:.1f} GiB may be used{advice}"
        )


def is_small(index: PositionIndex) -> bool:
    """Whether it is a matter of seconds to solve an index."""
    return index.count <= SMALL[kind_of(index)]


def solve(
    ruleset: Ruleset,
    part: str | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    tolerance: float = TOLERANCE,
    memory: int | None = None,
    num_threads: int | None = None,
    report: Callable[[Progress], None] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Table:
    """Solve a ruleset, or a part of it, and keep the table; go on where an earlier run of the same was stopped.

    Args:
        ruleset: the game.
        part: a part of it; all of it when None.
        folder: of the table; the one where ``find_table`` looks when None.
        tolerance: largest change of a value in one more step at which a layer is done.
        memory: bytes that may be used; what is free now when None.
        num_threads: all cores of the process when None.
        report: called now and then with how far it is. What it raises stops the run, as Ctrl-C does, after saving.
        provenance: of the run, for the table's header; seconds and peak memory are added.

    Raises:
        TableError: the ruleset cannot be solved, or not in so much memory; the folder holds what is no part of a table;
            or another process is solving there.
        OSError: the disk is full or cannot be written to.
    """
    index = load_index(ruleset, part)
    planned = plan(ruleset, part, memory=memory, num_threads=num_threads)
    # Without links and dots, so that its parent is where it will be replaced.
    folder = pathlib.Path(os.path.abspath(table_folder(ruleset, index, part) if folder is None else folder))
    check_ours(folder)
    with _locked(folder / PARTIAL_FOLDER, ruleset):
        run = _Run(ruleset, index, part, folder, tolerance, report)
        residual = run.solve(keep=planned.keep, num_threads=num_threads)
        values = _packed(index, run.values)
        if values.dtype == np.uint16:
            residual += 0.5 / FIXED_POINT
        notes = {**(provenance or {}), "seconds": round(run.seconds(), 3), "peak_bytes": peak_memory()}
        write_table(folder, describe(ruleset, index, part, values, residual, notes), values)
    return Table.open(folder, ruleset)


@contextlib.contextmanager
def _locked(partial: pathlib.Path, ruleset: Ruleset) -> Iterator[None]:
    """Keep other processes from working in ``partial``, which is made; the system lets go when a process dies.

    Raises:
        TableError: another process is at work there.
    """
    if partial.is_symlink() or partial.is_file():
        partial.unlink()
    partial.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        yield
        return
    import fcntl

    path = partial / _LOCK_FILE
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who held it a moment ago may just have put the finished table in place of the folder.
            ours = os.path.samestat(os.fstat(file.fileno()), os.stat(path))
        except (BlockingIOError, FileNotFoundError):
            ours = False
        if not ours:
            raise TableError(f"another process is solving {ruleset.label} in {partial.parent}; wait for it to end")
        yield


def solve_in_memory(ruleset: Ruleset, part: str | None = None) -> Table:
    """Solve a small ruleset, or part of it, in seconds; nothing is written.

    Raises:
        TableError: it cannot be solved.
    """
    index = load_index(ruleset, part)
    values = np.zeros(index.count, _work_type(index))
    method: _Method
    if kind_of(index) == DISTANCE:
        method = retrograde.Retrograde(ruleset, index, values)
    else:
        method = Expectation(ruleset, index, values, tolerance=TOLERANCE)
    residual = max(method.solve_layer(number) for number in range(len(index.layers)))
    return Table(ruleset, index, describe(ruleset, index, part, values, residual, {}), values)


_Method = Expectation | retrograde.Retrograde


class _Run:
    """One run of ``solve``: the values, what is on disk of them, and the clock."""

    def __init__(
        self, ruleset: Ruleset, index: PositionIndex, part: str | None, folder: pathlib.Path, tolerance: float,
        report: Callable[[Progress], None] | None,
    ) -> None:  # fmt: skip
        self.ruleset = ruleset
        self.index = index
        self.values: NDArray[Any] = np.zeros(index.count, _work_type(index))
        self._partial = folder / PARTIAL_FOLDER
        self._tolerance = tolerance
        self._report = report
        self._began = time.monotonic()
        self._saved = self._began
        self._record = _Record([], [], 0.0)
        self._identity = {
            "options": telling_options(ruleset, index),
            "part": part,
            "rules_version": ruleset.rules.version,
            "index": [index.name, index.version, index.count],
            "tolerance": tolerance,
        }
        self._pace = _Pace()
        self._resume()

    def seconds(self) -> float:
        """Seconds the run has taken, earlier runs included."""
        return self._record.seconds + time.monotonic() - self._began

    def solve(self, *, keep: Keep, num_threads: int | None) -> float:
        """Solve the layers that are not done; return the residual of the whole."""
        method = self._method(keep, num_threads)
        for number in range(len(self._record.layers), len(self.index.layers)):
            with self._saving_if_stopped(number):
                residual = method.solve_layer(number)
            self._save_finished(number, residual)
        return max(residual for residual, _ in self._record.layers)

    def _method(self, keep: Keep, num_threads: int | None) -> _Method:
        if kind_of(self.index) == DISTANCE:
            return retrograde.Retrograde(
                self.ruleset, self.index, self.values, num_threads=num_threads, report=self._hear_wave
            )
        return Expectation(
            self.ruleset, self.index, self.values, tolerance=self._tolerance, num_threads=num_threads,
            keep=keep, report=self._hear,
        )  # fmt: skip

    def _resume(self) -> None:
        """Take over what an earlier run of the same left, as far as it is whole; remove all else that is there."""
        known = {_LOCK_FILE}
        earlier = _Record.read(self._partial / _RUN_FILE, self._identity, len(self.index.layers))
        if earlier is not None:
            known.add(_RUN_FILE)
            self._record.seconds = earlier.seconds
            for number, (residual, checksum) in enumerate(earlier.layers):
                if not self._load(number, self._path(number), [checksum]):
                    break
                self._record.layers.append((residual, checksum))
                known.add(self._path(number).name)
            number = len(self._record.layers)
            unfinished = self._path(number, unfinished=True)
            if number < len(self.index.layers) and self._load(number, unfinished, earlier.unfinished):
                self._record.unfinished = earlier.unfinished
                known.add(unfinished.name)
        for path in self._partial.iterdir():
            if path.name not in known:
                _remove(path)

    def _load(self, number: int, path: pathlib.Path, checksums: Sequence[int]) -> bool:
        """Read the values of a layer; False where they are not there, whole and with one of the checksums."""
        layer = self.index.layers[number]
        try:
            values = map_array(path, self.values.dtype, layer.end - layer.begin)
        except TableError:
            return False
        if zlib.crc32(values.data) not in checksums:
            return False
        self.values[layer.begin : layer.end] = values
        return True

    def _layer_values(self, number: int) -> NDArray[Any]:
        layer = self.index.layers[number]
        return self.values[layer.begin : layer.end]

    def _save_finished(self, number: int, residual: float) -> None:
        values = self._layer_values(number)
        write_array(self._path(number), values)
        self._record.layers.append((residual, zlib.crc32(values.data)))
        self._record.unfinished = []
        self._save_record()
        self._path(number, unfinished=True).unlink(missing_ok=True)

    def _save_unfinished(self, number: int) -> None:
        values = self._layer_values(number)
        # Said before it is done: whichever of the two files a crash leaves, its checksum is known.
        self._record.unfinished = [*self._record.unfinished[-1:], zlib.crc32(values.data)]
        self._save_record()
        write_array(self._path(number, unfinished=True), values)

    def _save_record(self) -> None:
        record = dataclasses.replace(self._record, seconds=self.seconds())
        record.write(self._partial / _RUN_FILE, self._identity)
        self._saved = time.monotonic()

    @contextlib.contextmanager
    def _saving_if_stopped(self, number: int) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._save_unfinished(number)
            raise

    def _path(self, number: int, *, unfinished: bool = False) -> pathlib.Path:
        return self._partial / f"layer-{number}{'-unfinished' * unfinished}.npy"

    def _hear(self, stage: Stage) -> None:
        """Between two steps of the method: save now and then, and tell."""
        if stage.steps:
            self._save_now_and_then(stage.layer)
        listing = f"successors {stage.listed:.0%}"
        what = f"step {stage.steps}, residual {stage.residual:.1e}" if stage.steps else listing
        self._tell(stage.layer, self._pace.share(stage, self._tolerance), stage.residual, what)

    def _hear_wave(self, stage: retrograde.Stage) -> None:
        """As ``_hear``, of distances. What looking ahead found can only be used when it is complete."""
        if stage.wave:
            self._save_now_and_then(stage.layer)
        back = f"{stage.wave} of {stage.longest} moves before the end"
        what = back if stage.wave else f"one move ahead {stage.done:.0%}"
        self._tell(stage.layer, self._pace.share_of_waves(stage), 0.0, what)

    def _save_now_and_then(self, number: int) -> None:
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._save_unfinished(number)

    def _tell(self, number: int, share: float, residual: float, what: str) -> None:
        """Report, with what is known of the time: ``share`` of layer ``number`` is done."""
        if self._report is None:
            return
        layer = self.index.layers[number]
        done = layer.begin + int(share * (layer.end - layer.begin))
        seconds = self.seconds()
        left = seconds * (self.index.count - done) / done if done else None
        self._report(Progress(layer.name, done, self.index.count, residual, seconds, left, what))


@dataclasses.dataclass
class _Record:
    """What ``run.json`` says beside what is being solved.

    Attributes:
        layers: residual and CRC-32 of the values of each finished layer.
        unfinished: CRC-32 that the values of the layer in work may have on disk: the last and those being written.
        seconds: that the run has taken.
    """

    layers: list[tuple[float, int]]
    unfinished: list[int]
    seconds: float

    @classmethod
    def read(cls, path: pathlib.Path, identity: Mapping[str, Any], most_layers: int) -> Self | None:
        """What an earlier run of the same left; None if there is none, or it is damaged."""
        try:
            data = json.loads(read_small(path))
        except (ValueError, RecursionError):
            return None
        if not isinstance(data, dict) or data.keys() != {"identity", *_RECORD_FIELDS}:
            return None
        layers, unfinished, seconds = (data[name] for name in _RECORD_FIELDS)
        whole = (
            data["identity"] == identity
            and isinstance(layers, list)
            and len(layers) <= most_layers
            and all(isinstance(layer, list) and len(layer) == 2 for layer in layers)
            and all(_is_number(residual, 2.0) and _is_checksum(checksum) for residual, checksum in layers)
            and isinstance(unfinished, list)
            and all(map(_is_checksum, unfinished))
            and _is_number(seconds, _LONGEST_SECONDS)
        )
        return cls([(residual, checksum) for residual, checksum in layers], unfinished, seconds) if whole else None

    def write(self, path: pathlib.Path, identity: Mapping[str, Any]) -> None:
        write_text(path, json.dumps({"identity": identity, **dataclasses.asdict(self)}, indent=2) + "\n")


_RECORD_FIELDS = tuple(field.name for field in dataclasses.fields(_Record))
_LONGEST_SECONDS = 1e10


def _is_number(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def _is_checksum(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _remove(path: pathlib.Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


class _Pace:
    """Judges how much of a layer is done; residuals fall by about the same factor in every step."""

    _LISTING = 0.15
    """Share of the time that listing successors takes."""

    _LOOKING_AHEAD = 0.6
    """Share of the time that looking one move ahead takes, where distances are found."""

    def share_of_waves(self, stage: retrograde.Stage) -> float:
        """From 0 to 1; waves hold fewer and fewer positions."""
        if stage.wave == 0:
            return self._LOOKING_AHEAD * stage.done
        return self._LOOKING_AHEAD + (1.0 - self._LOOKING_AHEAD) * stage.wave / (stage.longest + 1)

    def share(self, stage: Stage, tolerance: float) -> float:
        """From 0 to 1."""
        if stage.steps == 0:
            return self._LISTING * stage.listed
        fallen = math.log(max(1.0, 1.0 / max(stage.residual, tolerance)))
        whole = math.log(1.0 / tolerance)
        return self._LISTING + (1.0 - self._LISTING) * (fallen / whole if whole > 0.0 else 1.0)


def _work_type(index: PositionIndex) -> np.dtype[Any]:
    """Type of values while they are worked on."""
    return np.dtype(np.int16 if kind_of(index) == DISTANCE else np.float32)


def _dtype(index: PositionIndex) -> np.dtype[Any]:
    """Type of values as they are kept."""
    if kind_of(index) == DISTANCE:
        return _work_type(index)
    return np.dtype(np.uint16 if index.count >= COARSE else np.float32)


def _packed(index: PositionIndex, values: NDArray[Any]) -> NDArray[Any]:
    """Values as they are kept."""
    if _dtype(index) == values.dtype:
        return values
    packed = np.empty(len(values), np.uint16)
    chunk = 1 << 24
    for begin in range(0, len(values), chunk):
        steps = np.rint(values[begin : begin + chunk] * FIXED_POINT) + FIXED_POINT
        packed[begin : begin + chunk] = np.clip(steps, 0, HOLE - 1)
    return packed


def free_memory() -> int:
    """Bytes of memory that are free now, as far as the system tells; a lot otherwise."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 2**62


def peak_memory() -> int | None:
    """Most bytes of memory this process has used; None where the system does not tell."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
