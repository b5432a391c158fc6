"""Tianshou: the learner's view of a game for its DQN family, and its policies as agents.

Tianshou's own PettingZoo environment makes the other player's observation the successor of a move, from which a DQN
learns wrong values. In the learner's view the successor is what the same player sees at its next decision.
"""

import copy
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from tianshou.data import Batch

from tradgames_env.agents.base import BaseAgent, deciding_moves
from tradgames_env.encoding import Encoder
from tradgames_env.envs.single_agent import SingleAgentEnv
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset


class MaskedView(gymnasium.Wrapper[Any, Any, Any, Any]):
    """``SingleAgentEnv`` as Tianshou reads masks: observations ``{"obs": (F,) float32, "mask": (A,) bool}``.

    Infos hold ``winner`` (-1 for none), ``seat`` and ``illegal``: numbers, of which Tianshou can make arrays.

    Args:
        game: name of the game.
        variant: name of the variant.
        **kwargs: as of ``SingleAgentEnv``, options of the rules included.

    Raises:
        ValueError: as ``SingleAgentEnv``.
        OptionError: as ``SingleAgentEnv``.
    """

    def __init__(self, game: str, variant: str = "box", **kwargs: Any) -> None:
        self.view = SingleAgentEnv(game, variant, flatten=True, **kwargs)
        super().__init__(self.view)
        actions = self.view.ruleset.num_actions
        self.observation_space = gymnasium.spaces.Dict(
            {"obs": self.view.observation_space, "mask": gymnasium.spaces.Box(0, 1, (actions,), np.bool_)}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As ``SingleAgentEnv.reset``."""
        image, info = self.view.reset(seed=seed, options=options)
        return _seen(image, info), _numbers(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As ``SingleAgentEnv.step``."""
        image, reward, terminated, truncated, info = self.view.step(action)
        return _seen(image, info), reward, terminated, truncated, _numbers(info)


def _seen(image: NDArray[np.float32], info: dict[str, Any]) -> dict[str, Any]:
    return {"obs": image, "mask": info["action_mask"].astype(np.bool_)}


def _numbers(info: dict[str, Any]) -> dict[str, Any]:
    winner = -1 if info["winner"] is None else info["winner"]
    return {"winner": winner, "seat": info["seat"], "illegal": info["illegal"]}


class QAgent(BaseAgent):
    """Plays the legal move of the highest value by a policy of Tianshou's DQN family.

    Args:
        policy: a ``DiscreteQLearningPolicy``; copied, so it may go on learning.
        ruleset: the game and options it was trained for; no others are accepted.
        epsilon: how often it plays a random move instead, so that frozen opponents do not always play alike.
        name: for tables.
    """

    def __init__(self, policy: Any, ruleset: Ruleset, *, epsilon: float = 0.0, name: str = "tianshou") -> None:
        super().__init__()
        self.name = name
        self.rulesets = (ruleset,)
        self._ruleset = ruleset
        self._policy = copy.deepcopy(policy).eval()
        self._epsilon = epsilon
        self._encoder = Encoder(ruleset)

    def act(self, position: Position) -> str:
        """Its move, in notation.

        Raises:
            ValueError: the position belongs to another game or other options.
            IllegalMoveError: no seat decides.
        """
        if position.ruleset.label != self._ruleset.label:
            raise ValueError(
                f"{self.name} was trained for {self._ruleset.label} and cannot play {position.ruleset.label}"
            )
        moves = deciding_moves(position)
        if self._rng.random() < self._epsilon:
            return moves[int(self._rng.integers(len(moves)))]
        seen = {"obs": self._encoder.observe(position).reshape(1, -1), "mask": position.action_mask()[None] == 1}
        with torch.no_grad():
            chosen = self._policy(Batch(obs=Batch(seen), info=Batch())).act
        return position.notation(int(chosen[0]))

    def policy(self, position: Position) -> dict[str, float]:
        """1 for the move it plays when asked once, 0 for the others; raises as ``act``."""
        chosen = self.act(position)
        return {move: float(move == chosen) for move in position.legal_moves()}
