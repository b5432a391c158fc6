"""What a search asks of a network, and what it answers to whoever asked for a search.

Letters: B rows of a batch, N positions, A actions, S and H sizes of a state and a history row.
"""

import dataclasses
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Evaluator(Protocol):
    """A learned evaluation of positions, as a function of their rows."""

    def __call__(
        self, states: NDArray[np.int16], histories: NDArray[np.uint64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Judge running positions, in which a seat decides or a throw is due.

        Args:
            states: (B, S) int16.
            histories: (B, H) uint64; H is 0 in games without a repetition rule.

        Returns:
            (B, A) float32 logits of a policy, meaningless for illegal actions and where a throw is due; and (B,)
            float32 utilities: the payoff that the side ``states[:, MOVER]`` expects at the end, plus the margin's
            weight times its final margin as a share of the margin's scale.
        """
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found in N positions in which a seat decides.

    Attributes:
        actions: (N,) int64, what to play.
        policies: (N, A) float32, the improved policy: rows sum to 1, illegal actions have 0.
        values: (N,) float32, utility of the position for its mover after the search.
        surprises: (N,) float32, Kullback-Leibler divergence of the improved policy from the network's, in nats.
    """

    actions: NDArray[np.int64]
    policies: NDArray[np.float32]
    values: NDArray[np.float32]
    surprises: NDArray[np.float32]


class Improver(Protocol):
    """A search that improves on an evaluation."""

    def improve(
        self,
        evaluate: Evaluator,
        states: NDArray[np.int16],
        histories: NDArray[np.uint64],
        budgets: NDArray[np.int32],
        words: NDArray[np.uint64],
    ) -> SearchResult:
        """Search N positions in which a seat decides.

        Args:
            evaluate: judges positions.
            states: (N, S) int16, left as they are.
            histories: (N, H) uint64, left as they are.
            budgets: (N,) int32, simulations of each search, at least 1.
            words: (N,) uint64, a generator of its own for each search, advanced in place; nothing else is random, and
                a position's result does not depend on its neighbours.
        """
        ...
