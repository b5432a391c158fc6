"""Stable-Baselines3: many games as one ``VecEnv``, self-play for MaskablePPO, and its models as agents."""

import collections
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from tradgames_env.agents.base import BaseAgent, deciding_moves
from tradgames_env.encoding import ENCODER_VERSION, Encoder
from tradgames_env.envs.vector import VectorGameEnv
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset, load_ruleset

_TRAINED_FOR = "tradgames"
"""Attribute of a model that ``save`` writes: what the model was trained for, as plain data."""


class VecGames(VecEnv):  # type: ignore[misc]
    """``num_envs`` games against opponents as one SB3 environment, stepped by compiled loops without processes.

    Masks are found by sb3-contrib as ``env_method("action_masks")``. A game that is over starts anew in the same step,
    as SB3 wants; ``infos[i]`` of such a game holds ``terminal_observation``, ``TimeLimit.truncated``, ``winner`` (0
    natural, 1 black, None), ``seat`` (the learner's) and ``illegal``, and is empty of a game that goes on. Rewards are
    the learner's own: +1, -1 or 0 at the step after which it sees the game ended, whoever moved last.

    Args:
        game: name of the game.
        variant: name of the variant.
        num_envs: N.
        **kwargs: as of ``envs.vector.VectorGameEnv``, options of the rules included; ``flatten`` is True unless given,
            for the policy ``"MlpPolicy"``. ``autoreset_mode`` is not taken, nor ``opponent="self"``.

    Raises:
        ValueError: as ``VectorGameEnv``; the learner would decide for both sides, which SB3 cannot credit.
        OptionError: as ``VectorGameEnv``.
    """

    def __init__(self, game: str, variant: str = "box", *, num_envs: int = 64, **kwargs: Any) -> None:
        if isinstance(kwargs.get("opponent"), str) and kwargs["opponent"] == "self":
            raise ValueError("SB3 learns from one player's rewards: give an opponent, and add SelfPlay as a callback")
        self._games = VectorGameEnv(num_envs, game, variant, autoreset_mode="SameStep", **{"flatten": True, **kwargs})
        self._actions = np.zeros(num_envs, np.int64)
        super().__init__(num_envs, self._games.single_observation_space, self._games.single_action_space)

    def reset(self) -> Any:
        """(N, F) float32, or a dict of observations and masks: the start of new games; seeded by ``seed``."""
        observations, _ = self._games.reset(seed=self._seeds[0], options=self._options[0])
        self._reset_seeds()
        self._reset_options()
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        return observations

    def step_async(self, actions: NDArray[np.integer[Any]]) -> None:
        """Take (N,) integers, played by ``step_wait``."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, rewards (N,) float32, dones (N,) bool, infos."""
        observations, rewards, terminated, truncated, infos = self._games.step(self._actions)
        dones = terminated | truncated
        told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if dones.any():
            _tell_endings(told, np.flatnonzero(dones).tolist(), truncated, infos)
        return observations, rewards.astype(np.float32), dones, told

    def action_masks(self) -> NDArray[np.bool_]:
        """(N, A) bool: the learner's legal actions."""
        return self._games.action_masks()

    def close(self) -> None:
        """End the threads."""
        self._games.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of the games, once for each index."""
        return [getattr(self._games, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused: the games share their attributes."""
        raise AttributeError(f"{attr_name!r} cannot be set: all games share it; see VecGames for what can be chosen")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """``"action_masks"`` game by game; any other method is called once, for all games."""
        chosen = list(self._get_indices(indices))
        result = getattr(self._games, method_name)(*method_args, **method_kwargs)
        return [result[index] for index in chosen] if method_name == "action_masks" else [result] * len(chosen)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No game is wrapped."""
        return [False for _ in self._get_indices(indices)]


def _tell_endings(
    told: list[dict[str, Any]], ended: list[int], truncated: NDArray[np.bool_], infos: dict[str, Any]
) -> None:
    final, info = infos["final_obs"], infos["final_info"]
    for i in ended:
        last = {key: value[i] for key, value in final.items()} if isinstance(final, dict) else final[i]
        winner = int(info["winner"][i])
        told[i] = {
            "terminal_observation": last,
            "TimeLimit.truncated": bool(truncated[i]),
            "winner": None if winner < 0 else winner,
            "seat": int(info["seat"][i]),
            "illegal": bool(info["illegal"][i]),
        }


class MaskableAgent(BaseAgent):
    """Plays with a policy of sb3-contrib's MaskablePPO.

    Args:
        policy: a ``MaskableActorCriticPolicy``.
        ruleset: the game and options it was trained for; no others are accepted.
        greedy: play the most probable move; draw from the policy by the agent's own generator when False.
        name: for tables.
    """

    def __init__(self, policy: Any, ruleset: Ruleset, *, greedy: bool = True, name: str = "sb3") -> None:
        super().__init__()
        self.name = name
        self.rulesets = (ruleset,)
        self._ruleset = ruleset
        self._policy = policy
        self._greedy = greedy
        self._encoder = Encoder(ruleset)
        self._is_dict = hasattr(policy.observation_space, "spaces")

    def act_rows(self, observations: NDArray[np.float32], action_masks: NDArray[np.int8]) -> NDArray[np.int64]:
        """(n,) int64: as ``RowAgent.act_rows``."""
        probabilities = self._probabilities(observations, action_masks)
        if self._greedy:
            best: NDArray[np.int64] = probabilities.argmax(axis=1)
            return best
        marks = probabilities.cumsum(axis=1)
        drawn = self._rng.random(len(marks)) * marks[:, -1]
        # The first action whose mark lies above the draw has a probability, whatever was rounded.
        chosen: NDArray[np.int64] = (marks > drawn[:, None]).argmax(axis=1)
        return chosen

    def act_many(self, positions: Sequence[Position]) -> list[str]:
        """Its move in each position, from one evaluation of all.

        Raises:
            ValueError: a position belongs to another game or other options.
            IllegalMoveError: in one of them no seat decides.
        """
        if not positions:
            return []
        actions = self.act_rows(*self._views(positions))
        return [position.notation(int(action)) for position, action in zip(positions, actions, strict=True)]

    def act(self, position: Position) -> str:
        """Its move; raises as ``act_many``."""
        return self.act_many([position])[0]

    def policy(self, position: Position) -> dict[str, float]:
        """Probability of each legal move by the policy, greedy or not; raises as ``act_many``."""
        probabilities = self._probabilities(*self._views([position]))[0, position.legal_actions()]
        return dict(zip(position.legal_moves(), (probabilities / probabilities.sum()).tolist(), strict=True))

    def value(self, position: Position) -> float:
        """Discounted reward the mover expects, cut to [-1, 1]; raises as ``act_many``."""
        with torch.no_grad():
            values = self._policy.predict_values(self._seen(*self._views([position])))
        return float(np.clip(float(values[0, 0]), -1.0, 1.0))

    def _views(self, positions: Sequence[Position]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        for position in positions:
            if position.ruleset is not self._ruleset and position.ruleset.label != self._ruleset.label:
                raise ValueError(
                    f"{self.name} was trained for {self._ruleset.label} and cannot play {position.ruleset.label}"
                )
            deciding_moves(position)
        images = np.stack([self._encoder.observe(position) for position in positions])
        return images, np.stack([position.action_mask() for position in positions])

    def _probabilities(self, observations: NDArray[np.float32], action_masks: NDArray[np.int8]) -> NDArray[np.float64]:
        """(n, A) float64, 0 for illegal actions."""
        legal = action_masks.astype(np.bool_)
        with torch.no_grad():
            seen = self._seen(observations, action_masks)
            distribution = self._policy.get_distribution(seen, action_masks=legal).distribution
        # sb3-contrib's masks leave illegal actions a probability where a logit outweighs them.
        weights = np.where(legal, distribution.probs.double().cpu().numpy(), 0.0)
        return np.where(weights.sum(axis=1, keepdims=True) > 0.0, weights, legal)

    def _seen(self, observations: NDArray[np.float32], action_masks: NDArray[np.int8]) -> Any:
        if self._is_dict:
            seen: Any = {"observation": observations, "action_mask": action_masks}
        else:
            seen = observations.reshape(len(observations), -1)
        self._policy.set_training_mode(False)
        return self._policy.obs_to_tensor(seen)[0]


class SelfPlay(BaseCallback):  # type: ignore[misc]
    """Lets the learner play frozen copies of itself.

    Every ``every`` steps the policy is frozen, and games that start from then on draw their opponent from the last
    ``keep`` frozen policies and ``beside``; games in progress keep theirs, so no game ever has two opponents. Works in
    ``VecGames`` and in SB3's own vector environments over ``SingleAgentEnv``.

    Args:
        every: steps, in all environments together.
        keep: how many frozen policies, at least 1.
        beside: other opponents, as ``load_agent`` takes them.

    Raises:
        ValueError: a count below 1.
    """

    def __init__(self, every: int, *, keep: int = 8, beside: Sequence[Any] = ("random",)) -> None:
        super().__init__()
        if every < 1 or keep < 1:
            raise ValueError(f"every and keep must be at least 1, not {every} and {keep}")
        self._every = every
        self._beside = list(beside)
        self._frozen: collections.deque[MaskableAgent] = collections.deque(maxlen=keep)
        self._due = every

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps < self._due:
            return
        self._due = self.num_timesteps + self._every
        policy = _frozen_copy(self.model.policy)
        name = f"self@{self.num_timesteps}"
        self._frozen.append(MaskableAgent(policy, _ruleset_of(self.model), greedy=False, name=name))
        self.training_env.env_method("set_opponents", [*self._frozen, *self._beside])
        self.logger.record("self_play/opponents", len(self._frozen) + len(self._beside))


def _frozen_copy(policy: Any) -> Any:
    # As the policy's own save and load do it; it cannot be copied while it holds tensors of a forward pass.
    other = type(policy)(**policy._get_constructor_parameters()).to(policy.device)
    other.load_state_dict(policy.state_dict())
    return other


def save(model: MaskablePPO, path: str | os.PathLike[str]) -> None:
    """Save a model that was trained in one of our environments, with what it was trained for.

    Raises:
        ValueError: the model has no environment, or its environment is none of ours.
    """
    ruleset = _ruleset_of(model)
    record = {
        "game": ruleset.game,
        "variant": ruleset.variant,
        "options": ruleset.overrides,
        "rules": ruleset.rules.version,
        "encoder": ENCODER_VERSION,
    }
    setattr(model, _TRAINED_FOR, record)
    model.save(path)


def load(path: str | os.PathLike[str], *, greedy: bool = True) -> MaskableAgent:
    """The agent in a file that ``save`` wrote; what ``load_agent("sb3:PATH")`` gives.

    SB3's files hold pickles: load only those whose origin you trust.

    Args:
        path: the file, with or without ``.zip``.
        greedy: as of ``MaskableAgent``.

    Raises:
        ValueError: there is no such file; it was not written by ``save``, or for other rules or another encoder.
    """
    file = pathlib.Path(os.path.expanduser(path))
    if not file.is_file() and not (file.name and file.with_suffix(".zip").is_file()):
        raise ValueError(f"there is no file {str(file)!r}")
    model = MaskablePPO.load(file, device="cpu")
    record = getattr(model, _TRAINED_FOR, None)
    if record is None:
        raise ValueError(f"{str(file)!r} does not say what it was trained for; save models by integrations.sb3.save")
    ruleset = load_ruleset(record["game"], record["variant"], **record["options"])
    versions = (record["rules"], record["encoder"])
    if versions != (ruleset.rules.version, ENCODER_VERSION):
        raise ValueError(
            f"{str(file)!r} was trained with rules {versions[0]} and encoder {versions[1]}, and these are "
            f"{ruleset.rules.version} and {ENCODER_VERSION}"
        )
    return MaskableAgent(model.policy, ruleset, greedy=greedy, name=file.stem)


def _ruleset_of(model: Any) -> Ruleset:
    environment = model.get_env()
    if environment is None:
        raise ValueError("the model has no environment; set one by model.set_env")
    try:
        ruleset = environment.get_attr("ruleset")[0]
    except AttributeError:
        raise ValueError("the model was not trained in an environment of tradgames_env") from None
    assert isinstance(ruleset, Ruleset)
    return ruleset
