"""Which numbers of observations a network reads, in which order, the same for all games it plays."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradgames_env.encoding import PLANE_INDEX, PLANES, Encoder
from tradgames_env.rules.contract import SEAT
from tradgames_env.rules.ruleset import Ruleset


@dataclasses.dataclass(frozen=True, eq=False)
class InputLayout:
    """Places of the numbers a network reads.

    Attributes:
        board: (height, width) that observations of all its games are padded to.
        cells: (F,) int64, indices into a flattened padded observation.
        planes: that many whole planes come first in ``cells``, for convolutions; 0 where none need be whole.
    """

    board: tuple[int, int]
    cells: NDArray[np.int64]
    planes: int

    @classmethod
    def of(cls, rulesets: Sequence[Ruleset], *, whole_planes: bool) -> "InputLayout":
        """The layout for a network that plays these games.

        Args:
            rulesets: at least one.
            whole_planes: read the site planes in use with all their cells, for convolutions; else only the cells that
                differ between positions or games, each number once.
        """
        boards = [ruleset.layout for ruleset in rulesets]
        board = max(layout.height for layout in boards), max(layout.width for layout in boards)
        encoders = [Encoder(ruleset, board) for ruleset in rulesets]
        if whole_planes:
            return cls(board, *_whole_planes(encoders, board[0] * board[1]))
        return cls(board, _cells_that_differ(encoders), 0)


def _whole_planes(encoders: Sequence[Encoder], area: int) -> tuple[NDArray[np.int64], int]:
    """Cells of the site planes in use and of the one that shows the board, then one of each scalar; and planes."""
    used = np.unique(np.concatenate([encoder.informative_cells() // area for encoder in encoders]))
    scalars = [plane for plane in used if PLANES[plane].kind == "scalar"]
    planes = [plane for plane in used if PLANES[plane].kind == "site"] + [PLANE_INDEX["playable"]]
    whole = (np.array(planes)[:, None] * area + np.arange(area)).ravel()
    return np.concatenate([whole, np.array(scalars, np.int64) * area]).astype(np.int64), len(planes)


def _cells_that_differ(encoders: Sequence[Encoder]) -> NDArray[np.int64]:
    """Informative cells of any game, and cells that belong to the board in some games only."""
    boards = np.stack([encoder.canvas(1).planes[0] for encoder in encoders])
    shapes = np.flatnonzero((boards != boards[0]).any(axis=0))
    together = [*(encoder.informative_cells() for encoder in encoders), shapes]
    # Not sorted: for one game it is the order of its informative cells.
    return np.array(list(dict.fromkeys(np.concatenate(together).tolist())), np.int64)


class FeatureReader:
    """Writes what a network reads of the positions of one of its games, straight from state rows.

    Args:
        ruleset: the game.
        layout: of the network.
    """

    def __init__(self, ruleset: Ruleset, layout: InputLayout) -> None:
        self._encoder = Encoder(ruleset, layout.board)
        self._blank = self._encoder.canvas(1).planes.reshape(-1)[layout.cells]
        columns = np.full(int(np.prod(self._encoder.shape)), -1)
        columns[layout.cells] = np.arange(len(layout.cells))
        self._columns = columns[self._encoder.informative_cells()]
        self._as_written = np.array_equal(self._columns, np.arange(len(layout.cells)))

    def __call__(self, states: NDArray[np.int16], histories: NDArray[np.uint64]) -> NDArray[np.float32]:
        """(N, F) float32: what the seat that decides sees.

        Args:
            states: (N, S) int16.
            histories: (N, H) uint64.
        """
        written = self._encoder.features(states, histories, states[:, SEAT].astype(np.int8))
        if self._as_written:
            return written
        return self.spread(written)

    def own(self, features: NDArray[Any]) -> NDArray[Any]:
        """(N, W): the numbers that differ between this game's positions, of what the network reads (N, F)."""
        return features if self._as_written else features[:, self._columns]

    def spread(self, own: NDArray[Any]) -> NDArray[Any]:
        """(N, F), in the same type: what the network reads, made of what ``own`` gave."""
        if self._as_written:
            return own
        out = np.repeat(self._blank[None].astype(own.dtype), len(own), axis=0)
        out[:, self._columns] = own
        return out
