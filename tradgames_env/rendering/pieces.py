"""Pieces as shapes: discs, leaders, piles of them, and the marks of a site. Letters as in ``GameRules.site_pieces``."""

from tradgames_env.rendering.scene import (
    ACCENT,
    BLACK_EDGE,
    BLACK_FILL,
    BLACK_RING,
    GOLD,
    INK,
    NATURAL_EDGE,
    NATURAL_FILL,
    PANEL_ACTIVE,
    TARGET,
    WOOD_DARK,
    Circle,
    Polygon,
    Shape,
    Text,
    fit,
)


def disc(x: float, y: float, radius: float, letter: str) -> list[Shape]:
    """One piece: light with a dark edge (``o``) or dark with a light ring (``x``); a capital wears a crown."""
    natural = letter in "oO"
    fill, edge, ring = (NATURAL_FILL, NATURAL_EDGE, WOOD_DARK) if natural else (BLACK_FILL, BLACK_EDGE, BLACK_RING)
    width = max(0.8, radius * 0.09)
    shapes: list[Shape] = [Circle(x, y, radius - width / 2, fill, edge, width)]
    if letter.isupper():
        shapes.append(Circle(x, y, radius * 0.76, None, GOLD, width * 1.2))
        shapes += _crown(x, y, radius * 0.52, NATURAL_EDGE if natural else GOLD)
    elif radius >= 8:
        shapes.append(Circle(x, y, radius * 0.66, None, ring, width * 0.8))
    return shapes


def _crown(x: float, y: float, half: float, fill: str) -> list[Shape]:
    low, high, dip = y + 0.72 * half, y - 0.75 * half, y + 0.1 * half
    points = (
        (x - half, low), (x - half, high), (x - half / 2, dip), (x, high - 0.1 * half),
        (x + half / 2, dip), (x + half, high), (x + half, low),
    )  # fmt: skip
    return [Polygon(points, fill)]


def pile(x: float, y: float, radius: float, letters: str, room: float) -> list[Shape]:
    """Pieces one on the other, bottom to top, the lowest at (x, y), their centres within ``room`` above it.

    Two and more carry their number on the top one.
    """
    shapes: list[Shape] = [Circle(x + radius * 0.06, y + radius * 0.12, radius, "#000000", opacity=0.25)]
    height = rise(radius, letters, room)
    for level, letter in enumerate(letters):
        shapes += disc(x, y - height * level / max(1, len(letters) - 1), radius, letter)
    if len(letters) > 1:
        shapes += _count(x, y - height, radius, letters)
    return shapes


def rise(radius: float, letters: str, room: float) -> float:
    """How far above the lowest piece of a pile the highest one lies."""
    return min(radius * 0.62 * max(0, len(letters) - 1), room)


def _count(x: float, y: float, radius: float, letters: str) -> list[Shape]:
    natural = letters[-1] in "oO"
    number = str(len(letters))
    fill, ink = (NATURAL_FILL, INK) if natural else (BLACK_FILL, NATURAL_FILL)
    size = fit(number, radius * 1.05, radius * 1.3)
    return [Circle(x, y, radius * 0.72, fill), Text(x, y, number, size, ink, bold=True)]


def target_mark(x: float, y: float, radius: float, *, is_ring: bool) -> list[Shape]:
    """A dot, or a ring around what stands there."""
    if is_ring:
        return [
            Circle(x, y, radius * 1.12, None, PANEL_ACTIVE, radius * 0.3),
            Circle(x, y, radius * 1.12, None, TARGET, radius * 0.18),
        ]
    return [Circle(x, y, radius * 0.36, TARGET, PANEL_ACTIVE, radius * 0.1)]


def note(x: float, y: float, text: str, size: float, width: float) -> list[Shape]:
    """The annotation of a site, legible over board and pieces."""
    return [Text(x, y, text, fit(text, size, width), ACCENT, bold=True, halo=PANEL_ACTIVE)]
