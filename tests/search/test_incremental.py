"""Incremental alpha-beta: equal to plain minimax, sums that follow the position, its budget, its own rows alone."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tradgames_env.rules.contract import (
    ENEMY,
    ENEMY_RESERVE,
    MOVER,
    OUTCOME,
    OWN,
    OWN_RESERVE,
    RUNNING,
    SCALARS,
    SITE_FEATURES,
)
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from tradgames_env.search import incremental
from tradgames_env.search.incremental import MOST_DEPTH, IncrementalSearch, IncrementalWeights

VARIANTS = [
    ("petteia", "box"), ("petteia", "fr6"), ("petteia", "mini"), ("petteia", "simple"),
    ("yote", "box"), ("yote", "twelve"), ("yote", "mini"),
]  # fmt: skip


def random_weights(ruleset: Ruleset, seed: int) -> IncrementalWeights:
    rng = np.random.default_rng(seed)
    sizes = {"first.weight": 0.3, "first.bias": 0.3, "output.weight": 0.3, "output.bias": 0.1}
    tensors = {
        name: rng.normal(0.0, sizes[name], shape).astype(np.float32)
        for name, shape in incremental.tensor_shapes(incremental.features(ruleset) // 2).items()
    }
    return IncrementalWeights.of_tensors(tensors)


class Row:
    """A position of a game as its two rows."""

    def __init__(self, ruleset: Ruleset) -> None:
        self.ruleset = ruleset
        self.state = np.zeros(ruleset.state_size, np.int16)
        self.history = np.zeros(ruleset.history_size, np.uint64)
        ruleset.kernels.initial(ruleset.params, self.state, self.history)
        if ruleset.chance_kinds:
            ruleset.kernels.apply_chance(ruleset.params, self.state, self.history, 0)

    def listed(self, name: str = "legal") -> NDArray[np.int32]:
        actions = np.empty(self.ruleset.num_actions, np.int32)
        count = getattr(self.ruleset.kernels, name)(self.ruleset.params, self.state, self.history, actions)
        return actions[:count]

    def after(self, action: int) -> "Row":
        row = object.__new__(Row)
        row.ruleset, row.state, row.history = self.ruleset, self.state.copy(), self.history.copy()
        self.ruleset.kernels.apply(self.ruleset.params, row.state, row.history, int(action))
        return row

    def all_after(self, name: str) -> list["Row"]:
        return [self.after(action) for action in self.listed(name)]


def random_row(ruleset: Ruleset, seed: int, plies: int) -> Row:
    """A running position some random moves into a game."""
    rng = np.random.default_rng(seed)
    row = Row(ruleset)
    for _ in range(plies):
        following = row.after(int(rng.choice(row.listed())))
        if following.state[OUTCOME] != RUNNING:
            break
        row = following
    return row


def found(search: IncrementalSearch, rows: list[Row], budget: int, words: int = 1) -> incremental.Found:
    return search.find(
        np.stack([row.state for row in rows]),
        np.stack([row.history for row in rows]),
        np.full(len(rows), budget),
        np.arange(words, words + len(rows), dtype=np.uint64),
    )


class Judge:
    """The evaluation and its search written plainly."""

    def __init__(self, ruleset: Ruleset, weights: IncrementalWeights, margin_weight: int) -> None:
        self.weights, self.margin_weight = weights, margin_weight
        self.cells = ruleset.rules.cells(ruleset.options)
        self.sites = len(ruleset.layout.cells)

    def features(self, row: Row, viewer: int) -> NDArray[np.int64]:
        """(F,) 0 or 1, from the game's own view of the position."""
        sites, scalars = np.zeros((len(SITE_FEATURES), self.sites), np.int16), np.zeros(len(SCALARS), np.int16)
        row.ruleset.kernels.view(row.ruleset.params, row.state, row.history, viewer, sites, scalars)
        numbers = np.arange(self.cells.hand_size)
        hands = [scalars[reserve] > numbers for reserve in (OWN_RESERVE, ENEMY_RESERVE)]
        return np.concatenate([sites[OWN], hands[0], sites[ENEMY], hands[1]]).astype(np.int64)

    def sums(self, row: Row, viewer: int) -> NDArray[np.int64]:
        return self.features(row, viewer) @ self.weights.first + self.weights.first_bias

    def standing(self, row: Row) -> int:
        mover = int(row.state[MOVER])
        hidden = np.concatenate([self.sums(row, mover), self.sums(row, 1 - mover)]).clip(0, incremental.ONE)
        pieces = int(self.features(row, mover).sum())
        bucket = (pieces * incremental.BUCKETS - 1) // self.cells.most
        total = int(hidden @ self.weights.output[bucket] + self.weights.output_bias[bucket])
        margin = int(row.state[6]) * (-1 if mover else 1)
        score = (total >> 11) + self.margin_weight * margin
        for cell, limit in self.cells.clocks:
            score = score * (limit - int(row.state[cell])) // limit if limit else score
        return score

    def settled(self, row: Row, level: int) -> int:
        if row.state[OUTCOME] != RUNNING:
            return final_score(row, level)
        scores = [sign(row, child) * self.settled(child, level + 1) for child in row.all_after("captures")]
        owed = self.cells.owed is not None and row.state[self.cells.owed]
        return max(scores if owed else [self.standing(row), *scores])

    def score(self, row: Row, depth: int, level: int = 0) -> int:
        if row.state[OUTCOME] != RUNNING:
            return final_score(row, level)
        if level > 0 and row.state[self.cells.repeats] > 0:
            return 0
        if depth == 0:
            return self.settled(row, level)
        return max(sign(row, child) * self.score(child, depth - 1, level + 1) for child in row.all_after("legal"))


