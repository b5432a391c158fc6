"""Petteia, rule by rule (ids of RULES.md section 1), from position texts."""

import collections
import random
import re

import numba
import numpy as np
import pytest

from tradgames_env.position import Position, perft
from tradgames_env.rules.contract import SCALARS, SITE_FEATURES, make_options
from tradgames_env.rules.errors import IllegalMoveError, NotationError, OptionError
from tradgames_env.rules.petteia import RULES

BOX_START = "xxxxxxxx/8/8/8/8/8/8/oooooooo o 0 -"
VARIANTS = sorted(RULES.variants)


def load(text, **options):
    return Position.from_text("petteia", text, chance="explicit", **options)


def play(position, *moves):
    for move in moves:
        position.push(move)
    return position


def board(position):
    return position.text().split()[0]


def moves_from(position, square):
    return {move.split(" -> ")[1] for move in position.legal_moves() if move.startswith(f"{square} ")}


def ending(position):
    return position.is_over, position.winner, position.reason


def turned(text):
    """The same position with the colours swapped and the board turned by 180 degrees."""
    rows, side, quiet, die = text.split()
    swap = str.maketrans("oxOX", "xoXO")
    flipped = ["".join(re.findall(r"[0-9]+|[a-zA-Z]", row)[::-1]).translate(swap) for row in reversed(rows.split("/"))]
    return f"{'/'.join(flipped)} {side.translate(swap)} {quiet} {die}"


def view(position, seat):
    sites = np.zeros((len(SITE_FEATURES), len(position.ruleset.layout.cells)), np.int16)
    scalars = np.zeros(len(SCALARS), np.int16)
    RULES.kernels.view(position.ruleset.params, *position.rows, seat, sites, scalars)
    return dict(zip(SITE_FEATURES, sites, strict=True)), dict(zip(SCALARS, map(int, scalars), strict=True))


def heuristic(position):
    return RULES.kernels.heuristic(position.ruleset.params, *position.rows)


# -- P1, P2: the start ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("variant", "text"),
    [
        ("box", BOX_START),
        ("fr8", BOX_START),
        ("fr6", "xxxxxx/6/6/6/6/oooooo o 0 -"),
        ("mini", "xxxx/4/4/oooo o 0 -"),
        ("simple", "xxxxxxxxxxxx/12/12/12/12/12/12/oooooooooooo ? 0 -"),
        ("divination", "xxxxxxxxxxxx/12/12/12/12/12/12/oooooooooooo ? 0 -"),
        ("gambling", "xxxxxxxxxxxx/12/12/12/12/12/12/oooooooooooo ? 0 -"),
    ],
)
def test_p1_start_of_each_variant(variant, text):
    position = Position("petteia", variant, chance="explicit")
    assert position.text() == text
    assert load(text, variant=variant).text() == text


def test_variant_options():
    targets = {name: options.capture_target for name, options in RULES.variants.items()}
    assert targets == {"box": 7, "fr8": 7, "fr6": 5, "simple": 7, "divination": 7, "gambling": 7, "mini": 3}
    assert all(not options.leader and not options.corner_capture for options in RULES.variants.values())
    stalled = {name for name, options in RULES.variants.items() if options.stalled_result == "most_captures"}
    assert stalled == {"simple", "divination", "gambling"}
    assert (RULES.variants["divination"].die_limit, RULES.variants["gambling"].stake_die) == (4, 4)
    assert set(RULES.variant_notes) == set(RULES.variants)


def test_p1_other_boards():
    assert Position("petteia", rows=4, cols=12).text() == "xxxxxxxxxxxx/12/12/oooooooooooo o 0 -"
    assert Position("petteia", rows=12, cols=7).text() == "xxxxxxx/" + "7/" * 10 + "ooooooo o 0 -"


def test_p2_first_player():
    assert Position("petteia").to_move == 0
    assert Position("petteia", first_player="black").text() == BOX_START.replace(" o ", " x ")


@pytest.mark.parametrize("colour", [0, 1])
def test_p2_random_first_player(colour):
    position = Position("petteia", first_player="random", chance="explicit")
    assert position.chance_outcomes() == [(0, 0.5), (1, 0.5)]
    assert position.legal_moves() == []
    position.apply_chance(colour)
    assert position.text() == BOX_START.replace(" o ", f" {'ox'[colour]} ")
    assert position.chance_outcomes() == []
    assert len(position.legal_moves()) == 48


def test_p2_both_start_by_chance():
    starters = {Position("petteia", "simple", seed=seed).to_move for seed in range(20)}
    assert starters == {0, 1}


# -- P3: moves --------------------------------------------------------------------------------------------------------
def test_p3_rook_moves_without_jumps():
    position = load("xxxxxx2/8/3o4/8/1x1o1oo1/8/3x4/8 o 0 -")
    assert moves_from(position, "D4") == {"C4", "E4", "D3", "D5"}
    assert moves_from(position, "D6") == {"A6", "B6", "C6", "E6", "F6", "G6", "H6", "D5", "D7"}
    assert moves_from(position, "G4") == {"H4", "G1", "G2", "G3", "G5", "G6", "G7", "G8"}
    assert moves_from(position, "B4") == set()


def test_p3_black_moves_in_the_fixed_frame():
    position = load("x7/oxxx4/8/8/8/8/8/oooo4 x 0 -")
    assert moves_from(position, "A8") == {f"{file}8" for file in "BCDEFGH"}
    assert moves_from(position, "B7") == {"B6", "B5", "B4", "B3", "B2", "B8"}


def test_p3_no_move_changes_anything_else():
    position = play(Position("petteia"), "C1 -> C5")
    assert position.text() == "xxxxxxxx/8/8/2o5/8/8/8/oo1ooooo x 1 -"
    assert position.to_move == 1


def test_action_layout():
    position = Position("petteia")
    actions = dict(zip(position.legal_moves(), position.legal_actions(), strict=True))
    assert position.ruleset.num_actions == 896
    # Plane 0 leads from rank 1 to rank 2 (index 1, one above the mover's own rank 0).
    assert actions["A1 -> A2"] == 0
    assert actions["H1 -> H7"] == 5 * 64 + 7
    sideways = load("xxxxxxxx/8/8/8/8/2o5/8/oooooo2 o 0 -")
    assert sideways.parse("C3 -> A3") == (7 + 0) * 64 + 18
    assert sideways.parse("C3 -> H3") == (7 + 6) * 64 + 18


