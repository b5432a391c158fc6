"""The best response to a policy that never changes, by value iteration with one side fixed.

*Decisions* are numbered ``position * K + throw``, with K throws a position, K = 1 in games without dice. ``list_moves``
asks the game's kernels once for the moves of all decisions. A policy is an array with a probability for each of these
moves, so one that always plays the same move is a special case of one that draws.

Two values belong to each position, both of who is to move there: ``fixed`` if that is the side with the policy,
``free`` if it is the other, which answers as well as can be, knowing the policy. Endless play is worth 0 to both, and
endings by history or by ``max_turns`` are left out, as they are in tables.

Numbers are the mover's, so the same moves and the same steps serve a policy of natural and one of black. An agent need
not play alike as both, though: ``arising`` finds a row of each colour for each position that can come up.
"""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import boolean, float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.position import Position
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
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.solving.indexing import RANK, UNRANK, PositionIndex, TableError
from tradgames_env.solving.retrograde import without_history

NO_ACTION = -1
"""In place of an action: the throw leaves nothing to decide."""
TOLERANCE = 1e-9
"""Largest change of a value in one more step at which a layer is done."""
_BLOCK = 1 << 12
"""Positions whose moves are one task of a thread."""

_LEGAL, _APPLY, _CHANCE = (types.FunctionType(signature) for signature in (LEGAL, APPLY, APPLY_CHANCE))
_RANK, _UNRANK = types.FunctionType(RANK), types.FunctionType(UNRANK)
_CODES, _HEADS, _VALUES, _STATES = int32[::1], int64[::1], float64[::1], int16[:, ::1]


@kernel(boolean(_STATES))
def _decides(rows):  # type: ignore[no-untyped-def]
    """Whether a side has to decide in the second row; a throw may leave nothing to decide."""
    return rows[1, OUTCOME] == RUNNING and rows[1, CHANCE] == 0


@kernel(types.void(_STATES, int64, _STATES, int64))
def _copy(rows, source, out_rows, target):  # type: ignore[no-untyped-def]
    """Copy one row over another."""
    for cell in range(rows.shape[1]):
        out_rows[target, cell] = rows[source, cell]


@kernel(int64(_LEGAL, _CHANCE, int32[::1], int64, int64, _STATES, uint64[::1], int32[::1]))
def _throw(legal, apply_chance, params, throws, throw, rows, history, out_actions):  # type: ignore[no-untyped-def]
    """Write the first row with this throw, if there are ``throws``, to the second; list its moves, return how many.

    Where nothing is left to decide that is a single move without an action, which the second row already holds.
    """
    _copy(rows, 0, rows, 1)
    if throws:
        apply_chance(params, rows[1], history, throw)
    if _decides(rows):
        return legal(params, rows[1], history, out_actions)
    out_actions[0] = NO_ACTION
    return 1


@kernel(types.void(_APPLY, int32[::1], _STATES, uint64[::1], int32))
def _move(apply, params, rows, history, action):  # type: ignore[no-untyped-def]
    """Write the second row after this move to the third."""
    _copy(rows, 1, rows, 2)
    if action != NO_ACTION:
        apply(params, rows[2], history, np.int64(action))


