"""Ray RLlib: what its runners collect is each player's own, and its PPO learns by self-play."""

import itertools
import re
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tests.integrations.tutorials import run_tutorial

pytest.importorskip("ray.rllib", reason="pip install 'tradgames-env[rllib]' in an environment of its own")

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from tests.integrations.ledger import learner_sides
from tradgames_env.integrations.rllib import (
    FROZEN,
    LEARNER,
    GameEnv,
    MaskedModule,
    ModuleAgent,
    SelfPlay,
    freeze,
    policy_of,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # RLlib warns of itself, and Ray leaves sockets to the collector

VARIANTS = {"petteia": "mini", "puluc": "mini", "yote": "mini", "yut_nori": "duel"}


@pytest.fixture(scope="module", autouse=True)
def machine() -> Any:
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


def built(game: str) -> Any:
    module = RLModuleSpec(module_class=MaskedModule, model_config={"fcnet_hiddens": [16]})
    return (
        PPOConfig()
        .environment(GameEnv, env_config={"game": game, "variant": VARIANTS[game], "max_cycles": 300})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
        .multi_agent(policies={LEARNER, FROZEN}, policy_mapping_fn=policy_of, policies_to_train=[LEARNER])
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={LEARNER: module, FROZEN: module}))
        .training(train_batch_size=400, minibatch_size=128, num_epochs=1)
        .callbacks(SelfPlay)
        .debugging(seed=1, log_level="ERROR")
        .build_algo()
    )


def weights(module: Any) -> Any:
    return np.concatenate([value.ravel() for value in module.get_state(inference_only=True).values()])


def test_what_runners_collect_is_each_players_own(game: str) -> None:
    algorithm = built(game)
    runner = algorithm.env_runner
    learner_seats, again = set(), 0
    for episode in runner.sample(num_episodes=12):
        raw = {agent: played for agent, played in episode.agent_episodes.items() if len(played)}
        assert set(raw) == {"player_0", "player_1"}
        learner_seats |= {agent for agent in raw if episode.module_for(agent) == LEARNER}
        paid = []
        for agent, played in raw.items():
            seen, actions = played.get_observations(), np.asarray(played.get_actions())
            masks = seen["action_mask"]
            assert masks[np.arange(len(actions)), actions].all()
            assert (learner_sides(seen["observations"]) == int(agent[-1])).all()
            rewards = np.asarray(played.get_rewards())
            assert not rewards[:-1].any()
            paid.append(rewards[-1])
        assert sum(paid) == 0.0
        assert episode.is_terminated or paid == [0.0, 0.0]
        movers = [next(iter(step)) for step in episode.get_actions(return_list=True)]
        again += sum(one == other for one, other in itertools.pairwise(movers))
    assert learner_seats == {"player_0", "player_1"}
    assert (again > 0) == (game in ("yote", "yut_nori"))
    algorithm.stop()


def test_rewards_are_those_of_the_game(game: str) -> None:
    env, choose = GameEnv({"game": game, "variant": VARIANTS[game]}), np.random.default_rng(1)
    for seed in range(5):
        seen, _ = env.reset(seed=seed)
        over = False
        while not over:
            (agent, shown), *rest = seen.items()
            assert not rest
            assert env.observation_spaces[agent].contains(shown)
            action = int(choose.choice(np.flatnonzero(shown["action_mask"])))
            seen, rewards, terminated, truncated, _ = env.step({agent: action})
            over = terminated["__all__"] or truncated["__all__"]
            assert over or not any(rewards.values())
        winner = env.game.infos["player_0"]["winner"]
        assert rewards == {f"player_{seat}": 0.0 if winner is None else 1.0 - 2 * (seat != winner) for seat in (0, 1)}
        assert set(seen) == set(rewards)


def test_what_is_not_allowed() -> None:
    env = GameEnv({"game": "petteia", "variant": "mini"})
    seen, _ = env.reset(seed=1)
    with pytest.raises(ValueError, match="player_0 decides, not"):
        env.step({"player_1": 0})
    _, rewards, terminated, _, infos = env.step({"player_0": int(seen["player_0"]["action_mask"].argmin())})
    assert rewards == {"player_0": -1.0, "player_1": 0.0}
    assert terminated["__all__"]
    assert infos == {"player_0": {"illegal": True}}


def test_the_frozen_copy() -> None:
    algorithm = built("puluc")
    learner, frozen = algorithm.get_module(LEARNER), algorithm.get_module(FROZEN)
    before = weights(frozen)
    algorithm.train()
    assert (weights(frozen) == before).all()
    assert not (weights(learner) == weights(frozen)).all()
    freeze(algorithm)
    assert (weights(learner) == weights(frozen)).all()
    copied = weights(learner)
    algorithm.train()
    assert (weights(frozen) == copied).all()
    assert not (weights(learner) == copied).all()
    algorithm.stop()


def test_policies_as_agents() -> None:
    algorithm = built("puluc")
    ruleset = tg.Position("puluc", "mini").ruleset
    agent = ModuleAgent(algorithm.get_module(LEARNER), ruleset)
    for seed in range(20):
        position = tg.Position("puluc", "mini", seed=seed)
        agent.seed(seed)
        assert agent.act(position) in position.legal_moves()
        assert sum(agent.policy(position).values()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="was trained for puluc/mini and cannot play puluc/box"):
        agent.act(tg.Position("puluc", seed=1))
    algorithm.stop()


def test_learning_beats_random() -> None:
    said = run_tutorial("rllib_selfplay", steps=32_000)
    mean = re.search(r"mean reward against random in (\d+) games: ([+-][\d.]+)", said)
    assert mean is not None
    assert int(mean[1]) == 200
    assert float(mean[2]) > 0.25  # four standard errors of a player no better than its opponent
