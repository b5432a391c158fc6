"""A game in the terminal: a person against an agent, or two people at one board."""

import dataclasses
import datetime
import json
import pathlib
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents.base import Agent
from tradgames_env.position import Position, Seed, generator_word
from tradgames_env.rules.chance import draw_outcome
from tradgames_env.rules.contract import CHANCE
from tradgames_env.rules.errors import IllegalMoveError, NotationError
from training.match import SIDES

HELP = """\
Type a move as it is written in `moves`, or its number there. Commands:
  moves        the legal moves
  hint         what an agent would play here
  undo         take back your last move and what followed it
  board        show the board again
  text         the position as one line, for --text
  save FILE    write the game so far as JSON
  resign       give the game up
  quit         leave"""

_WIDTH = 100
_HINTS = 3


@dataclasses.dataclass(frozen=True)
class PlayResult:
    """How a game in the terminal ended; ``finished`` is False when somebody left it."""

    finished: bool
    winner: int | None
    reason: str | None


@dataclasses.dataclass(frozen=True)
class _Event:
    """One entry of the position's stack: a move or a throw."""

    side: int
    text: str
    is_move: bool
    by_person: bool
    dice: NDArray[np.uint64]
    """(1,) the generator before it, so that undone throws fall the same way again."""


class Table:
    """The board between two players.

    Args:
        position: where the game begins, with ``chance="explicit"`` and nothing to pop.
        players: agents of natural and black; None for a person.
        hint_agent: gives hints; None for no hints.
        seed: of the throws; fresh entropy when None.
        ask: shows a prompt and returns a line; ``EOFError`` ends the game.
        say: shows a text.
    """

    def __init__(
        self,
        position: Position,
        players: Sequence[Agent | None],
        *,
        hint_agent: Agent | None = None,
        seed: Seed = None,
        ask: Callable[[str], str],
        say: Callable[[str], None],
    ) -> None:
        self.position = position
        self.players = tuple(players)
        self._names = tuple("a person" if player is None else player.name for player in players)
        self._start = position.text()
        self._hint_agent = hint_agent
        self._dice = generator_word(seed)
        self._ask = ask
        self._say = say
        self._events: list[_Event] = []
        self._resigned: int | None = None
        self._commands: dict[str, Callable[[str], bool]] = {
            "help": self._help,
            "?": self._help,
            "moves": self._list_moves,
            "hint": self._hint,
            "undo": self._undo,
            "board": self._show_board,
            "text": self._show_text,
            "save": self._save,
            "resign": self._resign,
        }

    def play(self) -> PlayResult:
        """Play until the end or until somebody leaves; end of input and Ctrl-C leave."""
        self._say("Type a move, or help.")
        try:
            while self._turn():
                pass
        except (EOFError, KeyboardInterrupt):
            self._say("\nLeft the game.")
        over = self.position.is_over or self._resigned is not None
        return PlayResult(over, self._winner() if over else None, self._reason() if over else None)

    def _turn(self) -> bool:
        """One throw, one agent's move, or a person's lines up to a change of the board; False to leave."""
        position = self.position
        if position.is_over or self._resigned is not None:
            self._say(f"\n{position}\n{self._result()}")
            return None in self.players and self._read_lines("over: undo, save FILE or quit> ")
        if position.chance_due:
            self._throw()
            return True
        player = self.players[position.to_move]
        if player is None:
            self._say(f"\n{position}")
            return self._read_lines(f"{SIDES[position.to_move]}> ")
        move = player.act(self._copy())
        self._push(move)
        self._say(f"{player.name} plays {self._events[-1].text}")
        return True

    def _read_lines(self, prompt: str) -> bool:
        """Lines of a person until one changes the board (True) or says quit (False)."""
        while True:
            line = self._ask(prompt).strip()
            word, _, rest = line.partition(" ")
            if not line:
                continue
            if word.lower() in ("quit", "exit"):
                return False
            command = self._commands.get(word.lower())
            if command(rest.strip()) if command is not None else self._try_move(line):
                return True

    # -- moves and throws ------------------------------------------------------------------------------------------

    def _try_move(self, line: str) -> bool:
        if self._resigned is not None:
            self._say("The game is over.")
            return False
        try:
            self._push(self._numbered(line) or line)
        except (NotationError, IllegalMoveError) as error:
            self._say(f"{error}. Type moves for a list, or help.")
            return False
        return True

    def _numbered(self, line: str) -> str | None:
        """The move that a number of the list stands for."""
        if not (line.isascii() and line.isdigit()):
            return None
        moves = self.position.legal_moves()
        number = int(line[:9])
        return moves[number - 1] if 1 <= number <= len(moves) else None

    def _push(self, move: str) -> None:
        position = self.position
        action = position.parse(move)
        by_person = self.players[position.to_move] is None
        event = _Event(position.to_move, position.notation(action), True, by_person, self._dice.copy())
        position.push(action)
        self._events.append(event)

    def _throw(self) -> None:
        position = self.position
        number = int(position.rows[0][CHANCE])
        kind = position.ruleset.chance_kinds[number - 1]
        before = self._dice.copy()
        value = kind.values[draw_outcome(position.ruleset.odds, number, self._dice)]
        self._events.append(_Event(position.to_move, str(value), False, False, before))
        self._say(f"{SIDES[position.to_move]}, {kind.name}: {value}")
        position.apply_chance(value)

    def _copy(self) -> Position:
        """For an agent: it throws with another generator, so it foresees nothing."""
        return Position.from_rows(self.position.ruleset, *self.position.rows, seed=len(self._events))

    # -- commands: each returns whether the board changed ----------------------------------------------------------

    def _help(self, _: str) -> bool:
        self._say(HELP)
        return False

    def _list_moves(self, _: str) -> bool:
        moves = [f"{number:3}: {move}" for number, move in enumerate(self.position.legal_moves(), start=1)]
        width = max((len(move) for move in moves), default=0)
        joined = "  ".join(move.ljust(width).replace(" ", "\0") for move in moves)
        lines = textwrap.wrap(joined, _WIDTH, break_long_words=False, break_on_hyphens=False)
        self._say("\n".join(line.replace("\0", " ").rstrip() for line in lines) or "There are no moves.")
        return False

    def _hint(self, _: str) -> bool:
        if self.position.is_over or self._resigned is not None:
            self._say("The game is over.")
        elif self._hint_agent is None:
            self._say("There is no agent to ask.")
        else:
            self._say(self._advice(self._hint_agent))
        return False

    def _advice(self, agent: Agent) -> str:
        try:
            policy = agent.policy(self._copy())
            value = agent.value(self._copy())
        except ValueError as error:
            return str(error)
        best = sorted(policy.items(), key=lambda item: -item[1])[:_HINTS]
        moves = ", ".join(f"{move} ({probability:.0%})" for move, probability in best if probability > 0)
        return f"{agent.name} would play {moves}; it expects {value:+.2f} for you (1 is a sure win)"

    def _undo(self, _: str) -> bool:
        mine = [index for index, event in enumerate(self._events) if event.by_person]
        if self._resigned is not None:
            self._resigned = None
            return True
        if not mine:
            self._say("There is no move of yours to take back.")
            return False
        self._dice = self._events[mine[-1]].dice
        while len(self._events) > mine[-1]:
            self._events.pop()
            self.position.pop()
        return True

    def _show_board(self, _: str) -> bool:
        self._say(str(self.position))
        return False

    def _show_text(self, _: str) -> bool:
        self._say(self.position.text())
        return False

    def _save(self, name: str) -> bool:
        if not name:
            self._say("save needs the name of a file: save FILE")
            return False
        try:
            with pathlib.Path(name).expanduser().open("x", encoding="utf-8") as file:
                file.write(json.dumps(self.record(), indent=2) + "\n")
            self._say(f"Wrote {name}")
        except FileExistsError:
            self._say(f"{name} exists already; choose another name")
        except OSError as error:
            self._say(f"cannot write {name}: {error.strerror}")
        return False

    def _resign(self, _: str) -> bool:
        if self.position.is_over or self._resigned is not None:
            self._say("The game is over.")
            return False
        self._resigned = self.position.to_move
        return True

    # -- how it stands ---------------------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """The game so far, ready for JSON; ``events`` are moves and throws in order."""
        ruleset = self.position.ruleset
        return {
            "game": ruleset.game,
            "variant": ruleset.variant,
            "options": ruleset.overrides,
            "rules_version": ruleset.rules.version,
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            **dict(zip(SIDES, self._names, strict=True)),
            "start": self._start,
            "events": [{"side": SIDES[e.side], "move" if e.is_move else "throw": e.text} for e in self._events],
            "position": self.position.text(),
            "result": self._result() if self.position.is_over or self._resigned is not None else None,
        }

    def _winner(self) -> int | None:
        return self.position.winner if self._resigned is None else 1 - self._resigned

    def _reason(self) -> str | None:
        return self.position.reason if self._resigned is None else "resigned"

    def _result(self) -> str:
        winner = self._winner()
        if winner is None:
            return f"{'Stopped' if self.position.is_truncated else 'A draw'} ({self._reason()})."
        return f"{SIDES[winner]} wins ({self._reason()})."
