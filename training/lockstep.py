"""The compiled loops of self-play over many games, which take a game's kernels by address as those of the batch do.

Letters: N games, M some of them, S state size, H history size, A actions.
"""

import numpy as np
from numba import boolean, float32, float64, int16, int32, int64, types, uint64

from tradgames_env.rules.batch import start_game
from tradgames_env.rules.chance import draw_outcome, random_below, resolve_chance
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import CHANCE, OUTCOME, RUNNING
from tradgames_env.rules.table import (
    APPLY_SLOT,
    CHANCE_SLOT,
    INITIAL_SLOT,
    LEGAL_SLOT,
    apply_at,
    chance_at,
    initial_at,
    legal_at,
)

_KERNELS, _PARAMS, _ODDS = uint64[::1], int32[::1], float64[:, ::1]
_STATES, _HISTORIES, _WORDS, _ROWS = int16[:, ::1], uint64[:, ::1], uint64[:, ::1], int64[::1]


@kernel(types.void(_KERNELS, _PARAMS, _STATES, _HISTORIES, _ROWS, _ROWS))
def play_moves(kernels, params, states, histories, throws, actions):  # type: ignore[no-untyped-def]
    """Let each game's throw show an outcome, then play an action in it; either may be -1 for none.

    Args:
        kernels: see ``table.kernel_table``.
        params: of the ruleset.
        states: (N, S), changed in place.
        histories: (N, H), changed in place.
        throws: (N,) outcomes of the throws that are due.
        actions: (N,) legal actions.
    """
    apply, apply_chance = apply_at(kernels[APPLY_SLOT]), chance_at(kernels[CHANCE_SLOT])
    for i in range(states.shape[0]):
        if throws[i] >= 0:
            apply_chance(params, states[i], histories[i], throws[i])
        if actions[i] >= 0:
            apply(params, states[i], histories[i], actions[i])


@kernel(types.void(_KERNELS, _PARAMS, _ODDS, _STATES, _HISTORIES, _WORDS))
def throw_games(kernels, params, odds, states, histories, words):  # type: ignore[no-untyped-def]
    """Throw in each game until a seat has to decide or the game is over.

    Args:
        kernels: see ``table.kernel_table``.
        params: of the ruleset.
        odds: of its throws.
        states: (N, S), changed in place.
        histories: (N, H), changed in place.
        words: (N, 1) generators of the throws, advanced in place.
    """
    apply_chance = chance_at(kernels[CHANCE_SLOT])
    for i in range(states.shape[0]):
        resolve_chance(apply_chance, params, odds, states[i], histories[i], words[i])


@kernel(types.void(_ODDS, _STATES, _WORDS, _ROWS))
def draw_throws(odds, states, words, out_throws):  # type: ignore[no-untyped-def]
    """Draw an outcome of the throw that is due in each game, -1 where none is.

    Args:
        odds: of the ruleset's throws.
        states: (N, S).
        words: (N, 1) generators, advanced in place.
        out_throws: (N,).
    """
    for i in range(states.shape[0]):
        out_throws[i] = draw_outcome(odds, states[i, CHANCE], words[i]) if states[i, CHANCE] != 0 else -1


@kernel(types.void(_KERNELS, _PARAMS, _ODDS, _STATES, _HISTORIES, _WORDS, int32[::1], _ROWS, _ROWS))
def play_randomly(kernels, params, odds, states, histories, words, scratch, rows, plies):  # type: ignore[no-untyped-def]
    """Play random moves in games; a game that these end is started again.

    Args:
        kernels: see ``table.kernel_table``.
        params: of the ruleset.
        odds: of its throws.
        states: (N, S), changed in place.
        histories: (N, H), changed in place.
        words: (N, 1) generators of throws and moves, advanced in place.
        scratch: (A,).
        rows: (M,), which games.
        plies: (M,), how many random moves.
    """
    initial, legal = initial_at(kernels[INITIAL_SLOT]), legal_at(kernels[LEGAL_SLOT])
    apply, apply_chance = apply_at(kernels[APPLY_SLOT]), chance_at(kernels[CHANCE_SLOT])
    for m in range(rows.shape[0]):
        state, history, rng = states[rows[m]], histories[rows[m]], words[rows[m]]
        for _ in range(plies[m]):
            count = legal(params, state, history, scratch)
            apply(params, state, history, np.int64(scratch[random_below(rng, count)]))
            resolve_chance(apply_chance, params, odds, state, history, rng)
            if state[OUTCOME] != RUNNING:
                start_game(initial, apply_chance, params, odds, state, history, rng)


@kernel(types.void(_KERNELS, _PARAMS, _ODDS, _STATES, _HISTORIES, _WORDS, int32[::1], _ROWS, _ROWS))
def begin_games(kernels, params, odds, states, histories, words, scratch, rows, plies):  # type: ignore[no-untyped-def]
    """Start games anew, and play random moves in them; a game that these end is started again.

    Args:
        kernels: see ``table.kernel_table``.
        params: of the ruleset.
        odds: of its throws.
        states: (N, S), changed in place.
        histories: (N, H), changed in place.
        words: (N, 1) generators of throws and moves, advanced in place.
        scratch: (A,).
        rows: (M,), which games.
        plies: (M,), how many random moves.
    """
    initial, apply_chance = initial_at(kernels[INITIAL_SLOT]), chance_at(kernels[CHANCE_SLOT])
    for m in range(rows.shape[0]):
        start_game(initial, apply_chance, params, odds, states[rows[m]], histories[rows[m]], words[rows[m]])
    play_randomly(kernels, params, odds, states, histories, words, scratch, rows, plies)


@kernel(types.void(_KERNELS, _PARAMS, _STATES, _HISTORIES, int32[:, ::1], _ROWS))
def list_legal(kernels, params, states, histories, out_actions, out_counts):  # type: ignore[no-untyped-def]
    """List the legal actions of each game, -1 behind them; none where no seat decides.

    Args:
        kernels: see ``table.kernel_table``.
        params: of the ruleset.
        states: (N, S).
        histories: (N, H).
        out_actions: (N, A).
        out_counts: (N,).
    """
    legal = legal_at(kernels[LEGAL_SLOT])
    for i in range(states.shape[0]):
        decides = states[i, OUTCOME] == RUNNING and states[i, CHANCE] == 0
        count = legal(params, states[i], histories[i], out_actions[i]) if decides else 0
        out_actions[i, count:] = -1
        out_counts[i] = count


@kernel(types.void(float32[:, ::1], int32[:, ::1], _ROWS, float64[::1], boolean[::1], _ROWS))
def draw_actions(policies, legal, counts, uniform, wanted, actions):  # type: ignore[no-untyped-def]
    """Replace actions by draws from policies.

    Args:
        policies: (N, A), rows that sum to 1.
        legal: (N, A), see ``list_legal``.
        counts: (N,), see ``list_legal``.
        uniform: (N,) in [0, 1).
        wanted: (N,), where to draw.
        actions: (N,), changed in place.
    """
    for i in range(policies.shape[0]):
        if not wanted[i]:
            continue
        left = uniform[i]
        for k in range(counts[i]):
            share = np.float64(policies[i, legal[i, k]])
            if share > 0.0:
                actions[i] = legal[i, k]
            left -= share
            if left < 0.0:
                break
