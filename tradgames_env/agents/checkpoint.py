"""Reading a trained policy from its folder, without torch and without trusting a byte of it.

A checkpoint is a folder of three files: ``checkpoint.json`` (what the network is and what it was trained for),
``model.safetensors`` (its weights) and ``README.md`` (for people). Everything is checked before it is used, in this
order: the files are plain files of bounded size, the JSON has the right types, game and versions are the ones this
package has, every tensor has the shape the record asks for, the checksum holds, the numbers are finite.
"""

import dataclasses
import hashlib
import json
import math
import os
import pathlib
import stat
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from tradgames_env.encoding import ENCODER_VERSION, Encoder
from tradgames_env.rules.ruleset import Ruleset, load_ruleset

FORMAT_VERSION = 1
"""Raised whenever the files of a checkpoint change in a way that older readers cannot follow."""
RECORD_FILE = "checkpoint.json"
WEIGHTS_FILE = "model.safetensors"

MAX_PARAMETERS = 64_000_000
"""Most numbers a network may hold, 256 MB: a record that asks for more is taken for damaged."""
_MAX_RECORD_BYTES = 1_000_000
_MAX_HEADER_BYTES = 1_000_000
_TRUNKS = ("mlp",)
_ANOTHER_COPY = "the file is damaged or not a checkpoint of this package; use another copy or train again"


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or made for something else; the message names the file and what to do."""


@dataclasses.dataclass(frozen=True)
class NetworkRecord:
    """Sizes of a network, from which the name and shape of every tensor follow.

    Attributes:
        inputs: numbers it reads, ``len(Encoder.informative_cells())``.
        actions: policy logits.
        width: units of each hidden layer, 1 to 4096.
        blocks: residual blocks, 0 to 64.
        trunk: kind of the hidden layers; "mlp" is the only one yet.

    Raises:
        ValueError: a size is out of range, or the network would hold more than ``MAX_PARAMETERS`` numbers.
    """

    inputs: int
    actions: int
    width: int
    blocks: int
    trunk: str = "mlp"

    def __post_init__(self) -> None:
        if self.trunk not in _TRUNKS:
            raise ValueError(f"network trunk must be one of {', '.join(_TRUNKS)}, not {self.trunk!r}")
        for name, low, high in (
            ("inputs", 1, 1_000_000),
            ("actions", 1, 1_000_000),
            ("width", 1, 4096),
            ("blocks", 0, 64),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise ValueError(f"network {name} must be an integer from {low} to {high}, not {value!r}")
        if self.num_parameters > MAX_PARAMETERS:
            raise ValueError(f"a network of {self.num_parameters:,} numbers is larger than {MAX_PARAMETERS:,}")

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each float32 tensor by name; the names are those of ``network.PolicyValueNetwork``."""
        shapes: dict[str, tuple[int, ...]] = {
            "stem.weight": (self.width, self.inputs),
            "stem.bias": (self.width,),
        }
        for block in range(self.blocks):
            shapes[f"blocks.{block}.scale"] = (1,)
            shapes[f"blocks.{block}.linear.weight"] = (self.width, self.width)
            shapes[f"blocks.{block}.linear.bias"] = (self.width,)
        for head, rows in (("policy", self.actions), ("value", 1), ("margin", 1)):
            shapes[f"{head}.weight"] = (rows, self.width)
            shapes[f"{head}.bias"] = (rows,)
        return shapes

    @property
    def num_parameters(self) -> int:
        """Numbers in all tensors together."""
        return sum(math.prod(shape) for shape in self.tensor_shapes().values())


@dataclasses.dataclass(frozen=True)
class PlayRecord:
    """How a network is meant to be played with.

    Attributes:
        lookahead: choose by the values one move ahead instead of by the policy.
        margin_weight: what the largest possible gain of margin is worth in these values, in wins; 0 to 1,000.

    Raises:
        ValueError: the weight is out of range.
    """

    lookahead: bool = True
    margin_weight: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.margin_weight <= 1000.0:
            raise ValueError(f"play margin_weight must be a number from 0 to 1000, not {self.margin_weight!r}")


