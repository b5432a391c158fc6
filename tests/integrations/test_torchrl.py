"""TorchRL: specs, rewards, masks and seats of the native environment, PPO in it, and PettingZoo's wrapper."""

import re
from typing import Any

import pytest

from tests.integrations.ledger import Ledger, learner_sides
from tests.integrations.tutorials import run_tutorial

pytest.importorskip("torchrl", reason="pip install 'tradgames-env[torchrl]'")

import torch
from torchrl.envs import TransformedEnv, check_env_specs
from torchrl.envs.transforms import ActionMask

from tradgames_env.integrations.torchrl import GamesEnv, wrapped_game

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.mark.parametrize("opponent", ["self", "random"])
def test_specs(game: str, opponent: str) -> None:
    env = GamesEnv(game, "mini", num_envs=4, opponent=opponent)
    check_env_specs(env, seed=1)
    env.close()


@pytest.mark.parametrize("opponent", ["self", "random"])
def test_rewards_belong_to_who_acted(game: str, opponent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = GamesEnv(game, "mini", num_envs=16, opponent=opponent)
    ledger = Ledger(env.games.games, monkeypatch)
    masked = TransformedEnv(env, ActionMask())
    masked.set_seed(2)
    step = masked.reset()
    won = {0: 0, 1: 0}
    for _ in range(300):
        ledger.clear()
        sides = step["seat"].squeeze(-1).numpy()
        assert (sides == learner_sides(step["observation"].numpy())).all()
        result, step = masked.step_and_maybe_reset(masked.rand_action(step))
        after = result["next"]
        rewards = after["reward"].squeeze(-1).numpy()
        assert (rewards == ledger.due(sides)).all()
        assert (after["done"].squeeze(-1).numpy() == ledger.ended).all()
        assert (after["truncated"].squeeze(-1).numpy() == (ledger.ended & ledger.truncated)).all()
        assert not step["done"].any()
        for side in sides[rewards > 0]:
            won[int(side)] += 1
    assert min(won.values()) > 5
    masked.close()


def test_second_moves_keep_the_seat() -> None:
    env = GamesEnv("yut_nori", "traditional", num_envs=8)
    masked = TransformedEnv(env, ActionMask())
    masked.set_seed(3)
    played = masked.rollout(40, break_when_any_done=False)
    same = (played["seat"] == played["next", "seat"]) & ~played["next", "done"]
    assert same.any()
    assert (~same).any()
    masked.close()


def test_seeds_decide() -> None:
    def play(seed: int) -> Any:
        env = TransformedEnv(GamesEnv("puluc", "mini", num_envs=4, opponent="random"), ActionMask())
        torch.manual_seed(0)
        env.set_seed(seed)
        torch.manual_seed(0)
        observations = env.rollout(30, break_when_any_done=False)["observation"]
        env.close()
        return observations

    first, again, other = play(1), play(1), play(2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_illegal_actions_lose() -> None:
    env = GamesEnv("petteia", "mini", num_envs=2)
    step = env.reset()
    step["action"] = torch.argmin(step["action_mask"].int(), dim=-1)
    after = env.step(step)["next"]
    assert after["reward"].ravel().tolist() == [-1.0, -1.0]
    assert after["terminated"].all()
    env.close()


def test_pettingzoo_wrapper(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = wrapped_game(game, "mini", seed=1)
    check_env_specs(env)
    raw = env._env.unwrapped
    torch.manual_seed(1)
    for _ in range(3):
        # An illegal action would raise: it is the bare game that is wrapped.
        played = env.rollout(2000)
        last = played["next"][-1]
        rewards = [float(last[agent, "reward"].sum()) for agent in ("player_0", "player_1")]
        assert rewards == list(raw._position.rewards)
        assert sum(rewards) == 0.0
        assert not played["next"][:-1]["player_0", "reward"].any()
        acting = played["player_0", "mask"].int() + played["player_1", "mask"].int()
        assert (acting == 1).all()


def test_learning_beats_random() -> None:
    said = run_tutorial("torchrl_ppo", steps=24_576)
    mean = re.search(r"mean reward against random in (\d+) games: ([+-][\d.]+)", said)
    assert mean is not None
    assert int(mean[1]) > 100
    assert float(mean[2]) > 0.3
