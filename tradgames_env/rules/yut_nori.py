"""Yut Nori: the Korean race of four sticks around a square with two short cuts.

Sources: the box rulebook (S1); N12 to N14 are traditional rules of public sources. Ids as in RULES.md:

N1   ``pieces`` a side wait off the board.
N2   Four sticks, 1 to 4 faces up = do, gae, geol, yut = 1 to 4, none = mo = 5; each is face up with ``stick_p``.
N3   With ``nak_prob`` a stick falls off: the turn ends. (D) Values still in hand (N12) are forfeited.
N4   A throw enters a waiting piece or advances a unit; a move is compulsory and always exists (but see N13).
N5   A unit that starts on 5, 10 or 22 chooses its way; in passing it goes straight on.
N6   Landing on own pieces stacks them for good.
N7   Landing on enemies sends them back to waiting; the player throws again.
N8   Reaching or passing Start finishes the unit (but see N14).
N9   Wins who first has all pieces home.
N10  ``first_player``. (D) A throw-off with ties thrown again is a fair coin, a chance node of its own; (D) ``black``
     is there too.
N11  ``seats_per_side=2``: seats 0 and 2 are natural's, 1 and 3 black's; (D) sides alternate, the partners of a side
     take its turns alternately, and each side begins with its first partner, whoever starts.
N12  ``extra_on_yut_mo``: yut and mo give another throw before moving; values in hand are played in any order. A
     capture adds a throw, (D) thrown at once, so that it joins the hand before the next value is played.
     ``bonus_stacking=False``: a capture made by a yut or mo adds none; (D) without ``extra_on_yut_mo`` there is
     nothing to stack on, and the option does nothing. (D) A hand of ``HAND_LIMIT`` throws of one value gives no
     further throw, so that turns end.
N13  ``backdo``: a lone marked face up moves a unit one step back along the way it came. (D) Where two arrows meet, a
     unit remembers its way (the table below); a stack takes the way of the unit that arrived. From station 1 a unit
     steps back to Start: that finishes it, or with N14 it rests there and cannot be moved by backdo. A unit on a
     corner after stepping back starts there as any other. (D) ``pass`` exists exactly when no value in hand can be
     played, and ends the turn.
N14  ``finish="pass"``: a unit must go beyond Start; exactly on it, it rests there and can be captured.
N15  No draw; (D) ``max_turns`` counts completed turns of both sides, judged after N9.

Board; the stations are the sites, in the same frame for both sides::

    10---9---8---7---6---5     0 Start = home          20 21 / 25 26 the diagonals in
    |  25          20    |     5, 10, 15 corners       22 the centre
    11                   4                             23 24 / 27 28 the diagonals out
    |    26      21      |
    12                   3     arrows: i -> i+1 for 0..18, 19 -> 0;
    |        22          |     5 -> 20 -> 21 -> 22;  10 -> 25 -> 26 -> 22;
    13                   2     22 -> 23 -> 24 -> 15; 22 -> 27 -> 28 -> 0
    |    23      27      |
    14                   1
    |  24          28    |
    15--16--17--18--19---0

Ways, remembered only with ``backdo``; 0 is not written:

====  ==========  =============================  =================================  ==========================
way   mark        on 22, 23, 24, 27, 28          on 15 to 19                        on 0
====  ==========  =============================  =================================  ==========================
0                 came over 5, 20, 21            came along the rim                 over 19, along the rim
1     ``<5``                                     came over 5 and 24                 over 19, by way 1
2     ``<10``     came over 10, 25, 26           came over 10 and 24                over 19, by way 2
3     ``<28``                                                                       over 28, by way 0
4     ``<28.10``                                                                    over 28, by way 2
5     ``<1``                                                                        stepped back from 1
====  ==========  =============================  =================================  ==========================

Actions: code 0 enters, codes 1 to 28 move the unit on that station (from 5, 10 and 22 along the rim), 29, 30, 31 take
the short way from 5, from 10, and home from 22; code 32, with N14 only, moves the unit on Start. With N12 the id is
``value index * codes + code``, values in the order do, gae, geol, yut, mo, backdo. With N13 the last id is ``pass``.

State cells after the header:

=====  ============================================================================================================
8      bits of natural's stations 0 to 14
9      bits of natural's stations 15 to 28, from bit 0
10-11  black's
12-13  waiting pieces, natural's and black's
14-15  pieces home
16     values in hand, bit i for value index i
17     the seat that takes the other side's next turn
18-46  stations 0 to 28: pieces of the unit there + 16 * its way; whose it is say the bits
47-52  with N12 only: how many of each value are in hand
=====  ============================================================================================================
"""

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import int16, int32, int64, types

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    BLACK_WINS,
    CHANCE,
    HEADER_SIZE,
    HEURISTIC,
    INITIAL,
    LEGAL,
    MARGIN,
    MOVER,
    MY_TURN,
    NATURAL,
    NATURAL_WINS,
    OUTCOME,
    OWN,
    OWN_CAPTURES,
    OWN_COUNT,
    OWN_MARK,
    OWN_RESERVE,
    PARTNER,
    PAYOFF,
    REASON,
    RUNNING,
    SAMPLE,
    SEAT,
    THROW_1,
    TRUNCATED,
    TURN_COUNT,
    TURNS,
    VIEW,
    BoardLayout,
    ChanceKind,
    GameRules,
    History,
    Kernels,
    Options,
    Params,
    State,
    check_choice,
    check_range,
)
from tradgames_env.rules.errors import IllegalMoveError, NotationError, OptionError


@dataclasses.dataclass(frozen=True)
class YutNoriOptions(Options):
    """Options of Yut Nori."""

    pieces: int = 4
    """Pieces a side, 1 to 8 (N1)."""
    stick_p: float = 0.5
    """Probability that a stick falls face up, strictly between 0 and 1 (N2)."""
    nak_prob: float = 0.0
    """Probability that a throw is void because a stick fell off, 0 to 0.99 (N3)."""
    first_player: str = "throw_off"
    """Who starts: "throw_off" or "random" (a fair coin both), "natural", "black" (N10)."""
    seats_per_side: int = 1
    """2 for partners who take their side's turns alternately (N11)."""
    extra_on_yut_mo: bool = False
    """Whether yut and mo give another throw before moving (N12)."""
    bonus_stacking: bool = True
    """Whether a capture made by a yut or mo adds a throw too; says nothing without ``extra_on_yut_mo`` (N12)."""
    backdo: bool = False
    """Whether a stick is marked, whose lone face up moves one step back (N13)."""
    finish: str = "reach"
    """Whether a unit is home when it reaches Start ("reach", N8) or must go beyond it ("pass", N14)."""
    max_turns: int = 1000
    """Completed turns of both sides after which the game is truncated, 0 for never (N15)."""

    def __post_init__(self) -> None:
        """Validate.

        Raises:
            OptionError: naming the option.
        """
        check_range(self, "pieces", 1, 8)
        check_range(self, "stick_p", 0.0, 1.0)
        if not 0.0 < self.stick_p < 1.0:
            raise OptionError(f"option 'stick_p' must lie strictly between 0 and 1, not {self.stick_p!r}")
        check_range(self, "nak_prob", 0.0, 0.99)
        check_choice(self, "first_player", ("throw_off", "natural", "black", "random"))
        check_choice(self, "seats_per_side", (1, 2))
        for name in ("extra_on_yut_mo", "bonus_stacking", "backdo"):
            check_choice(self, name, (False, True))
        check_choice(self, "finish", ("reach", "pass"))
        check_range(self, "max_turns", 0, 30_000)


