"""Slow, plain reference of Puluc, written from RULES.md section 2 alone (rules B1-B13).

Squares are absolute here: 1 stands next to natural's house, ``length - 2`` next to black's. A square holds a list of
colours (0 natural, 1 black) from bottom to top; the last one owns the stack (B6).
"""

from __future__ import annotations

from math import comb
from typing import Any

LETTERS = "ox"
NATURAL, BLACK = 0, 1


class Game:
    """One game of Puluc; ``options`` is any object with the attributes named in RULES.md."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.squares: list[list[int]] = [[] for _ in range(options.length - 1)]  # index 0 is not used (B1)
        self.house = [options.pieces, options.pieces]  # B1: all counters start in the own house
        self.removed = [0, 0]  # removed[side]: enemy counters that side has removed
        self.to_move = BLACK if options.first_player == "black" else NATURAL  # B11
        self.first_due = options.first_player in ("random", "throw_off")  # B11: a fair coin
        self.throw: int | None = None
        self.turns = 0
        self.is_over = False
        self.winner: int | None = None
        self.reason: str | None = None

    @classmethod
    def from_text(cls, options: Any, text: str) -> Game:
        squares, house0, house1, removed0, removed1, side, throw = text.split(" ")
        game = cls(options)
        for index, stack in enumerate(squares.split("/"), start=1):
            game.squares[index] = [] if stack == "-" else [LETTERS.index(letter) for letter in stack]
        game.house = [int(house0), int(house1)]
        game.removed = [int(removed0), int(removed1)]
        game.first_due = side == "?"
        game.to_move = NATURAL if side == "?" else LETTERS.index(side)
        game.throw = None if throw == "-" else int(throw)
        game._judge()
        return game

    def copy(self) -> Game:
        other = Game(self.options)
        other.squares = [list(stack) for stack in self.squares]
        other.house = list(self.house)
        other.removed = list(self.removed)
        other.to_move = self.to_move
        other.first_due = self.first_due
        other.throw = self.throw
        other.turns = self.turns
        other.is_over = self.is_over
        other.winner = self.winner
        other.reason = self.reason
        return other

    # ------------------------------------------------------------------------------------------------ chance
    def chance_outcomes(self) -> list[tuple[int, float]]:
        if self.is_over or (self.throw is not None and not self.first_due):
            return []
        if self.first_due:
            return [(NATURAL, 0.5), (BLACK, 0.5)]  # B11
        p = self.options.stick_p
        outcomes = []
        for faces in range(5):  # B2: four sticks, each face up with probability p
            probability = comb(4, faces) * p**faces * (1 - p) ** (4 - faces)
            if probability > 0:
                outcomes.append((self._squares_of(faces), probability))
        return sorted(outcomes)

    def _squares_of(self, faces: int) -> int:
        if self.options.throw_table == "marked_plus_one":  # B13
            return faces + 1
        return 5 if faces == 0 else faces  # B2

    def apply_chance(self, value: int) -> None:
        if self.first_due:
            self.first_due = False
            self.to_move = value
        else:
            self.throw = value

    # ------------------------------------------------------------------------------------------------ squares
    def _last_step(self) -> int:
        """The own step of the square before the enemy house; the step after it is that house (B1)."""
        return int(self.options.length) - 2

    def _absolute(self, side: int, step: int) -> int:
        return step if side == NATURAL else self.options.length - 1 - step  # B1: opposite directions

    def _stack(self, side: int, step: int) -> list[int]:
        return self.squares[self._absolute(side, step)]

    def _owns(self, side: int, step: int) -> bool:
        stack = self._stack(side, step)
        return bool(stack) and stack[-1] == side  # B6: the top counter's colour owns the stack

    # ------------------------------------------------------------------------------------------------ moves
    def legal_moves(self) -> list[str]:
        if self.is_over or self.first_due or self.throw is None:
            return []
        side, n, last = self.to_move, self.throw, self._last_step()
        moves = []
        stopped = False  # is an own counter or unit stopped by B5?
        if self.house[side] > 0 and n <= last:  # B3: enter onto the n-th square, if there is one
            if self._owns(side, n):
                stopped = True  # B5; counts for B9 too (position 1)
            else:
                moves.append(f"enter -> {n}")
        for step in range(1, last + 1):
            if not self._owns(side, step):
                continue
            target = step + n  # B3; B4: only forward, whatever stands in between
            if target > last:  # B7: reaching or passing the enemy house
                prisoners = self._stack(side, step).count(1 - side)
                moves.append(f"{step} -> home (+{prisoners})")
            elif self._owns(side, target):
                stopped = True  # B5
            else:
                moves.append(f"{step} -> {target}")
        if self._may_pass(bool(moves), stopped):
            moves.append("pass")
        return moves

    def _may_pass(self, can_move: bool, stopped: bool) -> bool:
        """B9 (and B10: a player who has only prisoners left passes)."""
        if not can_move or self.options.pass_rule == "always":
            return True
        return self.options.pass_rule == "blocked" and stopped

    def push(self, move: str) -> None:
        if move not in self.legal_moves():
            raise ValueError(f"{move!r} is not one of {self.legal_moves()}")
        side = self.to_move
        if move != "pass":
            origin, _, target = move.partition(" -> ")
            if origin == "enter":
                self.house[side] -= 1  # B3
                unit = [side]
            else:
                index = self._absolute(side, int(origin))
                unit = self.squares[index]
                self.squares[index] = []
            if target.startswith("home"):  # B7
                self.house[side] += unit.count(side)
                self.removed[side] += unit.count(1 - side)
            else:  # B6: the arriving unit goes on top as a whole
                self.squares[self._absolute(side, int(target))].extend(unit)
        self._end_turn()

    def _end_turn(self) -> None:
        self.turns += 1
        self.to_move = 1 - self.to_move
        self.throw = None
        self._judge()
        if not self.is_over and self.options.max_turns and self.turns >= self.options.max_turns:  # B12
            self.is_over, self.reason = True, "max_turns"

    def _judge(self) -> None:
        for side in (NATURAL, BLACK):
            if self.removed[side] == self.options.pieces:  # B10: prisoners still count as alive
                self.is_over, self.winner, self.reason = True, side, "removed"
                self.throw = None

    # ------------------------------------------------------------------------------------------------ reading
    @property
    def margin(self) -> int:
        return self.removed[NATURAL] - self.removed[BLACK]

    def text(self) -> str:
        squares = "/".join("".join(LETTERS[colour] for colour in stack) or "-" for stack in self.squares[1:])
        counts = f"{self.house[0]} {self.house[1]} {self.removed[0]} {self.removed[1]}"
        side = "?" if self.first_due else LETTERS[self.to_move]
        return f"{squares} {counts} {side} {'-' if self.throw is None else self.throw}"


def perft(game: Game, depth: int, max_chance: int | None = None) -> int:
    """Number of positions after ``depth`` moves; each chance outcome is a branch that costs no depth.

    ``max_chance`` drops lines with more chance outcomes in a row than that; never needed in Puluc.
    """
    return _perft(game, depth, max_chance, 0)


def _perft(game: Game, depth: int, max_chance: int | None, in_a_row: int) -> int:
    if depth == 0:
        return 1
    if game.is_over:
        return 0
    leaves = 0
    outcomes = game.chance_outcomes()
    if outcomes and max_chance is not None and in_a_row >= max_chance:
        return 0
    for value, _ in outcomes:
        child = game.copy()
        child.apply_chance(value)
        leaves += _perft(child, depth, max_chance, in_a_row + 1)
    for move in game.legal_moves():
        child = game.copy()
        child.push(move)
        leaves += _perft(child, depth - 1, max_chance, 0)
    return leaves
