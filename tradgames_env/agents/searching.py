"""A trained network at play with a search: the agent, and the choice between it and the network alone."""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents.checkpoint import INCREMENTAL, Checkpoint, CheckpointError, read_checkpoint
from tradgames_env.agents.incremental import IncrementalAgent
from tradgames_env.agents.network import NetworkAgent, NetworkEvaluator
from tradgames_env.position import Position
from tradgames_env.search.evaluation import Evaluator, Improver, SearchResult
from tradgames_env.search.expectimax import Expectimax
from tradgames_env.search.gumbel import MOST_SIMULATIONS, GumbelSearch

MOST_PLIES = 3
"""Each ply of a game of dice has some fifty times as many positions as the one before."""


class SearchingAgent(NetworkAgent):
    """Plays the move that a search with a trained network finds; a win on the spot is always played.

    Either a tree search of some simulations (``search.gumbel``, without noise), or, for games of dice, all moves and
    throws some plies ahead (``search.expectimax``). Both are deterministic. With both numbers, games of dice are
    searched in the second way and the others in the first.

    Attributes:
        simulations: of the tree search for each move, or 0.
        plies: that all moves and throws are looked ahead, or 0.

    Args:
        checkpoint: a checked checkpoint.
        simulations: see above.
        plies: see above; at least one of the two must be positive.
        device: a torch device, or "auto" for the first CUDA device where there is one.

    Raises:
        ValueError: neither of the two is positive, a number is out of range, or torch does not know the device.
    """

    def __init__(self, checkpoint: Checkpoint, *, simulations: int = 0, plies: int = 0, device: str = "auto") -> None:
        for name, number, most in (("simulations", simulations, MOST_SIMULATIONS), ("plies", plies, MOST_PLIES)):
            if not 0 <= number <= most:
                raise ValueError(f"a search has from 1 to {most:,} {name}, not {number!r}")
        if not (simulations or plies):
            raise ValueError("a search has simulations or plies; one of them must be positive")
        super().__init__(checkpoint, device=device, lookahead=False)
        self.simulations = simulations
        self.plies = plies
        self.name = f"{self.name}:{simulations or plies}"
        self._searches = {evaluator.ruleset: self._search_of(evaluator) for evaluator in self._evaluators}

    def act_many(self, positions: Sequence[Position]) -> list[str]:
        """Its move in each of several positions of one game, searched side by side; raises as ``act``."""
        if not positions:
            return []
        actions = self._improved(positions).actions.tolist()
        return [position.notation(action) for position, action in zip(positions, actions, strict=True)]

    def policy(self, position: Position) -> dict[str, float]:
        """Probability of each legal move by the network, improved by the search; raises as ``act``."""
        policy = self._improved([position]).policies[0].astype(np.float64)
        legal = policy[position.legal_actions()]
        return dict(zip(position.legal_moves(), (legal / legal.sum()).tolist(), strict=True))

    def value(self, position: Position) -> float:
        """Expected reward of the mover after the search, cut to [-1, 1]; raises as ``act``."""
        return float(np.clip(self._improved([position]).values[0], -1.0, 1.0))

    def _search_of(self, evaluator: NetworkEvaluator) -> Improver:
        ruleset, weight = evaluator.ruleset, evaluator.margin_weight
        if self.plies and (ruleset.chance_kinds or not self.simulations):
            return Expectimax(ruleset, plies=self.plies, margin_weight=weight)
        return GumbelSearch(ruleset, margin_weight=weight, noise=False)

    def _improved(self, positions: Sequence[Position]) -> SearchResult:
        evaluator, count = self._evaluator_for(positions), len(positions)
        return self._searches[evaluator.ruleset].improve(
            self._refusing(evaluator),
            np.stack([position.rows[0] for position in positions]),
            np.stack([position.rows[1] for position in positions]),
            np.full(count, self.simulations, np.int32),
            np.zeros(count, np.uint64),  # nothing is drawn
        )

    def _refusing(self, evaluator: NetworkEvaluator) -> Evaluator:
        """The evaluator, which refuses to go on with numbers that are not finite."""

        def evaluate(
            states: NDArray[np.int16], histories: NDArray[np.uint64]
        ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            logits, utilities = evaluator(states, histories)
            # One of them makes the sum another.
            if not np.isfinite(logits.sum() + utilities.sum()):
                raise CheckpointError(
                    f"{self.checkpoint.folder}: its network gives numbers that are not finite; use another copy"
                )
            return logits, utilities

        return evaluate


def load_playing_agent(
    path: str | os.PathLike[str], effort: int | None = None, *, device: str = "auto"
) -> NetworkAgent | IncrementalAgent:
    """The agent in a checkpoint folder, with or without a search.

    Args:
        path: the folder.
        effort: plies where the checkpoint recommends nothing but to look all throws ahead, simulations elsewhere, which
            are the positions alpha-beta visits; 0 for the policy alone; what the checkpoint recommends when None.
        device: a torch device such as "cpu" or "cuda:1"; "auto" takes CUDA where there is one.

    Raises:
        CheckpointError: the folder is missing, damaged or made for another version; a ``ValueError``.
        ValueError: the effort is out of range, or a wrong device.
    """
    checkpoint = read_checkpoint(path)
    play = checkpoint.record.play
    if checkpoint.record.network.trunk == INCREMENTAL:
        return IncrementalAgent.of_checkpoint(checkpoint, effort)
    simulations, plies = play.simulations, play.plies
    if effort is not None and plies and not simulations:
        plies = effort
    elif effort is not None:
        simulations = effort
    if (simulations or plies) and effort != 0:
        return SearchingAgent(checkpoint, simulations=simulations, plies=plies, device=device)
    return NetworkAgent(checkpoint, device=device, lookahead=None if effort is None else False)
