"""Writes ``benchmarks/results/facts.json``: what the solved tables say about the games.

    python benchmarks/facts.py                                   all facts of all tables that were made
    python benchmarks/facts.py games --only puluc/box            one kind of fact, one table

Tables are those that ``tradgames solve`` keeps; small ones are solved on the spot, and what has no table is left out.
A run replaces the facts that it finds anew and keeps all others. ``python benchmarks/publish_facts.py`` writes
``docs/perfect_play.md`` from the file. Kinds of facts:

tables    what was solved, who is better off at the start, how many positions are won, drawn and lost
matches   perfect play against random and greedy play, from the start, sides swapped
games     100,000 games of perfect play against itself: who wins, what throws are worth, when passing is right in Puluc,
          when the short way is wrong in Yut Nori
openings  Puluc's first moves by throw
endings   games without dice: won positions by material, the longest win with its line
"""

import argparse
import collections
import itertools
import json
import pathlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import boolean, int16, int32, int64, types, uint64
from numpy.typing import NDArray
from perfect_games import Decisions, PerfectGames, best_without, worth_of

from tradgames_env.agents.perfect import PerfectAgent
from tradgames_env.position import Position
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import APPLY, MARGIN, MOVER, OUTCOME, RUNNING
from tradgames_env.rules.puluc import SHOWN
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from tradgames_env.rules.yut_nori import FORK_WORDS, FORKS, HELD
from tradgames_env.solving import solver
from tradgames_env.solving.indexing import UNRANK, Layer, load_index, table_label
from tradgames_env.solving.lookup import judge_moves
from tradgames_env.solving.retrograde import HOLE
from tradgames_env.solving.table import DISTANCE, EXPECTATION, Table, find_table
from training.match import play_match
from training.provenance import provenance
from training.solve import start_value

RESULT = pathlib.Path(__file__).parent / "results" / "facts.json"
KINDS = ("tables", "matches", "games", "openings", "endings")
WANTED: tuple[tuple[str, str, dict[str, Any], str | None], ...] = (
    ("puluc", "mini", {}, None),
    ("puluc", "family", {}, None),
    ("puluc", "box", {"pieces": 2}, None),
    ("puluc", "box", {"pieces": 3}, None),
    ("puluc", "box", {"pieces": 4}, None),
    ("puluc", "box", {}, None),
    ("yut_nori", "mini", {}, None),
    ("yut_nori", "duel", {}, None),
    ("yut_nori", "box", {"pieces": 3}, None),
    ("yut_nori", "box", {}, None),
    ("petteia", "mini", {}, None),
    ("petteia", "box", {}, "endings-2v3"),
    ("yote", "mini", {}, None),
    ("yote", "mini", {"cols": 4}, None),
    ("yote", "box", {}, "endings-2v2"),
)
"""Game, variant, options and part of every table that is looked for."""
NO_GAIN = 1e-5
"""Of expected reward: two moves closer than this are equally good, as far as a table can tell."""
EXAMPLES = 3
"""Positions that are shown of each kind."""
_SHOWN_COST = 0.01
"""Of winning probability: errors that cost less are no example."""
_CHUNK = 1 << 22

Fact = dict[str, Any]


class Case(NamedTuple):
    """A table and what it is called here, such as ``puluc/box`` or ``petteia/box-endings-2v3``."""

    name: str
    table: Table


def names() -> list[str]:
    """What the wanted tables are called, in their order."""
    rulesets = [(load_ruleset(game, variant, **options), part) for game, variant, options, part in WANTED]
    return [f"{ruleset.game}/{table_label(ruleset, load_index(ruleset, part), part)}" for ruleset, part in rulesets]


def cases(only: str | None) -> Iterator[Case]:
    """The tables that are there or are made in seconds."""
    for name, (game, variant, options, part) in zip(names(), WANTED, strict=True):
        if only not in (None, name):
            continue
        ruleset = load_ruleset(game, variant, **options)
        table = find_table(ruleset, part)
        if table is None and solver.is_small(load_index(ruleset, part)):
            table = solver.solve_in_memory(ruleset, part)
        if table is not None:
            yield Case(name, table)


# -- tables --------------------------------------------------------------------------------------------------------


