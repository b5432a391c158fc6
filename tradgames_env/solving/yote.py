"""Numbers for positions of Yote: squares of both sides, then the banned step of each.

Squares are numbered as combinations in the mover's frame, the mover's first. A banned step is one of a side's pieces,
in the order of their squares, and a direction, so a side with ``k`` pieces on the board has ``4 k + 1`` numbers; those
that lead off the board or onto a piece of the same side are holes. With ``return_ban="off"`` there are no bans.

A *block* is all positions with given numbers of pieces on the board and in reserve, and with or without a bonus owed.
Captures lead to fewer pieces, placements to smaller reserves, and steps to the block in which the sides are exchanged;
a bonus is owed by the same side as before, and taking it is a capture. So layers go by all pieces left, then by those
in reserve, where positions that owe a bonus come first.

All of the game is covered, or endings: ``endings-2v3`` are the positions with empty reserves and at most two pieces
against at most three, either side to move. Not covered is ``few_pieces_draw``.
"""

import functools
import itertools
import math
import re

import numpy as np
from numba import int16, int32, int64, types, uint64

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import CHANCE, MARGIN, MOVER, OUTCOME, RUNNING, SEAT
from tradgames_env.rules.yote import _ALIVE as ALIVE
from tradgames_env.rules.yote import _BAN as BAN
from tradgames_env.rules.yote import _BOARD as BOARD
from tradgames_env.rules.yote import _OWES_BONUS as OWES_BONUS
from tradgames_env.rules.yote import _RESERVE as RESERVE
from tradgames_env.rules.yote import YoteOptions
from tradgames_env.solving.indexing import PREDECESSORS, RANK, UNRANK, Layer, PositionIndex, TableError, Tables

_MOST_PIECES = 8
_IGNORED = ("first_player", "repetition_limit", "quiet_limit", "max_turns")

# Tables: fixed slots, then where each table begins.
_SQUARES, _BANS, _NUM_BLOCKS, _BINOMIALS, _BASES, _BLOCKS, _NEIGHBOURS, _HEAD = range(8)
_WIDTH = _MOST_PIECES + 1
"""Numbers of pieces there can be; each count in a key of the bases goes from 0 to 8."""
_BLOCK_SIZE = 6
"""First number, bonus owed, own pieces on the board and in reserve, the enemy's."""

_Block = tuple[int, int, int, int, int]
"""Bonus owed, own pieces on the board and in reserve, the enemy's."""


_A_PART = "endings-2v2"


def index(options: YoteOptions, part: str | None = None) -> PositionIndex:
    """The numbering of a ruleset, or of its endings ``part="endings-2v2"``.

    Raises:
        TableError: it does not cover these options, or there is no such part.
    """
    if options.few_pieces_draw:
        raise TableError(f"yote is solved with few_pieces_draw=0 only, not {options.few_pieces_draw}")
    weak = strong = options.pieces
    if part is not None:
        match = re.fullmatch(r"endings-([1-9])v([1-9])", part)
        if match is None:
            raise TableError(f"yote has parts such as {_A_PART!r}, not {part!r}")
        weak, strong = sorted((int(match[1]), int(match[2])))
    if strong > min(_MOST_PIECES, options.pieces):
        raise TableError(f"yote is solved with at most {min(_MOST_PIECES, options.pieces)} pieces a side, not {strong}")
    return _index(options, weak, strong, 0 if part else options.pieces)


def _blocks(weak: int, strong: int, most_reserve: int) -> list[_Block]:
    """The blocks of at most ``weak`` pieces of one side and ``strong`` of the other, in the order of their numbers."""
    counts = range(strong + 1)
    blocks = []
    for own, own_reserve, enemy, enemy_reserve in itertools.product(counts, repeat=4):
        mine, theirs = own + own_reserve, enemy + enemy_reserve
        within = min(mine, theirs) <= weak and max(mine, theirs) <= strong
        if min(mine, theirs) == 0 or not within or max(own_reserve, enemy_reserve) > most_reserve:
            continue
        blocks.append((0, own, own_reserve, enemy, enemy_reserve))
        # The jump took one of the enemy's pieces, and left at least one on the board to choose.
        before = theirs + 1
        if own > 0 and enemy > 0 and min(mine, before) <= weak and max(mine, before) <= strong:
            blocks.append((1, own, own_reserve, enemy, enemy_reserve))
    return sorted(blocks, key=lambda block: (*_layer_of(block), block))


