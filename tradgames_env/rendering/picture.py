"""A position as a picture: black's panel above the board, natural's below it, and a line of what else there is."""

from collections.abc import Collection, Mapping
from typing import Unpack

from tradgames_env.position import Position
from tradgames_env.rendering.boards import Board, draw_board
from tradgames_env.rendering.pieces import disc
from tradgames_env.rendering.scene import (
    ACCENT,
    FAINT_INK,
    INK,
    NATURAL_FILL,
    PAGE,
    PANEL,
    PANEL_ACTIVE,
    WIDTH,
    Marks,
    Rect,
    Scene,
    Shape,
    Text,
    fit,
    text_width,
)
from tradgames_env.rules.contract import CHANCE

_MARGIN = 14.0
_GAP = 10.0
_PANEL_HEIGHT = 52.0
_FOOTER_HEIGHT = 30.0
_SIDES = ("natural", "black")
_LETTERS = "ox"
# What a side's counts count: pieces of its own that are off the board, or pieces of the other that it took.
_OWN_COUNTS = ("reserve", "waiting", "home", "house")
_TAKEN_COUNTS = ("captures", "captured", "removed")
# The kind of throw that belongs to neither side.
_FIRST_PLAYER = "first player"
# The hand is drawn as tiles beside the mover.
_HAND = ("throw", "die")


def build_scene(position: Position, **marks: Unpack[Marks]) -> Scene:
    """The picture of a position; see ``Marks`` for what can be marked on it.

    Its height depends on the ruleset alone, so that the pictures of a game make a film.

    Raises:
        ValueError: a mark names a site that the board does not have.
    """
    ruleset = position.ruleset
    state, _ = position.rows
    status = ruleset.rules.status(ruleset.options, state)
    board = Board(
        layout=ruleset.layout,
        pieces=ruleset.rules.site_pieces(ruleset.options, state),
        last_move=_check_sites("last_move", marks.get("last_move") or (), position),
        targets=_check_sites("targets", marks.get("targets", ()), position),
        annotations=marks.get("annotations") or {},
    )
    _check_sites("annotations", board.annotations, position)
    top = _MARGIN + _PANEL_HEIGHT + _GAP
    drawn, board_height = draw_board(board, top)
    below = top + board_height + _GAP
    height = below + _PANEL_HEIGHT + _FOOTER_HEIGHT
    shapes: list[Shape] = [
        Rect(0, 0, WIDTH, height, PAGE),
        *_panel(position, 1, _side_status(status, 1), _MARGIN),
        *drawn,
        *_panel(position, 0, _side_status(status, 0), below),
        *_footer(position, status, below + _PANEL_HEIGHT + _FOOTER_HEIGHT / 2),
    ]
    title = f"{ruleset.rules.title} ({ruleset.variant}): {headline(position)}"
    return Scene(height, tuple(shapes), title, position.text())


def _check_sites(name: str, sites: Collection[int], position: Position) -> Collection[int]:
    count = len(position.ruleset.layout.cells)
    for site in sites:
        if not 0 <= site < count:
            raise ValueError(f"{name} names site {site!r}; {position.game} has sites 0 to {count - 1}")
    return sites


def changed_sites(before: Position, after: Position) -> tuple[int, ...]:
    """Sites on which other pieces stand than before, in any game: what ``last_move`` wants after a move."""
    rules, options = before.ruleset.rules, before.ruleset.options
    shown = [rules.site_pieces(options, position.rows[0]) for position in (before, after)]
    return tuple(site for site, (old, new) in enumerate(zip(*shown, strict=True)) if old != new)


def headline(position: Position) -> str:
    """How the game stands in a few words: "Natural wins (captures)", "Draw (quiet)", "Black to move"."""
    reason = (position.reason or "").replace("_", " ")
    if position.winner is not None:
        return f"{_SIDES[position.winner].capitalize()} wins ({reason})"
    if position.is_truncated:
        return f"Stopped ({reason})"
    if position.is_over:
        return f"Draw ({reason})"
    if position.chance_due:
        return f"{_due(position).capitalize()} due"
    return f"{_SIDES[position.to_move].capitalize()} to move"


def _due(position: Position) -> str:
    state, _ = position.rows
    return position.ruleset.chance_kinds[int(state[CHANCE]) - 1].name


# -- panels --------------------------------------------------------------------------------------------------------
def _side_status(status: Mapping[str, str], side: int) -> dict[str, str]:
    prefix = f"{_SIDES[side]} "
    return {key.removeprefix(prefix): value for key, value in status.items() if key.startswith(prefix)}


