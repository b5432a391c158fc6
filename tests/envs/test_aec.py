"""The AEC environment against PettingZoo's own suite and against what its users rely on."""

import copy
import json
import os
import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.test import api_test, parallel_api_test, render_test, seed_test

import tradgames_env as tg
from tradgames_env import petteia_v0, puluc_v0, yote_v0, yut_nori_v0
from tradgames_env.position import Position

DOORS = {"petteia": petteia_v0, "puluc": puluc_v0, "yote": yote_v0, "yut_nori": yut_nori_v0}
# PettingZoo's suite compares names with a list of its own games and warns of every other dict observation.
KNOWN_WARNINGS = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be gymnasium.spaces.box or gymnasium.spaces.discrete",
)


def quiet_api_test(env: Any, cycles: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in KNOWN_WARNINGS:
            warnings.filterwarnings("ignore", text)
        api_test(env, num_cycles=cycles)


def play_randomly(env: Any, seed: int, most: int = 10_000) -> list[Any]:
    """Everything an observer can see of a random game, as comparable data."""
    choose = np.random.default_rng(seed)
    seen: list[Any] = []
    for agent in env.agent_iter(most):
        observation, reward, terminated, truncated, info = env.last()
        seen.append((agent, observation["observation"].tobytes(), reward, terminated, truncated, str(info)))
        if terminated or truncated:
            env.step(None)
        else:
            env.step(int(choose.choice(np.flatnonzero(observation["action_mask"]))))
    return seen


@pytest.mark.parametrize("mask_in", ["obs", "info", "both"])
def test_pettingzoo_api(game: str, mask_in: str) -> None:
    quiet_api_test(tg.env(game, mask_in=mask_in), 200)
    quiet_api_test(tg.raw_env(game, mask_in=mask_in), 200)


def test_pettingzoo_api_of_every_variant(game: str, variant: str) -> None:
    quiet_api_test(tg.env(game, variant), 100)


def test_pettingzoo_seed(game: str, variant: str) -> None:
    seed_test(lambda: tg.env(game, variant), num_cycles=200)


def test_pettingzoo_parallel(game: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel_api_test(tg.parallel_env(game), num_cycles=100)


def test_pettingzoo_render(game: str) -> None:
    render_test(lambda render_mode: tg.env(game, render_mode=render_mode))


def test_doors(game: str) -> None:
    door = DOORS[game]
    env = door.env(variant="mini", render_mode="ansi")
    env.reset(seed=1)
    assert str(env) == f"{game}_v0"
    assert env.unwrapped.ruleset.label == f"{game}/mini"
    assert door.raw_env("mini").ruleset.variant == "mini"
    assert set(door.parallel_env().possible_agents) == {"player_0", "player_1"}


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="PettingZoo before 1.27 has no registry")
def test_pettingzoo_registry(game: str) -> None:
    env = pettingzoo.make("aec", f"tradgames/{game}-v0", variant="mini", max_cycles=3)
    env.reset(seed=3)
    assert len({step[0] for step in play_randomly(env, 0)}) == 2
    assert pettingzoo.make("parallel", f"tradgames/{game}-v0").possible_agents == ["player_0", "player_1"]


def test_observation_mask_and_infos(game: str) -> None:
    env = tg.raw_env(game, mask_in="both")
    env.reset(seed=2)
    mover, other = env.agent_selection, next(a for a in env.agents if a != env.agent_selection)
    seen = env.observe(mover)
    assert seen["observation"].dtype == np.float32
    assert seen["action_mask"].dtype == np.int8
    assert seen["action_mask"].sum() == len(env.position.legal_actions())
    assert (env.infos[mover]["action_mask"] == seen["action_mask"]).all()
    assert not env.observe(other)["action_mask"].any()
    assert env.observe(other) is not env.observe(other)
    assert env.infos[mover]["winner"] is None
    assert env.infos[mover]["reason"] is None
    assert env.infos[mover]["move"] is None
    move = env.position.legal_moves()[0]
    env.step(env.position.legal_actions()[0])
    assert env.infos[mover]["move"] == move


def test_last_mover_and_opponent_are_both_paid() -> None:
    env = tg.raw_env("petteia")
    env.reset(options={"position": "xx6/oo6/8/8/8/8/8/2o5 o 0 -"})
    env.step(env.unwrapped.position.parse("C1 -> C8"))
    assert env.rewards == {"player_0": 1.0, "player_1": -1.0}
    assert env.terminations == {"player_0": True, "player_1": True}
    assert env.infos["player_1"] == {"winner": 0, "reason": "blocked", "move": "C1 -> C8"}
    paid = {}
    for agent in env.agent_iter():
        _, reward, _, _, _ = env.last()
        paid[agent] = reward
        env.step(None)
    assert paid == {"player_0": 1.0, "player_1": -1.0}
    assert env.agents == []


def test_same_agent_decides_twice_after_a_yote_jump() -> None:
    env = tg.env("yote")
    env.reset(options={"position": "x5/6/2ox2/6/5x o 5 4 0 - - -"})
    env.step(env.unwrapped.position.parse("C3 -> E3 x D3"))
    assert env.agent_selection == "player_0"
    env.step(env.unwrapped.position.parse("* A5"))
    assert env.agent_selection == "player_1"


def test_team_game_has_four_agents_in_turn() -> None:
    env = tg.raw_env("yut_nori", "teams", first_player="natural")
    env.reset(seed=8)
    assert env.possible_agents == ["player_0", "player_1", "player_2", "player_3"]
    order = [env.agent_selection]
    while len(order) < 8:
        env.step(env.position.legal_actions()[0])
        if env.agent_selection != order[-1]:
            order.append(env.agent_selection)
    assert order == ["player_0", "player_1", "player_2", "player_3"] * 2
    play = play_randomly(env, 1)
    assert {step[0] for step in play[-4:]} == set(env.possible_agents)
    final = {step[0]: step[2] for step in play[-4:]}
    assert final["player_0"] == final["player_2"] == -final["player_1"] == -final["player_3"] != 0


def test_stakes_are_reported_and_paid() -> None:
    env = tg.raw_env("petteia", "gambling", reward="stakes", quiet_limit=20)
    found = 0
    for seed in range(40):
        env.reset(seed=seed)
        choose = np.random.default_rng(seed)
        while not any(env.terminations.values()):
            env.step(int(choose.choice(env.position.legal_actions())))
            balance = env.infos["player_0"]["balance"]
            assert env.infos["player_1"]["balance"] == -balance
        assert env.rewards == {"player_0": float(balance), "player_1": float(-balance)}
        found += balance != 0
    assert found > 0


def test_max_cycles_truncates_without_pay() -> None:
    env = tg.env("petteia", max_cycles=5)
    env.reset(seed=0)
    steps = play_randomly(env, 0)
    assert len(steps) == 5 + 2
    assert [step[2:5] for step in steps[-2:]] == [(0.0, False, True)] * 2
    assert "max_cycles" in steps[-1][5]


def test_max_turns_truncates() -> None:
    env = tg.raw_env("yut_nori", max_turns=4)
    env.reset(seed=0)
    while not any(env.truncations.values()):
        env.step(env.position.legal_actions()[0])
    assert not any(env.terminations.values())
    assert env.infos["player_0"]["reason"] == "max_turns"


def test_copies_and_pickles_go_on_identically(game: str, variant: str) -> None:
    for make in (tg.env, tg.raw_env):
        env = make(game, variant)
        env.reset(seed=11)
        for _ in range(6):
            env.step(int(np.flatnonzero(env.last()[0]["action_mask"])[-1]))
        twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env.unwrapped.clone()]
        expected = play_randomly(env, 5, most=120)
        for twin in twins:
            assert play_randomly(twin, 5, most=120) == expected


