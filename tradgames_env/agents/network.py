"""A trained policy at play: the network, what it says of state rows, and the agent that loads one from a folder.

Only this module and ``layers`` import torch. Its usual trunk is a plain residual multilayer perceptron: on boards of
these sizes it plays several times stronger than a convolutional one of equal cost on a CPU. Residual branches start at
zero, so no normalisation is needed and training and play compute the same.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tradgames_env.agents.checkpoint import VALUE_HEADS, Checkpoint, NetworkRecord, read_checkpoint
from tradgames_env.agents.evaluating import PolicyValueAgent, not_finite
from tradgames_env.agents.layers import trunk_layers
from tradgames_env.agents.layout import FeatureReader, InputLayout
from tradgames_env.rules.contract import MARGIN, MOVER
from tradgames_env.rules.ruleset import Ruleset

MASKED_LOGIT = -1.0e9
"""Logit of an illegal action: finite, so that sums and gradients stay finite, and far below any a network gives."""

_ROW_MULTIPLE = 8
"""Matrix products on CPUs compute rows in groups, and the last rows, if they fill none, in another way that rounds
otherwise. Groups are of 4 rows in the products measured; twice that leaves room for others."""


class DeviceError(ValueError):
    """There is no such device, or torch cannot use it."""


class Outputs(NamedTuple):
    """What the heads of a network give for B positions, float32, before anything is made of it."""

    logits: Tensor
    """(B, A), of the actions of the game asked for."""
    value: Tensor
    """(B, 1) the mover's expected reward, or (B, 3) logits of his win, of a draw and of his loss."""
    margin: Tensor
    """(B, 1) expected change of the mover's margin until the end of the game as a share of its scale."""


class PolicyValueNetwork(nn.Module):
    """From what the mover sees to logits, expected reward and expected further gain of margin.

    One network may play several games: they share all but the policy head. A scalar value serves rewards of any kind,
    stakes for example; win, draw and loss serve games that end in nothing else.

    Weights hold arbitrary numbers until ``initialise`` or ``load_state_dict``.
    """

    def __init__(self, record: NetworkRecord) -> None:
        super().__init__()
        self.record = record
        shapes = record.tensor_shapes()
        # On the meta device, torch draws no numbers from its global generator.
        with torch.device("meta"):
            self.stem, self.blocks, self.neck = trunk_layers(record)
            actions, policy_inputs = shapes["policy.weight"]
            self.policy = nn.Linear(policy_inputs, actions)
            self.value = nn.Linear(record.width, VALUE_HEADS[record.value])
            self.margin = nn.Linear(record.width, 1)
        self.to_empty(device="cpu")

    def initialise(self, generator: torch.Generator) -> None:
        """Draw fresh weights: orthogonal hidden layers, a policy near uniform, values near 0."""
        gains = {self.stem: 2.0**0.5, self.policy: 0.01, self.value: 0.1, self.margin: 0.1}
        for block in self.blocks:
            nn.init.zeros_(block.get_parameter("scale"))
            gains[block] = 2.0**0.5
        gains[self.neck] = 2.0**0.5
        for part, gain in gains.items():
            for layer in part.modules():
                _initialise_layer(layer, gain, generator)

    def forward(self, features: Tensor, game: int = 0) -> tuple[Tensor, Tensor]:
        """Evaluate a batch of positions of one game.

        Args:
            features: (B, F) float32, what ``FeatureReader`` reads.
            game: place of the game in the record the network was made for.

        Returns:
            (B, A) float32 logits, and (B, 2) float32: the mover's expected reward, and the expected change of his
            margin until the end of the game as a share of its scale.
        """
        logits, value, margin = self.outputs(features, game)
        return logits, torch.cat([self._expected(value), margin], dim=-1)

    def outputs(self, features: Tensor, game: int = 0, policy_rows: Tensor | None = None) -> Outputs:
        """What ``forward`` makes its answer of: the value as its head gives it, for losses over win, draw and loss.

        Args:
            features: (B, F) float32.
            game: as above.
            policy_rows: (R,) int64, the only positions whose logits (R, A) are wanted; of all when absent.
        """
        hidden = self.stem(features)
        for block in self.blocks:
            hidden = block(hidden)
        for_policy, for_values = self.neck(hidden)
        if policy_rows is not None:
            for_policy = for_policy[policy_rows]
        return Outputs(self._logits(for_policy, game), self.value(for_values), self.margin(for_values))

    def values(self, features: Tensor) -> Tensor:
        """The second part of what ``forward`` answers, without the time that logits take."""
        hidden = self.stem(features)
        for block in self.blocks:
            hidden = block(hidden)
        _, for_values = self.neck(hidden)
        return torch.cat([self._expected(self.value(for_values)), self.margin(for_values)], dim=-1)

    def _logits(self, hidden: Tensor, game: int) -> Tensor:
        actions = self.record.actions
        if len(actions) == 1:
            logits: Tensor = self.policy(hidden)
            return logits
        first = sum(actions[:game])
        rows = slice(first, first + actions[game])
        return nn.functional.linear(hidden, self.policy.weight[rows], self.policy.bias[rows])

    def _expected(self, value: Tensor) -> Tensor:
        if self.record.value == "scalar":
            return value
        shares = torch.softmax(value, dim=-1)
        return shares[:, :1] - shares[:, 2:]


