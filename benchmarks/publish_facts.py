"""Writes ``docs/perfect_play.md`` and its pictures from the facts in ``benchmarks/results/facts.json``.

``python benchmarks/facts.py`` finds the facts; ``python benchmarks/publish_facts.py`` writes the page, ``--check`` says
whether it is out of date and exits 1.
"""

import json
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from publish import source_section, table

ROOT = pathlib.Path(__file__).parent.parent
RESULT = ROOT / "benchmarks" / "results" / "facts.json"
PAGE = ROOT / "docs" / "perfect_play.md"
IMAGES = ROOT / "docs" / "images"
NOTE = "<!-- written by benchmarks/publish_facts.py; do not edit -->\n"

TITLES = {
    "puluc/mini": "Puluc `mini`, 2 counters, 7 squares",
    "puluc/family": "Puluc `family`, 3 counters, 7 squares",
    "puluc/box+pieces=2": "Puluc, 2 counters",
    "puluc/box+pieces=3": "Puluc, 3 counters",
    "puluc/box+pieces=4": "Puluc, 4 counters",
    "puluc/box": "Puluc `box`, 5 counters",
    "yut_nori/mini": "Yut Nori `mini`, 1 piece",
    "yut_nori/duel": "Yut Nori `duel`, 2 pieces",
    "yut_nori/box+pieces=3": "Yut Nori, 3 pieces",
    "yut_nori/box": "Yut Nori `box`, 4 pieces",
    "petteia/mini": "Petteia `mini`, 4 × 4",
    "petteia/box-endings-2v3": "Petteia 8 × 8, up to 2 against 3",
    "yote/mini": "Yote `mini`, 3 × 3",
    "yote/mini+cols=4": "Yote, 3 × 4",
    "yote/box-endings-2v2": "Yote 6 × 5, up to 2 against 2",
}
"""What tables are called on the page, by name."""

UNSOLVED = {
    "puluc/box+pieces=4": "Puluc with 4 counters",
    "puluc/box": "Puluc `box`",
    "yut_nori/box+pieces=3": "Yut Nori with 3 pieces",
    "yut_nori/box": "Yut Nori `box` and `teams`: 1.06 thousand million positions",
}
"""What is said of tables that could be made but were not."""

NEVER = (
    "Petteia on 8 × 8, 6 × 6 and 8 × 12 boards from the start, Yote `box` and `twelve` from the start: far too many\n"
    "positions. Yut Nori `traditional`: its hands and ways multiply the positions, and no numbering covers them yet.\n"
)

_LEFT, _RIGHT = "---", "---:"
_RESULTS = {1: "won", 0: "drawn", -1: "lost"}
Facts = Mapping[str, Any]


def percent(share: float, digits: int = 2) -> str:
    """A share as a percentage."""
    return f"{100 * share:.{digits}f} %"


def points(share: float, digits: int = 2) -> str:
    """A difference of winning probability in percentage points, with its sign."""
    return f"{100 * share:+.{digits}f}"


def plain(title: str) -> str:
    """A title without code marks, for pictures."""
    return title.replace("`", "")


def command(facts: Facts) -> str:
    """The line under a section that says how to find its facts again."""
    commands = sorted({fact["command"].partition(" --only")[0] for fact in facts.values()})
    return "".join(f"`{line}` finds these figures; `--only` limits it to one table.\n" for line in commands)


def only(fact: Facts) -> str:
    """The same for the facts of one table."""
    return f"`{fact['command']}` finds these figures.\n"


def largest(facts: Facts, game: str) -> tuple[str, Facts] | None:
    """Name and facts of the largest table of a game, which stands last."""
    found = [(name, fact) for name, fact in facts.items() if name.startswith(f"{game}/")]
    return found[-1] if found else None


# -- what was solved -------------------------------------------------------------------------------------------------


