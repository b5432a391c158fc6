import math

import numpy as np
import pytest

from training.intervals import PAIR_POINTS
from training.sprt import SequentialTest


def ratio_by_descent(counts: np.ndarray, elo0: float, elo1: float) -> float:
    """The same ratio by Newton's method on both multipliers of Lagrange."""
    values = PAIR_POINTS / 2
    shares = counts / counts.sum()
    logs = []
    for elo in (elo0, elo1):
        score = 1 / (1 + 10 ** (-elo / 400))
        # maximise sum(shares * log(q)) where q = shares / (mu + nu * values), sum(q) = 1, q @ values = score
        x = np.array([1.0, 0.0])
        for _ in range(200):
            below = x[0] + x[1] * values
            q = shares / below
            miss = np.array([q.sum() - 1, q @ values - score])
            slope = -np.array(
                [[(q / below).sum(), (q / below) @ values], [(q / below) @ values, (q / below) @ values**2]]
            )
            step = np.linalg.solve(slope, miss)
            size = 1.0
            while ((x - size * step) @ np.array([np.ones(5), values]) <= 0).any():
                size /= 2
            x = x - size * step
        logs.append(counts @ np.log(shares / (x[0] + x[1] * values)))
    return float(logs[1] - logs[0])


def as_pairs(counts: list[int]) -> list[float]:
    return [float(points) for points, count in zip(PAIR_POINTS, counts, strict=True) for _ in range(count)]


@pytest.mark.parametrize("counts", [[10, 40, 100, 60, 15], [208, 1054, 2241, 1101, 230], [3, 2, 4, 1, 5]])
@pytest.mark.parametrize("elos", [(0.0, 5.0), (-10.0, 30.0), (0.0, 100.0)])
def test_ratio_agrees_with_an_independent_solution(counts: list[int], elos: tuple[float, float]) -> None:
    expected = ratio_by_descent(np.array(counts, float), *elos)
    assert SequentialTest(*elos).ratio(as_pairs(counts)) == pytest.approx(expected, abs=1e-6)


def test_near_hypotheses_agree_with_the_normal_approximation() -> None:
    counts = np.array([208, 1054, 2241, 1101, 230])
    values, n = PAIR_POINTS / 2, counts.sum()
    mean = counts @ values / n
    variance = counts @ (values - mean) ** 2 / n
    s0, s1 = 0.5, 1 / (1 + 10 ** (-2 / 400))
    expected = n * (s1 - s0) * (2 * mean - s0 - s1) / (2 * variance)
    assert SequentialTest(0, 2).ratio(as_pairs(list(counts))) == pytest.approx(expected, rel=0.01)


def test_two_results_alone_are_a_coin() -> None:
    # Only lost and won pairs: the ratio is that of a coin with the two scores as its chances.
    test = SequentialTest(0, 200)
    s1 = 1 / (1 + 10 ** (-200 / 400))
    expected = 30 * math.log(s1 / 0.5) + 10 * math.log((1 - s1) / 0.5)
    assert test.ratio(as_pairs([10, 0, 0, 0, 30])) == pytest.approx(expected, abs=0.02)


def test_bounds_are_those_of_wald() -> None:
    assert SequentialTest(0, 5).bounds == pytest.approx((-2.944, 2.944), abs=1e-3)


def test_verdicts() -> None:
    test = SequentialTest(0, 100)
    assert test.verdict([]) is None
    assert test.verdict([1.0, 2.0]) is None
    assert test.verdict(as_pairs([0, 0, 5, 0, 40])) == "elo1"
    assert test.verdict(as_pairs([30, 0, 20, 0, 5])) == "elo0"
    assert test.ratio(as_pairs([0, 0, 0, 0, 400])) > test.bounds[1]


def test_errors_are_as_rare_as_asked_for() -> None:
    rng = np.random.default_rng(0)
    wrong = {0.0: 0, 60.0: 0}
    for elo in wrong:
        share = 1 / (1 + 10 ** (-elo / 400))
        draws = 0.3
        chances = [share - draws / 2, draws, 1 - share - draws / 2]
        for _ in range(200):
            games = rng.choice([1.0, 0.5, 0.0], size=(1500, 2), p=chances).sum(axis=1)
            test = SequentialTest(0, 60)
            verdict = next((v for n in range(8, 1500, 8) if (v := test.verdict(games[:n]))), None)
            wrong[elo] += verdict != ("elo1" if elo else "elo0")
    assert wrong[0.0] <= 18
    assert wrong[60.0] <= 18


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((5, 5), "elo0 < elo1"), ((0, 9000), "2000"), ((0, 5, 0.0), "alpha and beta"), ((0, 5, 0.05, 0.7), "alpha")],
)
def test_wrong_tests_are_refused(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SequentialTest(*arguments)
