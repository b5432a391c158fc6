"""What a table says of each move of a position in which a seat decides."""

import numpy as np
from numba import float32, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import APPLY, LEGAL, MOVER, OUTCOME, PAYOFF, RUNNING, History, State
from tradgames_env.solving.indexing import RANK
from tradgames_env.solving.table import DISTANCE, Table

OVER = -2
"""In place of a number: the move ends the game."""
NOT_COVERED = -1
"""In place of a number: the table does not know the position."""
_A_MOVE = 1e-5
"""By how much a win in one move more is less welcome, and a loss the more; no game lasts 1 / _A_MOVE moves."""
_NOT_YET = 1.0 - 1e-9
"""What a game as good as won is worth beside one that is won."""


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
    ruleset, kernels = table.ruleset, table.ruleset.kernels
    actions = np.empty(ruleset.num_actions, np.int32)
    numbers, signs = np.empty(ruleset.num_actions, np.int64), np.empty(ruleset.num_actions, np.float32)
    count = _number_moves(
        kernels.legal, kernels.apply, table.index.rank, ruleset.params, table.index.tables, state, history,
        np.empty_like(state), np.empty_like(history), actions, numbers, signs,
    )  # fmt: skip
    numbers = numbers[:count]
    worth = np.ones(count)
    listed = numbers >= 0
    worth[listed] = _worth(table, table.values[numbers[listed]])
    worth[numbers == NOT_COVERED] = np.nan
    return actions[:count], worth * signs[:count].astype(np.float64)


def _worth(table: Table, entries: NDArray[np.generic]) -> NDArray[np.float64]:
    """Entries of a table as numbers in [-1, 1] by which moves can be compared."""
    if table.header.kind != DISTANCE:
        return table.expectations(entries) * _NOT_YET
    distances = entries.astype(np.float64)
    return np.sign(distances) - _A_MOVE * distances
