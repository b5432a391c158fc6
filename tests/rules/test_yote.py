"""Yote by its rule ids (RULES.md, section 3), each from position texts; then texts, options, views and random play."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tradgames_env.position import Position, count_positions
from tradgames_env.rules import contract, yote
from tradgames_env.rules.contract import HEADER_SIZE, SCALARS, SITE_FEATURES, make_options
from tradgames_env.rules.errors import IllegalMoveError, NotationError, OptionError

START = "6/6/6/6/6 o 8 8 0 - - -"
# natural can jump on C3, then owes itself the choice between A5 and F1
JUMP = "x5/6/2ox2/6/5x o 5 4 0 - - -"
BONUS = "x5/6/4o1/6/5x o 5 4 0 - - bonus"
# black, without a reserve, is shut in on A1 by B2 -> A2
SHUT_IN = "6/6/o5/1o4/xoo3 o 0 0 {quiet} - - -"
FILES = "ABCDEFGH"


def load(text: str, variant: str = "box", **options: Any) -> Position:
    return Position.from_text("yote", text, variant, chance="explicit", **options)


def after(text: str, *moves: str, **options: Any) -> Position:
    position = load(text, **options)
    for move in moves:
        assert not position.is_over, f"over before {move}"
        position.push(move)
    return position


def moves(text: str, **options: Any) -> list[str]:
    return load(text, **options).legal_moves()


def board_moves(position: Position) -> list[str]:
    return [move for move in position.legal_moves() if move[0] != "+"]


def ending(position: Position) -> tuple[bool, int | None, str | None]:
    return position.is_over, position.winner, position.reason


RUNNING = (False, None, None)


def turned_square(name: str, rows: int, cols: int) -> str:
    return FILES[cols - 1 - FILES.index(name[0])] + str(rows + 1 - int(name[1]))


def swap_sides(text: str) -> str:
    """The same position with colours exchanged on the board turned by 180 degrees."""
    board, side, natural, black, quiet, natural_ban, black_ban, bonus = text.split()
    ranks = board.split("/")
    rows, cols = len(ranks), sum(int(c) if c.isdigit() else 1 for c in ranks[0])
    turned = board[::-1].translate(str.maketrans("ox", "xo"))
    bans = [
        ban if ban == "-" else turned_square(ban[:2], rows, cols) + turned_square(ban[2:], rows, cols)
        for ban in (black_ban, natural_ban)
    ]
    return f"{turned} {'x' if side == 'o' else 'o'} {black} {natural} {quiet} {bans[0]} {bans[1]} {bonus}"


def view(position: Position, seat: int) -> tuple[dict[str, list[int]], dict[str, int]]:
    """What a seat sees, by the names of the features."""
    ruleset = position.ruleset
    sites = np.zeros((len(SITE_FEATURES), len(ruleset.layout.cells)), np.int16)
    scalars = np.zeros(len(SCALARS), np.int16)
    ruleset.kernels.view(ruleset.params, *position.rows, seat, sites, scalars)
    by_site = {name: [int(v) for v in row] for name, row in zip(SITE_FEATURES, sites, strict=True)}
    return by_site, {name: int(v) for name, v in zip(SCALARS, scalars, strict=True)}


# -- the numbered positions of RULES.md ---------------------------------------------------------------------------
def test_position_1_bonus_after_a_jump() -> None:
    position = after(JUMP, "C3 -> E3 x D3")
    assert position.text() == BONUS
    assert position.to_move == 0
    assert position.legal_moves() == ["* F1", "* A5"]
    position.push("* A5")
    assert position.text() == "6/6/4o1/6/5x x 5 4 0 - - -"


def test_position_2_bonus_from_the_reserve_by_itself() -> None:
    position = after("6/6/2ox2/6/6 o 5 4 0 - - -", "C3 -> E3 x D3")
    assert position.text() == "6/6/4o1/6/6 x 5 3 0 - - -"
    assert len(position.legal_moves()) == 29
    assert board_moves(position) == []


@pytest.mark.parametrize("reserve", [0, 1])
def test_position_3_the_jump_wins(reserve: int) -> None:
    position = after(f"6/6/2ox2/6/6 o 2 {reserve} 0 - - -", "C3 -> E3")
    assert ending(position) == (True, 0, "captures")
    assert position.text() == "6/6/4o1/6/6 x 2 0 0 - - -"
    assert position.rewards == (1.0, -1.0)


def test_position_3_with_two_in_reserve_the_game_goes_on() -> None:
    assert ending(after("6/6/2ox2/6/6 o 2 2 0 - - -", "C3 -> E3")) == RUNNING


def test_position_4_no_return() -> None:
    legal = moves("6/2o3/6/6/o5 o 0 3 0 C4C3 - -")
    assert "C4 -> C3" not in legal
    assert "C4 -> B4" in legal
    with pytest.raises(IllegalMoveError, match="C4 -> C3"):
        load("6/2o3/6/6/o5 o 0 3 0 C4C3 - -").push("C4 -> C3")


def test_position_5_blocked() -> None:
    assert ending(load("6/5x/x5/x5/oxx3 o 0 0 0 - - -")) == (True, 1, "blocked")
    position = load("6/5x/x5/x5/oxx3 o 1 0 0 - - -")
    assert ending(position) == RUNNING
    assert len(position.legal_moves()) == 24


# -- one test a rule -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("variant", "start"),
    [("box", START), ("twelve", "6/6/6/6/6 o 12 12 0 - - -"), ("mini", "3/3/3 o 3 3 0 - - -")],
)
def test_y1_start(variant: str, start: str) -> None:
    assert Position("yote", variant).text() == start


def test_y1_board_and_pieces_are_options() -> None:
    assert Position("yote", rows=3, cols=8, pieces=12).text() == "8/8/8 o 12 12 0 - - -"
    assert Position("yote", rows=8, cols=3, pieces=1).text() == "3/3/3/3/3/3/3/3 o 1 1 0 - - -"


def test_y1_first_player() -> None:
    assert Position("yote", first_player="black").text() == "6/6/6/6/6 x 8 8 0 - - -"
    drawn = Position("yote", chance="explicit", first_player="random")
    assert drawn.text() == "6/6/6/6/6 ? 8 8 0 - - -"
    assert drawn.chance_outcomes() == [(0, 0.5), (1, 0.5)]
    drawn.apply_chance(1)
    assert drawn.text() == "6/6/6/6/6 x 8 8 0 - - -"
    assert len(drawn.legal_moves()) == 30
    assert {Position("yote", seed=seed, first_player="random").to_move for seed in range(20)} == {0, 1}


def test_y2_place_on_any_empty_square() -> None:
    position = load("x5/6/2ox2/6/5x o 1 4 0 - - -")
    placed = {move[1:] for move in position.legal_moves() if move[0] == "+"}
    assert placed == {file + rank for file in "ABCDEF" for rank in "12345"} - {"A5", "C3", "D3", "F1"}
    assert after(position.text(), "+B2").text() == "x5/6/2ox2/1o4/5x x 0 4 0 - - -"
    assert not any(move[0] == "+" for move in moves("x5/6/2ox2/6/5x o 0 4 0 - - -"))


def test_y2_step_to_the_four_neighbours() -> None:
    assert sorted(board_moves(load("6/6/2o3/6/6 o 0 1 0 - - -"))) == [
        "C3 -> B3", "C3 -> C2", "C3 -> C4", "C3 -> D3",
    ]  # fmt: skip
    assert after("6/6/2o3/6/6 o 0 1 0 - - -", "C3 -> D3").text() == "6/6/3o2/6/6 x 0 1 1 D3C3 - -"


@pytest.mark.parametrize("side", ["o", "x"])
@pytest.mark.parametrize(
    ("square", "steps"),
    [
        ("A1", {"A2", "B1"}),
        ("H8", {"H7", "G8"}),
        ("A8", {"A7", "B8"}),
        ("H1", {"H2", "G1"}),
        ("H4", {"H3", "H5", "G4"}),
    ],
)
def test_y2_no_step_over_the_edge(side: str, square: str, steps: set[str]) -> None:
    file, rank = FILES.index(square[0]), int(square[1])
    row = (str(file) if file else "") + side + (str(7 - file) if file < 7 else "")
    text = "/".join(row if r == rank else "8" for r in range(8, 0, -1)) + f" {side} 0 0 0 - - -"
    other = "x" if side == "o" else "o"
    # the other side needs a piece: one in reserve
    text = text.replace(f"{side} 0 0", f"{side} 0 1" if other == "x" else f"{side} 1 0")
    assert set(moves(text, rows=8, cols=8)) == {f"{square} -> {step}" for step in steps}


@pytest.mark.parametrize("jump", ["C3 -> C5 x C4", "C3 -> C1 x C2", "C3 -> A3 x B3", "C3 -> E3 x D3"])
def test_y2_jump_in_four_directions(jump: str) -> None:
    text = "6/2x3/1xox2/2x3/6 o 0 0 0 - - -"
    assert sorted(moves(text)) == ["C3 -> A3 x B3", "C3 -> C1 x C2", "C3 -> C5 x C4", "C3 -> E3 x D3"]
    position = after(text, jump)
    taken, landing = jump[-2:], jump[6:8]
    pieces = dict(zip(position.ruleset.layout.names, yote.site_pieces(position.options, position.rows[0]), strict=True))
    assert (pieces["C3"], pieces[taken], pieces[landing]) == ("", "", "o")
    assert sum(piece == "x" for piece in pieces.values()) == 3


@pytest.mark.parametrize(
    "text",
    [
        "6/6/2oxx1/6/6 o 0 0 0 - - -",  # the square behind is an enemy's
        "6/6/2oxo1/6/6 o 0 0 0 - - -",  # or one's own
        "6/6/2oo2/6/6 o 0 1 0 - - -",  # over an own piece
        "6/6/4ox/6/6 o 0 0 0 - - -",  # over the edge to the right
        "6/6/xo4/6/6 o 0 0 0 - - -",  # over the edge to the left
        "3x2/3o2/6/6/6 o 0 0 0 - - -",  # over the top
        "6/6/6/3o2/3x2 o 0 0 0 - - -",  # over the bottom
        "6/6/2o1x1/6/6 o 0 0 0 - - -",  # not adjacent
        "6/3x2/2o3/6/6 o 0 0 0 - - -",  # diagonal
    ],
)
def test_y2_no_jump(text: str) -> None:
    for position in (load(text), load(swap_sides(text))):
        assert position.legal_moves()
        assert not any(" x " in move for move in position.legal_moves())


def test_y3_bonus_is_compulsory_and_any_enemy_piece() -> None:
    position = load(BONUS)
    assert position.legal_moves() == ["* F1", "* A5"]
    for move in ("+B2", "E3 -> E4", "* E3", "* B2"):
        with pytest.raises(IllegalMoveError):
            position.push(move)
    position.push("* F1")
    assert position.text() == "x5/6/4o1/6/6 x 5 4 0 - - -"
    assert position.margin == 1


def test_y3_bonus_may_take_the_last_piece_on_the_board_but_not_the_reserve() -> None:
    position = after("x5/6/2ox2/6/6 o 5 1 0 - - -", "C3 -> E3", "* A5")
    assert position.text() == "6/6/4o1/6/6 x 5 1 0 - - -"
    assert not position.is_over


def test_y3_black_also_has_a_bonus() -> None:
    position = after(swap_sides(JUMP), "D3 -> B3 x C3")
    assert position.text() == swap_sides(BONUS)
    assert position.to_move == 1
    assert set(position.legal_moves()) == {"* A5", "* F1"}


def test_y4_one_jump_a_turn() -> None:
    # from C3 the piece could jump on over D3
    position = after("6/6/ox1x1x/6/6 o 0 3 0 - - -", "A3 -> C3", "* F3")
    assert position.to_move == 1
    assert position.text() == "6/6/2ox2/6/6 x 0 3 0 - - -"


def test_y4_capturing_is_not_compulsory_and_there_is_no_pass() -> None:
    legal = moves(JUMP)
    assert {"C3 -> E3 x D3", "C3 -> C4", "+A1"} <= set(legal)
    assert len(legal) == 26 + 3 + 1
    with pytest.raises(NotationError):
        load(JUMP).push("pass")


def test_y5_no_return_in_the_next_turn_only() -> None:
    position = after("5x/6/6/6/o5 o 1 0 0 - - -", "A1 -> A2", "F5 -> F4")
    assert position.text() == "6/5x/6/o5/6 o 1 0 2 A2A1 F4F5 -"
    assert set(board_moves(position)) == {"A2 -> A3", "A2 -> B2"}
    position.push("+C3")
    assert position.text() == "6/5x/2o3/o5/6 x 0 0 0 - F4F5 -"
    assert "F4 -> F5" not in position.legal_moves()
    position.push("F4 -> E4")
    assert position.text() == "6/4x1/2o3/o5/6 o 0 0 1 - E4F4 -"
    assert "A2 -> A1" in position.legal_moves()


def test_y5_a_step_of_another_piece_lifts_the_ban() -> None:
    position = after("5x/6/6/6/o2o2 o 0 0 0 - - -", "A1 -> A2", "F5 -> F4", "D1 -> D2", "F4 -> F3")
    assert "A2 -> A1" in position.legal_moves()
    assert "D2 -> D1" not in position.legal_moves()


def test_y5_another_piece_may_go_there() -> None:
    assert "B1 -> A1" in moves("5x/6/6/o5/1o4 o 0 0 1 A2A1 - -")
    assert "+A1" in moves("5x/6/6/o5/1o4 o 1 0 1 A2A1 - -")


def test_y5_jumps_are_exempt() -> None:
    text = "6/6/2o3/6/6 o 0 1 1 C3B3 - -"
    assert "C3 -> B3" not in moves(text)
    position = load("6/6/1xo3/6/6 o 0 0 0 C3B3 - -")
    assert "C3 -> A3 x B3" in position.legal_moves()
    position.push("C3 -> A3")
    assert position.text() == "6/6/o5/6/6 x 0 0 0 - - -"


def test_y5_the_capture_of_the_piece_drops_its_ban() -> None:
    by_jump = after("6/6/2ox2/6/6 o 5 3 1 - D3E3 -", "C3 -> E3")
    assert by_jump.text() == "6/6/4o1/6/6 x 5 2 0 - - -"
    by_bonus = after("x5/6/2ox2/6/5x o 5 4 1 - A5A4 -", "C3 -> E3", "* A5")
    assert by_bonus.text() == "6/6/4o1/6/5x x 5 4 0 - - -"
    kept = after("x5/6/2ox2/6/5x o 5 4 1 - A5A4 -", "C3 -> E3", "* F1")
    assert kept.text() == "x5/6/4o1/6/6 x 5 4 0 - A5A4 -"
    assert "A5 -> A4" not in kept.legal_moves()


def test_y5_ban_can_block() -> None:
    # natural's only step would be back
    assert ending(load("6/xx4/xx4/oxx3/1xx3 o 0 0 1 A2A1 - -")) == (True, 1, "blocked")
    assert moves("6/xx4/xx4/oxx3/1xx3 o 0 0 1 - - -") == ["A2 -> A1"]


def test_y5_option_off() -> None:
    position = after("5x/6/6/6/o5 o 1 0 0 - - -", "A1 -> A2", "F5 -> F4", return_ban="off")
    assert position.text() == "6/5x/6/o5/6 o 1 0 2 - - -"
    assert "A2 -> A1" in position.legal_moves()


def test_y6_all_captured_by_the_bonus() -> None:
    position = after("x5/6/2ox2/6/6 o 0 0 0 - - -", "C3 -> E3")
    assert ending(position) == RUNNING
    position.push("* A5")
    assert ending(position) == (True, 0, "captures")
    black = after(swap_sides("x5/6/2ox2/6/6 o 0 0 0 - - -"), "D3 -> B3", "* F1")
    assert ending(black) == (True, 1, "captures")
    assert black.rewards == (-1.0, 1.0)
    assert black.legal_moves() == []


def test_y6_a_reserve_is_still_a_piece() -> None:
    assert ending(load("6/6/2o3/6/6 x 0 1 0 - - -")) == RUNNING
    assert ending(load("6/6/2o3/6/6 x 0 0 0 - - -")) == (True, 0, "captures")


def test_y7_blocked_loses() -> None:
    position = after(SHUT_IN.format(quiet=0), "B2 -> A2")
    assert ending(position) == (True, 0, "blocked")
    assert position.to_move == 1
    assert ending(load(swap_sides("6/6/o5/o5/xoo3 x 0 0 0 - - -"))) == (True, 1, "blocked")


def test_y7_a_full_board_blocks_and_a_reserve_never_does() -> None:
    assert ending(load("6/6/o5/o5/xoo3 x 0 0 0 - - -")) == (True, 0, "blocked")
    assert len(moves("6/6/o5/o5/xoo3 x 0 1 0 - - -")) == 25
    full = after("oxox/xoxo/oxo1 x 0 1 0 - - -", "+D1", rows=3, cols=4, pieces=6)
    assert ending(full) == (True, 1, "blocked")


def test_y8_third_occurrence() -> None:
    cycle = ("A1 -> A2", "F5 -> F4", "A2 -> A1", "F4 -> F5") * 2
    text = "5x/6/6/6/o5 o 0 0 0 - - -"
    position = after(text, *cycle, return_ban="off")
    assert ending(position) == (True, None, "repetition")
    assert position.rewards == (0.0, 0.0)
    assert ending(after(text, *cycle, return_ban="off", repetition_limit=4)) == RUNNING
    assert ending(after(text, *cycle, return_ban="off", repetition_limit=0)) == RUNNING
    assert ending(after(text, *cycle[:4], return_ban="off", repetition_limit=2)) == (True, None, "repetition")


def test_y8_bans_belong_to_the_position() -> None:
    cycle = (
        "A1 -> A2", "F5 -> F4", "C1 -> C2", "D5 -> D4", "A2 -> A1", "F4 -> F5", "C2 -> C1", "D4 -> D5",
    )  # fmt: skip
    text = "3x1x/6/6/6/o1o3 o 0 0 0 - - -"
    # the loaded position has no bans and never comes back; that after ply 2 does, at plies 10 and 18
    position = after(text, *(cycle * 2), *cycle[:1])
    assert ending(position) == RUNNING
    position.push(cycle[1])
    assert ending(position) == (True, None, "repetition")


def test_y8_reserves_belong_to_the_position_and_placements_clear_the_history() -> None:
    cycle = ("A1 -> A2", "F5 -> F4", "A2 -> A1", "F4 -> F5")
    text = "5x/6/6/6/o5 o 1 1 0 - - -"
    position = after(text, *cycle, "+C3", "+D4", "C3 -> C2", "F5 -> F4", "C2 -> C3", "F4 -> F5", return_ban="off")
    assert ending(position) == RUNNING


def test_y8_side_to_move_belongs_to_the_position() -> None:
    # the board of the start returns with black to move, after an odd number of plies, which is another position
    text = "5x/6/6/6/oo4 o 0 0 0 - - -"
    first, second = load(text), load(text.replace(" o ", " x "))
    assert first.rows[1][0] != second.rows[1][0]


def test_y8_quiet_limit() -> None:
    assert ending(after("5x/6/6/6/o5 o 1 0 98 - - -", "A1 -> A2")) == RUNNING
    assert ending(after("5x/6/6/6/o5 o 1 0 99 - - -", "A1 -> A2")) == (True, None, "quiet")
    assert ending(load("5x/6/6/6/o5 o 1 0 100 - - -")) == (True, None, "quiet")
    assert ending(after("5x/6/6/6/o5 o 1 0 99 - - -", "+C3")) == RUNNING
    assert after("5x/6/6/6/o5 o 1 0 99 - - -", "+C3").text().split()[4] == "0"
    assert ending(after("5x/6/6/6/o5 o 1 0 99 - - -", "A1 -> A2", quiet_limit=0)) == RUNNING
    assert ending(after("5x/6/6/6/o5 o 1 0 6 - - -", "A1 -> A2", quiet_limit=7)) == (True, None, "quiet")


def test_y8_a_capture_restarts_the_quiet_steps() -> None:
    assert after("x5/6/2ox2/6/5x o 5 4 99 - - -", "C3 -> E3").text() == BONUS


def test_y8_few_pieces() -> None:
    text = "x5/6/2ox2/6/5x o 2 2 0 - - -"
    played = ("C3 -> E3", "* A5")
    assert ending(after(text, *played, few_pieces_draw=3)) == (True, None, "few_pieces")
    assert ending(after(text, *played, few_pieces_draw=2)) == RUNNING
    assert ending(after(text, *played)) == RUNNING
    assert ending(load("6/6/4o1/6/5x x 2 2 0 - - -", "twelve")) == (True, None, "few_pieces")
    assert ending(load("6/6/4o1/6/5x x 3 2 0 - - -", "twelve")) == RUNNING


def test_y9_win_before_draws() -> None:
    blocked = after(SHUT_IN.format(quiet=99), "B2 -> A2")
    assert ending(blocked) == (True, 0, "blocked")
    assert ending(after(SHUT_IN.format(quiet=99), "B2 -> B3")) == (True, None, "quiet")
    assert ending(load("6/6/2o3/6/6 x 0 0 100 - - -", few_pieces_draw=3)) == (True, 0, "captures")


def test_y9_order_of_the_draws() -> None:
    cycle = ("A1 -> A2", "F5 -> F4", "A2 -> A1", "F4 -> F5") * 2
    text = "5x/6/6/6/o5 o 0 0 0 - - -"
    assert ending(after(text, *cycle, return_ban="off", quiet_limit=8)) == (True, None, "repetition")
    assert ending(after(text, *cycle[:7], return_ban="off", quiet_limit=7)) == (True, None, "quiet")
    late = "5x/6/6/6/o5 o 0 0 100 - - -"
    assert ending(load(late, few_pieces_draw=3)) == (True, None, "quiet")


def test_y9_nothing_is_judged_before_the_bonus() -> None:
    text = "x5/6/2ox2/6/5x o 2 1 0 - - -"
    position = after(text, "C3 -> E3", few_pieces_draw=3, max_turns=1)
    assert ending(position) == RUNNING
    assert position.turns == 0
    assert ending(load("x5/6/4o1/6/5x o 2 1 0 - - bonus", few_pieces_draw=3)) == RUNNING
    position.push("* A5")
    assert ending(position) == (True, None, "few_pieces")


def test_max_turns_counts_turns_not_decisions() -> None:
    position = after(JUMP, "C3 -> E3", "* A5", max_turns=2)
    assert ending(position) == RUNNING
    assert position.turns == 1
    position.push("+A1")
    assert ending(position) == (True, None, "max_turns")
    assert position.is_truncated
    assert position.rewards == (0.0, 0.0)
    assert position.to_move == 0


def test_max_turns_comes_after_every_other_ending() -> None:
    assert ending(after("5x/6/6/6/o5 o 1 0 99 - - -", "A1 -> A2", max_turns=1)) == (True, None, "quiet")
    assert ending(after(SHUT_IN.format(quiet=0), "B2 -> A2", max_turns=1)) == (True, 0, "blocked")


# -- counts --------------------------------------------------------------------------------------------------------
def test_perft_by_hand() -> None:
    # after two placements: 28 placements, the steps of a piece with 98 / 30 neighbours on average, 76 straight triples
    third = 30 * 29 * 28 + 29 * 98 - 98 + 76
    assert [count_positions(Position("yote"), depth) for depth in range(4)] == [1, 30, 870, third]


def test_perft_is_the_same_for_black() -> None:
    for text in (JUMP, BONUS, "6/1xo3/1oxo2/3x2/6 o 2 1 3 C4D4 B4A4 -"):
        assert count_positions(load(text), 3) == count_positions(load(swap_sides(text)), 3) > 0


# -- options -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("rows", 2), ("rows", 9), ("cols", 2), ("cols", 9), ("pieces", 0), ("pieces", 16), ("rows", 5.0),
        ("first_player", "white"), ("return_ban", "always"), ("return_ban", True), ("repetition_limit", 1),
        ("repetition_limit", -1), ("repetition_limit", 101), ("quiet_limit", -1), ("quiet_limit", 10_001),
        ("few_pieces_draw", 8), ("few_pieces_draw", -1), ("max_turns", -1), ("max_turns", 30_001),
    ],
)  # fmt: skip
def test_options_out_of_range(option: str, value: object) -> None:
    with pytest.raises(OptionError, match=option):
        make_options(yote.RULES, **{option: value})


def test_options_pieces_fit_the_board() -> None:
    with pytest.raises(OptionError, match="pieces"):
        make_options(yote.RULES, "mini", pieces=5)
    assert make_options(yote.RULES, rows=8, cols=8, pieces=32).pieces == 32


def test_options_unknown() -> None:
    with pytest.raises(OptionError, match="quiet_limit"):
        make_options(yote.RULES, quite_limit=5)
    with pytest.raises(OptionError, match="twelve"):
        make_options(yote.RULES, "twelv")


def test_history_size() -> None:
    assert yote.RULES.history_size(make_options(yote.RULES)) == 101
    assert yote.RULES.history_size(make_options(yote.RULES, quiet_limit=0)) == 2048
    assert yote.RULES.history_size(make_options(yote.RULES, repetition_limit=0)) == 0


# -- position text -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        START, JUMP, BONUS, "6/2o3/6/6/o5 o 0 3 0 C4C3 - -", "6/2o3/6/6/o4x x 0 3 17 C4C3 F1F2 -",
        "6/6/2o3/6/6 x 0 0 0 - - -", "5x/6/6/6/o5 o 1 0 100 - - -", swap_sides(BONUS),
        "x5/6/4o1/6/5x o 5 3 0 - A5A4 bonus",
    ],
)  # fmt: skip
def test_text_round_trip(text: str) -> None:
    assert load(text).text() == text
    assert load(f"  {text.replace(' ', '   ')} \n").text() == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "8 fields"),
        ("6/6/6/6/6 o 8 8 0 - -", "8 fields"),
        ("6/6/6/6/6 o 8 8 0 - - - -", "8 fields"),
        ("6/6/6/6 o 8 8 0 - - -", "5 rows"),
        ("6/6/6/6/6/6 o 8 8 0 - - -", "5 rows"),
        ("6/6/5/6/6 o 8 8 0 - - -", "rank 3 has 5 squares"),
        ("6/6/7/6/6 o 8 8 0 - - -", "rank 3 has 7 squares"),
        ("6/6/o6/6/6 o 7 8 0 - - -", "rank 3 has 7 squares"),
        ("6/6//6/6 o 8 8 0 - - -", "rank 3 has 0 squares"),
        ("6/6/06/6/6 o 8 8 0 - - -", "rank 3 has '06'"),
        ("6/6/2z3/6/6 o 8 8 0 - - -", "rank 3 has 'z'"),
        ("6/6/2O3/6/6 o 7 8 0 - - -", "rank 3 has 'O'"),
        ("6/6/\u0666/6/6 o 8 8 0 - - -", "rank 3 has"),
        ("6/6/" + "9" * 5000 + "/6/6 o 8 8 0 - - -", "rank 3 has"),
        ("6/6/6/6/6 n 8 8 0 - - -", "side to move"),
        ("6/6/6/6/6 O 8 8 0 - - -", "side to move"),
        ("6/6/6/6/6 ? 8 8 0 - - -", "side to move"),
        ("6/6/6/6/6 o 9 8 0 - - -", "natural's reserve"),
        ("6/6/6/6/6 o 8 9 0 - - -", "black's reserve"),
        ("6/6/6/6/6 o -1 8 0 - - -", "natural's reserve"),
        ("6/6/6/6/6 o 08 8 0 - - -", "natural's reserve"),
        ("6/6/6/6/6 o \u0668 8 0 - - -", "natural's reserve"),
        ("6/6/6/6/6 o 8 " + "9" * 5000 + " 0 - - -", "black's reserve"),
        ("6/6/2o3/6/6 o 8 8 0 - - -", "natural has 1 pieces on the board and 8 in reserve"),
        ("xx4/6/6/6/6 o 8 7 0 - - -", "black has 2 pieces on the board and 7 in reserve"),
        ("6/6/6/6/6 o 8 8 101 - - -", "quiet steps"),
        ("6/6/6/6/6 o 8 8 x - - -", "quiet steps"),
        ("6/6/6/6/6 o 0 0 0 - - -", "neither side"),
        ("6/2o3/6/6/6 o 0 3 0 C4 - -", "natural's banned step"),
        ("6/2o3/6/6/6 o 0 3 0 c4c3 - -", "natural's banned step"),
        ("6/2o3/6/6/6 o 0 3 0 C4-C3 - -", "natural's banned step"),
        ("6/2o3/6/6/6 o 0 3 0 C4C2 - -", "adjacent"),
        ("6/2o3/6/6/6 o 0 3 0 C4D3 - -", "adjacent"),
        ("6/5o/6/6/6 o 0 3 0 F4G4 - -", "no square G4"),
        ("6/6/6/6/6 o 8 8 0 A1A2 - -", "natural has no piece on A1"),
        ("6/2x3/6/6/6 o 3 0 0 C4C3 - -", "natural has no piece on C4"),
        ("6/2o3/6/6/6 x 0 3 0 - C4C3 -", "black has no piece on C4"),
        ("6/2o3/2o3/6/6 o 0 3 0 C4C3 - -", "a piece of his own"),
        ("x5/6/4o1/6/5x o 5 3 0 - - Bonus", "'bonus' or -"),
        ("6/6/4o1/6/6 o 5 3 0 - - bonus", "black has no piece on the board"),
        ("x5/6/6/6/5x o 5 3 0 - - bonus", "natural has no piece on the board"),
        ("x5/6/4o1/6/5x o 5 6 0 - - bonus", "none of black's 8 pieces is missing"),
        ("x5/6/4o1/6/5x o 5 3 1 - - bonus", "quiet steps must be 0"),
        ("x5/6/4o1/6/5x o 5 3 0 E3E4 - bonus", "no banned step"),
    ],
)
def test_text_errors(text: str, complaint: str) -> None:
    with pytest.raises(NotationError, match=complaint.replace("?", r"\?")):
        load(text)


def test_text_ban_needs_the_option() -> None:
    with pytest.raises(NotationError, match="return_ban"):
        load("6/2o3/6/6/o5 o 0 3 0 C4C3 - -", return_ban="off")


def test_text_side_to_be_drawn() -> None:
    assert load("6/6/6/6/6 ? 8 8 0 - - -", first_player="random").chance_due
    for text in ("6/6/2o3/6/6 ? 7 8 0 - - -", "6/6/6/6/6 ? 7 8 0 - - -", "6/6/6/6/6 ? 8 8 3 - - -"):
        with pytest.raises(NotationError, match="side to move"):
            load(text, first_player="random")


def test_text_fuzz_is_refused_or_kept() -> None:
    chooser = random.Random(3)
    kept = 0
    for _ in range(3000):
        text = chooser.choice([START, JUMP, BONUS, "6/2o3/6/6/o4x x 0 3 17 C4C3 F1F2 -"])
        for _ in range(chooser.randint(1, 3)):
            i = chooser.randrange(len(text))
            text = text[:i] + chooser.choice("ox/123456 -ACF?b\u0663") + text[i + chooser.randint(0, 1) :]
        try:
            position = load(text)
        except NotationError:
            continue
        kept += 1
        assert position.text().split() == text.split()
    assert 20 < kept < 2000


# -- move notation -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("position", "spelling", "move"),
    [
        (JUMP, "+b2", "+B2"), (JUMP, " + B2 ", "+B2"),
        (JUMP, "C3->C4", "C3 -> C4"), (JUMP, "c3-c4", "C3 -> C4"), (JUMP, "c3c4", "C3 -> C4"),
        (JUMP, "C3 \u2192 C4", "C3 -> C4"),
        (JUMP, "C3 -> E3", "C3 -> E3 x D3"), (JUMP, "c3e3xd3", "C3 -> E3 x D3"), (JUMP, "C3-E3 X D3", "C3 -> E3 x D3"),
        (BONUS, "*f1", "* F1"), (BONUS, "*  F1", "* F1"),
    ],
)  # fmt: skip
def test_notation_alternatives(position: str, spelling: str, move: str) -> None:
    loaded = load(position)
    assert loaded.notation(loaded.parse(spelling)) == move


@pytest.mark.parametrize(
    "text", ["", "C3", "+", "+C", "C3 -> ", "pass", "C3 -> C9", "I1 -> C4", "+G1", "C3 => C4", "C3 -> C4 -> C5",
             "C\u0663 -> C4", "C3 -> E3 x", "C3 -> E3 x G3", "enter -> 3", "*", "+-1", "C3 -> C" + "4" * 5000,
             "C3" + " " * 50_000 + "?"],
)  # fmt: skip
def test_notation_errors(text: str) -> None:
    with pytest.raises(NotationError):
        load(JUMP).push(text)


@pytest.mark.parametrize(
    "text", ["C3 -> E3 x D4", "C3 -> E3 x D3,F1", "C3 -> C4 x C5", "+B2 x D3", "C3 -> D3", "C3 -> C5", "C3 -> D4",
             "C3 -> C3", "C3 -> F3", "B2 -> B3", "+C3", "+D3", "* A5", "D3 -> D4"],
)  # fmt: skip
def test_notation_illegal_moves(text: str) -> None:
    position = load(JUMP)
    with pytest.raises(IllegalMoveError):
        position.push(text)
    assert position.text() == JUMP


def test_refusals_quote_no_more_than_the_beginning() -> None:
    with pytest.raises(IllegalMoveError) as refusal:
        load(JUMP).push("C3 -> E3 x D3" + ",D3" * 5000)
    assert len(str(refusal.value)) < 200


def test_action_ids_are_the_movers() -> None:
    position = load(JUMP)
    # planes place, forward, backward, left, right, bonus; C3 is square 14
    assert position.parse("+A1") == 0
    assert position.parse("C3 -> C4") == 30 + 14
    assert position.parse("C3 -> C2") == 60 + 14
    assert position.parse("C3 -> B3") == 90 + 14
    assert position.parse("C3 -> E3 x D3") == 120 + 14
    assert load(BONUS).parse("* A5") == 150 + 24
    for text in (JUMP, BONUS, "6/1xo3/1oxo2/3x2/6 o 2 1 3 C4D4 B4A4 -"):
        assert load(text).legal_actions() == load(swap_sides(text)).legal_actions()


# -- what is shown -------------------------------------------------------------------------------------------------
def test_view_of_one_position() -> None:
    position = load("6/2o3/6/6/o4x x 0 3 17 C4C3 F1F2 -", max_turns=50)
    sites, scalars = view(position, 0)
    assert [i for i, v in enumerate(sites["own"]) if v] == [0, 20]
    assert [i for i, v in enumerate(sites["enemy"]) if v] == [5]
    assert (sites["own_ban_from"].index(1), sites["own_ban_to"].index(1)) == (20, 14)
    assert (sites["enemy_ban_from"].index(1), sites["enemy_ban_to"].index(1)) == (5, 11)
    shown = {"enemy_reserve": 3, "own_captures": 4, "enemy_captures": 6, "quiet": 17, "natural": 1}
    assert {name: value for name, value in scalars.items() if value} == shown
    sites, scalars = view(position, 1)
    assert [i for i, v in enumerate(sites["own"]) if v] == [24]
    assert (sites["own_ban_from"].index(1), sites["own_ban_to"].index(1)) == (24, 18)
    shown = {"own_reserve": 3, "own_captures": 6, "enemy_captures": 4, "quiet": 17, "my_turn": 1}
    assert {name: value for name, value in scalars.items() if value} == shown


def test_view_bonus_repetition_and_turns() -> None:
    assert view(load(BONUS), 0)[1]["bonus"] == 1
    assert view(load(BONUS), 0)[1]["my_turn"] == 1
    assert view(load(BONUS), 1)[1]["my_turn"] == 0
    cycle = ("A1 -> A2", "F5 -> F4", "A2 -> A1", "F4 -> F5")
    position = after("5x/6/6/6/o5 o 1 0 0 - - -", *cycle, return_ban="off", max_turns=50)
    assert (view(position, 0)[1]["repetition"], view(position, 1)[1]["turns"]) == (1, 4)
    position.push("+C3")
    assert (view(position, 0)[1]["repetition"], view(position, 1)[1]["turns"]) == (0, 5)


def test_view_while_a_bonus_is_owed_shows_no_repetition() -> None:
    cycle = ("C3 -> C4", "F1 -> F2", "C4 -> C3", "F2 -> F1")
    position = after(JUMP, *cycle, return_ban="off")
    assert view(position, 0)[1]["repetition"] == 1
    position.push("C3 -> E3 x D3")
    assert (view(position, 0)[1]["bonus"], view(position, 0)[1]["repetition"]) == (1, 0)


def test_board_text_and_status() -> None:
    shown = str(load("6/2o3/6/6/o4x x 0 3 17 C4C3 F1F2 -"))
    for part in ("4  . . o . . .", "   A B C D E F", "black (x) to move", "quiet steps: 17 of 100", "F1 -> F2"):
        assert part in shown
    position = load(BONUS)
    assert "bonus" in yote.RULES.status(position.options, position.rows[0])
    assert yote.RULES.status(position.options, position.rows[0])["black reserve"] == "4"
    assert "natural (o) wins: blocked" in str(after(SHUT_IN.format(quiet=0), "B2 -> A2"))
    assert "drawn" in str(load("6/6/6/6/6 ? 8 8 0 - - -", first_player="random"))


def test_heuristic_follows_material() -> None:
    def value(text: str) -> float:
        position = load(text)
        ruleset = position.ruleset
        return float(ruleset.kernels.heuristic(ruleset.params, *position.rows))

    assert value(START) == 0.0
    assert -1.0 < value(JUMP) < value(BONUS) == 0.0 < value("x5/6/2ox2/6/5x o 7 0 0 - - -") < 1.0
    assert value(swap_sides(JUMP)) == -value(JUMP)


# -- random play ---------------------------------------------------------------------------------------------------
RANDOM_PLAY = (
    *(("box", {}), ("twelve", {}), ("mini", {})),
    ("box", {"rows": 8, "cols": 8, "pieces": 32, "max_turns": 200, "first_player": "random"}),
    ("box", {"rows": 3, "cols": 8, "pieces": 12, "return_ban": "off", "quiet_limit": 30}),
    ("mini", {"pieces": 4, "repetition_limit": 2, "first_player": "black"}),
    ("mini", {"rows": 4, "repetition_limit": 0, "quiet_limit": 0, "few_pieces_draw": 1, "max_turns": 150}),
)


def text_seen_by(position: Position, seat: int) -> str:
    """The position text made of a seat's view alone, as if the seat were natural."""
    sites, scalars = view(position, seat)
    rows, cols = position.options.rows, position.options.cols
    names = position.ruleset.layout.names
    ranks = []
    for rank in range(rows - 1, -1, -1):
        row = ""
        for site in range(rank * cols, rank * cols + cols):
            row += "o" if sites["own"][site] else "x" if sites["enemy"][site] else "1"
        ranks.append("".join(str(len(run)) if run[0] == "1" else run for run in split_runs(row)))
    bans = []
    for side in ("own", "enemy"):
        marked = 1 in sites[f"{side}_ban_from"]
        squares = (sites[f"{side}_ban_from"].index(1), sites[f"{side}_ban_to"].index(1)) if marked else ()
        bans.append("".join(names[square] for square in squares) or "-")
    side = "o" if scalars["my_turn"] else "x"
    bonus = "bonus" if scalars["bonus"] else "-"
    reserves = f"{scalars['own_reserve']} {scalars['enemy_reserve']}"
    return f"{'/'.join(ranks)} {side} {reserves} {scalars['quiet']} {bans[0]} {bans[1]} {bonus}"


