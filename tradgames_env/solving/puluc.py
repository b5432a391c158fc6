"""Every position of Puluc before a throw, numbered without a gap.

The order inside a stack below its top never matters (rule B6 only ever adds on top, B7 only counts), so a square holds
one of C contents: nothing, or an owner with so many counters of the mover and so many of the enemy. A layer holds the
positions in which the mover still has A counters in play and the enemy B, houses included; removing a counter leads to
a layer of a smaller sum. Within a layer positions are numbered like words: square after square from the mover's step 1,
by content, which the numbers of ways to fill the squares that are left make a sum of one table entry a square.

Tables, after five offsets and C:

========  ===========================================================================================================
layers    first number of layer (A, B), at A * (pieces + 1) + B
stacks    content of a square by its stack as the rules write it, seen by natural, then seen by black
strides   by content: how far its square moves on in ``words``
contents  by content: counters of the mover + 16 * counters of the enemy + 256 * the enemy is the owner
words     row (squares left, A left, B left), column content: positions that have an earlier content on this square
========  ===========================================================================================================
"""

import itertools
from typing import Any

import numpy as np
from numba import int16, int32, int64, types
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import CHANCE, MARGIN, MOVER
from tradgames_env.rules.puluc import (
    EMPTY,
    HOUSE,
    LENGTH,
    PIECES,
    REMOVED,
    SQUARES,
    THROW,
    UNITS,
    PulucOptions,
)
from tradgames_env.solving.indexing import RANK, UNRANK, Layer, PositionIndex, TableError, Tables

LAYERS, STACKS, STRIDES, CONTENTS, WORDS, NUM_CONTENTS = range(6)
_HEAD = 6
ENEMY_SHIFT, OWNER_SHIFT, COUNT_MASK = 4, 8, 15
UNIT_BITS = 15


@kernel(RANK)
def rank(params, tables, state):  # type: ignore[no-untyped-def]
    """Number of a position in which a throw is due; -1 for all others."""
    if state[CHANCE] != THROW:
        return -1
    mover, pieces = np.int64(state[MOVER]), np.int64(params[PIECES])
    squares = np.int64(params[LENGTH]) - 2
    num_contents = tables[NUM_CONTENTS]
    own = pieces - np.int64(state[np.uint32(REMOVED + 1 - mover)])
    enemy = pieces - np.int64(state[np.uint32(REMOVED + mover)])
    layer = own * (pieces + 1) + enemy
    number = tables[np.uint64(tables[LAYERS] + layer)]
    word = tables[WORDS] + (squares * (pieces + 1) * (pieces + 1) + layer) * num_contents
    stacks = tables[STACKS] + mover * (np.int64(1) << (2 * pieces + 1))
    strides = tables[STRIDES]
    # Black walks the squares from the other end.
    place = np.int64(SQUARES + (squares - 1 if mover else 0))
    step = 1 - 2 * mover
    for _ in range(squares):
        content = tables[np.uint64(stacks + np.int64(state[np.uint64(place)]))]
        number += tables[np.uint64(word + content)]
        word -= tables[np.uint64(strides + content)]
        place += step
    return number


