"""Rules of Yut Nori: a test for each id of RULES.md, the numbered positions, the options and the notation."""

import random

import numpy as np
import pytest

from tradgames_env.position import Position, perft
from tradgames_env.rules.contract import (
    ENEMY,
    ENEMY_CAPTURES,
    ENEMY_COUNT,
    ENEMY_MARK,
    ENEMY_RESERVE,
    MY_TURN,
    NATURAL,
    OWN,
    OWN_CAPTURES,
    OWN_COUNT,
    OWN_MARK,
    OWN_RESERVE,
    PARTNER,
    SCALARS,
    SEAT,
    SITE_FEATURES,
    THROW_1,
    THROW_BACK,
    TURN_COUNT,
    TURNS,
    make_options,
)
from tradgames_env.rules.errors import IllegalMoveError, NotationError, OptionError
from tradgames_env.rules.yut_nori import HAND_LIMIT, MARKS, OTHER_SEAT, RULES

TRADITIONAL = {"extra_on_yut_mo": True, "backdo": True, "finish": "pass"}


def at(text, **options):
    """The position a text describes, throws left to the test."""
    return Position.from_text("yut_nori", text, chance="explicit", **options)


def start(**options):
    return Position("yut_nori", chance="explicit", **options)


def after(text, *moves, **options):
    """Text after moves in notation and throws as integers."""
    position = at(text, **options)
    for move in moves:
        if isinstance(move, int):
            position.apply_chance(move)
        else:
            position.push(move)
    return position.text()


def moves_of(text, **options):
    return set(at(text, **options).legal_moves())


# -- N1, N2, N3: pieces and throws ---------------------------------------------------------------------------------
def test_n1_all_pieces_wait_at_the_start():
    assert start(first_player="natural").text() == "w:4 w:4 o -"
    assert start(first_player="natural", pieces=7).text() == "w:7 w:7 o -"
    assert start(variant="duel", first_player="black").text() == "w:2 w:2 x -"
    assert start(variant="mini", first_player="natural").text() == "w:1 w:1 o -"


def test_n2_throws_of_fair_sticks():
    odds = dict(start(first_player="natural").chance_outcomes())
    assert odds == pytest.approx({1: 4 / 16, 2: 6 / 16, 3: 4 / 16, 4: 1 / 16, 5: 1 / 16})


def test_n2_throws_of_uneven_sticks():
    odds = dict(start(first_player="natural", stick_p=0.6).chance_outcomes())
    assert odds == pytest.approx({1: 0.1536, 2: 0.3456, 3: 0.3456, 4: 0.1296, 5: 0.0256})


def test_n2_the_throw_is_shown_until_it_is_played():
    position = start(first_player="natural")
    assert position.throw is None
    assert position.legal_moves() == []
    position.apply_chance(3)
    assert position.throw == 3
    assert position.text() == "w:4 w:4 o 3"
    position.push("enter -> 3")
    assert position.throw is None
    assert position.text() == "3:1,w:3 w:4 x -"


def test_n3_nak_ends_the_turn():
    position = at("3:1,w:3 w:4 o -", nak_prob=0.25)
    odds = dict(position.chance_outcomes())
    assert odds == pytest.approx({1: 3 / 16, 2: 4.5 / 16, 3: 3 / 16, 4: 0.75 / 16, 5: 0.75 / 16, 0: 0.25})
    position.apply_chance(0)
    assert position.text() == "3:1,w:3 w:4 x -"
    assert position.turns == 1


def test_n3_no_nak_without_the_option():
    with pytest.raises(IllegalMoveError):
        at("w:4 w:4 o -").apply_chance(0)


def test_n3_nak_forfeits_the_hand():
    assert after("w:4 w:4 o -", 5, 4, 0, variant="traditional", nak_prob=0.1) == "w:4 w:4 x -"


def test_n3_nak_is_a_turn_for_max_turns():
    position = at("w:4 w:4 o -", nak_prob=0.1, max_turns=1)
    position.apply_chance(0)
    assert (position.is_over, position.winner, position.reason) == (True, None, "max_turns")
    assert position.text() == "w:4 w:4 x -"


# -- N4, N5: moving -----------------------------------------------------------------------------------------------
def test_n4_enter_or_advance():
    assert moves_of("7:1,17:2,w:1 w:4 o 2") == {"enter -> 2", "7 -> 9", "17 -> 19"}
    assert moves_of("7:1,17:2,h:1 w:4 o 2") == {"7 -> 9", "17 -> 19"}
    assert moves_of("w:4 6:1,w:3 x 5") == {"enter -> 5", "6 -> 11"}


def test_n4_a_unit_of_the_enemy_cannot_be_moved():
    with pytest.raises(IllegalMoveError):
        at("7:1,w:3 6:1,w:3 o 2").push("6 -> 8")


def test_n4_there_is_no_pass():
    with pytest.raises(IllegalMoveError):
        at("w:4 w:4 o 2").push("pass")


LANDINGS = {
    "12": "13 14 15 16 17",
    "16": "17 18 19 h h",
    "5 short": "20 21 22 23 24",
    "10 short": "25 26 22 27 28",
    "20": "21 22 23 24 15",
    "21": "22 23 24 15 16",
    "22 home": "27 28 h h h",
    "22 rim": "23 24 15 16 17",
    "25": "26 22 27 28 h",
    "26": "22 27 28 h h",
    "23": "24 15 16 17 18",
    "27": "28 h h h h",
    # Beyond RULES.md: the rest of the course.
    "5 rim": "6 7 8 9 10",
    "10 rim": "11 12 13 14 15",
    "3": "4 5 6 7 8",
    "8": "9 10 11 12 13",
    "14": "15 16 17 18 19",
    "15": "16 17 18 19 h",
    "19": "h h h h h",
    "24": "15 16 17 18 19",
    "28": "h h h h h",
}


