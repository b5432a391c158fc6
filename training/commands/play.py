"""``tradgames play``."""

import dataclasses
import pathlib
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from training.commands.arguments import AgentName, Count, Name, RuleOptions, Text, agreed_ruleset
from training.console import FINE, mistakes, say

if TYPE_CHECKING:
    from training.play import Table

_PERSON = "human"
_PERFECT = "perfect"
_HINTS_BESIDE_A_PERSON = "mcts:400"


@dataclasses.dataclass(frozen=True)
class Play:
    """Play a game in the terminal, against an agent or against a person beside you.

    A checkpoint folder in place of the game plays its game, as the opponent.

    For example:
      tradgames play checkpoints/petteia
      tradgames play petteia --variant fr6 --opponent greedy
      tradgames play --opponent runs/petteia/checkpoints/final --side black
      tradgames play yote --opponent human
    """

    game: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[GAME]")] = None
    """Name of the game; that of the checkpoint when not given."""
    opponent: str = "mcts:200"
    """Who plays the other side: an agent's name, the folder of a checkpoint, or human."""
    side: Literal["natural", "black", "random"] = "natural"
    """Your side; natural begins unless the rules say otherwise."""
    hint: AgentName = None
    """Agent who gives hints; the opponent, or mcts:400 beside a person, when not given."""
    variant: Name = None
    """Variant; that of the checkpoint, or box, when not given."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    text: Text = None
    """Begin at this position."""
    seed: Count = None
    """Of throws and agents; another game every time when not given."""

    def run(self, command: str) -> int:
        """Play one game."""
        with mistakes():
            self._table().play()
        return FINE

    def _table(self) -> "Table":
        import numpy as np

        from tradgames_env.agents import load_agent
        from tradgames_env.position import Position
        from training.play import Table

        game: str | None = self.game
        name = self.opponent
        if game is not None and pathlib.Path(game).is_dir():
            name, game = game, None
        opponent = None if name == _PERSON else load_agent(name)
        bound = {} if opponent is None else {name: opponent}
        ruleset = agreed_ruleset(bound, game, self.variant, self.option)
        if _PERFECT in (name, self.hint):
            from tradgames_env.agents.perfect import table_of

            table_of(ruleset)  # or the lack of a table would be told after the first move
        position = Position.from_ruleset(ruleset, self.text, chance="explicit")
        hint_agent = load_agent(self.hint) if self.hint else opponent or load_agent(_HINTS_BESIDE_A_PERSON)
        sequence = np.random.SeedSequence(self.seed)
        agent_word, side_word = (int(word) for word in sequence.generate_state(2))
        for agent in {id(agent): agent for agent in (opponent, hint_agent) if agent is not None}.values():
            agent.seed(agent_word)
        black = self.side == "black" or (self.side == "random" and side_word % 2 == 1)
        players = (opponent, None) if black else (None, opponent)
        return Table(position, players, hint_agent=hint_agent, seed=sequence.spawn(1)[0], ask=input, say=say)
