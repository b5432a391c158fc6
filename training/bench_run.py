"""One run of ``tradgames bench``: what was measured, where and how, ready for JSON."""

import dataclasses
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import Progress

from training import yardstick
from training.bench import load_warning, measure
from training.bench_growth import grow as measure_growth
from training.bench_peers import peer_tasks
from training.bench_tasks import TOPICS, missing_baselines, own_tasks, sizes
from training.provenance import provenance, versions

_PACKAGES = ("chess", "open_spiel", "pgx", "jax", "envpool")


def bench_all(
    games: Sequence[str],
    command: str,
    *,
    compare: bool = False,
    grow: bool = False,
    seconds: float = 0.5,
    repetitions: int = 5,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure the games beside their baselines.

    Args:
        games: names.
        command: as it was typed, for the record.
        compare: the other libraries too.
        grow: the curves of ``bench_growth`` too.
        seconds: of each repetition.
        repetitions: of each task.
        console: where progress is shown, if it is a terminal.

    Returns:
        ``{"figures", "growth", "topics", "notes", "provenance"}``: lists of the fields of ``Figure`` and of ``Point``,
        the title and unit of each topic, lines about what is missing, and where the numbers come from.

    Raises:
        ValueError: no such game, or a number that is not positive.
    """
    busy = load_warning()
    record = provenance(command)
    record["versions"] |= versions(_PACKAGES)
    if yardstick.compiler_version():
        record["versions"]["C compiler"] = f"{yardstick.compiler_version()}, {' '.join(yardstick.FLAGS)}"
    visible = console is not None and console.is_terminal
    with (
        tempfile.TemporaryDirectory(prefix="tradgames-") as folder,
        Progress(console=console, disable=not visible, transient=True) as bar,
    ):
        preparing = bar.add_task("preparing", total=None)
        programs, notes = yardstick.build(games, pathlib.Path(folder))
        tasks = own_tasks(games, programs)
        others, missing = peer_tasks() if compare else ([], [])
        bar.remove_task(preparing)
        figures = measure([*tasks, *others], seconds=seconds, repetitions=repetitions, bar=bar)
        points = measure_growth(games, seconds=seconds / 2, repetitions=min(3, repetitions), bar=bar) if grow else []
    figures[len(tasks) : len(tasks)] = sizes(games)
    packages = sorted({*missing_baselines(), *missing})
    if packages:
        notes.append(f"Not compared, since not installed: {', '.join(packages)} (pip install -e '.[bench]' has most).")
    if busy is not None:
        notes.append(f"Beware: {busy}.")
    return {
        "figures": [dataclasses.asdict(figure) for figure in figures],
        "growth": [dataclasses.asdict(point) for point in points],
        "topics": {name: topic._asdict() for name, topic in TOPICS.items()},
        "notes": notes,
        "provenance": record,
    }
