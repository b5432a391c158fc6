"""The commands of ``tradgames``: each a record of its arguments and a ``run``. Heavy imports wait until a run."""

import dataclasses
import json
import pathlib
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from training.console import (
    FAILED,
    FINE,
    PROGRAM,
    UserError,
    complain,
    mistakes,
    name_and_value,
    progress,
    rule_options,
    say,
    tables,
)

if TYPE_CHECKING:
    from tradgames_env.agents.base import Agent
    from tradgames_env.position import Position
    from tradgames_env.rules.ruleset import Ruleset
    from tradgames_env.solving.table import Table as ExactTable
    from training.arena import ArenaResult, Plan
    from training.evaluate import Evaluation
    from training.play import Table

Game = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GAME")]
RuleOptions = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")]

Name = Annotated[str | None, tyro.conf.arg(metavar="NAME")]
AgentName = Annotated[str | None, tyro.conf.arg(metavar="AGENT")]
Text = Annotated[str | None, tyro.conf.arg(metavar="TEXT")]
File = Annotated[pathlib.Path | None, tyro.conf.arg(metavar="FILE")]
Folder = Annotated[pathlib.Path | None, tyro.conf.arg(metavar="FOLDER")]
Count = Annotated[int | None, tyro.conf.arg(metavar="INT")]
Asked = Annotated[
    Literal["moves", "policy"] | None,
    # Or a wrong word would be answered with "None" as one to choose.
    tyro.conf.arg(
        metavar="{moves,policy}", constructor=Literal["moves", "policy"], help_behavior_hint="(default: None)"
    ),
]

LadderName = Annotated[
    Literal["quick", "standard", "deep"] | None,
    tyro.conf.arg(
        metavar="{quick,standard,deep}",
        constructor=Literal["quick", "standard", "deep"],
        help_behavior_hint="(default: None)",
    ),
]

_STANDARD_OUTPUT = pathlib.Path("-")
_PERSON = "human"
_PERFECT = "perfect"
_NOBODY = "none"
_RESULT_FILE = "result.json"
_HINTS_BESIDE_A_PERSON = "mcts:400"


# -- train ---------------------------------------------------------------------------------------------------------


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
            from training.ranks import is_first
            from training.run import FINAL, TrainingError
            from training.train import train
        run_dir = self.run_dir or pathlib.Path("runs") / self.config.stem
        try:
            folder = train(config, run_dir, self.resume, console=progress())
        except (ConfigError, CheckpointError, DeviceError, EngineError) as error:
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


