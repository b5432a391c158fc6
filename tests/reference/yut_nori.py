"""Slow, plain reference of Yut Nori, written from RULES.md section 4 alone (rules N1-N15).

Each side's units are a dictionary ``station -> [count, way]``; two units of a side never share a station (N6).
``way`` is the text mark of how a unit came to a station that has two predecessors ("" is the usual one); it exists only
with the option ``backdo`` (N13).
"""

from __future__ import annotations

from typing import Any

LETTERS = "ox"
NATURAL, BLACK = 0, 1
NAK, BACKDO = 0, -1
NAMES = {1: "do", 2: "gae", 3: "geol", 4: "yut", 5: "mo", BACKDO: "backdo"}
NAMING_ORDER = (1, 2, 3, 4, 5, BACKDO)
HOME = -1  # the target of a finishing move

# A unit that starts on one of these chooses its way (N5): name of the way -> first station of it.
CHOICES = {5: {"rim": 6, "short": 20}, 10: {"rim": 11, "short": 25}, 22: {"home": 27, "rim": 23}}


class Game:
    """One game of Yut Nori; ``options`` is any object with the attributes named in RULES.md."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.units: list[dict[int, list[Any]]] = [{}, {}]
        self.waiting = [options.pieces, options.pieces]  # N1
        self.home = [0, 0]
        self.to_move = BLACK if options.first_player == "black" else NATURAL
        self.first_due = options.first_player in ("random", "throw_off")  # N10: a fair coin
        self.hand: list[int] = []  # values thrown and not yet played
        self.throw_due = True
        self.turns = 0
        self.turns_of = [0, 0]  # completed turns by side, for the partners of N11
        self.is_over = False
        self.winner: int | None = None
        self.reason: str | None = None

    @classmethod
    def from_text(cls, options: Any, text: str) -> Game:
        natural, black, side, hand = text.split(" ")
        game = cls(options)
        game.waiting = [0, 0]
        for colour, field in enumerate((natural, black)):
            for part in field.split(","):
                place, _, count = part.partition(":")
                if place == "w":
                    game.waiting[colour] = int(count)
                elif place == "h":
                    game.home[colour] = int(count)
                else:
                    station, _, way = place.partition("<")
                    game.units[colour][int(station)] = [int(count), way]
        game.first_due = side == "?"
        game.to_move = NATURAL if side == "?" else LETTERS.index(side)
        values = [] if hand == "-" else hand.split("+")
        game.throw_due = not values or values[-1] == "?"
        game.hand = [BACKDO if value == "b" else int(value) for value in values if value != "?"]
        for colour in (NATURAL, BLACK):
            game._judge(colour)
        return game

    def copy(self) -> Game:
        other = Game(self.options)
        other.units = [{station: list(unit) for station, unit in side.items()} for side in self.units]
        other.waiting = list(self.waiting)
        other.home = list(self.home)
        other.to_move = self.to_move
        other.first_due = self.first_due
        other.hand = list(self.hand)
        other.throw_due = self.throw_due
        other.turns = self.turns
        other.turns_of = list(self.turns_of)
        other.is_over = self.is_over
        other.winner = self.winner
        other.reason = self.reason
        return other

    @property
    def seat(self) -> int:
        """N11: partners take their side's turns alternately, each side starting with its first partner."""
        if self.options.seats_per_side == 1:
            return self.to_move
        return self.to_move + 2 * (self.turns_of[self.to_move] % 2)

    # ------------------------------------------------------------------------------------------------ chance
    def chance_outcomes(self) -> list[tuple[int, float]]:
        if self.is_over:
            return []
        if self.first_due:
            return [(NATURAL, 0.5), (BLACK, 0.5)]  # N10
        if not self.throw_due:
            return []
        p = self.options.stick_p
        q = 1 - p
        table = {1: 4 * p * q**3, 2: 6 * p**2 * q**2, 3: 4 * p**3 * q, 4: p**4, 5: q**4}  # N2
        if self.options.backdo:  # N13: one of the four sticks is marked
            table[1] = 3 * p * q**3
            table[BACKDO] = p * q**3
        valid = 1 - self.options.nak_prob
        outcomes = {value: probability * valid for value, probability in table.items()}
        outcomes[NAK] = self.options.nak_prob  # N3
        return [(value, outcomes[value]) for value in sorted(outcomes) if outcomes[value] > 0]

    def apply_chance(self, value: int) -> None:
        if self.first_due:
            self.first_due = False
            self.to_move = value
        elif value == NAK:  # N3: void, and what is in hand is forfeited
            self._end_turn()
        else:
            self.hand.append(value)
            self.throw_due = bool(self.options.extra_on_yut_mo) and value in (4, 5)  # N12

    # ------------------------------------------------------------------------------------------------ paths
    def _advance(self, station: int, way: str, n: int, choice: str | None) -> tuple[int, str]:
        """Target (HOME for a finished unit) and way of a unit advanced n stations (N4, N5, N8, N14)."""
        short = _short_of(station, way)  # 5 or 10: the corner at which the unit left the rim
        here, previous = station, station
        for step in range(n):
            if here == 0:
                return HOME, ""  # N8, N14: beyond Start
            if step == 0 and choice is not None:  # N5: it starts on a corner or the centre
                following = CHOICES[here][choice]
                if choice == "short":
                    short = here
            else:  # N5: in passing straight on
                following = _straight_on(here, previous)
            previous, here = here, following
            if here == 0 and self.options.finish == "reach":
                return HOME, ""  # N8: reaching Start finishes
        if not self.options.backdo:
            return here, ""
        return here, _way_at(here, previous, short)

    def _enter(self, n: int) -> tuple[int, str]:
        return n, ""  # N4: from Start to station n, which is on the rim before any choice

    def _step_back(self, station: int, way: str) -> tuple[int, str] | None:
        """N13: one step back along the way it came; None when the unit cannot."""
        if station == 0:
            return {
                "": (19, ""),
                "5": (19, "5"),
                "10": (19, "10"),
                "28": (28, ""),
                "28.10": (28, "10"),
                "1": None,
            }[way]
        if station == 1:
            return (HOME, "") if self.options.finish == "reach" else (0, "1")
        if station == 15:
            return {"": (14, ""), "5": (24, ""), "10": (24, "10")}[way]
        if station == 22:
            return (26, "") if way == "10" else (21, "")
        if station in (20, 25):
            return {20: 5, 25: 10}[station], ""
        if station == 27:
            return 22, way
        return station - 1, way  # 2..14, 16..19, 21, 23, 24, 26, 28

    # ------------------------------------------------------------------------------------------------ moves
    def _moves_with(self, value: int) -> list[tuple[str, int | None, int, str]]:
        """(text, start or None for an entry, target, way at the target) of every move with one value in hand."""
        side = self.to_move
        moves: list[tuple[str, int | None, int, str]] = []
        if value != BACKDO and self.waiting[side] > 0:  # N4
            target, way = self._enter(value)
            moves.append((f"enter -> {self._target_text(target)}", None, target, way))
        for station, (_, way_before) in sorted(self.units[side].items()):
            if value == BACKDO:
                back = self._step_back(station, way_before)
                if back is not None:
                    target, way = back
                    moves.append((f"{station} -> {self._target_text(target)}", station, target, way))
                continue
            for choice in CHOICES.get(station, {None: None}):  # N5
                target, way = self._advance(station, way_before, value, choice)
                start_text = str(station) if choice is None else f"{station} {choice}"
                moves.append((f"{start_text} -> {self._target_text(target)}", station, target, way))
        return moves

    def _target_text(self, target: int) -> str:
        if target == HOME:
            return "home"
        enemies = self.units[1 - self.to_move].get(target)
        return str(target) if enemies is None else f"{target} x{enemies[0]}"  # N7

    def _playable(self) -> dict[str, tuple[int, int | None, int, str]]:
        """Every legal move but `pass`: its notation -> (value, start, target, way)."""
        playable = {}
        for value in NAMING_ORDER:
            if value not in self.hand:
                continue
            for text, start, target, way in self._moves_with(value):
                named = f"{NAMES[value]}: {text}" if len(self.hand) > 1 else text  # N12
                playable[named] = (value, start, target, way)
        return playable

    def legal_moves(self) -> list[str]:
        if self.is_over or self.first_due or self.throw_due:
            return []
        return list(self._playable()) or ["pass"]  # N4: compulsory; N13: lost turn

    def push(self, move: str) -> None:
        if move not in self.legal_moves():
            raise ValueError(f"{move!r} is not one of {self.legal_moves()}")
        if move == "pass":
            self._end_turn()
            return
        side = self.to_move
        value, start, target, way = self._playable()[move]
        self.hand.remove(value)
        if start is None:
            self.waiting[side] -= 1
            count = 1
        else:
            count = self.units[side].pop(start)[0]
        captured = False
        if target == HOME:  # N8
            self.home[side] += count
        else:
            captured = self._arrive(side, target, count, way)
        if captured and self._capture_throws(value):
            self.throw_due = True  # N7: thrown at once
        if self.home[side] == self.options.pieces or not (self.hand or self.throw_due):
            self._end_turn()  # N9: the game ends at that moment

    def _arrive(self, side: int, target: int, count: int, way: str) -> bool:
        """Put a unit down on a station; True when it captured."""
        enemies = self.units[1 - side].pop(target, None)
        if enemies is not None:
            self.waiting[1 - side] += enemies[0]  # N7: back to waiting, as single pieces
        own = self.units[side].get(target)
        if own is not None:
            count += own[0]  # N6: stacked for good, with the way of the arriving unit
        self.units[side][target] = [count, way]
        return enemies is not None

    def _capture_throws(self, value: int) -> bool:
        """N7; N12: with bonus_stacking off, a capture by a yut or mo adds no throw."""
        if self.options.extra_on_yut_mo and not self.options.bonus_stacking:
            return value not in (4, 5)
        return True

    def _end_turn(self) -> None:
        mover = self.to_move
        self.hand = []
        self.throw_due = True
        self.turns += 1
        self.turns_of[mover] += 1
        self.to_move = 1 - mover
        self._judge(mover)
        if not self.is_over and self.options.max_turns and self.turns >= self.options.max_turns:  # N15
            self.is_over, self.reason = True, "max_turns"

    def _judge(self, side: int) -> None:
        if self.home[side] == self.options.pieces:  # N9
            self.is_over, self.winner, self.reason = True, side, "home"
            self.hand = []

    # ------------------------------------------------------------------------------------------------ reading
    @property
    def margin(self) -> int:
        return self.home[NATURAL] - self.home[BLACK]

    def text(self) -> str:
        side = "?" if self.first_due else LETTERS[self.to_move]
        return f"{self._side_text(NATURAL)} {self._side_text(BLACK)} {side} {self._hand_text()}"

    def _side_text(self, side: int) -> str:
        parts = [
            f"{station}{'<' + way if way else ''}:{count}" for station, (count, way) in sorted(self.units[side].items())
        ]
        if self.waiting[side]:
            parts.append(f"w:{self.waiting[side]}")
        if self.home[side]:
            parts.append(f"h:{self.home[side]}")
        return ",".join(parts)

    def _hand_text(self) -> str:
        if not self.hand:
            return "-"
        values = ["b" if value == BACKDO else str(value) for value in sorted(self.hand, reverse=True)]
        return "+".join(values + (["?"] if self.throw_due else []))


