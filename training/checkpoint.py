"""Writing checkpoints and the state a run resumes from: safetensors and JSON, never pickle, every write atomic."""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from tradgames_env.agents.checkpoint import (
    RECORD_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    CheckpointRecord,
    GameRecord,
    NetworkRecord,
    PlayRecord,
    read_record,
)
from tradgames_env.agents.network import PolicyValueNetwork
from tradgames_env.encoding import ENCODER_VERSION
from training.config import TrainConfig
from training.provenance import versions

CARD_FILE = "README.md"
_PACKAGES = ("numpy", "numba", "torch", "safetensors")
_STATE_VERSION = "1"


def write_checkpoint(
    folder: pathlib.Path, network: PolicyValueNetwork, config: TrainConfig, steps: int
) -> CheckpointRecord:
    """Write a trained policy as a checkpoint folder, complete or not at all; an earlier checkpoint there is replaced.

    Args:
        folder: where; its parent must exist.
        network: what was trained.
        config: how.
        steps: decisions it was trained on.

    Raises:
        FileExistsError: ``folder`` exists and is no checkpoint.
    """
    tensors = {name: tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
    weights = safetensors.numpy.save(tensors)
    record = CheckpointRecord(
        games=(GameRecord.of(config.game.ruleset()),),
        encoder_version=ENCODER_VERSION,
        network=network.record,
        play=PlayRecord(config.play.lookahead, config.play.margin_weight),
        config=config.model_dump(mode="json"),
        seed=config.seed,
        packages=versions(_PACKAGES),
        steps=steps,
        strength=None,
        sha256=hashlib.sha256(weights).hexdigest(),
    )
    _write_folder(folder, record, weights)
    return record


def record_strength(folder: pathlib.Path, strength: dict[str, Any]) -> CheckpointRecord:
    """Note in a checkpoint what an evaluation measured; record and model card are rewritten, weights are kept.

    Args:
        folder: the checkpoint.
        strength: JSON: results by opponent, see ``training.evaluate``.

    Raises:
        CheckpointError: the folder holds no readable checkpoint.
    """
    record = dataclasses.replace(read_record(folder), strength=strength)
    _write_folder(folder, record, (folder / WEIGHTS_FILE).read_bytes())
    return record


def model_card(record: CheckpointRecord) -> str:
    """The README of a checkpoint: Markdown."""
    budget = record.config.get("budget", {})
    title = " and ".join(f"{game.game} ({game.variant})" for game in record.games)
    what = "this game" if len(record.games) == 1 else "these games"
    names = " and ".join(_name(game) for game in record.games)
    lines = [
        *_card_metadata(record),
        f"# {title}, PPO self-play",
        "",
        f"A policy for the board game {names}, that plays both sides. It was trained",
        "without human games by masked PPO against itself and its own past versions.",
        "",
        "```python",
        "import tradgames_env as tg",
        "",
        'agent = tg.load_agent("path/to/this/folder")',
        *(f"agent.act({_position(game)})" for game in record.games),
        "```",
        "",
        "| | |",
        "|---|---|",
        f"| rules version, encoder version | {_rules_versions(record)}, {record.encoder_version} |",
        f"| network | {_network(record.network)} |",
        f"| how it plays | {_way_to_play(record)} |",
        f"| decisions played in training | {record.steps:,} |",
        f"| budget | minutes {budget.get('minutes')}, steps {budget.get('steps')} |",
        f"| seed | {record.seed} |",
        f"| made with | {', '.join(f'{name} {version}' for name, version in record.packages.items())} |",
        f"| SHA-256 of {WEIGHTS_FILE} | `{record.sha256}` |",
        "",
        "## Strength",
        "",
        *_strength_lines(record.strength),
        "",
        "## Limits",
        "",
        f"It plays {what} under these options and no others, and looks no further than said above.",
        f"The whole training configuration is in `{RECORD_FILE}`.",
        "",
    ]
    return "\n".join(lines)


def _card_metadata(record: CheckpointRecord) -> list[str]:
    """What the Hugging Face hub reads of a card, as YAML, in which texts of JSON are texts."""
    games = dict.fromkeys(game.game for game in record.games)
    name = "-".join(f"{game.game}-{game.variant}" for game in record.games)
    tags = ("reinforcement-learning", "self-play", "board-games", *map(json.dumps, games))
    return [
        "---",
        "license: mit",
        "library_name: tradgames-env",
        "pipeline_tag: reinforcement-learning",
        f"model_name: {json.dumps(name)}",
        "tags:",
        *(f"- {tag}" for tag in tags),
        "---",
        "",
    ]


def _name(game: GameRecord) -> str:
    options = "".join(f", {option} = {value}" for option, value in game.options.items())
    return f"{game.game}{options}, variant `{game.variant}`"


def _position(game: GameRecord) -> str:
    return f'tg.Position("{game.game}", variant="{game.variant}"{_keywords(game.options)})'


def _rules_versions(record: CheckpointRecord) -> str:
    return " and ".join(str(game.rules_version) for game in record.games)


def _network(network: NetworkRecord) -> str:
    value = "" if network.value == "scalar" else ", value as win, draw and loss"
    size = f"{network.blocks} blocks of {network.width}, {network.num_parameters:,} parameters"
    return f"{network.trunk}, {size}{value}"


def _keywords(options: Mapping[str, Any]) -> str:
    return "".join(f", {name}={value!r}" for name, value in options.items())


def _way_to_play(record: CheckpointRecord) -> str:
    play = record.play
    margin = f", the largest gain of margin worth {play.margin_weight:g} wins" if play.margin_weight else ""
    if play.simulations:
        return f"by a tree search of {play.simulations} simulations{margin}"
    if play.plies:
        return f"by its values of the positions after all moves and throws, {play.plies} moves ahead{margin}"
    if play.lookahead:
        return f"by its values of the positions one move ahead, over every throw{margin}"
    return "the most probable move of its policy"


def _strength_lines(strength: dict[str, Any] | None) -> list[str]:
    if strength is None:
        return ["Not measured yet: `tradgames evaluate` does it."]
    opponents = strength.get("opponents")
    if not isinstance(opponents, dict) or not all(isinstance(result, dict) for result in opponents.values()):
        return ["```json", json.dumps(strength, indent=2), "```"]
    lines = ["| against | games | won | drawn | lost | score | 95 % interval |", "|---|---|---|---|---|---|---|"]
    for name, result in opponents.items():
        low, high = result.get("score_interval", (None, None))
        cells = [name, *(result.get(key) for key in ("games", "wins", "draws", "losses", "score")), f"{low} to {high}"]
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    rest = {key: value for key, value in strength.items() if key != "opponents"}
    return [*lines, "", "```json", json.dumps(rest, indent=2), "```"]


def _write_folder(folder: pathlib.Path, record: CheckpointRecord, weights: bytes) -> None:
    _restore_moved_aside(folder)
    if folder.is_symlink() or (folder.exists() and not _may_be_replaced(folder)):
        raise FileExistsError(f"{folder} exists and is no checkpoint; nothing was written")
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    try:
        for name, data in (
            (WEIGHTS_FILE, weights),
            (RECORD_FILE, record.to_json().encode()),
            (CARD_FILE, model_card(record).encode()),
        ):
            _write_durably(temporary / name, data)
        temporary.chmod(0o755)
        _sync_folder(temporary)
        _put_in_place(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _may_be_replaced(folder: pathlib.Path) -> bool:
    """Whether it is a checkpoint or an empty folder: nobody's other work."""
    return folder.is_dir() and ((folder / RECORD_FILE).is_file() or not any(folder.iterdir()))


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


def _write_durably(path: pathlib.Path, data: bytes) -> None:
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


def save_state(path: pathlib.Path, arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> None:
    """Write what a run resumes from as one safetensors file, complete or not at all.

    Args:
        path: the file; replaced when it exists.
        arrays: by name.
        record: JSON, kept in the header of the file.
    """
    header = {"version": _STATE_VERSION, "record": json.dumps(record)}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    temporary = path.with_suffix(".tmp")
    try:
        _write_durably(temporary, safetensors.numpy.save(contiguous, metadata=header))
        os.replace(temporary, path)
    except OSError as error:
        # A full disk: what was written of the new state only takes up room; the old one is still there.
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
    _sync_folder(path.parent)


def load_state(path: pathlib.Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the record that ``save_state`` wrote.

    Raises:
        CheckpointError: the file is missing, damaged or of another version.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: there is no saved state to resume from; start without resume")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        if header.get("version") != _STATE_VERSION:
            raise ValueError(f"its version is {header.get('version')!r}, not {_STATE_VERSION!r}")
        return arrays, json.loads(header["record"])
    except (safetensors.SafetensorError, ValueError, KeyError, OSError) as error:
        raise CheckpointError(f"{path}: it cannot be read ({error}); start without resume") from None
