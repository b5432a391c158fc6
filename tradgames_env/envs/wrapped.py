"""PettingZoo's wrappers around a game, with a short way through them for what happens at almost every move."""

from typing import Any

import numpy as np
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

_OF_THE_GAME = frozenset(
    {"agents", "agent_selection", "rewards", "_cumulative_rewards", "terminations", "truncations", "infos"}
)


class WrappedGame(OrderEnforcingWrapper[str, Any, Any]):
    """A game in PettingZoo's own three wrappers: an illegal move ends the game with -1 for the mover.

    The wrappers read some thirty attributes a move, each through three ``__getattr__`` in turn, which takes several
    times as long as the move. So attributes, observations and legal moves in a game that runs go to the game at once
    and leave in the wrappers what would have been left there; everything else goes through PettingZoo's code.

    Args:
        game: what is wrapped.
    """

    def __init__(self, game: AECEnv[str, Any, Any]) -> None:
        judge = TerminateIllegalWrapper(game, illegal_reward=-1)
        super().__init__(AssertOutOfBoundsWrapper(judge))
        self._judge = judge

    def __getattr__(self, name: str) -> Any:
        """As of the wrapper: what is not here is the game's, and some of it nobody's before the first reset."""
        if name in _OF_THE_GAME and self._has_reset:
            return getattr(self._judge.env, name)
        return super().__getattr__(name)

    def observe(self, agent: str) -> Any:
        """As ``TraditionalGameEnv.observe``; AssertionError before the first reset."""
        if not self._has_reset:
            return super().observe(agent)
        judge, game = self._judge, self._judge.env
        seen = game.observe(agent)
        if agent == game.agent_selection:
            judge._prev_obs = seen
            judge._prev_info = game.infos.get(agent, {})
        return seen

    def step(self, action: Any) -> None:
        """As ``TraditionalGameEnv.step``, except that an illegal move ends the game.

        Raises:
            AssertionError: before the first reset; the action is not in the action space.
        """
        judge = self._judge
        if not self._is_legal(judge._prev_obs, action):
            super().step(action)
            return
        self._has_updated = True
        judge._prev_obs = judge._prev_info = None
        judge.env.step(action)

    def _is_legal(self, seen: Any, action: Any) -> bool:
        """Whether the mover, having looked, plays a legal move in a game that runs; if in doubt, False."""
        if type(seen) is not dict or "action_mask" not in seen or type(action) not in (int, np.int64):
            return False
        game, mask = self._judge.env, seen["action_mask"]
        agent = game.agent_selection
        runs = not game.terminations.get(agent, True) and not game.truncations.get(agent, True)
        return runs and 0 <= action < len(mask) and bool(mask[action])

    def __str__(self) -> str:
        """The name of the game."""
        return str(self.env)
