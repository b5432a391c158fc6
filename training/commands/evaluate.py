"""``tradgames evaluate``."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import tyro

from training.commands.arguments import AgentName, Asked, File, Folder, Name, RuleOptions, agreed_ruleset
from training.console import FAILED, FINE, complain, mistakes, progress, say, tables

if TYPE_CHECKING:
    from tradgames_env.agents.base import Agent
    from tradgames_env.rules.ruleset import Ruleset
    from tradgames_env.solving.table import Table as ExactTable
    from training.evaluate import Evaluation

_STANDARD_OUTPUT = pathlib.Path("-")


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
            ruleset = agreed_ruleset(players, self.game, self.variant, self.option)
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

            path = write_report(evaluation, facts, self.report, self.run_dir or _run_of(self.agent))
            progress().print(f"report: {path}", highlight=False, markup=False, soft_wrap=True)


def _run_of(agent: str) -> pathlib.Path | None:
    """The run that a checkpoint lies in, with or without a number after it; None if it lies in none."""
    from tradgames_env.agents import split_effort

    checkpoint = pathlib.Path(split_effort(agent)[0])
    if not checkpoint.is_dir():
        return None
    return next((folder for folder in checkpoint.resolve().parents[:2] if _has_metrics(folder)), None)


def _has_metrics(folder: pathlib.Path) -> bool:
    from training.metrics import METRICS_FILE

    return (folder / METRICS_FILE).is_file()
