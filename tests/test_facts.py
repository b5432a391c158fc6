"""What is published about perfect play follows from the tables, and the page from what was found."""

import importlib
import itertools
import json
import pathlib
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving.lookup import judge_moves
from tradgames_env.solving.solver import solve_in_memory
from tradgames_env.solving.table import Table

ROOT = pathlib.Path(tg.__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a script of the benchmarks as the scripts import each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def facts(script: Any) -> ModuleType:
    module: ModuleType = script("facts")
    return module


@pytest.fixture(scope="module")
def puluc() -> Table:
    return solve_in_memory(load_ruleset("puluc", "mini"))


@pytest.fixture(scope="module")
def petteia() -> Table:
    return solve_in_memory(load_ruleset("petteia", "mini"))


# -- facts ---------------------------------------------------------------------------------------------------------


def test_decisions_are_judged_as_one_by_one(script: Any, puluc: Table) -> None:
    games = script("perfect_games").PerfectGames(puluc, 50, seed=3)
    for decisions in itertools.islice(games.play(), 12):
        passing = script("perfect_games").worth_of(decisions.judgement, 6)
        others = script("perfect_games").best_without(decisions.judgement, 6)
        for i, state in enumerate(decisions.states):
            actions, worth = judge_moves(puluc, state, np.empty(0, np.uint64))
            assert decisions.best[i] == worth.max()
            assert passing[i] == pytest.approx(worth[actions == 6].max(initial=-9), nan_ok=True) or 6 not in actions
            assert others[i] == worth[actions != 6].max(initial=-np.inf)


def test_what_could_be_expected_is_the_mean_over_the_throws(script: Any, puluc: Table) -> None:
    games = script("perfect_games").PerfectGames(puluc, 200, seed=4)
    for decisions in itertools.islice(games.play(), 10):
        gains = decisions.best - decisions.before
        assert np.abs(gains).max() < 2
    # Before the first throw all games stand alike.
    first = next(script("perfect_games").PerfectGames(puluc, 20, seed=4).play())
    assert len(set(first.before.tolist())) == 1


def test_perfect_games_win_as_often_as_the_table_says(facts: ModuleType, puluc: Table) -> None:
    found = facts.games_fact(puluc, 4000)
    # Three times the interval's half width: never by chance.
    assert abs(found["wins"] - found["expected_wins"]) < 3 * found["half_width_99"]
    assert sum(found["throws"]["share"].values()) == pytest.approx(1)
    starts = found["start_throws"].values()
    assert sum(start["probability"] * start["wins"] for start in starts) == pytest.approx(
        found["expected_wins"], abs=1e-5
    )


def test_passing_is_counted(facts: ModuleType, puluc: Table) -> None:
    passing = facts.games_fact(puluc, 500)["passing"]
    by_throw = np.array(list(passing["by_throw"].values()))
    assert by_throw.sum(axis=0).tolist() == [passing["decisions"], passing["offered"], passing["right"]]
    assert sum(passing["histogram"]["counts"]) == passing["offered"] - passing["equal"]
    for example in passing["examples"]:
        wins = list(example["moves"].values())
        assert next(iter(example["moves"])) == "pass"
        assert wins == sorted(wins, reverse=True)
        assert passing["cost_of_moving"]["most"] >= wins[0] - wins[1] - 1e-9


def test_short_ways_are_compared_at_each_fork(facts: ModuleType) -> None:
    table = solve_in_memory(load_ruleset("yut_nori", "mini"))
    short_ways = facts.games_fact(table, 500)["short_ways"]
    assert set(short_ways["forks"]) == {"5", "10", "22"}
    for fork in short_ways["forks"].values():
        assert fork["offered"] >= fork["wrong"] + fork["right"]
        assert fork["wrong"] >= fork["wrong_without_capture"]
        assert sum(fork["histogram"]["counts"]) == fork["wrong"] + fork["right"]


def test_opening_chart_has_every_throw(facts: ModuleType) -> None:
    table = solve_in_memory(load_ruleset("puluc", "box", pieces=2))
    chart = facts.opening_fact(table)
    assert len(chart["natural"]) == 125
    assert len(chart["black"]) == 25
    assert all(sum(kinds.values()) == pytest.approx(1) for kinds in chart["black"].values())
    # Black's counter on its own step 5 is natural's step 5: entering takes it.
    assert chart["natural"]["1 5 5"]["kind"] == "enter and capture"


def test_longest_win_is_played_to_its_end(facts: ModuleType, petteia: Table) -> None:
    found = facts.ending_fact(petteia)
    longest = found["longest"]
    assert longest["distance"] == len(longest["line"]) == 43
    position = Position.from_text("petteia", longest["position"], variant="mini")
    for move in longest["line"]:
        position.push(move)
    assert (position.winner, position.text()) == (0, longest["final"])
    counted = sum(row["won"] + row["drawn"] + row["lost"] for row in found["materials"])
    assert counted == facts.table_fact(petteia)["positions"] == 276_363


# -- the page ------------------------------------------------------------------------------------------------------


def published(publish: ModuleType) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(publish.RESULT.read_text(encoding="utf-8"))
    return found


def test_published_page_is_current(script: Any) -> None:
    publish = script("publish_facts")
    text = publish.page(published(publish))
    assert publish.PAGE.read_text(encoding="utf-8") == text, "run python benchmarks/publish_facts.py"


def test_all_facts_of_a_table_are_of_the_same_table(script: Any) -> None:
    facts = published(script("publish_facts"))
    for kind in script("facts").KINDS:
        for name, fact in facts[kind].items():
            assert fact["sha256"] == facts["tables"][name]["sha256"], (kind, name)


def test_pictures_of_the_page_are_there_and_no_others(script: Any) -> None:
    publish = script("publish_facts")
    shown = set(re.findall(r"images/(facts_[^)]+\.svg)", publish.PAGE.read_text(encoding="utf-8")))
    assert shown == {path.name for path in publish.IMAGES.glob("facts_*.svg")}


def test_page_names_what_is_not_solved(script: Any) -> None:
    publish = script("publish_facts")
    facts = published(publish)
    without = facts | {"tables": {name: fact for name, fact in facts["tables"].items() if name != "puluc/box"}}
    assert "Puluc `box`" in publish.solved_section(without["tables"]).partition("Not solved")[2]


def test_pictures_are_drawn_of_what_was_found(script: Any, tmp_path: pathlib.Path) -> None:
    publish = script("publish_facts")
    titles = {name: publish.plain(title) for name, title in publish.TITLES.items()}
    drawn = script("facts_plots").draw(published(publish), titles, tmp_path)
    assert {path.name for path in drawn} == {path.name for path in publish.IMAGES.glob("facts_*.svg")}
    assert all(path.read_text(encoding="utf-8").lstrip().startswith(("<?xml", "<svg")) for path in drawn)
