"""Yote, the West African game of placing, stepping and jumping, with a second capture after each jump.

Sources: S1, the box rulebook, where RULES.md says so; S3, the petteia.fr sheet, for the numbers of the draws; (D) marks
decisions where the sources are silent. Light is *natural* (``o``), dark is *black* (``x``).

Y1  ``cols`` x ``rows`` squares, empty at the start; ``pieces`` a side in reserve; natural starts (option
    ``first_player``). (D) Boards of 3 to 8 ranks and files; at most half as many pieces a side as there are squares, so
    that a player with a reserve always finds an empty square (Y7).
Y2  A turn places a reserve piece on an empty square, steps a piece to an orthogonally adjacent empty square, or jumps
    it over one adjacent enemy to the empty square behind, removing the enemy.
Y3  After a jump the same player removes one more enemy piece of his choice from the board (the *bonus*); when none is
    on the board one is taken from the enemy's reserve by itself; when none is left anywhere the game is won.
Y4  One jump a turn; capturing is not compulsory; no passing.
Y5  (D) ``return_ban="immediate"``: a piece that stepped a -> b in its owner's previous turn may not step b -> a. The
    forbidden step is kept for each side; the owner's next turn replaces it, the capture of the piece drops it, and a
    jump from b over a is free.
Y6  Captured all enemy pieces, board and reserve: won.
Y7  (D) A player without a legal action on his turn loses.
Y8  Draws: the position (board, reserves, bans, side to move) occurs for the ``repetition_limit``-th time; or
    ``quiet_limit`` steps in a row without placement or capture; or both sides have ``few_pieces_draw`` pieces or fewer,
    reserves included. (D) A loaded position counts as the first occurrence; repetitions are counted after whole turns.
Y9  Order: all captured, opponent blocked, then the draws: repetition, quiet, few pieces (D); then ``max_turns``.
    Nothing is judged between a jump and its bonus, which together are one turn.

(D) Position texts: refused is what contradicts the board, the counts or the options. While a bonus is owed that means
also: no enemy on the board, no enemy missing, a mover without a piece on the board, quiet steps other than 0, a banned
step of the mover. A ban needs its piece on the first square and no own piece on the second. A quiet clock beyond its
limit is refused, one at its limit is a draw. The side to move may be ``?`` only in the start position of
``first_player="random"``.
(D) ``C3 -> D3`` onto an enemy, and ``C3 -> E3`` with nobody in between, are refused although an action id has the same
direction: the id means a step when the neighbour is empty and a jump when it is an enemy.

Squares are numbered from natural's left corner; black's frame is the board turned by 180 degrees (square
``squares - 1 - s``)::

    5  24 25 26 27 28 29
    4  18 19 20 21 22 23      directions in natural's frame: 0 forward (+cols), 1 backward (-cols),
    3  12 13 14 15 16 17                                     2 left (-1), 3 right (+1);
    2   6  7  8  9 10 11      black's direction d is natural's d ^ 1
    1   0  1  2  3  4  5
        A  B  C  D  E  F

Actions, in the mover's frame: ``plane * squares + square``, planes 0 place, 1-4 move forward, backward, left, right
(square = where the piece stands), 5 bonus (square = of the enemy removed).

State cells after the header:

=====  ==========================================================================================================
8-11   natural's pieces, one bit a square, lowest 16 bits first
12-15  black's pieces
16-17  reserve of natural, of black
18-19  pieces natural has left, board and reserve; black's
20-21  banned step of natural, of black: 0 or 1 + 4 * square + direction, both in natural's frame
22     quiet steps in a row, saturating at 32,767
23     1 while a bonus is owed
24     positions in the history, of a ring up to twice its size
25     how often the position had occurred before
=====  ==========================================================================================================

The history holds hashes since the last placement or capture, which no position survives. Its length is
``quiet_limit + 1``, which a game cannot outlast; with ``quiet_limit=0`` it is a ring that remembers the last 2,048
positions. A step changes the colour (of a chequered board) of one piece, so a position can only return after an even
number of steps by each side: only every fourth entry is compared.
"""

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import boolean, int16, int32, int64, types, uint64

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    BLACK_WINS,
    BONUS,
    CAPTURES,
    CHANCE,
    DRAW,
    ENEMY,
    ENEMY_BAN_FROM,
    ENEMY_BAN_TO,
    ENEMY_CAPTURES,
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
    OWN_BAN_FROM,
    OWN_BAN_TO,
    OWN_CAPTURES,
    OWN_RESERVE,
    PAYOFF,
    QUIET,
    REASON,
    REPETITION,
    RUNNING,
    SAMPLE,
    SEAT,
    TRUNCATED,
    TURN_COUNT,
    TURNS,
    VIEW,
    BoardLayout,
    ChanceKind,
    GameRules,
    Kernels,
    Mirror,
    Options,
    Params,
    PositionCells,
    State,
    check_choice,
    check_range,
    turned_sites,
)
from tradgames_env.rules.errors import IllegalMoveError, NotationError, OptionError


