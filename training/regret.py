"""What an agent's moves cost it, by a table of exact values: regret, and the positions in which it erred most.

The regret of a decision is the value of the best move less that of the move that was played. In games with dice it is
told in percentage points of winning probability, without dice in points a game (win 1, draw 0.5). The values are those
of the table: that of a board alone, without the clocks and repetitions of the game in progress.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as RichTable

from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.solving.table import DISTANCE, Table
from training.intervals import Interval, mean_interval
from training.match import SIDES, GameRecord, MatchResult

if TYPE_CHECKING:
    from tradgames_env.solving.lookup import Judgement

WORST = 5
"""Positions that are shown."""

ERRORS = {(1, 0): "win to draw", (1, -1): "win to loss", (0, -1): "draw to loss"}
"""Kinds of errors in games without dice, by what was there and what was left."""

_GAMES_AT_A_TIME = 256


@dataclasses.dataclass(frozen=True)
class Worth:
    """What a move leaves its player.

    Attributes:
        value: expected reward, in [-1, 1].
        distance: moves of both sides to the end, where the game is won or lost; else, and in games with dice, 0.
        dice: whether the game has dice.
    """

    value: float
    distance: int
    dice: bool

    def __str__(self) -> str:
        """``61.2 %``, ``won in 5``, ``drawn``."""
        if self.dice:
            return f"{50 * (1 + self.value):z.2f} %"
        return f"{'won' if self.value > 0 else 'lost'} in {self.distance}" if self.value else "drawn"


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A decision in which the agent erred.

    Attributes:
        regret: in the unit of the report.
        position: that it had to decide in.
        opponent: name of the other side.
        pair: number of the pair of games in the match.
        side: colour of the agent.
        ply: number of the move in the game, from 1.
        move: what it played.
        better: a best move.
        worth: of ``move``.
        best: of ``better``.
    """

    regret: float
    position: Position
    opponent: str
    pair: int
    side: int
    ply: int
    move: str
    better: str
    worth: Worth
    best: Worth

    def to_json(self) -> dict[str, Any]:
        """Ready for ``json.dump``; values are expected rewards."""
        return {
            "regret": self.regret,
            "text": self.position.text(),
            "opponent": self.opponent,
            "pair": self.pair,
            "side": SIDES[self.side],
            "ply": self.ply,
            "move": self.move,
            "better": self.better,
            "value": self.worth.value,
            "best": self.best.value,
            "distance": self.worth.distance,
            "best_distance": self.best.distance,
        }


@dataclasses.dataclass(frozen=True)
class Regret:
    """Regret over some decisions; numbers are NaN where there are none.

    Attributes:
        decisions: how many.
        mean: of their regrets.
        interval: 95 % of the mean, from pairs of games; None where fewer than two had such decisions.
        percentile_95: of their regrets.
        optimal: decisions without regret, up to the error of the table.
    """

    decisions: int
    mean: float
    interval: Interval | None
    percentile_95: float
    optimal: int

    @property
    def optimal_share(self) -> float:
        """Share of the decisions without regret."""
        return self.optimal / self.decisions if self.decisions else float("nan")

    def to_json(self) -> dict[str, Any]:
        """Ready for ``json.dump``; None for what cannot be told."""
        known = self.decisions > 0
        return {
            "decisions": self.decisions,
            "mean": self.mean if known else None,
            "mean_interval": self.interval and list(self.interval),
            "percentile_95": self.percentile_95 if known else None,
            "optimal": self.optimal,
            "optimal_share": self.optimal_share if known else None,
        }


@dataclasses.dataclass(frozen=True)
class RegretReport:
    """Regret of one agent in its matches.

    Attributes:
        agent: its name.
        dice: whether the game has dice.
        residual: of the table; a regret is told from none if it is larger.
        everything: all its decisions that the table covers, those with a single legal move included.
        choices: those with several legal moves.
        not_covered: decisions that the table does not cover, which count nowhere else.
        errors: number of errors of each kind, in games without dice.
        worst: different positions, the largest regret first.
    """

    agent: str
    dice: bool
    residual: float
    everything: Regret
    choices: Regret
    not_covered: int
    errors: dict[str, int]
    worst: tuple[Mistake, ...]

    @property
    def unit(self) -> str:
        """What regrets are counted in."""
        return "percentage points of winning probability" if self.dice else "points a game"

    @property
    def forced(self) -> int:
        """Decisions with a single legal move."""
        return self.everything.decisions - self.choices.decisions

    def to_json(self) -> dict[str, Any]:
        """Ready for ``json.dump``."""
        return {
            "agent": self.agent,
            "unit": self.unit,
            "table_residual": self.residual,
            "all_decisions": self.everything.to_json(),
            "real_choices": self.choices.to_json(),
            "forced": self.forced,
            "not_covered": self.not_covered,
            "errors": None if self.dice else self.errors,
            "worst": [mistake.to_json() for mistake in self.worst],
        }


