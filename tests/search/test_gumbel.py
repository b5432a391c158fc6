"""Gumbel search: against a plain reference, against solved games, and one property at a time."""

import functools
import math

import numpy as np
import pytest

import tradgames_env as tg
from tests.reference import gumbel as plain
from tests.search.evaluators import decisions, flat_network, random_answer, random_network
from tradgames_env.rules.chance import seed_generators
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.search.evaluation import Evaluator, SearchResult
from tradgames_env.search.gumbel import GumbelSearch
from tradgames_env.search.tree import (
    BLACK_WON,
    COUNT,
    EXACT,
    FIRST,
    NATURAL_WON,
    OPEN,
    SIDE,
    SIMULATIONS,
    VERDICT,
    VISITS,
    Trees,
)
from tradgames_env.solving import solver
from tradgames_env.solving.lookup import judge_decisions
from tradgames_env.solving.table import Table

GAMES = [("petteia", "mini"), ("yote", "mini"), ("puluc", "mini"), ("yut_nori", "mini"), ("yut_nori", "traditional")]
FULL_GAMES = [("petteia", "box"), ("petteia", "divination"), ("yote", "box"), ("puluc", "box"), ("yut_nori", "box")]


def words(count: int, seed: int = 0) -> np.ndarray:
    return seed_generators(seed, count)


def improve(
    search: GumbelSearch, evaluate: Evaluator, states: np.ndarray, histories: np.ndarray, budget: int, seed: int = 0
) -> SearchResult:
    budgets = np.full(len(states), budget, np.int32)
    return search.improve(evaluate, states, histories, budgets, words(len(states), seed))


def searched(
    search: GumbelSearch, evaluate: Evaluator, states: np.ndarray, histories: np.ndarray, budget: int
) -> Trees:
    budgets = np.full(len(states), budget, np.int32)
    return search._search(evaluate, states, histories, budgets, words(len(states)))


@functools.cache
def solved(game: str) -> Table:
    return solver.solve_in_memory(load_ruleset(game, "mini"))


# -- the same search, plainly ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("played", GAMES + FULL_GAMES)
@pytest.mark.parametrize("budget", [1, 7, 64])
@pytest.mark.parametrize(("considered", "margin_weight"), [(16, 0.0), (3, 0.5)])
def test_makes_the_visits_of_the_plain_search(
    played: tuple[str, str], budget: int, considered: int, margin_weight: float
) -> None:
    ruleset, states, histories = decisions(*played, 4, 30)
    settings = {"considered": considered, "margin_weight": margin_weight}
    trees = searched(
        GumbelSearch(ruleset, noise=False, **settings), random_network(ruleset), states, histories, budget
    )  # fmt: skip
    for root in range(len(states)):
        position = tg.Position.from_rows(ruleset, states[root], histories[root], chance="explicit")
        expected = plain.Search(lambda at: random_answer(at.ruleset, at.rows[0], 0, 0.9), **settings).run(
            position, budget
        )  # fmt: skip
        first = trees.nodes[root, FIRST]
        edges = range(first, first + trees.nodes[root, COUNT])
        visits = {int(trees.actions[edge]): int(trees.edges[edge, VISITS]) for edge in edges}
        assert visits == {edge.action: edge.visits for edge in expected.edges}
        totals = {int(trees.actions[edge]): trees.edge_values[edge, 0] for edge in edges}
        assert totals == pytest.approx({edge.action: edge.total for edge in expected.edges})
        assert trees.nodes[root, VERDICT] == expected.verdict
        if expected.verdict != OPEN:
            assert trees.node_values[root, EXACT] == pytest.approx(expected.exact)


def test_the_answer_is_made_of_the_root() -> None:
    ruleset, states, histories = decisions("yote", "box", 8, 25)
    search = GumbelSearch(ruleset, noise=False)
    result = improve(search, random_network(ruleset), states, histories, 32)
    for root in range(len(states)):
        position = tg.Position.from_rows(ruleset, states[root], histories[root], chance="explicit")
        tool = plain.Search(lambda at: random_answer(at.ruleset, at.rows[0], 0, 0.9))
        node = tool.run(position, 32)
        assert node.verdict == OPEN
        sigma, mixed = tool.completed(node)
        shares = np.zeros(ruleset.num_actions)
        for edge in node.edges:
            shares[edge.action] = edge.prior * math.exp(sigma[edge.action]) * (edge.verdict != node.lost)
        shares /= shares.sum()
        assert result.policies[root] == pytest.approx(shares, abs=1e-6)
        worth = {edge.action: node.sign * edge.value if edge.is_known else mixed for edge in node.edges}
        assert result.values[root] == pytest.approx(sum(shares[action] * q for action, q in worth.items()), abs=1e-5)
        surprise = sum(
            shares[edge.action] * math.log(shares[edge.action] / edge.prior)
            for edge in node.edges
            if shares[edge.action]
        )
        assert result.surprises[root] == pytest.approx(surprise, abs=1e-4)
        most = max(edge.visits for edge in node.edges)
        score = tool.root_scores(node)
        best = max((edge for edge in node.edges if edge.visits == most), key=lambda edge: score[edge.action])
        assert result.actions[root] == best.action


