"""Shared fixtures: every game with every variant, and the toy game of the tests."""

from collections.abc import Iterator

import pytest

import tradgames_env as tg
from tests import toy_game
from tradgames_env.rules import registry

ALL_VARIANTS = [(game, variant) for game in tg.games() for variant in tg.variants(game)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for ``game`` and ``variant``, or for ``game`` alone, runs for all of them."""
    names = metafunc.fixturenames
    if "variant" in names and "game" in names:
        metafunc.parametrize(("game", "variant"), ALL_VARIANTS)
    elif "game" in names:
        metafunc.parametrize("game", tg.games())


@pytest.fixture
def sprint() -> Iterator[str]:
    """Name of the toy game, registered for one test."""
    tg.register_game(toy_game.RULES)
    yield toy_game.RULES.name
    del registry._registered[toy_game.RULES.name]
