"""How a network in training does against the exact solution of its game, where there is a table of it."""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents.network import NetworkEvaluator, PolicyValueNetwork
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.search.expectimax import Expectimax
from tradgames_env.solving.indexing import TableError
from tradgames_env.solving.table import EXPECTATION, Table, find_table
from training.perfect_match import score_against

_PAIRS = 1_000
_SHARE = 0.05
"""Of the time of a run, about."""
_LONGEST_WAIT = 60.0
"""Seconds between two measurements, at most: the first one may take long, because it compiles."""


class AgainstPerfect:
    """Plays against the table of a game of dice, now and then, and says nothing where there is none.

    Args:
        game: place of what is measured among the games.
        games: all that the network plays, in the order of its policy heads.
    """

    def __init__(self, game: int, games: Sequence[Ruleset]) -> None:
        self._games = games
        self._ruleset = games[game]
        self._table = _expectations(self._ruleset)
        self._due = 0.0

    def measure(self, network: PolicyValueNetwork) -> dict[str, float]:
        """Metrics by name, none when there is no table or the last measurement was a moment ago.

        Args:
            network: plays the move of the highest expected value.
        """
        started = time.perf_counter()
        if self._table is None or started < self._due:
            return {}
        evaluator, search = NetworkEvaluator(self._ruleset, network, games=self._games), Expectimax(self._ruleset)

        def choose(states: NDArray[np.int16], histories: NDArray[np.uint64]) -> NDArray[np.int64]:
            outlook = search.look(evaluator, states, histories)
            return outlook.actions[outlook.best].astype(np.int64)

        found = score_against(self._table, choose, _PAIRS)
        ended = time.perf_counter()
        self._due = ended + min(_LONGEST_WAIT, (ended - started) / _SHARE)
        return {"perfect/score": found.score, "perfect/regret": found.regret}


def _expectations(ruleset: Ruleset) -> Table | None:
    """The table of a game of dice; None where none was made, or none can be."""
    try:
        table = find_table(ruleset)
    except TableError:
        return None
    return table if table is not None and table.header.kind == EXPECTATION else None
