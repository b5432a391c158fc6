"""``env()`` against PettingZoo's wrappers as they come, side by side on every kind of use."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pettingzoo.utils import wrappers
from pettingzoo.utils.env_logger import EnvLogger

import tradgames_env as tg

READ = (
    "agents",
    "agent_selection",
    "num_agents",
    "rewards",
    "_cumulative_rewards",
    "terminations",
    "truncations",
    "infos",
)


def plain_env(game: str, **kwargs: Any) -> Any:
    judge = wrappers.TerminateIllegalWrapper(tg.raw_env(game, **kwargs), illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(judge))


def both(game: str, **kwargs: Any) -> tuple[Any, Any]:
    return plain_env(game, **kwargs), tg.env(game, **kwargs)


def comparable(value: Any) -> Any:
    """Nested data with its arrays as bytes, which are many times as fast as their texts."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, dict):
        return [(key, comparable(item)) for key, item in value.items()]
    if isinstance(value, tuple | list):
        return [comparable(item) for item in value]
    return value if isinstance(value, str | int | float | None) else type(value).__name__


def outcome(work: Callable[[], Any]) -> Any:
    """What comes of it: what is returned, raised and warned of."""
    EnvLogger.mqueue.clear()
    try:
        result = comparable(work())
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    return result, list(EnvLogger.mqueue)


def standing(env: Any) -> list[Any]:
    """Everything that can be read of an environment."""
    return [outcome(lambda name=name: getattr(env, name)) for name in READ]


def assert_same(plain: Any, quick: Any, work: Callable[[Any], Any]) -> None:
    assert outcome(lambda: work(plain)) == outcome(lambda: work(quick))
    assert standing(plain) == standing(quick)


def legal_action(env: Any, draw: np.random.Generator) -> int:
    mover = env.agent_selection
    seen = env.unwrapped.observe(mover)
    mask = seen["action_mask"] if isinstance(seen, dict) else env.infos[mover]["action_mask"]
    return int(draw.choice(np.flatnonzero(mask)))


def seen_by(agent: str) -> Callable[[Any], Any]:
    return lambda env: env.observe(agent)


def played(action: Any) -> Callable[[Any], None]:
    def step(env: Any) -> None:
        env.step(action)

    return step


@pytest.mark.parametrize("mask_in", ["obs", "info", "both"])
@pytest.mark.parametrize("kind", [int, np.int64, np.int32])
def test_a_whole_game(game: str, mask_in: str, kind: Callable[[int], Any]) -> None:
    plain, quick = both(game, mask_in=mask_in, max_cycles=60)
    draw = np.random.default_rng(3)
    for seed in (1, 2):
        assert_same(plain, quick, lambda env, seed=seed: env.reset(seed=seed))
        while plain.agents:
            if draw.random() < 0.7:
                assert_same(plain, quick, lambda env: env.last())
            if draw.random() < 0.2:
                assert_same(plain, quick, seen_by(str(draw.choice(plain.possible_agents))))
            over = plain.terminations[plain.agent_selection] or plain.truncations[plain.agent_selection]
            assert_same(plain, quick, played(None if over else kind(legal_action(plain, draw))))
        assert_same(plain, quick, lambda env: env.last())
        assert_same(plain, quick, played(0))


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize(
    "wrong", [-1, 10_000, 3.5, "x", None, True, np.int64(-1), np.int64(10_000), np.float32(1), [1], np.array([1])]
)
def test_what_is_no_action(game: str, wrong: Any, looks: bool) -> None:
    plain, quick = both(game)
    draw = np.random.default_rng(0)
    for env in (plain, quick):
        env.reset(seed=4)
    for _ in range(3):
        action = legal_action(plain, draw)
        assert_same(plain, quick, played(action))
    if looks:
        assert_same(plain, quick, lambda env: env.last())
    assert_same(plain, quick, played(wrong))
    assert_same(plain, quick, lambda env: env.last())