@pytest.mark.parametrize("variant", VARIANTS)
def test_black_acts_in_his_own_frame(variant):
    rng = random.Random(variant)
    position = Position("petteia", variant, seed=4)
    for _ in range(60):
        if position.is_over:
            break
        mirror = load(turned(position.text()), variant=variant)
        assert mirror.legal_actions() == position.legal_actions()
        assert mirror.to_move == 1 - position.to_move
        assert heuristic(mirror) == pytest.approx(-heuristic(position))
        action = rng.choice(position.legal_actions())
        after = position.copy()
        after.push(action)
        mirror.push(action)
        if not after.is_over and variant not in ("divination", "gambling"):
            assert mirror.text() == turned(after.text())
        position = after


# -- P4 to P8: captures -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "move", "after"),
    [
        ("xxxxxxx1/8/8/3ox3/8/8/8/oooooo1o o 5 -", "H1 -> H5", "xxxxxxx1/8/8/3ox2o/8/8/8/oooooo2 x 6 -"),
        ("xxxxxxx1/8/8/3ox3/8/8/8/oooooo1o o 5 -", "F1 -> F5 x E5", "xxxxxxx1/8/8/3o1o2/8/8/8/ooooo2o x 0 -"),
        ("xxxxxxx1/8/8/3xo3/8/8/8/oooooo1o o 5 -", "C1 -> C5 x D5", "xxxxxxx1/8/8/2o1o3/8/8/8/oo1ooo1o x 0 -"),
        ("xxxxxxx1/8/4o3/4x3/8/8/8/oooo1ooo o 5 -", "D1 -> D4", "xxxxxxx1/8/4o3/4x3/3o4/8/8/ooo2ooo x 6 -"),
        ("xxxxxxx1/8/4o3/4x3/7o/8/8/oooo1oo1 o 5 -", "H4 -> E4 x E5", "xxxxxxx1/8/4o3/8/4o3/8/8/oooo1oo1 x 0 -"),
        ("xxxxxxx1/7o/4x3/4o3/8/8/8/oooo1oo1 o 5 -", "H7 -> E7 x E6", "xxxxxxx1/4o3/8/4o3/8/8/8/oooo1oo1 x 0 -"),
        ("xxxxx1x1/8/4x3/4o3/5x2/8/8/oooo1ooo x 5 -", "F4 -> E4 x E5", "xxxxx1x1/8/4x3/8/4x3/8/8/oooo1ooo o 0 -"),
    ],
)
def test_p4_custodial_capture(text, move, after):
    position = load(text)
    assert move in position.legal_moves()
    position.push(move)
    assert position.text() == after


def test_p4_moved_piece_must_be_an_end():
    # D5 E5 F5 is a frame already; natural moves elsewhere and it stays.
    position = play(load("xxxxxxx1/8/8/3oxo2/8/8/8/oooooo2 o 0 -"), "A1 -> A2")
    assert "3oxo2" in board(position)
    # Arriving next to the enemy inside it makes no frame either.
    position = play(load("xxxxxxx1/8/8/3oxo2/8/8/8/oooooo2 o 0 -"), "E1 -> E4")
    assert position.text() == "xxxxxxx1/8/8/3oxo2/4o3/8/8/oooo1o2 x 1 -"


def test_p4_frames_end_at_the_board_and_do_not_wrap():
    # H4 and A5 are neighbours by site number only.
    position = play(load("xxxxxxx1/8/8/xo6/8/8/8/oooooo1o o 0 -"), "H1 -> H4")
    assert position.text().endswith("x 1 -")
    assert "xo6" in board(position)


def test_p5_all_directions_at_once():
    """Position 2."""
    position = load("xx4xx/8/3o4/3x4/1ox1xo2/8/8/3o4 o 0 -")
    assert "D1 -> D4 x C4,E4,D5" not in position.legal_moves()
    assert "D1 -> D4 x C4,D5,E4" in position.legal_moves()
    position.push("D1 -> D4 x D5, c4 ,E4")
    assert position.text() == "xx4xx/8/3o4/8/1o1o1o2/8/8/8 x 0 -"
    assert position.margin == 4 - 4


def test_p5_captures_cannot_be_declined():
    position = play(load("xxxxxxx1/8/8/3ox3/8/8/8/oooooo1o o 5 -"), "F1 -> F5")
    assert position.text() == "xxxxxxx1/8/8/3o1o2/8/8/8/ooooo2o x 0 -"


def test_p6_a_pair_is_safe():
    """Position 1."""
    position = load("5xxx/8/8/8/1oxx4/8/8/4o3 o 0 -")
    assert "E1 -> E4" in position.legal_moves()
    position.push("E1 -> E4")
    assert position.text() == "5xxx/8/8/8/1oxxo3/8/8/8 x 1 -"


def test_p7_safe_entry_and_later_loss():
    """Position 3."""
    position = load("x6x/8/8/8/2x1x3/8/8/oo1o3o o 0 -")
    play(position, "D1 -> D4", "E4 -> E5", "H1 -> H2")
    assert "2xo4" in board(position)
    assert "E5 -> E4 x D4" in position.legal_moves()
    position.push("E5 -> E4")
    assert board(position) == "x6x/8/8/8/2x1x3/8/7o/oo6"


def test_p7_safe_entry_while_capturing():
    position = play(load("xxxxx3/8/8/3o4/3x4/2x1x3/8/oooo4 o 0 -"), "D1 -> D3 x D4")
    assert board(position) == "xxxxx3/8/8/3o4/8/2xox3/8/ooo5"


def test_p8_the_edge_never_captures():
    position = load("xxxxxxx1/8/8/8/x7/8/8/1ooooooo o 0 -")
    position.push("B1 -> B4")
    assert "xo6" in board(position)
    corner = play(load("1xxxxxxx/8/8/8/8/8/o7/xo1ooooo o 0 -"), "D1 -> D2", "B8 -> B7", "D2 -> D1")
    assert board(corner).endswith("xo1ooooo")


# -- P9, P10: wins ----------------------------------------------------------------------------------------------------
def test_p9_capture_target():
    text = "xx6/8/8/3ox3/8/8/8/oooooo1o o 5 -"
    assert ending(play(load(text, capture_target=6), "F1 -> F5")) == (True, 0, "captures")
    assert ending(play(load(text), "F1 -> F5")) == (False, None, None)
    assert play(load(text, capture_target=6), "F1 -> F5").rewards == (1, -1)


def test_p9_more_captures_than_the_target():
    position = play(load("xx4xx/8/3o4/3x4/1ox1xo2/8/8/ooooo3 o 0 -", capture_target=3), "D1 -> D4")
    assert ending(position) == (True, 0, "captures")
    assert position.margin == 4
    assert load(position.text(), capture_target=3).is_over


def test_p9_black_wins():
    position = play(load("xxxxx1x1/8/4x3/4o3/5x2/8/8/o7 x 5 -"), "F4 -> E4")
    assert ending(position) == (True, 1, "captures")
    assert position.rewards == (-1, 1)
    assert position.to_move == 0
    assert position.legal_actions() == []