@pytest.mark.parametrize("backdo", [False, True])
@pytest.mark.parametrize("origin", LANDINGS)
def test_n5_landings(origin, backdo):
    station, forks = origin.split()[0], {"5", "10", "22"}
    for throw, end in enumerate(LANDINGS[origin].split(), start=1):
        moves = moves_of(f"{station}:1,h:3 w:4 o {throw}", backdo=backdo)
        assert f"{origin} -> {'home' if end == 'h' else end}" in moves
        assert len(moves) == (2 if station in forks else 1)


def test_n5_a_unit_rests_exactly_on_start_with_pass():
    for origin, throw in (("16", 4), ("15", 5), ("22 home", 3), ("25", 5), ("28", 1)):
        text = f"{origin.split()[0]}:1,h:3 w:4 o {throw}"
        assert f"{origin} -> 0" in moves_of(text, finish="pass")
        assert f"{origin} -> home" in moves_of(text)


# -- N6, N7: stacks and captures ------------------------------------------------------------------------------------
def test_n6_landing_on_own_pieces_stacks_them_for_good():
    assert after("3:2,7:1,w:1 w:4 o 4", "3 -> 7") == "7:3,w:1 w:4 x -"
    assert after("7:3,w:1 w:4 o 2", "7 -> 9") == "9:3,w:1 w:4 x -"
    assert moves_of("7:3,h:1 w:4 o 2") == {"7 -> 9"}


def test_n7_captured_pieces_wait_again_and_the_player_throws_again():
    position = at("4:1,w:3 7:3,h:1 o 3")
    position.push("4 -> 7 x3")
    assert position.text() == "7:1,w:3 w:3,h:1 o -"
    assert position.turns == 0
    assert position.chance_due
    position.apply_chance(1)
    assert set(position.legal_moves()) == {"enter -> 1", "7 -> 8"}


def test_n7_without_limit():
    text = after("w:4 1:1,2:1,3:1,w:1 o 1", "enter -> 1", 1, "1 -> 2", 1, "2 -> 3")
    assert text == "3:1,w:3 w:4 o -"


def test_n7_entering_captures():
    assert after("w:4 2:2,w:2 o 2", "enter -> 2 x2") == "2:1,w:3 w:4 o -"


def test_n7_passing_over_harms_nobody():
    assert after("4:1,w:3 5:1,w:3 o 2", "4 -> 6") == "6:1,w:3 5:1,w:3 x -"


# -- N8, N9: home ---------------------------------------------------------------------------------------------------
def test_n8_surplus_steps_are_lost_and_finishing_never_captures():
    assert after("19:2,w:2 1:1,w:3 o 2", "19 -> home") == "w:2,h:2 1:1,w:3 x -"
    assert after("19:1,w:3 w:4 o 1", "19 -> home") == "w:3,h:1 w:4 x -"


def test_n8_margin_counts_pieces_home():
    position = at("19:2,w:1,h:1 w:1,h:3 o 2")
    assert position.margin == -2
    position.push("19 -> home")
    assert position.margin == 0


def test_n9_all_home_wins_at_once():
    for text, winner in (("28:2,h:2 w:4 o 2", 0), ("w:4 28:2,h:2 x 2", 1)):
        position = at(text)
        position.push("28 -> home")
        assert (position.is_over, position.winner, position.reason) == (True, winner, "home")
        assert position.rewards == ((1.0, -1.0) if winner == 0 else (-1.0, 1.0))
        assert position.legal_moves() == []
        assert not position.chance_due
        assert position.to_move == 1 - winner


def test_n9_values_left_in_hand_are_not_played():
    position = at("28:2,h:2 w:4 o 5+2", extra_on_yut_mo=True)
    position.push("gae: 28 -> home")
    assert position.winner == 0
    assert position.text() == "h:4 w:4 x -"


# -- N10, N11: who plays ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("first_player", ["throw_off", "random"])
def test_n10_first_player_by_chance(first_player):
    for colour in range(2):
        position = start(first_player=first_player)
        assert position.text() == "w:4 w:4 ? -"
        assert position.chance_outcomes() == [(0, 0.5), (1, 0.5)]
        position.apply_chance(colour)
        assert position.to_move == colour
        assert position.text() == f"w:4 w:4 {'ox'[colour]} -"
        assert len(position.chance_outcomes()) == 5


def test_n10_first_player_named():
    assert start(first_player="natural").to_move == 0
    assert start(first_player="black").to_move == 1
    assert start().text() == "w:4 w:4 ? -"


def enter_for_seats(position, turns):
    """Seats in the order they decide, each entering a piece where nobody stands."""
    seats = []
    for turn in range(turns):
        position.apply_chance(1 + turn % 5)
        seats.append(position.seat)
        position.push(f"enter -> {1 + turn % 5}")
    return seats


def test_n11_partners_take_their_sides_turns_alternately():
    assert enter_for_seats(start(variant="teams", first_player="natural"), 5) == [0, 1, 2, 3, 0]
    assert enter_for_seats(start(variant="teams", first_player="black"), 5) == [1, 0, 3, 2, 1]
    assert enter_for_seats(start(first_player="natural"), 5) == [0, 1, 0, 1, 0]


def test_n11_a_partner_who_captures_throws_again_himself():
    position = at("4:1,w:3 7:1,w:3 o 3", variant="teams")
    position.push("4 -> 7")
    assert position.seat == 0
    position.apply_chance(1)
    position.push("7 -> 8")
    assert position.seat == 1


def test_n11_partners_win_together():
    position = at("28:2,h:2 w:4 o 2", variant="teams")
    position.push("28 -> home")
    assert (position.winner, position.seat) == (0, 1)


# -- N12: yut and mo throw again -------------------------------------------------------------------------------------
def test_n12_yut_and_mo_throw_again_before_moving():
    position = at("w:4 w:4 o -", extra_on_yut_mo=True)
    for throw, text in ((5, "5+?"), (4, "5+4+?"), (5, "5+5+4+?"), (2, "5+5+4+2")):
        position.apply_chance(throw)
        assert position.text() == f"w:4 w:4 o {text}"
    assert position.throw == (5, 5, 4, 2)
    assert not position.chance_due
    assert set(position.legal_moves()) == {"gae: enter -> 2", "yut: enter -> 4", "mo: enter -> 5"}