def test_clone_with_a_seed_throws_its_own_dice() -> None:
    env = tg.raw_env("puluc")
    env.reset(seed=1)
    throws = set()
    for seed in range(12):
        clone = env.clone(seed=seed)
        clone.step(clone.position.legal_actions()[0])
        throws.add(clone.position.throw)
    assert len(throws) > 2


def test_position_handed_out_foresees_no_throw() -> None:
    env = tg.raw_env("puluc")
    env.reset(seed=1)
    ahead = set()
    for _ in range(30):
        position = env.position
        position.push(position.legal_actions()[0])
        ahead.add(position.throw)
    assert len(ahead) > 2


@pytest.mark.parametrize("wrong", [-1, 10_000, 3.5, "x", None])
def test_illegal_action_leaves_a_raw_environment_unchanged(game: str, wrong: Any) -> None:
    env = tg.raw_env(game)
    env.reset(seed=4)
    before = env.position.text()
    with pytest.raises(ValueError, match=r"legal|None is for|action id|move"):
        env.step(wrong)
    assert env.position.text() == before
    assert env.num_moves == 0


def test_illegal_move_never_corrupts_the_next_game(game: str) -> None:
    env = tg.env(game)
    env.reset(seed=6)
    expected = play_randomly(env, 2)
    env.reset(seed=6)
    mask = env.last()[0]["action_mask"]
    mover = env.agent_selection
    env.step(int(np.flatnonzero(mask == 0)[0]))
    assert env.unwrapped.rewards.get(mover, env._cumulative_rewards.get(mover)) == -1
    env.reset(seed=6)
    assert play_randomly(env, 2) == expected


def test_reset_without_seed_goes_on_with_the_generator() -> None:
    env = tg.env("puluc")
    env.reset(seed=9)
    first = play_randomly(env, 0)
    env.reset()
    assert play_randomly(env, 0) != first
    env.reset(seed=9)
    assert play_randomly(env, 0) == first


