"""What a training run reports: one table of metrics, and where they go.

Every iteration adds one JSON object to ``metrics.jsonl`` and one point a metric to TensorBoard; ``curves.png`` is drawn
at the end. The keys are exactly those of ``METRICS``; a run of several games has their means under these, and each
game's own under ``GAME_VARIANT/`` and the same.
"""

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from training.durable import write_file
from training.rollout import GameCounts

METRICS_FILE = "metrics.jsonl"
CURVES_FILE = "curves.png"

METRICS: dict[str, str] = {
    "iteration": "rollouts and updates made, this one included",
    "steps": "decisions played so far, by the learner and by frozen opponents",
    "minutes": "minutes of training so far, those before a resume included",
    "progress": "share of the budget used, which the schedules follow",
    "speed/decisions_per_second": "decisions of this iteration by its wall-clock time, update included",
    "speed/games_per_second": "games that ended in this iteration, by the same time",
    "speed/update_share": "share of the iteration's time spent on gradient steps",
    "speed/simulations_per_second": "simulations (or positions looked at) of the searches by the time of playing",
    "games/finished": "games that ended in this iteration",
    "games/decisions": "mean number of decisions in those games, by both sides, after the random opening",
    "games/natural_wins": "share of them that natural won",
    "games/black_wins": "share of them that black won",
    "games/draws": "share of them drawn by the rules",
    "games/truncated": "share of them stopped by max_turns; valued as draws",
    "games/margin": "mean final lead of either side, in what the game counts",
    "games/pool_score": "the learner's score (win 1, draw 1/2) against past policies; absent if none ended",
    "data/learned_share": "share of the decisions that were learned from: not by a frozen opponent",
    "data/window": "samples that were drawn from",
    "loss/policy": "clipped surrogate objective, or cross-entropy with the search's policies; lower is better",
    "loss/value": "mean squared error of the value against its lambda return, or a cross-entropy",
    "loss/margin": "mean squared error of the margin head against its lambda return",
    "policy/entropy": "mean entropy of the policy that is learned from over the legal actions, in nats",
    "policy/kl": "mean divergence of that policy from the network's, in nats (PPO: estimate k3)",
    "policy/clipped": "share of the probability ratios outside the clip range",
    "policy/epochs": "passes over the data; fewer than configured when target_kl stopped them",
    "value/explained": "share of the variance of the result's lambda returns that the values explain; 1 is perfect",
    "gradient/norm": "mean length of the gradient before it is cut",
    "search/surprise": "mean divergence of full searches' policies from the network's before it learned, in nats",
    "rating/elo": "of the newest checkpoint by games against earlier ones, random play at 0; when one was saved",
    "rating/error": "half of its 95 % interval",
    "perfect/score": "points a game against the table of exact values, 0.5 at best; now and then, if there is one",
    "perfect/regret": "what a decision of these games costs by the table, in percentage points of winning probability",
    "schedule/learning_rate": "of Adam",
    "schedule/entropy": "weight of the entropy bonus",
    "schedule/shaping": "reward for the largest margin",
    "schedule/simulations": "of a full search",
}
"""Name to meaning of every number reported; shares are in [0, 1]."""

_CURVES = (
    ("Results of self-play", "share of games", ("games/natural_wins", "games/black_wins", "games/draws")),
    ("Length of games", "decisions", ("games/decisions",)),
    ("Against past policies", "score", ("games/pool_score",)),
    ("Elo against itself", "Elo", ("rating/elo",)),
    ("Losses", "lower is better", ("loss/policy", "loss/value")),
    ("Entropy of the policy", "nats", ("policy/entropy",)),
    ("Value", "explained variance", ("value/explained",)),
    ("Against perfect play", "points a game", ("perfect/score",)),
    ("Speed", "decisions/s", ("speed/decisions_per_second",)),
)

_FEW_POINTS = 30
"""Curves of fewer show each point: a line through one cannot be seen."""