def table_fact(table: Table) -> Fact:
    """What was solved, and what it says of the start and of all positions together."""
    header = table.header
    run = header.provenance
    return {
        "game": header.game,
        "kind": header.kind,
        "part": header.part,
        "numbers": header.count,
        "bytes": header.count * np.dtype(header.dtype).itemsize,
        "residual": header.residual,
        "solved": {key: run.get(key) for key in ("command", "date", "seconds", "peak_bytes", "machine")},
        "start": start_value(table),
        "start_distance": start_distance(table) if header.kind == DISTANCE else None,
        **(distance_shares(table) if header.kind == DISTANCE else expectation_shares(table)),
    }


def start_distance(table: Table) -> int | None:
    """Moves to the end from the start."""
    if table.header.part is not None:
        return None
    return table.distance(Position.from_ruleset(table.ruleset).rows[0])


def distance_shares(table: Table) -> Fact:
    """How many positions there are, those without a move included, and what they are worth to the side to move."""
    won = drawn = lost = 0
    for values in chunks(table):
        won += int((values > 0).sum())
        drawn += int((values == 0).sum())
        lost += int(((values < 0) & (values != HOLE)).sum())
    positions = won + drawn + lost
    return {"positions": positions, "won": won / positions, "drawn": drawn / positions, "lost": lost / positions}


def expectation_shares(table: Table) -> Fact:
    """In how many positions the mover is better off, and what he wins of all of them on average."""
    better, total = 0, 0.0
    for values in chunks(table):
        expected = table.expectations(values)
        better += int((expected > 0).sum())
        total += float(expected.sum())
    count = table.header.count
    return {"positions": count, "better": better / count, "mean_wins": (1 + total / count) / 2}


def chunks(table: Table) -> Iterator[NDArray[Any]]:
    """The entries of a table, a part at a time."""
    for begin in range(0, table.header.count, _CHUNK):
        yield table.values[begin : begin + _CHUNK]


# -- matches -------------------------------------------------------------------------------------------------------


def match_fact(table: Table, games: int) -> Fact:
    """What perfect play scores against the two simple agents."""
    return {"against": {name: against(table, name, games) for name in ("random", "greedy")}}


def against(table: Table, opponent: str, games: int) -> Fact:
    """A match from the start with sides swapped, both games of a pair with the same throws at the start."""
    result = play_match(PerfectAgent(table), opponent, table.ruleset, games, seed=1, opening_plies=0)
    return {
        "games": result.games,
        "won": result.wins,
        "drawn": result.draws,
        "lost": result.losses,
        "score": result.score,
        "interval": result.score_interval,
        "length": result.mean_length,
        "by_side": result.by_side,
        "repeated": result.repeated,
    }


# -- games of perfect play -------------------------------------------------------------------------------------------


class Study(Protocol):
    """Something that is learned from the decisions of many games."""

    def add(self, decisions: Decisions) -> None:
        """Take in one batch of decisions."""

    def result(self) -> Fact:
        """What was learned."""


class Throws:
    """What each throw is worth: what can be expected with it less what could be before it."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._ruleset = ruleset
        self._counts: dict[int, int] = collections.Counter()
        self._gains: dict[int, float] = collections.defaultdict(float)

    def add(self, decisions: Decisions) -> None:
        """Take in one batch of decisions."""
        throws = throws_of(self._ruleset, decisions.states)
        gains = decisions.best - decisions.before
        for throw in np.unique(throws).tolist():
            self._counts[throw] += int((throws == throw).sum())
            self._gains[throw] += float(gains[throws == throw].sum())

    def result(self) -> Fact:
        """Share and gain in winning probability of each throw."""
        total = sum(self._counts.values())
        rows = sorted(self._counts)
        gains = {str(throw): self._gains[throw] / self._counts[throw] / 2 for throw in rows}
        return {"share": {str(throw): self._counts[throw] / total for throw in rows}, "gain": gains}


class Examples:
    """The positions in which an error would cost most in all the games together."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._times: dict[str, int] = collections.Counter()
        self._costs: dict[str, float] = collections.defaultdict(float)

    def add(self, states: NDArray[np.int16], costs: NDArray[np.float64]) -> None:
        """Offer positions with what the error costs in each; the cheapest are not looked at."""
        for place in np.flatnonzero(costs > _SHOWN_COST):
            text = self._table.ruleset.rules.format_position(self._table.ruleset.options, states[place])
            self._times[text] += 1
            self._costs[text] += float(costs[place])

    def shown(self, most: int, are_alike: Callable[[str, str], bool]) -> list[Fact]:
        """Up to ``most`` of them, no two alike, each with how often it came up and what every move wins."""
        chosen: list[str] = []
        for text in sorted(self._costs, key=lambda text: -self._costs[text]):
            if len(chosen) < most and not any(are_alike(text, other) for other in chosen):
                chosen.append(text)
        return [{"times": self._times[text], **example(self._table, text)} for text in chosen]


