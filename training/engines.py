"""Where pure functions of a run are computed: in this process, in a pool of processes, or on a Ray cluster.

An engine applies a function to tasks and gives the results in the order of the tasks. The function must be pure, its
result following from the task alone. Then a task whose worker was killed may be computed again elsewhere, and what a
run gives depends neither on the engine nor on how many workers there are or how many of them died.

torch uses one thread while a task is computed, in every engine: the workers fill the cores, and sums of matrix products
depend on how many threads share them.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol, Self, TypeVar

import torch

from training.memory import keep_freed_memory
from training.workers import obey_parent

TRIES = 4
"""How often a task is begun, at most, when workers die of it or beside it."""
_ANSWER_SECONDS = 10.0
ENGINES = ("serial", "process", "ray")

Task = TypeVar("Task")
Result = TypeVar("Result")


class EngineError(RuntimeError):
    """An engine cannot be opened, or its workers die again and again; the message is one line."""


class Engine(Protocol):
    """Applies pure functions to tasks; a context manager that lets its workers go at the end."""

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results in the order of the tasks.

        Args:
            function: pure and importable by name.
            tasks: can be pickled, like the results.

        Raises:
            EngineError: workers died too often.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


def open_engine(name: str, workers: int, *, address: str | None = None, say: Callable[[str], None]) -> Engine:
    """An engine by its name.

    Args:
        name: one of ``ENGINES``.
        workers: processes of ``process``, and of a cluster that ``ray`` starts on this machine.
        address: of a running Ray cluster, ``auto`` for the one that runs on this machine; None starts one.
        say: gets one line when work is done again because a worker died.

    Raises:
        EngineError: there is no such engine, or it cannot be opened.
    """
    if name == "serial":
        return SerialEngine()
    if name == "process":
        return ProcessEngine(workers, say)
    if name == "ray":
        return RayEngine(workers, address)
    raise EngineError(f"there is no engine {name!r}; there are {', '.join(ENGINES)}")


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use ``count`` cores for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _on_one_thread(function: Callable[[Task], Result], task: Task) -> Result:
    with torch_threads(1):
        return function(task)


# -- in this process -----------------------------------------------------------------------------------------------


class SerialEngine:
    """Computes one task after the other, when its result is asked for."""

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """See ``Engine``."""
        return (_on_one_thread(function, task) for task in tasks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


# -- in a pool of processes ----------------------------------------------------------------------------------------


class ProcessEngine:
    """Computes in processes of this machine; when one of them is killed, what is unfinished begins again in a new pool.

    Args:
        workers: number of processes, at least 1.
        say: gets one line when that happens.
    """

    def __init__(self, workers: int, say: Callable[[str], None]) -> None:
        self._workers = workers
        self._say = say
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """See ``Engine``."""
        tasks = list(tasks)
        done = tries = 0
        while done < len(tasks):
            tries += 1
            try:
                for result in self._attempt(function, tasks[done:]):
                    done, tries = done + 1, 0
                    yield result
            except BrokenProcessPool:
                self._stop()
                if tries >= TRIES:
                    raise EngineError(
                        f"worker processes died {tries} times in a row before a task was done; "
                        "there may be too little memory for so many"
                    ) from None
                self._say(f"a worker process died; {len(tasks) - done} of {len(tasks)} tasks begin again")

    def _attempt(self, function: Callable[[Task], Result], tasks: list[Task]) -> Iterator[Result]:
        if self._pool is None:
            self._pool = concurrent.futures.ProcessPoolExecutor(
                self._workers, multiprocessing.get_context("spawn"), _begin_worker
            )
        futures = [self._pool.submit(_on_one_thread, function, task) for task in tasks]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()


def _begin_worker() -> None:
    keep_freed_memory()
    obey_parent()


# -- on a Ray cluster ----------------------------------------------------------------------------------------------


class RayEngine:
    """Computes as tasks of Ray, one on each CPU of the cluster; nodes may come and go meanwhile.

    These are Ray's tasks and not its actors: an actor whose node went away waits for room elsewhere with the work it
    holds, a task goes to whichever worker is free next, on a node that joined a moment ago as well.

    Args:
        workers: CPUs of the cluster that is started when there is no address.
        address: of a running cluster whose nodes have this package installed; None starts one on this machine.

    Raises:
        EngineError: Ray is not installed, or the cluster cannot be reached.
    """

    def __init__(self, workers: int, address: str | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise EngineError("Ray is not installed; pip install 'tradgames-env[ray]' does it") from None
        self._ray = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            self._connect(workers, address)
        self._remote = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_on_one_thread)

    def _connect(self, workers: int, address: str | None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or Ray reports its use to its makers
        cluster: dict[str, Any] = {"address": address}
        if address is None:
            # Only this machine may give it work.
            cluster = {
                "address": "local",
                "num_cpus": workers,
                "include_dashboard": False,
                "_node_ip_address": "127.0.0.1",
            }
        try:
            if address is not None:
                _check_answers(address)
            with _kept_signal_handlers():
                self._ray.init(**cluster, log_to_driver=False, logging_level="ERROR")
        except (RuntimeError, ValueError, OSError) as error:
            reason = " ".join(str(error).split())
            raise EngineError(f"the Ray cluster at {address or 'this machine'} cannot be used: {reason}") from None

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """See ``Engine``."""
        waiting = [self._remote.remote(function, task) for task in tasks]
        try:
            while waiting:
                yield self._ray.get(waiting[0])
                del waiting[0]  # the cluster may forget the result
        except (self._ray.exceptions.WorkerCrashedError, self._ray.exceptions.NodeDiedError) as error:
            raise EngineError(f"workers of the Ray cluster died {TRIES} times of one task: {error}") from None
        finally:
            for reference in waiting:
                self._ray.cancel(reference)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._ours:
            self._ray.shutdown()


def _check_answers(address: str) -> None:
    """Try an address HOST:PORT in seconds; Ray itself tries for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()


@contextlib.contextmanager
def _kept_signal_handlers() -> Iterator[None]:
    """Put back the handlers that Ray replaces, or its own would end a run that wants to save first."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)
