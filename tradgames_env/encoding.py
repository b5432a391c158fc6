"""The shared state encoder: one table of named planes that mean the same in every game, and one version number.

An observation is float32 (C, H, W) in [-1, 1]. Site planes hold one number for each site of the board, in the frame of
the seat that looks: boards with its own side at the bottom, tracks by its own steps. Scalar planes hold one number
everywhere. Planes that a game has no use for are zero.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import float32, int8, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.position import Position
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import SCALARS, SITE_FEATURES, THROW_1, THROW_BACK, VIEW
from tradgames_env.rules.errors import require_count
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.rules.table import VIEW_SLOT, kernel_table, view_at

ENCODER_VERSION = 1
"""Raised whenever the same position may be encoded differently than before."""


@dataclasses.dataclass(frozen=True)
class Plane:
    """One channel of an observation: ``kind`` is "site" or "scalar", ``scale`` how the number is brought to [-1, 1]."""

    name: str
    kind: str
    meaning: str
    scale: str = "divided by its maximum"


_MEANINGS = {
    "own": "a piece, unit or stack of the observer's side owns the site",
    "enemy": "a piece, unit or stack of the other side owns the site",
    "own_count": "number of the observer's pieces on the site",
    "enemy_count": "number of the other side's pieces on the site",
    "own_mark": "special mark of the observer's piece (leader; the way a unit came)",
    "enemy_mark": "special mark of the other side's piece",
    "own_ban_from": "the observer's side may not step from this site to the own_ban_to site",
    "own_ban_to": "see own_ban_from",
    "enemy_ban_from": "the other side may not step from this site to the enemy_ban_to site",
    "enemy_ban_to": "see enemy_ban_from",
    "playable": "the cell is a site of the board",
    "own_reserve": "the observer's pieces off the board that may still enter",
    "enemy_reserve": "the other side's pieces off the board that may still enter",
    "own_captures": "what the observer's side has scored: captures, removed counters, pieces home",
    "enemy_captures": "what the other side has scored",
    "throw_1": "throws of one in hand",
    "throw_2": "throws of two in hand",
    "throw_3": "throws of three in hand",
    "throw_4": "throws of four in hand",
    "throw_5": "throws of five in hand",
    "throw_back": "backward throws in hand",
    "die": "what the die shows, 0 before the roll",
    "quiet": "moves in a row since the last capture (in Yote: or placement)",
    "repetition": "earlier occurrences of this position",
    "bonus": "the mover owes a second decision of the same turn",
    "my_turn": "the observer decides now",
    "natural": "the observer plays natural, the light side",
    "balance": "the observer's running stakes",
    "turns": "turns played, where their number is limited",
    "partner": "the observer is the second partner of its side",
}
_THROW_SCALE = "n / (n + 1)"


def _plane(name: str, kind: str) -> Plane:
    if name.startswith("throw_"):
        return Plane(name, kind, _MEANINGS[name], _THROW_SCALE)
    return Plane(name, kind, _MEANINGS[name])


PLANES: tuple[Plane, ...] = (
    *(_plane(name, "site") for name in SITE_FEATURES),
    _plane("playable", "site"),
    *(_plane(name, "scalar") for name in SCALARS),
)
"""The table: plane c of every observation of every game is ``PLANES[c]``."""

PLANE_INDEX: dict[str, int] = {plane.name: index for index, plane in enumerate(PLANES)}
"""Plane name to channel."""

_PLAYABLE = len(SITE_FEATURES)
_FIRST_SCALAR = _PLAYABLE + 1


_SITES, _SCALARS = int16[:, ::1], int16[::1]


class Canvas(NamedTuple):
    """Observations of N games, and what it takes to write them; made by ``Encoder.canvas``."""

    planes: Any
    """(N, C, H * W) float32: the observations. Nothing else may write to them."""
    shown: Any
    """(N, scalars) int16: what the scalar planes show, so that only changes are written."""
    cells: Any
    """(sites,) uint64: the cell of each site."""
    site_factors: Any
    """(site features,) float32: what numbers are multiplied with, 0 for features not in use."""
    scalar_factors: Any
    """(scalars,) float32."""


CANVAS: Any = types.NamedTuple(  # type: ignore[no-untyped-call]
    (float32[:, :, ::1], int16[:, ::1], uint64[::1], float32[::1], float32[::1]), Canvas
)


@kernel(types.void(_SITES, _SCALARS, CANVAS, int64))
def _write_planes(sites, scalars, canvas, i):  # type: ignore[no-untyped-def]
    """Write the planes in use (factor not 0) of one view into observation i."""
    out, shown = canvas.planes[i], canvas.shown[i]
    for feature in range(canvas.site_factors.shape[0]):
        factor = canvas.site_factors[feature]
        if factor == 0.0:
            continue
        for site in range(canvas.cells.shape[0]):
            out[feature, canvas.cells[site]] = np.float32(sites[feature, site]) * factor
    for scalar in range(canvas.scalar_factors.shape[0]):
        factor = canvas.scalar_factors[scalar]
        # Most scalars stay as they are from move to move, and not to touch their planes saves most of the time.
        if factor == 0.0 or scalars[scalar] == shown[scalar]:
            continue
        shown[scalar] = scalars[scalar]
        value = np.float32(scalars[scalar]) * factor
        if THROW_1 <= scalar <= THROW_BACK and scalars[scalar] > 0:
            value = np.float32(scalars[scalar] / (scalars[scalar] + 1.0))
        plane = _FIRST_SCALAR + scalar
        for cell in range(out.shape[1]):
            out[plane, cell] = value


@kernel(
    types.void(int16[:, ::1], int16[::1], int16[::1], uint64[::1], float32[::1], float32[::1], float32[:, :, ::1]),
)
def _write_view(sites, scalars, blank, cells, site_factors, scalar_factors, out):  # type: ignore[no-untyped-def]
    """Write one view into ``out`` (C, H, W) as ``Encoder.canvas`` makes it; leave zeros in the three arrays before."""
    planes = out.reshape(1, out.shape[0], out.shape[1] * out.shape[2])
    _write_planes(sites, scalars, Canvas(planes, blank.reshape(1, blank.size), cells, site_factors, scalar_factors), 0)
    sites[:] = 0
    scalars[:] = 0
    blank[:] = 0


@kernel(
    types.void(
        types.FunctionType(VIEW), int32[::1], int16[::1], uint64[::1], int64, _SITES, _SCALARS, CANVAS, int64
    ),
    forceinline=True,
)  # fmt: skip
def write_observation(view, params, state, history, seat, sites, scalars, canvas, i):  # type: ignore[no-untyped-def]
    """Write what ``seat`` sees of a position into observation i; ``sites`` and ``scalars`` are this thread's space."""
    for feature in range(canvas.site_factors.shape[0]):
        # Nobody reads what a view may write to features not in use.
        if canvas.site_factors[feature] != 0.0:
            for site in range(sites.shape[1]):
                sites[feature, site] = 0
    for scalar in range(scalars.shape[0]):
        scalars[scalar] = 0
    view(params, state, history, seat, sites, scalars)
    _write_planes(sites, scalars, canvas, i)


