"""How fast training by search goes: whole runs of some seconds, and what their metrics say once they are under way.

``python benchmarks/selfplay.py [CONFIG ...] [--seconds 30] [--KEY VALUE ...]``

Without names, those of ``CONFIGS``; other settings go to the runs. Each line gives medians over the second half of a
run's iterations: decisions a second with learning included, simulations (or positions looked at) a second of playing
alone, and the share of the time spent on gradient steps; then the seconds of a start, from the command to the first
iteration, less what that iteration took.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from training.metrics import read_metrics

ROOT = pathlib.Path(__file__).parents[1]
CONFIGS = ("alphazero_yut_nori_duel", "alphazero_petteia_box", "alphazero_yote_box")
_SPEEDS = ("speed/decisions_per_second", "speed/simulations_per_second", "speed/update_share")


def measure(name: str, seconds: float, settings: list[str], folder: pathlib.Path) -> str:
    """Train for some seconds, and say how fast that went."""
    path = ROOT / "configs" / f"{name}.toml"
    run_dir = folder / name
    changes = ["--budget.minutes", str(seconds / 60.0), *settings]
    command = [sys.executable, "-m", "training.cli", "train", "--config", str(path), "--run-dir", str(run_dir)]
    started = time.perf_counter()
    with subprocess.Popen(command + changes, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        first = _seconds_to_first_line(process, run_dir / "metrics.jsonl", started)
        if process.wait() != 0:
            raise SystemExit(f"{name}: the run ended with {process.returncode}")
    whole = time.perf_counter() - started
    lines = read_metrics(run_dir / "metrics.jsonl")
    return f"{name}: {_speeds(lines)}; start {first - 60.0 * lines[0]['minutes']:.1f} s, run {whole:.1f} s"


def _seconds_to_first_line(process: subprocess.Popen[bytes], path: pathlib.Path, started: float) -> float:
    while process.poll() is None and not (path.exists() and path.stat().st_size):
        time.sleep(0.02)
    return time.perf_counter() - started


def _speeds(lines: list[dict[str, Any]]) -> str:
    late = lines[len(lines) // 2 :]
    decisions, simulations, share = (statistics.median(line[name] for line in late) for name in _SPEEDS)
    return f"{decisions:,.0f} decisions/s, {simulations:,.0f} simulations/s, update share {share:.2f}"


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("configs", nargs="*", default=CONFIGS, help="names in configs/, without .toml")
    parser.add_argument("--seconds", type=float, default=30.0, help="budget of each run")
    arguments, settings = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.configs:
            print(measure(name, arguments.seconds, settings, pathlib.Path(folder)), flush=True)


if __name__ == "__main__":
    main()
