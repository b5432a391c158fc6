"""The slow way: every position of a small game in a dictionary of texts, values by plain loops over what ``Position``
says. Nothing of it comes from the package's solvers, and nothing is turned round to the mover's view."""

import dataclasses
from collections.abc import Callable

from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset

Policy = Callable[[Position], dict[str, float]]


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
        weights = {
            name: policy(node.position.copy())
            for name, node in self.nodes.items()
            if node.moves and (policy := policies[node.position.to_move]) is not None
        }
        values = {name: node.payoff for name, node in self.nodes.items()}
        change = 1.0
        while change > 1e-9:
            change = 0.0
            for name, node in self.nodes.items():
                if node.position.is_over:
                    continue
                value = self._value(node, values, weights.get(name))
                change = max(change, abs(value - values[name]))
                values[name] = value
        return values

    @staticmethod
    def _value(node: Node, values: dict[str, float], weights: dict[str, float] | None) -> float:
        if node.throws:
            return sum(probability * values[after] for probability, after in node.throws)
        if weights is not None:
            return sum(weights[move] * values[after] for move, after in node.moves.items())
        best = max if node.position.to_move == 0 else min
        return best(values[after] for after in node.moves.values())
