"""``tradgames solve``: the run with its progress, and what it says afterwards."""

import dataclasses
import datetime
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.solving import solver, trial
from tradgames_env.solving.indexing import TableError
from tradgames_env.solving.lookup import judge_moves
from tradgames_env.solving.table import DISTANCE, Table, find_table
from training.provenance import provenance

_GIB = 2**30
_MOST_MEMORY = 2**20
"""GiB that may be asked for."""
_TRIAL_POSITIONS, _TRIAL_GAMES = 1_000_000, 100_000
_WIDTH_99 = 2.576
"""Standard deviations on either side of the mean that hold 99 % of a normal distribution."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be solved.

    Attributes:
        ruleset: the game.
        part: a part of it; all of it when None.
        tolerance: see ``solver.solve``.
        memory: GiB that may be used; what is free when None.
        threads: number of threads; all cores when None.
        again: whether to solve anew what is there.
        check: whether to put the table to the test.

    Raises:
        ValueError: a number is out of range.
    """

    ruleset: Ruleset
    part: str | None
    tolerance: float
    memory: float | None
    threads: int | None
    again: bool
    check: bool

    def __post_init__(self) -> None:
        if not 5e-7 <= self.tolerance <= 1.0:
            raise ValueError(f"--tolerance must be a number from 5e-7 to 1, not {self.tolerance!r}")
        if self.memory is not None and not 0 < self.memory <= _MOST_MEMORY:
            raise ValueError(f"--memory must be more than 0 and at most {_MOST_MEMORY:,} GiB, not {self.memory!r}")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"--threads must be at least 1, not {self.threads!r}")

    @property
    def memory_bytes(self) -> int | None:
        """Bytes that may be used."""
        return None if self.memory is None else int(self.memory * _GIB)


def planned(request: Request) -> dict[str, Any]:
    """What solving takes, ready for JSON.

    Raises:
        TableError: it cannot be solved, or not in so much memory.
    """
    plan = solver.plan(request.ruleset, request.part, memory=request.memory_bytes, num_threads=request.threads)
    return dataclasses.asdict(plan)


def plan_text(ruleset: Ruleset, plan: dict[str, Any]) -> str:
    """A plan for people."""
    return (
        f"{ruleset.label}: {plan['positions']:,} positions in {plan['layers']} layers, "
        f"{plan['peak_bytes'] / _GIB:.2f} GiB of memory, {plan['table_bytes'] / _GIB:.2f} GiB on disk, "
        f"roughly {plan['seconds']:,.0f} s"
    )


def solved(request: Request, command: str, *, console: Console) -> dict[str, Any]:
    """Solve unless the table is there, and say what is in it, ready for JSON.

    Raises:
        TableError: as ``planned``.
        OSError: the disk is full or cannot be written to.
    """
    kept = None if request.again else find_table(request.ruleset, request.part)
    table = kept or _solve(request, command, console)
    check = {"check": trial_of(table)} if request.check else {}
    return _summary(table) | {"kept": kept is not None} | check


def _solve(request: Request, command: str, console: Console) -> Table:
    columns = (BarColumn(bar_width=16), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    console.print(f"solving {request.ruleset.label}; Ctrl-C keeps what is solved so far", highlight=False)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def report(progress: solver.Progress) -> None:
            left = "" if progress.left is None else f"{datetime.timedelta(seconds=round(progress.left))} left, "
            bar.update(task, total=progress.count, completed=progress.done, description=f"{left}{progress.what}")

        return solver.solve(
            request.ruleset, request.part, tolerance=request.tolerance, memory=request.memory_bytes,
            num_threads=request.threads, report=report, provenance=provenance(command),
        )  # fmt: skip


def _summary(table: Table) -> dict[str, Any]:
    header = table.header
    result = {
        "game": header.game,
        "variant": header.variant,
        "part": header.part,
        "options": header.options,
        "kind": header.kind,
        "positions": header.count,
        "residual": header.residual,
        "seconds": _number(header.provenance.get("seconds")),
        "peak_bytes": _number(header.provenance.get("peak_bytes")),
        "start": start_value(table),
        "start_distance": start_distance(table),
    }
    return result | {"folder": str(table.folder)}


def _number(note: object) -> int | float | None:
    """A number of a table's provenance, which nothing vouches for; None if it is none."""
    return note if isinstance(note, int | float) and not isinstance(note, bool) else None


def trial_of(table: Table) -> dict[str, Any]:
    """A table of expectations put to the test, ready for JSON; what must lie within the interval is the start's value.

    Raises:
        TableError: the table holds distances.
    """
    if table.header.kind == DISTANCE:
        raise TableError("--check is for games with dice; benchmarks/solved.py checks distances")
    value = float(table.value(trial.start_of(table)) or 0.0)
    mean = trial.mean_payoff(table, _TRIAL_GAMES, seed=1)
    half = _WIDTH_99 * float(np.sqrt((1.0 - value**2) / _TRIAL_GAMES))
    return {
        "positions": _TRIAL_POSITIONS,
        "residual": trial.one_step_residual(table, _TRIAL_POSITIONS, seed=1),
        "games": _TRIAL_GAMES,
        "mean_payoff": mean,
        "interval_99": [value - half, value + half],
        "holds": abs(mean - value) <= half,
    }


def start_value(table: Table) -> float | None:
    """What the side that begins can expect, in [-1, 1]; None where the table does not cover the start."""
    position = Position.from_ruleset(table.ruleset, chance="explicit")
    while position.chance_due and table.value(position.rows[0]) is None:
        position.apply_chance(position.chance_outcomes()[0][0])
    value = table.value(position.rows[0])
    if value is not None or position.chance_due:
        return value
    best = float(judge_moves(table, *position.rows)[1].max())
    return None if np.isnan(best) else best


def start_distance(table: Table) -> int | None:
    """Moves of both sides in which the side that begins wins, or loses if negative; 0 for a draw.

    None in games with dice and where the table does not cover the start.
    """
    if table.header.kind != DISTANCE:
        return None
    return table.distance(Position.from_ruleset(table.ruleset).rows[0])


def result_text(ruleset: Ruleset, result: dict[str, Any]) -> str:
    """What was solved, for people."""
    precision = "exact" if result["kind"] == DISTANCE else f"residual {result['residual']:.1e}"
    name = " ".join(filter(None, (ruleset.label, result["part"])))
    time = "solved earlier"
    if result["seconds"] is not None:
        time = f"{'an earlier run took' if result['kept'] else 'solved in'} {result['seconds']} s"
    return (
        f"{name}: {result['positions']:,} numbered positions, {precision}, "
        f"{time}\ntable: {result['folder']}"
        + _start_text(result["start"], result["start_distance"])
        + _check_text(result.get("check"))
    )


def _start_text(start: float | None, distance: int | None) -> str:
    if distance is not None:
        won = f"{'won' if distance > 0 else 'lost'} in {abs(distance)} moves"
        return f"\nstart: {won if distance else 'drawn'} for the side that begins"
    if start is None:
        return ""
    return f"\nstart: the side that begins expects {start:+z.4f}, which is to win {(1 + start) / 2:z.2%} of the games"


def _check_text(check: dict[str, Any] | None) -> str:
    if check is None:
        return ""
    low, high = check["interval_99"]
    return (
        f"\ncheck: one step changes {check['positions']:,} random positions by at most {check['residual']:.1e}; "
        f"{check['games']:,} games of the table against itself pay {check['mean_payoff']:+.4f}, "
        f"99 % interval {low:+.4f} to {high:+.4f}"
    )
