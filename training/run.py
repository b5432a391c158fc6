"""What training runs have in common, whatever the method: the loop, its budget, how it stops and goes on.

A run is iterations: play, learn, report. Ctrl-C ends it after the iteration at work, and nothing is lost.
"""

import abc
import contextlib
import dataclasses
import math
import pathlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import safetensors.numpy
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor

from tradgames_env.agents.checkpoint import CheckpointError
from tradgames_env.agents.network import resolve_device
from training.checkpoint import read_state, state_files
from training.config import BudgetConfig, ConfigError, ShapingConfig, TrainConfig, parse_config
from training.durable import Checkpoints, remove_leftovers, write_file
from training.engines import torch_threads
from training.live import LiveView
from training.memory import keep_freed_memory
from training.metrics import METRICS_FILE, MetricsLog, draw_curves
from training.ranks import Ranks, joined_ranks
from training.self_rating import SelfRating

RESUME_FOLDER = "resume"
FINAL = "final"
"""Name of the checkpoint of a run that used up its budget."""
BAD_BATCH_FILE = "bad_batch.safetensors"
_SAVE_SECONDS = 5.0
"""What a run that is killed may lose, at most, where an iteration takes no longer."""
# A resumed run may have another budget or machine; everything else must be as it was.
_ENGINE = {"engine", "workers", "address"}
_MAY_CHANGE: dict[str, Any] = {
    **dict.fromkeys(("budget", "play", "save_minutes", "rating_games", "progress", "threads", "device"), True),
    "selfplay": _ENGINE,
    "games": {"__all__": {"selfplay": _ENGINE}},
}


class TrainingError(RuntimeError):
    """Training cannot go on; the message says why and where the evidence lies."""


class NonFiniteLossError(TrainingError):
    """A loss or a gradient that is not a number, with the minibatch (a dataclass of tensors) that gave it."""

    def __init__(self, batch: Any, number: float, what: str = "loss") -> None:
        super().__init__(f"the {what} became {number}")
        self.batch = batch


