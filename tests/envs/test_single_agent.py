"""The Gymnasium view: the learner against an opponent."""

import copy
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import tradgames_env as tg
from tradgames_env.agents.base import BaseAgent
from tradgames_env.envs.single_agent import SingleAgentEnv
from tradgames_env.position import Position
from tradgames_env.registration import gymnasium_id

TWO_SIDED = [(game, variant) for game in tg.games() for variant in tg.variants(game) if variant != "teams"]


def play(env: Any, seed: int, options: dict[str, Any] | None = None) -> list[Any]:
    choose = np.random.default_rng(seed)
    _, info = env.reset(seed=seed, options=options)
    seen = [info]
    while True:
        action = int(choose.choice(np.flatnonzero(info["action_mask"])))
        _, reward, terminated, truncated, info = env.step(action)
        seen.append((reward, terminated, truncated, info["moves"], info["winner"], info["reason"]))
        if terminated or truncated:
            return seen


@pytest.mark.parametrize(("name", "variant"), TWO_SIDED)
@pytest.mark.parametrize("flatten", [False, True])
def test_check_env(name: str, variant: str, flatten: bool) -> None:
    env = gymnasium.make(gymnasium_id(name), variant=variant, flatten=flatten)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)


def test_check_env_renders(game: str) -> None:
    env = gymnasium.make(gymnasium_id(game), variant="mini", render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_same_seed_same_episode(game: str) -> None:
    for opponent in ("random", "greedy"):
        first, second = (play(gymnasium.make(gymnasium_id(game), opponent=opponent), 3) for _ in range(2))
        assert first[1:] == second[1:]


def test_learner_is_paid_its_own_result(game: str) -> None:
    for seat in (0, 1):
        env = SingleAgentEnv(game, "mini", opponent="random", seat=seat, max_turns=0)
        outcomes = set()
        for seed in range(30):
            final = play(env, seed)[-1]
            reward, winner = final[0], final[4]
            assert reward == {None: 0.0, seat: 1.0, 1 - seat: -1.0}[winner]
            outcomes.add(reward)
        assert {1.0, -1.0} <= outcomes or game == "petteia"


def test_scripted_win_pays_plus_one_and_loss_minus_one() -> None:
    text = "xx6/oo6/8/8/8/8/8/2o5 o 0 -"
    env = SingleAgentEnv("petteia", seat=0)
    env.reset(seed=0, options={"position": text})
    _, reward, terminated, _, info = env.step(env.position.parse("C1 -> C8"))
    assert (reward, terminated, info["winner"], info["reason"]) == (1.0, True, 0, "blocked")
    # The opponent wins by its answer: the learner's -1 comes with the step that allowed it.
    mate = SingleAgentEnv("petteia", seat=1, opponent=lambda position: "C1 -> C8")
    with pytest.raises(ValueError, match="over before the learner's first move"):
        mate.reset(seed=0, options={"position": text})
    mate.reset(seed=0, options={"position": "xx5x/oo6/8/8/8/8/8/2o4o x 0 -"})
    seen = mate.step(mate.position.parse("H8 -> G8"))
    assert seen[1:4] == (0.0, False, False) or seen[1] == -1.0


def test_opponent_moves_first_and_several_times_in_a_row() -> None:
    moves: list[str] = []

    def bonus_taker(position: Position) -> str:
        move = next((m for m in position.legal_moves() if " x " in m or m.startswith("*")), position.legal_moves()[0])
        moves.append(move)
        return move

    env = SingleAgentEnv("yote", opponent=bonus_taker, seat=1)
    _, info = env.reset(seed=1, options={"position": "x5/6/2ox2/6/5x o 5 4 0 - - -"})
    assert moves == ["C3 -> E3 x D3", "* F1"]
    assert info["moves"] == moves
    assert env.position.to_move == 1


def test_seat_choice() -> None:
    env = SingleAgentEnv("petteia", "mini")
    assert {env.reset(seed=seed)[1]["seat"] for seed in range(20)} == {0, 1}
    assert {env.reset(options={"seat": 1})[1]["seat"] for _ in range(5)} == {1}
    fixed = SingleAgentEnv("petteia", "mini", seat=0)
    assert {fixed.reset(seed=seed)[1]["seat"] for seed in range(5)} == {0}
    assert {fixed.reset(options={"seat": "random"})[1]["seat"] for _ in range(30)} == {0, 1}


def test_every_kind_of_opponent() -> None:
    class First(BaseAgent):
        name = "first"

        def act(self, position: Position) -> str:
            return position.legal_moves()[0]

    for opponent in (
        "random",
        "greedy",
        "alphabeta:1",
        "mcts:10",
        First(),
        lambda position: position.legal_actions()[0],
    ):
        env = gymnasium.make("tradgames/Petteia-v0", variant="mini", opponent=opponent)
        assert play(env, 1)[-1][1] or play(env, 1)[-1][2]


def test_illegal_action_loses_and_says_so(game: str) -> None:
    env = SingleAgentEnv(game, seat=0)
    _, info = env.reset(seed=1)
    wrong = int(np.flatnonzero(info["action_mask"] == 0)[0])
    _, reward, terminated, truncated, info = env.step(wrong)
    assert (reward, terminated, truncated) == (-1.0, True, False)
    assert info["illegal"]
    assert info["winner"] == 1
    assert info["reason"] == "illegal"
    assert info["action_mask"].sum() == 1
    with pytest.raises(tg.IllegalMoveError):
        env.step(wrong)
    assert play(env, 2)[-1][1]


def test_masks() -> None:
    env = gymnasium.make("tradgames/YutNori-v0")
    observation, info = env.reset(seed=1)
    masks = env.get_wrapper_attr("action_masks")()
    assert masks.dtype == np.bool_
    assert (masks == info["action_mask"]).all()
    assert (observation["action_mask"] == info["action_mask"]).all()
    assert observation["action_mask"] is not info["action_mask"]


def test_flat_observation_is_the_same_numbers() -> None:
    tree, flat = (SingleAgentEnv("yote", seat=0, flatten=flatten) for flatten in (False, True))
    assert (tree.reset(seed=3)[0]["observation"].ravel() == flat.reset(seed=3)[0]).all()


def test_deepcopy_goes_on_identically() -> None:
    env = SingleAgentEnv("puluc", seat=0)
    _, info = env.reset(seed=5)
    twin = copy.deepcopy(env)
    for _ in range(5):
        action = int(np.flatnonzero(info["action_mask"])[0])
        step, other = env.step(action), twin.step(action)
        assert (step[0]["observation"] == other[0]["observation"]).all()
        info = step[4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"opponent": "randm"}, "randm"),
        ({"opponent": "mcts:0"}, "positive integer"),
        ({"opponent": "no/such/folder"}, "no/such/folder"),
        ({"opponent": 7}, "7"),
        ({"seat": 2}, "seat must be 0"),
        ({"seat": True}, "seat must be 0"),
        ({"render_mode": "png"}, "render_mode must be"),
        ({"variant": "nope"}, "no variant 'nope'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        SingleAgentEnv("petteia", **arguments)


def test_team_games_are_refused() -> None:
    with pytest.raises(ValueError, match="4 seats"):
        SingleAgentEnv("yut_nori", "teams")


def test_opponents_are_drawn_when_a_game_starts() -> None:
    env = SingleAgentEnv("petteia", "mini", opponent="random")
    env.reset(seed=1)
    env.set_opponents(["greedy", "alphabeta:1"])
    assert env.opponent.name == "random"
    names = set()
    for _ in range(12):
        env.reset()
        names.add(env.opponent.name)
    assert len(names) == 2
    assert "random" not in names
    with pytest.raises(ValueError, match="a sequence of at least one"):
        env.set_opponents("greedy")