# -- what every answer holds -------------------------------------------------------------------------------------------


def test_answers_are_policies_over_legal_actions(game: str, variant: str) -> None:
    ruleset, states, histories = decisions(game, variant, 16, 20)
    before = states.copy(), histories.copy()
    result = improve(GumbelSearch(ruleset), random_network(ruleset), states, histories, 12)
    assert (states == before[0]).all()
    assert (histories == before[1]).all()
    assert result.policies.sum(axis=1) == pytest.approx(np.ones(16), abs=1e-5)
    assert (np.abs(result.values) <= 1.0).all()
    assert (result.surprises >= 0.0).all()
    for index in range(16):
        legal = tg.Position.from_rows(ruleset, states[index], histories[index]).legal_actions()
        assert set(np.flatnonzero(result.policies[index])) <= set(legal)
        assert result.actions[index] in legal


@pytest.mark.parametrize("played", FULL_GAMES)
def test_a_position_does_not_depend_on_its_neighbours(played: tuple[str, str]) -> None:
    ruleset, states, histories = decisions(*played, 12, 30)
    evaluate, budgets = random_network(ruleset), np.arange(12, dtype=np.int32) * 5
    together, generators = GumbelSearch(ruleset), words(12)
    result = together.improve(evaluate, states, histories, budgets, generators)
    for index in [11, 0, 5]:
        own = words(12)[index : index + 1].copy()
        part = slice(index, index + 1)
        # The same object again: its spare memory is full of another search.
        alone = together.improve(evaluate, states[part], histories[part], budgets[part], own)
        assert own == generators[part]
        assert alone.actions == result.actions[part]
        assert (alone.policies == result.policies[part]).all()
        assert alone.values == result.values[part]


def test_budgets_are_spent_to_the_last_simulation() -> None:
    ruleset, states, histories = decisions("petteia", "box", 10, 6)
    budgets = np.array([0, 1, 2, 3, 15, 16, 17, 31, 50, 200], np.int32)
    trees = GumbelSearch(ruleset)._search(flat_network(ruleset), states, histories, budgets, words(10))
    assert (trees.nodes[:10, SIMULATIONS] == budgets).all()


def test_room_grows_without_a_trace() -> None:
    # Many more throws and moves than the first guess has room for.
    ruleset, states, histories = decisions("petteia", "simple", 2, 10)
    cramped, roomy = GumbelSearch(ruleset), GumbelSearch(ruleset)
    improve(roomy, flat_network(ruleset), states, histories, 3000)
    results = [improve(search, random_network(ruleset), states, histories, 300) for search in (cramped, roomy)]
    assert (results[0].policies == results[1].policies).all()


def test_roots_alone_may_need_more_room() -> None:
    ruleset, states, histories = decisions("petteia", "box", 300, 8)
    result = improve(GumbelSearch(ruleset), random_network(ruleset), states, histories, 0)
    part = improve(GumbelSearch(ruleset), random_network(ruleset), states[250:], histories[250:], 0)
    assert (result.policies[250:] == part.policies).all()


def test_noise_draws_other_actions_and_none_does_not() -> None:
    ruleset, states, histories = decisions("petteia", "box", 1, 10)
    evaluate = flat_network(ruleset)
    drawn = {int(improve(GumbelSearch(ruleset), evaluate, states, histories, 4, seed).actions[0]) for seed in range(20)}
    assert len(drawn) > 10
    calm = GumbelSearch(ruleset, noise=False)
    generator = words(1)
    budgets = np.array([4], np.int32)
    first = calm.improve(evaluate, states, histories, budgets, generator)
    assert generator == words(1)
    assert first.actions == improve(calm, evaluate, states, histories, 4, 99).actions