def test_n12_without_it_yut_and_mo_are_plain_throws():
    assert after("w:4 w:4 o -", 5) == "w:4 w:4 o 5"
    assert after("w:4 w:4 o -", 4, "enter -> 4") == "4:1,w:3 w:4 x -"


def test_n12_values_in_any_order_each_on_one_unit():
    options = {"extra_on_yut_mo": True}
    assert after("w:4 w:4 o 5+2", "mo: enter -> 5", "5 short -> 21", **options) == "21:1,w:3 w:4 x -"
    assert after("w:4 w:4 o 5+2", "gae: enter -> 2", "enter -> 5", **options) == "2:1,5:1,w:2 w:4 x -"
    assert after("w:4 w:4 o 5+2", "gae: enter -> 2", **options) == "2:1,w:3 w:4 o 5"


def test_n12_equal_values_are_named_and_listed_once():
    assert moves_of("7:1,w:3 w:4 o 4+4", extra_on_yut_mo=True) == {"yut: enter -> 4", "yut: 7 -> 11"}
    assert after("w:4 w:4 o 4+4", "enter -> 4", extra_on_yut_mo=True) == "4:1,w:3 w:4 o 4"


def test_n12_a_capture_adds_a_throw_at_once():
    text = "4:1,w:3 6:2,w:2 o 5+2"
    assert after(text, "gae: 4 -> 6 x2", extra_on_yut_mo=True) == "6:1,w:3 w:4 o 5+?"
    assert after(text, "gae: 4 -> 6", 4, 1, extra_on_yut_mo=True) == "6:1,w:3 w:4 o 5+4+1"


def test_n12_bonus_stacking():
    for throw, enemy in ((5, 6), (4, 5)):
        text = f"1:1,w:3 {enemy}:1,w:3 o {throw}+2"
        move = f"{'mo' if throw == 5 else 'yut'}: 1 -> {enemy} x1"
        stacking = after(text, move, extra_on_yut_mo=True)
        plain = after(text, move, extra_on_yut_mo=True, bonus_stacking=False)
        assert (stacking, plain) == (f"{enemy}:1,w:3 w:4 o 2+?", f"{enemy}:1,w:3 w:4 o 2")


def test_n12_small_values_add_a_throw_without_bonus_stacking():
    assert after("1:1,w:3 3:1,w:3 o 2", "1 -> 3", extra_on_yut_mo=True, bonus_stacking=False) == "3:1,w:3 w:4 o -"


def test_n12_a_last_capture_by_mo_without_bonus_stacking_ends_the_turn():
    options = {"extra_on_yut_mo": True, "bonus_stacking": False}
    assert after("1:1,w:3 6:1,w:3 o 5", "1 -> 6", **options) == "6:1,w:3 w:4 x -"


def test_n12_bonus_stacking_says_nothing_without_extra_throws():
    assert after("1:1,w:3 6:1,w:3 o 5", "1 -> 6", bonus_stacking=False) == "6:1,w:3 w:4 o -"


def test_n12_throws_end_even_with_sticks_that_always_fall_face_up():
    position = Position("yut_nori", seed=1, extra_on_yut_mo=True, first_player="natural", stick_p=1 - 1e-12)
    assert position.throw == (4,) * HAND_LIMIT
    assert position.legal_moves() == ["yut: enter -> 4"]
    assert at(position.text(), extra_on_yut_mo=True).throw == position.throw


# -- N13: backdo -----------------------------------------------------------------------------------------------------
def test_n13_probability():
    odds = dict(start(first_player="natural", backdo=True, stick_p=0.6).chance_outcomes())
    assert odds == pytest.approx({1: 0.1152, 2: 0.3456, 3: 0.3456, 4: 0.1296, 5: 0.0256, -1: 0.0384})
    odds = dict(start(first_player="natural", backdo=True, nak_prob=0.5).chance_outcomes())
    assert odds == pytest.approx({1: 3 / 32, 2: 6 / 32, 3: 4 / 32, 4: 1 / 32, 5: 1 / 32, -1: 1 / 32, 0: 0.5})


def test_n13_one_step_back():
    position = at("7:1,20:2,w:1 w:4 o -", backdo=True)
    position.apply_chance(-1)
    assert position.throw == -1
    assert position.text() == "7:1,20:2,w:1 w:4 o b"
    assert set(position.legal_moves()) == {"7 -> 6", "20 -> 5"}
    position.push("20 -> 5")
    assert position.text() == "5:2,7:1,w:1 w:4 x -"


BACKWARDS = {
    "2": "1", "5": "4", "10": "9", "14": "13", "15": "14", "15<5": "24", "15<10": "24<10", "16": "15", "16<5": "15<5",
    "19<10": "18<10", "20": "5", "21": "20", "22": "21", "22<10": "26", "23": "22", "23<10": "22<10", "24<10": "23<10",
    "25": "10", "26": "25", "27": "22", "27<10": "22<10", "28": "27", "28<10": "27<10", "0": "19", "0<5": "19<5",
    "0<10": "19<10", "0<28": "28", "0<28.10": "28<10", "1": "0<1",
}  # fmt: skip


@pytest.mark.parametrize("origin", BACKWARDS)
def test_n13_back_along_the_way_it_came(origin):
    end = BACKWARDS[origin]
    move = f"{origin.split('<')[0]} -> {end.split('<')[0]}"
    text = f"{origin}:2,h:2 w:4 o b"
    assert moves_of(text, backdo=True, finish="pass") == {move}
    assert after(text, move, backdo=True, finish="pass") == f"{end}:2,h:2 w:4 x -"