def test_set_position_and_reset_option() -> None:
    env = tg.env("yote")
    text = "6/2o3/6/6/o5 o 0 3 0 C4C3 - -"
    env.reset(seed=0, options={"position": text, "something of a library": 1})
    assert env.unwrapped.position.text() == text
    env.unwrapped.set_position("x5/6/2ox2/6/5x o 5 4 0 - - -")
    assert env.unwrapped.position.to_move == 0
    with pytest.raises(ValueError, match=r"cannot read|must|fields|expected"):
        env.unwrapped.set_position("nonsense")
    with pytest.raises(ValueError, match="must be a position text"):
        env.reset(options={"position": 3})


def test_a_position_that_is_over_is_loaded_as_over() -> None:
    env = tg.raw_env("yote")
    env.reset(options={"position": "6/5x/x5/x5/oxx3 o 0 0 0 - - -"})
    assert env.terminations == {"player_0": True, "player_1": True}
    assert env.rewards == {"player_0": -1.0, "player_1": 1.0}


def test_aec_and_batch_play_the_same_games(game: str, variant: str) -> None:
    env = tg.raw_env(game, variant)
    env.reset(seed=21)
    games = tg.BatchGames(game, variant, num_games=3, seed=21, restart_finished=False)
    choose = np.random.default_rng(0)
    for _ in range(150):
        if any(env.terminations.values()) or any(env.truncations.values()):
            break
        assert env.possible_agents.index(env.agent_selection) == games.seats[0]
        observation = env.observe(env.agent_selection)
        assert (observation["observation"] == games.observations[0]).all()
        assert (observation["action_mask"] == games.action_masks[0]).all()
        action = int(choose.choice(np.flatnonzero(observation["action_mask"])))
        actions = games.sample_legal_actions()
        actions[0] = action
        env.step(action)
        games.step(actions)
        assert games.rewards[0].tolist() == [env.rewards["player_0"], env.rewards["player_1"]]
        assert games.terminated[0] == env.terminations["player_0"]


def test_render_modes(game: str) -> None:
    env = tg.env(game, "mini", render_mode="rgb_array")
    env.reset(seed=3)
    start = env.render()
    assert start.dtype == np.uint8
    assert start.shape[2] == 3
    assert start.std() > 1
    play_randomly(env, 3)
    final = env.render()
    assert final.shape == start.shape
    assert (final != start).any()
    text = tg.raw_env(game, render_mode="ansi")
    text.reset(seed=3)
    assert text.render() == str(text.position)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"game": "chess"}, "there is no game 'chess'; known: petteia"),
        ({"game": "petteia", "variant": "boxx"}, "did you mean 'box'"),
        ({"game": "petteia", "render_mode": "svg"}, "render_mode must be None or one of"),
        ({"game": "petteia", "mask_in": "nowhere"}, "mask_in must be 'obs', 'info' or 'both'"),
        ({"game": "petteia", "max_cycles": 0}, "max_cycles must be an integer of at least 1"),
        ({"game": "petteia", "quiet_limt": 60}, "did you mean 'quiet_limit'"),
        ({"game": "petteia", "quiet_limit": -1}, "option 'quiet_limit'"),
        ({"game": "petteia", "quiet_limit": 2.5}, "option 'quiet_limit'"),
        ({"game": "petteia", "pad_to": (3, 3)}, "smaller than the board"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tg.raw_env(**arguments)


def test_two_processes_play_the_same_game() -> None:
    script = (
        "import json, numpy as np, tradgames_env as tg\n"
        "env = tg.raw_env('yut_nori', 'traditional'); env.reset(seed=5); out = []\n"
        "for _ in range(15):\n"
        "    env.step(env.position.legal_actions()[0]); out.append(env.position.text())\n"
        "print(json.dumps(out))\n"
    )
    plays = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", script],
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for hash_seed in ("1", "2")
    ]
    assert plays[0] == plays[1]
    position = Position("yut_nori", "traditional", seed=5)
    for text in plays[0]:
        position.push(position.legal_actions()[0])
        assert position.text() == text


def test_before_the_first_reset() -> None:
    env = tg.raw_env("yote")
    with pytest.raises(ResetNeeded, match=r"call reset\(\) before step\(\)"):
        env.step(0)
    with pytest.raises(ResetNeeded, match=r"call reset\(\) before observe\(\)"):
        env.observe("player_0")


@pytest.mark.parametrize("options", ["x", 5, [("position", "x")]])
def test_reset_options_of_a_wrong_kind_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="reset options must be a dict or None"):
        tg.raw_env("yote").reset(options=options)


def test_unknown_agents_are_named() -> None:
    env = tg.raw_env("yote")
    env.reset(seed=1)
    with pytest.raises(ValueError, match="there is no agent 'player_9'; agents: player_0, player_1"):
        env.observe("player_9")
