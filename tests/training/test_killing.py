"""Runs that are killed and resumed, and whose files were damaged meanwhile, give what an undisturbed run gives."""

import errno
import os
import pathlib
import subprocess
import sys

import pytest
from rich.console import Console

from tests.training.test_alphazero import digest, small
from training.alphazero import AlphaZeroRun
from training.durable import StorageError
from training.train import train

ROOT = pathlib.Path(__file__).parents[2]
QUIET = Console(quiet=True)


@pytest.mark.parametrize("method", ["ppo", "alphazero", "alphabeta"])
def test_runs_killed_at_random_moments(method: str) -> None:
    result = subprocess.run(
        [sys.executable, "benchmarks/killing.py", "--method", method, "--kills", "3", "--steps", "8192"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "8,192 decisions, killed 3 times, bit for bit the same" in result.stdout


@pytest.mark.parametrize("damaged", ["resume/it_000003/arrays.safetensors", "replay/it_000003.safetensors"])
def test_a_damaged_newest_state_costs_an_iteration_and_nothing_else(
    damaged: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train(small(5), tmp_path / "straight", console=QUIET)
    iterate = AlphaZeroRun.iterate

    def die(run: AlphaZeroRun) -> dict[str, float]:
        if run.iteration == 3:
            raise KeyboardInterrupt
        return iterate(run)

    with monkeypatch.context() as patch:
        patch.setattr(AlphaZeroRun, "iterate", die)
        with pytest.raises(KeyboardInterrupt):
            train(small(5), tmp_path / "run", console=QUIET)
    path = tmp_path / "run" / damaged
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    train(small(5), tmp_path / "run", resume=True)
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "going back" in line)
    assert "is damaged, its checksum is not the one noted; going back to the checkpoint before it" in line
    assert digest(tmp_path / "run") == digest(tmp_path / "straight")


def test_a_full_disk_stops_the_run_and_nothing_is_lost(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(small(4), tmp_path / "straight", console=QUIET)
    iterate = AlphaZeroRun.iterate

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:

        def fill(run: AlphaZeroRun) -> dict[str, float]:
            if run.iteration == 2:
                patch.setattr(os, "fsync", refuse)
            return iterate(run)

        patch.setattr(AlphaZeroRun, "iterate", fill)
        with pytest.raises(StorageError, match="the disk is full; nothing that was saved before is lost"):
            train(small(4), tmp_path / "run", console=QUIET)
    train(small(4), tmp_path / "run", resume=True, console=QUIET)
    assert digest(tmp_path / "run") == digest(tmp_path / "straight")