# -- stations and ways ---------------------------------------------------------------------------------------------
NUM_STATIONS = 29
START = 0
AT_HOME = NUM_STATIONS
"""Where a unit that is done goes, in the table of targets."""

WAY_RIM, WAY_5, WAY_10, WAY_28, WAY_28_10, WAY_1 = range(6)
NUM_WAYS = 6
MARKS = ("", "<5", "<10", "<28", "<28.10", "<1")

# -- values of a throw -----------------------------------------------------------------------------------------------
DO, GAE, GEOL, YUT, MO, BACKDO, NAK = range(7)
"""Value indices; a forward value is its index + 1 steps. NAK is never in hand."""
NUM_VALUES = 6
VALUE_NAMES = ("do", "gae", "geol", "yut", "mo", "backdo")
SHOWN = (1, 2, 3, 4, 5, -1, 0)
HAND_LIMIT = 10_000
"""Most throws of one value in hand; a cell counts them, and a stick that nearly always shows its face must end too."""

# -- action codes --------------------------------------------------------------------------------------------------
ENTER, SHORT_5, SHORT_10, HOME_22, LEAVE_START = 0, 29, 30, 31, 32
NUM_CODES = 33
FORKS = {5: SHORT_5, 10: SHORT_10, 22: HOME_22}
"""Stations where a unit chooses, and the code of its second way (N5)."""
ORIGINS = (START, *range(1, NUM_STATIONS), *FORKS, START)
FORK_WORDS = {5: "rim", SHORT_5: "short", 10: "rim", SHORT_10: "short", 22: "rim", HOME_22: "home"}

# -- state cells ---------------------------------------------------------------------------------------------------
UNITS = HEADER_SIZE
WAITING = UNITS + 4
HOME = WAITING + 2
HELD = HOME + 2
OTHER_SEAT = HELD + 1
STATIONS = OTHER_SEAT + 1
HAND = STATIONS + NUM_STATIONS
LOW_BITS = 15
LOW_MASK = (1 << LOW_BITS) - 1
COUNT_MASK = 15
WAY_SHIFT = 4
FORK_BITS = (1 << 5) | (1 << 10) | (1 << 22)

# -- params --------------------------------------------------------------------------------------------------------
PIECES, MAX_TURNS, CODES, PASS, EXTRA, AGAIN_VALUES, BONUS_VALUES, FIRST, PARTNER_STEP, SHOWS_WAYS, RESTS = range(11)
"""CODES: codes a value; PASS: id or -1; AGAIN_VALUES and BONUS_VALUES: bits of the values that give another throw, and
whose capture adds one; FIRST: colour or BY_THROW; PARTNER_STEP: what a seat is xored with to name the partner."""
OUTCOMES = 16
BIT_INDEX = OUTCOMES + 8
UNIT_CODE = BIT_INDEX + 32
FORK_CODE = UNIT_CODE + 32
ORIGIN = FORK_CODE + 32
EFFORT = ORIGIN + NUM_CODES
TARGET = EFFORT + NUM_STATIONS + 1
NUM_PARAMS = TARGET + NUM_WAYS * NUM_CODES * NUM_VALUES
TARGET_WAY_SHIFT = 5
BY_THROW = 2

FIRST_PLAYER, THROW = 1, 2
"""Kinds of chance."""
REASON_HOME, REASON_MAX_TURNS = 1, 2
TURNS_LIMIT = 32_767

DE_BRUIJN = 0x077CB531
WORD = 0xFFFFFFFF
DE_BRUIJN_SHIFT = 27
_32 = np.uint64(32)


# -- tables --------------------------------------------------------------------------------------------------------
def _num_codes(options: YutNoriOptions) -> int:
    return NUM_CODES if options.finish == "pass" else NUM_CODES - 1


def _num_values(options: YutNoriOptions) -> int:
    return NUM_VALUES if options.backdo else NUM_VALUES - 1


def _pass_action(options: YutNoriOptions) -> int:
    """Id of ``pass``, or -1: without backdo a move always exists (N4)."""
    values = _num_values(options) if options.extra_on_yut_mo else 1
    return values * _num_codes(options) if options.backdo else -1


def _num_actions(options: YutNoriOptions) -> int:
    values = _num_values(options) if options.extra_on_yut_mo else 1
    return values * _num_codes(options) + int(options.backdo)


def _ways_of(options: YutNoriOptions, station: int) -> tuple[int, ...]:
    """The ways a unit on a station may have come; empty for a station where no unit can stand."""
    if station == START and options.finish == "reach":
        return ()
    if not options.backdo:
        return (WAY_RIM,)
    if station == START:
        return (WAY_RIM, WAY_5, WAY_10, WAY_28, WAY_28_10, WAY_1)
    if station in (22, 23, 24, 27, 28):
        return (WAY_RIM, WAY_10)
    return (WAY_RIM, WAY_5, WAY_10) if 15 <= station <= 19 else (WAY_RIM,)


def _next_station(station: int, before: int | None, short: bool) -> int:
    """Follow the arrow out of a station; ``before`` is the station passed last, None where the move starts (N5)."""
    if station == 22:
        return 27 if short or before == 26 else 23
    if short and station in FORKS:
        return {5: 20, 10: 25}[station]
    return {19: START, 21: 22, 26: 22, 24: 15, 28: START}.get(station, station + 1)


def _next_way(way: int, station: int, into: int) -> int:
    """The way of a unit that came ``way`` to ``station`` and steps ``into`` the next one (table of ways)."""
    if into == 22:
        return WAY_10 if station == 26 else WAY_RIM
    if (station, into) == (24, 15):
        return WAY_10 if way == WAY_10 else WAY_5
    if (station, into) == (28, START):
        return WAY_28_10 if way == WAY_10 else WAY_28
    keeps = station in (22, 23, 27) or 15 <= station <= 19
    return way if keeps else WAY_RIM