def solved_section(tables: Facts) -> str:
    """What there is a table of, what it took, and what there is none of."""
    head = ("", "positions", "residual", "time", "memory", "table")
    rows = [
        (
            TITLES[name],
            f"{fact['positions']:,}",
            "exact" if fact["kind"] == "distance" else f"{fact['residual']:.0e}",
            _seconds(fact["solved"]["seconds"]),
            _mebibytes(fact["solved"]["peak_bytes"]),
            _mebibytes(fact["bytes"]),
        )
        for name, fact in tables.items()
    ]
    missing = "; ".join(text for name, text in UNSOLVED.items() if name not in tables)
    not_made = f"Could be solved, but no table was made for this page: {missing}.\n\n" if missing else ""
    return (
        "## What is solved\n\n"
        + table(head, (_LEFT, *[_RIGHT] * 5), rows)
        + "\nPositions are those before a throw in Puluc and Yut Nori, in the frame of the side to move; in Petteia\n"
        "positions that are the same but for turning and mirroring the board count once. *residual*: the largest\n"
        "change of a value by one more step of value iteration, on the scale from -1 (lost) to 1 (won). Time and\n"
        "memory are those of the runs that made the tables, on the machine below. [How](solving.md).\n\n"
        f"**Not solved.** {not_made}{NEVER}\n" + command(tables)
    )


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def _mebibytes(count: float | None) -> str:
    if count is None:
        return ""
    return f"{count / 2**20:,.0f} MiB" if count >= 2**20 else f"{count / 2**10:,.0f} KiB"


def start_section(tables: Facts) -> str:
    """Who is better off at the start, and how positions divide."""
    return (
        "## Going first\n\n"
        + _dice_starts({name: fact for name, fact in tables.items() if fact["kind"] == "expectation"})
        + "\n"
        + _board_starts({name: fact for name, fact in tables.items() if fact["kind"] == "distance"})
    )


def _dice_starts(tables: Facts) -> str:
    head = ("games with dice", "the side that begins wins", "the mover is better off in", "the mover wins, on average")
    rows = [
        (
            TITLES[name],
            f"**{percent((1 + fact['start']) / 2)}**",
            percent(fact["better"], 1) + " of all positions",
            percent(fact["mean_wins"], 1) + " of the games",
        )
        for name, fact in tables.items()
    ]
    return table(head, (_LEFT, *[_RIGHT] * 3), rows)


def _board_starts(tables: Facts) -> str:
    head = ("games without dice", "the start", "won", "drawn", "lost for the side to move")
    rows = [
        (TITLES[name], _start(fact), *(percent(fact[result]) for result in ("won", "drawn", "lost")))
        for name, fact in tables.items()
    ]
    return table(head, (_LEFT, _LEFT, *[_RIGHT] * 3), rows)


def _start(fact: Facts) -> str:
    if fact["start"] is None:
        return "endings only"
    distance = fact["start_distance"]
    return f"**{_RESULTS[round(fact['start'])]}**" + (f" in {abs(distance)} moves" if distance else "")


# -- perfect play against itself and others ----------------------------------------------------------------------------


def check_section(games: Facts) -> str:
    """The tables against games that were played."""
    head = ("", "games", "by the table", "in the games", "99 % interval", "inside", "decisions a game", "longest")
    rows = [
        (
            TITLES[name],
            f"{fact['games']:,}",
            percent(fact["expected_wins"]),
            percent(fact["wins"]),
            f"± {percent(fact['half_width_99'])}",
            "yes" if abs(fact["wins"] - fact["expected_wins"]) <= fact["half_width_99"] else "**no**",
            f"{fact['length']:.0f}",
            f"{fact['longest']:,}",
        )
        for name, fact in games.items()
    ]
    cut_off = sum(fact["cut_off"] for fact in games.values())
    return (
        "### Checked by play\n\nPerfect play against itself: what the side that begins wins by the table, and what it\n"
        "won in games with throws that were drawn. The two should differ by more than the interval in one case of a\n"
        f"hundred. Games cut off by `max_turns`: {cut_off:,}.\n\n"
        + table(head, (_LEFT, *[_RIGHT] * 4, _LEFT, _RIGHT, _RIGHT), rows)
        + "\n"
        + command(games)
    )


