"""The opponent pool: frozen past policies, and which games are played against which of them.

An opponent is drawn when a game starts and stays until it ends; weights never change in the middle of a game. A policy
that is no longer drawn is kept for as long as a game still needs it.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tradgames_env.agents.network import PolicyValueNetwork
from training.config import PoolConfig

NOBODY = -1
"""In place of a policy's number or a colour: the game is played by the learner alone."""


class OpponentPool:
    """Numbered snapshots of the learner.

    Attributes:
        policies: frozen networks by number; numbers rise with age of the run.
        opponents: (N,) int64, number of the policy that plays in each game, or ``NOBODY``.
        colours: (N,) int8, colour it plays, or ``NOBODY``.
    """

    def __init__(self, config: PoolConfig, num_games: int) -> None:
        self._config = config
        self.policies: dict[int, PolicyValueNetwork] = {}
        self.opponents = np.full(num_games, NOBODY, np.int64)
        self.colours = np.full(num_games, NOBODY, np.int8)
        self._next_number = 0

    def add(self, network: PolicyValueNetwork) -> None:
        """Freeze a copy of ``network`` as the newest opponent; drop those that are neither drawn nor playing."""
        frozen = PolicyValueNetwork(network.record)
        frozen.load_state_dict(network.state_dict())
        self._keep(self._next_number, frozen.to(next(network.parameters()).device))
        self._next_number += 1
        needed = {*self._drawn(), *self.opponents.tolist()}
        self.policies = {number: policy for number, policy in self.policies.items() if number in needed}

    def assign(self, started: NDArray[np.bool_], rng: np.random.Generator) -> None:
        """Draw who plays in the games that have just started.

        Args:
            started: (N,) bool.
            rng: of the run; always drawn from in the same amounts for the same number of started games.
        """
        count = int(started.sum())
        if count == 0:
            return
        chosen = np.full(count, NOBODY, np.int64)
        colours = np.full(count, NOBODY, np.int8)
        numbers = self._drawn()
        if numbers and self._config.share > 0.0:
            weights = np.arange(1, len(numbers) + 1, dtype=np.float64) ** self._config.recency
            against = rng.random(count) < self._config.share
            drawn = rng.choice(numbers, count, p=weights / weights.sum())
            sides = rng.integers(0, 2, count, dtype=np.int8)
            chosen = np.where(against, drawn, NOBODY)
            colours = np.where(against, sides, NOBODY).astype(np.int8)
        self.opponents[started] = chosen
        self.colours[started] = colours

    def replace_logits(self, features: Tensor, logits: Tensor, frozen: NDArray[np.bool_]) -> None:
        """Overwrite the logits of the games where a frozen policy decides by its own.

        Args:
            features: (N, F) float32.
            logits: (N, A) float32, changed in place.
            frozen: (N,) bool, whether a frozen policy decides.
        """
        for number in np.unique(self.opponents[frozen]).tolist():
            rows = torch.from_numpy(np.flatnonzero(frozen & (self.opponents == number))).to(features.device)
            logits[rows] = self.policies[number](features[rows])[0]

    def _drawn(self) -> list[int]:
        return sorted(self.policies)[-self._config.capacity :]

    def _keep(self, number: int, network: PolicyValueNetwork) -> None:
        network.requires_grad_(requires_grad=False).eval()
        self.policies[number] = network

    # -- for a resume ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes, as arrays by name."""
        arrays: dict[str, NDArray[Any]] = {
            "opponents": self.opponents,
            "colours": self.colours,
            "next_number": np.array([self._next_number]),
            "numbers": np.array(sorted(self.policies), np.int64),
        }
        for number, policy in self.policies.items():
            arrays |= {f"{number}.{name}": tensor.cpu().numpy() for name, tensor in policy.state_dict().items()}
        return arrays

    def restore(self, arrays: dict[str, NDArray[Any]], like: PolicyValueNetwork) -> None:
        """Take up what ``state`` gave; ``like`` has the sizes and the device of the policies."""
        self.opponents[:] = arrays["opponents"]
        self.colours[:] = arrays["colours"]
        self._next_number = int(arrays["next_number"][0])
        self.policies = {}
        for number in arrays["numbers"].tolist():
            policy = PolicyValueNetwork(like.record)
            policy.load_state_dict({name: torch.from_numpy(arrays[f"{number}.{name}"]) for name in policy.state_dict()})
            self._keep(number, policy.to(next(like.parameters()).device))
