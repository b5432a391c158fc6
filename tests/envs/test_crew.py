"""The threads of a batch: they end when they should, and what comes out does not depend on them."""

import gc
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tradgames_env.envs import crew


def helpers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("tradgames-")]


def trace(games: tg.BatchGames, pause: float = 0.0) -> list[bytes]:
    seen = []
    for _ in range(20):
        games.step(games.sample_legal_actions())
        seen.append(games.observations.tobytes() + games.action_masks.tobytes() + games.rewards.tobytes())
        time.sleep(pause)
    return seen


@pytest.fixture(scope="module")
def alone() -> list[bytes]:
    return trace(tg.BatchGames("yote", num_games=1000, seed=1, num_threads=1))


def test_helpers_end_with_their_batch() -> None:
    # Those of a batch of an earlier test may end at any time from here on.
    others = set(helpers())
    games = tg.BatchGames("puluc", num_games=1000, seed=0, num_threads=3)
    assert len(set(helpers()) - others) == 2
    games.close()
    assert not set(helpers()) - others
    games.step(games.sample_legal_actions())
    assert len(set(helpers()) - others) == 2
    del games
    gc.collect()
    deadline = time.monotonic() + 10
    while set(helpers()) - others and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not set(helpers()) - others


def test_small_batches_have_no_helpers() -> None:
    before = len(helpers())
    games = tg.BatchGames("puluc", num_games=100, seed=0, num_threads=8)
    games.step(games.sample_legal_actions())
    assert len(helpers()) == before


@pytest.mark.parametrize("threads", [2, 7])
def test_more_threads_than_cores_play_the_same_games(alone: list[bytes], threads: int) -> None:
    assert trace(tg.BatchGames("yote", num_games=1000, seed=1, num_threads=threads)) == alone


def test_helpers_that_slept_play_the_same_games(alone: list[bytes]) -> None:
    assert trace(tg.BatchGames("yote", num_games=1000, seed=1, num_threads=3), pause=0.005) == alone


def test_batches_in_several_threads_do_not_meet(alone: list[bytes]) -> None:
    traces: list[list[bytes]] = []

    def play() -> None:
        traces.append(trace(tg.BatchGames("yote", num_games=1000, seed=1, num_threads=2)))

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert traces == [alone] * 4


def assert_ends_well(script: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize("last", ["", "time.sleep(0.01)", "del games", "games.close()"])
def test_a_program_may_end_whatever_its_helpers_do(last: str) -> None:
    assert_ends_well(
        "import time, tradgames_env as tg\n"
        "games = tg.BatchGames('puluc', num_games=1000, seed=0, num_threads=3)\n"
        "games.step(games.sample_legal_actions())\n"
        f"{last}\n"
    )


@pytest.mark.parametrize("last", ["", "del games", "games.close()"])
def test_a_program_may_end_while_helpers_play(last: str) -> None:
    assert_ends_well(
        "import contextlib, signal, time, numpy as np, tradgames_env as tg\n"
        "games = tg.BatchGames('puluc', num_games=128, seed=0, num_threads=2)\n"
        "moves = np.zeros(128, np.int64)\n"
        "moves[[0, 127]] = 700_000, 4_000_000\n"
        "time.sleep(0.02)\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.02)\n"
        "with contextlib.suppress(KeyboardInterrupt):\n"
        "    games.play_random(moves)\n"
        f"{last}\n"
    )


def test_an_error_of_a_helper_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*place: Any) -> None:
        place[3][crew._NEXT + crew._LINE * place[4]] += 1  # the chunk that it takes stays undone
        raise MemoryError("of a helper")

    games = tg.BatchGames("puluc", num_games=128, seed=0, num_threads=2)
    time.sleep(0.05)  # now the helper waits to be woken
    monkeypatch.setattr(crew, "_attend", die)
    moves = np.where(np.arange(128) == 0, 3_000_000, 1)
    with pytest.raises(RuntimeError, match="ended with an error") as told:
        games.play_random(moves)
    assert isinstance(told.value.__cause__, MemoryError)
    with pytest.raises(RuntimeError, match="ended with an error"):
        games.step(games.action_masks.argmax(axis=1))


def test_garbage_collected_under_a_lock_of_the_threads() -> None:
    assert_ends_well(
        "import gc, threading, tradgames_env as tg\n"
        "for _ in range(20):\n"
        "    games = tg.BatchGames('puluc', num_games=200, seed=0, num_threads=2)\n"
        "    games.itself = games\n"
        "    del games\n"
        "    with threading._active_limbo_lock:\n"  # as it is while the interpreter lists or starts threads
        "        gc.collect()\n"
    )
