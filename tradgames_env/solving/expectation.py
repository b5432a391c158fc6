"""Value iteration for dice games, layer after layer, over successors that the rules listed once.

The value of a position is what its mover can expect before he throws. One step of value iteration takes, for each
throw, the best of the positions that the legal moves lead to, and the mean of these over the throws; positions of
earlier layers and finished games enter as numbers. The kernels of the game are asked only once: ``list_successors``
writes what they say as a stream of int32, and all further work is gathers from that stream:

- position after position, throw after throw: ``2 * n + c``, then, if c is 1, a float32 by its bits: the best successor
  whose value is already known; then n codes of successors in the same layer
- a code is ``2 * number + f``, the number counted from the begin of the layer; f is 1 if the other side is to move
  there, whose expectation is the mover's loss

Between two such steps the best moves are held fast for a while (modified policy iteration): the same step over one
successor a throw is several times cheaper. Values are improved in place while they are read, by several threads at
once; whatever the order, the fixed point is the same, and the residual that counts is measured over all moves.

A chance node that follows a throw at once (a throw that is void) counts as the one move there is. ``max_turns`` is left
out: endless play is worth 0 to both sides.
"""

import dataclasses
import enum
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import float32, float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.processors import cores
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    CHANCE,
    LEGAL,
    MOVER,
    OUTCOME,
    PAYOFF,
    RUNNING,
    State,
)
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from tradgames_env.solving.indexing import RANK, UNRANK, Layer, PositionIndex, TableError

Values = NDArray[np.float32]
Stream = NDArray[np.int32]

BLOCK = 1 << 15
"""Positions whose successors are one stream and one task of a thread."""
HOLD = 12
"""Steps with the best moves held fast between two steps over all moves."""
MOST_HOLDS = 100
"""Times that moves are held fast in a layer; some ten are usual."""
ROUNDING = 2.0**-23
"""Of a value in 32 bits; a change is measured before it, so a step must be so much better than asked for."""
LONGEST_LAYER = 2**30
"""Positions of a layer whose codes fit into 32 bits."""
NOTHING = -2.0
"""Below every value: the best of no move."""
KNOWN_STEPS = 1 << 29
"""A best move to a known value v stands as the code ``~round((v + 1) * KNOWN_STEPS)``, which is below 0."""

_STREAM, _VALUES = int32[::1], float32[::1]


@kernel(types.void(int16[:, ::1], int64, int64), forceinline=True)
def _copy(rows, source, target):  # type: ignore[no-untyped-def]
    """Copy one row over another."""
    for cell in range(rows.shape[1]):
        rows[np.uint64(target), np.uint64(cell)] = rows[np.uint64(source), np.uint64(cell)]


@kernel(
    int64(
        types.FunctionType(LEGAL), types.FunctionType(APPLY), types.FunctionType(APPLY_CHANCE),
        types.FunctionType(RANK), types.FunctionType(UNRANK), int32[::1], int64[::1], int64, int64[::1], int64,
        int64, _VALUES, int16[:, ::1], uint64[::1], int32[::1], _STREAM, _VALUES,
    )
)  # fmt: skip
def list_successors(  # type: ignore[no-untyped-def]
    legal, apply, apply_chance, rank, unrank, params, tables, throws, numbers, layer_begin, layer_end, values,
    rows, history, actions, out_stream, out_known,
):  # fmt: skip
    """Write the stream of the positions ``numbers`` (n,), all of the layer ``layer_begin`` to ``layer_end - 1``.

    ``rank`` and ``unrank`` are the index's kernels, the others the game's; ``throws`` is the number of outcomes of a
    throw. ``values`` of earlier layers are read. ``rows`` (3, S) and ``actions`` (A,) are scratch; ``history`` is
    empty, as in all games without repetition. ``out_stream`` must be large enough, ``out_known`` is the same memory as
    float32. Returns the length of the stream; -1 if a successor is neither in this layer nor in an earlier one.
    """
    used = 0
    for place in range(numbers.shape[0]):
        covered = unrank(params, tables, numbers[place], rows[0])
        for throw in range(throws):
            head = used
            used += 1
            best = np.float32(NOTHING)
            count = 0
            moves, decides = 0, False
            if covered:
                _copy(rows, 0, 1)
                apply_chance(params, rows[1], history, throw)
                # A throw that leaves nothing to decide is a single successor, which the row already holds.
                decides = rows[1, OUTCOME] == RUNNING and rows[1, CHANCE] == 0
                moves = legal(params, rows[1], history, actions) if decides else 1
            # The codes are written behind the place of the known value and move up if there is none.
            for k in range(moves):
                _copy(rows, 1, 2)
                if decides:
                    apply(params, rows[2], history, np.int64(actions[k]))
                if rows[2, OUTCOME] != RUNNING:
                    best = max(best, np.float32(rows[2, PAYOFF]))
                    continue
                successor = rank(params, tables, rows[2])
                other = np.int64(rows[2, MOVER] != 0)
                if successor < 0 or successor >= layer_end:
                    return -1
                if successor < layer_begin:
                    known = values[successor]
                    best = max(best, -known if other else known)
                    continue
                out_stream[head + 2 + count] = (successor - layer_begin) << 1 | other
                count += 1
            if best > np.float32(NOTHING) or not covered:
                out_known[head + 1] = best if covered else np.float32(0.0)
                out_stream[head] = count << 1 | 1
                used = head + 2 + count
            else:
                for k in range(count):
                    out_stream[head + 1 + k] = out_stream[head + 2 + k]
                out_stream[head] = count << 1
                used = head + 1 + count
    return used


