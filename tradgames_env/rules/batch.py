"""The generic compiled loops over many games, and the explicit generator they draw with.

Every loop takes a game's kernels as numba function types: one compiled loop serves all games, it is found in the disk
cache by a second process, and an edited rules file takes effect at once (kernels are called by address).

Letters: N games, S state size, H history size, A actions, K kinds of throw, M outcomes of the widest kind.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import boolean, float32, float64, int8, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    CHANCE,
    HEURISTIC,
    INITIAL,
    LEGAL,
    MARGIN,
    MOVER,
    OUTCOME,
    PAYOFF,
    REASON,
    RUNNING,
    SAMPLE,
    SEAT,
    TRUNCATED,
    VIEW,
    ChanceKind,
    Kernels,
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
_SAMPLE = types.FunctionType(SAMPLE)
_APPLY = types.FunctionType(APPLY)
_APPLY_CHANCE = types.FunctionType(APPLY_CHANCE)
_PARAMS, _ODDS, _STATE, _HISTORY, _RNG = int32[::1], float64[:, ::1], int16[::1], uint64[::1], uint64[::1]
_ACTIONS = int32[::1]
_STATES, _HISTORIES = int16[:, ::1], uint64[:, ::1]


class _Address(types.WrapperAddressProtocol):
    """A kernel by its address, see ``handed_over``."""

    def __init__(self, kernel: Any, signature: Any) -> None:
        compiled = kernel.get_compile_result(signature)
        self._kernel = kernel  # the address holds as long as the kernel lives
        self._signature = signature
        self._address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        return int(self._address)

    def signature(self) -> Any:
        """Numba's signature of the kernel."""
        return self._signature


@functools.lru_cache(maxsize=128)
def handed_over(kernels: Kernels) -> Kernels:
    """The kernels in a form that compiled loops take in quickly; ``sample`` is never None.

    Numba looks a kernel up anew in every call it is handed to, which takes as long as some hundred moves; looked up
    once, calling it costs two nanoseconds more. So hand these to loops over a few moves and the kernels themselves to
    long ones.
    """
    signatures = {
        "initial": INITIAL, "legal": LEGAL, "apply": APPLY, "apply_chance": APPLY_CHANCE, "view": VIEW,
        "heuristic": HEURISTIC, "sample": SAMPLE,
    }  # fmt: skip
    functions = vars(kernels) | {"sample": kernels.sample or no_sample}
    if not hasattr(no_sample, "get_compile_result"):  # kernels are plain Python under NUMBA_DISABLE_JIT
        return Kernels(**functions)
    addresses: dict[str, Any] = {name: _Address(functions[name], signatures[name]) for name in signatures}
    return Kernels(**addresses)


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


@kernel(types.void(_APPLY_CHANCE, _PARAMS, _ODDS, _STATE, _HISTORY, _RNG), forceinline=True)
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


@kernel(int64(_PARAMS, _STATE, _HISTORY, uint64))
def no_sample(params, state, history, word):  # type: ignore[no-untyped-def]
    """Stands for the ``sample`` kernel of a game without one; never called."""
    return SKIP


@kernel(int64(_LEGAL, _SAMPLE, boolean, _PARAMS, _STATE, _HISTORY, _ACTIONS, _RNG), forceinline=True)
def random_action(legal, sample, samples, params, state, history, scratch, rng):  # type: ignore[no-untyped-def]
    """A uniform random legal action, by the ``sample`` kernel of games that have one (``samples``)."""
    word = next_random(rng)
    if samples:
        return sample(params, state, history, word)
    return np.int64(scratch[share_of(word, legal(params, state, history, scratch))])


@kernel(int64(_LEGAL, _PARAMS, _STATE, _HISTORY, _ACTIONS, int8[::1]), forceinline=True)
def legal_mask(legal, params, state, history, actions, out_mask):  # type: ignore[no-untyped-def]
    """Write the (A,) mask of the position, all zero when the game is over; return the number of ones.

    ``actions`` is (A,) scratch space and holds the listed actions afterwards.
    """
    out_mask[:] = 0
    if state[OUTCOME] != RUNNING:
        return 0
    count = legal(params, state, history, actions)
    for i in range(count):
        out_mask[np.uint32(actions[i])] = 1
    return count


