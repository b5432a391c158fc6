import pathlib
from collections import defaultdict

import numpy as np
import pytest
import torch

import tradgames_env as tg
from tests.agents.test_network import make_checkpoint
from tradgames_env.agents.lookahead import successors
from tradgames_env.agents.network import load_network_agent
from tradgames_env.rules.chance import seed_generators


def word(seed: int = 0) -> np.ndarray:
    return seed_generators(seed, 1)


def positions_of(game: str, count: int, plies: int) -> list[tg.Position]:
    games = tg.BatchGames(game, num_games=count, seed=7)
    games.play_random(plies)
    return [games.position(index, seed=index) for index in range(count)]


# -- successors --------------------------------------------------------------------------------------------------------


def test_every_legal_move_once_with_weights_that_sum_to_one(game: str) -> None:
    positions = positions_of(game, 20, 12)
    ahead = successors(positions, word())
    weights: dict[tuple[int, int], float] = defaultdict(float)
    for index, action, weight in zip(ahead.position, ahead.action, ahead.weight, strict=True):
        weights[int(index), int(action)] += float(weight)
    assert set(weights) == {(i, action) for i, position in enumerate(positions) for action in position.legal_actions()}
    assert list(weights.values()) == pytest.approx([1.0] * len(weights))


def test_they_are_what_position_plays(game: str) -> None:
    positions = positions_of(game, 10, 9)
    ahead = successors(positions, word())
    for row in range(len(ahead.action)):
        before = positions[int(ahead.position[row])]
        after = tg.Position.from_rows(before.ruleset, *before.rows, chance="explicit")
        after.push(int(ahead.action[row]))
        found = tg.Position.from_rows(before.ruleset, ahead.states[row], ahead.histories[row], chance="explicit")
        assert found.is_over == after.is_over == ahead.over[row]
        assert found.margin == after.margin
        assert found.to_move == after.to_move
        assert (found.to_move == before.to_move) == (ahead.sign[row] == 1.0)
        if not ahead.over[row]:
            assert not found.chance_due
        if not after.chance_due:
            assert found.text() == after.text()


def test_throws_have_their_probabilities() -> None:
    position = tg.Position.from_text("puluc", "-/o/-/-/-/-/-/-/x 4 4 0 0 o 1")
    ahead = successors([position], word())
    mine = ahead.action == position.parse("enter -> 1")
    shown = [
        tg.Position.from_rows(position.ruleset, state, np.zeros(0, np.uint64)).throw for state in ahead.states[mine]
    ]
    assert dict(zip(shown, (16 * ahead.weight[mine]).tolist(), strict=True)) == pytest.approx(
        {1: 4, 2: 6, 3: 4, 4: 1, 5: 1}
    )


def test_gain_and_payoff_are_the_movers() -> None:
    # Black moves and takes his last counter home: his gain and his win.
    position = tg.Position.from_text("puluc", "-/oox/-/-/-/-/-/-/- 0 4 0 3 x 3")
    ahead = successors([position], word())
    row = np.flatnonzero(ahead.action == position.parse("8 -> home (+2)"))[0]
    assert (ahead.over[row], ahead.payoff[row], ahead.gain[row]) == (True, 1.0, 2.0)


def test_a_bonus_keeps_the_sign() -> None:
    position = tg.Position.from_text("yote", "x5/6/2ox2/6/5x o 5 4 0 - - -")
    ahead = successors([position], word())
    jump = ahead.action == position.parse("C3 -> E3")
    assert ahead.sign[jump].tolist() == [1.0]
    assert (ahead.sign[~jump] == -1.0).all()


def test_positions_are_left_alone() -> None:
    positions = positions_of("petteia", 5, 10)
    before = [tuple(row.copy() for row in position.rows) for position in positions]
    successors(positions, word())
    for (state, history), position in zip(before, positions, strict=True):
        np.testing.assert_array_equal(state, position.rows[0])
        np.testing.assert_array_equal(history, position.rows[1])


# -- the agent that uses them ------------------------------------------------------------------------------------------


def test_takes_a_win_whatever_the_network_thinks(tmp_path: pathlib.Path) -> None:
    text = "-/-/-/-/-/xxo/-/-/- 4 0 3 0 o 4"
    for seed in range(5):
        agent = load_network_agent(make_checkpoint(tmp_path / str(seed), seed=seed), device="cpu", lookahead=True)
        assert agent.act(tg.Position.from_text("puluc", text)) == "6 -> home (+2)"
    blocked = "xx4/oo4/6/6/6/2o3 o 0 -"
    agent = load_network_agent(make_checkpoint(tmp_path / "p", "petteia", "fr6"), device="cpu", lookahead=True)
    assert agent.act(tg.Position.from_text("petteia", blocked, variant="fr6")).startswith("C1 -> C6")


def test_plays_the_highest_expected_value(tmp_path: pathlib.Path) -> None:
    agent = load_network_agent(make_checkpoint(tmp_path / "c"), device="cpu", lookahead=True)
    position = tg.Position.from_text("puluc", "-/o/-/-/o/-/-/-/x 3 4 0 0 o 1")
    expected = {}
    for move in position.legal_moves():
        after = tg.Position.from_text("puluc", position.text(), chance="explicit")
        after.push(move)
        total = 0.0
        for value, probability in after.chance_outcomes():
            thrown = after.copy()
            thrown.apply_chance(value)
            with torch.inference_mode():
                total -= probability * agent._evaluate([thrown])[1][0, 0]
        expected[move] = total
    table = agent._look_ahead([position])[0]
    for move, value in expected.items():
        assert table[position.parse(move)] == pytest.approx(value, abs=1e-5)
    assert agent.act(position) == max(expected, key=expected.__getitem__)


def test_does_not_foresee_the_throws_of_the_game(tmp_path: pathlib.Path) -> None:
    agent = load_network_agent(make_checkpoint(tmp_path / "c"), device="cpu", lookahead=True)
    text = "-/o/-/-/o/-/-/-/x 3 4 0 0 o 1"
    assert len({agent.act(tg.Position.from_text("puluc", text, seed=seed)) for seed in range(30)}) == 1


def test_many_at_once_as_one_by_one(game: str, tmp_path: pathlib.Path) -> None:
    agent = load_network_agent(make_checkpoint(tmp_path / "c", game), device="cpu", lookahead=True)
    positions = positions_of(game, 12, 10)
    tables = agent._look_ahead(positions)
    singles = np.concatenate([agent._look_ahead([position]) for position in positions])
    # Throws that follow throws are drawn: such games agree only where none follows.
    if game != "yut_nori":
        np.testing.assert_allclose(tables, singles, atol=1e-5)
    assert len(agent.act_many(positions)) == 12
