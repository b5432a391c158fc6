"""Win, draw and loss with distance for games without dice, backwards from their ends.

A value is an int16, as the mover sees it: ``+d`` he wins in ``d`` moves of both sides against any defence and not in
fewer, ``-d`` he loses in ``d`` whatever he does and can make it last so long, 0 neither side can force a win: endless
play is a draw. ``LOST`` stands where the mover has lost already, being without a move, ``HOLE`` where a number has no
position. A decision counts as a move, also the second one of the same turn (Yote's bonus).

The values are those of the board alone. The rules that look back, repetition and quiet moves, are switched off while
solving, and ``max_turns`` with them. What that means beside those rules:

- Along a line that follows the table the distance falls with each move, so no position comes twice and a forced win
  needs no repetition. It stands in a real game if the quiet clock leaves it the time (``d`` within the limit is enough;
  captures start the clock anew) and if no position on the line was there before so often that once more is a draw.
- Where the table says draw, each side can forever avoid losing. The two rules only turn that into a draw at once.
- So with a new history and ``d`` within the quiet clock's limit, table and rules agree.

Layers are solved one after the other, each in two stages. The *forward* stage looks one move ahead from every position:
at games that end, and at moves into earlier layers. Then come *waves*: wave ``n`` goes through the positions decided in
``n`` moves and looks back at those one quiet move before them. Before a loss in ``n`` there is a win in ``n + 1``.
Before a win, a position is lost if every one of its moves leads to a win already decided; that is found out by playing
them, so no counts of moves are kept: two bytes a position are all there is. A win found in the forward stage is
provisional until its wave comes, as there may be a faster one inside the layer; nothing is called lost because of it
before.
"""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.processors import cores
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import APPLY, LEGAL, MOVER, OUTCOME, PAYOFF, RUNNING
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from tradgames_env.solving.indexing import PREDECESSORS, RANK, UNRANK, Layer, PositionIndex, TableError
from tradgames_env.solving.table import LONGEST

Values = NDArray[np.int16]

HOLE = -32_768
"""Value at a number without a position."""
LOST = -32_767
"""Value of a position whose mover has lost already: he cannot move."""

_LEGAL, _APPLY = types.FunctionType(LEGAL), types.FunctionType(APPLY)
_RANK, _UNRANK, _PREDECESSORS = (types.FunctionType(signature) for signature in (RANK, UNRANK, PREDECESSORS))
_PARAMS, _TABLES, _VALUES, _STATE, _HISTORY = int32[::1], int64[::1], int16[::1], int16[::1], uint64[::1]
_ACTIONS, _NUMBERS = int32[::1], int64[::1]
_NOT_COVERED = -(1 << 20)
"""Instead of a value: a move leads out of the index."""
_CHUNK = 1 << 16
_CHUNKS_A_THREAD = 4
"""Positions of one task, and tasks of a thread between two reports."""


@kernel(int64(_RANK, _APPLY, _PARAMS, _TABLES, _VALUES, _STATE, _STATE, _HISTORY, int64, int64, int64))
def _after_move(  # type: ignore[no-untyped-def]
    rank, apply, params, tables, values, state, scratch, history, action, layer_begin, wave
):
    """Value of a move to its player: of the position it leads to, one move further away; 0 if that is not decided.

    A win in more than ``wave`` moves, in the layer that begins at ``layer_begin``, may still become a faster one and
    counts as not decided.
    """
    for i in range(state.shape[0]):
        scratch[i] = state[i]
    apply(params, scratch, history, action)
    mover = state[MOVER]
    if scratch[OUTCOME] != RUNNING:
        payoff = np.int64(scratch[PAYOFF])
        return payoff if mover == 0 else -payoff
    number = rank(params, tables, scratch)
    if number < 0:
        return _NOT_COVERED
    value = np.int64(values[np.uint64(number)])
    if value == 0 or (value > wave and number >= layer_begin):
        return 0
    if value <= LOST:
        return _NOT_COVERED
    if scratch[MOVER] != mover:
        value = -value
    return value + 1 if value > 0 else value - 1


@kernel(
    int64(
        _LEGAL, _APPLY, _RANK, _PARAMS, _TABLES, _VALUES, _STATE, _STATE, _HISTORY, _ACTIONS, int64, int64
    )
)  # fmt: skip
def _look_ahead(  # type: ignore[no-untyped-def]
    legal, apply, rank, params, tables, values, state, scratch, history, actions, layer_begin, wave
):
    """Value of a position by the values of all its moves: the fastest win, else a draw, else the slowest loss."""
    count = legal(params, state, history, actions)
    if count == 0:
        return LOST
    win, loss, is_open = np.int64(LONGEST), np.int64(0), False
    for i in range(count):
        value = _after_move(
            rank, apply, params, tables, values, state, scratch, history, np.int64(actions[i]), layer_begin, wave
        )
        if value == _NOT_COVERED:
            return value
        if value > 0:
            win = min(win, value)
        elif value == 0:
            is_open = True
        else:
            loss = min(loss, value)
    if win < LONGEST:
        return win
    return 0 if is_open else loss