def _layer_of(block: _Block) -> tuple[int, int]:
    """What orders layers: all pieces left, then those in reserve; -1 for the latter where a bonus is owed."""
    bonus, own, own_reserve, enemy, enemy_reserve = block
    reserve = own_reserve + enemy_reserve
    return own + enemy + reserve, -1 if bonus else reserve


def _size(options: YoteOptions, block: _Block) -> int:
    bonus, own, _, enemy, _ = block
    squares = options.rows * options.cols
    boards = math.comb(squares, own) * math.comb(squares - own, enemy)
    if options.return_ban == "off":
        return boards
    return boards * (1 if bonus else 4 * own + 1) * (4 * enemy + 1)


_MOST_NUMBERS = 2**63 - 1
"""What an int64 can number."""


@functools.lru_cache(maxsize=8)
def _index(options: YoteOptions, weak: int, strong: int, most_reserve: int) -> PositionIndex:
    bases = np.full((2, *[_WIDTH] * 4), -1, np.int64)
    rows: list[tuple[int, ...]] = []
    layers: list[Layer] = []
    end = 0
    for (pieces, reserve), blocks in itertools.groupby(_blocks(weak, strong, most_reserve), key=_layer_of):
        begin = end
        for block in blocks:
            bases[block] = end
            rows.append((end, *block))
            end += _size(options, block)
            if end > _MOST_NUMBERS:
                raise TableError(f"yote has far too many positions on {options.rows} x {options.cols} squares")
        detail = "a bonus owed" if reserve < 0 else f"{reserve} in reserve"
        layers.append(Layer(f"{pieces} pieces, {detail}", begin, end))
    return PositionIndex(
        name="yote",
        version=1,
        a_part=_A_PART,
        tables=_tables(options, bases, rows),
        layers=tuple(layers),
        rank=rank,
        unrank=unrank,
        predecessors=predecessors,
        ignores=_IGNORED,
    )


def _tables(options: YoteOptions, bases: Tables, blocks: list[tuple[int, ...]]) -> Tables:
    squares = options.rows * options.cols
    head = np.zeros(_HEAD, np.int64)
    head[_SQUARES], head[_BANS], head[_NUM_BLOCKS] = squares, options.return_ban != "off", len(blocks)
    tables = {
        _BINOMIALS: np.array([[math.comb(n, k) for k in range(_WIDTH + 1)] for n in range(squares + 1)], np.int64),
        _BASES: bases,
        _BLOCKS: np.array(blocks, np.int64),
        _NEIGHBOURS: _neighbours(options),
    }
    offset = _HEAD
    for slot, table in tables.items():
        head[slot] = offset
        offset += table.size
    return np.concatenate([head, *(table.ravel() for table in tables.values())])


def _neighbours(options: YoteOptions) -> Tables:
    """(4 * squares,) the square next to each in each direction of natural's frame, -1 off the board."""
    table = []
    for square in range(options.rows * options.cols):
        rank, file = divmod(square, options.cols)
        for up, across in ((1, 0), (-1, 0), (0, -1), (0, 1)):
            inside = 0 <= rank + up < options.rows and 0 <= file + across < options.cols
            table.append(square + up * options.cols + across if inside else -1)
    return np.array(table, np.int64)


_PARAMS, _TABLES, _STATE = int32[::1], int64[::1], int16[::1]
_ONE = np.uint64(1)


@kernel(int64(_TABLES, int64, int64), forceinline=True)
def _choose(tables, n, k):  # type: ignore[no-untyped-def]
    """Binomial coefficient of ``n`` over ``k``."""
    return tables[np.uint64(tables[_BINOMIALS] + n * (_WIDTH + 1) + k)]


@kernel(uint64(_STATE, int64))
def _pieces(state, colour):  # type: ignore[no-untyped-def]
    """Squares of a colour, one bit each."""
    bits = np.uint64(0)
    for cell in range(3, -1, -1):
        bits = bits << np.uint64(16) | np.uint64(np.int64(state[np.uint64(BOARD + 4 * colour + cell)]) & 0xFFFF)
    return bits


