"""Speed of the package on this machine, beside a yardstick measured in the same run: PettingZoo's connect four.

Everything is measured several times in turn, so that a busy machine slows all of it alike, and the median is reported.
Compiling is over before the clock starts.
"""

import dataclasses
import importlib
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import tradgames_env as tg

YARDSTICK = "PettingZoo connect four: raw_env, step + observe"

_BATCH = 4096
_CHUNK = 200
_SMALLEST_BATCH_A_CORE = 512


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured speed.

    Attributes:
        name: the game and what was done over and over.
        unit: what ``per_second`` counts.
        per_second: median of the repetitions.
        lowest: the slowest repetition.
        highest: the fastest one.
        baseline: what ``ratio`` compares with, None for the yardstick itself or without one.
        ratio: ``per_second`` divided by that of the baseline.
    """

    name: str
    unit: str
    per_second: float
    lowest: float
    highest: float
    baseline: str | None
    ratio: float | None


@dataclasses.dataclass(frozen=True)
class _Task:
    """``run(n)`` does at least n units and returns how many it did."""

    name: str
    unit: str
    baseline: str | None
    run: Callable[[int], int]


def measure(
    games: Sequence[str], *, seconds: float = 0.5, repetitions: int = 5, console: Console | None = None
) -> list[Figure]:
    """Measure every task for each game, and the yardstick where PettingZoo's classic games are installed.

    Args:
        games: names.
        seconds: of each repetition.
        repetitions: of each task.
        console: where a progress bar is shown if it is a terminal; nowhere when None.

    Raises:
        ValueError: no such game, or a number that is not positive.
    """
    check_amounts(seconds, repetitions)
    tasks = [task for game in games for task in _game_tasks(game)]
    yardstick = _yardstick_task()
    if yardstick is not None:
        tasks.insert(0, yardstick)
    amounts = [_warm_amount(task, seconds) for task in tasks]
    speeds: list[list[float]] = [[] for _ in tasks]
    visible = console is not None and console.is_terminal
    with Progress(console=console, disable=not visible, transient=True) as bar:
        for _ in bar.track(range(repetitions), description="measuring"):
            for task, amount, measured in zip(tasks, amounts, speeds, strict=True):
                measured.append(_speed(task, amount))
    return _figures(tasks, speeds)


def check_amounts(seconds: float, repetitions: int) -> None:
    """Refuse what cannot be measured.

    Raises:
        ValueError: a number is not positive, or not finite.
    """
    if not 0 < seconds < float("inf") or repetitions < 1:
        raise ValueError(f"seconds and repetitions must be positive, not {seconds} and {repetitions}")


def _figures(tasks: Sequence[_Task], speeds: Sequence[Sequence[float]]) -> list[Figure]:
    medians = {task.name: statistics.median(values) for task, values in zip(tasks, speeds, strict=True)}
    figures = []
    for task, values in zip(tasks, speeds, strict=True):
        median = statistics.median(values)
        ratio = median / medians[task.baseline] if task.baseline in medians else None
        figures.append(Figure(task.name, task.unit, median, min(values), max(values), task.baseline, ratio))
    return figures


def _warm_amount(task: _Task, seconds: float) -> int:
    """How many units last about ``seconds``, found by doubling; compiles and warms caches on the way."""
    amount = 1
    task.run(amount)
    while True:
        start = time.perf_counter()
        done = task.run(amount)
        elapsed = time.perf_counter() - start
        if elapsed > seconds / 8:
            return max(1, round(done * seconds / elapsed))
        amount = 2 * max(amount, done)


def _speed(task: _Task, amount: int) -> float:
    start = time.perf_counter()
    done = task.run(amount)
    return done / (time.perf_counter() - start)


def _game_tasks(game: str) -> list[_Task]:
    cores = len(os.sched_getaffinity(0))
    single = f"{game}: random moves, one core"
    tasks = (
        (single, None, _random_moves(game, 1)),
        (f"{game}: random moves, {cores} cores", single, _random_moves(game, cores)),
        (f"{game}: BatchGames.step, observation + mask, {cores} cores", YARDSTICK, _batch_steps(game, cores)),
        (f"{game}: raw_env, step + observe", YARDSTICK, _aec_steps(tg.raw_env(game))),
        (f"{game}: Position, push + legal_actions", YARDSTICK, _pushes(game)),
    )
    return [_Task(name, "moves", baseline, run) for name, baseline, run in tasks]


def _yardstick_task() -> _Task | None:
    """PettingZoo's own game; None where its classic games are not installed."""
    try:
        module = importlib.import_module("pettingzoo.classic.connect_four.connect_four")
    except ImportError:
        return None
    return _Task(YARDSTICK, "moves", None, _aec_steps(module.raw_env()))


def _random_moves(game: str, cores: int) -> Callable[[int], int]:
    games = tg.BatchGames(game, num_games=_BATCH, seed=0, num_threads=cores)

    def run(amount: int) -> int:
        moves = max(_CHUNK, -(-amount // _BATCH))
        games.play_random(moves)
        return moves * _BATCH

    return run


def _batch_steps(game: str, cores: int) -> Callable[[int], int]:
    count = max(_BATCH, _SMALLEST_BATCH_A_CORE * cores)
    games = tg.BatchGames(game, num_games=count, seed=0, num_threads=cores)

    def run(amount: int) -> int:
        steps = max(1, -(-amount // count))
        for _ in range(steps):
            games.step(games.sample_legal_actions())
        return steps * count

    return run


def _aec_steps(env: Any) -> Callable[[int], int]:
    """Random legal moves in an AEC environment, each followed by the observation of who is next."""
    rng = np.random.default_rng(0)
    env.reset(seed=0)

    def run(amount: int) -> int:
        for _ in range(amount):
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.reset()
                observation = env.observe(env.agent_selection)
            env.step(rng.choice(np.flatnonzero(observation["action_mask"])))
        return amount

    return run


def _pushes(game: str) -> Callable[[int], int]:
    rng = np.random.default_rng(0)
    position = tg.Position(game, seed=0)

    def run(amount: int) -> int:
        nonlocal position
        for _ in range(amount):
            actions = position.legal_actions()
            if not actions:
                position = tg.Position.from_ruleset(position.ruleset, seed=int(rng.integers(2**62)))
                actions = position.legal_actions()
            position.push(actions[int(rng.integers(len(actions)))])
            position.clear_stack()
        return amount

    return run


def print_figures(figures: Sequence[Figure], console: Console) -> None:
    """A table for people."""
    table = Table(title="Speed", title_justify="left")
    table.add_column("what")
    table.add_column("per second", justify="right")
    table.add_column("lowest–highest", justify="right")
    table.add_column("ratio", justify="right")
    for figure in figures:
        table.add_row(
            figure.name,
            f"{figure.per_second:,.0f}",
            f"{figure.lowest:,.0f}–{figure.highest:,.0f}",
            "" if figure.ratio is None else f"{figure.ratio:,.1f} × {_short(figure.baseline)}",
        )
    console.print(table)
    if not any(figure.name == YARDSTICK for figure in figures):
        console.print("No yardstick: PettingZoo's classic games are not installed (pip install 'pettingzoo[classic]').")


def _short(baseline: str | None) -> str:
    return "connect four" if baseline == YARDSTICK else "one core"
