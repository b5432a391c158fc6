"""Puluc: a running fight between two houses, with stacks of prisoners carried home.

Rules B1-B13 of the project's rule book (S1: the box rulebook). Ids are cited where a line implements them. Own
decisions, marked (D), beyond those of the rule book:

- B3 (D): where a short board has no n-th square (``length`` 5 and 6), a throw of n does not enter a counter.
- B7: a unit that goes home always shows the number removed, ``8 -> home (+0)`` when it carried no prisoner (D).
- B9: a counter in the house is stopped by B5 like a unit on the course (D).
- B11: ``random`` and ``throw_off`` are one throw of chance, natural or black at 1/2 each: ties thrown again leave
  both sides the same odds (D).
- Position texts may hold stacks that play cannot build (two equal counters on top): the order below the top never
  matters (D).
- A position that is over has no throw in hand; ``?`` as side to move is the start alone (D).

The board of ``box`` with its sites in natural's frame; black counts his own steps from the other end, so that his
step s is natural's step ``length - 1 - s``::

    natural's house                                     black's house
          0     1    2    3    4    5    6    7    8    9    10
    o -->                                                    <-- x

An action is the own step a unit starts from: 0 enters a counter, 1 .. length - 2 advance the unit standing there,
length - 1 passes.

State cells after the header (``L`` = length):

====================  ================================================================================================
``SHOWN``             the throw in hand, 0 when none
``HOUSE + colour``    counters in that colour's house
``REMOVED + colour``  enemy counters that colour has removed for good
``UNITS + 2*colour``  where that colour owns a unit: bit s of the first cell for its own step s < 15, bit s - 15 of
                      the second for s >= 15
``SQUARES + s``       the stack on natural's step s + 1, 0 <= s < L - 2: a leading one, below it the counters, the
                      bottom one in bit 0, 1 for black; so an empty square holds 1
====================  ================================================================================================
"""

import dataclasses
import functools
import re
from collections.abc import Sequence

import numpy as np
from numba import int16, int32, int64, types, uint64

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    BLACK_WINS,
    CHANCE,
    ENEMY,
    ENEMY_CAPTURES,
    ENEMY_COUNT,
    ENEMY_RESERVE,
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
    OWN_RESERVE,
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
    Kernels,
    Options,
    Params,
    State,
    check_choice,
    check_range,
)
from tradgames_env.rules.errors import IllegalMoveError, NotationError, OptionError

MAX_PIECES = 7
"""A stack of all counters, its leading one included, fills the 15 bits of a positive int16."""
MAX_LENGTH = 31
"""The own steps of a unit, 0 .. 29, fill two cells of 15 bits."""


@dataclasses.dataclass(frozen=True)
class PulucOptions(Options):
    """Rule options of Puluc.

    Raises:
        OptionError: an option is out of range; the message names it.
    """

    length: int = 11
    """B1: squares of the line, both houses included; 5 to 31."""
    pieces: int = 5
    """B1: counters a side; 1 to 7."""
    stick_p: float = 0.5
    """B2: probability that a stick falls face up; more than 0 and less than 1."""
    throw_table: str = "box"
    """B2 "box": 1, 2, 3, 4 faces up are that many squares, none is 5. B13 "marked_plus_one": n faces up are n + 1."""
    pass_rule: str = "blocked"
    """B9: passing is legal without a move, and also with an own unit stopped by B5 ("blocked") or always ("always");
    "stuck": only without a move."""
    first_player: str = "natural"
    """B11: "natural", "black", "random" or "throw_off"."""
    max_turns: int = 1000
    """B12: turns of both sides together after which the game is cut off; 0 = never."""

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        check_range(self, "length", 5, MAX_LENGTH)
        check_range(self, "pieces", 1, MAX_PIECES)
        check_range(self, "stick_p", 0.0, 1.0)
        if self.stick_p in (0, 1):
            raise OptionError(f"option 'stick_p' must be more than 0 and less than 1, not {self.stick_p!r}")
        check_choice(self, "throw_table", ("box", "marked_plus_one"))
        check_choice(self, "pass_rule", _PASS_RULES)
        check_choice(self, "first_player", ("natural", "black", "random", "throw_off"))
        check_range(self, "max_turns", 0, 30_000)