def split_runs(row: str) -> list[str]:
    runs: list[str] = []
    for letter in row:
        if runs and letter == "1" and runs[-1][0] == "1":
            runs[-1] += letter
        else:
            runs.append(letter)
    return runs


def check_sound(position: Position) -> None:
    """Pieces add up, the text round-trips, the view tells everything within its scales."""
    text, options = position.text(), position.options
    board, _, natural, black = text.split()[:4]
    scales = yote.RULES.feature_scales(options)
    for seat in (0, 1):
        sites, scalars = view(position, seat)
        alive = (board.count("o") + int(natural), board.count("x") + int(black))
        assert scalars["own_captures"] == options.pieces - alive[1 - seat]
        assert scalars["enemy_captures"] == options.pieces - alive[seat]
        assert position.margin == alive[0] - alive[1]
        for name, largest in [(n, max(v)) for n, v in sites.items()] + list(scalars.items()):
            assert 0 <= largest <= scales.get(name, 0.0), (name, largest)
    loaded = Position.from_ruleset(position.ruleset, text, chance="explicit")
    assert loaded.text() == text
    if position.reason not in ("repetition", "max_turns"):
        assert ending(loaded) == ending(position)
        assert loaded.legal_actions() == position.legal_actions()
    if not position.is_over:
        assert text_seen_by(position, 0) == text
        assert swap_sides(text_seen_by(position, 1)) == text
        turned = Position.from_ruleset(position.ruleset, swap_sides(text), chance="explicit")
        assert turned.legal_actions() == position.legal_actions()


