"""What a run shows while it trains."""

import pytest
from rich.console import Console

from training.live import LiveView

METRICS = {
    "steps": 1.0e6,
    "speed/decisions_per_second": 12_345.0,
    "speed/games_per_second": 87.65,
    "games/draws": 0.25,
    "games/truncated": 0.25,
    "loss/value": 0.5,
}


def shown(capsys: pytest.CaptureFixture[str], *updates: dict[str, float], terminal: bool = True) -> str:
    with LiveView(Console(force_terminal=terminal, width=140), enabled=True) as view:
        for metrics in updates:
            view.update(0.5, 90.0, metrics)
    return capsys.readouterr().out


def test_it_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, METRICS, terminal=False).strip() == ""


def test_it_shows_the_time_left_and_how_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, METRICS)
    for text in ("1:30 left", "1.00 M", "12,345", "87.7", "decisive", "50%", "0.500"):
        assert text in out


def test_the_elo_stays_until_there_is_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert "+123 ±40" in shown(capsys, METRICS | {"rating/elo": 123.0, "rating/error": 40.0}, METRICS)


def test_an_iteration_without_ended_games(capsys: pytest.CaptureFixture[str]) -> None:
    few = {name: value for name, value in METRICS.items() if not name.startswith("games/")}
    assert "decisive" in shown(capsys, few)
