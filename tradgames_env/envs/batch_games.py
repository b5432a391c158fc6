"""Thousands of games as arrays, stepped by compiled loops on all cores; what training and the vector view stand on."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradgames_env.encoding import Canvas, Encoder
from tradgames_env.envs.crew import PLAY, SAMPLE, STEP, Crew
from tradgames_env.position import Position, Seed, seed_sequence
from tradgames_env.processors import cores
from tradgames_env.rules.batch import REFRESH, RESTART, SKIP, Rows, plan_step
from tradgames_env.rules.chance import seed_generators
from tradgames_env.rules.compiling import entry_point
from tradgames_env.rules.errors import IllegalMoveError, require_count
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from tradgames_env.rules.table import kernel_table

_plan_at_once = entry_point(plan_step)


def _own(value: Any) -> Any:
    """An array's copy in memory of its own, writable and in C order; what is no array as it is.

    What is unpickled may lie in memory that belongs to somebody else or cannot be written to (buffers out of band,
    mapped files), and compiled code writes without asking.
    """
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value


class BatchGames:
    """``num_games`` games of one ruleset, advanced together; the arrays below are rewritten in place by every step.

    Write to none of them: a step writes what has changed.

    Game i depends on ``seed``, i and the actions given, not on the number of games or threads. One batch belongs to one
    Python thread at a time; it uses the cores by itself.

    A call that Ctrl-C interrupts may still be at work after it; the next call of any method finishes it first. The
    arrays can be relied on after that.

    Attributes:
        observations: (N, C, H, W) float32 of the seat that decides.
        action_masks: (N, A) int8; all zero only for a game that is over and not restarted.
        to_move: (N,) int8, colour that decides, 0 natural, 1 black.
        seats: (N,) int8, seat that decides; equal to ``to_move`` except in team games.
        rewards: (N, 2) float32 of natural and black in the last step.
        terminated: (N,) bool, the last step ended the game by its rules.
        truncated: (N,) bool, the last step ended the game by ``max_turns``.
        endings: (N, 3) int16, outcome code, reason index and margin as the last step left the game.
        states: (N, S) int16 rows of the games as they now stand; read only.
        histories: (N, H) uint64; read only.

    Args:
        game: name of the game.
        variant: name of the variant.
        num_games: N, at least 1.
        seed: of all generators; fresh entropy when None.
        restart_finished: start a finished game anew in the same step.
        pad_to: (H, W) of the observations, see ``Encoder``.
        num_threads: all cores of the process when None.
        **options: single rule options that replace the variant's.

    Raises:
        ValueError: no such game, or a count below 1.
        OptionError: no such variant or option, or a value the game refuses.
    """

    def __init__(
        self,
        game: str,
        variant: str = "box",
        *,
        num_games: int = 1,
        seed: Seed = None,
        restart_finished: bool = True,
        pad_to: tuple[int, int] | None = None,
        num_threads: int | None = None,
        **options: Any,
    ) -> None:
        self.ruleset: Ruleset = load_ruleset(game, variant, **options)
        self.num_games = require_count("num_games", num_games, 1)
        if not isinstance(restart_finished, bool):
            raise ValueError(f"restart_finished must be True or False, not {restart_finished!r}")
        self.restart_finished = restart_finished
        self.num_threads = cores() if num_threads is None else require_count("num_threads", num_threads, 1)
        self.encoder = Encoder(self.ruleset, pad_to)
        self._allocate()
        self._seed(seed)
        self._everywhere(RESTART)

    def _allocate(self) -> None:
        count, ruleset = self.num_games, self.ruleset
        self.states = np.zeros((count, ruleset.state_size), np.int16)
        self.histories = np.zeros((count, ruleset.history_size), np.uint64)
        self._canvas = self.encoder.canvas(count)
        self.action_masks = np.zeros((count, ruleset.num_actions), np.int8)
        self.to_move = np.zeros(count, np.int8)
        self.seats = np.zeros(count, np.int8)
        self.rewards = np.zeros((count, 2), np.float32)
        self.terminated = np.zeros(count, np.bool_)
        self.truncated = np.zeros(count, np.bool_)
        self.endings = np.zeros((count, 3), np.int16)
        self._dice, self._choices = np.zeros((count, 1), np.uint64), np.zeros((count, 1), np.uint64)
        self._orders, self._sampled, self._counts = (np.zeros(count, np.int64) for _ in range(3))
        self._everyone = np.arange(count)
        self._assemble()

    def _assemble(self) -> None:
        """Put together what the compiled loops take."""
        ruleset = self.ruleset
        self.observations: NDArray[np.float32] = self._canvas.planes.reshape(-1, *self.encoder.shape)
        self._rows = Rows(
            kernel_table(ruleset.kernels), ruleset.params, ruleset.odds, self.states, self.histories, self._dice,
            self._choices, self._orders, self._sampled, self._counts, np.array([self.restart_finished]),
            self.action_masks, self.to_move, self.seats, self.rewards, self.terminated, self.truncated, self.endings,
        )  # fmt: skip
        self._crew: Crew | None = None
        self._is_stale = False

    def reset(self, seed: Seed = None) -> None:
        """Start every game anew; with ``seed``, also seed all generators anew.

        Without a seed, generators go on where they are.
        """
        self._settle()
        if seed is not None:
            self._seed(seed)
        self._everywhere(RESTART)

    def _seed(self, seed: Seed) -> None:
        sequence = seed_sequence(seed)
        # Game 0 throws as a Position of the same seed does; sampling actions must not disturb the throws.
        self._dice[:, 0] = seed_generators(sequence, self.num_games)
        self._choices[:, 0] = seed_generators(sequence.spawn(1)[0], self.num_games)

    def restart(self, which: NDArray[np.bool_]) -> None:
        """Start the games where ``which`` (N,) bool holds anew; nothing changes of the others.

        Raises:
            ValueError: ``which`` is not (N,) bool.
        """
        self._settle()
        self._orders[:] = np.where(self._games_mask(which), RESTART, SKIP)
        self._run(STEP)

    def step_some(self, actions: NDArray[np.integer[Any]], which: NDArray[np.bool_]) -> None:
        """As ``step``, but only in the games where ``which`` (N,) bool holds; nothing changes of the others.

        Raises:
            ValueError: wrong shape or not integers. Nothing was played.
            IllegalMoveError: an action is not legal, or its game is over. Nothing was played.
        """
        which = self._games_mask(which)
        refused = which & ~self.is_legal(actions)
        if refused.any():
            raise self._refusal(int(np.flatnonzero(refused)[0]), actions)
        self._orders[:] = np.where(which, actions, SKIP)
        self._run(STEP)

    def step(self, actions: NDArray[np.integer[Any]]) -> None:
        """Play one action in every game and rewrite all arrays.

        A game that is over (without ``restart_finished``) stays as it is, flags included, and is paid nothing more.

        Args:
            actions: (N,) integers, legal by ``action_masks``.

        Raises:
            ValueError: wrong shape or not integers. Nothing was played.
            IllegalMoveError: an action is not legal; the message names the game. Nothing was played.
        """
        self._settle()
        self._orders[:] = self._integers(actions)
        illegal = _plan_at_once(self.states, self.action_masks, self._orders)
        if illegal >= 0:
            raise self._refusal(illegal, actions)
        self._run(STEP)

    def is_legal(self, actions: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """(N,) bool: whether each action is legal in its game.

        Raises:
            ValueError: ``actions`` is not (N,) integers.
        """
        self._settle()
        chosen = self._integers(actions)
        inside = (chosen >= 0) & (chosen < self.ruleset.num_actions)
        legal: NDArray[np.bool_] = inside & (self.action_masks[self._everyone, np.where(inside, chosen, 0)] == 1)
        return legal

    def _integers(self, actions: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_games,) or chosen.dtype.kind not in "iu":
            raise ValueError(f"actions must be ({self.num_games},) integers, not {chosen.shape} {chosen.dtype}")
        return chosen

    def _refusal(self, index: int, actions: NDArray[np.integer[Any]]) -> IllegalMoveError:
        return IllegalMoveError(f"action {actions[index]} is not legal in game {index}: {self.position(index)!r}")

    def sample_legal_actions(self) -> NDArray[np.int64]:
        """(N,) int64: a uniform random legal action of each game, drawn from the batch's own generators.

        A game that is over gets -2.
        """
        self._settle()
        self._run(SAMPLE)
        return self._sampled.copy()

    def play_random(self, moves: int | NDArray[np.integer[Any]]) -> int:
        """Play random legal moves inside the compiled loop, restarting finished games; return how many games ended.

        Observations and masks are rewritten once, at the end; rewards and flags are cleared.

        Args:
            moves: how many in each game, or (N,) integers, one number a game; nothing changes of a game with 0.

        Raises:
            ValueError: ``moves`` is neither.
        """
        counts = self._move_counts(moves)
        self._settle()
        self._counts[:] = counts
        self._orders[:] = np.where(counts > 0, REFRESH, SKIP)
        self._run(PLAY)
        return int(self._counts.sum())

    def _move_counts(self, moves: object) -> NDArray[np.int64]:
        if not isinstance(moves, np.ndarray) or moves.ndim == 0:
            return np.full(self.num_games, require_count("moves", moves, 0))
        if moves.shape != (self.num_games,) or moves.dtype.kind not in "iu" or (moves < 0).any():
            raise ValueError(
                f"moves must be ({self.num_games},) integers of at least 0, not {moves.shape} {moves.dtype}"
            )
        return moves.astype(np.int64)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Copies of everything that decides how the games go on, as arrays by name."""
        self._settle()
        return {name: array.copy() for name, array in self._deciding().items()}

    def _deciding(self) -> dict[str, NDArray[Any]]:
        return {"states": self.states, "histories": self.histories, "dice": self._dice, "choices": self._choices}

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what ``get_state`` gave, and rewrite the arrays of all games; rewards and flags are cleared.

        Raises:
            ValueError: an array is missing, or of another shape or dtype. Nothing has changed.
        """
        self._settle()
        given: dict[str, Any] = {}
        for name, mine in self._deciding().items():
            given[name] = theirs = arrays.get(name)
            if theirs is None or (theirs.shape, theirs.dtype) != (mine.shape, mine.dtype):
                raise ValueError(f"the state needs {name!r} as {mine.shape} {mine.dtype}")
        self._is_stale = True
        self.states[:], self.histories[:] = given["states"], given["histories"]
        self._dice[:], self._choices[:] = given["dice"], given["choices"]
        self._refresh()

    def position(self, index: int, *, seed: Seed = None) -> Position:
        """Game ``index`` as a ``Position``: a copy with its own generator, so looking ahead foresees no throw.

        Raises:
            ValueError: there is no such game.
        """
        index = self._game_index(index)
        self._settle()
        return Position.from_rows(self.ruleset, self.states[index], self.histories[index], seed=seed)

    def load(self, index: int, position: Position) -> None:
        """Put a copy of ``position`` in the place of game ``index`` and rewrite the arrays of all games.

        Raises:
            ValueError: there is no such game; it is no position, or belongs to another game or other options.
        """
        index = self._game_index(index)
        if not isinstance(position, Position):
            raise ValueError(f"a Position can be loaded, not {position!r}")
        if position.ruleset is not self.ruleset:
            raise ValueError(f"a position of {position.ruleset.label} cannot stand in games of {self.ruleset.label}")
        self._settle()
        state, history = position.rows
        self._is_stale = True
        self.states[index], self.histories[index] = state, history
        self._refresh()

    def close(self) -> None:
        """End the threads; they start again when needed."""
        if self._crew is not None:
            self._crew.dismiss()
        self._crew = None

    def _game_index(self, index: object) -> int:
        number = require_count("index of a game", index, 0)
        if number >= self.num_games:
            raise ValueError(f"index of a game must be below {self.num_games}, not {number}")
        return number

    def _games_mask(self, which: object) -> NDArray[np.bool_]:
        mask = np.asarray(which)
        if mask.shape != (self.num_games,) or mask.dtype != np.bool_:
            raise ValueError(f"which must be ({self.num_games},) bool, not {mask.shape} {mask.dtype}")
        return mask

    def _everywhere(self, order: int) -> None:
        self._orders[:] = order
        self._run(STEP)

    def _refresh(self) -> None:
        self._everywhere(REFRESH)
        self._is_stale = False

    def _settle(self) -> None:
        """Do what an interrupted call has left undone; before anything else that reads or writes the games."""
        if self._crew is not None and self._crew.is_working:
            self._crew.finish()
        if self._is_stale:
            self._refresh()

    def _run(self, job: int) -> None:
        """Do a job in all games, on all cores."""
        if self._crew is None or self._crew.process != os.getpid():  # threads do not live on in a forked child
            self._crew = Crew(self.num_threads, self._rows, self._canvas, self.encoder)
        self._crew.run(job)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the threads, what is loaded by name and what is put together of the rest."""
        self._settle()
        values = {name: value for name, value in vars(self).items() if name not in ("_crew", "_rows", "observations")}
        values["ruleset"] = (self.ruleset.game, self.ruleset.variant, self.ruleset.overrides)
        values["encoder"] = self.encoder.shape[1:]
        return values

    def __setstate__(self, values: dict[str, Any]) -> None:
        """Restore what ``__getstate__`` gave; every array is copied, see ``_own``."""
        self.__dict__.update({name: _own(value) for name, value in values.items()})
        self._canvas = Canvas(*map(_own, self._canvas))
        game, variant, overrides = values["ruleset"]
        self.ruleset = load_ruleset(game, variant, **overrides)
        self.encoder = Encoder(self.ruleset, values["encoder"])
        self._assemble()
