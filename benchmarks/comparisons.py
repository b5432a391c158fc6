"""Trains the same game in several ways for the same time, and lets what comes of it play a round robin.

``python benchmarks/comparisons.py [STUDY ...] [--minutes M] [--seeds 1] [--games 200] [--folder runs/comparisons]``

The studies stand in ``comparisons.toml``. Trainings run one after the other, each on all cores, so that their times
mean the same; a contender's seeds play as players of their own. What was trained or played is kept in the folder: the
same command goes on with it. Results are ``results/comparisons.json``, from which ``docs/generate.py`` makes the page
``docs/comparisons.md``, and a plot a study in ``docs/images``. A study may say what is known: where a contender is not
above another one as it should be, intervals apart, that is told and the exit status is 1.
"""

import argparse
import dataclasses
import json
import pathlib
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic

from tradgames_env.processors import cores
from tradgames_env.rules.ruleset import load_ruleset
from training import arena
from training.arena_page import write_arena_page
from training.evaluate import load_players, write_json
from training.ledger import PAIRS_FILE, Ledger
from training.page import ratings_plot
from training.provenance import provenance
from training.ratings import Rating

HERE = pathlib.Path(__file__).parent
IMAGES = HERE.parent / "docs" / "images"
STUDIES = HERE / "comparisons.toml"
RESULTS = HERE / "results" / "comparisons.json"
SB3 = "sb3"
"""In place of a configuration's name: sb3-contrib's MaskablePPO."""
_FINAL = pathlib.Path("checkpoints", "final")


class Contender(pydantic.BaseModel):
    """One way to train."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    config: str
    """A name in configs/, without .toml, or "sb3"."""
    set: dict[str, float | int | str] = {}
    """Settings that differ, by dotted name."""


class Study(pydantic.BaseModel):
    """A question, and who answers it."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    question: str
    game: str
    variant: str
    minutes: pydantic.PositiveFloat
    """Wall time of each training."""
    opponents: list[str]
    """Agents that play as well, "random" among them, which is held at 0."""
    contenders: dict[str, Contender]
    known: list[tuple[str, str]] = []
    """Pairs of contenders, the stronger one first, whose intervals lie apart."""


def load_studies(path: pathlib.Path = STUDIES) -> dict[str, Study]:
    """All studies by name.

    Raises:
        ValueError: a key is unknown or has a wrong value.
    """
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: Study.model_validate(entry) for name, entry in found.items()}


def train(study: Study, contender: Contender, seed: int, run_dir: pathlib.Path) -> str:
    """Train, unless it was trained before; what came of it as ``load_agent`` takes it."""
    if contender.config == SB3:
        return _train_sb3(study, seed, run_dir)
    if not (run_dir / _FINAL).exists():
        changes = {
            "game.name": study.game, "game.variant": study.variant, "budget.steps": 10**12, **contender.set
        }  # fmt: skip
        settings = [part for name, value in changes.items() for part in (f"--{name}", str(value))]
        config = HERE.parent / "configs" / f"{contender.config}.toml"
        command = [sys.executable, "-m", "training.cli", "train", "--config", str(config), "--run-dir", str(run_dir)]
        begun = any(run_dir.glob("resume*"))
        more = ["--resume"] if begun else ["--minutes", str(study.minutes), "--seed", str(seed), *settings]
        subprocess.run([*command, *more], check=True, cwd=HERE.parent)
    return str(run_dir / _FINAL)


def _train_sb3(study: Study, seed: int, run_dir: pathlib.Path) -> str:
    path = run_dir / "model.zip"
    if not path.exists():
        script = HERE / "sb3_baseline.py"
        what = [study.game, study.variant, str(study.minutes), str(seed), str(path)]
        subprocess.run([sys.executable, str(script), *what], check=True, cwd=HERE.parent)
    return f"sb3:{path}"