FORWARDS = [
    ("20", "20 -> 22", 2, "22"), ("26", "26 -> 22", 1, "22<10"), ("25", "25 -> 28", 4, "28<10"),
    ("10", "10 short -> 22", 3, "22<10"), ("5", "5 short -> 24", 5, "24"), ("22<10", "22 rim -> 23", 1, "23<10"),
    ("22<10", "22 home -> 28", 2, "28<10"), ("22", "22 rim -> 15", 3, "15<5"), ("24<10", "24 -> 16", 2, "16<10"),
    ("14", "14 -> 15", 1, "15"), ("15<5", "15 -> 19", 4, "19<5"), ("15<10", "15 -> 0", 5, "0<10"),
    ("19", "19 -> 0", 1, "0"), ("27", "27 -> 0", 2, "0<28"), ("28<10", "28 -> 0", 1, "0<28.10"),
    ("25", "25 -> 0", 5, "0<28.10"), ("22", "22 home -> 0", 3, "0<28"), ("21", "21 -> 16", 5, "16<5"),
]  # fmt: skip


@pytest.mark.parametrize(("origin", "move", "throw", "end"), FORWARDS)
def test_n13_ways_are_remembered_going_forwards(origin, move, throw, end):
    text = f"{origin}:1,h:3 w:4 o {throw}"
    assert after(text, move, backdo=True, finish="pass") == f"{end}:1,h:3 w:4 x -"


def test_n13_ways_are_not_remembered_without_it():
    assert after("26:1,h:3 w:4 o 1", "26 -> 22") == "22:1,h:3 w:4 x -"
    assert after("28:1,h:3 w:4 o 1", "28 -> 0", finish="pass") == "0:1,h:3 w:4 x -"


def test_n13_backdo_captures_and_stacks():
    assert after("7:1,w:3 6:2,w:2 o b", "7 -> 6 x2", backdo=True) == "6:1,w:3 w:4 o -"
    assert after("6:1,7:1,w:2 w:4 o b", "7 -> 6", backdo=True) == "6:2,w:2 w:4 x -"


def test_n13_a_stack_takes_the_way_of_the_arriving_unit():
    assert after("20:1,22<10:1,h:2 w:4 o 2", "20 -> 22", backdo=True) == "22:2,h:2 w:4 x -"
    assert after("22:1,26:1,h:2 w:4 o 1", "26 -> 22", backdo=True) == "22<10:2,h:2 w:4 x -"


def test_n13_a_capturing_unit_keeps_its_own_way():
    assert after("26:1,h:3 22:1,w:3 o 1", "26 -> 22 x1", backdo=True) == "22<10:1,h:3 w:4 o -"


def test_n13_from_1_to_start():
    assert after("1:2,w:2 w:4 o b", "1 -> home", backdo=True) == "w:2,h:2 w:4 x -"
    assert after("1:2,w:2 w:4 o b", "1 -> 0", backdo=True, finish="pass") == "0<1:2,w:2 w:4 x -"
    position = at("1:1,h:3 w:4 o b", backdo=True)
    position.push("1 -> home")
    assert position.winner == 0


def test_n13_a_unit_back_on_start_cannot_step_back_further():
    assert moves_of("0<1:1,7:1,w:2 w:4 o b", backdo=True, finish="pass") == {"7 -> 6"}
    assert moves_of("0<1:1,w:3 w:4 o b", backdo=True, finish="pass") == {"pass"}
    assert moves_of("0<1:1,h:3 w:4 o 1", backdo=True, finish="pass") == {"0 -> home"}


def test_n13_a_unit_back_on_a_corner_chooses_again():
    assert after("20:1,w:3 w:4 o b", "20 -> 5", 1, "enter -> 1", backdo=True) == "5:1,w:3 1:1,w:3 o -"
    assert moves_of("5:1,h:3 w:4 o 1", backdo=True) == {"5 rim -> 6", "5 short -> 20"}


def test_n13_pass_without_a_unit_on_the_course():
    assert moves_of("w:4 7:1,w:3 o b", backdo=True) == {"pass"}
    assert after("w:4 7:1,w:3 o b", "pass", backdo=True) == "w:4 7:1,w:3 x -"


def test_n13_pass_is_not_for_choice():
    for text in ("7:1,w:3 w:4 o b", "w:4 w:4 o 1"):
        with pytest.raises(IllegalMoveError):
            at(text, backdo=True).push("pass")


def test_n13_with_several_values_pass_only_when_none_can_be_played():
    assert moves_of("w:4 w:4 o 5+b", **TRADITIONAL) == {"mo: enter -> 5"}
    assert moves_of("7:1,h:3 w:4 o 5+b", **TRADITIONAL) == {"mo: 7 -> 12", "backdo: 7 -> 6"}
    assert after("w:4 w:4 o 5+b", "mo: enter -> 5", "5 -> 4", **TRADITIONAL) == "4:1,w:3 w:4 x -"
    assert after("19:1,w:3 w:4 o 4+b", "yut: 19 -> home", "pass", **TRADITIONAL) == "w:3,h:1 w:4 x -"


# -- N14: finish beyond Start -----------------------------------------------------------------------------------------
def test_n14_a_unit_rests_on_start_and_leaves_with_any_throw():
    assert after("19:1,w:3 w:4 o 1", "19 -> 0", finish="pass") == "0:1,w:3 w:4 x -"
    for throw in range(1, 6):
        assert moves_of(f"0:2,h:2 w:4 o {throw}", finish="pass") == {"0 -> home"}
    assert after("0:2,h:2 w:4 o 1", "0 -> home", finish="pass") == "h:4 w:4 x -"


def test_n14_a_unit_on_start_can_be_captured_and_stacked():
    assert after("0:2,h:2 28:1,w:3 x 1", "28 -> 0 x2", finish="pass") == "w:2,h:2 0:1,w:3 x -"
    assert after("0:2,28:1,w:1 w:4 o 1", "28 -> 0", finish="pass") == "0:3,w:1 w:4 x -"


def test_n14_a_piece_that_enters_does_not_meet_it():
    assert after("0:1,w:3 w:4 o 1", "enter -> 1", finish="pass") == "0:1,1:1,w:2 w:4 x -"


