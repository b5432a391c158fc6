"""Alpha-beta search of fixed depth for games without dice, compiled over the rules' own kernels.

Depth counts decisions. Who decides next is read from the position: a side that decides twice running (a bonus capture)
keeps its sign. The leaves are judged by the game's ``heuristic``.
"""

import numpy as np
from numba import float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.agents.actions import ActionAgent, checked_count, deciding_actions
from tradgames_env.position import Position
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    BLACK_WINS,
    CHANCE,
    HEURISTIC,
    LEGAL,
    MARGIN,
    MOVER,
    NATURAL_WINS,
    OUTCOME,
    RUNNING,
)
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.rules.table import (
    APPLY_SLOT,
    HEURISTIC_SLOT,
    LEGAL_SLOT,
    apply_at,
    heuristic_at,
    kernel_table,
    legal_at,
)

WIN = 2.0
"""Score of a won game, beyond every heuristic."""
PLY = 1e-6
"""Taken off a win for every decision on the way there: quicker wins and slower losses are better."""
TIE = 1e-9
"""Root moves are searched with a window this much below the best score, so that equal scores are exact."""
MOST_DEPTH = 1000
NO_HINT = -1
_INFINITY = 1e9
_FIRST = 1_000_000
_WINS_AT_ONCE = 100_000
_OPENING_THROW = "first player"

_LEGAL, _APPLY, _HEURISTIC = types.FunctionType(LEGAL), types.FunctionType(APPLY), types.FunctionType(HEURISTIC)
_PARAMS, _STATES, _HISTORIES = int32[::1], int16[:, ::1], uint64[:, ::1]
_LISTS = int32[:, ::1]


@kernel(float64(int16[::1], int64), counted=True)
def _final_score(state, level):  # type: ignore[no-untyped-def]
    """Score of a game that ended at ``level``, for the side that stands as the mover."""
    if state[OUTCOME] != NATURAL_WINS and state[OUTCOME] != BLACK_WINS:
        return 0.0
    winner = 1 if state[OUTCOME] == BLACK_WINS else 0
    return WIN - level * PLY if winner == state[MOVER] else level * PLY - WIN


@kernel(types.void(_APPLY, _PARAMS, _STATES, _HISTORIES, int64, int64), counted=True)
def _play(apply, params, states, histories, level, action):  # type: ignore[no-untyped-def]
    """Write the position after ``action`` on row ``level`` into the next row."""
    for i in range(states.shape[1]):
        states[level + 1, i] = states[level, i]
    for i in range(histories.shape[1]):
        histories[level + 1, i] = histories[level, i]
    apply(params, states[level + 1], histories[level + 1], action)


@kernel(int64(_LEGAL, _APPLY, _PARAMS, _STATES, _HISTORIES, _LISTS, _LISTS, int64, int64), counted=True)
def _list_in_order(legal, apply, params, states, histories, actions, ranks, level, hint):  # type: ignore[no-untyped-def]
    """List the legal actions of row ``level``: ``hint`` first, then wins, then by what they add to the margin."""
    state = states[level]
    sign = -1 if state[MOVER] else 1
    count = legal(params, state, histories[level], actions[level])
    for i in range(count):
        action = actions[level, i]
        _play(apply, params, states, histories, level, np.int64(action))
        rank = sign * (np.int64(states[level + 1, MARGIN]) - np.int64(state[MARGIN]))
        if states[level + 1, OUTCOME] == (BLACK_WINS if state[MOVER] else NATURAL_WINS):
            rank += _WINS_AT_ONCE
        if action == hint:
            rank += _FIRST
        slot = i
        while slot > 0 and ranks[level, slot - 1] < rank:
            ranks[level, slot] = ranks[level, slot - 1]
            actions[level, slot] = actions[level, slot - 1]
            slot -= 1
        ranks[level, slot] = rank
        actions[level, slot] = action
    return count


@kernel(
    float64(
        _LEGAL, _APPLY, _HEURISTIC, _PARAMS, _STATES, _HISTORIES, _LISTS, _LISTS, int64[::1],
        int64, int64, float64, float64,
    ),
    counted=True,
)  # fmt: skip
def _search(  # type: ignore[no-untyped-def]
    legal, apply, heuristic, params, states, histories, actions, ranks, hints, level, depth, alpha, beta
):
    """Score of row ``level`` for its mover, ``depth`` decisions deep; a bound where it lies outside (alpha, beta).

    ``states``, ``histories``, ``actions``, ``ranks`` and ``hints`` have a row for every level. A hint is the action
    that was last found good at its level.
    """
    state = states[level]
    mover = state[MOVER]
    if state[OUTCOME] != RUNNING:
        return _final_score(state, level)
    if depth == 0 or state[CHANCE] != 0:
        standing = heuristic(params, state, histories[level])
        return -standing if mover else standing
    if depth == 1:  # the order would cost as much as the leaves
        count = legal(params, state, histories[level], actions[level])
    else:
        count = _list_in_order(legal, apply, params, states, histories, actions, ranks, level, hints[level])
    best = -_INFINITY
    for i in range(count):
        action = np.int64(actions[level, i])
        _play(apply, params, states, histories, level, action)
        floor = max(alpha, best)
        if states[level + 1, MOVER] == mover:  # the same side decides again
            score = _search(
                legal, apply, heuristic, params, states, histories, actions, ranks, hints,
                level + 1, depth - 1, floor, beta,
            )  # fmt: skip
        else:
            score = -_search(
                legal, apply, heuristic, params, states, histories, actions, ranks, hints,
                level + 1, depth - 1, -beta, -floor,
            )  # fmt: skip
        if score > best:
            best = score
            if score > alpha:
                hints[level] = action
        if best >= beta:
            break
    return best


