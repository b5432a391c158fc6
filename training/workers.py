"""Work spread over processes, each of which keeps to one core."""

import concurrent.futures
import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

# Tasks handed out for each process: one in work and one waiting, so that none idles while results are collected.
_IN_HAND = 2


class Engine(Protocol):
    """Applies a function to tasks; the built-in ``map`` is one."""

    def __call__(self, function: Callable[[Task], Result], tasks: Iterable[Task], /) -> Iterator[Result]:
        """Results in any order. Tasks are drawn as they are needed, so that they may depend on earlier results."""


@contextlib.contextmanager
def processes(count: int) -> Iterator[Engine]:
    """An engine of this many new processes, which end with the context; functions, tasks and results are pickled.

    An interrupt from the keyboard reaches this process alone: results that are there are still given, then
    KeyboardInterrupt is raised.
    """
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(count, mp_context=context, initializer=_become_worker)

    running: set[concurrent.futures.Future[Any]] = set()

    def engine(function: Callable[[Task], Result], tasks: Iterable[Task], /) -> Iterator[Result]:
        waiting = iter(tasks)
        running.update(pool.submit(function, task) for task in itertools.islice(waiting, _IN_HAND * count))
        try:
            while running:
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    running.remove(future)
                    yield future.result()
                    running.update(pool.submit(function, task) for task in itertools.islice(waiting, 1))
        except KeyboardInterrupt:
            yield from (future.result() for future in running if future.done())
            raise

    try:
        yield engine
    finally:
        pool.shutdown(wait=not running, cancel_futures=True)
        # Nobody waits any more for what is still in work.
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()


def obey_parent() -> None:
    """Make this process a worker: interrupts are the parent's to decide, and it ends when its parent does."""
    # Ctrl-C reaches all processes of a terminal; what it ends is the parent's to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _become_worker() -> None:
    # Read when PyTorch is imported: more threads than cores slow each other down, and the number of threads may change
    # the last digits of a network's answer.
    os.environ["OMP_NUM_THREADS"] = "1"
    obey_parent()


def _end_with_parent() -> None:
    """End this process when its parent was killed: nobody would ever send it another task."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
