"""A round robin of any agents: every two meet in pairs of games with sides swapped, and all are rated together.

Openings are random moves that a cheap reference agent holds for balanced. The pairs are played in blocks, each a pure
function of the settings, so that what is played does not depend on how many processes play it, and an arena that was
stopped goes on as if it never had been.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from tradgames_env.agents import load_agent
from tradgames_env.agents.alphabeta import plays as lacks_dice
from tradgames_env.agents.base import Agent
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from training.evaluate import (
    DEFAULT_ANCHOR,
    elo_interval_text,
    elo_text,
    match_json,
    print_matches,
    rate_players,
)
from training.ledger import Ledger, PairRecord
from training.match import LOCKSTEP, MatchResult, Openings, play_pairs, seed_agents
from training.ratings import Rating
from training.sprt import SequentialTest, Verdict
from training.workers import Engine, processes

DEFAULT_REFERENCE = "alphabeta:3"
"""Who judges openings of games without dice; elsewhere luck evens out, and both games of a pair share it."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What an arena plays: all that its results depend on, and nothing else.

    Attributes:
        players: agents as ``load_agent`` takes them, by which they also go in tables.
        weights: by player, the checksum of a checkpoint's weights; others are not in it.
        ruleset: the game and its options.
        games: of every two players, an even number; with a test the most they play.
        seed: of openings, throws and agents.
        plies: fewest and most random moves at the start of a game.
        reference: agent who holds openings for balanced, None for any opening.
        limit: the largest value of a balanced opening, see ``match.Openings``.
        lockstep: games of a block, which are in progress together, an even number.
        test: when two players have met often enough; None to play all games.

    Raises:
        ValueError: a number is out of range, fewer than two play, or one plays twice.
    """

    players: tuple[str, ...]
    weights: Mapping[str, str]
    ruleset: Ruleset
    games: int = 200
    seed: int = 0
    plies: tuple[int, int] = (4, 6)
    reference: str | None = None
    limit: float = 0.3
    lockstep: int = 16
    test: SequentialTest | None = None

    def __post_init__(self) -> None:
        if len(self.players) < 2 or len(set(self.players)) < len(self.players):
            raise ValueError(f"an arena takes two players or more, each once, not {', '.join(self.players) or 'none'}")
        for name, number in (("games", self.games), ("lockstep", self.lockstep)):
            if number < 2 or number % 2:
                raise ValueError(f"{name} must be an even number, 2 or more, for pairs, not {number}")
        if not 0 <= self.plies[0] <= self.plies[1]:
            raise ValueError(
                f"openings have from 0 moves up to as many or more, not {self.plies[0]} to {self.plies[1]}"
            )
        if not 0.0 < self.limit <= 1.0:
            raise ValueError(f"the limit of a balanced opening lies above 0 and up to 1, not at {self.limit:g}")
        if self.seed < 0:
            raise ValueError(f"the seed is 0 or more, not {self.seed}")

    @property
    def meetings(self) -> tuple[tuple[str, str], ...]:
        """Every two players."""
        return tuple(itertools.combinations(self.players, 2))

    def to_json(self) -> dict[str, Any]:
        """The settings, by which an arena is known when it goes on."""
        ruleset = self.ruleset
        return {
            "players": list(self.players),
            "weights": dict(self.weights),
            "game": ruleset.game,
            "variant": ruleset.variant,
            "options": ruleset.overrides,
            "rules_version": ruleset.rules.version,
            "games": self.games,
            "seed": self.seed,
            "opening_plies": list(self.plies),
            "reference": self.reference,
            "balance_limit": None if self.reference is None else self.limit,
            "lockstep": self.lockstep,
            "sprt": None if self.test is None else dataclasses.asdict(self.test),
        }


def weights_of(players: Mapping[str, Agent]) -> dict[str, str]:
    """Checksums of the weights of those players that are checkpoints, by name."""
    checkpoints = {name: getattr(agent, "checkpoint", None) for name, agent in players.items()}
    return {name: checkpoint.record.sha256 for name, checkpoint in checkpoints.items() if checkpoint is not None}


def default_reference(ruleset: Ruleset) -> str | None:
    """Who judges the openings of a game when nobody is named."""
    return DEFAULT_REFERENCE if lacks_dice(ruleset) else None


# -- playing ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Block:
    """Pairs ``first`` to ``last`` - 1 of one meeting. The ruleset travels as text, since its kernels cannot."""

    meeting: int
    first: int
    last: int
    players: tuple[str, str]
    game: str
    variant: str
    options: Mapping[str, Any]
    seed: int
    plies: tuple[int, int]
    reference: str | None
    limit: float


@dataclasses.dataclass(frozen=True)
class BlockResult:
    """What came of a block."""

    meeting: int
    pairs: tuple[PairRecord, ...]


def play_block(block: Block) -> BlockResult:
    """Play a block; the same one gives the same games in any process, as far as its agents repeat themselves.

    Raises:
        ValueError: an agent cannot be loaded or cannot play this game.
        AgentError: an agent played an illegal move.
    """
    ruleset = load_ruleset(block.game, block.variant, **block.options)
    agents = (_ready_agent(block.players[0], ruleset), _ready_agent(block.players[1], ruleset))
    seed_agents(agents, np.random.SeedSequence([block.seed, block.meeting, block.first]))
    reference = None if block.reference is None else load_agent(block.reference)
    if reference is not None:
        reference.seed(block.seed)
    openings = Openings(ruleset, block.seed, block.plies, reference, block.limit)
    pairs = range(block.first, block.last)
    played = play_pairs(agents, openings, pairs, lockstep=max(LOCKSTEP, 2 * len(pairs)))
    if played.stopped:
        raise KeyboardInterrupt
    records = zip(played.records[::2], played.records[1::2], strict=True)
    return BlockResult(block.meeting, tuple(PairRecord(pair, played.seconds_per_move) for pair in records))


@functools.lru_cache(maxsize=64)
def _ready_agent(spec: str, ruleset: Ruleset) -> Agent:
    """An agent of this process that has made a move, so that what it loads or compiles first is not timed later."""
    agent = load_agent(spec)
    agent.act_many([Position.from_ruleset(ruleset, seed=0)])
    return agent


def run_arena(
    plan: Plan, ledger: Ledger, engine: Engine, *, on_progress: Callable[[int, int], None] | None = None
) -> bool:
    """Play what is not in the ledger yet; False if a keyboard interrupt stopped it early.

    Args:
        plan: what to play.
        ledger: opened for this plan.
        engine: plays the blocks; ``map`` does it in this process.
        on_progress: called with (games that count, games there may be in the end) whenever a block is finished.

    Raises:
        ValueError: as ``play_block``.
        AgentError: an agent played an illegal move.
        OSError: the ledger cannot be written.
    """
    try:
        for result in engine(play_block, _blocks(plan, ledger)):
            ledger.add(plan.meetings[result.meeting], result.pairs)
            if on_progress is not None:
                done, left = _progress(plan, ledger)
                on_progress(done, done + left)
    except KeyboardInterrupt:
        return False
    return True


def play(plan: Plan, ledger: Ledger, workers: int, console: Console | None = None) -> bool:
    """``run_arena`` in this many processes.

    Args:
        plan: what to play.
        ledger: opened for this plan.
        workers: processes.
        console: where a progress bar is shown if it is a terminal; nowhere when None.

    Raises:
        ValueError: as ``run_arena``.
        AgentError: the same.
        OSError: the same.
        BrokenExecutor: a process was killed.
    """
    done, left = _progress(plan, ledger)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("games"), TimeElapsedColumn(), TimeRemainingColumn())
    visible = console is not None and console.is_terminal
    with Progress(*columns, console=console, disable=not visible) as bar, processes(workers) as engine:
        task = bar.add_task("", total=done + left, completed=done)
        return run_arena(
            plan, ledger, engine, on_progress=lambda games, total: bar.update(task, completed=games, total=total)
        )


def _blocks(plan: Plan, ledger: Ledger) -> Iterator[Block]:
    """What is left to play, every meeting in turn, so that a stopped arena knows something of each."""
    for first in range(0, plan.games // 2, plan.lockstep // 2):
        last = min(first + plan.lockstep // 2, plan.games // 2)
        for number, meeting in enumerate(plan.meetings):
            known = ledger.pairs(meeting)
            if all(pair in known for pair in range(first, last)) or _counted(plan, known)[1] is not None:
                continue
            ruleset = plan.ruleset
            yield Block(
                number, first, last, meeting, ruleset.game, ruleset.variant, ruleset.overrides,
                plan.seed, plan.plies, plan.reference, plan.limit,
            )  # fmt: skip


def _progress(plan: Plan, ledger: Ledger) -> tuple[int, int]:
    done = left = 0
    for meeting in plan.meetings:
        pairs, verdict = _counted(plan, ledger.pairs(meeting))
        done += 2 * len(pairs)
        left += 0 if verdict is not None else plan.games - 2 * len(pairs)
    return done, left


def _counted(plan: Plan, known: Mapping[int, PairRecord]) -> tuple[list[PairRecord], Verdict | None]:
    """The pairs of a meeting that count, and what the test says of them.

    The test looks at whole blocks in their order. Those that other processes played beyond its verdict do not count,
    or the result would depend on how many processes there are.
    """
    if plan.test is None:
        return [known[pair] for pair in sorted(known)], None
    counted: list[PairRecord] = []
    for first in range(0, plan.games // 2, plan.lockstep // 2):
        block = range(first, min(first + plan.lockstep // 2, plan.games // 2))
        if not all(pair in known for pair in block):
            break
        counted += [known[pair] for pair in block]
        verdict = plan.test.verdict([pair.points for pair in counted])
        if verdict is not None:
            return counted, verdict
    return counted, None


# -- results ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Standing:
    """A player's row of the ladder.

    Attributes:
        rating: Elo and interval.
        wins: games won, against all.
        draws: games drawn or stopped.
        losses: games lost.
        seconds_per_move: wall time, median over blocks of games and matches; batched agents share it among the games.
    """

    rating: Rating
    wins: int
    draws: int
    losses: int
    seconds_per_move: float

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Points a game."""
        return (self.wins + self.draws / 2) / self.games