def test_p10_blocked_opponent_loses():
    """Position 4."""
    position = play(load("xx6/oo6/8/8/8/8/8/2o5 o 0 -"), "C1 -> C8")
    assert ending(position) == (True, 0, "blocked")
    assert ending(play(load("xx6/oo6/8/8/8/8/8/2o5 o 0 -"), "C1 -> C7")) == (False, None, None)


def test_p10_a_file_is_a_way_out():
    assert not play(load("xx6/1o6/8/o7/8/8/8/2o5 o 0 -"), "C1 -> C8").is_over
    assert ending(load("oo6/xx6/oo6/8/8/8/8/2x5 x 0 -")) == (False, None, None)
    assert ending(load("oo6/xxo5/oo6/8/8/8/8/o7 x 0 -")) == (True, 0, "blocked")


# -- P11 to P14: draws ------------------------------------------------------------------------------------------------
SHUFFLE = ("A1-A2", "A8-A7", "A2-A1", "A7-A8")


def test_p11_third_occurrence():
    """Position 5: the start counts as the first occurrence."""
    position = play(Position("petteia"), *SHUFFLE, *SHUFFLE[:3])
    assert not position.is_over
    position.push(SHUFFLE[3])
    assert ending(position) == (True, None, "repetition")
    assert position.rewards == (0, 0)


@pytest.mark.parametrize("limit", [2, 4, 5])
def test_p11_other_limits(limit):
    position = play(Position("petteia", repetition_limit=limit), *(SHUFFLE * (limit - 1))[:-1])
    assert not position.is_over
    assert ending(play(position, SHUFFLE[3])) == (True, None, "repetition")


def test_p11_off():
    position = play(Position("petteia", repetition_limit=0), *SHUFFLE * 5)
    assert not position.is_over
    assert position.ruleset.history_size == 0


def test_p11_same_board_other_side_to_move_is_another_position():
    # A1-A2-A3-A1 takes three moves, so the board returns with the other side to move each time.
    position = Position("petteia", repetition_limit=2)
    play(position, "A1-A2", "A8-A7", "A2-A3", "A7-A8", "A3-A1")
    assert board(position) == BOX_START.split()[0]
    assert not position.is_over
    # Now black to move has the start board for the first time; natural loses a tempo back.
    play(position, "A8-A7", "A1-A2", "A7-A6", "A2-A1")
    assert not position.is_over
    assert ending(play(position, "A6-A8")) == (True, None, "repetition")


def test_p11_pieces_are_told_apart_by_colour_only():
    # Natural's A1 and B1 stones change places: the same position.
    position = Position("petteia", repetition_limit=2)
    play(position, "A1-A2", "H8-H7", "B1-B3", "H7-H8", "A2-B2", "H8-H7", "B3-A3", "H7-H8", "A3-A1", "H8-H7")
    assert not position.is_over
    assert ending(play(position, "B2-B1", "H7-H8")) == (True, None, "repetition")


def test_p11_loading_starts_a_new_history():
    position = play(Position("petteia"), *SHUFFLE)
    fresh = load(position.text())
    assert not play(fresh, *SHUFFLE).is_over
    assert play(position, *SHUFFLE).is_over


def test_p11_a_long_game_without_quiet_limit_keeps_a_ring_of_positions():
    position = Position("petteia", "mini", quiet_limit=0, repetition_limit=2)
    assert position.ruleset.history_size == 2048
    endless = Position("petteia", quiet_limit=0, repetition_limit=100)
    play(endless, *SHUFFLE * 98, *SHUFFLE[:3])
    assert not endless.is_over
    assert ending(play(endless, SHUFFLE[3])) == (True, None, "repetition")


def test_p11_the_ring_forgets_what_is_more_than_2048_moves_back():
    rng = random.Random(11)
    # One stone each: nothing can be captured, and there are only 480 positions.
    position = load("x3/4/4/o3 o 0 -", variant="mini", capture_target=4, quiet_limit=0, repetition_limit=100)
    recent = collections.deque(maxlen=2048)
    for _ in range(3000):
        here = tuple(position.text().split()[:2])
        assert view(position, 0)[1]["repetition"] == recent.count(here)
        recent.append(here)
        position.push(rng.choice(position.legal_actions()))
        position.clear_stack()
    assert not position.is_over


def test_p12_quiet_limit():
    position = load("xxxxxxxx/8/8/8/8/8/8/oooooooo o 98 -")
    position.push("A1 -> A2")
    assert not position.is_over
    position.push("A8 -> A7")
    assert ending(position) == (True, None, "quiet")
    assert position.text().endswith("o 100 -")


def test_p12_captures_restart_the_clock():
    position = play(load("xxxxxxx1/8/8/3ox3/8/8/8/oooooo1o o 99 -"), "F1 -> F5")
    assert not position.is_over
    assert position.text().endswith("x 0 -")


def test_p12_off():
    position = load("xxxxxxxx/8/8/8/8/8/8/oooooooo o 32767 -", quiet_limit=0)
    assert not position.is_over
    assert play(position, "A1-A2").text().endswith("x 32767 -")


def test_p13_a_win_beats_a_draw():
    """Position 4 with 99 quiet moves before."""
    text = "xx6/oo6/8/8/8/8/8/2o5 o 99 -"
    assert ending(play(load(text), "C1 -> C8")) == (True, 0, "blocked")
    assert ending(play(load(text), "C1 -> C7")) == (True, None, "quiet")


@pytest.mark.parametrize(("target", "reason"), [(7, "captures"), (8, "blocked")])
def test_p13_captures_beat_a_block(target, reason):
    # The capture of B7 is the seventh and leaves A8 without a move.
    position = load("xo6/ox5o/o7/8/8/8/8/8 o 0 -", capture_target=target)
    assert ending(play(position, "H7 -> C7")) == (True, 0, reason)


def test_p13_repetition_before_quiet():
    position = Position("petteia", quiet_limit=8)
    assert ending(play(position, *SHUFFLE * 2)) == (True, None, "repetition")


def test_p14_most_captures_wins_a_stalled_game():
    options = {"stalled_result": "most_captures"}
    ahead = "xxxxxx2/8/8/8/8/8/8/ooooooo1 {} 99 -"
    assert ending(play(load(ahead.format("o"), **options), "A1-A2")) == (True, 0, "stalled")
    assert ending(play(load(turned(ahead.format("o")), **options), "H8-H7")) == (True, 1, "stalled")
    assert ending(play(load(ahead.format("o")), "A1-A2")) == (True, None, "quiet")
    assert load(ahead.replace("99", "100").format("x"), **options).rewards == (1, -1)