@kernel(float64(_STREAM, _VALUES, float64[::1], _VALUES, int64, int64, _STREAM))
def improve(stream, known, odds, values, begin, end, out_policy):  # type: ignore[no-untyped-def]
    """One step over all moves for the positions ``begin`` to ``end - 1`` of a layer, in place.

    Returns the largest change. Positions are counted from the begin of the layer, as ``values`` are. ``stream`` is that
    of these positions, ``known`` the same memory as float32, ``odds`` (K,) the probabilities of the throws.
    ``out_policy`` (n * K,) gets the code of the best move for each throw, with KNOWN_STEPS where its value is known.
    """
    largest = 0.0
    at = 0
    place = 0
    throws = odds.shape[0]
    for number in range(begin, end):
        total = 0.0
        for throw in range(throws):
            head = np.int64(stream[np.uint64(at)])
            at += 1
            best = np.float32(NOTHING)
            choice = np.int32(0)
            if head & 1:
                best = known[np.uint64(at)]
                at += 1
                choice = np.int32(~np.int64((np.float64(best) + 1.0) * KNOWN_STEPS + 0.5))
            for _ in range(head >> 1):
                code = stream[np.uint64(at)]
                at += 1
                value = values[np.uint64(code >> 1)] * np.float32(1 - 2 * (code & 1))
                if value > best:
                    best = value
                    choice = code
            out_policy[np.uint64(place)] = choice
            place += 1
            total += odds[throw] * best
        change = abs(total - values[np.uint64(number)])
        values[np.uint64(number)] = total
        largest = max(largest, change)
    return largest


@kernel(float64(_STREAM, float64[::1], _VALUES, int64, int64))
def follow(policy, odds, values, begin, end):  # type: ignore[no-untyped-def]
    """One step with the moves held fast that ``improve`` chose, in place; returns the largest change of a value."""
    largest = 0.0
    place = 0
    throws = odds.shape[0]
    for number in range(begin, end):
        total = 0.0
        for throw in range(throws):
            code = np.int64(policy[np.uint64(place)])
            place += 1
            if code >= 0:
                total += odds[throw] * values[np.uint64(code >> 1)] * (1 - 2 * (code & 1))
            else:
                total += odds[throw] * (~code / KNOWN_STEPS - 1.0)
        largest = max(largest, abs(total - values[np.uint64(number)]))
        values[np.uint64(number)] = total
    return largest


@kernel(float64(_STREAM, _VALUES, float64[::1], _VALUES, int64[::1]))
def largest_error(stream, known, odds, values, places):  # type: ignore[no-untyped-def]
    """The largest change that ``improve`` would make at ``places`` (n,), counted from the begin of their layer.

    Other arguments as there; nothing is written.
    """
    largest = 0.0
    at = 0
    for number in places:
        total = 0.0
        for throw in range(odds.shape[0]):
            head = np.int64(stream[np.uint64(at)])
            at += 1
            best = np.float32(NOTHING)
            if head & 1:
                best = known[np.uint64(at)]
                at += 1
            for _ in range(head >> 1):
                code = stream[np.uint64(at)]
                at += 1
                best = max(best, values[np.uint64(code >> 1)] * np.float32(1 - 2 * (code & 1)))
            total += odds[throw] * best
        largest = max(largest, abs(total - values[np.uint64(number)]))
    return largest


