"""Alpha-beta by iterative deepening, judged by a small network that follows the changes of a position.

For games without dice whose rules say where a state row shows its pieces (``GameRules.cells``). The network's first
layer is a sum of one row for each piece on the board or in hand, seen from either side; a move adds and subtracts the
few rows of what it changed. All of it is integers, so the sum does not depend on the way there, and a search of the
same position with the same weights gives the same answer on every machine.

The search: principal variation, a table of positions, captures and what was good elsewhere first, reduced depth for
late quiet moves, captures followed to their end. A position that occurred before counts as a draw. Its budget is the
number of positions visited.

Letters: A actions; F features, 2 for each place of a piece (a site, the first in hand, the second, ...); H ``HIDDEN``;
L levels of the search.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
from numba import boolean, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    BLACK_WINS,
    CAPTURES,
    LEGAL,
    MARGIN,
    MOVER,
    NATURAL_WINS,
    OUTCOME,
    RUNNING,
    PositionCells,
)
from tradgames_env.rules.ruleset import Ruleset

HIDDEN = 32
"""Sums the first layer keeps for each side."""
BUCKETS = 8
"""Output rows, one for each eighth of the pieces on the board and in hand."""
ONE = 1 << 10
"""What 1 is in the first layer; its outputs are cut to 0..ONE."""
OUTPUT_ONE = 1 << 12
"""What 1 is among the output weights."""
SCORE_ONE = 1 << 11
"""What 1 is in a score: 1 is the log odds that turn an even game into 88 to 12 (tanh .76)."""
MOST_WEIGHT = 7.0
"""Bound of a weight: 2 H of them, times ONE, are less than 2**31."""
WIN = 1_000_000
"""Score of a won game, less one for each decision on the way."""
SURE = WIN - 1000
"""Scores from here on are wins that were found."""
LEVELS = 64
"""Rows of a search: depth and captures together."""
CAPTURE_DEPTH = 12
"""Captures in a row that are followed behind the depth."""
MOST_DEPTH = LEVELS - CAPTURE_DEPTH - 2
MOST_TABLE_BITS = 18
NONE = -1
_HIGHEST_EVALUATION = WIN // 2
_INFINITY = 2 * WIN
_NO_LIMIT = 1 << 62
_SCORE_SHIFT = 11
_CLOCK_REACH = LEVELS
"""From this many moves before a clock ends the game its value tells positions apart."""

# Columns of ``frames`` (L, ...) int32, a row for each level; then A actions and A ranks.
_PIECES, _KILLERS, _LISTS = 2 * HIDDEN, 2 * HIDDEN + 1, 2 * HIDDEN + 3
# Entries of ``plan`` (PLAN_SIZE,) int64.
VISITED, BUDGET, MARGIN_WEIGHT, EXACT, STOPPED, BEST, SCORE, MOST_DEPTH_AT, PLAN_SIZE = range(9)
# Entries at the head of ``model`` (...) int32, then watched cells, others, clocks, features of watched bits, weights.
(
    _WATCHED, _BOARDS, _OTHERS, _CLOCKS, _REPEATS, _OWED, _ACTIONS, _PLACES, _MOST, _FEATURES_AT, _WEIGHTS_AT, _HEAD,
) = range(12)  # fmt: skip
_UNKNOWN, _IS_SCORE, _AT_LEAST, _AT_MOST = range(4)
_HINT_RANK, _CAPTURE_RANK, _KILLER_RANK, _MOST_GOOD = 1 << 29, 1 << 28, 1 << 27, 1 << 26
_FIRST_REDUCED = 3
"""Quiet moves before this one are searched to their full depth."""

_LEGAL, _APPLY, _CAPTURES = types.FunctionType(LEGAL), types.FunctionType(APPLY), types.FunctionType(CAPTURES)
_PARAMS, _MODEL, _STATES, _HISTORIES, _FRAMES = int32[::1], int32[::1], int16[:, ::1], uint64[:, ::1], int32[:, ::1]
_KEYS, _TABLE, _GOOD, _PLAN = uint64[::1], uint64[:, ::1], int32[::1], int64[::1]
_BYTE, _LOW_16 = np.uint64(255), np.uint64(0xFFFF)
_0, _8, _16, _27, _30, _31, _32, _60 = (np.uint64(n) for n in (0, 8, 16, 27, 30, 31, 32, 60))
_GOLDEN, _MIX_0 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclasses.dataclass(frozen=True, eq=False)
class IncrementalWeights:
    """Integer weights of the evaluation; arrays are not to be written to.

    The score of a position for its mover: the two sums (mover's view, then the other's), cut to 0..``ONE``, times the
    output row of the number of pieces, plus its bias, over ``ONE * OUTPUT_ONE / SCORE_ONE``.
    """

    first: NDArray[np.int32]
    """(F, H): what a piece at each place adds; own sites of the viewer's frame, own hand, then the enemy's."""
    first_bias: NDArray[np.int32]
    """(H,)."""
    output: NDArray[np.int32]
    """(BUCKETS, 2 H)."""
    output_bias: NDArray[np.int32]
    """(BUCKETS,)."""

    @classmethod
    def zero(cls, places: int) -> "IncrementalWeights":
        """Weights that hold every position for even, so that the margin alone decides."""
        return cls(
            np.zeros((2 * places, HIDDEN), np.int32),
            np.zeros(HIDDEN, np.int32),
            np.zeros((BUCKETS, 2 * HIDDEN), np.int32),
            np.zeros(BUCKETS, np.int32),
        )

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, NDArray[np.float32]]) -> "IncrementalWeights":
        """Weights of the tensors of ``tensor_shapes``, where 1 is the upper end of a hidden value and of log odds.

        They are cut to +-``MOST_WEIGHT``, so that no sum overflows.
        """
        return cls(
            _rounded(tensors["first.weight"].T, ONE),
            _rounded(tensors["first.bias"], ONE),
            _rounded(tensors["output.weight"], OUTPUT_ONE),
            _rounded(tensors["output.bias"], ONE * OUTPUT_ONE),
        )


def features(ruleset: Ruleset) -> int:
    """How many numbers the evaluation of a ruleset reads, from either side.

    Raises:
        ValueError: as ``model_of``.
    """
    return 2 * _cells(ruleset).places


def _cells(ruleset: Ruleset) -> PositionCells:
    cells = ruleset.rules.cells(ruleset.options)
    if cells is None:
        raise ValueError(f"this search plays games without dice whose pieces it can follow, and not {ruleset.label}")
    return cells


def tensor_shapes(places: int) -> dict[str, tuple[int, ...]]:
    """Shape of each float32 tensor of the evaluation, by name; ``places`` as of ``PositionCells``."""
    return {
        "first.weight": (HIDDEN, 2 * places),
        "first.bias": (HIDDEN,),
        "output.weight": (BUCKETS, 2 * HIDDEN),
        "output.bias": (BUCKETS,),
    }


def _rounded(values: NDArray[np.float32], one: int) -> NDArray[np.int32]:
    return np.round(np.clip(values.astype(np.float64), -MOST_WEIGHT, MOST_WEIGHT) * one).astype(np.int32)


def model_of(ruleset: Ruleset, weights: IncrementalWeights) -> NDArray[np.int32]:
    """(...) int32: what the kernels need of the ruleset and the weights.

    Raises:
        ValueError: the game has dice, or its rules do not say where pieces are shown.
    """
    cells = _cells(ruleset)
    boards = np.unique(cells.cells)
    watched = np.concatenate([boards, np.array(cells.hands or (), np.int32)])
    bits = _watched_features(cells, boards)
    clocks = np.array([entry for entry in cells.clocks if entry[1] > 0], np.int32).reshape(-1)
    lists = (watched, np.array(cells.others, np.int32), clocks, bits.ravel())
    head = np.zeros(_HEAD, np.int32)
    head[_WATCHED], head[_BOARDS] = len(watched), len(boards)
    head[_OTHERS], head[_CLOCKS] = len(cells.others), len(clocks) // 2
    head[_REPEATS] = NONE if cells.repeats is None else cells.repeats
    head[_OWED] = NONE if cells.owed is None else cells.owed
    head[_ACTIONS], head[_PLACES], head[_MOST] = ruleset.num_actions, cells.places, cells.most
    head[_FEATURES_AT] = _HEAD + sum(map(len, lists[:-1]))
    head[_WEIGHTS_AT] = head[_FEATURES_AT] + bits.size
    parts = (weights.first, weights.first_bias, weights.output, weights.output_bias)
    return np.concatenate([head, *lists, *(part.ravel() for part in parts)]).astype(np.int32)


def _watched_features(cells: PositionCells, boards: NDArray[np.int32]) -> NDArray[np.int32]:
    """(watched, 16, 2) the features that each bit of a watched cell is, in natural's view and in black's.

    The bits of a hand are its first piece, its second and so on; hands follow the cells ``boards``.
    """
    sites, size = cells.cells.shape[1], cells.hand_size
    bits = np.full((len(boards) + (2 if cells.hands else 0), 16, 2), NONE, np.int32)
    row = np.searchsorted(boards, cells.cells)
    for colour in range(2):
        first = np.array([colour, 1 - colour]) * cells.places
        bits[row[colour], cells.bits[colour]] = first + np.stack([np.arange(sites), cells.turned], axis=1)
        if cells.hands:
            bits[len(boards) + colour, :size] = first + sites + np.arange(size)[:, None]
    return bits


# -- following a position ------------------------------------------------------------------------------------------
@kernel(uint64(uint64), forceinline=True)
def _mixed(word):  # type: ignore[no-untyped-def]
    """Random-looking 64 bits that a number stands for: the output function of splitmix64."""
    word = (word + _GOLDEN) * _MIX_0
    word = (word ^ (word >> _30)) * _MIX_1
    word = (word ^ (word >> _27)) * _MIX_2
    return word ^ (word >> _31)


@kernel(types.void(_MODEL, _FRAMES, _KEYS, int64, int64, int64), forceinline=True)
def _toggle(model, frames, keys, level, at, sign):  # type: ignore[no-untyped-def]
    """Add (``sign`` 1) or take away (-1) the piece whose features lie at ``model[at]``, on row ``level``."""
    weights = np.int64(model[_WEIGHTS_AT])
    natural, black = np.int64(model[at]), np.int64(model[at + 1])
    first, second = weights + natural * HIDDEN, weights + black * HIDDEN
    for i in range(HIDDEN):
        frames[level, np.uint64(i)] += sign * model[np.uint64(first + i)]
    for i in range(HIDDEN):
        frames[level, np.uint64(HIDDEN + i)] += sign * model[np.uint64(second + i)]
    frames[level, _PIECES] += sign
    keys[level] ^= _mixed(np.uint64(natural))


@kernel(int64(_MODEL, int64, int64), forceinline=True)
def _bits(model, watched, value):  # type: ignore[no-untyped-def]
    """The 16 bits that stand for the value of a watched cell: of a board itself, of a hand one for each piece."""
    return value if watched < model[_BOARDS] else (1 << min(value, 16)) - 1


@kernel(types.void(_MODEL, _FRAMES, _KEYS, int64, int64, int64), forceinline=True)
def _follow(model, frames, keys, level, watched, change):  # type: ignore[no-untyped-def]
    """Take in how a watched cell changed: the value it had in the upper 16 bits of ``change``, its new one below."""
    before, after = _bits(model, watched, change >> 16), _bits(model, watched, change & 0xFFFF)
    changed, bit = before ^ after, np.int64(0)
    while changed != 0:
        if changed & 1:
            sign = 1 if (after >> bit) & 1 else -1
            _toggle(model, frames, keys, level, np.int64(model[_FEATURES_AT]) + 2 * (16 * watched + bit), sign)
        changed >>= 1
        bit += 1


@kernel(types.void(_MODEL, _STATES, _FRAMES, _KEYS))
def start(model, states, frames, keys):  # type: ignore[no-untyped-def]
    """Write the sums, the number of pieces and the key of row 0."""
    bias = np.int64(model[_WEIGHTS_AT]) + 2 * np.int64(model[_PLACES]) * HIDDEN
    for i in range(HIDDEN):
        frames[0, i] = frames[0, HIDDEN + i] = model[bias + i]
    frames[0, _PIECES] = 0
    keys[0] = 0
    for watched in range(model[_WATCHED]):
        now = np.int64(np.uint16(states[0, model[_HEAD + watched]]))
        _follow(model, frames, keys, 0, watched, now)


@kernel(types.void(_APPLY, _PARAMS, _MODEL, _STATES, _HISTORIES, _FRAMES, _KEYS, _PLAN, int64, int64))
def advance(apply, params, model, states, histories, frames, keys, plan, level, action):  # type: ignore[no-untyped-def]
    """Write the position after ``action`` on row ``level``, its sums and its key, into the next row."""
    for i in range(states.shape[1]):
        states[level + 1, i] = states[level, i]
    for i in range(histories.shape[1]):
        histories[level + 1, i] = histories[level, i]
    apply(params, states[level + 1], histories[level + 1], action)
    for i in range(_PIECES + 1):
        frames[level + 1, i] = frames[level, i]
    keys[level + 1] = keys[level]
    for watched in range(model[_WATCHED]):
        cell = np.uint64(model[np.uint64(_HEAD + watched)])
        before, after = np.int64(np.uint16(states[level, cell])), np.int64(np.uint16(states[level + 1, cell]))
        if before != after:
            _follow(model, frames, keys, level + 1, watched, before << 16 | after)
    plan[VISITED] += 1


@kernel(uint64(_MODEL, _STATES, _KEYS, _PLAN, int64))
def _position_key(model, states, keys, plan, level):  # type: ignore[no-untyped-def]
    """Key of a position in the table: pieces, mover, the rules' other cells, and clocks that are about to run out.

    An exact search tells all clocks apart, since they change what a lead is worth.
    """
    total = keys[level] ^ np.uint64(states[level, MOVER] + 1)
    at = _HEAD + np.int64(model[_WATCHED])
    for i in range(model[_OTHERS]):
        cell = model[at + i]
        total = _mixed(total ^ (np.uint64(cell) << _16 | np.uint64(np.uint16(states[level, cell]))))
    at += np.int64(model[_OTHERS])
    for i in range(model[_CLOCKS]):
        clock = states[level, model[at + 2 * i]]
        if plan[EXACT] or clock + _CLOCK_REACH >= model[at + 2 * i + 1]:
            total = _mixed(total ^ np.uint64(clock))
    return total


@kernel(int64(_MODEL, _STATES, int64, int64), forceinline=True)
def _faded(model, states, level, score):  # type: ignore[no-untyped-def]
    """A score times the share of each clock that is left: a lead is worth the less, the sooner the game ends drawn.

    So of two ways to keep a lead that is better which starts the clock anew.
    """
    at = _HEAD + np.int64(model[_WATCHED]) + np.int64(model[_OTHERS])
    for i in range(model[_CLOCKS]):
        limit = np.int64(model[at + 2 * i + 1])
        score = score * (limit - np.int64(states[level, model[at + 2 * i]])) // limit
    return score


@kernel(int64(_MODEL, _STATES, _FRAMES, _PLAN, int64))
def standing(model, states, frames, plan, level):  # type: ignore[no-untyped-def]
    """Score of row ``level`` as it stands, for its mover: the network's, and the margin by its weight."""
    mover = np.int64(states[level, MOVER])
    own, other = mover * HIDDEN, (1 - mover) * HIDDEN
    bucket = (np.int64(frames[level, _PIECES]) * BUCKETS - 1) // np.int64(model[_MOST])
    if bucket < 0:  # an empty board
        bucket = np.int64(0)
    outputs = np.int64(model[_WEIGHTS_AT]) + (2 * np.int64(model[_PLACES]) + 1) * HIDDEN
    row = outputs + bucket * 2 * HIDDEN
    total = np.int32(model[outputs + BUCKETS * 2 * HIDDEN + bucket])
    for i in range(HIDDEN):
        value = min(max(frames[level, np.uint64(own + i)], np.int32(0)), np.int32(ONE))
        total += np.int32(value * model[np.uint64(row + i)])
    for i in range(HIDDEN):
        value = min(max(frames[level, np.uint64(other + i)], np.int32(0)), np.int32(ONE))
        total += np.int32(value * model[np.uint64(row + HIDDEN + i)])
    margin = np.int64(-states[level, MARGIN] if mover else states[level, MARGIN])
    score = _faded(model, states, level, (np.int64(total) >> _SCORE_SHIFT) + plan[MARGIN_WEIGHT] * margin)
    return min(max(score, -_HIGHEST_EVALUATION), _HIGHEST_EVALUATION)


