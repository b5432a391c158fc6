"""Ladders: named sets of opponents of known kinds, from the weakest up, beside which any agent can be rated."""

import dataclasses
from collections.abc import Mapping

from tradgames_env.agents.alphabeta import plays
from tradgames_env.agents.perfect import table_of
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.solving.indexing import TableError


@dataclasses.dataclass(frozen=True)
class Ladder:
    """How far the rungs go that have a budget.

    Attributes:
        depths: of alphabeta, in games without dice.
        simulations: of mcts, in every game.
    """

    depths: tuple[int, ...]
    simulations: tuple[int, ...]


LADDERS: Mapping[str, Ladder] = {
    "quick": Ladder((1, 2), (100,)),
    "standard": Ladder((1, 2, 3, 4), (100, 1000)),
    "deep": Ladder((1, 2, 3, 4, 5, 6), (100, 1000, 10_000, 100_000)),
}
"""By name."""


def rungs(name: str, ruleset: Ruleset) -> tuple[str, ...]:
    """Names of the agents on a ladder, as far as they play this game: perfect where there is a table of all of it.

    Raises:
        ValueError: there is no ladder of this name.
    """
    if name not in LADDERS:
        raise ValueError(f"there is no ladder {name!r}; known: {', '.join(LADDERS)}")
    ladder = LADDERS[name]
    depths = ladder.depths if plays(ruleset) else ()
    return (
        "random",
        "greedy",
        *(f"alphabeta:{depth}" for depth in depths),
        *(f"mcts:{count}" for count in ladder.simulations),
        *(("perfect",) if _is_solved(ruleset) else ()),
    )


def _is_solved(ruleset: Ruleset) -> bool:
    try:
        return table_of(ruleset).header.part is None
    except TableError:
        return False
