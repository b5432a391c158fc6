"""TorchRL: many games as one native batched environment, and PettingZoo's view of a game in TorchRL's own wrapper."""

import warnings
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from pettingzoo.utils.wrappers.base import BaseWrapper
from tensordict import TensorDict
from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase
from torchrl.envs.libs.pettingzoo import PettingZooWrapper

from tradgames_env.envs.aec import image_space, raw_env
from tradgames_env.envs.vector import SELF_PLAY, VectorGameEnv


class GamesEnv(EnvBase):  # type: ignore[misc]
    """``num_envs`` games as one TorchRL environment of batch size (N,), stepped by compiled loops.

    Keys: ``observation`` (N, C, H, W) float32, ``action_mask`` (N, A) bool, ``action`` (N,) int64, ``reward`` (N, 1)
    float32, ``done``, ``terminated`` and ``truncated`` (N, 1) bool, ``seat`` (N, 1) int64: the side the observation
    belongs to, 0 natural, 1 black.

    Against an opponent a step is a decision of the learner, and the reward its own. With ``opponent="self"`` a step is
    a decision of the side to move and the reward that of the side which just moved; who moves next may be the same
    side, so a value that is carried from one step to the one before must change its sign where ``seat`` changes. A game
    that is over waits for its reset, which TorchRL's collectors and rollouts see to; its mask has a single one, at
    action 0. Illegal actions lose their game at once; ``ActionMask()`` as a transform keeps random actions legal.

    Args:
        game: name of the game.
        variant: name of the variant.
        num_envs: N.
        opponent: as of ``envs.vector.VectorGameEnv``.
        device: of the tensors; the games are played on the CPU.
        **kwargs: more arguments of ``VectorGameEnv``, options of the rules included.

    Raises:
        ValueError: as ``VectorGameEnv``.
        OptionError: as ``VectorGameEnv``.
    """

    def __init__(
        self,
        game: str,
        variant: str = "box",
        *,
        num_envs: int = 64,
        opponent: Any = SELF_PLAY,
        device: Any = "cpu",
        **kwargs: Any,
    ) -> None:
        self.games = VectorGameEnv(
            num_envs, game, variant, opponent=opponent, autoreset_mode=AutoresetMode.DISABLED, **kwargs
        )
        size = torch.Size([num_envs])
        super().__init__(device=device, batch_size=size)
        images = image_space(self.games.games.encoder)
        actions = self.games.ruleset.num_actions
        low, high = (torch.from_numpy(bound).expand(*size, *images.shape) for bound in (images.low, images.high))
        self.observation_spec = Composite(
            observation=Bounded(low, high, dtype=torch.float32),
            action_mask=Binary(actions, shape=(*size, actions), dtype=torch.bool),
            seat=Categorical(2, shape=(*size, 1), dtype=torch.int64),
            shape=size,
            device=device,
        )
        self.action_spec = Categorical(actions, shape=size, dtype=torch.int64, device=device)
        self.reward_spec = Unbounded(shape=(*size, 1), dtype=torch.float32, device=device)
        flag = Categorical(2, shape=(*size, 1), dtype=torch.bool, device=device)
        self.done_spec = Composite(
            done=flag, terminated=flag.clone(), truncated=flag.clone(), shape=size, device=device
        )
        self._seed: int | None = None

    def _reset(self, tensordict: Any, **kwargs: Any) -> Any:
        options: dict[str, Any] = {}
        chosen = None if tensordict is None else tensordict.get("_reset", None)
        if chosen is not None and not chosen.all():
            options["reset_mask"] = chosen.reshape(-1).cpu().numpy()
        observations, infos = self.games.reset(seed=None if options else self._seed, options=options)
        if not options:
            self._seed = None
        return self._told(self._seen(observations, infos), np.zeros((2, self.games.num_envs), np.bool_))

    def _step(self, tensordict: Any) -> Any:
        actions = tensordict["action"].cpu().numpy()
        observations, rewards, terminated, truncated, infos = self.games.step(actions)
        seen = self._seen(observations, infos)
        seen["reward"] = torch.from_numpy(rewards.astype(np.float32)).unsqueeze(-1)
        return self._told(seen, np.stack([terminated, truncated]))

    def _seen(self, observations: Any, infos: dict[str, Any]) -> dict[str, Any]:
        return {
            "observation": torch.from_numpy(observations["observation"]),
            "action_mask": torch.from_numpy(observations["action_mask"].astype(np.bool_)),
            "seat": torch.from_numpy(infos["seat"].astype(np.int64)).unsqueeze(-1),
        }

    def _told(self, values: dict[str, Any], flags: Any) -> Any:
        terminated, truncated = torch.from_numpy(flags).unsqueeze(-1)
        values |= {"terminated": terminated, "truncated": truncated, "done": terminated | truncated}
        return TensorDict(values, batch_size=self.batch_size).to(self.device)

    def _set_seed(self, seed: int | None) -> None:
        self._seed = seed

    def close(self, **kwargs: Any) -> None:
        """End the threads."""
        super().close(**kwargs)
        self.games.close()


class _Uninformed(BaseWrapper[str, Any, Any]):
    """A game whose info dicts are empty: TorchRL makes tensors of them, and ours hold texts and None."""

    @property
    def infos(self) -> dict[str, dict[str, Any]]:  # type: ignore[override] # an attribute elsewhere
        """An empty dict for each agent that plays."""
        return {agent: {} for agent in self.env.agents}


def wrapped_game(game: str, variant: str = "box", **kwargs: Any) -> PettingZooWrapper:
    """PettingZoo's view of a game in TorchRL's wrapper, with masks and categorical actions.

    Every player is a group of its own: ``(player, "action_mask")`` is who may do what, ``(player, "mask")`` who acts.

    Args:
        game: name of the game.
        variant: name of the variant.
        **kwargs: arguments of ``PettingZooWrapper`` (``group_map``, ``return_state``, ``categorical_actions``,
            ``seed``); all others are options of the rules.
    """
    ours = {key: kwargs.pop(key) for key in list(kwargs) if key not in _WRAPPERS_OWN}
    with warnings.catch_warnings():
        # It was written for an older PettingZoo and says so whenever it meets another; the tests run it on this one.
        warnings.filterwarnings("ignore", message=".*PettingZoo.*")
        return PettingZooWrapper(
            env=_Uninformed(raw_env(game, variant, **ours)), use_mask=True, **{"categorical_actions": True, **kwargs}
        )


_WRAPPERS_OWN = frozenset({"categorical_actions", "device", "done_on_any", "group_map", "return_state", "seed"})
