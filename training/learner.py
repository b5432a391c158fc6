"""The gradient steps of training by search: from samples to weights, and to the averaged weights that play.

A network may learn several games at once: each step then takes equally many samples of each, and its loss is the mean
of theirs.

Letters: B samples of a game in a step, F features, K most legal actions of a sample, T samples whose policies are
learned from.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

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
_REPORT_EVERY = 16
"""Gradient steps for each that is measured: measuring takes a third as long as learning."""


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Samples of a game in one or more gradient steps; see ``training.replay``.

    Attributes:
        features: (B, F) float32.
        actions: (B, K) int64, the legal ones, then -1.
        probabilities: (B, K) float32, of these.
        weights: (B,) float32, of the policies.
        results: (B,) float32.
        shares: (B, 3) float32, of win, draw and loss.
        margins: (B,) float32.
    """

    features: Tensor
    actions: Tensor
    probabilities: Tensor
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
    """Samples as they would be with the board reflected or turned.

    Args:
        sites: (sites,) int64, see ``GameRules.mirror`` and ``GameRules.turn``.
        actions: (A,) int64.
        ruleset: the game.
    """

    def __init__(self, sites: NDArray[np.int64], actions: NDArray[np.int64], ruleset: Ruleset) -> None:
        self._actions = actions.astype(np.int16)
        height, width = ruleset.layout.height, ruleset.layout.width
        area = height * width
        cells = np.array([row * width + column for row, column in ruleset.layout.cells])
        moved = np.arange(area)
        moved[cells[sites]] = cells
        informative = Encoder(ruleset).informative_cells()
        planes, places = np.divmod(informative, area)
        is_site = np.array([plane.kind == "site" for plane in PLANES])[planes]
        columns = {int(cell): column for column, cell in enumerate(informative)}
        targets = planes * area + np.where(is_site, moved[places], places)
        self._features = np.array([columns[int(cell)] for cell in targets])

    def apply(self, samples: Arrays, rows: NDArray[np.int64]) -> None:
        """Reflect or turn some samples, in place."""
        samples["features"][rows] = samples["features"][rows][:, self._features]
        actions = samples["actions"][rows]
        samples["actions"][rows] = np.where(actions >= 0, self._actions[actions], -1)


