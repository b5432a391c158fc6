import functools
import io
import itertools

import numpy as np
import pytest
from rich.console import Console

from tests.solving.plain_response import SMALL, key, plain_game, small_ruleset
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.solving.solver import solve_in_memory
from tradgames_env.solving.table import Table
from training.intervals import mean_interval
from training.match import MatchResult, play_match, replay
from training.regret import RegretReport, measure_regret, print_regret


@functools.cache
def table(solved: str) -> Table:
    return solve_in_memory(small_ruleset(solved))


def match_of(ruleset: Ruleset, agent: str, games: int = 40) -> MatchResult:
    return play_match(agent, "random", ruleset, games=games, seed=5, opening_plies=2)


def plain_regrets(match: MatchResult, solved: str) -> tuple[list[float], list[int], list[str]]:
    """Of each of the agent's decisions: regret in expected reward, number of legal moves, kind of error."""
    game = plain_game(solved)
    values = game.values()
    regrets, counts, kinds = [], [], []
    for record in match.records:
        frames = list(replay(match.ruleset, record))
        for before, after in itertools.pairwise(frames):
            if after.in_opening or after.mover != record.agent_side:
                continue
            sign = -1.0 if after.mover else 1.0
            moves = {move: sign * values[name] for move, name in game.nodes[key(before.position)].moves.items()}
            best, played = max(moves.values()), moves[str(after.move)]
            regrets.append(best - played)
            counts.append(len(moves))
            kinds.append(f"{word(best)} to {word(played)}")
    return regrets, counts, kinds


def word(value: float) -> str:
    return "draw" if abs(value) < 1e-6 else "win" if value > 0 else "loss"


@pytest.mark.parametrize("solved", SMALL)
@pytest.mark.parametrize("agent", ["random", "greedy"])
def test_regret_is_that_of_a_plain_solver(solved: str, agent: str) -> None:
    match = match_of(table(solved).ruleset, agent)
    report = measure_regret(agent, [match], table(solved))
    regrets, counts, kinds = plain_regrets(match, solved)
    scaled = np.array(regrets) * (50.0 if solved == "puluc" else 0.5)
    choices = np.array(counts) > 1
    assert (report.everything.decisions, report.choices.decisions) == (len(regrets), int(choices.sum()))
    assert report.forced == int((~choices).sum())
    assert report.everything.mean == pytest.approx(scaled.mean(), abs=1e-4)
    assert report.choices.mean == pytest.approx(scaled[choices].mean(), abs=1e-4)
    assert report.everything.percentile_95 == pytest.approx(np.percentile(scaled, 95), abs=1e-4)
    assert report.everything.optimal == sum(regret < 1e-6 for regret in regrets)
    assert report.choices.optimal == report.everything.optimal - report.forced
    assert report.worst[0].regret == pytest.approx(scaled.max(), abs=1e-4)
    if solved == "yote":
        assert report.errors == {name: kinds.count(name) for name in report.errors}
        assert sum(report.errors.values()) == report.everything.decisions - report.everything.optimal
    assert report.everything.interval is not None
    low, high = report.everything.interval
    assert low < report.everything.mean < high


@pytest.mark.parametrize("solved", SMALL)
def test_perfect_has_no_regret(solved: str) -> None:
    report = measure_regret("perfect", [match_of(table(solved).ruleset, "perfect")], table(solved))
    assert report.everything.decisions > 50
    assert (report.everything.mean, report.everything.interval, report.everything.percentile_95) == (0.0, (0.0, 0.0), 0)
    assert report.everything.optimal_share == 1.0
    assert report.worst == ()


@pytest.mark.parametrize("solved", SMALL)
def test_worst_positions_can_be_looked_up(solved: str) -> None:
    report = measure_regret("random", [match_of(table(solved).ruleset, "random")], table(solved))
    assert len(report.worst) == 5
    assert sorted((mistake.regret for mistake in report.worst), reverse=True) == [m.regret for m in report.worst]
    for mistake, data in zip(report.worst, report.to_json()["worst"], strict=True):
        position = Position.from_ruleset(table(solved).ruleset, data["text"], chance="explicit")
        assert position.to_move == mistake.side
        assert {data["move"], data["better"]} <= set(position.legal_moves())
        scale = 50.0 if solved == "puluc" else 0.5
        assert data["regret"] == pytest.approx(scale * (data["best"] - data["value"]))


def test_worst_positions_are_not_mirror_images_of_each_other() -> None:
    report = measure_regret("random", [match_of(table("puluc").ruleset, "random", 200)], table("puluc"))
    seen = {(m.move, m.better, round(m.worth.value, 6), round(m.best.value, 6)) for m in report.worst}
    assert len(seen) == 5


def test_decisions_outside_of_the_table_are_left_out() -> None:
    ruleset = table("yote").ruleset
    endings = solve_in_memory(ruleset, "endings-1v1")
    match = match_of(ruleset, "random")
    every, some = (measure_regret("random", [match], known) for known in (table("yote"), endings))
    assert 0 < some.not_covered < every.everything.decisions
    assert some.everything.decisions + some.not_covered == every.everything.decisions
    assert f"{some.not_covered:,} decisions are not in the table" in printed(some)


def test_matches_of_others_do_not_count() -> None:
    match = match_of(table("puluc").ruleset, "random")
    report = measure_regret("greedy", [match], table("puluc"))
    assert report.everything.decisions == 0
    assert report.everything.to_json()["mean"] is None
    assert "–" in printed(report)


def test_many_games_are_judged_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    match = match_of(table("puluc").ruleset, "random")
    whole = measure_regret("random", [match], table("puluc"))
    monkeypatch.setattr("training.regret._GAMES_AT_A_TIME", 3)
    monkeypatch.setattr("tradgames_env.solving.lookup._BATCH", 2)
    assert measure_regret("random", [match], table("puluc")).to_json() == whole.to_json()


def printed(report: RegretReport) -> str:
    text = io.StringIO()
    print_regret(report, Console(file=text, width=200))
    return text.getvalue()


def test_the_printed_report_says_it_all() -> None:
    report = measure_regret("random", [match_of(table("puluc").ruleset, "random")], table("puluc"))
    text = printed(report)
    assert "percentage points of winning probability" in text
    assert f"{report.forced:,} decisions with a single legal move" in text
    for mistake in report.worst:
        assert f"{mistake.position.text()}  {mistake.move} ({mistake.worth}), better {mistake.better}" in text
    drawish = printed(measure_regret("random", [match_of(table("yote").ruleset, "random")], table("yote")))
    assert "points a game" in drawish
    assert "win to draw" in drawish
    assert "lost in " in drawish


def test_the_interval_covers_the_mean_of_grouped_numbers() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for seed in range(200):
        counts = rng.integers(1, 20, 60)
        levels = rng.exponential(1.0, 60)
        interval = mean_interval(levels * counts, counts, seed)
        assert interval is not None
        covered += interval[0] <= 1.0 <= interval[1]
    assert 175 <= covered <= 199
    assert mean_interval(np.array([2.0]), np.array([3])) is None
