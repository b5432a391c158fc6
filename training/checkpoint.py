"""Writing checkpoints and the state a run resumes from: safetensors and JSON, never pickle, every write atomic."""

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray
from torch import Tensor

from tradgames_env.agents.checkpoint import (
    INCREMENTAL,
    RECORD_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    CheckpointRecord,
    GameRecord,
    NetworkRecord,
    PlayRecord,
    read_record,
)
from tradgames_env.agents.incremental import POSITIONS
from tradgames_env.encoding import ENCODER_VERSION
from training.config import TrainConfig
from training.durable import write_folder
from training.provenance import versions

CARD_FILE = "README.md"
STATE_ARRAYS_FILE = "arrays.safetensors"
STATE_RECORD_FILE = "record.json"
_PACKAGES = ("numpy", "numba", "torch", "safetensors")
_STATE_VERSION = "2"
_METHODS = {
    "ppo": ("PPO self-play", "masked PPO"),
    "alphazero": ("search and self-play", "learning from search"),
    "alphabeta": ("alpha-beta and self-play", "learning from alpha-beta search"),
}
"""Title and means of each method, for people."""


class RecordedNetwork(Protocol):
    """What can be written as a checkpoint."""

    record: NetworkRecord

    def state_dict(self) -> dict[str, Tensor]:
        """Its tensors by the names of the record."""


def write_checkpoint(
    folder: pathlib.Path, network: RecordedNetwork, config: TrainConfig, steps: int
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
        games=tuple(GameRecord.of(ruleset) for ruleset in config.rulesets()),
        encoder_version=ENCODER_VERSION,
        network=network.record,
        play=PlayRecord(config.play.lookahead, config.play.margin_weight, config.play.simulations, config.play.plies),
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
        strength: JSON: results by opponent, see ``training.evaluate``; of several games, these by game in ``games``.

    Raises:
        CheckpointError: the folder holds no readable checkpoint.
    """
    record = dataclasses.replace(read_record(folder), strength=strength)
    _write_folder(folder, record, (folder / WEIGHTS_FILE).read_bytes())
    return record


def model_card(record: CheckpointRecord) -> str:
    """The README of a checkpoint: Markdown."""
    budget, method = record.config.get("budget", {}), record.config.get("method", "ppo")
    title = ", ".join(f"{game.game} ({game.variant})" for game in record.games)
    what = "this game" if len(record.games) == 1 else "these games"
    names = [_name(game) for game in record.games]
    subject = f"the board game {names[0]}," if len(names) == 1 else f"the board games {'; '.join(names)},"
    lines = [
        *_card_metadata(record),
        f"# {title}, {_METHODS[method][0]}",
        "",
        f"A policy for {subject} that plays both sides. It was trained",
        f"without human games by {_METHODS[method][1]} against itself and its own past versions.",
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
    if play.simulations and play.plies:
        dice = f"by its values {_moves(play.plies)} and the throws ahead in games of dice"
        return f"{dice}, by a tree search of {play.simulations} simulations in the others{margin}"
    if record.network.trunk == INCREMENTAL:
        return f"by alpha-beta search of {play.simulations or POSITIONS:,} positions"
    if play.simulations:
        return f"by a tree search of {play.simulations} simulations{margin}"
    if play.plies:
        return f"by its values of the positions after all moves and throws, {_moves(play.plies)} ahead{margin}"
    if play.lookahead:
        return f"by its values of the positions one move ahead, over every throw{margin}"
    return "the most probable move of its policy"


def _moves(count: int) -> str:
    return "one move" if count == 1 else f"{count} moves"


def _strength_lines(strength: dict[str, Any] | None) -> list[str]:
    if strength is None:
        return ["Not measured yet: `tradgames evaluate` does it."]
    games = strength.get("games")
    if isinstance(games, dict) and all(isinstance(result, dict) for result in games.values()):
        return [line for game, result in games.items() for line in (f"### {game}", "", *_strength_lines(result), "")]
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
    files = {
        WEIGHTS_FILE: weights,
        RECORD_FILE: record.to_json().encode(),
        CARD_FILE: model_card(record).encode(),
    }
    write_folder(folder, files, _may_be_replaced)


def _may_be_replaced(folder: pathlib.Path) -> bool:
    """Whether it is a checkpoint or an empty folder: nobody's other work."""
    return folder.is_dir() and ((folder / RECORD_FILE).is_file() or not any(folder.iterdir()))


def state_files(arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> dict[str, bytes]:
    """What a run resumes from, as files by name.

    Args:
        arrays: by name.
        record: JSON.
    """
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return {
        STATE_ARRAYS_FILE: safetensors.numpy.save(contiguous),
        STATE_RECORD_FILE: json.dumps({"version": _STATE_VERSION, **record}).encode(),
    }


def read_state(files: Mapping[str, bytes]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the record of ``state_files``.

    Raises:
        CheckpointError: they are of another version, or no such files.
    """
    try:
        record = json.loads(files[STATE_RECORD_FILE])
        if record["version"] != _STATE_VERSION:
            raise CheckpointError(f"its version is {record['version']!r}, not {_STATE_VERSION!r}")
        return safetensors.numpy.load(files[STATE_ARRAYS_FILE]), record
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"it cannot be read ({error})") from None
