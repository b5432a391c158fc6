"""The agent that plays by tables."""

import pathlib

import pytest

from tradgames_env.agents.perfect import PerfectAgent
from tradgames_env.position import Position
from tradgames_env.rules.errors import IllegalMoveError
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving import solver
from tradgames_env.solving.indexing import TableError
from tradgames_env.solving.lookup import judge_moves
from tradgames_env.solving.table import FOLDER_VARIABLE
from training.match import play_match


@pytest.fixture(autouse=True)
def _no_tables(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))


def test_it_plays_what_is_worth_most_and_says_what_that_is() -> None:
    agent, table = PerfectAgent(), solver.solve_in_memory(load_ruleset("puluc", "mini"))
    agent.seed(1)
    for seed in range(20):
        position = Position("puluc", "mini", seed=seed)
        while not position.is_over:
            actions, worth = judge_moves(table, *position.rows)
            assert agent.value(position) == pytest.approx(worth.max(), abs=1e-5)
            best = dict(zip(actions.tolist(), worth.tolist(), strict=True))
            move = agent.act(position)
            assert best[position.parse(move)] == pytest.approx(worth.max(), abs=1e-5)
            assert agent.policy(position)[move] > 0
            position.push(move)


def test_a_win_in_hand_is_worth_1() -> None:
    position = Position.from_text("puluc", "-/-/-/-/xo 1 0 1 0 o 3", "mini")
    assert PerfectAgent().value(position) == 1.0
    assert PerfectAgent().act(position) == "5 -> home (+1)"


@pytest.mark.parametrize(("name", "chosen"), [("puluc", "mini"), ("yut_nori", "duel")])
def test_it_beats_greedy(name: str, chosen: str) -> None:
    ruleset = load_ruleset(name, chosen)
    result = play_match("perfect", "greedy", ruleset, games=400, seed=1)
    assert result.score > 0.5


def test_many_positions_are_answered_as_one_by_one() -> None:
    positions = [Position("puluc", "mini", seed=seed) for seed in range(30)]
    for number, position in enumerate(positions):
        for _ in range(number % 4):
            position.push(position.legal_actions()[-1])
    together, single = PerfectAgent(), PerfectAgent()
    together.seed(3)
    single.seed(3)
    assert together.act_many(positions) == [single.act(position) for position in positions]
    assert together.act_many([]) == []


def test_it_uses_the_table_that_was_made(tmp_path: pathlib.Path) -> None:
    ruleset = load_ruleset("puluc", "mini")
    folder = solver.solve(ruleset).folder
    assert folder is not None
    PerfectAgent().value(Position("puluc", "mini"))
    (folder / "table.json").write_text("{}")
    with pytest.raises(TableError, match=r"table\.json"):
        PerfectAgent().value(Position("puluc", "mini"))


def test_it_says_how_a_missing_table_is_made() -> None:
    position = Position("puluc", stick_p=0.4)
    message = r"tradgames solve puluc --variant box --option stick_p=0\.4 \(21,355,945 positions, about .* minutes?\)"
    with pytest.raises(TableError, match=message):
        PerfectAgent().act(position)


def test_it_refuses_positions_without_a_decision() -> None:
    with pytest.raises(IllegalMoveError):
        PerfectAgent().act(Position("puluc", "mini", chance="explicit"))