# -- N15: turns ------------------------------------------------------------------------------------------------------
def test_n15_max_turns_truncates():
    position = start(first_player="natural", max_turns=3)
    enter_for_seats(position, 2)
    assert not position.is_over
    enter_for_seats(position, 1)
    assert (position.is_truncated, position.winner, position.reason) == (True, None, "max_turns")
    assert position.rewards == (0.0, 0.0)
    assert not position.chance_due
    assert position.to_move == 1


def test_n15_a_win_in_the_last_turn_counts():
    position = at("28:1,h:3 w:4 o 2", max_turns=1)
    position.push("28 -> home")
    assert (position.winner, position.reason) == (0, "home")


def test_n15_throwing_again_is_the_same_turn():
    position = at("4:1,w:3 7:1,w:3 o 3", max_turns=1)
    position.push("4 -> 7")
    assert not position.is_over


def test_n15_zero_means_no_limit():
    position = at("w:4 w:4 o -", max_turns=0, nak_prob=0.5)
    for _ in range(1200):
        position.apply_chance(0)
    assert not position.is_over
    assert position.turns == 1200


# -- the numbered positions of RULES.md ----------------------------------------------------------------------------
def test_position_1_choice_at_a_corner():
    assert moves_of("5:1,w:3 w:4 o 2") == {"5 rim -> 7", "5 short -> 21", "enter -> 2"}


def test_position_2_capture():
    assert after("4:1,w:3 7:2,w:2 o 3", "4 -> 7 x2") == "7:1,w:3 w:4 o -"


def test_position_3_stacking():
    assert after("3:1,w:3 w:4 o 3", "enter -> 3") == "3:2,w:2 w:4 x -"


def test_position_4_win():
    position = at("28:2,h:2 w:4 o 2")
    assert position.legal_moves() == ["28 -> home"]
    position.push("28 -> home")
    assert (position.winner, position.text()) == (0, "h:4 w:4 x -")


def test_position_5_no_choice_at_15():
    assert moves_of("15:1,h:3 w:4 o 1") == {"15 -> 16"}
    assert moves_of("15:1,w:3 w:4 o 1") == {"15 -> 16", "enter -> 1"}


def test_perft_counted_by_hand():
    """Five throws each; from the third move on a unit can move too, in two ways when it stands on 5."""
    assert [perft("yut_nori", depth, first_player="natural") for depth in (1, 2, 3)] == [5, 25, 275]
    assert perft("yut_nori", 2) == 50


# -- options ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pieces", 0), ("pieces", 9), ("pieces", 4.0), ("pieces", True), ("stick_p", 0.0), ("stick_p", 1.0),
        ("stick_p", 1.5), ("stick_p", float("nan")), ("stick_p", "0.5"), ("nak_prob", 1.0), ("nak_prob", -0.1),
        ("first_player", "white"), ("first_player", None), ("seats_per_side", 3), ("seats_per_side", 0),
        ("extra_on_yut_mo", 1), ("bonus_stacking", "no"), ("backdo", None), ("finish", "start"), ("max_turns", -1),
        ("max_turns", 1.5), ("max_turns", 40_000),
    ],
)  # fmt: skip
def test_options_out_of_range_are_named(name, value):
    with pytest.raises(OptionError, match=name):
        make_options(RULES, **{name: value})


def test_variants():
    assert set(RULES.variants) == set(RULES.variant_notes) == {"box", "traditional", "teams", "duel", "mini"}
    assert RULES.variants["traditional"] == make_options(RULES, stick_p=0.6, bonus_stacking=False, **TRADITIONAL)
    assert RULES.variants["teams"] == make_options(RULES, seats_per_side=2)
    assert [RULES.num_seats(RULES.variants[name]) for name in ("box", "teams")] == [2, 4]


def test_action_spaces():
    sizes = {name: RULES.num_actions(options) for name, options in RULES.variants.items()}
    assert sizes == {"box": 32, "traditional": 199, "teams": 32, "duel": 32, "mini": 32}
    assert at("7:1,w:3 w:4 o 2").parse("7 -> 9") == 7
    assert at("5:1,w:3 w:4 o 2").parse("5 short -> 21") == 29
    assert at("10:1,w:3 w:4 o 2").parse("10 short -> 26") == 30
    assert at("22:1,w:3 w:4 o 2").parse("22 home -> 28") == 31
    assert at("0:1,w:3 w:4 o 2", finish="pass").parse("0 -> home") == 32
    assert at("7:1,w:3 w:4 o 2", extra_on_yut_mo=True).parse("7 -> 9") == 32 + 7
    assert at("w:4 w:4 o b", **TRADITIONAL).parse("pass") == 6 * 33


def test_layout():
    layout = RULES.layout(RULES.variants["box"])
    assert (layout.height, layout.width, layout.style) == (7, 7, "graph")
    assert layout.names == tuple(str(station) for station in range(29))
    where = dict(enumerate(layout.cells))
    corners = {0: (6, 6), 5: (0, 6), 10: (0, 0), 15: (6, 0), 22: (3, 3)}
    assert {station: where[station] for station in corners} == corners
    assert [where[s] for s in (1, 2, 3, 4)] == [(5, 6), (4, 6), (2, 6), (1, 6)]
    assert [where[s] for s in (6, 9, 11, 14, 16, 19)] == [(0, 5), (0, 1), (1, 0), (5, 0), (6, 1), (6, 5)]
    assert [where[s] for s in (20, 21, 23, 24)] == [(1, 5), (2, 4), (4, 2), (5, 1)]
    assert [where[s] for s in (25, 26, 27, 28)] == [(1, 1), (2, 2), (4, 4), (5, 5)]
    assert len(set(layout.cells)) == 29
    assert len(set(layout.edges)) == len(layout.edges) == 32
    assert {(19, 0), (5, 20), (10, 25), (21, 22), (22, 27), (24, 15), (28, 0)} <= set(layout.edges)


