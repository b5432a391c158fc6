"""How cost grows: speed against batch size, board size and threads, memory against batch size."""

import dataclasses
import functools
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.progress import Progress

import tradgames_env as tg
from tradgames_env.processors import cores
from training.bench import Task, clocked, measure
from training.bench_tasks import batch_steps, playouts
from training.provenance import machine

BATCHES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
BOARDS = (4, 5, 6, 7, 8, 9, 10, 11, 12)
SIZED: Mapping[str, Callable[[int], Mapping[str, int]]] = {
    "petteia": lambda size: {"rows": size, "cols": size, "capture_target": size - 1},
    "yote": lambda size: {"rows": size, "cols": size, "pieces": round(size * size * 8 / 30)},
}
"""Games with square boards of other sizes: options of a board of ``size`` squares a side, filled as densely as the
box's."""

_MEMORY_SHARE = 0.25


@dataclasses.dataclass(frozen=True)
class Point:
    """One point of a curve.

    Attributes:
        curve: "batch", "board, playouts", "board, steps", "threads" or "memory".
        game: name.
        x: games in the batch, squares a side, or threads.
        value: moves a second, or bytes.
        lowest: the smallest of the repetitions.
        highest: the largest.
    """

    curve: str
    game: str
    x: int
    value: float
    lowest: float
    highest: float


def grow(
    games: Sequence[str], *, seconds: float = 0.2, repetitions: int = 3, bar: Progress | None = None
) -> list[Point]:
    """Measure all the curves of these games.

    Args:
        games: names.
        seconds: of each repetition.
        repetitions: of each point; the median counts.
        bar: where progress is shown.

    Raises:
        ValueError: a number that is not positive.
    """
    bar = bar or Progress(disable=True)
    makers = list(_speed_points(games))
    points = memory_points(games)
    line = bar.add_task("growth", total=len(makers))
    for curve, game, x, make in makers:
        bar.update(line, description=f"{curve}: {game}, {x:,}")
        # One at a time: the batches of all points together would not fit into the memory of a small machine.
        (figure,) = measure([Task(curve, game, clocked(make()))], seconds=seconds, repetitions=repetitions)
        points.append(Point(curve, game, x, figure.value, figure.lowest, figure.highest))
        bar.advance(line)
    bar.remove_task(line)
    return points


def _speed_points(games: Sequence[str]) -> Iterator[tuple[str, str, int, Callable[[], Callable[[int], int]]]]:
    """(curve, game, x, what makes the work)."""
    for game in games:
        for size in affordable(game, BATCHES):
            yield "batch", game, size, functools.partial(batch_steps, game, size)
        for threads in _thread_counts():
            yield "threads", game, threads, functools.partial(batch_steps, game, num_threads=threads)
        for board in BOARDS if game in SIZED else ():
            options: Mapping[str, Any] = SIZED[game](board)
            if _is_allowed(game, options):
                yield "board, playouts", game, board, functools.partial(playouts, game, **options)
                yield "board, steps", game, board, functools.partial(batch_steps, game, **options)


def _thread_counts() -> list[int]:
    """1, 2, 4, ... and all cores."""
    available = cores()
    return sorted({*(2**power for power in range(available.bit_length()) if 2**power <= available), available})


def _is_allowed(game: str, options: Mapping[str, Any]) -> bool:
    try:
        tg.Position(game, **options)
    except ValueError:
        return False
    return True


def affordable(game: str, batches: Sequence[int]) -> list[int]:
    """The batch sizes that fit into a quarter of this machine's memory."""
    memory = machine()["memory_gib"]
    each = batch_bytes(game, 64) / 64
    return [size for size in batches if memory is None or size * each <= memory * 2**30 * _MEMORY_SHARE]


def memory_points(games: Sequence[str]) -> list[Point]:
    """Bytes that a batch allocates, observations, masks and all."""
    points = []
    for game in games:
        for size in affordable(game, BATCHES):
            value = float(batch_bytes(game, size))
            points.append(Point("memory", game, size, value, value, value))
    return points


def batch_bytes(game: str, num_games: int) -> int:
    """What Python's and NumPy's allocators handed out for a new batch and still hold."""
    tg.BatchGames(game, num_games=1, seed=0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        batch = tg.BatchGames(game, num_games=num_games, seed=0)
        held = tracemalloc.get_traced_memory()[0] - before
        batch.close()
    finally:
        tracemalloc.stop()
    return held
