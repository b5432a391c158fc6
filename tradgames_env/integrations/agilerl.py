"""AgileRL: the loop over both players' turns that its single-agent algorithms learn from, and a DQN that reads masks.

AgileRL's own classes for several agents take parallel games only. Played by hand, a turn's successor must be what the
same player sees at its next decision, and its best value must be that of a legal action; here both are.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from agilerl.algorithms.dqn import DQN
from numpy.typing import NDArray
from pettingzoo import AECEnv
from tensordict import TensorDict

Choose = Callable[[str, NDArray[np.float32], NDArray[np.int8]], int]
"""From an agent, what it sees as of ``seen`` and its mask (A,) int8 to a legal action."""


class Turn(NamedTuple):
    """What a player learns of one of its decisions at its next one, or at the end of the game."""

    agent: str
    obs: NDArray[np.float32]
    """(C * H * W + A,): what it saw, as of ``seen``."""
    action: int
    reward: float
    """What it was paid since, by its own moves and by the others'."""
    next_obs: NDArray[np.float32]
    """(C * H * W + A,): what it sees now."""
    done: bool


def seen(image: NDArray[np.float32], mask: NDArray[np.int8]) -> NDArray[np.float32]:
    """(C * H * W + A,) float32: an observation (C, H, W) with the mask (A,) behind it."""
    return np.concatenate([image.ravel(), mask.astype(np.float32)])


def space(env: AECEnv[str, Any, Any]) -> gymnasium.spaces.Box:
    """The space of what ``seen`` makes of a game's observations and masks."""
    first = env.possible_agents[0]
    image, actions = env.observation_space(first), env.action_space(first)
    assert isinstance(image, gymnasium.spaces.Box), 'make the game with mask_in="info"'
    assert isinstance(actions, gymnasium.spaces.Discrete)
    size = int(np.prod(image.shape)) + int(actions.n)
    return gymnasium.spaces.Box(-1.0, 1.0, (size,), np.float32)


def played(env: AECEnv[str, Any, Any], choose: Choose, *, seed: int | None = None) -> Iterator[Turn]:
    """One game, turn by turn; a player may have several turns in a row.

    Args:
        env: made with ``mask_in="info"``, as AgileRL wants its masks.
        choose: decides for every player.
        seed: of the game; without one the generator of ``env`` goes on.

    Yields:
        Each player's turns, a turn as soon as its successor is known.
    """
    env.reset(seed=seed)
    waiting: dict[str, tuple[NDArray[np.float32], int]] = {}
    image: Any
    for agent in env.agent_iter():
        image, reward, terminated, truncated, info = env.last()
        over, now = terminated or truncated, seen(image, info["action_mask"])
        if agent in waiting:
            before, action = waiting[agent]
            yield Turn(agent, before, action, float(reward), now, over)
        if over:
            env.step(None)
            continue
        action = choose(agent, now, info["action_mask"])
        waiting[agent] = now, action
        env.step(action)


def transitions(turns: Iterable[Turn]) -> TensorDict:
    """What AgileRL's ``ReplayBuffer.add`` takes: ``obs``, ``action``, ``reward``, ``next_obs`` and ``done`` of n turns.

    Args:
        turns: at least one.

    Raises:
        ValueError: there is none.
    """
    columns = list(zip(*turns, strict=True))
    if not columns:
        raise ValueError("there is no turn to learn from")
    _, obs, action, reward, next_obs, done = columns
    return TensorDict(
        {
            "obs": torch.from_numpy(np.stack(obs)),
            "action": torch.tensor(action, dtype=torch.int64)[:, None],
            "reward": torch.tensor(reward, dtype=torch.float32)[:, None],
            "next_obs": torch.from_numpy(np.stack(next_obs)),
            "done": torch.tensor(done, dtype=torch.float32)[:, None],
        },
        batch_size=[len(obs)],
    )


class MaskedDQN(DQN):  # type: ignore[misc]
    """AgileRL's DQN with double targets, of which the successors' best actions are legal ones.

    Observations are those of ``seen``: the mask is at their end. ``cudagraphs`` and ``accelerator`` are not supported.
    """

    def act(self, obs: NDArray[np.float32], mask: NDArray[np.int8], epsilon: float = 0.0) -> int:
        """A legal action: the best one, or with probability ``epsilon`` any.

        Args:
            obs: (C * H * W + A,) as of ``seen``.
            mask: (A,) int8.
            epsilon: in [0, 1].
        """
        return int(self.get_action(obs[None], epsilon=epsilon, action_mask=mask[None])[0])

    def update(self, obs: Any, actions: Any, rewards: Any, next_obs: Any, dones: Any) -> Any:
        """Called by ``learn`` with a batch of B: one step of the optimizer; returns the loss.

        Args:
            obs: (B, F) float32.
            actions: (B, 1).
            rewards: (B, 1) float32.
            next_obs: (B, F) float32.
            dones: (B, 1) float32, 1 where the game ended.
        """
        illegal = next_obs[:, -self.action_dim :] == 0
        with torch.no_grad():
            best = self.actor(next_obs).masked_fill(illegal, -torch.inf).argmax(dim=1, keepdim=True)
            following = self.actor_target(next_obs).gather(1, best)
            goal = rewards + self.gamma * following * (1 - dones)
        loss = self.criterion(self.actor(obs).gather(1, actions.long()), goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()
