"""What holds for every built-in agent in every game and variant."""

import numpy as np
import pytest

import tradgames_env as tg
from tests.conftest import ALL_VARIANTS
from tradgames_env.agents import Agent, load_agent

SPECS = ("random", "greedy", "alphabeta:2", "mcts:40")


def seeded(spec: str, seed: int = 1) -> Agent:
    agent = load_agent(spec)
    agent.seed(seed)
    return agent


def plays(spec: str, game: str, variant: str) -> bool:
    kinds = tg.Position(game, variant).ruleset.chance_kinds
    return not spec.startswith("alphabeta") or all(kind.name == "first player" for kind in kinds)


PLAYABLE = [(spec, game, variant) for spec in SPECS for game, variant in ALL_VARIANTS if plays(spec, game, variant)]


def play(agent: Agent, position: tg.Position, moves: int) -> list[str]:
    played: list[str] = []
    while len(played) < moves and not position.is_over:
        played.append(agent.act(position))
        position.push(played[-1])
    return played


@pytest.mark.parametrize(("spec", "name", "kind"), PLAYABLE)
def test_moves_policy_and_value(spec: str, name: str, kind: str) -> None:
    position, agent, other = tg.Position(name, kind, seed=3), seeded(spec), load_agent("random")
    other.seed(5)
    for _ in range(15):
        if position.is_over:
            break
        before = position.__getstate__()
        legal = position.legal_moves()
        policy = agent.policy(position)
        assert list(policy) == legal
        assert sum(policy.values()) == pytest.approx(1.0)
        assert min(policy.values()) >= 0.0
        assert -1.0 <= agent.value(position) <= 1.0
        move = agent.act(position)
        assert move in legal
        after = position.__getstate__()
        for row, old in zip(after["rows"], before["rows"], strict=True):
            assert np.array_equal(row, old)  # neither moved on nor its throws drawn
        position.push(move)
        if not position.is_over:
            position.push(other.act(position))


@pytest.mark.parametrize(("spec", "name"), [(spec, game) for spec, game, variant in PLAYABLE if variant == "box"])
def test_seeds_reproduce(spec: str, name: str) -> None:
    agent = seeded(spec)
    first = play(agent, tg.Position(name, seed=1), 12)
    agent.seed(1)
    assert play(agent, tg.Position(name, seed=1), 12) == first
    games = {tuple(play(seeded(spec, seed), tg.Position(name, seed=1), 12)) for seed in range(8)}
    if spec == "random":
        assert len(games) > 1


@pytest.mark.parametrize("spec", [spec for spec in SPECS if plays(spec, "puluc", "box")])
def test_the_throws_of_the_game_are_not_foreseen(spec: str) -> None:
    text = "-/o/-/-/-/-/x/-/- 4 4 0 0 o 2"
    answers = set()
    for seed in range(10):
        position = tg.Position.from_text("puluc", text, seed=seed)
        agent = seeded(spec)
        answers.add((agent.act(position), agent.value(position), *agent.policy(position).values()))
    assert len(answers) == 1


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("question", ["act", "policy", "value"])
def test_no_answer_where_nobody_decides(spec: str, question: str) -> None:
    ask = getattr(load_agent(spec), question)
    over = tg.Position.from_text("petteia", "xx6/oo6/8/8/8/8/8/2o5 o 0 -")
    over.push("C1 -> C8")
    with pytest.raises(tg.IllegalMoveError, match=r"the game is over \(blocked\)"):
        ask(over)
    with pytest.raises(tg.IllegalMoveError, match="a throw is due"):
        ask(tg.Position("yut_nori", chance="explicit"))


@pytest.mark.parametrize("spec", SPECS)
def test_act_many(spec: str) -> None:
    positions = [tg.Position("yote"), tg.Position.from_text("yote", "x5/6/2ox2/6/5x o 5 4 0 - - -")]
    moves = seeded(spec).act_many(positions)
    agent = seeded(spec)
    assert moves == [agent.act(position) for position in positions]
    assert agent.act_many([]) == []


@pytest.mark.parametrize("spec", ["greedy", "alphabeta:1", "mcts:40"])
def test_a_game_from_outside_the_package(spec: str, sprint: str) -> None:
    if spec.startswith("alphabeta"):
        with pytest.raises(ValueError, match="alphabeta plays games without dice, and sprint/box has a throw"):
            load_agent(spec).act(tg.Position(sprint, seed=1))
        return
    agent = seeded(spec)
    assert agent.act(tg.Position.from_text(sprint, "3 4 o 2")) == "run 2"
    assert agent.act(tg.Position.from_text(sprint, "4 4 x 1")) == "run 1"


@pytest.mark.parametrize("spec", ["greedy", "alphabeta:2", "mcts:200"])
@pytest.mark.parametrize(("board", "variant"), [("petteia", "fr6"), ("yote", "box")])
def test_stronger_than_random(spec: str, board: str, variant: str) -> None:
    wins = [0, 0]
    for number in range(10):
        agents = [seeded(spec, number), seeded("random", number)]
        side = number % 2
        position = tg.Position(board, variant, seed=number)
        while not position.is_over:
            position.push(agents[position.to_move ^ side].act(position))
        if position.winner is not None:
            wins[position.winner ^ side] += 1
    assert wins[0] >= 7
    assert wins[1] == 0