@dataclasses.dataclass(frozen=True, eq=False)
class _Decisions:
    """Decisions of some games, and what the table says of them.

    ``match``, ``pair``, ``side`` and ``ply`` (N,) say where each was; ``played`` and ``best`` (N,) index the moves of
    ``judgement``; ``states`` (N, S) and ``histories`` (N, H) are the rows.
    """

    match: NDArray[np.int64]
    pair: NDArray[np.int64]
    side: NDArray[np.int64]
    ply: NDArray[np.int64]
    states: NDArray[np.int16]
    histories: NDArray[np.uint64]
    judgement: "Judgement"
    played: NDArray[np.int64]
    best: NDArray[np.int64]

    @property
    def regrets(self) -> NDArray[np.float64]:
        """(N,) in expected reward; NaN where the table does not cover the decision."""
        values = self.judgement.values
        # The best move is told by a trifle that its value does not show, so differences may be a trifle below 0.
        return np.maximum(values[self.best] - values[self.played], 0.0)

    def successors(self, place: int) -> bytes:
        """The positions that the moves of a decision lead to, which are the same for its mirror image."""
        heads = self.judgement.heads
        return np.sort(self.judgement.numbers[heads[place] : heads[place + 1]]).tobytes()


def measure_regret(agent: str, matches: Sequence[MatchResult], table: Table) -> RegretReport:
    """Regret of an agent over all decisions it took itself, those of the random openings left out.

    Args:
        agent: its name.
        matches: those in which it is the first agent are looked at.
        table: of the ruleset they were played by.
    """
    own = [match for match in matches if match.agent == agent]
    parts = list(_judged(own, table))
    regrets = np.concatenate([np.empty(0), *(part.regrets for part in parts)])
    pairs = np.concatenate([np.empty(0, np.int64), *(part.pair for part in parts)])
    choices = np.concatenate([np.empty(0, np.bool_), *(np.diff(part.judgement.heads) > 1 for part in parts)])
    covered = ~np.isnan(regrets)
    errors = dict.fromkeys(ERRORS.values(), 0)
    for part in parts:
        for kind, count in _errors(part).items():
            errors[kind] += count
    dice = table.header.kind != DISTANCE
    seed = own[0].seed if own else 0
    return RegretReport(
        agent=agent,
        dice=dice,
        residual=table.header.residual,
        everything=_summary(regrets[covered], pairs[covered], table, seed),
        choices=_summary(regrets[covered & choices], pairs[covered & choices], table, seed),
        not_covered=int((~covered).sum()),
        errors=errors,
        worst=tuple(_mistake(part, place, own, table) for part, place in _worst(parts, table)),
    )


def _judged(matches: Sequence[MatchResult], table: Table) -> Iterator[_Decisions]:
    """The agent's decisions, judged, some games at a time."""
    for number, match in enumerate(matches):
        for begin in range(0, len(match.records), _GAMES_AT_A_TIME):
            records = match.records[begin : begin + _GAMES_AT_A_TIME]
            found = [decision for record in records for decision in _own_decisions(match.ruleset, record)]
            if found:
                yield _judge(number, found, table)


_Found = tuple[int, int, int, int, NDArray[np.int16], NDArray[np.uint64]]
"""Pair, side, ply, action and the two rows of a decision."""


def _own_decisions(ruleset: Ruleset, record: GameRecord) -> Iterator[_Found]:
    """Play a recorded game again, every throw as it fell, up to the agent's last decision."""
    position = Position.from_ruleset(ruleset, seed=record.dice)
    for ply, action in enumerate(record.actions):
        if ply >= record.opening and position.to_move == record.agent_side:
            state, history = position.rows
            yield record.pair, record.agent_side, ply, action, state.copy(), history.copy()
        position.advance(action)


def _judge(match: int, found: Sequence[_Found], table: Table) -> _Decisions:
    from tradgames_env.solving.lookup import judge_decisions  # takes seconds to compile where nobody asked before

    pairs, sides, plies, actions, states, histories = zip(*found, strict=True)
    rows = np.stack(states), np.stack(histories)
    judgement = judge_decisions(table, *rows)
    counts = np.diff(judgement.heads)
    # The moves of each decision as a row, so that the played and the best one are found by columns.
    width = int(counts.max())
    column = np.arange(width)
    places = np.minimum(judgement.heads[:-1, None] + column, len(judgement.actions) - 1)
    real = column < counts[:, None]
    played = ((judgement.actions[places] == np.array(actions)[:, None]) & real).argmax(axis=1)
    # NaN comes before all numbers: where one move is not covered, it is "best" and the regret NaN.
    best = np.where(real, judgement.worth[places], -np.inf).argmax(axis=1)
    return _Decisions(
        match=np.full(len(found), match),
        pair=np.array(pairs, np.int64),
        side=np.array(sides, np.int64),
        ply=np.array(plies, np.int64),
        states=rows[0],
        histories=rows[1],
        judgement=judgement,
        played=judgement.heads[:-1] + played,
        best=judgement.heads[:-1] + best,
    )


