import importlib
import importlib.util
import io
import itertools
import json
import math
import pathlib
import shutil
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import tradgames_env as tg
from training import bench, bench_growth, bench_peers, bench_plots, bench_run, bench_tasks, yardstick
from training.cli import main

ROOT = pathlib.Path(tg.__file__).parent.parent

needs_compiler = pytest.mark.skipif(yardstick.compiler() is None, reason="no C compiler")


def task(topic: str, subject: str, speed: float, baseline: str | None = None) -> bench.Task:
    """A task of a known speed that takes no time."""
    return bench.Task(topic, subject, lambda amount: (amount, amount / speed), baseline)


def small_run(tmp_path: pathlib.Path, *arguments: str) -> Any:
    """What the command writes of Puluc, measured as shortly as can be."""
    path = tmp_path / "speed.json"
    assert main(["bench", "puluc", "--seconds", "0.01", "--repetitions", "1", "--json", str(path), *arguments]) == 0
    return json.loads(path.read_text())


def publish() -> ModuleType:
    spec = importlib.util.spec_from_file_location("publish", ROOT / "benchmarks" / "publish.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- measuring -----------------------------------------------------------------------------------------------------


def test_figures_are_medians_and_ratios_of_the_turns() -> None:
    speeds = iter([100.0, 100.0, 100.0, 300.0, 200.0])
    uneven = bench.Task("t", "uneven", lambda amount: (amount, amount / next(speeds)), "t: base")
    slow = bench.Task("t", "base", lambda amount: (amount, amount / 50.0))
    base, figure = bench.measure([slow, uneven], seconds=0.01, repetitions=3)
    assert (base.value, base.ratio) == (pytest.approx(50), None)
    assert (figure.value, figure.lowest, figure.highest) == pytest.approx((200, 100, 300))
    assert figure.ratio == pytest.approx(4)


def test_a_baseline_that_was_not_measured_gives_no_ratio() -> None:
    (figure,) = bench.measure([task("t", "a", 10, "t: gone")], seconds=0.01, repetitions=1)
    assert (figure.baseline, figure.ratio) == (None, None)


@pytest.mark.parametrize(("seconds", "repetitions"), [(0, 1), (math.inf, 1), (math.nan, 1), (1, 0)])
def test_amounts_must_be_positive(seconds: float, repetitions: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        bench.measure([], seconds=seconds, repetitions=repetitions)


def test_a_busy_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.getloadavg", lambda: (1.0, 9.0, 9.0))
    assert bench.load_warning() is None
    monkeypatch.setattr("os.getloadavg", lambda: (3.0, 0.0, 0.0))
    assert "load 3.0 on 4 cores" in str(bench.load_warning())


# -- the command ---------------------------------------------------------------------------------------------------


def test_command_measures_every_topic(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = small_run(tmp_path)
    figures = {(figure["topic"], figure["subject"]): figure for figure in data["figures"]}
    topics = set(bench_tasks.TOPICS) - {"peers", "batch, 2 cores", "batch, all cores"}
    assert {topic for topic, subject in figures if subject == "puluc"} >= topics
    assert all(figure["value"] > 0 for figure in data["figures"])
    raw, theirs = figures["raw_env", "puluc"], figures["raw_env", bench_tasks.CONNECT_FOUR]
    assert raw["ratio"] == pytest.approx(raw["value"] / theirs["value"])
    assert figures["bytes", "puluc"]["value"] <= 128
    assert data["growth"] == []
    assert data["provenance"]["command"].startswith("tradgames bench puluc")
    out = capsys.readouterr().out
    assert bench_tasks.TOPICS["raw_env"].title in out
    assert "PettingZoo connect_four_v3" in out


def test_missing_libraries_are_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module = importlib.import_module

    def only_ours(name: str) -> ModuleType:
        if not name.startswith("tradgames_env"):
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr(importlib, "import_module", only_ours)
    assert bench_tasks.missing_baselines() == ["pettingzoo[classic]", "chess"]
    assert bench_peers.peer_tasks() == ([], ["pettingzoo[classic]", "open_spiel", "pgx", "envpool"])
    monkeypatch.setattr(bench_run, "own_tasks", lambda games, programs: [task("playouts", "puluc", 1)])
    result = bench_run.bench_all(["puluc"], "bench", compare=True, seconds=0.01, repetitions=1)
    (note,) = (note for note in result["notes"] if "not installed" in note)
    assert "chess, envpool, open_spiel, pettingzoo[classic], pgx" in note
    console = Console(width=160, file=io.StringIO(), record=True)
    bench.print_result(result, console)
    assert note in " ".join(console.export_text().split())


# -- the C yardstick -----------------------------------------------------------------------------------------------


@needs_compiler
def test_the_c_program_counts_the_same_positions(tmp_path: pathlib.Path) -> None:
    (program,), complaints = yardstick.build(["puluc", "petteia"], tmp_path)
    assert complaints == []
    assert [program.perft(depth) for depth in (1, 2, 3)] == [tg.perft("petteia", depth) for depth in (1, 2, 3)]


@needs_compiler
def test_the_c_program_plays_the_same_game(tmp_path: pathlib.Path) -> None:
    (program,), _ = yardstick.build(["petteia"], tmp_path)
    counted = program.statistics(1_000_000, seed=1)
    count = 1024
    games = tg.BatchGames("petteia", num_games=count, seed=1, restart_finished=False)
    lengths = np.zeros(count)
    while (running := games.action_masks.any(axis=1)).any():
        games.step(games.sample_legal_actions())
        lengths += running
    reasons = games.ruleset.rules.reasons
    error = lengths.std() * math.sqrt(1 / count + 1 / counted["games"])
    assert abs(counted["finished_moves"] / counted["games"] - lengths.mean()) < 4 * error
    for reason, name in (
        ("captures", "captures"),
        ("blocked", "blocked"),
        ("repetition", "repetition"),
        ("quiet", "quiet"),
    ):
        ours, theirs = (games.endings[:, 1] == reasons.index(reason)).mean(), counted[name] / counted["games"]
        both = (ours * count + counted[name]) / (count + counted["games"])
        assert abs(ours - theirs) <= 4 * math.sqrt(both * (1 - both) * (1 / count + 1 / counted["games"]))


@needs_compiler
def test_the_c_program_sows_each_turn_anew(tmp_path: pathlib.Path) -> None:
    (program,), _ = yardstick.build(["petteia"], tmp_path)
    assert program.play(1000)[0] == 1000
    assert program.statistics(100_000, seed=1) != program.statistics(100_000, seed=2)


def test_without_a_compiler_there_is_a_line_and_no_yardstick(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    programs, (complaint,) = yardstick.build(["petteia", "yote"], tmp_path)
    assert programs == []
    assert "No C yardstick for petteia: no C compiler" in complaint
    assert yardstick.compiler_version() == ""


@needs_compiler
def test_a_program_that_does_not_compile_is_a_line(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yote.c").write_text("int main(void) { return nothing; }")
    monkeypatch.setattr(yardstick, "SOURCES", tmp_path)
    programs, (complaint,) = yardstick.build(["yote"], tmp_path)
    assert programs == []
    assert "nothing" in complaint


def test_an_installation_without_the_sources_is_a_line(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yardstick, "SOURCES", tmp_path / "none")
    assert yardstick.build(["petteia"], tmp_path) == (
        [],
        [f"No C yardsticks: {tmp_path / 'none'} is not there; they come with the source tree."],
    )


# -- growth and pictures -------------------------------------------------------------------------------------------


def test_growth_has_every_curve_and_pictures(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_growth, "BATCHES", (1, 16))
    monkeypatch.setattr(bench_growth, "BOARDS", (4, 5))
    monkeypatch.setattr(bench_growth, "cores", lambda: 3)
    points = bench_growth.grow(["petteia", "puluc"], seconds=0.002, repetitions=1)
    found = {(point.curve, point.game): [] for point in points}
    for point in points:
        found[point.curve, point.game].append(point.x)
        assert 0 < point.lowest <= point.value <= point.highest
    for game in ("petteia", "puluc"):
        assert found["batch", game] == found["memory", game] == [1, 16]
        assert found["threads", game] == [1, 2, 3]
    assert found["board, playouts", "petteia"] == found["board, steps", "petteia"] == [4, 5]
    assert ("board, steps", "puluc") not in found
    result = {"figures": [], "growth": [vars(point) for point in points]}
    files = bench_plots.draw(result, tmp_path / "plots")
    assert [path.name for path in files] == [
        "bench_batch.svg",
        "bench_board.svg",
        "bench_threads.svg",
        "bench_memory.svg",
    ]
    assert all(path.read_text().rstrip().endswith("</svg>") for path in files)


def test_pictures_of_odd_figures_are_drawn(tmp_path: pathlib.Path) -> None:
    speeds = {"a": (1, 90), "b": (1, 89), "c": (50, 1)}
    odd = [
        bench_growth.Point("threads", game, x, value, value / 2, value * 2)
        for game, values in speeds.items()
        for x, value in enumerate(values, 1)
    ]
    single = [bench_growth.Point(curve, "a", 1, 5, 5, 5) for curve in ("batch", "memory", "board, steps")]
    files = bench_plots.draw({"figures": [], "growth": [vars(point) for point in [*odd, *single]]}, tmp_path)
    assert len(files) == 4


def test_boards_that_a_game_refuses_are_left_out() -> None:
    assert bench_growth._is_allowed("yote", bench_growth.SIZED["yote"](8))
    assert not bench_growth._is_allowed("yote", bench_growth.SIZED["yote"](12))


def test_batches_that_do_not_fit_into_memory_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_growth, "machine", lambda: {"memory_gib": 0.004})
    small = bench_growth.affordable("puluc", (1, 1_000_000_000))
    assert small == [1]
    monkeypatch.setattr(bench_growth, "machine", lambda: {"memory_gib": None})
    assert bench_growth.affordable("puluc", (1, 1_000_000_000)) == [1, 1_000_000_000]


def test_names_at_the_ends_of_lines_are_pushed_apart() -> None:
    assert bench_plots._apart([0, 10, 20], 5) == [0, 10, 20]
    assert bench_plots._apart([10, 10], 4) == [8, 12]
    heights = bench_plots._apart([0, 1, 1, 9, 9.5, 40], 3)
    assert all(after - before >= 3 - 1e-9 for before, after in itertools.pairwise(heights))


# -- what is published ---------------------------------------------------------------------------------------------


def figure(topic: str, subject: str, value: float, baseline: str | None = None, ratio: float | None = None) -> Any:
    return vars(bench.Figure(topic, subject, value, value * 0.9, value * 1.1, baseline, ratio))


def test_page_says_what_was_wanted_and_where_the_numbers_come_from(tmp_path: pathlib.Path) -> None:
    figures = [
        figure("playouts", "petteia.c, plain C", 10e6),
        figure("playouts", "petteia", 8e6, "playouts: petteia.c, plain C", 0.8),
        figure("playouts", "puluc", 1.5e6),
        figure("peers", "OpenSpiel pig: rollouts", 3e6, "playouts: puluc", 2.0),
    ]
    result = bench_run.bench_all(["puluc"], "tradgames bench", seconds=0.001, repetitions=1) | {"figures": figures}
    page = publish().page(result)
    assert "| petteia | 8.00 M | 7.20 M – 8.80 M | 0.80 × petteia.c, plain C | ≥ 0.7 × | yes |" in page
    assert "| puluc | 1.50 M | 1.35 M – 1.65 M |  | ≥ 20.0 M | **no** |" in page
    assert "| OpenSpiel pig | rollouts | 3.00 M | puluc: playouts | 1.50 M | 0.5 × |" in page
    assert "| command | `tradgames bench` |" in page
    assert np.__version__ in page
    assert [path.name for path in bench_plots.draw(result, tmp_path)] == ["bench_peers.svg"]


def test_published_page_is_current() -> None:
    module = publish()
    if module.RESULT.exists():
        text = module.page(json.loads(module.RESULT.read_text()))
        assert module.PAGE.read_text() == text, "run python benchmarks/publish.py"
