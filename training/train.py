"""Training by whichever method a configuration names."""

import pathlib
from collections.abc import Callable

from rich.console import Console

from training.alphabeta import AlphaBetaRun
from training.alphazero import AlphaZeroRun
from training.config import AlphaBetaTrainConfig, AlphaZeroTrainConfig, ConfigError, PPOTrainConfig, TrainConfig
from training.ppo import PPORun
from training.ranks import Ranks, is_first
from training.run import Run, train_run


def train(
    config: TrainConfig, run_dir: pathlib.Path, resume: bool = False, *, console: Console | None = None
) -> pathlib.Path:
    """Train a policy until its budget is used.

    Ctrl-C (or SIGTERM) ends the run after the iteration at work: everything is saved and ``resume`` goes on from there.

    Args:
        config: what to do.
        run_dir: gets metrics, curves, checkpoints and the state for a resume; made if missing.
        resume: go on with the run in ``run_dir``. With a budget of steps, the result is what an undisturbed run gives,
            bit for bit on the same machine.
        console: for the progress bar and notes; standard error when None.

    Returns:
        The folder of the final checkpoint, or of the latest one when the run was stopped.

    Raises:
        ConfigError: ``run_dir`` already holds a run, or the one to resume had another configuration.
        CheckpointError: there is nothing to resume from.
        MetricsError: metrics of the run to resume cannot be read.
        RatingError: the ratings of its checkpoints cannot be read.
        TrainingError: the loss is no longer a number; the minibatch is saved.
        EngineError: shards cannot be played by the engine that the configuration names.
    """
    run_dir = pathlib.Path(run_dir)
    console = console or Console(stderr=True, quiet=not is_first())

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    return train_run(lambda ranks: _make(config, run_dir, ranks, say), config, run_dir, resume, console)


def _make(config: TrainConfig, run_dir: pathlib.Path, ranks: Ranks, say: Callable[[str], None]) -> Run:
    if isinstance(config, AlphaZeroTrainConfig):
        return AlphaZeroRun(config, run_dir, say, ranks)
    assert isinstance(config, AlphaBetaTrainConfig | PPOTrainConfig)
    if ranks.count > 1:
        raise ConfigError(f"{config.method} learns in one process; start it without torchrun")
    if isinstance(config, AlphaBetaTrainConfig):
        return AlphaBetaRun(config, run_dir, say)
    return PPORun(config, run_dir)
