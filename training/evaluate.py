"""Measures how strong an agent is: matches against others, with intervals, and ratings fitted to all of them."""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from tradgames_env.agents import AgentSpec, load_agent
from tradgames_env.agents.base import Agent
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from training.durable import write_file
from training.exploitability import Exploitability, exploitability_lines
from training.intervals import Interval, wilson
from training.match import LOCKSTEP, MatchResult, play_match
from training.ratings import PairResults, Rating, fit_ratings
from training.regret import RegretReport, print_regret

DEFAULT_ANCHOR = "random"

TOO_REPETITIVE = 0.1
"""A match in which a larger share of the games repeats another one says less than its intervals claim."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Matches of one agent, perhaps also of its opponents among each other, and the ratings that follow.

    Attributes:
        agent: name of the agent that was measured.
        ruleset: the game and its options.
        matches: results, those of ``agent`` first; a match of which no pair of games was finished is left out.
        ratings: best first.
        anchor: who is held at 0.
        games: games asked for in each match.
        seed: of all matches.
        opening_plies: random moves at the start of each game.
        stopped: it was interrupted.
        regret: of ``agent``'s moves in these matches, None where it was not asked for.
        exploitability: of ``agent``, None where it was not asked for.
    """

    agent: str
    ruleset: Ruleset
    matches: tuple[MatchResult, ...]
    ratings: tuple[Rating, ...]
    anchor: str
    games: int
    seed: int
    opening_plies: int
    stopped: bool
    regret: RegretReport | None = None
    exploitability: Exploitability | None = None

    def to_json(self) -> dict[str, Any]:
        """Everything but the single games, ready for ``json.dump``."""
        return {
            "agent": self.agent,
            "game": self.ruleset.game,
            "variant": self.ruleset.variant,
            "options": self.ruleset.overrides,
            "rules_version": self.ruleset.rules.version,
            "games": self.games,
            "seed": self.seed,
            "opening_plies": self.opening_plies,
            "stopped": self.stopped,
            "matches": [match_json(match) for match in self.matches],
            "anchor": self.anchor,
            "ratings": [dataclasses.asdict(rating) for rating in self.ratings],
            "regret": self.regret and self.regret.to_json(),
            "exploitability": self.exploitability and self.exploitability.to_json(),
        }