def _panel(position: Position, side: int, status: Mapping[str, str], top: float) -> list[Shape]:
    """A side's name, what it has beside the board, and whether it is to move or has won."""
    badge = _badge(position, side)
    left, width = _MARGIN, WIDTH - 2 * _MARGIN
    active = bool(badge)
    shapes: list[Shape] = [
        Rect(left, top, width, _PANEL_HEIGHT, PANEL_ACTIVE if active else PANEL, ACCENT if active else "#d9ccb4",
             2.0 if active else 1.0, radius=8),
        *disc(left + 27, top + _PANEL_HEIGHT / 2, 16, _LETTERS[side]),
        Text(left + 54, top + 16, _SIDES[side].capitalize(), 16, INK, "start", bold=True),
    ]  # fmt: skip
    right = left + width - 10
    if badge:
        shapes += _pill(badge, right, top + 16)
        right -= text_width(badge, 13) + 26
    if side == position.to_move and not position.is_over:
        shapes += _tiles(position, right, top + 16)
    return shapes + _counts(side, status, left + 54, top + 37, width - 66)


def _badge(position: Position, side: int) -> str:
    if position.winner == side:
        return "won"
    if position.is_over or side != position.to_move:
        return ""
    if position.chance_due:
        due = _due(position)
        return "" if due == _FIRST_PLAYER else f"{due} due"
    partner = f", partner {position.seat // 2 + 1}" if position.ruleset.num_seats > 2 else ""
    return f"to move{partner}"


def _pill(text: str, right: float, y: float) -> list[Shape]:
    width = text_width(text, 13) + 18
    return [
        Rect(right - width, y - 10, width, 20, ACCENT, radius=10),
        Text(right - width / 2, y, text, 13, PANEL_ACTIVE),
    ]


def _tiles(position: Position, right: float, y: float) -> list[Shape]:
    """The throw in hand as tiles, the last one ending at ``right``."""
    throw = position.throw
    values = throw if isinstance(throw, tuple) else () if throw is None else (throw,)
    shapes: list[Shape] = []
    for place, value in enumerate(reversed(values)):
        x = right - 24 - 27 * place
        shapes.append(Rect(x, y - 11, 24, 22, NATURAL_FILL, INK, 1.5, radius=5))
        shapes.append(Text(x + 12, y, str(value), 15, INK, bold=True))
    return shapes


def _counts(side: int, status: Mapping[str, str], left: float, y: float, room: float) -> list[Shape]:
    """What a side has beside the board in one row: pieces as little discs with their number, the rest in words."""
    size, gap = 13.0, 16.0
    widths = [_count_width(name, value, size, pips=True) for name, value in status.items()]
    pips = sum(widths) + gap * len(widths) <= room
    if not pips:
        needed = sum(_count_width(name, value, size, pips=False) + gap for name, value in status.items())
        size *= min(1.0, room / needed)
    shapes: list[Shape] = []
    for name, value in status.items():
        x = left
        shapes.append(Text(x, y, name, size, FAINT_INK, "start"))
        x += text_width(name, size) + 4
        letter = _pip_letter(side, name)
        if pips and letter and value.isdigit():
            for place in range(int(value)):
                shapes += disc(x + 6 + 8 * place, y, 6, letter)
            x += _pips_width(value)
        shapes.append(Text(x, y, value, size, INK, "start", bold=True))
        left += _count_width(name, value, size, pips=pips) + gap
    return shapes


def _pip_letter(side: int, name: str) -> str:
    if name in _OWN_COUNTS:
        return _LETTERS[side]
    return _LETTERS[1 - side] if name in _TAKEN_COUNTS else ""


def _pips_width(value: str) -> float:
    return 8.0 * int(value) + 8 if int(value) else 0.0


def _count_width(name: str, value: str, size: float, *, pips: bool) -> float:
    with_pips = pips and _pip_letter(0, name) and value.isdigit()
    return text_width(name, size) + 4 + text_width(value, size) + (_pips_width(value) if with_pips else 0.0)


def _footer(position: Position, status: Mapping[str, str], y: float) -> list[Shape]:
    """The result or the game's name on the left, the rest of the status on the right."""
    rules = position.ruleset.rules
    name = f"{rules.title} · {position.variant}"
    words = [
        f"{key} {value}"
        for key, value in status.items()
        if not key.startswith(tuple(f"{side} " for side in _SIDES)) and key not in _HAND and value != "-"
    ]
    if position.is_over:
        words.insert(0, name)
    elif position.chance_due:
        words.insert(0, headline(position))
    left, right = headline(position) if position.is_over else name, " · ".join(words)
    room = WIDTH - 2 * _MARGIN - 8
    size = 15.0 if position.is_over else 13.0
    left_width = text_width(left, size)
    shapes: list[Shape] = [Text(_MARGIN + 4, y, left, size, INK, "start", bold=position.is_over)]
    if right:
        size = fit(right, 13.0, room - left_width - 16)
        shapes.append(Text(WIDTH - _MARGIN - 4, y, right, size, FAINT_INK, "end"))
    return shapes
