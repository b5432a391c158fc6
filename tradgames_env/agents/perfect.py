"""The agent that knows: it plays by tables of exact values."""

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents.actions import ActionAgent, deciding_actions
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.solving import solver
from tradgames_env.solving.indexing import TableError, load_index
from tradgames_env.solving.lookup import judge_decisions, judge_moves
from tradgames_env.solving.table import Table, find_endings, find_table


class PerfectAgent(ActionAgent):
    """Plays the move after which it can expect most, by the table of the game and variant that is played.

    The table is looked for where ``tradgames solve`` keeps it when a position of its ruleset is first seen; a small one
    that was not made is computed on the spot, in seconds. Where no table holds the whole game, it plays the endings of
    which there is one. Among equally good moves it draws.

    Args:
        table: play by this one, and only its ruleset.
    """

    name = "perfect"

    def __init__(self, table: Table | None = None) -> None:
        super().__init__()
        self._tables: dict[Ruleset, Table] = {} if table is None else {table.ruleset: table}

    def best_actions(self, position: Position) -> NDArray[np.int64]:
        """Actions after which the mover can expect most.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
            TableError: there is no table for this ruleset, or the position is not in it.
        """
        return _best(*self._judge(position))

    def act_many(self, positions: Sequence[Position]) -> list[str]:
        """``act`` in each of several positions of one ruleset, which are looked up together.

        Raises:
            IllegalMoveError: in one of them the game is over, or a throw is due.
            TableError: there is no table for this ruleset, or a position is not in it.
        """
        if not positions:
            return []
        for position in positions:
            deciding_actions(position)
        rows = [np.stack(part) for part in zip(*(position.rows for position in positions), strict=True)]
        table = self._table(positions[0].ruleset)
        judgement = judge_decisions(table, *rows)
        moves = []
        for position, begin, end in zip(positions, judgement.heads[:-1], judgement.heads[1:], strict=True):
            _refuse_unknown(table, position, judgement.worth[begin:end])
            best = _best(judgement.actions[begin:end], judgement.worth[begin:end])
            moves.append(position.notation(int(self._rng.choice(best))))
        return moves

    def value(self, position: Position) -> float:
        """What the mover can expect, exactly: in [-1, 1]; in games without dice 1, 0 or -1.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
            TableError: there is no table for this ruleset, or the position is not in it.
        """
        best = float(self._judge(position)[1].max())
        return best if position.ruleset.chance_kinds else float(np.sign(best))

    def _judge(self, position: Position) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        deciding_actions(position)
        table = self._table(position.ruleset)
        actions, worth = judge_moves(table, *position.rows)
        _refuse_unknown(table, position, worth)
        return actions, worth

    def _table(self, ruleset: Ruleset) -> Table:
        if ruleset not in self._tables:
            self._tables[ruleset] = table_of(ruleset)
        return self._tables[ruleset]


def _best(actions: NDArray[np.int32], worth: NDArray[np.float64]) -> NDArray[np.int64]:
    best: NDArray[np.int64] = actions[worth == worth.max()].astype(np.int64)
    return best


def _refuse_unknown(table: Table, position: Position, worth: NDArray[np.float64]) -> None:
    if np.isnan(worth).any():
        name = " ".join(filter(None, (position.ruleset.label, table.header.part)))
        raise TableError(f"the table of {name} does not cover {position.text()!r} and its moves")


def table_of(ruleset: Ruleset) -> Table:
    """The kept table of a ruleset, or of its endings; that of a small one that was not made is computed on the spot.

    Raises:
        TableError: there is none and the ruleset is not small, it cannot be solved, or the table that is there is
            damaged.
    """
    try:
        return find_table(ruleset) or _made_now(ruleset)
    except TableError:
        endings = find_endings(ruleset)
        if endings is None:
            raise
        return endings


@functools.lru_cache(maxsize=4)  # small ones only
def _made_now(ruleset: Ruleset) -> Table:
    """The table of a small ruleset, computed.

    Raises:
        TableError: it is not small; the message says which command makes the table and how long that takes.
    """
    if solver.is_small(load_index(ruleset)):
        return solver.solve_in_memory(ruleset)
    planned = solver.plan(ruleset)
    raise TableError(
        f"there is no table of exact values for {ruleset.label} yet; make it with: {command(ruleset)} "
        f"({planned.positions:,} positions, {_about(planned.seconds)})"
    )


def _about(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    return "about a minute" if minutes == 1 else f"about {minutes} minutes"


def command(ruleset: Ruleset) -> str:
    """The command line that makes the table of a ruleset."""
    options = "".join(f" --option {name}={value}" for name, value in ruleset.overrides.items())
    return f"tradgames solve {ruleset.game} --variant {ruleset.variant}{options}"