# -- position text -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("", {}, "4 fields"),
        ("w:4 w:4 o", {}, "4 fields"),
        ("w:4 w:4 o 3 1", {}, "4 fields"),
        ("w:3 w:4 o 3", {}, "natural has 3 pieces"),
        ("w:4 5:2,w:3 o 3", {}, "black has more pieces"),
        ("w:4 w:4 o 3", {"pieces": 3}, "natural has more pieces"),
        ("29:1,w:3 w:4 o 3", {}, "station 29"),
        ("0:1,w:3 w:4 o 3", {}, "station 0"),
        ("5:1,w:3 5:1,w:3 o 3", {}, "both sides stand on station 5"),
        ("5:1,5:1,w:2 w:4 o 3", {}, "ascending"),
        ("w:3,5:1 w:4 o 3", {}, "ascending"),
        ("7:1,5:1,w:2 w:4 o 3", {}, "ascending"),
        ("5:0,w:4 w:4 o 3", {}, "cannot read '5:0'"),
        ("-5:1,w:3 w:4 o 3", {}, "cannot read '-5:1'"),
        ("05:1,w:3 w:4 o 3", {}, "cannot read '05:1'"),
        ("\u0665:1,w:3 w:4 o 3", {}, "cannot read"),
        ("w:\u00b2 w:4 o 3", {}, "cannot read"),
        ("w:" + "9" * 5000 + " w:4 o 3", {}, "cannot read"),
        ("9" * 5000 + ":1,w:3 w:4 o 3", {}, "cannot read"),
        ("w:4, w:4 o 3", {}, "cannot read ''"),
        ("z:4 w:4 o 3", {}, "cannot read 'z:4'"),
        ("22<10:1,w:3 w:4 o 3", {}, "mark '<10'"),
        ("22<5:1,w:3 w:4 o 3", {"backdo": True}, "mark '<5'"),
        ("7<5:1,w:3 w:4 o 3", {"backdo": True}, "mark '<5'"),
        ("0<28:1,w:3 w:4 o 3", {"backdo": True}, "station 0"),
        ("w:4 w:4 n 3", {}, "side to move 'n'"),
        ("w:4 w:4 O 3", {}, "side to move 'O'"),
        ("w:4 w:4 o 6", {}, "throw '6'"),
        ("w:4 w:4 o 0", {}, "throw '0'"),
        ("w:4 w:4 o -1", {}, "throw '-1'"),
        ("w:4 w:4 o b", {}, "throw 'b'"),
        ("w:4 w:4 o \u0663", {}, "throw"),
        ("w:4 w:4 o 33", {}, "throw '33'"),
        ("w:4 w:4 o 5+2", {}, "extra_on_yut_mo"),
        ("w:4 w:4 o 5+?", {}, "extra_on_yut_mo"),
        ("w:4 w:4 o ?", {"extra_on_yut_mo": True}, "throw"),
        ("w:4 w:4 o +?", {"extra_on_yut_mo": True}, "throw"),
        ("w:4 w:4 o 5+", {"extra_on_yut_mo": True}, "throw"),
        ("w:4 w:4 o 2+5", {"extra_on_yut_mo": True}, "highest value first"),
        ("w:4 w:4 o b+5", {"extra_on_yut_mo": True, "backdo": True}, "highest value first"),
        ("h:4 h:4 o -", {}, "both sides"),
        ("h:4 w:4 x 3", {}, "natural has won"),
        ("w:4 h:4 o 5+?", {"extra_on_yut_mo": True}, "black has won"),
        ("w:4 w:4 ? 3", {}, "'?'"),
        ("5:1,w:3 w:4 ? -", {}, "'?'"),
        ("w:4 w:4 ? -", {"first_player": "natural"}, "'?'"),
    ],
)
def test_impossible_positions_are_refused(text, options, reason):
    with pytest.raises(NotationError) as error:
        at(text, **options)
    assert reason in str(error.value)


def test_too_many_values_in_hand_are_refused():
    with pytest.raises(NotationError, match="more than"):
        at("w:4 w:4 o " + "+".join("5" * (HAND_LIMIT + 1)), extra_on_yut_mo=True)


def test_whitespace_around_is_accepted():
    assert at("  w:4   w:4 o 3\n").text() == "w:4 w:4 o 3"


def test_positions_that_are_over_are_loaded_as_over():
    for text, winner in (("h:4 w:4 x -", 0), ("w:2,h:2 h:4 o -", 1)):
        position = at(text)
        assert (position.is_over, position.winner, position.reason) == (True, winner, "home")
        assert position.rewards[winner] == 1.0
        assert position.text() == text
        assert not position.chance_due


@pytest.mark.parametrize(
    "text",
    [
        "w:4 w:4 ? -", "w:4 w:4 x -", "5:1,22:2,h:1 28:1,w:1,h:2 o 4", "0<28.10:1,15<5:1,22<10:1,w:1 1:1,w:3 x b",
        "w:4 w:4 o 5+5+4+2+b", "1:4 w:4 o 5+b+?",
    ],
)  # fmt: skip
def test_text_round_trip(text):
    assert at(text, **TRADITIONAL).text() == text


# -- move notation ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "spelling",
    [
        "5 rim", "5 -> ", "", "->", "enter", "enter short -> 2", "7 rim -> 9", "22 short -> 24", "5 home -> 7",
        "99 -> 2", "5 -> 99", "5 -> -7", "\u0665 -> 7", "5 -> 7 x0", "5 -> 7 x", "5 -> 7 x12", "jump", "go: 5 -> 7",
        "29 -> home", "0 -> home", "9" * 5000,
    ],
)  # fmt: skip
def test_unreadable_moves(spelling):
    with pytest.raises(NotationError):
        at("5:1,7:1,22:1,w:1 w:4 o 2").parse(spelling)


@pytest.mark.parametrize(
    "spelling",
    [
        "5 short -> 21", "5 short → 21", "5 short-21", "5short->21", "  5  SHORT  ->  21 ", "5 -> 21",
        "gae: 5 short -> 21", "Gae : 5 short -> 21", "5 short -> 21 x2", "5 short -> 21x2", "5 short -> 21 × 2",
    ],
)  # fmt: skip
def test_spellings_of_one_move(spelling):
    position = at("5:1,w:3 21:2,w:2 o 2")
    assert position.notation(position.parse(spelling)) == "5 short -> 21 x2"


