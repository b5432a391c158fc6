"""``tradgames bench``."""

import dataclasses
import json
import pathlib
from typing import Annotated

import tyro

from training.commands.arguments import File, Folder, asked_ruleset
from training.console import FINE, mistakes, progress, say, tables

_STANDARD_OUTPUT = pathlib.Path("-")


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure the speed of the package on this machine, beside other libraries that are installed.

    For example:
      tradgames bench
      tradgames bench petteia puluc --seconds 1 --json speed.json
      tradgames bench --compare --grow --json speed.json --plots plots
    """

    games: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[GAME ...]")] = ()
    """Names of games; all when none is given."""
    compare: bool = False
    """Also measure the other libraries: PettingZoo, OpenSpiel, Pgx, EnvPool, as far as they are installed."""
    grow: bool = False
    """Also measure how cost grows with batch size, board size and threads."""
    seconds: float = 0.5
    """Of each repetition."""
    repetitions: int = 5
    """Of each measurement; the median is reported."""
    json: File = None
    """Write the figures to this file; - for standard output, without a table."""
    plots: Folder = None
    """Draw pictures into this folder."""

    def run(self, command: str) -> int:
        """Measure, print, draw, write."""
        import tradgames_env
        from training import bench, evaluate
        from training.bench_run import bench_all

        games = self.games or tradgames_env.games()
        with mistakes():
            for folder in (self.plots, None if self.json in (None, _STANDARD_OUTPUT) else self.json.parent):
                if folder is not None:
                    folder.mkdir(parents=True, exist_ok=True)
            for game in games:
                asked_ruleset(game, "box", ())
            bench.check_amounts(self.seconds, self.repetitions)
        result = bench_all(
            games, command, compare=self.compare, grow=self.grow,
            seconds=self.seconds, repetitions=self.repetitions, console=progress(),
        )  # fmt: skip
        if self.json == _STANDARD_OUTPUT:
            say(json.dumps(result, indent=2))
        else:
            bench.print_result(result, tables())
        if self.json not in (None, _STANDARD_OUTPUT):
            evaluate.write_json(result, self.json)
        if self.plots is not None:
            from training import bench_plots

            bench_plots.draw(result, self.plots)
        return FINE
