"""What a table says of each move of a position in which a seat decides."""

import dataclasses

import numpy as np
from numba import float32, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import APPLY, LEGAL, MOVER, OUTCOME, PAYOFF, RUNNING, History, State
from tradgames_env.solving.indexing import RANK, TableError
from tradgames_env.solving.table import DISTANCE, Table

OVER = -2
"""In place of a number: the move ends the game."""
NOT_COVERED = -1
"""In place of a number: the table does not know the position."""
_A_MOVE = 1e-5
"""By how much a win in one move more is less welcome, and a loss the more; no game lasts 1 / _A_MOVE moves."""
_NOT_YET = 1.0 - 1e-9
"""What a game as good as won is worth beside one that is won."""
_BATCH = 1 << 13
"""Decisions judged at a time, which bounds the space for their moves."""


@kernel(
    int64(
        types.FunctionType(LEGAL), types.FunctionType(APPLY), types.FunctionType(RANK), int32[::1], int64[::1],
        int16[::1], uint64[::1], int16[::1], uint64[::1], int32[::1], int64[::1], float32[::1],
    )
)  # fmt: skip
def _number_moves(  # type: ignore[no-untyped-def]
    legal, apply, rank, params, tables, state, history, after, history_after, out_actions, out_numbers, out_signs
):
    """List the n legal actions, the number of the position each leads to and whose it is (1 or -1); return n.

    Where a move ends the game the number is OVER and the sign the payoff of its player. ``after`` and
    ``history_after`` are scratch rows.
    """
    count = legal(params, state, history, out_actions)
    side = -1.0 if state[MOVER] else 1.0
    for k in range(count):
        for cell in range(state.shape[0]):
            after[cell] = state[cell]
        for cell in range(history.shape[0]):
            history_after[cell] = history[cell]
        apply(params, after, history_after, np.int64(out_actions[k]))
        if after[OUTCOME] != RUNNING:
            out_numbers[k] = OVER
            out_signs[k] = side * after[PAYOFF]
        else:
            out_numbers[k] = rank(params, tables, after)
            out_signs[k] = 1.0 if after[MOVER] == state[MOVER] else -1.0
    return count


@kernel(
    int64(
        types.FunctionType(LEGAL), types.FunctionType(APPLY), types.FunctionType(RANK), int32[::1], int64[::1],
        int16[:, ::1], uint64[:, ::1], int16[::1], uint64[::1], int32[::1], int64[::1], float32[::1], int64[::1],
    )
)  # fmt: skip
def _number_all(  # type: ignore[no-untyped-def]
    legal, apply, rank, params, tables, states, histories, after, history_after, out_actions, out_numbers, out_signs,
    out_counts,
):  # fmt: skip
    """``_number_moves`` of several decisions, one after the other; return how many moves they have together."""
    used = 0
    for i in range(states.shape[0]):
        actions, numbers, signs = out_actions[used:], out_numbers[used:], out_signs[used:]
        out_counts[i] = _number_moves(
            legal, apply, rank, params, tables, states[i], histories[i], after, history_after, actions, numbers, signs
        )
        used += out_counts[i]
    return used


