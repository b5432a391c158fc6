"""Tables of exact values on disk: data only, checked before it is used, mapped into memory.

A table is a folder ``<tables>/<game>/<label>/`` of two files: ``table.json`` says what it is and how it was made,
``values.npy`` holds one number a position, in the order of its index. ``<tables>`` is the environment variable
``TRADGAMES_TABLES`` or, without it, ``tables`` in the user's cache folder.

kind "expectation"
    float32: what the mover can expect before his throw, in [-1, 1]. uint16 holds the same in steps of 1/32767, with
    32767 for 0; 65535 is a hole in the numbering.
kind "distance"
    int16: 0 draw; d > 0 the mover wins in d moves of both sides, best play on both; d < 0 he loses in -d.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, Any, NoReturn, Self

import numpy as np
import platformdirs
from numpy.typing import NDArray

from tradgames_env.rules.contract import State
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.solving.indexing import PositionIndex, TableError, load_index, table_label, telling_options

FORMAT_VERSION = 1
"""Raised whenever the files of a table change in a way that older readers cannot follow."""
FOLDER_VARIABLE = "TRADGAMES_TABLES"
HEADER_FILE = "table.json"
VALUES_FILE = "values.npy"
PARTIAL_FOLDER = "partial"
"""What the folder of a table holds while it is being made."""
EXPECTATION, DISTANCE = "expectation", "distance"
DTYPES = {EXPECTATION: ("float32", "uint16"), DISTANCE: ("int16",)}
FIXED_POINT = 32767
"""Steps of 1 in a uint16 table, and what stands there for 0."""
HOLE = 65535

LONGEST = 32_000
"""No distance comes near this."""
_UNUSED = -32_767
"""From here on down an entry of a table of distances belongs to no position in which a move is due."""

_ENDINGS = "endings-"
_MOST_RESIDUAL = 2.0
_MAX_HEADER_BYTES = 1_000_000
_CHUNK = 1 << 24
_AGAIN = "make the table again with tradgames solve --again"


@dataclasses.dataclass(frozen=True)
class TableHeader:
    """What ``table.json`` says.

    Attributes:
        game: name of the game.
        variant: name of the variant it was asked for.
        part: which part of the game, None for all of it.
        options: every option on which the values depend.
        rules_version: ``GameRules.version`` it was made under.
        kind: "expectation" or "distance".
        index: name of the numbering.
        index_version: its version.
        count: positions, holes in the numbering included.
        dtype: of the values.
        residual: largest change of a value in one more step of value iteration; 0 where values are exact.
        sha256: of the bytes of the values, little-endian, lower-case hex.
        provenance: command, date, seconds, peak memory and machine of the run, for people.
        format_version: of the files themselves.
    """

    game: str
    variant: str
    part: str | None
    options: dict[str, Any]
    rules_version: int
    kind: str
    index: str
    index_version: int
    count: int
    dtype: str
    residual: float
    sha256: str
    provenance: dict[str, Any]
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """The text of ``table.json``."""
        return json.dumps(dataclasses.asdict(self), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: bytes, source: str) -> Self:
        """The header in the text of ``table.json``.

        Raises:
            TableError: not JSON, a field is missing, unknown or of the wrong type, or another format version.
        """
        try:
            data = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            _refuse(source, f"it is not readable as JSON ({error})")
        if not isinstance(data, dict):
            _refuse(source, "it does not hold a JSON object")
        if data.get("format_version") != FORMAT_VERSION:
            _refuse(source, f"format version {data.get('format_version')!r}, this package reads {FORMAT_VERSION}")
        if data.keys() != _HEADER_TYPES.keys():
            _refuse(source, f"its fields are not {', '.join(_HEADER_TYPES)}")
        for name, allowed in _HEADER_TYPES.items():
            # A truth value is an int to Python, but no number of a table.
            if not isinstance(data[name], allowed) or isinstance(data[name], bool):
                _refuse(source, f"field {name!r} has the wrong type")
        if data["kind"] not in DTYPES or data["dtype"] not in DTYPES[data["kind"]]:
            _refuse(source, f"kind {data['kind']!r} with numbers of type {data['dtype']!r} is unknown")
        if not 0 <= data["residual"] <= _MOST_RESIDUAL:
            _refuse(source, f"its residual is {data['residual']!r:.40}")
        return cls(**data)


_HEADER_TYPES: dict[str, tuple[type, ...]] = {
    "game": (str,),
    "variant": (str,),
    "part": (str, type(None)),
    "options": (dict,),
    "rules_version": (int,),
    "kind": (str,),
    "index": (str,),
    "index_version": (int,),
    "count": (int,),
    "dtype": (str,),
    "residual": (int, float),
    "sha256": (str,),
    "provenance": (dict,),
    "format_version": (int,),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Exact values of a ruleset, or of a part of it, mapped from disk or held in memory.

    Attributes:
        ruleset: the game the values belong to.
        index: what numbers its positions.
        header: what is known about the values.
        values: (count,) of ``header.dtype``; not to be written to.
        folder: where it is kept, None for one that is only in memory.
    """

    ruleset: Ruleset
    index: PositionIndex
    header: TableHeader
    values: NDArray[Any]
    folder: pathlib.Path | None = None

    @classmethod
    def open(cls, folder: str | os.PathLike[str], ruleset: Ruleset, *, verify: bool = False) -> Self:
        """The table in a folder.

        Args:
            folder: that holds the two files.
            ruleset: the game it must be made for.
            verify: also read all values, compare their checksum and see that each is one that a table can hold.

        Raises:
            TableError: anything about it is wrong; one line that names the file.
        """
        folder = pathlib.Path(folder)
        source = folder / HEADER_FILE
        header = TableHeader.from_json(read_small(source), str(source))
        if header.game != ruleset.game:
            _refuse(
                str(source), f"it was made for {header.game!r:.40}, not for {ruleset.game!r}", "give the right folder"
            )
        try:
            index = load_index(ruleset, header.part)
        except TableError as error:
            _refuse(str(source), str(error))
        _check_made_for(header, ruleset, index, str(source))
        values = map_array(folder / VALUES_FILE, np.dtype(header.dtype), header.count)
        if verify and _checksum(values) != header.sha256:
            _refuse(str(folder / VALUES_FILE), f"its checksum is not the one in {HEADER_FILE}")
        table = cls(ruleset, index, header, values, folder)
        if verify:
            table._check_values()
        return table

    def _check_values(self) -> None:
        """Refuse values that no table of this kind holds."""
        for chunk in _chunks(self.values):
            if self.header.kind == EXPECTATION:
                self.expectations(chunk[chunk != HOLE] if self.header.dtype == "uint16" else chunk)
            elif ((chunk > LONGEST) | ((chunk < -LONGEST) & (chunk > _UNUSED))).any():
                _refuse(self._source, f"it holds distances beyond {LONGEST}")

    @property
    def _source(self) -> str:
        return f"the table of {self.ruleset.label}" if self.folder is None else str(self.folder / VALUES_FILE)

    def number(self, state: State) -> int:
        """Number of a position in the index, -1 where it is not covered."""
        return int(self.index.rank(self.ruleset.params, self.index.tables, state))

    def value(self, state: State) -> float | None:
        """What the mover of a position can expect, in [-1, 1]; None where the table does not cover it.

        Args:
            state: (S,) int16, a throw due in dice games, a seat deciding in the others.

        Raises:
            TableError: what the table holds there is no such number.
        """
        number = self.number(state)
        if number < 0:
            return None
        entry = self.values[number : number + 1]
        return float(np.sign(entry[0]) if self.header.kind == DISTANCE else self.expectations(entry)[0])

    def expectations(self, entries: NDArray[Any]) -> NDArray[np.float64]:
        """Values that were read from a table of kind "expectation" as numbers in [-1, 1].

        Raises:
            TableError: one of them is none.
        """
        numbers = entries.astype(np.float64)
        if self.header.dtype == "uint16":
            numbers = (numbers - FIXED_POINT) / FIXED_POINT
        sound = np.abs(numbers) <= 1.0
        if not sound.all():
            _refuse(self._source, f"it holds the value {numbers[~sound][0]}, which is not from -1 to 1")
        return numbers

    def distance(self, state: State) -> int | None:
        """Moves to the end as kind "distance" counts them; None where not covered, or in a table of expectations."""
        number = self.number(state) if self.header.kind == DISTANCE else -1
        return None if number < 0 else int(self.values[number])


