"""Pictures of positions: SVG, pixels, files, a window. A game is drawn from its layout; none is known by name.

Pillow and pygame are imported when they are first needed; SVG needs neither.
"""

import pathlib
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from tradgames_env.position import Position
from tradgames_env.rendering.image import scene_to_array
from tradgames_env.rendering.picture import build_scene, changed_sites
from tradgames_env.rendering.scene import Marks
from tradgames_env.rendering.svg import scene_to_svg
from tradgames_env.rendering.window import Window

__all__ = ["Marks", "Window", "changed_sites", "image", "save", "svg"]

_SUFFIXES = (".svg", ".png", ".txt")


def svg(position: Position, *, size: int = 480, **marks: Unpack[Marks]) -> str:
    """A position as an SVG document.

    Args:
        position: what to draw.
        size: width in pixels, 64 to 4096; the height follows from the board and is the same throughout a game.
        **marks: ``last_move``, ``targets`` (both site indices) and ``annotations`` (site index to text); see ``Marks``.

    Raises:
        ValueError: ``size`` is out of range, or a mark names a site that the board does not have.
    """
    return scene_to_svg(build_scene(position, **marks), size)


def image(position: Position, *, size: int = 480, **marks: Unpack[Marks]) -> NDArray[np.uint8]:
    """A position as pixels, (H, W, 3) uint8; arguments and errors as ``svg``.

    Raises:
        ImportError: Pillow is not installed.
        ValueError: as ``svg``.
    """
    return scene_to_array(build_scene(position, **marks), size)


def save(position: Position, path: str | pathlib.Path, *, size: int = 480, **marks: Unpack[Marks]) -> None:
    """Write a position to a file: a picture (``.svg``, ``.png``) or the board as text (``.txt``).

    Raises:
        ImportError: a ``.png`` without Pillow.
        ValueError: another suffix, or as ``svg``.
    """
    path = pathlib.Path(path)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(f"cannot save a position as {path.name!r}; the name must end in {', '.join(_SUFFIXES)}")
    if suffix == ".svg":
        path.write_text(svg(position, size=size, **marks), encoding="utf-8")
    elif suffix == ".txt":
        path.write_text(f"{position}\n", encoding="utf-8")
    else:
        pixels = image(position, size=size, **marks)
        from PIL import Image

        Image.fromarray(pixels).save(path)
