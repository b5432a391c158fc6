"""Boards as shapes, one function for each style of layout; nothing here knows which game it draws."""

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Mapping

from tradgames_env.rendering.pieces import note, pile, rise, target_mark
from tradgames_env.rendering.scene import (
    ACCENT,
    FRAME,
    FRAME_INK,
    GROOVE,
    LAST_MOVE_TINT,
    WIDTH,
    WOOD,
    WOOD_DARK,
    WOOD_INK,
    WOOD_LIGHT,
    Circle,
    Line,
    Rect,
    Shape,
    Text,
    fit,
)
from tradgames_env.rules.contract import BoardLayout

_MARGIN = 14.0
_INNER = WIDTH - 2 * _MARGIN
_FRAME = 22.0
_LARGEST_CELL = 96.0
_TALLEST = 560.0
_TRACK_HEIGHT = 150.0
_SQUARE = re.compile(r"([A-Za-z]+)([0-9]+)")


@dataclasses.dataclass(frozen=True)
class Board:
    """What stands and what is marked on a layout; sites are indices into it."""

    layout: BoardLayout
    pieces: list[str]
    last_move: Collection[int]
    targets: Collection[int]
    annotations: Mapping[int, str]


Drawing = tuple[list[Shape], float]
"""Shapes from a given top downwards, and the height they take, which depends on the layout alone."""


def draw_board(board: Board, top: float) -> Drawing:
    """The board and all that is on it, from ``top`` downwards over the whole width.

    Raises:
        ValueError: a layout style that has no drawing.
    """
    style = board.layout.style
    if style not in _STYLES:
        raise ValueError(f"no drawing for layout style {style!r}; known: {', '.join(_STYLES)}")
    return _STYLES[style](board, top)


# -- squares -------------------------------------------------------------------------------------------------------
def _draw_grid(board: Board, top: float) -> Drawing:
    layout = board.layout
    cell = min((_INNER - 2 * _FRAME) / layout.width, _TALLEST / layout.height, _LARGEST_CELL)
    width, height = cell * layout.width, cell * layout.height
    left, upper = (WIDTH - width) / 2, top + _FRAME
    shapes = _frame(left, upper, width, height)
    corners = [(left + column * cell, upper + row * cell) for row, column in layout.cells]
    for site, (x, y) in enumerate(corners):
        fill = LAST_MOVE_TINT if site in board.last_move else WOOD
        shapes.append(Rect(x, y, cell, cell, fill, GROOVE, max(1.0, cell * 0.025)))
    shapes += _square_labels(layout, corners, cell, (left, upper, width, height))
    for site in sorted(board.last_move):
        x, y = corners[site]
        shapes.append(Rect(x + 2, y + 2, cell - 4, cell - 4, None, ACCENT, max(2.0, cell * 0.05)))
    centres = [(x + cell / 2, y + cell / 2) for x, y in corners]
    shapes += _pieces_on(board, centres, cell * 0.38, cell * 0.24)
    for site in sorted(board.targets):
        shapes += target_mark(*centres[site], cell * 0.38, is_ring=bool(board.pieces[site]))
    for site, text in board.annotations.items():
        x, y = centres[site]
        shapes += note(x, y + cell * 0.34, text, max(10.0, cell * 0.24), cell * 0.94)
    return shapes, height + 2 * _FRAME


def _frame(left: float, upper: float, width: float, height: float) -> list[Shape]:
    x, y, full_width, full_height = left - _FRAME, upper - _FRAME, width + 2 * _FRAME, height + 2 * _FRAME
    return [
        Rect(x + 1, y + 3, full_width, full_height, "#000000", radius=9, opacity=0.18),
        Rect(x, y, full_width, full_height, FRAME, radius=8),
        Rect(left - 3, upper - 3, width + 6, height + 6, GROOVE, radius=2),
    ]


def _square_labels(
    layout: BoardLayout, corners: list[tuple[float, float]], cell: float, box: tuple[float, float, float, float]
) -> list[Shape]:
    """Files below and ranks to the left where the names are like ``A1``; otherwise each name within its square."""
    matches = [_SQUARE.fullmatch(name) for name in layout.names]
    if not all(matches):
        size = max(7.0, cell * 0.2)
        spots = zip(corners, layout.names, strict=True)
        return [
            Text(x + cell / 2, y + size * 0.7, name, fit(name, size, cell * 0.9), WOOD_INK) for (x, y), name in spots
        ]
    left, upper, _, height = box
    files = {column: match[1] for (_, column), match in zip(layout.cells, matches, strict=True) if match}
    ranks = {row: match[2] for (row, _), match in zip(layout.cells, matches, strict=True) if match}
    size = min(14.0, max(10.0, cell * 0.36))
    below, beside = upper + height + 3 + (_FRAME - 3) / 2, left - 3 - (_FRAME - 3) / 2
    return [
        *(Text(left + (column + 0.5) * cell, below, name, size, FRAME_INK) for column, name in files.items()),
        *(Text(beside, upper + (row + 0.5) * cell, name, size, FRAME_INK) for row, name in ranks.items()),
    ]