_PASS_RULES = ("blocked", "stuck", "always")
IF_BLOCKED, IF_STUCK, ALWAYS = range(3)

# -- state cells and kinds of throw --------------------------------------------------------------------------------
SHOWN = HEADER_SIZE
HOUSE = HEADER_SIZE + 1
REMOVED = HEADER_SIZE + 3
UNITS = HEADER_SIZE + 5
SQUARES = HEADER_SIZE + 9
EMPTY = 1
THROW, FIRST_PLAYER = 1, 2
REASON_REMOVED, REASON_MAX_TURNS = 1, 2

# -- params: five options, then the bit table ----------------------------------------------------------------------
LENGTH, PIECES, PASS_RULE, FIRST, MAX_TURNS, BIT_TABLE = range(6)
BY_CHANCE = 2
"""``params[FIRST]`` when the first player is drawn, else his colour."""
DE_BRUIJN = 0x077CB531
"""Its 32 windows of 5 bits all differ, so that ``(bit * DE_BRUIJN >> 27) & 31`` numbers the 32 single bits."""

_ONE, _2, _4, _27, _31, _32, _56 = (np.uint64(n) for n in (1, 2, 4, 27, 31, 32, 56))
_PAIRS, _FOURS, _EIGHTS, _BYTES = (np.uint64(0x0101010101010101 * n) for n in (0x55, 0x33, 0x0F, 1))


def _params(options: PulucOptions) -> Params:
    first = {"natural": 0, "black": 1}.get(options.first_player, BY_CHANCE)
    head = [options.length, options.pieces, _PASS_RULES.index(options.pass_rule), first, options.max_turns]
    table = [0] * 32
    for bit in range(32):
        table[((1 << bit) * DE_BRUIJN >> 27) & 31] = bit
    return np.array(head + table, np.int32)


def _chance(options: PulucOptions) -> tuple[ChanceKind, ...]:
    up = options.stick_p
    down = 1.0 - up
    faces = tuple(ways * up**n * down ** (4 - n) for n, ways in enumerate((1, 4, 6, 4, 1)))
    box = options.throw_table == "box"  # B2: no face up is worth 5; B13: it is worth 1
    throw = ChanceKind("throw", (1, 2, 3, 4, 5), faces[1:] + faces[:1] if box else faces)
    if options.first_player in ("natural", "black"):
        return (throw,)
    return (throw, ChanceKind("first player", (0, 1), (0.5, 0.5)))


# -- kernels -------------------------------------------------------------------------------------------------------
_PARAMS, _STATE = int32[::1], int16[::1]


@kernel(int64(int64))
def _count_ones(bits):  # type: ignore[no-untyped-def]
    """Number of ones among the lowest 16 bits, all others being zero."""
    bits = bits - ((bits >> 1) & 0x5555)
    bits = (bits & 0x3333) + ((bits >> 2) & 0x3333)
    bits = (bits + (bits >> 4)) & 0x0F0F
    return (bits + (bits >> 8)) & 0x1F


@kernel(int64(int64))
def _leading_one(stack):  # type: ignore[no-untyped-def]
    """The leading one of a stack as a power of two: 2 ** height."""
    stack |= stack >> 1
    stack |= stack >> 2
    stack |= stack >> 4
    stack |= stack >> 8
    return stack - (stack >> 1)


@kernel(INITIAL)
def initial(params, state, history):  # type: ignore[no-untyped-def]
    """All counters in their houses (B1); the first player's throw is due, or before it the choice who that is (B11)."""
    state[:] = 0
    state[SQUARES : SQUARES + params[LENGTH] - 2] = EMPTY
    state[HOUSE] = params[PIECES]
    state[HOUSE + 1] = params[PIECES]
    if params[FIRST] == BY_CHANCE:
        state[CHANCE] = FIRST_PLAYER
        return
    state[CHANCE] = THROW
    state[MOVER] = params[FIRST]
    state[SEAT] = params[FIRST]


@kernel(int64(_STATE, int64))
def _units(state, colour):  # type: ignore[no-untyped-def]
    """Bit s is set where ``colour`` owns a unit on its own step s; bit 0 is never set."""
    cell = np.uint32(UNITS + 2 * colour)
    return np.int64(state[cell]) | (np.int64(state[cell + 1]) << 15)