def test_p14_equal_captures_draw():
    position = load("xxxxxxx1/8/8/8/8/8/8/ooooooo1 o 99 -", stalled_result="most_captures")
    assert ending(play(position, "A1-A2")) == (True, None, "quiet")
    assert ending(play(Position("petteia", "simple", first_player="natural"), *SHUFFLE * 2)) == (
        True,
        None,
        "repetition",
    )


def test_p14_repetition():
    position = load("xxxxxx2/8/8/8/8/8/8/ooooooo1 o 0 -", stalled_result="most_captures")
    assert ending(play(position, *SHUFFLE * 2)) == (True, 0, "stalled")


# -- P15: forced capture ----------------------------------------------------------------------------------------------
FORCING = "xxxxxx2/8/8/3ox3/8/8/4x3/oooo1ooo o 0 -"


def test_p15_forced_capture():
    free, forced = load(FORCING), load(FORCING, forced_capture=True)
    captures = [move for move in free.legal_moves() if " x " in move]
    assert captures == ["F1 -> F5 x E5"]
    assert len(free.legal_moves()) > 30
    assert forced.legal_moves() == captures
    with pytest.raises(IllegalMoveError):
        forced.push("A1 -> A2")


def test_p15_free_choice_among_captures_and_without():
    position = load("xxxxx3/8/8/3ox3/3x4/8/8/ooooooo1 o 0 -", forced_capture=True)
    assert position.legal_moves() == ["D1 -> D3 x D4", "F1 -> F5 x E5"]
    assert len(Position("petteia", forced_capture=True).legal_moves()) == 48


def test_p15_with_die_only_captures_in_reach_are_forced():
    for die, expected in ((3, False), (4, True)):
        position = load(f"{FORCING[:-1]}{die}", forced_capture=True, die_limit=4)
        assert (position.legal_moves() == ["F1 -> F5 x E5"]) == expected
        assert len(position.legal_moves()) > 1 or expected


# -- P16: die ---------------------------------------------------------------------------------------------------------
def test_p16_die_limits_the_distance():
    position = Position("petteia", die_limit=4, chance="explicit")
    assert position.chance_outcomes() == [(1, 0.25), (2, 0.25), (3, 0.25), (4, 0.25)]
    assert (position.throw, position.legal_moves()) == (None, [])
    position.apply_chance(2)
    assert position.throw == 2
    assert position.text() == BOX_START[:-1] + "2"
    assert sorted(position.legal_moves()) == sorted(f"{f}1 -> {f}{r}" for f in "ABCDEFGH" for r in (2, 3))
    position.push("C1-C3")
    assert position.text().endswith("x 1 -")
    assert position.throw is None
    position.apply_chance(1)
    assert position.legal_moves() == [f"{f}8 -> {f}7" for f in "HGFEDCBA"]


@pytest.mark.parametrize("side", ["o", "x"])
def test_p16_moves_in_every_direction(side):
    text = "1xxxxxxx/8/8/8/3{}4/8/8/1ooooooo {} 0 3".format("ox"[side == "x"], side)
    position = load(text, die_limit=4)
    expected = {f"D{rank}" for rank in (2, 3, 5, 6, 7)} | {f"{file}4" for file in "ABCEFG"}
    assert moves_from(position, "D4") == expected


def test_p16_after_random_first_player():
    position = Position("petteia", "divination", chance="explicit")
    assert [value for value, _ in position.chance_outcomes()] == [0, 1]
    position.apply_chance(1)
    assert [value for value, _ in position.chance_outcomes()] == [1, 2, 3, 4]
    assert position.text().endswith("x 0 -")


def test_p16_the_end_throws_no_die():
    blocked = play(load("xx6/oo6/8/2o5/8/8/8/8 o 0 3", die_limit=4), "C5-C8")
    assert ending(blocked) == (True, 0, "blocked")
    assert (blocked.chance_outcomes(), blocked.throw) == ([], None)
    assert blocked.text() == "xxo5/oo6/8/8/8/8/8/8 x 1 -"


# -- P17: stakes ------------------------------------------------------------------------------------------------------
THREE = "xx4xx/8/3o4/3x4/1ox1xo2/8/8/ooooo3 o 0 -"


def test_p17_one_throw_for_each_captured_piece():
    position = play(load(THREE, stake_die=4), "D1-D4")
    for coins in (4, 1, 3):
        assert position.chance_outcomes() == [(1, 0.25), (2, 0.25), (3, 0.25), (4, 0.25)]
        assert position.to_move == 0
        assert position.legal_moves() == []
        position.apply_chance(coins)
    assert position.chance_outcomes() == []
    assert position.to_move == 1
    assert position.balance == 8
    assert RULES.status(position.options, position.rows[0])["balance"] == "+8"


def test_p17_black_is_paid_by_natural():
    position = play(load(turned(THREE), stake_die=6), "E8-E5")
    assert len(position.chance_outcomes()) == 6
    for coins in (6, 6, 1):
        position.apply_chance(coins)
    assert (position.balance, position.to_move, position.margin) == (-13, 0, -4)
    assert view(position, 0)[1]["balance"] == -13
    assert view(position, 1)[1]["balance"] == 13


@pytest.mark.parametrize(("reward", "rewards"), [("result", (1, -1)), ("stakes", (6, -6))])
def test_p17_end_waits_for_the_last_throw(reward, rewards):
    position = play(load(THREE, stake_die=4, capture_target=4, reward=reward), "D1-D4")
    for _ in range(3):
        assert ending(position) == (False, None, None)
        assert position.rewards == (0, 0)
        position.apply_chance(2)
    assert ending(position) == (True, 0, "captures")
    assert position.rewards == rewards


def test_p17_coins_never_change_who_wins():
    text = "xxxxx1x1/8/4x3/4o3/5x2/8/8/oo6 x 5 -"
    position = play(load(text, stake_die=4, reward="stakes", capture_target=7), "F4-E4")
    position.apply_chance(4)
    assert position.balance == -4
    draw = load("xxxxxxxx/8/8/8/8/8/8/ooooooo1 o 99 -", stake_die=4, reward="stakes")
    assert ending(play(draw, "A1-A2")) == (True, None, "quiet")
    assert draw.rewards == (0, 0)


def test_p17_stakes_are_paid_at_draw_and_truncation():
    lost = play(load(THREE, stake_die=4, reward="stakes", quiet_limit=1), "D1-D4")
    for _ in range(3):
        lost.apply_chance(3)
    assert not lost.is_over
    assert ending(play(lost, "A8-A7")) == (True, None, "quiet")
    assert lost.rewards == (9, -9)
    stopped = play(load(THREE, stake_die=4, reward="stakes", max_turns=1), "D1-D4")
    for _ in range(3):
        stopped.apply_chance(1)
    assert ending(stopped) == (True, None, "max_turns")
    assert stopped.rewards == (3, -3)