def test_moves_that_the_throw_does_not_give():
    with pytest.raises(IllegalMoveError):
        at("5:1,w:3 w:4 o 2").parse("5 short -> 7")
    position = at("7:1,w:3 9:2,w:2 o 2")
    for move in ("7 -> 8", "8 -> 9", "enter -> 3", "7 -> home", "mo: 7 -> 9", "7 -> 9 x1", "enter -> 2 x1"):
        with pytest.raises(IllegalMoveError):
            position.parse(move)
    assert position.parse("7 -> 9 x2") == position.parse("7 -> 9") == 7


@pytest.mark.parametrize(
    ("spelling", "options", "reason"),
    [
        ("99 -> 2", {}, "no unit can stand on station 99; stations go from 1 to 28"),
        ("0 -> home", {}, "no unit can stand on station 0; stations go from 1 to 28"),
        ("29 -> 2", {"finish": "pass"}, "no unit can stand on station 29; stations go from 0 to 28"),
        ("5 -> 29", {}, "there is no station 29; stations go from 1 to 28"),
        ("5 home -> 7", {}, "5 has no way 'home'; ways known there: rim, short"),
        ("7 rim -> 9", {}, "7 has no way 'rim'; ways known there: none"),
        ("enter -> 3", {}, "with 2 in hand, enter goes to 2, not to 3"),
        ("5 -> 20", {}, "with 2 in hand, 5 goes to 7 or 21, not to 20"),
        ("5 short -> home", {}, "with 2 in hand, 5 short goes to 21, not to home"),
        ("mo: 5 -> 7", {}, "needs mo in hand, not 2"),
        ("pass", {}, "a move always exists"),
    ],
)
def test_refused_moves_are_told_what_would_be_right(spelling, options, reason):
    with pytest.raises((NotationError, IllegalMoveError)) as error:
        at("5:1,7:1,w:2 w:4 o 2", **options).parse(spelling)
    assert reason in str(error.value)


def test_backdo_is_told_what_would_be_right():
    with pytest.raises(IllegalMoveError, match="with b in hand, enter goes to no station, not to 1"):
        at("7:1,w:3 w:4 o b", backdo=True).parse("enter -> 1")


def test_a_value_to_name_is_one_that_fits():
    with pytest.raises(NotationError, match="as in 'geol: 22 -> home'"):
        at("22:1,w:3 w:4 o 4+3", extra_on_yut_mo=True).parse("22 -> home")


def test_a_value_that_is_not_named_is_found_if_one_fits():
    position = at("7:1,17:1,w:2 w:4 o 5+4", extra_on_yut_mo=True)
    assert position.notation(position.parse("7 -> 11")) == "yut: 7 -> 11"
    with pytest.raises(NotationError, match="name one"):
        position.parse("17 -> home")
    assert position.notation(position.parse("mo: 17 -> home")) == "mo: 17 -> home"
    with pytest.raises(IllegalMoveError):
        position.parse("gae: 7 -> 9")


def test_home_as_way_and_as_end():
    position = at("22:1,w:3 w:4 o 4")
    assert set(position.legal_moves()) == {"enter -> 4", "22 rim -> 16", "22 home -> home"}
    assert position.parse("22 home -> home") == position.parse("22->home") == 31


def test_every_legal_move_is_read_back():
    text = "5:1,7:1,10:1,22<10:2,h:3 9:2,14:1,16:3,w:2 o 5+4+2+b"
    position = at(text, pieces=8, **TRADITIONAL)
    for action, move in zip(position.legal_actions(), position.legal_moves(), strict=True):
        assert position.parse(move) == action
        assert position.parse(move.split(" x")[0]) == action


# -- views and drawings --------------------------------------------------------------------------------------------
def view(position, seat):
    sites = np.zeros((len(SITE_FEATURES), 29), np.int16)
    scalars = np.zeros(len(SCALARS), np.int16)
    ruleset = position.ruleset
    ruleset.kernels.view(ruleset.params, *position.rows, seat, sites, scalars)
    return sites, scalars


def test_view_shows_everything_to_both_sides():
    position = at("5:1,22<10:2,w:1 19<5:1,w:1,h:2 o 5+5+b", max_turns=50, **TRADITIONAL)
    sites, scalars = view(position, 0)
    assert np.flatnonzero(sites[OWN]).tolist() == [5, 22]
    assert sites[OWN_COUNT, [5, 22]].tolist() == [1, 2]
    assert np.flatnonzero(sites[ENEMY]).tolist() == [19]
    assert (sites[ENEMY_COUNT, 19], sites[ENEMY_MARK, 19], sites[OWN_MARK, 22]) == (1, 1, 2)
    assert (scalars[OWN_RESERVE], scalars[ENEMY_RESERVE]) == (1, 1)
    assert (scalars[OWN_CAPTURES], scalars[ENEMY_CAPTURES]) == (0, 2)
    assert scalars[THROW_1 : THROW_1 + 5].tolist() == [0, 0, 0, 0, 2]
    assert (scalars[THROW_BACK], scalars[MY_TURN], scalars[NATURAL]) == (1, 1, 1)
    other_sites, other_scalars = view(position, 1)
    pairs = [(OWN, ENEMY), (OWN_COUNT, ENEMY_COUNT), (OWN_MARK, ENEMY_MARK)]
    assert all(np.array_equal(sites[own], other_sites[enemy]) for own, enemy in pairs)
    assert all(np.array_equal(sites[enemy], other_sites[own]) for own, enemy in pairs)
    assert (other_scalars[MY_TURN], other_scalars[NATURAL], other_scalars[OWN_CAPTURES]) == (0, 0, 2)


def test_view_of_turns_and_partners():
    position = start(variant="teams", first_player="natural", max_turns=50)
    enter_for_seats(position, 2)
    assert [view(position, seat)[1][PARTNER] for seat in range(4)] == [0, 0, 1, 1]
    assert [view(position, seat)[1][MY_TURN] for seat in range(4)] == [0, 0, 1, 0]
    assert [view(position, seat)[1][NATURAL] for seat in range(4)] == [1, 0, 1, 0]
    assert view(position, 0)[1][TURN_COUNT] == 2
    assert view(start(first_player="natural", max_turns=0), 0)[1][TURN_COUNT] == 0