class Passing:
    """When passing is right in Puluc."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._pass = table.ruleset.num_actions - 1
        self._all = self._forced = self._offered = self._right = self._equal = 0
        self._gained: list[NDArray[np.float64]] = []
        self._by_throw: dict[int, NDArray[np.int64]] = {}
        self._examples = Examples(table)

    def add(self, decisions: Decisions) -> None:
        """Take in one batch of decisions."""
        passing, other = worth_of(decisions.judgement, self._pass), best_without(decisions.judgement, self._pass)
        offered = ~np.isnan(passing) & (other > -2)
        self._all += len(passing)
        self._forced += int((other < -2).sum())
        self._offered += int(offered.sum())
        # A gain in expected reward is twice that in winning probability.
        gain = (passing[offered] - other[offered]) / 2
        self._right += int((gain > NO_GAIN).sum())
        self._equal += int((np.abs(gain) <= NO_GAIN).sum())
        self._gained.append(gain)
        throws = throws_of(self._table.ruleset, decisions.states)
        self._examples.add(decisions.states[offered], gain)
        for throw in np.unique(throws).tolist():
            here = throws[offered] == throw
            counts = np.array([(throws == throw).sum(), here.sum(), (gain[here] > NO_GAIN).sum()], np.int64)
            self._by_throw[throw] = self._by_throw.get(throw, np.zeros(3, np.int64)) + counts

    def result(self) -> Fact:
        """How often, and what errors cost."""
        gain = np.concatenate(self._gained)
        right, wrong = gain[gain > NO_GAIN], -gain[gain < -NO_GAIN]
        return {
            "decisions": self._all,
            "only_pass": self._forced,
            "offered": self._offered,
            "right": self._right,
            "equal": self._equal,
            "cost_of_moving": _spread(right),
            "cost_of_passing": _spread(wrong),
            "histogram": _histogram(gain),
            "by_throw": {str(throw): counts.tolist() for throw, counts in sorted(self._by_throw.items())},
            "examples": self._examples.shown(EXAMPLES, _same_throw_or_board),
        }


class ShortWays:
    """When the short way is wrong in Yut Nori: at each fork, against the rim for the same unit."""

    def __init__(self, table: Table) -> None:
        self._all = 0
        self._forks = {station: _Fork(table, station) for station in FORKS}

    def add(self, decisions: Decisions) -> None:
        """Take in one batch of decisions."""
        self._all += len(decisions.states)
        for fork in self._forks.values():
            fork.add(decisions)

    def result(self) -> Fact:
        """By station where units choose."""
        return {"decisions": self._all, "forks": {str(station): fork.result() for station, fork in self._forks.items()}}


class _Fork:
    """The choices of units that start on one station."""

    def __init__(self, table: Table, station: int) -> None:
        self._table = table
        self._station = station
        self._gained: list[NDArray[np.float64]] = []
        self._captures: list[NDArray[np.bool_]] = []
        self._other_unit = 0
        self._examples = Examples(table)

    def add(self, decisions: Decisions) -> None:
        """Take in one batch of decisions."""
        judgement, station = decisions.judgement, self._station
        short, rim = worth_of(judgement, FORKS[station]), worth_of(judgement, station)
        offered = ~np.isnan(short)
        states, short, rim, best = decisions.states[offered], short[offered], rim[offered], decisions.best[offered]
        gain = (short - rim) / 2
        captures = throws_again(self._table.ruleset, states, station)
        self._gained.append(gain)
        self._captures.append(captures)
        self._other_unit += int((best > np.maximum(short, rim) + NO_GAIN).sum())
        # Only where the rim is the best of all moves does the choice between the two decide.
        self._examples.add(states, np.where((rim >= best) & ~captures, -gain, 0.0))

    def result(self) -> Fact:
        """What was learned."""
        gain, captures = np.concatenate(self._gained), np.concatenate(self._captures)
        wrong = gain < -NO_GAIN
        return {
            "word": FORK_WORDS[FORKS[self._station]],
            "offered": len(gain),
            "wrong": int(wrong.sum()),
            "wrong_without_capture": int((wrong & ~captures).sum()),
            "right": int((gain > NO_GAIN).sum()),
            "other_unit": self._other_unit,
            "cost_of_short": _spread(-gain[wrong]),
            "cost_of_rim": _spread(gain[gain > NO_GAIN]),
            "histogram": _histogram(gain),
            "examples": self._examples.shown(1, lambda text, other: True),
        }


@kernel(
    types.void(types.FunctionType(APPLY), int32[::1], int16[:, ::1], int16[::1], uint64[::1], int64, boolean[::1])
)  # fmt: skip
def _mark_again(apply, params, states, after, history, action, out_marks):  # type: ignore[no-untyped-def]
    """Mark the rows in which the mover of an action is the mover again."""
    for i in range(states.shape[0]):
        for cell in range(states.shape[1]):
            after[cell] = states[i, cell]
        apply(params, after, history, action)
        out_marks[i] = after[OUTCOME] == RUNNING and after[MOVER] == states[i, MOVER]


def throws_again(ruleset: Ruleset, states: NDArray[np.int16], action: int) -> NDArray[np.bool_]:
    """(n,) whether an action that is legal in all rows makes its player throw again, which captures do in Yut Nori."""
    marks = np.zeros(len(states), np.bool_)
    after, history = np.zeros(ruleset.state_size, np.int16), np.zeros(ruleset.history_size, np.uint64)
    _mark_again(ruleset.kernels.apply, ruleset.params, states, after, history, action, marks)
    return marks


def _spread(costs: NDArray[np.float64]) -> Fact:
    """Mean and largest of some costs in winning probability."""
    if len(costs) == 0:
        return {"mean": 0.0, "most": 0.0}
    return {"mean": float(costs.mean()), "most": float(costs.max())}


def _histogram(gain: NDArray[np.float64]) -> Fact:
    """Counts of gains in winning probability by percentage points, all beyond in the outermost, equal ones left out."""
    different = gain[np.abs(gain) > NO_GAIN]
    counts, edges = np.histogram(np.clip(100 * different, -14.99, 14.99), np.arange(-15, 16))
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _same_throw_or_board(text: str, other: str) -> bool:
    return text.split()[-1] == other.split()[-1] or text.split()[0] == other.split()[0]


def throws_of(ruleset: Ruleset, states: NDArray[np.int16]) -> NDArray[np.int64]:
    """(n,) the throws in hand, of rows in which a seat decides."""
    if ruleset.game == "puluc":
        return states[:, SHOWN].astype(np.int64)
    # Without throws in stock a single bit says which value is in hand.
    return np.log2(states[:, HELD]).astype(np.int64) + 1


def example(table: Table, text: str) -> Fact:
    """A position with what each move wins."""
    position = Position.from_ruleset(table.ruleset, text, chance="explicit")
    return {**shown(table, text), "moves": move_values(table, position)}


def shown(table: Table, text: str) -> Fact:
    """A position and what it takes to read it."""
    ruleset = table.ruleset
    return {"game": ruleset.game, "variant": ruleset.variant, "overrides": ruleset.overrides, "position": text}


def move_values(table: Table, position: Position) -> dict[str, float]:
    """Winning probability by move, the best first."""
    actions, worth = judge_moves(table, *position.rows)
    order = np.argsort(-worth, kind="stable")
    return {position.notation(int(actions[place])): float(1 + worth[place]) / 2 for place in order}


def games_fact(table: Table, games: int) -> Fact:
    """Games of perfect play against itself."""
    ruleset = table.ruleset
    studies: dict[str, Study] = {"throws": Throws(ruleset)}
    if ruleset.game == "puluc":
        studies["passing"] = Passing(table)
    else:
        studies["short_ways"] = ShortWays(table)
    played = PerfectGames(table, games, seed=1)
    for decisions in played.play():
        for study in studies.values():
            study.add(decisions)
    return {
        "games": games,
        "expected_wins": (1 + float(start_value(table) or 0)) / 2,
        "wins": float((1 + played.payoffs.mean()) / 2),
        "half_width_99": 2.5758 * float(played.payoffs.std()) / 2 / games**0.5,
        "cut_off": int((played.payoffs == 0).sum()),
        "length": float(played.lengths.mean()),
        "longest": int(played.lengths.max()),
        "start_throws": start_throws(table),
        **{name: study.result() for name, study in studies.items()},
    }


def start_throws(table: Table) -> Fact:
    """By first throw: its probability and what the side that begins then wins."""
    position = to_first_throw(table)
    throws = {}
    for throw, probability in position.chance_outcomes():
        position.apply_chance(throw)
        best = float(judge_moves(table, *position.rows)[1].max())
        throws[str(throw)] = {"probability": probability, "wins": (1 + best) / 2}
        position.pop()
    return throws


def to_first_throw(table: Table) -> Position:
    """The start, natural to throw."""
    position = Position.from_ruleset(table.ruleset, chance="explicit")
    while table.number(position.rows[0]) < 0:
        position.apply_chance(position.chance_outcomes()[0][0])
    return position


# -- openings --------------------------------------------------------------------------------------------------------


def opening_fact(table: Table) -> Fact:
    """Best moves of the second turns of both sides in Puluc; in the first turns there is nothing to choose."""
    second = list(second_turns(table, to_first_throw(table)))
    replies: dict[str, dict[str, float]] = {}
    for throws, chance, position, _ in second:
        count_replies(table, position, throws[1], chance, replies)
    return {
        "natural": {" ".join(map(str, throws)): moves for throws, _, _, moves in second},
        "black": {key: {kind: share / sum(kinds.values()) for kind, share in kinds.items()}
                  for key, kinds in replies.items()},
    }  # fmt: skip


def second_turns(table: Table, position: Position) -> Iterator[tuple[tuple[int, int, int], float, Position, Fact]]:
    """For every three throws: they, their probability, the position after the best third move, the third moves."""
    for throws in itertools.product(position.chance_outcomes(), repeat=3):
        line = position.copy()
        chance = float(np.prod([probability for _, probability in throws]))
        moves: Fact = {}
        for throw, _ in throws:
            line.apply_chance(throw)
            values = move_values(table, line)
            best = next(iter(values))
            moves = {"kind": kind_of_move(line, best), "moves": values}
            line.push(best)
        yield (throws[0][0], throws[1][0], throws[2][0]), chance, line, moves


def count_replies(
    table: Table, position: Position, entered: int, chance: float, replies: dict[str, dict[str, float]]
) -> None:
    """Add, for each throw of black's second turn, the probability under the kind of his best move."""
    for throw, probability in position.chance_outcomes():
        position.apply_chance(throw)
        kind = kind_of_move(position, next(iter(move_values(table, position))))
        kinds = replies.setdefault(f"{entered} {throw}", {})
        kinds[kind] = kinds.get(kind, 0.0) + chance * probability
        position.pop()


