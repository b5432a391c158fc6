"""Greedy: a win, else the largest gain, else the best standing, one move ahead."""

import tradgames_env as tg
from tradgames_env.agents.greedy import GreedyAgent

BEFORE_THREE = "xx4xx/8/3o4/3x4/1ox1xo2/8/8/3o4 o 0 -"


def best(position: tg.Position) -> set[str]:
    return {move for move, probability in GreedyAgent().policy(position).items() if probability > 0}


def test_takes_the_most() -> None:
    position = tg.Position.from_text("petteia", BEFORE_THREE)
    assert GreedyAgent().act(position) == "D1 -> D4 x C4,D5,E4"
    assert best(position) == {"D1 -> D4 x C4,D5,E4"}


def test_takes_the_most_for_black() -> None:
    position = tg.Position.from_text("petteia", "3x4/8/8/1xo1ox2/3o4/3x4/8/oo4oo x 0 -")
    assert best(position) == {"D8 -> D5 x C5,D4,E5"}


def test_a_win_comes_before_any_gain() -> None:
    # C1 -> C8 captures nothing, but blocks black; other moves leave natural standing well, with more freedom to move.
    position = tg.Position.from_text("petteia", "xx6/oo6/8/8/8/8/8/2o5 o 0 -")
    assert best(position) == {"C1 -> C8"}
    assert GreedyAgent().value(position) == 1.0


def test_the_standing_decides_what_gains_leave_open() -> None:
    position = tg.Position("petteia")
    kernels, params = position.ruleset.kernels, position.ruleset.params
    standings = {}
    for move in position.legal_moves():
        position.push(move)
        standings[move] = kernels.heuristic(params, *position.rows)
        position.pop()
    highest = max(standings.values())
    assert best(position) == {move for move, standing in standings.items() if standing == highest}
    assert GreedyAgent().value(position) == highest


def test_gains_come_before_the_standing() -> None:
    # Taking four prisoners stands better than one counter removed, but removes nothing yet.
    position = tg.Position.from_text("puluc", "o/-/-/xxxx/-/-/-/xo/- 3 0 0 0 o 3")
    assert "1 -> 4" in position.legal_moves()
    assert best(position) == {"8 -> home (+1)"}


def test_a_drawn_game_stands_even() -> None:
    position = tg.Position.from_text("petteia", "xx6/8/8/8/8/8/7o/o7 o 99 -")  # any move is the hundredth quiet one
    assert best(position) == set(position.legal_moves())
    assert GreedyAgent().value(position) == 0.0


def test_ties_are_drawn_from_evenly() -> None:
    position = tg.Position("petteia")
    agent = GreedyAgent()
    agent.seed(0)
    tied = best(position)
    assert tied == {f"{file}1 -> {file}7" for file in "BCDEFG"}
    played = [agent.act(position) for _ in range(600)]
    assert set(played) == tied
    assert all(65 <= played.count(move) <= 135 for move in tied)


def test_looks_at_its_own_move_only() -> None:
    # Placed on C3, the piece is jumped over at once; Yote's standing counts pieces, so every placement looks the same.
    position = tg.Position.from_text("yote", "6/6/3x2/6/6 o 8 7 0 - - -")
    assert "+C3" in position.legal_moves()
    assert best(position) == set(position.legal_moves())


def test_the_last_piece_home_wins() -> None:
    position = tg.Position.from_text("yut_nori", "28:2,h:2 w:4 o 2")
    assert best(position) == {"28 -> home"}
    assert GreedyAgent().value(position) == 1.0


def test_pieces_home_are_gains_in_a_race() -> None:
    position = tg.Position.from_text("puluc", "-/-/-/-/-/-/-/oxxo/- 3 3 0 0 o 4")
    assert best(position) == {"8 -> home (+2)"}
