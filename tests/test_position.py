"""``Position`` over every game and variant: what push, pop, copy and text promise."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradgames_env as tg
from tests.conftest import ALL_VARIANTS
from tradgames_env.position import Position

GAMES = pytest.mark.parametrize(("name", "kind"), ALL_VARIANTS)
CHOICES = st.lists(st.integers(0, 10_000), max_size=80)


def snapshot(position: Position) -> tuple[Any, ...]:
    state, history = position.rows
    return state.tobytes(), history.tobytes(), position._rng.tobytes(), tuple(position.legal_actions())


@GAMES
@settings(max_examples=15, deadline=None)
@given(choices=CHOICES, seed=st.integers(0, 2**63))
def test_pop_undoes_push_exactly(name: str, kind: str, choices: list[int], seed: int) -> None:
    position = Position(name, kind, seed=seed)
    before = []
    for choice in choices:
        if position.is_over:
            break
        before.append((snapshot(position), position.text()))
        legal = position.legal_actions()
        position.push(legal[choice % len(legal)])
    played = position.move_stack
    while before:
        assert position.pop() == played.pop()
        assert (snapshot(position), position.text()) == before.pop()
    with pytest.raises(IndexError, match="nothing was played"):
        position.pop()


@GAMES
@settings(max_examples=15, deadline=None)
@given(choices=CHOICES, seed=st.integers(0, 2**63))
def test_texts_and_moves_round_trip(name: str, kind: str, choices: list[int], seed: int) -> None:
    position = Position(name, kind, seed=seed)
    for choice in choices:
        if position.is_over:
            break
        loaded = Position.from_text(name, position.text(), kind, chance="explicit")
        assert loaded.text() == position.text()
        assert loaded.legal_moves() == position.legal_moves()
        moves, actions = position.legal_moves(), position.legal_actions()
        assert len(set(moves)) == len(moves)
        assert actions == sorted(actions)
        for move, action in zip(moves, actions, strict=True):
            assert position.parse(move) == position.parse(move.split(" x")[0]) == action
            assert position.notation(action) == move
        position.push(moves[choice % len(moves)])


@GAMES
def test_games_end_with_a_reason_and_zero_sum_rewards(name: str, kind: str) -> None:
    choose = np.random.default_rng(0)
    for seed in range(5):
        position = Position(name, kind, seed=seed)
        assert position.reason is None
        assert position.rewards == (0.0, 0.0)
        while not position.is_over:
            position.push(int(choose.choice(position.legal_actions())))
        assert position.reason in position.ruleset.rules.reasons[1:]
        assert sum(position.rewards) == 0
        assert position.rewards[0] == {0: 1.0, 1: -1.0, None: 0.0}[position.winner]
        assert position.legal_moves() == []
        assert position.throw is None
        with pytest.raises(tg.IllegalMoveError, match="the game is over"):
            position.push(0)


def test_copies_go_on_identically(game: str, variant: str) -> None:
    position = Position(game, variant, seed=3)
    for _ in range(4):
        position.push(position.legal_actions()[-1])
    twins = [position.copy(), copy.deepcopy(position), pickle.loads(pickle.dumps(position))]
    for _ in range(40):
        if position.is_over:
            break
        action = position.legal_actions()[0]
        for each in (position, *twins):
            each.push(action)
        assert {snapshot(twin) for twin in twins} == {snapshot(position)}
    assert all(twin.pop() == action for twin in twins)


def test_equality_is_of_the_position() -> None:
    position = Position("petteia")
    assert position == position.copy() == Position("petteia")
    assert position != Position("petteia", "fr8", quiet_limit=60)
    position.push("A1-A2")
    assert position != Position("petteia")
    assert position != position.text()
    with pytest.raises(TypeError, match="unhashable"):
        hash(position)


def test_copies_are_independent() -> None:
    position = Position("petteia")
    other = position.copy()
    other.push("A1-A4")
    assert position.text() == Position("petteia").text()
    assert other.pop() is not None
    assert other.text() == position.text()


def test_a_copy_with_a_seed_throws_its_own() -> None:
    position = Position("yut_nori", seed=5)
    throws = set()
    for seed in range(20):
        other = position.copy(seed=seed)
        other.push(other.legal_actions()[0])
        throws.add(other.text())
    assert len(throws) > 3


def test_lists_handed_out_belong_to_the_caller(game: str) -> None:
    position = Position(game, seed=2)
    moves, actions = position.legal_moves(), position.legal_actions()
    position.legal_moves().clear()
    position.legal_actions().clear()
    position.action_mask()[:] = 0
    assert (position.legal_moves(), position.legal_actions()) == (moves, actions)
    assert position.action_mask().nonzero()[0].tolist() == actions


def test_a_text_is_read_in_the_position_as_it_is_now(game: str) -> None:
    position = Position(game, seed=2)
    moves = position.legal_moves()
    position.push(moves[0])
    assert position.legal_moves() == Position.from_text(game, position.text(), chance="explicit").legal_moves()
    position.pop()
    assert position.legal_moves() == moves
    position.push(moves[-1])
    position.restart(seed=2)
    assert position.legal_moves() == moves


def test_throws_of_a_copy_with_a_seed_can_be_undone() -> None:
    position = Position("yut_nori", seed=5).copy(seed=9)
    before = snapshot(position)
    position.push(position.legal_actions()[0])
    after = snapshot(position)
    position.pop()
    assert snapshot(position) == before
    position.push(position.legal_actions()[0])
    assert snapshot(position) == after


def test_public_api_example() -> None:
    assert tg.games() == ("petteia", "puluc", "yote", "yut_nori")
    assert set(tg.variants("petteia")) == {"box", "fr8", "fr6", "simple", "divination", "gambling", "mini"}
    position = tg.Position("petteia", variant="box", quiet_limit=60, seed=7)
    assert position.options.quiet_limit == 60
    assert position.legal_moves()[0] == "A1 -> A2"
    assert len(position.legal_moves()) == len(position.legal_actions()) == 48
    position.push("d1d4")
    assert position.to_move == 1
    position.push(position.legal_actions()[0])
    assert len(position.move_stack) == 2
    position.pop()
    assert str(position) != repr(position)
    assert "petteia" in repr(position)
    assert tg.perft("petteia", depth=3) == 112_874


def test_chance_is_explicit_on_demand() -> None:
    position = Position("puluc", chance="explicit")
    assert position.chance_due
    assert position.legal_moves() == []
    assert position.chance_outcomes() == [(1, 0.25), (2, 0.375), (3, 0.25), (4, 0.0625), (5, 0.0625)]
    with pytest.raises(tg.IllegalMoveError, match="a throw is due"):
        position.push("enter -> 3")
    with pytest.raises(tg.IllegalMoveError, match=r"shows one of \(1, 2, 3, 4, 5\), not 6"):
        position.apply_chance(6)
    position.apply_chance(3)
    assert position.throw == 3
    with pytest.raises(tg.IllegalMoveError, match="no throw is due"):
        position.apply_chance(3)
    position.push("enter -> 3")
    assert position.pop() == 0
    assert position.pop() is None
    assert position.chance_due


def test_throws_follow_the_odds() -> None:
    counts = np.bincount([Position("puluc", seed=seed).throw for seed in range(4000)], minlength=6)[1:]
    expected = np.array([4, 6, 4, 1, 1]) / 16 * 4000
    assert ((counts - expected) ** 2 / expected).sum() < 18.5  # chi squared, 4 degrees of freedom, p = 0.001


@pytest.mark.parametrize("wrong", [None, 1.5, True, b"A1-A2", ["A1-A2"], -1, 896, 2**70])
def test_moves_of_a_wrong_kind_are_refused(wrong: Any) -> None:
    position = Position("petteia")
    with pytest.raises(tg.IllegalMoveError, match=r"action id|is not legal"):
        position.push(wrong)
    assert position.move_stack == []


@pytest.mark.parametrize("text", ["", "e4", "A1 ->", "A1 -> A2 -> A3", "Z9-Z8", "A1-A2 x", "☃", "A1-A2\n;"])
def test_texts_that_are_no_moves_are_refused(text: str) -> None:
    position = Position("petteia")
    with pytest.raises(tg.NotationError):
        position.push(text)
    assert position.move_stack == []


def test_illegal_moves_name_the_position_and_some_legal_ones() -> None:
    position = Position("petteia")
    with pytest.raises(tg.IllegalMoveError, match=r"'A1-A8' is not legal in .* legal: A1 -> A2, .* and 42 more"):
        position.push("A1-A8")


def test_numpy_integers_are_actions() -> None:
    position = Position("petteia")
    position.push(np.int64(position.legal_actions()[0]))
    assert len(position.move_stack) == 1


def test_bad_chance_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="chance must be 'auto' or 'explicit', not 'none'"):
        Position("petteia", chance="none")  # type: ignore[arg-type]


def test_restart_goes_on_with_the_generator_or_a_new_seed() -> None:
    position = Position("puluc", seed=2)
    position.push(position.legal_actions()[0])
    position.restart(seed=2)
    assert position.text() == Position("puluc", seed=2).text()
    assert position.move_stack == []
    with pytest.raises(tg.NotationError):
        position.restart("nonsense")
    assert position.text() == Position("puluc", seed=2).text()


@pytest.mark.parametrize("text", [None, 3, b"x", ["o"], {}])
def test_positions_are_given_as_texts(game: str, text: Any) -> None:
    with pytest.raises(tg.NotationError, match="a position is given as a text"):
        Position.from_text(game, text)
    env = tg.raw_env(game)
    env.reset(seed=1)
    before = env.position.text()
    with pytest.raises(tg.NotationError, match="a position is given as a text"):
        env.set_position(text)
    assert env.position.text() == before


@pytest.mark.parametrize("outcome", [True, 3.0, "3", None, 0, 6])
def test_throws_of_a_wrong_kind_are_refused(outcome: Any) -> None:
    position = Position("puluc", chance="explicit")
    with pytest.raises(tg.IllegalMoveError, match="a throw shows one of"):
        position.apply_chance(outcome)
    assert position.chance_due


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_seeds_of_a_wrong_kind_are_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be an integer of at least 0"):
        Position("puluc", seed=seed)


@pytest.mark.parametrize("name", [["petteia"], {}, None, 3, "Petteia"])
def test_names_of_a_wrong_kind_are_refused(name: Any) -> None:
    with pytest.raises(ValueError, match=r"a game is given by its name|there is no game"):
        Position(name)
    with pytest.raises(ValueError, match="has no variant"):
        Position("petteia", name)


def test_numpy_numbers_are_options() -> None:
    assert Position("petteia", quiet_limit=np.int64(7)).options.quiet_limit == 7
    assert Position("puluc", stick_p=np.float64(0.25)).options.stick_p == 0.25


def test_copies_share_no_rows_after_pop_and_advance() -> None:
    position = Position("petteia")
    start = position.text()
    position.push("A1-A2")
    other = position.copy()
    position.pop()
    position.advance(position.parse("B1-B5"))
    assert position.move_stack == []
    other.pop()
    assert other.text() == start


@pytest.mark.parametrize(
    "text", ["w:" + "4" * 50_000 + " w:4 o 3", "o" * 50_000, "/".join("-" * 20_000) + " 5 5 0 0 o 3"]
)
def test_what_is_wrong_with_a_long_text_is_said_in_a_line(game: str, text: str) -> None:
    position = Position(game, seed=1)
    for refused in (
        lambda: Position.from_text(game, text),
        lambda: position.push(text),
        lambda: position.push("5-" + text),
    ):
        with pytest.raises(tg.NotationError) as error:
            refused()
        assert len(str(error.value)) < 1000