@dataclasses.dataclass(frozen=True)
class ArenaResult:
    """What an arena came to.

    Attributes:
        plan: what was played.
        matches: of every two who met.
        verdicts: of the test, one for each match; None where it is open or there is no test.
        standings: the ladder, best first.
        anchor: who is held at 0.
        stopped: there is more to play.
    """

    plan: Plan
    matches: tuple[MatchResult, ...]
    verdicts: tuple[Verdict | None, ...]
    standings: tuple[Standing, ...]
    anchor: str
    stopped: bool

    @property
    def games(self) -> int:
        """Games that count."""
        return sum(match.games for match in self.matches)

    def to_json(self) -> dict[str, Any]:
        """The result as JSON; the fields of a match are those of ``match_json``."""
        return {
            **self.plan.to_json(),
            "anchor": self.anchor,
            "stopped": self.stopped,
            "ladder": [
                {
                    **dataclasses.asdict(row.rating),
                    "wins": row.wins,
                    "draws": row.draws,
                    "losses": row.losses,
                    "score": row.score,
                    "seconds_per_move": row.seconds_per_move,
                }
                for row in self.standings
            ],
            "matches": [
                match_json(match) | self._test_json(match, verdict)
                for match, verdict in zip(self.matches, self.verdicts, strict=True)
            ],
        }

    def _test_json(self, match: MatchResult, verdict: Verdict | None) -> dict[str, Any]:
        if self.plan.test is None:
            return {}
        return {"llr": self.plan.test.ratio(match.pair_scores), "accepted": verdict}