# -- evaluate ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Measure how strong an agent is: matches with sides swapped, 95 % intervals, ratings.

    Agents are random, greedy, alphabeta:DEPTH, mcts:SIMULATIONS, perfect, python:MODULE:FACTORY, or a trained policy,
    which also says the game and the variant: the folder of a checkpoint, onnx:FILE or hub:USER/REPO. Ctrl-C stops
    early and reports what was played.

    For example:
      tradgames evaluate runs/petteia/checkpoints/final --against random greedy --games 400 --report report
      tradgames evaluate mcts:200 --against random greedy --game puluc --all-pairs --json result.json
      tradgames evaluate greedy --against perfect --game puluc --variant mini --regret --report report
      tradgames evaluate mcts:200 --against perfect --game puluc --variant mini --regret --exploitability moves
    """

    agent: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="AGENT")]
    """Who is measured."""
    against: Annotated[tuple[str, ...], tyro.conf.arg(metavar="AGENT ...")]
    """The opponents."""
    games: int = 200
    """Games in each match, an even number."""
    game: Name = None
    """Name of the game; that of the checkpoint when not given."""
    variant: Name = None
    """Variant; that of the checkpoint, or box, when not given."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    seed: int = 0
    """Of openings, throws and agents."""
    opening_plies: int = 4
    """Random moves at the start of each game, so that games differ."""
    all_pairs: bool = False
    """The opponents also play each other."""
    anchor: AgentName = None
    """Whose rating is 0; random when it plays."""
    lockstep: int = 128
    """Games in progress at a time."""
    regret: bool = False
    """Judge each move of AGENT in these games by the table of exact values that tradgames solve makes: what it cost,
    how many were optimal, and the worst."""
    exploitability: Asked = None
    """Ask AGENT for every decision of a small solved game and find how much the best response to it gains: moves to
    hold fast the move it plays when it is asked once, policy to take the probabilities it gives."""
    json: File = None
    """Write the results to this file; - for standard output, without tables."""
    report: Folder = None
    """Write a page with tables, plots and a game to this folder."""
    run_dir: Folder = None
    """Training run whose curves the report shows; that of the checkpoint when not given."""
    record: bool = False
    """Note the results in the checkpoint AGENT, in its record and model card."""

    def run(self, command: str) -> int:
        """Play, print, write."""
        with mistakes():
            from training import evaluate
            from training.match import AgentError

            self._prepare_files()
            players = evaluate.load_players([self.agent, *self.against])
            ruleset = _agreed_ruleset(players, self.game, self.variant, self.option)
            table = self._exact_table(ruleset)
        try:
            with mistakes():
                evaluation = evaluate.evaluate_players(
                    players, ruleset, games=self.games, seed=self.seed, opening_plies=self.opening_plies,
                    all_pairs=self.all_pairs, anchor=self.anchor, lockstep=self.lockstep, console=progress(),
                )  # fmt: skip
                if self.json != _STANDARD_OUTPUT:
                    evaluate.print_evaluation(evaluation, tables())
                if table is not None:
                    evaluation = self._judged(evaluation, players, table)
        except AgentError as error:
            complain(str(error))
            return FAILED
        with mistakes():
            self._publish(evaluation, command)
        whole = self.exploitability is None or evaluation.exploitability is not None
        return FINE if whole and not evaluation.stopped else FAILED

    def _exact_table(self, ruleset: "Ruleset") -> "ExactTable | None":
        """The table by which AGENT is judged; None if that is not asked for."""
        if not self.regret and self.exploitability is None:
            return None
        from tradgames_env.agents.perfect import table_of
        from training.exploitability import check_size

        if self.exploitability is not None:
            check_size(ruleset)
        return table_of(ruleset)

    def _judged(self, evaluation: "Evaluation", players: "Mapping[str, Agent]", table: "ExactTable") -> "Evaluation":
        """The evaluation with what the table says of AGENT."""
        from training.exploitability import measure_exploitability
        from training.regret import measure_regret

        name = evaluation.agent
        if self.regret:
            regret = measure_regret(name, evaluation.matches, table)
            evaluation = dataclasses.replace(evaluation, regret=regret)
        if self.exploitability is None or evaluation.stopped:
            return evaluation
        try:
            found = measure_exploitability(
                name, players[name], table, self.exploitability, seed=self.seed, console=progress()
            )
        except KeyboardInterrupt:
            complain("interrupted while the agent was asked, so its exploitability is not known")
            return evaluation
        return dataclasses.replace(evaluation, exploitability=found)

    def _prepare_files(self) -> None:
        """Find out that something cannot be written before the games, not after them."""
        if self.record and not pathlib.Path(self.agent).is_dir():
            raise ValueError(f"--record needs the folder of a checkpoint, and {self.agent!r} is none")
        if self.json is not None and self.json != _STANDARD_OUTPUT:
            self.json.parent.mkdir(parents=True, exist_ok=True)
        if self.report is not None:
            self.report.mkdir(parents=True, exist_ok=True)
        if self.run_dir is not None and not _has_metrics(self.run_dir):
            raise ValueError(f"--run-dir takes the folder of a training run, and {self.run_dir} holds no metrics")

    def _publish(self, evaluation: "Evaluation", command: str) -> None:
        from training.evaluate import print_judgement, strength_summary, write_json
        from training.provenance import provenance

        facts = provenance(command, self.seed)
        result = evaluation.to_json() | {"provenance": facts}
        if self.json == _STANDARD_OUTPUT:
            say(json.dumps(result, indent=2))
        else:
            print_judgement(evaluation, tables())
            if self.json is not None:
                write_json(result, self.json)
        if not evaluation.matches:
            return
        if self.record:
            from training.checkpoint import record_strength

            settings = {"seed": evaluation.seed, "opening_plies": evaluation.opening_plies}
            summary = strength_summary(
                evaluation.agent, evaluation.matches, evaluation.ratings, evaluation.anchor, settings | facts
            )
            record_strength(pathlib.Path(self.agent), summary)
        if self.report is not None:
            from training.report import write_report

            path = write_report(evaluation, facts, self.report, self.run_dir or _run_of(pathlib.Path(self.agent)))
            progress().print(f"report: {path}", highlight=False, markup=False, soft_wrap=True)