def game_metrics(counts: GameCounts) -> dict[str, float]:
    """The ``games/`` metrics of a rollout; rates are absent when no game ended."""
    metrics: dict[str, float] = {"games/finished": counts.games}
    if counts.games:
        metrics |= {
            "games/decisions": counts.decisions / counts.games,
            "games/natural_wins": counts.natural_wins / counts.games,
            "games/black_wins": counts.black_wins / counts.games,
            "games/draws": counts.draws / counts.games,
            "games/truncated": counts.truncated / counts.games,
            "games/margin": counts.absolute_margin / counts.games,
        }
    if counts.pool_games:
        metrics["games/pool_score"] = counts.pool_score / counts.pool_games
    return metrics


class MetricsError(ValueError):
    """The metrics of a run cannot be read; the message names the file and the line."""


class MetricsLog:
    """Writes metrics to ``metrics.jsonl`` and, where tensorboard is installed, to an event file.

    Args:
        run_dir: folder of the run.
        iteration: the last iteration of the run so far, 0 for a new one; lines of later iterations are dropped, since
            a resumed run writes them again.
        console: gets one line when tensorboard is missing.

    Raises:
        MetricsError: the metrics of a resumed run cannot be read.
    """

    def __init__(self, run_dir: pathlib.Path, iteration: int, console: Console) -> None:
        path = run_dir / METRICS_FILE
        kept = [line for line in read_metrics(path) if line["iteration"] <= iteration] if iteration else []
        write_file(path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self._file = path.open("a", encoding="utf-8")
        self._board = _open_board(run_dir, kept[-1]["steps"] + 1 if kept else None, console)

    def write(self, metrics: Mapping[str, float]) -> None:
        """Add one iteration.

        Raises:
            KeyError: a metric that ``METRICS`` does not explain.
        """
        for name in metrics:
            METRICS[name if name in METRICS else name.partition("/")[2]]
        self._file.write(json.dumps(metrics) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in metrics.items():
                self._board.add_scalar(name, value, int(metrics["steps"]))

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def _open_board(run_dir: pathlib.Path, purge_step: int | None, console: Console) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        console.print("tensorboard is not installed; metrics go to metrics.jsonl alone")
        return None
    return SummaryWriter(str(run_dir / "tensorboard"), purge_step=purge_step)


def read_metrics(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The objects of a ``metrics.jsonl``; a last line cut off by a killed run is left out.

    Raises:
        MetricsError: another line is not JSON; the message names it.
    """
    path = pathlib.Path(path)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    objects = []
    for number, line in enumerate(lines, start=1):
        try:
            objects.append(json.loads(line))
        except ValueError:
            if number < len(lines):
                raise MetricsError(f"{path}: line {number} is not JSON; delete it to go on without it") from None
    return objects


def draw_curves(run_dir: pathlib.Path, title: str) -> pathlib.Path | None:
    """Draw ``curves.png`` from ``metrics.jsonl``; None, and no file, when there is nothing to draw."""
    lines = read_metrics(run_dir / METRICS_FILE)
    if not lines:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    curves = [curve for curve in _CURVES if any(metric in line for line in lines for metric in curve[2])]
    columns = (len(curves) + 1) // 2
    figure = Figure(figsize=(1.0 + 3.6 * columns, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    for number, (name, unit, metrics) in enumerate(curves, start=1):
        axes = figure.add_subplot(2, columns, number)
        axes.set_title(name)
        axes.set_ylabel(unit)
        axes.set_xlabel("decisions (millions)")
        axes.grid(visible=True, alpha=0.3)
        reported = [metric for metric in metrics if any(metric in line for line in lines)]
        for metric in reported:
            points = [(line["steps"] / 1e6, line[metric]) for line in lines if metric in line]
            xs, ys = zip(*points, strict=True)
            style = "o-" if len(points) < _FEW_POINTS else "-"
            axes.plot(xs, _smooth(ys), style, label=metric.split("/")[1].replace("_", " "))
        if len(reported) > 1:
            axes.legend()
    path = run_dir / CURVES_FILE
    figure.savefig(path, dpi=110)
    return path


def _smooth(values: Sequence[float]) -> list[float]:
    """Means over a window of a fiftieth of the curve on either side."""
    reach = len(values) // 50
    windows = (values[max(0, i - reach) : i + reach + 1] for i in range(len(values)))
    return [sum(window) / len(window) for window in windows]