def _forward(options: YutNoriOptions, code: int, way: int, steps: int) -> tuple[int, int]:
    """Where a move of ``steps`` ends and by which way (N5, N8, N14)."""
    if code == LEAVE_START:
        return AT_HOME, WAY_RIM
    station, before, short = ORIGINS[code], None, code in FORKS.values()
    for step in range(1, steps + 1):
        into = _next_station(station, before, short and step == 1)
        way = _next_way(way, station, into)
        before, station = station, into
        if station == START:
            rests = options.finish == "pass" and step == steps
            return (START, way) if rests else (AT_HOME, WAY_RIM)
    return station, way


def _backward(options: YutNoriOptions, station: int, way: int) -> tuple[int, int] | None:
    """Where one step back ends and by which way; None for a unit that cannot step back (N13)."""
    if station == START:
        over_19 = (19, way)
        return {WAY_28: (28, WAY_RIM), WAY_28_10: (28, WAY_10), WAY_1: None}.get(way, over_19)
    if station == 1:
        return (START, WAY_1) if options.finish == "pass" else (AT_HOME, WAY_RIM)
    if station == 22:
        return (26 if way == WAY_10 else 21), WAY_RIM
    if station == 15 and way != WAY_RIM:
        return 24, (WAY_10 if way == WAY_10 else WAY_RIM)
    return {20: 5, 25: 10, 27: 22}.get(station, station - 1), way


@functools.lru_cache(maxsize=64)
def _targets(options: YutNoriOptions) -> dict[tuple[int, int, int], tuple[int, int]]:
    """(way, code, value index) -> (station or AT_HOME, way there), for every move that can arise."""
    targets = {}
    for code in range(_num_codes(options)):
        ways = (WAY_RIM,) if code == ENTER else _ways_of(options, ORIGINS[code])
        for way in ways:
            for value in range(BACKDO):
                station, new_way = _forward(options, code, way, value + 1)
                targets[way, code, value] = station, (new_way if options.backdo else WAY_RIM)
            back = _backward(options, ORIGINS[code], way) if options.backdo else None
            if back is not None and code != ENTER and code not in FORKS.values():
                targets[way, code, BACKDO] = back
    return targets


def _odds(options: YutNoriOptions) -> tuple[float, ...]:
    """Probability of each value index, NAK included (N2, N3, N13)."""
    p, q, valid = options.stick_p, 1.0 - options.stick_p, 1.0 - options.nak_prob
    lone = p * q**3
    faces = (3 * lone if options.backdo else 4 * lone, 6 * p**2 * q**2, 4 * p**3 * q, p**4, q**4)
    back = lone if options.backdo else 0.0
    return (*(valid * chance for chance in (*faces, back)), options.nak_prob)


def _outcomes(options: YutNoriOptions) -> list[int]:
    """Value index of each outcome of a throw."""
    return [*range(BACKDO), *([BACKDO] if options.backdo else []), *([NAK] if options.nak_prob > 0 else [])]


def _efforts(options: YutNoriOptions) -> list[int]:
    """Hundredths of throws that a lone unit on each station still needs on average; last that of a waiting piece.

    Solved from the finish backwards; backdo counts as do and nak as never, which a heuristic may.
    """
    faces = np.array(_odds(options)[:BACKDO]) / sum(_odds(options)[:BACKDO])
    need = {AT_HOME: 0.0, START: 1.0}
    # Every arrow leads to a station earlier in this order.
    order = (28, 27, 19, 18, 17, 16, 15, 24, 23, 22, 26, 25, 21, 20, *range(14, 0, -1), START)
    for station in order:
        ends = []
        for code in (station, *([FORKS[station]] if station in FORKS else [])):
            landings = [need[_forward(options, code, WAY_RIM, value + 1)[0]] for value in range(BACKDO)]
            ends.append(1.0 + float(np.dot(faces, landings)))
        if station != START:
            need[station] = min(ends)
    waiting = ends[0]
    return [round(100 * need[station]) for station in range(NUM_STATIONS)] + [round(100 * waiting)]


def _params(options: YutNoriOptions) -> Params:
    """The params array: options by slot, then the tables."""
    table = np.zeros(NUM_PARAMS, np.int32)
    extra, all_values = options.extra_on_yut_mo, (1 << NUM_VALUES) - 1
    yut_mo = (1 << YUT) | (1 << MO)
    table[PIECES], table[MAX_TURNS], table[CODES] = options.pieces, options.max_turns, _num_codes(options)
    table[PASS], table[EXTRA], table[AGAIN_VALUES] = _pass_action(options), extra, yut_mo if extra else 0
    table[BONUS_VALUES] = all_values & ~yut_mo if extra and not options.bonus_stacking else all_values
    table[FIRST] = {"natural": 0, "black": 1}.get(options.first_player, BY_THROW)
    table[PARTNER_STEP] = 2 if options.seats_per_side == 2 else 0
    table[SHOWS_WAYS], table[RESTS] = options.backdo, options.finish == "pass"
    outcomes = _outcomes(options)
    table[OUTCOMES : OUTCOMES + len(outcomes)] = outcomes
    for bit in range(32):
        place = (((1 << bit) * DE_BRUIJN) & WORD) >> DE_BRUIJN_SHIFT
        table[BIT_INDEX + place] = bit
        table[UNIT_CODE + place] = bit if bit != START else LEAVE_START
        table[FORK_CODE + place] = FORKS.get(bit, 0)
    table[ORIGIN : ORIGIN + NUM_CODES] = ORIGINS
    table[EFFORT : EFFORT + NUM_STATIONS + 1] = _efforts(options)
    for (way, code, value), (station, new_way) in _targets(options).items():
        table[TARGET + (way * NUM_CODES + code) * NUM_VALUES + value] = station | (new_way << TARGET_WAY_SHIFT)
    return table


# -- kernels -------------------------------------------------------------------------------------------------------
_PARAMS, _STATE = int32[::1], int16[::1]
_THREE_NUMBERS = types.UniTuple(int64, 3)  # type: ignore[no-untyped-call]


@kernel(int64(int64))
def _lowest(bits: int) -> int:
    """Index of the lowest of 32 bits, scrambled: the place of its entry in BIT_INDEX, UNIT_CODE and FORK_CODE."""
    return (((bits & -bits) * DE_BRUIJN) & WORD) >> DE_BRUIJN_SHIFT