@kernel(types.void(_STATE, int64, int64))
def _set_units(state, colour, units):  # type: ignore[no-untyped-def]
    """Store what ``_units`` reads."""
    cell = np.uint32(UNITS + 2 * colour)
    state[cell] = units & 0x7FFF
    state[cell + 1] = units >> 15


@kernel(uint64(_PARAMS, _STATE))
def _choices(params, state):  # type: ignore[no-untyped-def]
    """B3, B5 and B9: a bit for each legal action, own steps that hold a unit or, step 0, a counter to enter; pass."""
    mover, shown = np.int64(state[MOVER]), np.int64(state[SHOWN])
    last = np.int64(params[LENGTH]) - 1
    units = _units(state, mover)
    movable = units | np.int64(state[np.uint32(HOUSE + mover)] > 0)
    stopped = movable & (units >> shown)  # B5: the step shown squares ahead is an own unit's
    free = movable ^ stopped
    if shown > last - 1:  # B3: a short board has no such square to enter on
        free &= ~1
    pass_rule = params[PASS_RULE]
    passing = free == 0 or pass_rule == ALWAYS or (pass_rule == IF_BLOCKED and stopped != 0)
    return np.uint64(free | np.int64(passing) << last)


@kernel(int64(_PARAMS, uint64))
def _lowest(params, bits):  # type: ignore[no-untyped-def]
    """Index of the lowest one of 32 bits."""
    lowest = bits & (~bits + _ONE)
    return np.int64(params[np.uint64(BIT_TABLE) + (lowest * np.uint64(DE_BRUIJN) >> _27 & _31)])


@kernel(LEGAL)
def legal(params, state, history, out_actions):  # type: ignore[no-untyped-def]
    """The bits of ``_choices`` as a list."""
    left = _choices(params, state)
    count = 0
    while left != 0:
        out_actions[np.uint32(count)] = _lowest(params, left)
        count += 1
        left &= left - _ONE
    return count


@kernel(SAMPLE)
def sample(params, state, history, word):  # type: ignore[no-untyped-def]
    """One of the bits of ``_choices`` by the upper half of ``word``."""
    left = _choices(params, state)
    pairs = left - (left >> _ONE & _PAIRS)
    fours = (pairs & _FOURS) + (pairs >> _2 & _FOURS)
    count = (fours + (fours >> _4) & _EIGHTS) * _BYTES >> _56
    for _ in range(np.int64((word >> _32) * count >> _32)):
        left &= left - _ONE
    return _lowest(params, left)


@kernel(types.void(_STATE, int64, int64))
def _dissolve(state, mover, stack):  # type: ignore[no-untyped-def]
    """B7: the mover's unit is home; own counters return to the house, the others are gone for good."""
    leading = _leading_one(stack)
    black = _count_ones(stack ^ leading)
    natural = _count_ones(leading - 1) - black
    state[np.uint32(HOUSE + mover)] += black if mover else natural
    state[np.uint32(REMOVED + mover)] += natural if mover else black
    state[MARGIN] = state[REMOVED] - state[REMOVED + 1]


@kernel(types.void(_PARAMS, _STATE, int64, int64))
def _move(params, state, mover, step):  # type: ignore[no-untyped-def]
    """B3: enter a counter (step 0) or advance the unit on ``step`` by the throw in hand; B6 and B7 follow from it."""
    last = np.int64(params[LENGTH]) - 1
    target = step + np.int64(state[SHOWN])
    units = _units(state, mover)
    if step == 0:
        stack = np.int64(2) | mover
        state[np.uint32(HOUSE + mover)] -= 1
    else:
        origin = np.uint32(SQUARES - 1 + (last - step if mover else step))
        stack = np.int64(state[origin])
        state[origin] = EMPTY
        units ^= np.int64(1) << step
    if target >= last:
        _dissolve(state, mover, stack)
        _set_units(state, mover, units)
        return
    # B6: the unit comes to lie above what stands there. Multiplying by that stack's leading one shifts by its height;
    # an empty square, a leading one alone, needs no case of its own, nor does the enemy's bit, set or not.
    square = np.uint32(SQUARES - 1 + (last - target if mover else target))
    below = np.int64(state[square])
    state[square] = below + (stack - 1) * _leading_one(below)
    _set_units(state, mover, units | (np.int64(1) << target))
    _set_units(state, 1 - mover, _units(state, 1 - mover) & ~(np.int64(1) << (last - target)))