def _run_of(checkpoint: pathlib.Path) -> pathlib.Path | None:
    """The run that a checkpoint lies in, None if it lies in none."""
    if not checkpoint.is_dir():
        return None
    return next((folder for folder in checkpoint.resolve().parents[:2] if _has_metrics(folder)), None)


def _has_metrics(folder: pathlib.Path) -> bool:
    from training.metrics import METRICS_FILE

    return (folder / METRICS_FILE).is_file()


# -- arena ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Arena:
    """Let every two of several agents play each other, and rate them all.

    Agents are named as for evaluate. Openings are random moves that a reference agent holds for balanced, each played
    from both sides. Every finished pair of games is kept: Ctrl-C stops, and the same command goes on from there. The
    folder then holds the pairs, the result as JSON and a page with the ladder.

    For example:
      tradgames arena random greedy mcts:100 --game puluc --games 400
      tradgames arena runs/yote/checkpoints/final --ladder standard --run-dir runs/yote-arena
      tradgames arena runs/new/checkpoints/final runs/old/checkpoints/final --sprt 0 20 --games 4000
    """

    agents: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[AGENT ...]")] = ()
    """Who plays."""
    ladder: LadderName = None
    """Also let a set of opponents of known kinds play: random, greedy, alphabeta and mcts up to some budget, perfect
    where the game is solved."""
    game: Name = None
    """Name of the game; that of a checkpoint when not given."""
    variant: Name = None
    """Variant; that of a checkpoint, or box, when not given."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    games: int = 200
    """Games of every two players, an even number; with --sprt the most they play."""
    sprt: Annotated[tuple[float, float] | None, tyro.conf.arg(metavar="ELO0 ELO1")] = None
    """Two players stop when their games tell which of these differences fits, the first named over the other."""
    alpha: float = 0.05
    """Chance that --sprt accepts ELO1 where ELO0 holds."""
    beta: float = 0.05
    """Chance that --sprt accepts ELO0 where ELO1 holds."""
    seed: int = 0
    """Of openings, throws and agents."""
    opening_plies: Annotated[tuple[int, int], tyro.conf.arg(metavar="FEWEST MOST")] = (4, 6)
    """Random moves at the start of each game."""
    reference: AgentName = None
    """Who judges openings, or none; alphabeta:3 in games without dice when not given, else none."""
    balance: float = 0.3
    """The largest value, for either side, of a balanced opening."""
    anchor: AgentName = None
    """Whose rating is 0; random when it plays, else the first player."""
    lockstep: int = 16
    """Games in progress at a time in each process."""
    workers: Count = None
    """Processes; as many as there are cores when not given. The games do not depend on it."""
    run_dir: Folder = None
    """Folder for all files; runs/arena-GAME-VARIANT when not given."""
    json: bool = False
    """Print JSON in place of tables."""

    def run(self, command: str) -> int:
        """Play what is left to play, print, write."""
        from concurrent.futures import BrokenExecutor

        with mistakes():
            from training import arena
            from training.ledger import PAIRS_FILE, Ledger
            from training.match import AgentError
            from training.provenance import provenance

            plan, workers = self._plan(), self._workers()
            folder = self.run_dir or pathlib.Path("runs") / f"arena-{plan.ruleset.game}-{plan.ruleset.variant}"
            facts = provenance(command, self.seed)
            ledger = Ledger(folder / PAIRS_FILE, plan.to_json(), facts)
            arena.arena_result(plan, ledger, self.anchor)  # or a wrong anchor would be told after all games
        if ledger.cut:
            complain(f"{ledger.path}: the last line was cut and is dropped; its games are played again")
        try:
            with mistakes():
                arena.play(plan, ledger, workers, progress())
        except (AgentError, BrokenExecutor) as error:
            complain(f"{error}; what was played is kept")
            return FAILED
        with mistakes():
            result = arena.arena_result(plan, ledger, self.anchor)
            self._publish(result, facts, folder)
        return FAILED if result.stopped else FINE

    def _plan(self) -> "Plan":
        from training import arena
        from training.evaluate import load_players
        from training.sprt import SequentialTest

        names = list(dict.fromkeys(self.agents))
        if len(names) < len(self.agents):
            raise ValueError("each player can take part once")
        players = load_players(names)
        ruleset = _agreed_ruleset(players, self.game, self.variant, self.option)
        if self.ladder is not None:
            from training.ladders import rungs

            players |= load_players([name for name in rungs(self.ladder, ruleset) if name not in players])
        reference = arena.default_reference(ruleset) if self.reference is None else self.reference
        return arena.Plan(
            players=tuple(players), weights=arena.weights_of(players), ruleset=ruleset, games=self.games,
            seed=self.seed, plies=self.opening_plies, reference=None if reference == _NOBODY else reference,
            limit=self.balance, lockstep=self.lockstep,
            test=None if self.sprt is None else SequentialTest(*self.sprt, self.alpha, self.beta),
        )  # fmt: skip

    def _workers(self) -> int:
        from tradgames_env.processors import cores

        count = cores() if self.workers is None else self.workers
        if count < 1:
            raise ValueError(f"--workers is 1 or more, not {count}")
        return count

    def _publish(self, result: "ArenaResult", facts: "Mapping[str, Any]", folder: pathlib.Path) -> None:
        from training.arena import print_arena
        from training.evaluate import write_json

        data = result.to_json() | {"provenance": facts}
        if self.json:
            say(json.dumps(data, indent=2))
        else:
            print_arena(result, tables())
        write_json(data, folder / _RESULT_FILE)
        if not result.matches:
            return
        from training.arena_page import write_arena_page

        path = write_arena_page(result, facts, folder)
        progress().print(f"page: {path}", highlight=False, markup=False, soft_wrap=True)


# -- play ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Play:
    """Play a game in the terminal, against an agent or against a person beside you.

    A checkpoint folder in place of the game plays its game, as the opponent.

    For example:
      tradgames play checkpoints/petteia
      tradgames play petteia --variant fr6 --opponent greedy
      tradgames play --opponent runs/petteia/checkpoints/final --side black
      tradgames play yote --opponent human
    """

    game: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[GAME]")] = None
    """Name of the game; that of the checkpoint when not given."""
    opponent: str = "mcts:200"
    """Who plays the other side: an agent's name, the folder of a checkpoint, or human."""
    side: Literal["natural", "black", "random"] = "natural"
    """Your side; natural begins unless the rules say otherwise."""
    hint: AgentName = None
    """Agent who gives hints; the opponent, or mcts:400 beside a person, when not given."""
    variant: Name = None
    """Variant; that of the checkpoint, or box, when not given."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    text: Text = None
    """Begin at this position."""
    seed: Count = None
    """Of throws and agents; another game every time when not given."""

    def run(self, command: str) -> int:
        """Play one game."""
        with mistakes():
            self._table().play()
        return FINE

    def _table(self) -> "Table":
        import numpy as np

        from tradgames_env.agents import load_agent
        from tradgames_env.position import Position
        from training.play import Table

        game: str | None = self.game
        name = self.opponent
        if game is not None and pathlib.Path(game).is_dir():
            name, game = game, None
        opponent = None if name == _PERSON else load_agent(name)
        bound = {} if opponent is None else {name: opponent}
        ruleset = _agreed_ruleset(bound, game, self.variant, self.option)
        if _PERFECT in (name, self.hint):
            from tradgames_env.agents.perfect import table_of

            table_of(ruleset)  # or the lack of a table would be told after the first move
        position = Position.from_ruleset(ruleset, self.text, chance="explicit")
        hint_agent = load_agent(self.hint) if self.hint else opponent or load_agent(_HINTS_BESIDE_A_PERSON)
        sequence = np.random.SeedSequence(self.seed)
        agent_word, side_word = (int(word) for word in sequence.generate_state(2))
        for agent in {id(agent): agent for agent in (opponent, hint_agent) if agent is not None}.values():
            agent.seed(agent_word)
        black = self.side == "black" or (self.side == "random" and side_word % 2 == 1)
        players = (opponent, None) if black else (None, opponent)
        return Table(position, players, hint_agent=hint_agent, seed=sequence.spawn(1)[0], ask=input, say=say)


# -- export --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Export:
    """Write the network of a checkpoint as an ONNX file, for ONNX Runtime and for programs in other languages.

    The file is read back and compared with the checkpoint on positions from play before it gets its name.

    For example:
      tradgames export checkpoints/petteia --output petteia.onnx
      tradgames evaluate onnx:petteia.onnx --against greedy
    """

    checkpoint: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="CHECKPOINT")]
    """Folder of the checkpoint."""
    output: Annotated[pathlib.Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")]
    """The file, such as petteia.onnx."""
    game: Name = None
    """Name of the game, where the checkpoint plays several."""
    variant: Name = None
    """Variant, where the checkpoint plays several."""

    def run(self, command: str) -> int:
        """Write the file and say how near it comes."""
        with mistakes():
            try:
                from training.export import ExportError, export_onnx
            except ModuleNotFoundError as error:
                raise UserError(
                    f"exporting needs {error.name}, which is not installed: pip install 'tradgames-env[onnx,train]'"
                ) from error
            try:
                export = export_onnx(self.checkpoint, self.output, game=self.game, variant=self.variant)
            except ExportError as error:
                complain(str(error))
                return FAILED
        spec = shlex.quote(f"onnx:{self.output}")
        say(
            f"file: {self.output}, at most {export.difference:.1g} from the checkpoint\n"
            f"next: {PROGRAM} evaluate {spec} --against random greedy"
        )
        return FINE


# -- solve ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Solve:
    """Compute the exact value of every position of a variant, for the agent called perfect.

    Ctrl-C stops; the same command goes on from there. The table is kept in the folder that the environment variable
    TRADGAMES_TABLES names, or in the user's cache folder.

    For example:
      tradgames solve puluc --variant mini
      tradgames solve puluc --option pieces=4 --dry-run
      tradgames solve yut_nori --variant duel --json
    """

    game: Game
    """Name of the game."""
    variant: str = "box"
    """Variant."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    part: Name = None
    """Solve only this part of the game, such as endings-2v3."""
    tolerance: float = 1e-6
    """Games with dice: done when one more step changes no value by more than this."""
    memory: Annotated[float | None, tyro.conf.arg(metavar="GIB")] = None
    """Memory that may be used; what is free when not given."""
    threads: Count = None
    """Threads; as many as there are cores when not given."""
    again: bool = False
    """Solve anew even if the table is there."""
    check: bool = False
    """Games with dice: put the table to the test, by a million positions and a hundred thousand games."""
    dry_run: bool = False
    """Only say what it takes."""
    json: bool = False
    """Print JSON."""

    def run(self, command: str) -> int:
        """Solve and print the value of the start."""
        with mistakes():
            from tradgames_env.solving.indexing import TableError
            from training import solve

            ruleset = _ruleset(self.game, self.variant, self.option)
            request = solve.Request(
                ruleset, self.part, self.tolerance, self.memory, self.threads, self.again, self.check
            )
            planned = solve.planned(request)
        if self.dry_run:
            say(json.dumps(planned, indent=2) if self.json else solve.plan_text(ruleset, planned))
            return FINE
        try:
            result = solve.solved(request, command, console=progress())
        except TableError as error:
            raise UserError(str(error)) from error
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
            return FAILED
        except MemoryError:
            complain("there is not enough memory")
            return FAILED
        except KeyboardInterrupt:
            complain("interrupted; what is solved so far is kept, and the same command goes on from there")
            return FAILED
        say(json.dumps(result, indent=2) if self.json else solve.result_text(ruleset, result))
        return FINE


