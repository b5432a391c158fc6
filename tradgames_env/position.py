"""One game in a person's hands: legal moves, push and pop, text. What ``chess.Board`` is to chess."""

import operator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tradgames_env.rules.chance import MOST_STARTS, draw_outcome, seed_generators
from tradgames_env.rules.contract import (
    BLACK_WINS,
    CHANCE,
    MARGIN,
    MOVER,
    NATURAL_WINS,
    OUTCOME,
    PAYOFF,
    REASON,
    RUNNING,
    SEAT,
    TRUNCATED,
    TURNS,
    History,
    State,
)
from tradgames_env.rules.errors import IllegalMoveError, NotationError, require_count
from tradgames_env.rules.masks import mark_actions
from tradgames_env.rules.ruleset import Ruleset, load_ruleset

Seed = int | np.random.SeedSequence | None
ChanceMode = Literal["auto", "explicit"]
_Snapshot = tuple[bytes, int | None]
"""What a position held before something was played on it, and the action that was played; None for a throw."""

# More throws in a row than any game asks for between two moves (three stakes and a die in Petteia).
_THROWS_BETWEEN_MOVES = 8


class Position:
    """A position of one game and everything that can be asked of it.

    With ``chance="auto"`` throws are drawn from the position's own generator as soon as they are due, so a seat always
    decides until the game is over. With ``chance="explicit"`` they are left to the caller: see ``chance_outcomes`` and
    ``apply_chance``.

    Args:
        game: a name from ``tradgames_env.games()``.
        variant: a name from ``tradgames_env.variants(game)``.
        seed: of the position's generator; fresh entropy when None.
        chance: "auto" or "explicit".
        **options: single rule options that replace the variant's.

    Raises:
        ValueError: no such game, or ``chance`` is neither.
        OptionError: no such variant or option, or a value the game refuses.
    """

    def __init__(
        self, game: str, variant: str = "box", *, seed: Seed = None, chance: ChanceMode = "auto", **options: Any
    ) -> None:
        self._bind(load_ruleset(game, variant, **options), chance, seed)
        self._start()

    @classmethod
    def from_text(
        cls,
        game: str,
        text: str,
        variant: str = "box",
        *,
        seed: Seed = None,
        chance: ChanceMode = "auto",
        **options: Any,
    ) -> Self:
        """The position that a text describes, with a new repetition history.

        Raises:
            NotationError: the text cannot be read, or no such position can arise; a ``ValueError`` that says why.
        """
        _refuse_no_text(text)
        return cls.from_ruleset(load_ruleset(game, variant, **options), text, seed=seed, chance=chance)

    @classmethod
    def from_ruleset(
        cls, ruleset: Ruleset, text: str | None = None, *, seed: Seed = None, chance: ChanceMode = "auto"
    ) -> Self:
        """The start position of a ruleset, or the one that ``text`` describes."""
        position = cls.__new__(cls)
        position._bind(ruleset, chance, seed)
        if text is None:
            position._start()
            return position
        _refuse_no_text(text)
        position._state[:] = ruleset.rules.parse_position(ruleset.options, text)
        ruleset.rules.start_history(ruleset.params, position._state, position._history)
        position._throw_if_automatic()
        return position

    @classmethod
    def from_rows(
        cls, ruleset: Ruleset, state: State, history: History, *, seed: Seed = None, chance: ChanceMode = "auto"
    ) -> Self:
        """A position that copies the array rows of a running game, as the batch and the searches hold them.

        Args:
            ruleset: the game they belong to.
            state: (S,) int16.
            history: (H,) uint64.
            seed: of the new position's generator.
            chance: "auto" or "explicit".
        """
        position = cls.__new__(cls)
        position._bind(ruleset, chance, seed)
        position._state[:] = state
        position._history[:] = history
        return position

    def _bind(self, ruleset: Ruleset, chance: ChanceMode, seed: Seed) -> None:
        if chance not in ("auto", "explicit"):
            raise ValueError(f"chance must be 'auto' or 'explicit', not {chance!r}")
        self._hold(ruleset, chance, [])
        self._rng[:] = generator_word(seed)

    def _hold(self, ruleset: Ruleset, chance: ChanceMode, stack: list[_Snapshot]) -> None:
        """Set every attribute; the rows are zeros, in one piece of memory that a snapshot takes as a whole."""
        self.ruleset = ruleset
        self.chance: ChanceMode = chance
        state_from = 8 + 8 * ruleset.history_size
        self._memory = np.zeros(state_from + 2 * ruleset.state_size, np.uint8)
        self._rng = self._memory[:8].view(np.uint64)
        self._history: History = self._memory[8:state_from].view(np.uint64)
        self._state: State = self._memory[state_from:].view(np.int16)
        # Single cells are read several times a move: from a memoryview that takes a third of the time.
        self._cells: memoryview[int] = self._state.data
        self._stack = stack
        self._legal: NDArray[np.int32] | None = None
        self._moves: list[str] | None = None

    def restart(self, text: str | None = None, *, seed: Seed = None) -> None:
        """Go back to the start, or to the position a text describes; the generator goes on unless seeded anew.

        Raises:
            NotationError: as ``from_text``; the position is unchanged.
        """
        fresh = None if text is None else Position.from_ruleset(self.ruleset, text, chance="explicit")
        if seed is not None:
            self._rng[:] = generator_word(seed)
        self._stack = []
        if fresh is None:
            self._start()
        else:
            self._state[:], self._history[:] = fresh.rows
            self._forget_moves()
            self._throw_if_automatic()

    # -- what it is -------------------------------------------------------------------------------------------

    @property
    def game(self) -> str:
        """Name of the game."""
        return self.ruleset.game

    @property
    def variant(self) -> str:
        """Name of the variant the options started from."""
        return self.ruleset.variant

    @property
    def options(self) -> Any:
        """The rule options, a frozen dataclass of the game."""
        return self.ruleset.options

    @property
    def rows(self) -> tuple[State, History]:
        """(S,) int16 and (H,) uint64: the live state and history rows, for kernels; not to be written to."""
        return self._state, self._history

    # -- who and how it stands -------------------------------------------------------------------------------------

    @property
    def to_move(self) -> int:
        """0 when natural is to move, 1 for black; who would be next once the game is over."""
        return self._cells[MOVER]

    @property
    def seat(self) -> int:
        """Seat that decides, 0 or 1; up to 3 in team games, where seats 0 and 2 are natural's."""
        return self._cells[SEAT]

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by the rules or by ``max_turns``."""
        return self._cells[OUTCOME] != RUNNING

    @property
    def is_truncated(self) -> bool:
        """Whether the game was stopped by ``max_turns``."""
        return self._cells[OUTCOME] == TRUNCATED

    @property
    def winner(self) -> int | None:
        """0 natural, 1 black, None for a draw, a stopped game or one that still runs."""
        return {NATURAL_WINS: 0, BLACK_WINS: 1}.get(self._cells[OUTCOME])

    @property
    def reason(self) -> str | None:
        """Why the game is over ("captures", "blocked", "repetition", ...); None while it runs."""
        return self.ruleset.rules.reasons[self._cells[REASON]] or None

    @property
    def rewards(self) -> tuple[float, float]:
        """What natural and black are paid at the end; zeros while the game runs."""
        payoff = float(self._cells[PAYOFF]) if self.is_over else 0.0
        return (payoff, 0.0 - payoff)

    @property
    def margin(self) -> int:
        """Natural's lead in what the game counts: captures, removed counters, pieces home."""
        return self._cells[MARGIN]

    @property
    def balance(self) -> int | None:
        """Natural's running stakes in coins; None in a game that is not played for stakes."""
        return self.ruleset.rules.balance(self.ruleset.options, self._state)

    @property
    def turns(self) -> int:
        """Turns completed by both sides since the start or since the text was loaded."""
        return self._cells[TURNS]

    # -- moves -----------------------------------------------------------------------------------------------------

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions in the mover's frame, ascending; empty when a throw is due or the game is over."""
        actions: list[int] = self._legal_ids().tolist()
        return actions

    def legal_moves(self) -> list[str]:
        """The legal moves in notation, in the order of their action ids."""
        return self._legal_texts().copy()

    def action_mask(self) -> NDArray[np.int8]:
        """(A,) int8: 1 for legal actions."""
        mask = np.zeros(self.ruleset.num_actions, np.int8)
        mark_actions(*self._listed_actions(), mask)
        return mask

    def notation(self, action: int) -> str:
        """A legal action in notation, captures included.

        Raises:
            IllegalMoveError: it is not legal here.
        """
        return self.notation_of_legal(self.parse(action))

    def notation_of_legal(self, action: int) -> str:
        """``notation`` of an action that is known to be legal, without checking it."""
        return self.ruleset.notation(self._state, action)

    def parse(self, move: str | int) -> int:
        """The id of a legal move given in notation (with or without captures) or as an id.

        Raises:
            NotationError: the text cannot be read as a move of this game.
            IllegalMoveError: it cannot be played now.
        """
        if isinstance(move, str):
            texts = self._legal_texts()
            if move in texts:
                return self._legal_ids().item(texts.index(move))
        self._refuse_unless_deciding()
        if isinstance(move, str):
            action = self.ruleset.rules.parse_action(self.ruleset.options, self._state, move)
        else:
            action = _as_action(move)
        if action not in self._legal_ids().tolist():
            raise IllegalMoveError(f"{_shown(move)} is not legal in {self.text()!r}; legal: {self._some_legal_moves()}")
        return action

    def push(self, move: str | int) -> None:
        """Play a move given in notation (with or without captures) or as an action id.

        Raises:
            NotationError: the text cannot be read as a move of this game.
            IllegalMoveError: it cannot be played now. The position is unchanged.
        """
        self.push_legal(self.parse(move))

    def push_legal(self, action: int) -> None:
        """``push`` of an action that is known to be legal, without checking it."""
        self._remember(action)
        self._play(action)

    def advance(self, action: int) -> None:
        """``push_legal`` for good: nothing can be popped afterwards, which is faster and keeps copies small."""
        self._stack = []
        self._play(action)

    def pop(self) -> int | None:
        """Undo the last ``push`` or ``apply_chance`` exactly, throws drawn after it included.

        Returns:
            The action id of an undone push, None for an undone throw.

        Raises:
            IndexError: nothing was played on this position.
        """
        if not self._stack:
            raise IndexError("pop from a position on which nothing was played")
        memory, action = self._stack.pop()
        self._memory[:] = np.frombuffer(memory, np.uint8)
        self._forget_moves()
        return action

    def clear_stack(self) -> None:
        """Forget how the position came about; nothing can be popped any more."""
        self._stack = []

    @property
    def move_stack(self) -> list[int]:
        """Action ids of the moves played on this position."""
        return [action for _, action in self._stack if action is not None]

    # -- chance ------------------------------------------------------------------------------------------------------

    @property
    def throw(self) -> int | tuple[int, ...] | None:
        """The throw in hand, a tuple when there are several, None when there is none."""
        return self.ruleset.rules.throw(self.ruleset.options, self._state)

    @property
    def chance_due(self) -> bool:
        """Whether a throw is due; always False with ``chance="auto"``."""
        return self._cells[CHANCE] != 0

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """(value, probability) of each outcome of the throw that is due; empty when none is."""
        if not self.chance_due:
            return []
        kind = self.ruleset.chance_kinds[self._cells[CHANCE] - 1]
        return list(zip(kind.values, kind.probabilities, strict=True))

    def apply_chance(self, outcome: int) -> None:
        """Let the throw that is due show ``outcome``, one of the values of ``chance_outcomes``.

        Raises:
            IllegalMoveError: no throw is due, or it cannot show this value.
        """
        if not self.chance_due:
            raise IllegalMoveError("no throw is due")
        kind = self.ruleset.chance_kinds[self._cells[CHANCE] - 1]
        if not isinstance(outcome, int | np.integer) or isinstance(outcome, bool) or outcome not in kind.values:
            raise IllegalMoveError(f"a {kind.name} shows one of {kind.values}, not {_shown(outcome)}")
        self._remember(None)
        self._forget_moves()
        index = kind.values.index(outcome)
        self.ruleset.kernels.apply_chance(self.ruleset.params, self._state, self._history, index)

    # -- copies and text -----------------------------------------------------------------------------------------

    def copy(self, *, seed: Seed = None) -> "Position":
        """A position that goes on identically; with ``seed``, one whose later throws are its own.

        A search should pass a seed, or it foresees the throws of the game it was copied from.
        """
        other = Position.__new__(Position)
        other._hold(self.ruleset, self.chance, list(self._stack))
        other._memory[:] = self._memory
        if seed is not None:
            other._rng[:] = generator_word(seed)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> "Position":
        """As ``copy``: the rules are shared, not copied."""
        return self.copy()

    def text(self) -> str:
        """The position in one line, as RULES describes for each game."""
        return self.ruleset.rules.format_position(self.ruleset.options, self._state)

    def __str__(self) -> str:
        """The board for a terminal."""
        return self.ruleset.rules.board_text(self.ruleset.options, self._state)

    def __eq__(self, other: object) -> bool:
        """The same game under the same options in the same position, as ``text`` and ``seat`` tell."""
        if not isinstance(other, Position):
            return NotImplemented
        same_rules = self.game == other.game and self.options == other.options
        return same_rules and (self.text(), self.seat) == (other.text(), other.seat)

    __hash__ = None  # type: ignore[assignment] # a position changes

    def __repr__(self) -> str:
        """Game, variant and text."""
        return f"Position({self.game!r}, {self.text()!r}, variant={self.variant!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Arrays and names; the rules themselves are loaded again by name."""
        return {
            "game": self.game,
            "variant": self.variant,
            "overrides": self.ruleset.overrides,
            "chance": self.chance,
            "rows": (self._state.copy(), self._history.copy(), self._rng.copy()),
            "stack": list(self._stack),
        }

    def __setstate__(self, values: dict[str, Any]) -> None:
        """Restore what ``__getstate__`` gave."""
        ruleset = load_ruleset(values["game"], values["variant"], **values["overrides"])
        self._hold(ruleset, values["chance"], values["stack"])
        self._state[:], self._history[:], self._rng[:] = values["rows"]

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _legal_ids(self) -> NDArray[np.int32]:
        """(n,) int32, ascending, kept until the position changes; not to be written to."""
        if self._legal is None:
            actions, count = self._listed_actions()
            self._legal = actions[:count]
            self._legal.sort()
        return self._legal

    def _listed_actions(self) -> tuple[NDArray[np.int32], int]:
        """(A,) int32 that begins with the legal actions as the game lists them, and their number."""
        ruleset = self.ruleset
        actions = np.empty(ruleset.num_actions, np.int32)
        count = 0
        if self._cells[OUTCOME] == RUNNING and self._cells[CHANCE] == 0:
            count = ruleset.kernels.legal(ruleset.params, self._state, self._history, actions)
        return actions, count

    def _legal_texts(self) -> list[str]:
        """Notation of ``_legal_ids``, kept as long; not to be written to."""
        if self._moves is None:
            actions = self._legal_ids().tolist()
            format_actions = self.ruleset.rules.format_actions
            self._moves = format_actions(self.ruleset.options, self._state, actions) if actions else []
        return self._moves

    def _forget_moves(self) -> None:
        """The position changes: what was legal need not be."""
        self._legal = self._moves = None

    def _some_legal_moves(self) -> str:
        moves = self._legal_texts()
        return ", ".join(moves[:6]) + (f" and {len(moves) - 6} more" if len(moves) > 6 else "")

    def _refuse_unless_deciding(self) -> None:
        if self.is_over:
            raise IllegalMoveError(f"the game is over ({self.reason})")
        if self.chance_due:
            raise IllegalMoveError("a throw is due: call apply_chance first")

    def _play(self, action: int) -> None:
        self.ruleset.kernels.apply(self.ruleset.params, self._state, self._history, action)
        self._forget_moves()
        self._throw_if_automatic()

    def _remember(self, action: int | None) -> None:
        self._stack.append((self._memory.tobytes(), action))

    def _start(self) -> None:
        """Begin a game, as ``rules.batch.start_game`` does."""
        for _ in range(MOST_STARTS):
            self.ruleset.kernels.initial(self.ruleset.params, self._state, self._history)
            self._forget_moves()
            self._throw_if_automatic()
            if not self.is_over:
                return

    def _throw_if_automatic(self) -> None:
        if self.chance == "explicit":
            return
        ruleset = self.ruleset
        while self._cells[CHANCE] != 0:
            index = draw_outcome(ruleset.odds, self._cells[CHANCE], self._rng)
            ruleset.kernels.apply_chance(ruleset.params, self._state, self._history, index)


