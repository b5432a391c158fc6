"""The compiled vector environment: Gymnasium's contract in all three autoreset modes, and the single view's games."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import tradgames_env as tg
from tradgames_env.envs.single_agent import SingleAgentEnv
from tradgames_env.envs.vector import VectorGameEnv
from tradgames_env.registration import gymnasium_id


def legal(env: VectorGameEnv, masks: Any, choose: np.random.Generator) -> Any:
    return np.array([choose.choice(np.flatnonzero(mask)) for mask in masks])


def make(game: str, mode: AutoresetMode, variant: str = "mini", **kwargs: Any) -> VectorGameEnv:
    env = gymnasium.make_vec(gymnasium_id(game), num_envs=8, variant=variant, autoreset_mode=mode, **kwargs)
    assert isinstance(env, VectorGameEnv)
    return env


def test_make_vec_is_compiled_and_spaces_fit(game: str) -> None:
    env = gymnasium.make_vec(gymnasium_id(game), num_envs=16)
    assert isinstance(env, VectorGameEnv)
    observations, infos = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    assert env.single_action_space.n == tg.raw_env(game).action_space("player_0").n
    observations, rewards, terminated, truncated, infos = env.step(
        legal(env, infos["action_mask"], np.random.default_rng(0))
    )
    assert env.observation_space.contains(observations)
    assert rewards.dtype == np.float64
    assert terminated.dtype == truncated.dtype == np.bool_
    env.close()
    env.close()


def test_next_step_mode(game: str) -> None:
    env = make(game, AutoresetMode.NEXT_STEP, seat=0)
    choose = np.random.default_rng(0)
    _, infos = env.reset(seed=2)
    ended = np.zeros(8, np.bool_)
    finished = 0
    for _ in range(400):
        actions = legal(env, infos["action_mask"], choose)
        actions[ended] = 0
        observations, rewards, terminated, truncated, infos = env.step(actions)
        assert not (terminated | truncated)[ended].any()
        assert not rewards[ended].any()
        ended = terminated | truncated
        assert (infos["action_mask"][ended].sum(axis=1) == 1).all()
        assert (
            rewards[ended] == np.select([infos["winner"][ended] == 0, infos["winner"][ended] == 1], [1, -1], 0)
        ).all()
        assert (observations["action_mask"] == infos["action_mask"]).all()
        finished += ended.sum()
    assert finished > 8


def test_same_step_mode(game: str) -> None:
    env = make(game, AutoresetMode.SAME_STEP)
    choose = np.random.default_rng(0)
    _, infos = env.reset(seed=2)
    finished = 0
    for _ in range(400):
        observations, rewards, terminated, truncated, infos = env.step(legal(env, infos["action_mask"], choose))
        ended = terminated | truncated
        assert ("final_obs" in infos) == ended.any()
        assert not rewards[~ended].any()
        assert (observations["action_mask"].sum(axis=1) >= 1).all()
        assert (infos["winner"] == -1).all()
        if ended.any():
            assert (infos["_final_obs"] == ended).all()
            final = infos["final_info"]
            won = final["winner"][ended] == final["seat"][ended]
            lost = final["winner"][ended] == 1 - final["seat"][ended]
            assert (rewards[ended] == won.astype(int) - lost.astype(int)).all()
            assert (infos["final_obs"]["action_mask"][ended].sum(axis=1) == 1).all()
        finished += ended.sum()
    assert finished > 8


def test_disabled_mode(game: str) -> None:
    env = make(game, AutoresetMode.DISABLED)
    choose = np.random.default_rng(0)
    _, infos = env.reset(seed=2)
    for _ in range(4000):
        _, _, terminated, truncated, infos = env.step(legal(env, infos["action_mask"], choose))
        ended = terminated | truncated
        if ended.any():
            break
    assert ended.any()
    with pytest.raises(ValueError, match="reset them with a reset_mask"):
        env.step(legal(env, infos["action_mask"], choose))
    kept = env.games.states[~ended].copy()
    _, infos = env.reset(options={"reset_mask": ended})
    assert (env.games.states[~ended] == kept).all()
    assert (infos["_action_mask"] == ended).all()
    env.step(legal(env, infos["action_mask"], choose))
    with pytest.raises(ValueError, match="reset_mask must be"):
        env.reset(options={"reset_mask": [True]})
    with pytest.raises(ValueError, match="cannot be given together"):
        env.reset(seed=1, options={"reset_mask": np.ones(8, np.bool_)})


def test_same_step_infos_have_the_form_of_gymnasiums_own() -> None:
    ours = make("puluc", AutoresetMode.SAME_STEP)
    theirs = SyncVectorEnv([lambda: SingleAgentEnv("puluc", "mini")] * 8, autoreset_mode=AutoresetMode.SAME_STEP)
    choose = np.random.default_rng(0)
    infos = [env.reset(seed=1)[1] for env in (ours, theirs)]
    found: dict[int, Any] = {}
    for _ in range(300):
        for index, env in enumerate((ours, theirs)):
            *_, infos[index] = env.step(legal(ours, infos[index]["action_mask"], choose))
            if "final_obs" in infos[index]:
                found[index] = infos[index]
    mine, reference = found[0], found[1]
    assert mine["_final_obs"].shape == reference["_final_obs"].shape
    assert mine["action_mask"].shape == reference["action_mask"].shape
    mask = mine["_final_obs"]
    final = mine["final_obs"]["action_mask"][mask][0]
    their_final = reference["final_obs"][np.flatnonzero(reference["_final_obs"])[0]]
    assert final.shape == their_final["action_mask"].shape


def test_self_play_pays_the_side_that_moved() -> None:
    env = make("puluc", AutoresetMode.NEXT_STEP, opponent="self")
    choose = np.random.default_rng(0)
    _, infos = env.reset(seed=2)
    wins = 0
    for _ in range(400):
        movers = infos["seat"].copy()
        _, rewards, terminated, _, infos = env.step(legal(env, infos["action_mask"], choose))
        for index in np.flatnonzero(terminated):
            assert rewards[index] == (1 if infos["winner"][index] == movers[index] else -1)
            assert infos["rewards"][index].sum() == 0
            wins += 1
    assert wins > 8


def test_opponents_other_than_random(game: str) -> None:
    env = make(game, AutoresetMode.SAME_STEP, variant="box", opponent="greedy", seat=1)
    choose = np.random.default_rng(0)
    _, infos = env.reset(seed=2)
    score = 0.0
    for _ in range(250):
        _, rewards, _, _, infos = env.step(legal(env, infos["action_mask"], choose))
        assert (infos["seat"] == 1).all()
        score += rewards.sum()
    assert score < 0  # a random learner loses to greedy


def test_illegal_action_loses_its_game_only() -> None:
    env = make("yote", AutoresetMode.NEXT_STEP, seat=0)
    _, infos = env.reset(seed=1)
    actions = legal(env, infos["action_mask"], np.random.default_rng(0))
    actions[3] = int(np.flatnonzero(infos["action_mask"][3] == 0)[0])
    _, rewards, terminated, _, infos = env.step(actions)
    assert rewards.tolist() == [0, 0, 0, -1, 0, 0, 0, 0]
    assert terminated.tolist() == [False] * 3 + [True] + [False] * 4
    assert infos["illegal"].tolist() == terminated.tolist()
    assert infos["winner"][3] == 1
    assert infos["rewards"][3].tolist() == [-1, 1]
    _, rewards, terminated, _, infos = env.step(legal(env, infos["action_mask"], np.random.default_rng(0)))
    assert not terminated.any()
    assert not rewards.any()


def test_seeds_reproduce(game: str) -> None:
    def trace() -> list[bytes]:
        env = make(game, AutoresetMode.SAME_STEP)
        choose = np.random.default_rng(4)
        _, infos = env.reset(seed=7)
        seen = []
        for _ in range(60):
            observations, rewards, *_, infos = env.step(legal(env, infos["action_mask"], choose))
            seen.append(observations["observation"].tobytes() + rewards.tobytes())
        return seen

    assert trace() == trace()


def test_copy_false_returns_live_arrays() -> None:
    live, fresh = (
        make("petteia", AutoresetMode.NEXT_STEP, variant="box", copy=flag, opponent="self") for flag in (False, True)
    )
    for env, same in ((live, True), (fresh, False)):
        first, infos = env.reset(seed=1)
        second, *_ = env.step(legal(env, infos["action_mask"], np.random.default_rng(0)))
        assert (first["observation"] is second["observation"]) == same


def test_flat_observations() -> None:
    env = make("puluc", AutoresetMode.NEXT_STEP, flatten=True)
    observations, _ = env.reset(seed=0)
    assert observations.shape == (8, int(np.prod(env.games.encoder.shape)))
    assert env.observation_space.contains(observations)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="max_turns"):
        VectorGameEnv(4, "petteia", max_episode_steps=10)
    with pytest.raises(ValueError, match="4 seats"):
        VectorGameEnv(4, "yut_nori", "teams")
    with pytest.raises(ValueError, match="num_games must be an integer of at least 1"):
        VectorGameEnv(0, "petteia")
    with pytest.raises(ValueError, match="sometimes"):
        VectorGameEnv(4, "petteia", autoreset_mode="sometimes")


def test_opponents_are_drawn_when_games_start() -> None:
    env = make("petteia", AutoresetMode.SAME_STEP)
    _, infos = env.reset(seed=1)
    seen: list[set[str]] = [set() for _ in range(8)]
    asked: dict[str, int] = {"first": 0, "last": 0}

    def first(position: tg.Position) -> int:
        asked["first"] += 1
        return position.legal_actions()[0]

    def last(position: tg.Position) -> int:
        asked["last"] += 1
        return position.legal_actions()[-1]

    env.set_opponents([first, last])
    choose = np.random.default_rng(0)
    fresh = np.zeros(8, np.bool_)
    for _ in range(300):
        before = list(env._opponents)
        _, _, terminated, truncated, infos = env.step(legal(env, infos["action_mask"], choose))
        ended = terminated | truncated
        fresh |= ended
        for index in range(8):
            assert ended[index] or env._opponents[index] is before[index]
            seen[index].add(env._opponents[index].name)
    assert fresh.all()
    assert min(asked.values()) > 10
    assert set.union(*seen) == {"random", "first", "last"}
    with pytest.raises(ValueError, match="a sequence of at least one"):
        env.set_opponents([])
    with pytest.raises(ValueError, match="the learner plays both sides"):
        make("petteia", AutoresetMode.SAME_STEP, opponent="self").set_opponents(["random"])
    env.close()