# -- perft ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Perft:
    """Count the positions a number of moves ahead: the usual check that rules are right. Every throw is a branch.

    For example:
      tradgames perft petteia --depth 4
      tradgames perft yote --depth 1 --split --text "x5/6/2ox2/6/5x o 5 4 0 - - -"
    """

    game: Game
    """Name of the game."""
    depth: int
    """Moves ahead."""
    variant: str = "box"
    """Variant."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    text: Text = None
    """Begin at this position."""
    split: bool = False
    """Also count behind each first move."""
    json: bool = False
    """Print JSON."""

    def run(self, command: str) -> int:
        """Count and print."""
        with mistakes():
            from tradgames_env.position import Position, count_positions
            from training.perft import split_counts

            ruleset = _ruleset(self.game, self.variant, self.option)
            position = Position.from_ruleset(ruleset, self.text, chance="explicit")
            start = time.perf_counter()
            split = split_counts(position, self.depth) if self.split else {}
            count = sum(split.values()) if self.split else count_positions(position, self.depth)
        seconds = time.perf_counter() - start
        if self.json:
            result: dict[str, Any] = {"game": ruleset.game, "variant": ruleset.variant, "options": ruleset.overrides}
            result |= {"text": position.text(), "depth": self.depth, "count": count, "seconds": seconds}
            say(json.dumps(result | ({"split": split} if self.split else {}), indent=2))
            return FINE
        for move, leaves in split.items():
            say(f"{leaves:>14,}  {move}")
        say(f"{ruleset.label}, depth {self.depth}: {count:,} positions in {seconds:.2f} s")
        return FINE


# -- bench ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure the speed of the package on this machine, beside other libraries that are installed.

    For example:
      tradgames bench
      tradgames bench petteia puluc --seconds 1 --json speed.json
      tradgames bench --compare --grow --json speed.json --plots plots
    """

    games: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[GAME ...]")] = ()
    """Names of games; all when none is given."""
    compare: bool = False
    """Also measure the other libraries: PettingZoo, OpenSpiel, Pgx, EnvPool, as far as they are installed."""
    grow: bool = False
    """Also measure how cost grows with batch size, board size and threads."""
    seconds: float = 0.5
    """Of each repetition."""
    repetitions: int = 5
    """Of each measurement; the median is reported."""
    json: File = None
    """Write the figures to this file; - for standard output, without a table."""
    plots: Folder = None
    """Draw pictures into this folder."""

    def run(self, command: str) -> int:
        """Measure, print, draw, write."""
        import tradgames_env
        from training import bench, evaluate
        from training.bench_run import bench_all

        games = self.games or tradgames_env.games()
        with mistakes():
            for folder in (self.plots, None if self.json in (None, _STANDARD_OUTPUT) else self.json.parent):
                if folder is not None:
                    folder.mkdir(parents=True, exist_ok=True)
            for game in games:
                _ruleset(game, "box", ())
            bench.check_amounts(self.seconds, self.repetitions)
        result = bench_all(
            games, command, compare=self.compare, grow=self.grow,
            seconds=self.seconds, repetitions=self.repetitions, console=progress(),
        )  # fmt: skip
        if self.json == _STANDARD_OUTPUT:
            say(json.dumps(result, indent=2))
        else:
            bench.print_result(result, tables())
        if self.json not in (None, _STANDARD_OUTPUT):
            evaluate.write_json(result, self.json)
        if self.plots is not None:
            from training import bench_plots

            bench_plots.draw(result, self.plots)
        return FINE