# -- the search ----------------------------------------------------------------------------------------------------
@kernel(int64(_STATES, int64))
def _final_score(states, level):  # type: ignore[no-untyped-def]
    """Score of a game that is over on row ``level``, for the side that stands as the mover; 0 where none has won."""
    outcome = states[level, OUTCOME]
    if outcome != NATURAL_WINS and outcome != BLACK_WINS:
        return 0
    winner = 1 if outcome == BLACK_WINS else 0
    return WIN - level if winner == states[level, MOVER] else level - WIN


@kernel(
    int64(
        _CAPTURES, _APPLY, _PARAMS, _MODEL, _STATES, _HISTORIES, _FRAMES, _KEYS, _PLAN, int64, int64, int64, int64,
    )
)  # fmt: skip
def _settle(  # type: ignore[no-untyped-def]
    captures, apply, params, model, states, histories, frames, keys, plan, level, depth, alpha, beta
):
    """Score of row ``level`` for its mover, who may capture or leave it as it is, ``depth`` captures deep.

    A capture that is owed has to be made.
    """
    if states[level, OUTCOME] != RUNNING:
        return _final_score(states, level)
    best = -np.int64(_INFINITY)
    if depth == 0 or model[_OWED] == NONE or states[level, model[_OWED]] == 0:
        best = standing(model, states, frames, plan, level)
    if best >= beta or depth == 0:
        return best
    mover = states[level, MOVER]
    count = captures(params, states[level], histories[level], frames[level, _LISTS : _LISTS + model[_ACTIONS]])
    for i in range(count):
        advance(apply, params, model, states, histories, frames, keys, plan, level, np.int64(frames[level, _LISTS + i]))
        sign = 1 if states[level + 1, MOVER] == mover else -1
        floor = max(alpha, best)
        low, high = min(sign * floor, sign * beta), max(sign * floor, sign * beta)
        score = sign * _settle(
            captures, apply, params, model, states, histories, frames, keys, plan, level + 1, depth - 1, low, high
        )
        best = max(best, score)
        if best >= beta:
            break
    return best