@kernel(
    types.void(
        uint64[::1], int32[::1], int16[:, ::1], uint64[:, ::1], int8[::1], _SITES, _SCALARS, float32[::1], float32[::1],
        float32[:, ::1],
    )
)  # fmt: skip
def _write_features(  # type: ignore[no-untyped-def]
    table, params, states, histories, seats, sites, scalars, site_factors, scalar_factors, out
):
    """Write what ``_write_planes`` writes of each game into ``out`` (N, F), every number once."""
    view = view_at(table[VIEW_SLOT])
    for i in range(states.shape[0]):
        sites[:] = 0
        scalars[:] = 0
        view(params, states[i], histories[i], np.int64(seats[i]), sites, scalars)
        place = 0
        for feature in range(site_factors.shape[0]):
            factor = site_factors[feature]
            if factor == 0.0:
                continue
            for site in range(sites.shape[1]):
                out[i, place] = np.float32(sites[feature, site]) * factor
                place += 1
        for scalar in range(scalar_factors.shape[0]):
            factor = scalar_factors[scalar]
            if factor == 0.0:
                continue
            value = np.float32(scalars[scalar]) * factor
            if THROW_1 <= scalar <= THROW_BACK:
                value = np.float32(scalars[scalar] / (scalars[scalar] + 1.0))
            out[i, place] = value
            place += 1


@kernel(types.void(uint64[::1], int32[::1], int16[:, ::1], uint64[:, ::1], int8[::1], _SITES, _SCALARS, CANVAS))
def _encode(kernels, params, states, histories, seats, sites, scalars, canvas):  # type: ignore[no-untyped-def]
    view = view_at(kernels[VIEW_SLOT])
    for i in range(states.shape[0]):
        write_observation(view, params, states[i], histories[i], seats[i], sites, scalars, canvas, i)