def strength_summary(
    agent: str, matches: Sequence[MatchResult], ratings: Sequence[Rating], anchor: str, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """What a checkpoint's record says of its strength: scores by opponent with 95 % intervals, and how they came about.

    Args:
        agent: name of the checkpoint.
        matches: those in which it is the first agent count.
        ratings: of everyone.
        anchor: who is held at 0.
        facts: from ``provenance``, and settings of the matches.
    """
    opponents = {
        match.opponent: {
            "games": match.games,
            "wins": match.wins,
            "draws": match.draws,
            "losses": match.losses,
            "score": round(match.score, 4),
            "score_interval": [round(limit, 4) for limit in match.score_interval],
        }
        for match in matches
        if match.agent == agent
    }
    own = {rating.name: rating for rating in ratings}.get(agent)
    elo = None
    if own is not None and own.elo is not None and own.low is not None and own.high is not None:
        elo = {"anchor": anchor, "elo": round(own.elo), "interval": [round(own.low), round(own.high)]}
    return {"opponents": opponents, "rating": elo, **facts}


def match_json(match: MatchResult) -> dict[str, Any]:
    """A match as JSON; intervals are 95 %, shares in [0, 1], ``by_*`` are wins, draws and losses of the agent."""
    return {
        "agent": match.agent,
        "opponent": match.opponent,
        "games": match.games,
        "wins": match.wins,
        "draws": match.draws,
        "losses": match.losses,
        "truncated": match.truncated,
        "score": match.score,
        "score_interval": list(match.score_interval),
        **_rates({"win": match.wins, "draw": match.draws, "loss": match.losses}, match.games),
        "repeated_share": match.repeated,
        "mean_length": match.mean_length,
        "by_side": {name: list(tally) for name, tally in match.by_side.items()},
        "by_reason": {name: list(tally) for name, tally in match.by_reason.items()},
        "seconds_per_move": {"agent": match.seconds_per_move[0], "opponent": match.seconds_per_move[1]},
        "pair_scores": list(match.pair_scores),
        "stopped": match.stopped,
    }


def _rates(counts: Mapping[str, int], games: int) -> dict[str, Any]:
    rates: dict[str, Any] = {f"{name}_rate": count / games for name, count in counts.items()}
    return rates | {f"{name}_rate_interval": list(wilson(count, games)) for name, count in counts.items()}


def evaluate(agent: AgentSpec, opponents: Sequence[AgentSpec], ruleset: Ruleset, **settings: Any) -> Evaluation:
    """Let ``agent`` play a match against each opponent and rate them all.

    Args:
        agent: anything ``load_agent`` takes.
        opponents: the same; at least one, nobody twice.
        ruleset: the game and its options.
        **settings: see ``evaluate_players``.

    Raises:
        ValueError: as ``load_agent`` and ``evaluate_players``; or a player is named twice.
        AgentError: an agent played an illegal move.
    """
    return evaluate_players(load_players([agent, *opponents]), ruleset, **settings)


def evaluate_players(
    players: Mapping[str, Agent],
    ruleset: Ruleset,
    *,
    games: int = 200,
    seed: int = 0,
    opening_plies: int = 4,
    all_pairs: bool = False,
    anchor: str | None = None,
    lockstep: int = LOCKSTEP,
    console: Console | None = None,
) -> Evaluation:
    """Let the first player play a match against each other one and rate them all. A keyboard interrupt ends it early.

    Args:
        players: agents by name, the one to be measured first.
        ruleset: the game and its options.
        games: in each match, an even number.
        seed: of all matches, which therefore share their openings.
        opening_plies: random moves at the start of each game.
        all_pairs: the opponents also play each other, which steadies the ratings.
        anchor: name of the player held at 0; by default "random" if it plays, else the first opponent.
        lockstep: games in progress at a time, see ``play_match``.
        console: where a progress bar is shown if it is a terminal; nowhere when None.

    Raises:
        ValueError: as ``play_match``; there is no opponent; or the anchor does not play.
        AgentError: an agent played an illegal move.
    """
    names = list(players)
    if len(names) < 2:
        raise ValueError("an evaluation needs at least one opponent")
    anchor = anchor or (DEFAULT_ANCHOR if DEFAULT_ANCHOR in names else names[1])
    if anchor not in names:
        raise ValueError(f"the anchor {anchor!r} does not play; players: {', '.join(names)}")
    meetings = [(names[0], other) for other in names[1:]]
    if all_pairs:
        meetings += itertools.combinations(names[1:], 2)
    matches: list[MatchResult] = []
    stopped = False
    for one, other in meetings:
        with _progress(console, f"{one} – {other}", games) as on_progress:
            match = play_match(
                players[one], players[other], ruleset, games, seed, opening_plies,
                lockstep=lockstep, on_progress=on_progress,
            )  # fmt: skip
        if match.records:
            matches.append(dataclasses.replace(match, agent=one, opponent=other))
        stopped = match.stopped
        if stopped:
            break
    ratings = rate_players(matches, anchor, seed)
    return Evaluation(names[0], ruleset, tuple(matches), ratings, anchor, games, seed, opening_plies, stopped)


def rate_players(matches: Sequence[MatchResult], anchor: str, seed: int) -> tuple[Rating, ...]:
    """Ratings of all who played, best first; none where the anchor did not play.

    Args:
        matches: all results.
        anchor: who is held at 0.
        seed: of the intervals.
    """
    results = [PairResults(match.agent, match.opponent, match.pair_scores) for match in matches]
    if not any(anchor in (result.first, result.second) for result in results):
        return ()
    return tuple(fit_ratings(results, anchor, seed=seed))


def load_players(specs: Sequence[AgentSpec]) -> dict[str, Agent]:
    """Agents by the names they go by in tables: a checkpoint by its path as given, others by their own name.

    Raises:
        ValueError: as ``load_agent``; or two have the same name.
    """
    players: dict[str, Agent] = {}
    for spec in specs:
        agent = load_agent(spec)
        name = agent.name
        if isinstance(spec, str | os.PathLike) and isinstance(agent, _Trained):
            name = os.fspath(spec).rstrip("/\\")
        if name in players:
            raise ValueError(f"{name!r} is named twice; each player can take part once")
        players[name] = agent
    return players


def agreed_ruleset(
    players: Mapping[str, Agent], game: str | None, variant: str | None, options: Mapping[str, Any]
) -> Ruleset:
    """The ruleset to play by: what is asked for, where the checkpoints among the players leave it open.

    Args:
        players: agents by name; those with ``rulesets`` play no others.
        game: None to take it from a checkpoint.
        variant: None for that of the checkpoint, or "box".
        options: replace the variant's.

    Raises:
        ValueError: nothing says which game, or which of several; or a checkpoint was made for another one than asked
            for, or than another checkpoint.
        OptionError: no such variant or option.
    """
    bound = {name: agent.rulesets for name, agent in players.items() if isinstance(agent, _Trained)}
    asked = _asked_ruleset(_source(bound, game, variant), game, variant, options)
    for name, rulesets in bound.items():
        if not _plays(rulesets, asked):
            raise ValueError(f"the checkpoint {name} plays {_labels(rulesets)} and cannot play {asked.label}")
    return asked


def those_who_play(players: Mapping[str, Agent], ruleset: Ruleset) -> dict[str, Agent]:
    """Those of the players, by name, who are bound to no rules or to these among others."""
    return {
        name: agent
        for name, agent in players.items()
        if not isinstance(agent, _Trained) or _plays(agent.rulesets, ruleset)
    }


@runtime_checkable
class _Trained(Protocol):
    """An agent that plays some rulesets and no others."""

    rulesets: Sequence[Ruleset]


def _source(bound: Mapping[str, Sequence[Ruleset]], game: str | None, variant: str | None) -> Ruleset | None:
    """The ruleset that says what is not asked for, None where no checkpoint plays."""
    if not bound:
        return None
    name, rulesets = next(iter(bound.items()))
    common = [ruleset for ruleset in rulesets if all(_plays(others, ruleset) for others in bound.values())] or rulesets
    fitting = [ruleset for ruleset in common if game in (None, ruleset.game) and variant in (None, ruleset.variant)]
    if game is None and len({ruleset.game for ruleset in fitting}) > 1:
        raise ValueError(f"which game? the checkpoint {name} plays {_labels(fitting)}, so name one")
    return (fitting or common)[0]


def _plays(rulesets: Sequence[Ruleset], asked: Ruleset) -> bool:
    return (asked.game, asked.options) in [(ruleset.game, ruleset.options) for ruleset in rulesets]


def _labels(rulesets: Sequence[Ruleset]) -> str:
    return " and ".join(ruleset.label for ruleset in rulesets)


def _asked_ruleset(
    source: Ruleset | None, game: str | None, variant: str | None, options: Mapping[str, Any]
) -> Ruleset:
    """What is asked for, by the checkpoint's ruleset ``source`` where nothing else is said."""
    if source is None:
        if game is None:
            raise ValueError("which game? none of the players is a checkpoint that says so, so name one")
        return load_ruleset(game, variant or "box", **options)
    if game not in (None, source.game) or variant not in (None, source.variant):
        return load_ruleset(game or source.game, variant or "box", **options)
    return load_ruleset(source.game, source.variant, **{**source.overrides, **options})


@contextlib.contextmanager
def _progress(console: Console | None, title: str, games: int) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar while the context is open; yields what to report progress to."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("games, {task.fields[moves]:,} moves"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    visible = console is not None and console.is_terminal
    with Progress(*columns, console=console, disable=not visible) as bar:
        task = bar.add_task(title, total=games, moves=0)
        yield lambda finished, moves: bar.update(task, completed=finished, moves=moves)


def print_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Tables of results and ratings for people, with what to beware of."""
    print_matches(f"{evaluation.ruleset.label}: {evaluation.agent}", evaluation.matches, console)
    if evaluation.ratings:
        console.print(_ratings_table(evaluation))
    if evaluation.stopped:
        done = sum(match.games for match in evaluation.matches)
        console.print(f"Stopped early after {done} games in whole pairs; short games are over-represented.")


def print_matches(title: str, matches: Sequence[MatchResult], console: Console) -> None:
    """A table of results for people, and under it what to beware of in each match."""
    table = Table(title=title, title_justify="left")
    for heading in ("match", "games", "won", "drawn", "lost", "score, 95 %", "won, 95 %", "length", "ms a move"):
        table.add_column(heading, justify="left" if heading == "match" else "right")
    for match in matches:
        own, other = (1000 * seconds for seconds in match.seconds_per_move)
        table.add_row(
            f"{match.agent} – {match.opponent}",
            str(match.games), str(match.wins), str(match.draws), str(match.losses),
            percent_with_interval(match.score, match.score_interval),
            percent_with_interval(match.wins / match.games, match.win_interval),
            f"{match.mean_length:.0f}", f"{own:.2g} – {other:.2g}",
        )  # fmt: skip
    console.print(table)
    for match in matches:
        console.print(
            f"{match.agent} – {match.opponent}: {_details(match)}",
            highlight=False, markup=False, emoji=False, soft_wrap=True,
        )  # fmt: skip


def print_judgement(evaluation: Evaluation, console: Console) -> None:
    """What the table of exact values says of the agent, for people; nothing where it was not asked."""
    if evaluation.regret is not None:
        print_regret(evaluation.regret, console)
    if evaluation.exploitability is not None:
        for line in exploitability_lines(evaluation.exploitability):
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def _details(match: MatchResult) -> str:
    sides = ", ".join(f"as {name} {'/'.join(map(str, tally))}" for name, tally in match.by_side.items())
    reasons = ", ".join(f"{name} {'/'.join(map(str, tally))}" for name, tally in match.by_reason.items())
    text = f"{sides}; by ending {reasons}"
    if match.truncated:
        text += f"; {match.truncated} stopped games count as draws"
    if match.repeated > TOO_REPETITIVE:
        text += f"; {match.repeated:.0%} of the games repeat another one, so the intervals are too narrow"
    return text


def _ratings_table(evaluation: Evaluation) -> Table:
    table = Table(title=f"Elo, {evaluation.anchor} = 0", title_justify="left")
    table.add_column("player")
    for heading in ("Elo", "95 %", "games"):
        table.add_column(heading, justify="right")
    for rating in evaluation.ratings:
        table.add_row(rating.name, elo_text(rating.elo), elo_interval_text(rating), str(rating.games))
    return table


def percent_with_interval(share: float, interval: Interval) -> str:
    """``93.5 % (91.0–95.6)``."""
    return f"{100 * share:.1f} % ({100 * interval[0]:.1f}–{100 * interval[1]:.1f})"


def elo_text(elo: float | None) -> str:
    """``+123``, ``0``; a dash where there is none."""
    if elo is None:
        return "–"
    return f"{elo:+.0f}" if round(elo) else "0"


def elo_interval_text(rating: Rating) -> str:
    """``+101 to +147``; a dash where there is none."""
    return "–" if rating.low is None else f"{elo_text(rating.low)} to {elo_text(rating.high)}"


def write_json(data: Mapping[str, Any], path: pathlib.Path) -> None:
    """Write a file of JSON, replaced as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, (json.dumps(data, indent=2, allow_nan=False) + "\n").encode())