@kernel(int64(_LEGAL, _CAPTURES, _PARAMS, _MODEL, _STATES, _HISTORIES, _FRAMES, _GOOD, int64, int64))
def _list_ranked(  # type: ignore[no-untyped-def]
    legal, captures, params, model, states, histories, frames, good, level, hint
):
    """List the legal actions of row ``level`` and a rank for each: hint, captures, killers, what was good elsewhere."""
    size = np.int64(model[_ACTIONS])
    frame = frames[level]
    actions, taking = frame[_LISTS : _LISTS + size], frame[_LISTS + 2 * size : _LISTS + 3 * size]
    known = np.int64(states[level, MOVER]) * size
    count = legal(params, states[level], histories[level], actions)
    for i in range(count):
        action = actions[i]
        rank = good[known + action]
        if action == hint:
            rank += _HINT_RANK
        elif action == frame[_KILLERS] or action == frame[_KILLERS + 1]:
            rank += _KILLER_RANK
        frame[_LISTS + size + i] = rank
    for j in range(captures(params, states[level], histories[level], taking)):
        for i in range(count):
            if actions[i] == taking[j]:
                frame[_LISTS + size + i] += _CAPTURE_RANK
    return count


@kernel(int64(_MODEL, _FRAMES, int64, int64, int64))
def _take_best(model, frames, level, first, count):  # type: ignore[no-untyped-def]
    """Bring the action of the highest rank among ``first``.. to the place ``first``; return its rank."""
    actions, ranks = _LISTS, _LISTS + np.int64(model[_ACTIONS])
    best = first
    for i in range(first + 1, count):
        if frames[level, np.uint64(ranks + i)] > frames[level, np.uint64(ranks + best)]:
            best = i
    for column in (actions, ranks):
        kept = frames[level, column + best]
        frames[level, column + best] = frames[level, column + first]
        frames[level, column + first] = kept
    return np.int64(frames[level, ranks + first])


