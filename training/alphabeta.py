"""Training of alpha-beta's evaluation, to be read from top to bottom: play by search, keep the samples, learn.

The evaluation is small enough to be followed move by move (``tradgames_env/search/incremental.py``), so a core searches
millions of positions a second. It learns what a deeper search said and how the game ended; nothing but the margin is
given to it, and that only before the first step of learning.
"""

import dataclasses
import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from tradgames_env.agents.checkpoint import INCREMENTAL, NetworkRecord
from tradgames_env.processors import cores
from tradgames_env.rules.contract import MOVER, PositionCells
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.search.incremental import BUCKETS, HIDDEN, MOST_WEIGHT
from training.checkpoint import write_checkpoint
from training.config import AlphaBetaTrainConfig, ConfigError
from training.deepening import Arrays, DeepeningTask, play_deepening
from training.engines import open_engine
from training.metrics import game_metrics
from training.ranks import ALONE
from training.replay import Replay, merge
from training.rollout import sum_counts
from training.run import (
    NonFiniteLossError,
    Run,
    joined,
    linear,
    optimiser_arrays,
    part_of,
    restore_optimiser,
    shaping_weight,
)

REPLAY_FOLDER = "replay"
_WEIGHTS, _ORDER = 0, 1
_FIRST_SPREAD, _FIRST_BIAS, _OUTPUT_SPREAD = 0.15, 0.3, 0.02


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """What a step learned from.

    Attributes:
        states: (B, S) int16.
        results: (B,) float32.
    """

    states: Tensor
    results: Tensor


class EvaluationNetwork(nn.Module):
    """What ``IncrementalWeights`` computes, in real numbers; tensors as the record names them."""

    def __init__(self, record: NetworkRecord) -> None:
        super().__init__()
        self.record = record
        self.first = nn.Linear(record.inputs, HIDDEN)
        self.output = nn.Linear(2 * HIDDEN, BUCKETS)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw all weights; nothing else is random."""
        with torch.no_grad():
            self.first.weight.normal_(std=_FIRST_SPREAD, generator=generator)
            self.first.bias.fill_(_FIRST_BIAS)
            self.output.weight.normal_(std=_OUTPUT_SPREAD, generator=generator)
            self.output.bias.zero_()

    def forward(self, own: Tensor, other: Tensor, buckets: Tensor) -> Tensor:
        """(B,) log odds from the mover's view (B, F) float32, the other's, and buckets (B,) int64 of piece counts."""
        hidden = torch.cat([self.first(own).clamp(0, 1), self.first(other).clamp(0, 1)], dim=1)
        odds: Tensor = self.output(hidden).gather(1, buckets[:, None])[:, 0]
        return odds


class Sight:
    """What the network reads of state rows."""

    def __init__(self, ruleset: Ruleset) -> None:
        cells = ruleset.rules.cells(ruleset.options)
        if cells is None:
            raise ConfigError(f"method alphabeta trains games without dice that show pieces, not {ruleset.label}")
        self._cells = cells
        mirror = ruleset.rules.mirror(ruleset.options)
        self.mirrored = None if mirror is None else _mirrored_features(cells, mirror[0])
        """(F,) the features of the position with left and right exchanged; None without this symmetry."""

    def read(self, states: NDArray[np.int16]) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64]]:
        """(n, F) features of the mover's view, those of the other's, and (n,) buckets."""
        cells, count = self._cells, len(states)
        natural = (states[:, cells.cells].astype(np.uint16) >> cells.bits.astype(np.uint16) & 1).astype(np.uint8)
        black = np.empty_like(natural)
        black[:, :, cells.turned] = natural[:, ::-1]
        if cells.hands is not None:
            hands = (states[:, cells.hands, None] > np.arange(cells.hand_size)).astype(np.uint8)
            natural, black = np.concatenate([natural, hands], 2), np.concatenate([black, hands[:, ::-1]], 2)
        flat = natural.reshape(count, -1), black.reshape(count, -1)
        moves_natural = (states[:, MOVER] == 0)[:, None]
        pieces = flat[0].sum(axis=1, dtype=np.int64)
        buckets = np.maximum((pieces * BUCKETS - 1) // cells.most, 0)
        return np.where(moves_natural, *flat), np.where(moves_natural, *flat[::-1]), buckets


def _mirrored_features(cells: PositionCells, sites: NDArray[np.int64]) -> NDArray[np.int64]:
    """(F,): ``sites`` for either side's pieces on the board; hands stay what they are."""
    places = np.concatenate([sites, np.arange(len(sites), cells.places)])
    return np.concatenate([places, places + cells.places])


