import itertools
import math

import numpy as np
import pytest

from training.intervals import PAIR_POINTS, score_interval, score_replicates, wilson
from training.ratings import PairResults, bradley_terry, fit_ratings


def test_wilson_gives_the_textbook_numbers() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson(20, 20) == pytest.approx((0.8389, 1.0), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_score_interval_covers_the_truth_in_about_95_of_100_matches() -> None:
    rng = np.random.default_rng(1)
    chances = np.array([0.1, 0.1, 0.3, 0.2, 0.3])
    truth = float(chances @ PAIR_POINTS) / 2
    covered = 0
    for match in range(400):
        low, high = score_interval(list(rng.choice(PAIR_POINTS, size=60, p=chances)), seed=match)
        covered += low <= truth <= high
    assert 0.91 <= covered / 400 <= 0.985


@pytest.mark.parametrize("points", [0.0, 1.0, 2.0])
def test_an_interval_keeps_a_width_when_all_pairs_end_alike(points: float) -> None:
    low, high = score_interval([points] * 50)
    assert low <= points / 2 <= high
    assert 0.01 < high - low < 0.1
    wider = score_interval([points] * 5)
    assert wider[1] - wider[0] > high - low


def test_score_interval_of_nothing_is_everything() -> None:
    assert score_interval([]) == (0.0, 1.0)


def test_swapped_sides_that_cancel_out_narrow_the_interval() -> None:
    cancelling = score_interval([1.0] * 100)
    swinging = score_interval([0.0, 2.0] * 50)
    assert cancelling[1] - cancelling[0] < 0.5 * (swinging[1] - swinging[0])


def test_replicates_scatter_around_the_score() -> None:
    replicates = score_replicates([2.0, 1.5, 1.0, 0.0] * 25, np.random.default_rng(0), 4000)
    assert replicates.mean() == pytest.approx(1.125 / 2, abs=0.01)
    assert replicates.shape == (4000,)


def test_two_players_are_rated_by_the_log_odds_of_their_score() -> None:
    ratings = fit_ratings([PairResults("a", "random", (2.0, 1.0, 2.0, 1.5))], "random")
    share = (6.5 + 1.0) / (8.0 + 2.0)  # with the two imagined draws
    assert ratings[0].name == "a"
    assert ratings[0].elo == pytest.approx(400 * math.log10(share / (1 - share)))
    assert ratings[0].games == 8
    assert (ratings[1].elo, ratings[1].low, ratings[1].high) == (0.0, 0.0, 0.0)


def test_it_does_not_matter_who_is_named_first() -> None:
    one = {r.name: r.elo for r in fit_ratings([PairResults("a", "b", (2.0, 1.5, 0.0))], "b")}
    other = {r.name: r.elo for r in fit_ratings([PairResults("b", "a", (0.0, 0.5, 2.0))], "b")}
    assert one == pytest.approx(other)


def test_who_wins_everything_is_rated_finitely_and_higher_with_more_games() -> None:
    few, many = (fit_ratings([PairResults("a", "random", (2.0,) * n)], "random")[0] for n in (10, 1000))
    assert few.elo is not None
    assert many.elo is not None
    assert few.low is not None
    assert few.high is not None
    assert 300 < few.elo < many.elo < 2000
    assert 0 < few.low < few.elo < few.high < 1e4


def test_strengths_are_recovered_from_simulated_games() -> None:
    truth = {"random": 0.0, "weak": 150.0, "middle": 300.0, "strong": 500.0}
    rng = np.random.default_rng(3)
    results = []
    for one, other in itertools.combinations(truth, 2):
        chance = 1 / (1 + 10 ** ((truth[other] - truth[one]) / 400))
        results.append(PairResults(one, other, tuple(rng.binomial(2, chance, size=300).astype(float))))
    ratings = fit_ratings(results, "random", seed=5)
    assert [rating.name for rating in ratings] == ["strong", "middle", "weak", "random"]
    for rating in ratings:
        assert rating.elo == pytest.approx(truth[rating.name], abs=45)
        assert rating.low is not None
        assert rating.high is not None
        assert rating.low <= rating.elo <= rating.high
        assert rating.high - rating.low < 150


def test_players_not_joined_to_the_anchor_have_no_rating() -> None:
    results = [PairResults("a", "random", (1.0, 2.0)), PairResults("x", "y", (2.0,)), PairResults("z", "a", ())]
    ratings = {rating.name: rating for rating in fit_ratings(results, "random")}
    assert ratings["a"].elo is not None
    assert ratings["x"].elo is ratings["y"].elo is ratings["z"].elo is None
    assert ratings["z"].games == 0


def test_anchor_must_play() -> None:
    with pytest.raises(ValueError, match=r"anchor 'greedy' did not play; players: a, b"):
        fit_ratings([PairResults("a", "b", (1.0,))], "greedy")


def test_fit_is_at_the_maximum_of_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(1, 20, size=(1, 4, 4))
    points[0][np.diag_indices(4)] = 0
    best = bradley_terry(points, 0)[0]

    def likelihood(strengths: np.ndarray) -> float:
        chances = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        return float((points[0] * np.log(chances)).sum())

    for moved in range(1, 4):
        for by in (-0.01, 0.01):
            other = best.copy()
            other[moved] += by
            assert likelihood(other) < likelihood(best)


def test_intervals_cover_the_truth_in_about_95_of_100_tournaments() -> None:
    truth = {"random": 0.0, "weak": 120.0, "strong": 300.0}
    draws = 0.3
    covered = 0
    for tournament in range(150):
        rng = np.random.default_rng(tournament)
        results = []
        for one, other in itertools.combinations(truth, 2):
            score = 1 / (1 + 10 ** ((truth[other] - truth[one]) / 400))
            drawn = draws * min(score, 1 - score) * 2
            chances = [1 - score - drawn / 2, drawn, score - drawn / 2]
            games = rng.choice([0.0, 0.5, 1.0], size=(80, 2), p=chances)
            results.append(PairResults(one, other, tuple(games.sum(axis=1))))
        for rating in fit_ratings(results, "random", seed=tournament):
            if rating.name == "random":
                continue
            assert rating.low is not None
            assert rating.high is not None
            covered += rating.low <= truth[rating.name] <= rating.high
    assert 0.91 <= covered / 300 <= 0.985
