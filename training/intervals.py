"""95 % intervals of match results.

Results come in *pairs*: two games from one opening with sides swapped, whose scores depend on each other. A pair is
worth 0, 0.5, 1, 1.5 or 2 points to a player (win 1, draw 0.5).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PAIR_POINTS = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
"""What a pair can be worth."""

REPLICATES = 2000
"""Bootstrap replicates behind an interval."""

PRIOR_PAIRS = 1.0
"""Imagined pairs, spread evenly over the five results: an interval keeps a width when all pairs that were played ended
alike. On average they are drawn."""

_NORMAL_QUANTILE = 1.959963984540054
_PERCENTILES = (2.5, 97.5)

Interval = tuple[float, float]


def wilson(successes: int, trials: int) -> Interval:
    """Wilson's 95 % score interval of a proportion (JASA 22, 1927); (0, 1) when nothing was tried.

    It takes trials for independent. Games of a pair are not quite, so for the score prefer ``score_interval``.
    """
    if trials == 0:
        return (0.0, 1.0)
    share, z2 = successes / trials, _NORMAL_QUANTILE**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _NORMAL_QUANTILE * np.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return (float(max(0.0, centre - half)), float(min(1.0, centre + half)))


def score_replicates(
    pair_scores: Sequence[float], rng: np.random.Generator, replicates: int = REPLICATES
) -> NDArray[np.float64]:
    """(replicates,) float64: mean points a game in [0, 1], by the Bayesian bootstrap over pairs (Rubin 1981).

    Args:
        pair_scores: points of each pair, members of ``PAIR_POINTS``.
        rng: draws the replicates.
        replicates: their number.
    """
    counts = (np.asarray(pair_scores, float)[:, None] == PAIR_POINTS).sum(axis=0)
    weights = rng.dirichlet(counts + PRIOR_PAIRS / len(PAIR_POINTS), size=replicates)
    shares: NDArray[np.float64] = weights @ PAIR_POINTS / 2.0
    return shares


def score_interval(pair_scores: Sequence[float], seed: int = 0) -> Interval:
    """95 % interval of the score a game (win 1, draw 0.5); it contains the score. (0, 1) when nothing was played."""
    if len(pair_scores) == 0:
        return (0.0, 1.0)
    score = float(np.mean(pair_scores)) / 2.0
    low, high = percentiles(score_replicates(pair_scores, np.random.default_rng(seed)))
    return (min(low, score), max(high, score))


def mean_interval(sums: NDArray[np.float64], counts: NDArray[np.int64], seed: int = 0) -> Interval | None:
    """95 % interval of the mean of numbers that come in groups, by the Bayesian bootstrap over the groups.

    Args:
        sums: (n,) float64, of each group.
        counts: (n,) int64, numbers in each group, 1 or more.
        seed: of the replicates.

    Returns:
        It contains the mean; None where fewer than two groups leave nothing to tell it from.
    """
    if len(sums) < 2:
        return None
    rng = np.random.default_rng(seed)
    replicates = np.empty(REPLICATES)
    for place in range(REPLICATES):
        weights = rng.standard_exponential(len(sums))
        replicates[place] = (weights @ sums) / (weights @ counts)
    mean = float(sums.sum() / counts.sum())
    low, high = percentiles(replicates)
    return (min(low, mean), max(high, mean))


def percentiles(replicates: NDArray[np.float64]) -> Interval:
    """The 2.5 and 97.5 % points of (replicates,) numbers."""
    low, high = np.percentile(replicates, _PERCENTILES)
    return (float(low), float(high))
