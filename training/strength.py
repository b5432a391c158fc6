"""How strong the checkpoints of a folder are: each plays a ladder of its game, and what comes of it is noted beside it.

``python -m training.strength checkpoints`` (``make strength``) measures every checkpoint in the folder. ``NAME.toml``
beside the checkpoint ``NAME`` says what it plays, see ``StrengthConfig``. The results are ``NAME.strength.json`` and
``NAME.*.svg`` beside it, a table in its record and model card, and the arena's own files in ``runs/strength/NAME``,
from which a stopped measurement goes on.
"""

import dataclasses
import pathlib
import shlex
import sys
import tomllib
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor
from typing import Annotated, Any

import pydantic
import tyro

from tradgames_env.agents.checkpoint import RECORD_FILE, read_record
from tradgames_env.processors import cores
from training import arena
from training.arena_page import Point, by_simulations, by_time, strength_plot, write_arena_page
from training.checkpoint import record_strength
from training.console import FAILED, FINE, MISTAKE, complain, progress, tables
from training.evaluate import agreed_ruleset, load_players, strength_summary, write_json
from training.ladders import LADDERS, rungs
from training.ledger import PAIRS_FILE, Ledger
from training.match import AgentError
from training.metrics import METRICS_FILE, read_metrics
from training.page import ratings_plot
from training.provenance import provenance


