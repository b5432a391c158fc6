"""``tradgames arena``."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from training.commands.arguments import AgentName, Count, Folder, LadderName, Name, RuleOptions, agreed_ruleset
from training.console import FAILED, FINE, complain, mistakes, progress, say, tables

if TYPE_CHECKING:
    from training.arena import ArenaResult, Plan

_NOBODY = "none"
_RESULT_FILE = "result.json"


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
        ruleset = agreed_ruleset(players, self.game, self.variant, self.option)
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