@pytest.mark.parametrize(("variant", "options"), RANDOM_PLAY)
def test_random_games(variant: str, options: dict[str, Any]) -> None:
    chooser = random.Random(f"{variant} {options}")
    endings: Counter[str | None] = Counter()
    games = 25 if variant == "mini" else 6
    for seed in range(games):
        position = Position("yote", variant, seed=seed, **options)
        seen: Counter[str] = Counter()
        turns = 0
        while not position.is_over:
            check_sound(position)
            legal = position.legal_moves()
            assert len(set(legal)) == len(legal) > 0
            if not legal[0].startswith("*"):
                key = position_key(position)
                seen[key] += 1
                earlier = view(position, 0)[1]["repetition"]
                assert earlier == (seen[key] - 1 if position.options.repetition_limit else 0)
            move = chooser.choice(legal)
            assert position.notation(position.parse(move)) == move
            before = position.text()
            mover = position.to_move
            position.push(move)
            bonus = position.text().endswith("bonus")
            assert position.to_move == (mover if bonus else 1 - mover)
            turns += not bonus
            assert position.turns == turns
            if chooser.random() < 0.1:
                now = position.text()
                position.pop()
                assert position.text() == before
                position.push(move)
                assert position.text() == now
        check_sound(position)
        endings[position.reason] += 1
        seen[position_key(position)] += 1
        limit = position.options.repetition_limit
        assert (position.reason == "repetition") == (limit > 0 and max(seen.values()) >= limit), position.text()
    assert sum(endings.values()) == games
    assert endings.keys() <= set(yote.RULES.reasons)


