"""A trained network at play from an ONNX file, by ONNX Runtime and without torch; ``training.export`` writes them.

Its metadata say what it plays, as texts by name: ``format_version``, ``game``, ``variant``, ``options`` (a
JSON object), ``rules_version``, ``encoder_version``, ``num_actions``, ``lookahead`` and ``margin_weight``. Its graph
takes ``observation`` (B, C, H, W) float32, what ``Encoder.encode`` gives of the seat that decides, and gives, float32,

- ``logits`` (B, A), those of illegal actions included,
- ``value`` (B,), the reward the mover expects,
- ``margin`` (B,), by how much he expects to raise his margin until the end, as a share of its scale,
- ``win_draw_loss`` (B, 3), probabilities, where the network has such a head; ``value`` follows from them.

Nothing in a file is trusted: size, metadata, versions, inputs, outputs and every number are checked. A graph cannot run
foreign code or read files elsewhere, but one made with ill intent can use much time and memory.
"""

import dataclasses
import json
import os
import pathlib
from typing import Any, NoReturn, Self

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from tradgames_env.agents.actions import checked_count
from tradgames_env.agents.checkpoint import (
    MAX_PARAMETERS,
    CheckpointError,
    GameRecord,
    PlayRecord,
    checked_fields,
    game_record,
    matching_ruleset,
    read_plain_file,
    refuse_other_version,
)
from tradgames_env.agents.evaluating import PolicyValueAgent, not_finite
from tradgames_env.encoding import ENCODER_VERSION, Encoder
from tradgames_env.rules.contract import SEAT
from tradgames_env.rules.ruleset import Ruleset

FORMAT_VERSION = 1
"""Raised whenever metadata, inputs or outputs change in a way that older readers cannot follow."""
INPUT = "observation"
OUTPUTS = ("logits", "value", "margin")
SHARES = "win_draw_loss"
"""The output that only networks with a head of win, draw and loss have."""
MOST_THREADS = 256

# The graph around the weights is small.
_MAX_BYTES = 4 * MAX_PARAMETERS + 4_000_000
_FILE_TYPE = "tensor(float)"
_GAME_FIELDS = ("game", "variant", "options", "rules_version")
_FIELDS: dict[str, tuple[type, ...]] = {
    "format_version": (int,),
    "game": (str,),
    "variant": (str,),
    "options": (dict,),
    "rules_version": (int,),
    "encoder_version": (int,),
    "num_actions": (int,),
    "lookahead": (bool,),
    "margin_weight": (float, int),
}


@dataclasses.dataclass(frozen=True)
class OnnxRecord:
    """What the metadata of a file says.

    Attributes:
        game: what it plays.
        encoder_version: ``ENCODER_VERSION`` it was trained under.
        num_actions: of the game.
        play: how the network is meant to be played with, without a search.
    """

    game: GameRecord
    encoder_version: int
    num_actions: int
    play: PlayRecord

    def to_metadata(self) -> dict[str, str]:
        """The texts by name."""
        return {
            "format_version": str(FORMAT_VERSION),
            "game": self.game.game,
            "variant": self.game.variant,
            "options": json.dumps(self.game.options),
            "rules_version": str(self.game.rules_version),
            "encoder_version": str(self.encoder_version),
            "num_actions": str(self.num_actions),
            "lookahead": json.dumps(self.play.lookahead),
            "margin_weight": json.dumps(self.play.margin_weight),
        }

    @classmethod
    def from_metadata(cls, metadata: dict[str, str], source: str) -> Self:
        """The record in the metadata of a file.

        Args:
            metadata: texts by name.
            source: name of the file, for messages.

        Raises:
            CheckpointError: a field is missing, unknown or of the wrong type, or another format version.
        """
        if "format_version" not in metadata:
            _refuse(source, "it does not say what it plays", "give a file that tradgames export wrote")
        if metadata["format_version"] != str(FORMAT_VERSION):
            theirs = metadata["format_version"][:60]
            _refuse(source, f"format version {theirs!r}, this package reads {FORMAT_VERSION}")
        values = checked_fields(
            {name: _parsed(text, _FIELDS.get(name, (str,)), source) for name, text in metadata.items()}, _FIELDS, source
        )
        game = game_record({name: values[name] for name in _GAME_FIELDS}, source)
        try:
            play = PlayRecord(lookahead=values["lookahead"], margin_weight=values["margin_weight"])
        except ValueError as error:
            _refuse(source, str(error))
        return cls(game, values["encoder_version"], values["num_actions"], play)

    def ruleset(self, source: str) -> Ruleset:
        """The ruleset of this package that it plays.

        Raises:
            CheckpointError: there is none, or rules or encoder have another version.
        """
        refuse_other_version("encoder", self.encoder_version, ENCODER_VERSION, source)
        ruleset = matching_ruleset(self.game, source)
        if ruleset.num_actions != self.num_actions:
            _refuse(source, f"it has {self.num_actions} actions, {ruleset.label} has {ruleset.num_actions}")
        return ruleset


