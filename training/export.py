"""Writing trained policies as ONNX files, for ONNX Runtime and for programs in other languages.

What a file takes, gives and says about itself is told in ``tradgames_env.agents.onnx``. A file is written only after it
has been read back and has answered as the network does, on positions from play.
"""

import contextlib
import dataclasses
import logging
import os
import pathlib
import tempfile
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tradgames_env.agents.checkpoint import Checkpoint, GameRecord, PlayRecord, read_checkpoint
from tradgames_env.agents.layout import InputLayout
from tradgames_env.agents.network import NetworkEvaluator, PolicyValueNetwork, load_network
from tradgames_env.agents.onnx import INPUT, OUTPUTS, SHARES, OnnxAgent, OnnxRecord
from tradgames_env.encoding import ENCODER_VERSION, Encoder
from tradgames_env.envs.batch_games import BatchGames
from tradgames_env.rules.ruleset import Ruleset

TOLERANCE = 1e-5
"""Largest difference from torch, as a share of numbers above 1."""
BATCHES = (1, 3, 256)
"""Batch sizes at which a file is compared with torch."""

_PLIES_BETWEEN = 8
_ENDS = {"scalar": OUTPUTS, "wdl": (*OUTPUTS, SHARES)}


class ExportError(RuntimeError):
    """A written file does not answer as its network does; it was removed."""


@dataclasses.dataclass(frozen=True)
class Export:
    """A file that was written.

    Attributes:
        path: of the file.
        record: what its metadata say.
        difference: largest difference from torch found, as a share of numbers above 1.
    """

    path: pathlib.Path
    record: OnnxRecord
    difference: float


def export_onnx(
    folder: str | os.PathLike[str], output: pathlib.Path, *, game: str | None = None, variant: str | None = None
) -> Export:
    """Write the network of a checkpoint as an ONNX file, complete and compared with torch, or not at all.

    Args:
        folder: the checkpoint.
        output: the file; replaced when it exists.
        game: name of the game, where the checkpoint plays several.
        variant: of the game, where the checkpoint plays several.

    Raises:
        CheckpointError: the checkpoint cannot be used; a ``ValueError``.
        ValueError: the checkpoint plays no such game, or several.
        ExportError: the file does not answer as the network does.
        OSError: the file cannot be written.
    """
    checkpoint = read_checkpoint(folder)
    ruleset = _chosen(checkpoint, game, variant)
    play = checkpoint.record.play
    record = OnnxRecord(
        game=GameRecord.of(ruleset),
        encoder_version=ENCODER_VERSION,
        num_actions=ruleset.num_actions,
        play=PlayRecord(lookahead=play.lookahead, margin_weight=play.margin_weight),
    )
    network = load_network(checkpoint)
    model = _model(_Exported(network, ruleset, checkpoint.rulesets), record)
    descriptor, name = tempfile.mkstemp(prefix=f".{output.name}.", suffix=".tmp", dir=output.parent)
    temporary = pathlib.Path(name)
    try:
        with open(descriptor, "wb") as file:
            file.write(model.SerializeToString())
        temporary.chmod(0o644)
        difference = _difference(temporary, network, ruleset, checkpoint)
        if not difference <= TOLERANCE:
            raise ExportError(f"{output}: it differs from its network by {difference:.2g}; nothing was written")
        os.replace(temporary, output)
    finally:
        temporary.unlink(missing_ok=True)
    return Export(output, record, difference)


def _chosen(checkpoint: Checkpoint, game: str | None, variant: str | None) -> Ruleset:
    """The one ruleset of the checkpoint that is meant."""
    fitting = [
        ruleset
        for ruleset in checkpoint.rulesets
        if game in (None, ruleset.game) and variant in (None, ruleset.variant)
    ]
    if len(fitting) != 1:
        known = " and ".join(ruleset.label for ruleset in checkpoint.rulesets)
        problem = "name one of them by game and variant" if fitting else "no other can be exported"
        raise ValueError(f"{checkpoint.folder} plays {known}; {problem}")
    return fitting[0]


class _Exported(nn.Module):
    """From observations of one game to what is written; reads what the network reads."""

    def __init__(self, network: PolicyValueNetwork, ruleset: Ruleset, rulesets: Sequence[Ruleset]) -> None:
        super().__init__()
        self.network = network
        self.shape = Encoder(ruleset).shape
        self.game = rulesets.index(ruleset)
        layout = InputLayout.of(rulesets, whole_planes=network.record.trunk == "conv")
        self.margins = (0, layout.board[1] - self.shape[2], 0, layout.board[0] - self.shape[1])
        self.register_buffer("cells", torch.from_numpy(layout.cells))

    def forward(self, observation: Tensor) -> tuple[Tensor, ...]:
        """(B, C, H, W) float32 to what ``tradgames_env.agents.onnx`` lists."""
        if any(self.margins):
            observation = nn.functional.pad(observation, self.margins)
        features = observation.flatten(1).index_select(1, self.get_buffer("cells"))
        logits, value, margin = self.network.outputs(features, self.game)
        if self.network.record.value == "scalar":
            return logits, value[:, 0], margin[:, 0]
        shares = torch.softmax(value, dim=-1)
        return logits, shares[:, 0] - shares[:, 2], margin[:, 0], shares


def _model(module: _Exported, record: OnnxRecord) -> onnx.ModelProto:
    """The graph of a module with a free batch size, and the record as its metadata."""
    # A batch of two: what is seen with one could be taken for a constant.
    example = torch.zeros(2, *module.shape)
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module.eval(), (example,), dynamo=True, external_data=False, verbose=False, input_names=[INPUT],
            output_names=list(_ENDS[module.network.record.value]), dynamic_shapes=({0: torch.export.Dim("batch")},),
        )  # fmt: skip
    assert program is not None
    model: onnx.ModelProto = program.model_proto
    _forget_origins(model)
    onnx.helper.set_model_props(model, record.to_metadata())
    onnx.checker.check_model(model)
    return model


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter warns of its own use of torch and of packages that are not needed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _forget_origins(model: onnx.ModelProto) -> None:
    """Take out where in which source file each part of the graph comes from."""
    graph = model.graph
    for part in (model, graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")


def _difference(path: pathlib.Path, network: PolicyValueNetwork, ruleset: Ruleset, checkpoint: Checkpoint) -> float:
    """Largest difference between a file and its network, as a share of numbers above 1."""
    written = OnnxAgent(path).evaluator
    evaluator = NetworkEvaluator(ruleset, network, games=checkpoint.rulesets)
    states, histories = positions_from_play(ruleset, max(BATCHES))
    worst = 0.0
    for count in BATCHES:
        rows = states[:count], histories[:count]
        ours = (part.numpy() for part in evaluator.evaluate(*rows))
        for mine, theirs in zip(ours, written.evaluate(*rows), strict=True):
            worst = max(worst, float((np.abs(mine - theirs) / np.maximum(np.abs(mine), 1.0)).max()))
    return worst


def positions_from_play(ruleset: Ruleset, count: int) -> tuple[NDArray[np.int16], NDArray[np.uint64]]:
    """(N, S) int16 states and (N, H) uint64 histories of decisions in random games, some early and some late.

    Args:
        ruleset: the game.
        count: N.
    """
    width = 32
    games = BatchGames(ruleset.game, ruleset.variant, num_games=width, seed=0, **ruleset.overrides)
    states, histories = [], []
    for _ in range(-(-count // width)):
        games.play_random(_PLIES_BETWEEN)
        states.append(games.states.copy())
        histories.append(games.histories.copy())
    return np.concatenate(states)[:count], np.concatenate(histories)[:count]
