"""The numberings of Petteia and Yote."""

import math

import numpy as np
import pytest

from tradgames_env.position import Position
from tradgames_env.rules.contract import MOVER, OUTCOME, RUNNING
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving.indexing import TableError, load_index, table_label
from tradgames_env.solving.retrograde import without_history

CASES = [
    ("petteia", "mini", None, {}),
    ("petteia", "mini", None, {"rows": 5, "capture_target": 2}),
    ("petteia", "mini", "endings-2v3", {"corner_capture": True}),
    ("petteia", "box", "endings-2v3", {}),
    ("petteia", "fr6", "endings-3v3", {}),
    ("yote", "mini", None, {}),
    ("yote", "mini", None, {"cols": 4, "return_ban": "off"}),
    ("yote", "box", "endings-2v2", {}),
    ("yote", "box", "endings-1v3", {}),
]
IDS = ["-".join(map(str, (game, variant, part or "all", *options))) for game, variant, part, options in CASES]


def loaded(game, variant, part, options):
    ruleset = without_history(load_ruleset(game, variant, **options))
    return ruleset, load_index(ruleset, part)


def positions(ruleset, index, count, seed=1):
    """(number, state row) of random positions, first and last numbers of every layer among them."""
    choose = np.random.default_rng(seed)
    numbers = {*choose.integers(index.count, size=count).tolist()}
    for layer in index.layers:
        numbers |= {layer.begin, layer.end - 1}
    state = np.zeros(ruleset.state_size, np.int16)
    for number in sorted(numbers):
        if index.unrank(ruleset.params, index.tables, number, state):
            yield number, state.copy()


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_numbers_come_back(case):
    ruleset, index = loaded(*case)
    found = 0
    for number, state in positions(ruleset, index, 3000):
        assert index.rank(ruleset.params, index.tables, state) == number
        found += 1
    assert found > 100


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_number_is_a_position_of_the_rules(case):
    """The row is the one that the position's text loads as, unless the mover has already lost."""
    ruleset, index = loaded(*case)
    rules, options = ruleset.rules, ruleset.options
    for _, state in positions(ruleset, index, 500):
        row = rules.parse_position(options, rules.format_position(options, state))
        if row[OUTCOME] == RUNNING:
            assert np.array_equal(row, state), rules.format_position(options, state)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_layers_lead_to_themselves_and_to_earlier_ones(case):
    ruleset, index = loaded(*case)
    ends = np.array([layer.end for layer in index.layers])
    for number, state in positions(ruleset, index, 200):
        for action, after, there in successors(ruleset, index, state):
            assert there >= 0, (number, action)
            layer, other = np.searchsorted(ends, (number, there), side="right")
            assert other <= layer
            # In one layer, sides take turns.
            assert other < layer or after[MOVER] == 1


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_predecessors_are_what_leads_here_within_the_layer(case):
    ruleset, index = loaded(*case)
    ends = [layer.end for layer in index.layers]
    begins = [layer.begin for layer in index.layers]
    for number, state in positions(ruleset, index, 25):
        layer = int(np.searchsorted(ends, number, side="right"))
        before = predecessors(ruleset, index, state)
        assert all(begins[layer] <= other < ends[layer] for other in before)
        for other in before:
            assert number in {there for _, _, there in successors(ruleset, index, row_of(ruleset, index, other))}
        for _, _, there in successors(ruleset, index, state):
            if there >= begins[layer]:
                assert number in predecessors(ruleset, index, row_of(ruleset, index, there))


def row_of(ruleset, index, number):
    state = np.zeros(ruleset.state_size, np.int16)
    assert index.unrank(ruleset.params, index.tables, number, state) == 1
    return state


def predecessors(ruleset, index, state):
    actions, numbers = np.zeros(ruleset.num_actions, np.int32), np.zeros(ruleset.num_actions, np.int64)
    rows = state.copy(), np.zeros_like(state)
    count = index.predecessors(ruleset.params, index.tables, *rows, np.zeros(0, np.uint64), actions, numbers)
    return set(numbers[:count].tolist())


def successors(ruleset, index, state):
    """(action, row, number) of every move that does not end the game."""
    position = Position.from_rows(ruleset, state, np.zeros(0, np.uint64))
    actions = np.zeros(ruleset.num_actions, np.int32)
    count = ruleset.kernels.legal(ruleset.params, state, np.zeros(0, np.uint64), actions)
    for action in actions[:count].tolist():
        after = position.copy()
        after.push(action)
        if not after.is_over:
            row = after.rows[0]
            yield action, row, index.rank(ruleset.params, index.tables, row)


