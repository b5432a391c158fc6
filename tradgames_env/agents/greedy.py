"""The agent that looks one move ahead, by the numbers the rules give of every game."""

import numpy as np
from numba import float64, int16, int32, int64, uint64
from numpy.typing import NDArray

from tradgames_env.agents.actions import ActionAgent, deciding_actions
from tradgames_env.position import Position
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import BLACK_WINS, MARGIN, MOVER, NATURAL_WINS, OUTCOME, RUNNING
from tradgames_env.rules.table import (
    APPLY_SLOT,
    HEURISTIC_SLOT,
    LEGAL_SLOT,
    apply_at,
    heuristic_at,
    kernel_table,
    legal_at,
)

RESULT, GAIN, STANDING = range(3)
"""What a move is judged by, in this order, all from the mover's view: a game it wins (1) or loses (-1) at once, what it
adds to the margin, the standing after it."""


@kernel(
    int64(
        uint64[::1], int32[::1], int16[::1], uint64[::1], int32[::1], float64[:, ::1],
    ),
    counted=True,
)  # fmt: skip
def judge_moves(table, params, state, history, out_actions, out_marks):  # type: ignore[no-untyped-def]
    """List the n legal actions in ``out_actions`` (A,) and what each is judged by in ``out_marks`` (A, 3); return n.

    ``table`` is the game's ``kernel_table``.
    A throw that follows a move is not thrown: the standing is that right after the move. It is 0 when the game is over.
    """
    legal, apply = legal_at(table[LEGAL_SLOT]), apply_at(table[APPLY_SLOT])
    heuristic = heuristic_at(table[HEURISTIC_SLOT])
    count = legal(params, state, history, out_actions)
    after, history_after = np.empty_like(state), np.empty_like(history)
    sign = -1.0 if state[MOVER] else 1.0
    for i in range(count):
        after[:] = state
        history_after[:] = history
        apply(params, after, history_after, np.int64(out_actions[i]))
        out_marks[i, RESULT] = sign * (int(after[OUTCOME] == NATURAL_WINS) - int(after[OUTCOME] == BLACK_WINS))
        out_marks[i, GAIN] = sign * (np.int64(after[MARGIN]) - np.int64(state[MARGIN]))
        out_marks[i, STANDING] = 0.0
        if after[OUTCOME] == RUNNING:
            out_marks[i, STANDING] = sign * heuristic(params, after, history_after)
    return count


class GreedyAgent(ActionAgent):
    """Wins if one move wins, else gains the most (captures, pieces home), else stands best after the move.

    It looks at its own move only, never at the answer nor at a throw that follows; equally good moves are drawn from.
    """

    name = "greedy"

    def best_actions(self, position: Position) -> NDArray[np.int64]:
        """Actions whose marks are the highest, compared in order.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
        """
        actions, marks = _judge(position)
        best: NDArray[np.int64] = actions[(marks == _highest(marks)).all(axis=1)]
        return best

    def value(self, position: Position) -> float:
        """1 or -1 if its move ends the game so, else the standing after its move, in (-1, 1).

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
        """
        best = _highest(_judge(position)[1])
        return float(best[RESULT] or best[STANDING])


def _judge(position: Position) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(n,) legal actions and their marks (n, 3)."""
    deciding_actions(position)
    ruleset, (state, history) = position.ruleset, position.rows
    actions = np.empty(ruleset.num_actions, np.int32)
    marks = np.empty((ruleset.num_actions, 3))
    count = judge_moves(kernel_table(ruleset.kernels), ruleset.params, state, history, actions, marks)
    return actions[:count].astype(np.int64), marks[:count]


def _highest(marks: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,): the highest row, compared from left to right."""
    order = np.lexsort(marks.T[::-1])
    highest: NDArray[np.float64] = marks[order[-1]]
    return highest