class OnnxEvaluator:
    """What the network in a file says of state rows of its game.

    Attributes:
        ruleset: the game.
        margin_weight: worth of the largest possible final margin in utilities; a win is 1.
        margin_scale: the largest possible margin.

    Args:
        ruleset: see there.
        session: of the file; its inputs and outputs are checked.
        margin_weight: see there.
        source: name of the file, for messages.

    Raises:
        CheckpointError: inputs or outputs are not those that the game needs.
    """

    def __init__(
        self, ruleset: Ruleset, session: onnxruntime.InferenceSession, margin_weight: float, source: str
    ) -> None:
        self.ruleset = ruleset
        self.margin_weight = margin_weight
        self.margin_scale = float(ruleset.rules.margin_scale(ruleset.options))
        self._encoder = Encoder(ruleset)
        self._session = session
        self._source = source
        inputs = {port.name: port for port in session.get_inputs()}
        outputs = {port.name: port for port in session.get_outputs()}
        _check_ports("inputs", inputs, {INPUT: self._encoder.shape}, source)
        outputs.pop(SHARES, None)
        _check_ports("outputs", outputs, {"logits": (ruleset.num_actions,), "value": (), "margin": ()}, source)

    def evaluate(
        self, states: NDArray[np.int16], histories: NDArray[np.uint64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(B, A) float32 logits, and (B, 2) float32: the mover's expected reward, and expected gain of margin.

        Args:
            states: (B, S) int16.
            histories: (B, H) uint64.

        Raises:
            CheckpointError: the graph fails, or its answer has other shapes or is not finite.
        """
        count = len(states)
        observations = self._encoder.encode(states, histories, states[:, SEAT].astype(np.int8))
        try:
            logits, value, margin = self._session.run(OUTPUTS, {INPUT: observations})
        except Exception as error:
            raise _unusable(self._source, error) from None
        if (logits.shape, value.shape, margin.shape) != ((count, self.ruleset.num_actions), (count,), (count,)):
            _refuse(self._source, "its answers have other shapes than it says")
        values = np.empty((count, 2), np.float32)
        values[:, 0], values[:, 1] = value, margin
        if not (np.isfinite(logits).all() and np.isfinite(values).all()):
            raise not_finite(self._source)
        return logits, values


class OnnxAgent(PolicyValueAgent[OnnxEvaluator]):
    """Plays with the network in an ONNX file; how is told at ``PolicyValueAgent``.

    It computes on the CPU. Where several moves are worth the same but for rounding, it may choose another one than the
    checkpoint that the file was made of.

    Attributes:
        path: the file.
        record: what its metadata say.
        evaluator: what it computes with.

    Args:
        path: see there.
        threads: that one evaluation may use, 1 to 256; more than one pays for large networks and batches only.
        lookahead: what the file recommends when None.
        temperature: a positive one needs ``lookahead`` off, and switches it off when that is None.

    Raises:
        CheckpointError: the file is missing, damaged or made for another version; a ``ValueError``.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        threads: int = 1,
        lookahead: bool | None = None,
        temperature: float = 0.0,
    ) -> None:
        checked_count(threads, "threads", 1, MOST_THREADS)
        self.path = pathlib.Path(os.path.expanduser(path))
        source = str(self.path)
        session = _session(self.path, threads)
        self.record = OnnxRecord.from_metadata(session.get_modelmeta().custom_metadata_map, source)
        ruleset, play = self.record.ruleset(source), self.record.play
        super().__init__(self.path.name, (ruleset,), play, lookahead=lookahead, temperature=temperature)
        self.evaluator = OnnxEvaluator(ruleset, session, play.margin_weight, source)
        self._evaluators = [self.evaluator]

    def _judge(
        self,
        evaluator: OnnxEvaluator,
        states: NDArray[np.int16],
        histories: NDArray[np.uint64],
        legal: NDArray[np.bool_],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        logits, values = evaluator.evaluate(states, histories)
        among_legal = np.where(legal, logits.astype(np.float64), -np.inf)
        weights = np.exp(among_legal - among_legal.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True), values.astype(np.float64)

    def _values(
        self, evaluator: OnnxEvaluator, states: NDArray[np.int16], histories: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        return evaluator.evaluate(states, histories)[1].astype(np.float64)


def _session(path: pathlib.Path, threads: int) -> onnxruntime.InferenceSession:
    if not path.is_file():
        problem = "it is a folder" if path.is_dir() else "there is no such file"
        _refuse(str(path), problem, "give a file that tradgames export wrote")
    # Whoever names a link means what it points to.
    data = read_plain_file(path.resolve(), _MAX_BYTES)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised; it need not be printed as well
    try:
        # From bytes, so that weights in other files are out of reach.
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _unusable(str(path), error) from None


def _unusable(source: str, error: Exception) -> CheckpointError:
    """The runtime's errors have no class in common."""
    reason = " ".join(str(error).split())[:200]
    return CheckpointError(f"{source}: ONNX Runtime cannot use it ({reason}); export the checkpoint again")


def _refuse(source: str, problem: str, advice: str = "export the checkpoint again") -> NoReturn:
    raise CheckpointError(f"{source}: {problem}; {advice}") from None


def _parsed(text: str, kinds: tuple[type, ...], source: str) -> Any:
    """A text that stands for itself or is JSON."""
    if str in kinds:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        _refuse(source, f"its metadata cannot be read ({text[:60]!r})")


def _check_ports(kind: str, found: dict[str, Any], wanted: dict[str, tuple[int, ...]], source: str) -> None:
    """Compare names, types and shapes behind the batch, whose size must be free."""
    if set(found) != set(wanted):
        _refuse(source, f"its {kind} are {', '.join(found) or 'none'}, not {', '.join(wanted)}")
    for name, shape in wanted.items():
        port = found[name]
        batch, *rest = port.shape or [0]
        if port.type != _FILE_TYPE or isinstance(batch, int) or tuple(rest) != shape:
            _refuse(source, f"{name} is {port.type} of {port.shape}, not {_FILE_TYPE} of {['batch', *shape]}")
