"""``tradgames render``."""

import dataclasses
import pathlib
import re
from typing import TYPE_CHECKING, Annotated

import tyro

from training.commands.arguments import Game, RuleOptions, Text, asked_ruleset
from training.console import FINE, mistakes, say

if TYPE_CHECKING:
    from tradgames_env.position import Position


@dataclasses.dataclass(frozen=True)
class Render:
    """Draw a position: as text in the terminal, or as a picture in a file.

    For example:
      tradgames render petteia --moves "D1 -> D4, D8 -> D5"
      tradgames render yut_nori --text "5:1,w:3 w:4 o 2" -o board.svg
    """

    game: Game
    """Name of the game."""
    variant: str = "box"
    """Variant."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    text: Text = None
    """The position; the start when not given."""
    moves: str = ""
    """Moves to play first, separated by a comma and a space, or by semicolons."""
    seed: int = 0
    """Of the throws that the moves call for."""
    output: Annotated[pathlib.Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = None
    """File that ends in .svg, .png or .txt; the terminal when not given."""
    size: int = 480
    """Width of the picture in pixels."""

    def run(self, command: str) -> int:
        """Draw."""
        with mistakes():
            position = self._position()
            if self.output is not None:
                from tradgames_env.rendering import save

                save(position, self.output, size=self.size)
        if self.output is None:
            say(str(position))
        return FINE

    def _position(self) -> "Position":
        from tradgames_env.position import Position

        moves = [move for move in re.split(r",\s+|;", self.moves) if move.strip()]
        ruleset = asked_ruleset(self.game, self.variant, self.option)
        # A position that is only shown keeps the throw that is due in it.
        position = Position.from_ruleset(ruleset, self.text, seed=self.seed, chance="auto" if moves else "explicit")
        for move in moves:
            position.push(move.strip())
        return position
