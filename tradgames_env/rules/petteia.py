"""Petteia, the Greek board game of custodial capture (also Polis; the Roman relative is Latrunculi).

Sources: the box rulebook (S1), the rulebook with the 8x12 board and optional rules (S2), the petteia.fr sheet (S3).
The rules are P1 to P20 of RULES.md; what it leaves open is decided here (D):

P1   rank 1 is natural's row; natural has colour 0 and the letter ``o``, black colour 1 and ``x``.
P2   ``first_player="random"`` is a chance node of values 0 (natural) and 1 (black); the text shows ``?`` so long.
P4   the square a piece leaves can never be the far end of its own frame: every square up to its goal was empty.
P9   captures are told from the stones missing; a text with more than ``capture_target + 2`` missing is impossible.
P11  positions are compared by a 62-bit hash of pieces, leaders and side to move. Captures make earlier positions
     unreachable, so the history restarts there. With ``quiet_limit=0`` it is a ring: repetitions of positions more
     than 2,048 moves back are forgotten.
P13  capture target, blocked opponent, repetition, quiet moves, ``max_turns``.
P14  an ending by P11 or P12 with unequal captures has the reason "stalled"; with equal ones it keeps its own reason.
P15  with ``die_limit``: forced among the captures that the die allows.
P16  the die is thrown when the turn has passed, after every ending was judged. The text shows ``-`` while it is due.
P17  one throw for each captured piece follows the capturing move; the turn passes, and the game ends, after the last
     of them. Neither the balance nor throws still due are in the position text: a loaded position starts at 0.
     ``reward="stakes"`` pays the balance at every ending, ``max_turns`` too: those coins have changed hands.
P18  either neighbour of the corner may be the leader.
P19  leaders are neither counted nor captured, and a frame around one has no effect.
P20  ``max_turns`` counts the moves of both sides.

Sites, in natural's frame and with an 8x8 board::

    8 | 56 57 58 59 60 61 62 63      black's frame is the board turned by 180 degrees:
    7 | 48 49 50 51 52 53 54 55      his site i is natural's site 63 - i
    .          ...
    2 |  8  9 10 11 12 13 14 15
    1 |  0  1  2  3  4  5  6  7
         A  B  C  D  E  F  G  H

An action, in the mover's frame, is ``plane * squares + from_site``: ``rows - 1`` planes of moves to the other ranks in
ascending order, then ``cols - 1`` planes of moves to the other files. So the planes that one piece can use along one
line are neighbours, from its lowest goal on.

State cells after the header:

======== ==============================================================================================
8        moves in a row without a capture, saturating
9, 10    captures made by natural, by black
11, 12   leaders of natural, of black: 16 * rank + file (0 without the option)
13       the die shown for this turn, 0 if none
14       coins natural has won (negative: lost)
15       stake throws due
16       earlier occurrences of this position
17, 18   entries in the history; where the next one goes
19..     bit masks of the pieces on each line: natural's ranks and files, then black's ranks and files
======== ==============================================================================================

Empty cells follow the ranks and the files of each side up to a multiple of four: four lines are a word of 64 bits.
"""

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    BALANCE,
    BLACK_WINS,
    CHANCE,
    DIE,
    DRAW,
    ENEMY,
    ENEMY_CAPTURES,
    ENEMY_MARK,
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
    OWN_MARK,
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
class PetteiaOptions(Options):
    """Options of Petteia; the defaults are the box rules."""

    rows: int = 8
    """Ranks of the board, 4 to 12 (P1)."""
    cols: int = 8
    """Files of the board, 4 to 12 (P1)."""
    first_player: str = "natural"
    """Who starts: ``natural``, ``black`` or ``random`` (P2)."""
    capture_target: int = 7
    """Captures that win, at most the ``cols * stone_rows`` stones of a side (P9)."""
    repetition_limit: int = 3
    """Draw at this occurrence of a position, 0 = off, otherwise 2 to 100 (P11)."""
    quiet_limit: int = 100
    """Draw after this many moves in a row without a capture, 0 = off, at most 30,000 (P12)."""
    stalled_result: str = "draw"
    """What P11 and P12 give: ``draw``, or ``most_captures`` to let more captures win (P14)."""
    forced_capture: bool = False
    """A player able to capture must (P15)."""
    die_limit: int = 0
    """Faces of the die that limits how far a piece moves, 0 = off, at most 20 (P16)."""
    stake_die: int = 0
    """Faces of the die thrown for the coins of each captured piece, 0 = off, at most 20 (P17)."""
    reward: str = "result"
    """Terminal reward: ``result`` (+1, 0, -1) or ``stakes``, the balance of coins (P17)."""
    corner_capture: bool = False
    """A stone in a corner is taken by occupying both its neighbours (P18)."""
    leader: bool = False
    """Each side also has a leader, who cannot be captured (P19)."""
    stone_rows: int = 1
    """Rows each side fills with stones, 1 or 2 (P19)."""
    max_turns: int = 0
    """Moves of both sides after which the game is truncated, 0 = off, at most 30,000 (P20)."""

    @property
    def stones(self) -> int:
        """Stones of each side at the start."""
        return self.cols * self.stone_rows

    @property
    def squares(self) -> int:
        """Squares of the board."""
        return self.rows * self.cols

    @property
    def most_captures(self) -> int:
        """Captures one side can reach: the last move may take three at once (P5)."""
        return min(self.stones, self.capture_target + 2)

    def __post_init__(self) -> None:
        check_range(self, "rows", 4, 12)
        check_range(self, "cols", 4, 12)
        check_choice(self, "first_player", ("natural", "black", "random"))
        check_range(self, "stone_rows", 1, 2)
        check_range(self, "capture_target", 1, 24)
        check_range(self, "repetition_limit", 0, 100)
        check_range(self, "quiet_limit", 0, 30_000)
        check_choice(self, "stalled_result", ("draw", "most_captures"))
        check_choice(self, "reward", ("result", "stakes"))
        for name in ("forced_capture", "corner_capture", "leader"):
            check_choice(self, name, (False, True))
        check_range(self, "die_limit", 0, 20)
        check_range(self, "stake_die", 0, 20)
        check_range(self, "max_turns", 0, 30_000)
        self._check_contradictions()

    def _check_contradictions(self) -> None:
        if self.capture_target > self.stones:
            raise OptionError(
                f"option 'capture_target' = {self.capture_target} is more than the {self.stones} stones of a side "
                f"('cols' x 'stone_rows')"
            )
        needed = max(2 * (self.stone_rows + self.leader), 2 * self.stone_rows + 1)
        if self.rows < needed:
            raise OptionError(
                f"option 'rows' = {self.rows} leaves no room between the armies: 'stone_rows' = {self.stone_rows} and "
                f"'leader' = {self.leader} need at least {needed}"
            )
        if self.repetition_limit == 1:
            raise OptionError("option 'repetition_limit' must be 0 (off) or 2 to 100: at 1 no game would begin")
        if self.reward == "stakes" and self.stake_die == 0:
            raise OptionError("option 'reward' = 'stakes' needs 'stake_die': without it no coins are paid")


# -- constants ---------------------------------------------------------------------------------------------------
QUIET_MOVES = HEADER_SIZE
CAPTURES = HEADER_SIZE + 1
LEADERS = HEADER_SIZE + 3
DIE_SHOWN = HEADER_SIZE + 5
COINS = HEADER_SIZE + 6
STAKES_DUE = HEADER_SIZE + 7
REPEATS = HEADER_SIZE + 8
FILLED = HEADER_SIZE + 9
NEXT = HEADER_SIZE + 10
LINES = HEADER_SIZE + 11

REASONS = ("", "captures", "blocked", "repetition", "quiet", "stalled", "max_turns")
BY_CAPTURES, BY_BLOCK, BY_REPETITION, BY_QUIET, BY_STALLING, BY_MAX_TURNS = range(1, len(REASONS))

_RING_SIZE = 2048
_BLOCK = 8
"""Entries of the history compared at once; half a history is a multiple of it."""
_PAIRS, _FOURS, _EIGHTS = (np.uint64(0x0101010101010101 * n) for n in (0x55, 0x33, 0x0F))
_BYTES = np.uint64(0x0101010101010101)
_COUNTER_MAX = 32_767
_FILES = "ABCDEFGHIJKL"

# Params: option values, then where each table begins.
(
    ROWS,
    COLS,
    TARGET,
    REPETITION_LIMIT,
    QUIET_LIMIT,
    MOST_CAPTURES_WIN,
    FORCED,
    PAY_STAKES,
    CORNERS,
    HAS_LEADERS,
    MAX_TURNS,
    FIRST_KIND,
    DIE_KIND,
    STAKE_KIND,
    NUM_ACTIONS,
    FILE_LINES,
    SIDE_LINES,
    BOARDS,
    RANK_MOVES,
    FILE_MOVES,
    DECODED,
    KEYS,
    LEADER_KEYS,
    START,
    PARAMS_HEAD,
) = range(25)