@kernel(
    int64(
        uint64[::1], _PARAMS, _STATES, _HISTORIES, int64, int32[::1], float64[::1],
    ),
    counted=True,
)  # fmt: skip
def search_moves(  # type: ignore[no-untyped-def]
    table, params, states, histories, depth, out_actions, out_scores
):
    """Score every legal action of row 0 by searches of 1, 2, ... ``depth`` decisions; return their number.

    ``table`` is the game's ``kernel_table``; ``states`` and ``histories`` have ``depth`` + 1 rows. ``out_actions`` (A,)
    and ``out_scores`` (A,) are from the mover's view; the highest score and all equal to it are exact, others may be
    bounds below it. Ends early with a win.
    """
    legal, apply = legal_at(table[LEGAL_SLOT]), apply_at(table[APPLY_SLOT])
    heuristic = heuristic_at(table[HEURISTIC_SLOT])
    actions = np.empty((depth + 1, out_actions.shape[0]), np.int32)
    ranks = np.empty_like(actions)
    hints = np.full(depth + 1, NO_HINT, np.int64)
    mover = states[0, MOVER]
    count = _list_in_order(legal, apply, params, states, histories, actions, ranks, 0, NO_HINT)
    for reach in range(1, depth + 1):
        best, best_index = -_INFINITY, 0
        for i in range(count):
            _play(apply, params, states, histories, 0, np.int64(actions[0, i]))
            if states[1, MOVER] == mover:
                score = _search(
                    legal, apply, heuristic, params, states, histories, actions, ranks, hints,
                    1, reach - 1, best - TIE, _INFINITY,
                )  # fmt: skip
            else:
                score = -_search(
                    legal, apply, heuristic, params, states, histories, actions, ranks, hints,
                    1, reach - 1, -_INFINITY, TIE - best,
                )  # fmt: skip
            out_actions[i] = actions[0, i]
            out_scores[i] = score
            if score > best:
                best, best_index = score, i
        if best > 1.0:
            break
        first = actions[0, best_index]
        for i in range(best_index, 0, -1):
            actions[0, i] = actions[0, i - 1]
        actions[0, 0] = first
    return count


class AlphaBetaAgent(ActionAgent):
    """Plays a move of the highest score ``depth`` decisions ahead, drawn from those of exactly equal score.

    Args:
        depth: decisions looked ahead, 1 to 1000; the bonus capture of the same side counts as one.

    Raises:
        ValueError: ``depth`` is not such an integer.
    """

    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.depth = checked_count(depth, "depth", 1, MOST_DEPTH)
        self.name = f"alphabeta:{depth}"

    def best_actions(self, position: Position) -> NDArray[np.int64]:
        """Actions of the highest score.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
            ValueError: dice are thrown in this game.
        """
        actions, scores = self._search(position)
        return np.sort(actions[scores == scores.max()])

    def value(self, position: Position) -> float:
        """The best score: 1 and -1 for a win and a loss within ``depth``, 0 for a draw, else the heuristic ahead.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
            ValueError: dice are thrown in this game.
        """
        return float(np.clip(self._search(position)[1].max(), -1.0, 1.0))

    def _search(self, position: Position) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        deciding_actions(position)
        ruleset = position.ruleset
        _refuse_dice(ruleset)
        states = np.zeros((self.depth + 1, ruleset.state_size), np.int16)
        histories = np.zeros((self.depth + 1, ruleset.history_size), np.uint64)
        states[0], histories[0] = position.rows
        actions = np.empty(ruleset.num_actions, np.int32)
        scores = np.empty(ruleset.num_actions)
        count = search_moves(
            kernel_table(ruleset.kernels), ruleset.params, states, histories, self.depth, actions, scores
        )  # fmt: skip
        return actions[:count].astype(np.int64), scores[:count]


def plays(ruleset: Ruleset) -> bool:
    """Whether it is a game without dice: nothing is thrown after its first decision."""
    return not _thrown(ruleset)


def _thrown(ruleset: Ruleset) -> list[str]:
    return [kind.name for kind in ruleset.chance_kinds if kind.name != _OPENING_THROW]


def _refuse_dice(ruleset: Ruleset) -> None:
    thrown = _thrown(ruleset)
    if thrown:
        raise ValueError(f"alphabeta plays games without dice, and {ruleset.label} has a {thrown[0]}; use 'mcts'")
