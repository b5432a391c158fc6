"""The trained policies that come with the package, by name: ``pretrained:petteia``, ``pretrained:petteia/fr6``."""

import difflib
import pathlib

from tradgames_env.agents.checkpoint import RECORD_FILE


def pretrained_folder() -> pathlib.Path:
    """Where they lie: inside an installed package, and at the top of a checkout."""
    package = pathlib.Path(__file__).parent.parent
    installed = package / "pretrained"
    return installed if installed.is_dir() else package.parent / "checkpoints"


def pretrained_names() -> tuple[str, ...]:
    """``GAME`` for the variant of the box, ``GAME/VARIANT`` for others."""
    return tuple(sorted(path.parent.name.replace("-", "/") for path in pretrained_folder().glob(f"*/{RECORD_FILE}")))


def locate(text: str) -> str:
    """The folder, as ``load_agent`` takes it, of ``NAME`` or ``NAME:EFFORT``.

    Raises:
        ValueError: there is no such policy; the message names those there are.
    """
    name, colon, effort = text.partition(":")
    known = pretrained_names()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"there is no pretrained policy {name!r}; {guess}known: {', '.join(known) or 'none'}")
    return str(pretrained_folder() / name.replace("/", "-")) + colon + effort