def position_key(position: Position) -> str:
    """What Y8 compares: the text without the quiet steps."""
    fields = position.text().split()
    return " ".join(fields[:4] + fields[5:])


def random_step(position: Position, chooser: random.Random) -> str:
    return chooser.choice([move for move in position.legal_moves() if " x " not in move] or position.legal_moves())


@pytest.mark.parametrize("return_ban", ["immediate", "off"])
def test_repetition_against_all_earlier_positions(return_ban: str) -> None:
    """Only every fourth hash is compared: steps alone must find exactly what a full count finds."""
    chooser = random.Random(5)
    found = 0
    for _ in range(40):
        position = load("3x/4/o3 o 0 0 0 - - -", rows=3, cols=4, pieces=1, return_ban=return_ban, quiet_limit=2000)
        seen = Counter([position_key(position)])
        while not position.is_over:
            position.push(random_step(position, chooser))
            seen[position_key(position)] += 1
            if not position.is_over:
                assert view(position, 0)[1]["repetition"] == seen[position_key(position)] - 1
        if position.reason == "repetition":
            assert seen[position_key(position)] == 3
            found += 1
    assert found > 4


def test_without_quiet_limit_the_last_2048_positions_are_remembered() -> None:
    chooser = random.Random(8)
    position = load("2x/3/o2 o 0 0 0 - - -", "mini", quiet_limit=0, repetition_limit=100, return_ban="off")
    kernels, params = position.ruleset.kernels, position.ruleset.params
    state, history = (row.copy() for row in position.rows)
    keys = [position_key(position)]
    forgotten = 0
    for _ in range(5000):
        kernels.apply(params, state, history, position.parse(random_step(position, chooser)))
        position = Position.from_rows(position.ruleset, state, history)
        assert not position.is_over
        key = position_key(position)
        assert view(position, 0)[1]["repetition"] == keys[-2048:].count(key)
        forgotten += keys[-2048:].count(key) < keys.count(key)
        keys.append(key)
    assert forgotten > 1000


