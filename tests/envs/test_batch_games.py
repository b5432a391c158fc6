"""Many games as arrays: the same games whatever the number of games or threads, and nothing lost on a bad call."""

import multiprocessing
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tradgames_env.position import Position


def trace(games: tg.BatchGames, steps: int, watched: int) -> list[bytes]:
    seen = []
    for _ in range(steps):
        games.step(games.sample_legal_actions())
        seen.append(games.observations[:watched].tobytes() + games.rewards[:watched].tobytes())
    return seen


def test_games_do_not_depend_on_batch_size_or_threads(game: str, variant: str) -> None:
    one = trace(tg.BatchGames(game, variant, num_games=4, seed=5), 60, 4)
    # 600 games are split among the threads; the generators of the first four are the same.
    many = tg.BatchGames(game, variant, num_games=600, seed=5, num_threads=2)
    single = tg.BatchGames(game, variant, num_games=600, seed=5, num_threads=1)
    assert trace(many, 60, 600) == trace(single, 60, 600)
    assert one == trace(tg.BatchGames(game, variant, num_games=600, seed=5), 60, 4)


def test_arrays(game: str, variant: str) -> None:
    games = tg.BatchGames(game, variant, num_games=300, seed=1)
    ended = 0
    for _ in range(400):
        actions = games.sample_legal_actions()
        assert (games.action_masks[np.arange(300), actions] == 1).all()
        movers = games.to_move.copy()
        games.step(actions)
        assert (games.action_masks.sum(axis=1) >= 1).all()
        assert (games.rewards.sum(axis=1) == 0).all()
        over = games.terminated | games.truncated
        assert not (games.terminated & games.truncated).any()
        assert not games.rewards[~over].any()
        assert not games.rewards[games.truncated].any()
        ended += int(over.sum())
        assert set(np.unique(movers)) <= {0, 1}
    assert games.observations.dtype == np.float32
    assert games.action_masks.dtype == np.int8
    assert games.observations.min() >= -1
    assert games.observations.max() <= 1
    if variant in ("mini", "duel", "family"):
        assert ended > 300


def test_finished_games_stay_when_not_restarted() -> None:
    games = tg.BatchGames("puluc", "mini", num_games=20, seed=2, restart_finished=False)
    paid = np.zeros((20, 2))
    for _ in range(600):
        actions = np.maximum(games.sample_legal_actions(), 0)
        games.step(actions)
        paid += games.rewards
        if games.terminated.all():
            break
    assert games.terminated.all()
    assert (np.abs(paid) == 1).all()
    assert not games.action_masks.any()
    games.step(np.zeros(20, np.int64))
    assert games.terminated.all()
    assert not games.rewards.any()
    games.restart(np.arange(20) < 5)
    assert games.terminated.sum() == 15
    assert (games.action_masks[:5].sum(axis=1) > 0).all()


def test_illegal_action_is_named_and_nothing_is_played() -> None:
    games = tg.BatchGames("petteia", num_games=8, seed=0)
    actions = games.sample_legal_actions()
    actions[6] = int(np.flatnonzero(games.action_masks[6] == 0)[0])
    before = games.states.copy()
    with pytest.raises(tg.IllegalMoveError, match=rf"action {actions[6]} is not legal in game 6"):
        games.step(actions)
    assert (games.states == before).all()
    for wrong in (np.zeros(8), np.zeros(7, np.int64), np.full(8, -1), np.full(8, 10_000)):
        with pytest.raises(ValueError, match=r"actions must be|is not legal"):
            games.step(wrong)
    assert (games.states == before).all()


def test_play_random_restarts_and_counts() -> None:
    games = tg.BatchGames("puluc", num_games=64, seed=3)
    assert games.play_random(500) > 64
    assert (games.action_masks.sum(axis=1) > 0).all()
    fresh = [games.encoder.observe(games.position(i)) for i in range(64)]
    assert (games.observations == np.stack(fresh)).all()
    with pytest.raises(ValueError, match="moves must be an integer of at least 0"):
        games.play_random(-1)


def test_pickles_go_on_identically(game: str) -> None:
    games = tg.BatchGames(game, num_games=600, seed=4)
    games.play_random(20)
    twin = pickle.loads(pickle.dumps(games))
    assert trace(games, 20, 600) == trace(twin, 20, 600)


