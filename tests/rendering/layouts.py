"""Positions on boards that no game has: the toy game's rules with another layout, pieces and status."""

import dataclasses

from tests import toy_game
from tradgames_env.position import Position
from tradgames_env.rules.contract import BoardLayout
from tradgames_env.rules.ruleset import load_ruleset


def position_on(
    layout: BoardLayout, pieces: dict[int, str] | None = None, status: dict[str, str] | None = None
) -> Position:
    """A running position that shows ``pieces`` on a layout; the toy game must be registered."""
    shown = [(pieces or {}).get(site, "") for site in range(len(layout.cells))]
    rules = dataclasses.replace(
        toy_game.RULES, site_pieces=lambda options, state: shown, status=lambda options, state: status or {}
    )
    ruleset = dataclasses.replace(load_ruleset(toy_game.RULES.name), rules=rules, layout=layout)
    return Position.from_ruleset(ruleset, seed=1)


def grid(height: int, width: int) -> BoardLayout:
    """Squares named as in the games, rank 1 at the bottom."""
    cells = tuple((height - 1 - rank, file) for rank in range(height) for file in range(width))
    names = tuple(f"{'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[file]}{rank + 1}" for rank in range(height) for file in range(width))
    return BoardLayout(height, width, cells, names, "grid")


def cross() -> BoardLayout:
    """A grid with corners missing, its squares named without files and ranks."""
    cells = tuple((row, column) for row in range(7) for column in range(7) if 2 <= row <= 4 or 2 <= column <= 4)
    return BoardLayout(7, 7, cells, tuple(f"site {site}" for site in range(len(cells))), "grid")


def two_rows() -> BoardLayout:
    """A track that turns at the end of its first row."""
    cells = tuple((site // 12, site % 12) for site in range(24))
    return BoardLayout(2, 12, cells, tuple(map(str, range(24))), "track")


def morris() -> BoardLayout:
    """Three rings joined at the middles of their sides: ways with bends, which must not be straightened."""
    cells: list[tuple[int, int]] = []
    edges = [(8 * k + i, 8 * k + (i + 1) % 8) for k in range(3) for i in range(8)]
    edges += [(8 * k + i, 8 * k + 8 + i) for k in range(2) for i in (1, 3, 5, 7)]
    for k in range(3):
        low, high = k, 6 - k
        cells += [(low, low), (low, 3), (low, high), (3, high), (high, high), (high, 3), (high, low), (3, low)]
    return BoardLayout(7, 7, tuple(cells), tuple(map(str, range(24))), "graph", tuple(edges))