def _straight_on(here: int, previous: int) -> int:
    """The next station of a unit that makes no choice (N5: 5 -> 6, 10 -> 11, 21 -> 22 -> 23, 26 -> 22 -> 27)."""
    if here == 22:
        return 27 if previous == 26 else 23
    return {19: 0, 24: 15, 26: 22, 28: 0}.get(here, here + 1)


def _short_of(station: int, way: str) -> int | None:
    """Which corner a unit on this station took the short way from, None for the rim."""
    if station in (20, 21):
        return 5
    if station in (25, 26):
        return 10
    if station in (22, 23, 24, 27, 28):
        return 10 if way == "10" else 5
    if 15 <= station <= 19 and way:
        return int(way)
    return None


def _way_at(station: int, previous: int, short: int | None) -> str:
    """The mark of a unit that came to this station over ``previous`` after the short way from ``short``."""
    if station in (22, 23, 24, 27, 28):
        return "10" if short == 10 else ""
    if 15 <= station <= 19:
        return "" if short is None else str(short)
    if station == 0:
        if previous == 28:
            return "28.10" if short == 10 else "28"
        return "" if short is None else str(short)
    return ""


def perft(game: Game, depth: int, max_chance: int | None = None) -> int:
    """Number of positions after ``depth`` moves; each chance outcome is a branch that costs no depth.

    With ``extra_on_yut_mo`` or ``nak_prob`` throws can follow each other without end, so the count is infinite;
    ``max_chance`` then drops lines with more chance outcomes in a row than that.
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
