"""SuperSuit's wrappers and Shimmy's view, as far as they can work."""

from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test

import tradgames_env as tg
from tests.integrations.tutorials import run_tutorial

pytest.importorskip("supersuit", reason="pip install 'tradgames-env[pettingzoo]'")

from tradgames_env.integrations.supersuit import _USELESS, wrap

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

WRAPPERS: dict[str, tuple[Any, ...]] = {
    "agent_indicator_v0": (),
    "clip_reward_v0": (),
    "delay_observations_v0": (2,),
    "dtype_v0": ("float16",),
    "flatten_v0": (),
    "frame_stack_v1": (3,),
    "max_observation_v0": (2,),
    "nan_noop_v0": (0,),
    "nan_random_v0": (),
    "nan_zeros_v0": (),
    "normalize_obs_v0": (),
    "pad_action_space_v0": (),
    "pad_observations_v0": (),
    "reshape_v0": ((30, 7),),
}


def play(env: Any, seed: int) -> dict[str, float]:
    choose = np.random.default_rng(seed)
    env.reset(seed=seed)
    paid = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        assert env.observation_space(agent).contains(observation)
        paid[agent] += reward
        over = terminated or truncated
        env.step(None if over else int(choose.choice(np.flatnonzero(info["action_mask"]))))
    return paid


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers(name: str) -> None:
    bare = tg.raw_env("puluc", "mini", mask_in="info")
    # The bare game raises on an illegal action, and plays on alike whatever is wrapped around it.
    wrapped = play(wrap(bare, name, *WRAPPERS[name]), seed=5)
    assert wrapped == play(tg.raw_env("puluc", "mini", mask_in="info"), seed=5)
    assert sorted(wrapped.values()) == [-1.0, 1.0]


def test_what_is_refused() -> None:
    for name in _USELESS:
        with pytest.raises(ValueError, match=f"SuperSuit's {name} cannot work in these games"):
            wrap(tg.env("puluc", "mini", mask_in="info"), name)
    with pytest.raises(ValueError, match="make the game with mask_in='info'"):
        wrap(tg.env("puluc", "mini"), "flatten_v0")
    with pytest.raises(ValueError, match="SuperSuit has no wrapper 'flat_v9'"):
        wrap(tg.env("puluc", "mini", mask_in="info"), "flat_v9")


@pytest.mark.parametrize("name", ["petteia", "puluc", "yote", "yut_nori"])
def test_shimmy_shows_openspiels_games(name: str) -> None:
    pytest.importorskip("pyspiel", reason="pip install 'tradgames-env[openspiel]'")
    compatibility = pytest.importorskip("shimmy.openspiel_compatibility", reason="pip install shimmy")
    from tradgames_env.integrations import openspiel

    env = compatibility.OpenSpielCompatibilityV0(game_name=f"python_{name}", config={"variant": "mini"})
    assert env.action_space("player_0").n == openspiel._CLASSES[name]({"variant": "mini"}).num_distinct_actions()
    api_test(env, num_cycles=50)


def test_tutorial() -> None:
    said = run_tutorial("pettingzoo_loop", steps=0)
    assert "stacked observations: (30, 1, 21)" in said
    assert "sticky_actions_v0 cannot work" in said