def test_p17_stakes_before_the_next_die():
    position = play(load(THREE[:-1] + "4", stake_die=6, die_limit=4), "D1-D4")
    kinds = []
    while position.chance_outcomes():
        kinds.append(len(position.chance_outcomes()))
        position.apply_chance(1)
    assert kinds == [6, 6, 6, 4]
    assert (position.to_move, position.throw) == (1, 1)


def test_balance_only_with_stakes():
    assert Position("petteia").balance is None
    assert Position("petteia", stake_die=4).balance == 0


# -- P18: corners -----------------------------------------------------------------------------------------------------
def test_p18_corner_capture():
    """Position 6."""
    text = "5xxx/8/8/8/8/1o6/o7/x6o o 0 -"
    assert play(load(text), "B3 -> B1").text() == "5xxx/8/8/8/8/8/o7/xo5o x 1 -"
    position = load(text, corner_capture=True)
    assert "B3 -> B1 x A1" in position.legal_moves()
    assert play(position, "B3-B1").text() == "5xxx/8/8/8/8/8/o7/1o5o x 0 -"


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("1xxxx3/8/8/8/8/o7/8/xo1oooo1 o 0 -", "A3 -> A2 x A1"),
        ("1xxxx3/8/8/8/8/7o/8/oooo2ox o 0 -", "H3 -> H2 x H1"),
        ("1xxxx3/8/8/8/8/6o1/7o/oooo3x o 0 -", "G3 -> G1 x H1"),
        ("x1xxxx2/o7/8/8/8/8/8/1o1oooo1 o 0 -", "B1 -> B8 x A8"),
        ("xo1xxx2/8/8/8/8/8/8/o2oooo1 o 0 -", "A1 -> A7 x A8"),
        ("xxxx3x/7o/8/8/8/8/8/o2o2oo o 0 -", "G1 -> G8 x H8"),
        ("xxxx2ox/8/8/8/8/8/8/o2o3o o 0 -", "H1 -> H7 x H8"),
        ("o2x4/x7/8/8/8/8/8/oooooo2 x 0 -", "D8 -> B8 x A8"),
        ("ox2x3/8/x7/8/8/8/8/oooooo2 x 0 -", "A6 -> A7 x A8"),
    ],
)
def test_p18_every_corner_and_side(text, move):
    assert move in load(text, corner_capture=True).legal_moves()
    assert move.split(" x ")[0] in load(text).legal_moves()


def test_p18_needs_the_moved_piece_and_both_neighbours():
    # Both neighbours stand there already; another piece moves.
    position = play(load("5xxx/8/8/8/8/7o/o7/xo6 o 0 -", corner_capture=True), "H3-H4")
    assert board(position).endswith("/o7/xo6")
    # One neighbour is the enemy's own.
    position = play(load("5xxx/8/8/8/8/1o6/x7/x6o o 0 -", corner_capture=True), "B3-B1")
    assert board(position).endswith("/x7/xo5o")
    # Both neighbours, but not of a corner.
    position = play(load("5xxx/8/8/8/8/2o5/1o6/1x5o o 0 -", corner_capture=True), "C3-C1")
    assert board(position).endswith("/1o6/1xo4o")


def test_p18_entering_the_corner_is_safe():
    position = play(load("xxxxx3/8/8/8/x7/8/o7/1o1o4 x 0 -", corner_capture=True), "A4-A3")
    assert board(position).endswith("/x7/o7/1o1o4")
    position = play(load("xxxxx3/8/8/8/8/8/o7/1o1o3x x 0 -", corner_capture=True), "H1-E1")
    assert board(position).endswith("/o7/1o1ox3")


# -- P19: leaders -----------------------------------------------------------------------------------------------------
def test_p19_leader_squares():
    start = Position("petteia", "simple", leader=True, first_player="natural")
    assert start.text() == "xxxxxxxxxxxx/6X5/12/12/12/12/5O6/oooooooooooo o 0 -"
    two_rows = Position("petteia", rows=8, cols=6, leader=True, stone_rows=2)
    assert two_rows.text() == "xxxxxx/xxxxxx/3X2/6/6/2O3/oooooo/oooooo o 0 -"
    odd = Position("petteia", rows=6, cols=5, leader=True, capture_target=3)
    assert odd.text() == "xxxxx/2X2/5/5/2O2/ooooo o 0 -"


def test_p19_stone_rows():
    position = Position("petteia", stone_rows=2)
    assert position.text() == "xxxxxxxx/xxxxxxxx/8/8/8/8/oooooooo/oooooooo o 0 -"
    assert len(position.legal_moves()) == 8 * 4
    assert load(position.text(), stone_rows=2, capture_target=16).options.stones == 16


def test_p19_the_leader_moves_and_captures():
    position = load("xxxxxxx1/X7/8/3ox3/8/5O2/8/ooooooo1 o 0 -", leader=True)
    assert "F3 -> F5 x E5" in position.legal_moves()
    assert play(position, "F3-F5").text() == "xxxxxxx1/X7/8/3o1O2/8/8/8/ooooooo1 x 0 -"
    far_end = load("xxxxxxx1/X7/8/3Ox3/8/5o2/8/ooooooo1 o 0 -", leader=True)
    assert play(far_end, "F3-F5").text() == "xxxxxxx1/X7/8/3O1o2/8/8/8/ooooooo1 x 0 -"


def test_p19_the_leader_is_not_captured():
    row = load("xxxxxxx1/8/8/3oX3/8/5o2/8/oooooo1O o 0 -", leader=True)
    assert "F3 -> F5" in row.legal_moves()
    assert play(row, "F3-F5").text() == "xxxxxxx1/8/8/3oXo2/8/8/8/oooooo1O x 1 -"
    file = load("xxxxxxx1/8/3o4/3X4/5o2/8/8/oooooo1O o 0 -", leader=True)
    assert "F4 -> D4" in file.legal_moves()
    black = load(turned("xxxxxxx1/8/8/3oX3/8/5o2/8/oooooo1O o 0 -"), leader=True)
    assert "C6 -> C4" in black.legal_moves()
    corner = load("5xxx/8/8/8/8/1o6/o7/X5Oo o 0 -", leader=True, corner_capture=True)
    assert "B3 -> B1" in corner.legal_moves()


def test_p19_one_of_two_captures_is_the_leaders_neighbour():
    position = load("xxxxxx2/8/3o4/3x4/1oX2o2/8/8/ooo4O o 0 -", leader=True)
    assert "F4 -> D4 x D5" in position.legal_moves()


