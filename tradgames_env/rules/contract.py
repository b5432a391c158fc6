"""What a game provides to everything else: one frozen record of plain data, text functions and compiled kernels.

A *position* is three flat arrays, so that copying, hashing, batching and pickling are array operations:

``params``   int32, read only: the options and every lookup table the kernels need, laid out by the game
``state``    int16: a header of ``HEADER_SIZE`` slots that means the same in every game, then the game's own cells
``history``  uint64: hashes of earlier positions, of length 0 in games without a repetition rule

Colours are 0 (natural, the first player unless an option says otherwise) and 1 (black). A *seat* is who decides:
seat ``s`` plays for colour ``s % 2``; there are two seats, four in team games. Actions are integers in the frame of the
mover, who sees his own pieces come from below (boards) or counts his own steps (tracks).

Chance is explicit. ``state[CHANCE]`` is 0 when a seat has to decide; otherwise it names the kind of throw that is due,
whose values and probabilities are ``GameRules.chance(options)[kind - 1]``. Kernels never draw: they are told the index
of the outcome. Nobody assumes that movers alternate; who is next is read from ``state[MOVER]``.

The slots and codes below are compiled into every kernel that names them; ``compiling.kernel`` sees when they change.
"""

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numba import float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.errors import OptionError

# -- header slots of a state row -------------------------------------------------------------------------------
MOVER = 0
"""Colour whose decision or throw is due."""
SEAT = 1
"""Seat that decides; equals MOVER in games of two seats."""
CHANCE = 2
"""Kind of throw that is due, 0 when a seat has to decide."""
OUTCOME = 3
"""One of the outcome codes below."""
REASON = 4
"""Index into ``GameRules.reasons``; 0 while the game runs."""
TURNS = 5
"""Turns completed by both sides together, saturating at 32,767."""
MARGIN = 6
"""Natural's lead in what the game counts (captures, removed counters, pieces home); never decides a game."""
PAYOFF = 7
"""Natural's reward, written when the game ends: +1, -1 or 0, or the stakes where an option says so."""
HEADER_SIZE = 8

# -- outcome codes -----------------------------------------------------------------------------------------------
RUNNING = 0
NATURAL_WINS = 1
BLACK_WINS = 2
DRAW = 3
TRUNCATED = 4

# -- what a game shows of a position, from one seat's view (see encoding.py for the planes made of it) ------------
SITE_FEATURES = (
    "own",
    "enemy",
    "own_count",
    "enemy_count",
    "own_mark",
    "enemy_mark",
    "own_ban_from",
    "own_ban_to",
    "enemy_ban_from",
    "enemy_ban_to",
)
"""Per site, integers: who owns it (0/1), how many pieces of each side stand there, marks and banned steps (0/1)."""
OWN, ENEMY, OWN_COUNT, ENEMY_COUNT, OWN_MARK, ENEMY_MARK = range(6)
OWN_BAN_FROM, OWN_BAN_TO, ENEMY_BAN_FROM, ENEMY_BAN_TO = range(6, 10)

SCALARS = (
    "own_reserve",
    "enemy_reserve",
    "own_captures",
    "enemy_captures",
    "throw_1",
    "throw_2",
    "throw_3",
    "throw_4",
    "throw_5",
    "throw_back",
    "die",
    "quiet",
    "repetition",
    "bonus",
    "my_turn",
    "natural",
    "balance",
    "turns",
    "partner",
)
"""Per position, integers; ``throw_N`` is how many throws of that value are in hand."""
(
    OWN_RESERVE,
    ENEMY_RESERVE,
    OWN_CAPTURES,
    ENEMY_CAPTURES,
    THROW_1,
    THROW_2,
    THROW_3,
    THROW_4,
    THROW_5,
    THROW_BACK,
    DIE,
    QUIET,
    REPETITION,
    BONUS,
    MY_TURN,
    NATURAL,
    BALANCE,
    TURN_COUNT,
    PARTNER,
) = range(len(SCALARS))

# -- kernel signatures ---------------------------------------------------------------------------------------------
Params = NDArray[np.int32]
State = NDArray[np.int16]
History = NDArray[np.uint64]

