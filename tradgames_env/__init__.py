"""Traditional games to learn by self-play: Petteia, Puluc, Yote and Yut Nori.

Importing the package registers the games with Gymnasium (``tradgames/Petteia-v0``) and, where it has a registry, with
PettingZoo (``tradgames/petteia-v0``). Everything heavier is imported when first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tradgames_env.registration import register_all
from tradgames_env.rules.errors import IllegalMoveError, NotationError, OptionError
from tradgames_env.rules.registry import games
from tradgames_env.version import __version__

if TYPE_CHECKING:
    from tradgames_env.agents import load_agent
    from tradgames_env.encoding import ENCODER_VERSION, PLANES, Encoder
    from tradgames_env.envs.aec import env, parallel_env, raw_env
    from tradgames_env.envs.batch_games import BatchGames
    from tradgames_env.position import Position, perft
    from tradgames_env.registration import register_game, variants

_LATE = {
    "BatchGames": "tradgames_env.envs.batch_games",
    "ENCODER_VERSION": "tradgames_env.encoding",
    "Encoder": "tradgames_env.encoding",
    "PLANES": "tradgames_env.encoding",
    "Position": "tradgames_env.position",
    "env": "tradgames_env.envs.aec",
    "load_agent": "tradgames_env.agents",
    "parallel_env": "tradgames_env.envs.aec",
    "perft": "tradgames_env.position",
    "raw_env": "tradgames_env.envs.aec",
    "register_game": "tradgames_env.registration",
    "variants": "tradgames_env.registration",
}

__all__ = [
    "ENCODER_VERSION",
    "PLANES",
    "BatchGames",
    "Encoder",
    "IllegalMoveError",
    "NotationError",
    "OptionError",
    "Position",
    "__version__",
    "env",
    "games",
    "load_agent",
    "parallel_env",
    "perft",
    "raw_env",
    "register_game",
    "variants",
]


def __getattr__(name: str) -> Any:
    """Import public names on first use: numba and PettingZoo take longer to load than most scripts need them for."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


register_all()
