"""Puts tables of expectations to the test: by the rules one move on, and by games of the table against itself."""

import numpy as np
from numba import float32, float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.batch import draw_outcome, seed_generators
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import APPLY, APPLY_CHANCE, CHANCE, LEGAL, MOVER, OUTCOME, PAYOFF, RUNNING, State
from tradgames_env.solving.expectation import Expectation
from tradgames_env.solving.indexing import RANK
from tradgames_env.solving.table import Table


@kernel(
    int64(
        types.FunctionType(LEGAL), types.FunctionType(APPLY), types.FunctionType(APPLY_CHANCE),
        types.FunctionType(RANK), int32[::1], int64[::1], float32[::1], float64[:, ::1], int16[::1], int64, uint64[::1],
    ),
    counted=True,
)  # fmt: skip
def _play(legal, apply, apply_chance, rank, params, tables, values, odds, start, games, rng):  # type: ignore[no-untyped-def]
    """Sum of natural's payoffs over games from ``start``."""
    state, after, best = np.empty_like(start), np.empty_like(start), np.empty_like(start)
    history, actions = np.empty(0, np.uint64), np.empty(256, np.int32)
    total = np.int64(0)
    for _ in range(games):
        state[:] = start
        while state[OUTCOME] == RUNNING:
            while state[CHANCE] != 0:
                apply_chance(params, state, history, draw_outcome(odds, np.int64(state[CHANCE]), rng))
            sign, most = -1.0 if state[MOVER] else 1.0, -9.0
            for k in range(legal(params, state, history, actions)):
                after[:] = state
                apply(params, after, history, np.int64(actions[k]))
                if after[OUTCOME] != RUNNING:
                    worth = sign * after[PAYOFF]
                else:
                    worth = values[rank(params, tables, after)] * (1.0 if after[MOVER] == state[MOVER] else -1.0)
                if worth > most:
                    most = worth
                    best[:] = after
            state[:] = best
        total += state[PAYOFF]
    return total


def start_of(table: Table) -> State:
    """(S,) int16: the start position before the first throw, natural to begin."""
    ruleset, kernels = table.ruleset, table.ruleset.kernels
    start: State = np.zeros(ruleset.state_size, np.int16)
    kernels.initial(ruleset.params, start, np.empty(0, np.uint64))
    if table.value(start) is None:
        # Chance says who begins; its first outcome is natural.
        kernels.apply_chance(ruleset.params, start, np.empty(0, np.uint64), 0)
    return start


def mean_payoff(table: Table, games: int, seed: int) -> float:
    """What natural is paid on average over games in which both sides play by the table and natural begins.

    The table is of expectations; the limit of turns holds, as in every game.
    """
    ruleset, kernels = table.ruleset, table.ruleset.kernels
    total = _play(
        kernels.legal, kernels.apply, kernels.apply_chance, table.index.rank, ruleset.params, table.index.tables,
        _values(table), ruleset.odds, start_of(table), games, seed_generators(seed, 1),
    )  # fmt: skip
    return float(total) / games


def one_step_residual(table: Table, positions: int, seed: int) -> float:
    """The largest change that one more step of value iteration makes at random positions of a table of expectations."""
    numbers = np.random.default_rng(seed).integers(0, table.index.count, positions)
    return Expectation(table.ruleset, table.index, _values(table)).residual(np.sort(numbers))


def _values(table: Table) -> NDArray[np.float32]:
    """A copy in memory: kernels take no arrays that cannot be written to."""
    if table.header.dtype == "float32":
        return np.array(table.values, np.float32)
    return table.expectations(table.values).astype(np.float32)
