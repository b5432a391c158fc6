import dataclasses
import html.parser
import itertools
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from tradgames_env.agents import load_agent
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import load_ruleset
from training.arena import Block, BlockResult, Plan, arena_result, default_reference, play_block, run_arena, weights_of
from training.arena_page import build_arena_page, by_simulations, by_time, sample_games, strength_plot
from training.ladders import LADDERS, rungs
from training.ledger import Ledger, LedgerError, PairRecord
from training.match import GameRecord, Openings, play_match
from training.provenance import provenance
from training.sprt import SequentialTest
from training.workers import processes

PLAYERS = ("greedy", "random", "mcts:5")


def plan(**changes: Any) -> Plan:
    settings: dict[str, Any] = {
        "players": PLAYERS, "weights": {}, "ruleset": load_ruleset("puluc", "mini"), "games": 10, "lockstep": 4,
        "seed": 3,
    }  # fmt: skip
    return Plan(**(settings | changes))


def opened(path: pathlib.Path, of: Plan) -> Ledger:
    return Ledger(path, of.to_json(), {"command": "tradgames arena"})


def games_in(ledger: Ledger, of: Plan) -> list[Any]:
    return [pair.games for meeting in of.meetings for _, pair in sorted(ledger.pairs(meeting).items())]


def test_every_two_players_meet_in_pairs_and_results_are_counted(tmp_path: pathlib.Path) -> None:
    arena = plan()
    ledger = opened(tmp_path / "new" / "pairs.jsonl", arena)
    assert run_arena(arena, ledger, map)
    result = arena_result(arena, ledger)
    assert [(match.agent, match.opponent, match.games) for match in result.matches] == [
        ("greedy", "random", 10), ("greedy", "mcts:5", 10), ("random", "mcts:5", 10),
    ]  # fmt: skip
    assert not result.stopped
    assert result.anchor == "random"
    for row in result.standings:
        assert row.games == 20
    assert sum(row.wins for row in result.standings) == sum(row.losses for row in result.standings)
    assert sum(row.score for row in result.standings) == pytest.approx(1.5)
    for match in result.matches:
        for first, second in zip(match.records[::2], match.records[1::2], strict=True):
            assert first.actions[: first.opening] == second.actions[: second.opening]
            assert (first.agent_side, second.agent_side) == (0, 1)
            assert 4 <= first.opening <= 6
    openings = [[record.actions[: record.opening] for record in match.records] for match in result.matches]
    assert openings[0] == openings[1] == openings[2]


def test_games_do_not_depend_on_the_number_of_processes(tmp_path: pathlib.Path) -> None:
    arena = plan()
    alone = opened(tmp_path / "alone.jsonl", arena)
    run_arena(arena, alone, map)
    for workers in (1, 2):
        ledger = opened(tmp_path / f"{workers}.jsonl", arena)
        with processes(workers) as engine:
            assert run_arena(arena, ledger, engine)
        assert games_in(ledger, arena) == games_in(alone, arena)


def test_a_cut_file_goes_on_as_if_never_stopped(tmp_path: pathlib.Path) -> None:
    arena, path = plan(), tmp_path / "pairs.jsonl"
    whole = opened(path, arena)
    run_arena(arena, whole, map)
    data = path.read_bytes()
    for kept in (len(data) - 1, len(data) // 2, len(data) // 3):
        path.write_bytes(data[:kept])
        ledger = opened(path, arena)
        assert ledger.cut == (not data[:kept].endswith(b"\n"))
        assert len(games_in(ledger, arena)) < 15
        run_arena(arena, ledger, map)
        again = opened(path, arena)
        assert not again.cut
        assert games_in(again, arena) == games_in(whole, arena)


def test_a_file_cut_in_its_first_line_is_begun_anew(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pairs.jsonl"
    run_arena(plan(), opened(path, plan()), map)
    path.write_bytes(path.read_bytes()[:20])
    ledger = opened(path, plan())
    assert ledger.cut
    run_arena(plan(), ledger, map)
    assert not opened(path, plan()).cut


def test_other_settings_and_damage_are_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pairs.jsonl"
    run_arena(plan(), opened(path, plan()), map)
    with pytest.raises(LedgerError, match=r"other settings \(games, seed\)"):
        opened(path, plan(games=12, seed=4))
    with pytest.raises(LedgerError, match="weights"):
        opened(path, plan(weights={"greedy": "0" * 64}))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], "{", *lines[3:]]) + "\n")
    with pytest.raises(LedgerError, match="line 4 is damaged"):
        opened(path, plan())
    path.write_text("\n".join([lines[0], '{"meeting": ["a"]}', *lines[1:]]) + "\n")
    with pytest.raises(LedgerError, match="line 2 is damaged"):
        opened(path, plan())
    path.write_text("[]\n")
    with pytest.raises(LedgerError, match="no file of an arena"):
        opened(path, plan())


