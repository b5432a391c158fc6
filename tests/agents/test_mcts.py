"""Monte Carlo tree search: wins, expectations over throws, whoever decides next."""

import functools
from typing import Any

import pytest

import tradgames_env as tg
from tradgames_env.agents.mcts import MCTSAgent

OPTIONS: dict[str, Any] = {"length": 4, "max_turns": 0}
"""Of Sprint, the toy game."""


def seeded(simulations: int, seed: int = 1, **arguments: Any) -> MCTSAgent:
    agent = MCTSAgent(simulations, **arguments)
    agent.seed(seed)
    return agent


@functools.cache
def sprint_values(sprint: str) -> dict[str, dict[str, float]]:
    """Exact value for the mover of each move in each position of Sprint, by value iteration over every throw."""
    texts = [f"{o} {x} {side} {throw}" for o in range(4) for x in range(4) for side in "ox" for throw in (1, 2)]
    positions = {text: tg.Position.from_text(sprint, text, chance="explicit", **OPTIONS) for text in texts}
    successors = {text: successors_of(position) for text, position in positions.items()}
    values: dict[str, dict[str, float]] = {text: {"nothing known": 0.0} for text in texts}
    for _ in range(200):
        for text, moves in successors.items():
            side = text.split()[2]
            values[text] = {
                move: sum(
                    weight * (end or same(side, after) * max(values[after].values())) for after, weight, end in rows
                )
                for move, rows in moves.items()
            }
    return values


def same(side: str, text: str) -> int:
    """1 if ``side`` is to move in ``text``, else -1."""
    return 1 if text.split()[2] == side else -1


def successors_of(position: tg.Position) -> dict[str, list[tuple[str, float, float]]]:
    """For each move its outcomes: text after the throw, probability, and the mover's reward if the game is over."""
    moves = {}
    mover = position.to_move
    for move in position.legal_moves():
        position.push(move)
        if position.is_over:
            moves[move] = [("", 1.0, position.rewards[mover])]
        else:
            outcomes = []
            for value, probability in position.chance_outcomes():
                position.apply_chance(value)
                outcomes.append((position.text(), probability, 0.0))
                position.pop()
            moves[move] = outcomes
        position.pop()
    return moves


@pytest.mark.parametrize("text", ["0 0 o 1", "0 0 o 2", "0 0 x 2", "1 2 o 2", "2 1 o 1", "1 2 x 1", "3 1 x 1"])
def test_agrees_with_the_exact_expectation(sprint: str, text: str) -> None:
    exact = sprint_values(sprint)[text]
    position = tg.Position.from_text(sprint, text, **OPTIONS)
    agent = seeded(20_000)
    assert agent.value(position) == pytest.approx(max(exact.values()), abs=0.03)
    assert exact[agent.act(position)] > max(exact.values()) - 0.03


def test_the_expectations_differ_enough_to_tell(sprint: str) -> None:
    exact = sprint_values(sprint)
    best = {text: max(values.values()) for text, values in exact.items()}
    assert best["0 0 o 2"] == pytest.approx(best["0 0 x 2"])
    assert best["0 0 o 2"] - best["0 0 o 1"] > 0.2
    assert exact["2 1 o 1"]["run 1"] - exact["2 1 o 1"]["wait"] > 0.2


@pytest.mark.parametrize(
    ("played", "text", "move"),
    [
        ("petteia", "xx6/oo6/8/8/8/8/8/2o5 o 0 -", "C1 -> C8"),
        ("puluc", "-/-/-/-/-/xxo/-/-/- 4 0 3 0 o 4", "6 -> home (+2)"),
        ("yote", "6/6/2ox2/6/6 o 2 0 0 - - -", "C3 -> E3 x D3"),
        ("yut_nori", "28:2,h:2 w:4 o 2", "28 -> home"),
    ],
)
def test_finds_wins_in_one(played: str, text: str, move: str) -> None:
    position = tg.Position.from_text(played, text)
    agent = seeded(200)
    assert agent.act(position) == move
    assert agent.value(position) == 1.0
    policy = agent.policy(position)
    assert max(policy, key=policy.__getitem__) == move


