"""Counting positions for perft; apart from the batch's loops, since most programs never ask for it."""

import numpy as np
from numba import int16, int32, int64, types, uint64

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import APPLY, APPLY_CHANCE, CHANCE, LEGAL, OUTCOME, RUNNING

_LEGAL, _APPLY, _APPLY_CHANCE = (types.FunctionType(signature) for signature in (LEGAL, APPLY, APPLY_CHANCE))
_PARAMS, _STATES, _HISTORIES = int32[::1], int16[:, ::1], uint64[:, ::1]


@kernel(
    int64(
        _LEGAL, _APPLY, _APPLY_CHANCE, _PARAMS, int64[:, ::1], _STATES, _HISTORIES, int32[:, ::1], int64, int64, int64
    ),
    counted=True,
)  # fmt: skip
def count_leaves(  # type: ignore[no-untyped-def]
    legal, apply, apply_chance, params, kinds, states, histories, actions, level, depth, thrown
):
    """Number of positions ``depth`` moves after row ``level`` of ``states``; every outcome of a throw is a branch.

    ``kinds`` (K, 2) holds the number of outcomes of each kind of throw and whether it repeats; ``thrown`` is the kind
    whose outcome led here, 0 after a move. ``states`` and ``histories`` have a row for every level that the search can
    reach, throws included; ``actions`` (levels, A) is scratch space. A game that ends early has no leaves.
    """
    state, history = states[level], histories[level]
    # Not a literal, which numba would take for another signature of this function.
    moved = np.int64(0)
    kind = np.int64(state[CHANCE])
    if kind != 0 and kind == thrown and kinds[kind - 1, 1] == 1:
        depth -= 1
    if depth == 0:
        return 1
    if state[OUTCOME] != RUNNING:
        return 0
    leaves = 0
    if kind != 0:
        for index in range(kinds[kind - 1, 0]):
            states[level + 1] = state
            histories[level + 1] = history
            apply_chance(params, states[level + 1], histories[level + 1], index)
            leaves += count_leaves(
                legal, apply, apply_chance, params, kinds, states, histories, actions, level + 1, depth, kind
            )
        return leaves
    count = legal(params, state, history, actions[level])
    if depth == 1:
        return count
    for i in range(count):
        states[level + 1] = state
        histories[level + 1] = history
        apply(params, states[level + 1], histories[level + 1], actions[level, i])
        leaves += count_leaves(
            legal, apply, apply_chance, params, kinds, states, histories, actions, level + 1, depth - 1, moved
        )
    return leaves