def sign(row: Row, child: Row) -> int:
    """1 where the same side goes on, -1 where the other one does."""
    return 1 if row.state[MOVER] == child.state[MOVER] else -1


def final_score(row: Row, level: int) -> int:
    winner = {1: 0, 2: 1}.get(int(row.state[OUTCOME]))
    if winner is None:
        return 0
    return incremental.WIN - level if winner == row.state[MOVER] else level - incremental.WIN


@pytest.mark.parametrize(
    ("name", "variant", "options"),
    [
        *((game, variant, {}) for game, variant in VARIANTS),
        *(("petteia", variant, {"forced_capture": True}) for variant in ("box", "fr6", "mini", "simple")),
        *(("petteia", variant, {"corner_capture": True}) for variant in ("box", "fr6", "mini", "simple")),
        ("yote", "box", {"rows": 8, "cols": 8, "pieces": 32}),
        ("yote", "box", {"rows": 3, "cols": 8, "return_ban": "off", "first_player": "black"}),
    ],
)
def test_captures_are_the_legal_actions_that_change_the_margin(
    name: str, variant: str, options: dict[str, object]
) -> None:
    ruleset = load_ruleset(name, variant, **options)
    for seed in range(40):
        row = random_row(ruleset, seed, 3 * seed)
        listed = row.listed("captures").tolist()
        taking = [action for action in row.listed() if row.after(int(action)).state[6] != row.state[6]]
        assert sorted(listed) == sorted(taking)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_sums_follow_a_game(name: str, variant: str) -> None:
    ruleset = load_ruleset(name, variant)
    weights = random_weights(ruleset, 3)
    judge = Judge(ruleset, weights, 0)
    kernels, rng = ruleset.kernels, np.random.default_rng(4)
    levels = 60
    states = np.zeros((levels, ruleset.state_size), np.int16)
    histories = np.zeros((levels, ruleset.history_size), np.uint64)
    frames = np.zeros((levels, incremental._LISTS + 3 * ruleset.num_actions), np.int32)
    keys, plan = np.zeros(levels, np.uint64), np.zeros(incremental.PLAN_SIZE, np.int64)
    model = incremental.model_of(ruleset, weights)
    row = Row(ruleset)
    states[0], histories[0] = row.state, row.history
    incremental.start(model, states, frames, keys)
    for level in range(levels - 1):
        listed = row.listed("captures") if len(row.listed("captures")) else row.listed()
        action = int(rng.choice(listed))
        incremental.advance(kernels.apply, ruleset.params, model, states, histories, frames, keys, plan, level, action)
        row = row.after(action)
        for viewer in range(2):
            sums = frames[level + 1, viewer * incremental.HIDDEN : (viewer + 1) * incremental.HIDDEN]
            np.testing.assert_array_equal(sums, judge.sums(row, viewer))
        if row.state[OUTCOME] != RUNNING:
            break
        assert incremental.standing(model, states, frames, plan, level + 1) == judge.standing(row)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", ["petteia", "yote"])
