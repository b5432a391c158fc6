"""Ctrl-C at any time: what a batch says of its games stays true, and what is called next meets nothing half done."""

import contextlib
import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def interrupted(seconds: float = 0.02) -> Iterator[None]:
    """What is done inside takes longer than this, and is interrupted."""
    begun = False

    def ring(*_: Any) -> None:
        if begun:
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, seconds)  # a busy machine took that long to come to the work

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        begun = True
        yield
    except KeyboardInterrupt:
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    pytest.fail("it was done before the interrupt")


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


MOVES = np.zeros(128, np.int64)
"""Much to do in the first share, so that the helper comes to the last game by itself, and there more."""
MOVES[[0, 127]] = 2_000_000, 8_000_000


def at_work() -> tuple[tg.BatchGames, dict[str, Any]]:
    """A batch whose helper plays on after an interrupted call, and the state before that call."""
    games = tg.BatchGames("puluc", num_games=128, seed=1, num_threads=2)
    saved = games.get_state()
    time.sleep(0.05)  # now the helper waits to be woken
    with interrupted():
        games.play_random(MOVES)
    return games, saved


READING: list[Callable[[tg.BatchGames], Any]] = [
    tg.BatchGames.get_state,
    lambda games: games.position(127),
    lambda games: games.is_legal(np.zeros(128, np.int64)),
    pickle.dumps,
]


@pytest.mark.parametrize("read", READING)
def test_what_reads_waits_for_the_interrupted_call(read: Callable[[tg.BatchGames], Any]) -> None:
    games, saved = at_work()
    read(games)
    states = games.states.copy()
    assert (states[127] != saved["states"][127]).any()
    time.sleep(0.02)
    assert (games.states == states).all()
    assert_arrays_follow(games)


def test_a_state_set_after_an_interrupt_stays() -> None:
    games, saved = at_work()
    games.set_state(saved)
    time.sleep(0.02)
    assert all((array == saved[name]).all() for name, array in games.get_state().items())
    assert_arrays_follow(games)


def test_a_seed_given_after_an_interrupt_counts() -> None:
    games, saved = at_work()
    games.reset(seed=1)
    time.sleep(0.02)
    assert all((array == saved[name]).all() for name, array in games.get_state().items())
    assert_arrays_follow(games)


def test_a_position_loaded_after_an_interrupt_stays() -> None:
    games, _ = at_work()
    position = tg.BatchGames("puluc", num_games=1, seed=9).position(0)
    games.load(127, position)
    time.sleep(0.02)
    assert games.position(127).text() == position.text()
    assert_arrays_follow(games)


def everyone() -> Any:
    return np.ones(128, np.bool_)


PLAYING: list[Callable[[tg.BatchGames], Any]] = [
    lambda games: games.step(games.sample_legal_actions()),
    lambda games: games.step_some(games.sample_legal_actions(), everyone()),
    lambda games: games.restart(everyone()),
    lambda games: games.play_random(1),
]


@pytest.mark.parametrize("play", PLAYING)
def test_what_plays_waits_for_the_interrupted_call(play: Callable[[tg.BatchGames], Any]) -> None:
    games, _ = at_work()
    calm = tg.BatchGames("puluc", num_games=128, seed=1, num_threads=1)
    calm.play_random(MOVES)
    for batch in (games, calm):
        play(batch)
    time.sleep(0.02)
    assert all((array == calm.get_state()[name]).all() for name, array in games.get_state().items())
    assert_arrays_follow(games)


def test_an_interrupt_before_the_masks_of_a_set_state_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    games = tg.BatchGames("puluc", num_games=8, seed=1, num_threads=1)
    saved = games.get_state()
    games.play_random(30)
    calls = (lambda: games.set_state(saved), lambda: games.load(3, tg.BatchGames("puluc", seed=9).position(0)))
    for call in calls:
        with monkeypatch.context() as patch:
            patch.setattr(games, "_everywhere", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                call()
        games.is_legal(np.zeros(8, np.int64))
        assert_arrays_follow(games)


def test_a_fork_amid_the_work_of_helpers_is_refused() -> None:
    games, _ = at_work()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of any fork in a process with threads
        child = os.fork()
    if child == 0:
        try:
            games.get_state()
        except RuntimeError as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    games.get_state()
    assert_arrays_follow(games)
