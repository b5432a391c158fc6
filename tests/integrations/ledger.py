"""What really happened in compiled games, read off their rows: the judge of what a library was told."""

from typing import Any

import numpy as np

from tradgames_env.encoding import PLANE_INDEX
from tradgames_env.envs.batch_games import BatchGames
from tradgames_env.rules.contract import OUTCOME, PAYOFF, RUNNING, TRUNCATED


class Ledger:
    """Watches the steps of a batch and keeps, of each game that ended, natural's payoff and how it ended."""

    def __init__(self, games: BatchGames, patch: Any) -> None:
        self.games = games
        self.ended = np.zeros(games.num_games, np.bool_)
        self.payoffs = np.zeros(games.num_games)
        self.truncated = np.zeros(games.num_games, np.bool_)
        self.movers: list[list[int]] = [[] for _ in range(games.num_games)]
        step_some = games.step_some

        def watched(actions: Any, which: Any) -> None:
            assert games.is_legal(actions)[which].all()
            for index in np.flatnonzero(which):
                self.movers[index].append(int(games.to_move[index]))
            step_some(actions, which)
            over = which & (games.states[:, OUTCOME] != RUNNING)
            self.ended |= over
            self.payoffs[over] = games.states[over, PAYOFF]
            self.truncated[over] = games.states[over, OUTCOME] == TRUNCATED

        patch.setattr(games, "step_some", watched)

    def clear(self) -> None:
        """Forget everything, before the next step of the learner."""
        self.ended[:] = False
        for movers in self.movers:
            movers.clear()

    def due(self, sides: Any) -> Any:
        """(N,): what the sides (N,) are due since ``clear``, 0 where the game goes on."""
        return np.where(self.ended, self.payoffs * np.where(sides == 0, 1, -1), 0.0)


def learner_sides(images: Any) -> Any:
    """(N,): the colours of those who see ``images`` (N, C, H, W) or (N, C * H * W), 0 natural."""
    flat = images.reshape(len(images), len(PLANE_INDEX), -1)
    return np.where(flat[:, PLANE_INDEX["natural"], 0] == 1.0, 0, 1)