def test_finds_a_forced_win_in_three() -> None:
    position = tg.Position.from_text("petteia", "x1x1/o2x/o3/3x x 11 -", "mini")
    assert seeded(2000).act(position) == "D1 -> A1"
    assert seeded(2000).value(position) > 0.9


def test_counts_the_bonus_for_the_side_that_decides_it() -> None:
    # The jump takes one of black's last two pieces, natural's bonus the other.
    position = tg.Position.from_text("yote", "x5/6/2ox2/6/6 o 5 0 0 - - -")
    agent = seeded(400)
    assert agent.act(position) == "C3 -> E3 x D3"
    assert agent.value(position) == 1.0
    # The same for black, who is the one whose values change sign.
    position = tg.Position.from_text("yote", "6/6/2ox2/6/5o x 0 5 0 - - -")
    assert agent.act(position) == "D3 -> B3 x C3"
    assert agent.value(position) == 1.0


def test_avoids_a_loss_in_two() -> None:
    # Black threatens to be home with any throw but one; natural can capture or let it pass.
    position = tg.Position.from_text("yut_nori", "17:1,w:3 19:1,h:3 o 2")
    assert position.legal_moves() == ["enter -> 2", "17 -> 19 x1"]
    agent = seeded(400)
    assert agent.act(position) == "17 -> 19 x1"
    policy = agent.policy(position)
    assert policy["17 -> 19 x1"] > 0.8


@pytest.mark.parametrize(("played", "games", "least"), [("puluc", 20, 13), ("yut_nori", 20, 15)])
def test_beats_random_in_games_of_dice(played: str, games: int, least: int) -> None:
    wins = 0
    searcher, opponent = seeded(200), tg.load_agent("random")
    opponent.seed(2)
    for number in range(games):
        side = number % 2
        position = tg.Position(played, seed=number)
        while not position.is_over:
            position.push((searcher if position.to_move == side else opponent).act(position))
        wins += position.winner == side
    assert wins >= least


def test_policy_is_the_share_of_visits() -> None:
    position = tg.Position("petteia")
    shares = [probability * 100 for probability in seeded(100).policy(position).values()]
    assert sum(shares) == pytest.approx(100)
    assert all(share == pytest.approx(round(share)) and share >= 1 for share in shares)  # each move is tried
    one = seeded(1).policy(position)
    assert sorted(one.values()) == [0.0] * (len(shares) - 1) + [1.0]


def test_simulations_reach_beyond_the_first_list_of_edges() -> None:
    position = tg.Position("yote")
    policy = seeded(5000).policy(position)
    assert sum(policy.values()) == pytest.approx(1.0)


def test_several_throws_in_a_row() -> None:
    # A captured stone is paid for by a throw, then the next turn's die is rolled.
    position = tg.Position.from_text(
        "petteia", "xx4xx/8/3o4/3x4/1ox1xo2/8/8/3o4 o 0 4", "box", die_limit=4, stake_die=4, chance="explicit"
    )
    agent = seeded(500)
    assert agent.act(position) == "D1 -> D4 x C4,D5,E4"
    assert 0.0 < agent.value(position) <= 1.0


def test_random_play_may_be_left_out() -> None:
    agent = seeded(300, rollout_decisions=0)
    assert agent.act(tg.Position.from_text("yut_nori", "28:2,h:2 w:4 o 2")) == "28 -> home"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"simulations": 0}, "simulations must be an integer from 1 to 10000000, not 0"),
        ({"simulations": 2.0}, "simulations must be an integer"),
        ({"simulations": 10, "exploration": -0.1}, "exploration must be 0 or a positive number, not -0.1"),
        ({"simulations": 10, "exploration": float("nan")}, "exploration must be"),
        ({"simulations": 10, "rollout_decisions": -1}, "rollout_decisions must be an integer from 0 to 10000"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MCTSAgent(**arguments)