def arena_result(plan: Plan, ledger: Ledger, anchor: str | None = None) -> ArenaResult:
    """Count what is in the ledger and rate the players.

    Args:
        plan: what it was opened for.
        ledger: what was played.
        anchor: who is held at 0; by default "random" if it plays, else the first player.

    Raises:
        ValueError: the anchor does not play.
    """
    anchor = anchor or (DEFAULT_ANCHOR if DEFAULT_ANCHOR in plan.players else plan.players[0])
    if anchor not in plan.players:
        raise ValueError(f"the anchor {anchor!r} does not play; players: {', '.join(plan.players)}")
    matches, verdicts = [], []
    for one, other in plan.meetings:
        pairs, verdict = _counted(plan, ledger.pairs((one, other)))
        if not pairs:
            continue
        done = verdict is not None or 2 * len(pairs) == plan.games
        matches.append(_match(plan, one, other, pairs, stopped=not done))
        verdicts.append(verdict)
    ratings = rate_players(matches, anchor, plan.seed)
    standings = tuple(_standing(rating, matches) for rating in ratings)
    stopped = len(matches) < len(plan.meetings) or any(match.stopped for match in matches)
    return ArenaResult(plan, tuple(matches), tuple(verdicts), standings, anchor, stopped)


def _match(plan: Plan, one: str, other: str, pairs: Sequence[PairRecord], *, stopped: bool) -> MatchResult:
    own, others = np.median([pair.seconds_per_move for pair in pairs], axis=0)
    return MatchResult(
        agent=one,
        opponent=other,
        ruleset=plan.ruleset,
        seed=plan.seed,
        records=tuple(record for pair in pairs for record in pair.games),
        stopped=stopped,
        seconds_per_move=(float(own), float(others)),
    )


