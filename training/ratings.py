"""Ratings in Elo points, fitted to all results at once.

The model is Bradley & Terry's (Biometrika 39, 1952): i is expected to score 1 / (1 + 10^((Rj - Ri) / 400)) against j.
A draw is half a win and half a loss, as in BayesElo and Ordo. As in BayesElo (R. Coulom), players who met are given two
imagined draws, so that a rating is finite even for who won or lost everything. The log-likelihood is concave, and
Newton's method finds its maximum; the anchor is held at 0. Intervals: the fit is repeated on Bayesian bootstrap
replicates over pairs of games, of which those draws are the prior, see ``intervals``. All replicates are fitted at
once; choix, the library for this model, fits one table at a time.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.intervals import PRIOR_PAIRS, percentiles, score_replicates

ELO_PER_LOGIT = 400.0 / math.log(10.0)
"""Elo points that one unit of log-odds is worth."""

REPLICATES = 500

_NEWTON_STEPS = 200
# Largest change of a rating in one Newton step, in log-odds: far from the maximum the full step may overshoot.
_LONGEST_STEP = 1.0
_TOLERANCE = 1e-7
# Replicates in which a player scores less than this many points are at the limits of floating point, far beyond the
# percentiles that are reported.
_FEWEST_POINTS = 1e-3


@dataclasses.dataclass(frozen=True)
class PairResults:
    """What ``first`` scored against ``second``: points of each pair of games, members of ``intervals.PAIR_POINTS``."""

    first: str
    second: str
    pair_scores: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Rating:
    """Elo of a player relative to the anchor, with its 95 % interval; None where no results lead to the anchor."""

    name: str
    elo: float | None
    low: float | None
    high: float | None
    games: int


def fit_ratings(results: Sequence[PairResults], anchor: str, *, seed: int = 0) -> list[Rating]:
    """Ratings of everyone in ``results``, best first, with ``anchor`` at 0.

    Args:
        results: all that was played; the same two players may meet several times.
        anchor: the player held at 0.
        seed: of the bootstrap.

    Raises:
        ValueError: the anchor did not play.
    """
    names = list(dict.fromkeys(name for result in results for name in (result.first, result.second)))
    if anchor not in names:
        raise ValueError(f"the anchor {anchor!r} did not play; players: {', '.join(names) or 'none'}")
    played = [result for result in results if result.pair_scores and result.first != result.second]
    rated = _joined_to(anchor, played)
    index = {name: i for i, name in enumerate(name for name in names if name in rated)}
    games = {name: sum(2 * len(r.pair_scores) for r in played if name in (r.first, r.second)) for name in names}
    tables = _points(played, index, np.random.default_rng(seed))
    elo = bradley_terry(tables, index[anchor]) * ELO_PER_LOGIT
    ratings = [_rating(name, elo[:, index[name]] if name in rated else None, games[name]) for name in names]
    return sorted(ratings, key=lambda rating: -math.inf if rating.elo is None else rating.elo, reverse=True)


def _rating(name: str, elo: NDArray[np.float64] | None, games: int) -> Rating:
    """From (1 + REPLICATES,) numbers, the first of which is the rating."""
    if elo is None:
        return Rating(name, None, None, None, games)
    value = float(elo[0])
    low, high = percentiles(elo[1:])
    return Rating(name, value, min(low, value), max(high, value), games)


def bradley_terry(points: NDArray[np.float64], anchor: int) -> NDArray[np.float64]:
    """(B, n) float64 strengths in log-odds, the anchor's 0, for B result tables at once.

    Args:
        points: (B, n, n) float64; ``points[b, i, j]`` is what i scored against j. The games must join all n players,
            and of two who met both must have scored.
        anchor: index of the player held at 0.

    Raises:
        ArithmeticError: Newton's method did not converge, which finite results never cause.
    """
    games = points + points.transpose(0, 2, 1)
    strengths = np.zeros(points.shape[:2])
    free = np.arange(points.shape[1]) != anchor
    if not free.any():
        return strengths
    for _ in range(_NEWTON_STEPS):
        expected = 1.0 / (1.0 + np.exp(strengths[:, None, :] - strengths[:, :, None]))
        gradient = (points - games * expected).sum(axis=2)
        weights = games * expected * (1.0 - expected)
        curvature = -weights
        diagonal = np.arange(points.shape[1])
        curvature[:, diagonal, diagonal] = weights.sum(axis=2) - weights[:, diagonal, diagonal]
        step = np.linalg.solve(curvature[:, free][:, :, free], gradient[:, free, None])[:, :, 0]
        strengths[:, free] += np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            return strengths
    raise ArithmeticError(f"ratings did not converge in {_NEWTON_STEPS} steps")


def _points(results: Sequence[PairResults], index: dict[str, int], rng: np.random.Generator) -> NDArray[np.float64]:
    """(1 + REPLICATES, n, n) float64: what each scored against each, then as it might as well have come out.

    Imagined draws included.
    """
    tables = np.zeros((1 + REPLICATES, len(index), len(index)))
    for result in results:
        if result.first not in index:
            continue
        i, j = index[result.first], index[result.second]
        games = 2 * (len(result.pair_scores) + PRIOR_PAIRS)
        scored = np.append(
            sum(result.pair_scores) + PRIOR_PAIRS, games * score_replicates(result.pair_scores, rng, REPLICATES)
        ).clip(_FEWEST_POINTS, games - _FEWEST_POINTS)
        tables[:, i, j] += scored
        tables[:, j, i] += games - scored
    return tables


def _joined_to(anchor: str, results: Sequence[PairResults]) -> set[str]:
    """Players whom a chain of games joins to the anchor, itself included."""
    reached = {anchor}
    while True:
        meeting = [{r.first, r.second} for r in results if {r.first, r.second} & reached]
        grown = reached.union(*meeting)
        if grown == reached:
            return reached
        reached = grown