@dataclasses.dataclass(frozen=True)
class CheckpointRecord:
    """What ``checkpoint.json`` says.

    Attributes:
        game: name of the game.
        variant: name of the variant.
        options: rule options that differ from the variant's.
        rules_version: ``GameRules.version`` it was trained under.
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

    game: str
    variant: str
    options: dict[str, Any]
    rules_version: int
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
                f"format version {version!r}, this package reads {FORMAT_VERSION}",
                "use the tradgames_env it was made with, or train again",
            )
        values = _checked_fields(data, _RECORD_TYPES, source)
        for name, value in values["options"].items():
            if not isinstance(value, bool | int | float | str):
                _refuse(source, f"option {name!r} must be a number, a text or a truth value, not {value!r}")
        sizes = _checked_fields(values["network"], _NETWORK_TYPES, source)
        play = _checked_fields(values["play"], _PLAY_TYPES, source)
        try:
            values["network"] = NetworkRecord(**sizes)
            values["play"] = PlayRecord(**play)
        except ValueError as error:
            _refuse(source, str(error))
        return cls(**values)


_RECORD_TYPES: dict[str, tuple[type, ...]] = {
    "game": (str,),
    "variant": (str,),
    "options": (dict,),
    "rules_version": (int,),
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
_NETWORK_TYPES: dict[str, tuple[type, ...]] = {
    "inputs": (int,),
    "actions": (int,),
    "width": (int,),
    "blocks": (int,),
    "trunk": (str,),
}
_PLAY_TYPES: dict[str, tuple[type, ...]] = {"lookahead": (bool,), "margin_weight": (float, int)}
_JSON_NAMES = {
    str: "a text",
    dict: "an object",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checked checkpoint: its record, the ruleset it plays and its weights by name, float32."""

    folder: pathlib.Path
    record: CheckpointRecord
    ruleset: Ruleset
    tensors: dict[str, NDArray[np.float32]]


def read_checkpoint(folder: str | os.PathLike[str]) -> Checkpoint:
    """Read and check a checkpoint folder.

    Raises:
        CheckpointError: anything about it is wrong; one line that names the file and says what to do.
    """
    folder = pathlib.Path(folder)
    record = read_record(folder)
    ruleset = _matching_ruleset(record, str(folder / RECORD_FILE))
    path = folder / WEIGHTS_FILE
    limit = 4 * record.network.num_parameters + _MAX_HEADER_BYTES + 8
    data = _read_plain_file(path, limit)
    _check_header(data, record.network, str(path))
    if hashlib.sha256(data).hexdigest() != record.sha256:
        _refuse(str(path), f"its checksum is not the one in {RECORD_FILE}")
    return Checkpoint(folder, record, ruleset, _load_tensors(data, str(path)))


def read_record(folder: str | os.PathLike[str]) -> CheckpointRecord:
    """Read ``checkpoint.json`` alone; whether this package can play it is not asked.

    Raises:
        CheckpointError: the folder or the file is missing or unreadable.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: there is no such folder; give the folder that holds {RECORD_FILE}")
    path = folder / RECORD_FILE
    return CheckpointRecord.from_json(_read_plain_file(path, _MAX_RECORD_BYTES), str(path))


def _refuse(source: str, problem: str, advice: str = _ANOTHER_COPY) -> NoReturn:
    raise CheckpointError(f"{source}: {problem}; {advice}") from None


def _read_plain_file(path: pathlib.Path, limit: int) -> bytes:
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


def _checked_fields(data: dict[str, Any], types: dict[str, tuple[type, ...]], source: str) -> dict[str, Any]:
    """``data`` if it has exactly the named fields, each of one of its types; a truth value is no integer."""
    for name in data:
        if name not in types:
            _refuse(source, f"unknown field {name!r}")
    for name, allowed in types.items():
        if name not in data:
            _refuse(source, f"field {name!r} is missing")
        value = data[name]
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            wanted = " or ".join(_JSON_NAMES[kind] for kind in allowed)
            _refuse(source, f"field {name!r} must be {wanted}, not {_shown(value)}")
    return dict(data)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _matching_ruleset(record: CheckpointRecord, source: str) -> Ruleset:
    """The ruleset a record names, if rules, encoder and sizes are those of this package."""
    try:
        ruleset = load_ruleset(record.game, record.variant, **record.options)
    except (ValueError, TypeError) as error:
        _refuse(source, f"its game cannot be set up ({error})", "use the tradgames_env it was made with")
    for what, theirs, ours in (
        (f"rules of {record.game}", record.rules_version, ruleset.rules.version),
        ("encoder", record.encoder_version, ENCODER_VERSION),
    ):
        if theirs != ours:
            _refuse(
                source,
                f"it was trained with version {theirs} of the {what}, this package has version {ours}",
                "use the tradgames_env it was made with, or train again",
            )
    sizes = (len(Encoder(ruleset).informative_cells()), ruleset.num_actions)
    if (record.network.inputs, record.network.actions) != sizes:
        _refuse(
            source,
            f"its network has {record.network.inputs} inputs and {record.network.actions} actions, "
            f"{ruleset.label} has {sizes[0]} and {sizes[1]}",
        )
    return ruleset


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