@pytest.mark.parametrize("looks", [True, False])
def test_an_illegal_move_and_what_follows(game: str, looks: bool) -> None:
    plain, quick = both(game)
    for env in (plain, quick):
        env.reset(seed=6)
    illegal = int(np.flatnonzero(plain.unwrapped.observe(plain.agent_selection)["action_mask"] == 0)[0])
    if looks:
        assert_same(plain, quick, lambda env: env.last())
    assert_same(plain, quick, played(illegal))
    assert not all(plain.rewards.values())
    assert_same(plain, quick, played(illegal))
    while plain.agents:
        assert_same(plain, quick, lambda env: env.last())
        assert_same(plain, quick, played(None))
    assert_same(plain, quick, played(0))
    assert_same(plain, quick, lambda env: env.reset(seed=6))
    assert_same(plain, quick, played(legal_action(plain, np.random.default_rng(0))))


def test_a_mask_of_ones_makes_no_other_action_legal(game: str) -> None:
    plain, quick = both(game, max_cycles=1)
    for env in (plain, quick):
        env.reset(seed=1)
        env.last()[0]["action_mask"][:] = 1
    assert_same(plain, quick, played(-1))
    assert_same(plain, quick, played(legal_action(plain, np.random.default_rng(0))))
    while plain.agents:
        for env in (plain, quick):
            env.observe(env.agent_selection)["action_mask"][:] = 1
        assert_same(plain, quick, played(0))
        assert_same(plain, quick, played(None))
    for env in (plain, quick):
        env.observe(env.agent_selection)["action_mask"][:] = 1
    assert_same(plain, quick, played(0))


def test_a_mask_that_the_caller_has_changed(game: str) -> None:
    plain, quick = both(game)
    for value in (0, 1):
        for env in (plain, quick):
            env.reset(seed=1)
        masks = [env.last()[0]["action_mask"] for env in (plain, quick)]
        action = int(np.flatnonzero(masks[0] != value)[0])
        for mask in masks:
            mask[action] = value
        assert_same(plain, quick, played(action))


def test_a_mask_that_the_caller_has_taken_out() -> None:
    plain, quick = both("yote")
    for env in (plain, quick):
        env.reset(seed=1)
        env.last()[0].pop("action_mask")
    assert_same(plain, quick, played(0))
    assert_same(plain, quick, played(0))


@pytest.mark.parametrize(
    "work",
    [
        lambda env: env.step(0),
        lambda env: env.observe("player_0"),
        lambda env: env.last(),
        lambda env: env.state(),
        lambda env: env.render(),
        lambda env: env.agent_iter(),
        lambda env: env.no_such_thing,
        lambda env: env._private,
        str,
    ],
)
def test_before_the_first_reset(work: Callable[[Any], Any]) -> None:
    plain, quick = both("yote")
    assert_same(plain, quick, work)
    assert not hasattr(quick, "agents")


def test_iterating_with_steps_and_without() -> None:
    plain, quick = both("yote")
    for env in (plain, quick):
        env.reset(seed=1)
        for _ in env.agent_iter(20):
            env.step(int(np.flatnonzero(env.last()[0]["action_mask"])[0]))
    assert_same(plain, quick, lambda env: tuple(env.agent_iter()))
    assert_same(plain, quick, seen_by("player_9"))


def test_it_is_made_of_pettingzoos_wrappers() -> None:
    plain, quick = both("yote")
    while plain is not plain.unwrapped:
        assert isinstance(quick, type(plain))
        assert str(quick) == str(plain)
        plain, quick = plain.env, quick.env
    assert type(quick) is type(plain)


def test_attributes_set_from_outside_are_read_back() -> None:
    for env in both("yote"):
        env.reset(seed=1)
        env.infos = "mine"
        assert env.infos == "mine"
        assert copy.deepcopy(env).infos == pickle.loads(pickle.dumps(env)).infos == "mine"
