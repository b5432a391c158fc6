"""HTML that is escaped by construction: text becomes markup only through ``element`` or, knowingly, ``Html``."""

import base64
import html

_VOID = frozenset({"br", "hr", "img", "input", "meta"})


class Html(str):
    """Text that already is markup and is not escaped again."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Html:
    """An element.

    Args:
        tag: its name.
        *children: ``Html`` as it is, anything else as escaped text, None as nothing.
        **attributes: a trailing underscore is dropped (``class_``), other underscores become hyphens; True stands for
            an attribute without a value, None and False for no attribute.
    """
    opening = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    if tag in _VOID:
        return Html(opening)
    return Html(f"{opening}{join(*children)}</{tag}>")


def join(*children: object) -> Html:
    """Children one after the other, as ``element`` takes them."""
    return Html("".join(_escaped(child) for child in children if child is not None))


def data_uri(content: str | bytes, media_type: str) -> str:
    """``content`` as a ``data:`` address, so that a page needs no other file."""
    raw = content.encode() if isinstance(content, str) else content
    return f"data:{media_type};base64,{base64.b64encode(raw).decode('ascii')}"


def _escaped(child: object) -> str:
    return child if isinstance(child, Html) else html.escape(str(child))


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{html.escape(str(value))}"'