def test_state_row_is_small() -> None:
    size = yote.RULES.state_size(make_options(yote.RULES))
    assert HEADER_SIZE < size <= 32


@pytest.mark.parametrize(
    ("variant", "options"),
    [("box", {}), ("twelve", {}), ("mini", {}), ("mini", {"return_ban": "off"}), ("box", {"first_player": "random"})],
)
def test_scattered_pieces_are_running_positions(variant: str, options: dict[str, Any]) -> None:
    rules, chosen, rng = yote.RULES, make_options(yote.RULES, variant, **options), np.random.default_rng(2)
    alive, fields = Counter[int](), [set[str]() for _ in range(8)]
    for _ in range(300):
        state = yote.scatter(chosen, rng, 5)
        assert state[contract.OUTCOME] == contract.RUNNING
        text = rules.format_position(chosen, state)
        assert (rules.parse_position(chosen, text) == state).all()
        for kinds, field in zip(fields, text.split(), strict=True):
            kinds.add(field)
        board = "".join(rules.site_pieces(chosen, state))
        alive.update(board.count(letter) + int(text.split()[2 + side]) for side, letter in enumerate("ox"))
    assert set(alive) == set(range(1, min(5, chosen.pieces) + 1))
    assert fields[1] == {"o", "x"}
    assert fields[2] == fields[3] == {str(count) for count in range(min(5, chosen.pieces) + 1)}
    assert (len(fields[5]) > 10) == (len(fields[6]) > 10) == (chosen.return_ban == "immediate")
    assert fields[7] == {"-", "bonus"}
