"""Every position of Yut Nori before a throw, numbered without a gap.

Covered are all options without ``backdo`` (ways would be remembered) and without ``extra_on_yut_mo`` (a hand would be
kept). Whose turn it is among partners changes no value, so teams have the table of two players.

A layer holds the positions in which the mover has O pieces that are not home and the enemy E; bringing pieces home
leads to a layer of a smaller sum. A side with n such pieces stands on k stations, with at least one piece on each and
the rest waiting. The stations are a k-subset of those that are free for it. The sizes of its units, in the order of the
stations, are the steps of a rising sequence within 1 .. n, so again a k-subset, of n things. Subsets are numbered by
the combinatorial number system. The mover has every station, the enemy those that the mover left; so with S stations
there are C(S, k) C(O, k) C(S - k, j) C(E, j) positions with k stations of the mover and j of the enemy.

Tables, after five offsets and the first station; P is pieces + 1:

==========  =========================================================================================================
layers      first number of layer (O, E), at O * P + E
own_begins  at (O * P + E) * P + k: positions of the layer where the mover stands on fewer than k stations
widths      at k * P + E: positions of the enemy's E pieces beside k stations of the mover
begins      at (k * P + E) * P + j: those of them where the enemy stands on fewer than j stations
binomials   at n * BINOMIAL_WIDTH + k: n over k, 0 where k > n
==========  =========================================================================================================
"""

import math

import numpy as np
from numba import int16, int32, int64, types
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import CHANCE, MARGIN, MOVER
from tradgames_env.rules.yut_nori import (
    COUNT_MASK,
    HOME,
    LOW_BITS,
    LOW_MASK,
    NUM_STATIONS,
    OTHER_SEAT,
    PIECES,
    STATIONS,
    THROW,
    UNITS,
    WAITING,
    YutNoriOptions,
)
from tradgames_env.solving.indexing import RANK, UNRANK, Layer, PositionIndex, TableError, Tables

LAYERS, OWN_BEGINS, WIDTHS, BEGINS, BINOMIALS, FIRST_STATION = range(6)
_HEAD = 6
BINOMIAL_WIDTH = 16

_TABLES, _STATE = int64[::1], int16[::1]
_TWO_NUMBERS = types.UniTuple(int64, 2)  # type: ignore[no-untyped-call]