def test_p19_leader_and_stone_are_different_positions():
    # The leader and a stone change places: the board with letters differs, so nothing has repeated.
    options = {"leader": True, "repetition_limit": 2}
    position = load("xxxxxxxX/x7/8/8/8/8/8/ooooooO1 o 0 -", **options)
    play(position, "G1-G2", "A7-A6", "F1-F3", "A6-A7", "G2-F2", "A7-A6", "F3-G3", "A6-A7", "G3-G1", "A7-A6")
    assert not play(position, "F2-F1", "A6-A7").is_over
    stones = load("xxxxxxx1/x7/X7/8/8/O7/8/oooooooo o 0 -", **options)
    play(stones, "G1-G2", "A7-B7", "F1-F3", "B7-A7", "G2-F2", "A7-B7", "F3-G3", "B7-A7", "G3-G1", "A7-B7")
    assert ending(play(stones, "F2-F1", "B7-A7")) == (True, None, "repetition")


def test_p19_captures_count_stones_only():
    position = load("1xxxxxxx/3X4/8/8/8/8/3O4/oooooooo o 0 -", leader=True)
    assert position.margin == 1
    assert view(position, 0)[1]["own_captures"] == 1


# -- P20: max_turns ---------------------------------------------------------------------------------------------------
def test_p20_max_turns_truncates():
    position = play(Position("petteia", max_turns=3), "A1-A2", "A8-A7")
    assert not position.is_over
    play(position, "A2-A3")
    assert ending(position) == (True, None, "max_turns")
    assert position.is_truncated
    assert position.rewards == (0, 0)
    assert position.legal_actions() == []


def test_p20_is_judged_last():
    assert ending(play(Position("petteia", max_turns=8), *SHUFFLE * 2)) == (True, None, "repetition")
    assert ending(play(load("xx6/oo6/8/8/8/8/8/2o5 o 0 -", max_turns=1), "C1-C8")) == (True, 0, "blocked")


# -- loading finished positions ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "winner", "reason"),
    [
        ("x7/8/8/8/8/8/8/oooooooo x 0 -", 0, "captures"),
        ("xxxxxxxx/8/8/8/8/8/8/o7 o 0 -", 1, "captures"),
        ("8/8/8/8/8/8/8/oooooooo x 0 -", 0, "captures"),
        ("xxo5/oo6/8/8/8/8/8/8 x 3 -", 0, "blocked"),
        ("xxo5/oo6/8/8/8/8/8/8 x 100 -", 0, "blocked"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo x 100 -", None, "quiet"),
    ],
)
def test_finished_positions_load_as_finished(text, winner, reason):
    position = load(text)
    assert ending(position) == (True, winner, reason)
    assert position.text() == text
    assert position.rewards == {0: (1, -1), 1: (-1, 1), None: (0, 0)}[winner]
    assert position.legal_moves() == []


# -- text -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "4 fields"),
        ("   ", "4 fields"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 0", "4 fields"),
        (BOX_START + " -", "4 fields"),
        ("xxxxxxxx/8/8/8/8/8/oooooooo o 0 -", "8 rows, not 7"),
        ("xxxxxxxx/8/8/8/8/8/8/8/oooooooo o 0 -", "8 rows, not 9"),
        ("xxxxxxxx/8/8/8/8/8/8/ooooooo o 0 -", "row 1 must have 8 squares"),
        ("xxxxxxxx/8/8/8/8/8/8/ooooooo2 o 0 -", "row 1 must have 8 squares"),
        ("xxxxxxxx//8/8/8/8/8/oooooooo o 0 -", "row 7 must have 8 squares"),
        ("xxxxxxxx/44/8/8/8/8/8/oooooooo o 0 -", "row 7 must have 8 squares"),
        ("xxxxxxxx/08/8/8/8/8/8/oooooooo o 0 -", "row 7 may hold"),
        ("xxxxxxxx/0x7/8/8/8/8/8/oooooooo o 0 -", "row 7 may hold"),
        ("xxxxxxxx/٨/8/8/8/8/8/oooooooo o 0 -", "row 7 may hold"),
        ("xxxxxxxx/-8/8/8/8/8/8/oooooooo o 0 -", "row 7 may hold"),
        ("xxxxxxxx/" + "9" * 5000 + "/8/8/8/8/8/oooooooo o 0 -", "row 7 must have 8 squares"),
        ("xxxxxxxx/" + "1" * 5000 + "z/8/8/8/8/8/oooooooo o 0 -", "row 7 may hold"),
        ("xxxxxxxz/8/8/8/8/8/8/oooooooo o 0 -", "row 8 may hold"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooO o 0 -", "no leaders"),
        ("xxxxxxxx/x7/8/8/8/8/8/oooooooo o 0 -", "black has 9 stones; there are only 8"),
        ("xxxxxxxx/8/8/8/8/8/o7/oooooooo o 0 -", "natural has 9 stones; there are only 8"),
        ("x7/8/8/8/8/8/8/o7 o 0 -", "both sides have won"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo n 0 -", "side to move"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo O 0 -", "side to move"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo ox 0 -", "side to move"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo ? 0 -", "start position"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o -1 -", "quiet moves"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 00 -", "quiet moves"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o ٣ -", "quiet moves"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 101 -", "0 to 100"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 1.5 -", "quiet moves"),
        (f"xxxxxxxx/8/8/8/8/8/8/oooooooo o {'9' * 5000} -", "quiet moves"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 0 3", "no die"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 0 x", "no die"),
    ],
)
def test_impossible_text_is_refused(text, says):
    with pytest.raises(NotationError, match=re.escape(says)):
        load(text)


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 0 5", {"die_limit": 4}, "the die"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 0 0", {"die_limit": 4}, "the die"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 0 ٣", {"die_limit": 4}, "the die"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 0 -3", {"die_limit": 4}, "the die"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 100 3", {"die_limit": 4}, "the game is over"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 40000 -", {"quiet_limit": 0}, "quiet moves"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo o 0 -", {"leader": True}, "one leader 'O' and one leader 'X'"),
        ("xxxxxxxx/X7/8/8/8/8/8/oooooooo o 0 -", {"leader": True}, "one leader 'O' and one leader 'X'"),
        ("xxxxxxxx/XX6/8/8/8/8/OO6/oooooooo o 0 -", {"leader": True}, "one leader 'O' and one leader 'X'"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo ? 1 -", {"first_player": "random"}, "start position"),
        ("xxxxxxxx/8/8/8/8/8/o7/1ooooooo ? 0 -", {"first_player": "random"}, "start position"),
        ("xxxxxxxx/8/8/8/8/8/8/oooooooo ? 0 2", {"first_player": "random", "die_limit": 4}, "start position"),
        ("xx6/8/8/8/8/8/8/oooooooo x 0 -", {"capture_target": 3}, "nobody loses more than 5"),
    ],
)
def test_impossible_text_under_options_is_refused(text, options, says):
    with pytest.raises(NotationError, match=re.escape(says)):
        load(text, **options)