def _pieces_on(board: Board, centres: list[tuple[float, float]], radius: float, room: float) -> list[Shape]:
    """Piles on sites that are wide enough for one piece, so that they rise by little, ``room`` at most."""
    shapes: list[Shape] = []
    for (x, y), letters in zip(centres, board.pieces, strict=True):
        if letters:
            shift = min(room, radius * 0.24 * (len(letters) - 1))
            shapes += pile(x, y + shift / 2, radius, letters, shift)
    return shapes


# -- a line of squares ---------------------------------------------------------------------------------------------
def _draw_track(board: Board, top: float) -> Drawing:
    """Slots in which piles stand upright.

    The numbers below are natural's. A track between two named houses is walked from both ends, so black's numbers,
    counted from his house, stand above.
    """
    layout = board.layout
    padding = 10.0
    cell = (_INNER - 2 * padding) / layout.width
    slot = max(_TRACK_HEIGHT / layout.height, 64.0)
    upper, height = top + padding, slot * layout.height
    shapes: list[Shape] = [
        Rect(_MARGIN + 1, top + 3, _INNER, height + 2 * padding, "#000000", radius=9, opacity=0.18),
        Rect(_MARGIN, top, _INNER, height + 2 * padding, FRAME, radius=8),
    ]
    houses = _between_houses(layout)
    for site, (row, column) in enumerate(layout.cells):
        x, y = _MARGIN + padding + column * cell, upper + row * slot
        is_house = houses and site in (0, len(layout.cells) - 1)
        fill = LAST_MOVE_TINT if site in board.last_move else WOOD_DARK if is_house else WOOD
        shapes.append(Rect(x + 1.5, y, cell - 3, slot - 2, fill, GROOVE, radius=8 if is_house else 3))
        shapes += _slot_labels(layout, site, (x + cell / 2, y, slot), cell, houses)
        shapes += _slot_contents(board, site, (x, y), (cell, slot), houses)
    return shapes, height + 2 * padding


def _between_houses(layout: BoardLayout) -> bool:
    return len(layout.names) > 1 and not layout.names[0].isdigit() and not layout.names[-1].isdigit()


def _slot_labels(
    layout: BoardLayout, site: int, place: tuple[float, float, float], cell: float, houses: bool
) -> list[Shape]:
    x, y, slot = place
    sizes = [fit(name, min(13.0, cell * 0.5), cell - 6) for name in layout.names]
    # Numbers too small to read are thinned out rather than shrunk.
    stride = math.ceil(9.0 / max(1.0, fit(max(layout.names, key=len), 9.0, cell - 2)))
    if site % stride:
        return []
    size = max(sizes[site], 8.0)
    shapes: list[Shape] = [Text(x, y + slot - 12, layout.names[site], size, WOOD_INK)]
    if houses:
        mirrored = len(layout.names) - 1 - site
        size = max(sizes[mirrored], 8.0)
        shapes.append(Text(x, y + 10, layout.names[mirrored], size, WOOD_INK))
    return shapes


def _slot_contents(
    board: Board, site: int, corner: tuple[float, float], extent: tuple[float, float], houses: bool
) -> list[Shape]:
    (x, y), (cell, slot) = corner, extent
    radius = min(cell * 0.42, 20.0, slot * 0.3)
    floor, ceiling = y + slot - 22, y + (20 if houses else 6)
    middle, letters = x + cell / 2, board.pieces[site]
    shapes: list[Shape] = []
    if site in board.last_move:
        shapes.append(Rect(x + 3, y + 1.5, cell - 6, slot - 5, None, ACCENT, 2.5, radius=3))
    room = max(0.0, floor - ceiling - 2 * radius)
    if letters:
        shapes += pile(middle, floor - radius, radius, letters, room)
    if site in board.targets:
        highest = floor - radius - rise(radius, letters, room)
        shapes += target_mark(middle, highest, radius, is_ring=bool(letters))
    if site in board.annotations:
        text = board.annotations[site]
        shapes += note(middle, ceiling + 6, text, 12.0, cell + 2)
    return shapes