_PARAMS, _STATE, _HISTORY = int32[::1], int16[::1], uint64[::1]
INITIAL = types.void(_PARAMS, _STATE, _HISTORY)
"""``initial(params, state, history)``: write the start position, whatever the arrays held before."""
LEGAL = int64(_PARAMS, _STATE, _HISTORY, int32[::1])
"""``legal(params, state, history, out_actions) -> n``: list the legal actions, in any order. Called only when a seat
decides; n is then at least 1. ``out_actions`` holds ``num_actions`` entries."""
SAMPLE = int64(_PARAMS, _STATE, _HISTORY, uint64)
"""``sample(params, state, history, word) -> action``: the action at index ``(word >> 32) * n >> 32`` of the n legal
ones, in any order that is always the same for the same position; so a uniform choice where ``word`` is 64 random bits.
Called where ``legal`` may be. A game may do without it, and random play then lists the actions."""
CAPTURES = LEGAL
"""``captures(params, state, history, out_actions) -> n``: list those legal actions that capture, the likely best first
if the game can tell, in an order that is always the same for the same position; n may be 0. For search, which follows
captures to their end; a game may do without it."""
APPLY = types.void(_PARAMS, _STATE, _HISTORY, int64)
"""``apply(params, state, history, action)``: play a legal action in place, up to the next decision, throw or end."""
APPLY_CHANCE = types.void(_PARAMS, _STATE, _HISTORY, int64)
"""``apply_chance(params, state, history, index)``: the throw that is due shows outcome ``index`` of its kind."""
VIEW = types.void(_PARAMS, _STATE, _HISTORY, int64, int16[:, ::1], int16[::1])
"""``view(params, state, history, seat, out_sites, out_scalars)``: the position as ``seat`` sees it, into zeroed arrays
(len(SITE_FEATURES), num_sites) and (len(SCALARS),), sites in that seat's own frame."""
HEURISTIC = float64(_PARAMS, _STATE, _HISTORY)
"""``heuristic(params, state, history) -> float``: natural's standing in (-1, 1) by a cheap human measure (material,
progress, mobility) of a running position; for search that must stop somewhere, never for results."""

# A kernel called from Python is a numba dispatcher; under NUMBA_DISABLE_JIT=1 it is the plain function.
Kernel = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Kernels:
    """The compiled functions of a game, each with the explicit signature of the same name above."""

    initial: Kernel
    legal: Kernel
    apply: Kernel
    apply_chance: Kernel
    view: Kernel
    heuristic: Kernel
    sample: Kernel | None = None
    captures: Kernel | None = None


@dataclasses.dataclass(frozen=True)
class ChanceKind:
    """One kind of throw: ``values[i]`` shows with ``probabilities[i]``; both of equal length, probabilities sum to 1.

    Values are what a person reads off the sticks or the die. ``name`` is "throw", "die", "first player" and so on.
    A throw that may call for itself again without limit ``repeats``; perft counts each repetition as a move, or it
    would never end.
    """

    name: str
    values: tuple[int, ...]
    probabilities: tuple[float, ...]
    repeats: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class PositionCells:
    """Where a state row shows its pieces and what else makes a position, for search that follows changes."""

    cells: NDArray[np.int32]
    """(2, sites): the cell that has a bit for a piece of each colour at each site of natural's frame."""
    bits: NDArray[np.int32]
    """(2, sites): which bit of it, 0 to 15."""
    turned: NDArray[np.int32]
    """(sites,): the site of black's frame for each site of natural's."""
    most: int
    """Most pieces on the board and in hand at once."""
    others: tuple[int, ...]
    """Cells that tell positions apart beside pieces and the mover; clocks and the history aside."""
    clocks: tuple[tuple[int, int], ...]
    """Cells that count up, each with the value at which the game ends (0: never)."""
    repeats: int | None
    """The cell of the position's earlier occurrences; None where none are counted, or repeating does not draw."""
    hands: tuple[int, int] | None = None
    """Cells that count the pieces natural and black have yet to place; None without such pieces."""
    hand_size: int = 0
    """Pieces of a hand that are told apart, at most 16; more count as so many."""
    owed: int | None = None
    """The cell that is not 0 while the mover has to go on capturing; None where a capture is always one action."""

    @property
    def places(self) -> int:
        """Where a piece of a colour may be: the sites, then the first, second, ... of the hand."""
        return int(self.cells.shape[1]) + self.hand_size