class Encoder:
    """Turns positions of one ruleset into observations.

    Args:
        ruleset: the game and its options.
        pad_to: (H, W) of the observation; the board lies in the upper left corner. The board's own size when None.

    Raises:
        ValueError: ``pad_to`` is smaller than the board.
    """

    def __init__(self, ruleset: Ruleset, pad_to: tuple[int, int] | None = None) -> None:
        layout = ruleset.layout
        height, width = (layout.height, layout.width) if pad_to is None else _checked_shape(pad_to)
        if height < layout.height or width < layout.width:
            raise ValueError(
                f"pad_to {pad_to} is smaller than the board of {ruleset.label}, {(layout.height, layout.width)}"
            )
        self.ruleset = ruleset
        self.shape = (len(PLANES), height, width)
        self._cells = np.array([row * width + column for row, column in layout.cells], np.uint64)
        scales = ruleset.rules.feature_scales(ruleset.options)
        self._site_factors = _factors(scales, SITE_FEATURES)
        self._scalar_factors = _factors(scales, SCALARS)
        self._blank: NDArray[np.float32] = self.canvas(1).planes.reshape(self.shape)
        self._informative = len(self.informative_cells())
        # Zeroed space for the view of one position. Whoever observes takes one out, so that threads do not share it.
        self._spaces: list[tuple[NDArray[np.int16], NDArray[np.int16], NDArray[np.int16]]] = []

    def canvas(self, count: int) -> Canvas:
        """Observations of ``count`` games, with the planes that never change, and nothing shown in the others."""
        planes = np.zeros((count, len(PLANES), self.shape[1] * self.shape[2]), np.float32)
        planes[:, _PLAYABLE, self._cells] = 1.0
        shown = np.zeros((count, len(SCALARS)), np.int16)
        return Canvas(planes, shown, self._cells, self._site_factors, self._scalar_factors)

    def encode(
        self, states: NDArray[np.int16], histories: NDArray[np.uint64], seats: NDArray[np.int8]
    ) -> NDArray[np.float32]:
        """(N, C, H, W) float32: fresh observations of N games.

        Args:
            states: (N, S) int16.
            histories: (N, H) uint64.
            seats: (N,) int8, who looks.
        """
        canvas = self.canvas(len(states))
        ruleset = self.ruleset
        _encode(kernel_table(ruleset.kernels), ruleset.params, states, histories, seats, *self.blank_view(), canvas)
        observations: NDArray[np.float32] = canvas.planes.reshape(-1, *self.shape)
        return observations

    def features(
        self, states: NDArray[np.int16], histories: NDArray[np.uint64], seats: NDArray[np.int8]
    ) -> NDArray[np.float32]:
        """(N, F) float32: what ``encode`` writes into the ``informative_cells``, without the planes around them.

        Args:
            states: (N, S) int16.
            histories: (N, H) uint64.
            seats: (N,) int8, who looks.
        """
        ruleset = self.ruleset
        out = np.empty((len(states), self._informative), np.float32)
        _write_features(
            kernel_table(ruleset.kernels), ruleset.params, states, histories, seats, *self.blank_view(),
            self._site_factors, self._scalar_factors, out,
        )  # fmt: skip
        return out

    def observe(self, position: Position, seat: int | None = None) -> NDArray[np.float32]:
        """(C, H, W) float32: what ``seat`` (by default the one that decides) sees of a position."""
        ruleset = self.ruleset
        state, history = position.rows
        try:
            space = self._spaces.pop()
        except IndexError:
            space = (*self.blank_view(), np.zeros(len(SCALARS), np.int16))
        sites, scalars, shown = space
        # Called directly: handing a kernel over as a function value costs more than a whole observation.
        viewer = position.seat if seat is None else seat
        ruleset.kernels.view(ruleset.params, state, history, viewer, sites, scalars)
        out = self._blank.copy()
        _write_view(sites, scalars, shown, self._cells, self._site_factors, self._scalar_factors, out)
        self._spaces.append(space)
        return out

    def blank_view(self) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """Space for what a ``view`` kernel writes: (site features, sites) and (scalars,) int16."""
        return np.zeros((len(SITE_FEATURES), len(self._cells)), np.int16), np.zeros(len(SCALARS), np.int16)

    def informative_cells(self) -> NDArray[np.int64]:
        """(F,) int64: indices into a flattened observation that can differ from a constant, each number once.

        Site planes in use at the sites of the board, then one cell of each scalar plane in use: what a network without
        convolutions should read.
        """
        area = self.shape[1] * self.shape[2]
        site_planes = np.flatnonzero(self._site_factors)
        scalar_planes = np.flatnonzero(self._scalar_factors) + _FIRST_SCALAR
        site_cells = (site_planes[:, None] * area + self._cells.astype(np.int64)).ravel()
        cells: NDArray[np.int64] = np.concatenate([site_cells, scalar_planes * area]).astype(np.int64)
        return cells


def _checked_shape(pad_to: object) -> tuple[int, int]:
    if not isinstance(pad_to, tuple | list) or len(pad_to) != 2:
        raise ValueError(f"pad_to must be (height, width) or None, not {pad_to!r}")
    return require_count("pad_to height", pad_to[0], 1), require_count("pad_to width", pad_to[1], 1)


def _factors(scales: Mapping[str, float], names: tuple[str, ...]) -> NDArray[np.float32]:
    """1 / scale for each name in use, 0 for the others."""
    return np.array([1.0 / scales[name] if name in scales else 0.0 for name in names], np.float32)