def generator_word(seed: Seed) -> NDArray[np.uint64]:
    """(1,) uint64: a generator for ``rules.chance``, from fresh entropy when ``seed`` is None.

    Raises:
        ValueError: the seed is neither an integer of at least 0, a ``SeedSequence`` nor None.
    """
    return seed_generators(seed_sequence(seed), 1)


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """The seed as NumPy's ``SeedSequence``.

    Raises:
        ValueError: it is neither an integer of at least 0, a ``SeedSequence`` nor None.
    """
    if seed is None or isinstance(seed, np.random.SeedSequence):
        return seed or np.random.SeedSequence()
    return np.random.SeedSequence(require_count("seed", seed, 0))


def perft(game: str, depth: int, variant: str = "box", *, text: str | None = None, **options: Any) -> int:
    """Number of positions exactly ``depth`` moves after the start (or after ``text``); every throw is a branch.

    Raises:
        ValueError: ``depth`` is no integer of at least 0, or as ``Position``.
    """
    return count_positions(
        Position.from_ruleset(load_ruleset(game, variant, **options), text, chance="explicit"), depth
    )


def count_positions(position: Position, depth: int) -> int:
    """Number of positions exactly ``depth`` moves after ``position``, which is left unchanged.

    Raises:
        ValueError: ``depth`` is no integer of at least 0.
    """
    from tradgames_env.rules.leaves import count_leaves  # takes seconds to compile where nobody asked before

    depth = require_count("depth", depth, 0)
    ruleset = position.ruleset
    levels = 1 + (depth + 1) * (1 + _THROWS_BETWEEN_MOVES)
    states = np.zeros((levels, ruleset.state_size), np.int16)
    histories = np.zeros((levels, ruleset.history_size), np.uint64)
    states[0], histories[0] = position.rows
    kinds = np.array([(len(kind.values), int(kind.repeats)) for kind in ruleset.chance_kinds] or [(0, 0)], np.int64)
    scratch = np.empty((levels, ruleset.num_actions), np.int32)
    kernels = ruleset.kernels
    return int(
        count_leaves(
            kernels.legal, kernels.apply, kernels.apply_chance, ruleset.params, kinds, states, histories, scratch,
            0, depth, 0,
        )
    )  # fmt: skip


def _refuse_no_text(text: object) -> None:
    if not isinstance(text, str):
        raise NotationError(f"a position is given as a text, not as {_shown(text)}")


def _as_action(move: object) -> int:
    try:
        action = operator.index(move)  # type: ignore[arg-type]
    except Exception as error:  # whatever __index__ raises, what was handed over is no move
        raise IllegalMoveError(f"a move is a text or an integer action id, not {_shown(move)}") from error
    if isinstance(move, bool):
        raise IllegalMoveError(f"a move is a text or an integer action id, not {move!r}")
    return action


def _shown(value: object) -> str:
    """``repr`` of what a caller handed over, cut to a length that leaves a message readable."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
