import numpy as np
import pytest

from training.targets import ends_within, lambda_returns, outcome_shares

Numbers = list[float]


def returns(
    values: Numbers,
    final: float,
    ended: int | None,
    trace: float,
    expected: Numbers | None = None,
    cut: tuple[int, ...] = (),
) -> Numbers:
    steps = len(values)
    column = np.array(values, np.float32)[:, None, None]
    ends = np.zeros((steps, 1), np.bool_)
    if ended is not None:
        ends[ended] = True
    careless = np.zeros((steps, 1), np.bool_)
    careless[list(cut)] = True
    foreseen = column if expected is None else np.array(expected, np.float32)[:, None, None]
    found = lambda_returns(column, foreseen, np.full((steps, 1, 1), final, np.float32), ends, careless, trace)
    return [round(float(number), 5) for number in found[:, 0, 0]]


def test_results_alone_with_a_trace_of_one() -> None:
    assert returns([0.1, -0.3, 0.2], -1.0, 2, 1.0) == [-1, -1, -1]


def test_the_search_alone_with_a_trace_of_zero() -> None:
    assert returns([0.1, -0.3, 0.2], -1.0, 2, 0.0) == [0.1, -0.3, 0.2]


def test_a_mixture_by_hand() -> None:
    third = 0.2 * 0.2 + 0.8 * -1.0
    second = 0.2 * -0.3 + 0.8 * third
    assert returns([0.1, -0.3, 0.2], -1.0, 2, 0.8) == pytest.approx([0.2 * 0.1 + 0.8 * second, second, third], abs=1e-5)


def test_nothing_passes_from_one_game_to_the_one_before() -> None:
    assert returns([0.1, 0.3, -0.9], 1.0, 1, 1.0) == [1, 1, -0.9]


def test_where_no_more_is_known_it_is_the_value() -> None:
    assert returns([0.1, 0.4], 1.0, None, 1.0) == pytest.approx([0.4, 0.4])


def test_a_random_move_says_nothing_of_the_position_before_it() -> None:
    assert returns([0.1, 0.4, 0.6], 1.0, 2, 1.0, cut=(1,)) == pytest.approx([0.4, 0.4, 1.0])


def test_the_luck_of_a_throw_is_left_out() -> None:
    # A good throw raises what is expected from .1 to .5; what comes after it is worth .4, so .1 less than foreseen.
    assert returns([0.1, 0.4], 0.0, None, 1.0, expected=[0.5, 0.4]) == pytest.approx([0.0, 0.4])


def test_a_bonus_keeps_the_view() -> None:
    # Numbers are natural's. Natural decides twice, then black wins: all see the same game.
    targets = returns([0.3, 0.2, -0.5], -1.0, 2, 1.0)
    signs = [1, 1, -1]  # natural, natural again (a bonus), black
    assert [sign * target for sign, target in zip(signs, targets, strict=True)] == [-1, -1, 1]


def test_games_over_by_the_end_of_the_window() -> None:
    ended = np.array([[False, False], [True, False], [False, False]])
    assert ends_within(ended).tolist() == [[True, False], [True, False], [False, False]]


def test_shares_have_the_expectations_asked_for() -> None:
    results, draws = np.array([0.0, 0.5, -1.0, 0.8], np.float32), np.array([1.0, 0.3, 0.7, 0.9], np.float32)
    shares = outcome_shares(results, draws)
    assert shares.min() >= 0
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert shares[:, 0] - shares[:, 2] == pytest.approx(results, abs=1e-6)
    # Where they contradict, the result counts.
    assert shares[:, 1] == pytest.approx([1.0, 0.3, 0.0, 0.2], abs=1e-6)
