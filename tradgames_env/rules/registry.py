"""Which games there are. A game's name is that of its ``<name>_v0.py`` door; its rules are ``rules/<name>.py``."""

import importlib
import pathlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tradgames_env.rules.contract import GameRules

_PACKAGE = pathlib.Path(__file__).parent.parent
_DOOR_SUFFIX = "_v0"
_registered: "dict[str, GameRules]" = {}


def games() -> tuple[str, ...]:
    """Names of all games in alphabetical order, without importing their rules."""
    shipped = {path.stem.removesuffix(_DOOR_SUFFIX) for path in _PACKAGE.glob(f"*{_DOOR_SUFFIX}.py")}
    return tuple(sorted(shipped | set(_registered)))


def load_rules(name: str) -> "GameRules":
    """The rules of a game, imported when first asked for.

    Raises:
        ValueError: there is no such game; the message lists those there are.
    """
    if not isinstance(name, str):
        raise ValueError(f"a game is given by its name, such as {games()[0]!r}, not {name!r}")
    if name in _registered:
        return _registered[name]
    if name not in games():
        raise ValueError(f"there is no game {name!r}; known: {', '.join(games())}")
    rules: GameRules = importlib.import_module(f"tradgames_env.rules.{name}").RULES
    return rules


def add_rules(rules: "GameRules") -> None:
    """Make a game from outside the package known under ``rules.name`` in this process.

    Raises:
        ValueError: another game already has this name.
    """
    if rules.name in games() and _registered.get(rules.name) is not rules:
        raise ValueError(f"there already is a game {rules.name!r}")
    _registered[rules.name] = rules
