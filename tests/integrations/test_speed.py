"""Decisions a second by each library's usual way in Puluc, with random legal moves or a policy's own.

Seconds are of processor time: those of the clock would say how busy the machine is.
"""

import itertools
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

Steps = Iterator[int]


def sb3() -> Steps:
    pytest.importorskip("sb3_contrib")
    from tradgames_env.integrations.sb3 import VecGames

    games, choose = VecGames("puluc", num_envs=256, opponent="random"), np.random.default_rng(1)
    games.reset()
    while True:
        games.step_async(drawn(choose, np.stack(games.env_method("action_masks"))))
        games.step_wait()
        yield 256


def torchrl() -> Steps:
    pytest.importorskip("torchrl")
    from torchrl.envs import TransformedEnv
    from torchrl.envs.transforms import ActionMask

    from tradgames_env.integrations.torchrl import GamesEnv

    games = TransformedEnv(GamesEnv("puluc", num_envs=256, opponent="random"), ActionMask())
    step = games.reset()
    while True:
        _, step = games.step_and_maybe_reset(games.rand_action(step))
        yield 256


def openspiel() -> Steps:
    pyspiel = pytest.importorskip("pyspiel")
    import tradgames_env.integrations.openspiel  # noqa: F401 - registers the games

    game, choose = pyspiel.load_game("python_puluc"), np.random.default_rng(1)
    while True:
        state, decided = game.new_initial_state(), 0
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(int(choose.choice(outcomes, p=chances)))
                continue
            state.apply_action(int(choose.choice(state.legal_actions())))
            decided += 1
        yield decided


def tianshou() -> Steps:
    pytest.importorskip("tianshou")
    from tradgames_env.integrations.tianshou import MaskedView

    yield from one_view(MaskedView("puluc"), lambda seen, info: seen["mask"])


def gymnasium() -> Steps:
    from tradgames_env.envs.single_agent import SingleAgentEnv

    yield from one_view(SingleAgentEnv("puluc"), lambda seen, info: info["action_mask"])


def pettingzoo() -> Steps:
    import tradgames_env as tg

    env, choose = tg.env("puluc"), np.random.default_rng(1)
    while True:
        env.reset(seed=int(choose.integers(2**31)))
        decided = 0
        for _ in env.agent_iter():
            seen, _, terminated, truncated, _ = env.last()
            over = terminated or truncated
            env.step(None if over else int(choose.choice(np.flatnonzero(seen["action_mask"]))))
            decided += not over
        yield decided


def supersuit() -> Steps:
    pytest.importorskip("supersuit")
    import tradgames_env as tg
    from tradgames_env.integrations.supersuit import wrap

    env, choose = wrap(tg.env("puluc", mask_in="info"), "frame_stack_v1", 3), np.random.default_rng(1)
    while True:
        env.reset(seed=int(choose.integers(2**31)))
        decided = 0
        for _ in env.agent_iter():
            _, _, terminated, truncated, info = env.last()
            over = terminated or truncated
            env.step(None if over else int(choose.choice(np.flatnonzero(info["action_mask"]))))
            decided += not over
        yield decided


def minari() -> Steps:
    pytest.importorskip("minari")
    pytest.importorskip("jax")
    from gymnasium import make

    from tradgames_env.integrations.minari import collector
    from tradgames_env.registration import gymnasium_id

    yield from one_view(collector(make(gymnasium_id("puluc"))), lambda seen, info: info["action_mask"])


def onnx() -> Steps:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    import tradgames_env as tg
    from tests.agents.test_network import make_checkpoint
    from tradgames_env.agents.onnx import OnnxAgent
    from training.export import export_onnx

    with tempfile.TemporaryDirectory() as folder:
        export_onnx(make_checkpoint(pathlib.Path(folder) / "trained", "puluc"), pathlib.Path(folder) / "puluc.onnx")
        agent = OnnxAgent(pathlib.Path(folder) / "puluc.onnx", lookahead=False, temperature=1.0)
        agent.seed(1)
        for seed in itertools.count():
            position, decided = tg.Position("puluc", seed=seed), 0
            while not position.is_over:
                position.push(agent.act(position))
                decided += 1
            yield decided


def rllib() -> Steps:
    pytest.importorskip("ray.rllib")
    from tradgames_env.integrations.rllib import GameEnv

    env, choose = GameEnv({"game": "puluc"}), np.random.default_rng(1)
    while True:
        seen, _ = env.reset()
        over, decided = False, 0
        while not over:
            ((agent, shown),) = seen.items()
            action = int(choose.choice(np.flatnonzero(shown["action_mask"])))
            seen, _, terminated, truncated, _ = env.step({agent: action})
            over = terminated["__all__"] or truncated["__all__"]
            decided += 1
        yield decided


def agilerl() -> Steps:
    pytest.importorskip("agilerl")
    import tradgames_env as tg
    from tradgames_env.integrations.agilerl import played

    env, choose = tg.raw_env("puluc", mask_in="info"), np.random.default_rng(1)
    while True:
        yield sum(1 for _ in played(env, lambda agent, seen, mask: int(choose.choice(np.flatnonzero(mask)))))


def one_view(view: Any, mask_of: Callable[[Any, Any], Any]) -> Steps:
    choose = np.random.default_rng(1)
    while True:
        seen, info = view.reset()
        over, decided = False, 0
        while not over:
            action = int(choose.choice(np.flatnonzero(mask_of(seen, info))))
            seen, _, terminated, truncated, info = view.step(action)
            over = terminated or truncated
            decided += 1
        yield decided


def drawn(choose: np.random.Generator, masks: Any) -> Any:
    return np.where(masks, choose.random(masks.shape), -1.0).argmax(axis=1)


WAYS = {
    "AgileRL": ("the loop of `played`", agilerl),
    "Gymnasium": ("`SingleAgentEnv`", gymnasium),
    "Minari": ("`collector`", minari),
    "ONNX": ("`OnnxAgent` without lookahead", onnx),
    "OpenSpiel": ("`python_puluc`", openspiel),
    "PettingZoo": ("`env`", pettingzoo),
    "Ray RLlib": ("`GameEnv`", rllib),
    "Stable-Baselines3, sb3-contrib": ("`VecGames` of 256 games", sb3),
    "SuperSuit, Shimmy": ("`frame_stack_v1`", supersuit),
    "Tianshou": ("`MaskedView`", tianshou),
    "TorchRL": ("`GamesEnv` of 256 games", torchrl),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", WAYS)
def test_decisions_a_second(title: str, record_property: Callable[[str, Any], None], pytestconfig: Any) -> None:
    way, make = WAYS[title]
    steps = make()
    next(steps)  # compiles
    seconds = 2.0 if pytestconfig.getoption("--record-compatibility", default=None) else 0.0
    start, done = time.process_time(), next(steps)
    while time.process_time() - start < seconds:
        done += next(steps)
    assert done > 0
    record_property("speed", [title, way, round(done / (time.process_time() - start))])