@kernel(int64(_STATE, int64))
def _units(state: State, colour: int) -> int:
    """Bits of the stations where a colour has a unit."""
    return int(state[np.uint64(UNITS + 2 * colour)]) | (int(state[np.uint64(UNITS + 1 + 2 * colour)]) << LOW_BITS)


@kernel(types.void(_STATE, int64, int64))
def _set_units(state: State, colour: int, units: int) -> None:
    state[np.uint64(UNITS + 2 * colour)] = units & LOW_MASK
    state[np.uint64(UNITS + 1 + 2 * colour)] = units >> LOW_BITS


@kernel(types.void(_PARAMS, _STATE))
def _pass_on(params: Params, state: State) -> None:
    """The turn goes to the other side, whose partners alternate (N11); no value stays in hand."""
    seat = int(state[OTHER_SEAT])
    state[OTHER_SEAT] = int(state[SEAT]) ^ int(params[PARTNER_STEP])
    state[SEAT] = seat
    state[MOVER] = seat & 1
    state[TURNS] = min(int(state[TURNS]) + 1, TURNS_LIMIT)
    state[HELD] = 0
    if params[EXTRA]:
        for value in range(NUM_VALUES):
            state[np.uint64(HAND + value)] = 0


@kernel(types.void(_PARAMS, _STATE))
def _end_turn(params: Params, state: State) -> None:
    """The next turn begins with a throw, unless there have been enough (N15)."""
    _pass_on(params, state)
    state[CHANCE] = THROW
    if params[MAX_TURNS] > 0 and state[TURNS] >= params[MAX_TURNS]:
        state[CHANCE] = 0
        state[OUTCOME] = TRUNCATED
        state[REASON] = REASON_MAX_TURNS


@kernel(int64(_PARAMS, _STATE, int64, int64))
def _move(params: Params, state: State, code: int, value: int) -> int:
    """Move the mover's unit (or a waiting piece) by a value; return how many enemies it captured (N4 to N8)."""
    mover = int(state[MOVER])
    own = _units(state, mover)
    count, way = 1, WAY_RIM
    if code == ENTER:
        state[np.uint64(WAITING + mover)] -= 1
    else:
        origin = int(params[np.uint64(ORIGIN + code)])
        unit = int(state[np.uint64(STATIONS + origin)])
        count, way = unit & COUNT_MASK, unit >> WAY_SHIFT
        state[np.uint64(STATIONS + origin)] = 0
        own &= ~(1 << origin)
    target = int(params[np.uint64(TARGET + (way * NUM_CODES + code) * NUM_VALUES + value)])
    station = target & ((1 << TARGET_WAY_SHIFT) - 1)
    if station == AT_HOME:
        _set_units(state, mover, own)
        state[np.uint64(HOME + mover)] += count
        state[MARGIN] = state[HOME] - state[HOME + 1]
        return 0
    bit = 1 << station
    standing = int(state[np.uint64(STATIONS + station)]) & COUNT_MASK
    captured = 0
    if standing > 0 and own & bit == 0:
        captured = standing
        standing = 0
        state[np.uint64(WAITING + 1 - mover)] += captured
        _set_units(state, 1 - mover, _units(state, 1 - mover) & ~bit)
    state[np.uint64(STATIONS + station)] = (count + standing) | ((target >> TARGET_WAY_SHIFT) << WAY_SHIFT)
    _set_units(state, mover, own | bit)
    return captured


@kernel(INITIAL)
def initial(params: Params, state: State, history: History) -> None:
    """Write the start position (N1, N10)."""
    state[:] = 0
    state[WAITING] = params[PIECES]
    state[WAITING + 1] = params[PIECES]
    first = int(params[FIRST])
    state[CHANCE] = FIRST_PLAYER if first == BY_THROW else THROW
    first = first & 1
    state[MOVER] = first
    state[SEAT] = first
    state[OTHER_SEAT] = 1 - first


@kernel(INITIAL)
def start_history(params: Params, state: State, history: History) -> None:
    """There is no repetition rule, hence no history."""


@kernel(_THREE_NUMBERS(_PARAMS, _STATE, int64))
def _choices(params: Params, state: State, value: int) -> tuple[int, int, int]:
    """What can be played with a value: 1 if a piece may enter, stations to leave by their second way, by their first.

    N4, N5, N13.
    """
    mover = int(state[MOVER])
    units = _units(state, mover)
    if value != BACKDO:
        return int(state[np.uint64(WAITING + mover)] > 0), units & FORK_BITS, units
    if units & 1 and state[STATIONS + START] >> WAY_SHIFT == WAY_1:
        units -= 1
    return 0, 0, units


@kernel(LEGAL)
def legal(params: Params, state: State, history: History, out_actions: Params) -> int:
    """List the moves of every value in hand, or ``pass`` when there is none (N4, N5, N12, N13)."""
    held = int(state[HELD])
    count = 0
    while held != 0:
        value = int(params[np.uint64(BIT_INDEX + _lowest(held))])
        held &= held - 1
        shift = value * int(params[CODES]) if params[EXTRA] else 0
        enters, forks, left = _choices(params, state, value)
        if enters:
            out_actions[count] = shift + ENTER
            count += 1
        while forks != 0:
            out_actions[count] = shift + params[np.uint64(FORK_CODE + _lowest(forks))]
            forks &= forks - 1
            count += 1
        while left != 0:
            out_actions[count] = shift + params[np.uint64(UNIT_CODE + _lowest(left))]
            left &= left - 1
            count += 1
    if count == 0:
        out_actions[0] = params[PASS]
        count = 1
    return count


