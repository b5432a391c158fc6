"""How strong the checkpoints of a folder are: each plays a ladder of its game, and what comes of it is noted beside it.

``python -m training.strength checkpoints`` (``make strength``) measures every checkpoint in the folder. ``NAME.toml``
beside the checkpoint ``NAME`` says what it plays, see ``StrengthConfig``. The results are ``NAME.strength.json`` and
``NAME.*.svg`` beside it, a table in its record and model card, and the arena's own files in ``runs/strength/NAME``,
from which a stopped measurement goes on. A network of several games plays a ladder of each: its files are
``NAME.GAME.strength.json`` and so on.
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

from tradgames_env.agents.base import Agent
from tradgames_env.agents.checkpoint import RECORD_FILE, matching_ruleset, read_record
from tradgames_env.processors import cores
from tradgames_env.rules.ruleset import Ruleset
from training import arena
from training.arena_page import Point, by_simulations, by_time, strength_plot, write_arena_page
from training.checkpoint import record_strength
from training.console import FAILED, FINE, MISTAKE, complain, progress, tables
from training.evaluate import load_players, strength_summary, those_who_play, write_json
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
    run: tuple[str, ...] = pydantic.Field(default=(), strict=False)
    """Folder of the training run whose checkpoints also play, for rating against training time; or a list of several,
    of other seeds for example."""
    against: tuple[str, ...] = pydantic.Field(default=(), strict=False)
    """More opponents; of those that are checkpoints, each plays the games that it was trained for."""

    @pydantic.field_validator("run", mode="before")
    @classmethod
    def _listed(cls, runs: object) -> object:
        return (runs,) if isinstance(runs, str) else runs

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


def measure(folder: pathlib.Path, files: pathlib.Path, workers: int, command: str) -> list[arena.ArenaResult]:
    """Let a checkpoint play the ladder of each of its games and note the results; a stopped measurement is not noted.

    Args:
        folder: the checkpoint.
        files: where the arena's files are kept.
        workers: processes that play.
        command: noted with the result.

    Returns:
        A result for each game; after one that was stopped there are no more.

    Raises:
        ValueError: the file beside the checkpoint is wrong, an agent cannot be loaded, or other games were kept.
        AgentError: an agent played an illegal move.
        OSError: a file cannot be written.
    """
    config = load_strength_config(folder.with_name(f"{folder.name}.toml"))
    trained = {run: run_checkpoints(pathlib.Path(run)) for run in config.run}
    of_runs = [str(path) for checkpoints in trained.values() for path in checkpoints]
    names = [str(folder), *(f"{folder}:{count}" for count in config.simulations), *of_runs, *config.against]
    players = load_players(names)
    rulesets = [matching_ruleset(game, str(folder)) for game in read_record(folder).games]
    idle = set(players).difference(*(those_who_play(players, ruleset) for ruleset in rulesets))
    if idle:
        labels = " or ".join(ruleset.label for ruleset in rulesets)
        raise ValueError(f"{', '.join(sorted(idle))} cannot play {labels}, so it does not belong beside {folder}")
    several = len(rulesets) > 1
    results, summaries = [], {}
    for ruleset in rulesets:
        facts = provenance(command, config.seed)
        result = _climb(config, players, ruleset, files / ruleset.game if several else files, facts, workers)
        results.append(result)
        if result.stopped:
            return results
        name = f"{folder.name}.{ruleset.game}" if several else folder.name
        _write_files(folder.with_name(name), result, facts, trained)
        summaries[ruleset.game] = _summary(str(folder), result, facts)
    record_strength(folder, {"games": summaries} if several else summaries[rulesets[0].game])
    return results


def _climb(
    config: StrengthConfig, trained: Mapping[str, Agent], ruleset: Ruleset, files: pathlib.Path,
    facts: Mapping[str, Any], workers: int,
) -> arena.ArenaResult:  # fmt: skip
    """Play the ladder of one game, or go on with it."""
    players = those_who_play(trained, ruleset) | load_players(rungs(config.ladder, ruleset))
    plan = arena.Plan(
        players=tuple(players), weights=arena.weights_of(players), ruleset=ruleset, games=config.games,
        seed=config.seed, reference=arena.default_reference(ruleset),
    )  # fmt: skip
    ledger = Ledger(files / PAIRS_FILE, plan.to_json(), facts)
    arena.play(plan, ledger, workers, progress())
    result = arena.arena_result(plan, ledger)
    if not result.stopped:
        write_arena_page(result, facts, files)
    return result


def run_checkpoints(run: pathlib.Path) -> dict[pathlib.Path, float]:
    """Minutes of training behind some checkpoints of a run, in the order they were made.

    They are the last and, going back from it, always the latest that took half as long at most: strength grows with the
    logarithm of time.

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
    chosen: dict[pathlib.Path, float] = {}
    for folder, time in sorted(minutes.items(), key=lambda item: -item[1]):
        if not chosen or 2.0 * time <= min(chosen.values()):
            chosen[folder] = time
    return dict(reversed(chosen.items()))


def _summary(name: str, result: arena.ArenaResult, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the record of the checkpoint ``name`` says of one game."""
    settings: dict[str, Any] = {"seed": result.plan.seed, "opening_plies": list(result.plan.plies)}
    ratings = [row.rating for row in result.standings]
    return strength_summary(name, result.matches, ratings, result.anchor, settings | dict(facts))


def _write_files(
    prefix: pathlib.Path, result: arena.ArenaResult, facts: Mapping[str, Any],
    trained: Mapping[str, Mapping[pathlib.Path, float]],
) -> None:  # fmt: skip
    """Write plots and JSON beside a checkpoint, their names beginning with ``prefix``."""
    ratings = [row.rating for row in result.standings]
    by_name = {rating.name: rating for rating in ratings}
    plots = {
        "ladder": ratings_plot(ratings),
        "time": strength_plot(by_time(result.standings), "seconds a move"),
    }
    searching = by_simulations(result.standings)
    if len(searching) > 1:
        plots["simulations"] = strength_plot(searching, "simulations a move")
    if trained:
        points = [
            Point(path.name if len(trained) == 1 else f"{pathlib.Path(run).name} {path.name}", minutes, rating, run)
            for run, checkpoints in trained.items()
            for path, minutes in checkpoints.items()
            if (rating := by_name.get(str(path)))
        ]
        plots["training"] = strength_plot(points, "minutes of training")
    for kind, picture in plots.items():
        prefix.with_name(f"{prefix.name}.{kind}.svg").write_text(picture, encoding="utf-8")
    write_json(result.to_json() | {"provenance": facts}, prefix.with_name(f"{prefix.name}.strength.json"))


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
                results = measure(folder, self.files / folder.name, self.workers or cores(), command)
            except (ValueError, AgentError, BrokenExecutor, OSError) as error:
                complain(f"{folder}: {error}")
                return FAILED
            for result in results:
                arena.print_arena(result, tables())
            if results[-1].stopped:
                return FAILED
        return FINE


if __name__ == "__main__":
    measured = tyro.cli(Strength, config=(tyro.conf.FlagCreatePairsOff,))
    sys.exit(measured.run(shlex.join(["python", "-m", "training.strength", *sys.argv[1:]])))
