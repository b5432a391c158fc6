"""Info dicts in which the last move is written down when somebody reads them."""

import functools
from collections.abc import Callable
from typing import Any


class Info(dict[str, Any]):
    """An agent's info dict, a dict in every respect: its "move" is there whenever anybody looks.

    Notation takes longer than a move and its observation together, and who trains never reads it. Every method that
    touches values writes the move first; copies and pickles are plain dicts.
    """

    __slots__ = ("notation",)
    notation: Callable[[], str] | None
    """Gives the move that is not written yet."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """As a plain dict."""
        return dict, (dict(self),)


def _with_the_move(name: str) -> Callable[..., Any]:
    """A dict's method that finds the move written."""
    plain = getattr(dict, name)

    @functools.wraps(plain)
    def method(self: Info, *args: Any, **kwargs: Any) -> Any:
        notation = getattr(self, "notation", None)
        if notation is not None:
            self.notation = None
            dict.__setitem__(self, "move", notation())
        return plain(self, *args, **kwargs)

    return method


# With ``__iter__`` among them, ``dict(info)`` and ``{**info}`` read through these methods too.
for _name in (
    "__getitem__", "__setitem__", "__delitem__", "__iter__", "__reversed__", "__eq__", "__ne__", "__repr__", "__or__",
    "__ror__", "__ior__", "clear", "copy", "get", "items", "pop", "popitem", "setdefault", "update", "values",
):  # fmt: skip
    setattr(Info, _name, _with_the_move(_name))