@kernel(
    int64(
        _LEGAL, _APPLY, _CHANCE, _RANK, _UNRANK, int32[::1], int64[::1], int64, int64, int64,
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
            moves = 0
            if covered:
                moves = _throw(legal, apply_chance, params, throws, throw, rows, history, actions)
            for k in range(moves):
                _move(apply, params, rows, history, actions[k])
                out_actions[used] = actions[k]
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


@kernel(
    types.void(
        _LEGAL, _APPLY, _CHANCE, _RANK, _UNRANK, int32[::1], int64[::1], int64, int64,
        _STATES, uint64[::1], int32[::1], int64[::1], boolean[:, ::1], _STATES,
    )
)  # fmt: skip
def _explore(  # type: ignore[no-untyped-def]
    legal, apply, apply_chance, rank, unrank, params, tables, throws, start,
    rows, history, actions, queue, out_seen, out_black_rows,
):  # fmt: skip
    """Mark in ``out_seen`` (2, count) who can be to move where, from ``start`` on, where natural is.

    ``out_black_rows`` (count, S) gets a row with black to move for each position where he can be: as it is after a
    move from the row that ``unrank`` writes. ``throws`` is 0 in games without dice. ``rows`` (3, S), ``history``,
    ``actions`` (A,) and ``queue`` (2 * count,) are scratch.
    """
    queue[0] = 2 * start
    out_seen[0, start] = True
    done, found = 0, 1
    while done < found:
        number, colour = queue[done] >> 1, queue[done] & 1
        done += 1
        if colour:
            _copy(out_black_rows, number, rows, 0)
        else:
            unrank(params, tables, number, rows[0])
        for throw in range(max(throws, 1)):
            for k in range(_throw(legal, apply_chance, params, throws, throw, rows, history, actions)):
                _move(apply, params, rows, history, actions[k])
                if rows[2, OUTCOME] != RUNNING:
                    continue
                successor, mover = rank(params, tables, rows[2]), np.int64(rows[2, MOVER])
                if out_seen[mover, successor]:
                    continue
                out_seen[mover, successor] = True
                queue[found] = successor << 1 | mover
                found += 1
                if mover:
                    _copy(rows, 2, out_black_rows, successor)


@kernel(types.void(_UNRANK, int32[::1], int64[::1], int64[::1], _STATES))
def _unrank_all(unrank, params, tables, numbers, out_states):  # type: ignore[no-untyped-def]
    """Write the row of each position, natural to move."""
    for i in range(numbers.shape[0]):
        unrank(params, tables, numbers[i], out_states[i])


@kernel(types.void(_CHANCE, int32[::1], int64, int64[::1], uint64[::1], _STATES))
def _throw_all(apply_chance, params, throws, decisions, history, states):  # type: ignore[no-untyped-def]
    """Apply to each row the throw of its decision."""
    for i in range(decisions.shape[0]):
        apply_chance(params, states[i], history, decisions[i] % throws)


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
        board: the game without endings by history.
        index: numbers its positions.
        throws: outcomes of the throw before each move; 0 in games without dice.
        odds: (K,) probabilities of the throws, one of 1 in games without dice.
        heads: (D + 1,) int64; the moves of decision d are those from ``heads[d]`` to ``heads[d + 1] - 1``.
        codes: (E,) int32, where each move leads: ``2 * number + f``, f is 1 if the other side is to move there; or how
            it ends the game.
        actions: (E,) int16 action ids, NO_ACTION where nothing is decided.
    """

    ruleset: Ruleset
    board: Ruleset
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

    def find(self, decision: int, state: State, action: int) -> int:
        """Which listed move an action is in a row of either colour for this decision, -1 where it is not legal.

        An index may take turned boards for one position, so what counts is not the action but where it leads.
        """
        board = self.board
        history, actions = np.zeros(board.history_size, np.uint64), np.empty(board.num_actions, np.int32)
        count = board.kernels.legal(board.params, state, history, actions)
        if action not in actions[:count]:
            return -1
        after = state.copy()
        board.kernels.apply(board.params, after, history, action)
        if after[OUTCOME] != RUNNING:
            code = -2 - int(after[PAYOFF]) * (-1 if state[MOVER] else 1)
        else:
            other = int(after[MOVER] != state[MOVER])
            code = 2 * int(self.index.rank(board.params, self.index.tables, after)) + other
        begin, end = int(self.heads[decision]), int(self.heads[decision + 1])
        found = np.flatnonzero(self.codes[begin:end] == code)
        return begin + int(found[0]) if len(found) else -1

    def even_policy(self) -> NDArray[np.float64]:
        """(E,) the policy that plays every move of a decision with the same probability."""
        counts = self.counts
        return np.repeat(1.0 / np.maximum(counts, 1), counts)


@dataclasses.dataclass(frozen=True, eq=False)
class Arising:
    """The positions that can come up in a game that natural begins, as natural and as black see them.

    Attributes:
        moves: of all decisions.
        start: number of the position in which the game begins.
        seen: (2, count) bool, whether this colour can be to move in this position.
        black_rows: (count, S) int16, rows with black to move, written where ``seen[1]`` is set.
    """

    moves: Moves
    start: int
    seen: NDArray[np.bool_]
    black_rows: NDArray[np.int16]

    def choices(self, colour: int) -> NDArray[np.int64]:
        """(n,) decisions of a colour with more than one move."""
        moves = self.moves
        found: NDArray[np.int64] = np.flatnonzero((moves.counts > 1) & np.repeat(self.seen[colour], len(moves.odds)))
        return found

    def rows(self, colour: int, decisions: NDArray[np.int64]) -> NDArray[np.int16]:
        """(n, S) state rows of decisions of a colour, counters at or next to 0."""
        moves, ruleset = self.moves, self.moves.ruleset
        numbers = decisions // len(moves.odds)
        if colour:
            states = self.black_rows[numbers]
        else:
            states = np.zeros((len(decisions), ruleset.state_size), np.int16)
            _unrank_all(moves.index.unrank, ruleset.params, moves.index.tables, numbers, states)
        if moves.throws:
            history = np.zeros(0, np.uint64)
            _throw_all(ruleset.kernels.apply_chance, ruleset.params, moves.throws, decisions, history, states)
        return states


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
        board=board,
        index=index,
        throws=len(odds),
        odds=np.array(odds or (1.0,)),
        heads=np.concatenate(heads),
        codes=np.concatenate([block[1] for block in blocks]),
        actions=np.concatenate([block[2] for block in blocks]),
    )


def arising(moves: Moves) -> Arising:
    """What can come up from the start of the game.

    Raises:
        TableError: the index does not cover the start.
    """
    board, index = moves.board, moves.index
    kernels, start = board.kernels, start_number(moves.ruleset, index)
    seen, black_rows = np.zeros((2, index.count), np.bool_), np.empty((index.count, board.state_size), np.int16)
    _explore(
        kernels.legal, kernels.apply, kernels.apply_chance, index.rank, index.unrank, board.params, index.tables,
        moves.throws, start, np.zeros((3, board.state_size), np.int16), np.zeros(board.history_size, np.uint64),
        np.empty(board.num_actions, np.int32), np.empty(2 * index.count, np.int64), seen, black_rows,
    )  # fmt: skip
    return Arising(moves, start, seen, black_rows)


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