def _standing(rating: Rating, matches: Sequence[MatchResult]) -> Standing:
    as_first = [match for match in matches if match.agent == rating.name]
    as_second = [match for match in matches if match.opponent == rating.name]
    seconds = [match.seconds_per_move[0] for match in as_first] + [match.seconds_per_move[1] for match in as_second]
    return Standing(
        rating=rating,
        wins=sum(match.wins for match in as_first) + sum(match.losses for match in as_second),
        draws=sum(match.draws for match in (*as_first, *as_second)),
        losses=sum(match.losses for match in as_first) + sum(match.wins for match in as_second),
        seconds_per_move=float(np.median(seconds)),
    )


# -- for people ------------------------------------------------------------------------------------------------------


def print_arena(result: ArenaResult, console: Console) -> None:
    """The ladder and the matches as tables."""
    print_matches(f"{result.plan.ruleset.label}: every two players", result.matches, console)
    for match, verdict in zip(result.matches, result.verdicts, strict=True):
        if result.plan.test is not None:
            text = f"{match.agent} – {match.opponent}: {test_text(result.plan.test, match, verdict)}"
            console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)
    table = Table(title=f"Ladder, {result.anchor} = 0", title_justify="left")
    for heading in ("player", "Elo", "95 %", "games", "score", "drawn", "ms a move"):
        table.add_column(heading, justify="left" if heading == "player" else "right")
    for row in result.standings:
        table.add_row(*ladder_cells(row))
    console.print(table)
    if result.stopped:
        console.print(f"Stopped after {result.games} games; the same command goes on from there.")


def ladder_cells(row: Standing) -> tuple[str, ...]:
    """Player, Elo, interval, games, score, share of draws, milliseconds a move."""
    rating = row.rating
    return (
        rating.name,
        elo_text(rating.elo),
        elo_interval_text(rating),
        str(row.games),
        f"{100 * row.score:.1f} %",
        f"{100 * row.draws / row.games:.1f} %",
        f"{1000 * row.seconds_per_move:.2g}",
    )


def test_text(test: SequentialTest, match: MatchResult, verdict: Verdict | None) -> str:
    """What the test says of a match, in words."""
    elos = {"elo0": test.elo0, "elo1": test.elo1}
    low, high = test.bounds
    said = "undecided" if verdict is None else f"{elos[verdict]:g} Elo accepted"
    other = "" if verdict is None else f" over {elos['elo0' if verdict == 'elo1' else 'elo1']:g}"
    return f"{said}{other} after {match.games} games, LLR {test.ratio(match.pair_scores):.2f} ({low:.2f} to {high:.2f})"