def test_an_interrupt_keeps_what_was_played(tmp_path: pathlib.Path) -> None:
    def interrupted(function: Callable[[Block], BlockResult], blocks: Iterable[Block], /) -> Iterator[BlockResult]:
        yield from map(function, itertools.islice(blocks, 4))
        raise KeyboardInterrupt

    arena, path = plan(), tmp_path / "pairs.jsonl"
    assert not run_arena(arena, opened(path, arena), interrupted)
    ledger = opened(path, arena)
    result = arena_result(arena, ledger)
    assert result.stopped
    assert [match.games for match in result.matches] == [8, 4, 4]
    totals: list[tuple[int, int]] = []
    assert run_arena(arena, ledger, map, on_progress=lambda games, total: totals.append((games, total)))
    assert totals[-1] == (30, 30)
    assert not arena_result(arena, ledger).stopped


def simulated(block: Block, chance: float = 0.9) -> BlockResult:
    """A block whose first player wins games with this probability, as if it had been played."""
    rng = np.random.default_rng([block.first, block.meeting])
    pairs = []
    for pair in range(block.first, block.last):
        first, second = (
            GameRecord(pair, side, 0, (pair, side), 0, side if rng.random() < chance else 1 - side, "home", False, "")
            for side in (0, 1)
        )
        pairs.append(PairRecord((first, second), (0.01, 0.001)))
    return BlockResult(block.meeting, tuple(pairs))


def with_simulated(
    blocks_at_once: int,
) -> Callable[[Callable[[Block], BlockResult], Iterable[Block]], Iterator[BlockResult]]:
    def engine(_: Callable[[Block], BlockResult], blocks: Iterable[Block], /) -> Iterator[BlockResult]:
        waiting = iter(blocks)
        while batch := list(itertools.islice(waiting, blocks_at_once)):
            yield from map(simulated, reversed(batch))

    return engine


def test_a_test_ends_a_match_and_the_result_does_not_depend_on_what_was_played_ahead(tmp_path: pathlib.Path) -> None:
    arena = plan(games=2000, lockstep=8, test=SequentialTest(0, 100))
    results = []
    for ahead in (1, 7):
        ledger = opened(tmp_path / f"{ahead}.jsonl", arena)
        assert run_arena(arena, ledger, with_simulated(ahead))
        results.append(arena_result(arena, ledger))
    assert not results[0].stopped
    assert results[0].verdicts == ("elo1",) * 3
    assert all(match.games < 200 for match in results[0].matches)
    assert results[0].to_json() == results[1].to_json()
    first = results[0].matches[0]
    assert results[0].plan.test is not None
    assert results[0].to_json()["matches"][0]["llr"] == results[0].plan.test.ratio(first.pair_scores) > 2.94
    assert results[0].plan.test.verdict(first.pair_scores[:-4]) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"players": ("random",)}, "two players or more"),
        ({"players": ("random", "greedy", "random")}, "each once"),
        ({"games": 5}, "games must be an even number"),
        ({"lockstep": 0}, "lockstep must be"),
        ({"plies": (5, 4)}, "openings"),
        ({"limit": 0.0}, "balanced opening"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_plans_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(**changes)


def test_a_wrong_anchor_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="'perfect' does not play"):
        arena_result(plan(), opened(tmp_path / "pairs.jsonl", plan()), "perfect")


def test_the_first_player_is_the_anchor_where_random_does_not_play(tmp_path: pathlib.Path) -> None:
    arena = plan(players=("mcts:5", "greedy"))
    ledger = opened(tmp_path / "pairs.jsonl", arena)
    run_arena(arena, ledger, map)
    assert arena_result(arena, ledger).anchor == "mcts:5"


# -- openings --------------------------------------------------------------------------------------------------------


def test_openings_are_balanced_by_the_reference() -> None:
    ruleset, judge = load_ruleset("yote", "mini"), load_agent("alphabeta:3")
    any_opening, balanced = Openings(ruleset, 1, (4, 6)), Openings(ruleset, 1, (4, 6), judge, 0.3)

    def value(openings: Openings, pair: int) -> float:
        dice, actions = openings.of(pair)
        position = Position.from_ruleset(ruleset, seed=dice)
        for action in actions:
            position.push(action)
        return abs(judge.value(position))

    assert max(value(any_opening, pair) for pair in range(40)) >= 0.3
    assert max(value(balanced, pair) for pair in range(40)) < 0.3
    assert {len(balanced.of(pair)[1]) for pair in range(40)} == {4, 5, 6}


