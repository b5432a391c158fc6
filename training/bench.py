"""Speeds, measured side by side in one run.

Everything is measured several times in turn, each baseline next to what is compared with it, so that a busy machine
slows all of it alike. Medians are reported; a ratio is the median of the ratios of the turns. Compiling is over before
the clock starts. What is measured stands in ``bench_tasks`` (the package), ``bench_peers`` (other libraries) and
``bench_growth`` (how cost grows).
"""

import dataclasses
import itertools
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

BUSY = 0.5
"""Load average per core from which the machine counts as busy."""


@dataclasses.dataclass(frozen=True)
class Task:
    """Something that is done over and over.

    Attributes:
        topic: key in ``bench_tasks.TOPICS``; figures of one topic are comparable.
        subject: whose speed it is: a game, or a game of another library.
        run: ``run(n)`` does at least n units; returns how many it did and how many seconds that took.
        baseline: ``name`` of the task it is compared with, None without one.
        name: unique among the tasks of a run.
    """

    topic: str
    subject: str
    run: Callable[[int], tuple[int, float]]
    baseline: str | None = None

    @property
    def name(self) -> str:
        """Topic and subject."""
        return f"{self.topic}: {self.subject}"


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes:
        topic: as of the task.
        subject: as of the task.
        value: median of the repetitions, a second; or a number of bytes.
        lowest: the smallest of the repetitions.
        highest: the largest.
        baseline: name of the figure that ``ratio`` compares with, None without one in this run.
        ratio: this figure by the baseline, the median of the repetitions.
    """

    topic: str
    subject: str
    value: float
    lowest: float
    highest: float
    baseline: str | None = None
    ratio: float | None = None

    @property
    def name(self) -> str:
        """Topic and subject."""
        return f"{self.topic}: {self.subject}"


def clocked(work: Callable[[int], int]) -> Callable[[int], tuple[int, float]]:
    """``Task.run`` of a function that only says how many units it did."""

    def run(amount: int) -> tuple[int, float]:
        start = time.perf_counter()
        done = work(amount)
        return done, time.perf_counter() - start

    return run


def measure(
    tasks: Sequence[Task], *, seconds: float = 0.5, repetitions: int = 5, bar: Progress | None = None
) -> list[Figure]:
    """Measure tasks in turn, again and again.

    Args:
        tasks: a baseline that is not among them is left out.
        seconds: of each repetition.
        repetitions: of each task.
        bar: where progress is shown.

    Raises:
        ValueError: a number that is not positive.
    """
    check_amounts(seconds, repetitions)
    bar = bar or Progress(disable=True)
    # A task that warms up counts as one repetition on the bar.
    line = bar.add_task("warming up", total=len(tasks) * (repetitions + 1))
    amounts = []
    for task in tasks:
        bar.update(line, description=f"warming up {task.subject}")
        amounts.append(_warm_amount(task, seconds))
        bar.advance(line)
    speeds: dict[str, list[float]] = {task.name: [] for task in tasks}
    for _, (task, amount) in itertools.product(range(repetitions), zip(tasks, amounts, strict=True)):
        bar.update(line, description=task.topic)
        done, elapsed = task.run(amount)
        speeds[task.name].append(done / elapsed)
        bar.advance(line)
    bar.remove_task(line)
    return [_figure(task, speeds) for task in tasks]


def check_amounts(seconds: float, repetitions: int) -> None:
    """Refuse what cannot be measured.

    Raises:
        ValueError: a number is not positive, or not finite.
    """
    if not 0 < seconds < float("inf") or repetitions < 1:
        raise ValueError(f"seconds and repetitions must be positive, not {seconds} and {repetitions}")


def load_warning() -> str | None:
    """A line that says that other programs keep this machine busy; None if it is quiet."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load / cores < BUSY:
        return None
    return f"other programs are running (load {load:.1f} on {cores} cores): the figures will be too low"


def _figure(task: Task, speeds: Mapping[str, Sequence[float]]) -> Figure:
    values = speeds[task.name]
    baseline = task.baseline if task.baseline in speeds else None
    ratio = None
    if baseline is not None:
        ratio = statistics.median(own / other for own, other in zip(values, speeds[baseline], strict=True))
    return Figure(task.topic, task.subject, statistics.median(values), min(values), max(values), baseline, ratio)


def _warm_amount(task: Task, seconds: float) -> int:
    """How many units last about ``seconds``, found by doubling; compiles and warms caches on the way."""
    amount = 1
    task.run(amount)
    while True:
        done, elapsed = task.run(amount)
        if elapsed > seconds / 8:
            return max(1, round(done * seconds / elapsed))
        amount = 2 * max(amount, done)


def print_result(result: Mapping[str, Any], console: Console) -> None:
    """A table for people.

    Args:
        result: what ``bench_run.bench_all`` returns.
        console: where to.
    """
    table = Table(title="Speed", title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_column("lowest to highest", justify="right")
    table.add_column("ratio", justify="right")
    for topic, group in itertools.groupby(result["figures"], key=lambda figure: figure["topic"]):
        about = result["topics"][topic]
        table.add_section()
        table.add_row(f"[bold]{about['title']}[/bold]")
        for figure in group:
            table.add_row(f"  {figure['subject']}", *_cells(figure, about["unit"]))
    console.print(table)
    for note in result["notes"]:
        console.print(note, markup=False, highlight=False)


def _cells(figure: Mapping[str, Any], unit: str) -> tuple[str, str, str]:
    spread = ratio = ""
    if figure["lowest"] < figure["highest"]:
        spread = f"{figure['lowest']:,.0f} to {figure['highest']:,.0f}"
    if figure["ratio"] is not None:
        ratio = f"{figure['ratio']:,.2f} × {figure['baseline'].partition(': ')[2]}"
    return f"{figure['value']:,.0f} {unit}", spread, ratio
