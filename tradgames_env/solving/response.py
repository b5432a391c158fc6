"""The best response to a policy that never changes, by value iteration with one side fixed.

*Decisions* are numbered ``position * K + throw``, with K throws a position, K = 1 in games without dice. ``list_moves``
asks the game's kernels once for the moves of all decisions. A policy is an array with a probability for each of these
moves, so one that always plays the same move is a special case of one that draws.

Two values belong to each position, both of who is to move there: ``fixed`` if that is the side with the policy,
``free`` if it is the other, which answers as well as can be, knowing the policy. Endless play is worth 0 to both, and
endings by history or by ``max_turns`` are left out, as they are in tables. Positions are those of the index: the policy
is that of natural with counters at 0, and is taken to be the same, mirrored, where black is to move.
"""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import boolean, float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.position import Position
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
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.solving.expectation import cores
from tradgames_env.solving.indexing import RANK, UNRANK, PositionIndex, TableError
from tradgames_env.solving.retrograde import without_history

NO_ACTION = -1
"""In place of an action: the throw leaves nothing to decide."""
TOLERANCE = 1e-9
"""Largest change of a value in one more step at which a layer is done."""
_BLOCK = 1 << 12
"""Positions whose moves are one task of a thread."""

_CODES, _HEADS, _VALUES, _STATES = int32[::1], int64[::1], float64[::1], int16[:, ::1]


@kernel(
    int64(
        types.FunctionType(LEGAL), types.FunctionType(APPLY), types.FunctionType(APPLY_CHANCE),
        types.FunctionType(RANK), types.FunctionType(UNRANK), int32[::1], int64[::1], int64, int64, int64,
        _STATES, uint64[::1], int32[::1], _HEADS, _CODES, int16[::1],
    )
)  # fmt: skip
def _list_range(  # type: ignore[no-untyped-def]
    legal, apply, apply_chance, rank, unrank, params, tables, throws, begin, end,
    rows, history, actions, out_heads, out_codes, out_actions,
):  # fmt: skip
    """List the moves of the positions ``begin`` to ``end - 1``; return how many there are, -1 if one is not covered.

    ``throws`` is 0 in games without dice. ``rows`` (3, S), ``history`` and ``actions`` (A,) are scratch. ``out_heads``
    gets, for each decision, how many moves there are up to its end. A move that ends the game has the code -1,
    -2 or -3: lost, drawn or won by who is to move.
    """
    used, decision = 0, 0
    for number in range(begin, end):
        covered = unrank(params, tables, number, rows[0])
        for throw in range(max(throws, 1)):
            moves, decides = 0, False
            if covered:
                for cell in range(rows.shape[1]):
                    rows[1, cell] = rows[0, cell]
                if throws:
                    apply_chance(params, rows[1], history, throw)
                # A throw that leaves nothing to decide is a single move, which the row already holds.
                decides = rows[1, OUTCOME] == RUNNING and rows[1, CHANCE] == 0
                moves = legal(params, rows[1], history, actions) if decides else 1
            for k in range(moves):
                for cell in range(rows.shape[1]):
                    rows[2, cell] = rows[1, cell]
                if decides:
                    apply(params, rows[2], history, np.int64(actions[k]))
                out_actions[used] = actions[k] if decides else NO_ACTION
                if rows[2, OUTCOME] != RUNNING:
                    out_codes[used] = -2 - rows[2, PAYOFF]
                else:
                    successor = rank(params, tables, rows[2])
                    if successor < 0:
                        return -1
                    out_codes[used] = successor << 1 | np.int64(rows[2, MOVER] != 0)
                used += 1
            out_heads[decision] = used
            decision += 1
    return used


@kernel(int64(_HEADS, _CODES, int64, int64, int64[::1], boolean[::1]))
def _spread(heads, codes, throws, start, scratch, out_seen):  # type: ignore[no-untyped-def]
    """Mark the positions that play can lead to from ``start``; return how many. ``scratch`` is as long as they are."""
    scratch[0] = start
    out_seen[start] = True
    done, found = 0, 1
    while done < found:
        first = scratch[done] * throws
        done += 1
        for move in range(heads[first], heads[first + throws]):
            successor = np.int64(codes[move]) >> 1
            if codes[move] >= 0 and not out_seen[successor]:
                out_seen[successor] = True
                scratch[found] = successor
                found += 1
    return found