def skill_section(matches: Facts) -> str:
    """Perfect against random and greedy."""
    head = ("", "against", "score", "95 % interval", "won", "drawn", "lost", "games")
    rows = [
        (
            TITLES[name],
            opponent,
            f"**{percent(result['score'], 1)}**",
            " – ".join(percent(bound, 1) for bound in result["interval"]),
            *(f"{result[outcome]:,}" for outcome in ("won", "drawn", "lost")),
            f"{result['games']:,}",
        )
        for name, fact in matches.items()
        for opponent, result in fact["against"].items()
    ]
    return (
        "## How much skill there is\n\nPerfect play against `random` (any legal move) and `greedy` (captures and\n"
        "brings home what it can, looking one move ahead), always from the start, sides swapped after each game.\n"
        "The distance from 50 % is what skill makes of the game against such players. Perfect play looks for the best\n"
        "against the best replies; who knows a weak player's habits could win still more against him.\n\n"
        "![Scores of perfect play](images/facts_skill.svg)\n\n"
        + table(head, (_LEFT, _LEFT, *[_RIGHT] * 6), rows)
        + "\n"
        + command(matches)
    )


# -- throws ----------------------------------------------------------------------------------------------------------


def throws_section(games: Facts) -> str:
    """What each throw is worth in the largest tables."""
    found = [pair for game in ("puluc", "yut_nori") if (pair := largest(games, game)) is not None]
    tables = [f"{TITLES[name]}:\n\n{_throws(fact)}\n{only(fact)}" for name, fact in found]
    return (
        "## What a throw is worth\n\nIn percentage points of winning probability, against what could be expected\n"
        "before the throw: as the first throw of the game, and averaged over all throws of perfect games.\n\n"
        "![Worth of throws](images/facts_throws.svg)\n\n" + "\n".join(tables)
    )


def _throws(fact: Facts) -> str:
    head = ("throw", "odds", "the side that begins then wins", "gain", "gain, averaged over perfect games")
    rows = [
        (
            throw,
            percent(start["probability"]),
            percent(start["wins"]),
            points(start["wins"] - fact["expected_wins"]),
            points(fact["throws"]["gain"][throw]),
        )
        for throw, start in fact["start_throws"].items()
    ]
    return table(head, (_LEFT, *[_RIGHT] * 4), rows)


# -- Puluc -----------------------------------------------------------------------------------------------------------


def opening_section(name: str, fact: Facts) -> str:
    """The chart of Puluc's second turns."""
    natural = fact["natural"]
    kinds = [found["kind"] for found in natural.values()]
    counts = ", ".join(f"{kind} in {kinds.count(kind)}" for kind in sorted(set(kinds), key=lambda k: -kinds.count(k)))
    return (
        f"## Puluc's first moves by throw\n\n{TITLES[name]}. In the first turn of both sides there is nothing to\n"
        "choose: a counter enters where the throw says. The first choice is the second turn of the side that began.\n"
        "The picture has a panel for its first throw, a row for the other side's throw, a column for its second\n"
        "throw; a number says by how many points of winning probability the best move is better than the next, an x\n"
        f"that it captures. Of the 125 cases the best is: {counts}.\n\n"
        "![Second turn of the side that began](images/facts_opening.svg)\n\n"
        "The same as a table: own first throw and the other side's throw down, own second throw across.\n\n"
        f"{_natural_chart(natural)}\n"
        "Then the side that began second has its second turn. By its own two throws, how often each kind of move is\n"
        "the best, after best play of the side that began:\n\n"
        f"{_black_chart(fact['black'])}\n{only(fact)}"
    )


def _natural_chart(natural: Facts) -> str:
    throws = "12345"
    rows = [
        (f"{first}, {reply}", *(next(iter(natural[f"{first} {reply} {second}"]["moves"])) for second in throws))
        for first in throws
        for reply in throws
    ]
    return table(("throws", *throws), (_LEFT,) * 6, rows)


def _black_chart(black: Facts) -> str:
    kinds = ("enter", "enter and capture", "advance", "advance and capture", "pass")
    rows = [
        (key.replace(" ", ", "), *(percent(found[kind], 0) if kind in found else "" for kind in kinds))
        for key, found in black.items()
    ]
    return table(("own throws", *kinds), (_LEFT, *[_RIGHT] * 5), rows)