@kernel(
    int64(
        _LEGAL, _APPLY, _RANK, _PARAMS, _TABLES, _VALUES, _STATE, _STATE, _HISTORY, _ACTIONS, int64, int64
    )
)  # fmt: skip
def _loss_if_lost(  # type: ignore[no-untyped-def]
    legal, apply, rank, params, tables, values, state, scratch, history, actions, layer_begin, wave
):
    """As ``_look_ahead``, but 0 at the first move that does not lose."""
    loss = np.int64(0)
    for i in range(legal(params, state, history, actions)):
        value = _after_move(
            rank, apply, params, tables, values, state, scratch, history, np.int64(actions[i]), layer_begin, wave
        )
        if value >= 0:
            return 0
        loss = min(loss, value)
    return loss


_RANGE = int64(
    _LEGAL, _APPLY, _RANK, _UNRANK, _PARAMS, _TABLES, _VALUES, int16[:, ::1], _HISTORY, _ACTIONS, int64, int64, int64
)


@kernel(_RANGE)
def forward_range(  # type: ignore[no-untyped-def]
    legal, apply, rank, unrank, params, tables, values, rows, history, actions, layer_begin, begin, end
):
    """Value the numbers ``begin`` to ``end`` - 1 of a layer by what one move shows of ends and of earlier layers.

    ``rows`` (2, S), ``history`` and ``actions`` (A,) are space of this call's own. Returns the largest distance
    written, or ``~number`` of a position with a move that leads out of the index.
    """
    longest = np.int64(0)
    for number in range(begin, end):
        if unrank(params, tables, number, rows[0]) == 0:
            values[number] = HOLE
            continue
        value = _look_ahead(
            legal, apply, rank, params, tables, values, rows[0], rows[1], history, actions, layer_begin, 0
        )
        if value == _NOT_COVERED:
            return ~number
        values[number] = value
        if value != LOST:
            longest = max(longest, abs(value))
    return longest


@kernel(
    int64(
        _LEGAL, _APPLY, _RANK, _UNRANK, _PREDECESSORS, _PARAMS, _TABLES, _VALUES, int16[:, ::1], _HISTORY, _ACTIONS,
        _NUMBERS, int64, int64, int64, int64,
    )
)  # fmt: skip
def wave_range(  # type: ignore[no-untyped-def]
    legal, apply, rank, unrank, predecessors, params, tables, values, rows, history, actions, numbers, layer_begin,
    wave, begin, end,
):  # fmt: skip
    """Look back from the positions among ``begin`` to ``end`` - 1 that are decided in ``wave`` moves.

    ``rows`` (2, S), ``history``, ``actions`` and ``numbers`` (A,) are space of this call's own. Ranges of one layer may
    be worked on at once: what they write, others either see or do not need. Returns the largest distance written.
    """
    longest = np.int64(0)
    for number in range(begin, end):
        value = np.int64(values[np.uint64(number)])
        if abs(value) != wave:
            continue
        unrank(params, tables, number, rows[0])
        for i in range(predecessors(params, tables, rows[0], rows[1], history, actions, numbers)):
            before = np.uint64(numbers[i])
            known = np.int64(values[before])
            if value < 0 and (known == 0 or known > wave + 1):
                values[before] = wave + 1
                longest = wave + 1
            elif value > 0 and known == 0:
                unrank(params, tables, numbers[i], rows[0])
                loss = _loss_if_lost(
                    legal, apply, rank, params, tables, values, rows[0], rows[1], history, actions, layer_begin, wave
                )
                if loss != 0:
                    values[before] = loss
                    longest = max(longest, -loss)
    return longest


@kernel(
    int64(
        _LEGAL, _APPLY, _RANK, _UNRANK, _PARAMS, _TABLES, _VALUES, int16[:, ::1], _HISTORY, _ACTIONS, _NUMBERS
    )
)  # fmt: skip
def count_wrong(  # type: ignore[no-untyped-def]
    legal, apply, rank, unrank, params, tables, values, rows, history, actions, numbers
):
    """How many of ``numbers`` (N,) do not have the value that follows from those one move on."""
    wrong = np.int64(0)
    for number in numbers:
        value = np.int64(HOLE)
        if unrank(params, tables, number, rows[0]) != 0:
            value = _look_ahead(
                legal, apply, rank, params, tables, values, rows[0], rows[1], history, actions, 0, LONGEST
            )
        wrong += value != values[np.uint64(number)]
    return wrong