@kernel(int64(_PLAN, int64, int64, int64))
def _reduction(plan, depth, index, rank):  # type: ignore[no-untyped-def]
    """By how much less deep the move at place ``index``, of this rank, is searched at first."""
    if plan[EXACT] or rank >= _KILLER_RANK or index < _FIRST_REDUCED or depth < 2:
        return 0
    return min(depth - 1, np.int64(0.4 + np.log(np.float64(depth)) * np.log(np.float64(index)) / 2.2))


@kernel(types.void(_MODEL, _STATES, _FRAMES, _GOOD, int64, int64, int64, int64))
def _remember_good(model, states, frames, good, level, depth, action, rank):  # type: ignore[no-untyped-def]
    """Note an action that refuted a line, unless it captures."""
    if rank & _CAPTURE_RANK:
        return
    if frames[level, _KILLERS] != action:
        frames[level, _KILLERS + 1] = frames[level, _KILLERS]
        frames[level, _KILLERS] = action
    at = np.int64(states[level, MOVER]) * np.int64(model[_ACTIONS]) + action
    good[at] = min(good[at] + depth * depth, _MOST_GOOD)


@kernel(types.void(_TABLE, uint64, int64, int64, int64, int64, int64))
def _store(table, key, level, depth, bound, score, action):  # type: ignore[no-untyped-def]
    """Keep what was found of a position; sure scores are kept as distances from it."""
    if score >= SURE:
        score += level
    elif score <= -SURE:
        score -= level
    slot = key & np.uint64(table.shape[0] - 1)
    table[slot, 0] = key
    table[slot, 1] = np.uint64(score + _INFINITY) << _32 | np.uint64((action + 1) << 16 | depth << 8 | bound)


