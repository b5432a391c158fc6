"""Chance: the explicit generator, and the throws that are drawn with it."""

from collections.abc import Sequence

import numpy as np
from numba import float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import APPLY_CHANCE, CHANCE, ChanceKind

MOST_STARTS = 10_000
"""Attempts to start a game in which a seat decides; the odds against the last of them are beyond reckoning."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32, _11 = (np.uint64(n) for n in (30, 27, 31, 32, 11))

_PARAMS, _ODDS, _STATE, _HISTORY, _RNG = int32[::1], float64[:, ::1], int16[::1], uint64[::1], uint64[::1]


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


@kernel(int64(uint64, int64))
def share_of(word, bound):  # type: ignore[no-untyped-def]
    """An integer in [0, bound), 0 < bound < 2**32, uniform if ``word`` is random: the upper half word, scaled."""
    return np.int64(((word >> _32) * np.uint64(bound)) >> _32)


@kernel(int64(_RNG, int64))
def random_below(rng, bound):  # type: ignore[no-untyped-def]
    """A uniform integer in [0, bound), 0 < bound < 2**32."""
    return share_of(next_random(rng), bound)


@kernel(float64(_RNG))
def random_unit(rng):  # type: ignore[no-untyped-def]
    """A uniform float64 in [0, 1) of 53 bits."""
    return np.float64(next_random(rng) >> _11) * 1.1102230246251565e-16


@kernel(int64(_ODDS, int64, _RNG))
def draw_outcome(odds, kind, rng):  # type: ignore[no-untyped-def]
    """Index of a random outcome of throw ``kind`` (1-based, as in ``state[CHANCE]``)."""
    unit = random_unit(rng)
    index = 0
    # Counting has no branch that could be mispredicted.
    for outcome in range(odds.shape[1]):
        index += unit >= odds[np.uint64(kind - 1), outcome]
    return index


@kernel(
    types.void(types.FunctionType(APPLY_CHANCE), _PARAMS, _ODDS, _STATE, _HISTORY, _RNG),
    forceinline=True,
)
def resolve_chance(apply_chance, params, odds, state, history, rng):  # type: ignore[no-untyped-def]
    """Throw until a seat has to decide or the game is over."""
    while state[CHANCE] != 0:
        apply_chance(params, state, history, draw_outcome(odds, state[CHANCE], rng))
