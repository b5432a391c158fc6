import numpy as np
import pytest
from numpy.typing import NDArray

from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving.lookup import judge_decisions
from tradgames_env.solving.solver import solve_in_memory
from tradgames_env.solving.table import Table
from training import perfect_match
from training.perfect_match import score_against

DICE = [("puluc", "mini"), ("yut_nori", "mini"), ("yut_nori", "duel")]


def table_of(name: str, rules: str) -> Table:
    return solve_in_memory(load_ruleset(name, rules))


class FirstLegal:
    """Plays the first move that the rules list, and sums up what that costs by single look-ups."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.regrets: list[float] = []

    def __call__(self, states: NDArray[np.int16], histories: NDArray[np.uint64]) -> NDArray[np.int64]:
        actions = []
        for state, history in zip(states, histories, strict=True):
            judgement = judge_decisions(self.table, state[None], history[None])
            actions.append(judgement.actions[0])
            self.regrets.append(judgement.values.max() - judgement.values[0])
        return np.array(actions, np.int64)


@pytest.mark.parametrize(("name", "rules"), DICE)
def test_the_table_is_worth_half_of_the_points_against_itself(name: str, rules: str) -> None:
    table = table_of(name, rules)

    def best(states: NDArray[np.int16], histories: NDArray[np.uint64]) -> NDArray[np.int64]:
        judgement = judge_decisions(table, states, histories)
        return judgement.actions[judgement.first_best()].astype(np.int64)

    score = score_against(table, best, 60)
    assert (score.games, score.score, score.regret, score.optimal) == (120, 0.5, 0.0, 1.0)
    assert score.interval[0] <= 0.5 <= score.interval[1]


@pytest.mark.parametrize(("name", "rules"), DICE)
def test_regret_is_what_the_moves_cost(name: str, rules: str) -> None:
    choose = FirstLegal(table_of(name, rules))
    score = score_against(choose.table, choose, 50, seed=3)
    assert score.decisions == len(choose.regrets)
    assert score.regret == pytest.approx(50.0 * np.mean(choose.regrets), abs=1e-4)
    assert score.regret_interval is not None
    assert score.regret_interval[0] < score.regret < score.regret_interval[1]
    assert score.optimal == pytest.approx(np.mean(np.array(choose.regrets) <= choose.table.header.residual))
    assert score.score <= 0.5


def test_batches_only_bound_the_space(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of("puluc", "mini")

    def first(states: NDArray[np.int16], histories: NDArray[np.uint64]) -> NDArray[np.int64]:
        judgement = judge_decisions(table, states, histories)
        return judgement.actions[judgement.heads[:-1]].astype(np.int64)

    whole = score_against(table, first, 400)
    monkeypatch.setattr(perfect_match, "_PAIRS_AT_A_TIME", 100)
    parts = score_against(table, first, 400)
    assert parts.games == whole.games
    assert parts.interval[0] < whole.score < parts.interval[1]


def test_what_cannot_be_is_refused() -> None:
    table = table_of("puluc", "mini")
    with pytest.raises(ValueError, match="an action is not legal"):
        score_against(table, lambda states, histories: np.full(len(states), -5), 2)
    drawn = solve_in_memory(load_ruleset("yote", "mini", cols=3, rows=3, pieces=2))
    with pytest.raises(ValueError, match="holds no expectations"):
        score_against(drawn, FirstLegal(drawn), 2)