@kernel(
    types.void(
        types.FunctionType(APPLY_CHANCE), types.FunctionType(UNRANK), int32[::1], int64[::1], int64, int64[::1],
        uint64[::1], _STATES,
    )
)  # fmt: skip
def _write_rows(apply_chance, unrank, params, tables, throws, decisions, history, out_states):  # type: ignore[no-untyped-def]
    """Write the row of each decision; ``throws`` is 0 in games without dice."""
    for i in range(decisions.shape[0]):
        unrank(params, tables, decisions[i] // max(throws, 1), out_states[i])
        if throws:
            apply_chance(params, out_states[i], history, decisions[i] % throws)


@kernel(float64(_HEADS, _CODES, _VALUES, _VALUES, _VALUES, _VALUES, int64, int64))
def _step(heads, codes, policy, odds, fixed, free, begin, end):  # type: ignore[no-untyped-def]
    """One step of value iteration for the positions ``begin`` to ``end - 1``, in place; return the largest change."""
    largest = 0.0
    throws = odds.shape[0]
    for number in range(begin, end):
        expected, hoped = 0.0, 0.0
        for throw in range(throws):
            decision = number * throws + throw
            first, last = heads[decision], heads[decision + 1]
            mean, best = 0.0, -2.0
            for move in range(first, last):
                code = np.int64(codes[move])
                if code < 0:
                    to_fixed = to_free = np.float64(-2 - code)
                elif code & 1:
                    to_fixed, to_free = -free[code >> 1], -fixed[code >> 1]
                else:
                    to_fixed, to_free = fixed[code >> 1], free[code >> 1]
                mean += policy[move] * to_fixed
                best = max(best, to_free)
            if first < last:
                expected += odds[throw] * mean
                hoped += odds[throw] * best
        largest = max(largest, abs(expected - fixed[number]), abs(hoped - free[number]))
        fixed[number], free[number] = expected, hoped
    return largest


@dataclasses.dataclass(frozen=True, eq=False)
class Moves:
    """The moves of all decisions of an index.

    Attributes:
        ruleset: the game.
        index: numbers its positions.
        throws: outcomes of the throw before each move; 0 in games without dice.
        odds: (K,) probabilities of the throws, one of 1 in games without dice.
        heads: (D + 1,) int64; the moves of decision d are those from ``heads[d]`` to ``heads[d + 1] - 1``.
        codes: (E,) int32, where each move leads: ``2 * number + f``, f is 1 if the other side is to move there; or how
            it ends the game.
        actions: (E,) int16 action ids, NO_ACTION where nothing is decided.
    """

    ruleset: Ruleset
    index: PositionIndex
    throws: int
    odds: NDArray[np.float64]
    heads: NDArray[np.int64]
    codes: NDArray[np.int32]
    actions: NDArray[np.int16]

    @property
    def counts(self) -> NDArray[np.int64]:
        """(D,) moves of each decision; 0 where the numbering has a hole."""
        return np.diff(self.heads)

    def real_choices(self, start: int) -> NDArray[np.int64]:
        """(n,) decisions with more than one move, of the positions that can arise from position ``start``."""
        seen = np.zeros(self.index.count, np.bool_)
        _spread(self.heads, self.codes, len(self.odds), start, np.empty(self.index.count, np.int64), seen)
        choices: NDArray[np.int64] = np.flatnonzero((self.counts > 1) & np.repeat(seen, len(self.odds)))
        return choices

    def rows(self, decisions: NDArray[np.int64]) -> NDArray[np.int16]:
        """(n, S) state rows of decisions, natural to move, counters at 0."""
        ruleset = self.ruleset
        states = np.zeros((len(decisions), ruleset.state_size), np.int16)
        _write_rows(
            ruleset.kernels.apply_chance, self.index.unrank, ruleset.params, self.index.tables, self.throws,
            np.ascontiguousarray(decisions, np.int64), np.zeros(0, np.uint64), states,
        )  # fmt: skip
        return states

    def even_policy(self) -> NDArray[np.float64]:
        """(E,) the policy that plays every move of a decision with the same probability."""
        counts = self.counts
        return np.repeat(1.0 / np.maximum(counts, 1), counts)


@dataclasses.dataclass(frozen=True, eq=False)
class Response:
    """What a policy gets against its best response.

    Attributes:
        fixed: (count,) float64, what the side with the policy can expect where it is to move.
        free: (count,) float64, what the other side can expect where it is to move.
        residual: largest change in one more step.
    """

    fixed: NDArray[np.float64]
    free: NDArray[np.float64]
    residual: float


def list_moves(ruleset: Ruleset, index: PositionIndex) -> Moves:
    """The moves of all decisions.

    Args:
        ruleset: the game; its endings by history and ``max_turns`` are ignored.
        index: numbers its positions.

    Raises:
        TableError: a move leads to a position that the index does not cover.
    """
    board, odds = without_history(ruleset), _odds_of_throw(ruleset, index)
    begins = range(0, index.count, _BLOCK)
    with ThreadPoolExecutor(cores(), thread_name_prefix="tradgames") as pool:
        blocks = list(pool.map(lambda begin: _list_block(board, index, len(odds), begin), begins))
    lengths = [len(codes) for _, codes, _ in blocks]
    offsets = np.cumsum([0, *lengths[:-1]])
    heads = [np.zeros(1, np.int64), *(block[0] + offset for block, offset in zip(blocks, offsets, strict=True))]
    return Moves(
        ruleset=ruleset,
        index=index,
        throws=len(odds),
        odds=np.array(odds or (1.0,)),
        heads=np.concatenate(heads),
        codes=np.concatenate([block[1] for block in blocks]),
        actions=np.concatenate([block[2] for block in blocks]),
    )


def start_number(ruleset: Ruleset, index: PositionIndex) -> int:
    """Number of the position in which the game begins.

    Raises:
        TableError: the index does not cover it.
    """
    position = Position.from_ruleset(ruleset, chance="explicit")
    number = int(index.rank(ruleset.params, index.tables, position.rows[0]))
    while number < 0 and position.chance_due:
        # Who begins is drawn first; numbers are the mover's, so it does not matter who it is.
        position.apply_chance(position.chance_outcomes()[0][0])
        number = int(index.rank(ruleset.params, index.tables, position.rows[0]))
    if number < 0:
        raise TableError(f"the table does not cover the position in which {ruleset.label} begins")
    return number


def best_response(
    moves: Moves,
    policy: NDArray[np.float64],
    *,
    tolerance: float = TOLERANCE,
    report: Callable[[int, float], None] | None = None,
) -> Response:
    """The values of a policy and of the best response to it.

    Args:
        moves: of all decisions.
        policy: (E,) float64, the probability of each move, in the order of ``moves``; in a decision they sum to 1.
        tolerance: a layer is done when one more step changes no value by more.
        report: called after each step with the number of positions done and the largest change.

    Raises:
        ValueError: ``policy`` has another shape or dtype.
    """
    if policy.shape != moves.codes.shape or policy.dtype != np.float64:
        raise ValueError(f"policy must be {moves.codes.shape} float64, not {policy.shape} {policy.dtype}")
    fixed, free = np.zeros(moves.index.count), np.zeros(moves.index.count)
    residual = 0.0
    for layer in moves.index.layers:
        change = np.inf
        while change > tolerance:
            change = _step(moves.heads, moves.codes, policy, moves.odds, fixed, free, layer.begin, layer.end)
            if report is not None:
                report(layer.begin, change)
        residual = max(residual, change)
    return Response(fixed, free, residual)


def _list_block(
    board: Ruleset, index: PositionIndex, throws: int, begin: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int16]]:
    """Heads (counted from the begin of the block), codes and actions of a block of positions."""
    end = min(begin + _BLOCK, index.count)
    decisions = (end - begin) * max(throws, 1)
    most = decisions * board.num_actions
    heads, codes, actions = np.empty(decisions, np.int64), np.empty(most, np.int32), np.empty(most, np.int16)
    kernels = board.kernels
    used = _list_range(
        kernels.legal, kernels.apply, kernels.apply_chance, index.rank, index.unrank, board.params, index.tables,
        throws, begin, end, np.zeros((3, board.state_size), np.int16), np.zeros(board.history_size, np.uint64),
        np.empty(board.num_actions, np.int32), heads, codes, actions,
    )  # fmt: skip
    if used < 0:
        raise TableError(f"{board.label}: a move leads to a position without a number")
    return heads, codes[:used].copy(), actions[:used].copy()


def _odds_of_throw(ruleset: Ruleset, index: PositionIndex) -> tuple[float, ...]:
    """Probabilities of the throw that is due before every move; empty in games without dice."""
    state: State = np.zeros(ruleset.state_size, np.int16)
    index.unrank(ruleset.params, index.tables, 0, state)
    kind = int(state[CHANCE])
    return ruleset.chance_kinds[kind - 1].probabilities if kind else ()
