"""Scenes as arrays of pixels, drawn by Pillow at several times the size and scaled down to smooth every edge."""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tradgames_env.rendering.scene import PAGE, WIDTH, Circle, Line, Polygon, Rect, Scene, Shape, Text

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_OVERSAMPLING = 3
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def scene_to_array(scene: Scene, size: int) -> NDArray[np.uint8]:
    """A scene as (H, W, 3) uint8, ``size`` pixels wide.

    Raises:
        ImportError: Pillow is not installed.
    """
    width, height = scene.pixels(size)
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise ImportError("pictures need Pillow: pip install 'tradgames-env[render]'") from error
    large = Image.new("RGB", (width * _OVERSAMPLING, height * _OVERSAMPLING), PAGE)
    # Mode RGBA on an RGB image blends, which takes ten times as long.
    opaque, blending = ImageDraw.Draw(large), ImageDraw.Draw(large, "RGBA")
    for shape in scene.shapes:
        is_opaque = not isinstance(shape, Rect | Circle) or shape.opacity == 1
        _draw(opaque if is_opaque else blending, shape, width * _OVERSAMPLING / WIDTH)
    return np.array(large.reduce(_OVERSAMPLING))


def _draw(canvas: "ImageDraw", shape: Shape, scale: float) -> None:
    match shape:
        case Rect():
            box = (shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
            corners = _grown(box, shape, scale)
            canvas.rounded_rectangle(corners, shape.radius * scale, **_paint(shape, scale))
        case Circle():
            box = (shape.x - shape.radius, shape.y - shape.radius, shape.x + shape.radius, shape.y + shape.radius)
            canvas.ellipse(_grown(box, shape, scale), **_paint(shape, scale))
        case Line():
            ends = [value * scale for value in (shape.x1, shape.y1, shape.x2, shape.y2)]
            canvas.line(ends, shape.stroke, max(1, round(shape.stroke_width * scale)))
        case Polygon():
            canvas.polygon([(x * scale, y * scale) for x, y in shape.points], shape.fill)
        case Text():
            _write(canvas, shape, scale)


def _grown(box: tuple[float, float, float, float], shape: Rect | Circle, scale: float) -> list[float]:
    """The box in pixels with the outer half of the stroke, which Pillow draws inside the box it is given."""
    half = shape.stroke_width * scale / 2 if shape.stroke else 0.0
    left, top, right, bottom = (value * scale for value in box)
    # Pillow counts the last row and column in.
    return [left - half, top - half, right + half - 1, bottom + half - 1]


def _paint(shape: Rect | Circle, scale: float) -> dict[str, Any]:
    return {
        "fill": _colour(shape.fill, shape.opacity),
        "outline": _colour(shape.stroke, shape.opacity),
        "width": max(1, round(shape.stroke_width * scale)) if shape.stroke else 0,
    }


def _colour(colour: str | None, opacity: float) -> str | None:
    return colour if colour is None or opacity == 1 else f"{colour}{round(255 * opacity):02x}"


def _write(canvas: "ImageDraw", shape: Text, scale: float) -> None:
    font = _font(max(1, round(shape.size * scale)))
    place, anchor = (shape.x * scale, shape.baseline * scale), _ANCHORS[shape.anchor]
    weight = max(1, round(shape.size * scale * 0.02)) if shape.bold else 0
    if shape.halo is not None:
        rim = weight + max(1, round(shape.size * scale * 0.14))
        canvas.text(place, shape.text, shape.halo, font, anchor, stroke_width=rim, stroke_fill=shape.halo)
    canvas.text(place, shape.text, shape.fill, font, anchor, stroke_width=weight, stroke_fill=shape.fill)


@functools.lru_cache(maxsize=64)
def _font(size: int) -> Any:
    """The font that ships with Pillow, ``size`` pixels high."""
    from PIL import ImageFont

    return ImageFont.load_default(size)
