"""Reading a trained policy from its folder, without torch and without trusting a byte of it.

A checkpoint is a folder of three files: ``checkpoint.json`` (what the network is and what it was trained for),
``model.safetensors`` (its weights) and ``README.md`` (for people). Everything is checked before it is used, in this
order: the files are plain files of bounded size, the JSON has the right types, games and versions are the ones this
package has, every tensor has the shape the record asks for, the checksum holds, the numbers are finite.
"""

import dataclasses
import hashlib
import json
import math
import os
import pathlib
import stat
from collections.abc import Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents.layout import InputLayout
from tradgames_env.encoding import ENCODER_VERSION
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from tradgames_env.search import incremental

FORMAT_VERSION = 2
"""Raised whenever the files of a checkpoint change in a way that older readers cannot follow."""
RECORD_FILE = "checkpoint.json"
WEIGHTS_FILE = "model.safetensors"

MAX_GAMES = 64
"""Most games one network may play."""
MAX_PARAMETERS = 64_000_000
"""Most numbers a network may hold, 256 MB: a record that asks for more is taken for damaged."""
_MAX_RECORD_BYTES = 1_000_000
_MAX_HEADER_BYTES = 1_000_000
TRUNKS = ("mlp", "conv")
"""Kinds of hidden layers: residual layers over single numbers, or residual convolutions over whole planes."""
INCREMENTAL = "incremental"
"""Kind of the small network without a policy that alpha-beta search follows; see ``search/incremental.py``."""
VALUE_HEADS: dict[str, int] = {"scalar": 1, "wdl": 3}
"""Kinds of value head, and their outputs: the expectation itself, or logits of win, draw and loss."""
POLICY_PLANES = 8
"""Planes a convolutional trunk hands to its policy head."""
_ANOTHER_COPY = "the file is damaged or not a checkpoint of this package; use another copy or train again"


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or made for something else; the message names the file and what to do."""


@dataclasses.dataclass(frozen=True)
class NetworkRecord:
    """Sizes of a network, from which the name and shape of every tensor follow; made by ``for_games``.

    Attributes:
        inputs: numbers it reads.
        actions: policy logits of each game it plays.
        width: units or planes of each hidden layer, 1 to 4096.
        blocks: residual blocks, 0 to 64.
        trunk: kind of the hidden layers, one of ``TRUNKS``, or ``INCREMENTAL``, whose width and blocks are fixed.
        value: kind of the value head, one of ``VALUE_HEADS``.
        grid: (planes, height, width) of the planes that come first in the inputs of a "conv" trunk, None for others.

    Raises:
        ValueError: a kind is unknown, a size is out of range, or the network would hold more than ``MAX_PARAMETERS``
            numbers.
    """

    inputs: int
    actions: tuple[int, ...]
    width: int
    blocks: int
    trunk: str = "mlp"
    value: str = "scalar"
    grid: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        for name, kinds in (("trunk", (*TRUNKS, INCREMENTAL)), ("value", tuple(VALUE_HEADS))):
            if getattr(self, name) not in kinds:
                raise ValueError(f"network {name} must be one of {', '.join(kinds)}, not {_shown(getattr(self, name))}")
        _require_size("inputs", self.inputs, 1, 1_000_000)
        _require_size("width", self.width, 1, 4096)
        _require_size("blocks", self.blocks, 0, 64)
        _require_size("number of games", len(self.actions), 1, MAX_GAMES if self.trunk != INCREMENTAL else 1)
        for count in self.actions:
            _require_size("actions", count, 1, 1_000_000)
        self._check_grid()
        if self.num_parameters > MAX_PARAMETERS:
            raise ValueError(f"a network of {self.num_parameters:,} numbers is larger than {MAX_PARAMETERS:,}")

    def _check_grid(self) -> None:
        if (self.grid is None) != (self.trunk != "conv"):
            raise ValueError(f"network grid must be given for trunk 'conv' alone, not {self.grid!r} for {self.trunk!r}")
        if self.grid is None:
            return
        _require_size("grid length", len(self.grid), 3, 3)
        for size in self.grid:
            _require_size("grid", size, 1, 1000)
        if math.prod(self.grid) > self.inputs:
            raise ValueError(f"network grid {list(self.grid)} holds more than its {self.inputs} inputs")

    @classmethod
    def for_games(
        cls, rulesets: Sequence[Ruleset], width: int, blocks: int, *, trunk: str = "mlp", value: str = "scalar"
    ) -> "NetworkRecord":
        """The record of a network that plays these games, one policy head each.

        Args:
            rulesets: at least one; ``PolicyValueNetwork`` knows them by their place.
            width: see the attributes, as all others.
            blocks: see there.
            trunk: see there.
            value: see there.

        Raises:
            ValueError: as for the record itself.
        """
        inputs, actions, grid = _ends(rulesets, trunk)
        return cls(inputs, actions, width, blocks, trunk, value, grid)

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each float32 tensor by name; the names are those of ``network.PolicyValueNetwork``."""
        if self.trunk == INCREMENTAL:
            return incremental.tensor_shapes(self.inputs // 2)
        shapes = _mlp_shapes(self) if self.grid is None else _conv_shapes(self, self.grid)
        policy_inputs = self.width if self.grid is None else POLICY_PLANES * self.grid[1] * self.grid[2]
        shapes |= _linear("policy", policy_inputs, sum(self.actions))
        shapes |= _linear("value", self.width, VALUE_HEADS[self.value])
        shapes |= _linear("margin", self.width, 1)
        return shapes

    @property
    def num_parameters(self) -> int:
        """Numbers in all tensors together."""
        return sum(math.prod(shape) for shape in self.tensor_shapes().values())


_Shapes = dict[str, tuple[int, ...]]
_Ends = tuple[int, tuple[int, ...], tuple[int, int, int] | None]


def _ends(rulesets: Sequence[Ruleset], trunk: str) -> _Ends:
    """Inputs, actions and grid of a network that plays these games: all that does not depend on its size."""
    actions = tuple(ruleset.num_actions for ruleset in rulesets)
    if trunk == INCREMENTAL:
        return incremental.features(rulesets[0]), actions, None
    layout = InputLayout.of(rulesets, whole_planes=trunk == "conv")
    return len(layout.cells), actions, (layout.planes, *layout.board) if trunk == "conv" else None


def _require_size(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"network {name} must be an integer from {low} to {high}, not {_shown(value)}")


def _linear(name: str, inputs: int, outputs: int) -> _Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _mlp_shapes(record: NetworkRecord) -> _Shapes:
    shapes = _linear("stem", record.inputs, record.width)
    for block in range(record.blocks):
        shapes[f"blocks.{block}.scale"] = (1,)
        shapes |= _linear(f"blocks.{block}.linear", record.width, record.width)
    return shapes


def _conv_shapes(record: NetworkRecord, grid: tuple[int, int, int]) -> _Shapes:
    width = record.width
    shapes: _Shapes = {"stem.planes.weight": (width, grid[0], 3, 3)}
    shapes |= _linear("stem.scalars", record.inputs - math.prod(grid), width)
    for block in range(record.blocks):
        shapes[f"blocks.{block}.scale"] = (1,)
        shapes[f"blocks.{block}.first.weight"] = (width, width, 3, 3)
        shapes |= _linear(f"blocks.{block}.pooled", 2 * width, width)
        shapes[f"blocks.{block}.second.weight"] = (width, width, 3, 3)
        shapes[f"blocks.{block}.second.bias"] = (width,)
    shapes["neck.planes.weight"] = (POLICY_PLANES, width, 1, 1)
    return shapes | _linear("neck.pooled", 2 * width, POLICY_PLANES) | _linear("neck.summary", 2 * width, width)


@dataclasses.dataclass(frozen=True)
class PlayRecord:
    """How a network is meant to be played with.

    Attributes:
        lookahead: without a search, choose by the values one move ahead instead of by the policy.
        margin_weight: what the largest possible gain of margin is worth in these values, in wins; 0 to 1,000.
        simulations: of the tree search recommended for a move, 0 for none; at most 1,000,000. Of alpha-beta, the
            positions it visits.
        plies: moves that the search over all moves and throws recommended for a move looks ahead, 0 for none; at most
            16. With simulations as well, it is recommended for games of dice, and the tree search for the others.

    Raises:
        ValueError: a number is out of range.
    """

    lookahead: bool = True
    margin_weight: float = 0.0
    simulations: int = 0
    plies: int = 0

    def __post_init__(self) -> None:
        for name, most in (("simulations", 1_000_000), ("plies", 16)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"play {name} must be an integer from 0 to {most}, not {_shown(getattr(self, name))}")
        if not 0.0 <= self.margin_weight <= 1000.0:
            raise ValueError(f"play margin_weight must be a number from 0 to 1000, not {_shown(self.margin_weight)}")


@dataclasses.dataclass(frozen=True)
class GameRecord:
    """A game that a network was trained for.

    Attributes:
        game: name of the game.
        variant: name of the variant.
        options: rule options that differ from the variant's.
        rules_version: ``GameRules.version`` it was trained under.
    """

    game: str
    variant: str
    options: dict[str, Any]
    rules_version: int

    @classmethod
    def of(cls, ruleset: Ruleset) -> Self:
        """What names a ruleset of this package."""
        return cls(ruleset.game, ruleset.variant, ruleset.overrides, ruleset.rules.version)


@dataclasses.dataclass(frozen=True)
class CheckpointRecord:
    """What ``checkpoint.json`` says.

    Attributes:
        games: what it plays, in the order of its policy heads.
        encoder_version: ``ENCODER_VERSION`` it was trained under.
        network: sizes of the network.
        play: how it is meant to be played with.
        config: the full training configuration, as JSON.
        seed: from which everything in the run followed.
        packages: versions of the packages that made it.
        steps: decisions it was trained on.
        strength: what evaluation measured, None before.
        sha256: checksum of ``model.safetensors``, lower-case hex.
        format_version: of the files themselves.
    """

    games: tuple[GameRecord, ...]
    encoder_version: int
    network: NetworkRecord
    play: PlayRecord
    config: dict[str, Any]
    seed: int
    packages: dict[str, Any]
    steps: int
    strength: dict[str, Any] | None
    sha256: str
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """The text of ``checkpoint.json``."""
        return json.dumps(dataclasses.asdict(self), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: bytes, source: str) -> Self:
        """The record in the text of ``checkpoint.json``.

        Args:
            text: UTF-8.
            source: name of the file, for messages.

        Raises:
            CheckpointError: not JSON, a field is missing, unknown or of the wrong type, or another format version.
        """
        data = _parse_json(text, source)
        version = data.get("format_version")
        if version != FORMAT_VERSION:
            _refuse(
                source,
                f"format version {_shown(version)}, this package reads {FORMAT_VERSION}",
                "use the tradgames_env it was made with, or train again",
            )
        values = checked_fields(data, _RECORD_TYPES, source)
        values["games"] = tuple(game_record(entry, source) for entry in values["games"])
        sizes = checked_fields(values["network"], _NETWORK_TYPES, source)
        sizes["actions"] = tuple(sizes["actions"])
        sizes["grid"] = None if sizes["grid"] is None else tuple(sizes["grid"])
        play = checked_fields(values["play"], _PLAY_TYPES, source)
        try:
            values["network"] = NetworkRecord(**sizes)
            values["play"] = PlayRecord(**play)
        except ValueError as error:
            _refuse(source, str(error))
        return cls(**values)


def game_record(entry: object, source: str) -> GameRecord:
    """The game that an object of JSON names; ``source`` names the file, for the ``CheckpointError`` if it is none."""
    if not isinstance(entry, dict):
        _refuse(source, f"each of its games must be an object, not {_shown(entry)}")
    values = checked_fields(entry, _GAME_TYPES, source)
    for name, value in values["options"].items():
        if not isinstance(value, bool | int | float | str):
            _refuse(source, f"option {_shown(name)} must be a number, a text or a truth value, not {_shown(value)}")
    return GameRecord(**values)


_RECORD_TYPES: dict[str, tuple[type, ...]] = {
    "games": (list,),
    "encoder_version": (int,),
    "network": (dict,),
    "play": (dict,),
    "config": (dict,),
    "seed": (int,),
    "packages": (dict,),
    "steps": (int,),
    "strength": (dict, type(None)),
    "sha256": (str,),
    "format_version": (int,),
}
_GAME_TYPES: dict[str, tuple[type, ...]] = {
    "game": (str,),
    "variant": (str,),
    "options": (dict,),
    "rules_version": (int,),
}
_NETWORK_TYPES: dict[str, tuple[type, ...]] = {
    "inputs": (int,),
    "actions": (list,),
    "width": (int,),
    "blocks": (int,),
    "trunk": (str,),
    "value": (str,),
    "grid": (list, type(None)),
}
_PLAY_TYPES: dict[str, tuple[type, ...]] = {
    "lookahead": (bool,),
    "margin_weight": (float, int),
    "simulations": (int,),
    "plies": (int,),
}
_JSON_NAMES = {
    str: "a text",
    dict: "an object",
    list: "a list",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checked checkpoint: its record, the rulesets it plays, in order, and its weights by name, float32."""

    folder: pathlib.Path
    record: CheckpointRecord
    rulesets: tuple[Ruleset, ...]
    tensors: dict[str, NDArray[np.float32]]


def read_checkpoint(folder: str | os.PathLike[str]) -> Checkpoint:
    """Read and check a checkpoint folder.

    Raises:
        CheckpointError: anything about it is wrong; one line that names the file and says what to do.
    """
    folder = pathlib.Path(folder)
    record = read_record(folder)
    rulesets = _matching_rulesets(record, str(folder / RECORD_FILE))
    path = folder / WEIGHTS_FILE
    limit = 4 * record.network.num_parameters + _MAX_HEADER_BYTES + 8
    data = read_plain_file(path, limit)
    _check_header(data, record.network, str(path))
    if hashlib.sha256(data).hexdigest() != record.sha256:
        _refuse(str(path), f"its checksum is not the one in {RECORD_FILE}")
    return Checkpoint(folder, record, rulesets, _load_tensors(data, str(path)))


def read_record(folder: str | os.PathLike[str]) -> CheckpointRecord:
    """Read ``checkpoint.json`` alone; whether this package can play it is not asked.

    Raises:
        CheckpointError: the folder or the file is missing or unreadable.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: there is no such folder; give the folder that holds {RECORD_FILE}")
    path = folder / RECORD_FILE
    return CheckpointRecord.from_json(read_plain_file(path, _MAX_RECORD_BYTES), str(path))


def _refuse(source: str, problem: str, advice: str = _ANOTHER_COPY) -> NoReturn:
    raise CheckpointError(f"{source}: {problem}; {advice}") from None


def read_plain_file(path: pathlib.Path, limit: int) -> bytes:
    """All bytes of a regular file of at most ``limit`` bytes; links, pipes and devices are not followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if path.is_symlink():
        _refuse(str(path), "it is a link", "copy the file itself into the folder")
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        _refuse(str(path), "the file is missing", "give a whole checkpoint folder")
    except OSError as error:
        _refuse(str(path), f"it cannot be opened ({error.strerror})", "check its kind and permissions")
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            _refuse(str(path), "it is not a plain file")
        if status.st_size > limit:
            _refuse(str(path), f"{status.st_size:,} bytes are more than the {limit:,} it can need")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit + 1)
    except OSError as error:
        _refuse(str(path), f"it cannot be read ({error.strerror})", "check its disk and permissions")
    finally:
        os.close(descriptor)


def _parse_json(text: bytes, source: str) -> dict[str, Any]:
    try:
        data = json.loads(text.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _refuse(source, f"it is not readable as JSON ({error})")
    if not isinstance(data, dict):
        _refuse(source, "it does not hold a JSON object")
    return data


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def checked_fields(data: dict[str, Any], types: dict[str, tuple[type, ...]], source: str) -> dict[str, Any]:
    """``data`` if it has exactly the named fields, each of one of its types; a truth value is no integer."""
    for name in data:
        if name not in types:
            _refuse(source, f"unknown field {_shown(name)}")
    for name, allowed in types.items():
        if name not in data:
            _refuse(source, f"field {name!r} is missing")
        value = data[name]
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            wanted = " or ".join(_JSON_NAMES[kind] for kind in allowed)
            _refuse(source, f"field {name!r} must be {wanted}, not {_shown(value)}")
    return dict(data)


def _shown(value: object) -> str:
    """What a file says, in a message: it may be a megabyte long."""
    return _cut(repr(value), 60)


def _cut(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _matching_rulesets(record: CheckpointRecord, source: str) -> tuple[Ruleset, ...]:
    """The rulesets a record names, if rules, encoder and sizes are those of this package."""
    refuse_other_version("encoder", record.encoder_version, ENCODER_VERSION, source)
    network = record.network
    if len(record.games) != len(network.actions):
        _refuse(source, f"it names {len(record.games)} games, its network plays {len(network.actions)}")
    rulesets = tuple(matching_ruleset(game, source) for game in record.games)
    if len({(ruleset.game, ruleset.options) for ruleset in rulesets}) != len(rulesets):
        _refuse(source, "it names a game twice")
    try:
        needed = _ends(rulesets, network.trunk)
    except ValueError as error:
        _refuse(source, str(error))
    found = (network.inputs, network.actions, network.grid)
    if found != needed:
        labels = " and ".join(ruleset.label for ruleset in rulesets)
        _refuse(source, f"its network has {_sizes(found)}, {labels} needs {_sizes(needed)}")
    return rulesets


def _sizes(ends: _Ends) -> str:
    inputs, actions, grid = ends
    return f"{inputs} inputs, actions {list(actions)} and grid {grid and list(grid)}"


def matching_ruleset(record: GameRecord, source: str) -> Ruleset:
    """The ruleset of this package that a record names.

    Raises:
        CheckpointError: there is none, or its rules have another version.
    """
    try:
        ruleset = load_ruleset(record.game, record.variant, **record.options)
    except (ValueError, TypeError) as error:
        _refuse(source, f"its game cannot be set up ({_cut(str(error))})", "use the tradgames_env it was made with")
    refuse_other_version(f"rules of {record.game}", record.rules_version, ruleset.rules.version, source)
    return ruleset


def refuse_other_version(what: str, theirs: int, ours: int, source: str) -> None:
    """Raise ``CheckpointError`` unless the two versions of ``what`` are one."""
    if theirs != ours:
        _refuse(
            source,
            f"it was trained with version {_shown(theirs)} of the {what}, this package has version {ours}",
            "use the tradgames_env it was made with, or train again",
        )


def _check_header(data: bytes, network: NetworkRecord, source: str) -> None:
    """Compare the list of tensors in a safetensors file with the shapes the record asks for."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 2 <= length <= min(len(data) - 8, _MAX_HEADER_BYTES):
        _refuse(source, "its header is cut off or oversized")
    header = _parse_json(data[8 : 8 + length], source)
    header.pop("__metadata__", None)
    shapes = network.tensor_shapes()
    for name in (*shapes, *header):
        if name not in header or name not in shapes:
            _refuse(source, f"tensor {_shown(name)} is {'missing' if name in shapes else 'unknown'}")
        entry = header[name]
        found = (entry.get("dtype"), entry.get("shape")) if isinstance(entry, dict) else (None, None)
        if found != ("F32", list(shapes[name])):
            _refuse(source, f"tensor {name!r} is {_shown(found)}, its network needs ('F32', {list(shapes[name])})")
    if len(data) - 8 - length != 4 * network.num_parameters:
        _refuse(source, f"it holds {len(data) - 8 - length:,} bytes of weights, not {4 * network.num_parameters:,}")


def _load_tensors(data: bytes, source: str) -> dict[str, NDArray[np.float32]]:
    import safetensors
    import safetensors.numpy

    try:
        tensors: dict[str, NDArray[np.float32]] = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, ValueError) as error:
        _refuse(source, f"its tensors cannot be read ({error})")
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            _refuse(source, f"tensor {name!r} holds numbers that are not finite", "train again")
    return tensors
