"""Alpha-beta: equal to plain minimax, whoever decides next; quick wins; exact ties; no dice."""

import numpy as np
import pytest

import tradgames_env as tg
from tests.agents import minimax
from tradgames_env.agents.alphabeta import AlphaBetaAgent

BONUS_WINS = "x5/6/2ox2/6/6 o 5 0 0 - - -"
TWO_JUMPS = (
    "6/6/1xoox1/x5/5x o 0 0 0 - - -",
    "6/2x3/1xoox1/5x/o5 o 0 0 0 - - -",
    "3x2/o1xo2/2oox1/6/x4x o 0 0 0 - - -",
)
WIN_IN_THREE = "x1x1/o2x/o3/3x x 11 -"


def best(position: tg.Position, depth: int) -> set[str]:
    return {move for move, probability in AlphaBetaAgent(depth).policy(position).items() if probability > 0}


def random_position(game: str, seed: int) -> tg.Position:
    rng = np.random.default_rng(seed)
    position = tg.Position(game, "mini", seed=seed)
    for _ in range(int(rng.integers(0, 25))):
        if not position.is_over:
            position.push(int(rng.choice(position.legal_actions())))
    if position.is_over:
        position.pop()
    return position


@pytest.mark.parametrize("board", ["petteia", "yote"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_equals_minimax(board: str, depth: int) -> None:
    for seed in range(12):
        position = random_position(board, seed)
        moves, score = minimax.best_moves(position, depth)
        assert best(position, depth) == moves, position.text()
        assert AlphaBetaAgent(depth).value(position) == np.clip(score, -1.0, 1.0), position.text()


@pytest.mark.parametrize("text", ["x2/3/o1o x 0 0 0 A1B1 - bonus", "o1x/2o/x1o o 0 0 0 - - bonus"])
def test_equals_minimax_where_a_bonus_is_owed(text: str) -> None:
    for depth in (1, 2, 3, 4):
        position = tg.Position.from_text("yote", text, "mini")
        moves, score = minimax.best_moves(position, depth)
        assert best(position, depth) == moves
        assert AlphaBetaAgent(depth).value(position) == np.clip(score, -1.0, 1.0)


@pytest.mark.parametrize("text", TWO_JUMPS)
def test_equals_minimax_where_several_jumps_earn_a_bonus(text: str) -> None:
    position = tg.Position.from_text("yote", text)
    moves, score = minimax.best_moves(position, 3)
    assert best(position, 3) == moves
    assert AlphaBetaAgent(3).value(position) == score


def test_counts_the_bonus_for_the_side_that_decides_it() -> None:
    position = tg.Position.from_text("yote", BONUS_WINS)
    assert AlphaBetaAgent(1).value(position) < 1.0  # the jump alone does not win yet
    assert AlphaBetaAgent(2).value(position) == 1.0
    assert best(position, 2) == {"C3 -> E3 x D3"}


def test_finds_a_forced_win_in_three() -> None:
    position = tg.Position.from_text("petteia", WIN_IN_THREE, "mini")
    assert AlphaBetaAgent(2).value(position) < 1.0
    assert AlphaBetaAgent(3).value(position) == 1.0
    assert best(position, 3) == {"D1 -> A1"}
    replies = 0
    position.push("D1 -> A1")
    for reply in position.legal_moves():
        position.push(reply)
        assert AlphaBetaAgent(1).value(position) == 1.0
        position.pop()
        replies += 1
    assert replies > 1


def test_prefers_the_quicker_win() -> None:
    position = tg.Position.from_text("petteia", "xx6/oo6/8/8/8/8/8/2o5 o 0 -")
    assert best(position, 3) == {"C1 -> C8"}
    assert best(position, 1) == {"C1 -> C8"}


def test_prefers_the_slower_loss() -> None:
    position = tg.Position.from_text("petteia", WIN_IN_THREE, "mini")
    position.push("D1 -> A1")
    moves, score = minimax.best_moves(position, 4)
    assert score < -1.0
    assert best(position, 4) == moves
    assert AlphaBetaAgent(4).value(position) == -1.0


def test_sees_a_draw_by_repetition() -> None:
    position = tg.Position("petteia", "mini")
    for _ in range(2):
        for move in ("A1 -> A2", "D4 -> D3", "A2 -> A1"):
            position.push(move)
        if position.turns < 6:
            position.push("D3 -> D4")
    moves, score = minimax.best_moves(position, 1)  # D3 -> D4 repeats the start for the third time
    assert best(position, 1) == moves
    position.push("D3 -> D4")
    assert position.reason == "repetition"
    position.pop()
    assert AlphaBetaAgent(1).value(position) == score


def test_ties_are_drawn_from_evenly() -> None:
    position = tg.Position("yote")  # where a first piece stands makes no difference to its standing
    agent = AlphaBetaAgent(1)
    agent.seed(0)
    assert set(agent.policy(position).values()) == {1 / 30}
    assert len({agent.act(position) for _ in range(300)}) == 30


@pytest.mark.parametrize(("played", "variant"), [("puluc", "box"), ("petteia", "divination"), ("petteia", "gambling")])
def test_refuses_dice(played: str, variant: str) -> None:
    message = f"alphabeta plays games without dice, and {played}/{variant} has a (throw|die|stake); use 'mcts'"
    with pytest.raises(ValueError, match=message):
        AlphaBetaAgent().act(tg.Position(played, variant, seed=1))


def test_a_draw_for_the_first_player_is_no_dice() -> None:
    position = tg.Position("petteia", "simple", seed=1)
    assert AlphaBetaAgent(1).act(position) in position.legal_moves()


@pytest.mark.parametrize("depth", [0, -1, 1.0, True, "2", 1001])
def test_depth_is_checked(depth: object) -> None:
    with pytest.raises(ValueError, match="depth must be an integer from 1 to 1000"):
        AlphaBetaAgent(depth)  # type: ignore[arg-type]