@kernel(int64(int64[::1], int64, int64, int64))
def _last_not_above(table, begin, size, number):  # type: ignore[no-untyped-def]
    """The last of ``size`` ascending entries from ``begin`` that is not above ``number``, counted from ``begin``."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) >> 1
        if table[begin + middle] <= number:
            low = middle
        else:
            high = middle
    return low


@kernel(int64(int32[::1], int64[::1], int64))
def _layer_of(params, tables, number):  # type: ignore[no-untyped-def]
    """``A * (pieces + 1) + B`` of the layer that holds a number: the one with the highest start not above it."""
    best = np.int64(0)
    pieces = np.int64(params[PIECES])
    for own in range(1, pieces + 1):
        for enemy in range(1, pieces + 1):
            layer = own * (pieces + 1) + enemy
            begin = tables[tables[LAYERS] + layer]
            if begin <= number and (best == 0 or begin > tables[tables[LAYERS] + best]):
                best = layer
    return best


@kernel(types.void(int16[::1], int64, int64, int64))
def _put(state, step, enemy_step, parts):  # type: ignore[no-untyped-def]
    """Write the stack on natural's ``step``, which is black's ``enemy_step``; the owner's counters lie on top."""
    own, enemy, taken = parts & COUNT_MASK, (parts >> ENEMY_SHIFT) & COUNT_MASK, parts >> OWNER_SHIFT
    ones = (np.int64(1) << enemy) - 1
    state[SQUARES - 1 + step] = (np.int64(1) << (own + enemy)) | (ones << own if taken else ones)
    if own + enemy > 0:
        at = enemy_step if taken else step
        state[UNITS + 2 * taken + at // UNIT_BITS] |= np.int64(1) << at % UNIT_BITS


@kernel(UNRANK)
def unrank(params, tables, number, out_state):  # type: ignore[no-untyped-def]
    """Write the position of a number, natural to throw; there are no holes."""
    pieces, squares, num_contents = np.int64(params[PIECES]), np.int64(params[LENGTH]) - 2, tables[NUM_CONTENTS]
    layer = _layer_of(params, tables, number)
    own, enemy = layer // (pieces + 1), layer % (pieces + 1)
    number -= tables[tables[LAYERS] + layer]
    word = tables[WORDS] + (squares * (pieces + 1) * (pieces + 1) + layer) * num_contents
    out_state[:] = 0
    out_state[CHANCE] = THROW
    out_state[REMOVED] = pieces - enemy
    out_state[REMOVED + 1] = pieces - own
    out_state[MARGIN] = own - enemy
    for step in range(1, squares + 1):
        content = _last_not_above(tables, word, num_contents, number)
        number -= tables[word + content]
        word -= tables[tables[STRIDES] + content]
        parts = tables[tables[CONTENTS] + content]
        own -= parts & COUNT_MASK
        enemy -= (parts >> ENEMY_SHIFT) & COUNT_MASK
        _put(out_state, step, squares + 1 - step, parts)
    out_state[HOUSE] = own
    out_state[HOUSE + 1] = enemy
    return 1


def index(options: PulucOptions, part: str | None = None) -> PositionIndex:
    """The numbering of all positions.

    Raises:
        TableError: a part was asked for, or both sides may pass for ever.
    """
    if options.pass_rule == "always":
        raise TableError("puluc with pass_rule=always cannot be solved: both sides may pass for ever")
    if part is not None:
        raise TableError(f"puluc is solved whole; it has no part {part!r}")
    pieces, squares = options.pieces, options.length - 2
    contents = _contents(pieces)
    ways = _ways(squares, pieces, contents)
    layers, begins = _layers(pieces, ways[squares])
    side = pieces + 1
    strides = [(side * side + own * side + enemy) * len(contents) for own, enemy, _ in contents]
    parts = [own | enemy << ENEMY_SHIFT | taken << OWNER_SHIFT for own, enemy, taken in contents]
    sections: list[Any] = [begins.ravel(), _stacks(pieces, contents), strides, parts, _words(ways, contents).ravel()]
    offsets = np.cumsum([_HEAD, *(len(section) for section in sections)])[:-1]
    tables: Tables = np.concatenate([offsets, [len(contents)], *sections]).astype(np.int64)
    return PositionIndex("puluc", 1, tables, layers, rank, unrank, ignores=("first_player", "max_turns"))


def _contents(pieces: int) -> list[tuple[int, int, int]]:
    """(counters of the mover, of the enemy, 1 if the enemy is the owner) of every stack; first the empty square."""
    counts = list(itertools.product(range(pieces + 1), repeat=2))
    owned = [(own, enemy, taken) for taken in range(2) for own, enemy in counts if (own, enemy)[taken] > 0]
    return [(0, 0, 0), *owned]


def _ways(squares: int, pieces: int, contents: list[tuple[int, int, int]]) -> NDArray[np.int64]:
    """[k, A, B]: ways to fill k squares with at most A and B counters."""
    ways = np.zeros((squares + 1, pieces + 1, pieces + 1), np.int64)
    ways[0] = 1
    for k in range(1, squares + 1):
        for own, enemy, _ in contents:
            ways[k, own:, enemy:] += ways[k - 1, : pieces + 1 - own, : pieces + 1 - enemy]
    return ways


def _layers(pieces: int, sizes: NDArray[np.int64]) -> tuple[tuple[Layer, ...], NDArray[np.int64]]:
    """Layers by rising number of counters in play, each with its mirror image; and where each (A, B) begins."""
    begins = np.zeros((pieces + 1, pieces + 1), np.int64)
    layers, begin = [], 0
    pairs = [(high, low) for high in range(1, pieces + 1) for low in range(1, high + 1)]
    for high, low in sorted(pairs, key=lambda pair: (sum(pair), pair)):
        end = begin
        for own, enemy in sorted({(high, low), (low, high)}):
            begins[own, enemy] = end
            end += int(sizes[own, enemy])
        layers.append(Layer(f"{high} and {low} counters", begin, end))
        begin = end
    return tuple(layers), begins


def _stacks(pieces: int, contents: list[tuple[int, int, int]]) -> NDArray[np.int64]:
    """Content by stack, natural's view and then black's; 0 where a stack has more counters than there are."""
    size = 2 << (2 * pieces)
    stacks = np.zeros(2 * size, np.int64)
    number = {content: place for place, content in enumerate(contents)}
    for stack in range(EMPTY + 1, size):
        letters = f"{stack:b}"[1:]
        black, natural = letters.count("1"), letters.count("0")
        top = int(letters[0])
        stacks[stack] = number.get((natural, black, top), 0)
        stacks[size + stack] = number.get((black, natural, 1 - top), 0)
    return stacks


def _words(ways: NDArray[np.int64], contents: list[tuple[int, int, int]]) -> NDArray[np.int64]:
    """(k, A, B, C): of the ways to fill k squares, how many have an earlier content on the first of them."""
    following = np.zeros((*ways.shape, len(contents)), np.int64)
    side = ways.shape[1]
    for place, (own, enemy, _) in enumerate(contents):
        following[1:, own:, enemy:, place] = ways[:-1, : side - own, : side - enemy]
    before: NDArray[np.int64] = np.cumsum(following, axis=-1) - following
    return before
