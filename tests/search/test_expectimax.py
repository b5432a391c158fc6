import numpy as np
import pytest
from numpy.typing import NDArray

import tradgames_env as tg
from tradgames_env.rules.contract import MOVER
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from tradgames_env.search import expectimax
from tradgames_env.search.expectimax import NO_MOVE, Expectimax
from tradgames_env.solving.solver import solve_in_memory

DICE_GAMES = [("puluc", "box"), ("yut_nori", "box"), ("yut_nori", "traditional"), ("yut_nori", "teams")]


class Standing:
    """An evaluator by a game's own heuristic, which counts what it is asked."""

    def __init__(self, ruleset: Ruleset) -> None:
        self.ruleset = ruleset
        self.asked = 0

    def __call__(
        self, states: NDArray[np.int16], histories: NDArray[np.uint64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.asked += len(states)
        heuristic, params = self.ruleset.kernels.heuristic, self.ruleset.params
        natural = [heuristic(params, state, history) for state, history in zip(states, histories, strict=True)]
        signs = np.where(states[:, MOVER] == 0, 1.0, -1.0)
        return np.zeros((len(states), self.ruleset.num_actions), np.float32), (signs * natural).astype(np.float32)


def natural_value(position: tg.Position, plies: int, weight: float) -> float:
    """What natural can expect, by the definition."""
    ruleset = position.ruleset
    if position.is_over:
        share = position.margin / ruleset.rules.margin_scale(ruleset.options)
        return float(np.clip(position.rewards[0], -1, 1)) + weight * share
    if plies == 0:
        return float(np.float32(ruleset.kernels.heuristic(ruleset.params, *position.rows)))
    if not position.chance_due:
        return best_move(position, plies, weight)
    return sum(
        probability * after_throw(position, outcome, plies, weight)
        for outcome, probability in position.chance_outcomes()
    )


def after_throw(position: tg.Position, outcome: int, plies: int, weight: float) -> float:
    thrown = position.copy()
    thrown.apply_chance(outcome)
    if thrown.chance_due or thrown.is_over:  # the throw has used up the ply
        return natural_value(thrown, plies - 1, weight)
    return best_move(thrown, plies, weight)


def best_move(position: tg.Position, plies: int, weight: float) -> float:
    values = action_values(position, plies, weight).values()
    return max(values) if position.to_move == 0 else min(values)


def action_values(position: tg.Position, plies: int, weight: float) -> dict[int, float]:
    """For natural."""
    values = {}
    for action in position.legal_actions():
        after = position.copy()
        after.push(action)
        values[action] = natural_value(after, plies - 1, weight)
    return values


def explicit_positions(game: str, variant: str, count: int) -> list[tg.Position]:
    """Positions of random games in which a seat decides, late ones too, that leave throws to whoever looks ahead."""
    games = tg.BatchGames(game, variant, num_games=count, seed=3)
    found = []
    for plies in (5, 60):
        games.play_random(plies)
        found += [games.position(index, seed=0) for index in range(count)]
    return [tg.Position.from_rows(one.ruleset, *one.rows, chance="explicit") for one in found]


def throws_due(positions: list[tg.Position]) -> list[tg.Position]:
    """Positions before a throw, a move after the given ones."""
    found = []
    for position in positions:
        after = position.copy()
        after.push(after.legal_actions()[0])
        if after.chance_due:
            found.append(after)
    return found


def rows_of(positions: list[tg.Position]) -> tuple[NDArray[np.int16], NDArray[np.uint64]]:
    states, histories = zip(*(position.rows for position in positions), strict=True)
    return np.stack(states), np.stack(histories)


# -- against the definition --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("named", "variant_name"), [*DICE_GAMES, ("petteia", "mini"), ("yote", "mini")])
@pytest.mark.parametrize("plies", [1, 2])
def test_values_are_expected_values(named: str, variant_name: str, plies: int) -> None:
    decisions = explicit_positions(named, variant_name, 3 if plies == 2 else 12)
    positions = decisions + throws_due(decisions)
    ruleset = positions[0].ruleset
    outlook = Expectimax(ruleset, plies=plies, margin_weight=0.3).look(Standing(ruleset), *rows_of(positions))
    natural = [natural_value(position, plies, 0.3) for position in positions]
    signs = [1.0 if position.to_move == 0 else -1.0 for position in positions]
    assert outlook.values == pytest.approx(np.multiply(signs, natural), abs=1e-5)


@pytest.mark.parametrize(("named", "variant_name"), DICE_GAMES)
def test_every_action_has_its_value(named: str, variant_name: str) -> None:
    positions = explicit_positions(named, variant_name, 12)
    ruleset = positions[0].ruleset
    outlook = Expectimax(ruleset).look(Standing(ruleset), *rows_of(positions))
    assert outlook.root_heads.tolist() == list(range(len(positions) + 1))
    for index, position in enumerate(positions):
        leaves = slice(outlook.branch_heads[index], outlook.branch_heads[index + 1])
        sign = 1.0 if position.to_move == 0 else -1.0
        found = dict(zip(outlook.actions[leaves].tolist(), outlook.utilities[leaves].tolist(), strict=True))
        assert found == pytest.approx({a: sign * v for a, v in action_values(position, 1, 0.0).items()}, abs=1e-6)
        assert found[int(outlook.actions[outlook.best[index]])] == max(found.values()) == outlook.values[index]


@pytest.mark.parametrize(("named", "variant_name"), DICE_GAMES)
def test_branches_are_the_outcomes(named: str, variant_name: str) -> None:
    positions = throws_due(explicit_positions(named, variant_name, 12))
    ruleset = positions[0].ruleset
    outlook = Expectimax(ruleset).look(Standing(ruleset), *rows_of(positions))
    outcomes = [position.chance_outcomes() for position in positions]
    assert np.diff(outlook.root_heads).tolist() == [len(found) for found in outcomes]
    assert outlook.probabilities == pytest.approx([p for found in outcomes for _, p in found], abs=1e-6)
    first_leaves = outlook.actions[outlook.branch_heads[:-1]]
    assert ((first_leaves == NO_MOVE) == ~outlook.decided).all()


# -- against tables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("named", "variant_name"), [("puluc", "mini"), ("yut_nori", "mini")])
@pytest.mark.parametrize("plies", [1, 2])
def test_exact_values_stay_exact(named: str, variant_name: str, plies: int) -> None:
    table = solve_in_memory(load_ruleset(named, variant_name))

    def lookup(
        states: NDArray[np.int16], histories: NDArray[np.uint64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.zeros((len(states), 1), np.float32), np.array([table.value(state) for state in states], np.float32)

    positions = throws_due(explicit_positions(named, variant_name, 40))
    states, histories = rows_of(positions)
    found = Expectimax(table.ruleset, plies=plies).look(lookup, states, histories).values
    assert found == pytest.approx([table.value(state) for state in states], abs=1e-4)


# -- batches and policies ----------------------------------------------------------------------------------------------


def test_rows_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    decisions = explicit_positions("yut_nori", "traditional", 20)
    positions = decisions + throws_due(decisions)
    ruleset, rows = positions[0].ruleset, rows_of(positions)
    whole = Expectimax(ruleset, plies=2).look(Standing(ruleset), *rows)
    monkeypatch.setattr(expectimax, "_ROOTS", 7)
    monkeypatch.setattr(expectimax, "_ROOM_OF_A_ROOT", 1)
    pieces = Expectimax(ruleset, plies=2).look(Standing(ruleset), *rows)
    for name in vars(whole):
        assert (getattr(whole, name) == getattr(pieces, name)).all(), name


def test_improve_prefers_what_is_worth_more() -> None:
    positions = explicit_positions("puluc", "box", 20)
    ruleset, rows = positions[0].ruleset, rows_of(positions)
    search, standing = Expectimax(ruleset, temperature=0.05), Standing(ruleset)
    budgets, words = np.ones(len(positions), np.int32), np.arange(len(positions), dtype=np.uint64)
    result = search.improve(standing, *rows, budgets, words)
    outlook = search.look(standing, *rows)
    assert words.tolist() == list(range(len(positions)))
    assert result.policies.sum(axis=1) == pytest.approx(np.ones(len(positions)), abs=1e-6)
    chosen = result.policies[np.arange(len(positions)), result.actions]
    assert (chosen == result.policies.max(axis=1)).all()
    assert (result.values == outlook.values).all()
    assert (result.surprises >= -1e-6).all()
    for index, position in enumerate(positions):
        assert set(np.flatnonzero(result.policies[index])) <= set(position.legal_actions())
        leaves = slice(outlook.branch_heads[index], outlook.branch_heads[index + 1])
        weights = np.exp(outlook.utilities[leaves] / 0.05)
        expected = weights / weights.sum()
        assert result.policies[index, outlook.actions[leaves]] == pytest.approx(expected, abs=1e-5)


def test_evaluator_is_asked_of_running_positions_only() -> None:
    positions = explicit_positions("puluc", "mini", 60)
    ruleset = positions[0].ruleset
    standing = Standing(ruleset)
    Expectimax(ruleset).look(standing, *rows_of(positions))
    moves = [(position, action) for position in positions for action in position.legal_actions()]
    running = 0
    for position, action in moves:
        after = position.copy()
        after.push(action)
        running += not after.is_over
    assert standing.asked == running < len(moves)


@pytest.mark.parametrize("knobs", [{"plies": 0}, {"temperature": 0.0}, {"temperature": float("nan")}])
def test_senseless_knobs_are_refused(knobs: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(knobs))} must be"):
        Expectimax(load_ruleset("puluc"), **knobs)
