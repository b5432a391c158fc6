"""SuperSuit's wrappers around a game: those that work, and one clear line for those that cannot."""

from typing import Any

import supersuit
from pettingzoo import AECEnv

_USELESS = {
    "black_death_v3": "it needs a parallel game, and both players end together anyway",
    "clip_actions_v0": "actions are numbers of moves, not amounts",
    "color_reduction_v0": "observations are planes of a board, not pictures",
    "frame_skip_v0": "it repeats an action, which is not legal twice",
    "resize_v1": "observations are planes of a board, not pictures",
    "scale_actions_v0": "actions are numbers of moves, not amounts",
    "sticky_actions_v0": "it repeats an action, which is not legal twice",
    "vectorize_aec_env_v0": "many games at once are tradgames_env.BatchGames or gymnasium.make_vec",
}
"""Wrappers that cannot work in a turn game with masked actions, and why or what to use."""


def wrap(game: AECEnv[str, Any, Any], wrapper: str, *args: Any, **kwargs: Any) -> Any:
    """A game in one of SuperSuit's wrappers.

    Args:
        game: made with ``mask_in="info"``: SuperSuit's wrappers take no dict observations.
        wrapper: its name, ``"frame_stack_v1"`` for example.
        *args: what the wrapper takes after the environment.
        **kwargs: the same by name.

    Raises:
        ValueError: there is no such wrapper, it cannot work in these games, or the mask is in the observation.
    """
    if wrapper in _USELESS:
        raise ValueError(f"SuperSuit's {wrapper} cannot work in these games: {_USELESS[wrapper]}")
    try:
        make = getattr(supersuit, wrapper)
    except (AttributeError, ImportError):
        raise ValueError(f"SuperSuit has no wrapper {wrapper!r}") from None
    if hasattr(game.observation_space(game.possible_agents[0]), "spaces"):
        raise ValueError("SuperSuit takes no dict observations: make the game with mask_in='info'")
    return make(game, *args, **kwargs)
