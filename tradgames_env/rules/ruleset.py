"""A game bound to its options: everything derived from the two, computed once and shared."""

import dataclasses
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradgames_env.rules.chance import odds_table
from tradgames_env.rules.contract import (
    BoardLayout,
    ChanceKind,
    GameRules,
    Kernels,
    Options,
    Params,
    State,
    make_options,
)
from tradgames_env.rules.registry import load_rules


@dataclasses.dataclass(frozen=True, eq=False)
class Ruleset:
    """One game under one set of options.

    ``variant`` is the name the options started from. Arrays are shared and must not be written to.
    """

    rules: GameRules
    variant: str
    options: Options
    params: Params
    odds: NDArray[np.float64]
    """(K, M) cumulative probabilities, see ``chance.odds_table``."""
    chance_kinds: tuple[ChanceKind, ...]
    layout: BoardLayout
    num_actions: int
    num_seats: int
    state_size: int
    history_size: int
    kernels: Kernels
    """The game's compiled functions."""

    @property
    def game(self) -> str:
        """The game's name."""
        return self.rules.name

    @property
    def overrides(self) -> dict[str, Any]:
        """Options that differ from those of the variant."""
        base = self.rules.variants[self.variant]
        values = {field.name: getattr(self.options, field.name) for field in dataclasses.fields(self.options)}
        return {name: value for name, value in values.items() if value != getattr(base, name)}

    @property
    def label(self) -> str:
        """For messages and file names: ``petteia/fr6``, ``petteia/box+quiet_limit=60``."""
        changes = "".join(f"+{name}={value}" for name, value in self.overrides.items())
        return f"{self.game}/{self.variant}{changes}"

    def notation(self, state: State, action: int) -> str:
        """An action that is legal in ``state`` (S,) int16, in notation."""
        return self.rules.format_actions(self.options, state, [action])[0]


def load_ruleset(game: str, variant: str = "box", **overrides: Any) -> Ruleset:
    """The ruleset of a game's variant with single options replaced.

    Raises:
        ValueError: no such game.
        OptionError: no such variant or option, or a value the game refuses.
    """
    rules = load_rules(game)
    return _bind(rules, variant, make_options(rules, variant, **overrides))


@functools.lru_cache(maxsize=128)
def _bind(rules: GameRules, variant: str, options: Options) -> Ruleset:
    chance_kinds = rules.chance(options)
    return Ruleset(
        rules=rules,
        variant=variant,
        options=options,
        params=rules.params(options),
        odds=odds_table(chance_kinds),
        chance_kinds=chance_kinds,
        layout=rules.layout(options),
        num_actions=rules.num_actions(options),
        num_seats=rules.num_seats(options),
        state_size=rules.state_size(options),
        history_size=rules.history_size(options),
        kernels=rules.kernels,
    )