@kernel(int64(uint64, int64))
def _kept_score(entry, level):  # type: ignore[no-untyped-def]
    """The score of an entry of the table, seen from ``level``."""
    score = np.int64(entry >> _32) - _INFINITY
    if score >= SURE:
        return score - level
    return score + level if score <= -SURE else score


@kernel(boolean(_PLAN, uint64, int64, int64, int64, int64))
def _answers(plan, entry, level, depth, alpha, beta):  # type: ignore[no-untyped-def]
    """Whether an entry of the table, 0 for none, answers a search of ``depth`` between the bounds."""
    kept_depth, bound = np.int64((entry >> _8) & _BYTE), np.int64(entry & _BYTE)
    if bound == _UNKNOWN or level == 0 or kept_depth < depth or (plan[EXACT] and kept_depth != depth):
        return False
    score = _kept_score(entry, level)
    return bound == _IS_SCORE or (score >= beta if bound == _AT_LEAST else score <= alpha)


@kernel(boolean(_MODEL, _STATES, int64))
def _is_over(model, states, level):  # type: ignore[no-untyped-def]
    """Whether the game is over on row ``level``, or counts as drawn since the position was there before."""
    if states[level, OUTCOME] != RUNNING:
        return True
    return level > 0 and model[_REPEATS] != NONE and states[level, model[_REPEATS]] > 0


