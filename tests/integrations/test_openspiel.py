"""OpenSpiel: its own random tests on every variant, its searches and solvers, and bots and agents both ways."""

import copy
import pickle
import re
import sys
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tests.integrations.tutorials import run_tutorial
from tradgames_env.encoding import Encoder
from tradgames_env.rules.errors import NotationError, OptionError

pyspiel = pytest.importorskip("pyspiel", reason="pip install 'tradgames-env[openspiel]'")

from open_spiel.python import rl_environment
from open_spiel.python.algorithms import evaluate_bots, mcts, minimax
from open_spiel.python.bots import uniform_random

from tradgames_env.integrations import openspiel

FOR_SOLVERS = "OpenSpiel's solvers need more: pip install 'tradgames-env[integrations]'"


def load(game: str, variant: str, options: str = "") -> Any:
    return pyspiel.load_game(f"python_{game}", {"variant": variant, "options": options})


def play(state: Any, seed: int, moves: int = 10**6) -> Any:
    choose = np.random.RandomState(seed)
    while not state.is_terminal() and moves > 0:
        if state.is_chance_node():
            outcomes, odds = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(int(choose.choice(outcomes, p=odds)))
        else:
            state.apply_action(int(choose.choice(state.legal_actions())))
            moves -= 1
    return state


def test_openspiels_own_test(game: str, variant: str) -> None:
    pyspiel.random_sim_test(load(game, variant), num_sims=1, serialize=False, verbose=False)


def test_openspiels_own_test_with_serialisation() -> None:
    for game in ("puluc", "yut_nori"):
        pyspiel.random_sim_test(load(game, "mini"), num_sims=1, serialize=True, verbose=False)


def test_states_are_positions(game: str, variant: str) -> None:
    spiel = load(game, variant)
    assert spiel.get_type().chance_mode == (
        pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC
        if spiel.ruleset.chance_kinds
        else pyspiel.GameType.ChanceMode.DETERMINISTIC
    )
    state = play(spiel.new_initial_state(), seed=1, moves=4)
    again = spiel.new_initial_state(str(state))
    assert again.position == state.position
    assert str(again) == str(state)
    assert again.current_player() == state.current_player()
    while state.is_chance_node():
        assert sum(odds for _, odds in state.chance_outcomes()) == pytest.approx(1.0)
        state.apply_action(0)
    assert [state.action_to_string(action) for action in state.legal_actions()] == state.position.legal_moves()
    for action in state.legal_actions():
        assert state.string_to_action(state.action_to_string(action)) == action
    mover = state.current_player()
    tensor = np.array(state.observation_tensor(mover), np.float32)
    assert (tensor == Encoder(spiel.ruleset).observe(state.position).ravel()).all()
    ended = play(state.clone(), seed=2)
    assert sum(ended.returns()) == 0.0
    assert ended.returns()[:2] == list(ended.position.rewards)
    assert spiel.min_utility() <= min(ended.returns()) <= max(ended.returns()) <= spiel.max_utility()