def test_whitespace_around_fields():
    assert load(f"  {BOX_START.replace(' ', '   ')}\n").text() == BOX_START


def test_twelve_is_one_number():
    text = "xxxxxxxxxxxx/12/12/12/11o/12/12/ooooooooooo1 x 7 -"
    assert load(text, variant="simple").text() == text


# -- notation ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "move",
    [
        "D1 -> D4 x C4,D5,E4",
        "D1 -> D4",
        "D1 → D4",
        "D1-D4",
        "d1d4",
        " d1  ->  d4 ",
        "D1->D4xC4,D5,E4",
        "d1d4 X e4 , d5,c4",
    ],
)
def test_move_spellings(move):
    position = load(THREE)
    assert play(position, move).text() == "xx4xx/8/3o4/8/1o1o1o2/8/8/ooo1o3 x 0 -"


@pytest.mark.parametrize(
    "move",
    [
        "",
        "D1",
        "D1 D4 E4",
        "D1 = D4",
        "D1 -> D9",
        "D1 -> I4",
        "D0 -> D4",
        "D01 -> D4",
        "D1 -> D4 x",
        "D1 -> D4 x Z9",
        "D1 -> D4 x C4 D5",
        "D1 -> D٤",
        "D1 -> D" + "4" * 5000,
        "D1" + " " * 50_000 + "?",
        "pass",
        "11",
        "D-1 -> D4",
        "\u212a1 -> D4",
        "D1 -> D4,",
    ],
)
def test_unreadable_moves(move):
    position = load(THREE)
    with pytest.raises(NotationError):
        position.push(move)
    assert position.text() == THREE


@pytest.mark.parametrize(
    "move",
    [
        "D1 -> D4 x C4",
        "D1 -> D4 x C4,D5,E4,A8",
        "D1 -> D4 x C4,C4,D5,E4",
        "D1 -> D3 x D4",
        "D1 -> E4",
        "D1 -> D1",
        "D1 -> D5",
        "D1 -> D7",
        "A8 -> A7",
        "H1 -> H2",
    ],
)
def test_illegal_moves(move):
    position = load(THREE)
    with pytest.raises(IllegalMoveError):
        position.push(move)
    assert position.text() == THREE


@pytest.mark.parametrize("move", ["D1 -> D4 x C4" + ",C4" * 5000, "D1" + " " * 5000 + "E4"])
def test_refusals_quote_no_more_than_the_beginning(move):
    with pytest.raises(IllegalMoveError) as refusal:
        load(THREE).push(move)
    assert len(str(refusal.value)) < 200


def test_two_digit_ranks_and_far_files():
    position = Position("petteia", rows=12, cols=12, first_player="black")
    assert "L12 -> L11" in position.legal_moves()
    assert play(position, "l12l3").text().startswith("xxxxxxxxxxx1/")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_legal_move_reads_back(variant):
    rng = random.Random(5)
    position = Position("petteia", variant, seed=5)
    for _ in range(40):
        if position.is_over:
            break
        for action, move in zip(position.legal_actions(), position.legal_moves(), strict=True):
            assert position.parse(move) == action
            assert position.parse(move.split(" x ")[0].replace(" -> ", "").lower()) == action
        position.push(rng.choice(position.legal_actions()))


def test_board_text():
    lines = str(load("xxxxxxx1/X7/8/8/8/8/3O4/oooooooo x 7 3", leader=True, die_limit=4)).splitlines()
    assert lines[0] == " 8  x x x x x x x ."
    assert lines[1] == " 7  X . . . . . . ."
    assert lines[7] == " 1  o o o o o o o o"
    assert lines[8] == "    A B C D E F G H"
    assert lines[9] == "black (x) to move"
    assert lines[10] == "natural captures 1, black captures 0, quiet moves 7, die 3"
    assert "not yet thrown" in str(Position("petteia", first_player="random", chance="explicit"))
    for text, result in (
        ("xxo5/oo6/8/8/8/8/8/8 x 3 -", "natural (o) wins: blocked"),
        ("xxxxxxxx/8/8/8/8/8/8/o7 o 0 -", "black (x) wins: captures"),
        (BOX_START.replace(" 0 ", " 100 "), "draw: quiet"),
    ):
        assert str(load(text)).splitlines()[9] == result
    assert "stopped: max_turns" in str(play(Position("petteia", max_turns=1), "A1-A2"))


def test_site_pieces_and_layout():
    position = load("xxxxxxx1/X7/8/8/8/8/3O4/oooooooo x 7 -", leader=True)
    layout = position.ruleset.layout
    pieces = dict(zip(layout.names, RULES.site_pieces(position.options, position.rows[0]), strict=True))
    assert (pieces["A1"], pieces["D2"], pieces["A7"], pieces["G8"], pieces["H8"]) == ("o", "O", "X", "x", "")
    cells = dict(zip(layout.names, layout.cells, strict=True))
    assert (cells["A1"], cells["H1"], cells["A8"]) == ((7, 0), (7, 7), (0, 0))


# -- options ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"rows": 3}, "rows"),
        ({"cols": 13}, "cols"),
        ({"rows": 8.0}, "rows"),
        ({"first_player": "white"}, "first_player"),
        ({"first_player": "throw_off"}, "first_player"),
        ({"capture_target": 0}, "capture_target"),
        ({"capture_target": 9}, "capture_target"),
        ({"rows": 6, "cols": 6}, "capture_target"),
        ({"repetition_limit": -1}, "repetition_limit"),
        ({"repetition_limit": 1}, "repetition_limit"),
        ({"quiet_limit": -1}, "quiet_limit"),
        ({"quiet_limit": 40_000}, "quiet_limit"),
        ({"stalled_result": "win"}, "stalled_result"),
        ({"forced_capture": 1}, "forced_capture"),
        ({"die_limit": -1}, "die_limit"),
        ({"die_limit": True}, "die_limit"),
        ({"stake_die": 21}, "stake_die"),
        ({"reward": "coins", "stake_die": 4}, "reward"),
        ({"reward": "stakes"}, "reward"),
        ({"corner_capture": "yes"}, "corner_capture"),
        ({"leader": None}, "leader"),
        ({"stone_rows": 0}, "stone_rows"),
        ({"stone_rows": 3}, "stone_rows"),
        ({"rows": 4, "stone_rows": 2}, "stone_rows"),
        ({"rows": 5, "stone_rows": 2, "leader": True}, "leader"),
        ({"max_turns": -1}, "max_turns"),
        ({"quite_limit": 3}, "quiet_limit"),
    ],
)
def test_option_errors_name_the_option(options, names):
    with pytest.raises(OptionError, match=names):
        Position("petteia", **options)