class Subject:
    """One of the games that a network learns, as its learner sees it.

    Args:
        ruleset: the game.
        layout: of the network's inputs.
        mirror: show half of the samples reflected, if the game has this symmetry.
        turns: show the samples turned by any number of quarters, if the game has this symmetry.
    """

    def __init__(self, ruleset: Ruleset, layout: InputLayout, mirror: bool, turns: bool) -> None:
        self.reader = FeatureReader(ruleset, layout)
        mirrored = ruleset.rules.mirror(ruleset.options) if mirror else None
        self.reflection = Reflection(*mirrored, ruleset) if mirrored else None
        turned = ruleset.rules.turn(ruleset.options) if turns else None
        self.turn = Reflection(*turned, ruleset) if turned else None

    def vary(self, samples: Arrays, rng: np.random.Generator) -> None:
        """Reflect and turn samples at random, in place."""
        count = len(samples["results"])
        if self.reflection is not None:
            self.reflection.apply(samples, np.flatnonzero(rng.random(count) < 0.5))
        if self.turn is None:
            return
        quarters = rng.integers(0, 4, count)
        for fewest in (1, 2, 3):
            self.turn.apply(samples, np.flatnonzero(quarters >= fewest))


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
            samples: of each game, equally many: arrays by name, reflected and turned in place.
            progress: of the run, which the learning rate follows.
            rng: draws which samples are reflected and turned.

        Raises:
            NonFiniteLossError: the loss of a batch is not a number, or beyond all measure, or the gradient is not
                finite; the network is as before that step.
        """
        count = len(samples[0]["results"])
        for subject, arrays in zip(self.subjects, samples, strict=True):
            subject.vary(arrays, rng)
        rate = learning_rate(self._config, progress)
        self.optimiser.param_groups[0]["lr"] = rate
        measured: list[list[dict[str, Tensor]]] = [[] for _ in samples]
        drawn = [self._batch(game, arrays) for game, arrays in enumerate(samples)]
        for step, begin in enumerate(range(0, count, self.part_size)):
            batches = [batch.part(slice(begin, begin + self.part_size)) for batch in drawn]
            norm = self._step(batches)
            if step % _REPORT_EVERY == 0:
                for game, batch in enumerate(batches):
                    measured[game].append(measures(self.network, batch, game) | {"gradient/norm": norm})
        return [_means(of_game) | {"schedule/learning_rate": rate} for of_game in measured]

    def _batch(self, game: int, samples: Arrays) -> Batch:
        device = next(self.network.parameters()).device

        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(device)

        return Batch(
            features=tensor(self.subjects[game].reader.spread(samples["features"])).float(),
            actions=tensor(samples["actions"]).long(),
            probabilities=tensor(samples["probabilities"]).float(),
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
        if not torch.isfinite(norm):
            raise NonFiniteLossError(batches[int(losses.argmax())], norm.item(), "gradient")
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


class _Losses(NamedTuple):
    """Sums over samples, and the values (B, 1) or (B, 3) as the network gives them."""

    policy: Tensor
    value: Tensor
    margin: Tensor
    values: Tensor


def _means(measured: list[dict[str, Tensor]]) -> dict[str, float]:
    """The mean of each metric."""
    return {name: float(torch.stack([part[name] for part in measured]).mean()) for name in measured[0]}


def _losses(network: PolicyValueNetwork, batch: Batch, game: int) -> _Losses:
    """Losses of policy, value and margin in a game of the network.

    A value of win, draw and loss is learned by cross-entropy with the shares expected of each: unlike a squared error
    it goes on correcting a network that is sure of the wrong result. A scalar value is learned by its squared error.
    """
    taught = batch.weights.nonzero()[:, 0]
    outputs = network.outputs(batch.features, game, policy_rows=taught)
    policy = _policy_loss(outputs.logits, batch.actions[taught], batch.probabilities[taught], batch.weights[taught])
    if outputs.value.shape[1] == 3:
        value = functional.cross_entropy(outputs.value, batch.shares, reduction="sum")
    else:
        value = functional.mse_loss(outputs.value[:, 0], batch.results, reduction="sum")
    margin = functional.mse_loss(outputs.margin[:, 0], batch.margins, reduction="sum")
    return _Losses(policy, value, margin, outputs.value)


def _policy_loss(logits: Tensor, actions: Tensor, probabilities: Tensor, weights: Tensor) -> Tensor:
    """Weighted sum of the policies' cross-entropies over the legal actions alone.

    Args:
        logits: (T, A) of all actions.
        actions: (T, K), -1 behind the last legal one.
        probabilities: (T, K) to learn.
        weights: (T,), above 0.
    """
    of_legal = logits.gather(1, actions.clamp(min=0))
    weighted = probabilities * weights[:, None]
    return -(weighted * masked_log_probabilities(of_legal, actions >= 0)).sum()


def total_loss(network: PolicyValueNetwork, batch: Batch, config: LearnerConfig, rows: slice, game: int) -> Tensor:
    """What some rows add to the loss of a batch: policy, value and margin with the configuration's weights."""
    losses = _losses(network, batch if rows == slice(0, len(batch)) else batch.part(rows), game)
    policy_share = config.policy_weight / _total_weight(batch)
    value_share, margin_share = config.value_weight / len(batch), config.margin_weight / len(batch)
    return policy_share * losses.policy + value_share * losses.value + margin_share * losses.margin


def _total_weight(batch: Batch) -> Tensor:
    return batch.weights.sum().clamp(min=1.0)


@torch.no_grad()
def measures(network: PolicyValueNetwork, batch: Batch, game: int) -> dict[str, Tensor]:
    """What there is to report of a batch, by metric name."""
    losses, count, weight = _losses(network, batch, game), len(batch), _total_weight(batch)
    entropies = -(batch.probabilities * batch.probabilities.clamp(min=1e-9).log()).sum(dim=1)
    variance = batch.results.var(unbiased=False).clamp(min=1e-9)
    values = losses.values[:, 0]
    if losses.values.shape[1] == 3:
        shares = losses.values.softmax(dim=1)
        values = shares[:, 0] - shares[:, 2]
    return {
        "loss/policy": losses.policy / weight,
        "loss/value": losses.value / count,
        "loss/margin": losses.margin / count,
        "policy/kl": (losses.policy - (batch.weights * entropies).sum()) / weight,
        "policy/entropy": (batch.weights * entropies).sum() / weight,
        "value/explained": 1.0 - (batch.results - values).var(unbiased=False) / variance,
    }


def learning_rate(config: LearnerConfig, progress: float) -> float:
    """Of AdamW at this point of a run: half a cosine from its first to its last value."""
    low, high = config.final_learning_rate, config.learning_rate
    return low + (high - low) * 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))
