"""``tradgames train``."""

import dataclasses
import pathlib
import shlex
from typing import Annotated

import tyro

from training.commands.arguments import Count, Folder
from training.console import FAILED, FINE, PROGRAM, UserError, complain, mistakes, name_and_value, progress, say


@dataclasses.dataclass(frozen=True)
class Train:
    """Train a policy by self-play.

    Any setting of the configuration can be given as well, by its dotted name.

    For example:
      tradgames train --config configs/petteia.toml --run-dir runs/petteia --minutes 10
      tradgames train --config configs/petteia.toml --run-dir runs/petteia --resume
      tradgames train --config configs/smoke.toml --ppo.epochs 4 --seed 7
    """

    config: pathlib.Path
    """TOML file that says what to train."""
    run_dir: Folder = None
    """Folder for metrics, curves and checkpoints; runs/NAME after the configuration when not given."""
    minutes: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Stop after this many minutes (budget.minutes)."""
    steps: Count = None
    """Stop after this many decisions (budget.steps)."""
    seed: Count = None
    """Everything random follows from it (seed)."""
    resume: bool = False
    """Go on with the run in the folder."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="KEY=VALUE")] = ()
    """A setting by its dotted name, as --KEY VALUE is."""

    def run(self, command: str) -> int:
        """Train and say where the checkpoint is."""
        with mistakes():
            from training.config import load_config

            config = load_config(self.config, self._overrides())
            from tradgames_env.agents.checkpoint import CheckpointError
            from tradgames_env.agents.network import DeviceError
            from training.config import ConfigError
            from training.engines import EngineError
            from training.metrics import MetricsError
            from training.ranks import is_first
            from training.run import FINAL, TrainingError
            from training.self_rating import RatingError
            from training.train import train
        run_dir = self.run_dir or pathlib.Path("runs") / self.config.stem
        try:
            folder = train(config, run_dir, self.resume, console=progress())
        except (ConfigError, CheckpointError, DeviceError, EngineError, MetricsError, RatingError) as error:
            raise UserError(str(error)) from error
        except (TrainingError, OSError, MemoryError) as error:
            complain(str(error) or "there is not enough memory for so many games and steps")
            return FAILED
        if folder.name != FINAL:
            return FAILED
        if is_first():
            say(f"checkpoint: {folder}\nnext: {PROGRAM} evaluate {shlex.quote(str(folder))} --against random greedy")
        return FINE

    def _overrides(self) -> dict[str, object]:
        overrides: dict[str, object] = dict(name_and_value(text, "--set", "KEY=VALUE") for text in self.set)
        named = {"budget.minutes": self.minutes, "budget.steps": self.steps, "seed": self.seed}
        return overrides | {key: value for key, value in named.items() if value is not None}