def kind_of_move(position: Position, move: str) -> str:
    """``pass``, or ``enter`` or ``advance``, with ``and capture`` where an enemy's unit is taken."""
    if move == "pass":
        return move
    enemy = "xo"[position.to_move]
    after = position.copy()
    after.push(move)
    # The first and the last site are houses, and what is shown there is nobody's unit.
    before, later = (sum(site.endswith(enemy) for site in pieces(p)[1:-1]) for p in (position, after))
    kind = "enter" if move.startswith("enter") else "advance"
    return f"{kind} and capture" if later < before else kind


def pieces(position: Position) -> list[str]:
    """What stands on each site."""
    return position.ruleset.rules.site_pieces(position.options, position.rows[0])


# -- endings ---------------------------------------------------------------------------------------------------------

_MOST_LEAD = 32


@kernel(
    types.void(
        types.FunctionType(UNRANK), int32[::1], int64[::1], int16[::1], int64, int16[::1], int64[:, ::1], int64[::1]
    )
)  # fmt: skip
def _count_by_margin(unrank, params, tables, values, begin, row, out_counts, out_longest):  # type: ignore[no-untyped-def]
    """Add lost, drawn and won positions by the mover's lead; remember the longest win's number and length."""
    for place in range(values.shape[0]):
        value = values[place]
        if value == HOLE or unrank(params, tables, begin + place, row) == 0:
            continue
        out_counts[row[MARGIN] + _MOST_LEAD, 1 + (value > 0) - (value < 0)] += 1
        if value > out_longest[1]:
            out_longest[0], out_longest[1] = begin + place, value


