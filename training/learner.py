"""The gradient steps of training by search: from samples to weights, and to the averaged weights that play.

A network may learn several games at once: each step then takes equally many samples of each, and its loss is the mean
of theirs.

Letters: B samples of a game in a step, F features, A actions, K most legal actions of a sample.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tradgames_env.agents.layout import FeatureReader, InputLayout
from tradgames_env.agents.network import PolicyValueNetwork, masked_log_probabilities
from tradgames_env.encoding import PLANES, Encoder
from tradgames_env.rules.ruleset import Ruleset
from training.config import LearnerConfig
from training.ranks import ALONE, Ranks
from training.run import NonFiniteLossError, joined, optimiser_arrays, part_of, restore_optimiser
from training.targets import outcome_shares

Arrays = dict[str, NDArray[Any]]
_LARGEST_LOSS = 1e4
_REPORT_EVERY = 8
"""Gradient steps for each that is measured: measuring takes a third as long as learning."""


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Samples of a game in a gradient step; see ``training.replay``.

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

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.results)

    def part(self, rows: slice) -> "Batch":
        """Some of the samples."""
        return Batch(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))


class Reflection:
    """Samples as they would be with left and right exchanged.

    Args:
        sites: (sites,) int64, see ``GameRules.mirror``.
        actions: (A,) int64.
        ruleset: the game.
    """

    def __init__(self, sites: NDArray[np.int64], actions: NDArray[np.int64], ruleset: Ruleset) -> None:
        self._actions = actions.astype(np.int16)
        height, width = ruleset.layout.height, ruleset.layout.width
        area = height * width
        cells = np.array([row * width + column for row, column in ruleset.layout.cells])
        moved = np.arange(area)
        moved[cells] = cells[sites]
        informative = Encoder(ruleset).informative_cells()
        planes, places = np.divmod(informative, area)
        is_site = np.array([plane.kind == "site" for plane in PLANES])[planes]
        columns = {int(cell): column for column, cell in enumerate(informative)}
        targets = planes * area + np.where(is_site, moved[places], places)
        self._features = np.array([columns[int(cell)] for cell in targets])

    def apply(self, samples: Arrays, rows: NDArray[np.int64]) -> None:
        """Exchange left and right in some samples, in place."""
        samples["features"][rows] = samples["features"][rows][:, self._features]
        actions = samples["actions"][rows]
        samples["actions"][rows] = np.where(actions >= 0, self._actions[actions], -1)


class Subject:
    """One of the games that a network learns, as its learner sees it.

    Args:
        ruleset: the game.
        layout: of the network's inputs.
        mirror: show half of the samples reflected, if the game has this symmetry.
    """

    def __init__(self, ruleset: Ruleset, layout: InputLayout, mirror: bool) -> None:
        self.reader = FeatureReader(ruleset, layout)
        mirrored = ruleset.rules.mirror(ruleset.options) if mirror else None
        self.reflection = Reflection(*mirrored, ruleset) if mirrored else None


class Learner:
    """A network that learns, its optimiser, and the average of its weights.

    Args:
        network: with its first weights, on the device where it learns.
        config: how to learn.
        subjects: the games, in the order of the network's policy heads.
        ranks: the processes that share each step; all must be told to learn from the same samples.
    """

    def __init__(
        self,
        network: PolicyValueNetwork,
        config: LearnerConfig,
        subjects: Sequence[Subject],
        ranks: Ranks = ALONE,
    ) -> None:
        self.network = network
        self._ranks = ranks
        self._config = config
        self.subjects = subjects
        self.part_size = config.batch_size // len(subjects)
        """Samples of each game in a gradient step."""
        self.optimiser = torch.optim.AdamW(
            network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
        )
        state = network.state_dict()
        self._parameters = list(network.parameters())
        self._learned = list(state.values())
        self.average = {name: tensor.clone() for name, tensor in state.items()}

    def learn(self, samples: Sequence[Arrays], progress: float, rng: np.random.Generator) -> list[dict[str, float]]:
        """Take gradient steps on samples, each once; returns for each game means over some of the steps by metric name.

        Args:
            samples: of each game, equally many: arrays by name, reflected in place.
            progress: of the run, which the learning rate follows.
            rng: draws which samples are reflected.

        Raises:
            NonFiniteLossError: the loss of a batch is not a number, or beyond all measure; the network is as before.
        """
        count = len(samples[0]["results"])
        for subject, arrays in zip(self.subjects, samples, strict=True):
            if subject.reflection is not None:
                subject.reflection.apply(arrays, np.flatnonzero(rng.random(count) < 0.5))
        rate = learning_rate(self._config, progress)
        self.optimiser.param_groups[0]["lr"] = rate
        measured: list[list[dict[str, Tensor]]] = [[] for _ in samples]
        for step, begin in enumerate(range(0, count, self.part_size)):
            rows = slice(begin, begin + self.part_size)
            parts = [{name: array[rows] for name, array in arrays.items()} for arrays in samples]
            batches = [self._batch(game, part) for game, part in enumerate(parts)]
            norm = self._step(batches)
            if step % _REPORT_EVERY == 0:
                for game, batch in enumerate(batches):
                    measured[game].append(measures(self.network, batch, game) | {"gradient/norm": norm})
        return [_means(of_game) | {"schedule/learning_rate": rate} for of_game in measured]

    def _batch(self, game: int, samples: Arrays) -> Batch:
        device = next(self.network.parameters()).device

        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(device)

        # Where there is no action, a column behind the last one takes what is written.
        count = self.network.record.actions[game]
        actions = tensor(samples["actions"]).long()
        places = torch.where(actions >= 0, actions, count)
        wide = torch.zeros((len(actions), count + 1), device=device)
        policies = wide.scatter(1, places, tensor(samples["probabilities"]).float())[:, :count]
        legal = wide.scatter(1, places, 1.0)[:, :count] > 0.0
        return Batch(
            features=tensor(self.subjects[game].reader.spread(samples["features"])).float(),
            legal=legal,
            policies=policies,
            weights=tensor(samples["weights"]),
            results=tensor(samples["results"]),
            shares=tensor(outcome_shares(samples["results"], samples["draws"])),
            margins=tensor(samples["margins"]),
        )

    def _step(self, batches: Sequence[Batch]) -> Tensor:
        """One gradient step on a batch of each game; returns the length of the gradient."""
        rows = self._ranks.rows(len(batches[0]))
        each = [total_loss(self.network, batch, self._config, rows, game) for game, batch in enumerate(batches)]
        losses = torch.stack(each)
        for batch, whole in zip(batches, self._ranks.sum(losses.detach()).tolist(), strict=True):
            if not abs(whole) < _LARGEST_LOSS:
                raise NonFiniteLossError(batch, whole)
        self.optimiser.zero_grad()
        losses.mean().backward()  # type: ignore[no-untyped-call]
        self._ranks.sum_gradients(self._parameters)
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self._config.max_grad_norm)
        self.optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.values()), self._learned, 1.0 - self._config.average)
        return norm.detach()

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


def _means(measured: list[dict[str, Tensor]]) -> dict[str, float]:
    """The mean of each metric."""
    return {name: float(torch.stack([part[name] for part in measured]).mean()) for name in measured[0]}


def _losses(network: PolicyValueNetwork, batch: Batch, game: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Losses of policy, value and margin in a game of the network, and the values (B,).

    A value of win, draw and loss is learned by cross-entropy with the shares expected of each: unlike a squared error
    it goes on correcting a network that is sure of the wrong result. A scalar value is learned by its squared error.
    """
    outputs = network.outputs(batch.features, game)
    # A row without legal actions would be uniform over nothing; its weight is 0.
    legal = batch.legal | (batch.weights == 0.0)[:, None]
    crossed = -(batch.policies * masked_log_probabilities(outputs.logits, legal)).sum(dim=1)
    policy_loss = (batch.weights * crossed).sum() / batch.weights.sum().clamp(min=1.0)
    if outputs.value.shape[1] == 3:
        value_loss = functional.cross_entropy(outputs.value, batch.shares)
        probabilities = outputs.value.detach().softmax(dim=1)
        values = probabilities[:, 0] - probabilities[:, 2]
    else:
        value_loss = (outputs.value[:, 0] - batch.results).square().mean()
        values = outputs.value[:, 0].detach()
    return policy_loss, value_loss, (outputs.margin[:, 0] - batch.margins).square().mean(), values


