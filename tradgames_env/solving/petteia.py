"""Numbers for positions of Petteia, one for all positions that are the same but for turning and mirroring the board.

Nothing in the rules but the set-up tells one side of the board from another, so a position has up to eight twins of the
same value (up to four on boards that are not square), and which of the two frames is looked from does not matter.
The sets of squares that the mover can hold fall into *classes* of twins, of which the set with the lowest number
represents the others. A position is numbered by the class of the mover's squares, then by which of the other squares
the enemy holds once the board is turned so that the mover's squares are the representative. Where several turns do that
the lowest number counts, and the others are holes. Sets are numbered as combinations, by the highest square, then the
next, and so on.

A *block* is all positions with given numbers of stones; captures follow from the stones missing. Whoever has lost
``capture_target`` stones has lost the game, so blocks begin above that. Blocks are layers, joined with their twins in
which the sides' numbers are exchanged: a quiet move leads to the twin, a capture to fewer stones.

The whole game is covered on small boards, and endings (``endings-2v3``: two stones against two or three, either side to
move) on all with at most 64 squares. Not covered are dice, stakes, leaders, forced captures (which would make quiet
moves irreversible) and stalled games that captures decide.
"""

import dataclasses
import functools
import itertools
import math
import re

import numpy as np
from numba import int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import CHANCE, MARGIN, MOVER, OUTCOME, RUNNING, SEAT
from tradgames_env.rules.petteia import (
    CAPTURES,
    COLS,
    DECODED,
    NUM_ACTIONS,
    ROWS,
    RULES,
    PetteiaOptions,
    _put_piece,
    apply,
    legal,
)
from tradgames_env.solving.indexing import PREDECESSORS, RANK, UNRANK, Layer, PositionIndex, TableError, Tables

_MOST_SQUARES = 64
_MOST_STONES = 16
_MOST_SETS = 1 << 22
"""Sets of squares of one side, beyond which even the numbering does not fit; its tables hold them all."""
_REFUSED = {
    "stalled_result": "draw",
    "forced_capture": False,
    "die_limit": 0,
    "stake_die": 0,
    "reward": "result",
    "leader": False,
}
"""Options that must have this value."""
_IGNORED = ("first_player", "repetition_limit", "quiet_limit", "max_turns")

# Tables: fixed slots, then where each table begins.
(
    _SQUARES,
    _STONES,
    _NUM_BLOCKS,
    _BINOMIALS,
    _BASES,
    _BLOCKS,
    _REVERSED,
    _CELLS,
    _BIT_PLACES,
    _TURNS,
    _SETS_AT,
    _REPRESENTATIVES_AT,
    _SETS,
    _REPRESENTATIVES,
    _HEAD,
) = range(15)
_MOST_TURNS = 8
_WIDTH = _MOST_STONES + 1
"""Entries of a row of the binomials (of ``n`` over 0 to 16) and of the bases (of ``own`` stones and 0 to 16)."""
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BLOCK_SIZE = 3
"""First number, own stones, enemy stones."""


_A_PART = "endings-2v3"


def index(options: PetteiaOptions, part: str | None = None) -> PositionIndex:
    """The numbering of a ruleset, or of its endings ``part="endings-2v3"``.

    Raises:
        TableError: it does not cover these options, or there is no such part.
    """
    for name, value in _REFUSED.items():
        if getattr(options, name) != value:
            raise TableError(f"petteia is solved with {name}={value!r} only, not {getattr(options, name)!r}")
    if options.squares > _MOST_SQUARES or options.stones > _MOST_STONES:
        raise TableError(f"petteia is solved on boards of at most {_MOST_SQUARES} squares, not {options.squares}")
    blocks = _blocks(options, part)
    if any(math.comb(options.squares, own) > _MOST_SETS for own, _ in blocks):
        raise TableError(f"petteia has far too many positions on this board; ask for a part, such as {_A_PART!r}")
    return _index(options, blocks)


def _blocks(options: PetteiaOptions, part: str | None) -> tuple[tuple[int, int], ...]:
    """(own, enemy) numbers of stones that are covered, in the order of their numbers."""
    fewest = options.stones - options.capture_target + 1
    every = range(fewest, options.stones + 1)
    if part is None:
        chosen = list(itertools.product(every, every))
    else:
        match = re.fullmatch(r"endings-([1-9][0-9]?)v([1-9][0-9]?)", part)
        if match is None:
            raise TableError(f"petteia has parts such as {_A_PART!r}, not {part!r}")
        weak, strong = sorted((int(match[1]), int(match[2])))
        if weak < fewest or strong > options.stones:
            raise TableError(f"petteia: in endings each side has {fewest} to {options.stones} stones, not {part!r}")
        chosen = [pair for pair in itertools.product(every, every) if min(pair) <= weak and max(pair) <= strong]
    return tuple(sorted(chosen, key=lambda pair: (sum(pair), max(pair), pair)))


