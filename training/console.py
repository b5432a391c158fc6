"""What the commands share: how they speak, and how mistakes in what was asked for become one line."""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

PROGRAM = "tradgames"

FINE, FAILED, MISTAKE = 0, 1, 2
"""Exit codes: done; failed or interrupted; a mistake in what was asked for."""

# Tables keep their full width where they go to a file.
_FILE_WIDTH = 160


class UserError(Exception):
    """What was asked for cannot be done; the message says why in one line."""


@contextlib.contextmanager
def mistakes() -> Iterator[None]:
    """Errors about what the user wrote become ``UserError``; wrap as little as possible, or bugs would hide in it."""
    try:
        yield
    except (ValueError, ImportError) as error:
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error


def say(text: str) -> None:
    """Write lines to standard output at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def complain(message: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"{PROGRAM}: {' '.join(message.split())}\n")


def tables() -> Console:
    """Where results go."""
    console = Console()
    return console if console.is_terminal else Console(width=_FILE_WIDTH)


def progress() -> Console:
    """Where progress and notes go."""
    return Console(stderr=True)


def name_and_value(text: str, flag: str, form: str) -> tuple[str, str]:
    """The two sides of ``NAME=VALUE``.

    Raises:
        ValueError: the text has not this form; the message names the flag it was given with.
    """
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise ValueError(f"{flag} takes {form}, not {text!r}")
    return name.strip(), value.strip()


def rule_options(defaults: Any, texts: Sequence[str]) -> Mapping[str, Any]:
    """``NAME=VALUE`` texts as values of the types that a game's options have.

    Args:
        defaults: options of the game.
        texts: what was given with --option; unknown names are left to the rules to refuse.

    Raises:
        ValueError: a text has another form, or its value another type.
    """
    pairs = (name_and_value(text, "--option", "NAME=VALUE") for text in texts)
    return {name: _typed(name, value, getattr(defaults, name, value)) for name, value in pairs}


def _typed(name: str, text: str, default: object) -> object:
    truths = {"true": True, "false": False}
    if isinstance(default, bool):
        if text.lower() not in truths:
            raise ValueError(f"option {name!r} is true or false, not {text!r}")
        return truths[text.lower()]
    for kind, words in ((int, "an integer"), (float, "a number")):
        if isinstance(default, kind):
            try:
                return kind(text)
            except ValueError:
                raise ValueError(f"option {name!r} takes {words}, not {text!r}") from None
    return text