def test_without_search_noise_draws_from_the_policy() -> None:
    ruleset, states, histories = decisions("yote", "mini", 1, 9)
    many = 4000
    rows, past = np.repeat(states, many, axis=0), np.repeat(histories, many, axis=0)
    logits, utility = random_answer(ruleset, states[0], 0, 0.9)

    def evaluate(states: np.ndarray, histories: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.tile(logits, (len(states), 1)), np.full(len(states), utility)

    result = improve(GumbelSearch(ruleset), evaluate, rows, past, 0)
    shares = np.bincount(result.actions, minlength=ruleset.num_actions) / many
    assert np.abs(shares - result.policies[0]).max() < 4 * 0.5 / math.sqrt(many)
    assert result.surprises == pytest.approx(np.zeros(many), abs=1e-6)
    assert result.values == pytest.approx(np.full(many, utility))


@pytest.mark.parametrize(
    ("name", "value"), [("considered", 0), ("c_visit", -1.0), ("c_scale", math.nan), ("margin_weight", math.inf)]
)
def test_refuses_wrong_numbers(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        GumbelSearch(load_ruleset("yote"), **{name: value})


def test_refuses_positions_in_which_no_seat_decides() -> None:
    ruleset, states, histories = decisions("puluc", "box", 3, 8)
    thrown = tg.Position("puluc", chance="explicit").rows[0]
    for state in (thrown, np.where(np.arange(ruleset.state_size) == 3, 1, states[1]).astype(np.int16)):
        states[1] = state
        with pytest.raises(ValueError, match="over or a throw is due"):
            improve(GumbelSearch(ruleset), flat_network(ruleset), states, histories, 4)


# -- certain results ---------------------------------------------------------------------------------------------------


def one(game: str, text: str, variant: str = "box") -> tuple[tg.Position, np.ndarray, np.ndarray]:
    position = tg.Position.from_text(game, text, variant=variant)
    state, history = position.rows
    return position, state[None].copy(), history[None].copy()


@pytest.mark.parametrize("budget", [0, 1, 30])
def test_a_win_on_the_spot_is_played_however_unlikely(budget: int) -> None:
    position, states, histories = one("puluc", "-/-/-/-/-/xxo/-/-/- 4 0 3 0 o 4")
    win = position.parse("6 -> home (+2)")
    for seed in range(5):
        result = improve(
            GumbelSearch(position.ruleset, considered=1), random_network(position.ruleset, seed), states, histories,
            budget, seed,
        )  # fmt: skip
        assert result.actions == win
        assert result.policies[0, win] == pytest.approx(1.0)
        assert result.values == pytest.approx(1.0)
    position, states, histories = one("petteia", "xx4/oo4/6/6/6/2o3 o 0 -", "fr6")
    wins = [position.parse(move) for move in position.legal_moves() if move.startswith("C1 -> C6")]

    def evaluate(states: np.ndarray, histories: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = np.zeros((len(states), position.ruleset.num_actions), np.float32)
        logits[:, wins] = -50.0
        return logits, np.ones(len(states), np.float32)

    assert improve(GumbelSearch(position.ruleset), evaluate, states, histories, budget).actions[0] in wins


def test_a_forced_move_is_not_searched() -> None:
    ruleset, states, histories = decisions("puluc", "box", 200, 31)
    budgets = np.full(200, 10, np.int32)
    trees = GumbelSearch(ruleset)._search(random_network(ruleset), states, histories, budgets, words(200))
    forced = trees.nodes[:200, COUNT] == 1
    assert forced.any()
    assert (trees.nodes[:200, SIMULATIONS][forced] == 0).all()
    searched_on = ~forced & (trees.nodes[:200, VERDICT] == OPEN)
    assert (trees.nodes[:200, SIMULATIONS][searched_on] == 10).all()


@pytest.mark.parametrize("solvable", ["petteia", "yote"])
def test_what_is_certain_is_true(solvable: str) -> None:
    table = solved(solvable)
    ruleset, states, histories = decisions(solvable, "mini", 3000, 24)
    distances = np.array([table.distance(state) for state in states])
    near = np.flatnonzero((distances != 0) & (np.abs(distances) <= 6))[:100]
    far = np.flatnonzero((distances == 0) | (np.abs(distances) > 6))[:10]
    chosen = np.concatenate([near, far])
    distances, states, histories = distances[chosen], states[chosen].copy(), histories[chosen].copy()
    trees = searched(GumbelSearch(ruleset, considered=64), random_network(ruleset), states, histories, 1500)
    verdicts, side = trees.nodes[: len(states), VERDICT], trees.nodes[: len(states), SIDE]
    won = verdicts == np.where(side == 1, BLACK_WON, NATURAL_WON)
    lost = verdicts == np.where(side == 1, NATURAL_WON, BLACK_WON)
    assert (distances[won] > 0).all()
    assert (distances[lost] < 0).all()
    # And what is near is seen.
    assert won[distances == 1].all()
    assert won[distances > 1].any()


@pytest.mark.parametrize("solvable", ["petteia", "yote"])
def test_keeps_what_can_be_had_in_solved_games(solvable: str) -> None:
    table = solved(solvable)
    ruleset, states, histories = decisions(solvable, "mini", 200, 12)
    result = improve(
        GumbelSearch(ruleset, considered=64, noise=False), exact_network(table), states, histories, 200
    )  # fmt: skip
    judgement = judge_decisions(table, states, histories)
    faults = 0
    for index, (begin, end) in enumerate(zip(judgement.heads[:-1], judgement.heads[1:], strict=True)):
        values = judgement.values[begin:end]
        chosen = values[judgement.actions[begin:end] == result.actions[index]]
        faults += int(chosen[0] != values.max())
    # Tables know no count of quiet moves, which saves what they hold for lost.
    assert faults <= 1


def exact_network(table: Table) -> Evaluator:
    """A flat policy with the exact value of each decision."""

    def evaluate(states: np.ndarray, histories: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        judgement = judge_decisions(table, states, histories)
        best = np.maximum.reduceat(judgement.values, judgement.heads[:-1])
        return np.zeros((len(states), table.ruleset.num_actions), np.float32), best.astype(np.float32)

    return evaluate


# -- throws ------------------------------------------------------------------------------------------------------------


def test_averages_over_throws_become_expectations() -> None:
    table = solved("puluc")
    ruleset, states, histories = decisions("puluc", "mini", 60, 9)
    exact = exact_network(table)
    _, best = exact(states, histories)
    result = improve(GumbelSearch(ruleset, noise=False), exact, states, histories, 4000)
    assert np.abs(result.values - best).max() < 0.05  # the policy keeps some weight on other moves
    assert np.abs(result.values - best).mean() < 0.01
    judgement = judge_decisions(table, states, histories)
    for index, (begin, end) in enumerate(zip(judgement.heads[:-1], judgement.heads[1:], strict=True)):
        chosen = judgement.actions[begin:end] == result.actions[index]
        assert judgement.values[begin:end][chosen] > best[index] - 0.01


# -- what search is for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solvable", ["petteia", "yote"])
@pytest.mark.parametrize("budget", [8, 32])
def test_the_improved_policy_is_better_than_the_networks(solvable: str, budget: int) -> None:
    table = solved(solvable)
    ruleset, states, histories = decisions(solvable, "mini", 400, 12)
    gains = []
    for seed in range(3):
        evaluate = noisy_network(table, seed)
        prior = improve(GumbelSearch(ruleset), evaluate, states, histories, 0, seed)
        better = improve(GumbelSearch(ruleset), evaluate, states, histories, budget, seed)
        gains.append(expected(table, states, histories, better) - expected(table, states, histories, prior))
    gain = np.concatenate(gains)
    assert gain.mean() - 3.0 * gain.std() / math.sqrt(len(gain)) > 0.0


def noisy_network(table: Table, seed: int) -> Evaluator:
    """A random policy, and a value that is half the truth and some noise."""
    exact, noise = exact_network(table), random_network(table.ruleset, seed, spread=0.5)

    def evaluate(states: np.ndarray, histories: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, utilities = noise(states, histories)
        return logits, 0.5 * exact(states, histories)[1] + utilities

    return evaluate


def expected(table: Table, states: np.ndarray, histories: np.ndarray, result: SearchResult) -> np.ndarray:
    """(N,) exact value of the policies."""
    judgement = judge_decisions(table, states, histories)
    rows = np.repeat(np.arange(len(states)), np.diff(judgement.heads))
    return np.bincount(rows, judgement.values * result.policies[rows, judgement.actions], minlength=len(states))


def test_a_bonus_move_keeps_the_sign() -> None:
    # After a jump natural decides again; the network sees nothing but who is to move.
    position, states, histories = one("yote", "x5/6/2ox2/6/5x o 5 4 0 - - -")
    jump = position.parse("C3 -> E3")

    def evaluate(states: np.ndarray, histories: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        natural = np.where(states[:, 0] == 0, np.float32(0.5), np.float32(-0.5))
        return np.zeros((len(states), position.ruleset.num_actions), np.float32), natural

    trees = searched(GumbelSearch(position.ruleset, considered=64), evaluate, states, histories, 200)
    first = trees.nodes[0, FIRST]
    for edge in range(first, first + trees.nodes[0, COUNT]):
        if trees.edges[edge, VISITS]:
            assert trees.edge_values[edge, 1] == pytest.approx(0.5)
    assert jump in trees.actions[first : first + trees.nodes[0, COUNT]]
    after = trees.nodes[trees.edges[list(trees.actions[first:]).index(jump) + first, 0]]
    assert after[SIDE] == 0
