"""The agent that knows the rules and nothing else."""

import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents.actions import ActionAgent, deciding_actions
from tradgames_env.position import Position


class RandomAgent(ActionAgent):
    """Every legal move with the same probability."""

    name = "random"

    def best_actions(self, position: Position) -> NDArray[np.int64]:
        """All legal actions."""
        return deciding_actions(position)

    def value(self, position: Position) -> float:
        """0: it has no opinion.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
        """
        deciding_actions(position)
        return 0.0