@kernel(types.void(_PLAN, int64, int64, int64))
def _note_best(plan, level, action, score):  # type: ignore[no-untyped-def]
    """Note the best action so far where the search began."""
    if level == 0:
        plan[BEST], plan[SCORE] = action, score


@kernel(
    int64(
        _LEGAL, _CAPTURES, _APPLY, _PARAMS, _MODEL, _STATES, _HISTORIES, _FRAMES, _KEYS, _TABLE, _GOOD, _PLAN,
        int64, int64, int64, int64,
    )
)  # fmt: skip
def _search(  # type: ignore[no-untyped-def]
    legal, captures, apply, params, model, states, histories, frames, keys, table, good, plan,
    level, depth, alpha, beta,
):  # fmt: skip
    """Score of row ``level`` for its mover, ``depth`` decisions deep; a bound where it lies outside (alpha, beta)."""
    if _is_over(model, states, level):
        return _final_score(states, level)
    if depth == 0:
        return _settle(
            captures, apply, params, model, states, histories, frames, keys, plan, level, CAPTURE_DEPTH, alpha, beta
        )
    key = _position_key(model, states, keys, plan, level)
    slot = key & np.uint64(table.shape[0] - 1)
    entry = table[slot, 1] if table[slot, 0] == key else _0
    if _answers(plan, entry, level, depth, alpha, beta):
        return _kept_score(entry, level)
    hint = np.int64((entry >> _16) & _LOW_16) - 1
    frames[level + 1, _KILLERS] = frames[level + 1, _KILLERS + 1] = NONE
    count = _list_ranked(legal, captures, params, model, states, histories, frames, good, level, hint)
    best, best_action, floor = -_INFINITY, hint, alpha
    for i in range(count):
        rank = _take_best(model, frames, level, i, count)
        action = np.int64(frames[level, _LISTS + i])
        advance(apply, params, model, states, histories, frames, keys, plan, level, action)
        sign = 1 if states[level + 1, MOVER] == states[level, MOVER] else -1
        reduction = _reduction(plan, depth, i, rank)
        # Three tries: less deep, then only whether it is better than the best, then by how much.
        stage = 2 if i == 0 else (0 if reduction > 0 else 1)
        score = floor
        while stage < 3:
            ceiling = beta if stage == 2 else floor + 1
            low, high = min(sign * floor, sign * ceiling), max(sign * floor, sign * ceiling)
            score = sign * _search(
                legal, captures, apply, params, model, states, histories, frames, keys, table, good, plan,
                level + 1, depth - 1 - (reduction if stage == 0 else 0), low, high,
            )  # fmt: skip
            if score <= floor or (stage == 1 and score >= beta):
                break
            stage += 1
        if plan[STOPPED]:
            return best
        best = max(best, score)
        if score > floor:
            floor, best_action = score, action
            _note_best(plan, level, action, score)
        if best >= beta:
            _remember_good(model, states, frames, good, level, depth, action, rank)
            break
        if plan[VISITED] >= plan[BUDGET]:
            plan[STOPPED] = 1
            return best
    bound = _AT_LEAST if best >= beta else (_IS_SCORE if best > alpha else _AT_MOST)
    _store(table, key, level, depth, bound, best, best_action)
    return best


