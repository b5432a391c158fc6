"""Games against a table of exact values, thousands at a time: what a way to choose moves is worth, within seconds.

For games of dice, where luck hides small differences: beside the score stands what the moves cost by the table.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tradgames_env.envs.batch_games import BatchGames
from tradgames_env.rules.contract import MOVER, OUTCOME, PAYOFF, RUNNING
from tradgames_env.solving.lookup import judge_decisions
from tradgames_env.solving.table import EXPECTATION, Table
from training.intervals import Interval, mean_interval, score_interval

Choose = Callable[[NDArray[np.int16], NDArray[np.uint64]], NDArray[np.int64]]
"""From the rows (N, S) and (N, H) of decisions to legal actions (N,) int64."""

_PAIRS_AT_A_TIME = 1 << 11
_PERCENT = 50.0
"""Percentage points of winning probability in a unit of expected reward."""


@dataclasses.dataclass(frozen=True)
class PerfectScore:
    """How somebody did against the table.

    Attributes:
        games: that were played, an even number.
        score: points a game, win 1, draw 0.5; the table itself would have 0.5.
        interval: 95 % of the score, from pairs of games with the same throws and sides swapped.
        decisions: of the one who was measured.
        regret: mean over these of the value of the best move less that of the one played, in percentage points of
            winning probability.
        regret_interval: 95 % of the regret, from pairs of games; None of a single pair.
        optimal: share of the decisions without regret, up to the error of the table.
    """

    games: int
    score: float
    interval: Interval
    decisions: int
    regret: float
    regret_interval: Interval | None
    optimal: float


@dataclasses.dataclass(frozen=True, eq=False)
class _Tally:
    """Pair by pair: points (P,), regrets (P,) in expected reward, decisions (P,) and those without regret (P,)."""

    points: NDArray[np.float64]
    regrets: NDArray[np.float64]
    decisions: NDArray[np.int64]
    optimal: NDArray[np.int64]


def score_against(table: Table, choose: Choose, pairs: int, seed: int = 0) -> PerfectScore:
    """Play pairs of games against the best moves of a table, the first of equals, sides swapped in the second.

    Args:
        table: of expectations, of a whole game.
        choose: how the other side moves; asked of many decisions at once.
        pairs: at least 1.
        seed: of the throws.

    Raises:
        ValueError: the table is none of expectations.
        TableError: a position is not in it.
    """
    if table.header.kind != EXPECTATION:
        raise ValueError(f"the table of {table.ruleset.label} holds no expectations")
    parts = [
        _play(table, choose, min(_PAIRS_AT_A_TIME, pairs - begin), (seed, begin))
        for begin in range(0, pairs, _PAIRS_AT_A_TIME)
    ]
    whole = _Tally(*(np.concatenate(arrays) for arrays in zip(*(vars(part).values() for part in parts), strict=True)))
    decisions = int(whole.decisions.sum())
    asked = np.flatnonzero(whole.decisions)
    return PerfectScore(
        games=2 * pairs,
        score=float(whole.points.mean() / 2.0),
        interval=score_interval(whole.points.tolist(), seed),
        decisions=decisions,
        regret=float(_PERCENT * whole.regrets.sum() / decisions),
        regret_interval=mean_interval(_PERCENT * whole.regrets[asked], whole.decisions[asked], seed),
        optimal=float(whole.optimal.sum() / decisions),
    )


def _play(table: Table, choose: Choose, pairs: int, seed: tuple[int, int]) -> _Tally:
    games = _paired_games(table, pairs, seed)
    colours = np.tile([0, 1], pairs)
    tally = _Tally(np.zeros(pairs), np.zeros(pairs), np.zeros(pairs, np.int64), np.zeros(pairs, np.int64))
    actions = np.zeros(2 * pairs, np.int64)
    while True:
        running = np.flatnonzero(games.states[:, OUTCOME] == RUNNING)
        if len(running) == 0:
            break
        states, histories = games.states[running], games.histories[running]
        judgement = judge_decisions(table, states, histories)
        played = judgement.first_best()
        own = np.flatnonzero(states[:, MOVER] == colours[running])
        if len(own):
            best = played[own]
            played[own] = judgement.places(own, choose(states[own], histories[own]))
            regrets = np.maximum(judgement.values[best] - judgement.values[played[own]], 0.0)
            pair = running[own] // 2
            tally.regrets[:] += np.bincount(pair, regrets, pairs)
            tally.decisions[:] += np.bincount(pair, minlength=pairs)
            tally.optimal[:] += np.bincount(pair[regrets <= table.header.residual], minlength=pairs)
        actions[running] = judgement.actions[played]
        games.step(actions)
    rewards = np.sign(games.states[:, PAYOFF]) * np.where(colours == 0, 1, -1)
    tally.points[:] = ((1.0 + rewards) / 2.0).reshape(pairs, 2).sum(axis=1)
    return tally


def _paired_games(table: Table, pairs: int, seed: tuple[int, int]) -> BatchGames:
    """Games of which each two that follow each other start alike and throw alike."""
    ruleset = table.ruleset
    games = BatchGames(
        ruleset.game,
        ruleset.variant,
        num_games=2 * pairs,
        seed=np.random.SeedSequence(seed),
        restart_finished=False,
        num_threads=1,
        **ruleset.overrides,
    )
    games.set_state({name: np.repeat(array[::2], 2, axis=0) for name, array in games.get_state().items()})
    return games