@dataclasses.dataclass(frozen=True)
class BoardLayout:
    """Where the sites of a board lie on a plane of ``height`` x ``width`` cells, row 0 at the top.

    ``cells[i]`` is the (row, column) of site i and ``names[i]`` its name, both in natural's frame; in a view the same
    index means the site in that seat's own frame. ``style`` tells drawings what to make of it: "grid" (every cell a
    square), "track" (a line of squares) or "graph" (stations joined by ``edges``, pairs of site indices).
    """

    height: int
    width: int
    cells: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    style: str
    edges: tuple[tuple[int, int], ...] = ()


@dataclasses.dataclass(frozen=True)
class Options:
    """Rule options of a game; a frozen dataclass of its own in each rules file, validated when it is made."""


Mirror = tuple[NDArray[np.int64], NDArray[np.int64]]


def _no_stakes(options: Options, state: State) -> int | None:
    return None


def _no_mirror(options: Options) -> Mirror | None:
    return None


def _no_cells(options: Options) -> PositionCells | None:
    return None


@dataclasses.dataclass(frozen=True, eq=False)
class GameRules:
    """Everything the rest of the package knows of a game.

    Functions take the game's ``Options`` first. Text functions raise ``NotationError`` (a ``ValueError``) that says
    what is wrong.
    """

    name: str
    """Module name, e.g. ``"yut_nori"``."""
    title: str
    """Name for people, e.g. ``"Yut Nori"``."""
    version: int
    """Raised whenever the same actions may lead to another game than before."""
    source: str
    """Where the rules come from."""
    variants: Mapping[str, Options]
    """Named options; ``"box"`` is the default."""
    variant_notes: Mapping[str, str]
    """One line for each variant: what it is and where it comes from."""
    reasons: tuple[str, ...]
    """Reason names; ``reasons[0]`` is ``""`` for a running game. One of them is ``"max_turns"``."""
    layout: Callable[[Any], BoardLayout]
    """``layout(options)``."""
    num_actions: Callable[[Any], int]
    """``num_actions(options)``: size of the action space."""
    num_seats: Callable[[Any], int]
    """``num_seats(options)``: 2, or 4 in team games."""
    state_size: Callable[[Any], int]
    """``state_size(options)``: length of a state row, header included."""
    history_size: Callable[[Any], int]
    """``history_size(options)``: length of a history row."""
    params: Callable[[Any], Params]
    """``params(options)``: the int32 array handed to every kernel."""
    chance: Callable[[Any], tuple[ChanceKind, ...]]
    """``chance(options)``: every kind of throw; kind k of ``state[CHANCE]`` is entry k - 1. Empty without dice."""
    margin_scale: Callable[[Any], int]
    """``margin_scale(options)``: largest absolute value of ``state[MARGIN]``."""
    feature_scales: Callable[[Any], Mapping[str, float]]
    """``feature_scales(options)``: the SITE_FEATURES and SCALARS this game uses, each with its largest absolute value,
    by which the encoder divides. ``throw_*`` are encoded as n / (n + 1) whatever their scale."""
    kernels: Kernels
    format_position: Callable[[Any, State], str]
    """``format_position(options, state)``: one line of text."""
    parse_position: Callable[[Any, str], State]
    """``parse_position(options, text)``: a fresh state row; impossible positions are refused; a position that is over
    is loaded with its outcome, reason and payoff. The caller starts a new history (``start_history``)."""
    start_history: Kernel
    """``start_history(params, state, history)`` of signature INITIAL: begin a new repetition history at ``state``."""
    format_actions: Callable[[Any, State, Sequence[int]], list[str]]
    """``format_actions(options, state, actions)``: legal actions in notation, captures included, in their order. The
    texts of all legal actions differ."""
    parse_action: Callable[[Any, State, str], int]
    """``parse_action(options, state, text)``: the action a text means in this position, with or without its capture
    suffix; NotationError if it cannot be read. It need not be legal. A suffix that contradicts the position is refused
    with IllegalMoveError."""
    throw: Callable[[Any, State], int | tuple[int, ...] | None]
    """``throw(options, state)``: the throw in hand, a tuple when there are several, None when there is none."""
    site_pieces: Callable[[Any, State], list[str]]
    """``site_pieces(options, state)``: for each site of the layout its pieces bottom to top, of the letters ``o x``
    (``O X`` for leaders), ``""`` when empty."""
    status: Callable[[Any, State], dict[str, str]]
    """``status(options, state)``: what stands beside the board, e.g. ``{"natural reserve": "8", "throw": "3"}``."""
    board_text: Callable[[Any, State], str]
    """``board_text(options, state)``: the board for a terminal, several lines."""
    balance: Callable[[Any, State], int | None] = _no_stakes
    """``balance(options, state)``: natural's running stakes in coins, None where no stakes are played for."""
    mirror: Callable[[Any], Mirror | None] = _no_mirror
    """``mirror(options)``: the site (num_sites,) and the action (num_actions,) that each site and each action of any
    seat's frame becomes when left and right are exchanged, which changes nothing else; None without this symmetry."""
    turn: Callable[[Any], Mirror | None] = _no_mirror
    """``turn(options)``: the same for a quarter turn of the board to the left; None without this symmetry."""
    scatter: Callable[[Any, np.random.Generator, int], State] | None = None
    """``scatter(options, rng, most)``: a fresh state row of a random running position with at most ``most`` pieces a
    side, or as few as decide no game yet; the caller starts a new history. None in games that thin out by themselves.
    """
    cells: Callable[[Any], PositionCells | None] = _no_cells
    """``cells(options)``: where the state shows its pieces; None where search cannot follow them: there are
    dice, or the game does not say."""


