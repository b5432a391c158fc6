"""The gradient steps of training by search: from samples to weights, and to the averaged weights that play.

Letters: B samples of a step, F features, A actions, K most legal actions of a sample.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tradgames_env.agents.layout import InputLayout
from tradgames_env.agents.network import PolicyValueNetwork, masked_log_probabilities
from tradgames_env.encoding import PLANES
from tradgames_env.rules.ruleset import Ruleset
from training.config import LearnerConfig
from training.run import NonFiniteLossError, joined, optimiser_arrays, part_of, restore_optimiser
from training.targets import outcome_shares

Arrays = dict[str, NDArray[Any]]
_LARGEST_LOSS = 1e4


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Samples of a gradient step; see ``training.replay``.

    Attributes:
        features: (B, F) float32.
        legal: (B, A) bool; all False where there is no policy to learn.
        policies: (B, A) float32.
        weights: (B,) float32, of the policies.
        results: (B,) float32.
        shares: (B, 3) float32, of win, draw and loss.
        margins: (B,) float32.
    """

    features: Tensor
    legal: Tensor
    policies: Tensor
    weights: Tensor
    results: Tensor
    shares: Tensor
    margins: Tensor


class Reflection:
    """Samples as they would be with left and right exchanged.

    Args:
        sites: (sites,) int64, see ``GameRules.mirror``.
        actions: (A,) int64.
        layout: of the network's inputs.
        ruleset: the game.
    """

    def __init__(
        self, sites: NDArray[np.int64], actions: NDArray[np.int64], layout: InputLayout, ruleset: Ruleset
    ) -> None:
        self._actions = actions.astype(np.int16)
        _, width = layout.board
        area = layout.board[0] * width
        cells = np.array([row * width + column for row, column in ruleset.layout.cells])
        moved = np.arange(area)
        moved[cells] = cells[sites]
        planes, places = np.divmod(layout.cells, area)
        is_site = np.array([plane.kind == "site" for plane in PLANES])[planes]
        columns = {int(cell): column for column, cell in enumerate(layout.cells)}
        targets = planes * area + np.where(is_site, moved[places], places)
        self._features = np.array([columns[int(cell)] for cell in targets])

    def apply(self, samples: Arrays, rows: NDArray[np.int64]) -> None:
        """Exchange left and right in some samples, in place."""
        samples["features"][rows] = samples["features"][rows][:, self._features]
        actions = samples["actions"][rows]
        samples["actions"][rows] = np.where(actions >= 0, self._actions[actions], -1)