def test_the_most_balanced_opening_is_taken_where_none_is_balanced() -> None:
    class Pessimist:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def value(self, position: Position) -> float:
            self.asked.append(position.text())
            return -0.5 if len(self.asked) == 7 else 0.9

    ruleset, judge = load_ruleset("petteia", "mini"), Pessimist()
    dice, actions = Openings(ruleset, 0, (4, 4), judge, 0.3).of(0)  # type: ignore[arg-type]
    position = Position.from_ruleset(ruleset, seed=dice)
    for action in actions:
        position.push(action)
    assert len(judge.asked) == 100
    assert position.text() == judge.asked[6]


def test_a_match_begins_with_these_openings() -> None:
    ruleset = load_ruleset("puluc")
    openings = Openings(ruleset, 5, (3, 3))
    for record in play_match("random", "random", ruleset, games=8, seed=5, opening_plies=3).records:
        assert (record.dice, record.actions[:3]) == openings.of(record.pair)


def test_games_without_dice_have_a_reference() -> None:
    assert default_reference(load_ruleset("yote")) == "alphabeta:3"
    assert default_reference(load_ruleset("yut_nori")) is None


def test_blocks_are_the_same_whatever_was_played_before() -> None:
    block = Block(1, 4, 6, ("mcts:5", "random"), "petteia", "mini", {}, 0, (4, 6), "greedy", 0.3)
    first = play_block(block)
    play_block(dataclasses.replace(block, first=8, last=10))
    again = play_block(block)
    assert [pair.games for pair in first.pairs] == [pair.games for pair in again.pairs]
    assert [pair.pair for pair in first.pairs] == [4, 5]


def test_weights_are_those_of_checkpoints() -> None:
    folders = {"evaluation": pathlib.Path("checkpoints/petteia-fr6"), "net": pathlib.Path("checkpoints/puluc")}
    sums = {name: json.loads((path / "checkpoint.json").read_text())["sha256"] for name, path in folders.items()}
    agents = {name: load_agent(path) for name, path in folders.items()}
    assert weights_of({"random": load_agent("random"), **agents}) == sums


# -- ladders ---------------------------------------------------------------------------------------------------------


def test_ladders(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADGAMES_TABLES", str(tmp_path))
    assert rungs("quick", load_ruleset("puluc")) == ("random", "greedy", "mcts:100")
    assert rungs("standard", load_ruleset("yote")) == (
        "random", "greedy", *(f"alphabeta:{depth}" for depth in range(1, 5)), "mcts:100", "mcts:1000",
    )  # fmt: skip
    assert rungs("quick", load_ruleset("puluc", "mini"))[-1] == "perfect"
    for name in LADDERS:
        for rung in rungs(name, load_ruleset("petteia")):
            load_agent(rung)
    with pytest.raises(ValueError, match="known: quick, standard, deep"):
        rungs("high", load_ruleset("puluc"))


# -- the page --------------------------------------------------------------------------------------------------------


def test_page_shows_the_ladder_the_cross_table_and_games(tmp_path: pathlib.Path) -> None:
    arena = plan(players=(*PLAYERS, "mcts:10"), test=SequentialTest(0, 300))
    ledger = opened(tmp_path / "pairs.jsonl", arena)
    run_arena(arena, ledger, map)
    result = arena_result(arena, ledger)
    text = build_arena_page(result, provenance("tradgames arena a<b", 3))
    html.parser.HTMLParser().feed(text)
    for heading in ("Ladder", "Who beat whom", "Strength against time to think", "Matches", "A game"):
        assert f"<h2>{heading}</h2>" in text
    for name in arena.players:
        assert f'<td class="name">{name}</td>' in text
    assert "Sequential test of 0 against 300 Elo" in text
    assert "tradgames arena a&lt;b" in text
    for match, record in sample_games(result):
        assert record.winner is not None
        assert f'alt="{record.final}"' in text
        assert match in result.matches
    assert "mcts:10" in strength_plot(by_time(result.standings), "seconds a move")
    searching = {point.label: (point.across, point.family) for point in by_simulations(result.standings)}
    assert searching == {"mcts:5": (5, "mcts"), "mcts:10": (10, "mcts")}


def test_page_of_a_stopped_arena(tmp_path: pathlib.Path) -> None:
    arena = plan()
    ledger = opened(tmp_path / "pairs.jsonl", arena)
    run_arena(arena, ledger, lambda function, blocks: map(function, itertools.islice(blocks, 1)))
    result = arena_result(arena, ledger)
    text = build_arena_page(result, provenance("tradgames arena", 3))
    assert "There is more to play." in text
