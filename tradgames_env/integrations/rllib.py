"""Ray RLlib's new API stack: games for several agents, PPO with masked actions, self-play, and its policies as agents.

RLlib's own PettingZoo wrapper leaves the observation under a key that no module with masks reads, and the module with
masks among its examples hangs on a class that is to be removed. Both are small, so they are here.
"""

import zlib
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from tradgames_env.agents.base import BaseAgent, deciding_moves
from tradgames_env.encoding import Encoder
from tradgames_env.envs.aec import TraditionalGameEnv
from tradgames_env.position import Position
from tradgames_env.rules.errors import IllegalMoveError
from tradgames_env.rules.ruleset import Ruleset

LEARNER, FROZEN = "learner", "frozen"
"""The two policies of self-play."""


class GameEnv(MultiAgentEnv):  # type: ignore[misc]
    """A game in which only who decides is asked, and everybody is paid when it ends.

    Observations are ``{"observations": (C * H * W,) float32, "action_mask": (A,) int8}`` of the agent that decides,
    which may be the same one twice in a row; at the end all agents see the last position. Rewards are those of
    ``TraditionalGameEnv``, told to every agent in the step that ends the game. An illegal action ends the game with -1
    for who played it and 0 for the others, and ``infos[agent]["illegal"]`` is True: RLlib's check of an environment
    plays one before any module does.

    Args:
        config: ``game``, ``variant`` and what else ``TraditionalGameEnv`` takes by name; masks are always shown.

    Raises:
        ValueError: as ``TraditionalGameEnv``; ``step`` without an action of the agent that decides.
        OptionError: as ``TraditionalGameEnv``.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.game = TraditionalGameEnv(**config)
        self.possible_agents = self.agents = list(self.game.possible_agents)
        image, actions = self.game.state_space, self.game.action_space("player_0")
        assert isinstance(actions, gymnasium.spaces.Discrete)
        mask = gymnasium.spaces.Box(0, 1, (int(actions.n),), np.int8)
        flat = gymnasium.spaces.Box(-1.0, 1.0, (int(np.prod(image.shape or ())),), np.float32)
        space = gymnasium.spaces.Dict({"observations": flat, "action_mask": mask})
        self.observation_spaces = dict.fromkeys(self.agents, space)
        self.action_spaces = {agent: self.game.action_space(agent) for agent in self.agents}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """As ``TraditionalGameEnv.reset``: what the first to decide sees, and empty infos."""
        self.game.reset(seed=seed, options=options)
        return self._seen([self.game.agent_selection]), {}

    def step(self, action_dict: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play the action of the agent that decides.

        Returns:
            Observations, rewards, terminations, truncations and infos by agent.
        """
        mover = self.game.agent_selection
        if set(action_dict) != {mover}:
            raise ValueError(f"{mover} decides, not {sorted(action_dict)}")
        try:
            self.game.step(int(action_dict[mover]))
        except IllegalMoveError:
            rewards = {agent: -1.0 if agent == mover else 0.0 for agent in self.agents}
            return self._ending(rewards, True, False, {mover: {"illegal": True}})
        terminated, truncated = self.game.terminations[mover], self.game.truncations[mover]
        if terminated or truncated:
            return self._ending(dict(self.game.rewards), terminated, truncated, {})
        decider = self.game.agent_selection
        # RLlib wants a reward wherever it is shown something after an action, as after a first of two moves.
        return self._seen([decider]), {decider: 0.0}, {"__all__": False}, {"__all__": False}, {}

    def render(self) -> Any:
        """As ``TraditionalGameEnv.render``."""
        return self.game.render()

    def _ending(
        self, rewards: dict[str, float], terminated: bool, truncated: bool, infos: dict[str, Any]
    ) -> tuple[dict[str, Any], ...]:
        told = [*self.agents, "__all__"]
        return self._seen(self.agents), rewards, dict.fromkeys(told, terminated), dict.fromkeys(told, truncated), infos

    def _seen(self, agents: list[str]) -> dict[str, Any]:
        shown = {agent: self.game.observe(agent) for agent in agents}
        return {
            agent: {"observations": seen["observation"].ravel(), "action_mask": seen["action_mask"]}
            for agent, seen in shown.items()
        }


class _ObservationCatalog(PPOCatalog):  # type: ignore[misc]
    """Builds networks for the observation alone: the mask is no input."""

    def __init__(
        self, observation_space: Any, action_space: gymnasium.Space[Any], model_config_dict: dict[str, Any]
    ) -> None:
        super().__init__(observation_space["observations"], action_space, model_config_dict)