@dataclasses.dataclass(frozen=True)
class Stage:
    """How far solving is.

    Attributes:
        layer: number of the layer in the index.
        wave: how many moves before the end the positions are that are being looked back from; 0 while looking ahead.
        longest: largest distance found so far in the layer. There are at least so many waves.
        done: share of the layer's positions that this wave has gone through.
    """

    layer: int
    wave: int
    longest: int
    done: float


def without_history(ruleset: Ruleset) -> Ruleset:
    """The ruleset with the endings switched off that do not come from the board: repetition, quiet moves, turns."""
    fields = [field.name for field in dataclasses.fields(ruleset.options)]
    off = [name for name in ("repetition_limit", "quiet_limit", "max_turns") if name in fields]
    return load_ruleset(ruleset.game, ruleset.variant, **(ruleset.overrides | dict.fromkeys(off, 0)))


class Retrograde:
    """Solves the layers of an index into an array of values.

    Args:
        ruleset: the game; its endings by history are ignored.
        index: numbers its positions and lists predecessors.
        values: (index.count,) int16, written in place; layers before the one being solved must hold their values.
        num_threads: all cores of the process when None.
        report: called now and then with how far it is. What it raises stops the work; from the values there are by
            then it can go on.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        index: PositionIndex,
        values: Values,
        *,
        num_threads: int | None = None,
        report: Callable[[Stage], None] | None = None,
    ) -> None:
        self.ruleset = without_history(ruleset)
        self.index = index
        self.values = values
        self.num_threads = num_threads or cores()
        self.report = report
        kernels = self.ruleset.kernels
        self._kernels = (kernels.legal, kernels.apply, index.rank, index.unrank)

    def solve_layer(self, number: int) -> float:
        """Solve one layer, all before it being solved; return 0, by which values may be off.

        A layer that holds zeros only is begun. Any other was stopped in one of the waves; going through them all again
        changes nothing that is known.

        Raises:
            TableError: a move leads to a position that the index does not cover.
        """
        values = self.values[self.index.layers[number].begin : self.index.layers[number].end]
        longest = _longest(values)
        if longest == 0:
            longest = self._look_ahead(number, values)
        wave = 1
        while wave <= longest:
            longest = self._everywhere(Stage(number, wave, longest, 0.0), self._look_back)
            wave += 1
        return 0.0

    def wrong(self, numbers: NDArray[np.int64]) -> int:
        """How many of these positions (N,) do not have the value that follows from those one move on."""
        wrong: int = count_wrong(*self._kernels, *self._shared(), *self._space(), numbers)
        return wrong

    def _look_ahead(self, number: int, values: Values) -> int:
        """The stage before the waves, done whole or not at all; return the largest distance found."""
        try:
            return self._everywhere(Stage(number, 0, 0, 0.0), self._forward)
        except BaseException:
            values[:] = 0
            raise

    def _everywhere(self, stage: Stage, work: Callable[[Layer, int, int, int], int]) -> int:
        """Do ``work`` on all of a layer with all threads; return the largest distance found by then."""
        layer = self.index.layers[stage.layer]
        longest = stage.longest
        begins = range(layer.begin, layer.end, _CHUNK)
        together = _CHUNKS_A_THREAD * self.num_threads
        with ThreadPoolExecutor(self.num_threads, thread_name_prefix="tradgames") as pool:
            for first in range(0, len(begins), together):
                some = begins[first : first + together]
                found = pool.map(lambda begin: work(layer, stage.wave, begin, min(begin + _CHUNK, layer.end)), some)
                longest = max(longest, *found)
                if self.report is not None:
                    done = (first + len(some)) / len(begins)
                    self.report(dataclasses.replace(stage, longest=longest, done=done))
        return longest

    def _shared(self) -> tuple[Any, ...]:
        return self.ruleset.params, self.index.tables, self.values

    def _space(self) -> tuple[Any, ...]:
        """Rows, history and actions for one call."""
        ruleset = self.ruleset
        rows = np.zeros((2, ruleset.state_size), np.int16)
        return rows, np.zeros(ruleset.history_size, np.uint64), np.zeros(ruleset.num_actions, np.int32)

    def _forward(self, layer: Layer, wave: int, begin: int, end: int) -> int:
        longest: int = forward_range(*self._kernels, *self._shared(), *self._space(), layer.begin, begin, end)
        if longest < 0:
            raise TableError(f"{self.ruleset.label}: a move from {layer.name} leads to a position without a number")
        return longest

    def _look_back(self, layer: Layer, wave: int, begin: int, end: int) -> int:
        numbers = np.zeros(self.ruleset.num_actions, np.int64)
        longest: int = wave_range(
            *self._kernels, self.index.predecessors, *self._shared(), *self._space(), numbers, layer.begin, wave, begin,
            end,
        )  # fmt: skip
        return longest


def _longest(values: Values) -> int:
    """The largest distance among values, 0 if there is none."""
    return int(max(values.max(initial=0), -values.min(initial=0, where=values > LOST)))