@kernel(APPLY)
def apply(params, state, history, action):  # type: ignore[no-untyped-def]
    """One turn, then the other side's throw is due unless the game is over (B10, B12)."""
    mover = np.int64(state[MOVER])
    if action != params[LENGTH] - 1:
        _move(params, state, mover, action)
    state[SHOWN] = 0
    state[MOVER] = 1 - mover
    state[SEAT] = 1 - mover
    state[TURNS] += state[TURNS] < 32767
    if state[np.uint32(REMOVED + mover)] == params[PIECES]:
        state[OUTCOME] = BLACK_WINS if mover else NATURAL_WINS
        state[REASON] = REASON_REMOVED
        state[PAYOFF] = 1 - 2 * mover
    elif params[MAX_TURNS] > 0 and state[TURNS] >= params[MAX_TURNS]:
        state[OUTCOME] = TRUNCATED
        state[REASON] = REASON_MAX_TURNS
    else:
        state[CHANCE] = THROW


@kernel(APPLY_CHANCE)
def apply_chance(params, state, history, index):  # type: ignore[no-untyped-def]
    """The mover's sticks show ``index + 1`` (B2), or colour ``index`` begins and throws next (B11)."""
    if state[CHANCE] == THROW:
        state[SHOWN] = index + 1
        state[CHANCE] = 0
    else:
        state[MOVER] = index
        state[SEAT] = index
        state[CHANCE] = THROW


@kernel(VIEW)
def view(params, state, history, seat, out_sites, out_scalars):  # type: ignore[no-untyped-def]
    """Stacks by owner and by counters of each side; houses are the reserves, removed counters the captures.

    While chance still has to name the first player it is nobody's turn.
    """
    colour = seat % 2
    last = np.int64(params[LENGTH]) - 1
    units = _units(state, colour)
    for step in range(1, last):
        stack = np.int64(state[SQUARES - 1 + (last - step if colour else step)])
        if stack == EMPTY:
            continue
        leading = _leading_one(stack)
        black = _count_ones(stack ^ leading)
        natural = _count_ones(leading - 1) - black
        out_sites[OWN if (units >> step) & 1 else ENEMY, step] = 1
        out_sites[OWN_COUNT, step] = black if colour else natural
        out_sites[ENEMY_COUNT, step] = natural if colour else black
    out_scalars[OWN_RESERVE] = state[HOUSE + colour]
    out_scalars[ENEMY_RESERVE] = state[HOUSE + 1 - colour]
    out_scalars[OWN_CAPTURES] = state[REMOVED + colour]
    out_scalars[ENEMY_CAPTURES] = state[REMOVED + 1 - colour]
    if state[SHOWN] > 0:
        out_scalars[THROW_1 + state[SHOWN] - 1] = 1
    out_scalars[MY_TURN] = state[SEAT] == seat and state[OUTCOME] == RUNNING and state[CHANCE] != FIRST_PLAYER
    out_scalars[NATURAL] = colour == 0
    out_scalars[TURN_COUNT] = state[TURNS] if params[MAX_TURNS] > 0 else 0


@kernel(HEURISTIC)
def heuristic(params, state, history):  # type: ignore[no-untyped-def]
    """Enemies removed count 1, prisoners the more the nearer they are to removal, own units a little for progress."""
    last = np.int64(params[LENGTH]) - 1
    natural_units = _units(state, 0)
    standing = float(state[MARGIN])
    for square in range(1, last):
        stack = np.int64(state[SQUARES - 1 + square])
        if stack == EMPTY:
            continue
        leading = _leading_one(stack)
        black = _count_ones(stack ^ leading)
        natural = _count_ones(leading - 1) - black
        if (natural_units >> square) & 1:
            standing += black * (0.3 + 0.5 * square / last) + natural * 0.05 * square / last
        else:
            standing -= natural * (0.3 + 0.5 * (last - square) / last) + black * 0.05 * (last - square) / last
    return standing / (params[PIECES] + 1.0)


@kernel(INITIAL)
def start_history(params, state, history):  # type: ignore[no-untyped-def]
    """Nothing to do: Puluc has no repetition rule."""


