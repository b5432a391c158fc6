"""A sequential test of two strengths: a match is played until its result says which of two Elo differences fits.

The generalised sequential probability ratio test over pairs of games, as Fishtest does it for Stockfish (M. Van den
Bergh, "Comments on normalized Elo" and "The generalized maximum likelihood ratio for the expectation value of a
distribution"): of all distributions over the five results of a pair, the most likely one whose mean is the score that
elo1 predicts is put against the most likely one for elo0. Nothing is assumed of how often games are drawn.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from training.intervals import PAIR_POINTS
from training.ratings import ELO_PER_LOGIT

Verdict = Literal["elo0", "elo1"]

_STEPS = 200
# What a result that never came counts for, so that every mean between 0 and 1 is possible.
_UNSEEN = 1e-3


@dataclasses.dataclass(frozen=True)
class SequentialTest:
    """Which of two Elo differences of the first player over the second is the case.

    Attributes:
        elo0: difference under the null hypothesis.
        elo1: under the alternative, larger.
        alpha: chance to accept elo1 where elo0 holds.
        beta: chance to accept elo0 where elo1 holds.

    Raises:
        ValueError: elo0 is not below elo1, one of them is out of reach, or a chance is not between 0 and 0.5.
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not -2000.0 <= self.elo0 < self.elo1 <= 2000.0:
            raise ValueError(
                f"the test needs elo0 < elo1, both from -2000 to 2000, not {self.elo0:g} and {self.elo1:g}"
            )
        if not (0.0 < self.alpha < 0.5 and 0.0 < self.beta < 0.5):
            raise ValueError(f"alpha and beta lie between 0 and 0.5, not at {self.alpha:g} and {self.beta:g}")

    @property
    def bounds(self) -> tuple[float, float]:
        """Log-likelihood ratios at and beyond which elo0 and elo1 are accepted, by Wald."""
        return (math.log(self.beta / (1.0 - self.alpha)), math.log((1.0 - self.beta) / self.alpha))

    def ratio(self, pair_scores: Sequence[float]) -> float:
        """Log-likelihood ratio of elo1 to elo0 after pairs of these points, members of ``PAIR_POINTS``."""
        if len(pair_scores) == 0:
            return 0.0
        counts = (np.asarray(pair_scores, float)[:, None] == PAIR_POINTS).sum(axis=0)
        seen = np.where(counts == 0, _UNSEEN, counts.astype(float))
        likely = [_most_likely(seen, _score(elo)) for elo in (self.elo0, self.elo1)]
        return float(seen @ np.log(likely[1] / likely[0]))

    def verdict(self, pair_scores: Sequence[float]) -> Verdict | None:
        """Which difference is accepted; None while it is open."""
        ratio, (low, high) = self.ratio(pair_scores), self.bounds
        if ratio >= high:
            return "elo1"
        return "elo0" if ratio <= low else None


def _score(elo: float) -> float:
    return 1.0 / (1.0 + math.exp(-elo / ELO_PER_LOGIT))


def _most_likely(counts: NDArray[np.float64], score: float) -> NDArray[np.float64]:
    """(5,) float64: of the distributions with this mean score a game, the one that makes ``counts`` most likely.

    By Lagrange it is p / (1 + x (a - s)), p the shares seen, a the results and s the mean; x makes its mean s, a root
    of a falling function between the poles.
    """
    shares = counts / counts.sum()
    away = PAIR_POINTS / 2.0 - score
    low, high = -1.0 / away[-1], -1.0 / away[0]
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if float(shares @ (away / (1.0 + middle * away))) > 0.0:
            low = middle
        else:
            high = middle
    likely: NDArray[np.float64] = shares / (1.0 + (low + high) / 2.0 * away)
    return likely