@pytest.mark.parametrize("name", ["petteia", "yote"])
def test_the_other_side_to_move_has_the_same_number(name):
    """A position turned by 180 degrees with colours, reserves and bans exchanged."""
    ruleset, index = loaded(name, "mini", None, {})
    for number, state in positions(ruleset, index, 2000):
        text = exchanged(ruleset, ruleset.rules.format_position(ruleset.options, state))
        row = ruleset.rules.parse_position(ruleset.options, text)
        if row[OUTCOME] == RUNNING:
            assert row[MOVER] == 1
            assert index.rank(ruleset.params, index.tables, row) == number, text


def exchanged(ruleset, text):
    options = ruleset.options
    board, side, *rest = text.split(" ")
    assert side == "o"
    board = board[::-1].translate(str.maketrans("ox", "xo"))
    if ruleset.game == "petteia":
        return " ".join([board, "x", *rest])
    natural, black, quiet, natural_ban, black_ban, bonus = rest
    bans = [turned_step(options, ban) for ban in (black_ban, natural_ban)]
    return " ".join([board, "x", black, natural, quiet, *bans, bonus])


def turned_step(options, step):
    if step == "-":
        return step
    files, ranks = "ABCDEFGH"[: options.cols][::-1], options.rows + 1
    return "".join(files["ABCDEFGH".index(letter)] + str(ranks - int(digit)) for letter, digit in (step[:2], step[2:]))


def test_petteia_turned_and_mirrored_boards_have_one_number():
    ruleset, index = loaded("petteia", "box", "endings-2v3", {})
    rows = ["o7", "2x5", "8", "1o4x1", "8", "8", "8", "8"]
    mirrored = [row[::-1] for row in rows]
    flipped = [row[::-1] for row in rows][::-1]
    numbers = {number_of(ruleset, index, "/".join(board) + " o 0 -") for board in (rows, mirrored, flipped, rows[::-1])}
    assert len(numbers) == 1
    assert numbers != {number_of(ruleset, index, "/".join(["1o6", *rows[1:]]) + " o 0 -")}


def number_of(ruleset, index, text):
    return index.rank(ruleset.params, index.tables, ruleset.rules.parse_position(ruleset.options, text))


def test_petteia_counts():
    _, index = loaded("petteia", "mini", None, {})
    every = sum(math.comb(16, own) * math.comb(16 - own, enemy) for own in (2, 3, 4) for enemy in (2, 3, 4))
    assert every == 2_200_380
    assert every / 8 < index.count < every / 7
    assert [layer.name for layer in index.layers][:2] == ["2 against 2", "2 against 3"]


@pytest.mark.parametrize("text", ["8/8/8/2ox4/3xo3/8/8/o7 o 0 -", "8/8/8/2ox4/3xo3/8/8/8 o 3 -"])
def test_endings_cover_what_their_name_says(text):
    ruleset, index = loaded("petteia", "box", "endings-2v2", {})
    is_covered = text.count("o", 0, text.index(" ")) == 2
    assert (number_of(ruleset, index, text) >= 0) == is_covered


@pytest.mark.parametrize(
    ("name", "variant", "part", "options", "message"),
    [
        ("petteia", "mini", None, {"forced_capture": True}, "forced_capture=False only"),
        ("petteia", "simple", "endings-2v2", {}, "stalled_result='draw' only"),
        ("petteia", "mini", None, {"rows": 12, "cols": 12}, "at most 64 squares"),
        ("petteia", "box", None, {}, "endings-2v3"),
        ("petteia", "box", "endings", {}, "parts such as"),
        ("petteia", "box", "endings-1v3", {}, "2 to 8 stones"),
        ("petteia", "box", "endings-02v2", {}, "parts such as"),
        ("petteia", "box", "endings-\u0662v\u0662", {}, "parts such as"),
        ("yote", "box", "endings-\u0662v\u0662", {}, "parts such as"),
        ("yote", "twelve", None, {}, "few_pieces_draw=0 only"),
        ("yote", "box", "endings-2", {}, "parts such as"),
        ("yote", "mini", "endings-2v4", {}, "at most 3 pieces"),
        ("yote", "box", None, {"pieces": 9}, "at most 8 pieces"),
        ("yote", "box", None, {"rows": 8, "cols": 8, "pieces": 7}, "far too many"),
    ],
)
def test_what_is_not_covered_is_refused(name, variant, part, options, message):
    with pytest.raises(TableError, match=message):
        load_index(load_ruleset(name, variant, **options), part)


def test_options_that_change_no_value_share_a_table():
    ruleset = load_ruleset("petteia", "mini", quiet_limit=30, first_player="random")
    assert table_label(ruleset, load_index(ruleset)) == "mini"
    ruleset = load_ruleset("petteia", "fr8")
    assert table_label(ruleset, load_index(ruleset, "endings-2v3"), "endings-2v3") == "box-endings-2v3"