def _initialise_layer(layer: nn.Module, gain: float, generator: torch.Generator) -> None:
    if isinstance(layer, nn.Linear | nn.Conv2d):
        nn.init.orthogonal_(layer.weight, gain, generator=generator)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def masked_log_probabilities(logits: Tensor, legal: Tensor) -> Tensor:
    """(B, A) float32 log probabilities that give illegal actions none.

    Args:
        logits: (B, A) float32.
        legal: (B, A) bool, at least one legal action in each row.
    """
    return torch.log_softmax(logits.masked_fill(~legal, MASKED_LOGIT), dim=-1)


class NetworkEvaluator:
    """What a network says of state rows of one game: the ``Evaluator`` of searches.

    It computes on the device that holds the network's weights, and follows every change of them. On a CPU, called by
    itself, it says the same of a position to the last bit whatever else is in the batch.

    Args:
        ruleset: the game.
        network: made for it, alone or among others; used as it is.
        margin_weight: worth of the largest possible final margin in utilities; a win is 1.
        games: all games of the network in the order of its record; ``ruleset`` alone when empty.

    Raises:
        ValueError: ``ruleset`` is not among the games, or the network was made for others.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        network: PolicyValueNetwork,
        margin_weight: float = 0.0,
        games: Sequence[Ruleset] = (),
    ) -> None:
        games = games or (ruleset,)
        layout = InputLayout.of(games, whole_planes=network.record.trunk == "conv")
        actions = tuple(game.num_actions for game in games)
        if ruleset not in games or (len(layout.cells), actions) != (network.record.inputs, network.record.actions):
            raise ValueError(f"the network was made for other games than {', '.join(game.label for game in games)}")
        self.ruleset = ruleset
        self.network = network
        self.margin_weight = margin_weight
        self.margin_scale = float(ruleset.rules.margin_scale(ruleset.options))
        self._game = games.index(ruleset)
        self.reader = FeatureReader(ruleset, layout)

    def __call__(
        self, states: NDArray[np.int16], histories: NDArray[np.uint64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Evaluate running positions, whether a throw is due or not.

        Args:
            states: (B, S) int16.
            histories: (B, H) uint64.

        Returns:
            (B, A) float32 logits, those of illegal actions included, and (B,) float32 utilities: what the mover expects
            at the end, the payoff plus ``margin_weight`` times the final margin as a share of its scale.
        """
        count = len(states)
        features = self.features(states, histories)
        filler = np.zeros((-count % _ROW_MULTIPLE, features.shape[1]), np.float32)
        logits, values = (part[:count].cpu().numpy() for part in self._answer(np.concatenate([features, filler])))
        return logits, self._utilities(states, values)

    def utilities(self, states: NDArray[np.int16], histories: NDArray[np.uint64]) -> NDArray[np.float32]:
        """(B,) float32, for searches that need no policy; arguments as above."""
        with torch.inference_mode():
            features = torch.from_numpy(self.features(states, histories)).to(self.network.policy.weight.device)
            values = self.network.values(features).cpu().numpy()
        return self._utilities(states, values)

    def evaluate(self, states: NDArray[np.int16], histories: NDArray[np.uint64]) -> tuple[Tensor, Tensor]:
        """What ``PolicyValueNetwork.forward`` gives, on its device and without gradients; arguments as above."""
        return self._answer(self.features(states, histories))

    def features(self, states: NDArray[np.int16], histories: NDArray[np.uint64]) -> NDArray[np.float32]:
        """(B, F) float32: what the network reads of positions; arguments as above."""
        return self.reader(states, histories)

    def _answer(self, features: NDArray[np.float32]) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            on_device = torch.from_numpy(features).to(self.network.policy.weight.device)
            answer: tuple[Tensor, Tensor] = self.network(on_device, self._game)
        return answer

    def _utilities(self, states: NDArray[np.int16], values: NDArray[np.float32]) -> NDArray[np.float32]:
        """(B,) float32, contiguous."""
        if self.margin_weight == 0.0:
            return np.ascontiguousarray(values[:, 0])
        margins = np.where(states[:, MOVER] == 0, states[:, MARGIN], -states[:, MARGIN]).astype(np.float32)
        final = margins / np.float32(self.margin_scale) + values[:, 1]
        return values[:, 0] + np.float32(self.margin_weight) * final