class StrengthConfig(pydantic.BaseModel):
    """What one checkpoint plays; the file may leave out anything."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)

    ladder: str = "standard"
    """Set of opponents, a name of ``ladders.LADDERS``."""
    games: pydantic.PositiveInt = 200
    """Of every two players, an even number."""
    seed: pydantic.NonNegativeInt = 0
    """Of openings, throws and agents."""
    simulations: tuple[pydantic.PositiveInt, ...] = pydantic.Field(default=(), strict=False)
    """The checkpoint also plays with searches of so many simulations a move, as ``FOLDER:SIMULATIONS``."""
    run: str | None = None
    """Folder of the training run whose checkpoints also play, for rating against training time."""

    @pydantic.field_validator("ladder")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in LADDERS:
            raise ValueError(f"known ladders are {', '.join(LADDERS)}")
        return name


def load_strength_config(path: pathlib.Path) -> StrengthConfig:
    """What the file says, the defaults where there is none.

    Raises:
        ValueError: it is no TOML, or a key is unknown or has a wrong value.
    """
    if not path.exists():
        return StrengthConfig()
    try:
        return StrengthConfig.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except pydantic.ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}" for entry in error.errors())
        raise ValueError(f"{path}: {problems}") from None
    except ValueError as error:
        raise ValueError(f"{path}: it cannot be read as TOML ({error})") from None


def measure(folder: pathlib.Path, files: pathlib.Path, workers: int, command: str) -> arena.ArenaResult:
    """Let a checkpoint play its ladder and note the result; a stopped measurement is not noted.

    Args:
        folder: the checkpoint.
        files: where the arena's files are kept.
        workers: processes that play.
        command: noted with the result.

    Raises:
        ValueError: the file beside the checkpoint is wrong, an agent cannot be loaded, or other games were kept.
        AgentError: an agent played an illegal move.
        OSError: a file cannot be written.
    """
    config = load_strength_config(folder.with_name(f"{folder.name}.toml"))
    name, run = str(folder), None if config.run is None else pathlib.Path(config.run)
    own = [name, *(f"{name}:{count}" for count in config.simulations)]
    trained = {} if run is None else run_checkpoints(run)
    players = load_players([*own, *map(str, trained)])
    ruleset = agreed_ruleset(players, None, None, {})
    players |= load_players(rungs(config.ladder, ruleset))
    plan = arena.Plan(
        players=tuple(players), weights=arena.weights_of(players), ruleset=ruleset, games=config.games,
        seed=config.seed, reference=arena.default_reference(ruleset),
    )  # fmt: skip
    facts = provenance(command, config.seed)
    ledger = Ledger(files / PAIRS_FILE, plan.to_json(), facts)
    arena.play(plan, ledger, workers, progress())
    result = arena.arena_result(plan, ledger)
    if not result.stopped:
        write_arena_page(result, facts, files)
        _note(folder, result, facts, trained)
    return result


def run_checkpoints(run: pathlib.Path) -> dict[pathlib.Path, float]:
    """Minutes of training behind each checkpoint of a run, in the order they were made.

    Raises:
        ValueError: the run holds no metrics.
    """
    lines = read_metrics(run / METRICS_FILE)
    if not lines:
        raise ValueError(f"{run} holds no {METRICS_FILE} with anything in it, so it is not known how long it trained")
    folders = [path.parent for path in sorted((run / "checkpoints").glob(f"*/{RECORD_FILE}"))]
    steps = {folder: read_record(folder).steps for folder in folders}
    minutes = {
        folder: next((line["minutes"] for line in lines if line["steps"] >= count), lines[-1]["minutes"])
        for folder, count in steps.items()
    }
    return dict(sorted(minutes.items(), key=lambda item: item[1]))


def _note(
    folder: pathlib.Path, result: arena.ArenaResult, facts: Mapping[str, Any], trained: Mapping[pathlib.Path, float]
) -> None:
    """Write the results beside the checkpoint and into its record."""
    ratings = [row.rating for row in result.standings]
    by_name = {rating.name: rating for rating in ratings}
    plots = {
        "ladder": ratings_plot(ratings),
        "time": strength_plot(by_time(result.standings), "seconds a move"),
    }
    searching = by_simulations(result.standings)
    if searching:
        plots["simulations"] = strength_plot(searching, "simulations a move")
    if trained:
        points = [Point(path.name, minutes, by_name[str(path)], "run") for path, minutes in trained.items()]
        plots["training"] = strength_plot(points, "minutes of training")
    for kind, picture in plots.items():
        folder.with_name(f"{folder.name}.{kind}.svg").write_text(picture, encoding="utf-8")
    write_json(result.to_json() | {"provenance": facts}, folder.with_name(f"{folder.name}.strength.json"))
    settings: dict[str, Any] = {"seed": result.plan.seed, "opening_plies": list(result.plan.plies)}
    summary = strength_summary(str(folder), result.matches, ratings, result.anchor, settings | dict(facts))
    record_strength(folder, summary)


@dataclasses.dataclass(frozen=True)
class Strength:
    """Measure every checkpoint in a folder on the ladder of its game; what was stopped goes on.

    For example:
      python -m training.strength checkpoints
      python -m training.strength checkpoints --only petteia --workers 1
    """

    folder: Annotated[pathlib.Path, tyro.conf.Positional]
    """Folder with checkpoints in it."""
    only: tuple[str, ...] = ()
    """Names of checkpoints; all when none is given."""
    files: pathlib.Path = pathlib.Path("runs") / "strength"
    """Where all games are kept."""
    workers: int | None = None
    """Processes; as many as there are cores when not given."""

    def run(self, command: str) -> int:
        """Measure, print, note."""
        found = sorted(path.parent for path in self.folder.glob(f"*/{RECORD_FILE}"))
        chosen = [folder for folder in found if not self.only or folder.name in self.only]
        if not chosen:
            complain(f"{self.folder} holds no such checkpoint; there are {', '.join(f.name for f in found) or 'none'}")
            return MISTAKE
        for folder in chosen:
            try:
                result = measure(folder, self.files / folder.name, self.workers or cores(), command)
            except (ValueError, AgentError, BrokenExecutor, OSError) as error:
                complain(f"{folder}: {error}")
                return FAILED
            arena.print_arena(result, tables())
            if result.stopped:
                return FAILED
        return FINE


if __name__ == "__main__":
    measured = tyro.cli(Strength, config=(tyro.conf.FlagCreatePairsOff,))
    sys.exit(measured.run(shlex.join(["python", "-m", "training.strength", *sys.argv[1:]])))