def kind_of(index: PositionIndex) -> str:
    """What a table of these positions holds: only games without dice have moves that can be looked back at."""
    return EXPECTATION if index.predecessors is None else DISTANCE


def describe(
    ruleset: Ruleset, index: PositionIndex, part: str | None, values: NDArray[Any], residual: float,
    provenance: dict[str, Any],
) -> TableHeader:  # fmt: skip
    """The header of finished values."""
    return TableHeader(
        game=ruleset.game,
        variant=ruleset.variant,
        part=part,
        options=telling_options(ruleset, index),
        rules_version=ruleset.rules.version,
        kind=kind_of(index),
        index=index.name,
        index_version=index.version,
        count=index.count,
        dtype=str(values.dtype),
        residual=residual,
        sha256=_checksum(values),
        provenance=provenance,
    )


def write_table(folder: str | os.PathLike[str], header: TableHeader, values: NDArray[Any]) -> None:
    """Write a table; the folder appears whole or not at all, and replaces one that is there.

    Raises:
        TableError: the folder holds what is no part of a table.
        OSError: the disk is full or cannot be written to.
    """
    folder = pathlib.Path(os.path.abspath(folder))
    check_ours(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    workshop = pathlib.Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        fresh = workshop / "new"
        fresh.mkdir()
        write_array(fresh / VALUES_FILE, values)
        write_text(fresh / HEADER_FILE, header.to_json())
        if folder.exists():
            folder.rename(workshop / "old")
        fresh.rename(folder)
        _sync_folder(folder.parent)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def check_ours(folder: pathlib.Path) -> None:
    """Refuse to put a table in place of a folder that holds anything else, or in which this process is.

    Raises:
        TableError: it is such a folder, or no folder.
    """
    advice = "give a new folder, or that of a table"
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        _refuse(str(folder), "it is not a folder", advice)
    if folder.samefile(os.curdir):
        _refuse(str(folder), "it is the working folder", advice)
    others = {path.name for path in folder.iterdir()} - {HEADER_FILE, VALUES_FILE, PARTIAL_FOLDER}
    if others:
        _refuse(str(folder), f"it holds {min(others)!r}, which is no part of a table", advice)


def write_array(path: pathlib.Path, values: NDArray[Any]) -> None:
    """Write a ``.npy`` file that is there whole, on the disk, or not at all."""
    with _replacing(path) as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(values))
        for chunk in _chunks(values):  # by numpy itself, the cause of a failure would be lost
            file.write(chunk.data)


