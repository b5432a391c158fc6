"""A network at play with a search."""

import pathlib

import numpy as np
import pytest

pytest.importorskip("torch")

import tradgames_env as tg
from tests.agents.test_network import make_checkpoint, make_common_checkpoint, rewrite_record, rewrite_weights
from tradgames_env.agents.checkpoint import CheckpointError, read_checkpoint
from tradgames_env.agents.network import NetworkAgent
from tradgames_env.agents.searching import SearchingAgent, load_playing_agent
from tradgames_env.rules.ruleset import load_ruleset


def positions_of(game: str, count: int, plies: int) -> list[tg.Position]:
    games = tg.BatchGames(game, num_games=count, seed=7)
    games.play_random(plies)
    return [games.position(index, seed=index) for index in range(count)]


def recommend(folder: pathlib.Path, **play: int) -> pathlib.Path:
    rewrite_record(folder, lambda record: record["play"].update(play))
    return folder


@pytest.mark.parametrize("effort", [{"simulations": 20}, {"plies": 1}])
def test_plays_every_game_alone_and_together(game: str, effort: dict[str, int], tmp_path: pathlib.Path) -> None:
    agent = SearchingAgent(read_checkpoint(make_checkpoint(tmp_path / "c", game)), **effort, device="cpu")
    positions = positions_of(game, 6, 15)
    moves = agent.act_many(positions)
    assert moves == [agent.act(position) for position in positions]
    for move, position in zip(moves, positions, strict=True):
        policy = agent.policy(position)
        assert set(policy) == set(position.legal_moves())
        assert sum(policy.values()) == pytest.approx(1.0)
        assert move in position.legal_moves()
        assert -1.0 <= agent.value(position) <= 1.0
    assert agent.act_many([]) == []


def test_more_simulations_than_none_change_something(tmp_path: pathlib.Path) -> None:
    folder = make_checkpoint(tmp_path / "c", "petteia")
    bare, deep = load_playing_agent(folder, 0, device="cpu"), load_playing_agent(folder, 100, device="cpu")
    positions = positions_of("petteia", 30, 20)
    assert bare.act_many(positions) != deep.act_many(positions)


@pytest.mark.parametrize("effort", [{"simulations": 1}, {"plies": 1}])
def test_takes_a_win_whatever_the_network_thinks(effort: dict[str, int], tmp_path: pathlib.Path) -> None:
    agent = SearchingAgent(read_checkpoint(make_checkpoint(tmp_path / "c")), **effort, device="cpu")
    position = tg.Position.from_text("puluc", "-/-/-/-/-/xxo/-/-/- 4 0 3 0 o 4")
    assert agent.act(position) == "6 -> home (+2)"
    assert agent.value(position) == pytest.approx(1.0)


def test_one_network_searches_all_its_games(tmp_path: pathlib.Path) -> None:
    rulesets = [load_ruleset("yote"), load_ruleset("puluc")]
    agent = SearchingAgent(
        read_checkpoint(make_common_checkpoint(tmp_path / "c", *rulesets)), simulations=8, device="cpu"
    )  # fmt: skip
    for game in ("yote", "puluc"):
        for position in positions_of(game, 2, 10):
            assert agent.act(position) in position.legal_moves()
    with pytest.raises(ValueError, match="was trained for"):
        agent.act(tg.Position("petteia"))
    with pytest.raises(tg.IllegalMoveError):
        agent.act(tg.Position("puluc", chance="explicit"))


def test_a_folder_with_a_number_says_how_hard_to_search(tmp_path: pathlib.Path) -> None:
    folder = make_checkpoint(tmp_path / "c", "yote")
    plain = tg.load_agent(f"{folder}")
    assert type(plain) is NetworkAgent
    assert plain.lookahead
    searching = tg.load_agent(f"{folder}:64")
    assert isinstance(searching, SearchingAgent)
    assert (searching.simulations, searching.plies) == (64, 0)
    assert searching.name.endswith("c:64")
    bare = tg.load_agent(f"{folder}:0")
    assert type(bare) is NetworkAgent
    assert not bare.lookahead
    recommend(folder, simulations=16)
    assert tg.load_agent(folder).simulations == 16
    assert tg.load_agent(f"{folder}:4").simulations == 4
    recommend(folder, simulations=0, plies=1)
    assert tg.load_agent(folder).plies == 1
    assert tg.load_agent(f"{folder}:2").plies == 2
    with pytest.raises(ValueError, match="from 1 to 3 plies, not 64"):
        tg.load_agent(f"{folder}:64")
    assert type(tg.load_agent(f"{folder}:0")) is NetworkAgent


def test_games_of_dice_are_searched_their_own_way(tmp_path: pathlib.Path) -> None:
    games = [load_ruleset("yote", "mini"), load_ruleset("puluc", "mini")]
    folder = make_common_checkpoint(tmp_path / "c", *games)
    recommend(folder, simulations=16, plies=1)
    agent = tg.load_agent(folder)
    assert (agent.simulations, agent.plies) == (16, 1)
    assert [type(search).__name__ for search in agent._searches.values()] == ["GumbelSearch", "Expectimax"]
    for game in ("yote", "puluc"):
        position = tg.Position(game, variant="mini", seed=1)
        assert agent.act(position) in position.legal_moves()
    assert (tg.load_agent(f"{folder}:4").simulations, tg.load_agent(f"{folder}:4").plies) == (4, 1)
    assert type(tg.load_agent(f"{folder}:0")) is NetworkAgent


def test_refuses_wrong_efforts_and_broken_weights(tmp_path: pathlib.Path) -> None:
    folder = make_checkpoint(tmp_path / "c", "yote")
    checkpoint = read_checkpoint(folder)
    with pytest.raises(ValueError, match="one of them must be positive"):
        SearchingAgent(checkpoint)
    with pytest.raises(ValueError, match="simulations, not -1"):
        SearchingAgent(checkpoint, simulations=-1)

    def overflow(tensors: dict[str, np.ndarray]) -> None:
        tensors["value.weight"] *= np.float32(1e38)
        tensors["stem.weight"] *= np.float32(1e10)

    rewrite_weights(folder, overflow)
    with pytest.raises(CheckpointError, match="not finite"):
        load_playing_agent(folder, 4, device="cpu").act(tg.Position("yote"))
