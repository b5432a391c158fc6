"""Puts tables of distances to the test: by the rules one move on, by play, and by search with all of the history.

    python benchmarks/solved.py petteia --variant mini
    python benchmarks/solved.py petteia --part endings-2v3

Finds the table where ``tradgames solve`` keeps it. Four checks, each of which must count 0:

one move on   Random positions have the value that follows from those that their moves lead to.
all defences  From won positions the table's move is played against every defence, under the real rules, history, quiet
              clock and all; every line must end in a win in time. All positions won in ``--all-within`` moves, and
              samples of the others.
long wins     Positions of every longer distance, against random defences.
full search   Random games lead to positions with a history. A search through all lines from there, under the real rules
              and without a table, must find the forced wins and losses that the table tells, and no others.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import APPLY, INITIAL, LEGAL, MOVER, OUTCOME, PAYOFF, RUNNING
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving.indexing import RANK, UNRANK
from tradgames_env.solving.retrograde import LOST, Retrograde
from tradgames_env.solving.table import Table, find_table

_LEGAL, _APPLY, _RANK, _UNRANK = (types.FunctionType(signature) for signature in (LEGAL, APPLY, RANK, UNRANK))
_STATES, _HISTORIES, _ACTIONS = int16[:, ::1], uint64[:, ::1], int32[:, ::1]
_WIN_AT_ONCE, _NO_MOVE = 0, 1 << 20


@kernel(types.void(_STATES, _HISTORIES, int64))
def _copy_down(states, histories, level):  # type: ignore[no-untyped-def]
    """Copy row ``level`` to the next."""
    for cell in range(states.shape[1]):
        states[level + 1, cell] = states[level, cell]
    for cell in range(histories.shape[1]):
        histories[level + 1, cell] = histories[level, cell]


@kernel(int64(_APPLY, _RANK, int32[::1], int64[::1], int16[::1], _STATES, _HISTORIES, int64, int64))
def _left_after(apply, rank, params, tables, values, states, histories, level, action):  # type: ignore[no-untyped-def]
    """Moves to the mover's win that the table leaves after an action, which is played into the next row."""
    _copy_down(states, histories, level)
    after = states[level + 1]
    apply(params, after, histories[level + 1], action)
    mover = np.int64(states[level, MOVER])
    if after[OUTCOME] != RUNNING:
        return _WIN_AT_ONCE if after[PAYOFF] == 1 - 2 * mover else _NO_MOVE
    value = np.int64(values[rank(params, tables, after)])
    if after[MOVER] != mover:
        value = -value
    return value if value > 0 else _NO_MOVE


@kernel(int64(_LEGAL, _APPLY, _RANK, int32[::1], int64[::1], int16[::1], _STATES, _HISTORIES, _ACTIONS, int64))
def _best(legal, apply, rank, params, tables, values, states, histories, actions, level):  # type: ignore[no-untyped-def]
    """The table's action in the position of row ``level``, a win; -1 if it knows none."""
    best, best_left = np.int64(-1), np.int64(_NO_MOVE)
    for i in range(legal(params, states[level], histories[level], actions[level])):
        action = np.int64(actions[level, i])
        left = _left_after(apply, rank, params, tables, values, states, histories, level, action)
        if left < best_left:
            best, best_left = action, left
    return best


@kernel(
    int64(
        _LEGAL, _APPLY, _RANK, int32[::1], int64[::1], int16[::1], _STATES, _HISTORIES, _ACTIONS, int64, int64, int64,
        int64[::1],
    ),
    counted=True,
)  # fmt: skip
def count_escapes(  # type: ignore[no-untyped-def]
    legal, apply, rank, params, tables, values, states, histories, actions, level, attacker, distance, lines
):
    """How many lines from row ``level`` do not end in a win of colour ``attacker`` within ``distance`` moves.

    The attacker plays the table's move, the other side every one. ``lines[0]`` counts all lines.
    """
    state = states[level]
    if state[OUTCOME] != RUNNING or distance == 0:
        lines[0] += 1
        return np.int64(state[PAYOFF] != 1 - 2 * attacker)
    escapes = np.int64(0)
    further, left = level + 1, distance - 1
    if state[MOVER] == attacker:
        action = _best(legal, apply, rank, params, tables, values, states, histories, actions, level)
        if action < 0:
            lines[0] += 1
            return np.int64(1)
        _copy_down(states, histories, level)
        apply(params, states[further], histories[further], action)
        return count_escapes(
            legal, apply, rank, params, tables, values, states, histories, actions, further, attacker, left, lines
        )
    for i in range(legal(params, state, histories[level], actions[level])):
        _copy_down(states, histories, level)
        apply(params, states[further], histories[further], np.int64(actions[level, i]))
        escapes += count_escapes(
            legal, apply, rank, params, tables, values, states, histories, actions, further, attacker, left, lines
        )
    return escapes


