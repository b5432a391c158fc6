"""How probabilities and values become moves, whatever computes them: torch, or a runtime for exported networks."""

import abc
import os
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents.base import deciding_moves
from tradgames_env.agents.checkpoint import CheckpointError, PlayRecord
from tradgames_env.agents.lookahead import successors
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset


class GameEvaluator(Protocol):
    """What says something of the positions of one game.

    Attributes:
        ruleset: the game.
        margin_weight: worth of the largest possible final margin in utilities; a win is 1.
        margin_scale: the largest possible margin.
    """

    ruleset: Ruleset
    margin_weight: float
    margin_scale: float


EvaluatorT = TypeVar("EvaluatorT", bound=GameEvaluator)


class PolicyValueAgent(abc.ABC, Generic[EvaluatorT]):
    """Plays with a trained network, by one of two ways.

    With ``lookahead`` every legal move is tried on a copy, each position it can lead to (each outcome of a throw
    included) is valued by the network, and the move of the highest expected value is played. A win on the spot is
    always played. Without it, the policy decides: one evaluation a move.

    Attributes:
        name: for tables and messages.
        rulesets: the games and options it was trained for; no others are accepted.
        lookahead: see above.
        temperature: without lookahead, 0 plays the most probable move (exact ties by its own generator); 1 draws moves
            from the policy; other numbers sharpen (below 1) or flatten it.

    Args:
        name: see above.
        rulesets: see above.
        play: how the network is meant to be played with.
        lookahead: see above; what ``play`` recommends when None.
        temperature: see above; a positive one needs ``lookahead`` off, and switches it off when that is None.

    Raises:
        ValueError: the temperature is negative, not finite, or positive together with lookahead.
    """

    _evaluators: Sequence[EvaluatorT]
    """One for each ruleset, in their order; set by those who know what computes."""

    def __init__(
        self, name: str, rulesets: tuple[Ruleset, ...], play: PlayRecord, *, lookahead: bool | None, temperature: float
    ) -> None:
        if not 0.0 <= temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or a positive number, not {temperature!r}")
        if lookahead and temperature > 0.0:
            raise ValueError("a positive temperature draws from the policy; it cannot be used with lookahead")
        self.name = name
        self.rulesets = rulesets
        self.temperature = temperature
        recommended = play.lookahead and temperature == 0.0
        self.lookahead = recommended if lookahead is None else lookahead
        self._rng = np.random.default_rng()

    @abc.abstractmethod
    def _judge(
        self,
        evaluator: EvaluatorT,
        states: NDArray[np.int16],
        histories: NDArray[np.uint64],
        legal: NDArray[np.bool_],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(N, A) float64 probabilities, 0 for illegal actions, and (N, 2) float64: expected reward and gain of margin.

        Args:
            evaluator: of the game.
            states: (N, S) int16.
            histories: (N, H) uint64.
            legal: (N, A) bool.

        Raises:
            CheckpointError: the network gives numbers that are not finite.
        """

    @abc.abstractmethod
    def _values(
        self, evaluator: EvaluatorT, states: NDArray[np.int16], histories: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        """The second that ``_judge`` gives, of positions in which a throw may be due or the game may be over."""

    def seed(self, seed: int) -> None:
        """Start the agent's own generator anew."""
        self._rng = np.random.default_rng(seed)

    def act(self, position: Position) -> str:
        """The move it plays, in notation.

        Raises:
            ValueError: the position belongs to another game or other options.
            IllegalMoveError: no seat decides here, the game is over or a throw is due.
        """
        return self.act_many([position])[0]

    def act_many(self, positions: Sequence[Position]) -> list[str]:
        """Its move in each position, from one evaluation of them all; raises as ``act``.

        Batches of other sizes may round in the last digit differently.
        """
        if not positions:
            return []
        if self.lookahead:
            chosen = [self._best(row) for row in self._look_ahead(positions)]
        else:
            chosen = [self._choose(row) for row in self._evaluate(positions)[0]]
        return [position.notation(action) for position, action in zip(positions, chosen, strict=True)]

    def policy(self, position: Position) -> dict[str, float]:
        """Probability of each legal move by the network itself, whatever the temperature; raises as ``act``."""
        probabilities, _ = self._evaluate([position])
        legal = probabilities[0, position.legal_actions()]
        return dict(zip(position.legal_moves(), (legal / legal.sum()).tolist(), strict=True))

    def value(self, position: Position) -> float:
        """Expected reward of the mover, cut to [-1, 1]; raises as ``act``."""
        state, history = position.rows
        values = self._values(self._evaluator_for([position]), state[None], history[None])
        return float(min(max(values[0, 0], -1.0), 1.0))

    def _evaluate(self, positions: Sequence[Position]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(N, A) float64 probabilities, 0 for illegal actions, and (N, 2) float64 values."""
        evaluator = self._evaluator_for(positions)
        states = np.stack([position.rows[0] for position in positions])
        histories = np.stack([position.rows[1] for position in positions])
        legal = np.stack([position.action_mask() for position in positions]) == 1
        return self._judge(evaluator, states, histories, legal)

    def _look_ahead(self, positions: Sequence[Position]) -> NDArray[np.float64]:
        """(N, A) float64: expected value of each legal action for the mover, -inf for the others."""
        evaluator = self._evaluator_for(positions)
        ahead = successors(positions, self._rng.integers(0, 2**64, size=1, dtype=np.uint64))
        values = self._values(evaluator, ahead.states, ahead.histories)
        weights = np.array([1.0, evaluator.margin_weight])
        # A decided game counts for more than any value and margin a network promises together.
        decided = 2.0 + 4.0 * evaluator.margin_weight
        further = ahead.sign * (values @ weights)
        gain = weights[1] * ahead.gain / evaluator.margin_scale
        worth = np.where(ahead.over, decided * ahead.payoff, further) + gain
        table = np.full((len(positions), evaluator.ruleset.num_actions), -np.inf)
        table[ahead.position, ahead.action] = 0.0
        np.add.at(table, (ahead.position, ahead.action), ahead.weight * worth)
        return table

    def _best(self, values: NDArray[np.float64]) -> int:
        """An action of the highest value; exact ties by the agent's own generator."""
        best = np.flatnonzero(values == values.max())
        return int(best[0]) if len(best) == 1 else int(self._rng.choice(best))

    def _choose(self, probabilities: NDArray[np.float64]) -> int:
        """An action of positive probability, by the temperature."""
        if self.temperature == 0.0:
            return self._best(probabilities)
        legal = np.flatnonzero(probabilities)
        logs = np.log(probabilities[legal]) / self.temperature
        weights = np.exp(logs - logs.max())
        return int(self._rng.choice(legal, p=weights / weights.sum()))

    def _evaluator_for(self, positions: Sequence[Position]) -> EvaluatorT:
        """What evaluates these positions, in all of which a seat must decide."""
        evaluator = self._evaluator_of(positions[0])
        for position in positions:
            if self._evaluator_of(position) is not evaluator:
                raise ValueError(f"positions of one game are wanted, not of {evaluator.ruleset.label} and others")
            if position.is_over or position.chance_due:
                deciding_moves(position)  # raises, and says why
        return evaluator

    def _evaluator_of(self, position: Position) -> EvaluatorT:
        theirs = position.ruleset
        for evaluator in self._evaluators:
            ours = evaluator.ruleset
            if theirs is ours or (theirs.rules is ours.rules and theirs.options == ours.options):
                return evaluator
        known = " and ".join(ruleset.label for ruleset in self.rulesets)
        raise ValueError(f"{self.name} was trained for {known} and cannot play {theirs.label}")


def not_finite(source: str | os.PathLike[str]) -> CheckpointError:
    """What is raised of a network that gives infinite numbers or none."""
    return CheckpointError(f"{source}: its network gives numbers that are not finite; use another copy")
