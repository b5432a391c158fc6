"""Registration of every game with Gymnasium and PettingZoo, without importing any rules."""

from typing import TYPE_CHECKING

import gymnasium

from tradgames_env.rules.registry import add_rules, games, load_rules

if TYPE_CHECKING:
    from tradgames_env.rules.contract import GameRules, Options

NAMESPACE = "tradgames"


def gymnasium_id(game: str) -> str:
    """``tradgames/YutNori-v0`` for ``yut_nori``."""
    return f"{NAMESPACE}/{game.title().replace('_', '')}-v0"


def register_all() -> None:
    """Register every game that ships; called once, when the package is imported."""
    for game in games():
        _register(game)


def register_game(rules: "GameRules") -> None:
    """Make a game from outside the package known everywhere in this process.

    Raises:
        ValueError: another game already has this name.
    """
    add_rules(rules)
    if gymnasium_id(rules.name) not in gymnasium.registry:
        _register(rules.name)


def variants(game: str) -> "dict[str, Options]":
    """Each variant of a game with its options.

    Raises:
        ValueError: no such game.
    """
    return dict(load_rules(game).variants)


def _register(game: str) -> None:
    gymnasium.register(
        id=gymnasium_id(game),
        entry_point="tradgames_env.envs.single_agent:SingleAgentEnv",
        vector_entry_point="tradgames_env.envs.vector:VectorGameEnv",
        kwargs={"game": game},
    )
    _register_with_pettingzoo(game)


def _register_with_pettingzoo(game: str) -> None:
    import pettingzoo

    if not hasattr(pettingzoo, "register"):  # before 1.27 there is no registry
        return
    pettingzoo.register("aec", f"{NAMESPACE}/{game}-v0", "tradgames_env.envs.aec:env", kwargs={"game": game})
    pettingzoo.register(
        "parallel", f"{NAMESPACE}/{game}-v0", "tradgames_env.envs.aec:parallel_env", kwargs={"game": game}
    )