@kernel(
    int64(
        _LEGAL, _CAPTURES, _APPLY, _PARAMS, _MODEL, _STATES, _HISTORIES, _FRAMES, _KEYS, _TABLE, _GOOD, _PLAN,
        uint64, int64,
    )
)  # fmt: skip
def deepen(  # type: ignore[no-untyped-def]
    legal, captures, apply, params, model, states, histories, frames, keys, table, good, plan, word, most_depth
):
    """Search row 0 by 1, 2, ... ``most_depth`` decisions within the budget of ``plan``; return the depth finished.

    Writes the best action and its score into ``plan``; the first decision is looked at in full, whatever the budget.
    The order of moves about which nothing is known, and so the choice among equally good ones, is drawn from ``word``.
    """
    plan[VISITED] = plan[STOPPED] = plan[SCORE] = 0
    plan[BEST] = NONE
    table[:] = 0
    for i in range(good.shape[0]):
        good[i] = np.int32(_mixed(word + np.uint64(i)) >> _60)
    frames[0, _KILLERS] = frames[0, _KILLERS + 1] = NONE
    start(model, states, frames, keys)
    budget = plan[BUDGET]
    for depth in range(1, most_depth + 1):
        plan[BUDGET] = budget if depth > 1 else _NO_LIMIT
        _search(
            legal, captures, apply, params, model, states, histories, frames, keys, table, good, plan,
            0, depth, -_INFINITY, _INFINITY,
        )  # fmt: skip
        if plan[STOPPED]:
            return depth - 1
        if plan[SCORE] >= SURE or plan[SCORE] <= -SURE:
            return depth
    return most_depth