@kernel(int64(int64))
def _count_ones(bits: int) -> int:
    """Number of ones among 32 bits."""
    bits = bits - ((bits >> 1) & 0x55555555)
    bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
    return ((((bits + (bits >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24) & 0xFF


@kernel(int64(int64, int64))
def _drop_lowest(bits: int, number: int) -> int:
    """``bits`` without the ``number`` lowest ones."""
    for _ in range(number):
        bits &= bits - 1
    return bits


@kernel(SAMPLE)
def sample(params: Params, state: State, history: History, word):  # type: ignore[no-untyped-def]
    """One of the legal actions, in the order of ``legal``, by the upper half of ``word``."""
    total, left = 0, int(state[HELD])
    while left != 0:
        value = int(params[np.uint64(BIT_INDEX + _lowest(left))])
        left &= left - 1
        enters, forks, units = _choices(params, state, value)
        total += enters + _count_ones(forks) + _count_ones(units)
    index: Any = np.int64((word >> _32) * np.uint64(total) >> _32)
    left = int(state[HELD])
    while left != 0:
        value = int(params[np.uint64(BIT_INDEX + _lowest(left))])
        left &= left - 1
        shift = value * int(params[CODES]) if params[EXTRA] else 0
        enters, forks, units = _choices(params, state, value)
        second = enters + _count_ones(forks)
        count = second + _count_ones(units)
        if index >= count:
            index -= count
        elif index >= second:
            return shift + params[np.uint64(UNIT_CODE + _lowest(_drop_lowest(units, index - second)))]
        elif index >= enters:
            return shift + params[np.uint64(FORK_CODE + _lowest(_drop_lowest(forks, index - enters)))]
        else:
            return shift + ENTER
    return np.int64(params[PASS])


@kernel(APPLY)
def apply(params: Params, state: State, history: History, action: int) -> None:
    """Play a move or ``pass``; what follows is a throw, another value in hand, the other side's turn or the end."""
    if action == params[PASS]:
        _end_turn(params, state)
        return
    if params[EXTRA]:
        value = action // int(params[CODES])
        code = action - value * int(params[CODES])
        state[np.uint64(HAND + value)] -= 1
        if state[np.uint64(HAND + value)] == 0:
            state[HELD] = int(state[HELD]) & ~(1 << value)
    else:
        value = int(params[np.uint64(BIT_INDEX + _lowest(int(state[HELD])))])
        code = action
        state[HELD] = 0
    captured = _move(params, state, code, value)
    mover = int(state[MOVER])
    if state[np.uint64(HOME + mover)] == params[PIECES]:
        _pass_on(params, state)
        state[OUTCOME] = BLACK_WINS if mover else NATURAL_WINS
        state[REASON] = REASON_HOME
        state[PAYOFF] = -1 if mover else 1
    elif captured > 0 and (params[BONUS_VALUES] >> value) & 1:
        state[CHANCE] = THROW
    elif state[HELD] == 0:
        _end_turn(params, state)


@kernel(APPLY_CHANCE)
def apply_chance(params: Params, state: State, history: History, index: int) -> None:
    """Say who starts (N10), or take a throw into the hand: yut and mo may ask for another, nak ends the turn."""
    if state[CHANCE] == FIRST_PLAYER:
        state[MOVER] = index
        state[SEAT] = index
        state[OTHER_SEAT] = 1 - index
        state[CHANCE] = THROW
        return
    value = int(params[np.uint64(OUTCOMES + index)])
    if value == NAK:
        _end_turn(params, state)
        return
    state[HELD] = int(state[HELD]) | (1 << value)
    state[CHANCE] = 0
    if params[EXTRA] and state[np.uint64(HAND + value)] < HAND_LIMIT:
        state[np.uint64(HAND + value)] += 1
        if (params[AGAIN_VALUES] >> value) & 1 and state[np.uint64(HAND + value)] < HAND_LIMIT:
            state[CHANCE] = THROW


@kernel(VIEW)
def view(  # type: ignore[no-untyped-def]
    params: Params, state: State, history: History, seat: int, out_sites, out_scalars: State
) -> None:
    """Units, ways, waiting and home pieces and the hand as ``seat`` sees them; stations are the same for both sides."""
    for side in range(2):
        colour = (seat + side) & 1
        left = _units(state, colour)
        while left != 0:
            station = int(params[np.uint64(BIT_INDEX + _lowest(left))])
            left &= left - 1
            unit = int(state[np.uint64(STATIONS + station)])
            # The enemy's features follow the own ones.
            out_sites[OWN + side, station] = 1
            out_sites[OWN_COUNT + side, station] = unit & COUNT_MASK
            out_sites[OWN_MARK + side, station] = unit >> WAY_SHIFT
        out_scalars[OWN_RESERVE + side] = state[np.uint64(WAITING + colour)]
        out_scalars[OWN_CAPTURES + side] = state[np.uint64(HOME + colour)]
    for value in range(NUM_VALUES):
        # THROW_1 to THROW_5 and THROW_BACK follow each other, as the value indices do.
        if (state[HELD] >> value) & 1:
            out_scalars[THROW_1 + value] = state[np.uint64(HAND + value)] if params[EXTRA] else 1
    out_scalars[MY_TURN] = 1 if state[OUTCOME] == RUNNING and state[SEAT] == seat else 0
    out_scalars[NATURAL] = 1 - (seat & 1)
    out_scalars[TURN_COUNT] = state[TURNS] if params[MAX_TURNS] > 0 else 0
    out_scalars[PARTNER] = seat >> 1


@kernel(HEURISTIC)
def heuristic(params: Params, state: State, history: History) -> float:
    """How many throws fewer than black natural still needs to bring its units home one by one, as a share of all."""
    each = int(params[EFFORT + NUM_STATIONS])
    ahead = (int(state[WAITING + 1]) - int(state[WAITING])) * each
    for colour in range(2):
        left = _units(state, colour)
        while left != 0:
            effort = int(params[EFFORT + int(params[BIT_INDEX + _lowest(left)])])
            ahead += effort if colour else -effort
            left &= left - 1
    return ahead / (each * int(params[PIECES]) + 1.0)


# -- text ----------------------------------------------------------------------------------------------------------
_SIDES = "ox"
_NAMES = ("natural", "black")
_ITEM = re.compile(r"(?:(0|[1-9][0-9]?)(<[0-9.]+)?|([wh])):([1-9][0-9]?)")
_MOVE = re.compile(
    r"(?:(do|gae|geol|yut|mo|backdo)\s*:\s*)?(enter|[0-9]{1,2})\s*(rim|short|home)?"
    r"\s*(?:->|→|-)\s*(home|[0-9]{1,2})\s*(?:[x×]\s*([1-9]))?"
)


def _hand(options: YutNoriOptions, state: State) -> list[int]:
    """Value indices in hand, each as often as it is there, in the order of the values."""
    bits = int(state[HELD])
    held = [value for value in range(NUM_VALUES) if bits >> value & 1]
    if not options.extra_on_yut_mo:
        return held
    return [value for value in held for _ in range(int(state[HAND + value]))]


def _written(options: YutNoriOptions, state: State) -> list[int]:
    """The hand as it is written: forward values descending, backdo last."""
    return sorted(_hand(options, state), key=lambda value: -SHOWN[value])


def _owner(state: State, station: int) -> int | None:
    for colour in range(2):
        if _units(state, colour) >> station & 1:
            return colour
    return None


def _unit(state: State, station: int) -> tuple[int, int]:
    """Pieces and way of the unit on a station, (0, 0) where there is none."""
    cell = int(state[STATIONS + station])
    return cell & COUNT_MASK, cell >> WAY_SHIFT


def _format_hand(options: YutNoriOptions, state: State) -> str:
    values = ["b" if value == BACKDO else str(SHOWN[value]) for value in _written(options, state)]
    if values and state[CHANCE] == THROW:
        values.append("?")
    return "+".join(values) or "-"


def _format_side(state: State, colour: int) -> str:
    items = []
    for station in range(NUM_STATIONS):
        if _units(state, colour) >> station & 1:
            count, way = _unit(state, station)
            items.append(f"{station}{MARKS[way]}:{count}")
    for letter, cell in (("w", WAITING + colour), ("h", HOME + colour)):
        if state[cell] > 0:
            items.append(f"{letter}:{state[cell]}")
    return ",".join(items)


def format_position(options: YutNoriOptions, state: State) -> str:
    """Both sides' pieces, side to move (``?`` while nobody knows who starts), hand (``+?``: a throw joins it)."""
    side = "?" if state[CHANCE] == FIRST_PLAYER else _SIDES[state[MOVER]]
    return f"{_format_side(state, 0)} {_format_side(state, 1)} {side} {_format_hand(options, state)}"


def _read_side(options: YutNoriOptions, state: State, colour: int, text: str) -> None:
    """Put one side's pieces where its field says.

    Raises:
        NotationError: unreadable, or pieces where they cannot be.
    """
    name, total, last = _NAMES[colour], 0, -1
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise NotationError(
                f"cannot read {item[:60]!r} of {name}'s pieces {text[:60]!r}; it must be like 7:1, w:3 or h:2"
            )
        number, mark, letter, count = match[1], match[2] or "", match[3], int(match[4])
        place = NUM_STATIONS + "wh".index(letter) if letter else int(number)
        if place <= last:
            raise NotationError(f"{name}'s pieces {text[:60]!r} must name each station once, ascending, then w, then h")
        last = place
        total += count
        if total > options.pieces:
            raise NotationError(f"{name} has more pieces in {text[:60]!r} than {options.pieces}")
        if letter:
            state[(WAITING if letter == "w" else HOME) + colour] = count
        else:
            _put_unit(options, state, colour, place, mark, count)
    if total != options.pieces:
        raise NotationError(f"{name} has {total} pieces in {text[:60]!r}, not {options.pieces}")


def _known_stations(options: YutNoriOptions) -> str:
    """Where units can stand, for messages."""
    return f"stations go from {START if options.finish == 'pass' else 1} to {NUM_STATIONS - 1}"


def _put_unit(options: YutNoriOptions, state: State, colour: int, station: int, mark: str, count: int) -> None:
    if station >= NUM_STATIONS or not _ways_of(options, station):
        raise NotationError(f"no unit can stand on station {station}; {_known_stations(options)}")
    allowed = [MARKS[way] for way in _ways_of(options, station)]
    if mark not in allowed:
        known = ", ".join(allowed[1:]) or "none"
        raise NotationError(f"a unit on {station} cannot have the mark {mark[:60]!r}; marks known there: {known}")
    if _owner(state, station) is not None:
        raise NotationError(f"both sides stand on station {station}")
    state[STATIONS + station] = count | (MARKS.index(mark) << WAY_SHIFT)
    _set_units(state, colour, _units(state, colour) | (1 << station))


def _read_hand(options: YutNoriOptions, state: State, text: str) -> None:
    """Take the values of the last field into the hand, and say whether a throw is due.

    Raises:
        NotationError: unreadable, or values that these options do not give.
    """
    state[CHANCE] = THROW if text == "-" or text.endswith("+?") else 0
    words = [] if text == "-" else text.removesuffix("+?").split("+")
    known = "54321b" if options.backdo else "54321"
    for word in words:
        if len(word) != 1 or word not in known:
            listed = ", ".join(known)
            raise NotationError(f"throw {text[:60]!r} must be made of the values {listed}, or '-' for none")
    if (len(words) > 1 or text.endswith("?")) and not options.extra_on_yut_mo:
        raise NotationError(f"throw {text[:60]!r}: several values in hand need the option 'extra_on_yut_mo'")
    if words != sorted(words, key=known.index):
        raise NotationError(f"throw {text[:60]!r} must name the highest value first")
    for word in words:
        value = BACKDO if word == "b" else int(word) - 1
        state[HELD] |= 1 << value
        if options.extra_on_yut_mo:
            state[HAND + value] += 1
            if state[HAND + value] > HAND_LIMIT:
                raise NotationError(f"there are more than {HAND_LIMIT} throws of one value in hand")


def _judge(options: YutNoriOptions, state: State) -> None:
    """End a loaded game whose winner is on the board (N9)."""
    won = [colour for colour in range(2) if state[HOME + colour] == options.pieces]
    if len(won) == 2:
        raise NotationError("both sides have all their pieces home")
    if not won:
        return
    if state[HELD] != 0:
        raise NotationError(f"{_NAMES[won[0]]} has won, so no throw can be in hand")
    state[CHANCE] = 0
    state[OUTCOME], state[PAYOFF] = ((NATURAL_WINS, 1), (BLACK_WINS, -1))[won[0]]
    state[REASON] = REASON_HOME


def parse_position(options: YutNoriOptions, text: str) -> State:
    """Read a position text; turns played start at 0, partners with the first of each side.

    Raises:
        NotationError: unreadable or impossible.
    """
    fields = text.split()
    if len(fields) != 4:
        raise NotationError(f"{text[:60]!r} must have 4 fields: natural's pieces, black's, side to move, throw")
    state = np.zeros(_state_size(options), np.int16)
    for colour in range(2):
        _read_side(options, state, colour, fields[colour])
    state[MARGIN] = state[HOME] - state[HOME + 1]
    side, hand = fields[2:]
    if side not in ("o", "x", "?"):
        raise NotationError(f"side to move {side[:60]!r} must be o, x, or ? while it is not known who starts")
    _read_hand(options, state, hand)
    _judge(options, state)
    state[MOVER] = state[SEAT] = side == "x"
    state[OTHER_SEAT] = 1 - state[SEAT]
    if side == "?":
        at_start = state[WAITING] == state[WAITING + 1] == options.pieces and hand == "-"
        if options.first_player in ("natural", "black") or not at_start:
            raise NotationError(f"side to move '?' is for the start of a game with a throw-off, not {text[:60]!r}")
        state[CHANCE] = FIRST_PLAYER
    return state


def _target(options: YutNoriOptions, state: State, code: int, value: int) -> int | None:
    """Where a code leads with a value: a station, AT_HOME, or None where there is no such move."""
    way = WAY_RIM if code == ENTER else _unit(state, ORIGINS[code])[1]
    target = _targets(options).get((way, code, value))
    return None if target is None else target[0]


def _captured(state: State, target: int) -> int:
    """How many enemies of the mover stand where a move ends."""
    if target == AT_HOME or _owner(state, target) != 1 - state[MOVER]:
        return 0
    return _unit(state, target)[0]


@functools.lru_cache(maxsize=64)
def _move_texts(options: YutNoriOptions) -> dict[tuple[int, int, int], tuple[str, int]]:
    """(way, code, value index) -> (the move in notation without captures, bit of the station where it ends)."""
    texts = {}
    for (way, code, value), (target, _) in _targets(options).items():
        origin = "enter" if code == ENTER else str(ORIGINS[code])
        fork = f" {FORK_WORDS[code]}" if code in FORK_WORDS and value != BACKDO else ""
        texts[way, code, value] = f"{origin}{fork} -> {_end_word(target)}", 1 << target
    return texts


def format_actions(options: YutNoriOptions, state: State, actions: Sequence[int]) -> list[str]:
    """``5 short -> 21 x2`` or ``pass`` for each of the legal ``actions``, the value first when several are in hand."""
    cells, hand = state.tolist(), _hand(options, state)
    codes, pass_action, table = _num_codes(options), _pass_action(options), _move_texts(options)
    enemies = UNITS + 2 * (1 - cells[MOVER])
    enemy = cells[enemies] | cells[enemies + 1] << LOW_BITS
    texts = []
    for action in actions:
        if action == pass_action:
            texts.append("pass")
            continue
        value, code = divmod(action, codes) if options.extra_on_yut_mo else (hand[0], action)
        way = WAY_RIM if code == ENTER else cells[STATIONS + ORIGINS[code]] >> WAY_SHIFT
        text, end = table[way, code, value]
        if enemy & end:
            text = f"{text} x{cells[STATIONS + end.bit_length() - 1] & COUNT_MASK}"
        texts.append(text if len(hand) == 1 else f"{VALUE_NAMES[value]}: {text}")
    return texts


def _end_word(target: int | None) -> str:
    """A target in notation, empty where there is none."""
    if target is None:
        return ""
    return "home" if target == AT_HOME else str(target)


def _codes_of(options: YutNoriOptions, origin: str, way: str | None, text: str) -> list[int]:
    """Codes that an origin and its way can mean; without a way both are tried, as their ends never coincide.

    Raises:
        NotationError: no such station, or no such way from it.
    """
    if origin == "enter":
        codes = [ENTER]
    else:
        codes = [code for code in range(1, _num_codes(options)) if ORIGINS[code] == int(origin)]
    if not codes:
        raise NotationError(f"{text[:60]!r}: no unit can stand on station {origin}; {_known_stations(options)}")
    if way is None:
        return codes
    words = {FORK_WORDS[code]: code for code in codes if code in FORK_WORDS}
    if way not in words:
        raise NotationError(
            f"{text[:60]!r}: {origin} has no way {way[:60]!r}; ways known there: {', '.join(words) or 'none'}"
        )
    return [words[way]]


def _find_move(options: YutNoriOptions, state: State, move: re.Match[str], text: str) -> tuple[int, int]:
    """Value index and code of the one move with the hand that a matched text means.

    Raises:
        NotationError: no such station or way, or two values in hand fit.
        IllegalMoveError: no value in hand leads there.
    """
    value_name, origin, way, end, _ = move.groups()
    codes = _codes_of(options, origin, way, text)
    hand = _format_hand(options, state)
    held = [value for value in sorted(set(_hand(options, state))) if value_name in (None, VALUE_NAMES[value])]
    if not held:
        raise IllegalMoveError(f"{text!r} needs {value_name or 'a throw'} in hand, not {hand}")
    ends = {
        (value, code): _end_word(_target(options, state, code, value))
        for value in held
        for code in codes
        if way is None or value != BACKDO
    }
    # '07' is as good as '7'
    fits = [found for found, word in ends.items() if word == (end if end == "home" else str(int(end)))]
    if not fits:
        known = " or ".join(dict.fromkeys(word for word in ends.values() if word)) or "no station"
        start = origin if way is None else f"{origin} {way}"
        raise IllegalMoveError(f"{text!r}: with {hand} in hand, {start} goes to {known}, not to {end}")
    if len(fits) > 1:
        example = f"{VALUE_NAMES[fits[0][0]]}: {move.string}"
        raise NotationError(f"{text[:60]!r} fits several values in hand; name one, as in {example!r}")
    return fits[0]


def parse_action(options: YutNoriOptions, state: State, text: str) -> int:
    """The id of a move in notation; value and way may be left out where the rest says which is meant.

    Raises:
        NotationError: unreadable, or two values in hand fit.
        IllegalMoveError: no value in hand leads there, or the suffix names another number of captured pieces.
    """
    spoken = " ".join(text.lower().split())
    if spoken == "pass":
        if not options.backdo:
            raise IllegalMoveError("'pass' exists only with the option 'backdo': a move always exists")
        return _pass_action(options)
    match = _MOVE.fullmatch(spoken)
    if match is None:
        raise NotationError(
            f"cannot read the move {text[:60]!r}; it must be like 'enter -> 3', '5 short -> 21' or 'pass'"
        )
    end, suffix = match[4], match[5]
    if end != "home" and int(end) >= NUM_STATIONS:
        raise NotationError(f"{text[:60]!r}: there is no station {end}; {_known_stations(options)}")
    value, code = _find_move(options, state, match, text)
    captured = _captured(state, AT_HOME if end == "home" else int(end))
    if suffix is not None and int(suffix) != captured:
        raise IllegalMoveError(f"{text!r} captures {captured} pieces, not {suffix}")
    return value * _num_codes(options) + code if options.extra_on_yut_mo else code


def _throw(options: YutNoriOptions, state: State) -> int | tuple[int, ...] | None:
    """The value in hand (backdo -1), a descending tuple of several, None without one."""
    values = tuple(SHOWN[value] for value in _written(options, state))
    if len(values) > 1:
        return values
    return values[0] if values else None


def site_pieces(options: YutNoriOptions, state: State) -> list[str]:
    """For each station its pieces, ``o`` or ``x`` each."""
    owners = [_owner(state, station) for station in range(NUM_STATIONS)]
    return ["" if owner is None else _SIDES[owner] * _unit(state, s)[0] for s, owner in enumerate(owners)]


def status(options: YutNoriOptions, state: State) -> dict[str, str]:
    """Waiting and home pieces of both sides, the hand, and with backdo the marked stations."""
    beside = {}
    for colour, name in enumerate(_NAMES):
        beside[f"{name} waiting"] = str(state[WAITING + colour])
        beside[f"{name} home"] = str(state[HOME + colour])
    beside["throw"] = _format_hand(options, state)
    ways = [_unit(state, station)[1] for station in range(NUM_STATIONS)]
    marked = [f"{station}{MARKS[way]}" for station, way in enumerate(ways) if way != WAY_RIM]
    return beside | ({"ways": " ".join(marked)} if marked else {})


def board_text(options: YutNoriOptions, state: State) -> str:
    """The board with the number of each station, and after a colon the unit on it, as in ``22<10:x2``."""
    width, layout = 10, _layout(options)
    rows = [["" for _ in range(layout.width)] for _ in range(layout.height)]
    for station, (row, column) in enumerate(layout.cells):
        count, way = _unit(state, station)
        owner = _owner(state, station)
        unit = "" if owner is None else f"{MARKS[way]}:{_SIDES[owner]}{count}"
        rows[row][column] = f"{station}{unit}"
    lines = []
    for row, cells in enumerate(rows):
        fill = "-" if row in (0, layout.height - 1) else " "
        body = "".join(cell.ljust(width, fill) for cell in cells[:-1])
        lines.append((body if cells[0] else "|" + body[1:]) + (cells[-1] or "|"))
    for colour, name in enumerate(_NAMES):
        lines.append(f"{name} {_SIDES[colour]}: {state[WAITING + colour]} waiting, {state[HOME + colour]} home")
    lines.append(_turn_text(options, state))
    return "\n".join(lines)


def _turn_text(options: YutNoriOptions, state: State) -> str:
    if state[OUTCOME] == TRUNCATED:
        return "stopped after the last turn allowed"
    if state[OUTCOME] != RUNNING:
        return f"{_NAMES[state[OUTCOME] - NATURAL_WINS]} has won"
    if state[CHANCE] == FIRST_PLAYER:
        return "the sticks say who starts"
    names = [VALUE_NAMES[value] for value in _written(options, state)]
    hand = f"throw {_format_hand(options, state)} ({', '.join(names)})" if names else "to throw"
    return f"to move: {_NAMES[state[MOVER]]} {_SIDES[state[MOVER]]}, {hand}"


# -- the record ------------------------------------------------------------------------------------------------------
def _side_cells() -> list[tuple[int, int]]:
    """Cells of stations 0 to 19 around the rim from Start, whose sides have no station in their middle."""
    up, left = (6, 5, 4, 2, 1), (6, 5, 4, 2, 1)
    right = [(row, 6) for row in up]
    top = [(0, column) for column in left]
    west = [(6 - row, 0) for row in up]
    bottom = [(6, 6 - column) for column in left]
    return right + top + west + bottom


def _layout(options: YutNoriOptions) -> BoardLayout:
    diagonals = [(1, 5), (2, 4), (3, 3), (4, 2), (5, 1), (1, 1), (2, 2), (4, 4), (5, 5)]
    rim = [(station, (station + 1) % 20) for station in range(20)]
    inner = [(5, 20), (20, 21), (21, 22), (10, 25), (25, 26), (26, 22)]
    outer = [(22, 23), (23, 24), (24, 15), (22, 27), (27, 28), (28, 0)]
    names = tuple(str(station) for station in range(NUM_STATIONS))
    return BoardLayout(7, 7, tuple(_side_cells() + diagonals), names, "graph", tuple(rim + inner + outer))


def _state_size(options: YutNoriOptions) -> int:
    return HAND + (NUM_VALUES if options.extra_on_yut_mo else 0)


def _chance(options: YutNoriOptions) -> tuple[ChanceKind, ...]:
    """Kind 1 says who starts, kind 2 is the throw: do to mo, then backdo and nak where the options give them."""
    outcomes, odds = _outcomes(options), _odds(options)
    values = tuple(SHOWN[value] for value in outcomes)
    again = options.extra_on_yut_mo or options.nak_prob > 0
    throw = ChanceKind("throw", values, tuple(odds[value] for value in outcomes), repeats=again)
    return ChanceKind("first player", (0, 1), (0.5, 0.5)), throw


def _scales(options: YutNoriOptions) -> dict[str, float]:
    """Largest values of what ``view`` fills."""
    scales = dict.fromkeys(("own", "enemy", "my_turn", "natural"), 1.0)
    counts = ("own_count", "enemy_count", "own_reserve", "enemy_reserve", "own_captures", "enemy_captures")
    scales |= dict.fromkeys(counts, float(options.pieces))
    throws = [f"throw_{steps}" for steps in range(1, 6)] + (["throw_back"] if options.backdo else [])
    scales |= dict.fromkeys(throws, float(HAND_LIMIT) if options.extra_on_yut_mo else 1.0)
    if options.backdo:
        scales |= dict.fromkeys(("own_mark", "enemy_mark"), float(NUM_WAYS - 1))
    if options.max_turns > 0:
        scales["turns"] = float(options.max_turns)
    if options.seats_per_side == 2:
        scales["partner"] = 1.0
    return scales


VARIANTS = {
    "box": YutNoriOptions(),
    "traditional": YutNoriOptions(stick_p=0.6, extra_on_yut_mo=True, bonus_stacking=False, backdo=True, finish="pass"),
    "teams": YutNoriOptions(seats_per_side=2),
    "duel": YutNoriOptions(pieces=2),
    "mini": YutNoriOptions(pieces=1),
}
VARIANT_NOTES = {
    "box": "four pieces a side, the box rulebook (S1)",
    "traditional": "throws again on yut and mo, backdo, units must go beyond Start (public rules)",
    "teams": "two partners a side take its turns alternately (S1)",
    "duel": "two pieces a side, a short game",
    "mini": "one piece a side, for exact solving",
}

RULES = GameRules(
    name="yut_nori",
    title="Yut Nori",
    version=1,
    source="the box rulebook (S1); traditional rules from public sources",
    variants=VARIANTS,
    variant_notes=VARIANT_NOTES,
    reasons=("", "home", "max_turns"),
    layout=_layout,
    num_actions=_num_actions,
    num_seats=lambda options: 2 * options.seats_per_side,
    state_size=_state_size,
    history_size=lambda options: 0,
    params=_params,
    chance=_chance,
    margin_scale=lambda options: options.pieces,
    feature_scales=_scales,
    kernels=Kernels(initial, legal, apply, apply_chance, view, heuristic, sample),
    format_position=format_position,
    parse_position=parse_position,
    start_history=start_history,
    format_actions=format_actions,
    parse_action=parse_action,
    throw=_throw,
    site_pieces=site_pieces,
    status=status,
    board_text=board_text,
)