def turned_sites(size: int) -> NDArray[np.int64]:
    """(size * size,) int64: where each square of a square board, numbered rank by rank, comes by a turn to the left."""
    ranks, files = np.divmod(np.arange(size * size), size)
    return files * size + size - 1 - ranks


def check_range(options: Options, name: str, low: float, high: float) -> None:
    """Refuse option ``name`` unless it is a number of its default's type within [low, high].

    Raises:
        OptionError: naming the option, its value and the range.
    """
    value = getattr(options, name)
    is_count = isinstance(low, int) and isinstance(high, int)
    right_type = isinstance(value, int if is_count else int | float) and not isinstance(value, bool)
    if not right_type or not low <= value <= high:
        kind = "an integer" if is_count else "a number"
        raise OptionError(f"option {name!r} must be {kind} from {low} to {high}, not {value!r}")


def check_choice(options: Options, name: str, choices: tuple[Any, ...]) -> None:
    """Refuse option ``name`` unless its value is one of ``choices`` (and of the same type).

    Raises:
        OptionError: naming the option, its value and the choices.
    """
    value = getattr(options, name)
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise OptionError(f"option {name!r} must be one of {listed}, not {value!r}")


def make_options(rules: GameRules, variant: str = "box", **overrides: Any) -> Any:
    """Options of a named variant with single options replaced.

    Raises:
        OptionError: unknown variant or option (the nearest name is given), or a value the game refuses.
    """
    if not isinstance(variant, str) or variant not in rules.variants:
        raise OptionError(f"{rules.name} has no variant {variant!r}; {_nearest(variant, list(rules.variants))}")
    options = rules.variants[variant]
    names = [field.name for field in dataclasses.fields(options)]
    for name in overrides:
        if name not in names:
            raise OptionError(f"{rules.name} has no option {name!r}; {_nearest(name, names)}")
    # Sweeps hand over NumPy numbers, which mean the plain ones.
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in overrides.items()}
    return dataclasses.replace(options, **plain) if plain else options


def _nearest(name: object, known: list[str]) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    guess = f"did you mean {close[0]!r}? " if close else ""
    return f"{guess}known: {', '.join(known)}"
