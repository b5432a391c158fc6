"""A trained policy at play: the network, and the agent that loads one from a checkpoint folder.

The only module of the package that imports torch. The network is a plain residual multilayer perceptron: on boards of
these sizes it plays several times stronger than a convolutional one of equal cost on a CPU. Residual branches start at
zero (ReZero, Bachlechner et al., 2020), so no normalisation is needed and training and play compute the same.
"""

import os
from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tradgames_env.agents.base import deciding_moves
from tradgames_env.agents.checkpoint import Checkpoint, CheckpointError, NetworkRecord, read_checkpoint
from tradgames_env.agents.lookahead import successors
from tradgames_env.encoding import Encoder
from tradgames_env.position import Position

MASKED_LOGIT = -1.0e9
"""Logit of an illegal action: finite, so that sums and gradients stay finite, and far below any a network gives."""


class DeviceError(ValueError):
    """There is no such device, or torch cannot use it."""


class ResidualBlock(nn.Module):
    """``x + scale * linear(relu(x))`` with a learned scale that starts at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.empty(1))
        self.linear = nn.Linear(width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, W) float32 to (B, W) float32."""
        return hidden + self.scale * cast(Tensor, self.linear(torch.relu(hidden)))


class PolicyValueNetwork(nn.Module):
    """From what the mover sees to logits, expected reward and expected further gain of margin.

    The value is a scalar, not win, draw and loss: rewards may be stakes, and training needs their expectation only.

    Weights hold arbitrary numbers until ``initialise`` or ``load_state_dict``.
    """

    def __init__(self, record: NetworkRecord) -> None:
        super().__init__()
        self.record = record
        # On the meta device, torch draws no numbers from its global generator.
        with torch.device("meta"):
            self.stem = nn.Linear(record.inputs, record.width)
            self.blocks = nn.ModuleList(ResidualBlock(record.width) for _ in range(record.blocks))
            self.policy = nn.Linear(record.width, record.actions)
            self.value = nn.Linear(record.width, 1)
            self.margin = nn.Linear(record.width, 1)
        self.to_empty(device="cpu")

    def initialise(self, generator: torch.Generator) -> None:
        """Draw fresh weights: orthogonal hidden layers, a policy near uniform, values near 0."""
        layers = {self.stem: 2.0**0.5, self.policy: 0.01, self.value: 0.1, self.margin: 0.1}
        for block in self.blocks:
            assert isinstance(block, ResidualBlock)
            layers[block.linear] = 2.0**0.5
            nn.init.zeros_(block.scale)
        for layer, gain in layers.items():
            nn.init.orthogonal_(layer.weight, gain, generator=generator)
            nn.init.zeros_(layer.bias)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate a batch.

        Args:
            features: (B, F) float32, the informative cells of observations.

        Returns:
            (B, A) float32 logits, and (B, 2) float32: the mover's expected reward, and the expected change of his
            margin until the end of the game as a share of its scale.
        """
        hidden = self.stem(features)
        for block in self.blocks:
            hidden = block(hidden)
        hidden = torch.relu(hidden)
        return self.policy(hidden), torch.cat([self.value(hidden), self.margin(hidden)], dim=-1)


def masked_log_probabilities(logits: Tensor, legal: Tensor) -> Tensor:
    """(B, A) float32 log probabilities that give illegal actions none.

    Args:
        logits: (B, A) float32.
        legal: (B, A) bool, at least one legal action in each row.
    """
    return torch.log_softmax(logits.masked_fill(~legal, MASKED_LOGIT), dim=-1)


class NetworkAgent:
    """Plays with a trained network, by one of two ways.

    With ``lookahead`` every legal move is tried on a copy, each position it can lead to (each outcome of a throw
    included) is valued by the network, and the move of the highest expected value is played. A win on the spot is
    always played. Without it, the policy decides: one evaluation a move.

    Attributes:
        name: for tables and messages.
        ruleset: the game and options it was trained for; no others are accepted.
        checkpoint: where it was loaded from.
        lookahead: see above.
        temperature: without lookahead, 0 plays the most probable move (exact ties by its own generator); 1 draws moves
            from the policy; other numbers sharpen (below 1) or flatten it.

    Args:
        checkpoint: a checked checkpoint.
        device: a torch device, or "auto" for the first CUDA device where there is one.
        lookahead: see above; what the checkpoint recommends when None.
        temperature: see above; a positive one needs ``lookahead`` off, and switches it off when that is None.

    Raises:
        ValueError: the temperature is negative, not finite, or positive together with lookahead; or torch does not know
            the device.
    """

    def __init__(
        self, checkpoint: Checkpoint, *, device: str = "auto", lookahead: bool | None = None, temperature: float = 0.0
    ) -> None:
        if not 0.0 <= temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or a positive number, not {temperature!r}")
        if lookahead and temperature > 0.0:
            raise ValueError("a positive temperature draws from the policy; it cannot be used with lookahead")
        self.checkpoint = checkpoint
        self.ruleset = checkpoint.ruleset
        self.name = f"{checkpoint.folder.parent.name}/{checkpoint.folder.name}".lstrip("/")
        self.temperature = temperature
        recommended = checkpoint.record.play.lookahead and temperature == 0.0
        self.lookahead = recommended if lookahead is None else lookahead
        self._device = resolve_device(device)
        self._encoder = Encoder(self.ruleset)
        self._cells = self._encoder.informative_cells()
        self._network = PolicyValueNetwork(checkpoint.record.network)
        # A copy: the arrays of a checkpoint are views of read-only bytes, which torch does not take.
        weights = {name: torch.from_numpy(tensor.copy()) for name, tensor in checkpoint.tensors.items()}
        self._network.load_state_dict(weights)
        self._network.to(self._device).eval()
        self._rng = np.random.default_rng()

    def seed(self, seed: int) -> None:
        """Start the agent's own generator anew."""
        self._rng = np.random.default_rng(seed)

    def act(self, position: Position) -> str:
        """The move it plays, in notation.

        Raises:
            ValueError: the position belongs to another game or other options.
            IllegalMoveError: no seat decides here, the game is over or a throw is due.
        """
        return self.act_many([position])[0]

    def act_many(self, positions: Sequence[Position]) -> list[str]:
        """Its move in each position, from one evaluation of them all; raises as ``act``.

        Batches of other sizes may round in the last digit differently.
        """
        if not positions:
            return []
        if self.lookahead:
            chosen = [self._best(row) for row in self._look_ahead(positions)]
        else:
            chosen = [self._choose(row) for row in self._evaluate(positions)[0]]
        return [position.notation(action) for position, action in zip(positions, chosen, strict=True)]

    def policy(self, position: Position) -> dict[str, float]:
        """Probability of each legal move by the network itself, whatever the temperature; raises as ``act``."""
        probabilities, _ = self._evaluate([position])
        legal = probabilities[0, position.legal_actions()]
        return dict(zip(position.legal_moves(), (legal / legal.sum()).tolist(), strict=True))

    def value(self, position: Position) -> float:
        """Expected reward of the mover, cut to [-1, 1]; raises as ``act``."""
        return float(np.clip(self._evaluate([position])[1][0, 0], -1.0, 1.0))

    def _evaluate(self, positions: Sequence[Position]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(N, A) float64 probabilities, 0 for illegal actions, and (N, 2) float64 values."""
        self._refuse_undecided(positions)
        states = np.stack([position.rows[0] for position in positions])
        histories = np.stack([position.rows[1] for position in positions])
        seats = np.array([position.seat for position in positions], np.int8)
        legal = np.stack([position.action_mask() for position in positions]) == 1
        with torch.inference_mode():
            logits, values = (self._finite(part) for part in self._network(self._features(states, histories, seats)))
            log_probabilities = masked_log_probabilities(logits, torch.from_numpy(legal).to(self._device))
        probabilities = np.where(legal, log_probabilities.double().exp().cpu().numpy(), 0.0)
        return probabilities, values.double().cpu().numpy()

    def _look_ahead(self, positions: Sequence[Position]) -> NDArray[np.float64]:
        """(N, A) float64: expected value of each legal action for the mover, -inf for the others."""
        self._refuse_undecided(positions)
        ahead = successors(positions, self._rng.integers(0, 2**64, size=1, dtype=np.uint64))
        with torch.inference_mode():
            values = self._finite(self._network(self._features(ahead.states, ahead.histories, ahead.seats))[1])
        margin_weight = self.checkpoint.record.play.margin_weight
        weights = np.array([1.0, margin_weight])
        # A decided game counts for more than any value and margin a network promises together.
        decided = 2.0 + 4.0 * margin_weight
        further = ahead.sign * (values.double().cpu().numpy() @ weights)
        gain = weights[1] * ahead.gain / self.ruleset.rules.margin_scale(self.ruleset.options)
        worth = np.where(ahead.over, decided * ahead.payoff, further) + gain
        table = np.full((len(positions), self.ruleset.num_actions), -np.inf)
        table[ahead.position, ahead.action] = 0.0
        np.add.at(table, (ahead.position, ahead.action), ahead.weight * worth)
        return table

    def _features(self, states: NDArray[np.int16], histories: NDArray[np.uint64], seats: NDArray[np.int8]) -> Tensor:
        """(N, F) float32 on the network's device: what it reads of N positions."""
        observations = self._encoder.encode(states, histories, seats).reshape(len(states), -1)
        return torch.from_numpy(observations[:, self._cells]).to(self._device)

    def _best(self, values: NDArray[np.float64]) -> int:
        """An action of the highest value; exact ties by the agent's own generator."""
        best = np.flatnonzero(values == values.max())
        return int(best[0]) if len(best) == 1 else int(self._rng.choice(best))

    def _choose(self, probabilities: NDArray[np.float64]) -> int:
        """An action of positive probability, by the temperature."""
        if self.temperature == 0.0:
            return self._best(probabilities)
        legal = np.flatnonzero(probabilities)
        logs = np.log(probabilities[legal]) / self.temperature
        weights = np.exp(logs - logs.max())
        return int(self._rng.choice(legal, p=weights / weights.sum()))

    def _finite(self, numbers: Tensor) -> Tensor:
        if not torch.isfinite(numbers).all():
            raise CheckpointError(
                f"{self.checkpoint.folder}: its network gives numbers that are not finite; use another copy"
            )
        return numbers

    def _refuse_undecided(self, positions: Sequence[Position]) -> None:
        for position in positions:
            self._refuse_foreign(position)
            if position.is_over or position.chance_due:
                deciding_moves(position)  # raises, and says why

    def _refuse_foreign(self, position: Position) -> None:
        theirs = position.ruleset
        if theirs is self.ruleset or (theirs.rules is self.ruleset.rules and theirs.options == self.ruleset.options):
            return
        raise ValueError(f"{self.name} was trained for {self.ruleset.label} and cannot play {theirs.label}")


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