@kernel(
    int64(
        _UNRANK, types.FunctionType(INITIAL), _LEGAL, _APPLY, _RANK, int32[::1], int64[::1], int16[::1], _STATES,
        _HISTORIES, _ACTIONS, int64[::1], int64, int64[::1],
    )
)  # fmt: skip
def count_all_escapes(  # type: ignore[no-untyped-def]
    unrank, start_history, legal, apply, rank, params, tables, values, states, histories, actions, numbers, distance,
    lines,
):  # fmt: skip
    """As ``count_escapes``, from all positions ``numbers`` (N,), each with a new history."""
    escapes = np.int64(0)
    attacker, top = np.int64(0), np.int64(0)
    for number in numbers:
        unrank(params, tables, number, states[0])
        start_history(params, states[0], histories[0])
        escapes += count_escapes(
            legal, apply, rank, params, tables, values, states, histories, actions, top, attacker, distance, lines
        )
    return escapes


@kernel(int64(_LEGAL, _APPLY, int32[::1], _STATES, _HISTORIES, _ACTIONS, int64, int64), counted=True)
def search(legal, apply, params, states, histories, actions, level, depth):  # type: ignore[no-untyped-def]
    """1 if the mover of row ``level`` can force a win within ``depth`` moves, -1 if he cannot avoid a loss, else 0."""
    state = states[level]
    if state[OUTCOME] != RUNNING:
        return np.int64(state[PAYOFF] * (1 - 2 * state[MOVER]))
    if depth == 0:
        return np.int64(0)
    best = np.int64(-1)
    for i in range(legal(params, state, histories[level], actions[level])):
        _copy_down(states, histories, level)
        apply(params, states[level + 1], histories[level + 1], np.int64(actions[level, i]))
        value = search(legal, apply, params, states, histories, actions, level + 1, depth - 1)
        if states[level + 1, MOVER] != state[MOVER]:
            value = -value
        best = max(best, value)
        if best == 1:
            return best
    return best


