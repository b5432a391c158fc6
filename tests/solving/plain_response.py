"""The slow way: every position of a small game in a dictionary of texts, values by plain loops over what ``Position``
says. Nothing of it comes from the package's solvers, and nothing is turned round to the mover's view."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from tradgames_env.solving.retrograde import without_history

Policy = Callable[[Position], dict[str, float]]

SMALL: dict[str, dict[str, Any]] = {
    "puluc": {"length": 5, "pieces": 2, "max_turns": 0},
    "yote": {"pieces": 2, "return_ban": "off"},
}
"""Options of a game with dice and of one without, small enough."""


@dataclasses.dataclass
class Node:
    """A position in which something is to happen.

    ``throws`` lists (probability, key) where a throw is due; ``moves`` maps each legal move to a key where a colour
    decides; ``payoff`` is natural's where the game is over.
    """

    position: Position
    throws: list[tuple[float, str]]
    moves: dict[str, str]
    payoff: float


def key(position: Position) -> str:
    """Its text, without the count of quiet moves that Yote writes in it."""
    fields = position.text().split(" ")
    if position.game == "yote":
        del fields[4]
    return " ".join(fields)


class PlainGame:
    """All that can follow from the start of a ruleset."""

    def __init__(self, ruleset: Ruleset) -> None:
        start = Position.from_ruleset(ruleset, chance="explicit")
        self.start = key(start)
        self.nodes: dict[str, Node] = {}
        todo = [start]
        while todo:
            position = todo.pop()
            if key(position) not in self.nodes:
                todo += self._add(position)

    def _add(self, position: Position) -> list[Position]:
        node = self.nodes[key(position)] = Node(position, [], {}, position.rewards[0])
        following = []
        for value, probability in position.chance_outcomes():
            after = position.copy()
            after.apply_chance(value)
            after.clear_stack()
            node.throws.append((probability, key(after)))
            following.append(after)
        for move in position.legal_moves():
            after = position.copy()
            after.push(move)
            after.clear_stack()
            node.moves[move] = key(after)
            following.append(after)
        return following

    def values(self, policies: tuple[Policy | None, Policy | None] = (None, None)) -> dict[str, float]:
        """What natural can expect at each key; a colour without a policy plays as well as can be."""
        places = {name: place for place, name in enumerate(self.nodes)}
        values = [node.payoff for node in self.nodes.values()]
        rules = [self._rule(node, places, policies[node.position.to_move]) for node in self.nodes.values()]
        change = 1.0
        while change > 1e-9:
            change = 0.0
            for place, (best, following) in enumerate(rules):
                if best is None:
                    value = sum(weight * values[after] for weight, after in following)
                else:
                    value = best(values[after] for _, after in following)
                change = max(change, abs(value - values[place]))
                values[place] = value
        return dict(zip(self.nodes, values, strict=True))

    @staticmethod
    def _rule(node: Node, places: dict[str, int], policy: Policy | None) -> tuple[Any, list[tuple[float, int]]]:
        """How a value follows from others: ``max`` or ``min`` of them, or None for their mean, and (weight, place)."""
        if node.position.is_over:
            # A payoff is the mean of itself.
            return None, [(1.0, places[key(node.position)])]
        if node.throws:
            return None, [(probability, places[after]) for probability, after in node.throws]
        if policy is None:
            return (max, min)[node.position.to_move], [(1.0, places[after]) for after in node.moves.values()]
        weights = policy(node.position.copy())
        return None, [(weights[move], places[after]) for move, after in node.moves.items()]


@functools.cache
def small_ruleset(solved: str) -> Ruleset:
    """One of ``SMALL``, without endings by history."""
    return without_history(load_ruleset(solved, "mini", **SMALL[solved]))


@functools.cache
def plain_game(solved: str) -> PlainGame:
    """One of ``SMALL``."""
    return PlainGame(small_ruleset(solved))
