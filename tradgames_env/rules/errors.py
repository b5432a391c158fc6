"""Errors that a user of the rules can cause; each message names what was wrong and what would be right."""


class OptionError(ValueError):
    """A rule option is unknown, out of range, or contradicts another one."""


class NotationError(ValueError):
    """A move or position text cannot be read."""


class IllegalMoveError(ValueError):
    """A move can be read but not played in this position."""