def decoded(position):
    """Text fields of both sides and the hand, from the mover's view alone."""
    sites, scalars = view(position, position.seat)
    fields = []
    for side in range(2):
        marks = sites[OWN_MARK + side]
        items = [f"{s}{MARKS[marks[s]]}:{sites[OWN_COUNT + side, s]}" for s in np.flatnonzero(sites[OWN + side])]
        beside = (("w", scalars[OWN_RESERVE + side]), ("h", scalars[OWN_CAPTURES + side]))
        fields.append(",".join(items + [f"{letter}:{count}" for letter, count in beside if count]))
    throws = scalars[THROW_1 : THROW_1 + 5].tolist()
    hand = [str(value) for value in range(5, 0, -1) for _ in range(throws[value - 1])] + ["b"] * scalars[THROW_BACK]
    sides = fields if scalars[NATURAL] else fields[::-1]
    return f"{sides[0]} {sides[1]} {'xo'[scalars[NATURAL]]} {'+'.join(hand)}"


RANDOM_PLAY = [
    {"variant": "box"}, {"variant": "traditional"}, {"variant": "teams"}, {"variant": "duel"}, {"variant": "mini"},
    {"variant": "box", "pieces": 8}, {"variant": "box", "backdo": True, "max_turns": 60},
    {"variant": "box", "finish": "pass"}, {"variant": "box", "extra_on_yut_mo": True},
    {"variant": "traditional", "nak_prob": 0.1, "stick_p": 0.35, "seats_per_side": 2, "bonus_stacking": True},
    {"variant": "traditional", "finish": "reach", "pieces": 3, "max_turns": 0},
]  # fmt: skip


@pytest.mark.parametrize("options", RANDOM_PLAY, ids=str)
def test_random_games_keep_every_invariant(options):
    generator = random.Random(5)
    for game in range(24):
        position = Position("yut_nori", seed=game, **options)
        while not position.is_over:
            check_invariants(position, generator)
            position.push(generator.choice(position.legal_actions()))
        assert position.reason in ("home", "max_turns")
        assert (position.winner is None) == (position.reason == "max_turns")
        loaded = RULES.parse_position(position.options, position.text())
        if position.winner is not None:
            assert_same_position(loaded, position.rows[0])


def check_invariants(position, generator):
    options = position.options
    assert_same_position(RULES.parse_position(options, position.text()), position.rows[0])
    assert decoded(position) == position.text()
    assert position.seat % 2 == position.to_move
    sites, scalars = view(position, position.seat)
    shown = {SITE_FEATURES[i]: int(abs(row).max()) for i, row in enumerate(sites) if row.any()}
    shown |= {SCALARS[i]: int(abs(value)) for i, value in enumerate(scalars) if value}
    scales = RULES.feature_scales(options)
    assert all(value <= scales[name] for name, value in shown.items())
    for own, reserve, captures in (
        (OWN_COUNT, OWN_RESERVE, OWN_CAPTURES),
        (ENEMY_COUNT, ENEMY_RESERVE, ENEMY_CAPTURES),
    ):
        assert sites[own].sum() + scalars[reserve] + scalars[captures] == options.pieces
    assert -1 < standing(position) < 1
    actions, moves = position.legal_actions(), position.legal_moves()
    assert len(set(actions)) == len(set(moves)) == len(actions)
    assert max(actions) < position.ruleset.num_actions
    pick = generator.randrange(len(actions))
    assert position.parse(moves[pick]) == actions[pick]


def assert_same_position(loaded, played):
    """Equal rows but for what a text leaves out: turns, and which partner sits where."""
    left_out = (TURNS, SEAT, OTHER_SEAT)
    assert np.array_equal(np.delete(loaded, left_out), np.delete(played, left_out))


def standing(position):
    return position.ruleset.kernels.heuristic(position.ruleset.params, *position.rows)


def test_heuristic_tells_who_is_ahead():
    assert standing(at("w:4 w:4 o 1")) == 0.0
    assert standing(at("w:1,h:3 w:4 o 1")) > 0.5
    assert standing(at("7:1,w:3 22:1,w:3 o 1")) == -standing(at("22:1,w:3 7:1,w:3 x 1")) < 0
    resting, short_of_it = at("0:1,h:3 w:4 o 1", finish="pass"), at("28:1,h:3 w:4 o 1", finish="pass")
    assert standing(resting) > standing(short_of_it)


def test_pieces_status_and_drawing():
    position = at("5:2,22<10:1,w:1 14:1,w:1,h:2 o 5+2", **TRADITIONAL)
    rules, options = RULES, position.options
    pieces = rules.site_pieces(options, position.rows[0])
    assert {station: unit for station, unit in enumerate(pieces) if unit} == {5: "oo", 22: "o", 14: "x"}
    assert rules.status(options, position.rows[0]) == {
        "natural waiting": "1", "natural home": "0", "black waiting": "1", "black home": "2", "throw": "5+2",
        "ways": "22<10",
    }  # fmt: skip
    drawing = str(position)
    for part in ("5:o2", "22<10:o1", "14:x1", "to move: natural o", "mo, gae", "black x: 1 waiting, 2 home"):
        assert part in drawing
    assert "natural has won" in str(at("h:4 w:4 x -"))
    assert "who starts" in str(start())


def test_swapped_sides_have_the_same_moves():
    for text in ("5:1,7:1,w:2 9:2,w:2 {} 2", "22<10:1,w:3 w:4 {} b", "0<28:1,w:3 15<5:4 {} 5+4"):
        natural, black = text.split()[:2]
        swapped = text.replace(f"{natural} {black}", f"{black} {natural}")
        assert moves_of(text.format("o"), **TRADITIONAL) == moves_of(swapped.format("x"), **TRADITIONAL)