def total_loss(network: PolicyValueNetwork, batch: Batch, config: LearnerConfig, rows: slice, game: int) -> Tensor:
    """What some rows add to the loss of a batch: policy, value and margin with the configuration's weights."""
    part = batch.part(rows)
    policy, value, margin, _ = _losses(network, part, game)
    share = len(part) / len(batch)
    policy_share = part.weights.sum().clamp(min=1.0) / batch.weights.sum().clamp(min=1.0)
    policy_loss = config.policy_weight * policy_share * policy
    return policy_loss + share * config.value_weight * value + share * config.margin_weight * margin


@torch.no_grad()
def measures(network: PolicyValueNetwork, batch: Batch, game: int) -> dict[str, Tensor]:
    """What there is to report of a batch, by metric name."""
    policy, value, margin, values = _losses(network, batch, game)
    entropies = -(batch.policies * batch.policies.clamp(min=1e-9).log()).sum(dim=1)
    entropy = (batch.weights * entropies).sum() / batch.weights.sum().clamp(min=1.0)
    variance = batch.results.var(unbiased=False).clamp(min=1e-9)
    return {
        "loss/policy": policy,
        "loss/value": value,
        "loss/margin": margin,
        "policy/kl": policy - entropy,
        "policy/entropy": entropy,
        "value/explained": 1.0 - (batch.results - values).var(unbiased=False) / variance,
    }


def learning_rate(config: LearnerConfig, progress: float) -> float:
    """Of AdamW at this point of a run: half a cosine from its first to its last value."""
    low, high = config.final_learning_rate, config.learning_rate
    return low + (high - low) * 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))