@kernel(
    types.void(
        _LEGAL, _CAPTURES, _APPLY, _PARAMS, _MODEL, _STATES, _HISTORIES, int64[::1], uint64[::1], int64, _PLAN,
        int64[::1], int64[::1], int64[::1], int64[::1],
    ),
    counted=True,
)  # fmt: skip
def _deepen_many(  # type: ignore[no-untyped-def]
    legal, captures, apply, params, model, rows, row_histories, budgets, words, table_size, plan,
    out_actions, out_scores, out_depths, out_visited,
):  # fmt: skip
    """``deepen`` every row of a batch; ``plan`` holds what is common to them."""
    states = np.zeros((LEVELS, rows.shape[1]), np.int16)
    histories = np.zeros((LEVELS, row_histories.shape[1]), np.uint64)
    frames = np.zeros((LEVELS, _LISTS + 3 * np.int64(model[_ACTIONS])), np.int32)
    keys = np.zeros(LEVELS, np.uint64)
    table = np.zeros((table_size, 2), np.uint64)
    good = np.zeros(2 * np.int64(model[_ACTIONS]), np.int32)
    for row in range(rows.shape[0]):
        states[0] = rows[row]
        histories[0] = row_histories[row]
        plan[BUDGET] = budgets[row]
        words[row] = _mixed(words[row])
        out_depths[row] = deepen(
            legal, captures, apply, params, model, states, histories, frames, keys, table, good, plan, words[row],
            plan[MOST_DEPTH_AT],
        )  # fmt: skip
        out_actions[row], out_scores[row], out_visited[row] = plan[BEST], plan[SCORE], plan[VISITED]


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """What a search of N positions found."""

    actions: NDArray[np.int64]
    """(N,): the best action of each."""
    scores: NDArray[np.int64]
    """(N,): its score for the mover, in 1 / ``SCORE_ONE``; at least ``SURE`` for a win in sight."""
    depths: NDArray[np.int64]
    """(N,): decisions looked ahead to the end."""
    visited: NDArray[np.int64]
    """(N,): positions visited."""

    @property
    def values(self) -> NDArray[np.float32]:
        """(N,) float32: what the movers expect, in [-1, 1]."""
        return np.tanh(self.scores / SCORE_ONE).astype(np.float32)


class IncrementalSearch:
    """The search of one ruleset with given weights.

    Args:
        ruleset: a game without dice whose rules have ``cells`` and ``captures``.
        weights: of the evaluation.
        margin_weight: what one more in the margin adds to the log odds of a position.
        most_depth: decisions looked ahead at most, 1 to ``MOST_DEPTH``.
        exact: without reductions, and without table entries of another depth: the score is plain minimax's.

    Raises:
        ValueError: such a game this is not, or ``most_depth`` is out of range.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        weights: IncrementalWeights,
        *,
        margin_weight: float = 0.0,
        most_depth: int = MOST_DEPTH,
        exact: bool = False,
    ) -> None:
        if not 1 <= most_depth <= MOST_DEPTH:
            raise ValueError(f"most_depth must be from 1 to {MOST_DEPTH}, not {most_depth!r}")
        self._ruleset = ruleset
        self._model = model_of(ruleset, weights)
        self._plan = np.zeros(PLAN_SIZE, np.int64)
        self._plan[MARGIN_WEIGHT] = round(margin_weight * SCORE_ONE)
        self._plan[EXACT] = exact
        self._plan[MOST_DEPTH_AT] = most_depth

    def find(
        self,
        states: NDArray[np.int16],
        histories: NDArray[np.uint64],
        budgets: NDArray[np.int64],
        words: NDArray[np.uint64],
    ) -> Found:
        """Search N decisions, each by its own row alone.

        Args:
            states: (N, S) positions in which a seat decides.
            histories: (N, H).
            budgets: (N,) positions visited by each search, at least 1.
            words: (N,) generator words, advanced in place.
        """
        count = len(states)
        actions, scores, depths, visited = (np.zeros(count, np.int64) for _ in range(4))
        kernels = self._ruleset.kernels
        _deepen_many(
            kernels.legal, kernels.captures, kernels.apply, self._ruleset.params, self._model,
            np.ascontiguousarray(states), np.ascontiguousarray(histories), np.asarray(budgets, np.int64), words,
            _table_size(int(np.max(budgets, initial=1))), self._plan.copy(),
            actions, scores, depths, visited,
        )  # fmt: skip
        return Found(actions, scores, depths, visited)


def _table_size(budget: int) -> int:
    """Entries of the table: a power of two, no less than what most positions of the tree need."""
    return 1 << max(8, min(MOST_TABLE_BITS, (budget // 4).bit_length()))