def test_smallest_rooms_between_armies():
    assert len(Position("petteia", rows=5, stone_rows=2).legal_moves()) == 8
    assert not Position("petteia", rows=4, leader=True).is_over
    assert not Position("petteia", rows=6, stone_rows=2, leader=True).is_over


# -- counting ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("depth", "leaves"), [(0, 1), (1, 48), (2, 2_136), (3, 112_874), (4, 5_673_664)])
def test_perft_of_the_box(depth, leaves):
    if depth == 4 and numba.config.DISABLE_JIT:
        pytest.skip("takes minutes as plain Python")
    assert perft("petteia", depth) == leaves


def test_perft_counts_throws_as_branches():
    assert perft("petteia", 1, first_player="random") == 2 * 48
    assert perft("petteia", 1, die_limit=4) == 8 * (1 + 2 + 3 + 4)
    assert perft("petteia", 2, "mini") == sum(
        len(play(Position("petteia", "mini"), move).legal_moves()) for move in Position("petteia", "mini").legal_moves()
    )


# -- what a seat sees -------------------------------------------------------------------------------------------------
def test_view_is_in_the_observers_frame():
    position = load("xxxxxxx1/X7/8/8/8/8/3O4/1ooooooo x 7 3", leader=True, die_limit=4, max_turns=50)
    sites, scalars = view(position, 1)
    assert np.flatnonzero(sites["own"]).tolist() == [1, 2, 3, 4, 5, 6, 7, 15]
    assert np.flatnonzero(sites["own_mark"]).tolist() == [15]
    assert np.flatnonzero(sites["enemy_mark"]).tolist() == [63 - 11]
    assert np.flatnonzero(sites["enemy"]).tolist() == [63 - 11, 56, 57, 58, 59, 60, 61, 62]
    seen = {name: value for name, value in scalars.items() if value}
    assert seen == {"own_captures": 1, "enemy_captures": 1, "die": 3, "quiet": 7, "my_turn": 1}
    assert view(position, 0)[1] == scalars | {"my_turn": 0, "natural": 1}


def test_view_counts_repetitions_and_turns():
    position = play(Position("petteia", max_turns=50), *SHUFFLE)
    scalars = view(position, 0)[1]
    assert (scalars["repetition"], scalars["turns"], scalars["quiet"]) == (1, 4, 4)
    assert view(play(position, "B1-B2"), 0)[1]["repetition"] == 0
    assert view(play(Position("petteia"), "A1-A2"), 0)[1]["turns"] == 0


OPTION_SETS = [
    *[(variant, {}) for variant in VARIANTS],
    ("mini", {"quiet_limit": 0, "max_turns": 300}),
    ("fr6", {"leader": True, "forced_capture": True, "corner_capture": True, "max_turns": 90}),
    ("fr6", {"die_limit": 6, "stake_die": 3, "reward": "stakes", "forced_capture": True, "first_player": "random"}),
    ("mini", {"rows": 5, "cols": 4, "stone_rows": 2, "repetition_limit": 4, "stalled_result": "most_captures"}),
    ("box", {"rows": 12, "cols": 5, "capture_target": 5, "repetition_limit": 0}),
]


@pytest.mark.parametrize(("variant", "options"), OPTION_SETS)
def test_random_games(variant, options):
    """Pieces are conserved, texts round-trip, draws come exactly when counted, and what is seen fits its scale."""
    rng = random.Random(f"{variant} {options}")
    scales = RULES.feature_scales(make_options(RULES, variant, **options))
    reasons = collections.Counter()
    for seed in range(12):
        position = Position("petteia", variant, seed=seed, **options)
        seen = collections.Counter()
        quiet = 0
        while not position.is_over:
            if rng.random() < 0.1:
                check_text_and_view(position, scales)
            rows, side, quiet_field, _ = position.text().split()
            seen[rows, side] += 1
            limit = position.options.repetition_limit
            assert limit == 0 or seen[rows, side] < limit
            assert int(quiet_field) == quiet
            assert position.options.quiet_limit == 0 or quiet < position.options.quiet_limit
            stones = sum(letter in "oxOX" for letter in rows)
            position.push(rng.choice(position.legal_actions()))
            is_capture = sum(letter in "oxOX" for letter in board(position)) < stones
            quiet = 0 if is_capture else quiet + 1
            if is_capture:
                seen.clear()
        check_text_and_view(position, scales)
        check_ending(position, seen, quiet)
        reasons[position.reason] += 1
    assert sum(reasons.values()) == 12


def check_text_and_view(position, scales):
    text = position.text()
    loaded = load(text, variant=position.variant, **position.ruleset.overrides)
    assert loaded.text() == text
    assert loaded.margin == position.margin
    if position.options.repetition_limit > 0:  # the hash kept move by move is that of the position itself
        assert loaded.rows[1][0] in position.rows[1]
    if position.reason not in ("repetition", "stalled", "max_turns"):  # what a text does not tell
        assert loaded.legal_actions() == position.legal_actions()
        assert (loaded.winner, loaded.reason) == (position.winner, position.reason)
    for seat in (0, 1):
        sites, scalars = view(position, seat)
        shown = {name: np.abs(values).max() for name, values in sites.items()} | {n: abs(v) for n, v in scalars.items()}
        assert all(value <= scales.get(name, 0) for name, value in shown.items()), shown
    assert -1 < heuristic(position) < 1 or position.is_over


def check_ending(position, seen, quiet):
    rows, side, *_ = position.text().split()
    options = position.options
    missing = [options.stones - rows.count("x"), options.stones - rows.count("o")]
    assert position.margin == missing[0] - missing[1]
    occurrences = seen[rows, side] + 1
    if position.reason == "captures":
        assert missing[position.winner] >= options.capture_target
        assert position.to_move == 1 - position.winner
    elif position.reason == "repetition":
        assert occurrences == options.repetition_limit
    elif position.reason == "quiet":
        assert quiet == options.quiet_limit
    elif position.reason == "stalled":
        assert position.winner == (0 if position.margin > 0 else 1)
        assert occurrences == options.repetition_limit or quiet == options.quiet_limit
    elif position.reason == "max_turns":
        assert position.turns == options.max_turns
    else:
        assert position.reason == "blocked"
    if position.reason in ("repetition", "quiet") and options.stalled_result == "most_captures":
        assert position.margin == 0
    payoff = {0: 1, 1: -1, None: 0}[position.winner] if options.reward == "result" else position.balance
    assert position.rewards == (payoff, -payoff)