# -- text ----------------------------------------------------------------------------------------------------------
_LETTERS = "ox"
_TO_MOVE_OPEN = "?"


def _stack_text(stack: int) -> str:
    """Letters of a stack, bottom to top."""
    return "".join(_LETTERS[int(bit)] for bit in reversed(f"{int(stack):b}"[1:]))


def _course(options: PulucOptions, state: State) -> list[str]:
    """The stacks on natural's steps 1 .. length - 2."""
    return [_stack_text(stack) for stack in state[SQUARES : SQUARES + options.length - 2]]


def _side_text(state: State) -> str:
    return _TO_MOVE_OPEN if state[CHANCE] == FIRST_PLAYER else _LETTERS[state[MOVER]]


def format_position(options: PulucOptions, state: State) -> str:
    """One line: squares, the houses, the removed counters, side to move, throw."""
    squares = "/".join(stack or "-" for stack in _course(options, state))
    counts = " ".join(str(count) for count in state[HOUSE : REMOVED + 2])
    return f"{squares} {counts} {_side_text(state)} {state[SHOWN] or '-'}"


def _parse_number(text: str, what: str, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= high):
        raise NotationError(f"{what} must be a number from 0 to {high}, not {text[:60]!r}")
    return int(text)


def _parse_squares(options: PulucOptions, text: str) -> list[str]:
    """Stacks of the course, ``""`` where a square is empty."""
    squares = text.split("/")
    if len(squares) != options.length - 2:
        raise NotationError(f"expected {options.length - 2} squares separated by '/', found {len(squares)}")
    for number, stack in enumerate(squares, 1):
        if stack != "-" and not re.fullmatch("[ox]+", stack):
            raise NotationError(f"square {number} must be '-' or a stack of the letters o and x, not {stack[:60]!r}")
    return [stack.replace("-", "") for stack in squares]


def _check_counters(options: PulucOptions, squares: list[str], houses: list[int], removed: list[int]) -> None:
    """B1: no counter is missing or too many, and not both sides have won."""
    if min(removed) == options.pieces:
        raise NotationError("both sides cannot have won")
    for colour, side in enumerate(("natural", "black")):
        on_course = sum(stack.count(_LETTERS[colour]) for stack in squares)
        total = houses[colour] + on_course + removed[1 - colour]
        if total != options.pieces:
            raise NotationError(
                f"{side} must have {options.pieces} counters, not {total}: "
                f"{houses[colour]} in the house, {on_course} on the course, {removed[1 - colour]} removed"
            )