class Run(abc.ABC):
    """Everything that changes while a run goes on, and one iteration of it.

    Attributes:
        config: what to do.
        run_dir: folder of the run.
        ranks: the processes that learn together; the first of them plays, reports and writes.
        iteration: iterations made.
        steps: decisions played.
        minutes: minutes of training, those before a resume included.
        saved: what a resume goes on from.
    """

    title: ClassVar[str]
    """Of the method, for plots."""
    advice: ClassVar[str]
    """What helps against a loss that is not a number."""
    rating_effort: ClassVar[int] = 0
    """Simulations, or positions, of a move in the games for the Elo so far; 0 is the policy alone."""

    def __init__(self, config: TrainConfig, run_dir: pathlib.Path, ranks: Ranks) -> None:
        self.config = config
        self.run_dir = run_dir
        self.ranks = ranks
        self.iteration = 0
        self.steps = 0
        self.minutes = 0.0
        self.saved = Checkpoints(run_dir / RESUME_FOLDER)
        self._saved_at = -math.inf

    @property
    def progress(self) -> float:
        """Share of the budget used."""
        return budget_used(self.config.budget, self.steps, self.minutes)

    def seconds_left(self) -> float:
        """Time to the end of the budget, at the speed so far."""
        return 60.0 * self.minutes * (1.0 - self.progress) / max(self.progress, 1e-9)

    @abc.abstractmethod
    def iterate(self) -> dict[str, float]:
        """Play, learn, and report the metrics of the iteration."""

    @abc.abstractmethod
    def write_policy(self, folder: pathlib.Path) -> None:
        """Write the policy as a checkpoint."""

    @abc.abstractmethod
    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """What a resume needs beside the counters of every run: arrays by name, and JSON."""

    @abc.abstractmethod
    def take_up(self, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Go on from a saved state, whose configuration was found to fit."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of threads and processes."""

    def save(self) -> None:
        """Save the state for a resume, if this is the process that writes.

        Raises:
            StorageError: the disk is full, or may not be written to.
        """
        if not self.ranks.first:
            return
        arrays, record = self.state()
        counters = {
            "config": self.config.model_dump(mode="json"),
            "iteration": self.iteration,
            "steps": self.steps,
            "minutes": self.minutes,
        }
        self.saved.save(self.iteration, state_files(arrays, counters | record))
        self._saved_at = time.monotonic()

    def save_if_due(self) -> None:
        """Save the state, unless that was done a moment ago: where iterations are short, it would take as long as they.

        Raises:
            StorageError: the disk is full, or may not be written to.
        """
        if time.monotonic() - self._saved_at >= _SAVE_SECONDS:
            self.save()

    def save_checkpoint(self, name: str | None = None) -> pathlib.Path:
        """Save the state for a resume, and the policy as a checkpoint whose folder is returned."""
        self.save()
        folder = self.run_dir / "checkpoints" / (name or f"step_{self.steps}")
        if self.ranks.first:
            folder.parent.mkdir(exist_ok=True)
            self.write_policy(folder)
        return folder

    def restore(self, say: Callable[[str], None]) -> None:
        """Take up the newest saved state that is whole.

        Args:
            say: gets one line for each that is not.

        Raises:
            CheckpointError: there is none, or its content does not fit.
            ConfigError: it is of a run with another configuration.
        """
        self.saved.load(self._restore, say)
        for folder in (self.run_dir, self.run_dir / "checkpoints"):
            remove_leftovers(folder)

    def _restore(self, files: Mapping[str, bytes]) -> None:
        arrays, record = read_state(files)
        try:
            self._refuse_changes(parse_config(record["config"], str(self.run_dir)))
            self.take_up(arrays, record)
            self.iteration, self.steps, self.minutes = record["iteration"], record["steps"], record["minutes"]
        except (ConfigError, CheckpointError):
            raise
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise CheckpointError(f"its content does not fit the run ({error})") from error

    def failure(self, error: NonFiniteLossError) -> TrainingError:
        """Save the minibatch of a loss that is not a number, and say so."""
        path = self.run_dir / BAD_BATCH_FILE
        fields = {field.name: getattr(error.batch, field.name) for field in dataclasses.fields(error.batch)}
        tensors = {name: value.cpu().numpy() for name, value in fields.items() if isinstance(value, Tensor)}
        if self.ranks.first:
            write_file(path, safetensors.numpy.save(tensors))
        return TrainingError(
            f"{error} in iteration {self.iteration + 1}; the minibatch is in {path}. {self.advice} usually helps"
        )

    def _refuse_changes(self, before: TrainConfig) -> None:
        old, new = (config.model_dump(exclude=_MAY_CHANGE) for config in (before, self.config))
        for name in {**old, **new}:
            if old.get(name) != new.get(name):
                raise ConfigError(
                    f"{self.run_dir}: this run was started with {name} = {old.get(name)!r}, not {new.get(name)!r}"
                )


def train_run(
    make: Callable[[Ranks], Run], config: TrainConfig, run_dir: pathlib.Path, resume: bool, console: Console
) -> pathlib.Path:
    """Carry a run out; ``training.train.train`` says what it means.

    Args:
        make: the run at its start, made once the folder was found to be free; told which processes learn together.
        config: what to do.
        run_dir: folder of the run.
        resume: go on with the run in it.
        console: for the progress bar and notes.
    """
    keep_freed_memory()
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch_threads(config.threads or torch.get_num_threads()))
        ranks = stack.enter_context(joined_ranks(resolve_device(config.device)))
        if not resume and _holds_run(run_dir):
            raise ConfigError(f"{run_dir}: it already holds a run; go on with it by --resume, or give another folder")
        ranks.of_first(0.0)  # or the first process might make the run before another looks for one
        stop = stack.enter_context(_stop_signals())
        run = stack.enter_context(contextlib.closing(make(ranks)))
        if resume:
            run.restore(lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True))
        else:
            run.save()
        try:
            return _loop(run, console, stop) if ranks.first else _follow(run, stop)
        except NonFiniteLossError as error:
            raise run.failure(error) from None


def _holds_run(run_dir: pathlib.Path) -> bool:
    """Whether there is anything that a new run would spoil; one killed before it saved anything has left nothing."""
    saved = Checkpoints(run_dir / RESUME_FOLDER).iterations()
    return bool(saved) or any((run_dir / name).exists() for name in (METRICS_FILE, "checkpoints"))


