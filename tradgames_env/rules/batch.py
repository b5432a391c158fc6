"""The generic compiled loops over many games, and the explicit generator they draw with.

Every loop takes a game's kernels as numba function types: one compiled loop serves all games, it is found in the disk
cache by a second process, and an edited rules file takes effect at once (kernels are called by address).

Letters: N games, S state size, H history size, A actions, K kinds of throw, M outcomes of the widest kind.
"""

from collections.abc import Sequence

import numpy as np
from numba import boolean, float32, float64, int8, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    CHANCE,
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
    ChanceKind,
)

RESTART = -1
"""In an array of actions: start this game anew instead of moving."""
SKIP = -2
"""In an array of actions: leave this game and all that was written of it as it is."""
REFRESH = -3
"""In an array of actions: leave this game as it is and write anew what follows from it."""

MOST_STARTS = 10_000
"""Attempts to start a game in which a seat decides; the odds against the last of them are beyond reckoning."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32, _11 = (np.uint64(n) for n in (30, 27, 31, 32, 11))

_INITIAL = types.FunctionType(INITIAL)
_LEGAL = types.FunctionType(LEGAL)
_APPLY = types.FunctionType(APPLY)
_APPLY_CHANCE = types.FunctionType(APPLY_CHANCE)
_PARAMS, _ODDS, _STATE, _HISTORY, _RNG = int32[::1], float64[:, ::1], int16[::1], uint64[::1], uint64[::1]
_STATES, _HISTORIES = int16[:, ::1], uint64[:, ::1]


def seed_generators(seed: int | Sequence[int] | np.random.SeedSequence, count: int) -> NDArray[np.uint64]:
    """(count,) uint64 generator words, a function of the seed alone; the first ones do not depend on ``count``."""
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.asarray(sequence.generate_state(count, np.uint64), np.uint64)


def odds_table(kinds: Sequence[ChanceKind]) -> NDArray[np.float64]:
    """(K, M) cumulative probabilities for ``draw_outcome``; at least (1, 1). Rows end in ones that are never passed."""
    width = max((len(kind.values) for kind in kinds), default=1)
    table = np.full((max(len(kinds), 1), width), 2.0)
    for row, kind in zip(table, kinds, strict=False):
        row[: len(kind.values) - 1] = np.cumsum(kind.probabilities)[:-1]
    return table


@kernel(uint64(_RNG))
def next_random(rng):  # type: ignore[no-untyped-def]
    """Next 64 random bits of the one-word generator ``rng`` (1,): splitmix64 (Steele, Lea & Flood, OOPSLA 2014)."""
    rng[0] = rng[0] + _GOLDEN
    word = rng[0]
    word = (word ^ (word >> _30)) * _MIX_1
    word = (word ^ (word >> _27)) * _MIX_2
    return word ^ (word >> _31)


@kernel(int64(_RNG, int64))
def random_below(rng, bound):  # type: ignore[no-untyped-def]
    """A uniform integer in [0, bound), 0 < bound < 2**32, by multiplication of the upper half word."""
    return np.int64(((next_random(rng) >> _32) * np.uint64(bound)) >> _32)


@kernel(float64(_RNG))
def random_unit(rng):  # type: ignore[no-untyped-def]
    """A uniform float64 in [0, 1) of 53 bits."""
    return np.float64(next_random(rng) >> _11) * 1.1102230246251565e-16


@kernel(int64(_ODDS, int64, _RNG))
def draw_outcome(odds, kind, rng):  # type: ignore[no-untyped-def]
    """Index of a random outcome of throw ``kind`` (1-based, as in ``state[CHANCE]``)."""
    unit = random_unit(rng)
    index = 0
    while unit >= odds[kind - 1, index]:
        index += 1
    return index


@kernel(types.void(_APPLY_CHANCE, _PARAMS, _ODDS, _STATE, _HISTORY, _RNG))
def resolve_chance(apply_chance, params, odds, state, history, rng):  # type: ignore[no-untyped-def]
    """Throw until a seat has to decide or the game is over."""
    while state[CHANCE] != 0:
        apply_chance(params, state, history, draw_outcome(odds, state[CHANCE], rng))


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


@kernel(int64(_LEGAL, _PARAMS, _STATE, _HISTORY, int32[::1], int8[::1]))
def legal_mask(legal, params, state, history, actions, out_mask):  # type: ignore[no-untyped-def]
    """Write the (A,) mask of the position, all zero when the game is over; return the number of ones.

    ``actions`` is (A,) scratch space and holds the listed actions afterwards.
    """
    out_mask[:] = 0
    if state[OUTCOME] != RUNNING:
        return 0
    count = legal(params, state, history, actions)
    for i in range(count):
        out_mask[actions[i]] = 1
    return count


@kernel(
    int64(
        _INITIAL, _LEGAL, _APPLY, _APPLY_CHANCE, _PARAMS, _ODDS, _STATES, _HISTORIES, uint64[:, ::1],
        int64[::1], boolean, int64, int64,
        int8[:, ::1], int8[::1], int8[::1], float32[:, ::1], boolean[::1], boolean[::1], int16[:, ::1],
    ),
)  # fmt: skip
def step_range(  # type: ignore[no-untyped-def]
    initial, legal, apply, apply_chance, params, odds, states, histories, rngs,
    actions, restart_finished, begin, end,
    out_masks, out_to_move, out_seats, out_rewards, out_terminated, out_truncated, out_endings,
):  # fmt: skip
    """Play one action in each of the games ``begin`` to ``end`` - 1 and write what follows from it.

    ``actions`` (N,) holds legal actions, RESTART, REFRESH or SKIP. A game that ends is started anew in the same call if
    ``restart_finished``; its rewards and flags are those of the game that ended. ``out_endings`` (N, 3) gets outcome,
    reason and margin of every game as the step left it, before a restart. Returns how many games ended.
    """
    scratch = np.empty(out_masks.shape[1], np.int32)
    finished = 0
    for i in range(begin, end):
        if actions[i] == SKIP:
            continue
        state, history, rng = states[i], histories[i], rngs[i]
        out_rewards[i, 0] = 0.0
        out_rewards[i, 1] = 0.0
        out_terminated[i] = False
        out_truncated[i] = False
        if actions[i] == RESTART:
            start_game(initial, apply_chance, params, odds, state, history, rng)
        elif actions[i] >= 0:
            apply(params, state, history, actions[i])
            resolve_chance(apply_chance, params, odds, state, history, rng)
        out_endings[i, 0] = state[OUTCOME]
        out_endings[i, 1] = state[REASON]
        out_endings[i, 2] = state[MARGIN]
        if state[OUTCOME] != RUNNING:
            out_rewards[i, 0] = state[PAYOFF]
            out_rewards[i, 1] = -state[PAYOFF]
            out_truncated[i] = state[OUTCOME] == TRUNCATED
            out_terminated[i] = not out_truncated[i]
            finished += 1
            if restart_finished:
                start_game(initial, apply_chance, params, odds, state, history, rng)
        legal_mask(legal, params, state, history, scratch, out_masks[i])
        out_to_move[i] = state[MOVER]
        out_seats[i] = state[SEAT]
    return finished


@kernel(types.void(int8[:, ::1], uint64[:, ::1], int64, int64, int64[::1]))
def sample_range(masks, rngs, begin, end, out_actions):  # type: ignore[no-untyped-def]
    """Write a uniform random legal action of each game; SKIP where the mask is empty."""
    for i in range(begin, end):
        mask = masks[i]
        count = 0
        for action in range(mask.shape[0]):
            count += mask[action]
        if count == 0:
            out_actions[i] = SKIP
            continue
        left = random_below(rngs[i], count)
        action = 0
        while mask[action] == 0 or left > 0:
            left -= mask[action]
            action += 1
        out_actions[i] = action


@kernel(
    int64(
        _INITIAL, _LEGAL, _APPLY, _APPLY_CHANCE, _PARAMS, _ODDS, _STATES, _HISTORIES, uint64[:, ::1],
        int64, int64, int64, int64,
    ),
)  # fmt: skip
def random_range(  # type: ignore[no-untyped-def]
    initial, legal, apply, apply_chance, params, odds, states, histories, rngs, num_actions, moves, begin, end
):
    """Play ``moves`` uniform random legal moves in each game, starting anew whenever one ends; return games ended."""
    scratch = np.empty(num_actions, np.int32)
    finished = 0
    for i in range(begin, end):
        state, history, rng = states[i], histories[i], rngs[i]
        for _ in range(moves):
            count = legal(params, state, history, scratch)
            apply(params, state, history, scratch[random_below(rng, count)])
            resolve_chance(apply_chance, params, odds, state, history, rng)
            if state[OUTCOME] != RUNNING:
                finished += 1
                start_game(initial, apply_chance, params, odds, state, history, rng)
    return finished