def test_copies_go_on_alone() -> None:
    spiel = load("yut_nori", "traditional")
    state = play(spiel.new_initial_state(), seed=3, moves=10)
    before = str(state)
    for other in (state.clone(), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert str(other) == before
        assert other.history() == state.history()
        play(other, seed=1)
        assert str(state) == before
    assert str(spiel.deserialize_state(state.serialize())) == before


def test_options_by_text() -> None:
    spiel = pyspiel.load_game("python_petteia(variant=fr6,options=capture_target:2;forced_capture:True)")
    assert spiel.ruleset.label == "petteia/fr6+capture_target=2+forced_capture=True"
    assert pyspiel.load_game(str(spiel)).ruleset is spiel.ruleset
    assert openspiel.spiel_game(spiel.ruleset).ruleset is spiel.ruleset


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("forced_capture:maybe", "must be of type bool, not 'maybe'"),
        ("capture_target:many", "must be of type int, not 'many'"),
        ("capture_target", "options are given as name:value"),
        ("captures:1", "has no option 'captures'"),
    ],
)
def test_wrong_options(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        openspiel._CLASSES["petteia"]({"options": options})


def test_wrong_positions() -> None:
    with pytest.raises(NotationError):
        load("puluc", "mini").new_initial_state("nonsense")
    with pytest.raises(ValueError, match="is no state of puluc/mini"):
        load("puluc", "mini").state_of(tg.Position("puluc", "family", seed=1))


@pytest.mark.parametrize("name", ["puluc", "yut_nori"])
def test_value_iteration_agrees_with_our_tables(name: str) -> None:
    pytest.importorskip("cvxpy", reason=FOR_SOLVERS)
    from open_spiel.python.algorithms import value_iteration

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(30_000)
    try:
        values = value_iteration.value_iteration(load(name, "mini", "max_turns:30000"), -1, 1e-4, cyclic_game=True)
    finally:
        sys.setrecursionlimit(limit)
    perfect = tg.load_agent("perfect")
    compared = 0
    for text, value in list(values.items())[::7]:
        position = tg.Position.from_text(name, text, "mini", chance="explicit")
        if not position.is_over:
            sign = 1.0 if position.to_move == 0 else -1.0
            assert sign * perfect.value(position) == pytest.approx(value, abs=5e-3), text
            compared += 1
    assert compared > 300


def test_expectiminimax_sees_what_is_there() -> None:
    state = load("puluc", "mini").new_initial_state()
    state.apply_action(1)
    value, action = minimax.expectiminimax(state, 3, lambda node: 0.0, 0)
    assert value == 0.0
    assert action in state.legal_actions()


def test_alpha_beta_search() -> None:
    value, action = minimax.alpha_beta_search(
        load("petteia", "mini"), value_function=lambda node: float(node.position.margin), maximum_depth=2
    )
    assert action in load("petteia", "mini").new_initial_state().legal_actions()
    assert value == 0.0


def test_search_beats_random() -> None:
    spiel = load("petteia", "mini")
    random = np.random.RandomState(1)
    won = 0
    for number in range(8):
        search = mcts.MCTSBot(spiel, 2.0, 30, mcts.RandomRolloutEvaluator(1, random), random_state=random)
        side = number % 2
        bots = [uniform_random.UniformRandomBot(1 - side, random)] * 2
        bots[side] = search
        won += evaluate_bots.evaluate_bots(spiel.new_initial_state(), bots, random)[side] > 0
    assert won >= 7


def test_alpha_rank_of_our_agents() -> None:
    pytest.importorskip("scipy", reason=FOR_SOLVERS)
    from open_spiel.python.egt import alpharank, heuristic_payoff_table

    spiel = load("petteia", "mini")
    random = np.random.RandomState(1)
    agents = ("random", "greedy")
    payoffs = np.zeros((2, 2))
    for row, first in enumerate(agents):
        for column, second in enumerate(agents):
            bots = [openspiel.AgentBot(first, 0), openspiel.AgentBot(second, 1)]
            games = [evaluate_bots.evaluate_bots(spiel.new_initial_state(), bots, random)[0] for _ in range(6)]
            payoffs[row, column] = np.mean(games)
    table = heuristic_payoff_table.from_matrix_game((payoffs - payoffs.T) / 2)
    _, _, masses, _, _ = alpharank.compute([table], alpha=10.0)
    assert masses[agents.index("greedy")] > 0.9


def test_rl_environment_plays_second_moves() -> None:
    env = rl_environment.Environment(load("yut_nori", "traditional"))
    choose = np.random.RandomState(2)
    again = 0
    for _ in range(5):
        step, mover = env.reset(), None
        while not step.last():
            player = step.observations["current_player"]
            again += player == mover
            mover = player
            step = env.step([int(choose.choice(step.observations["legal_actions"][player]))])
        assert sorted(step.rewards) == [-1.0, 1.0]
    assert again > 0


def test_bots_as_agents() -> None:
    agent = tg.load_agent("openspiel:mcts:8")
    for game in tg.games():
        position = tg.Position(game, "mini", seed=4)
        agent.seed(7)
        move = agent.act(position)
        assert move in position.legal_moves()
        agent.seed(7)
        assert agent.policy(position)[move] == 1.0
    with pytest.raises(ValueError, match="openspiel:mcts:SIMULATIONS"):
        tg.load_agent("openspiel:alphazero")


def test_search_in_cpp_is_refused() -> None:
    def make(game: Any, seed: int) -> Any:
        return pyspiel.MCTSBot(game, pyspiel.RandomRolloutEvaluator(1, seed), 2.0, 10, 100, True, seed, False)

    with pytest.raises(TypeError, match=re.escape("open_spiel.python.algorithms.mcts.MCTSBot")):
        openspiel.BotAgent(make, "cpp").act(tg.Position("puluc", "mini", seed=1))


def test_tutorial() -> None:
    pytest.importorskip("cvxpy", reason=FOR_SOLVERS)
    said = run_tutorial("openspiel", steps=2)
    first, second = re.findall(r"is (?:worth )?([+-][\d.]+)", said)
    assert float(first) == pytest.approx(float(second), abs=5e-3)
    assert "of 2 games against greedy" in said
