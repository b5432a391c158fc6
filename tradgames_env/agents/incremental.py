"""Agent that searches by alpha-beta with a small learned evaluation, for games without dice."""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents.actions import ActionAgent, checked_count, deciding_actions
from tradgames_env.agents.checkpoint import Checkpoint
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.search.incremental import Found, IncrementalSearch, IncrementalWeights

POSITIONS = 100_000
"""Positions visited for a move unless a checkpoint or the caller says otherwise: some hundredths of a second."""
MOST_POSITIONS = 1_000_000_000
_FIRST_SPEED = 1e6
_SPEED_KEPT = 0.8


class IncrementalAgent(ActionAgent):
    """Plays the best move that alpha-beta finds with a learned evaluation; equals are drawn.

    Args:
        ruleset: the game it plays.
        weights: of its evaluation.
        positions: visited for each move, 1 to ``MOST_POSITIONS``; the same number and seed give the same moves.
        seconds: for a move, about: the number of positions then follows from how fast the last moves were searched,
            and moves depend on the machine. None to go by ``positions``.
        margin_weight: what one more in the margin adds to the log odds; for weights that do not know it.

    Raises:
        ValueError: a number is out of range, or the search cannot play this game.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        weights: IncrementalWeights,
        positions: int = POSITIONS,
        *,
        seconds: float | None = None,
        margin_weight: float = 0.0,
    ) -> None:
        super().__init__()
        if seconds is not None and not seconds > 0:
            raise ValueError(f"seconds must be a number above 0, not {seconds!r}")
        self.rulesets = (ruleset,)
        self.positions = checked_count(positions, "positions", 1, MOST_POSITIONS)
        self.seconds = seconds
        self.name = f"incremental:{positions}"
        self._search = IncrementalSearch(ruleset, weights, margin_weight=margin_weight)
        self._speed = _FIRST_SPEED
        self.checkpoint: Checkpoint | None = None
        """Where its weights come from, if from a checkpoint."""

    @classmethod
    def of_checkpoint(cls, checkpoint: Checkpoint, positions: int | None = None) -> "IncrementalAgent":
        """The agent of a checkpoint, which visits ``positions`` or as many as the checkpoint recommends.

        Raises:
            ValueError: the number is out of range.
        """
        if positions is None:
            positions = checkpoint.record.play.simulations or POSITIONS
        agent = cls(checkpoint.rulesets[0], IncrementalWeights.of_tensors(checkpoint.tensors), positions)
        agent.name = f"{checkpoint.folder.name}:{positions}"
        agent.checkpoint = checkpoint
        return agent

    def best_actions(self, position: Position) -> NDArray[np.int64]:
        """(1,): the action found best.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
            ValueError: another ruleset than the agent's.
        """
        return self._find([position]).actions

    def act_many(self, positions: Sequence[Position]) -> list[str]:
        """Its move in each of several positions.

        Raises:
            IllegalMoveError: as ``best_actions``.
            ValueError: as ``best_actions``.
        """
        if not positions:
            return []
        actions = self._find(positions).actions.tolist()
        return [position.notation(action) for position, action in zip(positions, actions, strict=True)]

    def value(self, position: Position) -> float:
        """What the mover expects, in [-1, 1], after the search.

        Raises:
            IllegalMoveError: as ``best_actions``.
            ValueError: as ``best_actions``.
        """
        return float(self._find([position]).values[0])

    def _find(self, positions: Sequence[Position]) -> Found:
        for position in positions:
            deciding_actions(position)
            theirs, ours = position.ruleset, self.rulesets[0]
            if (theirs.game, theirs.options) != (ours.game, ours.options):
                raise ValueError(f"{self.name} plays {ours.label}, not {theirs.label}")
        rows = [position.rows for position in positions]
        budget = self.positions if self.seconds is None else max(1, round(self.seconds * self._speed))
        started = time.perf_counter()
        found = self._search.find(
            np.stack([state for state, _ in rows]),
            np.stack([history for _, history in rows]),
            np.full(len(rows), budget),
            self._rng.integers(0, 2**64, size=len(rows), dtype=np.uint64),
        )
        speed = float(found.visited.sum()) / max(time.perf_counter() - started, 1e-9)
        self._speed += (1.0 - _SPEED_KEPT) * (speed - self._speed)
        return found
