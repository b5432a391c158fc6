"""Info dicts in which the last move is written down when somebody reads them."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tradgames_env.rules.ruleset import Ruleset

Played = tuple[Ruleset, bytes, int]
"""A move before it is written: the game, the state row (int16) it was played on, the action. Bytes are made in a
fraction of the time of a copied row, and a plain tuple in that of a named one."""


class Info(dict[str, Any]):
    """An agent's info dict, a dict in every respect: its "move" is there whenever anybody looks.

    Notation takes longer than a move and its observation together, and who trains never reads it. Every method that
    touches values writes the move first; copies and pickles are plain dicts.
    """

    __slots__ = ("played",)
    played: Played | None
    """The move that is not written yet."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """As a plain dict."""
        return dict, (dict(self),)


def _write_move(info: Info) -> None:
    played = getattr(info, "played", None)
    if played is not None:
        ruleset, row, action = played
        state = np.frombuffer(bytearray(row), np.int16)
        dict.__setitem__(info, "move", ruleset.notation(state, action))
        info.played = None


def _with_the_move(name: str) -> Callable[..., Any]:
    """A dict's method that finds the move written, that of another info dict it is compared with too."""
    plain = getattr(dict, name)

    @functools.wraps(plain)
    def method(self: Info, *args: Any, **kwargs: Any) -> Any:
        for value in (self, *args):
            if isinstance(value, Info):
                _write_move(value)
        return plain(self, *args, **kwargs)

    return method


# With ``__iter__`` among them, ``dict(info)`` and ``{**info}`` read through these methods too.
for _name in (
    "__getitem__", "__setitem__", "__delitem__", "__iter__", "__reversed__", "__eq__", "__ne__", "__repr__", "__or__",
    "__ror__", "__ior__", "clear", "copy", "get", "items", "pop", "popitem", "setdefault", "update", "values",
):  # fmt: skip
    setattr(Info, _name, _with_the_move(_name))