@dataclasses.dataclass(frozen=True)
class _Classes:
    """The sets of a number of squares, by their numbers, and their classes.

    Attributes:
        sets: (N,) ``class << 8 | turns``, a bit for each turn of the board that makes the set the representative.
        representatives: (C,) squares of the representative of each class, one bit each.
    """

    sets: Tables
    representatives: Tables


@functools.lru_cache(maxsize=8)
def _index(options: PetteiaOptions, blocks: tuple[tuple[int, int], ...]) -> PositionIndex:
    classes = {own: _classes(options, own) for own in sorted({own for own, _ in blocks})}
    bases = np.full((_WIDTH, _WIDTH), -1, np.int64)
    rows: list[tuple[int, ...]] = []
    layers: list[Layer] = []
    end = 0
    for (more, fewer), twins in itertools.groupby(blocks, key=lambda pair: (max(pair), min(pair))):
        begin = end
        for own, enemy in twins:
            bases[own, enemy] = end
            rows.append((end, own, enemy))
            end += len(classes[own].representatives) * math.comb(options.squares - own, enemy)
        layers.append(Layer(f"{fewer} against {more}", begin, end))
    return PositionIndex(
        name="petteia",
        version=1,
        a_part=_A_PART,
        tables=_tables(options, bases, rows, classes),
        layers=tuple(layers),
        rank=rank,
        unrank=unrank,
        predecessors=predecessors,
        ignores=_IGNORED,
    )


def _tables(
    options: PetteiaOptions, bases: Tables, blocks: list[tuple[int, ...]], classes: dict[int, _Classes]
) -> Tables:
    head = np.zeros(_HEAD, np.int64)
    head[_SQUARES], head[_STONES], head[_NUM_BLOCKS] = options.squares, options.stones, len(blocks)
    sets_at, representatives_at = np.zeros((2, _WIDTH), np.int64)
    for own in range(1, _WIDTH):
        before = classes.get(own - 1)
        sets_at[own] = sets_at[own - 1] + (len(before.sets) if before else 0)
        representatives_at[own] = representatives_at[own - 1] + (len(before.representatives) if before else 0)
    tables = {
        _BINOMIALS: _binomials(),
        _BASES: bases,
        _BLOCKS: np.array(blocks, np.int64),
        _REVERSED: _reversed_actions(options),
        _CELLS: _cells(options),
        _BIT_PLACES: _bit_places(),
        _TURNS: _turns(options),
        _SETS_AT: sets_at,
        _REPRESENTATIVES_AT: representatives_at,
        _SETS: np.concatenate([of_size.sets for of_size in classes.values()]),
        _REPRESENTATIVES: np.concatenate([of_size.representatives for of_size in classes.values()]),
    }
    offset = _HEAD
    for slot, table in tables.items():
        head[slot] = offset
        offset += table.size
    return np.concatenate([head, *(table.ravel() for table in tables.values())])


def _cells(options: PetteiaOptions) -> Tables:
    """(2, 64, 4) where a state row has a stone of a colour on a square: cell and bit of its rank, of its file."""
    table = np.zeros((2, _MOST_SQUARES, 4), np.int64)
    for colour, square in itertools.product(range(2), range(options.squares)):
        state = np.zeros(RULES.state_size(options), np.int16)
        _put_piece(options, state, colour, *divmod(square, options.cols))
        of_rank, of_file = np.flatnonzero(state)
        table[colour, square] = of_rank, state[of_rank], of_file, state[of_file]
    return table


def _bit_places() -> Tables:
    """(64,) index of the single one of a word, at the upper six bits of its product with ``_DE_BRUIJN``."""
    words = np.uint64(1) << np.arange(64, dtype=np.uint64)
    table = np.zeros(64, np.int64)
    table[words * _DE_BRUIJN >> np.uint64(58)] = np.arange(64)
    return table


def _binomials() -> Tables:
    """(65, 17) ``n`` over ``k``, as far as a combination of squares can need it; 0 where it would be too large."""
    table = [[math.comb(n, k) for k in range(_WIDTH)] for n in range(_MOST_SQUARES + 1)]
    return np.array(table, np.int64)


def _turns(options: PetteiaOptions) -> Tables:
    """(T, 64) where each square comes to lie in each of the eight (or four) ways to turn and mirror the board."""
    ranks, files = np.divmod(np.arange(options.squares), options.cols)
    places = [
        (ranks if up else options.rows - 1 - ranks, files if across else options.cols - 1 - files)
        for up in (True, False)
        for across in (True, False)
    ]
    if options.rows == options.cols:
        places += [(file, rank) for rank, file in places]
    table = np.zeros((len(places), _MOST_SQUARES), np.int64)
    table[:, : options.squares] = [rank * options.cols + file for rank, file in places]
    return table


