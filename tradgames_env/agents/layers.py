"""What networks are built from. Residual branches start at zero (ReZero, Bachlechner et al., 2020).

A trunk is a stem, blocks and a neck. The stem takes (B, F) features to hidden numbers, each block keeps their shape,
and the neck gives the policy head and the other heads a vector each. ``trunk_layers`` picks them by kind.

Letters: B positions, F features, W width, P planes, H x V board.
"""

from typing import cast

import torch
from torch import Tensor, nn

from tradgames_env.agents.checkpoint import POLICY_PLANES, NetworkRecord


class ResidualBlock(nn.Module):
    """``x + scale * linear(relu(x))`` with a learned scale that starts at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.empty(1))
        self.linear = nn.Linear(width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, W) float32 to (B, W) float32."""
        return hidden + self.scale * cast(Tensor, self.linear(torch.relu(hidden)))


class Rectifier(nn.Module):
    """The neck of a perceptron: all heads read the same."""

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """(B, W) float32 to (B, W) float32, twice."""
        hidden = torch.relu(hidden)
        return hidden, hidden


class BoardStem(nn.Module):
    """A convolution over the planes; what holds for the whole board is added to every cell."""

    def __init__(self, inputs: int, grid: tuple[int, int, int], width: int) -> None:
        super().__init__()
        self.grid = grid
        self.cells = grid[0] * grid[1] * grid[2]
        self.planes = nn.Conv2d(grid[0], width, 3, padding=1, bias=False)
        self.scalars = nn.Linear(inputs - self.cells, width)

    def forward(self, features: Tensor) -> Tensor:
        """(B, F) float32 to (B, W, H, V) float32."""
        planes = features[:, : self.cells].reshape(-1, *self.grid)
        return cast(Tensor, self.planes(planes)) + _everywhere(self.scalars(features[:, self.cells :]))


class BoardBlock(nn.Module):
    """Two convolutions after activations; means and maxima over the board shift the planes between them.

    The pooling (Wu, 2019, "Accelerating Self-Play Learning in Go") lets far sites matter without many layers.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.empty(1))
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.pooled = nn.Linear(2 * width, width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, W, H, V) float32 to (B, W, H, V) float32."""
        active = torch.relu(hidden)
        between = cast(Tensor, self.first(active)) + _everywhere(self.pooled(_pool(active)))
        return hidden + self.scale * cast(Tensor, self.second(torch.relu(between)))


class BoardNeck(nn.Module):
    """Few planes for the policy, shifted by what was pooled; a summary of what was pooled for the other heads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.planes = nn.Conv2d(width, POLICY_PLANES, 1, bias=False)
        self.pooled = nn.Linear(2 * width, POLICY_PLANES)
        self.summary = nn.Linear(2 * width, width)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """(B, W, H, V) float32 to (B, POLICY_PLANES * H * V) and (B, W) float32."""
        active = torch.relu(hidden)
        pooled = _pool(active)
        planes = cast(Tensor, self.planes(active)) + _everywhere(self.pooled(pooled))
        return torch.relu(planes).flatten(1), torch.relu(self.summary(pooled))


def trunk_layers(record: NetworkRecord) -> tuple[nn.Module, nn.ModuleList, nn.Module]:
    """Stem, blocks and neck of the trunk a record names."""
    width, blocks = record.width, range(record.blocks)
    if record.grid is None:
        return nn.Linear(record.inputs, width), nn.ModuleList(ResidualBlock(width) for _ in blocks), Rectifier()
    stem = BoardStem(record.inputs, record.grid, width)
    return stem, nn.ModuleList(BoardBlock(width) for _ in blocks), BoardNeck(width)


def _pool(hidden: Tensor) -> Tensor:
    """(B, 2 W): mean and maximum of each plane."""
    return torch.cat([hidden.mean(dim=(2, 3)), hidden.amax(dim=(2, 3))], dim=1)


def _everywhere(numbers: Tensor) -> Tensor:
    """(B, W, 1, 1), to be added to every cell."""
    return numbers[:, :, None, None]