class AlphaBetaRun(Run):
    """A run while it goes on.

    Args:
        config: what to do.
        run_dir: folder of the run.
        say: gets one line when something unusual happens.

    Raises:
        ConfigError: the game has dice, or its pieces cannot be followed.
        EngineError: the engine cannot be opened.
    """

    title = "alpha-beta and self-play"
    advice = "A smaller deepening.learning_rate"
    rating_effort = 1_000

    def __init__(self, config: AlphaBetaTrainConfig, run_dir: pathlib.Path, say: Callable[[str], None]) -> None:
        super().__init__(config, run_dir, ALONE)
        self._config = config
        ruleset = config.game.ruleset()
        self._sight = Sight(ruleset)
        self.network = EvaluationNetwork(NetworkRecord.for_games([ruleset], HIDDEN, 0, trunk=INCREMENTAL))
        seed = np.random.SeedSequence((config.seed, _WEIGHTS)).generate_state(1)[0]
        self.network.initialise(torch.Generator().manual_seed(int(seed)))
        self._optimiser = torch.optim.Adam(self.network.parameters(), config.deepening.learning_rate)
        self.replay = Replay(run_dir / REPLAY_FOLDER, config.replay.window)
        self._shards: list[Arrays | None] = [None] * config.selfplay.shards
        selfplay = config.selfplay
        workers = min(selfplay.workers or config.threads or cores(), selfplay.shards)
        self._engine = open_engine(selfplay.engine, workers, address=selfplay.address, say=say)

    def iterate(self) -> dict[str, float]:
        """Play by search, learn from it, and report."""
        selfplay, progress = self._config.selfplay, self.progress
        started = time.perf_counter()
        results = list(self._engine.map(play_deepening, self._tasks(progress)))
        self._shards = [result.state for result in results]
        played = time.perf_counter()
        samples = merge([result.samples for result in results])
        self.replay.add(self.iteration + 1, samples)
        loss = self._learn(len(samples["results"]), progress)
        counts = sum_counts([result.counts for result in results])
        learned = time.perf_counter()
        decisions = selfplay.shards * selfplay.games * selfplay.decisions
        self.iteration += 1
        self.steps += decisions
        self.minutes += (learned - started) / 60.0
        self.save()
        self.replay.forget(self.saved.iterations()[0])
        self.minutes += (time.perf_counter() - learned) / 60.0
        return {
            "iteration": self.iteration,
            "steps": self.steps,
            "minutes": self.minutes,
            "progress": self.progress,
            "speed/decisions_per_second": decisions / (learned - started),
            "speed/games_per_second": counts.games / (learned - started),
            "speed/update_share": (learned - played) / (learned - started),
            "speed/simulations_per_second": sum(result.visited for result in results) / (played - started),
            **game_metrics(counts),
            "data/window": float(len(self.replay)),
            **loss,
            "schedule/shaping": shaping_weight(self._config.shaping, progress),
        }

    def _tasks(self, progress: float) -> list[DeepeningTask]:
        config, selfplay = self._config, self._config.selfplay
        return [
            DeepeningTask(
                game=config.game.name,
                variant=config.game.variant,
                options=config.game.options,
                weights=self._weights() if self._learned else None,
                search=config.deepening,
                selfplay=selfplay,
                shaping=shaping_weight(config.shaping, progress),
                sparse_share=linear(selfplay.sparse_share, selfplay.final_sparse_share, progress),
                seed=(config.seed, self.iteration, shard),
                state=state,
            )
            for shard, state in enumerate(self._shards)
        ]

    @property
    def _learned(self) -> bool:
        """Whether the network was taught anything yet."""
        return bool(self._optimiser.state)

    def _weights(self) -> Arrays:
        return {name: tensor.numpy().copy() for name, tensor in self.network.state_dict().items()}

    def _learn(self, new: int, progress: float) -> dict[str, float]:
        """Steps on samples of the window, half of them mirrored."""
        config = self._config.deepening
        steps = round(self._config.replay.reuse * new / config.batch_size)
        if steps == 0:
            return {}
        rng = np.random.default_rng((self._config.seed, self.iteration, self._config.selfplay.shards, _ORDER))
        for group in self._optimiser.param_groups:
            group["lr"] = linear(config.learning_rate, config.final_learning_rate, progress)
        losses = [self._step(rng) for _ in range(steps)]
        return {"loss/value": float(np.mean(losses))}

    def _step(self, rng: np.random.Generator) -> float:
        drawn = self.replay.draw(rng, self._config.deepening.batch_size, self._config.replay.window)
        own, other, buckets = self._sight.read(drawn["states"])
        if self._sight.mirrored is not None and rng.random() < 0.5:
            own, other = own[:, self._sight.mirrored], other[:, self._sight.mirrored]
        odds = self.network(torch.from_numpy(own).float(), torch.from_numpy(other).float(), torch.from_numpy(buckets))
        chances = torch.from_numpy((drawn["results"].clip(-1, 1) + 1) / 2)
        # The log odds s stand for the expectation tanh(s), so a win's are 2 s.
        loss = functional.binary_cross_entropy_with_logits(2 * odds, chances)
        if not torch.isfinite(loss):
            batch = Batch(torch.from_numpy(drawn["states"]), torch.from_numpy(drawn["results"]))
            raise NonFiniteLossError(batch, loss.item())
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        with torch.no_grad():
            for tensor in self.network.parameters():
                tensor.clamp_(-MOST_WEIGHT, MOST_WEIGHT)
        return loss.item()

    # -- files -------------------------------------------------------------------------------------------------------

    def write_policy(self, folder: pathlib.Path) -> None:
        """Write the evaluation as a checkpoint."""
        write_checkpoint(folder, self.network, self.config, self.steps)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Network, optimiser and games as arrays; checksums of the samples."""
        shards = {f"shard{number}": state for number, state in enumerate(self._shards) if state is not None}
        parts = {"network": self._weights(), "optimiser": optimiser_arrays(self._optimiser), **shards}
        return joined(parts), {"replay": self.replay.checksums()}

    def take_up(self, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Go on from a saved state, whose configuration was found to fit."""
        tensors = {name: torch.from_numpy(array) for name, array in part_of(arrays, "network").items()}
        self.network.load_state_dict(tensors)
        restore_optimiser(self._optimiser, part_of(arrays, "optimiser"))
        self._shards = [part_of(arrays, f"shard{number}") or None for number in range(len(self._shards))]
        self.replay.restore(record["iteration"], record["replay"])

    def close(self) -> None:
        """Let the workers go."""
        self.replay.close()
        self._engine.__exit__(None, None, None)
