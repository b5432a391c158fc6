"""The best response to fixed policies, beside a plain solver, at every position of small games."""

import functools
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.solving.plain_response import SMALL, Policy, plain_game, small_ruleset
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving.indexing import TableError, load_index
from tradgames_env.solving.response import Arising, Moves, arising, best_response, list_moves
from tradgames_env.solving.solver import solve_in_memory


@functools.cache
def moves_of(game: str) -> Moves:
    return list_moves(small_ruleset(game), load_index(small_ruleset(game)))


@functools.cache
def arisen(game: str) -> Arising:
    return arising(moves_of(game))


def first_moves(moves: Moves) -> NDArray[np.float64]:
    """The policy that always plays the lowest action."""
    policy = np.zeros(len(moves.codes))
    for begin, end in zip(moves.heads[:-1], moves.heads[1:], strict=True):
        if begin < end:
            policy[begin + moves.actions[begin:end].argmin()] = 1.0
    return policy


def play_first(position: Position) -> dict[str, float]:
    return {move: float(place == 0) for place, move in enumerate(position.legal_moves())}


def play_any(position: Position) -> dict[str, float]:
    moves = position.legal_moves()
    return dict.fromkeys(moves, 1.0 / len(moves))


@pytest.mark.parametrize("solved", SMALL)
@pytest.mark.parametrize("colour", [0, 1])
@pytest.mark.parametrize(("listed", "said"), [(first_moves, play_first), (Moves.even_policy, play_any)])
def test_values_are_those_of_a_plain_solver(
    solved: str, colour: int, listed: Callable[[Moves], NDArray[np.float64]], said: Policy
) -> None:
    moves, index = moves_of(solved), moves_of(solved).index
    response = best_response(moves, listed(moves))
    assert response.residual <= 1e-9
    expected = plain_game(solved).values((said, None) if colour == 0 else (None, said))
    compared = 0
    for name, node in plain_game(solved).nodes.items():
        number = index.rank(moves.ruleset.params, index.tables, node.position.rows[0])
        if number < 0 or node.position.is_over:
            continue
        mover = node.position.to_move
        found = (response.fixed if mover == colour else response.free)[number]
        assert (-found if mover else found) == pytest.approx(expected[name], abs=1e-6), name
        compared += 1
    assert compared > 100


@pytest.mark.parametrize("solved", SMALL)
def test_a_best_policy_gets_the_value_of_the_table(solved: str) -> None:
    table, moves = solve_in_memory(small_ruleset(solved)), moves_of(solved)
    exact = values = table.values.astype(np.float64)
    if solved == "yote":  # distances; a quicker win is worth a little more
        exact, values = np.sign(values), np.sign(values) - 1e-5 * values
    response, start = best_response(moves, best_policy(moves, values)), arisen(solved).start
    assert response.fixed[start] == pytest.approx(exact[start], abs=2e-6)
    assert response.free[start] == pytest.approx(exact[start], abs=2e-6)


def best_policy(moves: Moves, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The policy that plays the first of the best moves."""
    numbers = moves.codes >> 1
    worth = np.where(moves.codes < 0, -2.0 - moves.codes, values[numbers] * (1 - 2 * (moves.codes & 1)))
    policy = np.zeros(len(moves.codes))
    for begin, end in zip(moves.heads[:-1], moves.heads[1:], strict=True):
        if begin < end:
            policy[begin + worth[begin:end].argmax()] = 1.0
    return policy


@pytest.mark.parametrize("solved", SMALL)
@pytest.mark.parametrize("colour", [0, 1])
def test_rows_are_the_decisions_of_that_colour(solved: str, colour: int) -> None:
    moves = moves_of(solved)
    choices = arisen(solved).choices(colour)
    rows = arisen(solved).rows(colour, choices)
    texts = set()
    for decision, row in zip(choices.tolist(), rows, strict=True):
        position = Position.from_rows(moves.ruleset, row, np.zeros(moves.ruleset.history_size, np.uint64))
        listed = moves.actions[moves.heads[decision] : moves.heads[decision + 1]]
        assert position.to_move == colour
        assert position.legal_actions() == sorted(listed.tolist())
        texts.add(position.text())
    assert len(texts) == len(choices)
    decisions = {
        name: node
        for name, node in plain_game(solved).nodes.items()
        if len(node.moves) > 1 and node.position.to_move == colour
    }
    # The plain solver tells apart what the index does not, such as the order inside a stack.
    assert len(choices) <= len(decisions)
    if solved == "yote":
        assert len(choices) == len(decisions)


@pytest.mark.parametrize("colour", [0, 1])
def test_moves_are_found_on_turned_boards(colour: int) -> None:
    ruleset = load_ruleset("petteia", "mini", capture_target=1)
    moves = list_moves(ruleset, load_index(ruleset))
    known = arising(moves)
    decisions = known.choices(colour)[::997]
    for decision, row in zip(decisions.tolist(), known.rows(colour, decisions), strict=True):
        position = Position.from_rows(ruleset, row, np.zeros(ruleset.history_size, np.uint64))
        places = [moves.find(decision, row, action) for action in position.legal_actions()]
        begin, end = moves.heads[decision], moves.heads[decision + 1]
        assert len(places) == end - begin
        assert set(moves.codes[places].tolist()) == set(moves.codes[begin:end].tolist())
        assert all(begin <= place < end for place in places)
        assert moves.find(decision, row, -5) == -1


def test_policies_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="policy must be"):
        best_response(moves_of("puluc"), np.zeros(3))


def test_a_part_without_the_start_is_refused() -> None:
    ruleset = small_ruleset("yote")
    with pytest.raises(TableError, match="does not cover the position in which"):
        arising(list_moves(ruleset, load_index(ruleset, "endings-1v1")))
