"""Playing the games from which alpha-beta's evaluation learns: a shard of them at a time, as a pure function.

Both sides search with the evaluation as it is, a few hundred positions a move. A position in which the move chosen
captures nothing is a sample once its game is over: what the search said of it, and how the game ended.

Letters: N games, K positions of games that go on, n samples, S state size.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradgames_env.rules.chance import seed_generators
from tradgames_env.rules.contract import (
    BLACK_WINS,
    DRAW,
    MARGIN,
    MOVER,
    NATURAL_WINS,
    OUTCOME,
    PAYOFF,
    RUNNING,
    TRUNCATED,
)
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.rules.table import kernel_table
from tradgames_env.search.incremental import IncrementalSearch, IncrementalWeights, features
from training.config import DeepeningConfig, SelfPlayConfig
from training.lockstep import begin_games, list_legal, play_moves
from training.rollout import GameCounts

Arrays = dict[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class DeepeningTask:
    """What a shard is told.

    Attributes:
        game, variant, options: what is played.
        weights: tensors of the evaluation; None before anything was learned, when the margin alone counts.
        search: how to search and what to make of it.
        selfplay: how to play.
        shaping: worth of the largest margin at the end of a drawn game, in wins.
        sparse_share: share of new games that begin with few pieces.
        seed: of the run, iteration, shard.
        state: what the shard gave back in the iteration before; None begins all games.
    """

    game: str
    variant: str
    options: Mapping[str, Any]
    weights: Arrays | None
    search: DeepeningConfig
    selfplay: SelfPlayConfig
    shaping: float
    sparse_share: float
    seed: tuple[int, int, int]
    state: Arrays | None


@dataclasses.dataclass(frozen=True, eq=False)
class DeepeningResult:
    """What a shard gives back.

    Attributes:
        state: for its next task.
        samples: ``states`` (n, S) int16 and ``results`` (n,) float32, what the mover may expect in [-1, 1].
        counts: games that ended.
        visited: positions that were searched.
    """

    state: Arrays
    samples: Arrays
    counts: GameCounts
    visited: int


def play_deepening(task: DeepeningTask) -> DeepeningResult:
    """Play some decisions of every game of a shard; the same task gives the same result, bit for bit."""
    return _Shard(task).play()


class _Shard:
    """The games of a shard while they are played."""

    def __init__(self, task: DeepeningTask) -> None:
        self._task = task
        self._ruleset = load_ruleset(task.game, task.variant, **task.options)
        self._kernels = kernel_table(self._ruleset.kernels)
        games = task.selfplay.games
        start_seed, search_seed, choice_seed = np.random.SeedSequence(task.seed).spawn(3)
        self._start_words = seed_generators(start_seed, games)[:, None].copy()
        self._search_words = seed_generators(search_seed, games).copy()
        self._rng = np.random.default_rng(choice_seed)
        known, places = task.weights is not None, features(self._ruleset) // 2
        self._search = IncrementalSearch(
            self._ruleset,
            IncrementalWeights.of_tensors(task.weights) if task.weights else IncrementalWeights.zero(places),
            margin_weight=0.0 if known else task.search.margin_weight,
        )
        self._legal = np.empty((games, self._ruleset.num_actions), np.int32)
        self._legal_counts = np.empty(games, np.int64)
        self._nothing = np.full(games, -1)
        self._counts, self._visited = GameCounts(), 0
        self._take_up(games)

    def _take_up(self, games: int) -> None:
        state, size = self._task.state, self._ruleset.state_size
        if state is not None:
            self.states, self.histories, self.lengths = (
                state[name].copy() for name in ("states", "histories", "lengths")
            )
            self._noted = {name: [state[f"noted/{name}"]] for name in ("states", "values", "games")}
            return
        self.states = np.zeros((games, size), np.int16)
        self.histories = np.zeros((games, self._ruleset.history_size), np.uint64)
        self.lengths = np.zeros(games, np.int64)
        self._noted = {
            "states": [np.zeros((0, size), np.int16)],
            "values": [np.zeros(0, np.float32)],
            "games": [np.zeros(0, np.int64)],
        }
        self._start(np.arange(games))

    def play(self) -> DeepeningResult:
        """Play, and take the samples of the games that end."""
        samples = [self._step() for _ in range(self._task.selfplay.decisions)]
        state = {"states": self.states, "histories": self.histories, "lengths": self.lengths}
        state |= {f"noted/{name}": np.concatenate(parts) for name, parts in self._noted.items()}
        merged = {name: np.concatenate([part[name] for part in samples]) for name in samples[0]}
        return DeepeningResult(state, merged, self._counts, self._visited)

    def _step(self) -> Arrays:
        """One decision in every game; the samples of those it ended."""
        games = len(self.states)
        budgets = np.full(games, self._task.search.positions)
        found = self._search.find(self.states, self.histories, budgets, self._search_words)
        self._visited += int(found.visited.sum())
        before = self.states.copy()
        actions = self._vary(found.actions)
        play_moves(self._kernels, self._ruleset.params, self.states, self.histories, self._nothing, actions)
        self.lengths += 1
        quiet = np.flatnonzero(self.states[:, MARGIN] == before[:, MARGIN])
        for name, array in (("states", before), ("values", found.values), ("games", np.arange(games))):
            self._noted[name].append(array[quiet])
        return self._end()

    def _vary(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The actions to play, some of them at random."""
        list_legal(self._kernels, self._ruleset.params, self.states, self.histories, self._legal, self._legal_counts)
        careless = self._rng.random(len(actions)) < self._task.selfplay.random_share
        places = (self._rng.random(len(actions)) * self._legal_counts).astype(np.int64)
        return np.where(careless, self._legal[np.arange(len(actions)), places], actions).astype(np.int64)

    def _end(self) -> Arrays:
        over = self.states[:, OUTCOME] != RUNNING
        noted = {name: np.concatenate(parts) for name, parts in self._noted.items()} if over.any() else None
        if noted is None:
            return {"states": self.states[:0].copy(), "results": np.zeros(0, np.float32)}
        due = over[noted["games"]]
        states, values = noted["states"][due], noted["values"][due]
        ends = self._results()[noted["games"][due]] * np.where(states[:, MOVER] == 0, 1, -1)
        trust = self._task.search.trust
        self._noted = {name: [array[~due]] for name, array in noted.items()}
        self._count(self.states[over], self.lengths[over])
        self._start(np.flatnonzero(over))
        return {"states": states, "results": (trust * values + (1.0 - trust) * ends).astype(np.float32)}

    def _results(self) -> NDArray[np.float64]:
        """(N,) what natural has won; of games without a winner what the margin is worth."""
        outcomes = self.states[:, OUTCOME]
        decided = (outcomes == NATURAL_WINS) | (outcomes == BLACK_WINS)
        margins = self.states[:, MARGIN] / self._ruleset.rules.margin_scale(self._ruleset.options)
        return np.where(decided, np.clip(self.states[:, PAYOFF], -1, 1), self._task.shaping * margins)

    def _count(self, ended: NDArray[np.int16], lengths: NDArray[np.int64]) -> None:
        counts, outcomes = self._counts, ended[:, OUTCOME]
        counts.games += len(ended)
        counts.natural_wins += int((outcomes == NATURAL_WINS).sum())
        counts.black_wins += int((outcomes == BLACK_WINS).sum())
        counts.draws += int((outcomes == DRAW).sum())
        counts.truncated += int((outcomes == TRUNCATED).sum())
        counts.decisions += int(lengths.sum())
        counts.absolute_margin += float(np.abs(ended[:, MARGIN]).sum())

    def _start(self, rows: NDArray[np.int64]) -> None:
        """Begin games: random moves after the rules' start, or few pieces anywhere."""
        config, ruleset, count = self._task.selfplay, self._ruleset, len(rows)
        opened = self._rng.random(count) < config.opening_share
        plies = np.where(opened, self._rng.integers(1, config.opening_plies + 1, count), 0)
        sparse = self._rng.random(count) < self._task.sparse_share
        begin_games(
            self._kernels, ruleset.params, ruleset.odds, self.states, self.histories, self._start_words,
            self._legal[0], rows, plies,
        )  # fmt: skip
        self.lengths[rows] = 0
        if ruleset.rules.scatter is None:
            return
        for row in rows[sparse]:
            self.states[row] = ruleset.rules.scatter(ruleset.options, self._rng, config.sparse_pieces)
            ruleset.rules.start_history(ruleset.params, self.states[row], self.histories[row])
