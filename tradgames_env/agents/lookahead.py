"""One move ahead: every position a legal move can lead to, throws included, as array rows for a network to value."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numba import float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.position import Position
from tradgames_env.rules.chance import resolve_chance
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    CHANCE,
    LEGAL,
    MARGIN,
    MOVER,
    OUTCOME,
    PAYOFF,
    RUNNING,
    SEAT,
)

_STATES, _HISTORIES = int16[:, ::1], uint64[:, ::1]
_RESOLVE = types.void(
    types.FunctionType(APPLY_CHANCE), int32[::1], float64[:, ::1], int16[::1], uint64[::1], uint64[::1]
)
"""``rules.chance.resolve_chance``, handed over by address: called from another file, it would go stale in the cache."""


@kernel(
    int64(
        types.FunctionType(LEGAL), types.FunctionType(APPLY), types.FunctionType(APPLY_CHANCE),
        types.FunctionType(_RESOLVE), int32[::1], float64[:, ::1], _STATES, _HISTORIES, uint64[::1], int32[::1],
        _STATES, _HISTORIES, int32[:, ::1], float64[::1],
    ),
    counted=True,
)  # fmt: skip
def _expand(  # type: ignore[no-untyped-def]
    legal, apply, apply_chance, resolve, params, odds, states, histories, rng, actions,
    out_states, out_histories, out_origins, out_weights,
):  # fmt: skip
    """Write every successor of every position, one row for each outcome of the throw that a move may call for.

    ``out_origins`` (M, 2) gets position and action, ``out_weights`` (M,) the probability of the outcome. A throw that
    follows a throw is drawn with ``rng``: they may follow each other without end. Returns the number of rows.
    """
    rows = 0
    for i in range(states.shape[0]):
        for k in range(legal(params, states[i], histories[i], actions)):
            first = rows
            out_states[rows] = states[i]
            out_histories[rows] = histories[i]
            apply(params, out_states[rows], out_histories[rows], np.int64(actions[k]))
            kind = np.int64(out_states[rows, CHANCE])
            outcomes = 1
            if kind != 0:
                while odds[kind - 1, outcomes - 1] <= 1.0:
                    outcomes += 1
            below = 0.0
            # Backwards, so that the row all outcomes start from is itself written last.
            for reverse in range(outcomes):
                outcome = outcomes - 1 - reverse
                row = first + outcome
                if outcome != 0:
                    out_states[row] = out_states[first]
                    out_histories[row] = out_histories[first]
                out_origins[row, 0] = i
                out_origins[row, 1] = actions[k]
                out_weights[row] = 1.0
                if kind != 0:
                    below = odds[kind - 1, outcome - 1] if outcome > 0 else 0.0
                    upper = odds[kind - 1, outcome] if outcome < outcomes - 1 else 1.0
                    out_weights[row] = upper - below
                    apply_chance(params, out_states[row], out_histories[row], outcome)
                    resolve(apply_chance, params, odds, out_states[row], out_histories[row], rng)
            rows = first + outcomes
    return rows


@dataclasses.dataclass(frozen=True, eq=False)
class Successors:
    """M positions that one move (and one throw) leads to from N positions.

    Attributes:
        states: (M, S) int16.
        histories: (M, H) uint64.
        seats: (M,) int8, who decides.
        position: (M,) int32, index of the position it came from.
        action: (M,) int32, the action that led to it.
        weight: (M,) float64, probability of the throw; 1 where the move called for none.
        over: (M,) bool, the game is over.
        payoff: (M,) float64, what the mover of the position is paid where it is over.
        gain: (M,) float64, by how much the move raised his margin.
        sign: (M,) float64, 1 where the same side decides again, -1 where the other does.
    """

    states: NDArray[np.int16]
    histories: NDArray[np.uint64]
    seats: NDArray[np.int8]
    position: NDArray[np.int32]
    action: NDArray[np.int32]
    weight: NDArray[np.float64]
    over: NDArray[np.bool_]
    payoff: NDArray[np.float64]
    gain: NDArray[np.float64]
    sign: NDArray[np.float64]


def successors(positions: Sequence[Position], word: NDArray[np.uint64]) -> Successors:
    """Every position one move ahead of several positions of one ruleset in which a seat decides.

    Args:
        positions: at least one.
        word: (1,) uint64, a generator for throws that follow throws; advanced.
    """
    ruleset = positions[0].ruleset
    kernels = ruleset.kernels
    states = np.stack([position.rows[0] for position in positions])
    histories = np.stack([position.rows[1] for position in positions])
    width = max((len(kind.values) for kind in ruleset.chance_kinds), default=1)
    most = width * sum(len(position.legal_actions()) for position in positions)
    after = np.empty((most, ruleset.state_size), np.int16)
    histories_after = np.empty((most, ruleset.history_size), np.uint64)
    origins, weights = np.empty((most, 2), np.int32), np.empty(most, np.float64)
    count = _expand(
        kernels.legal, kernels.apply, kernels.apply_chance, resolve_chance, ruleset.params, ruleset.odds, states,
        histories, word, np.empty(ruleset.num_actions, np.int32), after, histories_after, origins, weights,
    )  # fmt: skip
    after, origins = after[:count], origins[:count]
    before = states[origins[:, 0]]
    colour = np.where(before[:, MOVER] == 0, 1.0, -1.0)
    return Successors(
        states=after,
        histories=histories_after[:count],
        seats=after[:, SEAT].astype(np.int8),
        position=origins[:, 0],
        action=origins[:, 1],
        weight=weights[:count],
        over=after[:, OUTCOME] != RUNNING,
        payoff=colour * after[:, PAYOFF],
        gain=colour * (after[:, MARGIN].astype(np.float64) - before[:, MARGIN]),
        sign=np.where(after[:, MOVER] == before[:, MOVER], 1.0, -1.0),
    )