def write_text(path: pathlib.Path, text: str) -> None:
    """Write a text file that is there whole, on the disk, or not at all."""
    with _replacing(path) as file:
        file.write(text.encode("utf-8"))


@contextlib.contextmanager
def _replacing(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of ``path`` when it was written without an error."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(draft, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: pathlib.Path) -> None:
    """Bring renames inside a folder to the disk, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def tables_folder() -> pathlib.Path:
    """Where tables are kept."""
    named = os.environ.get(FOLDER_VARIABLE)
    return pathlib.Path(named) if named else platformdirs.user_cache_path("tradgames_env") / "tables"


def table_folder(ruleset: Ruleset, index: PositionIndex, part: str | None = None) -> pathlib.Path:
    """Where the table of a ruleset, or of one part of it, is kept; it may not be there."""
    return tables_folder() / ruleset.game / table_label(ruleset, index, part)


def find_table(ruleset: Ruleset, part: str | None = None) -> Table | None:
    """The kept table of a ruleset, or of one part of it; None where none was made.

    Raises:
        TableError: the game has no index for it, or the table that is there cannot be used.
    """
    folder = table_folder(ruleset, load_index(ruleset, part), part)
    return _open_part(folder, ruleset, part) if (folder / HEADER_FILE).exists() else None


def _open_part(folder: pathlib.Path, ruleset: Ruleset, part: str | None) -> Table:
    """The table in a folder, if it is of that part."""
    table = Table.open(folder, ruleset)
    if table.header.part != part:
        found, wanted = (name or "the whole game" for name in (table.header.part, part))
        _refuse(str(folder / HEADER_FILE), f"it was made for {found}, not for {wanted}")
    return table


def find_endings(ruleset: Ruleset) -> Table | None:
    """The largest kept table of a part of a ruleset; None where none was made.

    Raises:
        TableError: the table that is there cannot be used.
    """
    found = None
    for folder in sorted((tables_folder() / ruleset.game).glob(f"*-{_ENDINGS}*")):
        part = _ENDINGS + folder.name.rpartition(_ENDINGS)[2]
        try:
            index = load_index(ruleset, part)
        except TableError:  # of other options
            continue
        if table_folder(ruleset, index, part) != folder or not (folder / HEADER_FILE).exists():
            continue
        if found is None or index.count > found.index.count:
            found = _open_part(folder, ruleset, part)
    return found


def _refuse(source: str, problem: str, advice: str = _AGAIN) -> NoReturn:
    raise TableError(f"{source}: {problem}; {advice}") from None


def read_small(path: pathlib.Path) -> bytes:
    """The bytes of a JSON file, if it is a plain file of a sensible size.

    Raises:
        TableError: it is not.
    """
    _check_plain(path, _MAX_HEADER_BYTES)
    try:
        return path.read_bytes()
    except OSError as error:
        _refuse(str(path), f"it cannot be read ({error.strerror})")


def _check_plain(path: pathlib.Path, limit: int) -> None:
    try:
        status = path.lstat()
    except OSError as error:
        _refuse(str(path), f"it cannot be read ({error.strerror})")
    if not stat.S_ISREG(status.st_mode):
        _refuse(str(path), "it is not a plain file")
    if status.st_size > limit:
        _refuse(str(path), f"{status.st_size:,} bytes are more than the {limit:,} it can need")


def _check_made_for(header: TableHeader, ruleset: Ruleset, index: PositionIndex, source: str) -> None:
    """Compare what a table was made for with what this package has."""
    for what, theirs, ours in (
        ("options", header.options, telling_options(ruleset, index)),
        (f"rules of {ruleset.game}, version", header.rules_version, ruleset.rules.version),
        ("kind of values", header.kind, kind_of(index)),
        ("numbering", header.index, index.name),
        ("numbering, version", header.index_version, index.version),
        ("number of positions", header.count, index.count),
    ):
        if theirs != ours:
            _refuse(source, f"it was made for other {what}: {theirs!r:.200}, not {ours!r:.200}")


def map_array(path: pathlib.Path, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """The (count,) numbers of a ``.npy`` file, mapped into memory; what it says of itself is compared before that.

    Raises:
        TableError: it is not a plain file of exactly these; one line that names the file.
    """
    size = count * dtype.itemsize
    _check_plain(path, size + _MAX_HEADER_BYTES)
    try:
        with open(path, "rb") as file:
            shape, found = _read_layout(file)
            offset, length = file.tell(), os.fstat(file.fileno()).st_size
    except OSError as error:
        _refuse(str(path), f"it cannot be read ({error.strerror})")
    except Exception:  # numpy parses the header as Python, and damaged ones fail in every way that Python can
        _refuse(str(path), "it is not a readable .npy file")
    if shape != (count,) or found != dtype:
        _refuse(str(path), f"it holds {found!s:.100} {shape!s:.100}, not {dtype} ({count},)")
    if length != offset + size:
        _refuse(str(path), f"it has {length - offset:,} bytes of numbers, not {size:,}")
    mapped: NDArray[Any] = np.memmap(path, dtype, "r", offset, (count,))
    return mapped


def _read_layout(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type in the header of a ``.npy`` file, which is left behind the header."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, dtype = readers[np.lib.format.read_magic(file)](file)
    return shape, dtype


def _checksum(values: NDArray[Any]) -> str:
    hasher = hashlib.sha256()
    for chunk in _chunks(values):
        hasher.update(chunk.astype(chunk.dtype.newbyteorder("<"), copy=False).tobytes())
    return hasher.hexdigest()


def _chunks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for begin in range(0, len(values), _CHUNK):
        yield values[begin : begin + _CHUNK]
