"""Sprint: a toy fifth game that lives in the tests, to show that a game is one file and nothing edited elsewhere.

A line of ``length`` squares for each side, one runner each. A turn throws a coin (1 or 2); the mover either ``run``s
that far or ``wait``s. Running past the end wins. Showing 2 and running keeps the turn, so a side may move twice.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numba import njit

from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    BLACK_WINS,
    CHANCE,
    ENEMY,
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
    PAYOFF,
    REASON,
    SEAT,
    THROW_1,
    TRUNCATED,
    TURNS,
    VIEW,
    BoardLayout,
    ChanceKind,
    GameRules,
    Kernels,
    Options,
    Params,
    State,
    check_range,
)
from tradgames_env.rules.errors import NotationError

# --8<-- [start:options]
THROW = 1
RUN, WAIT = 0, 1
PLACE, SHOWN = HEADER_SIZE, HEADER_SIZE + 2
LENGTH, MAX_TURNS = 0, 1
REASON_HOME, REASON_MAX_TURNS = 1, 2


@dataclasses.dataclass(frozen=True)
class SprintOptions(Options):
    """Options of Sprint."""

    length: int = 5
    max_turns: int = 200

    def __post_init__(self) -> None:
        check_range(self, "length", 2, 40)
        check_range(self, "max_turns", 0, 30_000)


# --8<-- [end:options]


# --8<-- [start:kernels]
@njit(INITIAL, nogil=True)
def initial(params, state, history):
    state[:] = 0
    state[CHANCE] = THROW


@njit(INITIAL, nogil=True)
def start_history(params, state, history):
    pass


@njit(LEGAL, nogil=True)
def legal(params, state, history, out_actions):
    out_actions[0] = RUN
    out_actions[1] = WAIT
    return 2


@njit(APPLY, nogil=True)
def apply(params, state, history, action):
    mover = state[MOVER]
    again = action == RUN and state[SHOWN] == 2
    if action == RUN:
        state[PLACE + mover] += state[SHOWN]
    state[MARGIN] = state[PLACE] - state[PLACE + 1]
    state[SHOWN] = 0
    if state[PLACE + mover] >= params[LENGTH]:
        state[OUTCOME] = BLACK_WINS if mover else NATURAL_WINS
        state[PAYOFF] = -1 if mover else 1
        state[REASON] = REASON_HOME
        return
    state[CHANCE] = THROW
    if again:
        return
    state[MOVER] = 1 - mover
    state[SEAT] = state[MOVER]
    state[TURNS] += 1
    if params[MAX_TURNS] > 0 and state[TURNS] >= params[MAX_TURNS]:
        state[CHANCE] = 0
        state[OUTCOME] = TRUNCATED
        state[REASON] = REASON_MAX_TURNS


@njit(APPLY_CHANCE, nogil=True)
def apply_chance(params, state, history, index):
    state[SHOWN] = index + 1
    state[CHANCE] = 0


@njit(VIEW, nogil=True)
def view(params, state, history, seat, out_sites, out_scalars):
    for colour in range(2):
        feature = OWN if colour == seat else ENEMY
        out_sites[feature, state[PLACE + colour]] = 1
    if state[SHOWN] > 0:
        out_scalars[THROW_1 + state[SHOWN] - 1] = 1
    out_scalars[MY_TURN] = state[MOVER] == seat
    out_scalars[NATURAL] = seat == 0


@njit(HEURISTIC, nogil=True)
def heuristic(params, state, history):
    return state[MARGIN] / (params[LENGTH] + 1.0)


# --8<-- [end:kernels]


# --8<-- [start:description]
def _layout(options: SprintOptions) -> BoardLayout:
    squares = range(options.length)
    return BoardLayout(1, options.length, tuple((0, s) for s in squares), tuple(str(s) for s in squares), "track")


def _chance(options: SprintOptions) -> tuple[ChanceKind, ...]:
    return (ChanceKind("throw", (1, 2), (0.5, 0.5)),)


def _scales(options: SprintOptions) -> dict[str, float]:
    return dict.fromkeys(("own", "enemy", "throw_1", "throw_2", "my_turn", "natural"), 1.0)


def _params(options: SprintOptions) -> Params:
    return np.array([options.length, options.max_turns], np.int32)


# --8<-- [end:description]


# --8<-- [start:text]
def format_position(options: SprintOptions, state: State) -> str:
    return f"{state[PLACE]} {state[PLACE + 1]} {'ox'[state[MOVER]]} {state[SHOWN] or '-'}"


def parse_position(options: SprintOptions, text: str) -> State:
    try:
        natural, black, side, throw = text.split()
        state = np.zeros(HEADER_SIZE + 3, np.int16)
        state[PLACE], state[PLACE + 1] = int(natural), int(black)
        state[MOVER] = state[SEAT] = "ox".index(side)
        state[SHOWN] = 0 if throw == "-" else int(throw)
    except ValueError as error:
        raise NotationError(f"cannot read {text!r} as 'natural black side throw'") from error
    state[MARGIN] = state[PLACE] - state[PLACE + 1]
    state[CHANCE] = THROW if state[SHOWN] == 0 else 0
    for colour, outcome, payoff in ((0, NATURAL_WINS, 1), (1, BLACK_WINS, -1)):
        if state[PLACE + colour] >= options.length:
            state[CHANCE] = 0
            state[OUTCOME], state[REASON], state[PAYOFF] = outcome, REASON_HOME, payoff
    return state


def format_actions(options: SprintOptions, state: State, actions: Sequence[int]) -> list[str]:
    return ["wait" if action == WAIT else f"run {state[SHOWN]}" for action in actions]


def parse_action(options: SprintOptions, state: State, text: str) -> int:
    words = text.split()
    if words == ["wait"]:
        return WAIT
    if words[:1] == ["run"]:
        return RUN
    raise NotationError(f"{text!r} is neither 'run N' nor 'wait'")


def site_pieces(options: SprintOptions, state: State) -> list[str]:
    return [("o" if state[PLACE] == s else "") + ("x" if state[PLACE + 1] == s else "") for s in range(options.length)]


# --8<-- [end:text]


# --8<-- [start:record]
RULES = GameRules(
    name="sprint",
    title="Sprint",
    version=1,
    source="this file",
    variants={"box": SprintOptions(), "long": SprintOptions(length=12)},
    variant_notes={"box": "five squares", "long": "twelve squares"},
    reasons=("", "home", "max_turns"),
    layout=_layout,
    num_actions=lambda options: 2,
    num_seats=lambda options: 2,
    state_size=lambda options: HEADER_SIZE + 3,
    history_size=lambda options: 0,
    params=_params,
    chance=_chance,
    margin_scale=lambda options: options.length + 1,
    feature_scales=_scales,
    kernels=Kernels(initial, legal, apply, apply_chance, view, heuristic),
    start_history=start_history,
    format_position=format_position,
    parse_position=parse_position,
    format_actions=format_actions,
    parse_action=parse_action,
    throw=lambda options, state: int(state[SHOWN]) or None,
    site_pieces=site_pieces,
    status=lambda options, state: {"throw": str(state[SHOWN] or "-")},
    board_text=lambda options, state: " ".join(p or "." for p in site_pieces(options, state)),
)
# --8<-- [end:record]
