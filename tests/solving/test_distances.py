"""Values of games without dice: against a plain solver, the reference rules, known results and real play."""

import dataclasses
import importlib

import numpy as np
import pytest

import tradgames_env as tg
from tests.solving.plain_distances import distances
from tradgames_env.agents.perfect import PerfectAgent
from tradgames_env.position import Position
from tradgames_env.rules.petteia import LINES
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving import solver
from tradgames_env.solving.indexing import TableError, load_index
from tradgames_env.solving.petteia import _BASES, _WIDTH
from tradgames_env.solving.retrograde import HOLE, LOST, Retrograde, without_history
from tradgames_env.solving.table import DISTANCE


@pytest.fixture(scope="module")
def petteia_mini():
    return solver.solve_in_memory(load_ruleset("petteia", "mini"))


@pytest.fixture(scope="module")
def yote_mini():
    return solver.solve_in_memory(load_ruleset("yote", "mini"))


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"pieces": 1}, 1026),
        ({"pieces": 1, "return_ban": "off"}, 154),
        ({"pieces": 2, "return_ban": "off"}, 3190),
    ],
)
def test_every_position_has_the_value_a_plain_solver_finds(options, count):
    ruleset = without_history(load_ruleset("yote", "mini", **options))
    expected = distances("yote", ruleset.options, Position.from_ruleset(ruleset).text())
    assert len(expected) == count
    table = solver.solve_in_memory(ruleset)
    for text, distance in expected.items():
        assert table.distance(ruleset.rules.parse_position(ruleset.options, text)) == distance, text


@pytest.mark.parametrize("name", ["petteia", "yote"])
def test_values_follow_from_those_one_move_on_by_the_reference_rules(name, request):
    """Random positions of both sides' frames; distances that fall along the way prove wins and losses."""
    table = request.getfixturevalue(f"{name}_mini")
    ruleset = without_history(table.ruleset)
    reference = importlib.import_module(f"tests.reference.{name}").Game
    choose = np.random.default_rng(3)
    checked = 0
    for text in _random_texts(ruleset, choose, 600):
        game_here = reference.from_text(ruleset.options, text)
        worth = []
        for move in game_here.legal_moves():
            after = game_here.copy()
            after.push(move)
            if after.is_over:
                worth.append(1 if after.winner == game_here.to_move else -1)
                continue
            value = table.distance(ruleset.rules.parse_position(ruleset.options, after.text()))
            further = value + int(np.sign(value))
            worth.append(further if after.to_move == game_here.to_move else -further)
        wins = [value for value in worth if value > 0]
        expected = min(wins) if wins else 0 if 0 in worth else min(worth)
        assert table.distance(ruleset.rules.parse_position(ruleset.options, text)) == expected, text
        checked += expected != 0
    assert checked > 100


def _random_texts(ruleset, choose, count):
    """Running positions from random games, black to move in about half of them."""
    texts = set()
    position = Position.from_ruleset(ruleset)
    while len(texts) < count:
        actions = position.legal_actions()
        position.push(actions[choose.integers(len(actions))])
        if position.is_over:
            position = Position.from_ruleset(ruleset)
        texts.add(position.text())
    return sorted(texts)


def test_petteia_mini_known_results(petteia_mini):
    """Another author's: 2,200,380 positions, the start drawn, 30 % won and 13 % lost for the mover."""
    values = np.asarray(petteia_mini.values)
    numbers = np.flatnonzero(values != HOLE)
    weights = _twins(petteia_mini, numbers)
    values = values[numbers]
    assert weights.sum() == 2_200_380
    assert weights[values > 0].sum() == 661_538
    assert weights[values < 0].sum() == 274_861
    assert weights[values == LOST].sum() == 222
    assert petteia_mini.distance(tg.Position("petteia", "mini").rows[0]) == 0
    assert petteia_mini.header.kind == DISTANCE


def _twins(table, numbers):
    """(N,) how many positions are the same but for turning and mirroring the 4x4 board."""
    ruleset, index = table.ruleset, table.index
    states = np.zeros((len(numbers), ruleset.state_size), np.int16)
    for number, state in zip(numbers.tolist(), states, strict=True):
        index.unrank(ruleset.params, index.tables, number, state)
    ranks = states[:, LINES:].reshape(len(numbers), 2, 8)[:, :, :4]
    boards = ranks[..., None] >> np.arange(4) & 1
    both = (boards, boards.swapaxes(2, 3))
    images = [np.rot90(board, turn, axes=(2, 3)).reshape(len(numbers), 32) for board in both for turn in range(4)]
    keys = np.sort([image @ (1 << np.arange(32)) for image in images], axis=0)
    return 1 + (np.diff(keys, axis=0) != 0).sum(axis=0)


def test_yote_mini_known_results(yote_mini):
    start = tg.Position("yote", "mini")
    assert yote_mini.distance(start.rows[0]) == 26
    values = np.asarray(yote_mini.values)
    assert (values != HOLE).sum() == 563_855
    assert (values > 0).sum() == 396_121


@pytest.mark.parametrize("name", ["petteia", "yote"])
def test_every_value_follows_from_those_one_move_on(name, request):
    table = request.getfixturevalue(f"{name}_mini")
    values = np.array(table.values)
    method = Retrograde(table.ruleset, table.index, values)
    assert method.wrong(np.arange(len(values))) == 0
    place = int(np.flatnonzero(values == 5)[0])
    values[place] = 3
    assert method.wrong(np.array([place])) == 1