class MaskedModule(DefaultPPOTorchRLModule):  # type: ignore[misc]
    """RLlib's own module for PPO, which gives an illegal action no chance; for observations of ``GameEnv``.

    Args:
        *args: as ``DefaultPPOTorchRLModule``, whose ``model_config`` decides on the network.
        **kwargs: the same by name.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "catalog_class": _ObservationCatalog})

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return _masked(super()._forward(_unwrapped(batch), **kwargs), batch)

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return _masked(super()._forward_train(_unwrapped(batch), **kwargs), batch)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """(B,): what the agents that see these observations expect."""
        return super().compute_values(_unwrapped(batch), embeddings)


def _unwrapped(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, Columns.OBS: batch[Columns.OBS]["observations"]}


def _masked(outputs: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
    logits = outputs[Columns.ACTION_DIST_INPUTS]
    # The least finite number: an infinite one makes the entropy and its gradient not a number.
    lowest = torch.finfo(logits.dtype).min
    legal = batch[Columns.OBS]["action_mask"] > 0
    return {**outputs, Columns.ACTION_DIST_INPUTS: logits.masked_fill(~legal, lowest)}


def policy_of(agent_id: str, episode: Any, **kwargs: Any) -> str:
    """Who plays an agent: in half of the games the learner has natural, in the others black.

    Args:
        agent_id: ``"player_0"`` and so on; partners are played by the same policy.
        episode: RLlib's, of which the ``id_`` decides.
        **kwargs: what else RLlib says; unused.
    """
    # Python's own hash of a text differs from one process to the next.
    side = zlib.crc32(episode.id_.encode()) % 2
    return LEARNER if int(agent_id.removeprefix("player_")) % 2 == side else FROZEN


class SelfPlay(RLlibCallback):  # type: ignore[misc]
    """Makes the frozen policy a copy of the learner from time to time.

    Until then it is the untrained network it began with. A game in progress goes on against the newer copy.

    Args:
        every: iterations of training between two copies.
    """

    def __init__(self, every: int = 5) -> None:
        super().__init__()
        self._every = every

    def on_train_result(self, *, algorithm: Any, **kwargs: Any) -> None:
        """RLlib calls it after each iteration."""
        if algorithm.iteration % self._every == 0:
            freeze(algorithm)


def freeze(algorithm: Any) -> None:
    """Make the frozen policy of an algorithm a copy of its learner, wherever games are played.

    Args:
        algorithm: a built ``PPO`` with the policies ``learner`` and ``frozen``.
    """
    copied = {FROZEN: algorithm.learner_group.get_weights([LEARNER])[LEARNER]}
    algorithm.learner_group.set_weights(copied)
    # Told without a sequence number: who plays refuses weights with the number of those it has.
    algorithm.env_runner_group.foreach_env_runner(lambda runner: runner.set_state({"rl_module": copied}))


class ModuleAgent(BaseAgent):
    """Plays by the policy of a trained module.

    Args:
        module: a ``MaskedModule``, ``algorithm.get_module("learner")`` for example; used, not copied.
        ruleset: the game and options it was trained for; no others are accepted.
        name: for tables.
    """

    def __init__(self, module: MaskedModule, ruleset: Ruleset, *, name: str = "rllib") -> None:
        super().__init__()
        self.name = name
        self.rulesets = (ruleset,)
        self._module = module
        self._ruleset = ruleset
        self._encoder = Encoder(ruleset)

    def policy(self, position: Position) -> dict[str, float]:
        """Probability of each legal move, in notation; sums to 1.

        Raises:
            ValueError: the position belongs to another game or other options.
            IllegalMoveError: no seat decides.
        """
        if position.ruleset.label != self._ruleset.label:
            raise ValueError(
                f"{self.name} was trained for {self._ruleset.label} and cannot play {position.ruleset.label}"
            )
        moves = deciding_moves(position)
        seen = {
            "observations": torch.from_numpy(self._encoder.observe(position).reshape(1, -1)),
            "action_mask": torch.from_numpy(position.action_mask()[None]),
        }
        with torch.no_grad():
            logits = self._module.forward_inference({Columns.OBS: seen})[Columns.ACTION_DIST_INPUTS]
        chances = torch.softmax(logits[0].double(), dim=0)[position.legal_actions()]
        return dict(zip(moves, chances.tolist(), strict=True))
