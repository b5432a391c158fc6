"""What a picture is made of: a frozen list of shapes that every back end can draw, and the colours they come in.

Lengths are picture units. A picture is ``WIDTH`` units wide, so at the default size a unit is a pixel; x grows to the
right and y downwards. Shapes are drawn in order, later ones over earlier ones.

Colours are told apart by lightness as well as by hue, and marks by their form, so that nobody has to see colours.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import TypedDict

WIDTH = 480.0
"""Width of every picture in picture units."""

PAGE = "#f7f2e8"
PANEL = "#ece3d2"
PANEL_ACTIVE = "#fffdf8"
INK = "#2a241e"
FAINT_INK = "#6b5d4d"
FRAME = "#6e4a2a"
FRAME_INK = "#f3e2c3"
WOOD = "#d8b179"
WOOD_LIGHT = "#ead0a0"
WOOD_DARK = "#c2955a"
GROOVE = "#8d6335"
WOOD_INK = "#6a4620"
NATURAL_FILL = "#fdf4dd"
NATURAL_EDGE = "#4f3820"
BLACK_FILL = "#2b292e"
BLACK_EDGE = "#0c0b0d"
BLACK_RING = "#77727d"
GOLD = "#e3a21a"
ACCENT = "#0b62a8"
LAST_MOVE_TINT = "#a9cbe3"
TARGET = "#00594f"


@dataclasses.dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle from its top left corner, with corners rounded by ``radius``; a stroke lies half inside."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1.0
    radius: float = 0.0
    opacity: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str
    stroke_width: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Circle:
    """A circle around its centre; a stroke lies half inside."""

    x: float
    y: float
    radius: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1.0
    opacity: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Polygon:
    """A filled polygon."""

    points: tuple[tuple[float, float], ...]
    fill: str


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """One line of text; ``y`` is the middle of its capitals, ``x`` its "start", "middle" or "end".

    A ``halo`` is a rim of another colour that keeps the text legible over whatever it lies on.
    """

    x: float
    y: float
    text: str
    size: float
    fill: str = INK
    anchor: str = "middle"
    bold: bool = False
    halo: str | None = None

    @property
    def baseline(self) -> float:
        """Where the letters stand; capitals and digits are about 0.7 of the font's size high."""
        return self.y + 0.35 * self.size


Shape = Rect | Line | Circle | Polygon | Text


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """A picture: its height in picture units, what is drawn, and what it shows in words."""

    height: float
    shapes: tuple[Shape, ...]
    title: str
    description: str

    def pixels(self, size: int) -> tuple[int, int]:
        """(width, height) in pixels of a picture ``size`` wide; the height is even, as video encoders want it.

        Raises:
            ValueError: ``size`` is not an integer within reason.
        """
        if isinstance(size, bool) or not isinstance(size, int) or not 64 <= size <= 4096:
            raise ValueError(f"size must be an integer from 64 to 4096 (the picture's width in pixels), not {size!r}")
        return size, 2 * round(self.height * size / WIDTH / 2)


class Marks(TypedDict, total=False):
    """What may be marked on the board; sites are indices into ``ruleset.layout``, in natural's frame.

    ``last_move``: sites the last move touched, tinted. ``targets``: sites a move may go to, dotted.
    ``annotations``: a short text for a site.
    """

    last_move: Collection[int] | None
    targets: Collection[int]
    annotations: Mapping[int, str] | None


_NARROW = frozenset(" .,:;'|!()[]ijltfr-")
_WIDE = frozenset("mwMW@%")


def text_width(text: str, size: float) -> float:
    """About how wide a text is, on the wide side of what common sans-serif fonts need."""
    units = sum(0.33 if c in _NARROW else 0.9 if c in _WIDE else 0.66 if c.isupper() else 0.58 for c in text)
    return units * size


def fit(text: str, size: float, width: float) -> float:
    """The font size, ``size`` at most, at which a text is no wider than ``width``."""
    needed = text_width(text, size)
    return size if needed <= width else size * width / needed