def _classes(options: PetteiaOptions, count: int) -> _Classes:
    """The classes of the sets of ``count`` squares."""
    sets = np.array(list(itertools.combinations(range(options.squares), count)), np.int64)
    turned = np.sort(_turns(options)[:, sets], axis=2)
    numbers = _binomials()[turned, np.arange(1, count + 1)].sum(axis=2)
    lowest = numbers.min(axis=0)
    turns = ((numbers == lowest) << np.arange(len(numbers))[:, None]).sum(axis=0)
    first, of_set = np.unique(lowest, return_inverse=True)
    in_order = np.zeros(len(sets), np.int64)
    in_order[numbers[0]] = of_set << 8 | turns
    representatives = np.zeros(len(first), np.int64)
    is_first = numbers[0] == lowest
    representatives[of_set[is_first]] = _bits(sets[is_first])
    return _Classes(in_order, representatives)


def _bits(sets: NDArray[np.int64]) -> Tables:
    """(N,) one bit a square for each of N sets of squares; the highest is the sign."""
    bits: NDArray[np.uint64] = np.bitwise_or.reduce(np.uint64(1) << sets.astype(np.uint64), axis=1)
    return bits.view(np.int64)


def _reversed_actions(options: PetteiaOptions) -> Tables:
    """(A,) the action that moves a piece back to where an action took it from; same side, same frame."""
    params = RULES.params(options)
    count = int(params[NUM_ACTIONS])
    moves = params[params[DECODED] : params[DECODED] + count].tolist()
    actions = {move: action for action, move in enumerate(moves)}
    return np.array([actions[move >> 8 | (move & 0xFF) << 8] for move in moves], np.int64)


_PARAMS, _TABLES, _STATE = int32[::1], int64[::1], int16[::1]
_ZERO, _ONE, _58 = np.uint64(0), np.uint64(1), np.uint64(58)


@kernel(int64(_TABLES, int64, int64), forceinline=True)
def _choose(tables, n, k):  # type: ignore[no-untyped-def]
    """Binomial coefficient of ``n`` over ``k``."""
    return tables[np.uint64(tables[_BINOMIALS] + n * _WIDTH + k)]


@kernel(int64(_TABLES, uint64), forceinline=True)
def _lowest(tables, bits):  # type: ignore[no-untyped-def]
    """The lowest square of a set that is not empty."""
    return tables[np.uint64(tables[_BIT_PLACES]) + ((bits & (~bits + _ONE)) * _DE_BRUIJN >> _58)]


@kernel(uint64(_PARAMS, _TABLES, _STATE, int64))
def _squares_of(params, tables, state, colour):  # type: ignore[no-untyped-def]
    """The squares a colour holds, one bit each."""
    rows, cols = np.int64(params[ROWS]), np.int64(params[COLS])
    line = tables[np.uint64(tables[_CELLS] + 4 * _MOST_SQUARES * colour)]
    bits = _ZERO
    for rank in range(rows - 1, -1, -1):
        bits = bits << np.uint64(cols) | np.uint64(state[np.uint64(line + rank)])
    return bits


@kernel(int64(_TABLES, uint64, uint64))
def _set_number(tables, bits, taken):  # type: ignore[no-untyped-def]
    """Number of a set among the sets of as many squares, the ``taken`` ones left out of the count."""
    number, size, before = np.int64(0), np.int64(0), np.int64(0)
    while bits != _ZERO:
        square = _lowest(tables, bits)
        bits &= bits - _ONE
        while taken != _ZERO and _lowest(tables, taken) < square:
            taken &= taken - _ONE
            before += 1
        size += 1
        number += _choose(tables, square - before, size)
    return number


@kernel(uint64(_TABLES, uint64, int64))
def _turned(tables, bits, turn):  # type: ignore[no-untyped-def]
    """A set of squares after turning the board."""
    table = tables[_TURNS] + turn * _MOST_SQUARES
    turned = _ZERO
    while bits != _ZERO:
        turned |= _ONE << np.uint64(tables[np.uint64(table + _lowest(tables, bits))])
        bits &= bits - _ONE
    return turned