def _summary(regrets: NDArray[np.float64], pairs: NDArray[np.int64], table: Table, seed: int) -> Regret:
    if len(regrets) == 0:
        return Regret(0, float("nan"), None, float("nan"), 0)
    scaled = regrets * _scale(table)
    _, group = np.unique(pairs, return_inverse=True)
    sums = np.bincount(group, scaled).astype(np.float64)
    interval = mean_interval(sums, np.bincount(group), seed)
    optimal = int((regrets <= table.header.residual).sum())
    return Regret(len(regrets), float(scaled.mean()), interval, float(np.percentile(scaled, 95)), optimal)


def _scale(table: Table) -> float:
    """What expected rewards are multiplied by: percentage points of winning probability, or points a game."""
    return 0.5 if table.header.kind == DISTANCE else 50.0


def _errors(part: _Decisions) -> dict[str, int]:
    was, left = part.judgement.values[part.best], part.judgement.values[part.played]
    return {name: int(((was == before) & (left == after)).sum()) for (before, after), name in ERRORS.items()}


def _worst(parts: Sequence[_Decisions], table: Table) -> list[tuple[_Decisions, int]]:
    """The decisions of the largest regrets, in different positions; mirror images are the same."""
    found: dict[bytes, tuple[float, _Decisions, int]] = {}
    for part in parts:
        regrets = np.nan_to_num(part.regrets, nan=0.0)
        enough = len(found) + WORST
        for place in np.argsort(-regrets, kind="stable").tolist():
            if len(found) == enough or regrets[place] <= table.header.residual:
                break
            key = part.successors(place)
            if key not in found or found[key][0] < regrets[place]:
                found[key] = (float(regrets[place]), part, place)
    ranked = sorted(found.values(), key=lambda entry: -entry[0])
    return [(part, place) for _, part, place in ranked[:WORST]]


def _mistake(part: _Decisions, place: int, matches: Sequence[MatchResult], table: Table) -> Mistake:
    match, judgement = matches[part.match[place]], part.judgement
    position = Position.from_rows(match.ruleset, part.states[place], part.histories[place], seed=0)
    played, best = int(part.played[place]), int(part.best[place])
    return Mistake(
        regret=float(part.regrets[place]) * _scale(table),
        position=position,
        opponent=match.opponent,
        pair=int(part.pair[place]),
        side=int(part.side[place]),
        ply=int(part.ply[place]) + 1,
        move=position.notation(int(judgement.actions[played])),
        better=position.notation(int(judgement.actions[best])),
        worth=_worth(judgement, played, table),
        best=_worth(judgement, best, table),
    )


def _worth(judgement: "Judgement", move: int, table: Table) -> Worth:
    dice = table.header.kind != DISTANCE
    return Worth(float(judgement.values[move]), int(judgement.distances[move]), dice)


# -- for people ----------------------------------------------------------------------------------------------------


def print_regret(report: RegretReport, console: Console) -> None:
    """A table of regrets, errors, and the worst positions with their texts."""
    table = RichTable(title=f"Regret of {report.agent}, {report.unit}", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == HEADINGS[0] else "right")
    for row in regret_rows(report):
        table.add_row(*row)
    console.print(table)
    worst = [f"{regret_text(report, m)}  {m.position.text()}  {comparison(m)}" for m in report.worst]
    for line in [*notes(report), *(["Worst positions:", *worst] if worst else [])]:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


HEADINGS = ("decisions", "number", "mean, 95 %", "95th percentile", "without regret")


def regret_rows(report: RegretReport) -> list[tuple[str, ...]]:
    """Cells under ``HEADINGS``: all decisions, and real choices."""
    rows: list[tuple[str, ...]] = []
    for name, regret in (("all", report.everything), ("real choices", report.choices)):
        cells = ("–",) * 3
        if regret.decisions:
            cells = (_mean_text(regret), f"{regret.percentile_95:z.3f}", f"{100 * regret.optimal_share:.2f} %")
        rows.append((name, f"{regret.decisions:,}", *cells))
    return rows


def _mean_text(regret: Regret) -> str:
    interval = "" if regret.interval is None else f" ({regret.interval[0]:z.3f}–{regret.interval[1]:z.3f})"
    return f"{regret.mean:z.3f}{interval}"


def notes(report: RegretReport) -> list[str]:
    """What else there is to say, a line each."""
    lines = [f"{report.forced:,} decisions with a single legal move carry no regret."]
    if report.not_covered:
        lines.append(f"{report.not_covered:,} decisions are not in the table and are left out.")
    if not report.dice:
        lines.append("Errors: " + ", ".join(f"{count:,} {name}" for name, count in report.errors.items()) + ".")
    return lines


def regret_text(report: RegretReport, mistake: Mistake) -> str:
    """``31.42`` percentage points, ``0.5`` points."""
    return f"{mistake.regret:.2f}" if report.dice else f"{mistake.regret:g}"


def comparison(mistake: Mistake) -> str:
    """The move played and the better one, each with its value, and where that was."""
    return (
        f"{mistake.move} ({mistake.worth}), better {mistake.better} ({mistake.best}); against {mistake.opponent}, "
        f"pair {mistake.pair + 1} as {SIDES[mistake.side]}, move {mistake.ply}"
    )