def _loop(run: Run, console: Console, stop: threading.Event) -> pathlib.Path:
    config = run.config
    ratings = [
        SelfRating(run.run_dir, ruleset, config.rating_games, run.rating_effort) for ruleset in config.rulesets()
    ]
    log = MetricsLog(run.run_dir, run.iteration, console)
    saved_minutes = run.minutes
    rated: dict[str, float] = {}
    with contextlib.closing(log), LiveView(console, enabled=config.progress == "auto") as view:
        while _goes_on(run, stop):
            metrics = run.iterate() | rated
            log.write(metrics)
            view.update(run.progress, run.seconds_left(), metrics)
            rated = {}
            if run.minutes - saved_minutes >= config.save_minutes:
                saved_minutes = run.minutes
                rated = _rate(run, ratings, run.save_checkpoint())
    if run.progress < 1.0:
        folder = run.save_checkpoint()
        note = f"stopped after {run.steps:,} decisions; saved in {run.run_dir}; --resume goes on"
        console.print(note, markup=False, highlight=False, soft_wrap=True)
        return folder
    label = ", ".join(ruleset.label for ruleset in config.rulesets())
    folder = run.save_checkpoint(FINAL)
    draw_curves(run.run_dir, f"{run.title}, {label}, seed {config.seed}")
    return folder


def _rate(run: Run, ratings: Sequence[SelfRating], folder: pathlib.Path) -> dict[str, float]:
    """The mean over the games of the Elo so far; the time it takes is part of the budget."""
    started = time.perf_counter()
    found = [rating.rate(folder) for rating in ratings]
    run.minutes += (time.perf_counter() - started) / 60.0
    return {name: sum(metrics[name] for metrics in found) / len(found) for name in found[0]}


def _follow(run: Run, stop: threading.Event) -> pathlib.Path:
    """Learn along with the first process, which alone reports and writes."""
    while _goes_on(run, stop):
        run.iterate()
    return run.save_checkpoint(FINAL if run.progress >= 1.0 else None)


def _goes_on(run: Run, stop: threading.Event) -> bool:
    run.minutes = run.ranks.of_first(run.minutes)  # the first also rates, which takes time
    return run.progress < 1.0 and not run.ranks.of_first(float(stop.is_set()))


def budget_used(budget: BudgetConfig, steps: int, minutes: float) -> float:
    """Share of a budget used, in [0, 1]: the limit nearer to its end counts."""
    by_steps = steps / budget.steps if budget.steps is not None else 0.0
    by_time = minutes / budget.minutes if budget.minutes is not None else 0.0
    return min(1.0, max(by_steps, by_time))


def linear(start: float, end: float, progress: float) -> float:
    """Between two numbers, ``progress`` (0 to 1) of the way."""
    return start + (end - start) * progress


def shaping_weight(config: ShapingConfig, progress: float) -> float:
    """What the margin is worth at this point of a run: it falls to 0, linearly, at ``until``."""
    return config.weight * max(0.0, 1.0 - progress / max(config.until, 1e-9))


def optimiser_arrays(optimiser: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """The state of an optimiser as arrays by name."""
    states = optimiser.state_dict()["state"]
    return {
        f"{index}.{name}": tensor.cpu().numpy() for index, state in states.items() for name, tensor in state.items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, arrays: dict[str, NDArray[Any]]) -> None:
    """Take up what ``optimiser_arrays`` gave, in place of all that the optimiser holds."""
    states: dict[int, dict[str, Tensor]] = {}
    for key, array in arrays.items():
        index, name = key.split(".")
        states.setdefault(int(index), {})[name] = torch.from_numpy(array)
    optimiser.load_state_dict({**optimiser.state_dict(), "state": states})


def part_of(arrays: dict[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with ``name/``, without it."""
    start = f"{name}/"
    return {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}


def joined(parts: dict[str, dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """All arrays of some parts, each name preceded by its part's, as ``part_of`` takes them apart."""
    return {f"{part}/{name}": array for part, entries in parts.items() for name, array in entries.items()}


@contextlib.contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; a second Ctrl-C interrupts as usual."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: Any) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