@kernel(types.void(_STATE, int64, int64))
def _flip(state, colour, square):  # type: ignore[no-untyped-def]
    """Put a piece on a square of natural's frame, or take it off."""
    cell = np.uint64(BOARD + 4 * colour + (square >> 4))
    state[cell] = np.int16(np.int64(state[cell]) ^ np.int64(1) << (square & 15))


@kernel(int64(_TABLES, _STATE, int64, uint64))
def _ban_number(tables, state, colour, pieces):  # type: ignore[no-untyped-def]
    """Number of a side's banned step: 0 for none, else by the piece in the mover's frame and the direction."""
    ban = np.int64(state[np.uint64(BAN + colour)])
    if ban == 0:
        return 0
    mover = np.int64(state[MOVER])
    square = ban - 1 >> 2
    # Pieces before this one in the order of the frame.
    lower, higher = pieces & ((_ONE << np.uint64(square)) - _ONE), pieces >> np.uint64(square) >> _ONE
    before = lower if mover == 0 else higher
    place = 0
    while before != 0:
        before &= before - _ONE
        place += 1
    return 1 + 4 * place + ((ban - 1 & 3) ^ mover)


@kernel(RANK)
def rank(params, tables, state):  # type: ignore[no-untyped-def]
    """Number of a position; see ``indexing.RANK``."""
    if state[OUTCOME] != RUNNING or state[CHANCE] != 0:
        return -1
    mover, squares = np.int64(state[MOVER]), tables[_SQUARES]
    mine, theirs = _pieces(state, mover), _pieces(state, 1 - mover)
    own, enemy, own_number, enemy_number = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for square in range(squares):
        bit = np.uint64(square if mover == 0 else squares - 1 - square)
        if mine >> bit & _ONE:
            own += 1
            own_number += _choose(tables, square, own)
        elif theirs >> bit & _ONE:
            enemy += 1
            enemy_number += _choose(tables, square - own, enemy)
    bonus = np.int64(state[OWES_BONUS])
    own_reserve, enemy_reserve = (
        np.int64(state[np.uint64(RESERVE + mover)]),
        np.int64(state[np.uint64(RESERVE + 1 - mover)]),
    )
    if max(max(own, own_reserve), max(enemy, enemy_reserve)) >= _WIDTH:
        return -1
    key = (((bonus * _WIDTH + own) * _WIDTH + own_reserve) * _WIDTH + enemy) * _WIDTH + enemy_reserve
    base = tables[np.uint64(tables[_BASES] + key)]
    if base < 0:
        return -1
    number = own_number * _choose(tables, squares - own, enemy) + enemy_number
    if tables[_BANS] != 0:
        if bonus == 0:
            number = number * (4 * own + 1) + _ban_number(tables, state, mover, mine)
        number = number * (4 * enemy + 1) + _ban_number(tables, state, 1 - mover, theirs)
    return base + number


@kernel(int64(_TABLES, _STATE, int64, uint64, int64))
def _write_ban(tables, state, colour, pieces, number):  # type: ignore[no-untyped-def]
    """Write the banned step with a number, natural to move; return whether there is such a step."""
    if number == 0:
        return 1
    for _ in range(number - 1 >> 2):
        pieces &= pieces - _ONE
    square = np.int64(0)
    while pieces >> np.uint64(square) & _ONE == 0:
        square += 1
    target = tables[np.uint64(tables[_NEIGHBOURS] + 4 * square + (number - 1 & 3))]
    state[np.uint64(BAN + colour)] = 1 + 4 * square + (number - 1 & 3)
    return 0 if target < 0 else np.int64(_pieces(state, colour) >> np.uint64(target) & _ONE ^ _ONE)


@kernel(types.void(_TABLES, _STATE, int64, int64, int64, int64))
def _write_boards(tables, state, own, enemy, own_number, enemy_number):  # type: ignore[no-untyped-def]
    """Write the squares of both sides, natural to move."""
    free = tables[_SQUARES] - own
    for square in range(tables[_SQUARES] - 1, -1, -1):
        if own > 0 and _choose(tables, square, own) <= own_number:
            own_number -= _choose(tables, square, own)
            own -= 1
            _flip(state, 0, square)
            continue
        free -= 1
        if enemy > 0 and _choose(tables, free, enemy) <= enemy_number:
            enemy_number -= _choose(tables, free, enemy)
            enemy -= 1
            _flip(state, 1, square)


