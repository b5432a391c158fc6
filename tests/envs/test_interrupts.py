"""Ctrl-C at any time: what a batch says of its games stays true, and what is called next meets nothing half done."""

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def interrupted(seconds: float = 0.02) -> Iterator[None]:
    """What is done inside takes longer than this, and is interrupted."""
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def assert_arrays_follow(games: tg.BatchGames) -> None:
    positions = [games.position(i) for i in range(games.num_games)]
    assert (games.action_masks == np.stack([position.action_mask() for position in positions])).all()
    fresh = games.encoder.encode(games.states, games.histories, games.seats)
    assert (games.observations == fresh).all()
    assert games.to_move.tolist() == [position.to_move for position in positions]


@pytest.mark.parametrize("restart_finished", [True, False])
def test_interrupted_random_play_leaves_true_masks(restart_finished: bool) -> None:
    games = tg.BatchGames("puluc", num_games=64, seed=1, num_threads=1, restart_finished=restart_finished)
    for _ in range(3):
        with interrupted():
            games.play_random(20_000)
        assert_arrays_follow(games)
        games.step(games.action_masks.argmax(axis=1))
        assert_arrays_follow(games)