def test_a_forced_win_is_won_under_the_real_rules(petteia_mini):
    """Every defence to every sampled win in 7 or fewer, with repetition, quiet clock and history as they are."""
    ruleset, index = petteia_mini.ruleset, petteia_mini.index
    values = np.asarray(petteia_mini.values)
    choose = np.random.default_rng(5)
    state = np.zeros(ruleset.state_size, np.int16)
    for distance, sample in ((1, 20), (3, 20), (5, 20), (7, 10)):
        for number in choose.permutation(np.flatnonzero(values == distance))[:sample]:
            assert index.unrank(ruleset.params, index.tables, int(number), state) == 1
            text = ruleset.rules.format_position(ruleset.options, state)
            _win_against_all(Position.from_ruleset(ruleset, text), petteia_mini, distance)


def _win_against_all(position, table, distance):
    attacker = position.to_move
    replies = [position]
    for left in range(distance - 1, -1, -1):
        after = []
        for here in replies:
            if here.to_move == attacker:
                after += [_table_move(here, table, left)]
                continue
            for action in here.legal_actions():
                after.append(here.copy())
                after[-1].push(action)
        assert all(here.winner == attacker for here in after if here.is_over)
        replies = [here for here in after if not here.is_over]
    assert not replies


def _table_move(position, table, left):
    """The position after a move that keeps to the distance."""
    for action in position.legal_actions():
        position.push(action)
        value = None if position.is_over else table.distance(position.rows[0])
        if position.winner is not None or (value is not None and value < 0 and -value <= left):
            return position
        position.pop()
    raise AssertionError(position.text())


class _StopError(Exception):
    pass


@pytest.mark.parametrize("at", [(0, 0), (0, 1), (3, 0), (3, 1), (3, 4)], ids=str)
def test_stopped_and_continued_gives_the_same(at, yote_mini):
    """Stopped while looking ahead (wave 0) or in a wave; the arrays there are by then are gone on from."""
    ruleset = load_ruleset("yote", "mini")
    index = load_index(ruleset)
    values = np.zeros(index.count, np.int16)
    layers = {0: 2, 3: len(index.layers) - 1}
    target = (layers[at[0]], at[1])

    def stop(stage):
        if (stage.layer, stage.wave) == target:
            raise _StopError

    with pytest.raises(_StopError):
        _solve(Retrograde(ruleset, index, values, num_threads=2, report=stop), 0)
    begin = index.layers[target[0]].begin
    if target[1] == 0:
        assert not values[begin:].any()
    _solve(Retrograde(ruleset, index, values, num_threads=1), target[0])
    assert np.array_equal(values, yote_mini.values)


def _solve(method, first):
    for layer in range(first, len(method.index.layers)):
        method.solve_layer(layer)


def test_the_run_resumes_from_disk(tmp_path, yote_mini, monkeypatch):
    monkeypatch.setattr(solver, "SAVE_SECONDS", 0.0)
    ruleset = load_ruleset("yote", "mini")
    told = []

    def stop(progress):
        told.append(progress)
        if progress.done > 900_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.solve(ruleset, folder=tmp_path / "table", report=stop)
    assert not (tmp_path / "table" / "values.npy").exists()
    first = told[0].done
    table = solver.solve(ruleset, folder=tmp_path / "table", report=told.append)
    assert first < 10_000 < told[-1].done
    assert np.array_equal(table.values, yote_mini.values)
    assert table.header.kind == DISTANCE
    assert table.header.residual == 0


def test_perfect_agent_computes_small_tables_on_the_spot(monkeypatch, tmp_path):
    monkeypatch.setenv("TRADGAMES_TABLES", str(tmp_path))
    agent = tg.load_agent("perfect")
    position = tg.Position("yote", "mini", pieces=1)
    assert agent.value(position) in (-1, 0, 1)
    for _ in range(40):
        if position.is_over:
            break
        position.push(agent.act(position))
    with pytest.raises(TableError, match="tradgames solve yote --variant mini --option pieces=4"):
        agent.act(tg.Position("yote", "mini", pieces=4))


def test_memory_is_planned():
    ruleset = load_ruleset("petteia", "box")
    planned = solver.plan(ruleset, "endings-2v3")
    assert planned.positions == 20_698_398
    assert planned.table_bytes == 2 * planned.positions
    with pytest.raises(TableError, match="GiB"):
        solver.plan(ruleset, "endings-2v3", memory=10_000_000)


def test_without_history_keeps_everything_else():
    ruleset = without_history(load_ruleset("yote", "mini", return_ban="off", max_turns=9))
    assert ruleset.options.repetition_limit == ruleset.options.quiet_limit == ruleset.options.max_turns == 0
    assert ruleset.options.return_ban == "off"
    assert ruleset.history_size == 0


def test_a_move_out_of_the_index_is_told():
    ruleset = load_ruleset("petteia", "mini")
    index = load_index(ruleset)
    tables = index.tables.copy()
    tables[tables[_BASES] + 2 * _WIDTH + 2] = -1
    broken = dataclasses.replace(index, tables=tables)
    with pytest.raises(TableError, match="without a number"):
        Retrograde(ruleset, broken, np.zeros(index.count, np.int16)).solve_layer(0)


@pytest.mark.parametrize("name", ["petteia", "yote"])
def test_perfect_against_perfect_ends_as_the_table_says(name, request):
    """Under the real rules: drawn by a rule that looks back, or won in exactly the moves that the table counts."""
    table = request.getfixturevalue(f"{name}_mini")
    players = PerfectAgent(table), PerfectAgent(table)
    position = Position.from_ruleset(table.ruleset)
    distance = table.distance(position.rows[0])
    moves = 0
    while not position.is_over:
        position.push(players[position.to_move].act(position))
        moves += 1
    if distance == 0:
        assert position.winner is None
        assert position.reason in ("repetition", "quiet")
    else:
        assert position.winner == 0
        assert moves == distance
