"""``tradgames perft``."""

import dataclasses
import json
import time
from typing import Any

from training.commands.arguments import Game, RuleOptions, Text, asked_ruleset
from training.console import FINE, mistakes, say


@dataclasses.dataclass(frozen=True)
class Perft:
    """Count the positions a number of moves ahead: the usual check that rules are right. Every throw is a branch.

    For example:
      tradgames perft petteia --depth 4
      tradgames perft yote --depth 1 --split --text "x5/6/2ox2/6/5x o 5 4 0 - - -"
    """

    game: Game
    """Name of the game."""
    depth: int
    """Moves ahead."""
    variant: str = "box"
    """Variant."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    text: Text = None
    """Begin at this position."""
    split: bool = False
    """Also count behind each first move."""
    json: bool = False
    """Print JSON."""

    def run(self, command: str) -> int:
        """Count and print."""
        with mistakes():
            from tradgames_env.position import Position, count_positions
            from training.perft import split_counts

            ruleset = asked_ruleset(self.game, self.variant, self.option)
            position = Position.from_ruleset(ruleset, self.text, chance="explicit")
            start = time.perf_counter()
            split = split_counts(position, self.depth) if self.split else {}
            count = sum(split.values()) if self.split else count_positions(position, self.depth)
        seconds = time.perf_counter() - start
        if self.json:
            result: dict[str, Any] = {"game": ruleset.game, "variant": ruleset.variant, "options": ruleset.overrides}
            result |= {"text": position.text(), "depth": self.depth, "count": count, "seconds": seconds}
            say(json.dumps(result | ({"split": split} if self.split else {}), indent=2))
            return FINE
        for move, leaves in split.items():
            say(f"{leaves:>14,}  {move}")
        say(f"{ruleset.label}, depth {self.depth}: {count:,} positions in {seconds:.2f} s")
        return FINE