def test_unpickled_batches_own_their_memory() -> None:
    games = tg.BatchGames("puluc", num_games=300, seed=4, num_threads=2)
    games.play_random(20)
    given: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(games, protocol=5, buffer_callback=given.append)
    assert given
    # Immutable, and at odd addresses.
    buffers = [memoryview(b"x" + buffer.raw().tobytes())[1:] for buffer in given]
    before = [bytes(buffer) for buffer in buffers]
    twin = pickle.loads(stream, buffers=buffers)
    arrays = [array for array in (*vars(twin).values(), *twin._canvas) if isinstance(array, np.ndarray)]
    assert all(array.flags.writeable and array.flags.c_contiguous and array.flags.aligned for array in arrays)
    assert trace(games, 20, 300) == trace(twin, 20, 300)
    assert [bytes(buffer) for buffer in buffers] == before


def test_load_puts_a_position_into_the_batch() -> None:
    games = tg.BatchGames("petteia", num_games=4, seed=0)
    position = Position.from_text("petteia", "xx6/oo6/8/8/8/8/8/2o5 o 0 -")
    games.load(2, position)
    assert games.position(2).legal_moves() == position.legal_moves()
    actions = games.sample_legal_actions()
    actions[2] = position.parse("C1 -> C8")
    games.step(actions)
    assert games.rewards[2].tolist() == [1.0, -1.0]
    assert games.endings[2].tolist()[:2] == [1, position.ruleset.rules.reasons.index("blocked")]
    with pytest.raises(ValueError, match="cannot stand in games of"):
        games.load(0, Position("petteia", "fr6"))


def test_bad_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="num_games must be an integer of at least 1"):
        tg.BatchGames("petteia", num_games=0)
    with pytest.raises(ValueError, match="num_threads must be an integer of at least 1"):
        tg.BatchGames("petteia", num_threads=0)


def test_games_stopped_before_any_decision_are_thrown_anew() -> None:
    options = {"nak_prob": 0.9, "max_turns": 2}
    games = tg.BatchGames("yut_nori", num_games=200, seed=0, **options)
    for _ in range(20):
        assert (games.action_masks.sum(axis=1) > 0).all()
        games.step(games.sample_legal_actions())
    games.play_random(50)
    assert (games.action_masks.sum(axis=1) > 0).all()
    assert not any(Position("yut_nori", seed=seed, **options).is_over for seed in range(50))
    first = tg.BatchGames("yut_nori", num_games=50, seed=8, **options)
    assert first.position(0).text() == Position("yut_nori", seed=8, **options).text()


@pytest.mark.parametrize("index", [-1, 4, None, True, "0", 1.0])
def test_games_that_are_not_there_are_refused(index: Any) -> None:
    games = tg.BatchGames("puluc", num_games=4, seed=0)
    before = games.states.copy()
    with pytest.raises(ValueError, match="index of a game"):
        games.position(index)
    with pytest.raises(ValueError, match="index of a game"):
        games.load(index, Position("puluc"))
    assert (games.states == before).all()


@pytest.mark.parametrize("which", [None, "x", [True], [1, 0, 1, 0], np.ones(3, np.bool_)])
def test_masks_of_a_wrong_kind_are_refused(which: Any) -> None:
    games = tg.BatchGames("puluc", num_games=4, seed=0)
    before = games.states.copy()
    for call in (lambda: games.restart(which), lambda: games.step_some(games.sample_legal_actions(), which)):
        with pytest.raises(ValueError, match=r"which must be \(4,\) bool"):
            call()
    assert (games.states == before).all()


def test_play_random_by_game_and_saved_states() -> None:
    games = tg.BatchGames("yote", num_games=4, seed=0)
    before = games.states.copy()
    saved = games.get_state()
    games.play_random(np.array([0, 5, 0, 1]))
    assert (games.states == before).all(axis=1).tolist() == [True, False, True, False]
    first = trace(games, 10, 4)
    games.set_state(saved)
    games.play_random(np.array([0, 5, 0, 1]))
    assert trace(games, 10, 4) == first
    with pytest.raises(ValueError, match=r"moves must be \(4,\) integers"):
        games.play_random(np.array([1.0, 2.0, 3.0, 4.0]))
    with pytest.raises(ValueError, match="the state needs 'dice'"):
        games.set_state({**saved, "dice": saved["dice"][:2]})


def test_a_forked_child_goes_on() -> None:
    games = tg.BatchGames("puluc", num_games=1024, seed=0, num_threads=2)
    games.step(games.sample_legal_actions())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of any fork in a process with threads
        child = multiprocessing.get_context("fork").Process(target=games.play_random, args=(3,))
        child.start()
    child.join(timeout=60)
    alive = child.is_alive()
    child.kill()
    assert not alive
    assert child.exitcode == 0