class Learner:
    """A network that learns, its optimiser, and the average of its weights.

    Args:
        network: with its first weights, on the device where it learns.
        config: how to learn.
        reflection: of the samples; None where the game has none, or shall not use it.
    """

    def __init__(self, network: PolicyValueNetwork, config: LearnerConfig, reflection: Reflection | None) -> None:
        self.network = network
        self._config = config
        self._reflection = reflection
        self._actions = network.record.actions[0]
        self.optimiser = torch.optim.AdamW(
            network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
        )
        self.average = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    def learn(self, samples: Arrays, progress: float, rng: np.random.Generator) -> dict[str, float]:
        """Take gradient steps on samples, each once; returns means over the steps by metric name.

        Args:
            samples: arrays by name, reflected in place.
            progress: of the run, which the learning rate follows.
            rng: draws which samples are reflected.

        Raises:
            NonFiniteLossError: the loss of a batch is not a number, or beyond all measure; the network is as before.
        """
        count = len(samples["results"])
        if self._reflection is not None:
            self._reflection.apply(samples, np.flatnonzero(rng.random(count) < 0.5))
        rate = learning_rate(self._config, progress)
        self.optimiser.param_groups[0]["lr"] = rate
        parts = []
        for begin in range(0, count, self._config.batch_size):
            end = begin + self._config.batch_size
            parts.append(self._step(self._batch({name: array[begin:end] for name, array in samples.items()})))
        means = {name: float(torch.stack([part[name] for part in parts]).mean()) for name in parts[0]}
        return means | {"schedule/learning_rate": rate}

    def _batch(self, samples: Arrays) -> Batch:
        device = next(self.network.parameters()).device

        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(device)

        # Where there is no action, a column behind the last one takes what is written.
        actions = tensor(samples["actions"]).long()
        places = torch.where(actions >= 0, actions, self._actions)
        wide = torch.zeros((len(actions), self._actions + 1), device=device)
        policies = wide.scatter(1, places, tensor(samples["probabilities"]).float())[:, : self._actions]
        legal = wide.scatter(1, places, 1.0)[:, : self._actions] > 0.0
        return Batch(
            features=tensor(samples["features"]).float(),
            legal=legal,
            policies=policies,
            weights=tensor(samples["weights"]),
            results=tensor(samples["results"]),
            shares=tensor(outcome_shares(samples["results"], samples["draws"])),
            margins=tensor(samples["margins"]),
        )

    def _step(self, batch: Batch) -> dict[str, Tensor]:
        loss, parts = losses(self.network, batch, self._config)
        if not abs(loss.item()) < _LARGEST_LOSS:
            raise NonFiniteLossError(batch, loss.item())
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._config.max_grad_norm)
        self.optimiser.step()
        with torch.no_grad():
            for name, tensor in self.network.state_dict().items():
                self.average[name].lerp_(tensor, 1.0 - self._config.average)
        return parts | {"gradient/norm": norm.detach()}

    # -- for a resume ------------------------------------------------------------------------------------------------

    def state(self) -> Arrays:
        """Everything that changes, as arrays by name."""
        weights = {name: tensor.cpu().numpy() for name, tensor in self.network.state_dict().items()}
        return joined({"network": weights, "average": self.averaged(), "adam": optimiser_arrays(self.optimiser)})

    def averaged(self) -> Arrays:
        """The weights that play, copies by name."""
        return {name: tensor.cpu().numpy().copy() for name, tensor in self.average.items()}

    def restore(self, arrays: Arrays) -> None:
        """Take up what ``state`` gave."""
        self.network.load_state_dict(
            {name: torch.from_numpy(array) for name, array in part_of(arrays, "network").items()}
        )
        for name, array in part_of(arrays, "average").items():
            self.average[name].copy_(torch.from_numpy(array))
        restore_optimiser(self.optimiser, part_of(arrays, "adam"))


def losses(network: PolicyValueNetwork, batch: Batch, config: LearnerConfig) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a batch, and its parts by metric name, detached.

    A value of win, draw and loss is learned by cross-entropy with the shares expected of each: unlike a squared error
    it goes on correcting a network that is sure of the wrong result. A scalar value is learned by its squared error.
    """
    outputs = network.outputs(batch.features)
    # A row without legal actions would be uniform over nothing; its weight is 0.
    legal = batch.legal | (batch.weights == 0.0)[:, None]
    log_probabilities = masked_log_probabilities(outputs.logits, legal)
    total = batch.weights.sum().clamp(min=1.0)
    crossed = -(batch.policies * log_probabilities).sum(dim=1)
    entropy = -(batch.policies * batch.policies.clamp(min=1e-9).log()).sum(dim=1)
    policy_loss = (batch.weights * crossed).sum() / total
    if outputs.value.shape[1] == 3:
        value_loss = functional.cross_entropy(outputs.value, batch.shares)
        probabilities = outputs.value.detach().softmax(dim=1)
        values = probabilities[:, 0] - probabilities[:, 2]
    else:
        value_loss = (outputs.value[:, 0] - batch.results).square().mean()
        values = outputs.value[:, 0].detach()
    margin_loss = (outputs.margin[:, 0] - batch.margins).square().mean()
    loss = config.policy_weight * policy_loss + config.value_weight * value_loss + config.margin_weight * margin_loss
    variance = batch.results.var(unbiased=False).clamp(min=1e-9)
    parts = {
        "loss/policy": policy_loss,
        "loss/value": value_loss,
        "loss/margin": margin_loss,
        "policy/kl": (batch.weights * (crossed - entropy)).sum() / total,
        "policy/entropy": (batch.weights * entropy).sum() / total,
        "value/explained": 1.0 - (batch.results - values).var(unbiased=False) / variance,
    }
    return loss, {name: part.detach() for name, part in parts.items()}


def learning_rate(config: LearnerConfig, progress: float) -> float:
    """Of AdamW at this point of a run: half a cosine from its first to its last value."""
    low, high = config.final_learning_rate, config.learning_rate
    return low + (high - low) * 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))
