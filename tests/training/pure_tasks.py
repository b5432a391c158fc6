"""Pure functions for the tests of engines; workers import them by name."""

import dataclasses
import os
import pathlib
import signal
import time
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

if TYPE_CHECKING:
    from training.selfplay import ShardResult, ShardTask


@dataclasses.dataclass(frozen=True)
class WalkTask:
    """Some steps of a random walk, in place of self-play.

    Attributes:
        weights: (4, 4) float32.
        positions: (N, 4) float32.
        words: seed.
        killed_once: a worker that finds this file missing makes it and dies.
        doomed: every worker dies of this task.
        seconds: how long it takes at least.
    """

    weights: NDArray[np.float32]
    positions: NDArray[np.float32]
    words: tuple[int, ...]
    killed_once: str = ""
    doomed: bool = False
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class WalkResult:
    positions: NDArray[np.float32]
    threads: int
    process: int


def walk(task: WalkTask) -> WalkResult:
    if task.doomed:
        os.kill(os.getpid(), signal.SIGKILL)
    if task.killed_once and not pathlib.Path(task.killed_once).exists():
        pathlib.Path(task.killed_once).touch()
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(task.seconds)
    rng = np.random.default_rng(task.words)
    positions = torch.from_numpy(task.positions)
    for _ in range(20):
        noise = torch.from_numpy(rng.standard_normal(task.positions.shape, dtype=np.float32))
        positions = torch.tanh(positions @ torch.from_numpy(task.weights)) + noise
    return WalkResult(positions.numpy(), torch.get_num_threads(), os.getpid())


def walk_tasks(shards: int = 6, *, killed_once: str = "", seconds: float = 0.0) -> list[WalkTask]:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((4, 4), dtype=np.float32)
    return [
        WalkTask(
            weights,
            positions=rng.standard_normal((64, 4), dtype=np.float32),
            words=(7, shard),
            killed_once=killed_once if shard == 2 else "",
            seconds=seconds,
        )
        for shard in range(shards)
    ]


def play_shard_after_a_death(path: str, task: "ShardTask") -> "ShardResult":
    """``play_shard``, but a worker that finds no file of this path makes it and dies."""
    from training.selfplay import play_shard  # other tasks need none of it

    if not pathlib.Path(path).exists():
        pathlib.Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return play_shard(task)


def refuse(task: int) -> int:
    raise ValueError(f"task {task} cannot be done")


def interrupted(task: int) -> int:
    """What Ctrl-C in a terminal sends to every process of the group."""
    os.kill(os.getpid(), signal.SIGINT)
    return task