def parse_position(options: PulucOptions, text: str) -> State:
    """A fresh state row from the text of ``format_position``.

    Raises:
        NotationError: the text cannot be read or the position is impossible.
    """
    fields = text.split()
    if len(fields) != 7:
        raise NotationError(
            f"expected 7 fields (squares, natural's house, black's house, removed by natural, removed by black, "
            f"side to move, throw), found {len(fields)}"
        )
    squares = _parse_squares(options, fields[0])
    counts = ("natural's house", "black's house", "natural's removed enemies", "black's removed enemies")
    numbers = [_parse_number(field, what, options.pieces) for field, what in zip(fields[1:5], counts, strict=True)]
    _check_counters(options, squares, numbers[:2], numbers[2:])
    state = np.zeros(_state_size(options), np.int16)
    state[HOUSE : REMOVED + 2] = numbers
    state[MARGIN] = numbers[2] - numbers[3]
    for square, stack in enumerate(squares, 1):
        state[SQUARES - 1 + square] = int("1" + "".join(str(_LETTERS.index(c)) for c in reversed(stack)), 2)
        if stack:
            colour = _LETTERS.index(stack[-1])
            step = options.length - 1 - square if colour else square
            state[UNITS + 2 * colour + step // 15] |= 1 << step % 15
    _read_turn(options, state, fields[5], fields[6])
    return state


def _read_turn(options: PulucOptions, state: State, side: str, shown: str) -> None:
    """Side to move, throw, and whether the game is over (B10), into a state that holds all counters."""
    drawn = options.first_player in ("random", "throw_off")
    if side == _TO_MOVE_OPEN and drawn:
        if any(state[HOUSE : HOUSE + 2] != options.pieces) or shown != "-":
            raise NotationError("the side to move is '?' only at the start, with no throw in hand")
        state[CHANCE] = FIRST_PLAYER
        return
    if side not in ("o", "x"):
        raise NotationError(f"the side to move must be o or x{', at the start also ?' * drawn}, not {side[:60]!r}")
    state[MOVER] = state[SEAT] = _LETTERS.index(side)
    if shown not in ("-", "1", "2", "3", "4", "5"):
        raise NotationError(f"the throw must be 1 to 5, or - before it, not {shown[:60]!r}")
    state[SHOWN] = 0 if shown == "-" else int(shown)
    won = [int(removed) == options.pieces for removed in state[REMOVED : REMOVED + 2]]
    if any(won):
        if state[SHOWN]:
            raise NotationError(f"the game is over, so the throw must be -, not {shown[:60]!r}")
        state[OUTCOME] = NATURAL_WINS if won[0] else BLACK_WINS
        state[REASON] = REASON_REMOVED
        state[PAYOFF] = 1 if won[0] else -1
    elif not state[SHOWN]:
        state[CHANCE] = THROW


def _prisoners(options: PulucOptions, state: State, step: int) -> int:
    """Counters of the other side in the stack on the mover's own step."""
    mover = int(state[MOVER])
    stack = int(state[SQUARES - 1 + (options.length - 1 - step if mover else step)])
    black = stack.bit_count() - 1
    return stack.bit_length() - 1 - black if mover else black


@functools.lru_cache(maxsize=32)
def _move_texts(options: PulucOptions) -> list[list[str]]:
    """By throw, then by action: the move in notation, without the number removed; not to be written to."""
    last = options.length - 1
    texts = []
    for shown in range(6):
        ends = ["home" if step + shown >= last else str(step + shown) for step in range(1, last)]
        advances = [f"{step} -> {end}" for step, end in enumerate(ends, 1)]
        texts.append([f"enter -> {shown}", *advances, "pass"])
    return texts


def format_actions(options: PulucOptions, state: State, actions: Sequence[int]) -> list[str]:
    """``enter -> 3``, ``4 -> 6``, ``8 -> home (+2)`` or ``pass`` for each of the legal ``actions``.

    Squares are the mover's own steps.
    """
    shown, last = int(state[SHOWN]), options.length - 1
    texts = _move_texts(options)[shown]
    return [
        f"{texts[action]} (+{_prisoners(options, state, action)})" if last - shown <= action < last else texts[action]
        for action in actions
    ]


_MOVE = re.compile(
    r"(?P<origin>enter|[0-9]{1,3}) *(?:->|\u2192|-) *(?P<target>home|[0-9]{1,3}) *"
    r"(?:\( *\+ *(?P<removed>[0-9]{1,3}) *\))?"
)


def parse_action(options: PulucOptions, state: State, text: str) -> int:
    """The action a text means in this position; it need not be legal.

    Raises:
        NotationError: the text is no move of this board.
        IllegalMoveError: no throw in hand, or target or number removed are not what the throw makes them.
    """
    words = text.strip().lower()
    if words == "pass":
        return options.length - 1
    match = _MOVE.fullmatch(words)
    if match is None:
        raise NotationError(
            f"cannot read {text[:60]!r}; a move is like 'enter -> 3', '4 -> 6', '8 -> home (+2)' or 'pass'"
        )
    squares = range(1, options.length - 1)
    for name in ("origin", "target"):
        if match[name].isdigit() and int(match[name]) not in squares:
            raise NotationError(
                f"there is no square {match[name][:60]} in {text[:60]!r}; squares are 1 to {squares[-1]}"
            )
    shown = int(state[SHOWN])
    if shown == 0:
        raise IllegalMoveError(f"{text!r} needs a throw in hand")
    origin = 0 if match["origin"] == "enter" else int(match["origin"])
    meant = str(origin + shown) if origin + shown in squares else "home"
    if origin == 0 and meant == "home":
        raise IllegalMoveError(f"this board has no square {shown} to enter on")
    # '07' is as good as '7'
    given = match["target"] if match["target"] == "home" else str(int(match["target"]))
    if given != meant:
        raise IllegalMoveError(f"with a throw of {shown}, {match['origin']} goes to {meant}, not to {given}")
    removed = _prisoners(options, state, origin) if meant == "home" else 0
    if match["removed"] is not None and int(match["removed"]) != removed:
        raise IllegalMoveError(f"{text!r} would remove {removed}, not {int(match['removed'])}")
    return origin


def _throw(options: PulucOptions, state: State) -> int | None:
    return int(state[SHOWN]) or None


def site_pieces(options: PulucOptions, state: State) -> list[str]:
    """Counters on each site, bottom to top; the first and the last site are the houses."""
    return ["o" * int(state[HOUSE]), *_course(options, state), "x" * int(state[HOUSE + 1])]


def status(options: PulucOptions, state: State) -> dict[str, str]:
    """Counts of houses and removed counters, and the throw."""
    return {
        "natural house": str(state[HOUSE]),
        "black house": str(state[HOUSE + 1]),
        "natural removed": str(state[REMOVED]),
        "black removed": str(state[REMOVED + 1]),
        "throw": str(state[SHOWN] or "-"),
    }


def board_text(options: PulucOptions, state: State) -> str:
    """The course with its stacks standing on it, natural's steps below, then houses, removed counters and turn."""
    stacks = _course(options, state)
    rows = []
    for level in reversed(range(max(1, *(len(stack) for stack in stacks)))):
        empty = "." if level == 0 else " "
        rows.append(" " * 8 + "".join(f"{stack[level : level + 1] or empty:>3}" for stack in stacks))
    rows[-1] = f" o {state[HOUSE]} -->" + rows[-1][8:] + f"  <-- x {state[HOUSE + 1]}"
    steps = " " * 8 + "".join(f"{step:>3}" for step in range(1, options.length - 1))
    side = {"o": "natural (o) to move", "x": "black (x) to move", _TO_MOVE_OPEN: "first player open"}[_side_text(state)]
    if state[OUTCOME] != RUNNING:
        side = f"game over ({RULES.reasons[state[REASON]]})"
    removed = f"removed by natural {state[REMOVED]}, by black {state[REMOVED + 1]}"
    return "\n".join([*(row.rstrip() for row in rows), steps, f"{side}, throw {state[SHOWN] or '-'}, {removed}"])


# -- the record ----------------------------------------------------------------------------------------------------
def _layout(options: PulucOptions) -> BoardLayout:
    names = ("house", *(str(step) for step in range(1, options.length - 1)), "home")
    return BoardLayout(1, options.length, tuple((0, site) for site in range(options.length)), names, "track")


def _state_size(options: PulucOptions) -> int:
    return SQUARES + options.length - 2


def _feature_scales(options: PulucOptions) -> dict[str, float]:
    flags = ("own", "enemy", "throw_1", "throw_2", "throw_3", "throw_4", "throw_5", "my_turn", "natural")
    counts = ("own_count", "enemy_count", "own_reserve", "enemy_reserve", "own_captures", "enemy_captures")
    scales = dict.fromkeys(flags, 1.0) | dict.fromkeys(counts, float(options.pieces))
    if options.max_turns:
        scales["turns"] = float(options.max_turns)
    return scales


RULES = GameRules(
    name="puluc",
    title="Puluc",
    version=1,
    source="box rulebook of the four games (S1); throw_table 'marked_plus_one' from public descriptions",
    variants={
        "box": PulucOptions(),
        "family": PulucOptions(length=7, pieces=3),
        "mini": PulucOptions(length=7, pieces=2),
    },
    variant_notes={
        "box": "five counters a side on eleven squares, as in the box rulebook",
        "family": "three counters a side on seven squares: a short game",
        "mini": "two counters a side on seven squares: small enough to be solved exactly",
    },
    reasons=("", "removed", "max_turns"),
    layout=_layout,
    num_actions=lambda options: options.length,
    num_seats=lambda options: 2,
    state_size=_state_size,
    history_size=lambda options: 0,
    params=_params,
    chance=_chance,
    margin_scale=lambda options: options.pieces,
    feature_scales=_feature_scales,
    kernels=Kernels(initial, legal, apply, apply_chance, view, heuristic, sample),
    start_history=start_history,
    format_position=format_position,
    parse_position=parse_position,
    format_actions=format_actions,
    parse_action=parse_action,
    throw=_throw,
    site_pieces=site_pieces,
    status=status,
    board_text=board_text,
)
