"""What plays: the Agent protocol, and a base class that needs one method."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tradgames_env.position import Position
from tradgames_env.rules.errors import IllegalMoveError


@runtime_checkable
class Agent(Protocol):
    """Anything that can be an opponent. Positions handed to an agent are its own copies; it may push and pop on them.

    No agent is handed the generator of a running game, so looking ahead foresees no throw.
    """

    name: str

    def act(self, position: Position) -> str:
        """The move it plays, in notation."""

    def act_many(self, positions: Sequence[Position]) -> list[str]:
        """Its move in each of several positions of one ruleset; faster than one by one where it can be."""

    def policy(self, position: Position) -> dict[str, float]:
        """Probability of each legal move, in notation; sums to 1."""

    def value(self, position: Position) -> float:
        """Expected reward of the mover, in [-1, 1]."""

    def seed(self, seed: int) -> None:
        """Start its own generator anew: the same seed and positions give the same moves."""


@runtime_checkable
class RowAgent(Protocol):
    """An agent that can also choose from what it sees, without positions; the compiled environments ask it this way."""

    def act_rows(self, observations: NDArray[np.float32], action_masks: NDArray[np.int8]) -> NDArray[np.int64]:
        """(n,) int64, legal: what it plays in n games in which it is to move.

        Args:
            observations: (n, C, H, W) float32 of the mover; written to by nobody.
            action_masks: (n, A) int8 of the mover.
        """


class BaseAgent:
    """An agent that draws its moves from ``policy``."""

    name = "agent"

    def __init__(self) -> None:
        self._rng = np.random.default_rng()

    def seed(self, seed: int) -> None:
        """Start the agent's own generator anew."""
        self._rng = np.random.default_rng(seed)

    def act(self, position: Position) -> str:
        """A move drawn from ``policy(position)``.

        Raises:
            IllegalMoveError: no seat decides here, the game is over or a throw is due.
        """
        policy = self.policy(position)
        moves = list(policy)
        return moves[int(self._rng.choice(len(moves), p=np.fromiter(policy.values(), float)))]

    def act_many(self, positions: Sequence[Position]) -> list[str]:
        """``act`` in each position."""
        return [self.act(position) for position in positions]

    def policy(self, position: Position) -> dict[str, float]:
        """Probability of each legal move; uniform unless overridden."""
        moves = deciding_moves(position)
        return dict.fromkeys(moves, 1.0 / len(moves))

    def value(self, position: Position) -> float:
        """Expected reward of the mover; 0 unless overridden."""
        return 0.0


def deciding_moves(position: Position) -> list[str]:
    """The legal moves of a position in which a seat decides.

    Raises:
        IllegalMoveError: the game is over, or a throw is due.
    """
    moves = position.legal_moves()
    if not moves:
        state = "a throw is due" if position.chance_due else f"the game is over ({position.reason})"
        raise IllegalMoveError(f"there is no move to choose in {position.text()!r}: {state}")
    return moves