@kernel(int64(_STATES, int8[:, ::1], int64[::1]))
def plan_step(states, masks, actions):  # type: ignore[no-untyped-def]
    """Check one action for each of N games: the first game whose action is not legal, or -1.

    In ``actions`` SKIP takes the place of the actions of games that are over.
    """
    for i in range(actions.shape[0]):
        action = actions[i]
        if states[i, OUTCOME] != RUNNING:
            actions[i] = SKIP
        elif action < 0 or action >= masks.shape[1] or masks[i, np.uint64(action)] == 0:
            return i
    return -1


@kernel(
    int64(
        _INITIAL, _LEGAL, _APPLY, _APPLY_CHANCE, _PARAMS, _ODDS, _STATES, _HISTORIES, uint64[:, ::1],
        int64[::1], boolean, _ACTIONS, int64, int64,
        int8[:, ::1], int8[::1], int8[::1], float32[:, ::1], boolean[::1], boolean[::1], int16[:, ::1],
    ),
)  # fmt: skip
def step_range(  # type: ignore[no-untyped-def]
    initial, legal, apply, apply_chance, params, odds, states, histories, rngs,
    actions, restart_finished, scratch, begin, end,
    out_masks, out_to_move, out_seats, out_rewards, out_terminated, out_truncated, out_endings,
):  # fmt: skip
    """Play one action in each of the games ``begin`` to ``end`` - 1 and write what follows from it.

    ``actions`` (N,) holds legal actions, RESTART, REFRESH or SKIP. A game that ends is started anew in the same call if
    ``restart_finished``; its rewards and flags are those of the game that ended. ``out_endings`` (N, 3) gets outcome,
    reason and margin of every game as the step left it, before a restart. ``scratch`` is (A,) space of this call's
    own. Returns how many games ended.
    """
    finished = 0
    for i in range(begin, end):
        action = actions[i]
        if action == SKIP:
            continue
        state, history, rng = states[i], histories[i], rngs[i]
        out_rewards[i, 0] = 0.0
        out_rewards[i, 1] = 0.0
        out_terminated[i] = False
        out_truncated[i] = False
        if action == RESTART:
            start_game(initial, apply_chance, params, odds, state, history, rng)
        elif action >= 0:
            apply(params, state, history, action)
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


@kernel(
    types.void(
        _LEGAL, _SAMPLE, boolean, _PARAMS, _STATES, _HISTORIES, uint64[:, ::1], _ACTIONS, int64, int64, int64[::1]
    ),
)
def sample_range(  # type: ignore[no-untyped-def]
    legal, sample, samples, params, states, histories, rngs, scratch, begin, end, out_actions
):
    """Write a uniform random legal action of each game; SKIP where the game is over."""
    for i in range(begin, end):
        state = states[i]
        if state[OUTCOME] != RUNNING:
            out_actions[i] = SKIP
            continue
        out_actions[i] = random_action(legal, sample, samples, params, state, histories[i], scratch, rngs[i])


@kernel(
    int64(
        _INITIAL, _LEGAL, _SAMPLE, boolean, _APPLY, _APPLY_CHANCE, _PARAMS, _ODDS, _STATES, _HISTORIES, uint64[:, ::1],
        _ACTIONS, int64[::1], int64, int64,
    ),
)  # fmt: skip
def random_range(  # type: ignore[no-untyped-def]
    initial, legal, sample, samples, apply, apply_chance, params, odds, states, histories, rngs, scratch, moves, begin,
    end,
):  # fmt: skip
    """Play ``moves[i]`` uniform random legal moves in game i, starting anew whenever it ends; return games ended."""
    finished = 0
    for i in range(begin, end):
        state, history, rng = states[i], histories[i], rngs[i]
        for _ in range(moves[i]):
            action = random_action(legal, sample, samples, params, state, history, scratch, rng)
            apply(params, state, history, action)
            resolve_chance(apply_chance, params, odds, state, history, rng)
            if state[OUTCOME] != RUNNING:
                finished += 1
                start_game(initial, apply_chance, params, odds, state, history, rng)
    return finished