def ending_fact(table: Table) -> Fact:
    """Won, drawn and lost by material, and the longest win."""
    ruleset, index = table.ruleset, table.index
    longest = np.zeros(2, np.int64)
    row = np.zeros(ruleset.state_size, np.int16)
    materials = []
    for layer in index.layers:
        counts = np.zeros((2 * _MOST_LEAD, 3), np.int64)
        values = np.array(table.values[layer.begin : layer.end])
        _count_by_margin(index.unrank, ruleset.params, index.tables, values, layer.begin, row, counts, longest)
        materials += [
            {**material(layer, lead - _MOST_LEAD), "lost": int(lost), "drawn": int(drawn), "won": int(won)}
            for lead, (lost, drawn, won) in enumerate(counts)
            if lost + drawn + won
        ]
    return {"materials": materials, "longest": longest_win(table, int(longest[0]), int(longest[1]))}


def material(layer: Layer, lead: int) -> Fact:
    """Pieces of the mover and of the other side, where the mover has ``lead`` more.

    Layers are named after all pieces ("5 pieces, 2 in reserve") or after both sides' ("2 against 3").
    """
    pieces = sum(int(number) for number in re.findall(r"\d+", layer.name.partition(",")[0]))
    return {"layer": layer.name, "own": (pieces + lead) // 2, "enemy": (pieces - lead) // 2}


def longest_win(table: Table, number: int, distance: int) -> Fact:
    """The longest forced win, played out by the table: the winner as fast, the loser as slowly as can be."""
    row = np.zeros(table.ruleset.state_size, np.int16)
    table.index.unrank(table.ruleset.params, table.index.tables, number, row)
    text = table.ruleset.rules.format_position(table.ruleset.options, row)
    position = Position.from_ruleset(table.ruleset, text)
    line: list[str] = []
    while not position.is_over and len(line) < distance:
        actions, worth = judge_moves(table, *position.rows)
        move = position.notation(int(actions[worth.argmax()]))
        line.append(move)
        position.push(move)
    return {
        **shown(table, text),
        "distance": distance,
        "line": line,
        "reason": position.reason,
        "final": position.text(),
    }


# -- the file --------------------------------------------------------------------------------------------------------


def find_fact(kind: str, table: Table, games: int, matches: int) -> Fact | None:
    """One kind of fact of a table; None where there is none."""
    header = table.header
    if kind == "tables":
        return table_fact(table)
    if kind == "matches":
        return match_fact(table, matches) if header.part is None else None
    if kind == "games":
        return games_fact(table, games) if header.kind == EXPECTATION else None
    if kind == "openings":
        is_chart = header.game == "puluc" and header.variant == "box"
        return opening_fact(table) if is_chart else None
    return ending_fact(table) if header.kind == DISTANCE else None


def write(facts: Mapping[str, Any]) -> None:
    """Write the file."""
    RESULT.parent.mkdir(exist_ok=True)
    ordered = {kind: {name: facts[kind][name] for name in names() if name in facts[kind]} for kind in KINDS}
    text = json.dumps(ordered | {"provenance": facts["provenance"]}, indent=1)
    RESULT.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of facts: {', '.join(KINDS)}; all when left out")
    parser.add_argument("--only", metavar="TABLE", help="such as puluc/box or petteia/box-endings-2v3")
    parser.add_argument("--games", type=int, default=100_000, help="of perfect play against itself")
    parser.add_argument("--matches", type=int, default=2_000, help="games against random and against greedy")
    args = parser.parse_args()
    if unknown := set(args.kinds) - set(KINDS):
        parser.error(f"unknown kind {', '.join(sorted(unknown))}; known: {', '.join(KINDS)}")
    facts: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    facts = {kind: facts.get(kind, {}) for kind in KINDS}
    for name, table in cases(args.only):
        for kind in args.kinds or KINDS:
            begin = time.perf_counter()
            fact = find_fact(kind, table, args.games, args.matches)
            if fact is None:
                continue
            numbers = {"games": f" --games {args.games}", "matches": f" --matches {args.matches}"}.get(kind, "")
            record = provenance(f"python benchmarks/facts.py {kind} --only {name}{numbers}")
            seconds = time.perf_counter() - begin
            origin = {"command": record["command"], "date": record["date"], "sha256": table.header.sha256}
            facts[kind][name] = origin | fact
            write(facts | {"provenance": record | {"command": " ".join(["python benchmarks/facts.py", *sys.argv[1:]])}})
            print(f"{name}: {kind}, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