@dataclasses.dataclass(frozen=True)
class Stage:
    """How far solving is.

    Attributes:
        layer: number of the layer in the index.
        listed: share of the layer's positions whose successors are known.
        steps: over all positions of the layer so far, those with the best moves held fast included.
        residual: largest change in the last step over all moves; infinite before the first.
    """

    layer: int
    listed: float
    steps: int
    residual: float


class Keep(enum.IntEnum):
    """What of the layer in work stays in memory."""

    VALUES = 0
    """Nothing but values: every step is one over all moves and asks the rules."""
    MOVES = 1
    """Values and the best moves."""
    SUCCESSORS = 2
    """Values, the best moves and all successors: the rules are asked once."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Block:
    """Positions ``begin`` to ``end - 1``, counted from the begin of their layer, and what is kept of them."""

    begin: int
    end: int
    stream: Stream | None
    policy: Stream | None


class Expectation:
    """Solves the layers of an index into an array of values.

    Args:
        ruleset: the game; its limit of turns is ignored.
        index: numbers its positions.
        values: (index.count,) float32, improved in place; layers before the one being solved must hold their values.
        tolerance: a layer is done when a step over all moves changes no value by more; at least 5e-7.
        num_threads: all cores of the process when None.
        keep: what of a layer stays in memory while it is solved. With less, more is listed anew in every step.
        report: called between steps with how far it is; what it raises stops the work, and the layer goes on from the
            values it has by then when it is solved again.

    Raises:
        TableError: no throw is due before a move, or too many positions hang together.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        index: PositionIndex,
        values: Values,
        *,
        tolerance: float = 1e-6,
        num_threads: int | None = None,
        keep: Keep = Keep.SUCCESSORS,
        report: Callable[[Stage], None] | None = None,
    ) -> None:
        self.ruleset = load_ruleset(ruleset.game, ruleset.variant, **{**ruleset.overrides, "max_turns": 0})
        self.index = index
        self.values = values
        self.tolerance = tolerance
        self.num_threads = num_threads or cores()
        self.keep = keep
        self.report = report
        self.odds = self._odds()
        kernels = self.ruleset.kernels
        self._kernels = (kernels.legal, kernels.apply, kernels.apply_chance, index.rank, index.unrank)

    def solve_layer(self, number: int) -> float:
        """Solve one layer, all before it being solved; return its residual: what one more step would change.

        Raises:
            TableError: a move leads to a position that the index does not cover.
        """
        layer = self.index.layers[number]
        values = self.values[layer.begin : layer.end]
        with ThreadPoolExecutor(self.num_threads, thread_name_prefix="tradgames") as pool:
            blocks = list(self._blocks(pool, number))
            residual, rounds, steps = np.inf, 0, 0
            enough = self.tolerance - ROUNDING
            while residual > enough:
                residual = max(pool.map(lambda block: self._improve(layer, values, block), blocks))
                rounds, steps = rounds + 1, steps + 1
                self._say(Stage(number, 1.0, steps, residual))
                # Holding moves fast may lead two sides in a circle for ever; plain value iteration does not.
                if residual > enough and rounds <= MOST_HOLDS:
                    steps += self._hold(pool, values, blocks)
            return max(pool.map(lambda block: self._error(layer, values, block), blocks))

    def residual(self, numbers: NDArray[np.int64]) -> float:
        """The largest change that one more step would make at positions (n,) of solved layers."""
        ends = [layer.end for layer in self.index.layers]
        of_layer = np.searchsorted(ends, numbers, side="right")
        errors = [0.0]
        for place in np.unique(of_layer):
            layer, members = self.index.layers[place], numbers[of_layer == place]
            chunks = np.array_split(members, 1 + len(members) // BLOCK)
            errors += [self._listed_error(layer, chunk) for chunk in chunks]
        return max(errors)

    def bytes_kept(self) -> dict[Keep, float]:
        """Bytes that a position of the layer in work takes beside its value, on average over samples of the largest."""
        moves = 4.0 * len(self.odds)
        return {Keep.VALUES: 0.0, Keep.MOVES: moves, Keep.SUCCESSORS: moves + self._stream_bytes()}

    def _stream_bytes(self) -> float:
        layer = max(self.index.layers, key=lambda layer: layer.end - layer.begin)
        size = layer.end - layer.begin
        begins = {layer.begin + size * part // _SAMPLES for part in range(_SAMPLES)}
        samples = [np.arange(begin, min(begin + _SAMPLE_SIZE, layer.end)) for begin in begins]
        return sum(self._list(layer, sample).nbytes for sample in samples) / sum(len(sample) for sample in samples)

    def _odds(self) -> NDArray[np.float64]:
        """(K,) probabilities of the throw that is due before every move."""
        largest = max(layer.end - layer.begin for layer in self.index.layers)
        if largest > LONGEST_LAYER:
            raise TableError(f"{self.ruleset.label} is too large: {largest:,} positions hang together")
        state: State = np.zeros(self.ruleset.state_size, np.int16)
        self.index.unrank(self.ruleset.params, self.index.tables, 0, state)
        kind = int(state[CHANCE])
        if kind == 0:
            raise TableError(f"{self.ruleset.label} has no throws before moves, so it has no table of expectations")
        return np.array(self.ruleset.chance_kinds[kind - 1].probabilities)

    def _blocks(self, pool: ThreadPoolExecutor, number: int) -> Iterator[_Block]:
        layer = self.index.layers[number]
        begins = range(layer.begin, layer.end, BLOCK)
        for done, block in enumerate(pool.map(lambda begin: self._block(layer, begin), begins), 1):
            yield block
            self._say(Stage(number, done / len(begins), 0, np.inf))

    def _block(self, layer: Layer, begin: int) -> _Block:
        end = min(begin + BLOCK, layer.end)
        stream = self._list(layer, np.arange(begin, end)) if self.keep == Keep.SUCCESSORS else None
        policy = self._space(end - begin) if self.keep >= Keep.MOVES else None
        return _Block(begin - layer.begin, end - layer.begin, stream, policy)

    def _space(self, size: int) -> Stream:
        """For the policy of so many positions."""
        return np.empty(size * len(self.odds), np.int32)

    def _list(self, layer: Layer, numbers: NDArray[np.int64]) -> Stream:
        """The stream of positions of a layer."""
        ruleset = self.ruleset
        space = np.empty(len(numbers) * len(self.odds) * (2 + ruleset.num_actions), np.int32)
        rows, history = np.zeros((3, ruleset.state_size), np.int16), np.zeros(0, np.uint64)
        used = list_successors(
            *self._kernels, ruleset.params, self.index.tables, len(self.odds), numbers, layer.begin, layer.end,
            self.values, rows, history, np.empty(ruleset.num_actions, np.int32), space, space.view(np.float32),
        )  # fmt: skip
        if used < 0:
            raise TableError(f"{ruleset.label}: a move from {layer.name} leads to a position without a number")
        return space[:used].copy()

    def _stream(self, layer: Layer, block: _Block) -> Stream:
        if block.stream is not None:
            return block.stream
        return self._list(layer, layer.begin + np.arange(block.begin, block.end))

    def _improve(self, layer: Layer, values: Values, block: _Block) -> float:
        stream = self._stream(layer, block)
        policy = self._space(block.end - block.begin) if block.policy is None else block.policy
        return float(improve(stream, stream.view(np.float32), self.odds, values, block.begin, block.end, policy))

    def _hold(self, pool: ThreadPoolExecutor, values: Values, blocks: list[_Block]) -> int:
        """Steps with the best moves held fast, until they change little; return how many."""
        if self.keep < Keep.MOVES:
            return 0
        for step in range(1, HOLD + 1):
            if max(pool.map(lambda block: self._follow(values, block), blocks)) < self.tolerance / 4:
                return step
        return HOLD

    def _follow(self, values: Values, block: _Block) -> float:
        assert block.policy is not None
        return float(follow(block.policy, self.odds, values, block.begin, block.end))

    def _error(self, layer: Layer, values: Values, block: _Block) -> float:
        places, stream = np.arange(block.begin, block.end), self._stream(layer, block)
        return float(largest_error(stream, stream.view(np.float32), self.odds, values, places))

    def _listed_error(self, layer: Layer, numbers: NDArray[np.int64]) -> float:
        stream, values = self._list(layer, numbers), self.values[layer.begin : layer.end]
        return float(largest_error(stream, stream.view(np.float32), self.odds, values, numbers - layer.begin))

    def _say(self, stage: Stage) -> None:
        if self.report is not None:
            self.report(stage)


_SAMPLES, _SAMPLE_SIZE = 64, 64