# -- tables --------------------------------------------------------------------------------------------------------
def _board_words(options: PetteiaOptions) -> NDArray[np.int32]:
    """(2 * words,) the squares of each word of four lines, ranks first, as two halves of 31 bits; see ``_reached``."""
    halves = []
    for lines, length in ((options.rows, options.cols), (options.cols, options.rows)):
        for first in range(0, lines, 4):
            word = sum(((1 << length) - 1) << 16 * line for line in range(min(4, lines - first)))
            halves += [word >> 31, word & 0x7FFFFFFF]
    return np.array(halves, np.int32)


def _line_moves(length: int) -> NDArray[np.int32]:
    """(length * 2**length,) moves of a piece on square s of a line with occupancy occ, at ``(s << length) + occ``.

    An entry packs three numbers of four bits: how many squares it can reach, the first plane it uses in natural's
    frame, and in black's. Goals ``low..high`` without s are the planes ``low..high - 1``.
    """
    table = np.zeros((length, 1 << length), np.int32)
    occupied = (np.arange(1 << length)[:, None] >> np.arange(length)) & 1
    for square in range(length):
        low, high = np.full(1 << length, square), np.full(1 << length, square)
        for goals, bound in ((range(square - 1, -1, -1), low), (range(square + 1, length), high)):
            is_open = np.ones(1 << length, bool)
            for goal in goals:
                is_open &= occupied[:, goal] == 0
                bound[is_open] = goal
        table[square] = (high - low) | low << 4 | (length - 1 - high) << 8
    return table.ravel()


def _decoded_actions(options: PetteiaOptions) -> NDArray[np.int32]:
    """(2 * actions,) what each action of natural, then of black, means on the board.

    Four bits each, lowest first: rank and file it leaves, rank and file of its goal.
    """
    rows, cols, squares = options.rows, options.cols, options.squares
    table = np.zeros((2, _num_actions(options)), np.int32)
    for action in range(table.shape[1]):
        plane, site = divmod(action, squares)
        rank, file = divmod(site, cols)
        to_rank, to_file = rank, file
        if plane < rows - 1:
            to_rank = plane + (plane >= rank)
        else:
            to_file = plane - (rows - 1)
            to_file += to_file >= file
        table[0, action] = rank | file << 4 | to_rank << 8 | to_file << 12
        turned = (rows - 1 - rank, cols - 1 - file, rows - 1 - to_rank, cols - 1 - to_file)
        table[1, action] = turned[0] | turned[1] << 4 | turned[2] << 8 | turned[3] << 12
    return table.ravel()


def _hash_keys(count: int, seed: int) -> NDArray[np.int32]:
    """(2 * count,) random keys of 62 bits, each as two halves of 31 bits; splitmix64 from ``seed``."""
    halves = []
    for index in range(1, count + 1):
        word = (seed + index * 0x9E3779B97F4A7C15) % 2**64
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        word ^= word >> 31
        halves += [word >> 33, word & 0x7FFFFFFF]
    return np.array(halves, np.int32)


def _start_state(options: PetteiaOptions) -> State:
    """State row of the start position (P1, P2, P19); the history is not begun."""
    rows, cols = options.rows, options.cols
    state = np.zeros(_state_size(options), np.int16)
    first, die, _ = _chance_kinds(options)
    state[MOVER] = state[SEAT] = options.first_player == "black"
    state[CHANCE] = first or die
    for rank in range(options.stone_rows):
        for file in range(cols):
            _put_piece(options, state, 0, rank, file)
            _put_piece(options, state, 1, rows - 1 - rank, file)
    if options.leader:
        file = (cols - 1) // 2
        for colour, rank, own_file in (
            (0, options.stone_rows, file),
            (1, rows - 1 - options.stone_rows, cols - 1 - file),
        ):
            _put_piece(options, state, colour, rank, own_file)
            state[LEADERS + colour] = rank << 4 | own_file
    return state


def _file_lines(options: PetteiaOptions) -> int:
    """Where a side's files begin among its lines, behind the words of its ranks."""
    return (options.rows + 3) // 4 * 4


def _side_lines(options: PetteiaOptions) -> int:
    """Cells for the lines of one side."""
    return _file_lines(options) + (options.cols + 3) // 4 * 4


def _put_piece(options: PetteiaOptions, state: State, colour: int, rank: int, file: int) -> None:
    line = LINES + colour * _side_lines(options)
    state[line + rank] |= 1 << file
    state[line + _file_lines(options) + file] |= 1 << rank


def _chance_kinds(options: PetteiaOptions) -> tuple[int, int, int]:
    """Numbers of the kinds "first player", "die" and "stake" in ``chance(options)``; 0 for one not in use."""
    first = int(options.first_player == "random")
    die = first + 1 if options.die_limit else 0
    stake = max(first, die) + 1 if options.stake_die else 0
    return first, die, stake


@functools.lru_cache(maxsize=32)
def _shared_params(options: PetteiaOptions) -> Params:
    """Params of the options, for the text functions; not to be written to."""
    head = np.zeros(PARAMS_HEAD, np.int32)
    head[ROWS], head[COLS], head[NUM_ACTIONS] = options.rows, options.cols, _num_actions(options)
    head[FILE_LINES], head[SIDE_LINES] = _file_lines(options), _side_lines(options)
    head[TARGET] = options.capture_target
    head[REPETITION_LIMIT], head[QUIET_LIMIT] = options.repetition_limit, options.quiet_limit
    head[MOST_CAPTURES_WIN] = options.stalled_result == "most_captures"
    head[FORCED], head[CORNERS], head[HAS_LEADERS] = options.forced_capture, options.corner_capture, options.leader
    head[PAY_STAKES] = options.reward == "stakes"
    head[MAX_TURNS] = options.max_turns
    head[FIRST_KIND], head[DIE_KIND], head[STAKE_KIND] = _chance_kinds(options)
    tables = {
        BOARDS: _board_words(options),
        RANK_MOVES: _line_moves(options.cols),
        FILE_MOVES: _line_moves(options.rows) if options.rows != options.cols else np.zeros(0, np.int32),
        DECODED: _decoded_actions(options),
        KEYS: _hash_keys(2 * options.squares + 1, seed=1),
        LEADER_KEYS: _hash_keys(2 * options.squares, seed=2),
        START: _start_state(options).astype(np.int32),
    }
    offset = PARAMS_HEAD
    for slot, table in tables.items():
        head[slot] = offset
        offset += len(table)
    if options.rows == options.cols:
        head[FILE_MOVES] = head[RANK_MOVES]
    return np.concatenate([head, *tables.values()])


# -- kernels -------------------------------------------------------------------------------------------------------
# In contract order, each after the helpers it calls: kernels with explicit signatures compile when they are defined.
# Unsigned indices spare numba's check for negative ones, which costs a third of the speed in the inner loops.
_PARAMS, _STATE, _HISTORY = int32[::1], int16[::1], uint64[::1]
_PAIR: Any = types.UniTuple(uint64, 2)  # type: ignore[no-untyped-call]
_WORDS: Any = types.UniTuple(uint64, 3)  # type: ignore[no-untyped-call]
_ZERO, _ONE, _2, _3, _4, _8, _15, _16 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 8, 15, 16))
_31, _32, _48, _56 = (np.uint64(n) for n in (31, 32, 48, 56))
_LINE, _TEN = np.uint64(0xFFFF), np.uint64(0x3FF)
_FIRSTS, _ENDS = (np.uint64(sum(1 << 10 * word + bit for word in range(6))) for bit in (0, 9))


@kernel(uint64(_PARAMS, int64))
def _key(params, index):  # type: ignore[no-untyped-def]
    """The 62-bit key whose halves lie at ``params[index]``."""
    return (np.uint64(params[np.uint64(index)]) << _31) | np.uint64(params[np.uint64(index + 1)])


