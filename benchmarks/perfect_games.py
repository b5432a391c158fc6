"""Games of a table of expectations against itself, many at once, decision by decision."""

import dataclasses
from collections.abc import Iterator

import numpy as np
from numba import float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.batch import start_game
from tradgames_env.rules.chance import resolve_chance, seed_generators
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import APPLY, APPLY_CHANCE, INITIAL, MOVER, OUTCOME, PAYOFF, RUNNING
from tradgames_env.solving.lookup import Judgement, judge_decisions
from tradgames_env.solving.table import Table
from training.solve import start_value

_STATES, _HISTORIES, _ODDS = int16[:, ::1], uint64[:, ::1], float64[:, ::1]


@kernel(
    types.void(
        types.FunctionType(INITIAL), types.FunctionType(APPLY_CHANCE), int32[::1], _ODDS, _STATES, _HISTORIES,
        uint64[:, ::1],
    )
)  # fmt: skip
def _start_all(initial, apply_chance, params, odds, states, histories, rngs):  # type: ignore[no-untyped-def]
    """Start a game in every row, up to its first decision."""
    for i in range(states.shape[0]):
        start_game(initial, apply_chance, params, odds, states[i], histories[i], rngs[i])


@kernel(
    types.void(
        types.FunctionType(APPLY), types.FunctionType(APPLY_CHANCE), int32[::1], _ODDS, _STATES, _HISTORIES,
        uint64[:, ::1], int64[::1], int32[::1],
    )
)  # fmt: skip
def _play_all(apply, apply_chance, params, odds, states, histories, rngs, games, actions):  # type: ignore[no-untyped-def]
    """Play one action in each of the rows ``games``, and throw what is then due."""
    for i in range(games.shape[0]):
        row = games[i]
        apply(params, states[row], histories[row], np.int64(actions[i]))
        if states[row, OUTCOME] == RUNNING:
            resolve_chance(apply_chance, params, odds, states[row], histories[row], rngs[row])


@dataclasses.dataclass(frozen=True, eq=False)
class Decisions:
    """One decision in each of n games.

    Attributes:
        states: (n, S) int16, the rows; the throw is known.
        before: (n,) float64, what the mover could expect before he threw.
        judgement: what the table says of the moves.
        best: (n,) float64, what he can expect with the best of them.
    """

    states: NDArray[np.int16]
    before: NDArray[np.float64]
    judgement: Judgement
    best: NDArray[np.float64]


class PerfectGames:
    """Games in which both sides play the table's best move, the first of equals.

    Args:
        table: of expectations.
        games: how many.
        seed: of the throws.

    Attributes:
        lengths: (games,) int64, decisions.
    """

    def __init__(self, table: Table, games: int, seed: int) -> None:
        self.table = table
        self._ruleset = ruleset = table.ruleset
        self._states = np.zeros((games, ruleset.state_size), np.int16)
        self._histories = np.zeros((games, ruleset.history_size), np.uint64)
        self._rngs = seed_generators(seed, games).reshape(games, 1)
        kernels = ruleset.kernels
        _start_all(
            kernels.initial, kernels.apply_chance, ruleset.params, ruleset.odds, self._states, self._histories,
            self._rngs,
        )  # fmt: skip
        self._first = self._states[:, MOVER].astype(np.int64)
        self._before = np.full(games, start_value(table))
        self.lengths = np.zeros(games, np.int64)

    @property
    def over(self) -> NDArray[np.bool_]:
        """(games,) whether each has ended."""
        ended: NDArray[np.bool_] = self._states[:, OUTCOME] != RUNNING
        return ended

    @property
    def payoffs(self) -> NDArray[np.int64]:
        """(games,) what the side that began was paid; 0 in games that are not over or were cut off."""
        return np.where(self.over, self._states[:, PAYOFF] * (1 - 2 * self._first), 0)

    def play(self) -> Iterator[Decisions]:
        """The next decision of all games that are not over, again and again until all are."""
        while True:
            games = np.flatnonzero(~self.over)
            if len(games) == 0:
                return
            states = self._states[games]
            judgement = judge_decisions(self.table, states, self._histories[games])
            chosen = judgement.first_best()
            best = judgement.worth[chosen]
            yield Decisions(states, self._before[games], judgement, best)
            self._advance(games, states[:, MOVER], judgement.actions[chosen], best)

    def _advance(
        self, games: NDArray[np.int64], movers: NDArray[np.int16], actions: NDArray[np.int32],
        best: NDArray[np.float64],
    ) -> None:  # fmt: skip
        kernels, ruleset = self._ruleset.kernels, self._ruleset
        _play_all(
            kernels.apply, kernels.apply_chance, ruleset.params, ruleset.odds, self._states, self._histories,
            self._rngs, games, actions,
        )  # fmt: skip
        self.lengths[games] += 1
        self._before[games] = np.where(self._states[games, MOVER] == movers, best, -best)


def worth_of(judgement: Judgement, action: int) -> NDArray[np.float64]:
    """(n,) what an action is worth in each decision; NaN where it is not legal."""
    worth = np.full(len(judgement.heads) - 1, np.nan)
    places = np.flatnonzero(judgement.actions == action)
    worth[np.searchsorted(judgement.heads, places, side="right") - 1] = judgement.worth[places]
    return worth


def best_without(judgement: Judgement, action: int) -> NDArray[np.float64]:
    """(n,) what the best other move is worth; -inf where there is none."""
    others = np.where(judgement.actions == action, -np.inf, judgement.worth)
    best: NDArray[np.float64] = np.maximum.reduceat(others, judgement.heads[:-1])
    return best
