"""The sample kernel: each legal action has its equal share of the words, whatever the options."""

import random
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tests.rules.test_against_reference import MORE_OPTIONS, case_name
from tradgames_env.position import Position


def check_shares(game: str, variant: str, options: dict[str, Any]) -> None:
    choose = random.Random(1)
    position = Position(game, variant, seed=1, **options)
    sample, params = position.ruleset.kernels.sample, position.ruleset.params
    assert sample is not None
    for _ in range(120):
        if position.is_over:
            position.restart()
        legal = position.legal_actions()
        count = len(legal)
        # The first and the last upper half word of each share.
        firsts = [-(-(k << 32) // count) for k in range(count)]
        lasts = [(((k + 1) << 32) - 1) // count for k in range(count)]
        for words in (firsts, lasts):
            assert sorted(sample(params, *position.rows, np.uint64(word << 32)) for word in words) == legal
        position.advance(choose.choice(legal))


def test_shares_are_equal(game: str, variant: str) -> None:
    check_shares(game, variant, {})


@pytest.mark.parametrize("case", MORE_OPTIONS, ids=case_name)
def test_shares_are_equal_with_options(case: tuple[str, str, dict[str, Any]]) -> None:
    check_shares(*case)


def test_a_game_without_the_kernel_lists_its_actions(sprint: str) -> None:
    games = tg.BatchGames(sprint, num_games=300, seed=0)
    assert games.ruleset.kernels.sample is None
    drawn = np.stack([games.sample_legal_actions() for _ in range(20)])
    assert (np.bincount(drawn.ravel(), minlength=2) > 2700).all()
    assert games.play_random(50) > 300