class NetworkAgent(PolicyValueAgent[NetworkEvaluator]):
    """Plays with a trained network and torch; how is told at ``PolicyValueAgent``.

    Attributes:
        checkpoint: where it was loaded from.

    Args:
        checkpoint: a checked checkpoint.
        device: a torch device, or "auto" for the first CUDA device where there is one.
        lookahead: what the checkpoint recommends when None.
        temperature: a positive one needs ``lookahead`` off, and switches it off when that is None.

    Raises:
        ValueError: the temperature is negative, not finite, or positive together with lookahead; or torch does not know
            the device.
    """

    def __init__(
        self, checkpoint: Checkpoint, *, device: str = "auto", lookahead: bool | None = None, temperature: float = 0.0
    ) -> None:
        play = checkpoint.record.play
        name = f"{checkpoint.folder.parent.name}/{checkpoint.folder.name}".lstrip("/")
        super().__init__(name, checkpoint.rulesets, play, lookahead=lookahead, temperature=temperature)
        self.checkpoint = checkpoint
        network = load_network(checkpoint).to(resolve_device(device))
        self._evaluators = [
            NetworkEvaluator(game, network, play.margin_weight, self.rulesets) for game in self.rulesets
        ]

    def _judge(
        self,
        evaluator: NetworkEvaluator,
        states: NDArray[np.int16],
        histories: NDArray[np.uint64],
        legal: NDArray[np.bool_],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        logits, values = (self._finite(part) for part in evaluator.evaluate(states, histories))
        log_probabilities = masked_log_probabilities(logits, torch.from_numpy(legal).to(logits.device))
        probabilities = np.where(legal, log_probabilities.double().exp().cpu().numpy(), 0.0)
        return probabilities, values.double().cpu().numpy()

    def _values(
        self, evaluator: NetworkEvaluator, states: NDArray[np.int16], histories: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        return self._finite(evaluator.evaluate(states, histories)[1]).double().cpu().numpy()

    def _finite(self, numbers: Tensor) -> Tensor:
        if not torch.isfinite(numbers).all():
            raise not_finite(self.checkpoint.folder)
        return numbers


def load_network(checkpoint: Checkpoint) -> PolicyValueNetwork:
    """The network in a checkpoint, on the CPU, for play alone."""
    network = PolicyValueNetwork(checkpoint.record.network)
    # A copy: the arrays of a checkpoint are views of read-only bytes, which torch does not take.
    network.load_state_dict({name: torch.from_numpy(tensor.copy()) for name, tensor in checkpoint.tensors.items()})
    return network.eval()


def load_network_agent(
    path: str | os.PathLike[str], *, device: str = "auto", lookahead: bool | None = None, temperature: float = 0.0
) -> NetworkAgent:
    """The agent in a checkpoint folder.

    Args:
        path: the folder.
        device: a torch device such as "cpu" or "cuda:1"; "auto" takes CUDA where there is one.
        lookahead: choose by the values one move ahead, or by the policy; what the checkpoint recommends when None.
        temperature: 0 for the most probable move, see ``NetworkAgent``.

    Raises:
        CheckpointError: the folder is missing, damaged or made for another version; a ``ValueError``.
        ValueError: a wrong device or temperature.
    """
    return NetworkAgent(read_checkpoint(path), device=device, lookahead=lookahead, temperature=temperature)


def resolve_device(name: str) -> torch.device:
    """The torch device of that name; "auto" is CUDA where there is one, else the CPU.

    Raises:
        DeviceError: torch does not know it, or it is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.partition(":")[0] == "meta":
        raise _unusable(name, "it holds no numbers")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise _unusable(name, str(error).splitlines()[0]) from None
    return device


def _unusable(name: str, problem: str) -> DeviceError:
    return DeviceError(f"device {name!r} cannot be used ({problem}); try 'auto' or 'cpu'")
