"""Scenes as SVG, without any dependency."""

from xml.sax.saxutils import escape, quoteattr

from tradgames_env.rendering.scene import WIDTH, Circle, Line, Polygon, Rect, Scene, Shape, Text

_FONTS = "Helvetica, Arial, 'Liberation Sans', sans-serif"


def scene_to_svg(scene: Scene, size: int) -> str:
    """A scene as an SVG document ``size`` pixels wide; its title and description are the document's."""
    width, height = scene.pixels(size)
    body = "\n".join(_element(shape) for shape in scene.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {_number(WIDTH)} {_number(scene.height)}" preserveAspectRatio="none" role="img" '
        f"font-family={quoteattr(_FONTS)}>\n"
        f"<title>{_text(scene.title)}</title>\n<desc>{_text(scene.description)}</desc>\n{body}\n</svg>\n"
    )


def _element(shape: Shape) -> str:
    match shape:
        case Rect():
            place = _attributes(x=shape.x, y=shape.y, width=shape.width, height=shape.height, rx=shape.radius)
            return f"<rect{place}{_paint(shape)}/>"
        case Circle():
            return f"<circle{_attributes(cx=shape.x, cy=shape.y, r=shape.radius)}{_paint(shape)}/>"
        case Line():
            place = _attributes(x1=shape.x1, y1=shape.y1, x2=shape.x2, y2=shape.y2)
            return f'<line{place} stroke="{shape.stroke}" stroke-width="{_number(shape.stroke_width)}"/>'
        case Polygon():
            points = " ".join(f"{_number(x)},{_number(y)}" for x, y in shape.points)
            return f'<polygon points="{points}" fill="{shape.fill}"/>'
        case Text():
            return _text_element(shape)


def _text_element(shape: Text) -> str:
    look = f' font-size="{_number(shape.size)}" text-anchor="{shape.anchor}" fill="{shape.fill}"'
    if shape.bold:
        look += ' font-weight="bold"'
    if shape.halo is not None:
        rim = _number(shape.size * 0.28)
        look += f' stroke="{shape.halo}" stroke-width="{rim}" stroke-linejoin="round" paint-order="stroke"'
    return f"<text{_attributes(x=shape.x, y=shape.baseline)}{look}>{_text(shape.text)}</text>"


def _paint(shape: Rect | Circle) -> str:
    paint = f' fill="{shape.fill or "none"}"'
    if shape.stroke is not None:
        paint += f' stroke="{shape.stroke}" stroke-width="{_number(shape.stroke_width)}"'
    return paint + (f' opacity="{_number(shape.opacity)}"' if shape.opacity < 1 else "")


def _attributes(**values: float) -> str:
    return "".join(f' {name}="{_number(value)}"' for name, value in values.items() if value or name != "rx")


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    """Text for XML, which knows no control characters, not even escaped."""
    return escape("".join(c if c.isprintable() else " " for c in text))