def passing_section(name: str, fact: Facts) -> str:
    """When passing is right in Puluc."""
    passing = fact["passing"]
    offered, decisions = passing["offered"], passing["decisions"]
    return (
        f"## When to pass in Puluc\n\n{TITLES[name]}, {fact['games']:,} perfect games, {decisions:,} decisions. In\n"
        f"{percent(passing['only_pass'] / decisions, 1)} of them nothing but passing is legal, in\n"
        f"{percent(offered / decisions, 1)} passing is legal beside a move (an own unit is stopped by another). Of\n"
        f"these choices passing is **right in {percent(passing['right'] / offered, 1)}**, in\n"
        f"{percent(passing['equal'] / offered, 1)} it makes no difference. To move where passing is right costs\n"
        f"{_cost(passing['cost_of_moving'])}; to pass where moving is right costs\n"
        f"{_cost(passing['cost_of_passing'])}.\n\n"
        "![Passing against moving](images/facts_passing.svg)\n\nChoices that make no difference are left out of the\n"
        "picture.\n\n"
        f"{_passing_by_throw(passing)}\n"
        "Where the choice matters most in these games (frequent and costly), with what the moves win; on the board\n"
        "these numbers stand where the moves lead:\n\n"
        f"{_examples([(f'pass_{place}', found) for place, found in enumerate(passing['examples'], 1)], fact)}"
        f"{only(fact)}"
    )


def _cost(cost: Facts) -> str:
    return f"{percent(cost['mean'], 1)} of winning probability on average, {percent(cost['most'], 1)} at most"


def _passing_by_throw(passing: Facts) -> str:
    rows = [
        (throw, percent(offered / count, 1), percent(right / offered if offered else 0, 1))
        for throw, (count, offered, right) in passing["by_throw"].items()
    ]
    return table(("throw", "may pass or move", "of these, passing is right"), (_LEFT, _RIGHT, _RIGHT), rows)


def _examples(named: Sequence[tuple[str, Facts]], fact: Facts) -> str:
    return "".join(_example(name, found, fact["games"]) for name, found in named)


def _example(name: str, found: Facts, games: int) -> str:
    moves = ", ".join(f"`{move}` {percent(wins, 1)}" for move, wins in found["moves"].items())
    side = {"o": "natural", "x": "black"}[found["position"].split()[-2]]
    return (
        f"![{name.replace('_', ' ')}](images/facts_{name}.svg)\n\n"
        f"`{found['position']}`, {side} to move: {moves}. It came up {found['times']:,} times in {games:,} games.\n\n"
    )


# -- Yut Nori ----------------------------------------------------------------------------------------------------------


def short_ways_section(name: str, fact: Facts) -> str:
    """When the short way is wrong."""
    forks = fact["short_ways"]["forks"]
    head = (
        "from", "choices", "the rim is better", "without a capture", "equal", "then the short way costs",
        "where it is right, the rim costs", "another piece's move is best",
    )  # fmt: skip
    rows = [_fork(station, fork) for station, fork in forks.items()]
    named = [(f"rim_{station}", found) for station, fork in forks.items() for found in fork["examples"]]
    return (
        f"## When the short way is wrong in Yut Nori\n\n{TITLES[name]}, {fact['games']:,} perfect games. A unit that\n"
        "starts on 5, 10 or 22 may go along the rim or the short way. The two moves of that unit against each other,\n"
        "in all decisions of perfect games in which there is such a unit:\n\n"
        + table(head, (_LEFT, *[_RIGHT] * 7), rows)
        + "\n*without a capture*: those of them in which the move along the rim captures nothing. Costs are points of\n"
        "winning probability, on average and at most.\n\n"
        "![Short ways against the rim](images/facts_short_ways.svg)\n\n"
        "Where the rim is the best of all moves without capturing, and it matters most in these games:\n\n"
        + _examples(named, fact)
        + only(fact)
    )


def _fork(station: str, fork: Facts) -> tuple[str, ...]:
    offered = fork["offered"]
    equal = offered - fork["wrong"] - fork["right"]
    return (
        f"{station} {fork['word']}",
        f"{offered:,}",
        f"**{percent(fork['wrong'] / offered, 1)}**",
        percent(fork["wrong_without_capture"] / offered, 1),
        percent(equal / offered, 1),
        _short_cost(fork["cost_of_short"]),
        _short_cost(fork["cost_of_rim"]),
        percent(fork["other_unit"] / offered, 1),
    )


def _short_cost(cost: Facts) -> str:
    return f"{100 * cost['mean']:.1f}, {100 * cost['most']:.1f}"