@kernel(int64(int64))
def _count_ones(bits):  # type: ignore[no-untyped-def]
    """Number of ones among 32 bits."""
    bits = bits - ((bits >> 1) & 0x55555555)
    bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
    return ((((bits + (bits >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24) & 0xFF


@kernel(int64(_TABLES, int64, int64))
def _over(tables, n, k):  # type: ignore[no-untyped-def]
    """Binomial coefficient n over k."""
    return tables[np.uint64(tables[BINOMIALS] + n * BINOMIAL_WIDTH + k)]


@kernel(int64(_STATE, int64))
def _units(state, colour):  # type: ignore[no-untyped-def]
    """Bits of the stations where a colour has a unit."""
    low = np.int64(state[np.uint64(UNITS + 2 * colour)])
    return low | np.int64(state[np.uint64(UNITS + 1 + 2 * colour)]) << LOW_BITS


@kernel(_TWO_NUMBERS(_TABLES, _STATE, int64, int64))
def _number_side(tables, state, units, taken):  # type: ignore[no-untyped-def]
    """Number of the set of stations in ``units`` among those not ``taken``, and of the sequence of the unit sizes."""
    places, sizes, total, count = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    below = (np.int64(1) << tables[FIRST_STATION]) - 1
    free = ~(taken | below)
    while units != 0:
        lower = (units & -units) - 1
        units &= units - 1
        station = _count_ones(lower)
        total += np.int64(state[np.uint64(STATIONS + station)]) & COUNT_MASK
        count += 1
        places += _over(tables, _count_ones(lower & free), count)
        sizes += _over(tables, total - 1, count)
    return places, sizes


@kernel(RANK)
def rank(params, tables, state):  # type: ignore[no-untyped-def]
    """Number of a position in which a throw is due; -1 for all others."""
    if state[CHANCE] != THROW:
        return -1
    mover, side = np.int64(state[MOVER]), np.int64(params[PIECES]) + 1
    own = side - 1 - np.int64(state[np.uint64(HOME + mover)])
    enemy = side - 1 - np.int64(state[np.uint64(HOME + 1 - mover)])
    own_units, enemy_units = _units(state, mover), _units(state, 1 - mover)
    k, j = _count_ones(own_units), _count_ones(enemy_units)
    layer = own * side + enemy
    number = tables[np.uint64(tables[LAYERS] + layer)] + tables[np.uint64(tables[OWN_BEGINS] + layer * side + k)]
    places, sizes = _number_side(tables, state, own_units, 0)
    width = tables[np.uint64(tables[WIDTHS] + k * side + enemy)]
    number += (places * _over(tables, own, k) + sizes) * width
    number += tables[np.uint64(tables[BEGINS] + (k * side + enemy) * side + j)]
    places, sizes = _number_side(tables, state, enemy_units, own_units)
    return number + places * _over(tables, enemy, j) + sizes


@kernel(int64(_TABLES, int64, int64, int64))
def _last_not_above(tables, begin, size, number):  # type: ignore[no-untyped-def]
    """The last of ``size`` ascending entries from ``begin`` that is not above ``number``, counted from ``begin``."""
    last = size - 1
    while last > 0 and tables[begin + last] > number:
        last -= 1
    return last


@kernel(int64(_TABLES, int64, int64))
def _highest(tables, number, k):  # type: ignore[no-untyped-def]
    """The largest n with n over k not above ``number``: the highest element of the k-subset of that number."""
    n = k - 1
    while _over(tables, n + 1, k) <= number:
        n += 1
    return n


@kernel(int64(_TABLES, int64, int64))
def _nth_free(tables, taken, number):  # type: ignore[no-untyped-def]
    """The station at ``number`` among those not ``taken``."""
    station = tables[FIRST_STATION]
    while True:
        if not (taken >> station) & 1:
            if number == 0:
                return station
            number -= 1
        station += 1


@kernel(types.void(_TABLES, _STATE, int64, int64, int64, int64, int64))
def _put_side(tables, state, colour, pieces, count, number, taken):  # type: ignore[no-untyped-def]
    """Set up ``pieces`` of a colour on ``count`` stations that are not ``taken``, as ``number`` says; others wait."""
    sequences = _over(tables, pieces, count)
    places, sizes = number // sequences, number % sequences
    above, upper, units, waiting = np.int64(0), np.int64(0), np.int64(0), pieces
    for k in range(count, 0, -1):
        place, total = _highest(tables, places, k), _highest(tables, sizes, k)
        places -= _over(tables, place, k)
        sizes -= _over(tables, total, k)
        station = _nth_free(tables, taken, place)
        units |= np.int64(1) << station
        # The size of the unit above is known now: the step from this element of the sequence to that one.
        if k < count:
            state[STATIONS + above] = upper - total
        else:
            waiting = pieces - total - 1
        above, upper = station, total
    if count > 0:
        state[STATIONS + above] = upper + 1
    state[UNITS + 2 * colour] = units & LOW_MASK
    state[UNITS + 1 + 2 * colour] = units >> LOW_BITS
    state[WAITING + colour] = waiting


@kernel(int64(int32[::1], _TABLES, int64))
def _layer_of(params, tables, number):  # type: ignore[no-untyped-def]
    """``O * P + E`` of the layer that holds a number: the one with the highest start not above it."""
    best, side = np.int64(0), np.int64(params[PIECES]) + 1
    for own in range(1, side):
        for enemy in range(1, side):
            layer = own * side + enemy
            begin = tables[tables[LAYERS] + layer]
            if begin <= number and (best == 0 or begin > tables[tables[LAYERS] + best]):
                best = layer
    return best


@kernel(UNRANK)
def unrank(params, tables, number, out_state):  # type: ignore[no-untyped-def]
    """Write the position of a number, natural to throw; there are no holes."""
    side = np.int64(params[PIECES]) + 1
    layer = _layer_of(params, tables, number)
    own, enemy = layer // side, layer % side
    number -= tables[tables[LAYERS] + layer]
    k = _last_not_above(tables, tables[OWN_BEGINS] + layer * side, own + 1, number)
    number -= tables[tables[OWN_BEGINS] + layer * side + k]
    width = tables[tables[WIDTHS] + k * side + enemy]
    first, second = number // width, number % width
    begins = tables[BEGINS] + (k * side + enemy) * side
    j = _last_not_above(tables, begins, enemy + 1, second)
    out_state[:] = 0
    out_state[CHANCE] = THROW
    out_state[OTHER_SEAT] = 1
    out_state[HOME] = side - 1 - own
    out_state[HOME + 1] = side - 1 - enemy
    out_state[MARGIN] = enemy - own
    _put_side(tables, out_state, 0, own, k, first, 0)
    _put_side(tables, out_state, 1, enemy, j, second - tables[begins + j], _units(out_state, 0))
    return 1


def index(options: YutNoriOptions, part: str | None = None) -> PositionIndex:
    """The numbering of all positions.

    Raises:
        TableError: a part was asked for, or the options need more than where the pieces are.
    """
    if part is not None:
        raise TableError(f"yut_nori is solved whole; it has no part {part!r}")
    for name in ("backdo", "extra_on_yut_mo"):
        if getattr(options, name):
            raise TableError(f"yut_nori with {name} cannot be solved: only where pieces stand is numbered")
    first_station = 0 if options.finish == "pass" else 1
    pieces, stations = options.pieces, NUM_STATIONS - first_station
    begins, widths = _enemy_begins(pieces, stations)
    layers, firsts, own_begins = _layers(pieces, stations, widths)
    binomials = [math.comb(n, k) for n in range(NUM_STATIONS + 3) for k in range(BINOMIAL_WIDTH)]
    sections = [firsts.ravel(), own_begins.ravel(), widths.ravel(), begins.ravel(), np.array(binomials)]
    offsets = np.cumsum([_HEAD, *(len(section) for section in sections)])[:-1]
    tables: Tables = np.concatenate([offsets, [first_station], *sections]).astype(np.int64)
    ignores = ("first_player", "max_turns", "seats_per_side", "bonus_stacking")
    return PositionIndex("yut_nori", 1, tables, layers, rank, unrank, ignores=ignores)


def _enemy_begins(pieces: int, stations: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tables ``begins`` (k, E, j) and ``widths`` (k, E)."""
    begins = np.zeros((pieces + 1, pieces + 1, pieces + 1), np.int64)
    widths = np.zeros((pieces + 1, pieces + 1), np.int64)
    for k in range(pieces + 1):
        for enemy in range(pieces + 1):
            for j in range(enemy + 1):
                begins[k, enemy, j] = widths[k, enemy]
                widths[k, enemy] += math.comb(stations - k, j) * math.comb(enemy, j)
    return begins, widths


def _layers(
    pieces: int, stations: int, widths: NDArray[np.int64]
) -> tuple[tuple[Layer, ...], NDArray[np.int64], NDArray[np.int64]]:
    """Layers by rising number of pieces that are not home, each with its twin; tables ``layers`` and ``own_begins``."""
    firsts = np.zeros((pieces + 1, pieces + 1), np.int64)
    own_begins = np.zeros((pieces + 1, pieces + 1, pieces + 1), np.int64)
    layers, begin = [], 0
    pairs = [(high, low) for high in range(1, pieces + 1) for low in range(1, high + 1)]
    for high, low in sorted(pairs, key=lambda pair: (sum(pair), pair)):
        end = begin
        for own, enemy in sorted({(high, low), (low, high)}):
            firsts[own, enemy] = end
            for k in range(own + 1):
                own_begins[own, enemy, k] = end - firsts[own, enemy]
                end += math.comb(stations, k) * math.comb(own, k) * int(widths[k, enemy])
        layers.append(Layer(f"{high} and {low} pieces", begin, end))
        begin = end
    return tuple(layers), firsts, own_begins