@dataclasses.dataclass(frozen=True)
class YoteOptions(Options):
    """Rule options of Yote; every value is checked when the record is made (OptionError)."""

    rows: int = 5
    """Ranks of the board, 3 to 8 (Y1)."""
    cols: int = 6
    """Files of the board, 3 to 8 (Y1)."""
    pieces: int = 8
    """Pieces a side, all in reserve at the start; at most half as many as there are squares (Y1)."""
    first_player: str = "natural"
    """Who starts: "natural", "black" or "random" (even chances) (Y1)."""
    return_ban: str = "immediate"
    """"immediate": a piece may not step straight back in its owner's next turn; "off": it may (Y5)."""
    repetition_limit: int = 3
    """Occurrence of a position that makes a draw, 2 to 100; 0 = off (Y8)."""
    quiet_limit: int = 100
    """Steps in a row without placement or capture that make a draw, up to 10,000; 0 = off (Y8)."""
    few_pieces_draw: int = 0
    """Draw when both sides have this many pieces or fewer, below ``pieces``; 0 = off (Y8)."""
    max_turns: int = 0
    """Turns of both sides after which the game stops without a winner, up to 30,000; 0 = off."""

    def __post_init__(self) -> None:
        """Refuse values out of range and contradictions.

        Raises:
            OptionError: naming the option.
        """
        check_range(self, "rows", 3, 8)
        check_range(self, "cols", 3, 8)
        check_range(self, "pieces", 1, self.rows * self.cols // 2)
        check_choice(self, "first_player", ("natural", "black", "random"))
        check_choice(self, "return_ban", ("immediate", "off"))
        check_range(self, "repetition_limit", 0, 100)
        if self.repetition_limit == 1:
            raise OptionError("option 'repetition_limit' must be 0 (off) or from 2 to 100, not 1")
        check_range(self, "quiet_limit", 0, 10_000)
        check_range(self, "few_pieces_draw", 0, self.pieces - 1)
        check_range(self, "max_turns", 0, 30_000)


# -- state cells ---------------------------------------------------------------------------------------------------
_BOARD = HEADER_SIZE
_BOARD_CELLS = 4
_RESERVE = _BOARD + 2 * _BOARD_CELLS
_ALIVE = _RESERVE + 2
_BAN = _ALIVE + 2
_QUIET_STEPS = _BAN + 2
_OWES_BONUS = _QUIET_STEPS + 1
_RECORDED = _OWES_BONUS + 1
_REPEATS = _RECORDED + 1
_STATE_SIZE = _REPEATS + 1

# -- params: fixed slots, then the table of bit numbers ------------------------------------------------------------
(
    _SQUARES,
    _COLS,
    _PIECES,
    _STARTS,
    _BANS_RETURN,
    _REPETITION_LIMIT,
    _QUIET_LIMIT,
    _FEW_PIECES,
    _MAX_TURNS,
    _PLANE_FACTOR,
) = range(10)
_DELTAS = 10
"""Four slots: what a step in each direction adds to the square."""
_ALL_SQUARES = 14
_HAS_LEFT = 16
_HAS_RIGHT = 18
"""Masks of two slots each, low half first: the board, the squares with a left neighbour, with a right one."""
_BIT_TABLE = 20
"""64 slots for natural and 64 for black: square in his frame of the bit whose De Bruijn product is the index."""
_PARAMS_SIZE = _BIT_TABLE + 128

_PLACE, _BONUS_PLANE, _PLANES = 0, 5, 6
_FORWARD, _BACKWARD, _LEFT, _RIGHT = range(4)
_STARTS_NATURAL, _STARTS_BLACK, _STARTS_RANDOM = range(3)
_FIRST_PLAYER_DUE = 1
_CAPTURES, _BLOCKED, _REPETITION, _QUIET, _FEW, _TURN_LIMIT = range(1, 7)
_REASONS = ("", "captures", "blocked", "repetition", "quiet", "few_pieces", "max_turns")
_SATURATED = 32_767
_RING_SIZE = 2_048
_PLANE_SHIFT = 20
_OWED_SHARE = 0.125
"""Of the random positions in which a bonus can be owed, those in which it is."""

_ZERO, _ONE, _TWO, _THREE = (np.uint64(n) for n in range(4))
_4, _16, _29, _32, _48, _56, _58 = (np.uint64(n) for n in (4, 16, 29, 32, 48, 56, 58))
_PAIRS, _FOURS, _EIGHTS, _BYTES = (np.uint64(0x0101010101010101 * n) for n in (0x55, 0x33, 0x0F, 1))
_LOW_16, _LOW_32 = np.uint64(0xFFFF), np.uint64(0xFFFF_FFFF)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_KEY_SEED = np.uint64(0x9E3779B97F4A7C15)
_KEY_FACTOR = np.uint64(0xD6E8FEB86659FD93)

_P, _S, _H = int32[::1], int16[::1], uint64[::1]
_FIVE_BOARDS: Any = types.UniTuple(uint64, 5)  # type: ignore[no-untyped-call]


# -- tables --------------------------------------------------------------------------------------------------------
def params(options: YoteOptions) -> Params:
    """The (148,) int32 array of options, masks and tables that every kernel reads."""
    squares = options.rows * options.cols
    values = [0] * _PARAMS_SIZE
    values[_SQUARES] = squares
    values[_COLS] = options.cols
    values[_PIECES] = options.pieces
    values[_STARTS] = ("natural", "black", "random").index(options.first_player)
    values[_BANS_RETURN] = int(options.return_ban == "immediate")
    values[_REPETITION_LIMIT] = options.repetition_limit
    values[_QUIET_LIMIT] = options.quiet_limit
    values[_FEW_PIECES] = options.few_pieces_draw
    values[_MAX_TURNS] = options.max_turns
    values[_PLANE_FACTOR] = (1 << _PLANE_SHIFT) // squares + 1
    values[_DELTAS : _DELTAS + 4] = [options.cols, -options.cols, -1, 1]
    files = [square % options.cols for square in range(squares)]
    _put_mask(values, _ALL_SQUARES, range(squares))
    _put_mask(values, _HAS_LEFT, [s for s in range(squares) if files[s] > 0])
    _put_mask(values, _HAS_RIGHT, [s for s in range(squares) if files[s] < options.cols - 1])
    for square in range(squares):
        index = (((1 << square) * int(_DE_BRUIJN)) & (2**64 - 1)) >> 58
        values[_BIT_TABLE + index] = square
        values[_BIT_TABLE + 64 + index] = squares - 1 - square
    return np.array([value & 0xFFFF_FFFF for value in values], np.uint32).view(np.int32)


def _put_mask(values: list[int], slot: int, squares: list[int] | range) -> None:
    mask = sum(1 << square for square in squares)
    values[slot], values[slot + 1] = mask & 0xFFFF_FFFF, mask >> 32


# -- kernel helpers ------------------------------------------------------------------------------------------------
@kernel(uint64(int64))
def _board_slot(colour):  # type: ignore[no-untyped-def]
    return np.uint64(_BOARD + _BOARD_CELLS * colour)


@kernel(uint64(_S, uint64))
def _get_bits(state, slot):  # type: ignore[no-untyped-def]
    """The 64 bits kept in four cells from ``slot`` on; the unsigned index lets the compiler load them at once."""
    return (
        (np.uint64(np.int64(state[slot])) & _LOW_16)
        | (np.uint64(np.int64(state[slot + _ONE])) & _LOW_16) << _16
        | (np.uint64(np.int64(state[slot + _TWO])) & _LOW_16) << _32
        | (np.uint64(np.int64(state[slot + _THREE])) & _LOW_16) << _48
    )


@kernel(types.void(_S, uint64, uint64))
def _set_bits(state, slot, bits):  # type: ignore[no-untyped-def]
    """Keep 64 bits in four cells from ``slot`` on."""
    state[slot] = np.int16(bits & _LOW_16)
    state[slot + _ONE] = np.int16(bits >> _16 & _LOW_16)
    state[slot + _TWO] = np.int16(bits >> _32 & _LOW_16)
    state[slot + _THREE] = np.int16(bits >> _48)


@kernel(uint64(_P, int64))
def _mask(params, slot):  # type: ignore[no-untyped-def]
    """The 64-bit mask kept in two slots of ``params``."""
    low = np.uint64(np.int64(params[slot])) & _LOW_32
    return low | np.uint64(np.int64(params[np.uint64(slot + 1)])) << _32


@kernel(uint64(_P, uint64, int64))
def _facing(params, bits, direction):  # type: ignore[no-untyped-def]
    """Squares whose neighbour in ``direction`` (natural's frame) is one of ``bits``; may run over the top edge."""
    if direction == _FORWARD:
        return bits >> np.uint64(params[_COLS])
    if direction == _BACKWARD:
        return bits << np.uint64(params[_COLS])
    if direction == _LEFT:
        return bits << _ONE & _mask(params, _HAS_LEFT)
    return bits >> _ONE & _mask(params, _HAS_RIGHT)


@kernel(uint64(_P, uint64, uint64, uint64, int64, int64))
def _movable(params, own, enemy, empty, ban, direction):  # type: ignore[no-untyped-def]
    """Own pieces that may step or jump in ``direction`` of natural's frame (Y2, Y5)."""
    steps = _facing(params, empty, direction)
    jumps = _facing(params, enemy & steps, direction)
    # a piece facing an enemy faces no empty square: the ban never touches jumps
    if ban > 0 and (ban - 1) & 3 == direction:
        steps &= ~(_ONE << np.uint64(ban - 1 >> 2))
    return own & (steps | jumps)


@kernel(boolean(_P, _S))
def _can_act(params, state):  # type: ignore[no-untyped-def]
    """Whether the mover has a legal action (Y7)."""
    mover = np.int64(state[MOVER])
    if state[np.uint64(_RESERVE + mover)] > 0:
        return True
    own = _get_bits(state, _board_slot(mover))
    enemy = _get_bits(state, _board_slot(1 - mover))
    empty = _mask(params, _ALL_SQUARES) & ~(own | enemy)
    ban = np.int64(state[np.uint64(_BAN + mover)])
    forward = _movable(params, own, enemy, empty, ban, _FORWARD)
    backward = _movable(params, own, enemy, empty, ban, _BACKWARD)
    left = _movable(params, own, enemy, empty, ban, _LEFT)
    right = _movable(params, own, enemy, empty, ban, _RIGHT)
    return (forward | backward | left | right) != _ZERO


@kernel(int64(_P, uint64, int64, int64, int32[::1], int64))
def _list_bits(params, bits, table, first_action, out_actions, count):  # type: ignore[no-untyped-def]
    """Append ``first_action`` + square (by the bit table at ``table``) for each bit; return the new count."""
    while bits != _ZERO:
        lowest = bits & (~bits + _ONE)
        out_actions[count] = first_action + params[np.uint64(table) + (lowest * _DE_BRUIJN >> _58)]
        bits ^= lowest
        count += 1
    return count


@kernel(uint64(uint64))
def _mix(word):  # type: ignore[no-untyped-def]
    word = (word ^ word >> _32) * _KEY_FACTOR
    return word ^ word >> _29


@kernel(uint64(_S))
def _position_key(state):  # type: ignore[no-untyped-def]
    """Hash of what Y8 compares: board, reserves, bans, side to move."""
    rest = np.int64(state[MOVER]) | np.int64(state[_RESERVE]) << 1 | np.int64(state[_RESERVE + 1]) << 8
    rest |= np.int64(state[_BAN]) << 16 | np.int64(state[_BAN + 1]) << 32
    key = _mix(_get_bits(state, _board_slot(0)) + _KEY_SEED)
    key = _mix(key ^ _get_bits(state, _board_slot(1)))
    return _mix(key ^ np.uint64(rest))


@kernel(types.void(_S, _H))
def _record(state, history):  # type: ignore[no-untyped-def]
    """Add the position to the history and count its earlier occurrences in ``state`` (Y8)."""
    size = np.int64(history.shape[0])
    if size == 0:
        return
    key = _position_key(state)
    recorded = np.int64(state[_RECORDED])
    slot = recorded if recorded < size else recorded - size
    repeats = 0
    for back in range(4, min(recorded, size) + 1, 4):
        earlier = slot - back
        if earlier < 0:
            earlier += size
        if history[earlier] == key:
            repeats += 1
    history[slot] = key
    state[_REPEATS] = repeats
    state[_RECORDED] = recorded + 1 if recorded + 1 < 2 * size else size


@kernel(types.void(_S, int64, int64))
def _end(state, outcome, reason):  # type: ignore[no-untyped-def]
    state[OUTCOME] = outcome
    state[REASON] = reason
    state[PAYOFF] = 1 if outcome == NATURAL_WINS else -1 if outcome == BLACK_WINS else 0


@kernel(types.void(_P, _S))
def _judge(params, state):  # type: ignore[no-untyped-def]
    """End the game if it is over, the side to move having just come to his turn (Y6, Y7, Y8, Y9)."""
    if state[_ALIVE] == 0:
        _end(state, BLACK_WINS, _CAPTURES)
    elif state[_ALIVE + 1] == 0:
        _end(state, NATURAL_WINS, _CAPTURES)
    elif not _can_act(params, state):
        _end(state, NATURAL_WINS if state[MOVER] == 1 else BLACK_WINS, _BLOCKED)
    elif params[_REPETITION_LIMIT] > 0 and state[_REPEATS] + 1 >= params[_REPETITION_LIMIT]:
        _end(state, DRAW, _REPETITION)
    elif params[_QUIET_LIMIT] > 0 and state[_QUIET_STEPS] >= params[_QUIET_LIMIT]:
        _end(state, DRAW, _QUIET)
    elif state[_ALIVE] <= params[_FEW_PIECES] and state[_ALIVE + 1] <= params[_FEW_PIECES]:
        _end(state, DRAW, _FEW)
    elif params[_MAX_TURNS] > 0 and state[TURNS] >= params[_MAX_TURNS]:
        _end(state, TRUNCATED, _TURN_LIMIT)


@kernel(types.void(_P, _S, _H))
def _pass_turn(params, state, history):  # type: ignore[no-untyped-def]
    """Complete the turn: the other side comes to move, unless the game is over."""
    other = 1 - state[MOVER]
    state[MOVER] = other
    state[SEAT] = other
    if state[TURNS] < _SATURATED:
        state[TURNS] += 1
    _record(state, history)
    _judge(params, state)


@kernel(types.void(_S))
def _restart_clocks(state):  # type: ignore[no-untyped-def]
    """A placement or capture: no earlier position can come back, and the quiet steps start anew (Y8)."""
    state[_QUIET_STEPS] = 0
    state[_RECORDED] = 0
    state[_REPEATS] = 0


@kernel(types.void(_S, int64))
def _count_capture(state, loser):  # type: ignore[no-untyped-def]
    state[np.uint64(_ALIVE + loser)] -= 1
    state[MARGIN] = state[_ALIVE] - state[_ALIVE + 1]


@kernel(uint64(_S, uint64, int64, int64))
def _take(state, enemy, loser, square):  # type: ignore[no-untyped-def]
    """Remove the piece of colour ``loser`` on ``square`` with the ban that hung on it; return what is left on board."""
    enemy &= ~(_ONE << np.uint64(square))
    _set_bits(state, _board_slot(loser), enemy)
    if state[np.uint64(_BAN + loser)] - 1 >> 2 == square:
        state[np.uint64(_BAN + loser)] = 0
    _count_capture(state, loser)
    return enemy


@kernel(types.void(_S, int64, int64))
def _place(state, mover, square):  # type: ignore[no-untyped-def]
    slot = _board_slot(mover)
    _set_bits(state, slot, _get_bits(state, slot) | _ONE << np.uint64(square))
    state[np.uint64(_RESERVE + mover)] -= 1
    state[np.uint64(_BAN + mover)] = 0
    _restart_clocks(state)


@kernel(types.void(_P, _S, int64, int64, int64))
def _move(params, state, mover, square, direction):  # type: ignore[no-untyped-def]
    """Step or jump in ``direction``; the bonus is owed afterwards if enemies stay on the board (Y2, Y3, Y5)."""
    delta = np.int64(params[np.uint64(_DELTAS + direction)])
    target = square + delta
    own_slot = _board_slot(mover)
    own = _get_bits(state, own_slot)
    enemy = _get_bits(state, _board_slot(1 - mover))
    if enemy >> np.uint64(target) & _ONE == _ZERO:
        _set_bits(state, own_slot, own ^ (_ONE << np.uint64(square) | _ONE << np.uint64(target)))
        state[np.uint64(_BAN + mover)] = 1 + 4 * target + (direction ^ 1) if params[_BANS_RETURN] else 0
        if state[_QUIET_STEPS] < _SATURATED:
            state[_QUIET_STEPS] += 1
        return
    _set_bits(state, own_slot, own ^ (_ONE << np.uint64(square) | _ONE << np.uint64(target + delta)))
    state[np.uint64(_BAN + mover)] = 0
    _restart_clocks(state)
    if _take(state, enemy, 1 - mover, target) != _ZERO:
        state[_OWES_BONUS] = 1
    elif state[np.uint64(_RESERVE + 1 - mover)] > 0:
        state[np.uint64(_RESERVE + 1 - mover)] -= 1
        _count_capture(state, 1 - mover)


@kernel(types.void(_P, int64, int64, _S, _S))
def _view_ban(params, ban, colour, out_from, out_to):  # type: ignore[no-untyped-def]
    """Mark a banned step in the frame of ``colour``."""
    if ban == 0:
        return
    square = ban - 1 >> 2
    target = square + params[np.uint64(_DELTAS + (ban - 1 & 3))]
    if colour == 1:
        square = params[_SQUARES] - 1 - square
        target = params[_SQUARES] - 1 - target
    out_from[square] = 1
    out_to[target] = 1


# -- kernels in contract order -------------------------------------------------------------------------------------
@kernel(INITIAL)
def start_history(params, state, history):  # type: ignore[no-untyped-def]
    """Begin a new repetition history at ``state``, which counts as its first occurrence (Y8)."""
    state[_RECORDED] = 0
    state[_REPEATS] = 0
    _record(state, history)


@kernel(INITIAL)
def initial(params, state, history):  # type: ignore[no-untyped-def]
    """Write the start: an empty board and full reserves (Y1)."""
    state[:] = 0
    for colour in range(2):
        state[np.uint64(_RESERVE + colour)] = params[_PIECES]
        state[np.uint64(_ALIVE + colour)] = params[_PIECES]
    if params[_STARTS] == _STARTS_BLACK:
        state[MOVER] = 1
        state[SEAT] = 1
    elif params[_STARTS] == _STARTS_RANDOM:
        state[CHANCE] = _FIRST_PLAYER_DUE
    start_history(params, state, history)


@kernel(_FIVE_BOARDS(_P, _S))
def _choices(params, state):  # type: ignore[no-untyped-def]
    """Squares of the legal actions of each plane but the bonus, in natural's frame and directions (Y2, Y5)."""
    mover = np.int64(state[MOVER])
    enemy = _get_bits(state, _board_slot(1 - mover))
    own = _get_bits(state, _board_slot(mover))
    empty = _mask(params, _ALL_SQUARES) & ~(own | enemy)
    ban = np.int64(state[np.uint64(_BAN + mover)])
    place = empty if state[np.uint64(_RESERVE + mover)] > 0 else _ZERO
    forward = _movable(params, own, enemy, empty, ban, _FORWARD)
    backward = _movable(params, own, enemy, empty, ban, _BACKWARD)
    left = _movable(params, own, enemy, empty, ban, _LEFT)
    right = _movable(params, own, enemy, empty, ban, _RIGHT)
    return place, forward, backward, left, right


@kernel(LEGAL)
def legal(params, state, history, out_actions):  # type: ignore[no-untyped-def]
    """List the legal actions: the bonus while it is owed (Y3), else placements, steps and jumps (Y2, Y5)."""
    squares = np.int64(params[_SQUARES])
    mover = np.int64(state[MOVER])
    table = _BIT_TABLE + 64 * mover
    if state[_OWES_BONUS] != 0:
        enemy = _get_bits(state, _board_slot(1 - mover))
        return _list_bits(params, enemy, table, _BONUS_PLANE * squares, out_actions, 0)
    place, forward, backward, left, right = _choices(params, state)
    count = _list_bits(params, place, table, _PLACE * squares, out_actions, 0)
    # black's plane d + 1 is natural's direction d ^ 1
    count = _list_bits(params, forward, table, (1 + (_FORWARD ^ mover)) * squares, out_actions, count)
    count = _list_bits(params, backward, table, (1 + (_BACKWARD ^ mover)) * squares, out_actions, count)
    count = _list_bits(params, left, table, (1 + (_LEFT ^ mover)) * squares, out_actions, count)
    return _list_bits(params, right, table, (1 + (_RIGHT ^ mover)) * squares, out_actions, count)


@kernel(uint64(_P, uint64, uint64, uint64, int64))
def _jumpers(params, own, enemy, empty, direction):  # type: ignore[no-untyped-def]
    """Own pieces that may jump in ``direction`` of natural's frame (Y2)."""
    return own & _facing(params, enemy & _facing(params, empty, direction), direction)


@kernel(CAPTURES)
def captures(params, state, history, out_actions):  # type: ignore[no-untyped-def]
    """List the jumps, or while the bonus is owed its squares: first those of pieces that threaten to jump (Y2, Y3)."""
    squares, mover = np.int64(params[_SQUARES]), np.int64(state[MOVER])
    table = _BIT_TABLE + 64 * mover
    enemy = _get_bits(state, _board_slot(1 - mover))
    own = _get_bits(state, _board_slot(mover))
    empty = _mask(params, _ALL_SQUARES) & ~(own | enemy)
    count = np.int64(0)
    if state[_OWES_BONUS] != 0:
        threats = _ZERO
        for direction in range(4):
            threats |= _jumpers(params, enemy, own, empty, direction)
        count = _list_bits(params, threats, table, _BONUS_PLANE * squares, out_actions, count)
        return _list_bits(params, enemy & ~threats, table, _BONUS_PLANE * squares, out_actions, count)
    for direction in range(4):
        jumpers = _jumpers(params, own, enemy, empty, direction)
        count = _list_bits(params, jumpers, table, (1 + (direction ^ mover)) * squares, out_actions, count)
    return count


@kernel(int64(uint64))
def _count_ones(bits):  # type: ignore[no-untyped-def]
    bits = bits - (bits >> _ONE & _PAIRS)
    bits = (bits & _FOURS) + (bits >> _TWO & _FOURS)
    return np.int64((bits + (bits >> _4) & _EIGHTS) * _BYTES >> _56)


@kernel(SAMPLE)
def sample(params, state, history, word):  # type: ignore[no-untyped-def]
    """One of the legal actions, in the order of ``legal``, by the upper half of ``word``."""
    mover = np.int64(state[MOVER])
    if state[_OWES_BONUS] != 0:
        bits, plane = _get_bits(state, _board_slot(1 - mover)), np.int64(_BONUS_PLANE)
        index = np.int64((word >> _32) * np.uint64(_count_ones(bits)) >> _32)
    else:
        place, forward, backward, left, right = _choices(params, state)
        # How many actions there are up to the end of each plane.
        places = _count_ones(place)
        forwards = places + _count_ones(forward)
        backwards = forwards + _count_ones(backward)
        lefts = backwards + _count_ones(left)
        index = np.int64((word >> _32) * np.uint64(lefts + _count_ones(right)) >> _32)
        bits, plane, before = place, np.int64(_PLACE), np.int64(0)
        if index >= places:
            bits, plane, before = forward, 1 + (_FORWARD ^ mover), places
        if index >= forwards:
            bits, plane, before = backward, 1 + (_BACKWARD ^ mover), forwards
        if index >= backwards:
            bits, plane, before = left, 1 + (_LEFT ^ mover), backwards
        if index >= lefts:
            bits, plane, before = right, 1 + (_RIGHT ^ mover), lefts
        index -= before
    for _ in range(index):
        bits &= bits - _ONE
    lowest = bits & (~bits + _ONE)
    square = params[np.uint64(_BIT_TABLE + 64 * mover) + (lowest * _DE_BRUIJN >> _58)]
    return plane * params[_SQUARES] + square


@kernel(APPLY)
def apply(params, state, history, action):  # type: ignore[no-untyped-def]
    """Play a placement, step, jump or bonus (Y2, Y3); a jump that leaves enemies on the board keeps the turn."""
    squares = np.int64(params[_SQUARES])
    mover = np.int64(state[MOVER])
    plane = action * params[_PLANE_FACTOR] >> _PLANE_SHIFT
    square = action - plane * squares
    if mover == 1:
        square = squares - 1 - square
    if plane == _BONUS_PLANE:
        state[_OWES_BONUS] = 0
        _take(state, _get_bits(state, _board_slot(1 - mover)), 1 - mover, square)
    elif plane == _PLACE:
        _place(state, mover, square)
    else:
        _move(params, state, mover, square, plane - 1 ^ mover)
        if state[_OWES_BONUS] != 0:
            return
    _pass_turn(params, state, history)


@kernel(APPLY_CHANCE)
def apply_chance(params, state, history, index):  # type: ignore[no-untyped-def]
    """The first player is drawn: ``index`` 0 natural, 1 black (Y1)."""
    state[CHANCE] = 0
    state[MOVER] = index
    state[SEAT] = index
    start_history(params, state, history)


@kernel(VIEW)
def view(params, state, history, seat, out_sites, out_scalars):  # type: ignore[no-untyped-def]
    """The position as ``seat`` sees it: pieces, bans, reserves, captures, clocks and the bonus owed."""
    squares = np.int64(params[_SQUARES])
    colour = seat & 1
    own = _get_bits(state, _board_slot(colour))
    enemy = _get_bits(state, _board_slot(1 - colour))
    for square in range(squares):
        site = squares - 1 - square if colour == 1 else square
        out_sites[OWN, site] = np.int64(own >> np.uint64(square) & _ONE)
        out_sites[ENEMY, site] = np.int64(enemy >> np.uint64(square) & _ONE)
    _view_ban(params, np.int64(state[np.uint64(_BAN + colour)]), colour, out_sites[OWN_BAN_FROM], out_sites[OWN_BAN_TO])
    _view_ban(
        params,
        np.int64(state[np.uint64(_BAN + 1 - colour)]),
        colour,
        out_sites[ENEMY_BAN_FROM],
        out_sites[ENEMY_BAN_TO],
    )
    out_scalars[OWN_RESERVE] = state[np.uint64(_RESERVE + colour)]
    out_scalars[ENEMY_RESERVE] = state[np.uint64(_RESERVE + 1 - colour)]
    out_scalars[OWN_CAPTURES] = params[_PIECES] - state[np.uint64(_ALIVE + 1 - colour)]
    out_scalars[ENEMY_CAPTURES] = params[_PIECES] - state[np.uint64(_ALIVE + colour)]
    out_scalars[QUIET] = state[_QUIET_STEPS]
    out_scalars[REPETITION] = state[_REPEATS]
    out_scalars[BONUS] = state[_OWES_BONUS]
    out_scalars[MY_TURN] = state[OUTCOME] == RUNNING and state[SEAT] == seat
    out_scalars[NATURAL] = 1 - colour
    if params[_MAX_TURNS] > 0:
        out_scalars[TURN_COUNT] = state[TURNS]


@kernel(HEURISTIC)
def heuristic(params, state, history):  # type: ignore[no-untyped-def]
    """Natural's lead in pieces, board and reserve together, as a share of all pieces of a side."""
    return state[MARGIN] / (params[_PIECES] + 1.0)


# -- the record's small functions ----------------------------------------------------------------------------------
def layout(options: YoteOptions) -> BoardLayout:
    """The board as a grid, rank 1 at the bottom."""
    squares = range(options.rows * options.cols)
    cells = tuple((options.rows - 1 - square // options.cols, square % options.cols) for square in squares)
    names = tuple(_square_name(options, square) for square in squares)
    return BoardLayout(options.rows, options.cols, cells, names, "grid")


def num_actions(options: YoteOptions) -> int:
    """Six planes of squares."""
    return _PLANES * options.rows * options.cols


def history_size(options: YoteOptions) -> int:
    """How many hashes a history row holds (Y8)."""
    if options.repetition_limit == 0:
        return 0
    return options.quiet_limit + 1 if options.quiet_limit > 0 else _RING_SIZE


def chance(options: YoteOptions) -> tuple[ChanceKind, ...]:
    """The draw of the first player, if an option asks for it (Y1)."""
    return (ChanceKind("first player", (0, 1), (0.5, 0.5)),) if options.first_player == "random" else ()


def feature_scales(options: YoteOptions) -> dict[str, float]:
    """Largest value of each feature that ``view`` may set under these options."""
    scales = dict.fromkeys(("own", "enemy", "bonus", "my_turn", "natural"), 1.0)
    if options.return_ban == "immediate":
        scales |= dict.fromkeys(("own_ban_from", "own_ban_to", "enemy_ban_from", "enemy_ban_to"), 1.0)
    counted = ("own_reserve", "enemy_reserve", "own_captures", "enemy_captures")
    scales |= dict.fromkeys(counted, float(options.pieces))
    scales["quiet"] = float(options.quiet_limit or _SATURATED)
    if options.repetition_limit > 0:
        scales["repetition"] = float(options.repetition_limit - 1)
    if options.max_turns > 0:
        scales["turns"] = float(options.max_turns)
    return scales


def site_pieces(options: YoteOptions, state: State) -> list[str]:
    """``"o"``, ``"x"`` or ``""`` for each square."""
    natural, black = _boards(state)
    squares = range(options.rows * options.cols)
    return ["o" if natural >> square & 1 else "x" if black >> square & 1 else "" for square in squares]


def status(options: YoteOptions, state: State) -> dict[str, str]:
    """What stands beside the board: reserves, captures, quiet steps, banned steps, a bonus that is owed."""
    beside = {
        "natural reserve": str(state[_RESERVE]),
        "black reserve": str(state[_RESERVE + 1]),
        "natural captured": str(options.pieces - int(state[_ALIVE + 1])),
        "black captured": str(options.pieces - int(state[_ALIVE])),
        "quiet steps": str(state[_QUIET_STEPS]) + (f" of {options.quiet_limit}" if options.quiet_limit else ""),
    }
    for colour, side in enumerate(("natural", "black")):
        if state[_BAN + colour]:
            beside[f"{side} may not step"] = " -> ".join(_ban_squares(options, state, colour))
    if state[_OWES_BONUS]:
        beside["bonus"] = f"{'natural' if state[MOVER] == 0 else 'black'} removes one more piece"
    return beside


def board_text(options: YoteOptions, state: State) -> str:
    """The board for a terminal: ranks and files, the side to move, what stands beside the board."""
    pieces = site_pieces(options, state)
    lines = []
    for rank in range(options.rows - 1, -1, -1):
        row = pieces[rank * options.cols : (rank + 1) * options.cols]
        lines.append(f"{rank + 1}  " + " ".join(piece or "." for piece in row))
    lines.append("   " + " ".join("ABCDEFGH"[: options.cols]))
    lines.append(_turn_text(state))
    beside = status(options, state)
    for side, letter in (("natural", "o"), ("black", "x")):
        reserve, captured = beside.pop(f"{side} reserve"), beside.pop(f"{side} captured")
        lines.append(f"{side} ({letter}): reserve {reserve}, captured {captured}")
    lines += [f"{name}: {value}" for name, value in beside.items()]
    return "\n".join(lines)


def _turn_text(state: State) -> str:
    if state[OUTCOME] == RUNNING:
        if state[CHANCE]:
            return "first player to be drawn"
        return ("natural (o)", "black (x)")[state[MOVER]] + " to move"
    result = {NATURAL_WINS: "natural (o) wins", BLACK_WINS: "black (x) wins", DRAW: "draw", TRUNCATED: "stopped"}
    return f"{result[int(state[OUTCOME])]}: {_REASONS[state[REASON]]}"


def _boards(state: State) -> tuple[int, int]:
    """Bits of natural's and of black's pieces."""
    return int(_get_bits(state, _board_slot(0))), int(_get_bits(state, _board_slot(1)))


def _square_name(options: YoteOptions, square: int) -> str:
    rank, file = divmod(square, options.cols)
    return "ABCDEFGH"[file] + str(rank + 1)


def _ban_squares(options: YoteOptions, state: State, colour: int) -> tuple[str, str]:
    square, direction = divmod(int(state[_BAN + colour]) - 1, 4)
    target = square + (options.cols, -options.cols, -1, 1)[direction]
    return _square_name(options, square), _square_name(options, target)


# -- position text -------------------------------------------------------------------------------------------------
def format_position(options: YoteOptions, state: State) -> str:
    """``board side reserve reserve quiet ban ban bonus`` in one line; see RULES.md."""
    pieces = site_pieces(options, state)
    rows = []
    for rank in range(options.rows - 1, -1, -1):
        row = "".join(piece or " " for piece in pieces[rank * options.cols : (rank + 1) * options.cols])
        rows.append(re.sub(" +", lambda run: str(len(run.group())), row))
    side = "?" if state[CHANCE] else "ox"[state[MOVER]]
    bans = ["".join(_ban_squares(options, state, colour)) if state[_BAN + colour] else "-" for colour in range(2)]
    bonus = "bonus" if state[_OWES_BONUS] else "-"
    counts = f"{state[_RESERVE]} {state[_RESERVE + 1]} {state[_QUIET_STEPS]}"
    return f"{'/'.join(rows)} {side} {counts} {bans[0]} {bans[1]} {bonus}"


def parse_position(options: YoteOptions, text: str) -> State:
    """Read a position text into a fresh (26,) int16 state; one that is over is loaded as over.

    Raises:
        NotationError: the text cannot be read, or the position is impossible.
    """
    fields = text.split()
    if len(fields) != 8:
        raise NotationError(
            f"a Yote position has 8 fields (board, side to move, two reserves, quiet steps, two banned steps, bonus),"
            f" this one has {len(fields)}: {text[:200]!r}"
        )
    board, side, *counts = fields[:5]
    state = np.zeros(_STATE_SIZE, np.int16)
    for colour, squares in enumerate(_parse_board(options, board)):
        _put_pieces(options, state, colour, squares, counts[colour])
    state[MARGIN] = state[_ALIVE] - state[_ALIVE + 1]
    if state[_ALIVE] == 0 and state[_ALIVE + 1] == 0:
        raise NotationError("neither side has a piece left: both cannot have won")
    state[_QUIET_STEPS] = _parse_count(counts[2], "quiet steps", options.quiet_limit or _SATURATED)
    for colour in range(2):
        state[_BAN + colour] = _parse_ban(options, state, colour, fields[5 + colour])
    _put_side(options, state, side)
    _put_bonus(options, state, fields[7])
    if not state[_OWES_BONUS] and not state[CHANCE]:
        _judge(params(options), state)
    return state


def _parse_board(options: YoteOptions, text: str) -> tuple[list[int], list[int]]:
    """Squares of natural's and of black's pieces."""
    rows = text.split("/")
    if len(rows) != options.rows:
        raise NotationError(f"the board has {options.rows} rows, this text has {len(rows)}: {text[:200]!r}")
    found: tuple[list[int], list[int]] = ([], [])
    for rank, row in zip(range(options.rows - 1, -1, -1), rows, strict=True):
        file = 0
        for token in re.findall(r"[0-9]+|.", row, re.DOTALL):
            if token in ("o", "x"):
                found["ox".index(token)].append(rank * options.cols + file)
                file += 1
            elif re.fullmatch("[1-9][0-9]?", token):
                file += int(token)
            else:
                raise NotationError(f"rank {rank + 1} has {token[:20]!r}; a row is made of o, x and numbers from 1")
        if file != options.cols:
            raise NotationError(f"rank {rank + 1} has {file} squares, not {options.cols}: {row[:100]!r}")
    return found


def _put_pieces(options: YoteOptions, state: State, colour: int, squares: list[int], reserve: str) -> None:
    side = ("natural", "black")[colour]
    _set_bits(state, _board_slot(colour), np.uint64(sum(1 << square for square in squares)))
    state[_RESERVE + colour] = _parse_count(reserve, f"{side}'s reserve", options.pieces)
    state[_ALIVE + colour] = len(squares) + state[_RESERVE + colour]
    if state[_ALIVE + colour] > options.pieces:
        raise NotationError(
            f"{side} has {len(squares)} pieces on the board and {state[_RESERVE + colour]} in reserve,"
            f" more than {options.pieces}"
        )


def _parse_count(text: str, what: str, most: int) -> int:
    """A plain decimal number of at most five digits, at most ``most``."""
    if not re.fullmatch("0|[1-9][0-9]{0,4}", text) or int(text) > most:
        raise NotationError(f"{what} must be a number from 0 to {most}, not {text[:20]!r}")
    return int(text)


def _parse_square(options: YoteOptions, text: str) -> int:
    """Number of the square named ``text``, a letter and a digit of either case."""
    file, rank = "ABCDEFGH".find(text[0].upper()), int(text[1]) - 1
    if not (0 <= file < options.cols and 0 <= rank < options.rows):
        last = _square_name(options, options.rows * options.cols - 1)
        raise NotationError(f"there is no square {text.upper()}; the board goes from A1 to {last}")
    return rank * options.cols + file


def _parse_ban(options: YoteOptions, state: State, colour: int, text: str) -> int:
    """Code of a banned step such as ``C4C3``, 0 for ``-``."""
    if text == "-":
        return 0
    side, letter = (("natural", "o"), ("black", "x"))[colour]
    if not re.fullmatch("[A-H][1-8][A-H][1-8]", text):
        raise NotationError(f"{side}'s banned step must be two squares such as C4C3, or -, not {text[:20]!r}")
    if options.return_ban == "off":
        raise NotationError(f"{side}'s banned step must be -: the option return_ban is 'off'")
    square, target = _parse_square(options, text[:2]), _parse_square(options, text[2:])
    direction = _direction(options, square, target, 1)
    if direction is None:
        raise NotationError(f"{side}'s banned step {text} does not join two adjacent squares")
    pieces = site_pieces(options, state)
    if pieces[square] != letter:
        raise NotationError(f"{side} has no piece on {text[:2]} that could be banned from {text[2:]}")
    if pieces[target] == letter:
        raise NotationError(f"{side} cannot be banned from {text[2:]}, where a piece of his own stands")
    return 1 + 4 * square + direction


def _put_side(options: YoteOptions, state: State, text: str) -> None:
    if text == "?":
        untouched = state[_RESERVE] == state[_RESERVE + 1] == options.pieces and state[_QUIET_STEPS] == 0
        if options.first_player != "random" or not untouched:
            raise NotationError("the side to move is '?' only in the start position with first_player='random'")
        state[CHANCE] = _FIRST_PLAYER_DUE
    elif text in ("o", "x"):
        state[MOVER] = state[SEAT] = "ox".index(text)
    else:
        raise NotationError(f"the side to move must be o or x, not {text[:20]!r}")


def _put_bonus(options: YoteOptions, state: State, text: str) -> None:
    if text == "-":
        return
    if text != "bonus":
        raise NotationError(f"the last field must be 'bonus' or -, not {text[:20]!r}")
    mover = int(state[MOVER])
    boards = _boards(state)
    side, enemy = ("natural", "black") if mover == 0 else ("black", "natural")
    if boards[1 - mover] == 0:
        raise NotationError(f"no bonus can be owed: {enemy} has no piece on the board")
    if boards[mover] == 0:
        raise NotationError(f"no bonus can be owed: {side} has no piece on the board that could have jumped")
    if state[_ALIVE + 1 - mover] == options.pieces:
        raise NotationError(f"no bonus can be owed: none of {enemy}'s {options.pieces} pieces is missing")
    if state[_QUIET_STEPS] != 0:
        raise NotationError("quiet steps must be 0 while a bonus is owed")
    if state[_BAN + mover] != 0:
        raise NotationError(f"{side} has just jumped and has no banned step while the bonus is owed")
    state[_OWES_BONUS] = 1


# -- random positions ----------------------------------------------------------------------------------------------
def scatter(options: YoteOptions, rng: np.random.Generator, most: int) -> State:
    """Pieces on random squares and in reserve, at most ``most`` a side, or as few as make no draw (Y8).

    The numbers of pieces are the larger of two draws, since there are far more positions of many; half of the reserves
    are empty, as they are for most of a game. Steps are often banned, and sometimes a bonus is owed.
    """
    most = min(max(most, options.few_pieces_draw + 1), options.pieces)
    while True:
        state = _scattered(options, rng, most)
        if state[OUTCOME] == RUNNING:
            return state


def _scattered(options: YoteOptions, rng: np.random.Generator, most: int) -> State:
    """A random position, perhaps one that is over."""
    state = np.zeros(_STATE_SIZE, np.int16)
    alive = rng.integers(1, most + 1, (2, 2)).max(axis=0)
    reserves = rng.integers(0, alive + 1) * rng.integers(0, 2, 2)
    state[_RESERVE : _RESERVE + 2], state[_ALIVE : _ALIVE + 2] = reserves, alive
    mover, counts = int(rng.integers(2)), alive - reserves
    state[MOVER] = mover
    squares = rng.permutation(options.rows * options.cols)
    for colour, placed in enumerate((squares[: counts[0]], squares[counts[0] : counts.sum()])):
        _set_bits(state, _board_slot(colour), np.uint64(sum(1 << int(square) for square in placed)))
    may_owe = counts.min() > 0 and alive[1 - mover] < options.pieces
    state[_OWES_BONUS] = may_owe and rng.random() < _OWED_SHARE
    for colour in range(2):
        bans = _possible_bans(options, state, colour)
        if not (state[_OWES_BONUS] and colour == mover):
            state[_BAN + colour] = bans[rng.integers(len(bans))]
    return parse_position(options, format_position(options, state))


def _possible_bans(options: YoteOptions, state: State, colour: int) -> list[int]:
    """Codes of what may be a side's banned step (Y5): 0 for none, and steps to where no own piece stands."""
    bans = [0]
    own = _boards(state)[colour]
    for square in range(options.rows * options.cols * (options.return_ban == "immediate")):
        for direction in range(4):
            target = _neighbour(options, square, direction)
            if own >> square & 1 and target is not None and not own >> target & 1:
                bans.append(1 + 4 * square + direction)
    return bans


# -- move notation -------------------------------------------------------------------------------------------------
_SQUARE = r"[A-H][1-8]"
_MOVE_TEXT = re.compile(
    rf"\s*+(?:(?P<mark>[+*])\s*+(?P<on>{_SQUARE})|(?P<start>{_SQUARE})\s*+(?:->|→|-)?\s*+(?P<end>{_SQUARE}))"
    rf"(?:\s*x\s*(?P<captured>{_SQUARE}(?:\s*,\s*{_SQUARE})*))?\s*",
    re.IGNORECASE | re.ASCII,
)


@functools.lru_cache(maxsize=32)
def _move_texts(options: YoteOptions) -> tuple[list[tuple[str, str, int]], ...]:
    """For natural and black a triple for each action; not to be written to.

    Its notation when it is no jump, when it is one, and the bit of the square where an enemy makes it one. A text is
    empty where the move would leave the board.
    """
    actions = range(num_actions(options))
    return tuple([_texts_of(options, colour, action) for action in actions] for colour in range(2))


def _texts_of(options: YoteOptions, mover: int, action: int) -> tuple[str, str, int]:
    squares = options.rows * options.cols
    plane, square = divmod(action, squares)
    if mover == 1:
        square = squares - 1 - square
    name = _square_name(options, square)
    if plane in (_PLACE, _BONUS_PLANE):
        return (f"+{name}" if plane == _PLACE else f"* {name}"), "", 0
    direction = (plane - 1) ^ mover
    target = _neighbour(options, square, direction)
    if target is None:
        return "", "", 0
    over = _square_name(options, target)
    landing = _neighbour(options, target, direction)
    jump = "" if landing is None else f"{name} -> {_square_name(options, landing)} x {over}"
    return f"{name} -> {over}", jump, 1 << target


def format_actions(options: YoteOptions, state: State, actions: Sequence[int]) -> list[str]:
    """``+C3``, ``C3 -> C4``, ``C3 -> E3 x D3`` or ``* F1`` for each of the legal ``actions``."""
    mover = int(state[MOVER])
    texts = _move_texts(options)[mover]
    enemy = int(_get_bits(state, _board_slot(1 - mover)))
    return [jump if enemy & over else plain for plain, jump, over in [texts[action] for action in actions]]


def parse_action(options: YoteOptions, state: State, text: str) -> int:
    """Action id of a move in notation; also ``C3-C4``, ``c3c4``, ``C3 → C4`` and jumps without their capture.

    Raises:
        NotationError: the text cannot be read.
        IllegalMoveError: no step or jump goes there, or the capture named is not the one the move makes.
    """
    match = _MOVE_TEXT.fullmatch(text)
    if match is None:
        raise NotationError(f"{text[:60]!r} is no Yote move; write +C3, C3 -> C4, C3 -> E3 x D3 or * F1")
    taken: list[int] = []
    named = [_parse_square(options, name.strip()) for name in (match["captured"] or "").split(",") if name]
    squares, mover = options.rows * options.cols, int(state[MOVER])
    if match["mark"]:
        plane = _PLACE if match["mark"] == "+" else _BONUS_PLANE
        square = _parse_square(options, match["on"])
    else:
        square = _parse_square(options, match["start"])
        direction, taken = _read_move(options, state, square, _parse_square(options, match["end"]))
        plane = 1 + (direction ^ mover)
    if named and named != taken:
        truth = "x " + _square_name(options, taken[0]) if taken else "no capture by a jump"
        raise IllegalMoveError(f"{text.strip()[:60]!r} names the wrong capture; the move makes {truth}")
    return plane * squares + (squares - 1 - square if mover == 1 else square)


def _read_move(options: YoteOptions, state: State, square: int, end: int) -> tuple[int, list[int]]:
    """Direction in natural's frame and captured squares of the step or jump that goes from ``square`` to ``end``."""
    move = f"{_square_name(options, square)} -> {_square_name(options, end)}"
    pieces = site_pieces(options, state)
    direction = _direction(options, square, end, 1)
    if direction is not None:
        if pieces[end]:
            raise IllegalMoveError(f"{move} is not possible: {_square_name(options, end)} is occupied")
        return direction, []
    direction = _direction(options, square, end, 2)
    if direction is None:
        raise IllegalMoveError(f"{move} is neither a step to an adjacent square nor a jump over one")
    middle = (square + end) // 2
    if pieces[middle] != "xo"[state[MOVER]]:
        raise IllegalMoveError(f"{move} is no jump: there is no enemy on {_square_name(options, middle)}")
    return direction, [middle]


def _direction(options: YoteOptions, square: int, end: int, distance: int) -> int | None:
    """Direction in natural's frame in which ``end`` lies exactly ``distance`` squares away, None if in none."""
    (rank, file), (end_rank, end_file) = divmod(square, options.cols), divmod(end, options.cols)
    offsets = ((distance, 0), (-distance, 0), (0, -distance), (0, distance))
    offset = (end_rank - rank, end_file - file)
    return offsets.index(offset) if offset in offsets else None


def _neighbour(options: YoteOptions, square: int, direction: int) -> int | None:
    """The adjacent square in ``direction`` of natural's frame, None beyond the edge."""
    rank, file = divmod(square, options.cols)
    rank += (1, -1, 0, 0)[direction]
    file += (0, 0, -1, 1)[direction]
    on_board = 0 <= rank < options.rows and 0 <= file < options.cols
    return rank * options.cols + file if on_board else None


def _mirror(options: YoteOptions) -> Mirror:
    """Files exchanged, and the moves to the left and to the right."""
    squares = options.rows * options.cols
    sites = np.arange(squares).reshape(options.rows, options.cols)[:, ::-1].ravel()
    planes = np.array([_PLACE, 1, 2, 4, 3, _BONUS_PLANE])
    return sites, (planes[:, None] * squares + sites).ravel()


def _cells(options: YoteOptions) -> PositionCells:
    """Boards as bits, reserves as hands; the bans tell positions apart too."""
    squares = np.arange(options.rows * options.cols, dtype=np.int32)
    cells = _BOARD + squares // 16
    return PositionCells(
        cells=np.stack([cells, cells + _BOARD_CELLS]),
        bits=np.stack([squares % 16, squares % 16]),
        turned=squares[::-1].copy(),
        most=2 * options.pieces,
        others=(_RESERVE, _RESERVE + 1, _BAN, _BAN + 1, _OWES_BONUS),
        clocks=((_QUIET_STEPS, options.quiet_limit), (TURNS, options.max_turns)),
        repeats=_REPEATS if options.repetition_limit else None,
        hands=(_RESERVE, _RESERVE + 1),
        hand_size=min(options.pieces, 16),
        owed=_OWES_BONUS,
    )


def _turn(options: YoteOptions) -> Mirror | None:
    """Of a square board: forward becomes left, left backward, and so on."""
    if options.rows != options.cols:
        return None
    squares = options.rows * options.cols
    sites = turned_sites(options.rows)
    planes = np.array([_PLACE, 3, 4, 2, 1, _BONUS_PLANE])
    return sites, (planes[:, None] * squares + sites).ravel()


RULES = GameRules(
    name="yote",
    title="Yote",
    version=1,
    source="box rulebook; draw limits after petteia.fr",
    variants={
        "box": YoteOptions(),
        "twelve": YoteOptions(pieces=12, few_pieces_draw=3),
        "mini": YoteOptions(rows=3, cols=3, pieces=3),
    },
    variant_notes={
        "box": "6 x 5 squares, 8 pieces a side: the box rulebook",
        "twelve": "12 pieces a side, drawn when both have 3 or fewer: the widespread public rule",
        "mini": "3 x 3 squares, 3 pieces a side: for exact solving",
    },
    reasons=_REASONS,
    layout=layout,
    num_actions=num_actions,
    num_seats=lambda options: 2,
    state_size=lambda options: _STATE_SIZE,
    history_size=history_size,
    params=params,
    chance=chance,
    margin_scale=lambda options: options.pieces,
    feature_scales=feature_scales,
    kernels=Kernels(initial, legal, apply, apply_chance, view, heuristic, sample, captures),
    format_position=format_position,
    parse_position=parse_position,
    start_history=start_history,
    format_actions=format_actions,
    parse_action=parse_action,
    throw=lambda options, state: None,
    site_pieces=site_pieces,
    status=status,
    board_text=board_text,
    mirror=_mirror,
    cells=_cells,
    turn=_turn,
    scatter=scatter,
)