# -- stations and ways ---------------------------------------------------------------------------------------------
def _draw_graph(board: Board, top: float) -> Drawing:
    layout = board.layout
    padding = 42.0
    scale = (_INNER - 2 * padding) / max(1, layout.width - 1, (layout.height - 1) * 0.9)
    extent = (layout.width - 1) * scale, (layout.height - 1) * scale
    left, upper = (WIDTH - extent[0]) / 2, top + padding
    places = [(left + column * scale, upper + row * scale) for row, column in spread_stations(layout)]
    nearest = min((math.dist(places[a], places[b]) for a, b in layout.edges), default=scale)
    radius = min(nearest * 0.3, 24.0)
    ways = [len(way) for way in _neighbours(layout)]
    height = extent[1] + 2 * padding
    shapes: list[Shape] = [
        Rect(_MARGIN + 1, top + 3, _INNER, height, "#000000", radius=13, opacity=0.18),
        Rect(_MARGIN, top, _INNER, height, FRAME, radius=12),
        Rect(_MARGIN + 7, top + 7, _INNER - 14, height - 14, WOOD, GROOVE, 1.5, radius=8),
    ]
    shapes += [Line(*places[a], *places[b], GROOVE, max(2.0, radius * 0.16)) for a, b in layout.edges]
    for site, (x, y) in enumerate(places):
        is_marked = site in board.last_move
        shapes += _station(x, y, radius, layout.names[site], is_junction=ways[site] > 2, is_marked=is_marked)
    shapes += _pieces_on(board, places, radius * 0.92, radius * 0.5)
    # A dot would hide the station's number.
    for site in sorted(board.targets):
        shapes += target_mark(*places[site], radius * 0.92, is_ring=True)
    for site, text in board.annotations.items():
        x, y = places[site]
        shapes += note(x, y + radius * 1.25, text, 12.0, nearest * 0.95)
    return shapes, height


def _station(x: float, y: float, radius: float, name: str, *, is_junction: bool, is_marked: bool) -> list[Shape]:
    """A station; one where ways meet is larger and has a double ring."""
    edge = max(1.2, radius * 0.09)
    outer = radius * 1.3 if is_junction else radius * 1.06
    shapes: list[Shape] = []
    if is_junction:
        shapes.append(Circle(x, y, outer, WOOD_DARK, GROOVE, edge * 1.3))
    shapes.append(Circle(x, y, radius, LAST_MOVE_TINT if is_marked else WOOD_LIGHT, GROOVE, edge))
    if is_marked:
        shapes.append(Circle(x, y, outer, None, ACCENT, radius * 0.2))
    return [*shapes, Text(x, y, name, fit(name, radius * 0.75, radius * 1.4), WOOD_INK)]


def _neighbours(layout: BoardLayout) -> list[list[int]]:
    joined: list[list[int]] = [[] for _ in layout.cells]
    for a, b in layout.edges:
        joined[a].append(b)
        joined[b].append(a)
    return joined


def spread_stations(layout: BoardLayout) -> list[tuple[float, float]]:
    """(row, column) of each station; those on a straight way between two junctions are spread evenly along it.

    Cells are whole numbers and cannot always be even. Ways that are not straight keep their cells.
    """
    joined = _neighbours(layout)
    places: list[tuple[float, float]] = [(float(row), float(column)) for row, column in layout.cells]
    for junction in (site for site, way in enumerate(joined) if len(way) > 2):
        for first in joined[junction]:
            way = _walk(joined, junction, first)
            if _is_straight([layout.cells[site] for site in way]):
                (row, column), (last_row, last_column) = layout.cells[way[0]], layout.cells[way[-1]]
                for step, site in enumerate(way):
                    share = step / (len(way) - 1)
                    places[site] = row + share * (last_row - row), column + share * (last_column - column)
    return places


def _walk(joined: list[list[int]], junction: int, first: int) -> list[int]:
    """Sites from a junction over ``first`` to the next junction or dead end."""
    way = [junction, first]
    while len(joined[way[-1]]) == 2 and way[-1] != junction:
        way.append(next(site for site in joined[way[-1]] if site != way[-2]))
    return way


def _is_straight(cells: list[tuple[int, int]]) -> bool:
    (row, column), (last_row, last_column) = cells[0], cells[-1]
    down, right = last_row - row, last_column - column
    if not down and not right:
        return False
    along = [(r - row) * down + (c - column) * right for r, c in cells]
    off_line = any((r - row) * right != (c - column) * down for r, c in cells)
    return not off_line and along == sorted(set(along))


_STYLES: dict[str, Callable[[Board, float], Drawing]] = {
    "grid": _draw_grid,
    "track": _draw_track,
    "graph": _draw_graph,
}
