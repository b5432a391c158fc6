"""Tables of the dice games against plain Python, against games played out, and against themselves."""

from typing import Any

import numpy as np
import pytest

from tests.solving import plain_dice
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from tradgames_env.solving import expectation, solver, trial
from tradgames_env.solving.expectation import Expectation, Keep
from tradgames_env.solving.indexing import PositionIndex, TableError, load_index
from tradgames_env.solving.table import Table

SMALL: list[tuple[str, str, dict[str, Any]]] = [
    ("puluc", "mini", {}),
    ("puluc", "mini", {"throw_table": "marked_plus_one", "stick_p": 0.3}),
    ("puluc", "mini", {"length": 5, "pass_rule": "stuck", "first_player": "random"}),
    ("yut_nori", "mini", {}),
    ("yut_nori", "mini", {"finish": "pass", "nak_prob": 0.2}),
]
INDEXED = [
    *SMALL,
    ("puluc", "family", {}),
    ("puluc", "box", {}),
    ("puluc", "box", {"length": 31, "pieces": 1}),
    ("puluc", "box", {"length": 20, "pieces": 7}),
    ("yut_nori", "duel", {"seats_per_side": 2}),
    ("yut_nori", "box", {}),
    ("yut_nori", "box", {"pieces": 8, "finish": "pass"}),
]


def ruleset_of(case: tuple[str, str, dict[str, Any]]) -> Ruleset:
    game, variant, options = case
    return load_ruleset(game, variant, **options)


def state_of(ruleset: Ruleset, index: PositionIndex, number: int) -> np.ndarray[Any, Any]:
    state = np.full(ruleset.state_size, 77, np.int16)
    assert index.unrank(ruleset.params, index.tables, number, state) == 1
    return state


@pytest.mark.parametrize("case", INDEXED, ids=str)
def test_every_number_has_its_own_position(case: tuple[str, str, dict[str, Any]]) -> None:
    ruleset = ruleset_of(case)
    index = load_index(ruleset)
    draws = np.random.default_rng(1).integers(0, index.count, 2000)
    ends = [number for layer in index.layers for number in (layer.begin, layer.end - 1)]
    for number in range(index.count) if index.count < 2000 else [*draws.tolist(), *ends]:
        state = state_of(ruleset, index, number)
        text = ruleset.rules.format_position(ruleset.options, state)
        assert (ruleset.rules.parse_position(ruleset.options, text) == state).all()
        assert index.rank(ruleset.params, index.tables, state) == number


@pytest.mark.parametrize(
    ("name", "pieces", "count"),
    [
        ("puluc", 2, 5_481 - 131), ("puluc", 3, 125_440 - 571), ("puluc", 4, 1_905_271 - 2_001),
        ("puluc", 5, 21_361_950 - 6_005), ("yut_nori", 2, 190_474), ("yut_nori", 3, 18_874_305),
    ],
)  # fmt: skip
def test_counts_are_those_that_others_found(name: str, pieces: int, count: int) -> None:
    # For Puluc they count the finished games as well.
    assert load_index(load_ruleset(name, "box", pieces=pieces)).count == count


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_every_position_has_the_value_that_plain_python_finds(case: tuple[str, str, dict[str, Any]]) -> None:
    ruleset = ruleset_of(case)
    table = solver.solve_in_memory(ruleset)
    texts = [
        ruleset.rules.format_position(ruleset.options, state_of(ruleset, table.index, number))
        for number in range(table.index.count)
    ]
    found = plain_dice.brackets(plain_dice.expand(case[0], ruleset.options, texts), 1e-7)
    assert found.keys() >= set(texts)
    for text, (low, high) in found.items():
        state = ruleset.rules.parse_position(ruleset.options, text)
        value = table.value(state)
        assert value is not None
        natural = value if text.split(" ")[-2] == "o" else -value
        # The residual bounds one step; over the games of these variants it adds up to no more than this.
        assert low - 3e-6 <= natural <= high + 3e-6, text


@pytest.mark.parametrize(
    ("name", "pieces", "wins"), [("puluc", 2, 0.5054), ("puluc", 3, 0.5102), ("yut_nori", 2, 0.5103)]
)
def test_start_values_are_those_that_others_found(name: str, pieces: int, wins: float) -> None:
    table = solver.solve_in_memory(load_ruleset(name, "box", pieces=pieces))
    start = trial.start_of(table)
    value = table.value(start)
    assert value is not None
    assert (1 + value) / 2 == pytest.approx(wins, abs=5e-5)
    assert trial.one_step_residual(table, 3000, seed=2) <= table.header.residual <= solver.TOLERANCE


@pytest.mark.parametrize(("name", "chosen"), [("puluc", "mini"), ("yut_nori", "mini"), ("puluc", "family")])
def test_perfect_play_pays_what_the_table_says(name: str, chosen: str) -> None:
    table = solver.solve_in_memory(load_ruleset(name, chosen))
    value = table.value(trial.start_of(table))
    assert value is not None
    games = 100_000
    mean = trial.mean_payoff(table, games, seed=3)
    # 99 % interval of a game that pays +1 or -1.
    assert abs(mean - value) <= 2.576 * np.sqrt((1 - value**2) / games)


@pytest.mark.parametrize("keep", list(Keep))
def test_whatever_is_kept_in_memory_the_values_are_the_same(keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expectation, "BLOCK", 100)
    ruleset = load_ruleset("puluc", "mini")
    table = solver.solve_in_memory(ruleset)
    values = np.zeros(table.index.count, np.float32)
    method = Expectation(ruleset, table.index, values, keep=keep, num_threads=3, tolerance=5e-7)
    for number in range(len(table.index.layers)):
        assert method.solve_layer(number) <= 5e-7
    assert np.abs(values - table.values).max() < 3e-6


def test_both_sides_have_the_same_value_in_mirrored_positions() -> None:
    table: Table = solver.solve_in_memory(load_ruleset("puluc", "mini"))
    parse, options = table.ruleset.rules.parse_position, table.ruleset.options
    natural = table.value(parse(options, "o/xo/-/x/- 0 0 0 0 o -"))
    black = table.value(parse(options, "-/o/-/ox/x 0 0 0 0 x -"))
    assert natural == black


def test_what_is_not_before_a_throw_has_no_value() -> None:
    table = solver.solve_in_memory(load_ruleset("puluc", "mini", first_player="random"))
    parse, options = table.ruleset.rules.parse_position, table.ruleset.options
    for text in ("-/-/-/-/- 2 2 0 0 o 3", "-/-/-/-/- 2 2 0 0 ? -", "-/-/-/-/- 2 0 2 0 x -"):
        assert table.value(parse(options, text)) is None
        assert table.distance(parse(options, text)) is None


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [("yut_nori", "backdo", True), ("yut_nori", "extra_on_yut_mo", True), ("puluc", "pass_rule", "always")],
)
def test_options_that_are_not_covered_are_refused(name: str, option: str, value: object) -> None:
    with pytest.raises(TableError, match=f"{name} with {option}.* cannot be solved"):
        load_index(load_ruleset(name, "box", **{option: value}))


@pytest.mark.parametrize("name", ["puluc", "yut_nori"])
def test_there_are_no_parts(name: str) -> None:
    with pytest.raises(TableError, match="has no part 'ending'"):
        load_index(load_ruleset(name), "ending")