@kernel(uint64(_PARAMS, _STATE))
def _position_hash(params, state):  # type: ignore[no-untyped-def]
    """Hash of pieces, leaders and side to move (P11): the keys of all that is there, combined by xor."""
    rows, cols = np.int64(params[ROWS]), np.int64(params[COLS])
    squares = rows * cols
    total = np.uint64(0)
    for colour in range(2):
        line = LINES + colour * params[SIDE_LINES]
        for site in range(squares):
            if (state[np.uint64(line + site // cols)] >> (site % cols)) & 1:
                total ^= _key(params, params[KEYS] + 2 * (colour * squares + site))
        if params[HAS_LEADERS]:
            leader = np.int64(state[np.uint64(LEADERS + colour)])
            leader_site = (leader >> 4) * cols + (leader & 15)
            total ^= _key(params, params[LEADER_KEYS] + 2 * (colour * squares + leader_site))
    if state[MOVER] == 1:
        total ^= _key(params, params[KEYS] + 4 * squares)
    return total


@kernel(INITIAL)
def start_history(params, state, history):  # type: ignore[no-untyped-def]
    """Begin the repetition history at this position, as its first occurrence (P11)."""
    state[REPEATS] = 0
    state[FILLED] = 0
    state[NEXT] = 0
    if params[REPETITION_LIMIT] > 0:
        history[0] = _position_hash(params, state)
        state[FILLED] = 1
        state[NEXT] = 1


@kernel(INITIAL)
def initial(params, state, history):  # type: ignore[no-untyped-def]
    """Write the start position (P1, P2, P19)."""
    start = params[START]
    for i in range(state.shape[0]):
        state[i] = params[np.uint64(start + i)]
    start_history(params, state, history)


# A word holds four lines, 16 bits each: ranks first, then files.
@kernel(uint64(_STATE, int64), forceinline=True)
def _four_lines(state, cell):  # type: ignore[no-untyped-def]
    """The word of the four lines from ``cell`` on."""
    at = np.uint64(cell)
    low = np.uint64(np.uint16(state[at])) | np.uint64(np.uint16(state[at + _ONE])) << _16
    high = np.uint64(np.uint16(state[at + _2])) << _32 | np.uint64(np.uint16(state[at + _3])) << _48
    return low | high


@kernel(_PAIR(_PARAMS, _STATE, int64, int64), forceinline=True)
def _own_and_empty(params, state, colour, word):  # type: ignore[no-untyped-def]
    """The pieces of ``colour`` and the empty squares on a word."""
    side = np.int64(params[SIDE_LINES])
    own = _four_lines(state, LINES + colour * side + 4 * word)
    enemy = _four_lines(state, LINES + (1 - colour) * side + 4 * word)
    return own, _key(params, np.int64(params[BOARDS]) + 2 * word) & ~(own | enemy)


@kernel(uint64(uint64), forceinline=True)
def _count_ones(bits):  # type: ignore[no-untyped-def]
    """Number of ones; compiled to one instruction where the machine has it."""
    bits = bits - ((bits >> _ONE) & _PAIRS)
    bits = (bits & _FOURS) + ((bits >> _2) & _FOURS)
    return (((bits + (bits >> _4)) & _EIGHTS) * _BYTES) >> _56


@kernel(int64(uint64), forceinline=True)
def _lowest_place(bits):  # type: ignore[no-untyped-def]
    """Index of the lowest one; one instruction where the machine has it."""
    return np.int64(_count_ones(~bits & (bits - _ONE)))


@kernel(int64(_PARAMS, _STATE, int64), forceinline=True)
def _pieces(params, state, line):  # type: ignore[no-untyped-def]
    """The pieces of both sides on a line."""
    return np.int64(state[np.uint64(LINES + line)] | state[np.uint64(LINES + params[SIDE_LINES] + line)])


@kernel(int64(int32[::1], int64, int64, int64, int64, int64), forceinline=True)
def _write_actions(out_actions, count, first, number, step, width):  # type: ignore[no-untyped-def]
    """Append ``number`` actions ``first``, ``first + step``, ...; return the new count.

    ``width`` are always written, by vector stores and without a branch that depends on the position. The surplus is
    overwritten or lies behind the list, where there is room: a side never has pieces on more than half the squares.
    """
    for i in range(width):
        out_actions[np.uint64(count + i)] = first + i * step
    return count + number


@kernel(int64(int64, int64, int64, int64))
def _within_die(entry, first, square, die):  # type: ignore[no-untyped-def]
    """Cut moves of a line to at most ``die`` squares (P16): first plane and number, packed as 16 * first + number."""
    last = min(first + (entry & 15), square + die)
    first = max(first, square - die)
    return 16 * first + last - first


@kernel(int64(_PARAMS, _STATE, int32[::1]), forceinline=True)
def _list_moves(params, state, out_actions):  # type: ignore[no-untyped-def]
    """List the rook moves (P3) of the mover, no longer than the die allows (P16); return their number."""
    rows, cols = np.int64(params[ROWS]), np.int64(params[COLS])
    squares = rows * cols
    mover, die = np.int64(state[MOVER]), np.int64(state[DIE_SHOWN])
    files = np.int64(params[FILE_LINES])
    rank_moves, file_moves = np.int64(params[RANK_MOVES]), np.int64(params[FILE_MOVES])
    shift, width = 4 + 4 * mover, (max(rows, cols) + 6) & ~7
    corner, turn = (squares - 1, -1) if mover == 1 else (0, 1)
    count = np.int64(0)
    for word in range(files >> 2):
        left, _ = _own_and_empty(params, state, mover, word)
        while left != 0:  # piece by piece, not rank by rank: how many stand on a rank cannot be predicted
            place = _lowest_place(left)
            left &= left - _ONE
            rank, file = 4 * word + (place >> 4), place & 15
            vertical = np.int64(params[np.uint64(file_moves + (rank << rows) + _pieces(params, state, files + file))])
            horizontal = np.int64(params[np.uint64(rank_moves + (file << cols) + _pieces(params, state, rank))])
            up, across = (vertical >> shift) & 15, (horizontal >> shift) & 15
            if die > 0:
                vertical = _within_die(vertical, up, rows - 1 - rank if mover == 1 else rank, die)
                horizontal = _within_die(horizontal, across, cols - 1 - file if mover == 1 else file, die)
                up, across = vertical >> 4, horizontal >> 4
            site = corner + turn * (rank * cols + file)
            count = _write_actions(out_actions, count, up * squares + site, vertical & 15, squares, width)
            across += rows - 1
            count = _write_actions(out_actions, count, across * squares + site, horizontal & 15, squares, width)
    return count


@kernel(int64(int64, int64, int64))
def _corner_bits(beside, square, length):  # type: ignore[no-untyped-def]
    """Corner captures (P18) at the low and the high end of an edge line, for a piece arriving on ``square`` of it.

    ``beside`` has a bit where an enemy stone of the edge line has a piece of the mover next to it, off the edge.
    """
    low = beside & 1 if square == 1 else 0
    high = (beside >> (length - 1)) & 1 if square == length - 2 else 0
    return low | high << 1


@kernel(int64(_PARAMS, _STATE, int64, int64, int64), forceinline=True)
def _capture_bits(params, state, mover, rank, file):  # type: ignore[no-untyped-def]
    """In which directions a piece of ``mover`` arriving here captures its neighbour (P4, P5, P18).

    Bit 0 left, 1 right, 2 down, 3 up. It does not matter whether the piece was moved already: the square it comes from
    is no part of any frame it makes.
    """
    rows, cols = np.int64(params[ROWS]), np.int64(params[COLS])
    side, files = np.int64(params[SIDE_LINES]), np.int64(params[FILE_LINES])
    own, enemy = LINES + mover * side, LINES + (1 - mover) * side
    own_rank, own_file = np.int64(state[np.uint64(own + rank)]), np.int64(state[np.uint64(own + files + file)])
    enemy_rank, enemy_file = np.int64(state[np.uint64(enemy + rank)]), np.int64(state[np.uint64(enemy + files + file)])
    if params[HAS_LEADERS]:  # P19: captures are of stones
        leader = np.int64(state[np.uint64(LEADERS + 1 - mover)])
        if leader >> 4 == rank:
            enemy_rank &= ~(np.int64(1) << (leader & 15))
        if leader & 15 == file:
            enemy_file &= ~(np.int64(1) << (leader >> 4))
    left = (enemy_rank << 1 >> file) & (own_rank << 2 >> file) & 1
    right = (enemy_rank >> (file + 1)) & (own_rank >> (file + 2)) & 1
    down = (enemy_file << 1 >> rank) & (own_file << 2 >> rank) & 1
    up = (enemy_file >> (rank + 1)) & (own_file >> (rank + 2)) & 1
    bits = left | right << 1 | down << 2 | up << 3
    if params[CORNERS] and (rank == 0 or rank == rows - 1):
        beside = np.int64(state[np.uint64(own + (1 if rank == 0 else rows - 2))]) & enemy_rank
        bits |= _corner_bits(beside, file, cols)
    if params[CORNERS] and (file == 0 or file == cols - 1):
        beside = np.int64(state[np.uint64(own + files + (1 if file == 0 else cols - 2))]) & enemy_file
        bits |= _corner_bits(beside, rank, rows) << 2
    return bits


@kernel(int64(_PARAMS, _STATE, int32[::1], int64))
def _keep_captures(params, state, actions, count):  # type: ignore[no-untyped-def]
    """Move those of the first ``count`` actions that capture to the front; return their number."""
    mover = np.int64(state[MOVER])
    captures = 0
    for i in range(count):
        action = actions[i]
        move = np.int64(params[np.uint64(params[DECODED] + mover * params[NUM_ACTIONS] + action)])
        if _capture_bits(params, state, mover, (move >> 8) & 15, move >> 12) != 0:
            actions[i] = actions[captures]
            actions[captures] = action
            captures += 1
    return captures


@kernel(LEGAL)
def legal(params, state, history, out_actions):  # type: ignore[no-untyped-def]
    """List the legal actions (P3, P15, P16)."""
    count = _list_moves(params, state, out_actions)
    if params[FORCED] == 0:
        return count
    captures = _keep_captures(params, state, out_actions, count)
    return captures if captures > 0 else count


@kernel(int64(int64, int64, int64))
def _nearest(own, occupied, square):  # type: ignore[no-untyped-def]
    """Places of the pieces of ``own`` that reach ``square`` along their line: 16 * (one above) + (one below).

    15 stands for none. ``occupied`` are the pieces of both sides on the line.
    """
    below, above = occupied & ((np.int64(1) << square) - 1), occupied >> square
    lower = np.int64(15)
    upper = np.int64(15)
    if below != 0:
        for step in (1, 2, 4, 8):
            below |= below >> step
        place = np.int64(_count_ones(np.uint64(below))) - np.int64(1)
        lower = place if (own >> place) & 1 else lower
    if above != 0:
        place = square + _lowest_place(np.uint64(above))
        upper = place if (own >> place) & 1 else upper
    return 16 * upper + lower


@kernel(int64(_PARAMS, int64, int64, int64, int64, int64), forceinline=True)
def _action_of(params, mover, rank, file, to_rank, to_file):  # type: ignore[no-untyped-def]
    """The action of a rook move between two squares in natural's frame."""
    rows, cols = np.int64(params[ROWS]), np.int64(params[COLS])
    if mover == 1:
        rank, file, to_rank, to_file = rows - 1 - rank, cols - 1 - file, rows - 1 - to_rank, cols - 1 - to_file
    plane = to_rank - (to_rank > rank) if file == to_file else rows - 1 + to_file - (to_file > file)
    return plane * rows * cols + rank * cols + file


@kernel(int64(_PARAMS, _STATE, int64, int64, int32[::1], int64))
def _list_arrivals(params, state, rank, file, out_actions, count):  # type: ignore[no-untyped-def]
    """Append the mover's moves to an empty square; return the new count."""
    mover, files = np.int64(state[MOVER]), np.int64(params[FILE_LINES])
    own = LINES + mover * np.int64(params[SIDE_LINES])
    across = _nearest(np.int64(state[np.uint64(own + rank)]), _pieces(params, state, rank), file)
    up = _nearest(np.int64(state[np.uint64(own + files + file)]), _pieces(params, state, files + file), rank)
    for shift in (0, 4):
        if (across >> shift) & 15 != 15:
            out_actions[count] = _action_of(params, mover, rank, (across >> shift) & 15, rank, file)
            count += 1
        if (up >> shift) & 15 != 15:
            out_actions[count] = _action_of(params, mover, (up >> shift) & 15, file, rank, file)
            count += 1
    return count


@kernel(LEGAL)
def captures(params, state, history, out_actions):  # type: ignore[no-untyped-def]
    """List the legal actions that capture, from the empty squares that complete a frame (P4 to P6)."""
    if params[CORNERS] or params[HAS_LEADERS] or state[DIE_SHOWN] > 0:
        return _keep_captures(params, state, out_actions, _list_moves(params, state, out_actions))
    mover, files = np.int64(state[MOVER]), np.int64(params[FILE_LINES])
    count = np.int64(0)
    for word in range(params[SIDE_LINES] >> 2):
        own, empty = _own_and_empty(params, state, mover, word)
        enemy, _ = _own_and_empty(params, state, 1 - mover, word)
        left = empty & ((enemy << _ONE & own << _2) | (enemy >> _ONE & own >> _2))
        while left != 0:
            place = _lowest_place(left)
            left &= left - _ONE
            line, square = 4 * word + (place >> 4), place & 15
            if line < files:
                count = _list_arrivals(params, state, line, square, out_actions, count)
            elif _capture_bits(params, state, mover, square, line - files) & 3 == 0:  # else listed with its rank
                count = _list_arrivals(params, state, square, line - files, out_actions, count)
    return count


# In one direction no two pieces reach the same square; so there are as many moves as squares reached, each made by the
# nearest piece on the way back. Which word, line and square a random number means cannot be predicted, so nothing here
# branches on it.
@kernel(_PAIR(uint64, uint64), forceinline=True)
def _within_reach(own, empty):  # type: ignore[no-untyped-def]
    """What the pieces ``own`` of a word reach along the lines (P3), towards higher and towards lower bits."""
    # A one added where a run of empty squares begins is carried through to its end, where it is stopped: at a piece, or
    # outside the board, as lines have more bits than squares.
    up = empty & ~(empty + ((own << _ONE) & empty))
    # Nothing is carried downwards: reach one square, then two more, four more, eight more.
    down, open_way = own, empty
    for step in (_ONE, _2, _4, _8):
        down |= (down >> step) & open_way
        open_way &= open_way >> step
    return up, down ^ own


@kernel(_PAIR(uint64, uint64, int64), forceinline=True)
def _within_steps(own, empty, limit):  # type: ignore[no-untyped-def]
    """What they reach in at most ``limit`` squares (P16): each step at most doubles the reach."""
    up, down, way_up, way_down = own, own, empty, empty
    for longest in (1, 2, 4, 8):
        step = np.uint64(min(longest, limit))
        limit -= np.int64(step)
        up |= (up << step) & way_up
        down |= (down >> step) & way_down
        way_up &= way_up << step
        way_down &= way_down >> step
    return up ^ own, down ^ own


@kernel(_WORDS(_PARAMS, _STATE, int64), forceinline=True)
def _reached(params, state, word):  # type: ignore[no-untyped-def]
    """The mover's pieces on a word, and what they reach towards higher and lower bits (P3, P16)."""
    own, empty = _own_and_empty(params, state, np.int64(state[MOVER]), word)
    if state[DIE_SHOWN] > 0:
        up, down = _within_steps(own, empty, np.int64(state[DIE_SHOWN]))
    else:
        up, down = _within_reach(own, empty)
    return own, up, down


@kernel(uint64(uint64, uint64), forceinline=True)
def _place_of(bits, index):  # type: ignore[no-untyped-def]
    """The place of the one at ``index`` among those of ``bits``."""
    place = _ZERO
    for width in (_16, _4, _ONE):  # the quarter it is in, the quarter of that, the bit
        ones = _ONE << width
        quarter = np.uint64(index >= _count_ones(bits & (ones - _ONE)))
        quarter += np.uint64(index >= _count_ones(bits & ((ones << width) - _ONE)))
        quarter += np.uint64(index >= _count_ones(bits & ((ones << (width + width)) - _ONE)))
        shift = quarter * width
        index -= _count_ones(bits & ((_ONE << shift) - _ONE))
        bits >>= shift
        place += shift
    return place


@kernel(_PAIR(_PARAMS, _STATE), forceinline=True)
def _count_moves(params, state):  # type: ignore[no-untyped-def]
    """How many moves the mover has, and how many of them lie on the words before each word, ten bits a word."""
    total, by_word = _ZERO, _ZERO
    for word in range(params[SIDE_LINES] >> 2):  # no word waits for another: vector instructions take four at once
        _, up, down = _reached(params, state, word)
        count = _count_ones(up) + _count_ones(down)
        by_word |= count << np.uint64(10 * word)
        total += count
    return total, by_word * (_FIRSTS << np.uint64(10))


@kernel(int64(uint64, uint64, boolean), forceinline=True)
def _origin(pieces, goal, goes_up):  # type: ignore[no-untyped-def]
    """Where the piece of this line stands that reaches ``goal``: the next one below, or above."""
    below, above = pieces & ((_ONE << goal) - _ONE), pieces >> goal
    for step in (_ONE, _2, _4, _8):
        below |= below >> step
    lower, higher = np.int64(_count_ones(below)) - 1, np.int64(goal) + _lowest_place(above)
    return lower if goes_up else higher


@kernel(int64(_PARAMS, _STATE, int64, uint64, uint64, boolean), forceinline=True)
def _action_to(params, state, word, place, own, goes_up):  # type: ignore[no-untyped-def]
    """The move that reaches the square ``place`` of a word; ``own`` are the mover's pieces on the word."""
    rows, cols = np.int64(params[ROWS]), np.int64(params[COLS])
    goal = place & _15
    start, end = _origin((own >> (place - goal)) & _LINE, goal, goes_up), np.int64(goal)
    line, files = 4 * word + np.int64(place >> _4), np.int64(params[FILE_LINES])
    on_rank = line < files
    line -= 0 if on_rank else files
    if state[MOVER] == 1:
        line = (rows if on_rank else cols) - 1 - line
        last = (cols if on_rank else rows) - 1
        start, end = last - start, last - end
    plane = end - (end > start) + (rows - 1 if on_rank else 0)
    site = line * cols + start if on_rank else start * cols + line
    return plane * rows * cols + site


@kernel(int64(_PARAMS, _STATE, uint64, uint64), forceinline=True)
def _move_at(params, state, before, place):  # type: ignore[no-untyped-def]
    """The move at ``place`` among those counted: from word to word, first those towards the higher bits."""
    # Each field of a difference keeps its highest bit where ``place`` is not less.
    ends = _ENDS & ((_ONE << np.uint64(10 * (params[SIDE_LINES] >> 2))) - _ONE)
    word = np.int64(_count_ones(((place * _FIRSTS | ends) - before) & ends)) - 1
    own, up, down = _reached(params, state, word)
    index = place - ((before >> np.uint64(10 * word)) & _TEN)
    ups = _count_ones(up)
    goes_up = index < ups
    goal = _place_of(up if goes_up else down, index if goes_up else index - ups)
    return _action_to(params, state, word, goal, own, goes_up)


@kernel(int64(_PARAMS, _STATE, uint64, uint64, int64))
def _capture_at(params, state, total, before, place):  # type: ignore[no-untyped-def]
    """The move at ``place`` among those that capture; ~their number where there are not so many."""
    mover, count = np.int64(state[MOVER]), np.int64(0)
    for other in range(np.int64(total)):
        action = _move_at(params, state, before, np.uint64(other))
        move = np.int64(params[np.uint64(params[DECODED] + mover * params[NUM_ACTIONS] + action)])
        if _capture_bits(params, state, mover, (move >> 8) & 15, move >> 12) != 0:
            if count == place:
                return action
            count += 1
    return ~count


@kernel(SAMPLE)
def sample(params, state, history, word):  # type: ignore[no-untyped-def]
    """One of the legal actions (P3, P15, P16) by the upper half of ``word``."""
    total, before = _count_moves(params, state)
    if params[FORCED]:
        captures = ~_capture_at(params, state, total, before, np.int64(total))
        if captures > 0:
            place = np.int64((word >> _32) * np.uint64(captures) >> _32)
            return _capture_at(params, state, total, before, place)
    return _move_at(params, state, before, (word >> _32) * total >> _32)


@kernel(uint64(_PARAMS, _STATE, int64, int64, int64, int64))
def _remove_captured(params, state, mover, rank, file, captured):  # type: ignore[no-untyped-def]
    """Take the neighbours named by the bits ``captured`` off the board; return their keys, combined."""
    rows, cols = np.int64(params[ROWS]), np.int64(params[COLS])
    files = np.int64(params[FILE_LINES])
    enemy = LINES + (1 - mover) * np.int64(params[SIDE_LINES])
    taken = 0
    keys = np.uint64(0)
    for direction in range(4):
        if (captured >> direction) & 1:
            step = 2 * (direction & 1) - 1
            prey_rank = rank + (step if direction >= 2 else 0)
            prey_file = file + (step if direction < 2 else 0)
            state[np.uint64(enemy + prey_rank)] ^= 1 << prey_file
            state[np.uint64(enemy + files + prey_file)] ^= 1 << prey_rank
            site = (1 - mover) * rows * cols + prey_rank * cols + prey_file
            keys ^= _key(params, params[KEYS] + 2 * site)
            taken += 1
    state[np.uint64(CAPTURES + mover)] += taken
    state[MARGIN] = state[CAPTURES] - state[CAPTURES + 1]
    state[QUIET_MOVES] = 0
    return keys


@kernel(uint64(int64, int64), forceinline=True)
def _entry(size, number):  # type: ignore[no-untyped-def]
    """Where the history keeps a position: those with the same side to move, which alone can be equal, lie together."""
    return np.uint64((number & 1) * (size >> 1) + (number >> 1))


@kernel(types.void(_STATE, _HISTORY, uint64, boolean), forceinline=True)
def _record_position(state, history, change, is_capture):  # type: ignore[no-untyped-def]
    """Append the hash of the position reached, ``change`` away from the last one, and count its repetitions (P11)."""
    size, at, filled = np.int64(history.shape[0]), np.int64(state[NEXT]), np.int64(state[FILLED])
    position = history[_entry(size, at - 1)] ^ change
    if is_capture:
        at, filled = np.int64(0), np.int64(0)
    comparable, first = filled >> 1, _entry(size, at & 1)
    repeats = np.int64(0)
    for i in range((comparable + _BLOCK - 1) & -_BLOCK):  # whole blocks: as many as vector instructions compare
        repeats += (history[first + np.uint64(i)] == position) & (i < comparable)
    state[REPEATS] = repeats
    if at == size:
        at = np.int64(0)
    history[_entry(size, at)] = position
    state[NEXT] = at + 1
    state[FILLED] = min(filled + 1, size)


@kernel(boolean(_PARAMS, _STATE, int64))
def _can_move(params, state, colour):  # type: ignore[no-untyped-def]
    """Whether a piece of ``colour`` stands next to an empty square, whatever the die shows (P10, P16)."""
    for word in range(params[SIDE_LINES] >> 2):
        own, empty = _own_and_empty(params, state, colour, word)
        if (own << _ONE | own >> _ONE) & empty:
            return True
    return False


@kernel(types.void(_PARAMS, _STATE, int64, int64))
def _finish(params, state, outcome, reason):  # type: ignore[no-untyped-def]
    """End the game and pay what the option ``reward`` says (P17)."""
    state[OUTCOME] = outcome
    state[REASON] = reason
    state[PAYOFF] = (outcome == NATURAL_WINS) - (outcome == BLACK_WINS)
    if params[PAY_STAKES]:
        state[PAYOFF] = state[COINS]


@kernel(types.void(_PARAMS, _STATE, int64))
def _finish_stalled(params, state, reason):  # type: ignore[no-untyped-def]
    """End by P11 or P12: a draw, unless more captures win (P14)."""
    if params[MOST_CAPTURES_WIN] == 0 or state[MARGIN] == 0:
        _finish(params, state, DRAW, reason)
    else:
        _finish(params, state, NATURAL_WINS if state[MARGIN] > 0 else BLACK_WINS, BY_STALLING)


@kernel(types.void(_PARAMS, _STATE), forceinline=True)
def _judge(params, state):  # type: ignore[no-untyped-def]
    """End the game if the side to move finds it decided, in the order of P13; else ask for the die (P16)."""
    state[CHANCE] = 0
    mover = state[MOVER]
    limit, quiet_limit = params[REPETITION_LIMIT], params[QUIET_LIMIT]
    if state[CAPTURES] >= params[TARGET]:
        _finish(params, state, NATURAL_WINS, BY_CAPTURES)
    elif state[CAPTURES + 1] >= params[TARGET]:
        _finish(params, state, BLACK_WINS, BY_CAPTURES)
    elif not _can_move(params, state, mover):
        _finish(params, state, NATURAL_WINS if mover == 1 else BLACK_WINS, BY_BLOCK)
    elif limit > 0 and state[REPEATS] + 1 >= limit:
        _finish_stalled(params, state, BY_REPETITION)
    elif quiet_limit > 0 and state[QUIET_MOVES] >= quiet_limit:
        _finish_stalled(params, state, BY_QUIET)
    elif params[MAX_TURNS] > 0 and state[TURNS] >= params[MAX_TURNS]:
        _finish(params, state, TRUNCATED, BY_MAX_TURNS)
    else:
        state[CHANCE] = params[DIE_KIND]


@kernel(types.void(_PARAMS, _STATE), forceinline=True)
def _end_turn(params, state):  # type: ignore[no-untyped-def]
    """Pass the turn, end the game if it is decided, else ask for the die (P16)."""
    state[MOVER] = 1 - state[MOVER]
    state[SEAT] = state[MOVER]
    if state[TURNS] < _COUNTER_MAX:
        state[TURNS] += 1
    _judge(params, state)


@kernel(APPLY)
def apply(params, state, history, action):  # type: ignore[no-untyped-def]
    """Play a move with its captures (P3 to P8), then pass the turn or ask for the stake throws (P17)."""
    rows, cols = np.int64(params[ROWS]), np.int64(params[COLS])
    squares = rows * cols
    mover = np.int64(state[MOVER])
    move = np.int64(params[np.uint64(params[DECODED] + mover * params[NUM_ACTIONS] + action)])
    from_rank, from_file, rank, file = move & 15, (move >> 4) & 15, (move >> 8) & 15, move >> 12
    captured = _capture_bits(params, state, mover, rank, file)
    own, files = LINES + mover * np.int64(params[SIDE_LINES]), np.int64(params[FILE_LINES])
    state[np.uint64(own + from_rank)] ^= 1 << from_file
    state[np.uint64(own + files + from_file)] ^= 1 << from_rank
    state[np.uint64(own + rank)] |= 1 << file
    state[np.uint64(own + files + file)] |= 1 << rank
    origin, goal = mover * squares + from_rank * cols + from_file, mover * squares + rank * cols + file
    keys = params[KEYS]
    change = _key(params, keys + 4 * squares) ^ _key(params, keys + 2 * origin) ^ _key(params, keys + 2 * goal)
    if params[HAS_LEADERS] and state[np.uint64(LEADERS + mover)] == (from_rank << 4 | from_file):
        state[np.uint64(LEADERS + mover)] = rank << 4 | file
        keys = params[LEADER_KEYS]
        change ^= _key(params, keys + 2 * origin) ^ _key(params, keys + 2 * goal)
    captures = state[np.uint64(CAPTURES + mover)]
    if captured != 0:
        change ^= _remove_captured(params, state, mover, rank, file, captured)
    elif state[QUIET_MOVES] < _COUNTER_MAX:
        state[QUIET_MOVES] += 1
    if params[REPETITION_LIMIT] > 0:
        _record_position(state, history, change, captured != 0)
    state[DIE_SHOWN] = 0
    if captured != 0 and params[STAKE_KIND] > 0:
        state[STAKES_DUE] = state[np.uint64(CAPTURES + mover)] - captures
        state[CHANCE] = params[STAKE_KIND]
        return
    _end_turn(params, state)


@kernel(APPLY_CHANCE)
def apply_chance(params, state, history, index):  # type: ignore[no-untyped-def]
    """Take in who starts (P2), the die of this turn (P16) or the coins of one captured piece (P17)."""
    kind = state[CHANCE]
    if kind == params[FIRST_KIND]:
        state[MOVER] = index
        state[SEAT] = index
        state[CHANCE] = params[DIE_KIND]
        start_history(params, state, history)
    elif kind == params[DIE_KIND]:
        state[DIE_SHOWN] = index + 1
        state[CHANCE] = 0
    else:
        state[COINS] += index + 1 if state[MOVER] == 0 else -(index + 1)
        state[STAKES_DUE] -= 1
        if state[STAKES_DUE] == 0:
            _end_turn(params, state)


@kernel(VIEW)
def view(params, state, history, seat, out_sites, out_scalars):  # type: ignore[no-untyped-def]
    """Show the position to ``seat``, whose frame black sees turned by 180 degrees."""
    rows, cols = np.int64(params[ROWS]), np.int64(params[COLS])
    squares = rows * cols
    colour = seat % 2
    for side in range(2):
        feature, mark = (OWN, OWN_MARK) if side == colour else (ENEMY, ENEMY_MARK)
        for word in range(params[FILE_LINES] >> 2):
            left, _ = _own_and_empty(params, state, side, word)
            while left != 0:
                place = _lowest_place(left)
                left &= left - _ONE
                site = (4 * word + (place >> 4)) * cols + (place & 15)
                out_sites[feature, np.uint64(site if colour == 0 else squares - 1 - site)] = 1
        if params[HAS_LEADERS]:
            leader = np.int64(state[np.uint64(LEADERS + side)])
            leader_site = (leader >> 4) * cols + (leader & 15)
            out_sites[mark, leader_site if colour == 0 else squares - 1 - leader_site] = 1
    out_scalars[OWN_CAPTURES] = state[np.uint64(CAPTURES + colour)]
    out_scalars[ENEMY_CAPTURES] = state[np.uint64(CAPTURES + 1 - colour)]
    out_scalars[DIE] = state[DIE_SHOWN]
    if params[QUIET_LIMIT] > 0:
        out_scalars[QUIET] = state[QUIET_MOVES]
    out_scalars[REPETITION] = state[REPEATS]
    out_scalars[MY_TURN] = state[SEAT] == seat and state[OUTCOME] == RUNNING
    out_scalars[NATURAL] = colour == 0
    out_scalars[BALANCE] = state[COINS] if colour == 0 else -state[COINS]
    if params[MAX_TURNS] > 0:
        out_scalars[TURN_COUNT] = state[TURNS]


@kernel(int64(_PARAMS, _STATE, int64))
def _mobility(params, state, colour):  # type: ignore[no-untyped-def]
    """Number of rook moves (P3) of a colour."""
    count = _ZERO
    for word in range(params[SIDE_LINES] >> 2):
        own, empty = _own_and_empty(params, state, colour, word)
        up, down = _within_reach(own, empty)
        count += _count_ones(up) + _count_ones(down)
    return np.int64(count)


@kernel(HEURISTIC)
def heuristic(params, state, history):  # type: ignore[no-untyped-def]
    """Lead in captures as a share of the target, with a tenth of the weight on freedom of movement."""
    material = min(max(state[MARGIN] / params[TARGET], -1.0), 1.0)
    natural, black = _mobility(params, state, 0), _mobility(params, state, 1)
    return 0.9 * material + 0.09 * (natural - black) / (natural + black + 1.0)


# -- what the options amount to ------------------------------------------------------------------------------------
def _layout(options: PetteiaOptions) -> BoardLayout:
    sites = [divmod(site, options.cols) for site in range(options.squares)]
    cells = tuple((options.rows - 1 - rank, file) for rank, file in sites)
    return BoardLayout(options.rows, options.cols, cells, tuple(_square_name(*site) for site in sites), "grid")


def _num_actions(options: PetteiaOptions) -> int:
    return (options.rows - 1 + options.cols - 1) * options.squares


def _num_seats(options: PetteiaOptions) -> int:
    return 2


def _state_size(options: PetteiaOptions) -> int:
    return LINES + 2 * _side_lines(options)


def _history_size(options: PetteiaOptions) -> int:
    if options.repetition_limit == 0:
        return 0
    positions = options.quiet_limit + 1 if options.quiet_limit > 0 else _RING_SIZE
    return -(-positions // (2 * _BLOCK)) * 2 * _BLOCK


def _params(options: PetteiaOptions) -> Params:
    return _shared_params(options).copy()


def _chance(options: PetteiaOptions) -> tuple[ChanceKind, ...]:
    kinds = [ChanceKind("first player", (0, 1), (0.5, 0.5))] if options.first_player == "random" else []
    for name, faces in (("die", options.die_limit), ("stake", options.stake_die)):
        if faces > 0:
            kinds.append(ChanceKind(name, tuple(range(1, faces + 1)), (1.0 / faces,) * faces))
    return tuple(kinds)


def _cells(options: PetteiaOptions) -> PositionCells | None:
    if options.die_limit or options.stake_die:
        return None
    sites = np.arange(options.squares, dtype=np.int32)
    cells = LINES + sites // options.cols
    bits = sites % options.cols
    repeats = REPEATS if options.repetition_limit else None
    clocks: tuple[tuple[int, int], ...] = ((QUIET_MOVES, options.quiet_limit), (TURNS, options.max_turns))
    others: tuple[int, ...] = (CAPTURES, CAPTURES + 1, LEADERS, LEADERS + 1)
    if options.stalled_result == "most_captures":
        # A repetition is no draw (P14): only the last one tells who wins. Nor does a lead fade with the quiet moves.
        others, clocks, repeats = (*others, REPEATS, QUIET_MOVES), clocks[1:], None
    return PositionCells(
        cells=np.stack([cells, cells + _side_lines(options)]),
        bits=np.stack([bits, bits]),
        turned=sites[::-1].copy(),
        most=2 * (options.stones + options.leader),
        others=others,
        clocks=clocks,
        repeats=repeats,
    )


def _margin_scale(options: PetteiaOptions) -> int:
    return options.most_captures


def _feature_scales(options: PetteiaOptions) -> dict[str, float]:
    most = options.most_captures
    scales = {"own": 1, "enemy": 1}
    if options.leader:
        scales |= {"own_mark": 1, "enemy_mark": 1}
    scales |= {"own_captures": most, "enemy_captures": most, "my_turn": 1, "natural": 1}
    if options.die_limit:
        scales["die"] = options.die_limit
    if options.quiet_limit:
        scales["quiet"] = options.quiet_limit
    if options.repetition_limit:
        scales["repetition"] = options.repetition_limit - 1
    if options.stake_die:
        scales["balance"] = most * options.stake_die
    if options.max_turns:
        scales["turns"] = options.max_turns
    return {name: float(scale) for name, scale in scales.items()}


# -- text ----------------------------------------------------------------------------------------------------------
_MOVE = re.compile(
    r"\s*+([A-Z])([0-9]+)\s*+(?:->|→|-)?\s*+([A-Z])([0-9]+)"
    r"(?:\s*X\s*([A-Z][0-9]+(?:\s*,\s*[A-Z][0-9]+)*))?\s*",
    re.ASCII | re.IGNORECASE,
)
_STEPS = ((0, -1), (0, 1), (-1, 0), (1, 0))
"""(rank, file) steps of the bits of ``_capture_bits``."""
_NO_HISTORY = np.zeros(0, np.uint64)


def _square_name(rank: int, file: int) -> str:
    return f"{_FILES[file]}{rank + 1}"


def _read_square(options: PetteiaOptions, letter: str, number: str) -> tuple[int, int]:
    file = _FILES.find(letter.upper())
    rank = int(number) - 1 if len(number) <= 2 and number[0] != "0" else -1
    if not (0 <= file < options.cols and 0 <= rank < options.rows):
        corner = _square_name(options.rows - 1, options.cols - 1)
        raise NotationError(f"there is no square {letter.upper()}{number[:8]}; the board goes from A1 to {corner}")
    return rank, file


def _read_number(text: str, what: str, high: int) -> int:
    """A number from 0 to ``high`` in its plain spelling."""
    if re.fullmatch(r"0|[1-9][0-9]{0,5}", text) is None or int(text) > high:
        raise NotationError(f"{what} must be a number from 0 to {high}, not {text[:20]!r}")
    return int(text)


def site_pieces(options: PetteiaOptions, state: State) -> list[str]:
    """The letter on each site in natural's frame: ``o x`` stones, ``O X`` leaders, ``""`` when empty."""
    pieces = [""] * options.squares
    for colour, letter in enumerate("ox"):
        line = LINES + colour * _side_lines(options)
        for site in range(options.squares):
            rank, file = divmod(site, options.cols)
            if int(state[line + rank]) >> file & 1:
                is_leader = options.leader and int(state[LEADERS + colour]) == rank << 4 | file
                pieces[site] = letter.upper() if is_leader else letter
    return pieces


def _side_letter(state: State, kinds: tuple[int, int, int]) -> str:
    return "?" if kinds[0] and state[CHANCE] == kinds[0] else "ox"[state[MOVER]]


def _packed(row: str) -> str:
    """A row of a position text, runs of empty squares as numbers."""
    return re.sub(" +", lambda run: str(len(run.group())), row)


def format_position(options: PetteiaOptions, state: State) -> str:
    """Rows from the highest rank down, side to move, quiet moves, die (``-`` without one)."""
    letters = "".join(piece or " " for piece in site_pieces(options, state))
    rows = [letters[start : start + options.cols] for start in range(0, options.squares, options.cols)]
    packed = [_packed(row) for row in reversed(rows)]
    side = _side_letter(state, _chance_kinds(options))
    return f"{'/'.join(packed)} {side} {state[QUIET_MOVES]} {state[DIE_SHOWN] or '-'}"


def parse_position(options: PetteiaOptions, text: str) -> State:
    """Read a position; one that is over is loaded as over (P9, P10, P12).

    Raises:
        NotationError: the text cannot be read, or no game reaches such a position.
    """
    fields = text.split()
    if len(fields) != 4:
        raise NotationError(f"a position has 4 fields (board, side to move, quiet moves, die), not {len(fields)}")
    board, side, quiet, die = fields
    state = np.zeros(_state_size(options), np.int16)
    _read_board(options, state, board)
    _count_captures(options, state)
    state[QUIET_MOVES] = _read_number(quiet, "the quiet moves", options.quiet_limit or _COUNTER_MAX)
    if side == "?":
        return _check_start(options, state, die)
    if side not in ("o", "x"):
        raise NotationError(f"the side to move must be 'o' or 'x', not {side[:20]!r}")
    state[MOVER] = state[SEAT] = side == "x"
    _judge(_shared_params(options), state)
    if die != "-":
        _read_die(options, state, die)
    return state


def _read_board(options: PetteiaOptions, state: State, board: str) -> None:
    rows = board.split("/")
    if len(rows) != options.rows:
        raise NotationError(f"the board has {options.rows} rows, not {len(rows)}")
    leaders = ""
    for rank, row in zip(range(options.rows - 1, -1, -1), rows, strict=True):
        if re.fullmatch(r"(?:[oxOX]|[1-9][0-9]*+)*+", row) is None:
            raise NotationError(f"row {rank + 1} may hold 'o', 'x' and numbers of empty squares, not {row[:40]!r}")
        # A run of more than two digits is too wide whatever it says.
        cells = re.sub("[0-9]+", lambda run: " " * (int(run.group()) if len(run.group()) < 3 else 99), row)
        if len(cells) != options.cols:
            raise NotationError(f"row {rank + 1} must have {options.cols} squares: {row[:40]!r}")
        for file, letter in enumerate(cells):
            if letter == " ":
                continue
            colour = "ox".index(letter.lower())
            _put_piece(options, state, colour, rank, file)
            if letter.isupper():
                leaders += letter
                state[LEADERS + colour] = rank << 4 | file
    expected = "OX" if options.leader else ""
    if "".join(sorted(leaders)) != expected:
        rule = "one leader 'O' and one leader 'X'" if options.leader else "no leaders without the option 'leader'"
        raise NotationError(f"the board must have {rule}, not {leaders[:20]!r}")


def _count_captures(options: PetteiaOptions, state: State) -> None:
    """Tell the captures from the stones missing (P9); refuse what no game can reach."""
    pieces = site_pieces(options, state)
    for colour, (name, enemy_letter) in enumerate((("black", "x"), ("natural", "o"))):
        missing = options.stones - pieces.count(enemy_letter)
        if missing < 0:
            raise NotationError(f"{name} has {options.stones - missing} stones; there are only {options.stones}")
        if missing > options.most_captures:
            raise NotationError(
                f"{name} has lost {missing} stones; the game ends with {options.capture_target} captures, "
                f"so nobody loses more than {options.most_captures}"
            )
        state[CAPTURES + colour] = missing
    if min(state[CAPTURES], state[CAPTURES + 1]) >= options.capture_target:
        raise NotationError(f"both sides have won: each has {options.capture_target} or more captures")
    state[MARGIN] = state[CAPTURES] - state[CAPTURES + 1]


def _check_start(options: PetteiaOptions, state: State, die: str) -> State:
    """The start position, if that is what ``state`` shows: only there the side to move can be undecided (P2)."""
    start = _start_state(options)
    if options.first_player != "random" or die != "-" or not np.array_equal(start[QUIET_MOVES:], state[QUIET_MOVES:]):
        raise NotationError("the side to move is '?' only in the start position, and with first_player='random'")
    return start


def _read_die(options: PetteiaOptions, state: State, die: str) -> None:
    if options.die_limit == 0:
        raise NotationError(f"there is no die without the option 'die_limit': write '-', not {die[:20]!r}")
    if state[OUTCOME] != RUNNING:
        raise NotationError(f"the game is over, no die is thrown: write '-', not {die[:20]!r}")
    state[DIE_SHOWN] = _read_number(die, "the die", options.die_limit)
    if state[DIE_SHOWN] == 0:
        raise NotationError(f"the die shows 1 to {options.die_limit}, or '-' before it is thrown, not 0")
    state[CHANCE] = 0


class _Moves(NamedTuple):
    """What the moves of one colour are, whatever the position; not to be written to.

    Attributes:
        texts: each action in notation, without captures.
        goals: rank and file of the square where it ends.
        forcing: the params as with ``forced_capture`` (P15).
    """

    texts: list[str]
    goals: list[tuple[int, int]]
    forcing: Params


@functools.lru_cache(maxsize=32)
def _moves(options: PetteiaOptions) -> tuple[_Moves, _Moves]:
    """Moves of natural and of black."""
    forcing = _shared_params(options).copy()
    forcing[FORCED] = 1
    first, number = int(forcing[DECODED]), _num_actions(options)
    by_colour = []
    for start in (first, first + number):
        moves = [[move >> shift & 15 for shift in (0, 4, 8, 12)] for move in forcing[start : start + number].tolist()]
        texts = [f"{_square_name(*move[:2])} -> {_square_name(*move[2:])}" for move in moves]
        by_colour.append(_Moves(texts, [(rank, file) for *_, rank, file in moves], forcing))
    return by_colour[0], by_colour[1]


@functools.lru_cache(maxsize=12 * 12 * 16)
def _prey(rank: int, file: int, bits: int) -> list[str]:
    """Names of the squares that bits of ``_capture_bits`` mean, in file order, then rank; not to be written to."""
    prey = [(file + across, rank + up) for bit, (up, across) in enumerate(_STEPS) if bits >> bit & 1]
    return [_square_name(rank, file) for file, rank in sorted(prey)]


def _capture_texts(moves: _Moves, state: State) -> dict[int, str]:
    """What follows the squares of each legal action that captures, such as `` x C4,E4``.

    If any capture, they are the moves that ``forced_capture`` leaves; if none does, it leaves all.
    """
    mover = state.item(MOVER)
    listed = np.empty(len(moves.texts), np.int32)
    captures = {}
    for place in range(legal(moves.forcing, state, _NO_HISTORY, listed)):
        action = listed.item(place)
        rank, file = moves.goals[action]
        bits = _capture_bits(moves.forcing, state, mover, rank, file)
        if bits == 0:
            break
        captures[action] = f" x {','.join(_prey(rank, file, bits))}"
    return captures


def format_actions(options: PetteiaOptions, state: State, actions: Sequence[int]) -> list[str]:
    """``D2 -> D4`` or ``D2 -> D4 x C4,E4`` for each of the legal ``actions``."""
    moves = _moves(options)[state[MOVER]]
    texts, captures = moves.texts, _capture_texts(moves, state)
    return [texts[action] + captures[action] if action in captures else texts[action] for action in actions]


def parse_action(options: PetteiaOptions, state: State, text: str) -> int:
    """The action meant by ``D2 -> D4``, ``D2 → D4``, ``D2-D4`` or ``d2d4``, with or without captures.

    Raises:
        NotationError: the text is no move, or a square is not on the board.
        IllegalMoveError: the squares are not on one line, or the captures named are not those of the move.
    """
    match = _MOVE.fullmatch(text)
    if match is None:
        raise NotationError(f"cannot read {text[:60]!r} as a move like 'D2 -> D4' or 'D2 -> D4 x C4,E4'")
    origin = _read_square(options, match[1], match[2])
    goal = _read_square(options, match[3], match[4])
    if (origin[0] == goal[0]) == (origin[1] == goal[1]):
        raise IllegalMoveError(f"{text.strip()[:60]!r}: a piece moves along a row or a column to another square")
    if match[5] is not None:
        squares = re.split(r"[\s,]+", match[5])
        named = [_square_name(*_read_square(options, square[0], square[1:])) for square in squares]
        captured = _prey(*goal, _capture_bits(_shared_params(options), state, int(state[MOVER]), *goal))
        if sorted(named) != sorted(captured):
            raise IllegalMoveError(f"{text.strip()[:60]!r}: this move captures {','.join(captured) or 'nothing'}")
    if state[MOVER] == 1:
        origin = (options.rows - 1 - origin[0], options.cols - 1 - origin[1])
        goal = (options.rows - 1 - goal[0], options.cols - 1 - goal[1])
    if origin[1] == goal[1]:
        plane = goal[0] - (goal[0] > origin[0])
    else:
        plane = options.rows - 1 + goal[1] - (goal[1] > origin[1])
    return plane * options.squares + origin[0] * options.cols + origin[1]


def _throw(options: PetteiaOptions, state: State) -> int | None:
    return int(state[DIE_SHOWN]) or None


def _balance(options: PetteiaOptions, state: State) -> int | None:
    return int(state[COINS]) if options.stake_die else None


def _status(options: PetteiaOptions, state: State) -> dict[str, str]:
    status = {
        "natural captures": str(state[CAPTURES]),
        "black captures": str(state[CAPTURES + 1]),
        "quiet moves": str(state[QUIET_MOVES]),
    }
    if options.die_limit:
        status["die"] = str(state[DIE_SHOWN] or "-")
    if options.stake_die:
        status["balance"] = f"{int(state[COINS]):+d}" if state[COINS] else "0"
    return status


def board_text(options: PetteiaOptions, state: State) -> str:
    """The board with coordinates, the side to move or the result, and what stands beside it."""
    pieces = site_pieces(options, state)
    lines = []
    for rank in range(options.rows - 1, -1, -1):
        row = pieces[rank * options.cols : (rank + 1) * options.cols]
        lines.append(f"{rank + 1:2d}  " + " ".join(piece or "." for piece in row))
    lines.append("    " + " ".join(_FILES[: options.cols]))
    side = {"o": "natural (o) to move", "x": "black (x) to move", "?": "who starts is not yet thrown"}
    result = {NATURAL_WINS: "natural (o) wins", BLACK_WINS: "black (x) wins", DRAW: "draw", TRUNCATED: "stopped"}
    if state[OUTCOME] == RUNNING:
        lines.append(side[_side_letter(state, _chance_kinds(options))])
    else:
        lines.append(f"{result[int(state[OUTCOME])]}: {REASONS[state[REASON]]}")
    lines.append(", ".join(f"{name} {value}" for name, value in _status(options, state).items()))
    return "\n".join(lines)


# -- the record ----------------------------------------------------------------------------------------------------
_SIMPLE = PetteiaOptions(rows=8, cols=12, first_player="random", stalled_result="most_captures")


def _mirror(options: PetteiaOptions) -> Mirror:
    """Files exchanged; the other files a piece can move to are counted from the other side."""
    rows, cols, squares = options.rows, options.cols, options.squares
    sites = np.arange(squares).reshape(rows, cols)[:, ::-1].ravel()
    planes, places = np.divmod(np.arange(_num_actions(options)), squares)
    turned = (rows - 1) + (cols - 2) - (planes - (rows - 1))
    return sites, np.where(planes < rows - 1, planes, turned) * squares + sites[places]


def _turn(options: PetteiaOptions) -> Mirror | None:
    """Of a square board: other ranks become other files, counted from the other side, and other files other ranks."""
    if options.rows != options.cols:
        return None
    others, squares = options.rows - 1, options.squares
    sites = turned_sites(options.rows)
    planes, places = np.divmod(np.arange(_num_actions(options)), squares)
    return sites, np.where(planes < others, 2 * others - 1 - planes, planes - others) * squares + sites[places]


def _scatter(options: PetteiaOptions, rng: np.random.Generator, most: int) -> State:
    """Pieces on random squares, as few stones as the captures before the last one leave, or more."""
    fewest = options.stones - options.capture_target + 1
    while True:
        stones = rng.integers(fewest, max(fewest, min(most, options.stones)) + 1, 2)
        letters = np.full(options.squares, " ")
        pieces = ["o"] * stones[0] + ["x"] * stones[1] + ["O", "X"] * options.leader
        letters[rng.permutation(options.squares)[: len(pieces)]] = pieces
        rows = [_packed("".join(row)) for row in letters.reshape(options.rows, options.cols)[::-1]]
        state = parse_position(options, f"{'/'.join(rows)} {'ox'[rng.integers(2)]} 0 -")
        if state[OUTCOME] == RUNNING:
            return state


RULES = GameRules(
    name="petteia",
    title="Petteia",
    version=1,
    source="box rulebook (S1), rulebook with the 8x12 board (S2), petteia.fr sheet (S3); RULES.md section 1",
    variants={
        "box": PetteiaOptions(),
        "fr8": PetteiaOptions(),
        "fr6": PetteiaOptions(rows=6, cols=6, capture_target=5),
        "simple": _SIMPLE,
        "divination": dataclasses.replace(_SIMPLE, die_limit=4),
        "gambling": dataclasses.replace(_SIMPLE, stake_die=4),
        "mini": PetteiaOptions(rows=4, cols=4, capture_target=3),
    },
    variant_notes={
        "box": "8x8, 8 stones a side, 7 captures win (S1)",
        "fr8": "the large board of petteia.fr, the same as box (S3)",
        "fr6": "6x6, 6 stones a side, 5 captures win (S3)",
        "simple": "8x12, 12 stones a side, 7 captures win, the first player drawn, a stalled game won by captures (S2)",
        "divination": "simple with a four-sided die that limits how far a piece moves (S2)",
        "gambling": "simple with a four-sided die thrown for the coins of each captured piece (S2)",
        "mini": "4x4, 4 stones a side, 3 captures win, for exact solving",
    },
    reasons=REASONS,
    layout=_layout,
    num_actions=_num_actions,
    num_seats=_num_seats,
    state_size=_state_size,
    history_size=_history_size,
    params=_params,
    chance=_chance,
    margin_scale=_margin_scale,
    feature_scales=_feature_scales,
    kernels=Kernels(initial, legal, apply, apply_chance, view, heuristic, sample, captures),
    format_position=format_position,
    parse_position=parse_position,
    start_history=start_history,
    format_actions=format_actions,
    parse_action=parse_action,
    throw=_throw,
    balance=_balance,
    site_pieces=site_pieces,
    status=_status,
    board_text=board_text,
    mirror=_mirror,
    turn=_turn,
    scatter=_scatter,
    cells=_cells,
)
