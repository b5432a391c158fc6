"""What the built-in agents share: they think in action ids and write notation only for what they are asked."""

import abc

import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents.base import BaseAgent, deciding_moves
from tradgames_env.position import Position


class ActionAgent(BaseAgent, abc.ABC):
    """An agent that plays one of its ``best_actions``, drawn uniformly from its own generator."""

    @abc.abstractmethod
    def best_actions(self, position: Position) -> NDArray[np.int64]:
        """(k,) int64, k >= 1: ids of the legal actions that it holds for equally good and better than all others.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
        """

    def act(self, position: Position) -> str:
        """One of the best moves, in notation.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
        """
        return position.notation_of_legal(int(self._rng.choice(self.best_actions(position))))

    def policy(self, position: Position) -> dict[str, float]:
        """Equal probability on each of the best moves, 0 on the other legal ones.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
        """
        best = self.best_actions(position)
        weights = np.zeros(position.ruleset.num_actions)
        weights[best] = 1.0 / len(best)
        return self.by_move(position, weights)

    @staticmethod
    def by_move(position: Position, weights: NDArray[np.float64]) -> dict[str, float]:
        """What ``weights`` (A,) float64 by action id say of each legal move, in notation."""
        actions = position.legal_actions()
        return dict(zip(position.legal_moves(), weights[actions].tolist(), strict=True))

    def _search_word(self) -> NDArray[np.uint64]:
        """(1,) uint64: a generator for one compiled search, drawn from the agent's own."""
        return self._rng.integers(0, 2**64, size=1, dtype=np.uint64)


def deciding_actions(position: Position) -> NDArray[np.int64]:
    """(n,) int64, n >= 1: ids of the legal actions of a position in which a seat decides, ascending.

    Raises:
        IllegalMoveError: the game is over, or a throw is due.
    """
    actions = position.legal_actions()
    if not actions:
        deciding_moves(position)  # raises, and says why
    return np.array(actions, np.int64)


def checked_count(count: object, name: str, least: int, most: int) -> int:
    """``count`` if it is an integer from ``least`` to ``most``.

    Raises:
        ValueError: it is not; the message calls it ``name``.
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not least <= count <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most}, not {count!r}")
    return int(count)
