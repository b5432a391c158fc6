"""The compiled loops over many games.

They take a game's kernels by address: one compiled loop serves all games, it is found in the disk cache by a second
process, an edited rules file takes effect at once, and nothing is looked up when a loop is called.

Letters: N games, S state size, H history size, A actions, K kinds of throw, M outcomes of the widest kind.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import boolean, float32, float64, int8, int16, int32, int64, types, uint64

from tradgames_env.rules.chance import MOST_STARTS, next_random, resolve_chance, share_of
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    INITIAL,
    LEGAL,
    MARGIN,
    MOVER,
    OUTCOME,
    PAYOFF,
    REASON,
    RUNNING,
    SEAT,
    TRUNCATED,
)
from tradgames_env.rules.table import (
    APPLY_SLOT,
    CHANCE_SLOT,
    INITIAL_SLOT,
    LEGAL_SLOT,
    SAMPLE_SLOT,
    apply_at,
    chance_at,
    initial_at,
    legal_at,
    sample_at,
)

RESTART = -1
"""In an array of orders: start this game anew instead of moving."""
SKIP = -2
"""In an array of orders: leave this game and all that was written of it as it is."""
REFRESH = -3
"""In an array of orders: leave this game as it is and write anew what follows from it."""
OVER = -4
"""In an array of orders: this game is over; leave it as it is, and pay nothing more."""

_INITIAL = types.FunctionType(INITIAL)
_LEGAL = types.FunctionType(LEGAL)
_APPLY = types.FunctionType(APPLY)
_APPLY_CHANCE = types.FunctionType(APPLY_CHANCE)
_PARAMS, _ODDS, _STATE, _HISTORY, _RNG = int32[::1], float64[:, ::1], int16[::1], uint64[::1], uint64[::1]
_ACTIONS = int32[::1]


class Rows(NamedTuple):
    """The arrays of N games, what they are played with and what is written of them; see ``BatchGames``."""

    kernels: Any
    """See ``table.kernel_table``."""
    params: Any
    odds: Any
    states: Any
    histories: Any
    dice: Any
    """(N, 1) uint64, generators of the throws."""
    choices: Any
    """(N, 1) uint64, generators of random actions."""
    orders: Any
    """(N,) int64: for each game a legal action, RESTART, REFRESH, SKIP or OVER."""
    sampled: Any
    """(N,) int64: what ``sample_games`` draws."""
    counts: Any
    """(N,) int64: how many moves ``play_games`` shall play, then how many games ended with them."""
    settings: Any
    """(1,) bool: whether a game that ends is started anew in the same step."""
    masks: Any
    to_move: Any
    seats: Any
    rewards: Any
    terminated: Any
    truncated: Any
    endings: Any


ROWS: Any = types.NamedTuple(  # type: ignore[no-untyped-call]
    (
        uint64[::1], _PARAMS, _ODDS, int16[:, ::1], uint64[:, ::1], uint64[:, ::1], uint64[:, ::1], int64[::1],
        int64[::1], int64[::1], boolean[::1], int8[:, ::1], int8[::1], int8[::1], float32[:, ::1], boolean[::1],
        boolean[::1], int16[:, ::1],
    ),
    Rows,
)  # fmt: skip


@kernel(types.void(_INITIAL, _APPLY_CHANCE, _PARAMS, _ODDS, _STATE, _HISTORY, _RNG))
def start_game(initial, apply_chance, params, odds, state, history, rng):  # type: ignore[no-untyped-def]
    """Start a game in which a seat decides.

    Void throws alone may use up ``max_turns`` (Yut Nori, N3); such a game is not worth an episode and is thrown anew.
    """
    for _ in range(MOST_STARTS):
        initial(params, state, history)
        resolve_chance(apply_chance, params, odds, state, history, rng)
        if state[OUTCOME] == RUNNING:
            return


@kernel(int64(_LEGAL, uint64, _PARAMS, _STATE, _HISTORY, _ACTIONS, _RNG), forceinline=True)
def _random_action(legal, sample, params, state, history, scratch, rng):  # type: ignore[no-untyped-def]
    """A uniform random legal action, by the kernel at ``sample`` in games that have one."""
    word = next_random(rng)
    if sample:
        return sample_at(sample)(params, state, history, word)
    return np.int64(scratch[share_of(word, legal(params, state, history, scratch))])


@kernel(types.void(_LEGAL, _PARAMS, _STATE, _HISTORY, _ACTIONS, int8[::1]), forceinline=True)
def _write_mask(legal, params, state, history, scratch, out_mask):  # type: ignore[no-untyped-def]
    """Write the (A,) mask of the position, all zero when the game is over."""
    out_mask[:] = 0
    if state[OUTCOME] != RUNNING:
        return
    for i in range(legal(params, state, history, scratch)):
        out_mask[np.uint32(scratch[i])] = 1


@kernel(int64(int16[:, ::1], int8[:, ::1], int64[::1]))
def plan_step(states, masks, orders):  # type: ignore[no-untyped-def]
    """Check the actions in ``orders``: the first game whose action is not legal, or -1.

    OVER takes the place of the actions of games that are over.
    """
    for i in range(orders.shape[0]):
        action = orders[i]
        # The mask first, which is all zero when a game is over: the states are still in the other threads' caches.
        if 0 <= action < masks.shape[1] and masks[i, np.uint64(action)] != 0:
            continue
        if states[i, OUTCOME] == RUNNING:
            return i
        orders[i] = OVER
    return -1


@kernel(types.void(ROWS, _ACTIONS, int64, int64), forceinline=True)
def step_game(rows, scratch, i, order):  # type: ignore[no-untyped-def]
    """Carry out an order in game i, and write all that follows from it but the observation.

    Args:
        rows: of all games.
        scratch: (A,) int32, space of this thread's own.
        i: the game.
        order: a legal action, RESTART or REFRESH.
    """
    initial, apply_chance = initial_at(rows.kernels[INITIAL_SLOT]), chance_at(rows.kernels[CHANCE_SLOT])
    params, odds = rows.params, rows.odds
    state, history, rng = rows.states[i], rows.histories[i], rows.dice[i]
    rewards, ending = rows.rewards[i], rows.endings[i]
    rewards[0] = 0.0
    rewards[1] = 0.0
    rows.terminated[i] = False
    rows.truncated[i] = False
    if order == RESTART:
        start_game(initial, apply_chance, params, odds, state, history, rng)
    elif order >= 0:
        apply_at(rows.kernels[APPLY_SLOT])(params, state, history, order)
        resolve_chance(apply_chance, params, odds, state, history, rng)
    ending[0] = state[OUTCOME]
    ending[1] = state[REASON]
    ending[2] = state[MARGIN]
    if state[OUTCOME] != RUNNING:
        rewards[0] = state[PAYOFF]
        rewards[1] = -state[PAYOFF]
        rows.truncated[i] = state[OUTCOME] == TRUNCATED
        rows.terminated[i] = state[OUTCOME] != TRUNCATED
        if rows.settings[0]:
            start_game(initial, apply_chance, params, odds, state, history, rng)
    _write_mask(legal_at(rows.kernels[LEGAL_SLOT]), params, state, history, scratch, rows.masks[i])
    rows.to_move[i] = state[MOVER]
    rows.seats[i] = state[SEAT]


@kernel(types.void(ROWS, _ACTIONS, int64, int64))
def sample_games(rows, scratch, begin, end):  # type: ignore[no-untyped-def]
    """Draw a uniform random legal action of each game; SKIP where the game is over."""
    legal, sample = legal_at(rows.kernels[LEGAL_SLOT]), rows.kernels[SAMPLE_SLOT]
    for i in range(begin, end):
        state = rows.states[i]
        if state[OUTCOME] != RUNNING:
            rows.sampled[i] = SKIP
            continue
        rows.sampled[i] = _random_action(
            legal, sample, rows.params, state, rows.histories[i], scratch, rows.choices[i]
        )  # fmt: skip


@kernel(types.void(ROWS, _ACTIONS, int64, int64))
def play_games(rows, scratch, begin, end):  # type: ignore[no-untyped-def]
    """Play ``counts`` uniform random legal moves in each game, starting anew whenever it ends or had ended before.

    The games' throws and actions come from the same generator.
    """
    initial, apply_chance = initial_at(rows.kernels[INITIAL_SLOT]), chance_at(rows.kernels[CHANCE_SLOT])
    legal, sample = legal_at(rows.kernels[LEGAL_SLOT]), rows.kernels[SAMPLE_SLOT]
    apply = apply_at(rows.kernels[APPLY_SLOT])
    params, odds = rows.params, rows.odds
    for i in range(begin, end):
        state, history, rng = rows.states[i], rows.histories[i], rows.dice[i]
        finished = 0
        if rows.counts[i] > 0 and state[OUTCOME] != RUNNING:
            start_game(initial, apply_chance, params, odds, state, history, rng)
        for _ in range(rows.counts[i]):
            apply(params, state, history, _random_action(legal, sample, params, state, history, scratch, rng))
            resolve_chance(apply_chance, params, odds, state, history, rng)
            if state[OUTCOME] != RUNNING:
                finished += 1
                start_game(initial, apply_chance, params, odds, state, history, rng)
        rows.counts[i] = finished
