"""What a run shows while it trains: a bar with the time left, and a table of how it goes."""

from collections.abc import Mapping

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

_NONE = "-"


class LiveView:
    """A bar and a table of the latest iteration; silent where there is no terminal.

    Args:
        console: where they are shown.
        enabled: False shows nothing.
    """

    def __init__(self, console: Console, *, enabled: bool) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>5.1f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._progress = Progress(*columns, console=console)
        self._task = self._progress.add_task("training", total=1.0, left="")
        shown = enabled and console.is_terminal
        self._live = Live(self._progress, console=console, refresh_per_second=4) if shown else None
        self._elo = _NONE

    def __enter__(self) -> "LiveView":
        """Show it."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last state on the screen."""
        if self._live is not None:
            self._live.stop()

    def update(self, progress: float, seconds_left: float, metrics: Mapping[str, float]) -> None:
        """Set the share done (0 to 1), the time left in seconds and the metrics of the iteration that ended."""
        if "rating/elo" in metrics:
            self._elo = f"{metrics['rating/elo']:+.0f} ±{metrics['rating/error']:.0f}"
        if self._live is None:
            return
        minutes, seconds = divmod(max(0, round(seconds_left)), 60)
        self._progress.update(self._task, completed=progress, left=f"{minutes}:{seconds:02} left")
        self._live.update(Group(self._progress, self._table(metrics)))

    def _table(self, metrics: Mapping[str, float]) -> Table:
        cells = {
            "decisions": f"{metrics['steps'] / 1e6:.2f} M",
            "a second": f"{metrics['speed/decisions_per_second']:,.0f}",
            "games\na second": f"{metrics['speed/games_per_second']:,.1f}",
            "decisive": _share(1.0 - metrics["games/draws"] - metrics["games/truncated"]) if _ended(metrics) else _NONE,
            **{f"{name[5:]}\nloss": f"{metrics[name]:.3f}" for name in metrics if name.startswith("loss/")},
            "Elo\nso far": self._elo,
        }
        table = Table(box=None, padding=(0, 2, 0, 0))
        for heading in cells:
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_row(*cells.values())
        return table


def _ended(metrics: Mapping[str, float]) -> bool:
    return "games/draws" in metrics and "games/truncated" in metrics


def _share(value: float) -> str:
    return f"{value:.0%}"