def test_an_exact_search_scores_as_plain_minimax_does(name: str, seed: int, depth: int) -> None:
    ruleset = load_ruleset(name, "mini")
    weights = random_weights(ruleset, seed)
    row = random_row(ruleset, seed, 4 * seed)
    search = IncrementalSearch(ruleset, weights, margin_weight=0.5, most_depth=depth, exact=True)
    judge = Judge(ruleset, weights, incremental.SCORE_ONE // 2)
    result = found(search, [row], 10**9)
    assert result.scores[0] == judge.score(row, depth)
    best = row.after(int(result.actions[0]))
    assert sign(row, best) * judge.score(best, depth - 1, 1) == result.scores[0]


@pytest.mark.parametrize("stalled_result", ["draw", "most_captures"])
def test_repeating_is_no_draw_where_more_captures_win(stalled_result: str) -> None:
    ruleset = load_ruleset("petteia", stalled_result=stalled_result)
    row = Row(ruleset)
    row.state = ruleset.rules.parse_position(ruleset.options, "xxxxxxxx/8/8/8/8/8/8/1ooooooo o 0 -")
    ruleset.rules.start_history(ruleset.params, row.state, row.history)
    for move in ("B1 -> B2", "A8 -> A7", "B2 -> B1", "A7 -> A8", "B1 -> B2", "A8 -> A7"):
        row = row.after(ruleset.rules.parse_action(ruleset.options, row.state, move))
    # Natural is one capture behind, and two more such moves would be the third time.
    again = ruleset.rules.parse_action(ruleset.options, row.state, "B2 -> B1")
    search = IncrementalSearch(ruleset, IncrementalWeights.zero(64), margin_weight=0.5, most_depth=2, exact=True)
    repeats = int(found(search, [row], 10**9).actions[0]) == again
    assert repeats == (stalled_result == "draw")


def test_wins_and_losses_are_told_by_their_distance() -> None:
    ruleset = load_ruleset("petteia", "mini", capture_target=1)
    zero = IncrementalWeights.zero(16)
    rows = [random_row(ruleset, seed, 2) for seed in range(12)]
    exact = found(IncrementalSearch(ruleset, zero, most_depth=3, exact=True), rows, 10**9)
    reduced = found(IncrementalSearch(ruleset, zero, most_depth=3), rows, 10**9)
    judge = Judge(ruleset, zero, 0)
    scores = [judge.score(row, 3) for row in rows]
    assert exact.scores.tolist() == scores
    assert any(abs(score) >= incremental.SURE for score in scores)
    assert ((reduced.scores == exact.scores) | (abs(reduced.scores) < incremental.SURE)).all()


def test_a_budget_is_kept_but_for_the_captures_of_one_move() -> None:
    ruleset = load_ruleset("petteia", "box")
    search = IncrementalSearch(ruleset, IncrementalWeights.zero(64), margin_weight=1.0)
    rows = [random_row(ruleset, seed, 10 * seed) for seed in range(8)]
    for budget in (500, 5_000):
        visited = found(search, rows, budget).visited
        assert (visited >= budget).all()
        assert (visited < budget + 300).all()
    assert (found(search, rows, 1).depths == 1).all()


def test_a_row_is_searched_alike_alone_and_in_a_batch() -> None:
    ruleset = load_ruleset("petteia", "fr6")
    search = IncrementalSearch(ruleset, random_weights(ruleset, 0))
    rows = [random_row(ruleset, seed, 5 * seed) for seed in range(6)]
    together = found(search, rows, 2_000)
    alone = [found(search, [row], 2_000, words=1 + index) for index, row in enumerate(rows)]
    assert together.actions.tolist() == [result.actions[0] for result in alone]
    assert together.scores.tolist() == [result.scores[0] for result in alone]
    assert together.actions.tolist() == found(search, rows, 2_000).actions.tolist()


def test_words_are_advanced_and_decide_among_equals() -> None:
    ruleset = load_ruleset("petteia", "box")
    search = IncrementalSearch(ruleset, IncrementalWeights.zero(64))
    rows = [Row(ruleset)] * 32
    assert len(set(found(search, rows, 100).actions.tolist())) > 4
    words = np.array([9], np.uint64)
    search.find(rows[0].state[None], rows[0].history[None], np.array([100]), words)
    assert words[0] != 9


@pytest.mark.parametrize("depth", [0, MOST_DEPTH + 1])
def test_depths_for_which_there_are_no_rows_are_refused(depth: int) -> None:
    with pytest.raises(ValueError, match=f"most_depth must be from 1 to {MOST_DEPTH}, not {depth}"):
        IncrementalSearch(load_ruleset("petteia", "mini"), IncrementalWeights.zero(16), most_depth=depth)


@pytest.mark.parametrize("ruleset", [load_ruleset("petteia", "divination"), load_ruleset("puluc")])
def test_games_that_it_cannot_follow_are_refused(ruleset: Ruleset) -> None:
    with pytest.raises(ValueError, match="without dice"):
        IncrementalSearch(ruleset, IncrementalWeights.zero(64))
