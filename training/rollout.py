"""Playing the games PPO learns from: many in lockstep, both sides by the network, into arrays made once.

Letters: T steps of a rollout, N games, F features, A actions. A *decision* is one step of one game.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tradgames_env.agents.network import PolicyValueNetwork, masked_log_probabilities
from tradgames_env.envs.batch_games import BatchGames
from tradgames_env.rules.contract import BLACK_WINS, DRAW, MARGIN, NATURAL_WINS, TRUNCATED
from training.config import RolloutConfig
from training.opponents import NOBODY, OpponentPool


@dataclasses.dataclass(frozen=True, eq=False)
class Rollout:
    """What happened in T steps of N games, rewritten by every collection.

    Attributes:
        features: (T, N, F) float32, what the mover saw.
        legal: (T, N, A) bool.
        actions: (T, N) int64.
        log_probabilities: (T, N) float32 of the actions under the policy that played.
        values: (T + 1, N, 2) float32 by the learner, of the mover: result and further margin.
        movers: (T + 1, N) int8, colour that decides.
        rewards: (T, N, 2) float32 that the mover got from the decision: result, and change of margin by its scale.
        done: (T, N) bool, the decision ended the game.
        learned: (T, N) bool: the learner chose, not a frozen opponent, so the decision is learned from.
    """

    features: NDArray[np.float32]
    legal: NDArray[np.bool_]
    actions: NDArray[np.int64]
    log_probabilities: NDArray[np.float32]
    values: NDArray[np.float32]
    movers: NDArray[np.int8]
    rewards: NDArray[np.float32]
    done: NDArray[np.bool_]
    learned: NDArray[np.bool_]

    @classmethod
    def allocate(cls, steps: int, games: int, features: int, actions: int) -> "Rollout":
        """Arrays of the given sizes, of arbitrary content."""
        return cls(
            features=np.empty((steps, games, features), np.float32),
            legal=np.empty((steps, games, actions), np.bool_),
            actions=np.empty((steps, games), np.int64),
            log_probabilities=np.empty((steps, games), np.float32),
            values=np.empty((steps + 1, games, 2), np.float32),
            movers=np.empty((steps + 1, games), np.int8),
            rewards=np.empty((steps, games, 2), np.float32),
            done=np.empty((steps, games), np.bool_),
            learned=np.empty((steps, games), np.bool_),
        )


@dataclasses.dataclass
class GameCounts:
    """What ended during a rollout; ``training.metrics`` turns it into rates."""

    games: int = 0
    natural_wins: int = 0
    black_wins: int = 0
    draws: int = 0
    truncated: int = 0
    decisions: int = 0
    absolute_margin: float = 0.0
    pool_games: int = 0
    pool_score: float = 0.0


def sum_counts(parts: Sequence[GameCounts]) -> GameCounts:
    """What ended in all of them together."""
    total = GameCounts()
    for part in parts:
        for name, value in vars(part).items():
            setattr(total, name, getattr(total, name) + value)
    return total


class SelfPlay:
    """The running games of a training run.

    Args:
        games: the batch; finished games restart in the same step.
        pool: past policies and who plays where.
        config: sizes of a rollout and the share of random openings.
        rng: all choices of this run during play.
    """

    def __init__(self, games: BatchGames, pool: OpponentPool, config: RolloutConfig, rng: np.random.Generator) -> None:
        self.games = games
        self.pool = pool
        self._config = config
        self._rng = rng
        ruleset = games.ruleset
        self._cells = games.encoder.informative_cells()
        self._margin_scale = float(ruleset.rules.margin_scale(ruleset.options))
        self.rollout = Rollout.allocate(config.steps, games.num_games, len(self._cells), ruleset.num_actions)
        # What is seen after the last step: valued now, learned from in the next rollout.
        self._last_features = np.empty((games.num_games, len(self._cells)), np.float32)
        self._everyone = np.arange(games.num_games)
        self._lengths = np.zeros(games.num_games, np.int64)
        self._carelessness = np.zeros((games.num_games, 2))
        self._start(np.ones(games.num_games, np.bool_))

    def collect(self, network: PolicyValueNetwork) -> tuple[Rollout, GameCounts]:
        """Play T steps of every game; the returned arrays are overwritten by the next call."""
        counts = GameCounts()
        with torch.inference_mode():
            for step in range(self._config.steps):
                self._step(network, step, counts)
            self._read_features(self._last_features)
            _, values = network(self._on_device(self._last_features, network))
            self.rollout.values[-1] = values.cpu().numpy()
        self.rollout.movers[-1] = self.games.to_move
        return self.rollout, counts

    def _step(self, network: PolicyValueNetwork, step: int, counts: GameCounts) -> None:
        games, out = self.games, self.rollout
        mover = out.movers[step]
        mover[:] = games.to_move
        self._read_features(out.features[step])
        np.equal(games.action_masks, 1, out=out.legal[step])
        frozen = self.pool.colours == mover
        careless = self._rng.random(games.num_games) < self._carelessness[self._everyone, mover]
        np.logical_not(frozen | careless, out=out.learned[step])
        self._decide(network, step, frozen & ~careless, careless)
        margin = games.states[:, MARGIN].astype(np.float32)
        games.step(out.actions[step])
        self._lengths += 1
        sign = np.where(mover == 0, np.float32(1), np.float32(-1))
        out.rewards[step, :, 0] = games.rewards[self._everyone, mover]
        out.rewards[step, :, 1] = (games.endings[:, 2] - margin) * sign / self._margin_scale
        np.logical_or(games.terminated, games.truncated, out=out.done[step])
        if out.done[step].any():
            self._count(out.done[step], counts)
            self._start(out.done[step])

    def _decide(
        self, network: PolicyValueNetwork, step: int, frozen: NDArray[np.bool_], careless: NDArray[np.bool_]
    ) -> None:
        """Choose an action in every game and note value and log probability."""
        out = self.rollout
        features = self._on_device(out.features[step], network)
        logits, values = network(features)
        self.pool.replace_logits(features, logits, frozen)
        # Equal logits: a careless move is uniform over the legal actions.
        logits[torch.from_numpy(careless).to(logits.device)] = 0.0
        log_probabilities = masked_log_probabilities(logits, self._on_device(out.legal[step], network))
        uniform = torch.from_numpy(self._rng.random(len(features), dtype=np.float32)).to(logits.device)
        actions = sample_actions(log_probabilities, uniform)
        chosen = log_probabilities.gather(1, actions[:, None])[:, 0]
        out.actions[step] = actions.cpu().numpy()
        out.log_probabilities[step] = chosen.cpu().numpy()
        out.values[step] = values.cpu().numpy()

    def _start(self, started: NDArray[np.bool_]) -> None:
        """Draw opponent and random opening of the games that have just started, and play the openings."""
        self.pool.assign(started, self._rng)
        self._lengths[started] = 0
        sides = (int(started.sum()), 2)
        levels = self._rng.random(sides) * self._config.careless_level
        self._carelessness[started] = np.where(self._rng.random(sides) < self._config.careless_share, levels, 0.0)
        rows = np.flatnonzero(started)
        plies = self._rng.integers(1, self._config.opening_plies + 1, len(rows))
        opened = self._rng.random(len(rows)) < self._config.opening_share
        if opened.any():
            self._play_openings(rows[opened], plies[opened])

    def _play_openings(self, rows: NDArray[np.int64], plies: NDArray[np.int64]) -> None:
        """Play uniform random moves in some games and rewrite their arrays; a game that ends goes on anew."""
        moves = np.zeros(self.games.num_games, np.int64)
        moves[rows] = plies
        self.games.play_random(moves)

    def _count(self, done: NDArray[np.bool_], counts: GameCounts) -> None:
        outcomes, margins = self.games.endings[done, 0], self.games.endings[done, 2]
        counts.games += len(outcomes)
        counts.natural_wins += int((outcomes == NATURAL_WINS).sum())
        counts.black_wins += int((outcomes == BLACK_WINS).sum())
        counts.draws += int((outcomes == DRAW).sum())
        counts.truncated += int((outcomes == TRUNCATED).sum())
        counts.decisions += int(self._lengths[done].sum())
        counts.absolute_margin += float(np.abs(margins).sum())
        colours = self.pool.colours[done]
        against = colours != NOBODY
        learner_wins = np.where(colours == 0, BLACK_WINS, NATURAL_WINS)
        decided = (outcomes == NATURAL_WINS) | (outcomes == BLACK_WINS)
        scores = np.where(decided, outcomes == learner_wins, 0.5)
        counts.pool_games += int(against.sum())
        counts.pool_score += float(scores[against].sum())

    def _read_features(self, out: NDArray[np.float32]) -> None:
        flat = self.games.observations.reshape(self.games.num_games, -1)
        np.take(flat, self._cells, axis=1, out=out, mode="clip")

    @staticmethod
    def _on_device(array: NDArray[Any], network: PolicyValueNetwork) -> Tensor:
        return torch.from_numpy(array).to(network.policy.weight.device)

    # -- for a resume ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes between rollouts but the pool and the generator, as arrays by name."""
        return {
            **self.games.get_state(),
            "lengths": self._lengths,
            "carelessness": self._carelessness,
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take up what ``state`` gave."""
        self.games.set_state(arrays)
        self._lengths[:] = arrays["lengths"]
        self._carelessness[:] = arrays["carelessness"]


def sample_actions(log_probabilities: Tensor, uniform: Tensor) -> Tensor:
    """(N,) int64 actions drawn by inverting the cumulative distribution; never one of probability zero.

    Args:
        log_probabilities: (N, A) float32 of normalised distributions.
        uniform: (N,) float32 in [0, 1).
    """
    cumulative = log_probabilities.exp().cumsum(dim=1)
    total = cumulative[:, -1]
    # Rounding may not carry the threshold up to the total, which no entry exceeds.
    threshold = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    return (cumulative <= threshold[:, None]).sum(dim=1)