@kernel(RANK)
def rank(params, tables, state):  # type: ignore[no-untyped-def]
    """Number of a position; see ``indexing.RANK``."""
    if state[OUTCOME] != RUNNING or state[CHANCE] != 0:
        return -1
    mover = np.int64(state[MOVER])
    own = tables[_STONES] - state[np.uint64(CAPTURES + 1 - mover)]
    enemy = tables[_STONES] - state[np.uint64(CAPTURES + mover)]
    base = tables[np.uint64(tables[_BASES] + own * _WIDTH + enemy)]
    if base < 0:
        return -1
    theirs = _squares_of(params, tables, state, 1 - mover)
    number = _set_number(tables, _squares_of(params, tables, state, mover), _ZERO)
    entry = tables[np.uint64(tables[_SETS] + tables[np.uint64(tables[_SETS_AT] + own)] + number)]
    in_class = entry >> 8
    at = tables[_REPRESENTATIVES] + tables[np.uint64(tables[_REPRESENTATIVES_AT] + own)] + in_class
    taken = np.uint64(tables[np.uint64(at)])
    others = _choose(tables, tables[_SQUARES] - own, enemy)
    lowest = others
    for turn in range(_MOST_TURNS):
        if entry >> turn & 1:
            lowest = min(lowest, _set_number(tables, _turned(tables, theirs, turn), taken))
    return base + in_class * others + lowest


@kernel(types.void(_TABLES, _STATE, int64, int64))
def _put(tables, state, colour, square):  # type: ignore[no-untyped-def]
    """Put a stone on a square, or take it off."""
    at = np.uint64(tables[_CELLS] + 4 * (_MOST_SQUARES * colour + square))
    state[np.uint64(tables[at])] ^= tables[at + _ONE]
    state[np.uint64(tables[at + np.uint64(2)])] ^= tables[at + np.uint64(3)]


@kernel(UNRANK)
def unrank(params, tables, number, out_state):  # type: ignore[no-untyped-def]
    """Write the position of a number; see ``indexing.UNRANK``."""
    block = tables[_BLOCKS] + (tables[_NUM_BLOCKS] - 1) * _BLOCK_SIZE
    while tables[np.uint64(block)] > number:
        block -= _BLOCK_SIZE
    own, enemy = tables[np.uint64(block + 1)], tables[np.uint64(block + 2)]
    squares, stones = tables[_SQUARES], tables[_STONES]
    out_state[:] = 0
    out_state[CAPTURES], out_state[CAPTURES + 1] = stones - enemy, stones - own
    out_state[MARGIN] = own - enemy
    within = number - tables[np.uint64(block)]
    others = _choose(tables, squares - own, enemy)
    in_class = within // others
    left = within - in_class * others
    at = tables[_REPRESENTATIVES] + tables[np.uint64(tables[_REPRESENTATIVES_AT] + own)] + in_class
    taken = np.uint64(tables[np.uint64(at)])
    bits = taken
    while bits != _ZERO:
        _put(tables, out_state, 0, _lowest(tables, bits))
        bits &= bits - _ONE
    free, square = squares - own, squares - 1
    while enemy > 0:
        if taken >> np.uint64(square) & _ONE == 0:
            free -= 1
            if _choose(tables, free, enemy) <= left:
                left -= _choose(tables, free, enemy)
                enemy -= 1
                _put(tables, out_state, 1, square)
        square -= 1
    # A set that is its own twin leaves several numbers to one position.
    sets = tables[_SETS] + tables[np.uint64(tables[_SETS_AT] + own)]
    entry = tables[np.uint64(sets + _set_number(tables, taken, _ZERO))]
    if (entry & 0xFF) == 1:
        return 1
    return np.int64(rank(params, tables, out_state) == number)


@kernel(PREDECESSORS)
def predecessors(params, tables, state, scratch, history, actions, out_numbers):  # type: ignore[no-untyped-def]
    """List the positions before a quiet move to this one; see ``indexing.PREDECESSORS``.

    Rook moves are reversible: the enemy's stones come from where they could go. Which of them did so without a capture
    is found by playing the move forward; all moves of a stone arrive on the same square and tell the same.
    """
    number = rank(params, tables, state)
    state[MOVER] = 1
    state[SEAT] = 1
    decoded, cols = np.int64(params[DECODED]), np.int64(params[COLS])
    count = np.int64(0)
    last, is_quiet = np.int64(-1), False
    for i in range(legal(params, state, history, actions)):
        action = np.int64(actions[i])
        move = np.int64(params[np.uint64(decoded + params[NUM_ACTIONS] + action)])
        here, origin = (move & 15) * cols + (move >> 4 & 15), (move >> 8 & 15) * cols + (move >> 12)
        _put(tables, state, 1, here)
        _put(tables, state, 1, origin)
        if here != last:
            for cell in range(state.shape[0]):
                scratch[cell] = state[cell]
            apply(params, scratch, history, tables[np.uint64(tables[_REVERSED] + action)])
            is_quiet = rank(params, tables, scratch) == number
            last = here
        if is_quiet:
            out_numbers[count] = rank(params, tables, state)
            count += 1
        _put(tables, state, 1, here)
        _put(tables, state, 1, origin)
    return count