def play(study: Study, labels: Mapping[str, str], games: int, folder: pathlib.Path, command: str) -> dict[str, Any]:
    """Let all play all, and what came of it.

    Args:
        study: names the game and the opponents.
        labels: what the trained players are called, by agent.
        games: of every two players.
        folder: where the games are kept.
        command: noted with the result.
    """
    players = load_players([*labels, *study.opponents])
    ruleset = load_ruleset(study.game, study.variant)
    plan = arena.Plan(
        players=tuple(players), weights=arena.weights_of(players), ruleset=ruleset, games=games,
        reference=arena.default_reference(ruleset),
    )  # fmt: skip
    facts = provenance(command, plan.seed)
    ledger = Ledger(folder / PAIRS_FILE, plan.to_json(), facts)
    arena.play(plan, ledger, cores())
    result = arena.arena_result(plan, ledger)
    if result.stopped:
        raise SystemExit("stopped; the same command goes on")
    write_arena_page(result, facts, folder)
    ladder = [
        dataclasses.asdict(dataclasses.replace(row.rating, name=labels.get(row.rating.name, row.rating.name)))
        | {"score": row.score, "seconds_per_move": row.seconds_per_move}
        for row in result.standings
    ]
    return {**study.model_dump(), "games": games, "ladder": ladder, "provenance": facts}


def main() -> None:
    """See the module's text."""
    studies = load_studies()
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("studies", nargs="*", default=list(studies), help=f"of {', '.join(studies)}")
    parser.add_argument("--minutes", type=float, help="of each training, in place of the study's")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each contender")
    parser.add_argument("--games", type=int, default=200, help="of every two players")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("runs", "comparisons"))
    wanted = parser.parse_args()
    unknown = set(wanted.studies) - set(studies)
    if unknown:
        parser.error(f"there is no study {', '.join(sorted(unknown))}; there are {', '.join(studies)}")
    command = shlex.join(["python", "benchmarks/comparisons.py", *sys.argv[1:]])
    failed = False
    for name in wanted.studies:
        study = studies[name]
        if wanted.minutes is not None:
            study = study.model_copy(update={"minutes": wanted.minutes})
        found = run(study, wanted.folder / name, wanted.seeds, wanted.games, command)
        keep(name, found)
        for line in contradictions(study, found["ladder"]):
            failed = True
            print(f"{name}: {line}")
    sys.exit(1 if failed else 0)


def run(study: Study, folder: pathlib.Path, seeds: int, games: int, command: str) -> dict[str, Any]:
    """Train every contender with every seed, then play."""
    labels = {}
    for seed in range(seeds):
        for number, (label, contender) in enumerate(study.contenders.items()):
            trained = train(study, contender, seed, folder.resolve() / f"contender-{number}-seed-{seed}")
            labels[trained] = label if seeds == 1 else f"{label}, seed {seed}"
    return play(study, labels, games, folder, command)


def contradictions(study: Study, ladder: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a ladder says against what a study takes for known, a line each; every seed counts."""
    lines = []
    for stronger, weaker in study.known:
        above, below = ([row for row in ladder if _is_of(row["name"], label)] for label in (stronger, weaker))
        low, high = min(row["low"] for row in above), max(row["high"] for row in below)
        if low <= high:
            lines.append(f"{stronger} (from {low:+.0f}) is not clearly above {weaker} (up to {high:+.0f})")
    return lines


def _is_of(name: str, label: str) -> bool:
    """Whether a player is a contender or, of several seeds, one of them."""
    return name == label or name.startswith(f"{label}, seed ")


def keep(name: str, found: Mapping[str, Any]) -> None:
    """Put the result of a study among those of the others, and draw it."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    RESULTS.parent.mkdir(exist_ok=True)
    write_json(results | {name: found}, RESULTS)
    ratings = [Rating(*(row[field.name] for field in dataclasses.fields(Rating))) for row in found["ladder"]]
    (IMAGES / f"comparison_{name}.svg").write_text(ratings_plot(ratings), encoding="utf-8")


if __name__ == "__main__":
    main()
