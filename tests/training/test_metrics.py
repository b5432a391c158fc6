import json
import pathlib
import sys

import pytest
from rich.console import Console

from training.metrics import METRICS, MetricsLog, draw_curves, read_metrics

LINE = {"iteration": 1, "steps": 10, "minutes": 0.1, "games/draws": 0.5}


def write_lines(run_dir: pathlib.Path, count: int) -> None:
    log = MetricsLog(run_dir, 0, Console(quiet=True))
    for iteration in range(1, count + 1):
        log.write(LINE | {"iteration": iteration, "steps": 10 * iteration})
    log.close()


def test_every_metric_is_explained_and_unknown_ones_are_refused(tmp_path: pathlib.Path) -> None:
    assert all(meaning for meaning in METRICS.values())
    log = MetricsLog(tmp_path, 0, Console(quiet=True))
    with pytest.raises(KeyError):
        log.write(LINE | {"loss/mystery": 1.0})
    log.close()


def test_a_resumed_log_drops_what_will_be_written_again(tmp_path: pathlib.Path) -> None:
    write_lines(tmp_path, 5)
    MetricsLog(tmp_path, 3, Console(quiet=True)).close()
    assert [line["iteration"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3]


def test_a_line_cut_off_by_a_kill_is_left_out(tmp_path: pathlib.Path) -> None:
    write_lines(tmp_path, 2)
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text() + '{"iteration": 3, "st')
    assert len(read_metrics(path)) == 2
    path.write_text('{"iter\n' + json.dumps(LINE) + "\n")
    with pytest.raises(ValueError, match="line 1 is not JSON"):
        read_metrics(path)


def test_missing_tensorboard_is_one_line(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    log = MetricsLog(tmp_path, 0, Console())
    log.write(LINE)
    log.close()
    assert "tensorboard is not installed" in capsys.readouterr().out
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 1
    assert not (tmp_path / "tensorboard").exists()


def test_curves(tmp_path: pathlib.Path) -> None:
    assert draw_curves(tmp_path, "nothing") is None
    write_lines(tmp_path, 30)
    path = draw_curves(tmp_path, "thirty iterations")
    assert path is not None
    assert path.read_bytes()[:4] == b"\x89PNG"