class Examination:
    """Checks of one table; ``seed`` draws the samples."""

    def __init__(self, table: Table, seed: int) -> None:
        self.table = table
        self.ruleset = table.ruleset
        self.values = np.array(table.values)  # kernels take arrays that can be written to
        self.choose = np.random.default_rng(seed)
        self.longest = int(self.values.max())
        levels = self.longest + 2
        self.states = np.zeros((levels, self.ruleset.state_size), np.int16)
        self.histories = np.zeros((levels, self.ruleset.history_size), np.uint64)
        self.actions = np.zeros((levels, self.ruleset.num_actions), np.int32)
        self.lines = np.zeros(1, np.int64)

    def one_move_on(self, count: int) -> tuple[int, int]:
        """(positions, wrong ones) among ``count`` random numbers."""
        method = Retrograde(self.ruleset, self.table.index, self.values)
        numbers = self.choose.integers(len(self.values), size=count)
        return count, method.wrong(numbers)

    def all_defences(self, all_within: int, sample: int, most_moves: int) -> Iterator[tuple[int, int, int, int]]:
        """(distance, positions, lines, escapes) of every distance up to ``most_moves``."""
        for distance in range(1, min(self.longest, most_moves) + 1):
            won = np.flatnonzero(self.values == distance)
            if distance > all_within:
                won = self.choose.permutation(won)[:sample]
            self.lines[0] = 0
            escapes = self._escapes(won, distance)
            if len(won):
                yield distance, len(won), int(self.lines[0]), escapes

    def long_wins(self, sample: int, least_moves: int) -> tuple[int, int]:
        """(games, those not won in time) from positions of every distance from ``least_moves`` on, random defences."""
        games = escapes = 0
        for distance in range(least_moves, self.longest + 1):
            for number in self.choose.permutation(np.flatnonzero(self.values == distance))[:sample]:
                games += 1
                escapes += not self._wins_by_chance(int(number), distance)
        return games, escapes

    def full_search(self, positions: int, depth: int) -> tuple[int, int, int]:
        """(positions, decided ones, wrong ones) of a search to ``depth`` from positions with a history."""
        decided = wrong = done = 0
        while done < positions:
            if not self._random_position():
                continue
            done += 1
            value = int(self.table.distance(self.states[0]) or 0)
            told = np.sign(value) if abs(value) <= depth else 0
            found = search(*self._kernels[:2], self._params, *self._rows, 0, depth)
            decided += found != 0
            wrong += found != told
        return positions, decided, wrong

    @property
    def _kernels(self) -> tuple[Any, ...]:
        kernels = self.ruleset.kernels
        return kernels.legal, kernels.apply, self.table.index.rank

    @property
    def _params(self) -> NDArray[np.int32]:
        return self.ruleset.params

    @property
    def _rows(self) -> tuple[Any, ...]:
        return self.states, self.histories, self.actions

    def _set(self, number: int) -> bool:
        """Make row 0 the position of a number, with a new history."""
        index = self.table.index
        if not index.unrank(self._params, index.tables, number, self.states[0]):
            return False
        self.ruleset.rules.start_history(self._params, self.states[0], self.histories[0])
        return True

    def _escapes(self, numbers: NDArray[np.int64], distance: int) -> int:
        index, start_history = self.table.index, self.ruleset.rules.start_history
        escapes: int = count_all_escapes(
            index.unrank, start_history, *self._kernels, self._params, index.tables, self.values, *self._rows, numbers,
            distance, self.lines,
        )  # fmt: skip
        return escapes

    def _wins_by_chance(self, number: int, distance: int) -> bool:
        self._set(number)
        tables, rows = self.table.index.tables, self._rows
        for _ in range(distance):
            if self.states[0, OUTCOME] != RUNNING:
                break
            if self.states[0, MOVER] == 0:
                action = _best(*self._kernels, self._params, tables, self.values, *rows, 0)
            else:
                action = self._any_action()
            if action < 0:
                return False
            self.ruleset.kernels.apply(self._params, self.states[0], self.histories[0], action)
        return bool(self.states[0, PAYOFF] == 1)

    def _any_action(self) -> int:
        count = self.ruleset.kernels.legal(self._params, self.states[0], self.histories[0], self.actions[0])
        return int(self.actions[0, self.choose.integers(count)])

    def _random_position(self) -> bool:
        """Make row 0 a running position that is up to eight random moves from a random one."""
        number = int(self.choose.integers(len(self.values)))
        if self.values[number] <= LOST or not self._set(number):
            return False
        for _ in range(self.choose.integers(9)):
            self.ruleset.kernels.apply(self._params, self.states[0], self.histories[0], self._any_action())
            if self.states[0, OUTCOME] != RUNNING:
                return False
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--variant", default="box")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="whole numbers only")
    parser.add_argument("--part")
    parser.add_argument("--positions", type=int, default=1_000_000, help="for one move on")
    parser.add_argument("--all-within", type=int, default=5, help="every position won in so many moves")
    parser.add_argument("--moves", type=int, default=9, help="all defences up to this distance")
    parser.add_argument("--sample", type=int, default=200, help="positions of each longer distance")
    parser.add_argument("--searched", type=int, default=1000, help="positions for the full search")
    parser.add_argument("--depth", type=int, default=4, help="of the full search")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    options = {name: int(value) for name, _, value in (text.partition("=") for text in args.option)}
    ruleset = load_ruleset(args.game, args.variant, **options)
    table = find_table(ruleset, args.part)
    if table is None:
        raise SystemExit(f"there is no table of {ruleset.label}; make it with tradgames solve")
    examination, begin = Examination(table, args.seed), time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - begin:7.1f} s  {text}", flush=True)

    say(f"{ruleset.label} {args.part or ''}: {len(table.values):,} numbers, longest win {examination.longest} moves")
    count, wrong = examination.one_move_on(args.positions)
    say(f"one move on: {wrong} of {count:,} random positions wrong")
    for distance, won, lines, escapes in examination.all_defences(args.all_within, args.sample, args.moves):
        say(f"all defences: {won:,} positions won in {distance}: {escapes} of {lines:,} lines not won in time")
    games, escapes = examination.long_wins(args.sample, args.moves + 1)
    say(f"long wins: {escapes} of {games:,} games not won in time")
    count, decided, wrong = examination.full_search(args.searched, args.depth)
    say(f"full search to depth {args.depth}: {wrong} of {count:,} positions wrong, {decided:,} decided")


if __name__ == "__main__":
    main()