# -- render --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Render:
    """Draw a position: as text in the terminal, or as a picture in a file.

    For example:
      tradgames render petteia --moves "D1 -> D4, D8 -> D5"
      tradgames render yut_nori --text "5:1,w:3 w:4 o 2" -o board.svg
    """

    game: Game
    """Name of the game."""
    variant: str = "box"
    """Variant."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    text: Text = None
    """The position; the start when not given."""
    moves: str = ""
    """Moves to play first, separated by a comma and a space, or by semicolons."""
    seed: int = 0
    """Of the throws that the moves call for."""
    output: Annotated[pathlib.Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = None
    """File that ends in .svg, .png or .txt; the terminal when not given."""
    size: int = 480
    """Width of the picture in pixels."""

    def run(self, command: str) -> int:
        """Draw."""
        with mistakes():
            position = self._position()
            if self.output is not None:
                from tradgames_env.rendering import save

                save(position, self.output, size=self.size)
        if self.output is None:
            say(str(position))
        return FINE

    def _position(self) -> "Position":
        from tradgames_env.position import Position

        moves = [move for move in re.split(r",\s+|;", self.moves) if move.strip()]
        ruleset = _ruleset(self.game, self.variant, self.option)
        # A position that is only shown keeps the throw that is due in it.
        position = Position.from_ruleset(ruleset, self.text, seed=self.seed, chance="auto" if moves else "explicit")
        for move in moves:
            position.push(move.strip())
        return position


# -- what they share -----------------------------------------------------------------------------------------------


def _ruleset(game: str, variant: str, option: Sequence[str]) -> "Ruleset":
    from tradgames_env.rules.ruleset import load_ruleset

    plain = load_ruleset(game, variant)
    return load_ruleset(game, variant, **rule_options(plain.options, option)) if option else plain


def _agreed_ruleset(
    players: "Mapping[str, Agent]", game: str | None, variant: str | None, option: Sequence[str]
) -> "Ruleset":
    from training.evaluate import agreed_ruleset

    if not option:
        return agreed_ruleset(players, game, variant, {})
    # Which options there are depends on the game, which a checkpoint may say.
    plain = agreed_ruleset(players if game is None else {}, game, variant, {})
    return agreed_ruleset(players, game, variant, rule_options(plain.options, option))