# -- games without dice ------------------------------------------------------------------------------------------------


def endings_section(endings: Facts) -> str:
    """Material, and the longest wins."""
    wins = "\n".join(_longest(name, fact["longest"]) for name, fact in endings.items())
    return (
        "## Without dice: endings and the longest wins\n\n"
        "Pieces of the side to move against those of the other, reserves included. All positions of the tables are\n"
        "counted, whether or not play can lead to them.\n\n"
        "![Positions by pieces](images/facts_endings.svg)\n\n"
        f"{_materials(endings)}\n{wins}\n{command(endings)}"
    )


def _materials(endings: Facts) -> str:
    rows = [
        (TITLES[name], f"{own} : {enemy}", f"{sum(counts):,}", *(percent(count / sum(counts)) for count in counts))
        for name, fact in endings.items()
        for (own, enemy), counts in by_material(fact).items()
    ]
    return table(("", "pieces", "positions", "won", "drawn", "lost"), (_LEFT, _LEFT, *[_RIGHT] * 4), rows)


def by_material(fact: Facts) -> dict[tuple[int, int], tuple[int, int, int]]:
    """(won, drawn, lost) positions by the mover's and the other side's pieces."""
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for row in fact["materials"]:
        key = (row["own"], row["enemy"])
        before = found.get(key, (0, 0, 0))
        found[key] = (before[0] + row["won"], before[1] + row["drawn"], before[2] + row["lost"])
    return dict(sorted(found.items()))


def _longest(name: str, win: Facts) -> str:
    line = ", ".join(f"`{move}`" for move in win["line"])
    return (
        f"### {TITLES[name]}: {win['distance']} moves\n\n![Longest win](images/facts_{picture_name(name)}.svg)\n\n"
        f"`{win['position']}`: the side to move wins in {win['distance']} moves of both sides ({win['reason']}).\n"
        f"A line of best play: {line}.\n"
    )


def picture_name(name: str) -> str:
    """Of the picture of a table's longest win."""
    return "longest_" + "".join(letter if letter.isalnum() or letter == "-" else "_" for letter in name)


# -- the page ----------------------------------------------------------------------------------------------------------


def checksums(tables: Facts) -> str:
    """Which tables the facts were read from."""
    rows = [
        (TITLES[name], *(f"`{text}`" if text else "" for text in (fact["solved"]["command"], fact["sha256"])))
        for name, fact in tables.items()
    ]
    return table(("table", "made by", "SHA-256 of the values"), (_LEFT,) * 3, rows)


def page(facts: Facts) -> str:
    """The whole page."""
    games, tables = facts["games"], facts["tables"]
    puluc, yut_nori = largest(games, "puluc"), largest(games, "yut_nori")
    opening = largest(facts["openings"], "puluc")
    return "\n".join(
        part
        for part in (
            f"{NOTE}# Perfect play\n",
            "What the tables of exact values say. *Winning probability* is meant with best play of both sides.\n",
            solved_section(tables),
            start_section(tables),
            check_section(games) if games else "",
            skill_section(facts["matches"]) if facts["matches"] else "",
            throws_section(games) if games else "",
            opening_section(*opening) if opening else "",
            passing_section(*puluc) if puluc else "",
            short_ways_section(*yut_nori) if yut_nori else "",
            endings_section(facts["endings"]) if facts["endings"] else "",
            "## Where the figures come from\n",
            source_section({"provenance": facts["provenance"], "notes": []}),
            checksums(tables),
        )
        if part
    )


def main(arguments: list[str]) -> int:
    """Write the page and the pictures, or with ``--check`` compare the page with what is there."""
    facts = json.loads(RESULT.read_text(encoding="utf-8"))
    text = page(facts)
    if arguments == ["--check"]:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
        if stale:
            print(f"out of date: {PAGE}; run python benchmarks/publish_facts.py", file=sys.stderr)
        return int(stale)
    # Pictures are not compared: other releases of Matplotlib draw other bytes.
    from facts_plots import draw

    PAGE.write_text(text, encoding="utf-8")
    for path in (PAGE, *draw(facts, {name: plain(title) for name, title in TITLES.items()}, IMAGES)):
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