@kernel(UNRANK)
def unrank(params, tables, number, out_state):  # type: ignore[no-untyped-def]
    """Write the position of a number; see ``indexing.UNRANK``."""
    low, high = np.int64(0), tables[_NUM_BLOCKS]
    while high - low > 1:
        middle = (low + high) >> 1
        if tables[np.uint64(tables[_BLOCKS] + middle * _BLOCK_SIZE)] <= number:
            low = middle
        else:
            high = middle
    block = tables[_BLOCKS] + low * _BLOCK_SIZE
    bonus, own, own_reserve = tables[np.uint64(block + 1)], tables[np.uint64(block + 2)], tables[np.uint64(block + 3)]
    enemy, enemy_reserve = tables[np.uint64(block + 4)], tables[np.uint64(block + 5)]
    out_state[:] = 0
    out_state[OWES_BONUS] = bonus
    out_state[RESERVE], out_state[RESERVE + 1] = own_reserve, enemy_reserve
    out_state[ALIVE], out_state[ALIVE + 1] = own + own_reserve, enemy + enemy_reserve
    out_state[MARGIN] = out_state[ALIVE] - out_state[ALIVE + 1]
    number -= tables[np.uint64(block)]
    own_ban, enemy_ban = np.int64(0), np.int64(0)
    if tables[_BANS] != 0:
        enemy_ban = number % (4 * enemy + 1)
        number //= 4 * enemy + 1
        if bonus == 0:
            own_ban = number % (4 * own + 1)
            number //= 4 * own + 1
    squares = tables[_SQUARES]
    others = _choose(tables, squares - own, enemy)
    _write_boards(tables, out_state, own, enemy, number // others, number % others)
    if _write_ban(tables, out_state, 0, _pieces(out_state, 0), own_ban) == 0:
        return 0
    return _write_ban(tables, out_state, 1, _pieces(out_state, 1), enemy_ban)


@kernel(int64(_PARAMS, _TABLES, _STATE, int64, _TABLES, int64))
def _list_bans(params, tables, state, excluded, out_numbers, count):  # type: ignore[no-untyped-def]
    """Append the number of the position with each banned step that black, to move, can have, but ``excluded``."""
    pieces = _pieces(state, 1)
    for step in range(4 * tables[_SQUARES]):
        target = tables[np.uint64(tables[_NEIGHBOURS] + step)]
        is_ban = pieces >> np.uint64(step >> 2) & _ONE != 0 and target >= 0 and step + 1 != excluded
        if is_ban and pieces >> np.uint64(target) & _ONE == 0:
            state[BAN + 1] = 1 + step
            out_numbers[count] = rank(params, tables, state)
            count += 1
    return count


@kernel(PREDECESSORS)
def predecessors(params, tables, state, scratch, history, actions, out_numbers):  # type: ignore[no-untyped-def]
    """List the positions before a step to this one; see ``indexing.PREDECESSORS``.

    The enemy's banned step is his last one backwards. Before it he may have had any ban, or none, but not that of the
    step itself. Without bans every piece of his may have come from every empty square next to it.
    """
    if state[OWES_BONUS] != 0:
        return 0
    count = np.int64(0)
    ban = np.int64(state[BAN + 1])
    state[MOVER] = 1
    state[SEAT] = 1
    enemy = _pieces(state, 1)
    occupied = _pieces(state, 0) | enemy
    first, last = (ban - 1, ban) if tables[_BANS] != 0 else (0, 4 * tables[_SQUARES])
    for step in range(max(first, 0), last):
        square, origin = step >> 2, tables[np.uint64(tables[_NEIGHBOURS] + step)]
        if origin < 0 or enemy >> np.uint64(square) & _ONE == 0 or occupied >> np.uint64(origin) & _ONE != 0:
            continue
        _flip(state, 1, square)
        _flip(state, 1, origin)
        state[BAN + 1] = 0
        out_numbers[count] = rank(params, tables, state)
        count += 1
        if tables[_BANS] != 0:
            count = _list_bans(params, tables, state, 1 + 4 * origin + (step & 3 ^ 1), out_numbers, count)
        _flip(state, 1, square)
        _flip(state, 1, origin)
    return count
