"""Errors that a user of the rules can cause; each message names what was wrong and what would be right."""

import operator


class OptionError(ValueError):
    """A rule option is unknown, out of range, or contradicts another one."""


class NotationError(ValueError):
    """A move or position text cannot be read."""


class IllegalMoveError(ValueError):
    """A move can be read but not played in this position."""


def require_count(name: str, value: object, low: int) -> int:
    """``value`` as an int.

    Args:
        name: of the argument, for the message.
        value: what the caller gave.
        low: the least that is right.

    Raises:
        ValueError: it is no integer (a truth value is none), or below ``low``.
    """
    try:
        count = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        count = low - 1
    if isinstance(value, bool) or count < low:
        raise ValueError(f"{name} must be an integer of at least {low}, not {value!r:.80}")
    return count