def judge_moves(table: Table, state: State, history: History) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The legal actions of a position in which a seat decides, and how good each is for him.

    Args:
        table: of the ruleset that is played.
        state: (S,) int16.
        history: (H,) uint64.

    Returns:
        (n,) actions, and (n,) what the mover can expect after each, in [-1, 1]; NaN where the table does not know.
        Between games as good as over, won ones are worth a trifle more the sooner they end, lost ones the later.
    """
    judgement = judge_decisions(table, state[None], history[None])
    return judgement.actions, judgement.worth


@dataclasses.dataclass(frozen=True, eq=False)
class Judgement:
    """What a table says of every move of several decisions.

    Attributes:
        heads: (N + 1,) int64; the moves of decision i are those from ``heads[i]`` to ``heads[i + 1] - 1``.
        actions: (M,) int32 action ids.
        numbers: (M,) int64, of the position that each move leads to; OVER or NOT_COVERED in place of it.
        worth: (M,) float64, as ``judge_moves`` gives it.
        values: (M,) float64, what the mover can expect after each move; NaN where the table does not know.
        distances: (M,) int64, moves to the end with best play if the game is won or lost then; else, and in tables of
            expectations, 0.
    """

    heads: NDArray[np.int64]
    actions: NDArray[np.int32]
    numbers: NDArray[np.int64]
    worth: NDArray[np.float64]
    values: NDArray[np.float64]
    distances: NDArray[np.int64]

    def first_best(self) -> NDArray[np.int64]:
        """(N,) int64: where in the arrays of moves the first of the best moves of each decision is.

        Raises:
            TableError: the table does not know the position that a move leads to.
        """
        if (self.numbers == NOT_COVERED).any():
            raise TableError("the table does not cover some of these positions and their moves")
        heads = self.heads[:-1]
        highest = np.maximum.reduceat(self.worth, heads)
        places = np.flatnonzero(self.worth == np.repeat(highest, np.diff(self.heads)))
        first: NDArray[np.int64] = places[np.searchsorted(places, heads)]
        return first

    def places(self, decisions: NDArray[np.int64], actions: NDArray[np.int64]) -> NDArray[np.int64]:
        """(M,) int64: where in the arrays of moves an action of each of M decisions is.

        Args:
            decisions: (M,) numbers of decisions.
            actions: (M,) an action that is legal there.

        Raises:
            ValueError: one of them is not.
        """
        counts = np.diff(self.heads)[decisions]
        moves = np.repeat(self.heads[decisions] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        found: NDArray[np.int64] = moves[self.actions[moves] == np.repeat(actions, counts)]
        if len(found) != len(decisions):
            raise ValueError("an action is not legal in its position")
        return found


def judge_decisions(table: Table, states: NDArray[np.int16], histories: NDArray[np.uint64]) -> Judgement:
    """``judge_moves`` for many decisions at once.

    Args:
        table: of the ruleset that is played.
        states: (N, S) int16, a seat decides in each.
        histories: (N, H) uint64.
    """
    begins = range(0, max(len(states), 1), _BATCH)
    parts = [
        _number_batch(table, states[begin : begin + _BATCH], histories[begin : begin + _BATCH]) for begin in begins
    ]
    counts, actions, numbers, signs = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return _judgement(table, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), actions, numbers, signs)


def _number_batch(
    table: Table, states: NDArray[np.int16], histories: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.float32]]:
    """How many moves each decision has, and what ``_number_moves`` writes of all of them."""
    ruleset, kernels = table.ruleset, table.ruleset.kernels
    most = len(states) * ruleset.num_actions
    actions, numbers, signs = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.float32)
    counts = np.empty(len(states), np.int64)
    used = _number_all(
        kernels.legal, kernels.apply, table.index.rank, ruleset.params, table.index.tables, states, histories,
        np.empty(ruleset.state_size, np.int16), np.empty(ruleset.history_size, np.uint64), actions, numbers, signs,
        counts,
    )  # fmt: skip
    return counts, actions[:used].copy(), numbers[:used].copy(), signs[:used].copy()


def _judgement(
    table: Table, heads: NDArray[np.int64], actions: NDArray[np.int32], numbers: NDArray[np.int64],
    signs: NDArray[np.float32],
) -> Judgement:  # fmt: skip
    listed = numbers >= 0
    entries = table.values[numbers[listed]]
    values, distances = np.ones(len(numbers)), np.zeros(len(numbers), np.int64)
    share = np.ones(len(numbers))
    if table.header.kind == DISTANCE:
        values[listed] = np.sign(entries)
        distances[listed] = np.abs(entries.astype(np.int64)) + (entries != 0)
        distances[(numbers == OVER) & (signs != 0)] = 1
        share -= _A_MOVE * distances
    else:
        values[listed] = table.expectations(entries)
        share[listed] = _NOT_YET
    values[numbers == NOT_COVERED] = np.nan
    values *= signs.astype(np.float64)
    return Judgement(heads, actions, numbers, values * share, values, distances)
